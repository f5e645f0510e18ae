//! Columns of a section copied to consecutive rows of their own: for code that compares or sorts values.

use super::counting::Counting;
use super::section::Section;
use crate::context::QueryContext;
use crate::exec::materialized::Materialized;
use crate::exec::operator::Tasks;
use crate::exec::sort::order::{OrderKey, bytes_for_row, order};
use crate::memory::Reservation;
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{CHUNK_ROWS, Result, Vector};
use std::ops::Range;

/// Bytes that need not be reserved.
const LITTLE: usize = 64 << 10;

/// Copied rows, and their memory until they are dropped. Row ids are 0, 1, 2, …
pub struct Copied {
    /// The copies.
    pub rows: Materialized,
    /// The position of each in the section.
    pub at: Vec<u32>,
    memory: Reservation,
}

impl Copied {
    /// The ids of the rows in the order of `keys`.
    ///
    /// # Errors
    /// Resource, if there is no memory for it; those of `tasks`.
    pub fn order(&mut self, keys: &[OrderKey], tasks: &dyn Tasks) -> Result<Vec<u32>> {
        let own = self.memory.bytes();
        self.reserve(self.rows.rows() * bytes_for_row(self.rows.columns(), keys))?;
        let ids = order(&self.rows, keys, self.rows.ids().collect(), Some(tasks))?;
        self.memory.resize(own + ids.capacity() * size_of::<u32>())?;
        Ok(ids)
    }

    /// The rows, and their memory until their owner reserves it.
    pub fn into_rows(self) -> (Materialized, Reservation) {
        (self.rows, self.memory)
    }

    /// Reserves so many bytes more, for what is made of the rows until its owner reserves it.
    ///
    /// # Errors
    /// Resource, if there are not so many.
    pub fn reserve(&mut self, bytes: usize) -> Result<()> {
        self.memory.resize(self.memory.bytes() + bytes)
    }
}

/// The values of `columns` in the rows of `section` at `range` that count.
///
/// # Errors
/// Resource, if there is no memory for them; those of `tasks`.
pub fn copied(
    section: &Section,
    columns: &[usize],
    metas: &[ColumnMeta],
    range: Range<usize>,
    counting: Option<&Counting>,
    context: &QueryContext,
    tasks: &dyn Tasks,
) -> Result<Copied> {
    let metas: Vec<ColumnMeta> = columns.iter().map(|&column| metas[column].clone()).collect();
    let mut rows = Materialized::new(&metas);
    let mut at = Vec::new();
    let mut memory = Reservation::new(&context.memory);
    let mut vectors: Vec<Vector> = metas.iter().map(|meta| Vector::new(meta.physical)).collect();
    let mut take = |positions: Range<usize>, counts: &[bool]| {
        tasks.check()?;
        section.read_all(columns, positions.clone(), &mut vectors);
        let picks: Vec<u16> = (0..positions.len() as u16).filter(|&row| counts[row as usize]).collect();
        let picked: Vec<(&Vector, Option<&[u16]>)> =
            vectors.iter().map(|vector| (vector, Some(&picks[..]))).collect();
        rows.append_vectors(&picked, picks.len());
        at.extend(picks.iter().map(|&row| positions.start as u32 + u32::from(row)));
        let bytes = rows.bytes() + at.capacity() * size_of::<u32>();
        if bytes >= memory.bytes() + LITTLE { memory.resize(bytes) } else { Ok(()) }
    };
    match counting {
        Some(counting) => counting.each_chunk(section, range, None, take)?,
        None => {
            for first in range.clone().step_by(CHUNK_ROWS) {
                let positions = first..range.end.min(first + CHUNK_ROWS);
                take(positions.clone(), &vec![true; positions.len()])?;
            }
        }
    }
    Ok(Copied { rows, at, memory })
}
