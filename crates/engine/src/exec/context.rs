//! What a running statement carries: settings, memory budget, cancellation, progress.

use crate::exec::join::filter::FilterKind;
use crate::exec::join::partitioned::{JoinLate, JoinSpill};
use crate::exec::join::swap::Swapping;
use crate::exec::join::table::TableKind;
use crate::exec::join::table::ordered::Searching;
use crate::exec::join::twice::Readings;
use crate::exec::scheduler::WorkerPool;
use crate::exec::spill::Spilling;
use crate::exec::spill::file::TempSpace;
use crate::exec::tuple::TempCompression;
use crate::sync::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use entasis_vector::statement::Statement;
use entasis_vector::{CHUNK_ROWS, Error, Result};
use std::any::Any;
use std::sync::Arc;

/// Settings that the engine reads. Names as in SQL's `SET`.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Workers, the calling thread included; at least 1.
    pub threads: usize,
    /// Rows of a chunk, 1 to [`CHUNK_ROWS`]. Small ones are for tests.
    pub chunk_rows: usize,
    /// True: every hash is the same, so that all tables collide. For tests.
    pub hash_collisions: bool,
    /// Count rows, chunks, time and memory of each operator.
    pub profile: bool,
    /// Reorder joins and push predicates; off gives the plan as it was written. For tests.
    pub optimize: bool,
    /// Whether rows that operators keep become compressed tuples.
    pub temp_compression: TempCompression,
    /// Which table joins make of their build side.
    pub join_table: TableKind,
    /// Which table single joins make, by their number in the plan.
    pub join_tables: Arc<[(usize, TableKind)]>,
    /// What joins make filters of for their probe side.
    pub join_filter: FilterKind,
    /// Which partitions of joins go to temporary files.
    pub join_spill: JoinSpill,
    /// When aggregations write rows to temporary files.
    pub aggregate_spill: Spilling,
    /// When sorts do.
    pub sort_spill: Spilling,
    /// Bytes that the build rows and the table of a radix join's partition should have: what a worker's cache holds.
    pub join_partition_size: usize,
    /// Whether the second pass of a radix join leaves payload of the probe side where it is.
    pub join_late: JoinLate,
    /// Bytes of probe rows that a worker holds back, to look them up in the order of a table; 0: none.
    pub join_stride: usize,
    /// How often the input of a build side is read.
    pub join_build: Readings,
    /// Whether the sides of a join are swapped if far more rows are to be kept than were expected.
    pub join_swap: Swapping,
    /// Whether joins search the bounds of inequalities in an order.
    pub join_bounds: Searching,
    /// Where temporary files are; empty: there are none, and what does not fit into memory fails.
    pub temp_directory: Arc<str>,
    /// Bytes that all temporary files of a database may have together.
    pub max_temp_directory_size: u64,
    /// Scans order conjuncts by what they are measured to do, and leave out join filters that bring nothing; off leaves
    /// them as the plan has them. For tests.
    pub adaptive: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        // Asked once: the answer is read from files.
        static PARALLELISM: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
        let threads =
            *PARALLELISM.get_or_init(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get));
        Settings {
            threads,
            chunk_rows: CHUNK_ROWS,
            hash_collisions: false,
            profile: false,
            optimize: true,
            temp_compression: TempCompression::Auto,
            join_table: TableKind::Auto,
            join_tables: Arc::default(),
            join_filter: FilterKind::Auto,
            join_spill: JoinSpill::Auto,
            aggregate_spill: Spilling::Auto,
            sort_spill: Spilling::Auto,
            join_partition_size: 1 << 20,
            join_late: JoinLate::Auto,
            join_stride: 0,
            join_build: Readings::Auto,
            join_swap: Swapping::Auto,
            join_bounds: Searching::Auto,
            temp_directory: std::env::temp_dir().display().to_string().into(),
            max_temp_directory_size: u64::MAX,
            adaptive: true,
        }
    }
}

/// What a running statement carries. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct QueryContext {
    /// Settings, fixed for the statement.
    pub settings: Arc<Settings>,
    /// The memory it may use, shared by all statements of a database.
    pub memory: Arc<MemoryBudget>,
    /// The bytes of temporary files, shared by all statements of a database.
    pub temp: Arc<TempSpace>,
    /// Raised to stop it.
    pub cancel: CancelFlag,
    /// How far it is.
    pub progress: Arc<Progress>,
    /// Who helps the calling thread, shared by all statements of a database.
    pub pool: WorkerPool,
}

impl QueryContext {
    /// Fails once the statement has been cancelled. Called at least once a chunk.
    ///
    /// # Errors
    /// Interrupted.
    #[inline]
    pub fn check(&self) -> Result<()> {
        if self.cancel.is_raised() { Err(Error::interrupted()) } else { Ok(()) }
    }
}

impl Statement for QueryContext {
    fn check(&self) -> Result<()> {
        QueryContext::check(self)
    }

    fn reserve(&self, bytes: usize) -> Result<Box<dyn Any + Send + Sync>> {
        let mut reservation = Reservation::new(&self.memory);
        reservation.resize(bytes)?;
        Ok(Box::new(reservation))
    }
}

/// A flag that stops a statement from another thread or a signal handler.
#[derive(Debug, Clone, Default)]
pub struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    /// Asks the statement to stop; it does within a chunk's time.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
    /// Forgets an earlier request.
    pub fn clear(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
    /// True once asked to stop.
    #[inline]
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// How far a statement is: a share of all its work, for a progress bar.
#[derive(Debug, Default)]
pub struct Progress(AtomicU64);

impl Progress {
    /// Publishes the share done, 0 to 1.
    pub fn set(&self, share: f64) {
        self.0.store(share.clamp(0.0, 1.0).to_bits(), Ordering::Relaxed);
    }
    /// The share done, 0 to 1.
    pub fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }
}

/// The memory that statements may use together. Counted, not enforced by the allocator: whatever grows with the data
/// (tables, hash tables, sorts, results) reserves before it grows.
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
