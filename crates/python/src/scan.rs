//! Names that the catalog does not have: variables of the caller that hold tables.
//!
//! A statement's names are looked up in the frame that called, its locals and then its globals, and outward
//! from there. What can be a table: anything with the Arrow PyCapsule interface (pyarrow, polars, results of
//! Entasis), pandas data frames, lazy polars frames. Other variables are passed over.
//!
//! A statement sees each object once, however often it names it and under whatever names: a reader has its
//! rows once, and a lazy frame is collected once.

use crate::readers::Reader;
use crate::tables::{self, Found};
use entasis_engine::relation::Relation;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where the running statement looks for variables.
#[derive(Default)]
pub struct Scope(Mutex<Search>);

#[derive(Default)]
struct Search {
    /// The frame that called; `None` between statements.
    frame: Option<Py<PyAny>>,
    /// What went wrong with a variable that was found.
    error: Option<PyErr>,
    /// Objects that the statement has named, and what they are to it.
    found: Vec<(Py<PyAny>, Arc<dyn Relation>)>,
    /// The readers among them.
    readers: Vec<Arc<Reader>>,
}

impl Scope {
    fn search(&self) -> MutexGuard<'_, Search> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A statement starts that `frame` called.
    pub fn enter(&self, frame: Option<Py<PyAny>>) {
        *self.search() = Search { frame, ..Search::default() };
    }

    /// The statement has ended. Returns what went wrong with its variables.
    pub fn leave(&self) -> Option<PyErr> {
        let search = std::mem::take(&mut *self.search());
        search.readers.iter().for_each(|reader| reader.forget());
        search.error
    }

    /// The variable `name` as a relation, if there is one.
    pub fn find(&self, name: &str) -> Option<Arc<dyn Relation>> {
        Python::attach(|py| {
            // The lock is not held while Python runs: another thread may then wait for it with the GIL.
            let frame = self.search().frame.as_ref()?.clone_ref(py);
            match self.look(frame.bind(py), name) {
                Ok(found) => found,
                Err(error) => {
                    self.search().error = Some(error);
                    None
                }
            }
        })
    }

    fn look(&self, frame: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<Arc<dyn Relation>>> {
        let mut frame = frame.clone();
        while !frame.is_none() {
            for variables in ["f_locals", "f_globals"] {
                for candidate in named(&frame.getattr(variables)?, name)? {
                    if let Some(relation) = self.relation(&candidate, name)? {
                        return Ok(Some(relation));
                    }
                }
            }
            frame = frame.getattr("f_back")?;
        }
        Ok(None)
    }

    /// What an object is to the statement, if it is a table.
    fn relation(&self, object: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<Arc<dyn Relation>>> {
        if let Some((_, relation)) = self.search().found.iter().find(|(known, _)| known.is(object)) {
            return Ok(Some(relation.clone()));
        }
        let (relation, reader): (Arc<dyn Relation>, _) = match tables::find(object, name)? {
            None => return Ok(None),
            Some(Found::Table(table)) => (table.relation(name), None),
            Some(Found::Reader(reader)) => (reader.clone(), Some(reader)),
        };
        let mut search = self.search();
        search.found.push((object.clone().unbind(), relation.clone()));
        search.readers.extend(reader);
        Ok(Some(relation))
    }
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
