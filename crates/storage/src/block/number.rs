//! Numbers: integers as slots hold them, to be compared with a range.

use entasis_vector::Native;

/// An integer as slots hold it.
pub(crate) trait Number: Native {
    /// True if it lies within `low` and `low + span`.
    fn is_within(self, low: Self, span: Self) -> bool;
    /// Its lowest 64 bits.
    fn bits(self) -> u64;
}

macro_rules! number {
    ($($t:ty, $unsigned:ty);*) => { $(
        impl Number for $t {
            #[inline(always)]
            fn is_within(self, low: $t, span: $t) -> bool {
                self.wrapping_sub(low) as $unsigned <= span as $unsigned
            }
            #[inline(always)]
            fn bits(self) -> u64 {
                self as u64
            }
        }
    )* };
}
number!(u8, u8; u16, u16; u32, u32; u64, u64; i8, u8; i16, u16; i32, u32; i64, u64; i128, u128);
