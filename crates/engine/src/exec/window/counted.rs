//! Rows that [count](super::counting), numbered.
//!
//! For each position there is the number of rows that count before it. So how many do in a stretch is one
//! difference, and, with a list of the positions that count, where the nth of a stretch is is one look-up.

use super::counting::Counting;
use super::previous::Previous;
use super::scan::{fill, scan};
use super::section::Section;
use crate::exec::operator::Tasks;
use entasis_vector::Result;
use std::ops::Range;

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
