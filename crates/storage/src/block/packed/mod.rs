//! Codes of any number of bits, packed so that they are unpacked in their own order.
//!
//! A block of 1024 codes is packed into *lanes*: unsigned integers of the narrowest type that holds a code. A
//! row is as many codes as there are lanes in 1024 bits. Code `i` stands in lane `i % LANES`, at bit
//! `(i / LANES) · width` of its lane; the words `k` of all lanes are adjacent. So a row is two loads, two
//! shifts by the same count for all lanes, and an "and", without a permutation; and one code is two loads and
//! shifts as well.
//!
//! | function | does | its slow twin |
//! |---|---|---|
//! | [`Packed::new`] | packs | – |
//! | [`Packed::get`] | one code | – |
//! | [`Packed::store`] | writes one code | packing all |
//! | [`Packed::each_of`] | some | [`Packed::get`] |
//! | [`Packed::unpack`] | all codes ([`kernels`]) | [`Packed::get`] |
//! | [`Packed::narrow`] | the slots with a code of a range ([`kernels`]) | unpacking, and comparing |
//!
//! A code is written in place only in a block that no other thread can see, or under the latch of its slice,
//! since a word has the bits of several slots. Not here: the choice of the width, and what codes mean.

#[cfg(target_arch = "x86_64")]
mod kernels;

use super::cells::{self, Slots};
use super::number::Number;
use super::search;
use super::within::Vectors;
use crate::BLOCK_ROWS;
use crate::node::Ahead;
use entasis_vector::Buffer;
use entasis_vector::simd::widest;
use std::mem::MaybeUninit;
use std::ops::{BitOr, Shl, Shr};

/// The most codes that are unpacked one by one.
// PERF: all 1024 are unpacked in the time of some 20 single ones.
pub(crate) const FEW: usize = 20;
/// Bits of a row.
const ROW_BITS: usize = 1024;

/// An unsigned integer that codes are packed into.
pub(crate) trait Lane:
    Number + Shl<usize, Output = Self> + Shr<usize, Output = Self> + BitOr<Output = Self>
{
    /// Its bits.
    const LANE_BITS: usize = size_of::<Self>() * 8;
    /// The number of lanes of a row.
    const LANES: usize = ROW_BITS / Self::LANE_BITS;
    /// Rows of a block.
    const ROWS: usize = BLOCK_ROWS / Self::LANES;
    /// The lowest bits of a number.
    fn of(code: u64) -> Self;
    /// As a number.
    fn code(self) -> u64;
    /// `first` shifted right by `bit`, and above it what is left of `rest`: the lowest `width` bits.
    fn joined(first: Self, rest: Self, bit: usize, width: usize) -> Self;
    /// All codes of a packed block, by means of such vectors.
    fn unpack<'a>(
        vectors: Option<Vectors>,
        words: &[Self],
        width: usize,
        out: &'a mut MaybeUninit<[Self; BLOCK_ROWS]>,
    ) -> &'a [Self; BLOCK_ROWS];
    /// Narrows `masks` to slots of a packed block whose code lies within `low` and `low + span`, by means of
    /// such vectors. All of their bits, or-ed.
    fn narrow(
        vectors: Option<Vectors>,
        words: &[Self],
        width: usize,
        low: Self,
        span: Self,
        masks: &mut [u64; BLOCK_ROWS / 64],
    ) -> u64;
}

