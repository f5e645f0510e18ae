//! Slots that hold a number, or one of a range: 64 slots at a time, as a mask. What a point query reads a partition with, and
//! a scan its filters' columns.
//!
//! A range is one subtraction and one comparison, `value - low <= span`, in arithmetic that wraps around; signs do not matter.
//!
//! This is a leaf module with `unsafe`: AVX-512 comparisons straight from the slots. [`portable`] does without; the slow twin of
//! both looks at one value after the other, in the tests.
#![allow(unsafe_code)]

use super::cells::{self, Slots};
use entasis_vector::Native;

/// An integer as slots hold it.
pub(crate) trait Number: Native {
    /// True if it lies within `low` and `low + span`.
    fn is_within(self, low: Self, span: Self) -> bool;
}

macro_rules! number {
    ($($t:ty, $unsigned:ty);*) => { $(
        impl Number for $t {
            #[inline(always)]
            fn is_within(self, low: $t, span: $t) -> bool {
                self.wrapping_sub(low) as $unsigned <= span as $unsigned
            }
        }
    )* };
}
number!(u8, u8; u16, u16; u32, u32; u64, u64; i8, u8; i16, u16; i32, u32; i64, u64; i128, u128);

/// Narrows `masks`, a bit a slot, to the slots whose value lies within `low` and `low + span`. Slots beyond the buffer do not
/// match.
#[inline]
pub(crate) fn narrow<'a, T: Number>(slots: impl Into<Slots<'a>>, masks: &mut [u64], low: T, span: T) {
    let slots = slots.into();
    #[cfg(target_arch = "x86_64")]
    if !cfg!(miri) && size_of::<T>() <= 8 && is_x86_feature_detected!("avx512bw") {
        // SAFETY: the features are there.
        return unsafe { narrow_avx512(slots, masks, low, span) };
    }
    let words = masks.iter_mut().enumerate().filter(|(_, mask)| **mask != 0);
    words.for_each(|(word, mask)| *mask &= portable(slots, word, low, span));
}

/// # Safety
/// AVX-512 F and BW are there, and `T` has at most 8 bytes.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn narrow_avx512<T: Number>(slots: Slots<'_>, masks: &mut [u64], low: T, span: T) {
    for (word, mask) in masks.iter_mut().enumerate().filter(|(_, mask)| **mask != 0) {
        *mask &= if (word + 1) * 64 * size_of::<T>() <= slots.bytes() {
            // SAFETY: the 64 slots lie within the buffer; the rest is the caller's promise.
            unsafe { avx512(slots.as_ptr().add(word * 64 * size_of::<T>()), low, span) }
        } else {
            portable(slots, word, low, span)
        };
    }
}

/// The same on any machine.
fn portable<T: Number>(slots: Slots<'_>, word: usize, low: T, span: T) -> u64 {
    answers(slots, word, move |v: T| v.is_within(low, span))
}

/// Narrows `masks` to the slots whose value `holds` is true of. Slots beyond the buffer do not match.
pub(crate) fn narrow_where<'a, T: Native>(
    slots: impl Into<Slots<'a>>,
    masks: &mut [u64],
    holds: impl Fn(T) -> bool + Copy,
) {
    let slots = slots.into();
    for (word, mask) in masks.iter_mut().enumerate().filter(|(_, mask)| **mask != 0) {
        *mask &= answers(slots, word, holds);
    }
}

/// Whether `holds` is true of each value of a word's slots: a byte a slot, then a bit a byte.
// PERF: both steps are vector loops on AVX2, if `holds` is arithmetic; a bit at a time takes 40 ns for 64 slots.
#[inline(always)]
fn answers<T: Native>(slots: Slots<'_>, word: usize, holds: impl Fn(T) -> bool) -> u64 {
    let all = slots.bytes() / size_of::<T>();
    let (first, mut within) = (word * 64, [0u8; 64]);
    let count = all.saturating_sub(first).min(64);
    cells::map_into::<T, u8>(slots, first.min(all), &mut within[..count], move |v| holds(v).into());
    let (bytes, _) = within.as_chunks::<8>();
    bytes.iter().enumerate().fold(0, |mask, (i, bytes)| {
        // The product has byte `i` in bit 56 + `i`.
        let bits = u64::from_le_bytes(*bytes).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        mask | bits << (i * 8)
    })
}

