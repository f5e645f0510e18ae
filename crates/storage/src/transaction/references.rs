//! References of an index to rows of a table without a layout key, when the fork of the index is replayed:
//! the last column has the numbers of rows, and those that the transaction has added got others
//! ([`super::renumbered`]).

use super::renumbered::Renumbered;
use crate::scan::read;
use crate::table::{Added, Table};
use crate::tree::Piece;
use crate::value::Datum;
use entasis_vector::{CHUNK_ROWS, Chunk, Result, Selection, Value, Vector};
use std::borrow::Cow;
use std::slice::from_ref;
use std::sync::Arc;

/// What becomes of the references of one table; nothing, if that is no index or no number has changed.
#[derive(Clone, Copy)]
pub(super) struct References<'a> {
    numbers: Option<&'a Renumbered>,
    /// The column that has them.
    column: usize,
}

impl<'a> References<'a> {
    /// Those of a table with so many columns; `numbers` are the rows that it refers to.
    pub(super) fn of(numbers: Option<&'a Renumbered>, columns: usize) -> References<'a> {
        References { numbers: numbers.filter(|numbers| numbers.changes()), column: columns - 1 }
    }

    /// True if some are not what they were.
    pub(super) fn change(&self) -> bool {
        self.numbers.is_some()
    }

    fn number(&self, numbers: &Renumbered, number: i128) -> i128 {
        u64::try_from(number).map_or(number, |number| numbers.of(number).into())
    }

    /// What a column's value becomes.
    pub(super) fn datum<'d>(&self, column: usize, datum: Datum<'d>) -> Datum<'d> {
        match (self.numbers, datum) {
            (Some(numbers), Datum::Integer(number)) if column == self.column => {
                Datum::Integer(self.number(numbers, number))
            }
            _ => datum,
        }
    }

    /// The same as [`References::datum`].
    pub(super) fn value(&self, column: usize, value: &Value) -> Value {
        match (self.numbers, value) {
            (Some(numbers), Value::Integer(number)) if column == self.column => {
                Value::Integer(self.number(numbers, *number))
            }
            _ => value.clone(),
        }
    }

    /// What a row becomes.
    pub(super) fn row<'v>(&self, row: &'v [Value]) -> Cow<'v, [Value]> {
        match self.numbers {
            None => Cow::Borrowed(row),
            Some(_) => row.iter().enumerate().map(|(column, value)| self.value(column, value)).collect(),
        }
    }

    /// Rows of the table, encoded once more with what their references become.
    pub(super) fn encoded(&self, table: &Arc<Table>, added: Added) -> Result<Added> {
        if !self.change() {
            return Ok(added);
        }
        let mut appender = table.appender();
        let mut chunk = Chunk::new();
        for piece in &added.pieces {
            let numbers = self.numbers_of(piece, table);
            for first in (0..piece.rows).step_by(CHUNK_ROWS) {
                let slots = first..piece.rows.min(first + CHUNK_ROWS);
                chunk.reset(slots.len());
                let group = chunk.push_group(Selection::ALL);
                for (column, field) in table.schema()[..self.column].iter().enumerate() {
                    let mut vector = Vector::new(field.ty.physical());
                    let held = vector.physical();
                    read::decode(&**piece, column, held, from_ref(&slots), slots.len(), &mut vector);
                    chunk.push_column(vector, group);
                }
                chunk.push_column(Vector::from_slice(&numbers[slots]), group);
                appender.append(&chunk, 0)?;
                chunk.reset(0);
            }
        }
        table.join(vec![appender.finish()])
    }

    /// What the references of all rows of a piece become.
    fn numbers_of(&self, piece: &Piece, table: &Table) -> Vec<i64> {
        let physical = table.schema()[self.column].ty.physical();
        let slices = piece.slices.iter();
        let datums = slices.flat_map(|slice| {
            (0..slice.rows).map(move |slot| slice.blocks[self.column].datum(slot, physical))
        });
        let number = |datum: Datum<'_>| match self.datum(self.column, datum) {
            Datum::Integer(number) => number as i64,
            _ => unreachable!("a row number is never NULL"),
        };
        datums.map(number).collect()
    }
}
