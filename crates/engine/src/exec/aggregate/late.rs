//! The end of an aggregation that does not fit into memory at once: partition by partition, each when it is wanted.
//!
//! 1. All partials are sealed: their groups are known by partition, by the same bits as rows in the file.
//! 2. Who wants rows takes a partition. It gets a table of its own: first the groups of all partials, then the rows from the file.
//! 3. It is given away as a part, and its memory is free again with its last row.
//! 4. A partition that does not fit is split by the next bits of the tags: rows in the file into another file, groups of
//!    partials where they are. Its parts wait like other partitions, so another worker may take them.
//!
//! Invariants: a group is in one partition of those that wait at a time; a partition that was split has given nothing. What a
//! partition may take is a share of what was free at the end of the input, the same for each worker, so that the operators above
//! have memory too; a partition of one group, and those of the last depth, may take all there is.

use super::finish::{Morsel, Part};
use super::layout::Layout;
use super::partial::{Partial, Sealed};
use super::spill::{BITS, Spill};
use super::state::lock;
use super::table::{GroupTable, Partition};
use crate::exec::QueryContext;
use crate::exec::operator::Tasks;
use crate::exec::scheduler::Alone;
use crate::exec::spill::Spilling;
use crate::exec::spill::store::{Medium, Store, Stored};
use crate::sync::{AtomicU32, AtomicU64, AtomicUsize, Mutex, Ordering};
use entasis_vector::{Chunk, ErrorKind, Result};
use std::sync::Arc;

/// How often rows are split, the first time included: then all but eight bits of the tags are used.
const DEEPEST: u32 = 4;
/// The part of the free memory that the partitions of all workers may take, and what each may at least.
const ROOM_PART: usize = 2;
const LEAST_ROOM: usize = 1 << 20;
/// Groups that a partition's table begins with room for, at most.
const MOST_EXPECTED: usize = 32 << 10;

/// The partitions of an aggregation.
pub struct Late {
    spill: Arc<Spill>,
    sealed: Vec<Sealed>,
    waiting: Mutex<Vec<Waiting>>,
    /// Partitions that were given, or were empty, and all that there are.
    done: AtomicUsize,
    all: AtomicUsize,
    /// Bytes that a partition may take.
    room: usize,
    /// For the profile: how often rows were split, and bytes that were written again for that.
    deepest: AtomicU32,
    again: AtomicU64,
    context: QueryContext,
}

/// A partition that waits, and its rows in a file.
struct Waiting {
    partition: Partition,
    store: Arc<Store>,
    rows: Stored,
}

impl Waiting {
    /// How often its rows have been split.
    fn depth(&self) -> u32 {
        self.partition.bits() / BITS
    }
}

