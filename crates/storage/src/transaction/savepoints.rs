//! Savepoints: what a transaction goes back to.
//!
//! A table is saved before it is written, for all savepoints that do not have it yet.

use super::tables::Transaction;
use super::touched::Saved;
use crate::table::TableFork;
use entasis_vector::Result;

impl Transaction {
    /// Sets a savepoint, and returns its number: how many there are now.
    pub fn savepoint(&mut self) -> usize {
        // What is kept cannot be undone in part.
        self.settle();
        self.savepoints.push(Saved::new());
        self.savepoints.len()
    }

    /// Saves a table for all savepoints that do not have it, before it is written.
    pub(super) fn save(&mut self, index: usize) {
        let has = |saved: &Saved| saved.iter().any(|(other, _)| *other == index);
        // If a savepoint has the table, so do all that were set before it.
        let missing = self.savepoints.iter().rev().take_while(|saved| !has(saved)).count();
        #[cfg(test)]
        SAVED.with(|saved| saved.set(saved.get() + missing));
        let from = self.savepoints.len() - missing;
        for saved in &mut self.savepoints[from..] {
            saved.push((index, self.tables[index].fork.as_mut().map(TableFork::savepoint)));
        }
    }

    /// Goes back to savepoint `number`, which is kept; those set after it are removed.
    ///
    /// # Panics
    /// If there are fewer savepoints.
    pub fn roll_back_to(&mut self, number: usize) {
        self.release(number + 1);
        assert!(number == self.savepoints.len(), "there is such a savepoint");
        // The tables stay saved, in the state in which they are again: otherwise the next write would have to
        // save them for this savepoint and all that were gone back to before.
        let saved = std::mem::take(&mut self.savepoints[number - 1]);
        let again = saved.into_iter().map(|(index, saved)| {
            let fork = &mut self.tables[index].fork;
            let saved = match (saved, fork.as_mut()) {
                (Some(saved), Some(fork)) => {
                    fork.roll_back(saved);
                    Some(fork.savepoint())
                }
                _ => {
                    *fork = None;
                    None
                }
            };
            (index, saved)
        });
        self.savepoints[number - 1] = again.collect();
    }

    /// Removes savepoint `number` and those set after it. What was written stays.
    pub fn release(&mut self, number: usize) {
        while self.savepoints.len() >= number.max(1) {
            for (index, saved) in self.savepoints.pop().into_iter().flatten() {
                if let (Some(saved), Some(fork)) = (saved, &mut self.tables[index].fork) {
                    fork.release(saved);
                }
            }
        }
    }

    /// Does some work and, if that fails or panics, undoes it in all tables. Work may be nested.
    ///
    /// # Errors
    /// Those of `work`.
    pub fn atomically<R>(&mut self, work: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        let mark = self.savepoint();
        let mut undo = Undo { transaction: self, mark, is_due: true };
        let result = work(undo.transaction);
        undo.is_due = result.is_err();
        result
    }

    /// True if going back to savepoint `number` takes negligible time.
    pub fn is_small_since(&self, number: usize) -> bool {
        let saved = self.savepoints.get(number - 1);
        saved.into_iter().flatten().all(|(index, saved)| {
            let fork = self.tables[*index].fork.as_ref();
            fork.is_none_or(|fork| fork.is_small_since(saved.as_ref()))
        })
    }
}

/// Undoes work that ends without success.
struct Undo<'a> {
    transaction: &'a mut Transaction,
    mark: usize,
    is_due: bool,
}

impl Drop for Undo<'_> {
    fn drop(&mut self) {
        if self.is_due {
            self.transaction.roll_back_to(self.mark);
        }
        self.transaction.release(self.mark);
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.release(1);
    }
}

#[cfg(test)]
thread_local! {
    /// How often a table was saved for a savepoint.
    pub(super) static SAVED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}
