//! When rows go to temporary files: the same policy for every operator that keeps rows.
//!
//! An operator that takes all of its input leaves to others a share of the memory that is free when it begins
//! ([`SpillPolicy::left`]): those above it need some too, and so do other statements. One whose rows stay
//! while other operators take *their* input leaves more ([`SpillPolicy::of_rows_that_stay`]). One of its
//! workers is *short* of memory ([`SpillPolicy::is_short`]) if it has more than a little, and if less than
//! that share would be free once what is about to grow has grown. Then it writes rows.
//!
//! Not here: what is written, and how it is read again; settings by which tests force it.

use crate::memory::MemoryBudget;
use crate::sync::OnceLock;
use std::sync::Arc;

/// The share of the memory that is free at the beginning which is left to others, as a divisor. Judgement.
const LEFT_PART: usize = 4;
/// The same for rows that stay: as much as they may take is left to the operators that run meanwhile.
const LEFT_BY_ROWS_THAT_STAY: usize = 2;
/// What a worker may have in any case: at most so many bytes, and at most this share of what is left to
/// others, as a divisor. Judgement.
const MOST_LEAST: usize = 4 << 20;
const LEAST_PART: usize = 4;

/// The policy of one operator. See the module.
pub(crate) struct SpillPolicy {
    memory: Arc<MemoryBudget>,
    /// The share that is left to others, as a divisor.
    left_part: usize,
    left: OnceLock<usize>,
}

impl SpillPolicy {
    /// That of an operator whose rows are in memory of `memory`.
    pub(crate) fn new(memory: &Arc<MemoryBudget>) -> SpillPolicy {
        SpillPolicy::leaving(memory, LEFT_PART)
    }

    /// That of an operator whose rows are kept in memory of `memory` while others run: a common subplan,
    /// which several sorts and joins may read.
    pub(crate) fn of_rows_that_stay(memory: &Arc<MemoryBudget>) -> SpillPolicy {
        SpillPolicy::leaving(memory, LEFT_BY_ROWS_THAT_STAY)
    }

    fn leaving(memory: &Arc<MemoryBudget>, left_part: usize) -> SpillPolicy {
        SpillPolicy { memory: memory.clone(), left_part, left: OnceLock::new() }
    }

    /// Measures the free memory and sets a share of it aside for others. To be called before the first row is
    /// kept.
    pub(crate) fn set_memory_aside(&self) {
        self.left();
    }

    /// Bytes of memory that are left to others.
    pub(crate) fn left(&self) -> usize {
        *self.left.get_or_init(|| self.memory.free() / self.left_part)
    }

    /// Bytes that a worker may have, whatever is left to others.
    pub(crate) fn least(&self) -> usize {
        least_of(self.left())
    }

    /// True if a worker that has `bytes` should write rows, before all workers take `growth` bytes more.
    pub(crate) fn is_short(&self, bytes: usize, growth: usize) -> bool {
        bytes > self.least() && self.memory.free() < self.left().saturating_add(growth)
    }
}

/// Bytes that are left to others of so many that are free.
pub(crate) fn left_of(free: usize) -> usize {
    free / LEFT_PART
}

fn least_of(left: usize) -> usize {
    (left / LEAST_PART).min(MOST_LEAST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Reservation;

    #[test]
    fn a_worker_is_short_once_others_would_have_less_than_is_left_to_them() {
        let memory = Arc::new(MemoryBudget::new(400 << 20));
        let policy = SpillPolicy::new(&memory);
        policy.set_memory_aside();
        assert_eq!((policy.left(), policy.least(), least_of(1 << 20)), (100 << 20, 4 << 20, 256 << 10));
        let mut held = Reservation::new(&memory);
        held.resize(300 << 20).unwrap();
        assert!(!policy.is_short(5 << 20, 0), "there is memory");
        assert!(policy.is_short(5 << 20, 1), "not for what grows");
        held.resize(301 << 20).unwrap();
        assert!(policy.is_short(5 << 20, 0));
        assert!(!policy.is_short(4 << 20, 1 << 30), "a worker may have these in any case");
        assert_eq!(policy.left(), 100 << 20, "what was free at the beginning counts");

        let (memory, mut held) = (Arc::new(MemoryBudget::new(400 << 20)), 0);
        let stay = SpillPolicy::of_rows_that_stay(&memory);
        stay.set_memory_aside();
        let mut reservation = Reservation::new(&memory);
        while !stay.is_short(held, 0) {
            held += 1 << 20;
            reservation.resize(held).unwrap();
        }
        assert_eq!(held, 201 << 20, "half of the memory is left to operators that run meanwhile");
    }
}
