//! Finds slots that hold a number, or a number in a range: 64 slots at a time, as a mask. Point queries use
//! it to search partitions, and scans to test filters.
//!
//! This is a leaf module with `unsafe`: vectors are loaded straight from the slots, and compared as in
//! [`within`]. [`portable`] does without vectors; the slow twin of both, in the tests, looks at one value
//! after the other.
#![allow(unsafe_code)]

use super::cells::{self, Slots};
use super::number::Number;
use super::within::{self, Vectors};
use entasis_vector::Native;

/// Narrows `masks`, a bit a slot, to the slots whose value lies within `low` and `low + span`. Slots beyond
/// the buffer do not match. All bits that are left, or-ed.
#[inline]
pub(crate) fn narrow<'a, T: Number>(slots: impl Into<Slots<'a>>, masks: &mut [u64], low: T, span: T) -> u64 {
    narrow_by(Vectors::widest(), slots, masks, low, span)
}

/// The same by means of such vectors.
#[inline]
pub(crate) fn narrow_by<'a, T: Number>(
    vectors: Option<Vectors>,
    slots: impl Into<Slots<'a>>,
    masks: &mut [u64],
    low: T,
    span: T,
) -> u64 {
    let slots = slots.into();
    match vectors.filter(|_| size_of::<T>() <= 8) {
        // SAFETY: the features are there, and numbers have at most 8 bytes.
        #[cfg(target_arch = "x86_64")]
        Some(Vectors::Avx512(_)) => unsafe { avx512(slots, masks, low, span) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Some(Vectors::Avx2(_)) => unsafe { avx2(slots, masks, low, span) },
        None => {
            let words = masks.iter_mut().enumerate().filter(|(_, mask)| **mask != 0);
            words.fold(0, |any, (word, mask)| {
                *mask &= portable(slots, word, low, span);
                any | *mask
            })
        }
    }
}

#[cfg(target_arch = "x86_64")]
macro_rules! kernel {
    ($vectors:ident, $features:literal, $vector:ident, $load:ident) => {
        // PERF: with AVX-512 this is two instructions for 64 bytes.
        #[target_feature(enable = $features)]
        fn $vectors<T: Number>(slots: Slots<'_>, masks: &mut [u64], low: T, span: T) -> u64 {
            use std::arch::x86_64::{$load, $vector};
            use within::$vectors::{every, within};
            let (every_low, every_span) = (every(low), every(span));
            let lanes = size_of::<$vector>() / size_of::<T>();
            let mut any = 0;
            for (word, mask) in masks.iter_mut().enumerate().filter(|(_, mask)| **mask != 0) {
                *mask &= if (word + 1) * 64 * size_of::<T>() <= slots.bytes() {
                    (0..64).step_by(lanes).fold(0, |found, slot| {
                        let at = (word * 64 + slot) * size_of::<T>();
                        // SAFETY: the 64 slots lie within the buffer. Dead ones may be written meanwhile,
                        // whose bits the caller masks: a race, as in `cells::map_into`.
                        let values = unsafe { $load(slots.as_ptr().add(at).cast()) };
                        found | within::<T>(values, every_low, every_span) << slot
                    })
                } else {
                    portable(slots, word, low, span)
                };
                any |= *mask;
            }
            any
        }
    };
}
#[cfg(target_arch = "x86_64")]
kernel!(avx512, "avx512f,avx512bw", __m512i, _mm512_loadu_si512);
#[cfg(target_arch = "x86_64")]
kernel!(avx2, "avx2", __m256i, _mm256_loadu_si256);

/// The same on any machine.
fn portable<T: Number>(slots: Slots<'_>, word: usize, low: T, span: T) -> u64 {
    answers(slots, word, move |v: T| v.is_within(low, span))
}

/// Narrows `masks` to the slots whose value `holds` is true of, by arithmetic ([`cells::map_into`]). Slots
/// beyond the buffer do not match.
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

/// The same for conditions that use the value as an index, which does not vectorize.
pub(crate) fn narrow_by_lookup<'a, T: Native>(
    slots: impl Into<Slots<'a>>,
    masks: &mut [u64],
    holds: impl Fn(T) -> bool + Copy,
) {
    let slots = slots.into();
    for (word, mask) in masks.iter_mut().enumerate().filter(|(_, mask)| **mask != 0) {
        let (from, count, mut within) = slots_of_word::<T>(slots, word);
        cells::map_each::<T, u8>(slots, from, &mut within[..count], move |v| holds(v).into());
        *mask &= mask_of(&within);
    }
}

/// Whether `holds` is true of each value of a word's slots: a byte per slot, then a bit per byte.
// PERF: both steps are vector loops on AVX2, if `holds` is arithmetic; a bit at a time takes 40 ns for 64
// slots.
#[inline(always)]
fn answers<T: Native>(slots: Slots<'_>, word: usize, holds: impl Fn(T) -> bool) -> u64 {
    let (from, count, mut within) = slots_of_word::<T>(slots, word);
    cells::map_into::<T, u8>(slots, from, &mut within[..count], move |v| holds(v).into());
    mask_of(&within)
}

/// The first slot of a word and how many of them there are in the buffer; and a byte for each.
#[inline(always)]
fn slots_of_word<T>(slots: Slots<'_>, word: usize) -> (usize, usize, [u8; 64]) {
    let all = slots.bytes() / size_of::<T>();
    (all.min(word * 64), all.saturating_sub(word * 64).min(64), [0; 64])
}

/// A bit for each byte, which is 0 or 1.
#[inline(always)]
fn mask_of(within: &[u8; 64]) -> u64 {
    let (bytes, _) = within.as_chunks::<8>();
    bytes.iter().enumerate().fold(0, |mask, (i, bytes)| {
        // The product has byte `i` in bit 56 + `i`.
        let bits = u64::from_le_bytes(*bytes).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        mask | bits << (i * 8)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use entasis_vector::Buffer;

    #[test]
    fn vector_and_portable_search_agree() {
        fn check<T: Number>(values: &[T], spans: &[T]) {
            let buffer = Buffer::from_slice(values);
            for (&low, &span) in values[..20].iter().flat_map(|low| spans.iter().map(move |span| (low, span)))
            {
                let mut masks: Vec<u64> = (0..values.len() as u64 / 64 + 2).map(|i| !(i * 0x1111)).collect();
                let twin = |word: usize| -> u64 {
                    let slots = (word * 64..values.len().min(word * 64 + 64))
                        .filter(|&i| values[i].is_within(low, span));
                    slots.map(|slot| 1 << (slot % 64)).sum()
                };
                let last = masks.len() - 1;
                // The bytes after the values, within the buffer, are zeros.
                masks
                    .iter_mut()
                    .skip(values.len() / 64)
                    .for_each(|mask| *mask &= (1 << (values.len() % 64)) - 1);
                masks[last] = 0;
                let expected: Vec<u64> =
                    masks.iter().enumerate().map(|(word, mask)| mask & twin(word)).collect();
                let narrowed = |vectors: Option<Vectors>| {
                    let mut masks = masks.clone();
                    narrow_by(vectors, &buffer, &mut masks, low, span);
                    masks
                };
                assert_eq!(narrowed(None), expected);
                assert_eq!(narrowed(Vectors::widest()), expected);
                #[cfg(target_arch = "x86_64")]
                assert_eq!(narrowed(Vectors::avx2()), expected);
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
