//! Loads: rows that are appended to tables that are there, in such numbers that they go to the data file
//! before the commit, and not through the log ([`crate::table`] says when).
//!
//! ```text
//! append ──▶ pieces in extents ──▶ synced ──▶ the log refers to them ──▶ a checkpoint takes their blocks over
//!                └── no commit: free at once      └── a crash: read, hung, and claimed      └── or gives them back
//! ```
//! **Taking over.** A checkpoint encodes the blocks that it does not know to be in the file. Before it writes
//! one, it looks among the bytes that loads have written of the table ([`super::stored`]): by length and
//! checksum, and then in the file, byte by byte. If they are there, they stay where they are. So it does not
//! matter what became of the rows in between: whether they were hung as they were or laid out again, written
//! to since by a transaction or in ghost slots, or replayed behind a crash. What costs is the disk, and that
//! is saved; what is read again was just written, and is in the system's cache.
//!
//! From its commit on, a load belongs to the state behind the last checkpoint ([`super::images`]), and to
//! that of recovery ([`Checkpointed::loads`](super::record::Checkpointed)). The next checkpoint reaches some
//! of its extents, and gives up the others.

use super::extents::ExtentWriter;
use super::images::Images;
use super::pieces;
use super::stored::Load;
use crate::definition::ObjectId;
use crate::file::{DataFile, Extent};
use crate::sync::{AtomicBool, AtomicU64, Ordering};
use crate::table::{LoadStore, Loaded, StoredLoad};
use crate::tree::{Piece, Shape};
use crate::value::Sketch;
use entasis_vector::Result;
use std::sync::Arc;

/// Rows go to the data file if they take this part of a segment of the log, or more: a mebibyte of the usual
/// four. From there on a sync of the data file, and pages that are not filled, cost little beside bytes that
/// are not written twice. Tests that have small segments have small loads.
const SHARE_OF_SEGMENT: u64 = 4;

/// Where large loads of the tables of a database are written. Copies are the same.
#[derive(Debug, Clone)]
pub struct Loads(Arc<Store>);

#[derive(Debug)]
struct Store {
    file: Arc<DataFile>,
    images: Arc<Images>,
    /// Bytes from which on rows are written here.
    least: AtomicU64,
    /// Loads that have been written.
    written: AtomicU64,
    /// As many of these as were synced.
    synced: AtomicU64,
}

/// A load that was written. Unless it is committed, its extents are free when it is dropped.
#[derive(Debug)]
struct Written {
    store: Arc<Store>,
    load: Arc<Load>,
    rows: u64,
    /// How many loads had been written with it.
    number: u64,
    is_committed: AtomicBool,
}

impl Loads {
    /// Loads that are written to a file; `images` are told of those that were committed.
    pub fn new(file: &Arc<DataFile>, images: &Arc<Images>) -> Loads {
        let least = u64::from(file.header().segment_bytes) / SHARE_OF_SEGMENT;
        let (written, synced) = (AtomicU64::new(0), AtomicU64::new(0));
        let (file, images, least) = (file.clone(), images.clone(), AtomicU64::new(least));
        Loads(Arc::new(Store { file, images, least, written, synced }))
    }

    /// Says from how many bytes on rows go to the file; others go through the log.
    pub fn set_least(&self, bytes: u64) {
        self.0.least.store(bytes, Ordering::Relaxed);
    }

    /// From how many bytes on they do.
    #[cfg(test)]
    pub(super) fn least(&self) -> u64 {
        self.0.least.load(Ordering::Relaxed)
    }

    /// For the tables.
    pub(super) fn store(&self) -> Arc<dyn LoadStore> {
        Arc::new(self.clone())
    }
}

impl LoadStore for Loads {
    fn store(
        &self,
        (table, shape): (ObjectId, &Shape),
        (pieces, sketches): (&[Arc<Piece>], &[Vec<Sketch>]),
        look: &dyn Fn() -> Result<()>,
    ) -> Result<Option<Arc<dyn StoredLoad>>> {
        let Loads(store) = self;
        let bytes: usize = pieces.iter().map(|piece| piece.bytes() + piece.dictionary_bytes()).sum();
        if pieces.is_empty() || (bytes as u64) < store.least.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let mut all = vec![Sketch::default(); shape.schema.len()];
        sketches.iter().for_each(|own| all.iter_mut().zip(own).for_each(|(all, own)| all.merge(own)));
        let mut writer = ExtentWriter::ahead(&store.file);
        let written = pieces::write(&mut writer, shape, pieces, all, look)
            .and_then(|index| Ok((writer.put(&index.encode())?, index)));
        let (at, index) = match written {
            Ok(written) => written,
            Err(error) => {
                writer.abandon();
                return Err(error);
            }
        };
        let load = Arc::new(Load::new(table, at, &index.extents, index.places()));
        let rows = pieces.iter().map(|piece| piece.rows as u64).sum();
        let number = store.written.fetch_add(1, Ordering::AcqRel) + 1;
        let (store, is_committed) = (store.clone(), AtomicBool::new(false));
        Ok(Some(Arc::new(Written { store, load, rows, number, is_committed })))
    }
}

impl StoredLoad for Written {
    fn index(&self) -> Extent {
        self.load.index()
    }

    fn rows(&self) -> u64 {
        self.rows
    }

    fn read(&self, shape: &Shape) -> Result<Loaded> {
        Ok(read(&self.store.file, self.load.table(), shape, self.load.index())?.1)
    }

    fn sync(&self) -> Result<()> {
        let store = &self.store;
        if store.synced.load(Ordering::Acquire) < self.number {
            let upto = store.written.load(Ordering::Acquire);
            store.file.sync()?;
            store.synced.fetch_max(upto, Ordering::AcqRel);
        }
        Ok(())
    }

    fn commit(&self) {
        if !self.is_committed.swap(true, Ordering::AcqRel) {
            self.store.images.add_load(self.load.clone());
        }
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        if !self.is_committed.load(Ordering::Acquire) {
            self.load.extents().for_each(|extent| self.store.file.take_back(extent));
        }
    }
}

/// The load of a table of this shape whose index is in an extent, and its rows.
///
/// # Errors
/// I/O; corruption, with the place.
pub(super) fn read(file: &DataFile, table: ObjectId, shape: &Shape, index: Extent) -> Result<(Load, Loaded)> {
    let (found, pieces) = pieces::read(file, index, shape)?;
    let load = Load::new(table, index, &found.extents, found.places());
    Ok((load, Loaded { pieces, sketches: found.sketches }))
}
