//! Python functions that SQL may call.
//!
//! A *native* function gets Python values, row by row; an *arrow* function gets a `pyarrow.Array` for each
//! argument, for up to a chunk of rows, and gives an array. Statements run without Python's lock, on several
//! threads, so each call takes the lock for its chunk: a native function never runs twice at the same time,
//! and others wait for it.
//!
//! An exception of the function ends the statement; it is the cause of the error that is raised.

use crate::arrow::{self, FrameStream, Table};
use crate::errors::{InterfaceError, raised};
use crate::from_python::parameter;
use crate::tables;
use crate::values::to_python;
use arrow_array::{ArrayRef, RecordBatch};
use entasis::{DataType, Error, Function, HostArguments, TableArgument, Value};
use entasis_vector::{CHUNK_ROWS, Result, Vector};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple, PyType};
use std::sync::{Arc, Mutex, PoisonError};

/// The exception of the function that failed last.
#[derive(Clone, Default)]
pub struct Failure(Arc<Mutex<Option<PyErr>>>);

impl Failure {
    /// Takes the exception, if there is one.
    pub fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Forgets the exception, if there is one.
    pub fn forget(&self) {
        if let Some(gone) = self.take() {
            Python::attach(|_| drop(gone));
        }
    }

    /// Keeps an exception, and describes it for the statement's error.
    fn keep(&self, py: Python<'_>, exception: PyErr) -> Error {
        let class = exception.get_type(py).name().map(|name| name.to_string()).unwrap_or_default();
        let text = match exception.value(py).str() {
            Ok(text) if !text.to_string().is_empty() => format!("{class}: {text}"),
            _ => class,
        };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(exception);
        Error::input(text)
    }
}

/// How a function is called.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    /// With Arrow arrays.
    pub arrow: bool,
    /// For rows with NULLs as well.
    pub nulls: bool,
    /// An exception gives NULL.
    pub forgiving: bool,
    /// Its results do not follow from its arguments alone.
    pub volatile: bool,
}

/// The types of a function's arguments, if they are fixed, and that of its result.
pub struct Types {
    takes: Option<Vec<DataType>>,
    result: DataType,
}

impl Types {
    /// The types that are given, as SQL or Python names them; those that are not, from the annotations of the
    /// function.
    ///
    /// # Errors
    /// If they are neither given nor annotated, or unknown.
    pub fn of(
        function: &Bound<'_, PyAny>,
        parameters: Option<&Bound<'_, PyAny>>,
        result: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Types> {
        let takes = match parameters {
            Some(given) => Some(data_types(given)?),
            None => annotated_parameters(function)?,
        };
        Ok(Types { takes, result: result_type(function, result)? })
    }

    /// The same for an aggregate, whose own annotations are of lists and say nothing of its parameters.
    ///
    /// # Errors
    /// Those of [`Types::of`].
    pub fn of_aggregate(
        function: &Bound<'_, PyAny>,
        parameters: Option<&Bound<'_, PyAny>>,
        result: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Types> {
        let takes = parameters.map(data_types).transpose()?;
        if takes.as_ref().is_some_and(Vec::is_empty) {
            return Err(InterfaceError::new_err("an aggregate takes at least one argument"));
        }
        Ok(Types { takes, result: result_type(function, result)? })
    }

    fn takes(&self) -> Vec<DataType> {
        self.takes.clone().unwrap_or_default()
    }
}

/// The type of the result that is given, or else that of the function's annotation.
fn result_type(function: &Bound<'_, PyAny>, given: Option<&Bound<'_, PyAny>>) -> PyResult<DataType> {
    if let Some(given) = given {
        return data_type(given);
    }
    // What a class returns is an object of it.
    let signature = if function.is_instance_of::<PyType>() { None } else { signature(function)? };
    let annotation = match &signature {
        Some(signature) => annotation(signature, "return_annotation")?,
        None => None,
    };
    match annotation {
        Some(annotation) => data_type(&annotation),
        None => Err(InterfaceError::new_err(
            "the type of the result is not known: give return_type, or annotate the function",
        )),
    }
}

fn data_types(given: &Bound<'_, PyAny>) -> PyResult<Vec<DataType>> {
    given.try_iter()?.map(|ty| data_type(&ty?)).collect()
}

/// The signature of a function, with its annotations evaluated; `None` of one that has none, as many that are
/// built in.
fn signature<'py>(function: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let evaluated = PyDict::new(function.py());
    evaluated.set_item("eval_str", true)?;
    let inspect = function.py().import("inspect")?;
    Ok(inspect.call_method("signature", (function,), Some(&evaluated)).ok())
}

/// An annotation of a signature or of a parameter, if there is one.
fn annotation<'py>(of: &Bound<'py, PyAny>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    let annotation = of.getattr(name)?;
    Ok(if annotation.is(&of.getattr("empty")?) { None } else { Some(annotation) })
}

