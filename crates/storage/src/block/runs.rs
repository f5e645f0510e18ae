//! Runs of equal values: a value for each run, and its end.
//!
//! The values of runs are encoded themselves, for example as codes or a constant. A predicate is tested once
//! for each run.

use super::masks::bits_inside;
use super::{Fixed, Values};
use crate::value::Datum;
use entasis_vector::PhysicalType;

/// See the module.
#[derive(Debug)]
pub(crate) struct Runs {
    /// The slot after each run.
    ends: Box<[u16]>,
    /// The value of each run, as a slot of a block.
    values: Box<Values>,
}

/// The number of runs of identical values.
pub(crate) fn count<T: Fixed>(values: &[T]) -> usize {
    usize::from(!values.is_empty()) + values.windows(2).filter(|pair| !pair[0].is_same(pair[1])).count()
}

impl Runs {
    /// Bytes of `runs`, without those of their values.
    pub(crate) fn size(runs: usize) -> usize {
        runs * size_of::<u16>() + size_of::<Values>()
    }

    /// The runs of some values; `encode` encodes a value for each run.
    pub(crate) fn new<T: Fixed>(values: &[T], encode: impl FnOnce(&[T]) -> Values) -> Runs {
        let is_last = |slot: &usize| values.get(slot + 1).is_none_or(|next| !next.is_same(values[*slot]));
        let lasts: Vec<usize> = (0..values.len()).filter(is_last).collect();
        let heads: Vec<T> = lasts.iter().map(|&last| values[last]).collect();
        Runs { ends: lasts.iter().map(|&last| last as u16 + 1).collect(), values: Box::new(encode(&heads)) }
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        Runs::size(self.ends.len()) + self.values.bytes()
    }

    /// The slot after each run, and a value for each.
    pub(crate) fn parts(&self) -> (&[u16], &Values) {
        (&self.ends, &self.values)
    }

    /// The inverse of [`Runs::parts`]: ends that ascend, at least one.
    pub(crate) fn of_parts(ends: Vec<u16>, values: Values) -> Runs {
        Runs { ends: ends.into(), values: Box::new(values) }
    }

    /// The run of a slot; the last one if there is none.
    fn run_of(&self, slot: usize) -> usize {
        self.ends.partition_point(|&end| usize::from(end) <= slot).min(self.ends.len() - 1)
    }

    /// The value in `slot`.
    pub(crate) fn datum(&self, slot: usize, physical: PhysicalType) -> Datum<'_> {
        self.values.datum(self.run_of(slot), physical)
    }

    /// Writes the values from `from` on to all of `out`; see [`super::Block::decode_fixed`].
    // PERF: runs are short, so a cache line is written at once; the next run overwrites what is too much.
    pub(crate) fn decode<T: Fixed>(&self, held: PhysicalType, from: usize, out: &mut [T]) {
        let first = self.run_of(from);
        let mut heads = vec![T::default(); self.run_of(from + out.len().saturating_sub(1)) + 1 - first];
        self.values.decode_fixed(held, first, &mut heads);
        let (ends, line) = (&self.ends[first..], (64 / size_of::<T>()).max(1));
        let mut at = 0;
        for (&end, head) in ends.iter().zip(heads) {
            let end = usize::from(end).saturating_sub(from).min(out.len());
            while at < end {
                match out.get_mut(at..at + line) {
                    Some(line) => line.fill(head),
                    None => out[at..end].fill(head),
                }
                at += line;
            }
            at = end;
        }
    }

    /// Calls `put` with the value of each of `slots`, which ascend; `held` as in
    /// [`super::Block::decode_fixed`].
    pub(crate) fn each_of<T: Fixed>(
        &self,
        held: PhysicalType,
        slots: impl Iterator<Item = usize>,
        mut put: impl FnMut(T),
    ) {
        let mut heads = vec![T::default(); self.ends.len()];
        self.values.decode_fixed(held, 0, &mut heads);
        let (mut run, last) = (0, heads.len() - 1);
        for slot in slots {
            while run < last && usize::from(self.ends[run]) <= slot {
                run += 1;
            }
            put(heads[run]);
        }
    }

    /// Narrows `masks` to numbers from `low` to `high`.
    pub(crate) fn narrow(&self, low: i128, high: i128, masks: &mut [u64], physical: PhysicalType) {
        let mut found = vec![u64::MAX; self.ends.len().div_ceil(64)];
        self.values.narrow(low, high, &mut found, physical);
        self.keep(masks, |run| found[run / 64] >> (run % 64) & 1 != 0);
    }

    /// Narrows `masks` to numbers for which `holds` is true.
    pub(crate) fn narrow_to<T: Fixed>(
        &self,
        held: PhysicalType,
        holds: impl Fn(T) -> bool,
        masks: &mut [u64],
    ) {
        let mut heads = vec![T::default(); self.ends.len()];
        self.values.decode_fixed(held, 0, &mut heads);
        self.keep(masks, |run| holds(heads[run]));
    }

    /// Clears the bits of `masks` of all runs for which `holds` is false.
    fn keep(&self, masks: &mut [u64], holds: impl Fn(usize) -> bool) {
        let mut start = 0;
        for (run, &end) in self.ends.iter().enumerate() {
            let slots = start..usize::from(end);
            start = slots.end;
            if !holds(run) {
                let words = slots.start / 64..slots.end.div_ceil(64).min(masks.len());
                words.for_each(|word| masks[word] &= !bits_inside(word * 64, &slots));
            }
        }
    }

    /// For `count` slots from `from` on, at least one: the value of each run that they touch, and how many of
    /// them are in it.
    pub(crate) fn weights(
        &self,
        from: usize,
        count: usize,
        physical: PhysicalType,
    ) -> impl Iterator<Item = (Datum<'_>, usize)> {
        let runs = self.run_of(from)..=self.run_of(from + count - 1);
        runs.map(move |run| {
            let start = if run == 0 { 0 } else { usize::from(self.ends[run - 1]) };
            let length = usize::from(self.ends[run]).min(from + count) - start.max(from);
            (self.values.datum(run, physical), length)
        })
    }
}
