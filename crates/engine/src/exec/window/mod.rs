//! Window functions: rows in, the same rows with more columns out, partition by partition.
//!
//! ```text
//! chunk → columns that functions read → sort → sections of whole partitions → states → results, a chunk at a time
//! ```
//! 1. [`layout`] decomposes the calls, once.
//! 2. Rows are kept and put in order as a [sort](crate::exec::sort) does: by the partition's keys, then by
//!    its order. Columns are [permuted to it](kept). So rows that come in that order cost only the check, and
//!    rows for which there is no memory go to temporary files.
//! 3. Rows of several partitions are cut into [sections](section) of whole partitions, some ten thousand rows
//!    each.
//! 4. A worker takes a section, [prepares](prepared) what its calls need (counts, sums, trees), and outputs
//!    its rows chunk by chunk. Time does not depend on the length of frames, except for aggregates that are
//!    computed [frame by frame](by_frame).
//! 5. Where there are few partitions, so that workers would wait for each other, all of them prepare the
//!    large ones together at the end of the sink, and then share their rows.
//!
//! Rows come out partition by partition, each in its order. Peers keep the order of the input.
//!
//! Where rows are in files, or fill the memory, sections are formed [one after the other](stream). A
//! partition that does not fit is [stored](stored_partition) block by block and computed [in parts](part):
//! between the rows that matter to a part are [gaps](gaps), of which only [summaries](summaries) are known.

mod by_frame;
mod copied;
mod counted;
mod counting;
mod distinct;
mod equal_rows;
mod extreme;
mod frame;
mod gaps;
mod kept;
pub mod layout;
mod operand;
mod part;
mod prepared;
mod previous;
mod range;
mod ranked;
mod ranking;
mod scan;
mod section;
mod shift;
mod state_tree;
mod stored_partition;
mod stream;
mod summaries;
mod sums;
#[cfg(test)]
mod tests;
mod tree;
#[cfg(test)]
mod twin;
mod value;
mod wavelet;

use crate::context::QueryContext;
use crate::exec::operator::{Alone, Blocking, Sink, SinkWorker, Tasks};
use crate::exec::profile::Recorder;
use crate::exec::sort::{Ordered, Outcome, SortShared as Sort, SortSink};
use crate::memory::Reservation;
use crate::relation::{Source, SourceWorker};
use crate::sync::{AtomicUsize, Mutex, MutexGuard, OnceLock, Ordering, PoisonError};
use entasis_vector::expr::{ColumnMeta, Program};
use entasis_vector::{Buffer, Chunk, Error, PhysicalType, Result, Selection, Vector};
use frame::Frames;
use kept::KeptOrder;
use layout::WindowLayout;
use part::WindowPart;
use prepared::{Prepared, Scratch};
use section::{Places, Section, boundaries};
use std::ops::Range;
use std::sync::Arc;
use stream::{Held, Lack, Next, RowsInOrder, Stream, is_lack};

/// The size in chunks from which a section gets no further partition.
const SECTION_CHUNKS: usize = 16;
/// The size in chunks from which all workers may take part in a partition.
const LARGE_CHUNKS: usize = 64;
/// Bytes of lists and texts that the results of a chunk should have at most.
const RESULT_BYTES: usize = 4 << 20;
/// Rows of the first chunk if there are lists and texts among its results: nothing tells how long they are.
const FIRST_ROWS: usize = 64;
/// All workers prepare a partition together if it exceeds all rows divided by this and by the number of
/// workers.
const PARTS: usize = 4;

/// The input of a function: some rows of a section.
pub struct View<'a> {
    /// The section.
    section: &'a Section,
    /// The places of the rows.
    places: &'a Places,
    /// By frame, the frames of the rows.
    frames: &'a [Frames],
    /// The statement.
    context: &'a QueryContext,
}

/// The operator that returns the rows of its input, which are as `layout` keeps them, with the columns of its
/// calls.
///
/// # Errors
/// Those of compiling the keys.
pub(crate) fn window(
    layout: WindowLayout,
    context: &QueryContext,
    recorder: &Arc<Recorder>,
) -> Result<Blocking> {
    let sort = Sort::new(&layout.stored, &layout.keys, None, context, recorder)?;
    let sort = Arc::new(sort.with_firsts(layout.firsts()));
    let output = layout.output.clone();
    let shared = Arc::new(Shared {
        layout,
        sort: sort.clone(),
        context: context.clone(),
        recorder: recorder.clone(),
        ready: OnceLock::new(),
    });
    let sink = WindowSink { rows: SortSink { shared: sort }, shared: shared.clone() };
    Ok(Blocking { sink: Arc::new(sink), source: Arc::new(WindowSource { shared }), output })
}

