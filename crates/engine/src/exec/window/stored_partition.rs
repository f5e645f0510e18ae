//! A partition that does not fit into memory: its rows in order, in a temporary file, block by block.
//!
//! Memory holds for each block its place, its first row, how many rows and groups of peers precede it, and
//! the [summaries](super::summaries) of its rows. From these follow the block of any row, by its number, by
//! the number of its group or by its key, and the summary of all blocks between two rows.
//!
//! It is written once, and then read by any number of workers at once, each some blocks of it.

use super::gaps::{BlockIndex, Gaps};
use super::kept::KeptOrder;
use super::layout::WindowLayout;
use super::section::{Section, boundaries};
use super::summaries::{Summaries, Summarizer};
use crate::context::QueryContext;
use crate::exec::materialized::Materialized;
use crate::exec::operator::Alone;
use crate::exec::spill::file::{Extent, TempFile};
use crate::exec::spill::rows::{Blocks, RowFormat};
use crate::memory::Reservation;
use crate::settings::Spilling;
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{CHUNK_ROWS, Chunk, Error, PhysicalType, Result, StringView, Vector};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// The most rows of a block, and the bytes of its columns and of its long strings: a share of the free
/// memory, a minimum, a maximum.
const MOST_ROWS: usize = 8192;
const BLOCK_PART: usize = 128;
const LEAST_BLOCK: usize = 8 << 10;
const MOST_BLOCK: usize = 256 << 10;
/// Rows of the first block where tests force partitions to be stored; later blocks have more, so that there
/// are not too many.
const DEEP_ROWS: usize = 2;
const DEEP_BLOCKS: usize = 64;
/// Bytes of a string that its view holds.
const INLINE_BYTES: usize = 12;

/// See the module.
pub struct StoredPartition {
    columns: Vec<ColumnMeta>,
    format: RowFormat,
    file: TempFile,
    blocks: Vec<StoredBlock>,
    /// Where its rows are.
    pub index: Arc<BlockIndex>,
    firsts: Arc<KeptOrder>,
    /// The summaries of its blocks.
    pub summaries: Summaries,
    _memory: Reservation,
}

#[derive(Clone, Copy)]
struct StoredBlock {
    extent: Extent,
    /// Memory that its rows need as columns.
    bytes: usize,
}

impl StoredPartition {
    /// Memory that the rows of some blocks need, at least.
    pub fn bytes_of(&self, blocks: impl Iterator<Item = usize>) -> usize {
        blocks.map(|block| self.blocks[block].bytes).sum()
    }

    /// The rows of some blocks, and the first row of each gap between them.
    ///
    /// # Errors
    /// I/O; resource, if there is no memory for them; interrupted.
    pub fn load(
        &self,
        blocks: &BTreeSet<usize>,
        memory: &mut Reservation,
        context: &QueryContext,
    ) -> Result<(Materialized, Gaps)> {
        let gaps = Gaps::new(self.index.clone(), blocks);
        memory.resize(self.bytes_of(blocks.iter().copied()))?;
        let mut rows = Materialized::expecting(&self.columns, gaps.len());
        let all: Vec<usize> = (0..self.columns.len()).collect();
        let mut reader = Blocks::new(&self.format, CHUNK_ROWS);
        let mut chunk = Chunk::new();
        let mut vectors: Vec<Vector> = self.columns.iter().map(|meta| Vector::new(meta.physical)).collect();
        for stretch in gaps.stretches() {
            if stretch.is_gap {
                self.firsts.read_all(&all, stretch.blocks.start..stretch.blocks.start + 1, &mut vectors);
                append(&mut rows, &vectors, 0..1);
                continue;
            }
            for block in stretch.blocks.clone() {
                context.check()?;
                self.file.read(self.blocks[block].extent, reader.next_piece())?;
                while reader.next(&self.format, &mut chunk)? {
                    rows.append(&chunk, &all, None);
                }
            }
        }
        chunk.reset(0);
        memory.resize(rows.bytes())?;
        Ok((rows, gaps))
    }

    /// Bytes that were written.
    pub fn written(&self) -> u64 {
        self.file.traffic().0
    }
}

fn append(rows: &mut Materialized, vectors: &[Vector], range: Range<usize>) {
    let picks: Vec<u16> = range.map(|row| row as u16).collect();
    let vectors: Vec<(&Vector, Option<&[u16]>)> =
        vectors.iter().map(|vector| (vector, Some(&picks[..]))).collect();
    rows.append_vectors(&vectors, picks.len());
}

/// Writes a partition whose rows come in order.
pub struct PartitionWriter<'a> {
    layout: &'a WindowLayout,
    context: &'a QueryContext,
    format: RowFormat,
    file: TempFile,
    blocks: Vec<StoredBlock>,
    index: BlockIndex,
    firsts: Materialized,
    summaries: Summarizer<'a>,
    memory: Reservation,
    next: NextBlock,
    /// The last row that was written, and one more row.
    pair: Option<Materialized>,
    piece: Vec<u8>,
}

/// Rows that are not yet written.
struct NextBlock {
    rows: Materialized,
    /// The bytes of their long strings.
    text: usize,
    /// The columns of strings.
    texts: Vec<usize>,
    /// The bytes of columns, and of long strings, from which a block is written.
    most_bytes: usize,
}

