//! `first_value`, `last_value`, `nth_value` and `any_value`: the value of a row of the frame.
//!
//! A call finds a row, by its place among the pieces of the frame or, if rows without value are ignored,
//! among the rows that count; its value is then gathered like any other.

use super::counted::Counted;
use super::frame::Pieces;
use super::operand::Operand;
use super::section::Section;
use super::view::View;
use crate::exec::materialized::Materialized;
use entasis_vector::{Error, Result, Vector};

/// A call for the value of a row of the frame.
#[derive(Debug)]
pub struct Pick {
    /// The column of the value.
    pub value: usize,
    /// Which row.
    pub which: Which,
    /// The state that tells which rows count, if not all do.
    pub counted: Option<usize>,
    /// The frame.
    pub frame: usize,
}

/// Which row of a frame.
#[derive(Debug)]
pub enum Which {
    /// The first one.
    First,
    /// The last one.
    Last,
    /// The one of this number, from 1.
    Nth(Operand),
}

impl Pick {
    /// Writes the values for the rows. `counted` has the rows that count, if not all do.
    ///
    /// # Errors
    /// Input, if a number is not positive.
    pub fn write(&self, counted: Option<&Counted>, view: &View<'_>, out: &mut Vector) -> Result<()> {
        let mut ids = Vec::with_capacity(view.places.rows.len());
        self.find(counted, view, &mut ids)?;
        view.section.gather(self.value, &ids, out);
        Ok(())
    }

    /// Finds the row whose value each row of `view` gets. `counted` has the rows that count, if not all do.
    ///
    /// # Errors
    /// Input, if a number is not positive.
    pub fn find(&self, counted: Option<&Counted>, view: &View<'_>, ids: &mut Vec<u32>) -> Result<()> {
        let (section, rows, frames) = (view.section, view.places.rows.clone(), &view.frames[self.frame]);
        let id =
            |position: Option<u32>| position.map_or(Materialized::NO_ROW, |position| section.id(position));
        match &self.which {
            Which::First => {
                ids.extend((0..rows.len()).map(|row| id(nth(frames.pieces(row), 0, counted, section))));
            }
            Which::Last => {
                ids.extend((0..rows.len()).map(|row| id(last(frames.pieces(row), counted, section))));
            }
            Which::Nth(numbers) => {
                let mut wanted = Vec::new();
                numbers.integers(section, rows, &mut wanted)?;
                for (row, number) in wanted.into_iter().enumerate() {
                    if let Some(number) = number.filter(|number| *number <= 0) {
                        return Err(Error::input(format!(
                            "nth_value needs a positive row number, not {number}"
                        )));
                    }
                    let position =
                        number.and_then(|number| nth(frames.pieces(row), number - 1, counted, section));
                    ids.push(id(position));
                }
            }
        }
        Ok(())
    }
}

/// The position of the row of number `n`, from 0.
fn nth(pieces: Pieces, mut n: i128, counted: Option<&Counted>, section: &Section) -> Option<u32> {
    for piece in pieces.iter() {
        let (start, end) = (piece.start as u32, piece.end as u32);
        let all = || section.rows_between(start, end);
        let rows = counted.map_or_else(all, |counted| counted.count(piece.clone()).into()).into();
        if n < rows {
            return Some(match counted {
                Some(counted) => counted.nth(counted.before(piece.start) + n as u32, section),
                None => section.position(section.row(start) + n as i64),
            });
        }
        n -= rows;
    }
    None
}

/// The position of the last row.
fn last(pieces: Pieces, counted: Option<&Counted>, section: &Section) -> Option<u32> {
    let mut pieces = pieces.iter().rev();
    match counted {
        Some(counted) => pieces
            .find(|piece| counted.count(piece.clone()) > 0)
            .map(|piece| counted.nth(counted.before(piece.end) - 1, section)),
        None => pieces.next().map(|piece| section.position(section.row(piece.end as u32) - 1)),
    }
}
