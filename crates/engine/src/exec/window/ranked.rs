//! Rows of frames by the rank of a value: for aggregates that only a value or two of a frame decide, like a median.
//!
//! The rows of a section that count get ranks, numbers from 0 on in the order of their values. Of a short frame the ranks are
//! copied and the wanted one selected; of a long one a [wavelet matrix](Wavelet) says it. Which row has a rank is one look-up.

use super::copied::copied;
use super::counted::{Counted, Counting};
use super::frame::Pieces;
use super::section::Section;
use super::wavelet::Wavelet;
use crate::exec::operator::Tasks;
use crate::exec::sort::order::{OrderKey, order};
use entasis_vector::Result;
use entasis_vector::expr::ColumnMeta;
use std::ops::RangeInclusive;

/// Rows of a frame up to which their ranks are copied.
const SHORT: usize = 256;

/// See the module.
pub struct Ranked {
    /// Which rows count.
    counted: Counted,
    /// The ranks of those, in the order of positions.
    ranks: Vec<u32>,
    /// The position of each rank.
    positions: Vec<u32>,
    /// The same as `ranks`, if a partition has more rows than a short frame.
    wavelet: Option<Wavelet>,
}

impl Ranked {
    /// Ranks the rows of `section` that count by the values of `column`.
    ///
    /// # Errors
    /// Those of `tasks`.
    pub fn new(
        column: usize,
        counting: &Counting,
        metas: &[ColumnMeta],
        section: &Section,
        tasks: &dyn Tasks,
    ) -> Result<Ranked> {
        let counted = Counted::new(counting, false, section, None, tasks)?;
        let (rows, at) = copied(section, &[column], metas, Some(counting), tasks)?;
        let key = OrderKey { column: 0, descending: false, nulls_first: false };
        let ids = order(&rows, &[key], rows.ids().collect(), Some(tasks))?;
        let mut ranks = vec![0; ids.len()];
        ids.iter().zip(0..).for_each(|(&id, rank)| ranks[id as usize] = rank);
        let positions = ids.iter().map(|&id| at[id as usize]).collect();
        let is_long = section.partitions().windows(2).any(|pair| (pair[1] - pair[0]) as usize > SHORT);
        let wavelet = if is_long { Some(Wavelet::new(ranks.clone(), tasks)?) } else { None };
        Ok(Ranked { counted, ranks, positions, wavelet })
    }

    /// Adds to `found` the positions of the rows at some places of the order of a frame's rows; `places` says which, of so
    /// many. `scratch` is memory.
    pub fn pick(
        &self,
        pieces: &Pieces,
        places: impl Fn(usize) -> Option<RangeInclusive<usize>>,
        scratch: &mut Vec<u32>,
        found: &mut Vec<u32>,
    ) {
        let part = |piece: std::ops::Range<usize>| {
            self.counted.before(piece.start) as usize..self.counted.before(piece.end) as usize
        };
        let mut ranges = [0..0, 0..0, 0..0];
        pieces.iter().zip(&mut ranges).for_each(|(piece, range)| *range = part(piece));
        let count = ranges.iter().map(ExactSizeIterator::len).sum::<usize>();
        if count == 0 {
            return;
        }
        let Some(places) = places(count) else { return };
        match &self.wavelet {
            Some(wavelet) if count > SHORT => {
                found.extend(places.map(|place| self.positions[wavelet.nth(ranges.clone(), place) as usize]));
            }
            _ => {
                scratch.clear();
                ranges.into_iter().for_each(|range| scratch.extend_from_slice(&self.ranks[range]));
                let (first, last) = (*places.start(), *places.end());
                scratch.select_nth_unstable(last);
                // What comes before the last wanted one is not in order yet.
                scratch[..=last].select_nth_unstable(first);
                scratch[first..=last].sort_unstable();
                found.extend(scratch[first..=last].iter().map(|&rank| self.positions[rank as usize]));
            }
        }
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        let lists = (self.ranks.capacity() + self.positions.capacity()) * size_of::<u32>();
        self.counted.bytes() + lists + self.wavelet.as_ref().map_or(0, Wavelet::bytes)
    }
}
