//! Integers of a narrow range except for a few: most are codes over a base, the few are patches.
//!
//! Patches may lie below the others, above, or on both sides. They are codes over the least of all values,
//! the others over the least of their own; the slots of patches hold code 0 there. (The literature calls
//! patches exceptions.)
//!
//! [`Core::best`] tries every number of patches below with every number above, since the best range of so
//! many bits begins and ends at values. The slow twin, in the tests, tries every base and width.

use super::codec::{Chosen, Codec, FixedCodec, Planned};
use super::codes::bits_of;
use super::example::{Example, scattered};
use super::fold::ValidSlots;
use super::packed::Packed;
use super::patches::Patches;
use super::reading::HeldSlots;
use super::serialized::{BlockWriter, Flaw, Reader};
use super::unencoded::Unencoded;
use super::{Codes, Fixed, FrameOfReference};
use crate::definition::Compression;
use crate::node::Ahead;
use crate::value::Datum;
use entasis_vector::{Buffer, PhysicalType, Value};

/// The most patches of a block.
const PATCHES_MAX: usize = 32;
/// Size of the sample in which outliers are looked for.
const SAMPLE: usize = 64;

/// See the module.
#[derive(Debug)]
pub(crate) struct Patched {
    /// The values that are no patches.
    values: Box<FrameOfReference>,
    /// The base of the patches.
    least: i128,
    patches: Patches<u64>,
}

/// Which values are no patches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Core {
    /// The least of them, as its distance from the least of all.
    first: u64,
    /// Bits of a distance from `first`.
    width: usize,
    /// The bytes that the block takes with all other values as patches.
    bytes: usize,
}

impl Core {
    /// The core with the smallest block; `min` is the least of the values. `None` if it needs too many
    /// patches, or no patch at all.
    fn best<T: Fixed>(values: &[T], min: T) -> Option<Core> {
        let mut codes: Vec<u64> = values.iter().map(|value| value.code(min)).collect();
        let most = PATCHES_MAX.min(codes.len().checked_sub(1)?);
        // PERF: it sorts only one value more at each end than may be patches, instead of all.
        let (least, middle, _) = codes.select_nth_unstable(most);
        let mut least: Vec<u64> = least.iter().copied().chain([*middle]).collect();
        least.sort_unstable();
        let last = codes.len() - 1 - most;
        let (_, middle, greatest) = codes.select_nth_unstable(last);
        let mut greatest: Vec<u64> = greatest.iter().copied().chain([*middle]).collect();
        greatest.sort_unstable_by(|a, b| b.cmp(a));
        let mut best: Option<Core> = None;
        for (below, &first) in least.iter().enumerate() {
            if below > 0 && least[below - 1] == first {
                continue;
            }
            for (above, &last) in greatest[..=most - below].iter().enumerate() {
                let width = bits_of(last - first).max(1);
                // With so many bits one more value fits, or all do.
                if width == 64
                    || above + below == 0
                    || (above > 0 && (greatest[above - 1] - first) >> width == 0)
                {
                    continue;
                }
                let bytes = Core::bytes(width, below + above);
                if best.is_none_or(|best| bytes < best.bytes) {
                    best = Some(Core { first, width, bytes });
                }
            }
        }
        best
    }

    fn bytes(width: usize, patches: usize) -> usize {
        Packed::size(width) + patches * Patches::<u64>::SIZE + size_of::<FrameOfReference>()
    }

    /// The code of a value by its distance from the least; `None` if it is a patch.
    fn code(self, distance: u64) -> Option<u64> {
        let code = distance.checked_sub(self.first)?;
        (code >> self.width == 0).then_some(code)
    }
}

impl Patched {
    /// Encodes values over `min`, the least of them, with those outside the core as patches.
    fn new<T: Fixed>(values: &[T], min: T, core: Core) -> Patched {
        let Datum::Integer(least) = min.datum() else { unreachable!("only integers have codes") };
        let distances = || values.iter().map(|value| value.code(min));
        let outside = (0..).zip(distances()).filter(|(_, distance)| core.code(*distance).is_none());
        let patches: Vec<(u16, u64)> = outside.collect();
        let codes = Packed::new(core.width, distances().map(|distance| core.code(distance).unwrap_or(0)));
        let values = FrameOfReference { base: least + i128::from(core.first), codes: Codes::Packed(codes) };
        Patched { values: Box::new(values), least, patches: Patches::new(&patches) }
    }

