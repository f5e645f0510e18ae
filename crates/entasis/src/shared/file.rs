//! What is done with the file of a database as a whole: checked, copied, cut to what it needs.

use super::Shared;
use super::durable::{self, Watch};
use entasis_storage::file::Damage;
use entasis_vector::Result;
use std::path::Path;

impl Shared {
    /// What is damaged in the file, which is given all that is committed before; nothing without one, and of
    /// one that is only read, which was checked as it was read. `go_on`
    /// is asked now and then with the share that is done.
    ///
    /// # Errors
    /// What `go_on` says; I/O.
    pub(crate) fn damage(&self, go_on: &mut dyn FnMut(f64) -> Result<()>) -> Result<Vec<Damage>> {
        let Some(durable) = &self.durable else { return Ok(Vec::new()) };
        self.checkpoint()?;
        durable.damage(go_on)
    }

    /// Writes what is committed to another file, which must not be there unless the backup `replaces` it.
    ///
    /// # Errors
    /// I/O; interrupted.
    pub(crate) fn backup(&self, path: &Path, replaces: bool, watch: Watch) -> Result<()> {
        durable::backup(&self.catalog, path, replaces, watch)
    }

    /// Brings all that is committed to the file, and cuts the file to what it needs.
    ///
    /// # Errors
    /// As [`Shared::checkpoint`].
    pub(crate) fn compact(&self) -> Result<()> {
        self.durable.as_ref().map_or(Ok(()), |durable| durable.compact(&self.catalog))
    }
}
