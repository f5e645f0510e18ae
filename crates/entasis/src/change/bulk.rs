//! `UPDATE` and `DELETE` of rows that nothing else must hear of, block by block.
//!
//! That is so if what changes is in no key, index or foreign key, and if the rows come in the order of their places: so a
//! scan gives them, and so none comes twice. [`super::apply`] does the same for all others, row by row.

use super::{constraints, foreign};
use crate::rows::Rows;
use crate::work::Work;
use entasis_sql::{Action, Change};
use entasis_storage::index::index_columns;
use entasis_storage::{RowId, TableEntry};
use entasis_vector::{Chunk, Encoding, Result};
use std::sync::Arc;

/// Changes the rows that the plan of `change` gave. How many they are; `None`, and nothing is done, if they must be looked at
/// one by one.
///
/// # Errors
/// Constraint, for a NULL in a column that is declared `NOT NULL`.
pub(crate) fn apply(work: &mut Work, entry: &Arc<TableEntry>, change: &Change, found: &Rows) -> Result<Option<u64>> {
    let options = entry.table.options();
    let is_set = |column: &usize| change.columns.contains(column);
    let watched = || {
        let keys = entry.definition.keys.iter().map(|key| index_columns(key, options));
        keys.chain(foreign::columns(work, entry)).flatten()
    };
    let is_alone = match change.action {
        Action::Update => !watched().any(|column| is_set(&column)) && !options.layout_key.iter().any(is_set),
        Action::Delete => entry.indexes.iter().all(Option::is_none) && !foreign::is_referred_to(work, entry),
        Action::ByRow => false,
    };
    if !is_alone || change.returning.is_some() || !is_in_order(found.chunks()) {
        return Ok(None);
    }
    // The row id comes first.
    let columns: Vec<(usize, usize)> = change.columns.iter().copied().zip(1..).collect();
    for chunk in found.chunks() {
        for &(column, source) in &columns {
            constraints::judge_nulls(entry, column, chunk, source)?;
        }
    }
    let mut writer = work.write(entry, &entry.table);
    let mut ids: Vec<RowId> = Vec::new();
    if change.action == Action::Delete {
        // All at once, so that no row group is tidied before its last row has gone.
        ids.extend(found.chunks().iter().flat_map(row_ids));
        writer.delete_many(&ids);
    } else {
        for chunk in found.chunks() {
            ids.clear();
            ids.extend(row_ids(chunk));
            writer.update_chunk(&ids, &columns, chunk);
        }
    }
    Ok(Some(found.rows()))
}

/// The ids of the rows of a chunk of a result, which is dense.
fn row_ids(chunk: &Chunk) -> impl Iterator<Item = RowId> {
    let vector = chunk.vector(0);
    assert!(vector.encoding() == Encoding::Flat && chunk.positions(0).is_none(), "results are dense");
    vector.values::<u64>()[..chunk.len()].iter().map(|&id| RowId::from_u64(id))
}

fn is_in_order(chunks: &[Chunk]) -> bool {
    let mut last = None;
    chunks.iter().flat_map(row_ids).all(|id| last.replace(id).is_none_or(|last| last < id))
}
