//! Tables made of others in another layout: all rows are encoded again, row group by row group, so that the
//! caller may share the work out among threads ([`TableSnapshot::encode_group`]). Tables with other columns
//! are made in [`super::successor`].
//!
//! The caller who replaces the old table holds its write lock meanwhile ([`crate::Transaction::alone`]),
//! and publishes the new table under its name ([`crate::Catalog::publish`]). Transactions that wrote to the
//! old one before will then conflict. Its readers go on.

use super::appender::AppendedRows;
use super::head::Table;
use super::snapshot::TableSnapshot;
use crate::definition::TableOptions;
use entasis_vector::{CHUNK_ROWS, Chunk, Result, Selection, Vector};
use std::sync::Arc;

impl TableSnapshot {
    /// A new table with the same name, columns and rows in another layout.
    ///
    /// # Errors
    /// Resource, if 1024 adjacent strings exceed 4 GiB.
    pub fn relaid(&self, options: TableOptions) -> Result<Arc<Table>> {
        let table = Table::with_options(self.name(), self.schema().clone(), options);
        let groups = 0..self.row_groups().len();
        let appended = groups.map(|group| self.encode_group(group, &table)).collect::<Result<Vec<_>>>()?;
        table.commit(appended)?;
        Ok(table)
    }

    /// The rows of a row group, encoded to be added to `target`, which has the same columns. Several threads
    /// may do so for different row groups; added together, rows keep their order as far as the layout does.
    ///
    /// # Errors
    /// Resource, if 1024 adjacent strings exceed 4 GiB.
    pub fn encode_group(&self, group: usize, target: &Arc<Table>) -> Result<AppendedRows> {
        let mut appender = target.appender();
        let node = self.row_group(group).expect("there is such a row group");
        let mut positions: Vec<u16> = Vec::with_capacity(CHUNK_ROWS);
        let mut chunk = Chunk::new();
        for first in (0..node.slots()).step_by(CHUNK_ROWS) {
            let window = (node.slots() - first).min(CHUNK_ROWS);
            positions.clear();
            node.each_live(first..first + window, |position| positions.push(position as u16));
            chunk.reset(positions.len());
            let selected = chunk.push_group(Selection::from_indices(&positions));
            for (column, field) in self.schema().iter().enumerate() {
                let mut vector = Vector::new(field.ty.physical());
                node.decode(column, first, window, &mut vector);
                chunk.push_column(vector, selected);
            }
            if !positions.is_empty() {
                appender.append(&chunk, group as u64)?;
            }
        }
        Ok(appender.finish())
    }
}
