//! Numbers that look random and are the same every time, for tests: xorshift.

/// See the module. Not 0.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// The next number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// The next number below a bound.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// The same as a number with a sign.
    pub(crate) fn number(&mut self, bound: u64) -> i64 {
        self.below(bound) as i64
    }

    /// Puts items into another order.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        (1..items.len()).rev().for_each(|i| items.swap(i, self.below(i as u64 + 1) as usize));
    }
}
