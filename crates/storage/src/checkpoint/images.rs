//! Images: tables that were written to the file when they got their names, and not by a checkpoint.
//!
//! A table that a commit makes (CREATE TABLE AS, CREATE INDEX, an ALTER TABLE that rewrites) is written to
//! extents as a checkpoint writes it, before the commit, and the log refers to these ([`super::names`]). So
//! its rows go to the disk once. The next checkpoint is told here that they are there: it takes over what has
//! not changed since, or gives the extents up if the table is gone again.

use super::record::Image;
use crate::sync::{Mutex, PoisonError};

/// Those that no checkpoint knows yet. See the module.
#[derive(Debug, Default)]
pub struct Images(Mutex<Vec<Image>>);

impl Images {
    /// Says that the log refers to one: under the lock of the names, at the moment of its commit.
    pub(super) fn add(&self, image: Image) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(image);
    }

    /// All that the log refers to, for a checkpoint that is of this moment: under the lock of the names.
    pub(super) fn take(&self) -> Vec<Image> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
