//! Images: tables whose rows were written to the file by the commit that created them, not by a checkpoint.
//!
//! A table that a commit creates (`CREATE TABLE AS`, `CREATE INDEX`, an `ALTER TABLE` that rewrites) is
//! written to extents, as a checkpoint would write it, before the commit; the log record refers to these
//! extents ([`super::names`]). So the rows go to the disk once. The next checkpoint learns of the extents
//! here: it takes over what has not changed since, or gives them back if the table has been dropped.

use super::record::Image;
use crate::sync::{Mutex, PoisonError};

/// The images that no checkpoint has taken over yet.
#[derive(Debug, Default)]
pub struct Images(Mutex<Vec<Image>>);

impl Images {
    /// Adds an image that the log refers to. Called at the moment of its commit, under the lock of the names.
    pub(super) fn add(&self, image: Image) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(image);
    }

    /// Takes all images, for a checkpoint of this moment. Called under the lock of the names.
    pub(super) fn take(&self) -> Vec<Image> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
