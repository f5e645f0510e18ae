//! Replay: the changes of a fork are repeated on the newest version of its table, if that still has the rows
//! that they apply to.
//!
//! Single rows are located one by one. Changes of many rows are replayed in bulk, slice by slice, where the
//! newest version has the rows unchanged ([`super::unmoved`]), and one by one elsewhere. So a commit that
//! changes a million rows is not held up by another one that changed a few.
//!
//! Whether an added key is still free is checked for each row that was added. If others have written fewer
//! rows than that since the fork began, it is checked for each of theirs instead ([`Newcomers`]).

use super::references::References;
use super::renumbered::Renumbered;
use super::unmoved::{OfSlice, by_slice};
use crate::block::Block;
use crate::table::{Added, OldRow, Operation, Table, TableFork, TableSnapshot, TableWriter, Waiter, datums};
use crate::tree::{Piece, RowId, Shape, Slice};
use crate::value::Datum;
use entasis_vector::{Chunk, Error, ErrorKind, Result, Selection, Value, Vector};
use std::collections::HashSet;
use std::sync::Arc;

/// A fork of the newest version with the changes of `old`, and the numbers that its new rows got. If it is an
/// index, `referred` are those of the rows that it refers to.
///
/// # Errors
/// Conflict, if another transaction was first; interrupted.
pub(super) fn replay(
    old: &TableFork,
    referred: Option<&Renumbered>,
    waiter: &Waiter<'_>,
) -> Result<(TableFork, Renumbered)> {
    let table = old.table().clone();
    let is_current = old.is_current(&table.head());
    let newest = table.snapshot();
    let mut new = TableFork::at(&newest, false);
    let numbers = {
        let mut replay = Replay {
            old,
            is_current,
            table: &table,
            shape: &table.shape,
            newest: &newest,
            references: References::of(referred, table.shape.schema.len()),
            numbers: Renumbered::default(),
            newcomers: None,
            writer: new.write(),
        };
        for operation in old.log().expect("a fork that others can overtake has a log").iter() {
            waiter.look()?;
            replay.repeat(operation, waiter)?;
        }
        replay.numbers
    };
    Ok((new, numbers))
}

/// A log that is being replayed.
struct Replay<'a> {
    old: &'a TableFork,
    /// Nothing but upkeep came in between.
    is_current: bool,
    table: &'a Arc<Table>,
    shape: &'a Shape,
    newest: &'a TableSnapshot,
    /// What becomes of the rows that rows of an index refer to.
    references: References<'a>,
    /// What becomes of the rows that the fork added.
    numbers: Renumbered,
    /// Only appended rows need them.
    newcomers: Option<Newcomers<'a>>,
    writer: TableWriter<'a>,
}

