//! How many words of an ascending list are below a word: a 9-ary search with eight separators a comparison.
//!
//! Each step compares eight words that divide the rest of the list into nine parts; the last step counts in
//! one or two vectors. A list of 128 fences takes two steps, one of 10,000 takes four.
//!
//! This is a leaf module with `unsafe`: AVX-512 gathers and comparisons. The slow twin is `partition_point`.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
use entasis_vector::simd::AVX512;

/// Words around a guess that are compared without a search.
pub(crate) const NEAR: usize = 16;

/// The number of words that are below `word`. The words ascend.
#[inline]
pub(crate) fn count_below(words: &[u64], word: u64) -> usize {
    match word.checked_sub(1) {
        None => 0,
        Some(word) => count_not_above(words, word),
    }
}

/// The number of words that are not above `word`. The words ascend.
#[inline]
pub(crate) fn count_not_above(words: &[u64], word: u64) -> usize {
    #[cfg(target_arch = "x86_64")]
    if AVX512 && is_x86_feature_detected!("avx512f") {
        // SAFETY: the feature is there.
        return unsafe { avx512(words, word) };
    }
    words.partition_point(|&other| other <= word)
}

/// The same as [`count_not_above`], in one comparison with the words around `guess` if the result is near it.
#[inline]
pub(crate) fn count_not_above_near(words: &[u64], word: u64, guess: usize) -> usize {
    let from = guess.saturating_sub(NEAR / 2).min(words.len().saturating_sub(NEAR));
    let to = (from + NEAR).min(words.len());
    let is_behind_start = from == 0 || words[from] <= word;
    let is_before_end = to == words.len() || words[to - 1] > word;
    if is_behind_start && is_before_end {
        from + count_not_above(&words[from..to], word)
    } else {
        count_not_above(words, word)
    }
}

// PERF: binary search over 128 words takes 7 dependent loads and mispredicts half of its branches.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn avx512(words: &[u64], word: u64) -> usize {
    use std::arch::x86_64::*;
    let (mut first, mut left) = (0, words.len());
    let key = _mm512_set1_epi64(word as i64);
    while left > 16 {
        let step = left / 9;
        let at = strides(step as i64);
        // SAFETY: separators stand at first + step * i + step - 1 for i < 8, which is below first + left.
        let separators =
            unsafe { _mm512_i64gather_epi64::<8>(at, words.as_ptr().add(first + step - 1).cast()) };
        let passed = _mm512_cmple_epu64_mask(separators, key).count_ones() as usize;
        first += passed * step;
        left = if passed == 8 { left - 8 * step } else { step };
    }
    let mut count = first;
    while left > 0 {
        let lanes = left.min(8);
        let mask = (0xFFu32 >> (8 - lanes)) as u8;
        // SAFETY: only the lanes of the mask are loaded, and they lie within the list.
        let loaded = unsafe { _mm512_maskz_loadu_epi64(mask, words.as_ptr().add(first).cast()) };
        count += _mm512_mask_cmple_epu64_mask(mask, loaded, key).count_ones() as usize;
        first += lanes;
        left -= lanes;
    }
    count
}

/// `step` times 0 to 7.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn strides(step: i64) -> std::arch::x86_64::__m512i {
    use std::arch::x86_64::*;
    _mm512_setr_epi64(0, step, 2 * step, 3 * step, 4 * step, 5 * step, 6 * step, 7 * step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_agrees_with_its_slow_twin() {
        for len in (0..200).chain([1000, 10_000]) {
            let words: Vec<u64> = (0..len).map(|i| i / 3 * 7).collect();
            let beyond = words.last().map_or(3, |last| last + 3);
            for word in (0..beyond).step_by(if len > 200 { 11 } else { 1 }).chain([u64::MAX]) {
                assert_eq!(
                    count_not_above(&words, word),
                    words.partition_point(|&w| w <= word),
                    "{len} {word}"
                );
                assert_eq!(count_below(&words, word), words.partition_point(|&w| w < word), "{len} {word}");
                let right = words.partition_point(|&w| w <= word);
                for guess in
                    [0, right.saturating_sub(8), right, right + 1, right + 8, right + 9, len as usize + 20]
                {
                    assert_eq!(count_not_above_near(&words, word, guess), right, "{len} {word} {guess}");
                }
            }
        }
    }
}
