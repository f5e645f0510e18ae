//! A partitioning of the blocks of a column: which of them end a partition (section 4.1 of *Optimal Column
//! Layout for Hybrid Workloads*).
//!
//! The paper writes it as bits p_0 … p_{N-1}, of which the last is set. Here it is the ascending list of the
//! blocks whose bit is set, which is shorter and gives the partitions directly.

use std::ops::RangeInclusive;

/// Blocks 0 … N-1, cut into partitions. There is at least one block.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partitioning {
    ends: Vec<usize>,
}

impl Partitioning {
    /// The partitioning whose partitions end with these blocks. `None` unless they ascend strictly and there
    /// is at least one.
    pub fn of_ends(ends: Vec<usize>) -> Option<Partitioning> {
        let ascends = ends.windows(2).all(|pair| pair[0] < pair[1]);
        (ascends && !ends.is_empty()).then_some(Partitioning { ends })
    }

    /// The partitioning with the paper's bits. The last bit counts as set. `None` if there is no block.
    pub fn of_bits(bits: &[bool]) -> Option<Partitioning> {
        let last = bits.len().checked_sub(1)?;
        Partitioning::of_ends((0..bits.len()).filter(|&block| bits[block] || block == last).collect())
    }

    /// Partitions of `width` blocks each, except the last, which may be narrower.
    ///
    /// # Panics
    /// If `blocks` or `width` is 0.
    pub fn equal(blocks: usize, width: usize) -> Partitioning {
        assert!(blocks > 0 && width > 0, "{blocks} blocks in partitions of {width}");
        let mut ends: Vec<usize> = (1..).map(|i| i * width - 1).take_while(|&end| end + 1 < blocks).collect();
        ends.push(blocks - 1);
        Partitioning { ends }
    }

    /// The last block of each partition.
    pub fn ends(&self) -> &[usize] {
        &self.ends
    }

    /// The number of blocks.
    pub fn blocks(&self) -> usize {
        self.ends[self.ends.len() - 1] + 1
    }

    /// The number of partitions.
    pub fn partitions(&self) -> usize {
        self.ends.len()
    }

    /// The blocks of each partition.
    pub fn iter(&self) -> impl Iterator<Item = RangeInclusive<usize>> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|end| end + 1));
        starts.zip(&self.ends).map(|(start, &end)| start..=end)
    }

    /// The paper's bits: whether a partition ends with each block.
    pub fn bits(&self) -> Vec<bool> {
        let mut bits = vec![false; self.blocks()];
        self.ends.iter().for_each(|&end| bits[end] = true);
        bits
    }

    /// True if a partition ends with this block.
    pub fn ends_at(&self, block: usize) -> bool {
        self.ends.binary_search(&block).is_ok()
    }

    /// Blocks of the widest partition.
    pub fn widest(&self) -> usize {
        self.iter().map(|blocks| blocks.end() + 1 - blocks.start()).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figures 6b and 6c: eight blocks, cut in two ways.
    #[test]
    fn the_paper_cuts_eight_blocks() {
        let uneven =
            Partitioning::of_bits(&[false, false, true, false, true, true, false, true]).expect("blocks");
        assert_eq!(uneven.iter().collect::<Vec<_>>(), [0..=2, 3..=4, 5..=5, 6..=7]);
        assert_eq!(uneven.widest(), 3);
        let even = Partitioning::equal(8, 2);
        assert_eq!(even.bits(), [false, true, false, true, false, true, false, true]);
        assert_eq!(even.partitions(), 4);
        assert_eq!(Partitioning::of_bits(&even.bits()), Some(even));
    }

    #[test]
    fn some_lists_are_none() {
        assert_eq!(Partitioning::of_ends(vec![]), None);
        assert_eq!(Partitioning::of_ends(vec![2, 2]), None);
        assert_eq!(Partitioning::of_ends(vec![3, 1]), None);
        assert_eq!(Partitioning::of_bits(&[]), None);
        assert_eq!(Partitioning::of_bits(&[false]), Some(Partitioning::equal(1, 5)));
        assert_eq!(Partitioning::equal(7, 3).ends(), [2, 5, 6]);
        assert_eq!(Partitioning::equal(6, 3).ends(), [2, 5]);
        assert!(Partitioning::equal(6, 3).ends_at(2) && !Partitioning::equal(6, 3).ends_at(3));
    }
}
