//! Object ids: numbers that tell tables, indexes and sequences apart for as long as there is the database,
//! whatever they are called.
//!
//! One counter for the process. Whoever opens a database raises it above the ids that its file says were
//! given out ([`ObjectId::reserve`]), and its checkpoints say how far it has come. So an id is never used
//! twice, though several databases that one process has open leave gaps in each other's numbers.
//!
//! Views and schemas hold nothing but text, and are told by their names. The order of locks goes by
//! [`crate::Table::id`], which no other table of the *process* has: files of two databases may have the same
//! object ids.

use std::sync::atomic::{AtomicU64, Ordering};

/// The id that is given out next.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(u64);

impl ObjectId {
    /// An id that no object has had.
    pub(crate) fn fresh() -> ObjectId {
        ObjectId(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// The id that a file says.
    pub(crate) fn of(number: u64) -> ObjectId {
        ObjectId(number)
    }

    /// Its number.
    pub fn number(self) -> u64 {
        self.0
    }

    /// The number of the next one.
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
