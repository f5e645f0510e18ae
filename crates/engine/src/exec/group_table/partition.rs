//! Radix partitions of groups, by the low bits of their tags.

/// The radix partition of a group, of `1 << bits`.
pub fn partition_of(hash: u32, bits: u32) -> usize {
    (hash & ((1 << bits) - 1)) as usize
}

/// The groups whose tags have certain low bits.
#[derive(Debug, Clone, Copy)]
pub struct Partition {
    bits: u32,
    value: u32,
}

impl Partition {
    /// All groups.
    pub const ALL: Partition = Partition { bits: 0, value: 0 };

    /// True if it contains the group of this tag.
    pub fn has(self, tag: u32) -> bool {
        partition_of(tag, self.bits) == self.value as usize
    }
    /// The one of its `1 << bits` parts that contains the group of this tag.
    pub fn part_of(self, tag: u32, bits: u32) -> usize {
        partition_of(tag >> self.bits, bits)
    }
    /// One of its `1 << bits` parts.
    pub fn part(self, number: usize, bits: u32) -> Partition {
        Partition { bits: self.bits + bits, value: self.value | (number as u32) << self.bits }
    }
    /// Low bits of the tag that all its groups share.
    pub fn bits(self) -> u32 {
        self.bits
    }
    /// The partition of `1 << bits` that it is, or is a part of.
    pub fn within(self, bits: u32) -> usize {
        partition_of(self.value, bits)
    }
}
