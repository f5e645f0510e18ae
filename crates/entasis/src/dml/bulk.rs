//! `UPDATE` and `DELETE` block by block, of rows on which nothing else depends.
//!
//! This requires that no index and no foreign key has a changed column, and that rows come in the order in
//! which they are stored, as from a scan, so that none comes twice. [`super::apply`] changes all other rows,
//! one by one.
//!
//! Rows whose layout key changes move: they are deleted and inserted again.

use super::foreign;
use super::insert::judge_key;
use crate::constraints::row::judge_nulls;
use crate::transaction::TransactionContext;
use crate::values::rows::Rows;
use entasis_sql::{Action, Change};
use entasis_storage::index::index_columns;
use entasis_storage::{AppendedRows, RowId, TableEntry, TableSnapshot};
use entasis_vector::statement::{self, Growth};
use entasis_vector::{CHUNK_ROWS, Chunk, Encoding, Result, Selection, Vector};
use std::sync::Arc;

/// Chunks that are changed between two checks for an interrupt.
const CHUNKS: usize = 16;
/// The least number of moving rows for which this is worthwhile.
const MANY: u64 = 4096;

/// Changes the rows that the plan of `change` returned, and returns their number. If they must be changed one
/// by one, does nothing and returns `None`.
///
/// # Errors
/// Constraint, for a NULL in a column that is declared `NOT NULL`.
pub(crate) fn apply(
    transaction: &mut TransactionContext,
    entry: &Arc<TableEntry>,
    change: &Change,
    found: &Rows,
) -> Result<Option<u64>> {
    let options = entry.table.options();
    let is_set = |column: &usize| change.columns.contains(column);
    let has_indexes = entry.indexes.iter().any(Option::is_some);
    let moves = options.layout.is_keyed() && options.layout_key.iter().any(is_set);
    let is_watched = || {
        let keys = entry.definition.keys.iter().zip(&entry.indexes).filter(|(_, index)| index.is_some());
        let keys = keys.map(|(key, _)| index_columns(key, options));
        keys.chain(foreign::columns(transaction, entry)).flatten().any(|column| is_set(&column))
    };
    let is_alone = match change.action {
        Action::Update => !is_watched(),
        Action::Delete => !has_indexes && !foreign::is_referred_to(transaction, entry),
        Action::ByRow => false,
    };
    // Few moving rows are changed in place.
    let is_worth_it = !moves || found.rows() >= MANY;
    if !is_alone || !is_worth_it || change.returning.is_some() || !is_in_order(found.chunks()) {
        return Ok(None);
    }
    // Column 0 is the row id.
    let columns: Vec<(usize, usize)> = change.columns.iter().copied().zip(1..).collect();
    for chunk in found.chunks() {
        for &(column, source) in &columns {
            judge_nulls(entry, column, chunk, source)?;
        }
    }
    if moves {
        let rows = moved_rows(&transaction.snapshot(&entry.table), &columns, found.chunks())?;
        delete(transaction, entry, found.chunks())?;
        transaction.append(entry, &entry.table, vec![rows])?;
        let interrupt = transaction.interrupt();
        // The table itself may serve as the index of several keys.
        for number in (0..entry.indexes.len()).filter(|&number| entry.indexes[number].is_none()) {
            judge_key(entry, number, &transaction.write(entry, &entry.table), None, &interrupt)?;
        }
    } else if change.action == Action::Delete {
        delete(transaction, entry, found.chunks())?;
    } else {
        let mut ids: Vec<RowId> = Vec::new();
        for chunks in found.chunks().chunks(CHUNKS) {
            let mut writer = transaction.write(entry, &entry.table);
            for chunk in chunks {
                ids.clear();
                ids.extend(row_ids(chunk));
                writer.update_chunk(&ids, &columns, chunk);
            }
            drop(writer);
            transaction.go_on()?;
        }
    }
    Ok(Some(found.rows()))
}

/// Removes rows: all at once, so that no row group is compacted before its last row is removed.
fn delete(transaction: &mut TransactionContext, entry: &Arc<TableEntry>, chunks: &[Chunk]) -> Result<()> {
    let interrupt = transaction.interrupt();
    let mut writer = transaction.write(entry, &entry.table);
    let mut ids: Vec<RowId> = Vec::new();
    for chunks in chunks.chunks(CHUNKS) {
        ids.clear();
        ids.extend(chunks.iter().flat_map(row_ids));
        writer.delete_many(&ids);
        interrupt.look()?;
    }
    Ok(())
}

/// The new rows: `columns` of the table have the values of the chunks, the others keep theirs.
fn moved_rows(rows: &TableSnapshot, columns: &[(usize, usize)], chunks: &[Chunk]) -> Result<AppendedRows> {
    let mut appender = rows.table().appender();
    let (mut to, mut growth) = (Chunk::new(), Growth::default());
    let mut morsel = 0;
    let (mut positions, mut numbers): (Vec<u16>, Vec<u16>) = (Vec::new(), Vec::new());
    for chunk in chunks {
        statement::check()?;
        growth.reach(appender.bytes())?;
        let ids: Vec<RowId> = row_ids(chunk).collect();
        let window = |id: &RowId| (id.group, id.slot as usize / CHUNK_ROWS);
        let mut done = 0;
        for ids in ids.chunk_by(|a, b| window(a) == window(b)) {
            let group = rows.row_group(ids[0].group as usize).expect("there are rows of it");
            let first = window(&ids[0]).1 * CHUNK_ROWS;
            let count = CHUNK_ROWS.min(group.slots() - first);
            positions.clear();
            positions.extend(ids.iter().map(|id| (id.slot as usize - first) as u16));
            numbers.clear();
            numbers.extend(done..done + ids.len() as u16);
            done += ids.len() as u16;
            to.reset(ids.len());
            let (old, new) = (Selection::from_indices(&positions), Selection::from_indices(&numbers));
            let (old, new) = (to.push_group(old), to.push_group(new));
            for (column, field) in rows.schema().iter().enumerate() {
                match columns.iter().find(|(set, _)| *set == column) {
                    Some((_, source)) => to.push_column(chunk.vector(*source).clone(), new),
                    None => {
                        let mut vector = Vector::new(field.ty.physical());
                        group.decode_selected(column, first, &positions, count, &mut vector);
                        to.push_column(vector, old);
                    }
                }
            }
            appender.append(&to, morsel)?;
            to.reset(0);
            morsel += 1;
        }
    }
    Ok(appender.finish())
}

/// The ids of the rows of a chunk of a result, which is dense.
fn row_ids(chunk: &Chunk) -> impl Iterator<Item = RowId> {
    packed_ids(chunk).iter().map(|&id| RowId::from_u64(id))
}

/// The same ids as packed integers.
fn packed_ids(chunk: &Chunk) -> &[u64] {
    let vector = chunk.vector(0);
    assert!(vector.encoding() == Encoding::Flat && chunk.positions(0).is_none(), "results are dense");
    &vector.values::<u64>()[..chunk.len()]
}

fn is_in_order(chunks: &[Chunk]) -> bool {
    let ids = || chunks.iter().map(packed_ids).filter(|ids| !ids.is_empty());
    let within = ids().all(|ids| ids.is_sorted_by(|a, b| a < b));
    within && ids().zip(ids().skip(1)).all(|(before, after)| before[before.len() - 1] < after[0])
}
