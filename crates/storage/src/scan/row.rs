//! One row: its values, one after the other.

use crate::tree::{Root, RowId};
use crate::value::Datum;
use entasis_vector::{DataType, Schema};

/// One value of a version.
pub(crate) fn datum(root: &Root, id: RowId, column: usize, ty: DataType) -> Datum<'_> {
    let group = &*root.groups[id.group as usize];
    let slot = id.slot as usize;
    group.slices[slot / group.block_slots].block(column).datum(slot % group.block_slots, ty.physical())
}

/// Some values of a row, in the order of `columns`, at the end of `out`.
pub(crate) fn read<'a>(
    root: &'a Root,
    id: RowId,
    columns: &[usize],
    schema: &Schema,
    out: &mut Vec<Datum<'a>>,
) {
    let group = &*root.groups[id.group as usize];
    let (slice, slot) =
        (&*group.slices[id.slot as usize / group.block_slots], id.slot as usize % group.block_slots);
    columns.iter().for_each(|&column| slice.prefetch(column, slot));
    out.extend(columns.iter().map(|&column| slice.block(column).datum(slot, schema[column].ty.physical())));
}
