//! Columns of a section copied to consecutive rows of their own: for code that compares or sorts values.

use super::section::Section;
use crate::exec::materialized::Materialized;
use crate::exec::operator::Tasks;
use crate::exec::window::counting::Counting;
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{CHUNK_ROWS, Result, Vector};
use std::ops::Range;

/// The values of `columns` in the rows of `section` at `range` that count, and the position of each. Row ids
/// are 0, 1, 2, …
///
/// # Errors
/// Those of `tasks`.
pub fn copied(
    section: &Section,
    columns: &[usize],
    metas: &[ColumnMeta],
    range: Range<usize>,
    counting: Option<&Counting>,
    tasks: &dyn Tasks,
) -> Result<(Materialized, Vec<u32>)> {
    let metas: Vec<ColumnMeta> = columns.iter().map(|&column| metas[column].clone()).collect();
    let mut rows = Materialized::new(&metas);
    let mut at = Vec::new();
    let mut vectors: Vec<Vector> = metas.iter().map(|meta| Vector::new(meta.physical)).collect();
    let mut take = |positions: Range<usize>, counts: &[bool]| {
        tasks.check()?;
        section.read_all(columns, positions.clone(), &mut vectors);
        let picks: Vec<u16> = (0..positions.len() as u16).filter(|&row| counts[row as usize]).collect();
        let picked: Vec<(&Vector, Option<&[u16]>)> =
            vectors.iter().map(|vector| (vector, Some(&picks[..]))).collect();
        rows.append_vectors(&picked, picks.len());
        at.extend(picks.iter().map(|&row| positions.start as u32 + u32::from(row)));
        Ok(())
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
    Ok((rows, at))
}
