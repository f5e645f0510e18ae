//! Probe rows on their way to partitions, and back: a chunk's rows in the order of where they go, and chunks of what was kept of them.

use entasis_vector::expr::ColumnMeta;
use entasis_vector::{Chunk, Result, Selection, Value, Vector};

/// Places that a row may go to.
pub(crate) const PLACES: usize = 66;

/// Rows of a chunk in the order of where they go, those of one place in their own order.
// PERF: each place then takes its rows column by column, some 30 values in one run, where a loop over rows would write to 64 places
// in turn.
#[derive(Default)]
pub(crate) struct Spread {
    to: Vec<u8>,
    order: Vec<u16>,
    /// Where each place's rows begin in the order; behind the last place, where they end.
    starts: Vec<u16>,
}

impl Spread {
    /// Where each row of the next chunk goes, a place below [`PLACES`]; to be filled before [`Spread::arrange`].
    pub(crate) fn begin(&mut self) -> &mut Vec<u8> {
        self.to.clear();
        &mut self.to
    }

    /// Puts the rows in order, by counting: how many go where, then which.
    pub(crate) fn arrange(&mut self) {
        let mut next = [0u16; PLACES + 1];
        self.to.iter().for_each(|&to| next[usize::from(to) + 1] += 1);
        (1..next.len()).for_each(|i| next[i] += next[i - 1]);
        self.starts.clear();
        self.starts.extend_from_slice(&next);
        self.order.resize(self.to.len(), 0);
        for (row, &to) in self.to.iter().enumerate() {
            let at = &mut next[usize::from(to)];
            self.order[usize::from(*at)] = row as u16;
            *at += 1;
        }
    }

    /// The rows that go to a place.
    pub(crate) fn rows(&self, place: usize) -> &[u16] {
        &self.order[usize::from(self.starts[place])..usize::from(self.starts[place + 1])]
    }
}

/// Which columns of a side's chunks are kept: those that somebody reads.
pub(crate) struct KeptColumns {
    /// Where they stand in a chunk.
    pub places: Vec<usize>,
    /// A NULL of the type of each of the chunk's columns.
    nulls: Vec<Vector>,
}

impl KeptColumns {
    /// Of chunks with these columns, those that `is_read` is true of.
    ///
    /// # Errors
    /// None that is expected: NULL is of every type.
    pub(crate) fn new(columns: &[ColumnMeta], is_read: impl Fn(&ColumnMeta) -> bool) -> Result<KeptColumns> {
        let places = (0..columns.len()).filter(|&i| is_read(&columns[i])).collect();
        let null = |meta: &ColumnMeta| Vector::constant(meta.physical, &Value::Null);
        Ok(KeptColumns { places, nulls: columns.iter().map(null).collect::<Result<_>>()? })
    }

    /// Of the chunk's columns, those.
    pub(crate) fn of(&self, columns: &[ColumnMeta]) -> Vec<ColumnMeta> {
        self.places.iter().map(|&place| columns[place].clone()).collect()
    }

    /// Makes a chunk with all columns of `rows` rows: those that were kept as they are given, the others NULL.
    pub(crate) fn fill<'v>(&self, chunk: &mut Chunk, rows: usize, kept: impl Iterator<Item = &'v Vector>) {
        chunk.reset(rows);
        let group = chunk.push_group(Selection::ALL);
        let mut kept = self.places.iter().zip(kept).peekable();
        for (i, null) in self.nulls.iter().enumerate() {
            let own = kept.next_if(|(place, _)| **place == i).map(|(_, vector)| vector);
            chunk.push_column(own.unwrap_or(null).clone(), group);
        }
    }
}
