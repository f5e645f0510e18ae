//! Which objects of Python are tables: data frames, Arrow data, and readers, which give their rows once.

use crate::arrow::{Table, array, stream};
use crate::errors::{NotSupportedError, raised};
use crate::readers::{self, Reader};
use entasis_engine::relation::Relation;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::sync::Arc;

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
