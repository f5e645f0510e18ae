//! Stores rows by partition until they are needed, of one side of a join or of an aggregation: in memory, in
//! a temporary file, or in both.
//!
//! Rows in memory are columns ([`Materialized`]); rows in the file are blocks of
//! [tuples](crate::exec::spill::rows). Reading a partition yields the former, then the latter, in the same
//! order each time.

use crate::context::QueryContext;
use crate::exec::materialized::Materialized;
use crate::exec::spill::file::{Extent, TempFile};
use crate::exec::spill::rows::{Blocks, RowFormat};
use crate::memory::Reservation;
use crate::sync::{AtomicBool, AtomicU64, Mutex, OnceLock, Ordering, lock};
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{Chunk, Result, Selection, Vector};
use std::ops::Range;
use std::sync::Arc;

/// The size from which blocks become a piece of the file, in bytes.
const PIECE_BYTES: usize = 512 << 10;
/// Bytes for which an empty partition gets room first, at most.
const FIRST_BYTES: usize = 16 << 10;
/// The most segments of rows that are put together: row ids have room for as many.
pub(crate) const MOST_SEGMENTS: usize = 1 << 15;

/// Where rows go if memory is not short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Medium {
    /// They stay in memory.
    Memory,
    /// They go to the file, as rows do when memory is short.
    File,
}

/// Rows by partition. All partitions share the file, which is created when the first rows are written.
pub(crate) struct Store {
    columns: Vec<ColumnMeta>,
    in_memory: AtomicBool,
    /// Made when needed: most joins write nothing.
    format: OnceLock<Arc<RowFormat>>,
    file: OnceLock<TempFile>,
    /// Held while the file is created.
    making: Mutex<()>,
    partitions: Vec<Mutex<Stored>>,
    /// Bytes of rows that were kept in memory.
    kept: AtomicU64,
    context: QueryContext,
}

/// The rows of one partition.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stored {
    kept: Vec<Kept>,
    extents: Vec<Extent>,
    /// The number of rows.
    pub rows: usize,
    /// Bytes of memory that they have, or will need.
    pub bytes: usize,
}

/// Some segments of rows in memory.
#[derive(Debug, Clone)]
struct Kept {
    rows: Arc<KeptRows>,
    segments: Range<usize>,
}

/// Rows in memory, of one partition or of several.
struct KeptRows {
    rows: Materialized,
    _memory: Reservation,
}

impl std::fmt::Debug for KeptRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeptRows({} rows)", self.rows.rows())
    }
}

impl Store {
    /// No rows yet, of `partitions` partitions and with these columns.
    pub(crate) fn new(
        columns: &[ColumnMeta],
        partitions: usize,
        medium: Medium,
        context: &QueryContext,
    ) -> Arc<Store> {
        Store::of(columns, OnceLock::new(), partitions, medium, context)
    }

    /// An empty store for rows with the same columns.
    pub(crate) fn like(&self, partitions: usize, medium: Medium) -> Arc<Store> {
        let format = self.format.get().map_or_else(OnceLock::new, |format| OnceLock::from(format.clone()));
        Store::of(&self.columns, format, partitions, medium, &self.context)
    }

    fn of(
        columns: &[ColumnMeta],
        format: OnceLock<Arc<RowFormat>>,
        partitions: usize,
        medium: Medium,
        context: &QueryContext,
    ) -> Arc<Store> {
        Arc::new(Store {
            columns: columns.to_vec(),
            in_memory: AtomicBool::new(medium == Medium::Memory),
            format,
            file: OnceLock::new(),
            making: Mutex::new(()),
            partitions: (0..partitions).map(|_| Mutex::default()).collect(),
            kept: AtomicU64::new(0),
            context: context.clone(),
        })
    }

