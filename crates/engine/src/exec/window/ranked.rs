//! Rows of frames by the rank of a value: for aggregates that depend on only a value or two of a frame, like
//! a median.
//!
//! The rows of a stretch that count get ranks, numbers from 0 on in the order of their values. The row of a
//! rank is one look-up; the nth rank of a frame is found in one of two ways:
//! - where frames are short, the stretch covers the frames of a chunk; a bit for each rank tells whether its
//!   row is in the frame, a few of them change from row to row, and the nth one is found by counting bits;
//! - otherwise the stretch is the section, and a [wavelet matrix](Wavelet) finds it, or, where a frame is
//!   short or has holes, a copy of its ranks.

use super::copied::copied;
use super::counting::Counting;
use super::frame::Pieces;
use super::section::Section;
use super::wavelet::Wavelet;
use crate::context::QueryContext;
use crate::exec::operator::Tasks;
use crate::exec::sort::order::OrderKey;
use entasis_vector::Result;
use entasis_vector::expr::ColumnMeta;
use std::ops::{Range, RangeInclusive};

/// Rows of a frame up to which their ranks are copied.
const SHORT: usize = 256;
/// Rows of a stretch up to which bits are counted.
const NEAR: usize = 8 << 10;

/// See the module.
pub struct Ranked {
    /// Where the stretch begins.
    first: usize,
    /// By position in the stretch, and after it: how many rows before it count.
    before: Vec<u32>,
    /// The ranks of those that count, in the order of positions.
    ranks: Vec<u32>,
    /// The position of each rank.
    positions: Vec<u32>,
    /// The matrix of `ranks`, if frames may be long.
    wavelet: Option<Wavelet>,
}

/// Which ranks are in a frame, from row to row.
#[derive(Default)]
pub struct Sliding {
    words: Vec<u64>,
    /// The rows in the frame, of those that count.
    rows: Range<usize>,
    /// Memory for ranks.
    copy: Vec<u32>,
}

impl Sliding {
    fn flip(&mut self, ranks: &[u32]) {
        ranks.iter().for_each(|&rank| self.words[rank as usize / 64] ^= 1 << (rank % 64));
    }

    /// Moves to the frame `rows`.
    fn move_to(&mut self, rows: Range<usize>, ranks: &[u32]) {
        let old = std::mem::replace(&mut self.rows, rows.clone());
        if rows.start >= old.end || old.start >= rows.end {
            self.flip(&ranks[old]);
            self.flip(&ranks[rows]);
            return;
        }
        // Rows between the old bound and the new one enter or leave.
        self.flip(&ranks[old.start.min(rows.start)..old.start.max(rows.start)]);
        self.flip(&ranks[old.end.min(rows.end)..old.end.max(rows.end)]);
    }

    /// Calls `take` with the ranks at these places of the frame.
    fn pick(&self, places: RangeInclusive<usize>, mut take: impl FnMut(u32)) {
        let mut before = 0;
        for (i, &word) in self.words.iter().enumerate() {
            let count = word.count_ones() as usize;
            if before + count > *places.start() {
                let mut left = word;
                for place in before..before + count {
                    if places.contains(&place) {
                        take(i as u32 * 64 + left.trailing_zeros());
                    }
                    left &= left - 1;
                }
            }
            before += count;
            if before > *places.end() {
                return;
            }
        }
    }
}

impl Ranked {
    /// Ranks the rows of `section` at `range` that count by the values of `column`.
    ///
    /// # Errors
    /// Resource, if there is no memory for it; those of `tasks`.
    pub fn new(
        column: usize,
        counting: &Counting,
        metas: &[ColumnMeta],
        section: &Section,
        range: Range<usize>,
        context: &QueryContext,
        tasks: &dyn Tasks,
    ) -> Result<Ranked> {
        let mut copied = copied(section, &[column], metas, range.clone(), Some(counting), context, tasks)?;
        let key = OrderKey { column: 0, descending: false, nulls_first: false };
        let ids = copied.order(&[key], tasks)?;
        // Places before, ranks and positions.
        copied.reserve((range.len() + 2 * ids.len()) * size_of::<u32>())?;
        let at = &copied.at;
        let mut before = Vec::with_capacity(range.len() + 1);
        for (nth, &position) in at.iter().enumerate() {
            // All positions up to this one that are not yet listed.
            before.resize(position as usize - range.start + 1, nth as u32);
        }
        before.resize(range.len() + 1, at.len() as u32);
        let mut ranks = vec![0; ids.len()];
        ids.iter().zip(0..).for_each(|(&id, rank)| ranks[id as usize] = rank);
        let positions = ids.iter().map(|&id| at[id as usize]).collect();
        let mut wavelet = None;
        if ranks.len() > NEAR {
            drop(ids);
            copied.reserve(Wavelet::bytes_for(ranks.len(), size_of::<u32>()))?;
            wavelet = Some(Wavelet::new(ranks.clone(), tasks)?);
        }
        Ok(Ranked { first: range.start, before, ranks, positions, wavelet })
    }

    /// Adds to `found` the positions of the rows at some places in the order of a frame's rows; `places`
    /// returns these, given the number of rows. `sliding` is used here alone.
    pub fn pick(
        &self,
        pieces: &Pieces,
        places: impl Fn(usize) -> Option<RangeInclusive<usize>>,
        sliding: &mut Sliding,
        found: &mut Vec<u32>,
    ) {
        let part = |piece: Range<usize>| {
            self.before[piece.start - self.first] as usize..self.before[piece.end - self.first] as usize
        };
        let mut ranges = [0..0, 0..0, 0..0];
        pieces.iter().zip(&mut ranges).for_each(|(piece, range)| *range = part(piece));
        let count = ranges.iter().map(ExactSizeIterator::len).sum::<usize>();
        if count == 0 {
            return;
        }
        let Some(places) = places(count) else { return };
        let is_one = ranges[1..].iter().all(Range::is_empty);
        let mut take = |rank: u32| found.push(self.positions[rank as usize]);
        match &self.wavelet {
            Some(wavelet) if count > SHORT => {
                places.for_each(|place| take(wavelet.nth(ranges.clone(), place)));
            }
            None if is_one => {
                sliding.words.resize(self.ranks.len().div_ceil(64), 0);
                sliding.move_to(ranges[0].clone(), &self.ranks);
                sliding.pick(places, take);
            }
            _ => {
                let copy = &mut sliding.copy;
                copy.clear();
                ranges.into_iter().for_each(|range| copy.extend_from_slice(&self.ranks[range]));
                let (first, last) = (*places.start(), *places.end());
                copy.select_nth_unstable(last);
                // The ranks before the last wanted one are not in order yet.
                copy[..=last].select_nth_unstable(first);
                copy[first..=last].sort_unstable();
                copy[first..=last].iter().for_each(|&rank| take(rank));
            }
        }
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        let lists = self.before.capacity() + self.ranks.capacity() + self.positions.capacity();
        lists * size_of::<u32>() + self.wavelet.as_ref().map_or(0, Wavelet::bytes)
    }
}
