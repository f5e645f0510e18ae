//! Names that the catalog does not have: variables of the caller that hold tables.
//!
//! A statement's names are looked up in the frame that called, its locals and then its globals, and outward from there.
//! What can be a table: anything with the Arrow PyCapsule interface (pyarrow, polars, results of Entasis), pandas data
//! frames, lazy polars frames. Other variables are passed over.

use crate::arrow;
use entasis_engine::relation::Relation;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};

/// Where the running statement looks for variables.
#[derive(Default)]
pub struct Scope(Mutex<Search>);

#[derive(Default)]
struct Search {
    /// The frame that called; `None` between statements.
    frame: Option<Py<PyAny>>,
    /// What went wrong with a variable that was found.
    error: Option<PyErr>,
}

impl Scope {
    /// A statement starts that `frame` called.
    pub fn enter(&self, frame: Option<Py<PyAny>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Search { frame, error: None };
    }

    /// The statement has ended. Returns what went wrong with its variables.
    pub fn leave(&self) -> Option<PyErr> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner)).error
    }

    /// The variable `name` as a relation, if there is one.
    pub fn find(&self, name: &str) -> Option<Arc<dyn Relation>> {
        Python::attach(|py| {
            // The lock is not held while Python runs: another thread may then wait for it with the GIL.
            let frame = self.0.lock().unwrap_or_else(PoisonError::into_inner).frame.as_ref()?.clone_ref(py);
            match search(frame.bind(py), name) {
                Ok(found) => found,
                Err(error) => {
                    self.0.lock().unwrap_or_else(PoisonError::into_inner).error = Some(error);
                    None
                }
            }
        })
    }
}

fn search(frame: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<Arc<dyn Relation>>> {
    let mut frame = frame.clone();
    while !frame.is_none() {
        for variables in ["f_locals", "f_globals"] {
            for candidate in named(&frame.getattr(variables)?, name)? {
                if let Some(table) = arrow::table(&candidate)? {
                    return Ok(Some(table.relation(name)?));
                }
            }
        }
        frame = frame.getattr("f_back")?;
    }
    Ok(None)
}

/// The variable `name`, and those that differ from it only in case, since SQL names have none.
fn named<'py>(variables: &Bound<'py, PyAny>, name: &str) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let mut found = Vec::new();
    if variables.contains(name)? {
        found.push(variables.get_item(name)?);
    }
    for key in variables.call_method0("keys")?.try_iter()? {
        let key = key?;
        if let Ok(text) = key.extract::<String>()
            && text != name
            && text.eq_ignore_ascii_case(name)
        {
            found.push(variables.get_item(&key)?);
        }
    }
    Ok(found)
}
