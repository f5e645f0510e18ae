//! The widest vectors of this machine, for loops that the compiler turns into vector code.
//!
//! The programs are built for any x86-64, so that a plain loop runs on vectors of 16 bytes. [`widest`] runs the same loop as it
//! is compiled for AVX-512 or AVX2, where the machine has these. What is given must be a loop over many values that
//! the compiler can see to its end: small functions, `#[inline]`.
//!
//! This is a leaf module with `unsafe`; a kernel without [`widest`] is its slow twin.
#![allow(unsafe_code)]

/// What `kernel` returns.
// PERF: the test is a load and a branch; a sum of 2048 INTEGERs takes a third of the time.
#[inline(always)]
pub fn widest<R>(kernel: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    if !cfg!(miri) {
        if !is_x86_feature_detected!("popcnt") {
            return kernel();
        }
        if is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512dq")
        {
            // SAFETY: the machine has what the function is compiled for.
            return unsafe { avx512(kernel) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: as above.
            return unsafe { avx2(kernel) };
        }
    }
    kernel()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,popcnt")]
fn avx512<R>(kernel: impl FnOnce() -> R) -> R {
    kernel()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,popcnt")]
fn avx2<R>(kernel: impl FnOnce() -> R) -> R {
    kernel()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_comes_out() {
        let values: Vec<i32> = (0..3000).map(|i: i32| i.wrapping_mul(2_654_435_761u32 as i32)).collect();
        for count in [0, 1, 7, 64, 2999] {
            let sum = |values: &[i32]| values.iter().fold(0i64, |sum, &v| sum + i64::from(v));
            let expected = sum(&values[..count]);
            assert_eq!(widest(|| sum(&values[..count])), expected);
            // What a machine with less runs.
            #[cfg(target_arch = "x86_64")]
            if !cfg!(miri) && is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt") {
                // SAFETY: the machine has what the function is compiled for.
                assert_eq!(unsafe { avx2(|| sum(&values[..count])) }, expected);
            }
        }
    }
}
