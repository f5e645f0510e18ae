//! Memory that statements may use: a budget for the whole database, and reservations of it.
//!
//! It is counted, not enforced by the allocator: whatever grows with the data (tables, hash tables, sorts,
//! results) reserves before it grows, and releases the memory when it is dropped.
//!
//! A part of a budget belongs to one owner, whom errors name: who asked, and who has most of it. Memory that
//! was allocated before anybody could ask, inside of a kernel, is counted beyond the limit; its statement
//! fails at the next check ([`Reservation::overdraw`]).

use crate::sync::{AtomicBool, AtomicUsize, Mutex, Ordering, lock};
use entasis_vector::{Error, Result};
use std::cmp::Reverse;
use std::sync::{Arc, Weak};

/// The memory that statements may use together, or a part of it that one owner uses. Counted, not enforced by
/// the allocator: whatever grows with the data (tables, hash tables, sorts, results) reserves before it
/// grows.
#[derive(Debug)]
pub struct MemoryBudget {
    /// Whose memory it is, in the words of an error.
    name: &'static str,
    limit: AtomicUsize,
    used: AtomicUsize,
    peak: AtomicUsize,
    /// The budget that this is a part of: what is used here is used there.
    whole: Option<Arc<MemoryBudget>>,
    /// Parts that have used so much that an error should name them.
    holders: Mutex<Vec<Weak<MemoryBudget>>>,
    is_listed: AtomicBool,
}

impl Default for MemoryBudget {
    fn default() -> MemoryBudget {
        MemoryBudget::new(usize::MAX)
    }
}

/// Why there is no more memory.
#[derive(Clone)]
struct Short {
    used: usize,
    limit: usize,
    /// Who has most of it.
    holders: String,
}

/// Bytes from which on a part is named in errors.
const LISTED: usize = 1 << 20;

impl MemoryBudget {
    /// A budget of `limit` bytes.
    pub fn new(limit: usize) -> MemoryBudget {
        MemoryBudget::of("", limit, None)
    }

