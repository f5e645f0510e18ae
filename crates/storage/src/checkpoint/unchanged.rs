//! Whether a moment is what the file has already, so that there is nothing to write.

use super::moment::Moment;
use super::objects;
use super::record::{Checkpointed, Known};
use crate::file::DataFile;
use entasis_vector::Result;

impl Checkpointed {
    /// True if the file's newest state, which this is of, is that of `moment`.
    ///
    /// # Errors
    /// I/O; corruption, with the place.
    pub fn is_of(&self, file: &DataFile, moment: &Moment) -> Result<bool> {
        let are_tables_unchanged = self.tables.len() == moment.tables.len()
            && moment.tables.iter().all(|(snapshot, _)| {
                let last = self.tables.get(&snapshot.table().object()).map(|table| &**table);
                Known::new(last, snapshot).table(snapshot).is_some()
            });
        let [catalog, _] = self.roots;
        Ok(are_tables_unchanged && catalog.bytes > 0 && file.read(catalog)? == objects::encode(&moment.names))
    }
}
