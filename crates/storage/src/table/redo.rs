//! Redo: repeats what the records of the log say, while nobody else writes. A record that does not apply is
//! damage: the log and the state that it starts from do not belong together.
//!
//! Rows that were added in bulk are encoded again by the table's own builder; their blocks in the record are
//! only read. Those of a load, which are in the data file, are hung as they are. Many records at once are
//! repeated in [`super::redo_batch`].

use super::appender::Added;
use super::head::Table;
use super::loads::{Loaded, ReadLoad, no_loads};
use super::writer::TableWriter;
use crate::block::Block;
use crate::builder::GroupBuilder;
use crate::record::{Change, Names, Record, RecordReader, Records, RowName, Wording, damaged};
use crate::tree::{EncodedSlice, Piece, RowId, Shape};
use crate::value::Datum;
use entasis_vector::Result;
use std::sync::Arc;

/// The flaw of a record whose row is not there.
pub(super) const NOT_THERE: &str = "the row that it names is not there";

impl Table {
    /// Repeats the records of a commit in their order; all must be about rows. `table` returns the table with
    /// an id. Nobody else may write to these tables meanwhile, and the changes are not logged again.
    ///
    /// # Errors
    /// Corruption, if the bytes are no records, or one does not apply.
    pub fn redo(records: &[u8], table: &dyn Fn(u64) -> Option<Arc<Table>>) -> Result<()> {
        Records::new(records).try_for_each(|record| Table::redo_one(record?, table, &mut no_loads))
    }

    /// Repeats one record about rows. `load` reads those that are in the data file.
    ///
    /// # Errors
    /// As [`Table::redo`]; those of `load`.
    pub(crate) fn redo_one(
        mut record: Record<'_>,
        table: &dyn Fn(u64) -> Option<Arc<Table>>,
        load: &mut ReadLoad<'_>,
    ) -> Result<()> {
        let table = table(record.table()?).ok_or_else(|| damaged("its table is not there"))?;
        table.redo_rows(record, load)
    }

    /// Does what a record of its rows says, of which [`Record::table`] was asked.
    ///
    /// # Errors
    /// As [`Table::redo_one`].
    pub(crate) fn redo_rows(&self, record: Record<'_>, load: &mut ReadLoad<'_>) -> Result<()> {
        let change = record.change(&RecordReader::of(&self.shape))?;
        self.write_unlogged().redo(&change, load)
    }
}