    fn of(name: &'static str, limit: usize, whole: Option<Arc<MemoryBudget>>) -> MemoryBudget {
        MemoryBudget {
            name,
            limit: AtomicUsize::new(limit),
            used: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            whole,
            holders: Mutex::default(),
            is_listed: AtomicBool::new(false),
        }
    }
    /// A part of `whole` without a limit of its own, to count what one owner uses. Errors call it `name`: "a
    /// sort", "tables".
    pub fn part_of(whole: &Arc<MemoryBudget>, name: &'static str) -> Arc<MemoryBudget> {
        Arc::new(MemoryBudget::of(name, usize::MAX, Some(whole.clone())))
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

    /// Forgets how many were in use before.
    pub fn restart_peak(&self) {
        self.peak.store(self.used(), Ordering::Relaxed);
    }

    fn grow(self: &Arc<MemoryBudget>, bytes: usize) -> Result<()> {
        self.add(bytes, false).map_err(|short| self.error(bytes, &short))
    }

    /// Counts `bytes` more that are in use already, whatever the limit; the error if it is exceeded now.
    fn overdraw(self: &Arc<MemoryBudget>, bytes: usize) -> Option<Error> {
        self.add(bytes, true).err().map(|short| self.error(bytes, &short))
    }

    fn error(&self, bytes: usize, short: &Short) -> Error {
        let of = if self.name.is_empty() { String::new() } else { format!(" for {}", self.name) };
        Error::resource(format!(
            "out of memory: {} more needed{of}, {} of the memory_limit of {} in use{}",
            megabytes(bytes),
            megabytes(short.used),
            megabytes(short.limit),
            short.holders
        ))
        .with_hint("raise it with SET memory_limit = '…', or select fewer rows or columns")
    }

    /// Counts `bytes` more; if they are too many, only if it is `forced`.
    fn add(self: &Arc<MemoryBudget>, bytes: usize, forced: bool) -> Result<(), Short> {
        let of_whole = self.whole.as_ref().map_or(Ok(()), |whole| whole.add(bytes, forced));
        if !forced {
            of_whole.as_ref().map_err(Clone::clone)?;
        }
        let used = self.used.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        let limit = self.limit();
        if used > limit && !forced {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
            return Err(Short { used: used - bytes, limit, holders: self.holders() });
        }
        self.peak.fetch_max(used, Ordering::Relaxed);
        if let Some(whole) = self.whole.as_ref().filter(|whole| used >= LISTED && whole.whole.is_none())
            && !self.is_listed.swap(true, Ordering::Relaxed)
        {
            lock(&whole.holders).push(Arc::downgrade(self));
        }
        if used > limit {
            return Err(Short { used: used - bytes, limit, holders: self.holders() });
        }
        of_whole
    }

    fn shrink(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(whole) = &self.whole {
            whole.shrink(bytes);
        }
    }

    /// What its parts use, by the names that errors give them: the greatest first, and parts of the same name
    /// together. A part that has never used 1 MB at once is not among them, so that small ones cost nothing.
    pub fn parts(&self) -> Vec<(&'static str, usize)> {
        let parts: Vec<Arc<MemoryBudget>> = lock(&self.holders).iter().filter_map(Weak::upgrade).collect();
        let mut all: Vec<(&'static str, usize)> = Vec::new();
        for part in &parts {
            match all.iter_mut().find(|(name, _)| *name == part.name) {
                Some((_, used)) => *used += part.used(),
                None => all.push((part.name, part.used())),
            }
        }
        all.sort_by_key(|(name, used)| (Reverse(*used), *name));
        all
    }

    /// The greatest of its parts: " (a sort 40 MB, tables 12 MB)".
    fn holders(&self) -> String {
        let all = self.parts().into_iter().filter(|(_, used)| *used >= LISTED).take(3);
        let all: Vec<String> = all.map(|(name, used)| format!("{name} {}", megabytes(used))).collect();
        if all.is_empty() { String::new() } else { format!(" ({})", all.join(", ")) }
    }
}

impl Drop for MemoryBudget {
    fn drop(&mut self) {
        if *self.is_listed.get_mut()
            && let Some(whole) = &self.whole
        {
            lock(&whole.holders).retain(|part| part.strong_count() > 0);
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

impl Reservation {
    /// Reserves `bytes` more that are in use already, whatever the limit; the error if it is exceeded now.
    pub fn overdraw(&mut self, bytes: usize) -> Option<Error> {
        self.bytes += bytes;
        self.budget.overdraw(bytes)
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
    fn an_error_names_who_asked_and_who_has_most() {
        let budget = Arc::new(MemoryBudget::new(100 << 20));
        let part = |name, megabytes: usize| {
            let mut part = Reservation::new(&MemoryBudget::part_of(&budget, name));
            part.resize(megabytes << 20).unwrap();
            part
        };
        let held = [part("tables", 12), part("a sort", 20), part("a sort", 20), part("a join", 0)];
        let mut own = Reservation::new(&MemoryBudget::part_of(&budget, "a result"));
        let error = own.resize(50 << 20).unwrap_err();
        let text = "out of memory: 50 MB more needed for a result, 52 MB of the memory_limit of 100 MB in use (a sort \
                    40 MB, tables 12 MB)";
        assert_eq!(error.message(), text);
        assert_eq!(own.overdraw(50 << 20).unwrap().message(), text);
        assert_eq!(budget.used(), 102 << 20);
        drop((held, own));
        assert!(budget.used() == 0 && lock(&budget.holders).is_empty());
    }

    #[test]
    fn parts_are_known_by_their_names() {
        let budget = Arc::new(MemoryBudget::new(100 << 20));
        let part = |name, bytes: usize| {
            let mut part = Reservation::new(&MemoryBudget::part_of(&budget, name));
            part.resize(bytes).unwrap();
            part
        };
        let small = part("a join", LISTED - 1);
        let mut held = [part("tables", 2 * LISTED), part("a sort", LISTED), part("a sort", 3 * LISTED)];
        assert_eq!(budget.parts(), [("a sort", 4 * LISTED), ("tables", 2 * LISTED)]);
        // Parts of parts count in these, and a part that has become small is still known.
        let mut within = Reservation::new(&MemoryBudget::part_of(&held[0].budget, "an index"));
        within.resize(LISTED).unwrap();
        held[2].resize(1).unwrap();
        assert_eq!(budget.parts(), [("tables", 3 * LISTED), ("a sort", LISTED + 1)]);
        drop((small, held, within));
        assert!(budget.parts().is_empty());
    }

    #[test]
    fn a_part_counts_in_the_whole() {
        let budget = Arc::new(MemoryBudget::new(1000));
        let part = MemoryBudget::part_of(&budget, "a part");
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
