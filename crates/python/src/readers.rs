//! Readers: objects whose rows can be read only once, such as pyarrow's `RecordBatchReader`.
//!
//! The columns of a reader are read when a statement names it, and its rows when the statement scans it;
//! statements that need only the columns, such as `DESCRIBE`, take no rows. The rows are kept until the end
//! of the statement, which may scan them several times. After that they are gone, and naming the reader again
//! is an error, instead of yielding a table without rows.

use crate::arrow;
use crate::errors::ProgrammingError;
use arrow_array::RecordBatchReader;
use arrow_array::ffi_stream::ArrowArrayStreamReader;
use entasis_engine::exec::QueryContext;
use entasis_engine::relation::{Relation, ScanRequest, Source, Statistics};
use entasis_vector::{Error, Result, Schema};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// The state of each reader: a `weakref.WeakKeyDictionary` of [`Known`].
static KNOWN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// True for an object whose rows can be read only once: a stream that is an iterator, other than results of
/// Entasis, and that supports weak references.
///
/// # Errors
/// Those of the object.
pub fn is_reader(object: &Bound<'_, PyAny>, library: &str) -> PyResult<bool> {
    if library == "entasis" || !object.hasattr("__arrow_c_stream__")? || !object.hasattr("__next__")? {
        return Ok(false);
    }
    let reference = object.py().import("weakref")?.getattr("ref")?;
    Ok(object.hash().is_ok() && reference.call1((object,)).is_ok())
}

/// A reader as a relation.
pub struct Reader {
    name: String,
    schema: Schema,
    rows: Mutex<Rows>,
}

/// The state of a reader's rows.
enum Rows {
    /// They have not been read.
    Unread(ArrowArrayStreamReader),
    /// A running statement has read them.
    Read(Arc<dyn Relation>),
    /// They are gone.
    Gone,
}

#[pyclass(frozen)]
struct Known(Arc<Reader>);

/// The relation of a reader that still has its rows, called `name` unless it was named before.
///
/// # Errors
/// Programming, if the rows are gone; those of the reader.
pub fn reader(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Arc<Reader>> {
    let py = object.py();
    let make = || py.import("weakref")?.call_method0("WeakKeyDictionary").map(Bound::unbind);
    let known = KNOWN.get_or_try_init(py, make)?.bind(py);
    let found = known.call_method1("get", (object,))?;
    if let Ok(found) = found.cast::<Known>() {
        let reader = &found.get().0;
        return match &*reader.rows() {
            Rows::Unread(_) => Ok(reader.clone()),
            Rows::Read(_) | Rows::Gone => Err(gone(name)),
        };
    }
    let stream = arrow::open(object)?;
    let schema = entasis::arrow_relation_schema(&stream.schema());
    let reader = Arc::new(Reader { name: name.to_owned(), schema, rows: Mutex::new(Rows::Unread(stream)) });
    known.set_item(object, Py::new(py, Known(reader.clone()))?)?;
    Ok(reader)
}

fn gone(name: &str) -> PyErr {
    ProgrammingError::new_err(format!(
        "the rows of {name} have already been read: a reader gives them once. Make a table of it first (read_all()), or register it"
    ))
}

impl Reader {
    fn rows(&self) -> std::sync::MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The rows, which are read now unless they have been.
    fn read(&self) -> Result<Arc<dyn Relation>> {
        let mut rows = self.rows();
        let stream = match std::mem::replace(&mut *rows, Rows::Gone) {
            Rows::Read(relation) => {
                *rows = Rows::Read(relation.clone());
                return Ok(relation);
            }
            Rows::Gone => {
                return Err(Error::input(format!("the rows of {} have already been read", self.name)));
            }
            Rows::Unread(stream) => stream,
        };
        let schema = stream.schema();
        let batches = stream.collect::<std::result::Result<Vec<_>, _>>();
        let batches = batches.map_err(|error| Error::input(format!("reading {}: {error}", self.name)))?;
        let relation = entasis::arrow_relation(&self.name, &schema, batches);
        *rows = Rows::Read(relation.clone());
        Ok(relation)
    }

    /// The rows, for a caller that keeps them: for all others they are gone.
    ///
    /// # Errors
    /// Those of the reader.
    pub fn take(&self) -> Result<Arc<dyn Relation>> {
        let rows = self.read();
        *self.rows() = Rows::Gone;
        rows
    }

    /// Called at the end of a statement that named the reader.
    pub fn forget(&self) {
        let mut rows = self.rows();
        if matches!(*rows, Rows::Read(_)) {
            *rows = Rows::Gone;
        }
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reader({})", self.name)
    }
}

impl Relation for Reader {
    fn name(&self) -> &str {
        &self.name
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn statistics(&self) -> Statistics {
        Statistics { rows: None, columns: vec![] }
    }

    fn scan(&self, request: &ScanRequest, context: &QueryContext) -> Result<Arc<dyn Source>> {
        self.read()?.scan(request, context)
    }
}
