//! One statement with many sets of arguments, all or nothing.
//!
//! Outside a transaction the batch is one by itself: it sees one moment, others see all of it or none, and if another transaction
//! was first, it is run again. Within one, a batch that fails undoes itself, and the transaction goes on.

use crate::arguments::{self, Arguments};
use crate::connection::{Connection, Done, TRIES, guarded};
use crate::keyed;
use crate::prepared::Prepared;
use crate::work::Work;
use entasis_vector::{Error, ErrorKind, Result};
use std::sync::PoisonError;

impl Connection {
    /// Runs one statement once for each set of arguments, in one transaction. Returns the rows that were changed in all.
    ///
    /// # Errors
    /// As [`Connection::query`]; nothing of the batch is done then.
    pub fn execute_many(&self, sql: &str, sets: &[Arguments]) -> Result<u64> {
        self.cancel.clear();
        let Ok(prepared) = self.remembered.prepare(sql)? else {
            return Err(Error::input("a batch takes exactly one statement"));
        };
        self.settled(&prepared.parsed, || {
            let mut open = self.transaction.lock().unwrap_or_else(PoisonError::into_inner);
            match &mut *open {
                None => self.batch_by_itself(&prepared, sets),
                Some(work) => {
                    let mark = work.mark();
                    let changed = guarded(|| self.batch(&mut open, &prepared, sets));
                    if let Some(work) = &mut *open {
                        if changed.is_err() {
                            work.roll_back(&mark);
                        }
                        work.forget(&mark);
                    }
                    changed
                }
            }
        })
    }

    /// A batch as a transaction of its own: once more if another one was first.
    fn batch_by_itself(&self, prepared: &Prepared, sets: &[Arguments]) -> Result<u64> {
        let mut tries = 0..TRIES;
        loop {
            let mut open = Some(Work::transaction(self));
            let changed = guarded(|| self.batch(&mut open, prepared, sets))?;
            let Some(work) = open else { return Err(Error::internal("a batch lost its transaction")) };
            let committed = self.waiting(Some(prepared.parsed.sql()), |waiter| guarded(|| work.commit(waiter)));
            match committed {
                Err(error) if error.kind() == ErrorKind::Conflict && tries.next().is_some() => {}
                committed => return committed.map(|()| changed),
            }
        }
    }

    fn batch(&self, open: &mut Option<Work>, prepared: &Prepared, sets: &[Arguments]) -> Result<u64> {
        let mut changed = 0;
        for arguments in sets {
            if self.cancel.is_raised() {
                return Err(Error::interrupted());
            }
            let spread;
            let (parsed, kept, values) = match arguments {
                Arguments::Values(values) => (&prepared.parsed, Some(prepared), values),
                Arguments::Lists(arguments) => {
                    spread = arguments::spread(&prepared.parsed, arguments)?;
                    (&spread.0, None, &spread.1)
                }
            };
            entasis_sql::check_arguments(parsed.parameters(), values.len())?;
            if kept.is_some_and(Prepared::is_keyed)
                && let Some(rows) = self.waiting(None, |waiter| keyed::run(self, open, prepared, values, waiter))?
            {
                changed += rows.changed().unwrap_or(0);
                continue;
            }
            let Some(work) = open else { return Err(Error::internal("a batch lost its transaction")) };
            match self.step(work, parsed, kept, values)? {
                Done::Rows(rows) => changed += rows.changed().unwrap_or(0),
                Done::Control(_) => return Err(Error::input("a batch neither begins nor ends a transaction")),
            }
        }
        Ok(changed)
    }
}