impl Replay<'_> {
    /// Does to the newest version what was done to the fork.
    fn repeat(&mut self, operation: &Operation, waiter: &Waiter<'_>) -> Result<()> {
        let Replay { shape, references, .. } = *self;
        match operation {
            Operation::Insert { number, new } => {
                let new = references.row(new);
                refuse_taken(&self.writer, shape, &new)?;
                self.numbers.add(*number, self.writer.next_number(), 1);
                self.writer.insert(&datums(&new, shape));
            }
            Operation::Delete(old) => {
                let row = locate_old(&self.writer, shape, old, &self.numbers, references)?;
                self.writer.delete(row);
            }
            Operation::Update { old, new } => self.update(old, new)?,
            Operation::Append { pieces, sketches, first } => {
                let added = Added {
                    pieces: pieces.get(shape)?,
                    sketches: sketches.clone(),
                    stored: pieces.stored().cloned(),
                };
                self.append(added, *first, waiter)?;
            }
            Operation::UpdateMany { rows, columns, before, after } => {
                let update = ManyRows { shape, before, numbers: &self.numbers, references };
                for rows in by_slice(rows, shape.options.block_slots) {
                    waiter.look()?;
                    update.update(&mut self.writer, &rows, columns, after)?;
                }
            }
            Operation::DeleteMany { rows, before } => {
                let delete = ManyRows { shape, before, numbers: &self.numbers, references };
                for rows in by_slice(rows, shape.options.block_slots) {
                    waiter.look()?;
                    delete.delete(&mut self.writer, &rows)?;
                }
            }
            Operation::Clear if self.is_current => {
                self.writer.clear();
            }
            Operation::Clear => {
                let message =
                    format!("another transaction has changed the table {}, which was truncated", shape.name);
                return Err(retry(message));
            }
        }
        Ok(())
    }

    /// Gives a row new values in some columns, if it is there and its new key is free.
    fn update(&mut self, old: &OldRow, new: &[(usize, Value)]) -> Result<()> {
        let Replay { shape, references, .. } = *self;
        let row = locate_old(&self.writer, shape, old, &self.numbers, references)?;
        let mut after = old.values.clone();
        new.iter().for_each(|(column, value)| after[*column] = value.clone());
        if key_of(&after, shape) != key_of(&old.values, shape) {
            refuse_taken(&self.writer, shape, &after)?;
        }
        let ty = |column: usize| shape.schema[column].ty;
        let changed = new.iter().map(|(c, value)| (*c, Datum::of_value(value, ty(*c))));
        let changes: Vec<_> =
            changed.map(|(column, datum)| (column, references.datum(column, datum))).collect();
        self.writer.update(row, &changes);
        Ok(())
    }

    /// Appends rows whose numbers began with `first`, if their keys are free.
    fn append(&mut self, added: Added, first: u64, waiter: &Waiter<'_>) -> Result<()> {
        let (old, newest) = (self.old, self.newest);
        if self.shape.options.is_distinct() {
            let newcomers = self.newcomers.get_or_insert_with(|| Newcomers::new(old, newest));
            newcomers.refuse_appended(&added.pieces, old, &self.writer, self.shape, waiter)?;
        }
        let rows = added.pieces.iter().map(|piece| piece.rows as u64).sum();
        self.numbers.add(first, self.writer.next_number(), rows);
        self.writer.hang(self.references.encoded(self.table, added)?)
    }
}

/// Many rows of a version of the fork whose change or removal is replayed.
struct ManyRows<'a> {
    shape: &'a Shape,
    before: &'a TableSnapshot,
    numbers: &'a Renumbered,
    references: References<'a>,
}

