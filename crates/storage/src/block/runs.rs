//! Runs of equal values: a value for each run, and its end.
//!
//! The values of runs are encoded themselves, for example as codes or a constant. A predicate is tested once
//! for each run.

use super::codec::{Chosen, Codec, FixedCodec, Planned};
use super::example::{Example, scattered};
use super::fold::ValidSlots;
use super::masks::bits_inside;
use super::plain::encode_plain;
use super::reading::{HeldSlots, Selected};
use super::serialized::{BlockWriter, Flaw, Reader};
use super::unencoded::Unencoded;
use super::{Fixed, FixedValues};
use crate::definition::Compression;
use crate::value::Datum;
use entasis_vector::{PhysicalType, Value};

/// The least average length of runs for which runs are worthwhile.
const RUN_ROWS: usize = 8;
/// Values in runs are written one by one if at most one in so many is wanted.
const FEW_OF_RUNS: usize = 4;

/// See the module.
#[derive(Debug)]
pub(crate) struct Runs {
    /// The slot after each run.
    ends: Box<[u16]>,
    /// The value of each run, as a slot of a block.
    values: Box<FixedValues>,
}

/// The number of runs of identical values.
fn count<T: Fixed>(values: &[T]) -> usize {
    usize::from(!values.is_empty()) + values.windows(2).filter(|pair| !pair[0].is_same(pair[1])).count()
}

impl Runs {
    /// Bytes of `runs`, without those of their values.
    fn size(runs: usize) -> usize {
        runs * size_of::<u16>() + size_of::<FixedValues>()
    }

    /// The runs of some values; `encode` encodes a value for each run.
    fn new<T: Fixed>(values: &[T], encode: impl FnOnce(&[T]) -> FixedValues) -> Runs {
        let is_last = |slot: &usize| values.get(slot + 1).is_none_or(|next| !next.is_same(values[*slot]));
        let lasts: Vec<usize> = (0..values.len()).filter(is_last).collect();
        let heads: Vec<T> = lasts.iter().map(|&last| values[last]).collect();
        Runs { ends: lasts.iter().map(|&last| last as u16 + 1).collect(), values: Box::new(encode(&heads)) }
    }

    /// The run of a slot; the last one if there is none.
    fn run_of(&self, slot: usize) -> usize {
        self.ends.partition_point(|&end| usize::from(end) <= slot).min(self.ends.len() - 1)
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

    /// For `count` slots from `from` on, at least one: the integer of each run that they touch, and how many
    /// of them are in it.
    fn weights(&self, from: usize, count: usize, held: PhysicalType) -> impl Iterator<Item = (i128, usize)> {
        let runs = self.run_of(from)..=self.run_of(from + count - 1);
        runs.map(move |run| {
            let start = if run == 0 { 0 } else { usize::from(self.ends[run - 1]) };
            let length = usize::from(self.ends[run]).min(from + count) - start.max(from);
            let number = match self.values.datum(run, held) {
                Datum::Integer(v) => v,
                _ => 0,
            };
            (number, length)
        })
    }
}

impl Codec for Runs {
    const NAME: &'static str = "runs";
    const EXAMPLES: &'static [Example] =
        &[Example::of_integers(Self::NAME, Compression::Runs, 0.02, |row| {
            Value::Integer(scattered(row / 50))
        })];

    fn bytes(&self) -> usize {
        Runs::size(self.ends.len()) + self.values.bytes()
    }

    fn write(&self, out: &mut BlockWriter<'_>) {
        out.number((self.ends.len() as u16).to_le_bytes());
        self.ends.iter().for_each(|end| out.number(end.to_le_bytes()));
        out.number([self.values.code()]);
        self.values.write(&mut out.of_runs(self.ends.len()));
    }