macro_rules! lane {
    ($($t:ty: $($width:literal)*;)*) => { $(
        impl Lane for $t {
            #[inline(always)]
            fn of(code: u64) -> $t {
                code as $t
            }
            #[inline(always)]
            fn code(self) -> u64 {
                self.into()
            }
            #[inline(always)]
            fn joined(first: $t, rest: $t, bit: usize, width: usize) -> $t {
                let low = <$t>::MAX >> (Self::LANE_BITS - width);
                let upper = if bit + width > Self::LANE_BITS { rest << (Self::LANE_BITS - bit) } else { 0 };
                ((first >> bit) | upper) & low
            }
            fn unpack<'a>(
                vectors: Option<Vectors>,
                words: &[$t],
                width: usize,
                out: &'a mut MaybeUninit<[$t; BLOCK_ROWS]>,
            ) -> &'a [$t; BLOCK_ROWS] {
                match (vectors, width) {
                    (None, _) => out.write(unpack_rows(words, width)),
                    $(
                        #[cfg(target_arch = "x86_64")]
                        (Some(vectors), $width) => kernels::unpack::<$t, $width>(vectors, words, width, out),
                    )*
                    #[cfg(target_arch = "x86_64")]
                    (Some(vectors), _) => kernels::unpack::<$t, 0>(vectors, words, width, out),
                }
            }
            fn narrow(
                vectors: Option<Vectors>,
                words: &[$t],
                width: usize,
                low: $t,
                span: $t,
                masks: &mut [u64; BLOCK_ROWS / 64],
            ) -> u64 {
                match (vectors, width) {
                    (None, _) => search::narrow_by(None, &unpack_rows(words, width)[..], masks, low, span),
                    $(
                        #[cfg(target_arch = "x86_64")]
                        (Some(vectors), $width) => {
                            kernels::narrow::<$t, $width>(vectors, words, width, low, span, masks)
                        }
                    )*
                    #[cfg(target_arch = "x86_64")]
                    (Some(vectors), _) => kernels::narrow::<$t, 0>(vectors, words, width, low, span, masks),
                }
            }
        }
    )* };
}
lane! {
    u8: 1 2 3 4 5 6 7;
    u16: 9 10 11 12 13 14 15;
    u32: 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31;
    u64: ;
}

/// Where a row begins in each lane: word and bit.
#[inline(always)]
fn place<T: Lane>(row: usize, width: usize) -> (usize, usize) {
    (row * width / T::LANE_BITS, row * width % T::LANE_BITS)
}

/// All codes, row by row: what machines without our vectors run, and the twin of those kernels.
// PERF: each row is a plain loop over lanes, which the compiler vectorizes to 16 bytes; code by code takes
// ten times as long.
fn unpack_rows<T: Lane>(words: &[T], width: usize) -> [T; BLOCK_ROWS] {
    let mut codes = [T::of(0); BLOCK_ROWS];
    for (row, codes) in codes.chunks_exact_mut(T::LANES).enumerate() {
        let (word, bit) = place::<T>(row, width);
        let lanes = |word: usize| &words[word * T::LANES..][..T::LANES];
        let rest = if bit + width > T::LANE_BITS { word + 1 } else { word };
        let words = lanes(word).iter().zip(lanes(rest));
        codes
            .iter_mut()
            .zip(words)
            .for_each(|(code, (&first, &rest))| *code = T::joined(first, rest, bit, width));
    }
    codes
}

/// The code in a slot.
#[inline(always)]
fn get<T: Lane>(words: impl Fn(usize) -> T, width: usize, slot: usize) -> T {
    let (row, lane) = (slot / T::LANES, slot % T::LANES);
    let (word, bit) = place::<T>(row, width);
    // Nothing follows the last word, and whatever is read for it is masked off.
    let rest = if bit + width > T::LANE_BITS { word + 1 } else { word };
    T::joined(words(word * T::LANES + lane), words(rest * T::LANES + lane), bit, width)
}

/// Writes the code in a slot: one word, or two.
#[inline(always)]
fn store<T: Lane>(words: &Buffer, width: usize, slot: usize, code: u64) {
    let (row, lane) = (slot / T::LANES, slot % T::LANES);
    let (word, bit) = place::<T>(row, width);
    let mask = u64::MAX >> (64 - width);
    let put = |word: usize, mask: u64, bits: u64| {
        let at = word * T::LANES + lane;
        let others = cells::load::<T>(words, at).code() & !mask;
        cells::store(words, at, T::of(others | bits));
    };
    put(word, mask << bit, code << bit);
    if bit + width > T::LANE_BITS {
        let done = T::LANE_BITS - bit;
        put(word + 1, mask >> done, code >> done);
    }
}

/// Room for all codes of a block.
#[repr(align(64))]
pub(crate) struct Room<T>(MaybeUninit<[T; BLOCK_ROWS]>);

