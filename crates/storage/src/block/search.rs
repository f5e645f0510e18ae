//! Slots that hold a code: 64 slots at a time, as a mask. What a point query reads a partition with.
//!
//! This is a leaf module with `unsafe`: AVX-512 comparisons straight from the slots. The slow twin is [`portable`].
#![allow(unsafe_code)]

use super::cells;
use entasis_vector::{Buffer, Native};

/// Narrows `masks`, a bit a slot, to the slots whose value is `value`. Values are compared by their bits; slots beyond the
/// buffer do not match.
#[inline]
pub(crate) fn narrow<T: Native>(buffer: &Buffer, masks: &mut [u64], value: T) {
    #[cfg(target_arch = "x86_64")]
    if !cfg!(miri) && size_of::<T>() <= 8 && is_x86_feature_detected!("avx512bw") {
        // SAFETY: the features are there.
        return unsafe { narrow_avx512(buffer, masks, value) };
    }
    masks.iter_mut().enumerate().for_each(|(word, mask)| *mask &= portable(buffer, word, value));
}

/// # Safety
/// AVX-512 F and BW are there, and `T` has at most 8 bytes.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn narrow_avx512<T: Native>(buffer: &Buffer, masks: &mut [u64], value: T) {
    for (word, mask) in masks.iter_mut().enumerate().filter(|(_, mask)| **mask != 0) {
        *mask &= if (word + 1) * 64 * size_of::<T>() <= buffer.capacity() {
            // SAFETY: the 64 slots lie within the buffer; the rest is the caller's promise.
            unsafe { avx512(buffer.as_ptr().add(word * 64 * size_of::<T>()), value) }
        } else {
            portable(buffer, word, value)
        };
    }
}

/// The slow twin.
fn portable<T: Native>(buffer: &Buffer, word: usize, value: T) -> u64 {
    let slots = buffer.capacity() / size_of::<T>();
    let (first, mut mask) = (word * 64, 0);
    for slot in first..slots.min(first + 64) {
        mask |= u64::from(cells::load::<T>(buffer, slot) == value) << (slot - first);
    }
    mask
}

/// The slots of 64 that hold `value`.
///
/// # Safety
/// AVX-512 F and BW are there, and 64 values of `T`, of at most 8 bytes, stand at `at`.
// PERF: one instruction compares 64 bytes; the portable loop takes 40 ns for 64 slots, this 1 to 4.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn avx512<T: Native>(at: *const u8, value: T) -> u64 {
    use std::arch::x86_64::*;
    // SAFETY: 64 slots are readable from `at`; transmute_copy reads as many bytes as `T` has. Dead slots may be written
    // meanwhile, whose bits the caller masks.
    unsafe {
        match size_of::<T>() {
            1 => _mm512_cmpeq_epi8_mask(
                _mm512_loadu_si512(at.cast()),
                _mm512_set1_epi8(std::mem::transmute_copy(&value)),
            ),
            2 => {
                let value = _mm512_set1_epi16(std::mem::transmute_copy(&value));
                (0..2).fold(0, |mask, i| {
                    let equal = _mm512_cmpeq_epi16_mask(_mm512_loadu_si512(at.add(i * 64).cast()), value);
                    mask | (u64::from(equal) << (i * 32))
                })
            }
            4 => {
                let value = _mm512_set1_epi32(std::mem::transmute_copy(&value));
                (0..4).fold(0, |mask, i| {
                    let equal = _mm512_cmpeq_epi32_mask(_mm512_loadu_si512(at.add(i * 64).cast()), value);
                    mask | (u64::from(equal) << (i * 16))
                })
            }
            _ => {
                let value = _mm512_set1_epi64(std::mem::transmute_copy(&value));
                (0..8).fold(0, |mask, i| {
                    let equal = _mm512_cmpeq_epi64_mask(_mm512_loadu_si512(at.add(i * 64).cast()), value);
                    mask | (u64::from(equal) << (i * 8))
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vector_and_portable_search_agree() {
        fn check<T: Native>(values: &[T]) {
            let buffer = Buffer::from_slice(values);
            for &value in &values[..20] {
                let mut masks: Vec<u64> = (0..values.len() as u64 / 64 + 2).map(|i| !(i * 0x1111)).collect();
                let expected: Vec<u64> =
                    masks.iter().enumerate().map(|(word, mask)| mask & portable(&buffer, word, value)).collect();
                narrow(&buffer, &mut masks, value);
                assert_eq!(masks, expected);
            }
        }
        let numbers = (0..200u64).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) % 13);
        check(&numbers.clone().map(|v| v as u8).collect::<Vec<_>>());
        check(&numbers.clone().map(|v| v as u16).collect::<Vec<_>>());
        check(&numbers.clone().map(|v| v as i32).collect::<Vec<_>>());
        check(&numbers.clone().collect::<Vec<_>>());
        check(&numbers.map(i128::from).collect::<Vec<_>>());
    }
}
