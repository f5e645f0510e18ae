//! Rows as self-contained bytes, the contents of a temporary file.
//!
//! ```text
//! a block, at most 8192 rows:
//! | rows (4 bytes) | bytes of long strings (8) | tuples of columns 0 to 255 | … of 256 to 511 | … | long strings |
//! ```
//! A block is a segment of [tuples](crate::exec::tuple) with all columns, keys included. The view of a string
//! longer than 12 bytes has, instead of a pointer, the distance of its bytes from the start of the block's
//! long strings. Rows without columns are just their number.
//!
//! [`RowFormat::write`] takes rows of a [`Materialized`], whether they are columns or tuples there;
//! [`Blocks`] returns them as chunks, in the same order, with columns of the same physical types.

use crate::exec::materialized::Materialized;
use crate::exec::tuple::{BATCH_ROWS, Batch, Source, TupleLayout, Tuples};
use entasis_vector::expr::ColumnMeta;
use entasis_vector::vector::StringsMut;
use entasis_vector::{Buffer, Chunk, Error, ErrorKind, PhysicalType, Result, Selection, StringView, Vector};
use std::ops::Range;
use std::sync::Arc;

/// The most rows of a block.
const BLOCK_ROWS: usize = 8192;
/// The most columns of one tuple: wider rows have several.
const TUPLE_COLUMNS: usize = 256;
/// Bytes of a string that its view holds.
const INLINE_BYTES: usize = 12;

/// How rows of certain columns are written.
pub(crate) struct RowFormat {
    columns: Vec<ColumnMeta>,
    /// The layout of the first columns, of those that follow, and so on.
    layouts: Vec<TupleLayout>,
}

impl RowFormat {
    /// The format of rows with these columns.
    pub(crate) fn new(columns: &[ColumnMeta]) -> RowFormat {
        let layout = |first: usize| {
            let others: Vec<bool> =
                (0..columns.len()).map(|i| !(first..first + TUPLE_COLUMNS).contains(&i)).collect();
            TupleLayout::new(columns, &others).expect("so many columns are not too many for a tuple")
        };
        let layouts = (0..columns.len()).step_by(TUPLE_COLUMNS).map(layout).collect();
        RowFormat { columns: columns.to_vec(), layouts }
    }

    /// The offsets of the rows of each block of a segment.
    pub(crate) fn blocks(rows: usize) -> impl Iterator<Item = Range<usize>> {
        (0..rows).step_by(BLOCK_ROWS).map(move |first| first..(first + BLOCK_ROWS).min(rows))
    }

    /// Adds blocks of all rows to `out`.
    ///
    /// # Errors
    /// Those of [`RowFormat::write`].
    pub(crate) fn write_all(&self, rows: &Materialized, out: &mut Vec<u8>) -> Result<()> {
        for segment in 0..rows.segments() {
            for offsets in RowFormat::blocks(rows.segment_rows(segment)) {
                self.write(rows, segment, offsets, out)?;
            }
        }
        Ok(())
    }

    /// Adds the rows of a block to `out`: those of `segment` at these offsets. Returns the bytes of their
    /// long strings.
    ///
    /// # Errors
    /// Internal, if a column that should have no NULLs has one.
    pub(crate) fn write(
        &self,
        rows: &Materialized,
        segment: usize,
        offsets: Range<usize>,
        out: &mut Vec<u8>,
    ) -> Result<usize> {
        let count = offsets.len();
        let mut long = Vec::new();
        let mut columns = Vec::with_capacity(self.columns.len());
        for (i, meta) in self.columns.iter().enumerate() {
            let mut vector = Vector::new(meta.physical);
            rows.read(i, segment, offsets.start, count, &mut vector);
            let has_nulls = vector.validity().is_some() && (0..count).any(|row| !vector.is_valid(row));
            if has_nulls && !meta.nullable {
                return Err(Error::internal(format!("column {} has a NULL and should have none", meta.id)));
            }
            let values = match meta.physical {
                PhysicalType::Str => Arc::new(views_with_distances(&vector, count, &mut long)),
                _ => vector.values_buffer().clone(),
            };
            columns.push((values, vector));
        }
        out.extend_from_slice(&(count as u32).to_le_bytes());
        out.extend_from_slice(&(long.len() as u64).to_le_bytes());
        for layout in &self.layouts {
            let source = |column: usize| {
                let (values, vector) = &columns[column];
                Source { values, validity: vector.validity() }
            };
            let sources: Vec<Source<'_>> = layout.columns().map(source).collect();
            Tuples::encode(layout, &sources, count).write(out);
        }
        out.extend_from_slice(&long);
        Ok(long.len())
    }
}