/// What all workers share.
struct Shared {
    layout: WindowLayout,
    /// Keeps the rows and sorts them.
    sort: Arc<Sort>,
    context: QueryContext,
    recorder: Arc<Recorder>,
    /// The rows in order, once the input has ended.
    ready: OnceLock<Ready>,
}

/// Rows in order, on their way out.
enum Ready {
    InMemory {
        rows: Arc<KeptOrder>,
        /// Where partitions begin.
        partitions: Vec<u32>,
        morsels: Vec<Morsel>,
        next: AtomicUsize,
        _memory: Reservation,
    },
    /// Rows that are taken section by section, or in parts of a partition.
    Streamed(Box<Mutex<Stream>>),
}

/// A morsel: what a worker takes at a time.
enum Morsel {
    /// Whole partitions, of these numbers.
    Section(Range<usize>),
    /// Some rows of a prepared section.
    Part(Arc<Prepared>, Range<usize>),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

// ---- where rows go in -------------------------------------------------------------------------------------

struct WindowSink {
    rows: SortSink,
    shared: Arc<Shared>,
}

impl Sink for WindowSink {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        self.rows.worker()
    }

    fn programs(&self) -> Vec<&Program> {
        self.rows.programs()
    }

    fn finish(&self, tasks: &dyn Tasks) -> Result<()> {
        let shared = &self.shared;
        let ready = match shared.sort.order(tasks)? {
            Outcome::InMemory(ordered, memory) => shared.divide(*ordered, memory, tasks)?,
            Outcome::InFiles(merge) => streamed(RowsInOrder::Merge(merge, 0, shared.sort.clone())),
        };
        shared.ready.set(ready).map_err(|_| Error::internal("a window was finished twice"))
    }
}

fn streamed(rows: RowsInOrder) -> Ready {
    Ready::Streamed(Box::new(Mutex::new(Stream::new(rows))))
}

impl Shared {
    /// Cuts rows in order into morsels.
    fn divide(&self, ordered: Ordered, mut memory: Reservation, tasks: &dyn Tasks) -> Result<Ready> {
        let layout = &self.layout;
        let rows = Arc::new(KeptOrder::new(ordered, &mut memory, tasks)?);
        let all = rows.len();
        let partitions = boundaries(&rows, 0..all, &layout.partition, tasks)?;
        memory.resize(memory.bytes() + partitions.capacity() * size_of::<u32>())?;
        let end_of = |partition: usize| partitions.get(partition + 1).map_or(all, |&start| start as usize);
        let chunk_rows = self.context.settings.chunk_rows;
        let large = (LARGE_CHUNKS * chunk_rows).max(all / (PARTS * self.context.settings.threads.max(1)));
        let enough = self.section_rows();
        let sizes = (0..partitions.len()).map(|partition| end_of(partition) - partitions[partition] as usize);
        let large_rows: usize = sizes.filter(|&rows| rows >= large).sum();
        if large_rows * layout.prepared_bytes() > memory.free()
            && !self.context.settings.temp_directory.is_empty()
        {
            self.recorder.note("there is no memory to prepare large partitions at once");
            return Ok(streamed(RowsInOrder::Kept(rows, 0, memory)));
        }
        let mut morsels = Vec::new();
        let mut first = 0;
        for partition in 0..partitions.len() {
            let (start, end) = (partitions[partition] as usize, end_of(partition));
            if end - start >= large {
                if first < partition {
                    morsels.push(Morsel::Section(first..partition));
                }
                let section =
                    Section::new(rows.clone(), start..end, vec![0], layout.peers.as_deref(), tasks)?;
                let prepared = Arc::new(Prepared::new(layout, section, &self.context, tasks)?);
                let parts = (0..end - start).step_by(enough).map(|at| at..(end - start).min(at + enough));
                morsels.extend(parts.map(|part| Morsel::Part(prepared.clone(), part)));
                first = partition + 1;
            } else if end - partitions[first] as usize >= enough {
                morsels.push(Morsel::Section(first..partition + 1));
                first = partition + 1;
            }
        }
        if first < partitions.len() {
            morsels.push(Morsel::Section(first..partitions.len()));
        }
        self.recorder.note(format!("{} in {} rows", count(partitions.len(), "partition"), all));
        Ok(Ready::InMemory { rows, partitions, morsels, next: AtomicUsize::new(0), _memory: memory })
    }

