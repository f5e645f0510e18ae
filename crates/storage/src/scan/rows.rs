//! All rows of a version, some columns of each, decoded block by block: for changes that look for so many
//! rows that one pass over all of them takes less time than a search for each.

use crate::tree::{Root, RowId};
use crate::value::Datum;
use entasis_vector::{CHUNK_ROWS, Result, Schema, Vector};

/// Calls `each` with the id of every row, in the order of their places, and its values of `columns`.
///
/// # Errors
/// The first of `each`.
pub(crate) fn each(
    root: &Root,
    columns: &[usize],
    schema: &Schema,
    mut each: impl FnMut(RowId, &[Datum<'_>]) -> Result<()>,
) -> Result<()> {
    let mut vectors: Vec<Vector> =
        columns.iter().map(|&column| Vector::new(schema[column].ty.physical())).collect();
    let mut positions: Vec<u16> = Vec::new();
    for (number, group) in root.groups.iter().enumerate() {
        for first in (0..group.slots()).step_by(CHUNK_ROWS) {
            let slots = CHUNK_ROWS.min(group.slots() - first);
            positions.clear();
            group.each_live(first..first + slots, |position| positions.push(position as u16));
            if positions.is_empty() {
                continue;
            }
            for (&column, vector) in columns.iter().zip(&mut vectors) {
                group.decode_selected(column, first, &positions, slots, vector);
            }
            let mut datums: Vec<Datum<'_>> = Vec::with_capacity(columns.len());
            for &position in &positions {
                datums.clear();
                datums.extend(vectors.iter().map(|vector| Datum::of_vector(vector, position as usize)));
                each(RowId { group: number as u32, slot: (first + position as usize) as u32 }, &datums)?;
            }
        }
    }
    Ok(())
}
