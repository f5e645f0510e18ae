//! Unpacking with vectors of 64 and of 32 bytes: to memory, or straight into a comparison.
//!
//! A row is two or four vectors. For each of them, the bits in one word are shifted down, those in the next
//! word are shifted up, and the rest is masked off. The result is stored, or compared with a range while it
//! is in the register, which gives a bit for each code. Rows are unrolled, and kernels compiled for every
//! width, so that the compiler knows all shift counts and masks.
//!
//! This is a leaf module with `unsafe`: vector instructions. The slow twins are [`super::unpack_rows`] and
//! comparing what it gives.
#![allow(unsafe_code)]

use super::{Lane, place};
use crate::BLOCK_ROWS;
use crate::block::within::{self, Vectors};
use std::mem::MaybeUninit;

/// Runs a statement for every row of a block, with its number known to the compiler for up to 32 rows.
macro_rules! each_row {
    ($rows:expr, $row:ident => $body:expr) => {
        each_row!(@ $rows, $row, $body, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15
            16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);
        for $row in 32..$rows {
            $body
        }
    };
    (@ $rows:expr, $row:ident, $body:expr, $($number:literal)*) => { $(
        if $number < $rows {
            let $row: usize = $number;
            $body
        }
    )* };
}

macro_rules! kernel {
    ($vectors:ident, $features:literal, $vector:ty, $load:ident, $store:ident, $and:ident, $or:ident,
     $right:ident $right4:ident $right8:ident, $left:ident $left4:ident $left8:ident) => {
        /// Kernels for vectors of one size.
        pub(super) mod $vectors {
            use super::*;
            use std::arch::x86_64::*;
            use within::$vectors::{every, within};

            const PARTS: usize = 128 / size_of::<$vector>();

            /// Calls `each` with every vector of codes of a packed block and the slot of the first one, in
            /// their order. The width is one that the compiler knows, or any if `WIDTH` is 0.
            ///
            /// # Safety
            /// `words` has `width` words of all lanes, and `width` is at least 1 and at most the bits of a
            /// lane.
            // PERF: the compiler does not vectorize a plain loop; with one, sums of 17 bits took three times
            // as long.
            #[target_feature(enable = $features)]
            #[inline]
            unsafe fn each<T: Lane, const WIDTH: usize>(
                words: &[T],
                width: usize,
                mut each: impl FnMut(usize, $vector),
            ) {
                let width = if WIDTH > 0 { WIDTH } else { width };
                debug_assert!(words.len() >= width * T::LANES && (1..=T::LANE_BITS).contains(&width));
                let ones = |count: usize| if count == 0 { 0 } else { u64::MAX >> (64 - count) };
                // There is no shift of bytes: bits that come from a neighbour are masked off.
                let right = |part: $vector, by: usize| {
                    let count = _mm_cvtsi32_si128(by as i32);
                    match size_of::<T>() {
                        1 => $and($right(part, count), every(T::of(ones(8 - by)))),
                        2 => $right(part, count),
                        4 => $right4(part, count),
                        _ => $right8(part, count),
                    }
                };
                let left = |part: $vector, by: usize| {
                    let count = _mm_cvtsi32_si128(by as i32);
                    match size_of::<T>() {
                        1 => $and($left(part, count), every(T::of(!ones(by)))),
                        2 => $left(part, count),
                        4 => $left4(part, count),
                        _ => $left8(part, count),
                    }
                };
                let from = words.as_ptr().cast::<$vector>();
                let kept = every(T::of(ones(width)));
                each_row!(T::ROWS, row => {
                    let (word, bit) = place::<T>(row, width);
                    for part in 0..PARTS {
                        // SAFETY: `word` is below `width`, and so is the next one if the row goes on there; a
                        // word of all lanes has `PARTS` vectors.
                        let load = |word: usize| unsafe { $load(from.add(word * PARTS + part).cast()) };
                        let mut codes = right(load(word), bit);
                        if bit + width > T::LANE_BITS {
                            codes = $or(codes, left(load(word + 1), T::LANE_BITS - bit));
                        }
                        each(row * T::LANES + part * (T::LANES / PARTS), $and(codes, kept));
                    }
                });
            }

            /// All codes.
            ///
            /// # Safety
            /// As for [`each`].
            #[target_feature(enable = $features)]
            pub(super) unsafe fn unpack<T: Lane, const WIDTH: usize>(
                words: &[T],
                width: usize,
                out: &mut MaybeUninit<[T; BLOCK_ROWS]>,
            ) {
                let to = out.as_mut_ptr().cast::<T>();
                // SAFETY: the caller's promise; vectors lie within the slots of a block.
                unsafe { each::<T, WIDTH>(words, width, |slot, codes| $store(to.add(slot).cast(), codes)) };
            }

            /// Narrows `masks` to slots whose code lies within `low` and `low + span`; all of their bits,
            /// or-ed.
            ///
            /// # Safety
            /// As for [`each`].
            // PERF: a mask is written as soon as it is known and never read back: loading as a whole what was
            // stored in parts stalls.
            #[target_feature(enable = $features)]
            pub(super) unsafe fn narrow<T: Lane, const WIDTH: usize>(
                words: &[T],
                width: usize,
                low: T,
                span: T,
                masks: &mut [u64; BLOCK_ROWS / 64],
            ) -> u64 {
                let (mut found, mut any) = (0, 0);
                let (low, span) = (every(low), every(span));
                // SAFETY: the caller's promise.
                unsafe {
                    each::<T, WIDTH>(words, width, |slot, codes| {
                        found |= within::<T>(codes, low, span) << (slot % 64);
                        if (slot + T::LANES / PARTS) % 64 == 0 {
                            masks[slot / 64] &= found;
                            any |= masks[slot / 64];
                            found = 0;
                        }
                    });
                }
                any
            }
        }
    };
}

