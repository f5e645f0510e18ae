//! Rows in order, of which sections are stretches.
//!
//! Where there is memory for one more column, the columns are permuted to the order of the rows one after the
//! other, each by all workers. Then sequential reads of rows, as a window's are, read values sequentially.
//! Rows that have become [tuples](crate::exec::tuple) stay as they are and are looked up.

use crate::exec::materialized::{Materialized, SEGMENT_ROWS};
use crate::exec::operator::Tasks;
use crate::exec::sort::Ordered;
use crate::memory::Reservation;
use entasis_vector::{Result, Vector};
use std::ops::Range;

/// See the module.
pub struct KeptOrder {
    rows: Materialized,
    /// Row ids in order; none if these are 0, 1, 2, …
    order: Vec<u32>,
    len: usize,
}

impl KeptOrder {
    /// Rows that are in order, with the ids 0, 1, 2, …
    pub fn in_place(rows: Materialized) -> KeptOrder {
        KeptOrder { len: rows.rows(), rows, order: Vec::new() }
    }

    /// Rows whose order is known, with the memory reserved for them.
    ///
    /// # Errors
    /// Those of `tasks`.
    pub fn new(ordered: Ordered, memory: &mut Reservation, tasks: &dyn Tasks) -> Result<KeptOrder> {
        let Ordered { rows, order } = ordered;
        let len = order.len();
        let (tuples, ..) = rows.compressed();
        let widest = rows.columns().iter().map(|meta| meta.physical.width()).max().unwrap_or(0);
        if tuples > 0 || memory.resize(memory.bytes() + len * widest).is_err() {
            return Ok(KeptOrder { rows, order, len });
        }
        let all = vec![true; rows.columns().len()];
        let rows = rows.rearranged(&order, &all, tasks)?;
        memory.resize(rows.bytes())?;
        Ok(KeptOrder { rows, order: Vec::new(), len })
    }

    /// The rows, in any order.
    pub fn rows(&self) -> &Materialized {
        &self.rows
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The id of the row at a place.
    pub fn id(&self, place: usize) -> u32 {
        if self.order.is_empty() { place as u32 } else { self.order[place] }
    }

    /// Writes the values of `column` at `places` to `out`, flat.
    pub fn read(&self, column: usize, places: Range<usize>, out: &mut Vector) {
        self.read_all(&[column], places, std::slice::from_mut(out));
    }

    /// The same of several columns, each to its vector.
    pub fn read_all(&self, columns: &[usize], places: Range<usize>, out: &mut [Vector]) {
        if !self.order.is_empty() {
            return self.rows.gather_all(columns, &self.order[places], out);
        }
        let (segment, first) = (places.start / SEGMENT_ROWS, places.start % SEGMENT_ROWS);
        if first + places.len() <= SEGMENT_ROWS && !places.is_empty() {
            for (&column, out) in columns.iter().zip(out) {
                self.rows.read(column, segment, first, places.len(), out);
            }
        } else {
            let ids: Vec<u32> = places.map(|place| place as u32).collect();
            self.rows.gather_all(columns, &ids, out);
        }
    }

    /// Writes the values of `column` in the rows `ids` to `out`, flat; no row gives NULL.
    pub fn gather(&self, column: usize, ids: &[u32], out: &mut Vector) {
        self.rows.gather(column, ids, out);
    }

    /// True if some value of `column` is NULL.
    pub fn has_nulls(&self, column: usize) -> bool {
        self.rows.has_nulls(column)
    }
}