impl ManyRows<'_> {
    /// Where rows of a slice are now, if they can be replayed in bulk.
    fn unmoved(&self, writer: &TableWriter<'_>, rows: &OfSlice) -> Option<Vec<RowId>> {
        if self.references.change() {
            return None;
        }
        rows.find(self.before, writer, self.shape, self.numbers)
    }

    /// Calls `each` with the old and the new place of each row.
    fn one_by_one(
        &self,
        writer: &mut TableWriter<'_>,
        rows: &OfSlice,
        mut each: impl FnMut(&mut TableWriter<'_>, RowId, RowId),
    ) -> Result<()> {
        let all: Vec<usize> = (0..self.shape.schema.len()).collect();
        let mut old = Vec::with_capacity(all.len());
        for row in rows.rows() {
            old.clear();
            self.before.read(row, &all, &mut old);
            self.refer(&all, &mut old);
            let number = self.before.number_of(row);
            let now = locate(writer, self.shape, number, &old, self.numbers)?;
            each(writer, row, now);
        }
        Ok(())
    }

    /// The values of some columns, with what their references become.
    fn refer(&self, columns: &[usize], values: &mut [Datum<'_>]) {
        let pairs = columns.iter().zip(values);
        pairs.for_each(|(&column, value)| *value = self.references.datum(column, *value));
    }

    fn delete(&self, writer: &mut TableWriter<'_>, rows: &OfSlice) -> Result<()> {
        match self.unmoved(writer, rows) {
            Some(ids) => {
                writer.delete_many(&ids);
                Ok(())
            }
            None => self.one_by_one(writer, rows, |writer, _, now| writer.delete(now)),
        }
    }

    /// Gives the rows the values of `columns` that they have in `after`; `before` has their old places.
    fn update(
        &self,
        writer: &mut TableWriter<'_>,
        rows: &OfSlice,
        columns: &[usize],
        after: &TableSnapshot,
    ) -> Result<()> {
        let Some(ids) = self.unmoved(writer, rows) else {
            return self.one_by_one(writer, rows, |writer, row, now| {
                let mut new = Vec::with_capacity(columns.len());
                after.read(row, columns, &mut new);
                self.refer(columns, &mut new);
                let changes: Vec<_> = columns.iter().copied().zip(new).collect();
                writer.update(now, &changes);
            });
        };
        let group = after.row_group(rows.group as usize).expect("rows stand at the same places");
        let width = self.shape.options.block_slots;
        let slots: Vec<u16> = rows.slots().collect();
        let first = rows.first_slot();
        let mut chunk = Chunk::new();
        chunk.reset(ids.len());
        let selection = chunk.push_group(Selection::from_indices(&slots));
        for &column in columns {
            let mut vector = Vector::new(self.shape.schema[column].ty.physical());
            group.decode_selected(column, first, &slots, width.min(group.slots() - first), &mut vector);
            chunk.push_column(vector, selection);
        }
        let columns: Vec<(usize, usize)> = columns.iter().copied().zip(0..).collect();
        writer.update_chunk(&ids, &columns, &chunk);
        Ok(())
    }
}

/// The rows that others have written since a fork began: those in slices that its version did not have.
struct Newcomers<'a> {
    slices: Vec<&'a Slice>,
    rows: u64,
}

impl<'a> Newcomers<'a> {
    fn new(fork: &TableFork, newest: &'a TableSnapshot) -> Newcomers<'a> {
        let base: HashSet<*const Slice> = slices_of(fork.base()).map(std::ptr::from_ref).collect();
        let slices: Vec<&Slice> =
            slices_of(newest).filter(|slice| !base.contains(&std::ptr::from_ref(*slice))).collect();
        Newcomers { rows: slices.iter().map(|slice| slice.rows() as u64).sum(), slices }
    }

    /// Refuses rows that were appended to a table whose key is unique, if another row has one of their keys
    /// by now.
    fn refuse_appended(
        &mut self,
        pieces: &[Arc<Piece>],
        fork: &TableFork,
        writer: &TableWriter<'_>,
        shape: &Shape,
        waiter: &Waiter<'_>,
    ) -> Result<()> {
        let appended: u64 = pieces.iter().map(|piece| piece.rows as u64).sum();
        if appended <= self.rows {
            for slice in pieces.iter().flat_map(|piece| &piece.slices) {
                waiter.look()?;
                let block = |column: usize| &slice.blocks[column];
                (0..slice.rows)
                    .try_for_each(|slot| refuse_row(shape, block, slot, |key| is_taken(key, writer)))?;
            }
            return Ok(());
        }
        // A key that was there when the fork began is nobody's to add, unless the fork has removed it: that
        // is replayed as well.
        let is_added_twice = |key: &[Datum<'_>]| {
            !key.iter().any(|datum| datum.is_null())
                && fork.base().find(key).is_none()
                && fork.find(key).is_some()
        };
        // Once is enough: what the fork added is in it, whenever it came.
        for slice in std::mem::take(&mut self.slices) {
            waiter.look()?;
            for slot in (0..shape.options.block_slots).filter(|&slot| slice.is_live(slot)) {
                refuse_row(shape, |column| slice.block(column), slot, is_added_twice)?;
            }
        }
        Ok(())
    }
}

fn slices_of(version: &TableSnapshot) -> impl Iterator<Item = &Slice> {
    version.row_groups().flat_map(|group| group.slices.iter().map(|slice| &**slice))
}

fn key_of(row: &[Value], shape: &Shape) -> Vec<Value> {
    shape.options.layout_key.iter().map(|&column| row[column].clone()).collect()
}

fn key_datums<'a>(row: &'a [Value], shape: &Shape) -> Vec<Datum<'a>> {
    let key = shape.options.layout_key.iter();
    key.map(|&column| Datum::of_value(&row[column], shape.schema[column].ty)).collect()
}

