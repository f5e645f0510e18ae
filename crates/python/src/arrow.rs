//! The Arrow PyCapsule interface: tables of other libraries in, results out, without copying buffers.
//!
//! A capsule is a named pointer to a C struct of Arrow's stream or data interface. Whoever takes what is
//! inside marks the struct as released, and the capsule's destructor then has nothing to do.
#![allow(unsafe_code)]

use crate::errors::{DataError, NotSupportedError, ProgrammingError, raised};
use crate::readers::{self, Reader};
use arrow_array::cast::AsArray;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::types::{DurationMicrosecondType, IntervalMonthDayNano, IntervalMonthDayNanoType};
use arrow_array::{
    Array, ArrayRef, PrimitiveArray, RecordBatch, RecordBatchIterator, RecordBatchReader, StructArray,
};
use arrow_schema::{ArrowError, DataType, Field, IntervalUnit, Schema, SchemaRef, TimeUnit};
use entasis_engine::relation::Relation;
use entasis_vector::types::MICROS_PER_DAY;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyType};
use std::ffi::CStr;
use std::sync::Arc;

const STREAM: &CStr = c"arrow_array_stream";
const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";

/// A table of another library: its columns and their values, which stay where they are.
pub struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    /// The table as a relation called `name`.
    pub fn relation(self, name: &str) -> Arc<dyn Relation> {
        entasis::arrow_relation(name, &self.schema, self.batches)
    }
}

/// What an object is to a statement that names it.
pub enum Found {
    /// A table, whole.
    Table(Table),
    /// Rows that can be read once.
    Reader(Arc<Reader>),
}

/// What `object` is; `None` if it is no table. A reader is called `name` from now on.
///
/// # Errors
/// What the object's library raises; type errors, for Arrow data that are not a table.
pub fn find(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<Found>> {
    let class = object.get_type();
    let library = class.module().map(|m| m.to_string()).unwrap_or_default();
    let library = library.split('.').next().unwrap_or_default();
    let class = class.name()?.to_string();
    let table = match (library, class.as_str()) {
        _ if object.is_instance_of::<PyType>() => None,
        // The capsule of a pandas frame would show its index as a column.
        ("pandas", "DataFrame") => {
            Some(stream(&frames(object.py(), "pandas")?.call_method1("from_pandas", (object,))?)?)
        }
        ("pandas" | "polars", "Series") => None,
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

/// `object` as a relation called `name`, which keeps its rows.
///
/// # Errors
/// As [`find`]; a type error, if the object is no table.
pub fn relation(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Arc<dyn Relation>> {
    match find(object, name)? {
        Some(Found::Table(table)) => Ok(table.relation(name)),
        Some(Found::Reader(reader)) => object.py().detach(|| reader.take()).map_err(|error| raised(&error)),
        None => {
            let class = object.get_type().name().map(|n| n.to_string()).unwrap_or_default();
            Err(PyTypeError::new_err(format!(
                "'{class}' is not a table: pandas and polars data frames, pyarrow tables and other objects with \
                 __arrow_c_stream__ are"
            )))
        }
    }
}

/// The Python half of reading and making data frames, which needs pyarrow.
fn frames<'py>(py: Python<'py>, library: &str) -> PyResult<Bound<'py, PyModule>> {
    if py.import("pyarrow").is_err() {
        return Err(NotSupportedError::new_err(format!(
            "querying a {library} data frame needs the package pyarrow"
        )));
    }
    py.import("entasis._frames")
}

/// A polars frame, whose columns of Python objects need a type first.
fn polars(frame: &Bound<'_, PyAny>) -> PyResult<Table> {
    stream(&frame.py().import("entasis._frames")?.call_method1("from_polars", (frame,))?)
}

/// The stream of an object that has one; nothing has been read of it.
///
/// # Errors
/// What the object's library raises.
pub fn open(object: &Bound<'_, PyAny>) -> PyResult<ArrowArrayStreamReader> {
    let capsule = object.call_method0("__arrow_c_stream__")?.cast_into::<PyCapsule>()?;
    let pointer = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: the capsule has the name that Arrow reserves for pointers to an initialized stream struct, and
    // keeps it alive; `from_raw` moves the stream out and marks the struct as released.
    unsafe { ArrowArrayStreamReader::from_raw(pointer.as_ptr()) }.map_err(|e| failed(&e))
}

fn stream(object: &Bound<'_, PyAny>) -> PyResult<Table> {
    let reader = open(object)?;
    let schema = reader.schema();
    let batches = reader.collect::<Result<Vec<_>, ArrowError>>().map_err(|e| failed(&e))?;
    Ok(Table { schema, batches })
}

fn array(object: &Bound<'_, PyAny>) -> PyResult<Table> {
    let (schema, array): (Bound<'_, PyAny>, Bound<'_, PyAny>) =
        object.call_method0("__arrow_c_array__")?.extract()?;
    let (schema, array) = (schema.cast_into::<PyCapsule>()?, array.cast_into::<PyCapsule>()?);
    let schema = schema.pointer_checked(Some(SCHEMA))?.cast::<FFI_ArrowSchema>();
    let array = array.pointer_checked(Some(ARRAY))?.cast::<FFI_ArrowArray>();
    // SAFETY: as in `stream`, for the two structs of the data interface, which the object made as a pair.
    let data = unsafe {
        let schema = FFI_ArrowSchema::from_raw(schema.as_ptr());
        from_ffi(FFI_ArrowArray::from_raw(array.as_ptr()), &schema)
    };
    let data = data.map_err(|e| failed(&e))?;
    if !matches!(data.data_type(), DataType::Struct(_)) || data.null_count() > 0 {
        return Err(PyTypeError::new_err(
            "an Arrow array is a table only if it is a struct array without nulls",
        ));
    }
    let batch = RecordBatch::from(StructArray::from(data));
    Ok(Table { schema: batch.schema(), batches: vec![batch] })
}

fn failed(error: &ArrowError) -> PyErr {
    ProgrammingError::new_err(format!("reading Arrow data: {error}"))
}

/// A capsule with a stream of `batches`, which all have `schema`.
///
/// # Errors
/// If Python has no memory left.
pub fn capsule(
    py: Python<'_>,
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
) -> PyResult<Bound<'_, PyCapsule>> {
    let reader = RecordBatchIterator::new(batches.into_iter().map(Ok), schema);
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), STREAM)
}

