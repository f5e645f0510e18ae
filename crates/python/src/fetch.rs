//! Rows of a result on their way to Python, as tuples.
//!
//! To make the tuples of many rows takes seconds, in which Python's lock is needed. So they are made a part
//! at a time; in between other Python threads may run, signals are handled, and `interrupt()` of the
//! connection ends it. Then the rows are still there: the next fetch begins where this one did. No lock of
//! ours is held while other threads run, since one of them may want the same cursor.

use crate::errors::{InterfaceError, ProgrammingError, raised};
use crate::give_way::give_way;
use crate::run::Session;
use crate::values;
use entasis::Rows;
use entasis_vector::Error;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use std::sync::Arc;

/// Values that are made between two looks at others.
const PART: usize = 8 << 10;

/// A result and how much of it has been fetched.
pub struct Fetch {
    pub rows: Arc<Rows>,
    /// The next row: its chunk, and its index there.
    next: (usize, usize),
}

/// Calls a function with the [`Fetch`] of a cursor, which is locked meanwhile.
pub type Locked<'a> = &'a dyn Fn(&mut dyn FnMut(&mut Fetch) -> PyResult<()>) -> PyResult<()>;

impl Fetch {
    /// None of `rows` has been fetched.
    pub fn new(rows: Rows) -> Fetch {
        Fetch::of(Arc::new(rows))
    }

    /// The same, of rows that others have, too.
    pub fn of(rows: Arc<Rows>) -> Fetch {
        Fetch { rows, next: (0, 0) }
    }

    /// The next row.
    ///
    /// # Errors
    /// Those of values that Python has no type for.
    pub fn one<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        if let Some(row) = self.rows.single_row() {
            if std::mem::replace(&mut self.next, (1, 0)) != (0, 0) {
                return Ok(None);
            }
            let cells = row.iter().zip(self.rows.schema());
            let cells: PyResult<Vec<_>> =
                cells.map(|(value, field)| values::to_python(py, value, field.ty)).collect();
            return PyTuple::new(py, cells?).map(Some);
        }
        while let Some(chunk) = self.rows.chunks().get(self.next.0) {
            let row = self.next.1;
            if row < chunk.len() {
                self.next.1 += 1;
                return values::row(py, chunk, row, self.rows.schema()).map(Some);
            }
            self.next = (self.next.0 + 1, 0);
        }
        Ok(None)
    }

    /// Appends the next part of at most `limit` rows to `list`; false at the end.
    fn part<'py>(&mut self, list: &Bound<'py, PyList>, limit: usize) -> PyResult<bool> {
        let rows = (PART / self.rows.schema().len().max(1)).max(1);
        for _ in 0..rows {
            if list.len() >= limit {
                return Ok(false);
            }
            let Some(row) = self.one(list.py())? else { return Ok(false) };
            list.append(row)?;
        }
        Ok(true)
    }
}

/// The next rows, at most `limit`, of what `locked` gives.
///
/// # Errors
/// Those of values that Python has no type for; interrupted, by `session` or a signal; if another statement
/// is run on the cursor meanwhile.
pub fn many<'py>(
    py: Python<'py>,
    session: &Session,
    limit: usize,
    locked: Locked<'_>,
) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    let interrupts = session.interrupts();
    let mut began: Option<(Arc<Rows>, (usize, usize))> = None;
    loop {
        let mut is_more = false;
        let fetched = locked(&mut |fetch| {
            let (rows, _) = began.get_or_insert_with(|| (fetch.rows.clone(), fetch.next));
            if !Arc::ptr_eq(rows, &fetch.rows) {
                let text = "another statement was run on this cursor while its rows were fetched";
                return Err(ProgrammingError::new_err(text));
            }
            is_more = fetch.part(&list, limit)?;
            Ok(())
        });
        match fetched.and_then(|()| if is_more { look(py, session, interrupts) } else { Ok(()) }) {
            Ok(()) if is_more => {}
            Ok(()) => return Ok(list),
            Err(error) => {
                // Back to where it began, if the rows are still there.
                let _ = locked(&mut |fetch| {
                    if let Some((rows, next)) =
                        began.as_ref().filter(|(rows, _)| Arc::ptr_eq(rows, &fetch.rows))
                    {
                        (fetch.rows, fetch.next) = (rows.clone(), *next);
                    }
                    Ok(())
                });
                return Err(error);
            }
        }
    }
}

/// Lets other Python threads run, and looks whether the fetch is to end.
fn look(py: Python<'_>, session: &Session, interrupts: u64) -> PyResult<()> {
    py.check_signals()?;
    give_way(py);
    if session.interrupts() == interrupts { Ok(()) } else { Err(raised(&Error::interrupted())) }
}

/// A number of rows to fetch; any that is too large is all of them.
pub fn count(size: &Bound<'_, PyAny>) -> PyResult<usize> {
    match size.extract::<i64>() {
        Ok(size) if size >= 0 => Ok(size as usize),
        Err(error) if !error.is_instance_of::<PyOverflowError>(size.py()) => Err(error),
        Err(_) if size.gt(0)? => Ok(usize::MAX),
        _ => Err(InterfaceError::new_err(format!(
            "{size} is not a number of rows; fetchall() fetches all of them"
        ))),
    }
}
