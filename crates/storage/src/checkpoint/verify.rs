//! For checking the file: what the last checkpoint wrote.

use super::record::Checkpointed;
use crate::file::Extent;

impl Checkpointed {
    /// The extents of the state, and behind a recovery those of the log, but for that of the map of free
    /// space: for [`crate::file::DataFile::damage`] and [`crate::file::DataFile::misused`].
    pub fn reached(&self) -> Vec<Extent> {
        self.extents().into_values().collect()
    }
}
