//! Integers of a narrow range except for a few: most are codes over a base, the few are patches.
//!
//! Patches may lie below the others, above, or on both sides. They are codes over the least of all values,
//! the others over the least of their own; the slots of patches hold code 0 there. (The literature calls
//! patches exceptions.)
//!
//! [`Core::best`] tries every number of patches below with every number above, since the best range of so
//! many bits begins and ends at values. The slow twin, in the tests, tries every base and width.

use super::codes::bits_of;
use super::packed::Packed;
use super::patches::Patches;
use super::{Codes, Fixed, Values};
use crate::value::Datum;
use entasis_vector::PhysicalType;

/// The most patches of a block.
const PATCHES_MAX: usize = 32;

/// See the module.
#[derive(Debug)]
pub(crate) struct Patched {
    /// The values that are no patches.
    values: Box<Values>,
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
    pub(crate) bytes: usize,
}

impl Core {
    /// The core with the smallest block; `min` is the least of the values. `None` if it needs too many
    /// patches, or no patch at all.
    pub(crate) fn best<T: Fixed>(values: &[T], min: T) -> Option<Core> {
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
        Packed::size(width) + patches * Patches::<u64>::SIZE + size_of::<Values>()
    }

    /// The code of a value by its distance from the least; `None` if it is a patch.
    fn code(self, distance: u64) -> Option<u64> {
        let code = distance.checked_sub(self.first)?;
        (code >> self.width == 0).then_some(code)
    }
}

impl Patched {
    /// Encodes values over `min`, the least of them, with those outside the core as patches.
    pub(crate) fn new<T: Fixed>(values: &[T], min: T, core: Core) -> Patched {
        let Datum::Integer(least) = min.datum() else { unreachable!("only integers have codes") };
        let distances = || values.iter().map(|value| value.code(min));
        let outside = (0..).zip(distances()).filter(|(_, distance)| core.code(*distance).is_none());
        let patches: Vec<(u16, u64)> = outside.collect();
        let codes = Packed::new(core.width, distances().map(|distance| core.code(distance).unwrap_or(0)));
        let values =
            Values::FrameOfReference { base: least + i128::from(core.first), codes: Codes::Packed(codes) };
        Patched { values: Box::new(values), least, patches: Patches::new(&patches) }
    }

    /// The base of the patches, and the patches.
    pub(crate) fn patches(&self) -> (i128, &Patches<u64>) {
        (self.least, &self.patches)
    }

    /// Packed codes over a base, and patches over a least value.
    pub(crate) fn of_parts(base: i128, codes: Packed, least: i128, patches: &[(u16, u64)]) -> Patched {
        let values = Values::FrameOfReference { base, codes: Codes::Packed(codes) };
        Patched { values: Box::new(values), least, patches: Patches::new(patches) }
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Values>() + self.values.bytes() + self.patches.bytes()
    }

    /// The values that are no patches.
    pub(crate) fn values_mut(&mut self) -> &mut Values {
        &mut self.values
    }

    /// Codes over their base, of all slots.
    pub(crate) fn codes(&self) -> (i128, &Codes) {
        match &*self.values {
            Values::FrameOfReference { base, codes } => (*base, codes),
            other => unreachable!("made of codes, but {}", other.name()),
        }
    }

    /// By how much the sum of `count` slots from `from` on exceeds the sum of their codes over the base.
    pub(crate) fn excess(&self, from: usize, count: usize) -> i128 {
        let (base, _) = self.codes();
        // Slots of patches have code 0.
        self.patches.within(from, from + count).map(|(_, code)| self.least + i128::from(code) - base).sum()
    }

    /// The value in `slot`.
    pub(crate) fn datum(&self, slot: usize, physical: PhysicalType) -> Datum<'_> {
        match self.patches.get(slot) {
            Some(code) => Datum::Integer(self.least + i128::from(code)),
            None => self.values.datum(slot, physical),
        }
    }

    /// Writes the values from `from` on to all of `out`.
    pub(crate) fn decode<T: Fixed>(&self, from: usize, out: &mut [T]) {
        self.values.decode_fixed(T::PHYSICAL, from, out);
        let patches = self.patches.within(from, from + out.len());
        patches.for_each(|(at, code)| out[at] = T::of_code(self.least, code));
    }

    /// Narrows `masks` to numbers from `low` to `high`.
    pub(crate) fn narrow(&self, low: i128, high: i128, masks: &mut [u64], physical: PhysicalType) {
        let holds = |_, code: u64| (low..=high).contains(&(self.least + i128::from(code)));
        self.patches.narrow(masks, holds, |masks| self.values.narrow(low, high, masks, physical));
    }
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
        assert_eq!((patched.codes().0, patched.bytes()), (i128::from(i64::MAX) - 100, core.bytes));
        let mut decoded = vec![0i64; values.len()];
        patched.decode(0, &mut decoded);
        assert_eq!(decoded, values);
        for (slot, &value) in values.iter().enumerate() {
            assert_eq!(
                patched.datum(slot, PhysicalType::I64).total_cmp(Datum::Integer(value.into())),
                Ordering::Equal
            );
        }
        let base_sum = |count: i128| count * patched.codes().0;
        let codes: i128 = (0..1024).map(|slot| i128::from(patched.codes().1.get(slot))).sum();
        assert_eq!(
            base_sum(1024) + codes + patched.excess(0, 1024),
            values.iter().map(|&value| i128::from(value)).sum::<i128>()
        );
        for (low, high) in [(i128::MIN, -1), (5, i128::MAX), (i64::MIN.into(), i64::MIN.into())] {
            let mut masks = [u64::MAX; 16];
            patched.narrow(low, high, &mut masks, PhysicalType::I64);
            for (slot, &value) in values.iter().enumerate() {
                assert_eq!(masks[slot / 64] >> (slot % 64) & 1 == 1, (low..=high).contains(&value.into()));
            }
        }
    }
}
