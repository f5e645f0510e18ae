//! Loops over columns. They read all that they are given, as the paper's do, and have no branch within.
//!
//! Each is a [`Kernel`], so that it is vector code wherever it is called: a closure was inlined in some
//! callers and not in others, where it took four times as long.

use entasis_vector::simd::{Kernel, widest_of};

struct Total<'a>(&'a [i32]);

impl Kernel for Total<'_> {
    type Output = i64;
    #[inline(always)]
    fn run(self) -> i64 {
        self.0.iter().map(|&value| i64::from(value)).sum()
    }
}

/// The sum of all values.
pub fn total(values: &[i32]) -> i64 {
    widest_of(Total(values))
}

struct Find<'a>(&'a [i64], i64);

impl Kernel for Find<'_> {
    type Output = i64;
    #[inline(always)]
    fn run(self) -> i64 {
        let Find(keys, key) = self;
        let mut at = -1i64;
        for (number, &other) in keys.iter().enumerate() {
            at = if other == key { number as i64 } else { at };
        }
        at
    }
}

/// The last position of a key. All keys are compared.
pub fn find(keys: &[i64], key: i64) -> Option<usize> {
    usize::try_from(widest_of(Find(keys, key))).ok()
}

struct Count<'a>(&'a [i64], i64, i64);

impl Kernel for Count<'_> {
    type Output = u64;
    #[inline(always)]
    fn run(self) -> u64 {
        let Count(keys, low, high) = self;
        keys.iter().map(|&key| u64::from((low <= key) & (key <= high))).sum()
    }
}

/// The number of keys within bounds.
pub fn count(keys: &[i64], low: i64, high: i64) -> u64 {
    widest_of(Count(keys, low, high))
}

struct Sum<'a>(&'a [i64], &'a [i32], i64, i64);

impl Kernel for Sum<'_> {
    type Output = i64;
    #[inline(always)]
    fn run(self) -> i64 {
        let Sum(keys, values, low, high) = self;
        let pairs = keys.iter().zip(values);
        pairs.map(|(&k, &v)| if (low <= k) & (k <= high) { i64::from(v) } else { 0 }).sum()
    }
}

/// The sum of the values that belong to keys within bounds.
pub fn sum(keys: &[i64], values: &[i32], low: i64, high: i64) -> i64 {
    widest_of(Sum(keys, values, low, high))
}
