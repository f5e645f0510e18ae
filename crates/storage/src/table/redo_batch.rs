//! Redo of many records about one table at once, in less time than one by one.
//!
//! One by one, each record takes the locks of the table, finds its row by a path that is in no cache, and
//! needs a ghost slot for a new row. Together,
//!
//! 1. changes are sorted by the names of their rows ([`Wording`]), those of one row in the order of the log.
//!    Rows with different names do not depend on one another, so this makes no difference, but that a change
//!    finds in the cache what the one before it has read;
//! 2. what happens to a row after it was inserted happens to it before it is written;
//! 3. new rows are added last, all at once, encoded as an appender does it.
//!
//! | rows are named by | changes are sorted by | 2. | 3. |
//! |---|---|---|---|
//! | the layout key | the same | unless it is on a curve, where different keys may have one place | yes |
//! | the row number | the same | yes; a row that goes again is inserted, too, as it takes its number | yes |
//! | all their values | the layout key | no | if a key is only inserted |
//!
//! So there are the same rows with the same numbers, in other places, and the same sketches. In a table whose
//! operations are counted each is done by itself, and counted.
//!
//! A change of a few rows is a change of each of them. What has no such name ends a batch, and is done where
//! it comes: changes of many rows, of which there are few records, and updates that give a row another key.
//!
//! The slow twin is [`Table::redo_rows`], record by record.

use super::appender::Added;
use super::head::Table;
use super::loads::no_loads;
use super::redo::{NOT_THERE, datums_of, names_in, pairs_of, slots_of};
use super::writer::TableWriter;
use crate::BLOCK_ROWS;
use crate::block::{Fixed, with_fixed};
use crate::builder::GroupBuilder;
use crate::record::{Change, Record, RecordReader, RowName, Wording, damaged};
use crate::tree::Shape;
use crate::tree::key::Key;
use crate::value::Datum;
use entasis_vector::vector::StringsMut;
use entasis_vector::{CHUNK_ROWS, Error, Result, StringView, Vector};
use std::mem::{replace, take};
use std::sync::Arc;

/// The most changes that are gathered: with their values, they take some hundred bytes each.
const MOST: usize = 1 << 18;
/// A change of so many rows, or fewer, is gathered as changes of single rows.
const FEW: usize = BLOCK_ROWS;

/// An error, and the number of the commit that it is of.
type Failed = (usize, Error);

/// Changes that are gathered.
struct Batch<'t, 'a> {
    writer: TableWriter<'t>,
    shape: &'t Shape,
    /// New rows are added together.
    gathers: bool,
    /// No two rows are sorted by one key, so that changes of a new row are made before it is written.
    folds: bool,
    /// The changes, each with the number of its commit, until they are done.
    changes: Vec<Option<(usize, Change<'a>)>>,
    /// What they are sorted by, and which they are.
    names: Vec<(Key, u32)>,
    /// How many of them are inserts.
    inserts: u64,
}

/// Rows that are to be added, in the order of their names.
#[derive(Default)]
struct NewRows<'a> {
    /// No row's name is less.
    first: Option<Key>,
    rows: Vec<Vec<Datum<'a>>>,
    /// Those that go again once they have got their numbers.
    gone: Vec<(usize, Change<'a>)>,
}

impl Table {
    /// Repeats records about its rows, none of them of a load, each with the number of its commit, in the
    /// order of the log. Nobody else may know the table, and the changes are not logged again.
    ///
    /// # Errors
    /// Corruption, if one is no record of such a table, or does not apply; with the number of a commit.
    pub(crate) fn redo_batch<'a>(&self, records: &[(usize, Record<'a>)]) -> Result<(), Failed> {
        let reader = RecordReader::of(&self.shape);
        let read = |commit: usize, record: &Record<'a>| {
            record.clone().change(&reader).map_err(|error| (commit, error))
        };
        // Changes of single rows borrow from them what they own.
        let of_many = records.iter().filter(|(_, record)| record.has_many());
        let of_many = of_many.map(|(commit, record)| read(*commit, record));
        let of_many = of_many.collect::<Result<Vec<Change<'a>>, Failed>>()?;
        let (mut batch, mut of_many) = (Batch::of(self, reader.wording()), of_many.iter());
        for (commit, record) in records {
            match record.has_many().then(|| of_many.next()).flatten() {
                Some(change) => batch.take_many(*commit, change)?,
                None => batch.take(*commit, read(*commit, record)?)?,
            }
        }
        batch.write()
    }
}

