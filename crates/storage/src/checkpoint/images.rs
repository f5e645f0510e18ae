//! Images and loads: what commits have written to the file, and no checkpoint knows of yet.
//!
//! - An **image** is a table that a commit creates (`CREATE TABLE AS`, `CREATE INDEX`, an `ALTER TABLE` that
//!   rewrites): it is written to extents, as a checkpoint would write it, before the commit; the log record
//!   refers to these extents ([`super::ddl_records`]). The next checkpoint takes over what has not changed
//!   since.
//! - A **load** is rows that a commit appends to a table that is there ([`super::loads`]). The next
//!   checkpoint takes over the blocks that it would write alike.
//!
//! So the rows go to the disk once. The next checkpoint learns of the extents here, and gives back those that
//! it does not take over: all of them if the table has been dropped.

use super::record::{Checkpointed, Image};
use super::stored::Load;
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering, PoisonError};
use std::sync::Arc;

/// The images and loads that no checkpoint has taken over yet.
#[derive(Debug, Default)]
pub struct Images {
    images: Mutex<Vec<Image>>,
    loads: Mutex<Vec<Arc<Load>>>,
    /// Bytes of the loads.
    load_bytes: AtomicU64,
}

impl Images {
    /// None, behind a recovery.
    pub fn behind(written: &Checkpointed) -> Images {
        let bytes = written.loads.iter().map(|load| load.bytes()).sum();
        Images { load_bytes: AtomicU64::new(bytes), ..Images::default() }
    }

    /// Adds an image that the log refers to. Called at the moment of its commit, under the lock of the names.
    pub(super) fn add(&self, image: Image) {
        lock(&self.images).push(image);
    }

    /// Adds a load that the log refers to. Called at the moment of its commit, under the lock of the head.
    pub(super) fn add_load(&self, load: Arc<Load>) {
        self.load_bytes.fetch_add(load.bytes(), Ordering::Relaxed);
        lock(&self.loads).push(load);
    }

    /// Takes all of them, for a checkpoint of this moment. Called under the locks of the names and all heads,
    /// before the position of the log is taken: so none is taken that the log behind it still refers to.
    pub(super) fn take(&self) -> (Vec<Image>, Vec<Arc<Load>>) {
        self.load_bytes.store(0, Ordering::Relaxed);
        (std::mem::take(&mut lock(&self.images)), std::mem::take(&mut lock(&self.loads)))
    }

    /// Bytes of the loads that whoever opens the database now would read beside its log.
    pub fn load_bytes(&self) -> u64 {
        self.load_bytes.load(Ordering::Relaxed)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