/// The views of a vector's first strings, as numbers. The bytes of long ones are appended to `long`, and
/// their offset there replaces the pointer.
fn views_with_distances(vector: &Vector, count: usize, long: &mut Vec<u8>) -> Buffer {
    let mut views = Buffer::zeroed(count * size_of::<StringView>());
    let (strings, bits) = (vector.values::<StringView>(), vector.values::<i128>());
    for (i, view) in views.as_mut_slice::<i128>()[..count].iter_mut().enumerate() {
        // The view of a NULL may point anywhere.
        if vector.is_valid(i) {
            *view = bits[i];
            if strings[i].len() > INLINE_BYTES {
                *view = *view & i128::from(u64::MAX) | (long.len() as i128) << 64;
                long.extend_from_slice(strings[i].as_bytes());
            }
        }
    }
    views
}

/// Reads the blocks of a piece of bytes.
pub(crate) struct Blocks {
    chunk_rows: usize,
    /// Bytes of the piece, and how many of them have been taken.
    piece: Vec<u8>,
    taken: usize,
    /// The current block: a segment of tuples for each layout, its rows, how many have been output, its long
    /// strings.
    tuples: Vec<[Option<Tuples>; 1]>,
    rows: usize,
    given: usize,
    long: Range<usize>,
    vectors: Vec<Vector>,
}

impl Blocks {
    /// No blocks yet; chunks will have at most `chunk_rows` rows.
    pub(crate) fn new(format: &RowFormat, chunk_rows: usize) -> Blocks {
        Blocks {
            chunk_rows,
            piece: Vec::new(),
            taken: 0,
            tuples: Vec::new(),
            rows: 0,
            given: 0,
            long: 0..0,
            vectors: format.columns.iter().map(|meta| Vector::new(meta.physical)).collect(),
        }
    }

    /// The buffer for the next piece; all blocks of the last one must have been read.
    pub(crate) fn next_piece(&mut self) -> &mut Vec<u8> {
        self.taken = 0;
        &mut self.piece
    }

    /// Fills `chunk` with the next rows; false at the end of the piece.
    ///
    /// # Errors
    /// Corruption, if the bytes are not those of blocks.
    pub(crate) fn next(&mut self, format: &RowFormat, chunk: &mut Chunk) -> Result<bool> {
        // Releases the vectors, so that they can be overwritten.
        chunk.reset(0);
        if self.given == self.rows {
            if self.taken == self.piece.len() {
                return Ok(false);
            }
            self.open(format)
                .ok_or_else(|| Error::new(ErrorKind::Corruption, "a temporary file is corrupt"))?;
        }
        let first = self.given;
        let count = self.chunk_rows.min(self.rows - first);
        for (layout, tuples) in format.layouts.iter().zip(&self.tuples) {
            let mut batch = Batch::new(layout, tuples);
            let columns = || layout.columns().zip(layout.nullable()).enumerate();
            columns().for_each(|(_, (column, _))| self.vectors[column].begin(count));
            for done in (0..count).step_by(BATCH_ROWS) {
                let rows = BATCH_ROWS.min(count - done);
                batch.begin((first + done) as u32..(first + done + rows) as u32);
                for (field, (column, nullable)) in columns() {
                    batch.read(field, &mut self.vectors[column], done, nullable);
                }
            }
        }
        let long = &self.piece[self.long.clone()];
        for vector in self.vectors.iter_mut().filter(|vector| vector.physical() == PhysicalType::Str) {
            point_to(long, count, vector)
                .ok_or_else(|| Error::new(ErrorKind::Corruption, "a temporary file is corrupt"))?;
        }
        self.given += count;
        chunk.reset(count);
        let group = chunk.push_group(Selection::ALL);
        self.vectors.iter().for_each(|vector| chunk.push_column(vector.clone(), group));
        Ok(true)
    }

    /// Takes the next block.
    fn open(&mut self, format: &RowFormat) -> Option<()> {
        let mut rest = &self.piece[self.taken..];
        let (rows, after) = rest.split_first_chunk::<4>()?;
        let (long, after) = after.split_first_chunk::<8>()?;
        rest = after;
        (self.rows, self.given) = (u32::from_le_bytes(*rows) as usize, 0);
        self.tuples.clear();
        for layout in &format.layouts {
            self.tuples.push([Some(Tuples::read(layout, self.rows, &mut rest)?)]);
        }
        let long = usize::try_from(u64::from_le_bytes(*long)).ok()?;
        let start = self.piece.len() - rest.len();
        self.taken = start.checked_add(long).filter(|end| *end <= self.piece.len())?;
        self.long = start..self.taken;
        Some(())
    }
}

/// Gives long strings among the first ones of `vector` pointers to their bytes in `long`.
fn point_to(long: &[u8], count: usize, vector: &mut Vector) -> Option<()> {
    if long.is_empty() {
        return Some(());
    }
    for row in 0..count {
        let bits = vector.values::<i128>()[row] as u128;
        let length = bits as u32 as usize;
        if length > INLINE_BYTES {
            let start = (bits >> 64) as usize;
            let bytes = long.get(start..start.checked_add(length)?)?;
            let StringsMut { views, heap } = vector.strings_mut();
            views[row] = heap.push(bytes);
        }
    }
    Some(())
}
