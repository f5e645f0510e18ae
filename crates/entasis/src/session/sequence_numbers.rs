//! The numbers that a session has taken from sequences: which was the last of each, and which of them a crash
//! might still give out again.
//!
//! A sequence tells the log of its numbers as they are taken, and takes some ahead
//! ([`entasis_storage::sequence`]); nobody waits for the log then, because locks may be held. It is the
//! session that waits, for all numbers that it has taken together, at the end of a statement that shows
//! something and at the end of a transaction ([`Numbers::keep`]). A commit has waited for a later position of
//! the log, so then this costs nothing; and neither does it for most numbers, which were reserved before.
//!
//! Numbers hang on the sequences, not on their names: a new sequence under the name of a dropped one has
//! none.

use entasis_storage::Sequence;
use entasis_vector::Result;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    taken: Mutex<Taken>,
    /// False if `taken.unkept` is empty.
    are_unkept: AtomicBool,
}

#[derive(Debug, Default)]
struct Taken {
    /// The number taken last from each sequence, by its address.
    last: HashMap<usize, (Weak<Sequence>, i64)>,
    /// Sequences of which numbers were taken that a crash might give out again.
    unkept: Vec<Arc<Sequence>>,
}

/// The address of a sequence, which is its own as long as anybody has it.
fn address(sequence: &Arc<Sequence>) -> usize {
    Arc::as_ptr(sequence) as usize
}

impl Numbers {
    /// Takes the next number of a sequence.
    ///
    /// # Errors
    /// Those of [`Sequence::take`].
    pub(crate) fn take(&self, sequence: &Arc<Sequence>) -> Result<i64> {
        let number = sequence.take()?;
        let mut taken = self.taken();
        match taken.last.get_mut(&address(sequence)) {
            // The address is nobody else's while this entry refers to it.
            Some((of, last)) if std::ptr::eq(of.as_ptr(), Arc::as_ptr(sequence)) => *last = number.value,
            _ => {
                taken.last.retain(|_, (of, _)| of.strong_count() > 0);
                taken.last.insert(address(sequence), (Arc::downgrade(sequence), number.value));
            }
        }
        if !number.is_kept && !taken.unkept.iter().any(|other| Arc::ptr_eq(other, sequence)) {
            taken.unkept.push(sequence.clone());
            self.are_unkept.store(true, Ordering::Relaxed);
        }
        Ok(number.value)
    }

    /// The number that was taken last from a sequence; `None` if none was.
    pub(crate) fn last(&self, sequence: &Arc<Sequence>) -> Option<i64> {
        self.taken().last.get(&address(sequence)).map(|(_, last)| *last)
    }

    /// Returns when all numbers that were taken are as durable as a commit: after a crash, others follow
    /// them.
    ///
    /// # Errors
    /// I/O.
    #[inline]
    pub(crate) fn keep(&self) -> Result<()> {
        // PERF: a keyed statement takes half a microsecond.
        if self.are_unkept.load(Ordering::Relaxed) { self.keep_all() } else { Ok(()) }
    }

    #[cold]
    fn keep_all(&self) -> Result<()> {
        let unkept = {
            let mut taken = self.taken();
            self.are_unkept.store(false, Ordering::Relaxed);
            std::mem::take(&mut taken.unkept)
        };
        unkept.iter().try_for_each(|sequence| sequence.keep())
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