impl<'t, 'a> Batch<'t, 'a> {
    fn of(table: &'t Table, wording: &Wording) -> Batch<'t, 'a> {
        let shape = &table.shape;
        let gathers = !shape.options.are_counted();
        let folds = gathers && !has_curve(shape) && !matches!(wording, Wording::Rows(_));
        let (writer, changes, names) = (table.write_unlogged(), Vec::new(), Vec::new());
        Batch { writer, shape, gathers, folds, changes, names, inserts: 0 }
    }

    /// Takes the change that comes next.
    fn take(&mut self, commit: usize, change: Change<'a>) -> Result<(), Failed> {
        let failed = |error| (commit, error);
        let Some(name) = name_of(&change, self.shape) else {
            self.write()?;
            return self.writer.redo(&change, &mut no_loads).map_err(failed);
        };
        if let Change::Insert { number, .. } = change {
            self.writer.check_number(number, self.inserts).map_err(failed)?;
            self.inserts += 1;
        }
        self.names.push((name, self.changes.len() as u32));
        self.changes.push(Some((commit, change)));
        if self.changes.len() < MOST { Ok(()) } else { self.write() }
    }

    /// Takes a change of many rows that comes next.
    fn take_many(&mut self, commit: usize, change: &'a Change<'_>) -> Result<(), Failed> {
        if let Some(singles) = singles(change, self.shape) {
            return singles.into_iter().try_for_each(|single| self.take(commit, single));
        }
        self.write()?;
        self.writer.redo(change, &mut no_loads).map_err(|error| (commit, error))
    }

    /// Does what was gathered.
    fn write(&mut self) -> Result<(), Failed> {
        let (mut names, mut changes) = (take(&mut self.names), take(&mut self.changes));
        self.inserts = 0;
        let Some(Some((commit, _))) = changes.first() else { return Ok(()) };
        let (commit, mut new) = (*commit, NewRows::default());
        names.sort_unstable();
        for group in names.chunk_by(|one, next| one.0 == next.0) {
            let is_insert =
                |(_, at): &(Key, u32)| matches!(changes[*at as usize], Some((_, Change::Insert { .. })));
            let is_new = match self.folds {
                true => is_insert(&group[0]),
                false => self.gathers && group.iter().all(is_insert),
            };
            let own = group.iter().filter_map(|(_, at)| changes[*at as usize].take());
            if is_new {
                new.first.get_or_insert_with(|| group[0].0.clone());
                self.fold(own, &mut new)?;
                continue;
            }
            for (commit, change) in own {
                self.writer.redo(&change, &mut no_loads).map_err(|error| (commit, error))?;
            }
        }
        // If rows cannot be encoded, they are those of many commits.
        self.add(&new).map_err(|error| (commit, error))?;
        for (commit, change) in new.gone {
            self.writer.redo(&change, &mut no_loads).map_err(|error| (commit, error))?;
        }
        Ok(())
    }

