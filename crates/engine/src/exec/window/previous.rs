//! Equal rows: for each row that counts, the last one before it that counts and is equal in some columns.
//!
//! A value is new in a stretch of rows if its row before it is not in the stretch. So rows that have none in
//! their partition stand for all distinct values of every frame that begins where the partition does.
//! [`super::equal_rows`] finds them.

use super::section::Section;
use std::ops::Range;

/// See the module.
pub struct Previous {
    /// By position, the position of the equal row before it plus one; 0 if there is none or if the row does
    /// not count.
    pub(super) positions: Vec<u32>,
}

impl Previous {
    /// Removes from `counts` the rows at `positions` that have an equal one before them in their partition.
    pub fn only_first(&self, section: &Section, positions: Range<usize>, counts: &mut [bool]) {
        let starts = section.partitions();
        let mut partition = starts.partition_point(|&start| start as usize <= positions.start);
        for (position, counts) in positions.zip(counts) {
            while starts[partition] as usize <= position {
                partition += 1;
            }
            *counts &= self.positions[position] <= starts[partition - 1];
        }
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        self.positions.capacity() * size_of::<u32>()
    }
}
