//! Rows in their parts, before they are finalized: in the order of arrival, each with its number within its
//! part.

use super::ranges::{Numbered, PARTS, Parts};
use crate::exec::join::table::{Numbering, ProbeKeys};
use crate::exec::materialized::{Materialized, Placing};
use crate::exec::scatter::Scatter;
use crate::sync::{AtomicUsize, Ordering};
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{CHUNK_ROWS, Chunk, Error, Result, Slots};

/// Rows that are moved to their parts together.
// PERF: about a hundred for each of 190 parts, in the second-level cache.
const BATCH_ROWS: usize = 8 * CHUNK_ROWS;

/// What all workers of the second reading write to.
pub(crate) struct PrecountedRows {
    pub(super) parts: Parts,
    /// For each part, the next free place.
    next: Vec<AtomicUsize>,
    /// For each part, the numbers of its rows within it.
    pub(super) numbers: Vec<Slots>,
    pub(super) placing: Placing,
}

impl PrecountedRows {
    /// Room for the rows that have been counted.
    pub(crate) fn new(parts: Parts, placing: Placing) -> PrecountedRows {
        PrecountedRows {
            next: (0..parts.count()).map(|part| AtomicUsize::new(parts.rows(part).start)).collect(),
            numbers: (0..parts.count()).map(|part| Slots::zeroed(parts.rows(part).len(), 4)).collect(),
            parts,
            placing,
        }
    }

    /// Bytes beside those of the rows and of the table, including what `workers` need to finalize rows of
    /// `width` bytes.
    pub(crate) fn bytes_for(parts: &Parts, width: usize, workers: usize) -> usize {
        let settling = (4 + width.min(16)) * parts.most_rows() + (width + 16) * BATCH_ROWS;
        4 * parts.all_rows() + workers * settling
    }

    /// What rows are numbered by.
    pub(crate) fn numbering(&self) -> &Numbering {
        self.parts.numbering()
    }

    /// Checks that all counted rows have been placed.
    ///
    /// # Errors
    /// Internal, unless each part has as many rows as have been counted.
    pub(super) fn check(&self) -> Result<()> {
        let is_filled =
            |(part, next): (usize, &AtomicUsize)| next.load(Ordering::Relaxed) == self.parts.rows(part).end;
        if self.next.iter().enumerate().all(is_filled) { Ok(()) } else { Err(other_rows()) }
    }
}

fn other_rows() -> Error {
    Error::internal("the input of a join had other rows when it was read again")
}

/// A worker's rows on their way to their parts.
pub(crate) struct Batch {
    rows: Materialized,
    /// The part that each row goes to.
    spread: Scatter<PARTS>,
    /// The number of each row within its part.
    numbers: Vec<u32>,
    /// For each part, the first place of these rows.
    at: Vec<usize>,
    room: Vec<u64>,
    words: Vec<u64>,
}

impl Batch {
    /// No rows yet, of these columns.
    pub(crate) fn new(columns: &[ColumnMeta]) -> Batch {
        Batch {
            rows: Materialized::expecting(columns, BATCH_ROWS),
            spread: Scatter::default(),
            numbers: Vec::new(),
            at: vec![0; PARTS],
            room: Vec::new(),
            words: Vec::new(),
        }
    }

    /// Takes the rows of a chunk, except those that equal nothing: the columns are at these positions.
    ///
    /// # Errors
    /// Internal: rows differ from those that were counted.
    pub(crate) fn add(
        &mut self,
        to: &PrecountedRows,
        keys: &mut ProbeKeys,
        chunk: &Chunk,
        columns: &[usize],
    ) -> Result<()> {
        let Numbered { rows, numbers, .. } = to.numbering().of(keys, &mut self.room);
        let (parts, own) = (self.spread.more(), &mut self.numbers);
        let mut are_known = true;
        let mut take = |number: u64| {
            let (part, number) = to.parts.find(number).unwrap_or_else(|| {
                are_known = false;
                (0, 0)
            });
            parts.push(part);
            own.push(number);
        };
        match rows {
            None => numbers.iter().for_each(|&number| take(number)),
            Some(rows) => rows.iter().for_each(|&row| take(numbers[usize::from(row)])),
        }
        if !are_known {
            return Err(other_rows());
        }
        self.rows.append(chunk, columns, rows);
        if self.numbers.len() + CHUNK_ROWS > BATCH_ROWS { self.put(to) } else { Ok(()) }
    }

    /// Puts the rows into their parts.
    ///
    /// # Errors
    /// As [`Batch::add`].
    pub(crate) fn put(&mut self, to: &PrecountedRows) -> Result<()> {
        let Batch { rows, spread, numbers, at, words, .. } = self;
        spread.arrange();
        for (part, at) in at.iter_mut().enumerate().take(to.parts.count()) {
            let own = spread.rows(part);
            if own.is_empty() {
                continue;
            }
            *at = to.next[part].fetch_add(own.len(), Ordering::Relaxed);
            let places = to.parts.rows(part);
            if *at + own.len() > places.end {
                return Err(other_rows());
            }
            let first = *at - places.start;
            let slots = &to.numbers[part];
            own.iter().enumerate().for_each(|(i, &row)| slots.put(first + i, numbers[usize::from(row)]));
        }
        let runs = (0..to.parts.count())
            .map(|part| (spread.rows(part), at[part]))
            .filter(|(rows, _)| !rows.is_empty());
        to.placing.put(rows, runs, words);
        rows.restart();
        numbers.clear();
        spread.begin();
        Ok(())
    }
}