    /// Makes the row of some changes, of which the first inserts it. If changes of several rows are sorted by
    /// one key, all of them are inserts.
    fn fold(
        &mut self,
        changes: impl Iterator<Item = (usize, Change<'a>)>,
        new: &mut NewRows<'a>,
    ) -> Result<(), Failed> {
        let mut now: Option<Vec<Datum<'a>>> = None;
        for (commit, change) in changes {
            if let Change::Insert { row, .. } = change {
                new.rows.extend(now.replace(row));
                continue;
            }
            let Some(row) = &mut now else { return Err((commit, damaged(NOT_THERE))) };
            match change {
                Change::Update(_, pairs) => {
                    for (column, datum) in pairs {
                        self.writer.count(column, replace(&mut row[column], datum));
                    }
                }
                change if self.shape.key.is_none() => {
                    new.gone.push((commit, change));
                    new.rows.extend(now.take());
                }
                _ => {
                    row.iter().enumerate().for_each(|(column, datum)| self.writer.count(column, *datum));
                    now = None;
                }
            }
        }
        new.rows.extend(now);
        Ok(())
    }

    /// Adds rows, all at once if they are many.
    fn add(&mut self, new: &NewRows<'a>) -> Result<()> {
        match &new.first {
            Some(first) if self.writer.takes_pieces(new.rows.len(), first) => {
                let added = encoded(&self.writer, &new.rows)?;
                self.writer.hang(added)?;
            }
            _ => new.rows.iter().for_each(|row| _ = self.writer.insert(row)),
        }
        Ok(())
    }
}

/// The changes of single rows that a change of many consists of, if they are few.
fn singles<'c>(change: &'c Change<'_>, shape: &Shape) -> Option<Vec<Change<'c>>> {
    Some(match change {
        // The first rows that come together make the grid of a curve.
        Change::InsertMany { .. } if has_curve(shape) => return None,
        Change::InsertMany { first, piece } if piece.rows <= FEW => {
            let all: Vec<usize> = (0..shape.schema.len()).collect();
            let rows = slots_of(piece).map(|(slice, slot)| datums_of(slice, slot, &all, shape));
            // Without a layout key; with one, numbers mean nothing.
            let numbers = (0..).map(|row| first.wrapping_add(row));
            rows.zip(numbers).map(|(row, number)| Change::Insert { number, row }).collect()
        }
        Change::UpdateMany { names, columns, values } if names.len() <= FEW as u64 => {
            let pairs = slots_of(values).map(|(slice, slot)| pairs_of(slice, slot, columns, shape));
            names_in(names, shape).zip(pairs).map(|(name, pairs)| Change::Update(name, pairs)).collect()
        }
        Change::DeleteMany(names) if names.len() <= FEW as u64 => {
            names_in(names, shape).map(Change::Delete).collect()
        }
        _ => return None,
    })
}

/// True if rows are in the order of a space-filling curve.
fn has_curve(shape: &Shape) -> bool {
    shape.key.as_ref().is_some_and(|key| key.curve.is_some())
}

/// What changes are sorted by. `None` if it is of many rows, or its row has another name behind it.
fn name_of(change: &Change<'_>, shape: &Shape) -> Option<Key> {
    let is_key = |column: &usize| shape.key.as_ref().is_some_and(|key| key.columns.contains(column));
    match (change, &shape.key) {
        (Change::Insert { number, .. }, None) => Some(Key::Word(*number)),
        (Change::Insert { row, .. }, Some(key)) => Some(key.of_row(|column| row[column])),
        (Change::Update(_, pairs), _) if pairs.iter().any(|(column, _)| is_key(column)) => None,
        (Change::Delete(name) | Change::Update(name, _), key) => match name {
            RowName::Number(number) => Some(Key::Word(*number)),
            RowName::Key(values) => Some(key.as_ref()?.of_datums(values)),
            RowName::Row(row) => Some(key.as_ref()?.of_row(|column| row[column])),
        },
        _ => None,
    }
}

/// Rows as an appender of the table encodes them.
fn encoded(writer: &TableWriter<'_>, mut rows: &[Vec<Datum<'_>>]) -> Result<Added> {
    let mut builder = GroupBuilder::new(writer.shape(), writer.effort());
    let mut vectors: Vec<Vector> =
        writer.schema().iter().map(|field| Vector::new(field.ty.physical())).collect();
    let mut pieces = Vec::new();
    while !rows.is_empty() {
        let (chunk, rest) = rows.split_at(rows.len().min(CHUNK_ROWS).min(builder.room()));
        for (column, (vector, own)) in vectors.iter_mut().zip(builder.columns_mut()).enumerate() {
            fill(vector, chunk, column);
            own.append(vector, None, 0..chunk.len())?;
        }
        builder.added(chunk.len());
        if builder.room() == 0 || rest.is_empty() {
            pieces.push(Arc::new(builder.finish()));
        }
        rows = rest;
    }
    Ok(Added { pieces, sketches: vec![builder.take_sketches()], stored: None })
}

