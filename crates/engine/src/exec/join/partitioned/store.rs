//! The partitions of one side of a join that are in a temporary file.

use crate::exec::QueryContext;
use crate::exec::materialized::Materialized;
use crate::exec::spill::file::{Extent, TempFile};
use crate::exec::spill::rows::{Blocks, RowFormat};
use crate::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{Chunk, Result};
use std::sync::Arc;

/// Bytes from which on blocks become a piece of the file.
const PIECE_BYTES: usize = 512 << 10;

/// Rows in a file, by partition. All partitions share the file, which is made when the first rows are written.
pub(crate) struct Store {
    columns: Vec<ColumnMeta>,
    /// Made when it is needed: most joins write nothing.
    format: OnceLock<Arc<RowFormat>>,
    file: OnceLock<TempFile>,
    /// Held while the file is made.
    making: Mutex<()>,
    partitions: Vec<Mutex<Stored>>,
    context: QueryContext,
}

/// The rows of one partition.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stored {
    extents: Vec<Extent>,
    /// How many there are.
    pub rows: usize,
    /// The memory that they will need.
    pub bytes: usize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Store {
    /// No rows yet, of so many partitions and with these columns.
    pub(crate) fn new(columns: &[ColumnMeta], partitions: usize, context: &QueryContext) -> Arc<Store> {
        Store::of(columns, OnceLock::new(), partitions, context)
    }

    /// The same for rows like these.
    pub(crate) fn like(&self, partitions: usize) -> Arc<Store> {
        let format = OnceLock::from(self.format().clone());
        Store::of(&self.columns, format, partitions, &self.context)
    }

    fn of(
        columns: &[ColumnMeta],
        format: OnceLock<Arc<RowFormat>>,
        partitions: usize,
        context: &QueryContext,
    ) -> Arc<Store> {
        Arc::new(Store {
            columns: columns.to_vec(),
            format,
            file: OnceLock::new(),
            making: Mutex::new(()),
            partitions: (0..partitions).map(|_| Mutex::default()).collect(),
            context: context.clone(),
        })
    }

    /// The columns of the rows.
    pub(crate) fn columns(&self) -> &[ColumnMeta] {
        &self.columns
    }
    /// Number of partitions.
    pub(crate) fn partitions(&self) -> usize {
        self.partitions.len()
    }
    fn format(&self) -> &Arc<RowFormat> {
        self.format.get_or_init(|| Arc::new(RowFormat::new(&self.columns)))
    }
    /// What has been written of a partition.
    pub(crate) fn stored(&self, partition: usize) -> Stored {
        lock(&self.partitions[partition]).clone()
    }
    /// Rows of a partition.
    pub(crate) fn rows(&self, partition: usize) -> usize {
        lock(&self.partitions[partition]).rows
    }
    /// Bytes written and bytes read.
    pub(crate) fn traffic(&self) -> (u64, u64) {
        self.file.get().map_or((0, 0), TempFile::traffic)
    }

    /// Adds `rows` to a partition.
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
        // Long strings that belong to a table come back with their bytes.
        stored.bytes += rows.bytes() + long.saturating_sub(rows.heap_bytes());
        Ok(())
    }

    /// The file, which is made if there is none yet.
    fn file(&self) -> Result<&TempFile> {
        if self.file.get().is_none() {
            let _making = lock(&self.making);
            if self.file.get().is_none() {
                let _ = self.file.set(TempFile::new(&self.context)?);
            }
        }
        Ok(self.file.get().expect("just made"))
    }

    /// Reads rows that were written.
    pub(crate) fn reader(&self, stored: &Stored) -> Reader<'_> {
        self.reader_of_few(stored, self.context.settings.chunk_rows)
    }

    /// The same in chunks of at most `rows`.
    pub(crate) fn reader_of_few(&self, stored: &Stored, rows: usize) -> Reader<'_> {
        let blocks = Blocks::new(self.format(), rows.min(self.context.settings.chunk_rows));
        Reader { store: self, extents: stored.extents.clone().into_iter(), blocks }
    }
}

/// Rows of one partition on their way back.
pub(crate) struct Reader<'a> {
    store: &'a Store,
    extents: std::vec::IntoIter<Extent>,
    blocks: Blocks,
}

impl Reader<'_> {
    /// Fills `chunk` with the next rows, all columns in one group; false at the end.
    ///
    /// # Errors
    /// I/O, corruption; interrupted.
    pub(crate) fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        self.store.context.check()?;
        while !self.blocks.next(self.store.format(), chunk)? {
            let Some(extent) = self.extents.next() else { return Ok(false) };
            self.store.file()?.read(extent, self.blocks.next_piece())?;
        }
        Ok(true)
    }
}
