//! Replay: what a fork did is done once more, on the newest version of its table, if that still has what it was done to.

use crate::datum::Datum;
use crate::log::Operation;
use crate::row_group::Piece;
use crate::table::Added;
use crate::write::{RowId, Run, Shape};
use crate::writer::{TableFork, TableWriter};
use entasis_vector::{Error, ErrorKind, Result, Value};
use std::collections::HashMap;

/// Does what a fork did once more, on the newest version.
///
/// # Errors
/// Conflict, if another transaction was first.
pub(super) fn replay(old: &TableFork) -> Result<TableFork> {
    let table = old.table().clone();
    let shape = &table.shape;
    let is_current = old.is_current(&table.head());
    let mut new = TableFork::at(&table.snapshot(), None);
    let mut places = Places::default();
    let mut writer = new.write();
    for operation in old.log().expect("a fork that others can overtake has a log") {
        match operation {
            Operation::Insert { row, new } => {
                refuse_taken(&writer, shape, new)?;
                let datums = datums(new, shape);
                places.add(*row, writer.insert(&datums));
            }
            Operation::Delete { row, old } => {
                let row = locate(&writer, shape, *row, &datums(old, shape), &places)?;
                writer.delete(row);
            }
            Operation::Update { row, old, new, to } => {
                let row = locate(&writer, shape, *row, &datums(old, shape), &places)?;
                let mut after = old.clone();
                new.iter().for_each(|(column, value)| after[*column] = value.clone());
                if key_of(&after, shape) != key_of(old, shape) {
                    refuse_taken(&writer, shape, &after)?;
                }
                let ty = |column: usize| table.schema()[column].ty;
                let changes: Vec<_> = new.iter().map(|(c, value)| (*c, Datum::of_value(value, ty(*c)))).collect();
                places.add(*to, writer.update(row, &changes));
            }
            Operation::Append { pieces, sketches, places: old } => {
                if shape.options.unique {
                    pieces.iter().try_for_each(|piece| refuse_taken_by(piece, &writer, shape))?;
                }
                let added = Added { pieces: pieces.clone(), sketches: sketches.clone() };
                let new = writer.hang(added)?;
                places.add_runs(old, new);
            }
            Operation::UpdateMany { rows, columns, before, after } => {
                let all: Vec<usize> = (0..shape.schema.len()).collect();
                let (mut old, mut new) = (Vec::new(), Vec::new());
                for row in rows.iter().flat_map(|run| run.rows()) {
                    old.clear();
                    before.read(row, &all, &mut old);
                    new.clear();
                    after.read(row, columns, &mut new);
                    let row = locate(&writer, shape, row, &old, &places)?;
                    let changes: Vec<_> = columns.iter().copied().zip(new.iter().copied()).collect();
                    writer.update(row, &changes);
                }
            }
            Operation::DeleteMany { rows, before } => {
                let all: Vec<usize> = (0..shape.schema.len()).collect();
                let mut old = Vec::new();
                for row in rows.iter().flat_map(|run| run.rows()) {
                    old.clear();
                    before.read(row, &all, &mut old);
                    let row = locate(&writer, shape, row, &old, &places)?;
                    writer.delete(row);
                }
            }
            // Only upkeep came in between.
            Operation::Clear if is_current => {
                writer.clear();
            }
            Operation::Clear => {
                let message = format!("another transaction has changed the table {}, which was truncated", shape.name);
                return Err(retry(message));
            }
        }
    }
    drop(writer);
    Ok(new)
}

/// Where rows are that a transaction added, in a table without a layout key.
#[derive(Default)]
struct Places {
    rows: HashMap<RowId, RowId>,
    runs: Vec<(Vec<Run>, Vec<Run>)>,
}

impl Places {
    fn add(&mut self, old: RowId, new: RowId) {
        self.rows.insert(old, new);
    }

    fn add_runs(&mut self, old: &[Run], new: Vec<Run>) {
        // A slot at the end may have been another row's before.
        self.rows.retain(|row, _| old.iter().all(|run| run.number_of(*row).is_none()));
        self.runs.push((old.to_vec(), new));
    }

