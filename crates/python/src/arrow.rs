//! The Arrow PyCapsule interface: tables of other libraries in, results out, without copying buffers.
//!
//! A capsule is a named pointer to a C struct of Arrow's stream or data interface. Whoever takes what is inside marks
//! the struct as released, and the capsule's destructor then has nothing to do.
#![allow(unsafe_code)]

use crate::errors::{NotSupportedError, ProgrammingError, raised};
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader, StructArray};
use arrow_schema::{ArrowError, SchemaRef};
use entasis_engine::relation::Relation;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
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
    ///
    /// # Errors
    /// For types that Entasis does not have.
    pub fn relation(self, name: &str) -> PyResult<Arc<dyn Relation>> {
        entasis::arrow_relation(name, &self.schema, self.batches).map_err(|error| raised(&error.with_context(name)))
    }
}

/// `object` as a table; `None` if it is none.
///
/// # Errors
/// What the object's library raises; type errors, for Arrow data that are not a table.
pub fn table(object: &Bound<'_, PyAny>) -> PyResult<Option<Table>> {
    let class = object.get_type();
    let is_class = object.is_instance_of::<pyo3::types::PyType>();
    let library = class.module().map(|m| m.to_string()).unwrap_or_default();
    let library = library.split('.').next().unwrap_or_default();
    let class = class.name()?.to_string();
    match (library, class.as_str()) {
        _ if is_class => Ok(None),
        // The capsule of a pandas frame would show its index as a column.
        ("pandas", "DataFrame") => {
            let pyarrow = object
                .py()
                .import("pyarrow")
                .map_err(|_| NotSupportedError::new_err("querying a pandas data frame needs the package pyarrow"))?;
            let none = pyo3::types::PyDict::new(object.py());
            none.set_item("preserve_index", false)?;
            let table = pyarrow.getattr("Table")?.call_method("from_pandas", (object,), Some(&none))?;
            stream(&table).map(Some)
        }
        ("pandas" | "polars", "Series") => Ok(None),
        ("polars", "LazyFrame") => stream(&object.call_method0("collect")?).map(Some),
        _ if object.hasattr("__arrow_c_stream__")? => stream(object).map(Some),
        _ if object.hasattr("__arrow_c_array__")? => array(object).map(Some),
        _ => Ok(None),
    }
}

/// [`table`], or an error that says what `object` is instead.
///
/// # Errors
/// As [`table`]; a type error, if the object is no table.
pub fn required_table(object: &Bound<'_, PyAny>) -> PyResult<Table> {
    table(object)?.ok_or_else(|| {
        let class = object.get_type().name().map(|n| n.to_string()).unwrap_or_default();
        PyTypeError::new_err(format!(
            "'{class}' is not a table: pandas and polars data frames, pyarrow tables and other objects with \
             __arrow_c_stream__ are"
        ))
    })
}

fn stream(object: &Bound<'_, PyAny>) -> PyResult<Table> {
    let capsule = object.call_method0("__arrow_c_stream__")?.cast_into::<PyCapsule>()?;
    let pointer = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: the capsule has the name that Arrow reserves for pointers to an initialized stream struct, and keeps it
    // alive; `from_raw` moves the stream out and marks the struct as released.
    let reader = unsafe { ArrowArrayStreamReader::from_raw(pointer.as_ptr()) }.map_err(|e| failed(&e))?;
    let schema = reader.schema();
    let batches = reader.collect::<Result<Vec<_>, ArrowError>>().map_err(|e| failed(&e))?;
    Ok(Table { schema, batches })
}

fn array(object: &Bound<'_, PyAny>) -> PyResult<Table> {
    let (schema, array): (Bound<'_, PyAny>, Bound<'_, PyAny>) = object.call_method0("__arrow_c_array__")?.extract()?;
    let (schema, array) = (schema.cast_into::<PyCapsule>()?, array.cast_into::<PyCapsule>()?);
    let schema = schema.pointer_checked(Some(SCHEMA))?.cast::<FFI_ArrowSchema>();
    let array = array.pointer_checked(Some(ARRAY))?.cast::<FFI_ArrowArray>();
    // SAFETY: as in `stream`, for the two structs of the data interface, which the object made as a pair.
    let data = unsafe {
        let schema = FFI_ArrowSchema::from_raw(schema.as_ptr());
        from_ffi(FFI_ArrowArray::from_raw(array.as_ptr()), &schema)
    };
    let data = data.map_err(|e| failed(&e))?;
    if !matches!(data.data_type(), arrow_schema::DataType::Struct(_)) || data.null_count() > 0 {
        return Err(PyTypeError::new_err("an Arrow array is a table only if it is a struct array without nulls"));
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
pub fn capsule(py: Python<'_>, schema: SchemaRef, batches: Vec<RecordBatch>) -> PyResult<Bound<'_, PyCapsule>> {
    let reader = RecordBatchIterator::new(batches.into_iter().map(Ok), schema);
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), STREAM)
}
