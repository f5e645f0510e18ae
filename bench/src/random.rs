//! Reproducible pseudorandom numbers: a xorshift generator, good enough to choose keys.

/// The generator.
pub struct Random(u64);

impl Random {
    /// A generator with this state, which must not be 0.
    pub fn new(state: u64) -> Random {
        assert_ne!(state, 0, "zeros would follow");
        Random(state)
    }

    /// The next number, from 0 up to but not including `bound`.
    pub fn below(&mut self, bound: u64) -> i64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound) as i64
    }
}
