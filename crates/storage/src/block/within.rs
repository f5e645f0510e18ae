//! Compares the numbers of a vector with a range: a bit for each number.
//!
//! A range is one subtraction and one comparison, `number - low <= span`, in arithmetic that wraps around;
//! signs do not matter. AVX-512 compares unsigned numbers to a mask. AVX2 has neither: one number is at most
//! another if it is the lesser of the two, and each lane's highest bit goes to the mask. Reading the numbers,
//! from slots or by unpacking, is not done here. The slow twin is [`super::number::Number::is_within`].

#[cfg(target_arch = "x86_64")]
use entasis_vector::simd::{AVX2, AVX512};

/// Vectors that this machine has. Only this module makes a value of it, so that a value proves that the
/// instructions are there.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy)]
pub(crate) enum Vectors {
    /// 64 bytes: AVX-512 F and BW.
    Avx512(Proof),
    /// 32 bytes.
    Avx2(Proof),
}

/// Vectors that this machine has: none that are supported.
#[cfg(not(target_arch = "x86_64"))]
#[derive(Debug, Clone, Copy)]
pub(crate) enum Vectors {}

/// See [`Vectors`].
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Proof(());

impl Vectors {
    /// The widest, if there are any.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    pub(crate) fn widest() -> Option<Vectors> {
        let has_all = AVX512 && is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw");
        if has_all { Some(Vectors::Avx512(Proof(()))) } else { Vectors::avx2() }
    }

    /// The widest: none.
    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) fn widest() -> Option<Vectors> {
        None
    }

    /// Those of 32 bytes, if there are any.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn avx2() -> Option<Vectors> {
        (AVX2 && is_x86_feature_detected!("avx2")).then_some(Vectors::Avx2(Proof(())))
    }
}

/// Vectors of 64 bytes.
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512 {
    use crate::block::number::Number;
    use std::arch::x86_64::*;

    /// A number in every lane.
    #[target_feature(enable = "avx512f,avx512bw")]
    #[inline]
    pub(crate) fn every<T: Number>(number: T) -> __m512i {
        match size_of::<T>() {
            1 => _mm512_set1_epi8(number.bits() as i8),
            2 => _mm512_set1_epi16(number.bits() as i16),
            4 => _mm512_set1_epi32(number.bits() as i32),
            _ => _mm512_set1_epi64(number.bits() as i64),
        }
    }

    /// The numbers, of at most 8 bytes, that lie within `low` and `low + span`.
    #[target_feature(enable = "avx512f,avx512bw")]
    #[inline]
    pub(crate) fn within<T: Number>(numbers: __m512i, low: __m512i, span: __m512i) -> u64 {
        match size_of::<T>() {
            1 => _mm512_cmple_epu8_mask(_mm512_sub_epi8(numbers, low), span),
            2 => _mm512_cmple_epu16_mask(_mm512_sub_epi16(numbers, low), span).into(),
            4 => _mm512_cmple_epu32_mask(_mm512_sub_epi32(numbers, low), span).into(),
            _ => _mm512_cmple_epu64_mask(_mm512_sub_epi64(numbers, low), span).into(),
        }
    }
}

/// Vectors of 32 bytes.
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2 {
    use crate::block::number::Number;
    use std::arch::x86_64::*;

    /// A number in every lane.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(crate) fn every<T: Number>(number: T) -> __m256i {
        match size_of::<T>() {
            1 => _mm256_set1_epi8(number.bits() as i8),
            2 => _mm256_set1_epi16(number.bits() as i16),
            4 => _mm256_set1_epi32(number.bits() as i32),
            _ => _mm256_set1_epi64x(number.bits() as i64),
        }
    }

    /// The numbers, of at most 8 bytes, that lie within `low` and `low + span`.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(crate) fn within<T: Number>(numbers: __m256i, low: __m256i, span: __m256i) -> u64 {
        let bits = match size_of::<T>() {
            1 => {
                let above = _mm256_sub_epi8(numbers, low);
                _mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_min_epu8(above, span), above))
            }
            2 => {
                let above = _mm256_sub_epi16(numbers, low);
                let is_in = _mm256_cmpeq_epi16(_mm256_min_epu16(above, span), above);
                // A byte per number: the lower half of each 16 bytes has the result, the upper half repeats
                // it.
                let bits = _mm256_movemask_epi8(_mm256_packs_epi16(is_in, is_in));
                (bits & 0xFF) | (bits >> 8 & 0xFF00)
            }
            4 => {
                let above = _mm256_sub_epi32(numbers, low);
                let is_in = _mm256_cmpeq_epi32(_mm256_min_epu32(above, span), above);
                _mm256_movemask_ps(_mm256_castsi256_ps(is_in))
            }
            _ => {
                // There is no minimum of 64 bits, and the comparison is of signed numbers.
                let sign = _mm256_set1_epi64x(i64::MIN);
                let above = _mm256_xor_si256(_mm256_sub_epi64(numbers, low), sign);
                let is_out = _mm256_cmpgt_epi64(above, _mm256_xor_si256(span, sign));
                !_mm256_movemask_pd(_mm256_castsi256_pd(is_out)) & 0xF
            }
        };
        u64::from(bits as u32)
    }
}
