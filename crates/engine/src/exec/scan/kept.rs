//! Rows that are held back where filters leave few of a stretch, so that a chunk has the rows of several
//! stretches: this avoids the small chunks of a selective scan at their origin. Compaction needs no copies
//! here, since the columns of these rows have not been decoded yet.
//!
//! Only slots are kept. They ascend, and belong to one row group.

use std::ops::Range;

/// Slots that can be read together, since positions in their blocks have 16 bits.
const MOST_SLOTS: usize = 1 << 16;

/// Slots of rows that passed all filters.
#[derive(Debug, Default)]
pub(super) struct HeldBack {
    /// The number of the row group.
    pub(super) number: usize,
    slots: Vec<u32>,
    /// How many of them have been output.
    given: usize,
    /// The blocks of the rows that are being output.
    pub(super) runs: Vec<Range<usize>>,
    /// Their positions in these blocks, concatenated.
    pub(super) positions: Vec<u16>,
}

impl HeldBack {
    /// The number of rows.
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.given
    }

    /// True if slots up to `end` of row group `number`, whose blocks have `width` slots, can be held back
    /// too.
    pub(super) fn has_room(&self, number: usize, end: usize, width: usize) -> bool {
        let Some(&first) = self.slots.get(self.given) else { return true };
        self.number == number && end.next_multiple_of(width) - first as usize / width * width <= MOST_SLOTS
    }

    /// Holds back the slots at these positions of runs of row group `number`; both ascend.
    pub(super) fn keep(
        &mut self,
        number: usize,
        runs: &[Range<usize>],
        positions: impl Iterator<Item = usize>,
    ) {
        self.number = number;
        let mut runs = runs.iter();
        let (mut run, mut before) = (0..0, 0);
        for position in positions {
            while position >= before + run.len() {
                before += run.len();
                run = runs.next().cloned().unwrap_or(before..usize::MAX);
            }
            self.slots.push((run.start + position - before) as u32);
        }
    }

    /// The slots of the rows to be read now.
    pub(super) fn current(&self) -> &[u32] {
        &self.slots[self.given - self.positions.len()..self.given]
    }

    /// Takes at most `most` rows, to be read from `runs` at `positions`. Returns how many.
    pub(super) fn take(&mut self, most: usize, width: usize, slots: usize) -> usize {
        self.runs.clear();
        self.positions.clear();
        let (mut before, mut next) = (0, 0..0);
        for &slot in self.slots[self.given..].iter().take(most) {
            let slot = slot as usize;
            if !next.contains(&slot) {
                before += next.len();
                let start = slot / width * width;
                next = start..(start + width).min(slots);
                self.runs.push(next.clone());
            }
            self.positions.push((before + slot - next.start) as u16);
        }
        self.given += self.positions.len();
        self.positions.len()
    }

    /// Removes the rows that were output, once they have been read.
    pub(super) fn forget(&mut self) {
        if self.given == self.slots.len() {
            self.slots.clear();
            self.given = 0;
        }
        self.positions.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_come_back_as_positions_in_their_blocks() {
        let mut kept = HeldBack::default();
        kept.keep(3, &[5..8, 100..200], [0, 2, 3, 50].into_iter());
        kept.keep(3, &[1000..1005, 1005..1010], [9].into_iter());
        assert_eq!(kept.len(), 5);
        assert!(kept.has_room(3, 1010, 16) && !kept.has_room(4, 1010, 16) && !kept.has_room(3, 66_000, 16));
        assert_eq!(kept.take(4, 16, 1005), 4);
        assert_eq!(kept.runs, [0..16, 96..112, 144..160]);
        assert_eq!(kept.positions, [5, 7, 16 + 4, 32 + 3]);
        assert_eq!(kept.current(), [5, 7, 100, 147]);
        kept.forget();
        assert_eq!(kept.len(), 1);
        assert_eq!(kept.take(4, 16, 1010), 1);
        assert_eq!((kept.runs[0].clone(), kept.positions[0]), (1008..1010, 1));
        kept.forget();
        assert_eq!(kept.len(), 0);
        assert!(kept.has_room(9, 10, 16));
    }
}
