//! Rows that count: those whose argument is not NULL, for which a filter is true, and of equal ones only the first of the partition, if
//! that is asked for.
//!
//! For each position there is the number of rows that count before it. So how many do in a stretch is one difference,
//! and, with a list of the positions that count, where the nth of a stretch is is one look-up.

use super::previous::Previous;
use super::scan::{fill, scan};
use super::section::Section;
use crate::exec::operator::Tasks;
use entasis_vector::{CHUNK_ROWS, PhysicalType, Result, Vector};
use std::ops::Range;

/// Which rows count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counting {
    /// Those where these columns are not NULL.
    pub args: Vec<usize>,
    /// Those where this column is true.
    pub filter: Option<usize>,
    /// Of the rows of a partition that count and are equal in `args` only the first.
    pub distinct: bool,
}

impl Counting {
    /// Calls `take` with positions, a chunk of them at a time, and for each whether it counts, in the order of positions within
    /// each of several ranges.
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

/// See the module.
pub struct Counted {
    /// By position, and the number of all behind the last one.
    before: Vec<u32>,
    /// The positions that count, if they were asked for.
    positions: Vec<u32>,
}

impl Counted {
    /// Finds the rows of `section` that count, and their positions if `lists`.
    ///
    /// # Errors
    /// Those of `tasks`.
    pub fn new(
        counting: &Counting,
        lists: bool,
        section: &Section,
        previous: Option<&Previous>,
        tasks: &dyn Tasks,
    ) -> Result<Counted> {
        let mut before = vec![0u32; section.len() + 1];
        fill(&mut before[1..], tasks, |range, before| {
            counting.each_chunk(section, range.clone(), previous, |positions, counts| {
                let own = &mut before[positions.start - range.start..];
                own.iter_mut().zip(counts).for_each(|(before, &counts)| *before = counts.into());
                Ok(())
            })
        })?;
        scan(&mut before[1..], &[0], |a, b| a + b, tasks)?;
        let all = before[section.len()];
        let mut positions = Vec::new();
        if lists {
            positions.reserve_exact(all as usize);
            let counting = before.windows(2).enumerate().filter(|(_, pair)| pair[0] < pair[1]);
            positions.extend(counting.map(|(position, _)| position as u32));
        }
        Ok(Counted { before, positions })
    }

    /// How many rows of `range` count.
    #[inline]
    pub fn count(&self, range: Range<usize>) -> u32 {
        self.before[range.end] - self.before[range.start]
    }

    /// How many rows before `position` count.
    pub fn before(&self, position: usize) -> u32 {
        self.before[position]
    }

    /// The position of the `n`th row that counts, of all rows, from 0.
    pub fn nth(&self, n: u32) -> u32 {
        self.positions[n as usize]
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        (self.before.capacity() + self.positions.capacity()) * size_of::<u32>()
    }
}
