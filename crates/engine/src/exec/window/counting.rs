//! Which rows count: those whose argument is not NULL, for which a filter is true, and, on request, of equal
//! ones only the first of the partition.

use super::previous::Previous;
use super::scan::fill;
use super::section::Section;
use crate::exec::operator::Tasks;
use entasis_vector::{CHUNK_ROWS, Native, PhysicalType, Result, Vector};
use std::ops::Range;

/// Which rows count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counting {
    /// Those where these columns are not NULL.
    pub args: Vec<usize>,
    /// Those where this column is true.
    pub filter: Option<usize>,
    /// Of the rows of a partition that count and are equal in `args`, only the first.
    pub distinct: bool,
}

impl Counting {
    /// Calls `take` with positions, a chunk of them at a time, and for each whether it counts, in the order
    /// of positions within each of several ranges.
    ///
    /// # Errors
    /// Those of `take`.
    pub fn each_chunk(
        &self,
        section: &Section,
        range: Range<usize>,
        previous: Option<&Previous>,
        mut take: impl FnMut(Range<usize>, &[bool]) -> Result<()>,
    ) -> Result<()> {
        let mut counts = [true; CHUNK_ROWS];
        let mut vector = Vector::new(PhysicalType::Bool);
        for first in range.clone().step_by(CHUNK_ROWS) {
            let positions = first..range.end.min(first + CHUNK_ROWS);
            let counts = &mut counts[..positions.len()];
            counts.fill(true);
            if let Some(filter) = self.filter {
                section.read(filter, positions.clone(), &mut vector);
                let values = vector.values::<u8>();
                counts.iter_mut().zip(values).for_each(|(counts, &value)| *counts = value != 0);
                only_valid(&vector, counts);
            }
            for &arg in self.args.iter().filter(|&&arg| section.has_nulls(arg)) {
                section.read(arg, positions.clone(), &mut vector);
                only_valid(&vector, counts);
            }
            if let Some(previous) = previous {
                previous.only_first(section, positions.clone(), counts);
            }
            take(positions, counts)?;
        }
        Ok(())
    }
}

/// Rows where `vector` is NULL do not count.
fn only_valid(vector: &Vector, counts: &mut [bool]) {
    if vector.validity().is_some() {
        counts.iter_mut().enumerate().for_each(|(row, counts)| *counts &= vector.is_valid(row));
    }
}

/// The values of `column` in all rows of `section`, converted; `none` in rows that do not count. So many of
/// `none` precede them.
///
/// # Errors
/// Those of `tasks`.
pub fn read<T: Native, V: Copy + Send + Sync>(
    column: usize,
    counting: &Counting,
    section: &Section,
    previous: Option<&Previous>,
    none: V,
    lead: usize,
    convert: impl Fn(T) -> V + Sync,
    tasks: &dyn Tasks,
) -> Result<Vec<V>> {
    let mut values = vec![none; lead + section.len()];
    fill(&mut values[lead..], tasks, |range, values| {
        let mut vector = Vector::new(T::PHYSICAL);
        counting.each_chunk(section, range.clone(), previous, |positions, counts| {
            section.read(column, positions.clone(), &mut vector);
            let own = &mut values[positions.start - range.start..];
            for ((value, &counts), &given) in own.iter_mut().zip(counts).zip(vector.values::<T>()) {
                *value = if counts { convert(given) } else { none };
            }
            Ok(())
        })
    })?;
    Ok(values)
}
