//! Times of day with an offset from UTC, the values of TIMETZ, in one integer.
//!
//! Two values are compared by their instants on a day that is left open, and those of one instant by their
//! offsets, the eastern one first, as in PostgreSQL and DuckDB: `00:30+02` is less than `00:00+00`, as it is
//! half past ten on the day before. The integer has the microseconds since midnight in UTC, which are
//! negative for that day before, above 24 bits for the offset, counted from the easternmost one to the west.
//! So the order of the integers is the order of the values, and equal integers are equal values.

/// The greatest offset in seconds, to the east and to the west: 15:59:59.
pub const MOST_OFFSET: i64 = 16 * 3600 - 1;

/// The bits of the offset.
const OFFSET_BITS: u32 = 24;

const MICROS_PER_SECOND: i64 = 1_000_000;

/// The value of a time of day, in microseconds since midnight where the clock is `offset` seconds ahead of
/// UTC, of at most [`MOST_OFFSET`] either way.
pub const fn pack(local: i64, offset: i64) -> i64 {
    ((local - offset * MICROS_PER_SECOND) << OFFSET_BITS) + (MOST_OFFSET - offset)
}

/// The time of day where its clock is, in microseconds since midnight, and the seconds by which that clock is
/// ahead of UTC.
pub const fn unpack(packed: i64) -> (i64, i64) {
    let offset = MOST_OFFSET - (packed & ((1 << OFFSET_BITS) - 1));
    ((packed >> OFFSET_BITS) + offset * MICROS_PER_SECOND, offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::MICROS_PER_DAY;

    #[test]
    fn values_come_back_in_the_order_of_their_instants() {
        let mut all = Vec::new();
        for local in [0, 1, MICROS_PER_DAY / 2, MICROS_PER_DAY - 1, MICROS_PER_DAY] {
            for offset in [-MOST_OFFSET, -3600, -1, 0, 1, 7200, MOST_OFFSET] {
                let packed = pack(local, offset);
                assert_eq!(unpack(packed), (local, offset));
                all.push((local - offset * MICROS_PER_SECOND, -offset, packed));
            }
        }
        all.sort_unstable();
        assert!(all.is_sorted_by(|a, b| a.2 < b.2));
    }
}
