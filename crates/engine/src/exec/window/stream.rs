//! Rows in order that are not prepared all at once: they come from files, or fill the memory. One worker at a
//! time takes what comes next:
//! - a section of whole partitions, as long as a partition fits: its rows, and what is prepared for them, in
//!   half of the free memory;
//! - otherwise the partition becomes a [stored one](StoredPartition), and workers take parts of it, some
//!   blocks each. Parts are small at first; a part for which there is no memory is split in two, and where
//!   parts need many blocks besides their own, they grow, so that these are not loaded too often.
//!
//! A worker that finds no memory for a single block while others hold some leaves the block to these and
//! ends. So an error means that a part does not fit even alone.

use super::kept::KeptOrder;
use super::layout::WindowLayout;
use super::part::WindowPart;
use super::stored_partition::{PartitionWriter, StoredPartition, copy_row};
use crate::context::QueryContext;
use crate::exec::materialized::Materialized;
use crate::exec::profile::Recorder;
use crate::exec::sort::{Merge, SortShared};
use crate::memory::Reservation;
use crate::settings::Spilling;
use crate::sync::{AtomicUsize, Ordering};
use entasis_vector::{CHUNK_ROWS, Error, Result, Vector};
use std::ops::Range;
use std::sync::Arc;

/// The share of the free memory for a worker's part, to be divided by the number of workers.
const PART: usize = 4;
/// The most rows of a first part.
const MOST_PART_ROWS: usize = 128 << 10;
/// The number of other blocks per own block above which parts grow.
const MANY_BLOCKS: usize = 4;
/// Rows of a partition that is stored where tests force it.
const DEEP_ROWS: usize = 7;

/// See the module.
pub struct Stream {
    rows: RowsInOrder,
    /// Rows of the next section that have been read already.
    carried: Option<(Materialized, Reservation)>,
    /// Partitions that are taken in parts: one, and those of which workers returned parts.
    stored: Vec<Stored>,
    /// The number of what is taken next: ascending in the order of rows.
    number: u64,
    /// How many workers hold something, and how often something was taken.
    holders: Arc<AtomicUsize>,
    taken: usize,
}

/// Where rows come from.
pub enum RowsInOrder {
    /// Files, and how many of the merged rows have been taken.
    Merge(Box<Merge>, usize, Arc<SortShared>),
    /// Memory, which is reserved, and how many rows have been taken.
    Kept(
        Arc<KeptOrder>,
        usize,
        #[expect(dead_code, reason = "reserved as long as the rows are there")] Reservation,
    ),
}

impl RowsInOrder {
    /// Writes the ids of the next rows to `ids`, at most a chunk of them; none at the end.
    fn peek(&mut self, ids: &mut Vec<u32>) -> Result<()> {
        ids.clear();
        match self {
            RowsInOrder::Merge(merge, taken, sort) => {
                while *taken == merge.ordered().order.len() {
                    *taken = 0;
                    if !sort.advance(merge)? {
                        return Ok(());
                    }
                }
                ids.extend(merge.ordered().order[*taken..].iter().take(CHUNK_ROWS));
            }
            RowsInOrder::Kept(rows, taken, _) => {
                ids.extend((*taken..rows.len()).take(CHUNK_ROWS).map(|place| rows.id(place)));
            }
        }
        Ok(())
    }

    /// The rows that the ids refer to.
    fn rows(&self) -> &Materialized {
        match self {
            RowsInOrder::Merge(merge, ..) => &merge.ordered().rows,
            RowsInOrder::Kept(rows, ..) => rows.rows(),
        }
    }

    fn take(&mut self, count: usize) {
        match self {
            RowsInOrder::Merge(_, taken, _) | RowsInOrder::Kept(_, taken, _) => *taken += count,
        }
    }
}

struct Stored {
    partition: Arc<StoredPartition>,
    /// Blocks that have not been taken, the first ones last.
    left: Vec<Range<usize>>,
    /// Blocks of a part.
    size: usize,
    number: u64,
}

/// What a worker takes.
pub enum Next {
    /// Whole partitions, which are the first of these rows, with their memory.
    Rows(Box<Materialized>, usize, Reservation),
    /// Some blocks of a partition.
    Blocks(Arc<StoredPartition>, Range<usize>),
}

/// What a worker has taken, until it is dropped.
pub struct Held {
    /// Its number.
    pub number: u64,
    /// The worker was alone when it took it, and how often something had been taken by then.
    alone: Option<usize>,
    holders: Arc<AtomicUsize>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.holders.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What a worker that found no memory does.
pub enum Lack {
    /// It tries again.
    Again,
    /// It ends.
    Leave,
    /// The statement fails.
    Fail,
}

impl Stream {
    /// A stream of which nothing has been taken.
    pub fn new(rows: RowsInOrder) -> Stream {
        Stream { rows, carried: None, stored: Vec::new(), number: 0, holders: Arc::default(), taken: 0 }
    }