    /// By how much the sum of `count` slots from `from` on exceeds the sum of their codes over the base.
    fn excess(&self, from: usize, count: usize) -> i128 {
        // Slots of patches have code 0.
        let patches = self.patches.within(from, from + count);
        patches.map(|(_, code)| self.least + i128::from(code) - self.values.base).sum()
    }
}

impl Codec for Patched {
    const NAME: &'static str = "patched";
    const EXAMPLES: &'static [Example] =
        &[Example::of_integers(Self::NAME, Compression::Patched, 0.13, |row| match row % 100 {
            7 => Value::Integer(i128::from(i64::MAX / 2) + row as i128),
            _ => Value::Integer(scattered(row) % 100),
        })];

    fn bytes(&self) -> usize {
        size_of::<FrameOfReference>() + self.values.bytes() + self.patches.bytes()
    }

    fn buffer_mut(&mut self) -> Option<&mut Buffer> {
        self.values.buffer_mut()
    }

    fn ahead(&self, slots: usize) -> Ahead {
        self.values.ahead(slots)
    }

    fn write(&self, out: &mut BlockWriter<'_>) {
        out.number(self.least.to_le_bytes());
        self.values.write(out);
        out.patches(&self.patches, u64::to_le_bytes);
    }

    fn read(reader: &mut Reader<'_>, slots: usize) -> Result<Patched, Flaw> {
        let (least, base) = (reader.integer()?, reader.integer()?);
        let codes = Codes::Packed(reader.packed(slots)?);
        reader.check(least.checked_add(u64::MAX.into()).is_some(), "its patches leave the numbers")?;
        let patches = Patches::new(&reader.patches(slots, Reader::u64)?);
        Ok(Patched { values: Box::new(FrameOfReference { base, codes }), least, patches })
    }
}

impl FixedCodec for Patched {
    fn datum(&self, slot: usize, held: PhysicalType) -> Datum<'_> {
        match self.patches.get(slot) {
            Some(code) => Datum::Integer(self.least + i128::from(code)),
            None => self.values.datum(slot, held),
        }
    }

    fn decode<T: Fixed>(&self, held: PhysicalType, from: usize, out: &mut [T]) {
        self.values.decode(held, from, out);
        let patches = self.patches.within(from, from + out.len());
        patches.for_each(|(at, code)| out[at] = T::of_code(self.least, code));
    }

    fn narrow(&self, low: i128, high: i128, masks: &mut [u64], of: HeldSlots) {
        let holds = |_, code: u64| (low..=high).contains(&(self.least + i128::from(code)));
        self.patches.narrow(masks, holds, |masks| self.values.narrow(low, high, masks, of));
    }

    fn sum(&self, slots: &ValidSlots<'_>, held: PhysicalType) -> i128 {
        let mut sum = self.values.sum(slots, held);
        slots.each_run(|from, count| sum += self.excess(from, count));
        sum
    }
}

impl Chosen for Patched {
    const FORCED_BY: Compression = Compression::Patched;
    type Plan = Core;

    fn plan<T: Fixed>(of: &Unencoded<'_, T>) -> Option<Planned<Core>> {
        let core = of.bits().filter(|_| size_of::<T>() <= 8).and_then(|_| Core::best(of.slots, of.min))?;
        Some(Planned { plan: core, bytes: core.bytes })
    }

    fn pays(bytes: usize, smallest: usize) -> bool {
        bytes * 3 <= smallest * 2
    }

    fn propose<T: Fixed>(of: &Unencoded<'_, T>, smallest: usize) -> Option<Planned<Core>> {
        let planned = if have_outliers(of) { Patched::plan(of) } else { None };
        planned.filter(|planned| Patched::pays(planned.bytes, smallest))
    }

