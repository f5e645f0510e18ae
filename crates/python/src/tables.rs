//! Recognizes objects of Python that are tables: data frames, Arrow data, and readers, whose rows can be read
//! only once.

use crate::arrow::{Table, array, stream};
use crate::errors::{NotSupportedError, ProgrammingError, raised};
use crate::give_way::give_way;
use crate::readers::{self, Reader};
use entasis_engine::exec::CancelFlag;
use entasis_engine::relation::Relation;
use entasis_vector::Error;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::sync::Arc;

/// The kind of table that an object is.
pub enum Found {
    /// A whole table.
    Table(Table),
    /// Rows that can be read only once.
    Reader(Arc<Reader>),
}

/// Looks, when Python calls it, whether a conversion is to go on.
#[pyclass(frozen)]
struct Look(CancelFlag);

#[pymethods]
impl Look {
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        py.check_signals()?;
        // Other threads of Python run, one of which may interrupt this one.
        give_way(py);
        if self.0.is_raised() { Err(raised(&Error::interrupted())) } else { Ok(()) }
    }
}

/// The table that `object` is; `None` if it is not one. A reader is called `name` from now on. The conversion
/// of Python objects ends when `cancel` is raised.
///
/// # Errors
/// Those of the object's library; type errors, for Arrow data that are not a table; interrupted.
pub fn find(object: &Bound<'_, PyAny>, name: &str, cancel: &CancelFlag) -> PyResult<Option<Found>> {
    let py = object.py();
    found(object, name, cancel).map_err(|error| {
        // What its library says of it, such as that its columns have different lengths.
        if !error.is_instance_of::<PyValueError>(py) {
            return error;
        }
        let class = object.get_type().name().map(|name| name.to_string()).unwrap_or_default();
        let text = format!("the '{class}' {name} is not a table: {}", error.value(py));
        let raised = ProgrammingError::new_err(text);
        raised.set_cause(py, Some(error));
        raised
    })
}

fn found(object: &Bound<'_, PyAny>, name: &str, cancel: &CancelFlag) -> PyResult<Option<Found>> {
    let class = object.get_type();
    let library = class.module().map(|m| m.to_string()).unwrap_or_default();
    let library = library.split('.').next().unwrap_or_default();
    let class = class.name()?.to_string();
    let table = match (library, class.as_str()) {
        _ if object.is_instance_of::<PyType>() => None,
        // The capsule of a pandas frame would include its index as a column.
        ("pandas", "DataFrame") => {
            let look = Look(cancel.clone());
            Some(stream(&frames(object.py(), "pandas")?.call_method1("from_pandas", (object, look))?)?)
        }
        ("pandas", "Series") => {
            let look = Look(cancel.clone());
            Some(stream(&frames(object.py(), "pandas")?.call_method1("from_series", (object, look))?)?)
        }
        ("polars", "Series") => Some(polars(&object.call_method0("to_frame")?)?),
        ("numpy", "ndarray") => {
            let arrays = frames(object.py(), "numpy")?.call_method1("from_array", (object, name))?;
            if arrays.is_none() { None } else { Some(stream(&arrays)?) }
        }
        ("builtins", "dict") if !object.is_empty()? => converted(object, "from_dict", "dict of lists")?,
        ("builtins", "list") if !object.is_empty()? => converted(object, "from_dicts", "list of dicts")?,
        // Of pyarrow; each statement that names it reads it.
        ("pyarrow", _) if object.hasattr("to_reader")? && object.hasattr("projected_schema")? => {
            Some(stream(&object.call_method0("to_reader")?)?)
        }
        ("pyarrow", _) if object.hasattr("scanner")? => {
            Some(stream(&object.call_method0("scanner")?.call_method0("to_reader")?)?)
        }
        ("polars", "DataFrame") => Some(polars(object)?),
        ("polars", "LazyFrame") => Some(polars(&object.call_method0("collect")?)?),
        _ if readers::is_reader(object, library)? => {
            return readers::reader(object, name).map(Found::Reader).map(Some);
        }
        _ if object.hasattr("__arrow_c_stream__")? => Some(stream(object)?),
        _ if object.hasattr("__arrow_c_array__")? => Some(array(object)?),
        _ => None,
    };
    Ok(table.map(Found::Table))
}

/// The relation of `object`, called `name`, which keeps its rows.
///
/// # Errors
/// Those of [`find`]; a type error, if the object is not a table.
pub fn relation(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Arc<dyn Relation>> {
    match find(object, name, &CancelFlag::default())? {
        Some(Found::Table(table)) => Ok(table.relation(name)),
        Some(Found::Reader(reader)) => object.py().detach(|| reader.take()).map_err(|error| raised(&error)),
        None => {
            let class = object.get_type().name().map(|n| n.to_string()).unwrap_or_default();
            Err(PyTypeError::new_err(format!(
                "'{class}' is not a table: pandas and polars data frames and series, pyarrow tables and \
                 datasets, other objects with __arrow_c_stream__, arrays of numpy, dicts of arrays or lists, \
                 and lists of dicts are"
            )))
        }
    }
}

/// What `function` of `_frames.py` makes of an object of Python; nothing, if it is no table. Only if it may
/// be one is pyarrow needed, to convert it.
fn converted(object: &Bound<'_, PyAny>, function: &str, kind: &str) -> PyResult<Option<Table>> {
    let own = object.py().import("entasis._frames")?;
    if !own.call_method1("is_table", (object,))?.is_truthy()? {
        return Ok(None);
    }
    let table = frames_of(object.py(), &format!("a {kind}"))?.call_method1(function, (object,))?;
    if table.is_none() { Ok(None) } else { stream(&table).map(Some) }
}

/// The Python part of converting data frames, which needs pyarrow.
fn frames<'py>(py: Python<'py>, library: &str) -> PyResult<Bound<'py, PyModule>> {
    frames_of(py, &format!("a {library} data frame"))
}

fn frames_of<'py>(py: Python<'py>, what: &str) -> PyResult<Bound<'py, PyModule>> {
    if py.import("pyarrow").is_err() {
        return Err(NotSupportedError::new_err(format!("querying {what} needs the package pyarrow")));
    }
    py.import("entasis._frames")
}

/// A polars frame, whose columns of Python objects must be converted to a type first.
fn polars(frame: &Bound<'_, PyAny>) -> PyResult<Table> {
    stream(&frame.py().import("entasis._frames")?.call_method1("from_polars", (frame,))?)
}
