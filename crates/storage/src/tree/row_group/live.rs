//! Which slots of a row group are rows: how many, which, and in what runs.

use super::RowGroup;
use crate::tree::Numbers;
use std::ops::Range;

impl RowGroup {
    /// True if `slot` is a row.
    pub fn is_live(&self, slot: usize) -> bool {
        self.slices[slot / self.block_slots].is_live(slot % self.block_slots)
    }

    /// The number of live slots in a range.
    pub fn live_rows(&self, slots: Range<usize>) -> usize {
        if slots == (0..self.slots()) {
            return self.rows;
        }
        self.live_words(slots).map(|(_, word)| word.count_ones() as usize).sum()
    }

    /// True if all of `slots` are live.
    pub fn is_full(&self, slots: Range<usize>) -> bool {
        let width = self.block_slots;
        let slices = slots.start / width..slots.end.div_ceil(width);
        self.slices[slices].iter().all(|slice| slice.rows() == width)
            || self.live_rows(slots.clone()) == slots.len()
    }

    /// Calls `each` with every live slot of the window, counted from the window's start.
    pub fn each_live(&self, window: Range<usize>, mut each: impl FnMut(usize)) {
        let start = window.start;
        for (first, mut word) in self.live_words(window) {
            while word != 0 {
                each(first + word.trailing_zeros() as usize - start);
                word &= word - 1;
            }
        }
    }

    /// The row numbers after the rows of a window were moved together into so many slots.
    pub(crate) fn relaid_numbers(&self, window: Range<usize>, slots: usize) -> Numbers {
        let mut rows = Vec::new();
        self.each_live(window.clone(), |position| rows.push(window.start + position));
        self.numbers.relaid(window, rows.into_iter(), slots, self.slots())
    }

    /// The first run of live slots in a range, as long as possible.
    pub fn next_run(&self, slots: Range<usize>) -> Option<Range<usize>> {
        let width = self.block_slots;
        let mut run: Option<usize> = None;
        let mut at = slots.start;
        for number in slots.start / width..slots.end.div_ceil(width) {
            let (start, slice) = (number * width, &*self.slices[number]);
            let end = slots.end.min(start + width);
            if slice.rows() == width {
                run.get_or_insert(at);
                at = end;
                continue;
            }
            while at < end {
                let offset = at - start;
                // PERF: most words are full.
                if offset.is_multiple_of(64) && end - at >= 64 && slice.live()[offset / 64] == u64::MAX {
                    run.get_or_insert(at);
                    at += 64;
                    continue;
                }
                let left = (64 - offset % 64).min(end - at);
                let bits = slice.live()[offset / 64] >> (offset % 64);
                match run {
                    Some(first) => {
                        let live = (!bits).trailing_zeros() as usize;
                        if live < left {
                            return Some(first..at + live);
                        }
                        at += left;
                    }
                    None => {
                        let dead = bits.trailing_zeros() as usize;
                        at += dead.min(left);
                        run = (dead < left).then_some(at);
                    }
                }
            }
        }
        run.map(|first| first..slots.end)
    }

    /// Calls `each` with every run of consecutive live slots, counted from the window's start. Runs are as
    /// long as possible, but end where blocks end.
    pub fn each_run(&self, window: Range<usize>, mut each: impl FnMut(Range<usize>)) {
        let start = window.start;
        let mut run = 0..0;
        for (first, mut word) in self.live_words(window) {
            while word != 0 {
                let from = word.trailing_zeros();
                let len = (!(word >> from)).trailing_zeros();
                let at = first + from as usize - start;
                if run.end != at {
                    if !run.is_empty() {
                        each(run);
                    }
                    run = at..at;
                }
                run.end += len as usize;
                word = if from + len == 64 { 0 } else { word >> (from + len) << (from + len) };
            }
        }
        if !run.is_empty() {
            each(run);
        }
    }

    /// The live bits of a window, word by word: the slot of bit 0, and the bits of slots within the window.
    pub(crate) fn live_words(&self, window: Range<usize>) -> impl Iterator<Item = (usize, u64)> {
        let width = self.block_slots;
        let slices = window.start / width..window.end.div_ceil(width);
        slices.flat_map(move |number| {
            let slice = &*self.slices[number];
            let start = number * width;
            let (first, last) = (window.start.max(start) - start, window.end.min(start + width) - start);
            (first / 64..last.div_ceil(64)).map(move |word| {
                let mut bits = slice.live()[word];
                if word == first / 64 {
                    bits &= u64::MAX << (first % 64);
                }
                if (word + 1) * 64 > last {
                    bits &= u64::MAX >> ((word + 1) * 64 - last);
                }
                (start + word * 64, bits)
            })
        })
    }
}