    /// The next rows that a worker is to output; `None` at the end. `alone` does the rest of the work.
    fn take(&self, alone: &Alone<'_>) -> Result<Option<Taken>> {
        let layout = &self.layout;
        match self.ready.get().ok_or_else(|| Error::internal("a window is not finished"))? {
            Ready::InMemory { rows, partitions, morsels, next, .. } => {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let (prepared, left) = match morsels.get(number) {
                    None => return Ok(None),
                    Some(Morsel::Part(prepared, part)) => (prepared.clone(), part.clone()),
                    Some(Morsel::Section(numbers)) => {
                        let start = partitions[numbers.start];
                        let end = partitions.get(numbers.end).map_or(rows.len(), |&end| end as usize);
                        let own = partitions[numbers.clone()].iter().map(|&at| at - start).collect();
                        let range = start as usize..end;
                        let section =
                            Section::new(rows.clone(), range.clone(), own, layout.peers.as_deref(), alone)?;
                        (Arc::new(Prepared::new(layout, section, &self.context, alone)?), 0..range.len())
                    }
                };
                Ok(Some(Taken {
                    number: number as u64,
                    prepared,
                    left,
                    _memory: Reservation::default(),
                    _held: None,
                }))
            }
            Ready::Streamed(stream) => self.take_streamed(stream, alone),
        }
    }

    /// The same for rows that are streamed.
    fn take_streamed(&self, stream: &Mutex<Stream>, alone: &Alone<'_>) -> Result<Option<Taken>> {
        let layout = &self.layout;
        let enough = self.section_rows();
        loop {
            let next = lock(stream).next(layout, enough, &self.context, &self.recorder)?;
            let Some((held, next)) = next else { return Ok(None) };
            let (partition, blocks) = match next {
                Next::Blocks(partition, blocks) => (partition, blocks),
                Next::Rows(rows, count, memory) => {
                    let rows = Arc::new(KeptOrder::in_place(*rows));
                    let partitions = boundaries(&rows, 0..count, &layout.partition, alone)?;
                    let section = Section::new(rows, 0..count, partitions, layout.peers.as_deref(), alone)?;
                    let prepared = Arc::new(Prepared::new(layout, section, &self.context, alone)?);
                    let (number, _held) = (held.number, Some(held));
                    return Ok(Some(Taken { number, prepared, left: 0..count, _memory: memory, _held }));
                }
            };
            match WindowPart::new(&partition, blocks.clone(), layout, &self.context) {
                Ok(part) => {
                    lock(stream).learn(blocks.len(), &part, &self.context);
                    let (number, _held) = (held.number, Some(held));
                    let WindowPart { prepared, rows: left, memory: _memory, .. } = part;
                    return Ok(Some(Taken { number, prepared, left, _memory, _held }));
                }
                Err(error) if is_lack(&error) => match lock(stream).lack(partition, blocks, held) {
                    Lack::Again => {}
                    Lack::Leave => return Ok(None),
                    Lack::Fail => return Err(error),
                },
                Err(error) => return Err(error),
            }
        }
    }

    /// The number of rows from which a section gets no further partition.
    fn section_rows(&self) -> usize {
        SECTION_CHUNKS * self.context.settings.chunk_rows
    }
}

fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

// ---- where rows come out ----------------------------------------------------------------------------------

struct WindowSource {
    shared: Arc<Shared>,
}

