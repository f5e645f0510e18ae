//! The rows that a statement changes: the result of its plan, with each row of the table only once.

use crate::constraints::values::datum;
use crate::state::interrupt::Interrupt;
use crate::values::rows::Rows;
use entasis_sql::{Action, Change, Repeated};
use entasis_storage::{Datum, RowId, TableEntry};
use entasis_vector::error::sqlstate::CARDINALITY;
use entasis_vector::{Chunk, Error, ErrorKind, Result};
use std::collections::HashMap;

/// Bytes of a row that was seen, in a table by the hash of its key.
const SEEN: usize = 96;

/// What happens to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Added,
    Updated,
    Removed,
}

/// A row, and the place of its new values.
pub(crate) struct RowChange<'a> {
    pub(crate) fate: Fate,
    /// Its id; meaningless for a row to add.
    pub(crate) id: RowId,
    chunk: &'a Chunk,
    row: usize,
    /// The number of the chunk.
    number: usize,
}

/// The rows of a statement: first those to change, in stored order and each only once, then those to add.
pub(crate) struct RowsToChange<'a> {
    pub(crate) rows: Vec<RowChange<'a>>,
    /// The column of the result that holds the first of the new values.
    first_value: usize,
}

/// The column of the result of a change that holds the first of the new values.
pub(crate) fn first_value(change: &Change) -> usize {
    1 + usize::from(change.action == Action::ByRow)
}

impl RowsToChange<'_> {
    /// The chunk of each row, and its index there.
    pub(crate) fn places(&self) -> Vec<(usize, usize)> {
        self.rows.iter().map(|row| (row.number, row.row)).collect()
    }

    /// The new value of the statement's column `at`.
    pub(crate) fn datum<'r>(&'r self, row: &'r RowChange<'_>, at: usize) -> Datum<'r> {
        datum(row.chunk, self.first_value + at, row.row)
    }
}

/// Reads the result of the plan of `change`.
///
/// # Errors
/// Constraint, if a row occurs twice in a statement that does not allow it; interrupted.
pub(crate) fn rows_to_change<'a>(
    change: &Change,
    entry: &TableEntry,
    found: &'a Rows,
    interrupt: &mut Interrupt,
) -> Result<RowsToChange<'a>> {
    // They are sorted, too, which takes half as much again.
    interrupt.keep_bytes(found.rows() as usize * size_of::<RowChange<'_>>() / 2 * 3)?;
    let mut rows = Vec::with_capacity(found.rows() as usize);
    for (number, chunk) in found.chunks().iter().enumerate() {
        interrupt.look()?;
        for row in 0..chunk.len() {
            let fate = match change.action {
                Action::Update => Fate::Updated,
                Action::Delete => Fate::Removed,
                Action::ByRow => match datum(chunk, 1, row) {
                    Datum::Integer(1) => Fate::Added,
                    Datum::Integer(2) => Fate::Updated,
                    Datum::Integer(3) => Fate::Removed,
                    _ => continue,
                },
            };
            let id = match datum(chunk, 0, row) {
                Datum::Integer(id) => RowId::from_u64(id as u64),
                _ if fate == Fate::Added => RowId::from_u64(0),
                _ => return Err(Error::internal("a row to change has no id")),
            };
            rows.push(RowChange { fate, id, chunk, row, number });
        }
    }
    // The sort is stable, so that the first of several changes to a row counts, and rows to add keep their
    // order.
    rows.sort_by_key(|row| (row.fate == Fate::Added, (row.fate != Fate::Added).then_some(row.id)));
    let is_repeated = |pair: &[RowChange<'_>]| pair[1].fate != Fate::Added && pair[0].id == pair[1].id;
    if change.repeated == Repeated::Error && rows.windows(2).any(is_repeated) {
        let text = format!("the statement changes a row of table {} a second time", entry.name);
        let hint = "make sure that no two rows of the source go to one row of the table";
        return Err(Error::new(ErrorKind::Constraint, text).with_hint(hint).with_sqlstate(CARDINALITY));
    }
    rows.dedup_by(|b, a| b.fate != Fate::Added && a.fate != Fate::Added && a.id == b.id);
    let mut rows = RowsToChange { rows, first_value: first_value(change) };
    for &number in &change.conflicts {
        refuse_equal(change, entry, number, &mut rows, interrupt)?;
    }
    Ok(rows)
}

/// Keeps the first of rows to add that share key `number`, one of the keys in the statement's `ON CONFLICT`.
///
/// # Errors
/// Constraint, if there are such rows and the statement does not skip them; interrupted.
fn refuse_equal(
    change: &Change,
    entry: &TableEntry,
    number: usize,
    rows: &mut RowsToChange<'_>,
    interrupt: &mut Interrupt,
) -> Result<()> {
    let place = |column: &usize| {
        change.columns.iter().position(|c| c == column).expect("rows to add have all columns")
    };
    let places: Vec<usize> = entry.definition.keys[number].columns.iter().map(place).collect();
    let mut seen: HashMap<u64, Vec<usize>> = HashMap::new();
    let mut is_equal = vec![false; rows.rows.len()];
    for (index, row) in rows.rows.iter().enumerate().filter(|(_, row)| row.fate == Fate::Added) {
        interrupt.look_now_and_then()?;
        let key = |row| places.iter().map(|&at| rows.datum(row, at)).collect::<Vec<_>>();
        let own = key(row);
        if own.iter().any(|datum| datum.is_null()) {
            continue;
        }
        let hash = own.iter().fold(0u64, |hash, datum| hash.rotate_left(7) ^ datum.hash());
        let others = seen.entry(hash).or_default();
        let same = |other: &usize| key(&rows.rows[*other]).iter().zip(&own).all(|(a, b)| a.is_same(*b));
        if others.iter().any(same) {
            if change.repeated == Repeated::Error {
                let text =
                    format!("two rows that the statement adds to table {} have the same key", entry.name);
                let hint = "make sure that no two rows of the source have the same key";
                return Err(Error::new(ErrorKind::Constraint, text)
                    .with_hint(hint)
                    .with_sqlstate(CARDINALITY));
            }
            is_equal[index] = true;
        } else {
            interrupt.keep_bytes(SEEN)?;
            others.push(index);
        }
    }
    let mut equal = is_equal.into_iter();
    rows.rows.retain(|_| !equal.next().expect("one for each"));
    Ok(())
}
