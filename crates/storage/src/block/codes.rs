//! Unsigned codes: plain codes of 1, 2 or 4 bytes, or bit-packed codes. Both are written in place, packed
//! ones only where no other thread reads them, or reads one slot of them and then looks at a latch.

use super::packed::{Lane, Packed};
use super::{cells, search};
use crate::node::Ahead;
use entasis_vector::simd::widest;
use entasis_vector::{Buffer, Native};

/// Codes of as many slots as their block has.
#[derive(Debug)]
pub(crate) enum Codes {
    U8(Buffer),
    U16(Buffer),
    U32(Buffer),
    Packed(Packed),
}

/// Runs an expression with `$t` bound to the width of codes and `$slots` to their slots, as [`cells`] reads
/// them. Packed codes are unpacked first.
macro_rules! with_codes {
    ($codes:expr, $t:ident, $slots:ident => $body:expr) => {
        match $codes {
            $crate::block::codes::Codes::U8(buffer) => {
                type $t = u8;
                let $slots = $crate::block::cells::Slots::from(buffer);
                $body
            }
            $crate::block::codes::Codes::U16(buffer) => {
                type $t = u16;
                let $slots = $crate::block::cells::Slots::from(buffer);
                $body
            }
            $crate::block::codes::Codes::U32(buffer) => {
                type $t = u32;
                let $slots = $crate::block::cells::Slots::from(buffer);
                $body
            }
            $crate::block::codes::Codes::Packed(packed) => {
                $crate::block::packed::with_lanes!(packed.width(), L => {
                    type $t = L;
                    let mut room = $crate::block::packed::Room::<L>::new();
                    let $slots = packed.unpack(&mut room);
                    $body
                })
            }
        }
    };
}
pub(crate) use with_codes;

/// Runs an expression with `$t` bound to the width of plain codes and `$buffer` to their buffer, or another
/// expression if they are packed.
macro_rules! with_plain {
    ($codes:expr, $t:ident, $buffer:ident => $body:expr, $packed:ident => $other:expr) => {
        match $codes {
            Codes::U8($buffer) => {
                type $t = u8;
                $body
            }
            Codes::U16($buffer) => {
                type $t = u16;
                $body
            }
            Codes::U32($buffer) => {
                type $t = u32;
                $body
            }
            Codes::Packed($packed) => $other,
        }
    };
}

/// Bits of a number.
pub(crate) fn bits_of(max: u64) -> usize {
    (u64::BITS - max.leading_zeros()) as usize
}

/// Bytes of a plain code up to `max`; `None` if it does not fit in 4.
pub(crate) fn plain_bytes(max: u128) -> Option<usize> {
    [1, 2, 4].into_iter().find(|bytes| max >> (bytes * 8) == 0)
}

/// True if packed codes are so much smaller than plain ones that unpacking pays; both in bytes.
// PERF: from memory they are read about as fast as plain ones, from cache at two thirds of the speed.
pub(crate) fn packing_pays(packed: usize, plain: usize) -> bool {
    packed * 9 <= plain * 8
}

impl Codes {
    /// Where the codes are.
    pub(crate) fn buffer_mut(&mut self) -> &mut Buffer {
        match self {
            Codes::U8(buffer) | Codes::U16(buffer) | Codes::U32(buffer) => buffer,
            Codes::Packed(packed) => packed.buffer_mut(),
        }
    }

    /// Codes up to `max` in the narrowest plain width, with room for `capacity` of them.
    pub(crate) fn new(max: u32, capacity: usize, codes: impl Iterator<Item = u32>) -> Codes {
        fn run<C: Native>(
            capacity: usize,
            codes: impl Iterator<Item = u32>,
            narrow: impl Fn(u32) -> C,
        ) -> Buffer {
            let mut buffer = Buffer::zeroed(capacity * size_of::<C>());
            buffer.as_mut_slice::<C>().iter_mut().zip(codes).for_each(|(slot, code)| *slot = narrow(code));
            buffer
        }
        if max <= u8::MAX.into() {
            Codes::U8(run(capacity, codes, |code| code as u8))
        } else if max <= u16::MAX.into() {
            Codes::U16(run(capacity, codes, |code| code as u16))
        } else {
            Codes::U32(run(capacity, codes, |code| code))
        }
    }

    /// The greatest code that fits.
    pub(crate) fn max(&self) -> u64 {
        match self {
            Codes::U8(_) => u8::MAX.into(),
            Codes::U16(_) => u16::MAX.into(),
            Codes::U32(_) => u32::MAX.into(),
            Codes::Packed(packed) => u64::MAX >> (64 - packed.width()),
        }
    }

    /// Up to 1024 codes up to `max` in as many bits as it needs, if that pays: unpacking takes longer.
    pub(crate) fn tight(max: u32, slots: usize, codes: impl Iterator<Item = u32>) -> Codes {
        let (bits, bytes) =
            (bits_of(max.into()).max(1), plain_bytes(max.into()).expect("codes have 32 bits") * slots);
        if packing_pays(Packed::size(bits), bytes) {
            Codes::Packed(Packed::new(bits, codes.map(u64::from)))
        } else {
            Codes::new(max, slots, codes)
        }
    }

