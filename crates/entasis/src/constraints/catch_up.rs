//! Indexes that are built while others write to the table.
//!
//! 1. The index is built from a version of the table, by all workers and without any lock
//!    ([`crate::ddl`]).
//! 2. When the statement or its transaction commits, the table has newer versions. Two versions differ in a
//!    few slices ([`TableSnapshot::difference`]); the index catches up by the rows of these, then by those
//!    that changed meanwhile, and so on.
//! 3. The last catch-up is done while holding the write lock; then index and names are published.
//!
//! So writers wait only for a moment, and not for the build. A transaction that has written to the table
//! itself cannot catch up, because its own rows are in no version that others share: it conflicts with any
//! transaction that committed first, as usual.

use super::keys::{KeyChange, change_index, judge_added};
use crate::state::interrupt::Interrupt;
use entasis_storage::index::{index_columns, index_type};
use entasis_storage::{RowId, TableEntry, TableSnapshot};
use entasis_vector::{DataType, Result, Value};
use std::sync::Arc;

/// Indexes of a table that are not published yet.
pub(crate) struct CatchUp {
    /// The table with its indexes.
    pub(crate) entry: Arc<TableEntry>,
    /// The keys whose indexes are new.
    pub(crate) new: Vec<usize>,
    /// The version of the table from which they were built, or with which they have caught up.
    pub(crate) seen: TableSnapshot,
}

impl CatchUp {
    /// Updates the indexes to `newest`, a version of the table. Returns how many rows differed.
    ///
    /// # Errors
    /// Constraint, if two rows have the same key by now; interrupted.
    pub(crate) fn catch_up(&mut self, newest: TableSnapshot, interrupt: &mut Interrupt) -> Result<usize> {
        let difference = self.seen.difference(&newest);
        let entry = &self.entry;
        for &number in &self.new {
            let Some(index) = &entry.indexes[number] else { continue };
            let key = &entry.definition.keys[number];
            let columns = index_columns(key, entry.table.options());
            let removed = values(&self.seen, &difference.gone, &columns, interrupt)?;
            let added = values(&newest, &difference.came, &columns, interrupt)?;
            let change = KeyChange { columns, removed, added, ..KeyChange::default() };
            let mut writer = index.write_unknown();
            change_index(&mut writer, entry, number, &change, interrupt)?;
            judge_added(&writer, entry, number, &change, interrupt)?;
        }
        self.seen = newest;
        Ok(difference.gone.len() + difference.came.len())
    }
}

/// The values of some columns of an index of some rows.
fn values(
    rows: &TableSnapshot,
    ids: &[RowId],
    columns: &[usize],
    interrupt: &mut Interrupt,
) -> Result<Vec<Vec<Value>>> {
    let types: Vec<DataType> = columns.iter().map(|&column| index_type(column, rows.schema())).collect();
    let mut all = Vec::with_capacity(ids.len());
    let mut datums = Vec::with_capacity(columns.len());
    for &id in ids {
        interrupt.look_now_and_then()?;
        datums.clear();
        rows.read_indexed(id, columns, &mut datums);
        all.push(datums.iter().zip(&types).map(|(datum, &ty)| datum.value(ty)).collect());
    }
    Ok(all)
}