impl Source for WindowSource {
    fn worker(&self) -> Result<Box<dyn SourceWorker>> {
        let layout = &self.shared.layout;
        let vectors = |metas: &[ColumnMeta]| metas.iter().map(|meta| Vector::new(meta.physical)).collect();
        let most = self.shared.context.settings.chunk_rows;
        let has_long = layout.output[layout.passed..].iter().any(|meta| meta.physical == PhysicalType::Str);
        Ok(Box::new(WindowReader {
            columns: (0..layout.passed).collect(),
            passed: vectors(&layout.output[..layout.passed]),
            results: vectors(&layout.output[layout.passed..]),
            scratch: Scratch::default(),
            picks: Vec::new(),
            spares: Vec::new(),
            taken: None,
            most: if has_long { most.min(FIRST_ROWS) } else { most },
            number: 0,
            shared: self.shared.clone(),
        }))
    }

    fn progress(&self) -> Option<f64> {
        match self.shared.ready.get()? {
            Ready::InMemory { morsels, next, .. } => {
                Some(next.load(Ordering::Relaxed).min(morsels.len()) as f64 / morsels.len().max(1) as f64)
            }
            Ready::Streamed(_) => None,
        }
    }

    fn pieces(&self) -> Option<usize> {
        match self.shared.ready.get()? {
            Ready::InMemory { morsels, .. } => Some(morsels.len()),
            Ready::Streamed(_) => None,
        }
    }

    fn end(&self) {
        self.shared.sort.note_files();
    }
}

/// A morsel that a worker has taken.
struct Taken {
    number: u64,
    prepared: Arc<Prepared>,
    /// The rows that are still to be output.
    left: Range<usize>,
    /// The memory of rows that belong to this section alone.
    _memory: Reservation,
    /// The record that it was taken, if it is streamed.
    _held: Option<Held>,
}

struct WindowReader {
    shared: Arc<Shared>,
    /// 0, 1, 2, …: the columns that come out.
    columns: Vec<usize>,
    passed: Vec<Vector>,
    results: Vec<Vector>,
    scratch: Scratch,
    picks: Vec<u16>,
    spares: Vec<Arc<Buffer>>,
    taken: Option<Taken>,
    /// The most rows of the next chunk: fewer than usual, if their results are long.
    most: usize,
    number: u64,
}

impl SourceWorker for WindowReader {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        let shared = &self.shared;
        let layout = &shared.layout;
        if self.taken.as_ref().is_none_or(|taken| taken.left.is_empty()) {
            // Its memory first, then the next one's.
            self.taken = None;
            let vectors = self.passed.iter_mut().chain(&mut self.results);
            vectors.for_each(|vector| *vector = Vector::new(vector.physical()));
            self.taken = shared.take(&Alone(&shared.context))?;
        }
        let Some(taken) = &mut self.taken else { return Ok(false) };
        self.number = taken.number;
        let rows = loop {
            let rows = taken.left.start..taken.left.end.min(taken.left.start + self.most);
            let (scratch, results) = (&mut self.scratch, &mut self.results);
            match taken.prepared.write(layout, rows.clone(), scratch, &shared.context, results) {
                // Lists and texts of fewer rows take less.
                Err(error) if is_lack(&error) && rows.len() > 1 => {
                    results.iter_mut().for_each(|vector| *vector = Vector::new(vector.physical()));
                    self.most = rows.len() / 2;
                }
                written => break written.map(|()| rows)?,
            }
        };
        taken.left.start = rows.end;
        let bytes: usize = self.results.iter().filter_map(Vector::heap).map(|heap| heap.bytes()).sum();
        self.most = match bytes > RESULT_BYTES {
            true => (rows.len() * RESULT_BYTES / bytes).max(1),
            false => (2 * self.most).min(shared.context.settings.chunk_rows),
        };
        taken.prepared.section.read_all(&self.columns, rows.clone(), &mut self.passed);
        chunk.reset(rows.len());
        let dense = chunk.push_group(Selection::ALL);
        self.passed.iter().chain(&self.results).for_each(|vector| chunk.push_column(vector.clone(), dense));
        if let Some(top) = layout.top {
            let places = &self.scratch.places;
            self.picks.clear();
            for (row, position) in rows.clone().enumerate() {
                let before = if top.with_peers { places.peers_start[row] } else { position as u32 };
                let before = taken.prepared.section.rows_between(places.partition_start[row], before);
                if (before as usize) < top.rows {
                    self.picks.push(row as u16);
                }
            }
            if self.picks.len() < rows.len() {
                chunk.select(&self.picks, &mut self.spares);
            }
        }
        Ok(true)
    }

    fn morsel(&self) -> u64 {
        self.number
    }
}
