//! Integers of a narrow range but for a few: the many are codes over a base, the few are patches.
//!
//! The slots of patches hold code 0. (Guide B2; the paper calls them exceptions.)

use super::codes::bits_of;
use super::packed::Packed;
use super::patches::Patches;
use super::{Codes, Fixed, Values};
use crate::BLOCK_ROWS;
use crate::datum::Datum;
use entasis_vector::PhysicalType;

/// Patches of a block, at most.
const PATCHES_MAX: usize = 32;

/// See the module.
#[derive(Debug)]
pub(crate) struct Patched {
    /// Those that are no patches.
    values: Box<Values>,
    base: i128,
    /// Their codes.
    patches: Patches<u64>,
}

/// How many bits leave the fewest bytes, and these; `min` is the least of the values. Nothing if it takes too many patches.
pub(crate) fn best_width<T: Fixed>(values: &[T], min: T) -> Option<(usize, usize)> {
    // Values by the bits that they need.
    let mut counts = [0usize; 65];
    values.iter().for_each(|value| counts[bits_of(value.code(min))] += 1);
    let mut patches = 0;
    let mut best = None;
    for width in (1..64).rev() {
        patches += counts[width + 1];
        if patches > PATCHES_MAX {
            break;
        }
        let bytes = Packed::size(width) + patches * Patches::<u64>::SIZE + size_of::<Values>();
        if patches > 0 && best.is_none_or(|(_, least)| bytes < least) {
            best = Some((width, bytes));
        }
    }
    best
}

impl Patched {
    /// Values over `min`, those that do not fit `width` bits as patches.
    pub(crate) fn new<T: Fixed>(values: &[T], min: T, width: usize) -> Patched {
        let Datum::Integer(base) = min.datum() else { unreachable!("only integers have codes") };
        let codes = values.iter().map(|value| value.code(min));
        let fits = |code: &u64| code >> width == 0;
        let patches: Vec<(u16, u64)> =
            codes.clone().enumerate().filter(|(_, code)| !fits(code)).map(|(slot, code)| (slot as u16, code)).collect();
        let codes = Packed::new(width, codes.map(|code| if fits(&code) { code } else { 0 }));
        let values = Values::FrameOfReference { base, codes: Codes::Packed(codes) };
        Patched { values: Box::new(values), base, patches: Patches::new(&patches) }
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Values>() + self.values.bytes() + self.patches.bytes()
    }

    /// The value in `slot`.
    pub(crate) fn datum(&self, slot: usize, physical: PhysicalType) -> Datum<'_> {
        match self.patches.get(slot) {
            Some(code) => Datum::Integer(self.base + i128::from(code)),
            None => self.values.datum(slot, physical),
        }
    }

    /// Writes the values from `from` on to all of `out`.
    pub(crate) fn decode<T: Fixed>(&self, from: usize, out: &mut [T]) {
        self.values.decode_fixed(T::PHYSICAL, from, out);
        let patches = self.patches.within(from, from + out.len());
        patches.for_each(|(at, code)| out[at] = T::of_code(self.base, code));
    }

    /// Narrows `masks` to numbers from `low` to `high`.
    pub(crate) fn narrow(&self, low: i128, high: i128, masks: &mut [u64], physical: PhysicalType) {
        // What the patches leave of their slots' bits, which their codes say nothing about.
        let mut own = [0; BLOCK_ROWS / 64];
        let mut kept = [0; BLOCK_ROWS / 64];
        for (slot, code) in self.patches.within(0, masks.len() * 64) {
            let (word, bit) = (slot / 64, 1 << (slot % 64));
            own[word] |= bit;
            let is_in = (low..=high).contains(&(self.base + i128::from(code)));
            kept[word] |= if is_in { masks[word] & bit } else { 0 };
        }
        self.values.narrow(low, high, masks, physical);
        masks.iter_mut().zip(own.iter().zip(&kept)).for_each(|(mask, (own, kept))| *mask = *mask & !own | kept);
    }
}
