//! Logical operations: what was done to rows, wherever they are stored. A fork is replayed by them.
//!
//! A row that was there before is identified by its values, and by its row number in a table without a layout
//! key ([`OldRow`]). When the fork is replayed, the row may have moved, but must have the same values.
//!
//! A log counts its bytes as it grows, so that they can be charged to the memory limit with the rows of the
//! fork: a row that is changed again and again takes one row of the table, and all of its values in the log.

use super::loads::{Pieces, StoredLoad};
use super::logged::Recorded;
use super::snapshot::TableSnapshot;
use crate::block::Block;
use crate::record::{Recorder, RowName, Wording, gather, names_of};
use crate::scan::row::datum;
use crate::tree::{Piece, Root, RowId, Run, Shape};
use crate::value::{Datum, Sketch};
use entasis_vector::{Field, Value};
use std::sync::Arc;

/// Bytes of a shared text besides its own: its counts, and what the allocator adds.
const HEAD: usize = 32;
/// The most rows in one redo record.
const RECORD_ROWS: usize = 1 << 14;

/// Operations in the order in which they were done.
#[derive(Debug, Default)]
pub(crate) struct Log {
    operations: Vec<Operation>,
    /// About how many bytes they take, besides their own size.
    held: usize,
}

impl Log {
    /// Adds an operation.
    pub(crate) fn push(&mut self, operation: Operation) {
        self.held += operation.held();
        self.operations.push(operation);
    }

    /// The number of operations.
    pub(crate) fn len(&self) -> usize {
        self.operations.len()
    }

    /// About how many bytes of memory it takes.
    fn bytes(&self) -> usize {
        self.operations.capacity() * size_of::<Operation>() + self.held
    }

    fn truncate(&mut self, len: usize) {
        self.held -=
            self.operations.drain(len.min(self.operations.len())..).map(|old| old.held()).sum::<usize>();
    }

    /// The operations.
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Operation> {
        self.operations.iter()
    }
}

/// What a writer's changes leave for later.
#[derive(Debug, Default)]
pub(crate) enum Trace {
    /// Nothing, because nobody else can commit before it, and the table is not logged.
    #[default]
    Nothing,
    /// The operations by which it is replayed, if others commit before it.
    Operations(Log),
    /// Redo records of a logged table, where nobody else can commit before it.
    Records(Recorded),
}

impl Trace {
    /// Its present length.
    pub(crate) fn len(&self) -> usize {
        match self {
            Trace::Nothing => 0,
            Trace::Operations(log) => log.len(),
            Trace::Records(records) => records.len(),
        }
    }

    /// About how many bytes of memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Trace::Nothing => 0,
            Trace::Operations(log) => log.bytes(),
            Trace::Records(records) => records.capacity(),
        }
    }

    /// Removes what was added beyond a length.
    pub(crate) fn truncate(&mut self, len: usize) {
        match self {
            Trace::Nothing => {}
            Trace::Operations(log) => log.truncate(len),
            Trace::Records(records) => records.truncate(len),
        }
    }

    /// The redo records, if these are kept.
    pub(crate) fn records(&mut self) -> Option<&mut Recorded> {
        match self {
            Trace::Records(records) => Some(records),
            _ => None,
        }
    }

    /// The operations, if these are kept.
    pub(crate) fn operations(&mut self) -> Option<&mut Log> {
        match self {
            Trace::Operations(log) => Some(log),
            _ => None,
        }
    }
}

/// One change of a table.
#[derive(Debug)]
pub(crate) enum Operation {
    /// A row was added.
    Insert {
        /// Its number, in a table without a layout key.
        number: u64,
        /// Its values.
        new: Box<[Value]>,
    },
    /// A row was removed.
    Delete(OldRow),
    /// Some columns of a row were changed.
    Update {
        /// The row before.
        old: OldRow,
        /// Columns and their new values.
        new: Box<[(usize, Value)]>,
    },
    /// Many rows were added, as appenders encoded them.
    Append {
        /// The rows.
        pieces: Pieces,
        /// Sketches of their columns.
        sketches: Vec<Vec<Sketch>>,
        /// The number of the first one, in a table without a layout key. The others follow.
        first: u64,
    },
    /// Columns of many rows were changed, none of the layout key. The fork's states before and after have the
    /// values.
    UpdateMany {
        /// The places of the rows.
        rows: Vec<Run>,
        /// The columns.
        columns: Vec<usize>,
        /// The fork before.
        before: TableSnapshot,
        /// The fork after that. The rows are in the same places.
        after: TableSnapshot,
    },
    /// Many rows were removed.
    DeleteMany {
        /// The places of the rows.
        rows: Vec<Run>,
        /// The fork before.
        before: TableSnapshot,
    },
    /// All rows were removed.
    Clear,
}

/// A row before it was changed or removed.
#[derive(Debug)]
pub(crate) struct OldRow {
    /// Its number, in a table without a layout key.
    pub(crate) number: u64,
    /// Its values.
    pub(crate) values: Box<[Value]>,
}

impl OldRow {
    fn of(row: RowId, root: &Root, shape: &Shape) -> OldRow {
        let columns = shape.schema.iter().enumerate();
        let value = |(column, field): (usize, &Field)| datum(root, row, column, field.ty).value(field.ty);
        OldRow { number: root.number_of(row), values: columns.map(value).collect() }
    }

    fn held(&self) -> usize {
        self.values.iter().map(held_by).sum()
    }

