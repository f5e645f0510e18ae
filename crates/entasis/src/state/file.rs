//! Operations on the file of a database as a whole: verifying, backup, compaction.

use super::Shared;
use super::durable::{self, Watch};
use entasis_storage::file::Damage;
use entasis_vector::Result;
use std::path::Path;

impl Shared {
    /// The damage in the file, after everything committed before was written to it; that is not done if pages
    /// are misused, because it might write over what is in use. Empty for a database
    /// without a file, and for one opened read-only, which was verified when it was read. Calls `go_on` now
    /// and then with the share that is done.
    ///
    /// # Errors
    /// Those of `go_on`; I/O.
    pub(crate) fn damage(&self, go_on: &mut dyn FnMut(f64) -> Result<()>) -> Result<Vec<Damage>> {
        let Some(durable) = &self.durable else { return Ok(Vec::new()) };
        let mut found = durable.misused();
        if found.is_empty() {
            durable.checkpoint(&self.catalog)?;
        }
        let mut read = durable.damage(go_on)?;
        read.retain(|damage| !found.contains(damage));
        found.append(&mut read);
        Ok(found)
    }

    /// Writes the committed state to another file, which must not exist unless the backup `replaces` it.
    ///
    /// # Errors
    /// I/O; interrupted.
    pub(crate) fn backup(&self, path: &Path, replaces: bool, watch: Watch) -> Result<()> {
        durable::backup(&self.catalog, path, replaces, watch)
    }

    /// Writes everything committed to the file, and truncates the file to the size that it needs.
    ///
    /// # Errors
    /// Those of [`Shared::checkpoint`].
    pub(crate) fn compact(&self) -> Result<()> {
        self.durable.as_ref().map_or(Ok(()), |durable| durable.compact(&self.catalog))
    }
}
