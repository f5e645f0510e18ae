//! The morsels of a window: sections of whole partitions, or rows of a large partition that all workers have
//! prepared together. Rows for which there is no memory are taken as they come ([`super::stream`]).

use super::kept::KeptOrder;
use super::layout::WindowLayout;
use super::part::WindowPart;
use super::prepared::Prepared;
use super::section::{Section, boundaries};
use super::stream::{Held, Lack, Next, RowsInOrder, Stream, is_lack};
use crate::context::QueryContext;
use crate::exec::operator::{Alone, Tasks};
use crate::exec::profile::Recorder;
use crate::exec::sort::{Ordered, SortShared as Sort};
use crate::memory::Reservation;
use crate::sync::{AtomicUsize, Mutex, OnceLock, Ordering, lock};
use entasis_vector::{Error, Result};
use std::ops::Range;
use std::sync::Arc;

/// The size in chunks from which a section gets no further partition.
const SECTION_CHUNKS: usize = 16;
/// The size in chunks from which all workers may take part in a partition.
const LARGE_CHUNKS: usize = 64;
/// All workers prepare a partition together if it exceeds all rows divided by this and by the number of
/// workers.
const PARTS: usize = 4;

/// What all workers share.
pub struct Shared {
    /// How the window works.
    pub layout: WindowLayout,
    /// Keeps the rows and sorts them.
    pub sort: Arc<Sort>,
    /// The statement.
    pub context: QueryContext,
    /// The operator's profile.
    pub recorder: Arc<Recorder>,
    /// The rows in order, once the input has ended.
    pub ready: OnceLock<Ready>,
}

/// Rows in order, on their way out.
pub enum Ready {
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

impl Ready {
    /// Rows that are taken as they come.
    pub fn streamed(rows: RowsInOrder) -> Ready {
        Ready::Streamed(Box::new(Mutex::new(Stream::new(rows))))
    }
}

/// A morsel: what a worker takes at a time.
pub enum Morsel {
    /// Whole partitions, of these numbers.
    Section(Range<usize>),
    /// Some rows of a prepared section.
    Part(Arc<Prepared>, Range<usize>),
}

/// A morsel that a worker has taken.
pub struct Taken {
    /// Ascending in the order of rows.
    pub number: u64,
    /// The section that they belong to.
    pub prepared: Arc<Prepared>,
    /// The rows that are still to be output.
    pub left: Range<usize>,
    /// The memory of rows that belong to this section alone.
    _memory: Reservation,
    /// The record that it was taken, if it is streamed.
    _held: Option<Held>,
}

impl Shared {
    /// Cuts rows in order into morsels.
    ///
    /// # Errors
    /// Resource, if there is no memory for them; those of the functions and of `tasks`.
    pub fn divide(&self, ordered: Ordered, mut memory: Reservation, tasks: &dyn Tasks) -> Result<Ready> {
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
            return Ok(Ready::streamed(RowsInOrder::Kept(rows, 0, memory)));
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
    ///
    /// # Errors
    /// Resource, if there is no memory for them; I/O; those of the functions; interrupted.
    pub fn take(&self, alone: &Alone<'_>) -> Result<Option<Taken>> {
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