    fn name<'a>(&'a self, shape: &Shape, wording: &Wording) -> RowName<'a> {
        wording.name(self.number, |column| Datum::of_value(&self.values[column], shape.schema[column].ty))
    }
}

impl Operation {
    pub(crate) fn insert(number: u64, new: &[Datum<'_>], shape: &Shape) -> Operation {
        let new = new.iter().zip(&shape.schema).map(|(datum, field)| datum.value(field.ty)).collect();
        Operation::Insert { number, new }
    }

    pub(crate) fn delete(row: RowId, root: &Root, shape: &Shape) -> Operation {
        Operation::Delete(OldRow::of(row, root, shape))
    }

    pub(crate) fn update(
        row: RowId,
        root: &Root,
        changes: &[(usize, Datum<'_>)],
        shape: &Shape,
    ) -> Operation {
        let value = |&(column, datum): &(usize, Datum<'_>)| (column, datum.value(shape.schema[column].ty));
        let new = changes.iter().map(value).collect();
        Operation::Update { old: OldRow::of(row, root, shape), new }
    }

    /// About how many bytes it takes besides its own size. Versions of the fork are counted with the nodes
    /// that they show.
    fn held(&self) -> usize {
        match self {
            Operation::Insert { new, .. } => new.iter().map(held_by).sum(),
            Operation::Delete(old) => old.held(),
            Operation::Update { old, new } => {
                let new = new.iter().map(|(_, value)| size_of::<usize>() + held_by(value));
                old.held() + new.sum::<usize>()
            }
            Operation::Append { pieces: Pieces::Kept(pieces), .. } => {
                let slices = pieces.iter().flat_map(|piece| &piece.slices);
                slices.flat_map(|slice| &slice.blocks).map(Block::bytes).sum()
            }
            Operation::Append { pieces: Pieces::Stored(_), .. } | Operation::Clear => 0,
            Operation::UpdateMany { rows, .. } | Operation::DeleteMany { rows, .. } => {
                rows.capacity() * size_of::<Run>()
            }
        }
    }

    /// The load that its redo record refers to, if there is one.
    pub(crate) fn load(&self) -> Option<&Arc<dyn StoredLoad>> {
        match self {
            Operation::Append { pieces, .. } => pieces.stored(),
            _ => None,
        }
    }

    /// Appends its redo records.
    pub(crate) fn record(&self, shape: &Shape, recorder: &mut Recorder<'_>) {
        match self {
            Operation::Insert { number, new } => recorder.insert(*number, &datums(new, shape)),
            Operation::Delete(old) => recorder.delete(&old.name(shape, recorder.wording())),
            Operation::Update { old, new } => {
                let new: Vec<_> =
                    new.iter().map(|(c, v)| (*c, Datum::of_value(v, shape.schema[*c].ty))).collect();
                recorder.update(&old.name(shape, recorder.wording()), &new);
            }
            Operation::Append { pieces: Pieces::Kept(pieces), first, .. } => {
                record_pieces(pieces, *first, recorder);
            }
            Operation::Append { pieces: Pieces::Stored(load), first, .. } => {
                recorder.load(*first, load.rows(), load.index());
            }
            Operation::UpdateMany { rows, columns, before, after } => {
                for rows in rows_of(rows).chunks(RECORD_ROWS) {
                    record_update(&before.pinned().0, &after.pinned().0, rows, columns, shape, recorder);
                }
            }
            Operation::DeleteMany { rows, before } => {
                record_delete(&before.pinned().0, &rows_of(rows), shape, recorder);
            }
            Operation::Clear => recorder.clear(),
        }
    }
}

/// Bytes of a value in a list.
fn held_by(value: &Value) -> usize {
    let own = match value {
        Value::Text(text) => text.len() + HEAD,
        Value::Bytes(bytes) => bytes.len() + HEAD,
        _ => 0,
    };
    size_of::<Value>() + own
}

/// Appends the records of rows that were added in pieces.
pub(crate) fn record_pieces(pieces: &[Arc<Piece>], mut first: u64, recorder: &mut Recorder<'_>) {
    for piece in pieces {
        recorder.insert_many(first, piece);
        first += piece.rows as u64;
    }
}

/// Appends the record of the values that columns of some rows have in `after`; their names are those in
/// `before`.
fn record_update(
    before: &Root,
    after: &Root,
    rows: &[RowId],
    columns: &[usize],
    shape: &Shape,
    recorder: &mut Recorder<'_>,
) {
    let mut columns = columns.to_vec();
    columns.sort_unstable();
    columns.dedup();
    let names = names_of(before, rows, shape);
    recorder.update_many(&names, &columns, &gather(after, rows, &columns, shape));
}

/// Appends the records of rows of a version that are deleted.
pub(crate) fn record_delete(root: &Root, rows: &[RowId], shape: &Shape, recorder: &mut Recorder<'_>) {
    rows.chunks(RECORD_ROWS).for_each(|rows| recorder.delete_many(&names_of(root, rows, shape)));
}

/// The rows of some runs.
fn rows_of(runs: &[Run]) -> Vec<RowId> {
    let rows = |run: &Run| {
        let first = run.first;
        (0..run.rows).map(move |row| RowId { slot: first.slot + row, ..first })
    };
    runs.iter().flat_map(rows).collect()
}

/// The values of a row, as datums.
pub(crate) fn datums<'a>(row: &'a [Value], shape: &Shape) -> Vec<Datum<'a>> {
    row.iter().zip(&shape.schema).map(|(value, field)| Datum::of_value(value, field.ty)).collect()
}
