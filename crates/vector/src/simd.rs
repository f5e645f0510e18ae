//! The widest vectors of this machine, for loops that the compiler turns into vector code.
//!
//! The programs are built for any x86-64, so that a plain loop runs on vectors of 16 bytes. [`widest`] runs
//! the same loop compiled for AVX-512 or AVX2, where the machine has these. Its argument must be a loop over
//! many values that the compiler can inline completely: small functions, `#[inline]`. A closure of more than
//! a few lines is not inlined, and so is compiled for 16 bytes after all; such a loop must be a [`Kernel`],
//! which forces inlining ([`widest_of`]).
//!
//! This is a leaf module with `unsafe`; a kernel without [`widest`] is its slow twin.
#![allow(unsafe_code)]

/// Whether vectors of 64 bytes may be used where the machine has them: not by an interpreter, nor in a build
/// that imitates other machines (`--cfg entasis_vectors="avx2"` or `"none"`).
pub const AVX512: bool = !cfg!(any(miri, entasis_vectors = "avx2", entasis_vectors = "none"));
/// The same for vectors of 32 bytes.
pub const AVX2: bool = !cfg!(any(miri, entasis_vectors = "none"));

/// Whether loops are compiled once for each width. Debug builds are not optimized enough to have vector code,
/// so it would be the same code three times, and most of their build time.
const EACH_WIDTH: bool = AVX2 && !cfg!(debug_assertions);

/// A loop over many values.
pub trait Kernel {
    /// What it returns.
    type Output;
    /// Runs it. To be marked `#[inline(always)]`.
    fn run(self) -> Self::Output;
}

/// What `kernel` returns.
// PERF: the test is a load and a branch; a sum of 2048 INTEGERs takes a third of the time.
#[inline(always)]
pub fn widest<R>(kernel: impl FnOnce() -> R) -> R {
    widest_of(Closure(kernel))
}

/// What `kernel` returns.
#[inline(always)]
pub fn widest_of<K: Kernel>(kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    if EACH_WIDTH {
        if !is_x86_feature_detected!("popcnt") {
            return kernel.run();
        }
        if AVX512
            && is_x86_feature_detected!("avx512bw")
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
    kernel.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,popcnt")]
fn avx512<K: Kernel>(kernel: K) -> K::Output {
    kernel.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,popcnt")]
fn avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run()
}

/// A short kernel.
struct Closure<F>(F);

impl<R, F: FnOnce() -> R> Kernel for Closure<F> {
    type Output = R;

    #[inline(always)]
    fn run(self) -> R {
        (self.0)()
    }
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
            // The path of a machine with fewer features.
            #[cfg(target_arch = "x86_64")]
            if AVX2 && is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt") {
                // SAFETY: the machine has what the function is compiled for.
                assert_eq!(unsafe { avx2(Closure(|| sum(&values[..count]))) }, expected);
            }
        }
    }
}