impl<T> Room<T> {
    #[inline(always)]
    pub(crate) fn new() -> Room<T> {
        Room(MaybeUninit::uninit())
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Packed {
    /// Bits of a code, 1 to 63.
    width: u8,
    words: Buffer,
}

/// Runs an expression with `$t` bound to the lanes of a width.
macro_rules! with_lanes {
    ($width:expr, $t:ident => $body:expr) => {
        match $width {
            0..=8 => {
                type $t = u8;
                $body
            }
            9..=16 => {
                type $t = u16;
                $body
            }
            17..=32 => {
                type $t = u32;
                $body
            }
            _ => {
                type $t = u64;
                $body
            }
        }
    };
}
pub(crate) use with_lanes;

impl Packed {
    /// Bytes of 1024 codes of `width` bits.
    pub(crate) fn size(width: usize) -> usize {
        width * ROW_BITS / 8
    }

    /// Up to 1024 codes of at most `width` bits, 1 to 63.
    pub(crate) fn new(width: usize, codes: impl Iterator<Item = u64>) -> Packed {
        debug_assert!((1..64).contains(&width));
        let mut words = Buffer::zeroed(Packed::size(width));
        with_lanes!(width, T => {
            let mut unpacked = [0 as T; BLOCK_ROWS];
            unpacked.iter_mut().zip(codes).for_each(|(slot, code)| *slot = T::of(code));
            pack(&unpacked, width, words.as_mut_slice::<T>());
        });
        Packed { width: width as u8, words }
    }

    /// Codes of `width` bits, 1 to 63, as they are in memory; `None` if the number of bytes is wrong.
    pub(crate) fn of_bytes(width: usize, bytes: &[u8]) -> Option<Packed> {
        let is_right = (1..64).contains(&width) && bytes.len() == Packed::size(width);
        is_right.then(|| Packed { width: width as u8, words: Buffer::from_slice(bytes) })
    }

    /// A copy.
    pub(crate) fn copy(&self) -> Packed {
        Packed { width: self.width, words: Buffer::from_slice(self.words.as_slice::<u64>()) }
    }

    /// Bits of a code.
    pub(crate) fn width(&self) -> usize {
        self.width.into()
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.words.capacity()
    }

    /// The bytes of the codes.
    pub(crate) fn buffer(&self) -> &Buffer {
        &self.words
    }

    /// The same, for writing.
    pub(crate) fn buffer_mut(&mut self) -> &mut Buffer {
        &mut self.words
    }

    /// The codes.
    pub(crate) fn ahead(&self) -> Ahead {
        Ahead::packed(&self.words, self.width())
    }

    /// The code in `slot`, which may be written meanwhile under the latch of its slice.
    #[inline]
    pub(crate) fn get(&self, slot: usize) -> u64 {
        let width = self.width();
        with_lanes!(width, T => get::<T>(|word| cells::load(&self.words, word), width, slot).code())
    }

    /// Writes a code of at most `width` bits to `slot` of a block that no other thread can see, or whose
    /// slice the caller has latched.
    #[inline]
    pub(crate) fn store(&self, slot: usize, code: u64) {
        let width = self.width();
        with_lanes!(width, T => store::<T>(&self.words, width, slot, code));
    }

    /// The first `slots` codes, in the lanes of their width.
    pub(crate) fn unpacked<T: Lane>(&self, slots: usize) -> Buffer {
        let (mut room, mut out) = (Room::<T>::new(), Buffer::zeroed(slots * size_of::<T>()));
        cells::map_into::<T, T>(self.unpack(&mut room), 0, &mut out.as_mut_slice()[..slots], |code| code);
        out
    }

    /// The greatest of its 1024 codes; no other thread sees the block.
    pub(crate) fn greatest(&self) -> u64 {
        with_lanes!(self.width(), T => {
            let mut room = Room::<T>::new();
            let codes = self.unpack_all(&mut room);
            Lane::code(widest(|| codes.iter().fold(0, |most: T, &code| Ord::max(most, code))))
        })
    }

    /// Calls `each` with the codes of some slots, one after the other: one by one if they are few, otherwise
    /// by unpacking the block.
    // PERF: it dispatches on the width once.
    #[inline(always)]
    pub(crate) fn each_of(&self, slots: impl ExactSizeIterator<Item = usize>, each: impl FnMut(u64)) {
        let width = self.width();
        with_lanes!(width, T => each_of::<T>(self.words.as_slice(), width, slots, each));
    }

    /// All codes, in the lanes of their width.
    #[inline]
    pub(crate) fn unpack<'a, T: Lane>(&self, room: &'a mut Room<T>) -> Slots<'a> {
        Slots::from(&self.unpack_all(room)[..])
    }

