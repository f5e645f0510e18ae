//! Ranges of values, and the blocks that may hold some of one.

use crate::tree::RowGroup;
use crate::value::Zone;
use entasis_vector::PhysicalType;

/// Values from `low` to `high` of a column of integers of up to 64 bits; or floats whose ordinals these are
/// ([`entasis_vector::value::float_ordinal`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueRange {
    /// The index of the column in the table.
    pub column: usize,
    /// The physical type that holds its values.
    pub physical: PhysicalType,
    /// The least value.
    pub low: i128,
    /// The greatest.
    pub high: i128,
}

impl ValueRange {
    /// False if no value of a zone lies in it.
    pub fn meets(&self, zone: &Zone) -> bool {
        match (zone.min.ordinal(), zone.max.ordinal()) {
            (Some(min), Some(max)) => min <= self.high && max >= self.low,
            _ => !zone.min.is_null(),
        }
    }
}

impl RowGroup {
    /// False if no value of a block lies in a range of its column. To be called for block after block.
    pub fn may_be_within(&self, block: usize, range: &ValueRange) -> bool {
        match self.digest_of(range.column, block).and_then(|digest| digest.bounds()) {
            Some((low, high)) => i128::from(low) <= range.high && range.low <= i128::from(high),
            None => {
                self.prefetch_zones(block, &[range.column]);
                range.meets(self.zone(range.column, block))
            }
        }
    }

    /// True if ranges of a column are mostly tested without looking at blocks.
    pub fn is_digested(&self, column: usize) -> bool {
        self.digest_of(column, 0).is_some()
    }
}