    /// The columns of the rows.
    pub(crate) fn columns(&self) -> &[ColumnMeta] {
        &self.columns
    }
    /// An empty partition for a caller that splits rows for this store.
    pub(crate) fn no_rows(&self) -> Materialized {
        match self.medium() {
            Medium::Memory => Materialized::in_pages(&self.columns, self.first_rows()),
            Medium::File => Materialized::expecting(&self.columns, self.first_rows()),
        }
    }
    /// Bytes of a row, without long strings.
    pub(crate) fn width(&self) -> usize {
        self.columns.iter().map(|meta| meta.physical.width()).sum()
    }
    /// Rows for which an empty partition gets room first: few, if they are wide.
    pub(crate) fn first_rows(&self) -> usize {
        (FIRST_BYTES / self.width().max(1)).clamp(8, Materialized::FIRST_ROOM)
    }
    /// Number of partitions.
    pub(crate) fn partitions(&self) -> usize {
        self.partitions.len()
    }
    /// Where rows go if memory is not short.
    pub(crate) fn medium(&self) -> Medium {
        if self.in_memory.load(Ordering::Relaxed) { Medium::Memory } else { Medium::File }
    }
    /// From now on, rows stay in memory. Must be called before there are any.
    pub(crate) fn stay_in_memory(&self) {
        self.in_memory.store(true, Ordering::Relaxed);
    }
    /// True if there may be a file.
    pub(crate) fn may_write(&self) -> bool {
        !self.context.settings.temp_directory.is_empty()
    }
    fn format(&self) -> &Arc<RowFormat> {
        self.format.get_or_init(|| Arc::new(RowFormat::new(&self.columns)))
    }
    /// Removes the rows of a partition and returns them.
    pub(crate) fn take(&self, partition: usize) -> Stored {
        std::mem::take(&mut *lock(&self.partitions[partition]))
    }
    /// The number of rows of a partition.
    pub(crate) fn rows(&self, partition: usize) -> usize {
        lock(&self.partitions[partition]).rows
    }
    /// True if there are no rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.partitions.iter().all(|partition| lock(partition).rows == 0)
    }
    /// True if rows have been written to the file.
    pub(crate) fn has_written(&self) -> bool {
        self.traffic().0 > 0
    }
    /// Bytes written and bytes read.
    pub(crate) fn traffic(&self) -> (u64, u64) {
        self.file.get().map_or((0, 0), TempFile::traffic)
    }
    /// Bytes of rows that were kept in memory.
    pub(crate) fn kept_bytes(&self) -> u64 {
        self.kept.load(Ordering::Relaxed)
    }

    /// Keeps rows in memory, whose reservation is `memory`: for each partition, the given segments.
    pub(crate) fn keep(
        &self,
        rows: Materialized,
        memory: Reservation,
        of: impl IntoIterator<Item = (usize, Range<usize>)>,
    ) {
        self.kept.fetch_add(rows.bytes() as u64, Ordering::Relaxed);
        let rows = Arc::new(KeptRows { rows, _memory: memory });
        for (partition, segments) in of {
            let all = &rows.rows;
            let count: usize = segments.clone().map(|segment| all.segment_rows(segment)).sum();
            if count > 0 {
                let mut stored = lock(&self.partitions[partition]);
                stored.kept.push(Kept { rows: rows.clone(), segments });
                stored.rows += count;
                // The partition's share.
                stored.bytes += (all.bytes() as u128 * count as u128 / all.rows() as u128) as usize;
            }
        }
    }

    /// Writes `rows` of a partition to the file.
    ///
    /// # Errors
    /// I/O; resource, if temporary files would be too large; interrupted.
    pub(crate) fn write(&self, partition: usize, rows: &Materialized) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let file = self.file()?;
        let (mut extents, mut piece, mut long) = (Vec::new(), Vec::new(), 0);
        for segment in 0..rows.segments() {
            for offsets in RowFormat::blocks(rows.segment_rows(segment)) {
                self.context.check()?;
                long += self.format().write(rows, segment, offsets, &mut piece)?;
                if piece.len() >= PIECE_BYTES {
                    extents.push(file.add(&piece)?);
                    piece.clear();
                }
            }
        }
        if !piece.is_empty() {
            extents.push(file.add(&piece)?);
        }
        let mut stored = lock(&self.partitions[partition]);
        stored.extents.append(&mut extents);
        stored.rows += rows.rows();
        // Long strings that belong to a table will be read back with their bytes.
        stored.bytes += rows.bytes() + long.saturating_sub(rows.heap_bytes());
        Ok(())
    }

    /// The file, which is created if there is none yet.
    fn file(&self) -> Result<&TempFile> {
        if self.file.get().is_none() {
            let _making = lock(&self.making);
            if self.file.get().is_none() {
                let _ = self.file.set(TempFile::new(&self.context)?);
            }
        }
        Ok(self.file.get().expect("just made"))
    }

    /// Reads rows that were stored.
    pub(crate) fn reader(&self, stored: &Stored) -> Reader<'_> {
        self.reader_of_few(stored, self.context.settings.chunk_rows)
    }

    /// Like [`Store::reader`], with chunks of at most `rows` rows.
    pub(crate) fn reader_of_few(&self, stored: &Stored, rows: usize) -> Reader<'_> {
        Reader {
            store: self,
            chunk_rows: rows.min(self.context.settings.chunk_rows),
            kept: stored.kept.clone().into_iter(),
            current: None,
            vectors: Vec::new(),
            extents: stored.extents.clone().into_iter(),
            blocks: None,
        }
    }
}

