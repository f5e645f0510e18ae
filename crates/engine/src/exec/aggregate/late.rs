//! The end of an aggregation with many groups: partitions are merged one by one, when their rows are read.
//!
//! 1. All partials are sealed: their groups are known by partition, by the same bits as rows that wait
//!    ([`super::spill`]), if some do.
//! 2. A worker that needs rows takes a partition. The partition gets a table of its own: first the groups of
//!    all partials, then the rows that wait.
//! 3. The table is returned as a part, and its memory is freed with its last row.
//! 4. A partition that does not fit is split by the next bits of the tags: rows that wait into a file, groups
//!    of partials where they are. Its parts wait like other partitions, for any worker.
//!
//! Without waiting rows there are enough partitions that each one's table stays in a cache.
//!
//! Invariants: at any time a group is in only one waiting partition; a partition that was split has returned
//! nothing. The memory of a partition is a share of what was free at the end of the input, the same for each
//! worker, so that the operators above have memory too, but at least a quarter of a megabyte; a partition of
//! one group, and those of the last depth, may take all there is.

use super::layout::AggregateLayout;
use super::partial::{Partial, Sealed};
use super::spill::Spill;
use super::writer::BITS;
use crate::context::QueryContext;
use crate::exec::aggregate::part::{FinishedGroups, Morsel};
use crate::exec::group_table::{GroupTable, Partition};
use crate::exec::operator::{Alone, Tasks};
use crate::exec::spill::store::{Medium, Store, Stored};
use crate::sync::{AtomicU32, AtomicU64, AtomicUsize, Mutex, Ordering, lock};
use entasis_vector::{Chunk, ErrorKind, Result};
use std::sync::Arc;

/// The most groups that a partition should have if nothing was written, and the most bits of the tags that
/// are used for that.
const PARTITION_GROUPS: usize = 32 << 10;
const LEAST_BITS: u32 = 4;
const MOST_BITS: u32 = 10;
/// The number of bits of a tag, of 32, after which partitions are not split again.
const LAST_BITS: u32 = 22;
/// The share of the free memory that the partitions of all workers may take, and the least that each may take
/// for each of its tables.
const ROOM_PART: usize = 2;
const LEAST_ROOM: usize = 256 << 10;
/// The bytes of that memory for each place that a table begins with; a place takes about 16.
pub const ROOM_OF_GROUP: usize = 128;

/// The partitions of an aggregation.
pub struct Late {
    spill: Option<Arc<Spill>>,
    sealed: Vec<Sealed>,
    waiting: Mutex<Vec<Waiting>>,
    /// Partitions that were returned, split or empty, and their total number.
    done: AtomicUsize,
    all: AtomicUsize,
    /// Bytes that a partition may take.
    room: usize,
    /// For the profile: how often rows were split, and the bytes rewritten for that.
    deepest: AtomicU32,
    again: AtomicU64,
    context: QueryContext,
}

/// A partition that waits.
struct Waiting {
    partition: Partition,
    /// How often rows have been split for it.
    depth: u32,
    /// Its groups in the partials.
    groups: usize,
    /// Its rows that wait.
    rows: Option<(Arc<Store>, Stored)>,
}

impl Waiting {
    fn is_last(&self) -> bool {
        self.partition.bits() >= LAST_BITS
    }
}