    fn hold(&mut self, number: u64) -> Held {
        let others = self.holders.fetch_add(1, Ordering::AcqRel);
        self.taken += 1;
        Held { number, alone: (others == 0).then_some(self.taken), holders: self.holders.clone() }
    }

    /// What comes next; `None` at the end. A section with at least `enough` rows gets no further partition.
    ///
    /// # Errors
    /// I/O, corruption; resource; interrupted; those of the functions.
    pub fn next(
        &mut self,
        layout: &WindowLayout,
        enough: usize,
        context: &QueryContext,
        recorder: &Recorder,
    ) -> Result<Option<(Held, Next)>> {
        if let Some(next) = self.next_blocks() {
            return Ok(Some(next));
        }
        let (mut rows, mut memory) = self
            .carried
            .take()
            .unwrap_or_else(|| (Materialized::new(&layout.stored), Reservation::new(&context.memory)));
        let columns: Vec<usize> = (0..layout.stored.len()).collect();
        let mut vectors: Vec<Vector> = layout.stored.iter().map(|meta| Vector::new(meta.physical)).collect();
        let mut ids = Vec::with_capacity(CHUNK_ROWS);
        loop {
            context.check()?;
            if let Some(start) = start_if_too_large(&rows, &mut memory, layout, context)? {
                if start == 0 {
                    self.store(rows, memory, layout, context, recorder)?;
                    return Ok(self.next_blocks());
                }
                let mut carried = Materialized::new(&layout.stored);
                let ids: Vec<u32> = (start as u32..rows.rows() as u32).collect();
                for ids in ids.chunks(CHUNK_ROWS) {
                    rows.gather_all(&columns, ids, &mut vectors);
                    append(&mut carried, &vectors, ids.len());
                }
                let mut own = Reservation::new(&context.memory);
                own.resize(carried.bytes())?;
                self.carried = Some((carried, own));
                self.number += 1;
                return Ok(Some((self.hold(self.number - 1), Next::Rows(Box::new(rows), start, memory))));
            }
            self.rows.peek(&mut ids)?;
            let mut count = ids.len();
            if rows.rows() >= enough {
                // Only the rest of the last partition.
                let last = rows.rows() as u32 - 1;
                count = ids.partition_point(|&id| agree(&rows, last, self.rows.rows(), id, layout));
            }
            if count == 0 {
                break;
            }
            self.rows.rows().gather_all(&columns, &ids[..count], &mut vectors);
            append(&mut rows, &vectors, count);
            self.rows.take(count);
        }
        if rows.is_empty() {
            return Ok(None);
        }
        self.number += 1;
        let all = rows.rows();
        Ok(Some((self.hold(self.number - 1), Next::Rows(Box::new(rows), all, memory))))
    }

    /// The next part of the stored partition.
    fn next_blocks(&mut self) -> Option<(Held, Next)> {
        self.stored.retain(|stored| !stored.left.is_empty());
        let stored = self.stored.last_mut()?;
        let range = stored.left.pop()?;
        let end = range.end.min(range.start + stored.size);
        if end < range.end {
            stored.left.push(end..range.end);
        }
        let number = stored.number + range.start as u64;
        let partition = stored.partition.clone();
        Some((self.hold(number), Next::Blocks(partition, range.start..end)))
    }

