//! Unpacking with vectors of 64 and of 32 bytes.
//!
//! A row is two or four vectors. For each: what a word has of it is shifted down, what the next word has is shifted up, and the
//! rest is cut off. Rows are unrolled, and kernels compiled for every width, so that the compiler knows all shift counts and masks.
//!
//! This is a leaf module with `unsafe`: vector instructions. The slow twin is [`super::unpack_each`].
#![allow(unsafe_code)]

use super::{Lane, place};
use crate::BLOCK_ROWS;
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
    ($name:ident, $features:literal, $vector:ty, $load:ident, $store:ident, $and:ident, $or:ident,
     $right:ident $right4:ident $right8:ident, $left:ident $left4:ident $left8:ident,
     $every1:ident $every2:ident $every4:ident $every8:ident) => {
        /// All codes of a packed block, of a width that the compiler knows, or of any if `WIDTH` is 0.
        ///
        /// # Safety
        /// The machine has the features; `words` has `width` words of all lanes, and `width` is at least 1 and at most the bits
        /// of a lane.
        // PERF: the compiler does not make vectors of a plain loop; sums of 17 bits took three times as long with one.
        #[target_feature(enable = $features)]
        pub(super) unsafe fn $name<T: Lane, const WIDTH: usize>(
            words: &[T],
            width: usize,
            out: &mut MaybeUninit<[T; BLOCK_ROWS]>,
        ) {
            use std::arch::x86_64::*;
            let width = if WIDTH > 0 { WIDTH } else { width };
            debug_assert!(words.len() >= width * T::LANES && (1..=T::LANE_BITS).contains(&width));
            // A number in every lane.
            let every = |bits: u64| match size_of::<T>() {
                1 => $every1(bits as i8),
                2 => $every2(bits as i16),
                4 => $every4(bits as i32),
                _ => $every8(bits as i64),
            };
            let ones = |count: usize| if count == 0 { 0 } else { u64::MAX >> (64 - count) };
            // There is no shift of bytes: what comes from a neighbour is cut off behind.
            let right = |part: $vector, by: usize| {
                let count = _mm_cvtsi32_si128(by as i32);
                match size_of::<T>() {
                    1 => $and($right(part, count), every(ones(8 - by))),
                    2 => $right(part, count),
                    4 => $right4(part, count),
                    _ => $right8(part, count),
                }
            };
            let left = |part: $vector, by: usize| {
                let count = _mm_cvtsi32_si128(by as i32);
                match size_of::<T>() {
                    1 => $and($left(part, count), every(!ones(by))),
                    2 => $left(part, count),
                    4 => $left4(part, count),
                    _ => $left8(part, count),
                }
            };
            const PARTS: usize = 128 / size_of::<$vector>();
            let (from, to) = (words.as_ptr().cast::<$vector>(), out.as_mut_ptr().cast::<$vector>());
            let kept = every(ones(width));
            each_row!(T::ROWS, row => {
                let (word, bit) = place::<T>(row, width);
                for part in 0..PARTS {
                    // SAFETY: `word` is below `width`, and so is the next one if the row goes on there; a word of all
                    // lanes and a row of codes have `PARTS` vectors.
                    unsafe {
                        let mut codes = right($load(from.add(word * PARTS + part).cast()), bit);
                        if bit + width > T::LANE_BITS {
                            let rest = $load(from.add((word + 1) * PARTS + part).cast());
                            codes = $or(codes, left(rest, T::LANE_BITS - bit));
                        }
                        $store(to.add(row * PARTS + part).cast(), $and(codes, kept));
                    }
                }
            });
        }
    };
}

kernel!(
    unpack_avx512, "avx512f,avx512bw", __m512i, _mm512_loadu_si512, _mm512_storeu_si512, _mm512_and_si512,
    _mm512_or_si512, _mm512_srl_epi16 _mm512_srl_epi32 _mm512_srl_epi64,
    _mm512_sll_epi16 _mm512_sll_epi32 _mm512_sll_epi64,
    _mm512_set1_epi8 _mm512_set1_epi16 _mm512_set1_epi32 _mm512_set1_epi64
);
kernel!(
    unpack_avx2, "avx2", __m256i, _mm256_loadu_si256, _mm256_storeu_si256, _mm256_and_si256,
    _mm256_or_si256, _mm256_srl_epi16 _mm256_srl_epi32 _mm256_srl_epi64,
    _mm256_sll_epi16 _mm256_sll_epi32 _mm256_sll_epi64,
    _mm256_set1_epi8 _mm256_set1_epi16 _mm256_set1_epi32 _mm256_set1_epi64x
);

/// True if this machine has the vectors.
#[inline]
pub(super) fn are_there() -> bool {
    !cfg!(miri) && is_x86_feature_detected!("avx2")
}

/// All codes of a packed block, by the widest vectors of this machine.
///
/// # Panics
/// If there are none, or `words` is too short.
pub(super) fn unpack<'a, T: Lane, const WIDTH: usize>(
    words: &[T],
    width: usize,
    out: &'a mut MaybeUninit<[T; BLOCK_ROWS]>,
) -> &'a [T; BLOCK_ROWS] {
    assert!(words.len() >= width * T::LANES && (1..=T::LANE_BITS).contains(&width) && [0, width].contains(&WIDTH));
    assert!(are_there());
    // SAFETY: the features are there, words and width as they are wanted, and the kernels write all codes.
    unsafe {
        if has_avx512() {
            unpack_avx512::<T, WIDTH>(words, width, out);
        } else {
            unpack_avx2::<T, WIDTH>(words, width, out);
        }
        out.assume_init_ref()
    }
}

#[cfg(test)]
thread_local! {
    /// For tests: leave the widest vectors alone.
    pub(super) static ONLY_AVX2: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

#[inline]
fn has_avx512() -> bool {
    #[cfg(test)]
    if ONLY_AVX2.get() {
        return false;
    }
    is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw")
}
