//! A copy of a row, on its way from one slot to another.

use crate::scan::row::datum;
use crate::tree::{Root, RowId};
use crate::value::Datum;
use entasis_vector::{Schema, StringHeap, StringView};

/// A row that owns its values.
#[derive(Default)]
pub(crate) struct OwnedRow {
    values: Vec<OwnedDatum>,
    heap: StringHeap,
}

enum OwnedDatum {
    Plain(Datum<'static>),
    Bytes(StringView),
}

impl OwnedRow {
    /// Takes a copy of a row.
    pub(crate) fn take(&mut self, root: &Root, id: RowId, schema: &Schema) {
        self.values.clear();
        self.heap.clear();
        let (group, slot) = (&*root.groups[id.group as usize], id.slot as usize);
        let slice = &*group.slices[slot / group.block_slots];
        (0..schema.len()).for_each(|column| slice.prefetch(column, slot % group.block_slots));
        for (column, field) in schema.iter().enumerate() {
            self.values.push(match datum(root, id, column, field.ty) {
                Datum::Bytes(bytes) => OwnedDatum::Bytes(self.heap.push(bytes)),
                Datum::Null => OwnedDatum::Plain(Datum::Null),
                Datum::Integer(v) => OwnedDatum::Plain(Datum::Integer(v)),
                Datum::Float(v) => OwnedDatum::Plain(Datum::Float(v)),
                Datum::Interval(v) => OwnedDatum::Plain(Datum::Interval(v)),
            });
        }
    }

    /// Calls `with` with the row.
    pub(crate) fn with<R>(&self, with: impl FnOnce(&[Datum<'_>]) -> R) -> R {
        let datums: Vec<Datum<'_>> = self
            .values
            .iter()
            .map(|value| match value {
                OwnedDatum::Plain(datum) => *datum,
                OwnedDatum::Bytes(view) => Datum::Bytes(view.as_bytes()),
            })
            .collect();
        with(&datums)
    }
}