/// The types of a function's parameters; `None` unless all are annotated.
fn annotated_parameters(function: &Bound<'_, PyAny>) -> PyResult<Option<Vec<DataType>>> {
    let Some(signature) = signature(function)? else { return Ok(None) };
    let mut types = Vec::new();
    for parameter in signature.getattr("parameters")?.call_method0("values")?.try_iter()? {
        let parameter = parameter?;
        let kind = parameter.getattr("kind")?.getattr("name")?.to_string();
        let is_one = !matches!(kind.as_str(), "VAR_POSITIONAL" | "VAR_KEYWORD");
        match annotation(&parameter, "annotation")?.filter(|_| is_one) {
            Some(annotation) => types.push(data_type(&annotation)?),
            None => return Ok(None),
        }
    }
    Ok(Some(types))
}

/// The type that a name of SQL or a class of Python means.
fn data_type(given: &Bound<'_, PyAny>) -> PyResult<DataType> {
    if let Ok(name) = given.cast::<PyString>() {
        return entasis::parse_type(&name.to_cow()?).map_err(|error| raised(&error));
    }
    let unknown = || {
        InterfaceError::new_err(format!(
            "{given} is not a type that SQL has: write its name, as in 'DECIMAL(12, 2)', or a class such as int, \
             float, str, bool, bytes, datetime.date"
        ))
    };
    // `int | None` and `Optional[int]` are an `int`: every type has NULL.
    let members: Vec<Bound<'_, PyAny>> = given
        .py()
        .import("typing")?
        .call_method1("get_args", (given,))?
        .try_iter()?
        .collect::<PyResult<_>>()?;
    let none = given.py().None().bind(given.py()).get_type();
    if let [one, other] = members.as_slice() {
        match (one.is(&none), other.is(&none)) {
            (true, false) => return data_type(other),
            (false, true) => return data_type(one),
            _ => {}
        }
    }
    let class = given.cast::<PyType>().map_err(|_| unknown())?;
    Ok(match (class.module()?.to_string().as_str(), class.name()?.to_string().as_str()) {
        ("builtins", "bool") => DataType::Boolean,
        ("builtins", "int") => DataType::Int64,
        ("builtins", "float") => DataType::Float64,
        ("builtins", "str") => DataType::Varchar,
        ("builtins", "bytes" | "bytearray") => DataType::Blob,
        ("datetime", "date") => DataType::Date,
        ("datetime", "time") => DataType::Time,
        ("datetime", "datetime") => DataType::Timestamp,
        ("datetime", "timedelta") => DataType::Interval,
        ("uuid", "UUID") => DataType::Uuid,
        _ => return Err(unknown()),
    })
}

/// A scalar function.
pub fn scalar(name: &str, function: Py<PyAny>, types: Types, manner: Manner, failure: Failure) -> Function {
    let result = types.result;
    let any = types.takes.is_none();
    let own = if manner.arrow {
        Function::arrow(name, types.takes(), result, move |arrays| {
            Python::attach(|py| {
                let called = on_arrays(py, &function, arrays);
                match called {
                    Ok(array) => Ok(array),
                    Err(error) => Err(failure.keep(py, error)),
                }
            })
        })
    } else {
        Function::vectors(name, types.takes(), result, move |arguments, out| {
            Python::attach(|py| {
                for_rows(py, &function, arguments, result, manner, out, |error| failure.keep(py, error))
            })
        })
    };
    let own = if any { own.with_any_arguments() } else { own };
    let own = if manner.nulls { own.with_nulls() } else { own };
    if manner.volatile { own.volatile() } else { own }
}