    fn read(reader: &mut Reader<'_>, slots: usize) -> Result<Runs, Flaw> {
        let count = usize::from(reader.u16()?);
        reader.check((1..=slots).contains(&count), "its number of runs")?;
        let ends = reader.ascending(count)?;
        reader.check(ends[0] > 0 && usize::from(ends[count - 1]) <= slots, "its runs")?;
        let code = reader.u8()?;
        let values = reader.within(reader.column, |reader| FixedValues::read(code, reader, count))?;
        Ok(Runs { ends: ends.into(), values: Box::new(values) })
    }
}

impl FixedCodec for Runs {
    fn datum(&self, slot: usize, held: PhysicalType) -> Datum<'_> {
        self.values.datum(self.run_of(slot), held)
    }

    // PERF: runs are short, so a cache line is written at once; the next run overwrites what is too much.
    fn decode<T: Fixed>(&self, held: PhysicalType, from: usize, out: &mut [T]) {
        let first = self.run_of(from);
        let mut heads = vec![T::default(); self.run_of(from + out.len().saturating_sub(1)) + 1 - first];
        self.values.decode(held, first, &mut heads);
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

    fn is_read_singly<T: Fixed>(&self, _: PhysicalType, selected: Selected) -> bool {
        !selected.in_place || selected.slots * FEW_OF_RUNS < selected.of
    }

    fn each_of<T: Fixed>(
        &self,
        held: PhysicalType,
        slots: impl ExactSizeIterator<Item = usize>,
        mut put: impl FnMut(T),
    ) {
        let mut heads = vec![T::default(); self.ends.len()];
        self.values.decode(held, 0, &mut heads);
        let (mut run, last) = (0, heads.len() - 1);
        for slot in slots {
            while run < last && usize::from(self.ends[run]) <= slot {
                run += 1;
            }
            put(heads[run]);
        }
    }

    fn repeats(&self) -> bool {
        true
    }

    fn narrow(&self, low: i128, high: i128, masks: &mut [u64], of: HeldSlots) {
        let mut found = vec![u64::MAX; self.ends.len().div_ceil(64)];
        self.values.narrow(low, high, &mut found, HeldSlots { slots: self.ends.len(), ..of });
        self.keep(masks, |run| found[run / 64] >> (run % 64) & 1 != 0);
    }

    fn narrow_where<T: Fixed>(&self, of: HeldSlots, holds: impl Fn(T) -> bool, masks: &mut [u64]) {
        let mut heads = vec![T::default(); self.ends.len()];
        self.values.decode(of.physical, 0, &mut heads);
        self.keep(masks, |run| holds(heads[run]));
    }

    fn sum(&self, slots: &ValidSlots<'_>, held: PhysicalType) -> i128 {
        let mut sum = 0;
        slots.each_run(|from, count| {
            let weights = self.weights(from, count, held);
            sum += weights.map(|(value, rows)| value * rows as i128).sum::<i128>();
        });
        sum
    }

    fn extremes(&self, slots: &ValidSlots<'_>, held: PhysicalType, _: bool, mut offer: impl FnMut(i128)) {
        slots.each_run(|from, count| {
            self.weights(from, count, held).for_each(|(value, _)| offer(value));
        });
    }
}

impl Chosen for Runs {
    const FORCED_BY: Compression = Compression::Runs;
    /// How many runs there are.
    type Plan = usize;

    fn plan<T: Fixed>(of: &Unencoded<'_, T>) -> Option<Planned<usize>> {
        let runs = count(of.slots);
        Some(Planned { plan: runs, bytes: Runs::size(runs) + of.plain_bytes(runs) })
    }

    fn pays(bytes: usize, smallest: usize) -> bool {
        bytes * 2 <= smallest
    }

    fn propose<T: Fixed>(of: &Unencoded<'_, T>, smallest: usize) -> Option<Planned<usize>> {
        let are_long = |planned: &Planned<usize>| planned.plan * RUN_ROWS <= of.slots.len();
        Runs::plan(of).filter(|planned| are_long(planned) && Runs::pays(planned.bytes, smallest))
    }

    fn encode<T: Fixed>(of: &Unencoded<'_, T>, _: usize, _: bool) -> Runs {
        Runs::new(of.slots, |heads| encode_plain(heads, of.min, of.max, heads.len(), false))
    }
}