impl TableWriter<'_> {
    /// Does a change that a record says. `load` reads rows that are in the data file.
    ///
    /// # Errors
    /// Corruption, if it does not apply; those of `load`.
    pub(crate) fn redo(&mut self, change: &Change<'_>, load: &mut ReadLoad<'_>) -> Result<()> {
        match change {
            Change::Insert { number, row } => {
                self.check_number(*number, 0)?;
                self.insert(row);
            }
            Change::Delete(name) => {
                let row = self.named(name)?;
                self.delete(row);
            }
            Change::Update(name, changes) => {
                let row = self.named(name)?;
                self.update(row, changes);
            }
            Change::InsertMany { first, piece } => {
                self.check_number(*first, 0)?;
                self.redo_many(piece)?;
            }
            Change::Load { first, rows, index } => {
                self.check_number(*first, 0)?;
                let Loaded { pieces, sketches } = load(*index, self.shape())?;
                if pieces.iter().map(|piece| piece.rows as u64).sum::<u64>() != *rows {
                    return Err(damaged("its load has another number of rows"));
                }
                self.hang(Added { pieces, sketches: vec![sketches], stored: None })?;
            }
            Change::UpdateMany { names, columns, values } => {
                let mut rows = slots_of(values);
                self.each_named(names, |writer, row| {
                    let (slice, slot) = rows.next().ok_or_else(|| damaged("it has too few values"))?;
                    let pairs = pairs_of(slice, slot, columns, writer.shape());
                    writer.update(row, &pairs);
                    Ok(())
                })?;
            }
            Change::DeleteMany(names) => self.each_named(names, |writer, row| {
                writer.delete(row);
                Ok(())
            })?,
            Change::Clear => {
                self.clear();
            }
        }
        Ok(())
    }

    /// Checks the number in a record: rows are numbered as they are inserted, so it must be the next one
    /// behind the rows that are about to be inserted before it.
    pub(super) fn check_number(&self, number: u64, before: u64) -> Result<()> {
        let next = self.root().next_number.saturating_add(before);
        let is_next = self.shape().key.is_some() || number == next;
        if is_next { Ok(()) } else { Err(damaged("its row has not the number that comes next")) }
    }

    fn redo_many(&mut self, piece: &Piece) -> Result<()> {
        let mut builder = GroupBuilder::new(self.shape(), self.effort());
        let (mut pieces, mut done) = (Vec::new(), 0);
        while done < piece.rows {
            let rows = builder.room().min(piece.rows - done);
            builder.append_slots(piece, done..done + rows, self.schema())?;
            pieces.push(Arc::new(builder.finish()));
            done += rows;
        }
        self.hang(Added { pieces, sketches: vec![builder.take_sketches()], stored: None })
    }

    /// Calls `each` with the rows that some names stand for, one after the other: of equal rows, one that
    /// `each` has not changed yet.
    fn each_named(
        &mut self,
        names: &Names,
        mut each: impl FnMut(&mut Self, RowId) -> Result<()>,
    ) -> Result<()> {
        let shape = self.shape();
        names_in(names, shape).try_for_each(|name| {
            let row = self.named(&name)?;
            each(self, row)
        })
    }

    /// The row with a name.
    fn named(&self, name: &RowName<'_>) -> Result<RowId> {
        let row = match name {
            RowName::Number(number) => self.find_number(*number),
            RowName::Key(key) => self.find(key),
            RowName::Row(values) => {
                let key: Vec<Datum<'_>> =
                    self.shape().options.layout_key.iter().map(|&column| values[column]).collect();
                let is_it = |row: RowId| {
                    values.iter().enumerate().all(|(column, value)| self.datum(row, column).is_same(*value))
                };
                let mut found = None;
                self.find_each(&key, |row| {
                    found = is_it(row).then_some(row);
                    found.is_none()
                });
                found
            }
        };
        row.ok_or_else(|| damaged(NOT_THERE))
    }
}

/// The names of single rows that names of many consist of.
pub(super) fn names_in<'i, 'n: 'i>(
    names: &'n Names,
    shape: &'i Shape,
) -> Box<dyn Iterator<Item = RowName<'n>> + 'i> {
    match names {
        Names::Numbers(runs) => {
            let numbers = runs.iter().flat_map(|&(first, rows)| first..first + rows);
            Box::new(numbers.map(RowName::Number))
        }
        Names::Columns(piece) => {
            let wording = Wording::of(shape);
            let columns = wording.columns();
            Box::new(slots_of(piece).map(move |(slice, slot)| {
                let values = datums_of(slice, slot, &columns, shape);
                match wording {
                    Wording::Key(_) => RowName::Key(values),
                    _ => RowName::Row(values),
                }
            }))
        }
    }
}

/// The slots of the rows of a piece.
pub(super) fn slots_of(piece: &Piece) -> impl Iterator<Item = (&EncodedSlice, usize)> {
    piece.slices.iter().flat_map(|slice| (0..slice.rows).map(move |slot| (slice, slot)))
}

/// The values of some columns in a slot of a slice.
pub(super) fn datums_of<'a>(
    slice: &'a EncodedSlice,
    slot: usize,
    columns: &[usize],
    shape: &Shape,
) -> Vec<Datum<'a>> {
    let datum = |(block, &column): (&'a Block, &usize)| block.datum(slot, shape.schema[column].ty.physical());
    slice.blocks.iter().zip(columns).map(datum).collect()
}

/// The same, each value with its column.
pub(super) fn pairs_of<'a>(
    slice: &'a EncodedSlice,
    slot: usize,
    columns: &[usize],
    shape: &Shape,
) -> Vec<(usize, Datum<'a>)> {
    columns.iter().copied().zip(datums_of(slice, slot, columns, shape)).collect()
}
