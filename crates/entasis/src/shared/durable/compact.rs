//! A file that is cut to what it needs.
//!
//! A checkpoint writes beside what it replaces, so the file is longest when it ends. The next one moves what
//! stands far behind to the pages that came free, and the end of the file is cut off; unless nothing has
//! changed, when there is none. So it is made in any case.

use super::Durable;
use entasis_storage::Catalog;
use entasis_vector::Result;

/// Checkpoints that are made at most, each of which makes the file shorter.
const ROUNDS: usize = 4;

impl Durable {
    /// Makes the newest state that of the file, and then makes the file shorter as long as that helps.
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