/// Writes a column of some rows to a vector.
fn fill(vector: &mut Vector, rows: &[Vec<Datum<'_>>], column: usize) {
    vector.begin(rows.len());
    with_fixed!(
        vector.physical(),
        T => {
            let values = vector.values_mut::<T>();
            values.iter_mut().zip(rows).for_each(|(value, row)| *value = T::of_datum(row[column]));
        },
        {
            let StringsMut { views, heap } = vector.strings_mut();
            for (view, row) in views.iter_mut().zip(rows) {
                *view = match row[column] {
                    Datum::Bytes(bytes) => heap.push(bytes),
                    _ => StringView::default(),
                };
            }
        }
    );
    let nulls = rows.iter().enumerate().filter(|(_, row)| row[column].is_null());
    nulls.for_each(|(position, _)| vector.set_null(position));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TableOptions;
    use crate::record::{Recorder, Records};
    use entasis_vector::{DataType, ErrorKind, Field};

    /// What a commit does to row 1, 2 or 3: it comes, changes or goes.
    type Step = (char, u64);

    /// Repeats some commits at once, each with one record.
    fn redo(table: &Table, steps: &[Step]) -> Result<(), Failed> {
        let (shape, wording) = (&table.shape, &Wording::of(&table.shape));
        let bytes: Vec<Vec<u8>> = steps
            .iter()
            .map(|&(step, number)| {
                let (mut bytes, value) = (Vec::new(), Datum::Integer(number.into()));
                let mut recorder = Recorder::new(1, shape, wording, &mut bytes);
                let name = wording.name(number, |_| value);
                match step {
                    '+' => recorder.insert(number, &[value, value]),
                    '-' => recorder.delete(&name),
                    _ => recorder.update(&name, &[(1, Datum::Null)]),
                }
                bytes
            })
            .collect();
        let records = bytes.iter().enumerate().map(|(commit, bytes)| {
            let mut record = Records::new(bytes).next().expect("it has one").expect("it is whole");
            record.table().expect("it has one");
            (commit, record)
        });
        table.redo_batch(&records.collect::<Vec<_>>())
    }

    #[test]
    fn a_record_that_does_not_apply_is_damage_and_says_where() {
        let key = Field { nullable: false, ..Field::new("k", DataType::Int64) };
        let schema = vec![key, Field::new("v", DataType::Int64)];
        let keyed = TableOptions { unique: true, ..TableOptions::keyed(vec![0]) };
        for options in [TableOptions::default(), keyed] {
            let new = || Table::with_options("t", schema.clone(), options.clone());
            let fails = |steps: &[Step]| {
                let (commit, error) = redo(&new(), steps).expect_err("it does not apply");
                assert_eq!(error.kind(), ErrorKind::Corruption);
                commit
            };
            let first = [('+', 1), ('*', 1), ('+', 2)];
            let table = new();
            redo(&table, &first).expect("they apply");
            redo(&table, &[('-', 1), ('+', 3), ('*', 3), ('-', 3), ('*', 2)]).expect("they apply");
            table.snapshot().check();
            assert_eq!(table.rows(), 1);
            let and = |more: &[Step]| fails(&[&first[..], more].concat());
            assert_eq!(and(&[('-', 3)]), 3, "a row that was never there");
            assert_eq!(and(&[('-', 1), ('*', 1)]), 4, "a row that is gone");
            assert_eq!(and(&[('-', 2), ('-', 2)]), 4, "a row that is gone");
            if options.layout_key.is_empty() {
                assert_eq!(and(&[('+', 4)]), 3, "a number that is not the next one");
            }
        }
    }
}