    /// The same as an array.
    #[inline]
    pub(crate) fn unpack_all<'a, T: Lane>(&self, room: &'a mut Room<T>) -> &'a [T; BLOCK_ROWS] {
        T::unpack(Vectors::widest(), self.words.as_slice(), self.width(), &mut room.0)
    }

    /// Narrows `masks`, a bit a slot, to the slots whose code is from `low` to `high`, which fit the width.
    pub(crate) fn narrow(&self, low: u64, high: u64, masks: &mut [u64]) {
        let mut all = [0; BLOCK_ROWS / 64];
        all[..masks.len()].copy_from_slice(masks);
        with_lanes!(self.width(), T => narrow::<T>(self.words.as_slice(), self.width(), low, high, &mut all));
        masks.copy_from_slice(&all[..masks.len()]);
    }
}

/// [`Packed::each_of`], of codes of `width` bits in such lanes.
#[inline(always)]
pub(crate) fn each_of<T: Lane>(
    words: &[T],
    width: usize,
    slots: impl ExactSizeIterator<Item = usize>,
    mut each: impl FnMut(u64),
) {
    if slots.len() < FEW {
        slots.for_each(|slot| each(get(|word| words[word], width, slot).code()));
    } else {
        let mut room = Room::<T>::new();
        let all = T::unpack(Vectors::widest(), words, width, &mut room.0);
        slots.for_each(|slot| each(all[slot].code()));
    }
}

/// [`Packed::narrow`], of codes of `width` bits in such lanes. All bits of `masks`, or-ed.
#[inline]
pub(crate) fn narrow<T: Lane>(
    words: &[T],
    width: usize,
    low: u64,
    high: u64,
    masks: &mut [u64; BLOCK_ROWS / 64],
) -> u64 {
    debug_assert!(low <= high && high >> width == 0);
    T::narrow(Vectors::widest(), words, width, T::of(low), T::of(high - low), masks)
}

