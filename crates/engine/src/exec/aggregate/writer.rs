//! Rows of one worker that wait for their groups, on their way to a store: by partition, in memory or in a
//! file.

use crate::exec::group_table::Partition;
use crate::exec::materialized::Materialized;
use crate::exec::scatter::Scatter;
use crate::exec::spill::store::Store;
use crate::memory::Reservation;
use entasis_vector::{Chunk, Result};
use std::sync::Arc;

/// A partition is split into `1 << BITS`.
pub const BITS: u32 = 6;
/// The number of parts.
pub const PARTITIONS: usize = 1 << BITS;
/// Instead of a partition: the row is not written.
const STAYS: usize = PARTITIONS;

/// Rows of one worker that wait.
pub struct Writer {
    store: Arc<Store>,
    /// The partition that is split.
    whole: Partition,
    parts: Vec<Materialized>,
    /// 0, 1, 2, …
    columns: Vec<usize>,
    spread: Scatter<{ STAYS + 1 }>,
    /// Bytes that are in memory.
    bytes: usize,
    /// Rows are written: when there are more bytes than `most`, or than twice `least` if they cannot be
    /// reserved. `least` is what partitions of a few rows take, and is not reserved.
    writes: bool,
    least: usize,
    most: usize,
    memory: Reservation,
}

impl Writer {
    /// Passes the rows of the partition `whole` to `store`, by the parts of the partition: at first in
    /// memory. At most `most` bytes are buffered once rows are written.
    pub(crate) fn new(store: &Arc<Store>, whole: Partition, most: usize, memory: Reservation) -> Writer {
        let least = PARTITIONS * store.first_rows() * store.width();
        Writer {
            parts: (0..PARTITIONS).map(|_| store.no_rows()).collect(),
            columns: (0..store.columns().len()).collect(),
            store: store.clone(),
            whole,
            spread: Scatter::default(),
            bytes: 0,
            writes: false,
            least,
            most: most.max(2 * least),
            memory,
        }
    }

    /// Takes the rows of `chunk` whose tags are given; the others stay. Unless rows are written, the caller
    /// reserves memory afterwards.
    ///
    /// # Errors
    /// Those of writing.
    pub fn take(&mut self, chunk: &Chunk, tags: impl Iterator<Item = Option<u32>>) -> Result<()> {
        let place = |tag| self.whole.part_of(tag, BITS) as u8;
        self.spread.begin().extend(tags.map(|tag| tag.map_or(STAYS as u8, place)));
        self.spread.arrange();
        for (partition, part) in self.parts.iter_mut().enumerate() {
            let rows = self.spread.rows(partition);
            if !rows.is_empty() {
                let before = part.bytes();
                part.append(chunk, &self.columns, Some(rows));
                self.bytes = self.bytes - before + part.bytes();
            }
        }
        if !self.writes {
            return Ok(());
        }
        let lacks =
            self.memory.resize(self.bytes.saturating_sub(self.least)).is_err() && self.bytes > 2 * self.least;
        if lacks || self.bytes > self.most { self.write() } else { Ok(()) }
    }

    /// The rows of the last chunk that stay, ascending.
    pub fn stays(&self) -> &[u16] {
        self.spread.rows(STAYS)
    }

    /// Bytes of rows in memory.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Reserves the memory of rows, unless they are written.
    ///
    /// # Errors
    /// Resource.
    pub fn reserve(&mut self) -> Result<()> {
        if self.writes { Ok(()) } else { self.memory.resize(self.bytes) }
    }

    /// Writes all rows, and from now on those to come.
    ///
    /// # Errors
    /// Those of writing.
    pub fn write_from_now(&mut self) -> Result<()> {
        self.writes = true;
        self.write()
    }

    fn write(&mut self) -> Result<()> {
        for (partition, part) in self.parts.iter_mut().enumerate() {
            self.store.write(partition, part)?;
            *part = self.store.no_rows();
        }
        self.bytes = 0;
        self.memory.resize(0)
    }

    /// Takes no more rows.
    ///
    /// # Errors
    /// I/O; resource, if temporary files would be too large; interrupted.
    pub fn finish(mut self) -> Result<()> {
        if self.writes {
            return self.write();
        }
        for (partition, part) in self.parts.into_iter().enumerate() {
            let (memory, segments) = (self.memory.split_off(part.bytes()), part.segments());
            self.store.keep(part, memory, [(partition, 0..segments)]);
        }
        Ok(())
    }
}