fn for_rows(
    py: Python<'_>,
    function: &Py<PyAny>,
    arguments: HostArguments<'_>,
    result: DataType,
    manner: Manner,
    out: &mut Vector,
    failed: impl Fn(PyErr) -> Error,
) -> Result<()> {
    out.begin(arguments.rows.max(CHUNK_ROWS));
    for row in 0..arguments.rows {
        let call = || {
            let values = (0..arguments.vectors.len())
                .map(|at| to_python(py, &arguments.value(row, at), arguments.types[at]))
                .collect::<PyResult<Vec<_>>>()?;
            given(&function.bind(py).call1(PyTuple::new(py, values)?)?)
        };
        let value = match call() {
            Ok((value, ty)) => entasis::cast_value(value, ty, result),
            // Not what ends a program, such as KeyboardInterrupt.
            Err(error) if manner.forgiving && error.is_instance_of::<PyException>(py) => Ok(Value::Null),
            Err(error) => return Err(failed(error)),
        };
        match value {
            Ok(value) => out.write_value_of(row, &value, result)?,
            Err(_) if manner.forgiving => out.set_null(row),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// What a function returned, with the type that it has by itself.
fn given(value: &Bound<'_, PyAny>) -> PyResult<(Value, DataType)> {
    parameter(value)?.value().map_err(|error| raised(&error))
}

/// Calls a function with arrays of pyarrow.
fn on_arrays(py: Python<'_>, function: &Py<PyAny>, arrays: &[ArrayRef]) -> PyResult<ArrayRef> {
    let pyarrow = py.import("pyarrow")?;
    let named = arrays.iter().enumerate().map(|(at, array)| (format!("{at}"), array.clone(), true));
    let columns = match arrays.is_empty() {
        true => Vec::new(),
        false => {
            let batch = RecordBatch::try_from_iter_with_nullable(named)
                .map_err(|error| InterfaceError::new_err(error.to_string()))?;
            let stream = Py::new(py, FrameStream::new(&batch.schema(), vec![batch])?)?;
            let table = pyarrow.call_method1("table", (stream,))?.call_method0("combine_chunks")?;
            let columns = table.getattr("columns")?;
            let columns = columns.try_iter()?.map(|column| column?.call_method1("chunk", (0,)));
            columns.collect::<PyResult<Vec<_>>>()?
        }
    };
    let given = function.bind(py).call1(PyTuple::new(py, columns)?)?;
    // A list, an array of numpy or a scalar will do as well.
    let array = match given.hasattr("__arrow_c_array__")? || given.hasattr("__arrow_c_stream__")? {
        true => given,
        false if given.hasattr("as_py")? => {
            let values = PyList::new(py, [given.call_method0("as_py")?])?;
            pyarrow.call_method1("array", (values, given.getattr("type")?))?
        }
        false if given.hasattr("__len__")? && !given.is_instance_of::<PyString>() => {
            pyarrow.call_method1("array", (given,))?
        }
        false => pyarrow.call_method1("array", (PyList::new(py, [given])?,))?,
    };
    let names = PyList::new(py, ["result"])?;
    let columns = PyList::new(py, [array])?;
    let table = pyarrow.getattr("Table")?.call_method1("from_arrays", (columns, names))?;
    Ok(only_column(arrow::stream(&table.call_method0("combine_chunks")?)?))
}

/// An aggregate: a class whose objects have `step(…)` and `finalize()`, or a function of lists, or of arrays.
pub fn aggregate(
    name: &str,
    function: Py<PyAny>,
    types: Types,
    manner: Manner,
    failure: Failure,
) -> Function {
    let result = types.result;
    let any = types.takes.is_none();
    let own = if manner.arrow {
        Function::arrow_aggregate(name, types.takes(), result, move |arrays| {
            Python::attach(|py| on_arrays(py, &function, arrays).map_err(|error| failure.keep(py, error)))
        })
    } else {
        Function::aggregate(name, types.takes(), result, move |types, columns| {
            Python::attach(|py| {
                let called = for_group(py, &function, types, columns);
                let (value, ty) = called.map_err(|error| failure.keep(py, error))?;
                entasis::cast_value(value, ty, result)
            })
        })
    };
    let own = if any { own.with_any_arguments() } else { own };
    if manner.nulls { own.with_nulls() } else { own }
}

fn for_group(
    py: Python<'_>,
    function: &Py<PyAny>,
    types: &[DataType],
    columns: &[Vec<Value>],
) -> PyResult<(Value, DataType)> {
    let function = function.bind(py);
    let value = |row: usize, at: usize| to_python(py, &columns[at][row], types[at]);
    let rows = columns.first().map_or(0, Vec::len);
    if function.is_instance_of::<PyType>() {
        let state = function.call0()?;
        for row in 0..rows {
            let values = (0..columns.len()).map(|at| value(row, at)).collect::<PyResult<Vec<_>>>()?;
            state.call_method1("step", PyTuple::new(py, values)?)?;
        }
        return given(&state.call_method0("finalize")?);
    }
    let lists = (0..columns.len()).map(|at| {
        let values = (0..rows).map(|row| value(row, at)).collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, values)
    });
    given(&function.call1(PyTuple::new(py, lists.collect::<PyResult<Vec<_>>>()?)?)?)
}

/// A table function: what it returns is anything that can be registered as a table.
pub fn table(name: &str, function: Py<PyAny>, failure: Failure) -> Function {
    let own = name.to_owned();
    Function::table(name, move |arguments| {
        Python::attach(|py| {
            let call = || {
                let mut plain = Vec::new();
                let named = PyDict::new(py);
                for TableArgument { name, value, ty, .. } in arguments {
                    let value = to_python(py, value, *ty)?;
                    match name {
                        Some(name) => named.set_item(name, value)?,
                        None => plain.push(value),
                    }
                }
                let rows = function.bind(py).call(PyTuple::new(py, plain)?, Some(&named))?;
                tables::relation(&rows, &own)
            };
            call().map_err(|error| failure.keep(py, error))
        })
    })
}

/// The values of the only column of a table that was made in one piece.
fn only_column(table: Table) -> ArrayRef {
    let (schema, batches) = table.into_parts();
    match batches.first() {
        Some(batch) => batch.column(0).clone(),
        None => arrow_array::new_empty_array(schema.field(0).data_type()),
    }
}