impl NextBlock {
    /// Takes rows of `vectors` up to `most` rows or until they have many long strings. Returns where it
    /// ended.
    fn take(&mut self, vectors: &[Vector], range: Range<usize>, most: usize) -> usize {
        let mut end = range.start;
        while end < range.end && self.rows.rows() + (end - range.start) < most && self.text < self.most_bytes
        {
            let texts = self.texts.iter().map(|&column| &vectors[column]);
            let lengths = texts.filter(|v| v.is_valid(end)).map(|v| v.values::<StringView>()[end].len());
            self.text += lengths.filter(|&length| length > INLINE_BYTES).sum::<usize>();
            end += 1;
        }
        append(&mut self.rows, vectors, range.start..end);
        end
    }
}

impl<'a> PartitionWriter<'a> {
    /// No rows yet.
    ///
    /// # Errors
    /// I/O; those of the functions.
    pub fn new(layout: &'a WindowLayout, context: &'a QueryContext) -> Result<PartitionWriter<'a>> {
        let columns = &layout.stored;
        let is_text = |column: &usize| columns[*column].physical == PhysicalType::Str;
        Ok(PartitionWriter {
            format: RowFormat::new(columns),
            file: TempFile::new(context)?,
            blocks: Vec::new(),
            index: BlockIndex::default(),
            firsts: Materialized::new(columns),
            summaries: Summarizer::new(layout, context)?,
            memory: Reservation::new(&context.memory),
            next: NextBlock {
                rows: Materialized::new(columns),
                text: 0,
                texts: (0..columns.len()).filter(is_text).collect(),
                most_bytes: (context.memory.free() / BLOCK_PART).clamp(LEAST_BLOCK, MOST_BLOCK),
            },
            pair: None,
            piece: Vec::new(),
            layout,
            context,
        })
    }

    /// Adds the first `rows` rows of `vectors`, one of each stored column.
    ///
    /// # Errors
    /// I/O; resource; those of the functions; interrupted.
    pub fn add(&mut self, vectors: &[Vector], rows: usize) -> Result<()> {
        let mut done = 0;
        while done < rows {
            let most = self.most_rows();
            done = self.next.take(vectors, done..rows, most);
            if self.next.rows.rows() == most || self.next.text >= self.next.most_bytes {
                self.write_block()?;
            }
        }
        Ok(())
    }

    fn most_rows(&self) -> usize {
        if self.context.settings.sort_spill == Spilling::Deep {
            return (DEEP_ROWS + self.index.rows() as usize / DEEP_BLOCKS).min(MOST_ROWS);
        }
        let width: usize = self.layout.stored.iter().map(|meta| meta.physical.width() + 1).sum();
        (self.next.most_bytes / width.max(1)).clamp(1, MOST_ROWS)
    }

    fn write_block(&mut self) -> Result<()> {
        self.context.check()?;
        self.next.text = 0;
        let columns = &self.layout.stored;
        let alone = Alone(self.context);
        let rows = std::mem::replace(&mut self.next.rows, Materialized::new(columns));
        let (count, bytes) = (rows.rows(), rows.bytes());
        if self.index.rows() + count as u64 >= u32::MAX.into() {
            return Err(Error::not_supported(format!("a window partition of more than {} rows", u32::MAX)));
        }
        self.memory.resize(self.bytes() + bytes + count * self.layout.prepared_bytes())?;
        self.piece.clear();
        self.format.write(&rows, 0, 0..count, &mut self.piece)?;
        let extent = self.file.add(&self.piece)?;
        self.blocks.push(StoredBlock { extent, bytes });
        let order = self.layout.peers.as_deref();
        let begins = match (self.pair.take(), order) {
            (None, _) => true,
            (Some(mut pair), Some(order)) => {
                copy_row(&rows, 0, &mut pair);
                boundaries(&KeptOrder::in_place(pair), 0..2, order, &alone)?.len() == 2
            }
            (Some(_), None) => false,
        };
        copy_row(&rows, 0, &mut self.firsts);
        let mut last = Materialized::expecting(columns, 2);
        copy_row(&rows, count - 1, &mut last);
        self.pair = Some(last);
        let block = Section::new(Arc::new(KeptOrder::in_place(rows)), 0..count, vec![0], order, &alone)?;
        let groups = block.peers().len().saturating_sub(1 + usize::from(!begins));
        self.index.push(count, groups, begins);
        self.summaries.push(&block, &alone)
    }

    /// Bytes of memory in use, without those of a block.
    fn bytes(&self) -> usize {
        let blocks = self.blocks.capacity() * size_of::<StoredBlock>();
        // Keys of first rows are read from them.
        blocks + self.index.bytes() + 2 * self.firsts.bytes() + self.summaries.bytes() + self.piece.capacity()
    }

    /// The finished partition, once all its rows have been added.
    ///
    /// # Errors
    /// As for `add`.
    pub fn finish(mut self) -> Result<StoredPartition> {
        if !self.next.rows.is_empty() {
            self.write_block()?;
        }
        self.piece = Vec::new();
        self.memory.resize(self.bytes())?;
        let firsts = Arc::new(KeptOrder::in_place(self.firsts));
        Ok(StoredPartition {
            summaries: self.summaries.finish(&firsts, &Alone(self.context))?,
            columns: self.layout.stored.clone(),
            format: self.format,
            file: self.file,
            blocks: self.blocks,
            index: Arc::new(self.index),
            firsts,
            _memory: self.memory,
        })
    }
}

/// Appends a copy of the row at `place`.
pub fn copy_row(from: &Materialized, place: usize, to: &mut Materialized) {
    let columns: Vec<usize> = (0..to.columns().len()).collect();
    let mut vectors: Vec<Vector> = to.columns().iter().map(|meta| Vector::new(meta.physical)).collect();
    from.gather_all(&columns, &[place as u32], &mut vectors);
    append(to, &vectors, 0..1);
}
