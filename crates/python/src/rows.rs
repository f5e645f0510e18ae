//! Rows as something other than tuples: what a row factory makes of them, or dicts by the columns' names.

use crate::errors::ProgrammingError;
use entasis_vector::Schema;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use std::sync::{Mutex, PoisonError};

/// What fetches return for a row: `factory(cursor, row)`, as in the module `sqlite3`; the row itself without
/// one.
#[derive(Default)]
pub struct RowFactory(Mutex<Option<Py<PyAny>>>);

impl RowFactory {
    /// The function, if there is one.
    pub fn get(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let factory = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        factory.as_ref().map(|factory| factory.clone_ref(py))
    }

    /// Sets or removes the function.
    pub fn set(&self, factory: Option<Py<PyAny>>) {
        // What was there is dropped without the lock: that may run code of Python.
        let before = std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), factory);
        drop(before);
    }

    /// Another with the same function.
    pub fn copy(&self, py: Python<'_>) -> RowFactory {
        RowFactory(Mutex::new(self.get(py)))
    }

    /// What becomes of a row that `cursor` has fetched.
    ///
    /// # Errors
    /// Those of the function.
    pub fn made<'py>(
        &self,
        cursor: &Bound<'py, PyAny>,
        row: Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match self.get(cursor.py()) {
            None => Ok(row.into_any()),
            Some(factory) => factory.bind(cursor.py()).call1((cursor, row)),
        }
    }

    /// What becomes of several rows, in their list.
    ///
    /// # Errors
    /// Those of the function.
    pub fn all<'py>(
        &self,
        cursor: &Bound<'py, PyAny>,
        rows: Bound<'py, PyList>,
    ) -> PyResult<Bound<'py, PyList>> {
        if let Some(factory) = self.get(cursor.py()) {
            for (at, row) in rows.iter().enumerate() {
                rows.set_item(at, factory.bind(cursor.py()).call1((cursor, row))?)?;
            }
        }
        Ok(rows)
    }
}

/// Turns each row of a list into a dict.
///
/// # Errors
/// Programming, if two columns have the same name.
pub fn dicts<'py>(rows: Bound<'py, PyList>, schema: &Schema) -> PyResult<Bound<'py, PyList>> {
    let names = names(schema)?;
    for (at, row) in rows.iter().enumerate() {
        let dict = PyDict::new(rows.py());
        for (name, value) in names.iter().zip(row.cast::<PyTuple>()?.iter()) {
            dict.set_item(name, value)?;
        }
        rows.set_item(at, dict)?;
    }
    Ok(rows)
}

/// The names of the columns, for a dict.
///
/// # Errors
/// Programming, if two have the same name.
pub fn names(schema: &Schema) -> PyResult<Vec<&str>> {
    let names: Vec<&str> = schema.iter().map(|field| &*field.name).collect();
    match names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
        None => Ok(names),
        Some((_, name)) => Err(ProgrammingError::new_err(format!(
            "two columns are called \"{name}\", of which a dict holds one: name them apart with AS"
        ))),
    }
}

/// The value in the first column of a row.
pub fn first(row: Option<Bound<'_, PyTuple>>) -> PyResult<Option<Bound<'_, PyAny>>> {
    row.map(|row| row.get_item(0)).transpose()
}
