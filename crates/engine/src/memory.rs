//! Memory that statements may use: a budget for the whole database, and reservations of it.
//!
//! It is counted, not enforced by the allocator: whatever grows with the data (tables, hash tables, sorts,
//! results) reserves before it grows, and releases the memory when it is dropped.

use crate::sync::{AtomicUsize, Ordering};
use entasis_vector::{Error, Result};
use std::sync::Arc;

/// The memory that statements may use together. Counted, not enforced by the allocator: whatever grows with
/// the data (tables, hash tables, sorts, results) reserves before it grows.
#[derive(Debug)]
pub struct MemoryBudget {
    limit: AtomicUsize,
    used: AtomicUsize,
    peak: AtomicUsize,
    /// The budget that this is a part of: what is used here is used there.
    whole: Option<Arc<MemoryBudget>>,
}

impl Default for MemoryBudget {
    fn default() -> MemoryBudget {
        MemoryBudget::new(usize::MAX)
    }
}

impl MemoryBudget {
    /// A budget of `limit` bytes.
    pub fn new(limit: usize) -> MemoryBudget {
        let [used, peak] = [0, 0].map(AtomicUsize::new);
        MemoryBudget { limit: AtomicUsize::new(limit), used, peak, whole: None }
    }
    /// A part of `whole` without a limit of its own, to count what one operator uses.
    pub fn part_of(whole: &Arc<MemoryBudget>) -> Arc<MemoryBudget> {
        Arc::new(MemoryBudget { whole: Some(whole.clone()), ..MemoryBudget::default() })
    }
    /// The limit in bytes.
    pub fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }
    /// Changes the limit; what is in use stays.
    pub fn set_limit(&self, limit: usize) {
        self.limit.store(limit, Ordering::Relaxed);
    }
    /// Bytes in use.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
    /// Bytes that may still be used: here, and in the whole that this is a part of.
    pub fn free(&self) -> usize {
        let own = self.limit().saturating_sub(self.used());
        self.whole.as_ref().map_or(own, |whole| own.min(whole.free()))
    }
    /// Most bytes that were in use at once.
    pub fn peak(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }

    fn grow(&self, bytes: usize) -> Result<()> {
        if let Some(whole) = &self.whole {
            whole.grow(bytes)?;
        }
        let used = self.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let limit = self.limit();
        if used > limit {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
            return Err(Error::resource(format!(
                "out of memory: {} more needed, {} of the memory_limit of {} in use",
                megabytes(bytes),
                megabytes(used - bytes),
                megabytes(limit)
            ))
            .with_hint("raise it with SET memory_limit = '…', or select fewer rows or columns"));
        }
        self.peak.fetch_max(used, Ordering::Relaxed);
        Ok(())
    }

    fn shrink(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(whole) = &self.whole {
            whole.shrink(bytes);
        }
    }
}

fn megabytes(bytes: usize) -> String {
    if bytes >= 10 << 20 { format!("{} MB", bytes >> 20) } else { format!("{} KB", bytes.div_ceil(1 << 10)) }
}

/// Memory that one owner has reserved; given back when it is dropped.
#[derive(Debug, Default)]
pub struct Reservation {
    budget: Arc<MemoryBudget>,
    bytes: usize,
}

impl Reservation {
    /// Nothing reserved yet from `budget`.
    pub fn new(budget: &Arc<MemoryBudget>) -> Reservation {
        Reservation { budget: budget.clone(), bytes: 0 }
    }
    /// Bytes reserved.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    /// Bytes that it may still grow by.
    pub fn free(&self) -> usize {
        self.budget.free()
    }
    /// Takes over what another owner has reserved from the same budget.
    pub fn merge(&mut self, mut other: Reservation) {
        debug_assert!(Arc::ptr_eq(&self.budget, &other.budget));
        self.bytes += std::mem::take(&mut other.bytes);
    }
    /// A part of what is reserved, for another owner.
    pub fn split_off(&mut self, bytes: usize) -> Reservation {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Reservation { budget: self.budget.clone(), bytes }
    }
    /// Makes the reservation `bytes` in all.
    ///
    /// # Errors
    /// Resource, if the budget has not enough; the reservation is as it was.
    pub fn resize(&mut self, bytes: usize) -> Result<()> {
        if bytes > self.bytes {
            self.budget.grow(bytes - self.bytes)?;
        } else {
            self.budget.shrink(self.bytes - bytes);
        }
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.shrink(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_reservation_are_given_back_once() {
        let budget = Arc::new(MemoryBudget::new(1000));
        let mut a = Reservation::new(&budget);
        a.resize(800).unwrap();
        let part = a.split_off(300);
        assert_eq!((a.bytes(), part.bytes(), budget.used()), (500, 300, 800));
        let all = a.split_off(900);
        assert_eq!((a.bytes(), all.bytes(), budget.used()), (0, 500, 800));
        drop(part);
        assert_eq!(budget.used(), 500);
        a.merge(all);
        assert_eq!((a.bytes(), budget.used()), (500, 500));
        drop(a);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_reservation_gives_back_what_it_took() {
        let budget = Arc::new(MemoryBudget::new(1000));
        let mut a = Reservation::new(&budget);
        a.resize(800).unwrap();
        assert!(Reservation::new(&budget).resize(300).is_err());
        assert_eq!(budget.used(), 800);
        a.resize(100).unwrap();
        assert_eq!((budget.used(), budget.peak()), (100, 800));
        drop(a);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_part_counts_in_the_whole() {
        let budget = Arc::new(MemoryBudget::new(1000));
        let part = MemoryBudget::part_of(&budget);
        let mut a = Reservation::new(&part);
        a.resize(600).unwrap();
        assert!(a.resize(1100).is_err());
        a.resize(500).unwrap();
        assert_eq!((part.used(), part.peak(), budget.used()), (500, 600, 500));
        assert_eq!((part.free(), budget.free()), (500, 500));
        drop(a);
        assert_eq!((part.used(), budget.used()), (0, 0));
    }
}