kernel!(
    avx512, "avx512f,avx512bw", __m512i, _mm512_loadu_si512, _mm512_storeu_si512, _mm512_and_si512, _mm512_or_si512,
    _mm512_srl_epi16 _mm512_srl_epi32 _mm512_srl_epi64, _mm512_sll_epi16 _mm512_sll_epi32 _mm512_sll_epi64
);
kernel!(
    avx2, "avx2", __m256i, _mm256_loadu_si256, _mm256_storeu_si256, _mm256_and_si256, _mm256_or_si256,
    _mm256_srl_epi16 _mm256_srl_epi32 _mm256_srl_epi64, _mm256_sll_epi16 _mm256_sll_epi32 _mm256_sll_epi64
);

/// All codes of a packed block, by vectors that this machine has; `WIDTH` is the width, or 0 for any.
///
/// # Panics
/// If `words` is too short.
pub(super) fn unpack<'a, T: Lane, const WIDTH: usize>(
    vectors: Vectors,
    words: &[T],
    width: usize,
    out: &'a mut MaybeUninit<[T; BLOCK_ROWS]>,
) -> &'a [T; BLOCK_ROWS] {
    check::<T, WIDTH>(words, width);
    // SAFETY: the features are there, words and width are as required, and the kernels write all codes.
    unsafe {
        match vectors {
            Vectors::Avx512(_) => avx512::unpack::<T, WIDTH>(words, width, out),
            Vectors::Avx2(_) => avx2::unpack::<T, WIDTH>(words, width, out),
        }
        out.assume_init_ref()
    }
}

/// Narrows `masks` to slots of a packed block whose code lies within `low` and `low + span`, as [`unpack`]
/// does it. All of their bits, or-ed.
pub(super) fn narrow<T: Lane, const WIDTH: usize>(
    vectors: Vectors,
    words: &[T],
    width: usize,
    low: T,
    span: T,
    masks: &mut [u64; BLOCK_ROWS / 64],
) -> u64 {
    check::<T, WIDTH>(words, width);
    // SAFETY: the features are there, words and width are as required.
    unsafe {
        match vectors {
            Vectors::Avx512(_) => avx512::narrow::<T, WIDTH>(words, width, low, span, masks),
            Vectors::Avx2(_) => avx2::narrow::<T, WIDTH>(words, width, low, span, masks),
        }
    }
}

fn check<T: Lane, const WIDTH: usize>(words: &[T], width: usize) {
    assert!(
        words.len() >= width * T::LANES && (1..=T::LANE_BITS).contains(&width) && [0, width].contains(&WIDTH)
    );
}