    /// True if each slot has bytes of its own, so that it can be written while others are read.
    pub(crate) fn are_plain(&self) -> bool {
        !matches!(self, Codes::Packed(_))
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Codes::U8(buffer) | Codes::U16(buffer) | Codes::U32(buffer) => buffer.capacity(),
            Codes::Packed(packed) => packed.bytes(),
        }
    }

    /// Writes the codes from `from` on, of at most 32 bits, to all of `out`.
    pub(crate) fn widen(&self, from: usize, out: &mut [u32]) {
        with_codes!(self, C, slots => cells::map_into::<C, u32>(slots, from, out, |code| code.code() as u32));
    }

    /// The code in `slot`.
    #[inline]
    pub(crate) fn get(&self, slot: usize) -> u64 {
        with_plain!(self, C, buffer => cells::load::<C>(buffer, slot).into(), packed => packed.get(slot))
    }

    /// The greatest of the first `slots` codes, or of all if they are packed; no other thread sees the block.
    // PERF: in vectors, where codes one by one are unpacked one by one.
    pub(crate) fn greatest(&self, slots: usize) -> u64 {
        with_plain!(
            self,
            C,
            buffer => {
                let codes = &buffer.as_slice::<C>()[..slots];
                widest(|| codes.iter().fold(0, |most: C, &code| Ord::max(most, code))).into()
            },
            packed => packed.greatest()
        )
    }

    /// Calls `each` with the codes of some slots, one after the other.
    #[inline(always)]
    pub(crate) fn each_of(&self, slots: impl ExactSizeIterator<Item = usize>, mut each: impl FnMut(u64)) {
        with_plain!(
            self,
            C,
            buffer => slots.for_each(|slot| each(cells::load::<C>(buffer, slot).into())),
            packed => packed.each_of(slots, each)
        );
    }

    /// Narrows `masks`, a bit a slot, to the slots whose code is from `low` to `high`, which is at most
    /// [`Codes::max`].
    pub(crate) fn narrow(&self, low: u64, high: u64, masks: &mut [u64]) {
        with_plain!(
            self,
            C,
            buffer => _ = search::narrow(buffer, masks, low as C, (high - low) as C),
            packed => packed.narrow(low, high, masks)
        );
    }

    /// The codes.
    pub(crate) fn ahead(&self) -> Ahead {
        with_plain!(self, C, buffer => Ahead::slots(buffer, size_of::<C>()), packed => packed.ahead())
    }

    /// Writes a code that fits to `slot`; see [`cells::store`]. Packed codes must be of a block that no other
    /// thread can see, or whose slice the caller has latched.
    #[inline]
    pub(crate) fn store(&self, slot: usize, code: u64) {
        debug_assert!(code <= self.max());
        with_plain!(
            self,
            C,
            buffer => cells::store::<C>(buffer, slot, code as C),
            packed => packed.store(slot, code)
        );
    }

    /// A copy of the first `slots` codes as plain ones; `None` if they have more than 32 bits.
    // PERF: lanes are as wide as plain codes, so it takes as long as copying.
    pub(crate) fn unpacked_copy(&self, slots: usize) -> Option<Codes> {
        let Codes::Packed(packed) = self else { return Some(self.copy(slots)) };
        match packed.width() {
            0..=8 => Some(Codes::U8(packed.unpacked::<u8>(slots))),
            9..=16 => Some(Codes::U16(packed.unpacked::<u16>(slots))),
            17..=32 => Some(Codes::U32(packed.unpacked::<u32>(slots))),
            _ => None,
        }
    }

    /// A copy of the first `slots` plain codes, or of all packed ones.
    pub(crate) fn copy(&self, slots: usize) -> Codes {
        match self {
            Codes::U8(buffer) => Codes::U8(cells::copy::<u8>(buffer, slots, slots)),
            Codes::U16(buffer) => Codes::U16(cells::copy::<u16>(buffer, slots, slots)),
            Codes::U32(buffer) => Codes::U32(cells::copy::<u32>(buffer, slots, slots)),
            Codes::Packed(packed) => Codes::Packed(packed.copy()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::random::Random;

    #[test]
    fn the_greatest_plain_code_is_that_of_the_first_slots() {
        let mut random = Random(9);
        for most in [1, 200, 60_000, 3_000_000_000] {
            for slots in [1, 7, 100, 1021] {
                let codes: Vec<u32> = (0..slots + 3).map(|_| random.below(most + 1) as u32).collect();
                let plain = Codes::new(most as u32, slots + 3, codes.iter().copied());
                let greatest = codes[..slots].iter().map(|&code| u64::from(code)).max();
                assert_eq!(Some(plain.greatest(slots)), greatest);
            }
        }
    }
}