/// Where a row is that a transaction saw.
fn locate_old(
    writer: &TableWriter<'_>,
    shape: &Shape,
    old: &OldRow,
    numbers: &Renumbered,
    references: References<'_>,
) -> Result<RowId> {
    locate(writer, shape, old.number, &datums(&references.row(&old.values), shape), numbers)
}

/// Where a row with the values `old` is, which had a number when the transaction saw it.
fn locate(
    writer: &TableWriter<'_>,
    shape: &Shape,
    number: u64,
    old: &[Datum<'_>],
    numbers: &Renumbered,
) -> Result<RowId> {
    let is_it =
        |row: RowId| old.iter().enumerate().all(|(column, datum)| writer.datum(row, column).is_same(*datum));
    let mut found = None;
    if shape.key.is_some() {
        let key: Vec<Datum<'_>> = shape.options.layout_key.iter().map(|&column| old[column]).collect();
        writer.find_each(&key, |row| {
            found = is_it(row).then_some(row);
            found.is_none()
        });
    } else {
        found = writer.find_number(numbers.of(number)).filter(|&row| is_it(row));
    }
    found.ok_or_else(|| {
        let row: Vec<Value> =
            old.iter().zip(&shape.schema).map(|(datum, field)| datum.value(field.ty)).collect();
        conflict(shape, &row, "changed or removed")
    })
}

fn refuse_taken(writer: &TableWriter<'_>, shape: &Shape, row: &[Value]) -> Result<()> {
    let key = key_datums(row, shape);
    if shape.options.is_distinct() && is_taken(&key, writer) {
        return Err(conflict(shape, row, "added"));
    }
    Ok(())
}

/// True if a row has a key. Keys with a NULL have no equals.
fn is_taken(key: &[Datum<'_>], writer: &TableWriter<'_>) -> bool {
    !key.iter().any(|datum| datum.is_null()) && writer.find(key).is_some()
}

/// Refuses the row in a slot of some blocks, if another one has its key.
fn refuse_row<'b>(
    shape: &Shape,
    block: impl Fn(usize) -> &'b Block,
    slot: usize,
    has_key: impl Fn(&[Datum<'_>]) -> bool,
) -> Result<()> {
    let datum = |column: usize| block(column).datum(slot, shape.schema[column].ty.physical());
    let key: Vec<Datum<'_>> = shape.options.layout_key.iter().map(|&column| datum(column)).collect();
    if has_key(&key) {
        let fields = shape.schema.iter().enumerate();
        let row: Vec<Value> = fields.map(|(column, field)| datum(column).value(field.ty)).collect();
        return Err(conflict(shape, &row, "added"));
    }
    Ok(())
}

/// The error for a row of a version that others have changed or removed.
pub(super) fn changed(version: &TableSnapshot, row: RowId) -> Error {
    let fields = version.schema().iter().enumerate();
    let values: Vec<Value> =
        fields.map(|(column, field)| version.datum(row, column).value(field.ty)).collect();
    conflict(&version.table().shape, &values, "changed or removed")
}

fn conflict(shape: &Shape, row: &[Value], what: &str) -> Error {
    // Without a layout key, the first column has to do.
    let columns: &[usize] =
        if shape.options.layout_key.is_empty() { &[0] } else { &shape.options.layout_key };
    let shown = |&column: &usize| {
        let field = &shape.schema[column];
        format!("{} = {}", field.name, row[column].display(field.ty))
    };
    let key: Vec<String> = columns.iter().map(shown).collect();
    retry(format!("another transaction has {what} the row of table {} with {}", shape.name, key.join(", ")))
}

fn retry(message: String) -> Error {
    Error::new(ErrorKind::Conflict, message).with_hint("roll back and try the transaction again")
}
