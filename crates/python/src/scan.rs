//! Names that the catalog does not have: variables of the caller that hold tables.
//!
//! A statement's names are looked up in the calling frame, its locals and then its globals, and then in the
//! frames outside. An object is a table if it has the Arrow PyCapsule interface (pyarrow, polars, results of
//! Entasis), or is a data frame, an array, or a dict or list that `_frames.py` converts. Other variables are
//! ignored, but an error about a missing table says what they are.
//!
//! Functions of this package are no callers: their frames are passed over. Two of their variables have a
//! meaning: `tables`, a dict in which names are looked up first, and `caller`, the frame where the search
//! goes on, if it is on another thread's stack.
//!
//! A statement reads each object once, however often and under whatever names it refers to it: a reader has
//! its rows only once, and a lazy frame is collected once.

use crate::readers::Reader;
use crate::tables::{self, Found};
use entasis_engine::exec::CancelFlag;
use entasis_engine::relation::Relation;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where the running statement looks up variables.
#[derive(Default)]
pub struct Scope(Mutex<Search>);

#[derive(Default)]
struct Search {
    /// The calling frame; `None` between statements.
    frame: Option<Py<PyAny>>,
    /// What is wrong with the variables of the names.
    left: Left,
    /// Objects that the statement has named, and their relations.
    found: Vec<(Py<PyAny>, Arc<dyn Relation>)>,
    /// The readers among them.
    readers: Vec<Arc<Reader>>,
}

/// What is left of a search when the statement ends.
#[derive(Default)]
pub struct Left {
    /// The error of a variable that was found.
    pub error: Option<PyErr>,
    /// A variable that has the name of a table and is none.
    pub refused: Option<String>,
}

impl Scope {
    fn search(&self) -> MutexGuard<'_, Search> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a statement called by `frame`.
    pub fn enter(&self, frame: Option<Py<PyAny>>) {
        *self.search() = Search { frame, ..Search::default() };
    }

    /// Ends the statement. Returns what was wrong with its variables.
    pub fn leave(&self) -> Left {
        let search = std::mem::take(&mut *self.search());
        search.readers.iter().for_each(|reader| reader.forget());
        search.left
    }

    /// The variable `name` as a relation, if there is one. Converting it ends when `cancel` is raised.
    pub fn find(&self, name: &str, cancel: &CancelFlag) -> Option<Arc<dyn Relation>> {
        Python::attach(|py| {
            // The lock is not held while Python runs: another thread may then wait for it with the GIL.
            let frame = self.search().frame.as_ref()?.clone_ref(py);
            match self.look(frame.bind(py), name, cancel) {
                Ok(found) => found,
                Err(error) => {
                    self.search().left.error = Some(error);
                    None
                }
            }
        })
    }

    fn look(
        &self,
        frame: &Bound<'_, PyAny>,
        name: &str,
        cancel: &CancelFlag,
    ) -> PyResult<Option<Arc<dyn Relation>>> {
        let (mut frame, mut is_nearest) = (frame.clone(), true);
        while !frame.is_none() {
            let (locals, globals) = (frame.getattr("f_locals")?, frame.getattr("f_globals")?);
            let own = is_own(&globals)?;
            let places = match own {
                true => vec![variable(&locals, "tables")?],
                false => vec![Some(locals.clone()), Some(globals)],
            };
            for variables in places.into_iter().flatten() {
                for candidate in named(&variables, name)? {
                    if let Some(relation) = self.relation(&candidate, name, cancel)? {
                        return Ok(Some(relation));
                    }
                    // Those further out may be of other libraries, which the program does not know.
                    if !is_nearest {
                        continue;
                    }
                    let class = candidate.get_type().name()?.to_string();
                    let text = match class.as_str() {
                        "Query" => format!(
                            "the variable {name} is a Query, which has not run: write {name}.sql(…), where \
                             its table is called self, or make a Relation of it with {name}.execute()"
                        ),
                        _ => format!("the variable {name} is a '{class}', which is not a table"),
                    };
                    self.search().left.refused.get_or_insert(text);
                }
            }
            is_nearest &= own;
            let caller = if own { variable(&locals, "caller")? } else { None };
            frame = caller.map_or_else(|| frame.getattr("f_back"), Ok)?;
        }
        Ok(None)
    }

    /// The relation of an object, if it is a table.
    fn relation(
        &self,
        object: &Bound<'_, PyAny>,
        name: &str,
        cancel: &CancelFlag,
    ) -> PyResult<Option<Arc<dyn Relation>>> {
        if let Some((_, relation)) = self.search().found.iter().find(|(known, _)| known.is(object)) {
            return Ok(Some(relation.clone()));
        }
        let (relation, reader): (Arc<dyn Relation>, _) = match tables::find(object, name, cancel)? {
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

/// True for the frames of this package's functions.
fn is_own(globals: &Bound<'_, PyAny>) -> PyResult<bool> {
    let module = variable(globals, "__name__")?.and_then(|name| name.extract::<String>().ok());
    Ok(module.is_some_and(|module| module == "entasis" || module.starts_with("entasis.")))
}

fn variable<'py>(variables: &Bound<'py, PyAny>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    let found = variables.call_method1("get", (name,))?;
    Ok(Some(found).filter(|found| !found.is_none()))
}

/// The variable `name`, and those that differ from it only in case, since SQL names are case-insensitive.
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