    fn encode<T: Fixed>(of: &Unencoded<'_, T>, core: Core, _: bool) -> Patched {
        Patched::new(of.slots, of.min, core)
    }
}

/// True if a sample suggests that all but a few of the values lie within a quarter of the range.
fn have_outliers<T: Fixed>(of: &Unencoded<'_, T>) -> bool {
    let Some(bits) = of.bits().filter(|&bits| bits > 4) else { return false };
    // Values of the sample by sixteenths of the range. A quarter of it lies in five of them, wherever it
    // begins.
    let mut counts = [0usize; 16];
    let step = (of.slots.len() / SAMPLE).max(1);
    let sample = of.slots.iter().step_by(step);
    let all = sample.len();
    sample.for_each(|value| counts[(value.code(of.min) >> (bits - 4)) as usize] += 1);
    let most = counts.windows(5).map(|quarter| quarter.iter().sum()).max().unwrap_or(all);
    (all - most) * 16 <= all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::random::Random;
    use std::cmp::Ordering;

    #[test]
    fn the_best_core_is_that_of_all() {
        let mut random = Random(5);
        for round in 0..300 {
            let rows = [1, 2, 40, 90][round % 4];
            let mut values: Vec<i64> =
                (0..rows).map(|_| 1000 + random.below(1 << (round % 9)) as i64).collect();
            for _ in 0..random.below(40) {
                let (at, far) = (random.below(rows) as usize, random.below(3000) as i64);
                values[at] = far * [1, -1, i64::from(i32::MAX)][random.below(3) as usize];
            }
            let min = *values.iter().min().expect("there are some");
            let found = Core::best(&values, min);
            let bytes_from = |first: i64, width: usize| {
                let core = Core { first: first.code(min), width, bytes: 0 };
                let patches = values.iter().filter(|value| core.code(value.code(min)).is_none()).count();
                ((1..=PATCHES_MAX).contains(&patches)).then(|| Core::bytes(width, patches))
            };
            let all =
                values.iter().flat_map(|&first| (1..64).filter_map(move |width| bytes_from(first, width)));
            let least = all.min();
            assert_eq!(found.map(|core| core.bytes), least, "{values:?}");
            if let Some(core) = found {
                assert_eq!(Patched::new(&values, min, core).bytes(), core.bytes);
            }
        }
    }

    #[test]
    fn a_patch_may_be_as_far_away_as_the_type_goes() {
        let values: Vec<i64> =
            (0..1024).map(|i| if i == 500 { i64::MIN } else { i64::MAX - i * 37 % 101 }).collect();
        let core = Core::best(&values, i64::MIN).expect("one patch leaves seven bits");
        let patched = Patched::new(&values, i64::MIN, core);
        assert_eq!((patched.values.base, patched.bytes()), (i128::from(i64::MAX) - 100, core.bytes));
        let mut decoded = vec![0i64; values.len()];
        patched.decode(PhysicalType::I64, 0, &mut decoded);
        assert_eq!(decoded, values);
        for (slot, &value) in values.iter().enumerate() {
            assert_eq!(
                patched.datum(slot, PhysicalType::I64).total_cmp(Datum::Integer(value.into())),
                Ordering::Equal
            );
        }
        let base_sum = |count: i128| count * patched.values.base;
        let codes: i128 = (0..1024).map(|slot| i128::from(patched.values.codes.get(slot))).sum();
        assert_eq!(
            base_sum(1024) + codes + patched.excess(0, 1024),
            values.iter().map(|&value| i128::from(value)).sum::<i128>()
        );
        for (low, high) in [(i128::MIN, -1), (5, i128::MAX), (i64::MIN.into(), i64::MIN.into())] {
            let mut masks = [u64::MAX; 16];
            let of = HeldSlots { physical: PhysicalType::I64, slots: values.len() };
            patched.narrow(low, high, &mut masks, of);
            for (slot, &value) in values.iter().enumerate() {
                assert_eq!(masks[slot / 64] >> (slot % 64) & 1 == 1, (low..=high).contains(&value.into()));
            }
        }
    }
}
