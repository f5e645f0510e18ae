//! Rows that [count](super::counting), numbered.
//!
//! For each position there is the number of rows that count before it. So the number in a stretch is one
//! difference, and, with a list of the positions that count, the place of the nth in a stretch is one
//! look-up.
//!
//! A [gap](super::gaps) counts as many rows as all its blocks do; the nth one is then searched among the
//! counts.

use super::counting::Counting;
use super::previous::Previous;
use super::scan::{fill, scan};
use super::section::Section;
use crate::exec::operator::Tasks;
use entasis_vector::Result;
use std::ops::Range;
use std::sync::Arc;

/// See the module.
pub struct Counted {
    /// The counts by position, and the total after the last one.
    before: Vec<u32>,
    /// The positions that count, if they are needed and there are no gaps.
    positions: Vec<u32>,
    /// The counts of gaps.
    blocks: Option<Arc<BlockCounts>>,
}

/// How many rows count before each block of a stored partition, and in all.
pub struct BlockCounts(Vec<u32>);

impl Default for BlockCounts {
    fn default() -> BlockCounts {
        BlockCounts(vec![0])
    }
}

impl BlockCounts {
    /// Adds the block that `counted` has counted.
    pub fn push(&mut self, counted: &Counted) {
        let block = counted.before[counted.before.len() - 1];
        self.0.push(self.0[self.0.len() - 1] + block);
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<u32>()
    }
}

impl Counted {
    /// Finds the rows of `section` that count, and their positions if `lists`. `blocks` has the counts of
    /// gaps.
    ///
    /// # Errors
    /// Those of `tasks`.
    pub fn new(
        counting: &Counting,
        lists: bool,
        section: &Section,
        previous: Option<&Previous>,
        blocks: Option<&Arc<BlockCounts>>,
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
        if let (Some(gaps), Some(BlockCounts(blocks))) = (section.gaps(), blocks.map(|blocks| &**blocks)) {
            gaps.all().for_each(|(at, gap)| before[at + 1] = blocks[gap.end] - blocks[gap.start]);
        }
        scan(&mut before[1..], &[0], |a, b| a + b, tasks)?;
        let all = before[section.len()];
        let mut positions = Vec::new();
        if lists && section.gaps().is_none() {
            positions.reserve_exact(all as usize);
            let counting = before.windows(2).enumerate().filter(|(_, pair)| pair[0] < pair[1]);
            positions.extend(counting.map(|(position, _)| position as u32));
        }
        Ok(Counted { before, positions, blocks: blocks.cloned() })
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

    /// The position of the `n`th row that counts, of all rows, from 0. It may be [missed](super::gaps).
    pub fn nth(&self, n: u32, section: &Section) -> u32 {
        let Some(gaps) = section.gaps() else { return self.positions[n as usize] };
        let position = self.before.partition_point(|before| *before <= n) - 1;
        if let (Some(_), Some(blocks)) = (gaps.at(position), &self.blocks) {
            gaps.miss([blocks.0.partition_point(|before| *before <= n) - 1]);
        }
        position as u32
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        (self.before.capacity() + self.positions.capacity()) * size_of::<u32>()
    }
}