impl Late {
    /// Partitions of the groups of `partials` and the rows of `spill`.
    ///
    /// # Errors
    /// Those of the tasks; resource.
    pub fn new(
        layout: &AggregateLayout,
        partials: Vec<Partial>,
        spill: Option<&Arc<Spill>>,
        context: &QueryContext,
        tasks: &dyn Tasks,
    ) -> Result<Late> {
        // Tables of groups, and of the values of each call with DISTINCT.
        let tables = 1 + layout.deferred.len();
        let store = spill.map(|spill| &spill.store).filter(|store| !store.is_empty());
        let groups: usize = partials.iter().map(|partial| partial.table.groups()).sum();
        let bits = match store {
            Some(_) => BITS,
            None => {
                groups.div_ceil(PARTITION_GROUPS).next_power_of_two().ilog2().clamp(LEAST_BITS, MOST_BITS)
            }
        };
        let partials: Vec<Mutex<Option<Partial>>> =
            partials.into_iter().map(|p| Mutex::new(Some(p))).collect();
        let sealed: Mutex<Vec<Sealed>> = Mutex::default();
        tasks.run(partials.len(), &|i| {
            let partial = lock(&partials[i]).take().expect("each task runs once");
            let partial = partial.seal(bits)?;
            lock(&sealed).push(partial);
            Ok(())
        })?;
        let most = context.memory.free() / ROOM_PART / context.settings.threads.max(1);
        let late = Late {
            spill: spill.cloned(),
            sealed: sealed.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner),
            waiting: Mutex::default(),
            done: AtomicUsize::new(0),
            all: AtomicUsize::new(0),
            room: most.max(LEAST_ROOM * tables),
            deepest: AtomicU32::new(1),
            again: AtomicU64::new(0),
            context: context.clone(),
        };
        late.wait(Partition::ALL, bits, 1, store);
        Ok(late)
    }

    /// Queues the `1 << bits` parts of a partition, whose rows are in `store`.
    fn wait(&self, whole: Partition, bits: u32, depth: u32, store: Option<&Arc<Store>>) {
        let mut groups = vec![0; 1 << bits];
        self.sealed.iter().for_each(|sealed| sealed.count_parts(whole, bits, &mut groups));
        let part = |number| {
            let (partition, groups) = (whole.part(number, bits), groups[number]);
            let rows =
                store.map(|store| (store.clone(), store.take(number))).filter(|(_, rows)| rows.rows > 0);
            (rows.is_some() || groups > 0).then_some(Waiting { partition, depth, groups, rows })
        };
        let parts: Vec<Waiting> = (0..1 << bits).filter_map(part).collect();
        self.all.fetch_add(parts.len(), Ordering::Relaxed);
        lock(&self.waiting).extend(parts);
    }

    /// Partitions that nobody has taken yet.
    pub fn waiting(&self) -> usize {
        lock(&self.waiting).len()
    }

    /// The groups of another partition; `None` if none is left.
    ///
    /// # Errors
    /// Those of the states and of files; resource, if a partition cannot be made small enough; interrupted.
    pub fn next(&self, layout: &AggregateLayout) -> Result<Option<Morsel>> {
        loop {
            self.context.check()?;
            let next = lock(&self.waiting).pop();
            let Some(waiting) = next else { return Ok(None) };
            let merged = self.merge(layout, &waiting)?;
            if merged.is_none() {
                self.split(layout, &waiting)?;
            }
            let number = self.done.fetch_add(1, Ordering::Relaxed) as u64;
            let Some(partial) = merged else { continue };
            let part = Arc::new(FinishedGroups::new(partial)?);
            let groups = 0..part.groups;
            if part.groups > 0 {
                return Ok(Some(Morsel { number, part, groups }));
            }
        }
    }

    /// The groups of a partition; `None` if they are too many.
    fn merge(&self, layout: &AggregateLayout, waiting: &Waiting) -> Result<Option<Partial>> {
        // An empty table takes a small part of the room; one that has many groups grows.
        let expected = waiting.groups.min(PARTITION_GROUPS).min(self.room / ROOM_OF_GROUP);
        let table = GroupTable::hashed(&layout.keys, expected, self.context.settings.hash_collisions);
        let mut whole = Partial::new(layout, table, &self.context)?;
        match self.fold(layout, waiting, &mut whole) {
            // Another worker may hold the memory that is missing, but a smaller partition needs less.
            Err(error)
                if error.kind() == ErrorKind::Resource && !waiting.is_last() && whole.table.groups() > 1 =>
            {
                Ok(None)
            }
            fits => Ok(fits?.then_some(whole)),
        }
    }

    /// Folds a partition into `whole`; false as soon as it is too large.
    fn fold(&self, layout: &AggregateLayout, waiting: &Waiting, whole: &mut Partial) -> Result<bool> {
        let is_too_large = |whole: &Partial| {
            let (groups, bytes) = (whole.table.groups(), whole.reservation.bytes());
            let is_over = match &self.spill {
                Some(spill) => spill.is_too_large(groups, bytes, self.room),
                None => bytes > self.room,
            };
            is_over && !waiting.is_last() && groups > 1
        };
        for sealed in &self.sealed {
            whole.merge(sealed, waiting.partition)?;
            if is_too_large(whole) {
                return Ok(false);
            }
        }
        if let Some((store, rows)) = &waiting.rows {
            let mut chunk = Chunk::new();
            let mut rows = store.reader(rows);
            while rows.next(&mut chunk)? {
                whole.take(layout, &chunk)?;
                whole.reserve()?;
                if is_too_large(whole) {
                    return Ok(false);
                }
            }
        }
        whole.complete(layout, &Alone(&self.context))?;
        Ok(true)
    }

    /// Splits a partition: its parts wait.
    fn split(&self, layout: &AggregateLayout, waiting: &Waiting) -> Result<()> {
        let mut parts = None;
        if let (Some(spill), Some((store, rows))) = (&self.spill, &waiting.rows) {
            let parts = parts.insert(store.like(1 << BITS, Medium::Memory));
            let mut writer = spill.writer(parts, waiting.partition);
            if spill.may_write() {
                writer.write_from_now()?;
            }
            // Used for its hashes.
            let table = GroupTable::hashed(&layout.keys, 0, self.context.settings.hash_collisions);
            let mut hashes = Partial::new(layout, table, &self.context)?;
            let mut chunk = Chunk::new();
            let mut rows = store.reader(rows);
            while rows.next(&mut chunk)? {
                hashes.take_none(&chunk, &mut writer)?;
                writer.reserve()?;
            }
            writer.finish()?;
            let (written, _) = parts.traffic();
            self.again.fetch_add(written, Ordering::Relaxed);
        }
        self.deepest.fetch_max(waiting.depth + 1, Ordering::Relaxed);
        self.wait(waiting.partition, BITS, waiting.depth + 1, parts.as_ref());
        Ok(())
    }

    /// The share of partitions that are finished, 0 to 1.
    pub fn progress(&self) -> f64 {
        let (done, all) = (self.done.load(Ordering::Relaxed), self.all.load(Ordering::Relaxed));
        done as f64 / all.max(1) as f64
    }

    /// How it went, for `EXPLAIN ANALYZE`.
    pub fn report(&self) -> String {
        let mut text = format!("merged in {} partitions", self.all.load(Ordering::Relaxed));
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        let kept = self.spill.as_ref().map_or(0, |spill| spill.store.kept_bytes());
        if kept > 0 {
            text += &format!(
                "; {:.1} MB of rows bypassed the group table, since groups hardly repeat",
                megabytes(kept)
            );
        }
        if let Some((spill, (written, read))) =
            self.spill.as_ref().map(|spill| (spill, spill.store.traffic()))
            && written > 0
        {
            text += &format!(
                "; rows of some groups in temporary files, {}: {:.1} MB written, {:.1} MB read",
                spill.reason(),
                megabytes(written),
                megabytes(read)
            );
            let again = self.again.load(Ordering::Relaxed);
            if again > 0 {
                text += &format!(", {:.1} MB written again", megabytes(again));
            }
        }
        match self.deepest.load(Ordering::Relaxed) {
            1 => text,
            deepest => format!("{text}; depth {deepest}"),
        }
    }
}
