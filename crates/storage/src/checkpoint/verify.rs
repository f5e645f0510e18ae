//! Whether what the last checkpoint wrote is still in the file.

use super::record::Checkpointed;
use crate::file::Extent;

impl Checkpointed {
    /// The extents that the state reaches, but for the map of free space, by their places:
    /// for [`crate::file::DataFile::damage`].
    pub fn reached(&self) -> Vec<Extent> {
        self.extents().into_values().collect()
    }
}
