//! Truncates the file to the size that it needs.
//!
//! A checkpoint writes new pages besides those that it replaces, so the file is longest when it ends. The
//! next one moves extents near the end to the freed pages, and the end of the file is cut off. Ordinarily
//! there is no next one if nothing has changed, so here it is made in any case.

use super::Durable;
use entasis_storage::Catalog;
use entasis_vector::Result;

/// The most checkpoints that are made, as long as each makes the file shorter.
const ROUNDS: usize = 4;

impl Durable {
    /// Writes the newest state to the file, and then shortens the file as long as possible.
    ///
    /// # Errors
    /// I/O.
    pub(in crate::shared) fn compact(&self, catalog: &Catalog) -> Result<()> {
        self.checkpoint(catalog)?;
        for _ in 0..ROUNDS {
            let (pages, _) = self.file.size();
            self.checkpoint_anyway(catalog)?;
            if self.file.size().0 >= pages {
                break;
            }
        }
        Ok(())
    }
}