/// Reads the rows of one partition.
pub(crate) struct Reader<'a> {
    store: &'a Store,
    chunk_rows: usize,
    kept: std::vec::IntoIter<Kept>,
    /// The rows in memory that are being read, and how many of their first segment have been output.
    current: Option<(Kept, usize)>,
    vectors: Vec<Vector>,
    extents: std::vec::IntoIter<Extent>,
    /// Made for the first extent.
    blocks: Option<Blocks>,
}

impl Reader<'_> {
    /// Fills `chunk` with the next rows, all columns in one group; false at the end.
    ///
    /// # Errors
    /// I/O, corruption; interrupted.
    pub(crate) fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        self.store.context.check()?;
        if self.next_kept(chunk) {
            return Ok(true);
        }
        if self.extents.len() == 0 && self.blocks.is_none() {
            return Ok(false);
        }
        let format = self.store.format();
        let blocks = self.blocks.get_or_insert_with(|| Blocks::new(format, self.chunk_rows));
        while !blocks.next(format, chunk)? {
            let Some(extent) = self.extents.next() else { return Ok(false) };
            self.store.file()?.read(extent, blocks.next_piece())?;
        }
        Ok(true)
    }

    /// Like `next`, for rows in memory.
    fn next_kept(&mut self, chunk: &mut Chunk) -> bool {
        // Releases the vectors, so that they can be overwritten.
        chunk.reset(0);
        loop {
            let Some((kept, given)) = &mut self.current else {
                let Some(kept) = self.kept.next() else { return false };
                self.current = Some((kept, 0));
                continue;
            };
            let (rows, segment) = (&kept.rows.rows, kept.segments.start);
            if kept.segments.is_empty() {
                self.current = None;
                continue;
            }
            let count = self.chunk_rows.min(rows.segment_rows(segment) - *given);
            if count == 0 {
                (kept.segments.start, *given) = (segment + 1, 0);
                continue;
            }
            if self.vectors.is_empty() {
                self.vectors.extend(rows.columns().iter().map(|meta| Vector::new(meta.physical)));
            }
            chunk.reset(count);
            let group = chunk.push_group(Selection::ALL);
            for (column, vector) in self.vectors.iter_mut().enumerate() {
                rows.read(column, segment, *given, count, vector);
                chunk.push_column(vector.clone(), group);
            }
            *given += count;
            return true;
        }
    }
}