/// The slots of 64 whose value lies within `low` and `low + span`.
///
/// # Safety
/// AVX-512 F and BW are there, and 64 values of `T`, of at most 8 bytes, stand at `at`.
// PERF: two instructions for 64 bytes.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn avx512<T: Number>(at: *const u8, low: T, span: T) -> u64 {
    use std::arch::x86_64::*;
    // SAFETY: 64 slots are readable from `at`; transmute_copy reads as many bytes as `T` has. Dead slots may be written
    // meanwhile, whose bits the caller masks.
    unsafe {
        let load = |i: usize| _mm512_loadu_si512(at.add(i * 64).cast());
        match size_of::<T>() {
            1 => {
                let low = _mm512_set1_epi8(std::mem::transmute_copy(&low));
                let span = _mm512_set1_epi8(std::mem::transmute_copy(&span));
                _mm512_cmple_epu8_mask(_mm512_sub_epi8(load(0), low), span)
            }
            2 => {
                let low = _mm512_set1_epi16(std::mem::transmute_copy(&low));
                let span = _mm512_set1_epi16(std::mem::transmute_copy(&span));
                (0..2).fold(0, |mask, i| {
                    let within = _mm512_cmple_epu16_mask(_mm512_sub_epi16(load(i), low), span);
                    mask | (u64::from(within) << (i * 32))
                })
            }
            4 => {
                let low = _mm512_set1_epi32(std::mem::transmute_copy(&low));
                let span = _mm512_set1_epi32(std::mem::transmute_copy(&span));
                (0..4).fold(0, |mask, i| {
                    let within = _mm512_cmple_epu32_mask(_mm512_sub_epi32(load(i), low), span);
                    mask | (u64::from(within) << (i * 16))
                })
            }
            _ => {
                let low = _mm512_set1_epi64(std::mem::transmute_copy(&low));
                let span = _mm512_set1_epi64(std::mem::transmute_copy(&span));
                (0..8).fold(0, |mask, i| {
                    let within = _mm512_cmple_epu64_mask(_mm512_sub_epi64(load(i), low), span);
                    mask | (u64::from(within) << (i * 8))
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use entasis_vector::Buffer;

    #[test]
    fn vector_and_portable_search_agree() {
        fn check<T: Number>(values: &[T], spans: &[T]) {
            let buffer = Buffer::from_slice(values);
            for (&low, &span) in values[..20].iter().flat_map(|low| spans.iter().map(move |span| (low, span))) {
                let mut masks: Vec<u64> = (0..values.len() as u64 / 64 + 2).map(|i| !(i * 0x1111)).collect();
                let twin = |word: usize| -> u64 {
                    let slots =
                        (word * 64..values.len().min(word * 64 + 64)).filter(|&i| values[i].is_within(low, span));
                    slots.map(|slot| 1 << (slot % 64)).sum()
                };
                let last = masks.len() - 1;
                // What lies behind the values, but within the buffer, is zeroes.
                masks.iter_mut().skip(values.len() / 64).for_each(|mask| *mask &= (1 << (values.len() % 64)) - 1);
                masks[last] = 0;
                let expected: Vec<u64> = masks.iter().enumerate().map(|(word, mask)| mask & twin(word)).collect();
                (0..last).for_each(|word| {
                    assert_eq!(masks[word] & portable(Slots::from(&buffer), word, low, span), expected[word])
                });
                narrow(&buffer, &mut masks, low, span);
                assert_eq!(masks, expected);
            }
        }
        let numbers = (0..200u64).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        check(&numbers.clone().map(|v| v as u8 % 13).collect::<Vec<_>>(), &[0, 3, 255]);
        check(&numbers.clone().map(|v| v as u16).collect::<Vec<_>>(), &[0, 30_000, 65_535]);
        check(&numbers.clone().map(|v| v as i8).collect::<Vec<_>>(), &[0, 3, -1]);
        check(&numbers.clone().map(|v| v as i32 % 13).collect::<Vec<_>>(), &[0, 4, -1, i32::MIN]);
        check(&numbers.clone().map(|v| v as i64).collect::<Vec<_>>(), &[0, i64::MAX, -1]);
        check(&numbers.clone().collect::<Vec<_>>(), &[0, 1 << 62, u64::MAX]);
        check(&numbers.map(i128::from).collect::<Vec<_>>(), &[0, 1 << 62]);
    }

    #[test]
    fn a_range_of_signed_numbers_holds_what_lies_in_it() {
        let values: Vec<i16> = (-300..300).collect();
        let buffer = Buffer::from_slice(&values);
        for (low, high) in [(-5, 5), (-300, -299), (0, 0), (i16::MIN, i16::MAX), (-1, 299)] {
            let mut masks = [u64::MAX; 10];
            narrow(&buffer, &mut masks, low, high.wrapping_sub(low));
            for (slot, value) in values.iter().enumerate() {
                assert_eq!(masks[slot / 64] >> (slot % 64) & 1 != 0, (low..=high).contains(value));
            }
        }
    }
}