    /// Writes the partition that begins with `rows`.
    fn store(
        &mut self,
        rows: Materialized,
        memory: Reservation,
        layout: &WindowLayout,
        context: &QueryContext,
        recorder: &Recorder,
    ) -> Result<()> {
        let columns: Vec<usize> = (0..layout.stored.len()).collect();
        let mut vectors: Vec<Vector> = layout.stored.iter().map(|meta| Vector::new(meta.physical)).collect();
        let mut writer = PartitionWriter::new(layout, context)?;
        let mut first = Materialized::expecting(&layout.stored, 1);
        copy_row(&rows, 0, &mut first);
        let mut ids: Vec<u32> = (0..rows.rows() as u32).collect();
        for ids in ids.chunks(CHUNK_ROWS) {
            rows.gather_all(&columns, ids, &mut vectors);
            writer.add(&vectors, ids.len())?;
        }
        drop(rows);
        drop(memory);
        loop {
            self.rows.peek(&mut ids)?;
            let count = ids.partition_point(|&id| agree(&first, 0, self.rows.rows(), id, layout));
            if count == 0 {
                break;
            }
            self.rows.rows().gather_all(&columns, &ids[..count], &mut vectors);
            writer.add(&vectors, count)?;
            self.rows.take(count);
        }
        let partition = writer.finish()?;
        let (rows, blocks) = (partition.index.rows(), partition.index.blocks());
        recorder.note(format!(
            "a partition of {rows} rows in a temporary file, {:.1} MB: computed in parts",
            partition.written() as f64 / 1e6
        ));
        let bytes = partition.bytes_of(0..blocks) + rows as usize * layout.prepared_bytes();
        let share = context.memory.free() / (PART * context.settings.threads.max(1));
        let part = (MOST_PART_ROWS as u64 * blocks as u64 / rows.max(1)) as usize;
        let fits = (share as u128 * blocks as u128 / bytes.max(1) as u128) as usize;
        let is_deep = context.settings.sort_spill == Spilling::Deep;
        let size = if is_deep { 1 } else { fits.min(part).max(1) };
        let (left, number) = (std::iter::once(0..blocks).collect(), self.number);
        self.number += blocks as u64;
        self.stored.push(Stored { partition: Arc::new(partition), left, size, number });
        Ok(())
    }

    /// Learns how large parts should be, from a part of `own` blocks.
    pub fn learn(&mut self, own: usize, part: &WindowPart, context: &QueryContext) {
        let has_room = part.memory.bytes() < context.memory.free() / PART;
        if let Some(stored) = self.stored.last_mut().filter(|stored| has_room && stored.size == own)
            && part.blocks > MANY_BLOCKS * own
        {
            stored.size *= 2;
        }
    }

    /// Handles a lack of memory for `blocks` of `partition`, which a worker had taken.
    pub fn lack(&mut self, partition: Arc<StoredPartition>, blocks: Range<usize>, held: Held) -> Lack {
        let (alone, number) = (held.alone, held.number);
        drop(held);
        let first = blocks.start as u64;
        let size = blocks.len();
        let at = self.stored.iter().position(|stored| Arc::ptr_eq(&stored.partition, &partition));
        let at = at.unwrap_or_else(|| {
            self.stored.push(Stored { partition, left: Vec::new(), size, number: number - first });
            self.stored.len() - 1
        });
        let stored = &mut self.stored[at];
        stored.size = stored.size.min(blocks.len().div_ceil(2));
        let is_single = blocks.len() == 1;
        stored.left.push(blocks);
        match self.holders.load(Ordering::Acquire) {
            0 if is_single && alone == Some(self.taken) => Lack::Fail,
            0 => Lack::Again,
            _ if is_single => Lack::Leave,
            _ => Lack::Again,
        }
    }
}

/// Where the last partition of `rows` begins, if it must be left out because there is no memory for all rows
/// and what is prepared for them.
fn start_if_too_large(
    rows: &Materialized,
    memory: &mut Reservation,
    layout: &WindowLayout,
    context: &QueryContext,
) -> Result<Option<usize>> {
    if rows.is_empty() {
        return Ok(None);
    }
    let start = || {
        let last = rows.rows() as u32 - 1;
        let (mut low, mut high) = (0, last);
        while low < high {
            let middle = low.midpoint(high);
            if agree(rows, last, rows, middle, layout) { high = middle } else { low = middle + 1 }
        }
        low as usize
    };
    let bytes = rows.bytes();
    // With the next rows their memory may double.
    let needed = 2 * bytes + rows.rows() * layout.prepared_bytes();
    let is_too_large = needed > (memory.free() + memory.bytes()) / 2;
    let reserved = memory.resize(bytes);
    if is_too_large || reserved.is_err() {
        return Ok(Some(start()));
    }
    let is_deep = context.settings.sort_spill == Spilling::Deep && rows.rows() >= DEEP_ROWS;
    Ok(is_deep.then(start).filter(|start| rows.rows() - start >= DEEP_ROWS))
}

/// True if row `a` of `rows` and row `b` of `others` are of one partition.
fn agree(rows: &Materialized, a: u32, others: &Materialized, b: u32, layout: &WindowLayout) -> bool {
    let same = |&column: &usize| rows.compare_with(column, a, others, b, false, false).is_eq();
    layout.partition.iter().all(same)
}

fn append(rows: &mut Materialized, vectors: &[Vector], count: usize) {
    let vectors: Vec<(&Vector, Option<&[u16]>)> = vectors.iter().map(|vector| (vector, None)).collect();
    rows.append_vectors(&vectors, count);
}

/// True if `error` says that memory is short.
pub fn is_lack(error: &Error) -> bool {
    error.kind() == entasis_vector::ErrorKind::Resource
}
