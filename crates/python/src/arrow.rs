//! The Arrow PyCapsule interface: data of other libraries in, results out, without copying buffers.
//!
//! A capsule is a named pointer to a C struct of Arrow's stream or data interface. A consumer that takes the
//! contents marks the struct as released, and the capsule's destructor then has nothing to do.
#![allow(unsafe_code)]

use crate::errors::{DataError, ProgrammingError};
use arrow_array::cast::AsArray;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::types::{
    DurationMicrosecondType, IntervalMonthDayNano, IntervalMonthDayNanoType, Time64MicrosecondType,
};
use arrow_array::{
    Array, ArrayRef, PrimitiveArray, RecordBatch, RecordBatchIterator, RecordBatchReader, StructArray,
};
use arrow_schema::{ArrowError, DataType, Field, IntervalUnit, Schema, SchemaRef, TimeUnit};
use entasis_engine::relation::Relation;
use entasis_vector::types::MICROS_PER_DAY;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::ffi::CStr;
use std::sync::Arc;

const STREAM: &CStr = c"arrow_array_stream";
const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";

/// A table of another library: its columns and their values, which are not copied.
pub struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    /// Its columns, and the batches of their values.
    pub fn into_parts(self) -> (SchemaRef, Vec<RecordBatch>) {
        (self.schema, self.batches)
    }

    /// The table as a relation called `name`.
    pub fn relation(self, name: &str) -> Arc<dyn Relation> {
        entasis::arrow_relation(name, &self.schema, self.batches)
    }
}

/// The stream of an object that has one; nothing has been read from it.
///
/// # Errors
/// Those of the object's library.
pub fn open(object: &Bound<'_, PyAny>) -> PyResult<ArrowArrayStreamReader> {
    let capsule = object.call_method0("__arrow_c_stream__")?.cast_into::<PyCapsule>()?;
    let pointer = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: the capsule has the name that Arrow reserves for pointers to an initialized stream struct, and
    // keeps it alive; `from_raw` moves the stream out and marks the struct as released.
    unsafe { ArrowArrayStreamReader::from_raw(pointer.as_ptr()) }.map_err(|e| failed(&e))
}

/// The table of an object that has a stream.
///
/// # Errors
/// Those of the object's library.
pub fn stream(object: &Bound<'_, PyAny>) -> PyResult<Table> {
    let reader = open(object)?;
    let schema = reader.schema();
    let batches = reader.collect::<Result<Vec<_>, ArrowError>>().map_err(|e| failed(&e))?;
    Ok(Table { schema, batches })
}

/// The table of an object that has one array of structs.
///
/// # Errors
/// Those of the object's library; a type error, for other arrays.
pub fn array(object: &Bound<'_, PyAny>) -> PyResult<Table> {
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

/// A capsule with a stream of `batches`, all of which have `schema`.
///
/// # Errors
/// If Python has no memory left.
pub fn capsule(
    py: Python<'_>,
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
) -> PyResult<Bound<'_, PyCapsule>> {
    reader_capsule(py, Box::new(RecordBatchIterator::new(batches.into_iter().map(Ok), schema)))
}

/// A capsule with the stream of a reader.
///
/// # Errors
/// If Python has no memory left.
pub fn reader_capsule(
    py: Python<'_>,
    reader: Box<dyn RecordBatchReader + Send>,
) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), STREAM)
}

// ---- data frames ------------------------------------------------------------------------------------------

/// A result for data frame libraries. These have no type for an INTERVAL's months and days, so intervals are
/// durations here, with a month as 30 days.
#[pyclass(frozen)]
pub struct FrameStream {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl FrameStream {
    /// A stream of these batches.
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

    /// The name of a column with the time 24:00:00, if there is one.
    pub fn end_of_day(&self) -> Option<&str> {
        let is_end = |array: &ArrayRef| match array.data_type() {
            DataType::Time64(TimeUnit::Microsecond) => array
                .as_primitive::<Time64MicrosecondType>()
                .iter()
                .flatten()
                .any(|time| time == MICROS_PER_DAY),
            _ => false,
        };
        let column = self.batches.iter().find_map(|batch| batch.columns().iter().position(is_end))?;
        Some(self.schema.field(column).name())
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
        // A schema request that cannot be fulfilled may be ignored.
        drop(requested_schema);
        capsule(py, self.schema.clone(), self.batches.clone())
    }
}