impl Late {
    /// The groups of `partials`, and the rows that `spill` has written.
    ///
    /// # Errors
    /// Those of the tasks; resource.
    pub fn new(spill: &Arc<Spill>, partials: Vec<Partial>, context: &QueryContext, tasks: &dyn Tasks) -> Result<Late> {
        let partials: Vec<Mutex<Option<Partial>>> = partials.into_iter().map(|p| Mutex::new(Some(p))).collect();
        let sealed: Mutex<Vec<Sealed>> = Mutex::default();
        tasks.run(partials.len(), &|i| {
            let partial = lock(&partials[i]).take().expect("each task runs once");
            let partial = partial.seal(BITS)?;
            lock(&sealed).push(partial);
            Ok(())
        })?;
        let late = Late {
            sealed: sealed.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner),
            waiting: Mutex::default(),
            done: AtomicUsize::new(0),
            all: AtomicUsize::new(0),
            room: (context.memory.free() / ROOM_PART / context.settings.threads.max(1)).max(LEAST_ROOM),
            deepest: AtomicU32::new(1),
            again: AtomicU64::new(0),
            context: context.clone(),
            spill: spill.clone(),
        };
        late.wait(Partition::ALL, &spill.store);
        Ok(late)
    }

    /// The parts of a partition wait, whose rows are in `store`.
    fn wait(&self, whole: Partition, store: &Arc<Store>) {
        let part = |number| {
            let (partition, rows) = (whole.part(number, BITS), store.take(number));
            let has_groups = rows.rows > 0 || self.most_groups(partition) > 0;
            has_groups.then(|| Waiting { partition, store: store.clone(), rows })
        };
        let parts: Vec<Waiting> = (0..store.partitions()).filter_map(part).collect();
        self.all.fetch_add(parts.len(), Ordering::Relaxed);
        lock(&self.waiting).extend(parts);
    }

    fn most_groups(&self, partition: Partition) -> usize {
        self.sealed.iter().map(|sealed| sealed.most_groups(partition)).sum()
    }

    /// The groups of another partition; `None` if none waits any more.
    ///
    /// # Errors
    /// Those of the states and of files; resource, if a partition cannot be made small enough; interrupted.
    pub fn next(&self, layout: &Layout) -> Result<Option<Morsel>> {
        loop {
            self.context.check()?;
            let next = lock(&self.waiting).pop();
            let Some(waiting) = next else { return Ok(None) };
            match self.aggregate(layout, &waiting)? {
                Some(partial) => {
                    let number = self.done.fetch_add(1, Ordering::Relaxed) as u64;
                    let part = Arc::new(Part::new(partial)?);
                    let groups = 0..part.groups;
                    if part.groups > 0 {
                        return Ok(Some(Morsel { number, part, groups }));
                    }
                }
                None => {
                    self.split(layout, &waiting)?;
                    self.done.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }

    /// The groups of a partition; `None` if they are too many.
    fn aggregate(&self, layout: &Layout, waiting: &Waiting) -> Result<Option<Partial>> {
        let is_last = waiting.depth() >= DEEPEST;
        let expected = (self.most_groups(waiting.partition) + waiting.rows.rows).min(MOST_EXPECTED);
        let table = GroupTable::hashed(&layout.keys, expected, self.context.settings.hash_collisions);
        let mut whole = Partial::new(layout, table, &self.context)?;
        match self.fold(layout, waiting, &mut whole, is_last) {
            // What another worker has may be what lacks, but a smaller partition needs less.
            Err(error) if error.kind() == ErrorKind::Resource && !is_last && whole.table.groups() > 1 => Ok(None),
            fits => Ok(fits?.then_some(whole)),
        }
    }

    /// Folds a partition into `whole`; false as soon as it is too large.
    fn fold(&self, layout: &Layout, waiting: &Waiting, whole: &mut Partial, is_last: bool) -> Result<bool> {
        let is_too_large = |whole: &Partial| {
            let (groups, bytes) = (whole.table.groups(), whole.reservation.bytes());
            !is_last && groups > 1 && self.spill.is_too_large(groups, bytes, self.room)
        };
        for sealed in &self.sealed {
            whole.merge(sealed, waiting.partition)?;
            if is_too_large(whole) {
                return Ok(false);
            }
        }
        let mut chunk = Chunk::new();
        let mut rows = waiting.store.reader(&waiting.rows);
        while rows.next(&mut chunk)? {
            whole.take(layout, &chunk)?;
            whole.reserve()?;
            if is_too_large(whole) {
                return Ok(false);
            }
        }
        whole.complete(layout, &Alone(&self.context))?;
        Ok(true)
    }

    /// Splits a partition: its parts wait.
    fn split(&self, layout: &Layout, waiting: &Waiting) -> Result<()> {
        let store = waiting.store.like(1 << BITS, Medium::File);
        let mut writer = self.spill.writer_for(&store, waiting.partition);
        // Of use for its hashes.
        let collide = self.context.settings.hash_collisions;
        let mut hashes = Partial::new(layout, GroupTable::appended(&layout.keys, collide), &self.context)?;
        let mut chunk = Chunk::new();
        let mut rows = waiting.store.reader(&waiting.rows);
        while rows.next(&mut chunk)? {
            hashes.take_none(&chunk, &mut writer)?;
        }
        writer.flush()?;
        let (written, _) = store.traffic();
        self.again.fetch_add(written, Ordering::Relaxed);
        self.deepest.fetch_max(waiting.depth() + 1, Ordering::Relaxed);
        self.wait(waiting.partition, &store);
        Ok(())
    }

    /// The share of partitions that have been given, 0 to 1.
    pub fn progress(&self) -> f64 {
        let (done, all) = (self.done.load(Ordering::Relaxed), self.all.load(Ordering::Relaxed));
        done as f64 / all.max(1) as f64
    }

    /// What became of it, once all is done.
    pub fn report(&self) -> String {
        let why = match self.spill.setting {
            Spilling::Auto => "there was no memory for all groups".to_string(),
            forced => format!("aggregate_spill = {forced}"),
        };
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        let (written, read) = self.spill.store.traffic();
        let again = self.again.load(Ordering::Relaxed);
        format!(
            "{} partitions one after the other, {why}: {:.1} MB of rows written to temporary files, {:.1} MB read; depth {}{}",
            self.all.load(Ordering::Relaxed),
            megabytes(written),
            megabytes(read),
            self.deepest.load(Ordering::Relaxed),
            if again > 0 { format!(", {:.1} MB written again", megabytes(again)) } else { String::new() },
        )
    }
}