fn pack<T: Lane>(codes: &[T; BLOCK_ROWS], width: usize, words: &mut [T]) {
    debug_assert!(codes.iter().all(|code| code.code() >> width == 0));
    // PERF: it shifts lanes, not the words that they widen to.
    widest(|| {
        for (row, codes) in codes.chunks_exact(T::LANES).enumerate() {
            let (word, bit) = place::<T>(row, width);
            let (words, rest) = words[word * T::LANES..].split_at_mut(T::LANES);
            words.iter_mut().zip(codes).for_each(|(word, &code)| *word = *word | code << bit);
            if bit + width > T::LANE_BITS {
                rest.iter_mut()
                    .zip(codes)
                    .for_each(|(word, &code)| *word = *word | code >> (T::LANE_BITS - bit));
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::random::Random;

    /// Calls `each` with each kind of vectors that the machine has, and with none.
    fn each_twin(each: impl Fn(Option<Vectors>)) {
        each(None);
        each(Vectors::widest());
        // The path of a machine with fewer features.
        #[cfg(target_arch = "x86_64")]
        each(Vectors::avx2());
    }

    #[test]
    fn the_greatest_code_is_that_of_all_slots() {
        let mut random = Random(8);
        for width in 1..64 {
            for _ in 0..4 {
                let most = random.next() & (u64::MAX >> (64 - width));
                let codes: Vec<u64> = (0..BLOCK_ROWS).map(|_| random.next() & most).collect();
                let packed = Packed::new(width, codes.iter().copied());
                assert_eq!(Some(packed.greatest()), codes.iter().copied().max());
            }
        }
    }

    #[test]
    fn codes_of_a_range_are_found_at_every_width() {
        let mut random = Random(7);
        for width in 1..64 {
            let greatest = u64::MAX >> (64 - width);
            let codes: Vec<u64> = (0..BLOCK_ROWS).map(|_| random.next() & greatest).collect();
            let packed = Packed::new(width, codes.iter().copied());
            let (a, b) = (codes[17], codes[900]);
            for (low, high) in
                [(0, greatest), (a, a), (0, a), (b, greatest), (a.min(b), a.max(b)), (greatest, greatest)]
            {
                let is_in = |slot: usize| u64::from((low..=high).contains(&codes[slot]));
                let twin: Vec<u64> = (0..BLOCK_ROWS / 64)
                    .map(|word| (0..64).map(|bit| is_in(word * 64 + bit) << bit).sum())
                    .collect();
                each_twin(|vectors| {
                    let mut masks = [!0x100; BLOCK_ROWS / 64];
                    let any = with_lanes!(width, T => {
                        let words = packed.words.as_slice();
                        T::narrow(vectors, words, width, T::of(low), T::of(high - low), &mut masks)
                    });
                    let twin: Vec<u64> = twin.iter().map(|mask| mask & !0x100).collect();
                    assert_eq!(masks[..], twin, "{width} bits, {low} to {high}, {vectors:?}");
                    assert_eq!(any, twin.iter().fold(0, |any, mask| any | mask));
                });
                let mut masks = [!0x10; 9];
                packed.narrow(low, high, &mut masks);
                assert!(
                    masks.iter().zip(&twin).all(|(mask, twin)| *mask == twin & !0x10),
                    "{width} bits, part"
                );
            }
        }
    }

    #[test]
    fn codes_are_written_where_they_are() {
        let mut random = Random(5);
        for width in 1..64 {
            let mut codes: Vec<u64> =
                (0..BLOCK_ROWS).map(|_| random.next() & (u64::MAX >> (64 - width))).collect();
            let packed = Packed::new(width, codes.iter().copied());
            for _ in 0..500 {
                let slot = random.below(BLOCK_ROWS as u64) as usize;
                codes[slot] = random.next() & (u64::MAX >> (64 - width));
                packed.store(slot, codes[slot]);
                assert_eq!(packed.get(slot), codes[slot], "{width} bits, slot {slot}");
            }
            let twin = Packed::new(width, codes.iter().copied());
            assert_eq!(packed.words.as_slice::<u8>(), twin.words.as_slice::<u8>(), "{width} bits");
            with_lanes!(width, T => {
                let plain = packed.unpacked::<T>(1000);
                let all = plain.as_slice::<T>().iter().take(1000);
                assert!(all.zip(&codes).all(|(plain, code)| plain.code() == *code), "{width} bits");
            });
        }
    }

    #[test]
    fn codes_of_every_width_come_back() {
        let mut random = Random(88_172_645_463_325_252);
        for width in 1..64 {
            for slots in [BLOCK_ROWS, 1000, 1] {
                let codes: Vec<u64> =
                    (0..slots).map(|_| random.next() & (u64::MAX >> (64 - width))).collect();
                let packed = Packed::new(width, codes.iter().copied());
                assert_eq!(packed.bytes(), Packed::size(width));
                let unpacked: Vec<u64> = with_lanes!(width, T => {
                    let words = packed.words.as_slice::<T>();
                    let mut room = Room::<T>::new();
                    let unpacked = *T::unpack(Vectors::widest(), words, width, &mut room.0);
                    each_twin(|vectors| {
                        let mut room = Room::<T>::new();
                        assert_eq!(&unpacked, T::unpack(vectors, words, width, &mut room.0), "{width} bits, {vectors:?}");
                    });
                    unpacked.iter().map(|code| code.code()).collect()
                });
                for (slot, unpacked) in unpacked.into_iter().enumerate() {
                    let code = codes.get(slot).copied().unwrap_or(0);
                    assert_eq!((packed.get(slot), unpacked), (code, code), "{width} bits, {slot}");
                }
            }
        }
    }
}
