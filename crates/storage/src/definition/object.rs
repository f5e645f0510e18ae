//! Object ids: numbers that identify tables, indexes and sequences during the whole life of a database,
//! whatever their names.
//!
//! There is one counter in the process. Opening a database raises it above the ids that its file says were
//! given out ([`ObjectId::reserve`]), and checkpoints store the counter. So no id is used twice in a
//! database; if a process has several databases open, their ids have gaps.
//!
//! Views and schemas are nothing but text, and are identified by their names. The order of locks goes by
//! [`crate::Table::id`], which is unique in the *process*: two databases may have the same object ids.

use std::sync::atomic::{AtomicU64, Ordering};

/// The next id.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// The id of a table, index or sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(u64);

impl ObjectId {
    /// An id that no object has had.
    pub(crate) fn fresh() -> ObjectId {
        ObjectId(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// An id that a file has.
    pub(crate) fn of(number: u64) -> ObjectId {
        ObjectId(number)
    }

    /// Its number.
    pub fn number(self) -> u64 {
        self.0
    }

    /// The number of the next id.
    pub(crate) fn next_number() -> u64 {
        NEXT.load(Ordering::Relaxed)
    }

    /// Keeps all ids below a number from being given out.
    pub(crate) fn reserve(below: u64) {
        NEXT.fetch_max(below, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_has_given_out_is_not_given_out_again() {
        let before = ObjectId::fresh();
        assert!(before < ObjectId::fresh());
        let file = ObjectId::next_number() + 1000;
        ObjectId::reserve(file);
        assert!(ObjectId::fresh().number() >= file);
        ObjectId::reserve(3);
        assert!(ObjectId::fresh().number() > file);
    }
}