    fn of(&self, row: RowId) -> RowId {
        if let Some(row) = self.rows.get(&row) {
            return *row;
        }
        let added = self.runs.iter().rev().find_map(|(old, new)| {
            let mut before = 0;
            for run in old {
                if let Some(number) = run.number_of(row) {
                    return nth(new, before + number);
                }
                before += run.rows;
            }
            None
        });
        added.unwrap_or(row)
    }
}

/// The row with a number in some runs.
fn nth(runs: &[Run], mut number: u32) -> Option<RowId> {
    for run in runs {
        if number < run.rows {
            return Some(RowId { slot: run.first.slot + number, ..run.first });
        }
        number -= run.rows;
    }
    None
}

fn datums<'a>(row: &'a [Value], shape: &Shape) -> Vec<Datum<'a>> {
    row.iter().zip(&shape.schema).map(|(value, field)| Datum::of_value(value, field.ty)).collect()
}

fn key_of(row: &[Value], shape: &Shape) -> Vec<Value> {
    shape.options.layout_key.iter().map(|&column| row[column].clone()).collect()
}

fn key_datums<'a>(row: &'a [Value], shape: &Shape) -> Vec<Datum<'a>> {
    let key = shape.options.layout_key.iter();
    key.map(|&column| Datum::of_value(&row[column], shape.schema[column].ty)).collect()
}

/// Where a row with the values `old` is, which was at `place` when the transaction saw it.
fn locate(writer: &TableWriter<'_>, shape: &Shape, place: RowId, old: &[Datum<'_>], places: &Places) -> Result<RowId> {
    let is_it = |row: RowId| old.iter().enumerate().all(|(column, datum)| writer.datum(row, column).is_same(*datum));
    let mut found = None;
    if shape.key.is_some() {
        let key: Vec<Datum<'_>> = shape.options.layout_key.iter().map(|&column| old[column]).collect();
        writer.find_each(&key, |row| {
            found = is_it(row).then_some(row);
            found.is_none()
        });
    } else {
        let place = places.of(place);
        found = (writer.is_row(place) && is_it(place)).then_some(place);
    }
    found.ok_or_else(|| {
        let row: Vec<Value> = old.iter().zip(&shape.schema).map(|(datum, field)| datum.value(field.ty)).collect();
        conflict(shape, &row, "changed or removed")
    })
}

fn refuse_taken(writer: &TableWriter<'_>, shape: &Shape, row: &[Value]) -> Result<()> {
    let key = key_datums(row, shape);
    if shape.options.unique && is_taken(&key, writer) {
        return Err(conflict(shape, row, "added"));
    }
    Ok(())
}

/// True if a row has a key. Keys with a NULL have no equals.
fn is_taken(key: &[Datum<'_>], writer: &TableWriter<'_>) -> bool {
    !key.iter().any(|datum| datum.is_null()) && writer.find(key).is_some()
}

fn refuse_taken_by(piece: &Piece, writer: &TableWriter<'_>, shape: &Shape) -> Result<()> {
    let mut key = Vec::new();
    for slice in &piece.slices {
        for slot in 0..slice.rows {
            let datum = |column: usize| slice.blocks[column].datum(slot, shape.schema[column].ty.physical());
            key.clear();
            key.extend(shape.options.layout_key.iter().map(|&column| datum(column)));
            if is_taken(&key, writer) {
                let fields = shape.schema.iter().enumerate();
                let row: Vec<Value> = fields.map(|(column, field)| datum(column).value(field.ty)).collect();
                return Err(conflict(shape, &row, "added"));
            }
        }
    }
    Ok(())
}

fn conflict(shape: &Shape, row: &[Value], what: &str) -> Error {
    // Without a layout key, the first column has to do.
    let columns: &[usize] = if shape.options.layout_key.is_empty() { &[0] } else { &shape.options.layout_key };
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