// ---- data frames ------------------------------------------------------------------------------------------

/// A result for libraries of data frames, which have no type for an INTERVAL's months and days: those are
/// durations here, a month as 30 days.
#[pyclass(frozen)]
pub struct FrameStream {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl FrameStream {
    /// The stream of these batches.
    ///
    /// # Errors
    /// Data, if an interval is too long for a duration.
    pub fn new(schema: &SchemaRef, batches: Vec<RecordBatch>) -> PyResult<FrameStream> {
        const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);
        let field = |field: &Arc<Field>| match field.data_type() {
            &INTERVAL => {
                let duration =
                    field.as_ref().clone().with_data_type(DataType::Duration(TimeUnit::Microsecond));
                Arc::new(duration)
            }
            _ => field.clone(),
        };
        let own = Arc::new(Schema::new(schema.fields().iter().map(field).collect::<Vec<_>>()));
        let array = |array: &ArrayRef| match array.data_type() {
            &INTERVAL => durations(array.as_primitive()),
            _ => Ok(array.clone()),
        };
        let batch = |batch: RecordBatch| {
            let arrays = batch.columns().iter().map(array).collect::<PyResult<Vec<_>>>()?;
            RecordBatch::try_new(own.clone(), arrays).map_err(|e| failed(&e))
        };
        let batches = batches.into_iter().map(batch).collect::<PyResult<_>>()?;
        Ok(FrameStream { schema: own, batches })
    }
}

fn durations(intervals: &PrimitiveArray<IntervalMonthDayNanoType>) -> PyResult<ArrayRef> {
    let duration = |interval: IntervalMonthDayNano| {
        let days = i128::from(interval.months) * 30 + i128::from(interval.days);
        i64::try_from(days * i128::from(MICROS_PER_DAY) + i128::from(interval.nanoseconds / 1000))
            .map_err(|_| DataError::new_err("an INTERVAL is too long for a duration: 292,000 years"))
    };
    let values = intervals.iter().map(|interval| interval.map(duration).transpose());
    Ok(Arc::new(values.collect::<PyResult<PrimitiveArray<DurationMicrosecondType>>>()?))
}

#[pymethods]
impl FrameStream {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A request that cannot be fulfilled may be ignored.
        drop(requested_schema);
        capsule(py, self.schema.clone(), self.batches.clone())
    }
}
