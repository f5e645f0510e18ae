//! Unsigned codes in the narrowest of three widths.

use super::cells;
use crate::tree::link::Ahead;
use entasis_vector::{Buffer, Native};

/// Codes of as many slots as their block has.
#[derive(Debug)]
pub(crate) enum Codes {
    U8(Buffer),
    U16(Buffer),
    U32(Buffer),
}

/// Runs an expression with `$t` bound to the width of codes and `$buffer` to where they are.
macro_rules! with_codes {
    ($codes:expr, $t:ident, $buffer:ident => $body:expr) => {
        match $codes {
            $crate::block::codes::Codes::U8($buffer) => {
                type $t = u8;
                $body
            }
            $crate::block::codes::Codes::U16($buffer) => {
                type $t = u16;
                $body
            }
            $crate::block::codes::Codes::U32($buffer) => {
                type $t = u32;
                $body
            }
        }
    };
}
pub(crate) use with_codes;

impl Codes {
    /// Codes up to `max` in the narrowest width, with room for `capacity` of them.
    pub(crate) fn new(max: u32, capacity: usize, codes: impl Iterator<Item = u32>) -> Codes {
        fn run<C: Native>(capacity: usize, codes: impl Iterator<Item = u32>, narrow: impl Fn(u32) -> C) -> Buffer {
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
    pub(crate) fn max(&self) -> u32 {
        match self {
            Codes::U8(_) => u8::MAX.into(),
            Codes::U16(_) => u16::MAX.into(),
            Codes::U32(_) => u32::MAX,
        }
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        with_codes!(self, C, buffer => {
            let _ = C::MIN;
            buffer.capacity()
        })
    }

    /// Writes the codes from `from` on to all of `out`.
    pub(crate) fn widen(&self, from: usize, out: &mut [u32]) {
        with_codes!(self, C, buffer => cells::map_into::<C, u32>(buffer, from, out, u32::from));
    }

    /// The code in `slot`.
    #[inline]
    pub(crate) fn get(&self, slot: usize) -> u32 {
        with_codes!(self, C, buffer => wide(cells::load::<C>(buffer, slot)))
    }

    /// Asks for the memory of `slot`.
    #[inline]
    pub(crate) fn prefetch(&self, slot: usize) {
        with_codes!(self, C, buffer => cells::prefetch(buffer.as_ptr().wrapping_add(slot * size_of::<C>())));
    }

    /// Where they are.
    pub(crate) fn ahead(&self) -> Ahead {
        with_codes!(self, C, buffer => Ahead::slots(buffer, size_of::<C>()))
    }

    /// Writes a code that fits to `slot`; see [`cells::store`].
    #[inline]
    pub(crate) fn store(&self, slot: usize, code: u32) {
        debug_assert!(code <= self.max());
        with_codes!(self, C, buffer => cells::store::<C>(buffer, slot, code as C));
    }

    /// A copy of the first `slots` codes.
    pub(crate) fn copy(&self, slots: usize) -> Codes {
        match self {
            Codes::U8(buffer) => Codes::U8(cells::copy::<u8>(buffer, slots, slots)),
            Codes::U16(buffer) => Codes::U16(cells::copy::<u16>(buffer, slots, slots)),
            Codes::U32(buffer) => Codes::U32(cells::copy::<u32>(buffer, slots, slots)),
        }
    }
}

/// A code of any width in four bytes.
#[inline(always)]
fn wide<C: Into<u32>>(code: C) -> u32 {
    code.into()
}
