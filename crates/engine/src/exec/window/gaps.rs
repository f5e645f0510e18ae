//! Rows of a [stored partition](super::stored_partition) that a section leaves out.
//!
//! A section of a stored partition consists of some of its blocks, and of *gaps*: each stands for the missing
//! blocks between two loaded ones and takes one position, that of the first row of the gap. So no position
//! stands for a row deeper in a gap; a search for one records the *missed* block, continues with an arbitrary
//! position, and is repeated when the block is loaded ([`super::part`]).
//!
//! Positions count a gap once, *rows* count all that it stands for. Without gaps they are the same.

use crate::sync::{Mutex, lock};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// The index of a stored partition: where its rows are, by block, in order.
pub struct BlockIndex {
    /// The first row of each block, and the total number of rows.
    starts: Vec<u64>,
    /// How many groups of peers begin before each block, and their total number. All 0 if they are not
    /// needed.
    groups: Vec<u64>,
    /// Whether a group of peers begins with the first row of each block.
    begins: Vec<bool>,
}

impl Default for BlockIndex {
    fn default() -> BlockIndex {
        BlockIndex { starts: vec![0], groups: vec![0], begins: Vec::new() }
    }
}

impl BlockIndex {
    /// Adds a block of `rows` rows in which `groups` groups of peers begin; if `begins`, one of these begins
    /// with the block's first row.
    pub fn push(&mut self, rows: usize, groups: usize, begins: bool) {
        self.starts.push(self.rows() + rows as u64);
        self.groups.push(self.groups() + groups as u64);
        self.begins.push(begins);
    }

    /// Blocks.
    pub fn blocks(&self) -> usize {
        self.begins.len()
    }
    /// Rows.
    pub fn rows(&self) -> u64 {
        self.starts[self.blocks()]
    }
    /// Groups of peers.
    pub fn groups(&self) -> u64 {
        self.groups[self.blocks()]
    }
    /// The first row of a block; after the last block, the number of rows.
    pub fn start(&self, block: usize) -> u64 {
        self.starts[block]
    }
    /// How many rows some blocks have.
    pub fn rows_in(&self, blocks: &Range<usize>) -> usize {
        (self.starts[blocks.end] - self.starts[blocks.start]) as usize
    }
    /// How many groups of peers begin before a block.
    pub fn groups_before(&self, block: usize) -> u64 {
        self.groups[block]
    }
    /// True if a group of peers begins with the block.
    pub fn begins(&self, block: usize) -> bool {
        self.begins[block]
    }
    /// The block of a row.
    pub fn block_of(&self, row: u64) -> usize {
        self.starts.partition_point(|&start| start <= row).saturating_sub(1).min(self.blocks() - 1)
    }
    /// The block in which a group of peers begins.
    pub fn block_of_group(&self, group: u64) -> usize {
        self.groups.partition_point(|&before| before <= group).saturating_sub(1).min(self.blocks() - 1)
    }

    /// The blocks where the groups of peers of the rows of `blocks` begin, and where the next one does.
    pub fn around(&self, blocks: &Range<usize>) -> impl Iterator<Item = usize> {
        let first = self.groups[blocks.start];
        let before = (!self.begins[blocks.start] && first > 0).then(|| self.block_of_group(first - 1));
        let next = self.groups[blocks.end];
        let behind = (next < self.groups()).then(|| self.block_of_group(next));
        before.into_iter().chain(behind)
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        (self.starts.capacity() + self.groups.capacity()) * size_of::<u64>() + self.begins.capacity()
    }
}

/// See the module.
pub struct Gaps {
    index: Arc<BlockIndex>,
    /// What the section consists of, ascending.
    stretches: Vec<BlockStretch>,
    /// Its positions.
    len: u32,
    /// Blocks that searches have missed.
    missed: Mutex<BTreeSet<usize>>,
}

/// Loaded blocks, or a gap.
pub struct BlockStretch {
    /// Its first position.
    pub position: u32,
    /// Its blocks.
    pub blocks: Range<usize>,
    /// True if it is a gap.
    pub is_gap: bool,
}

impl Gaps {
    /// A section of these blocks of `index`, at least one.
    pub fn new(index: Arc<BlockIndex>, there: &BTreeSet<usize>) -> Gaps {
        let mut stretches: Vec<BlockStretch> = Vec::new();
        let mut position = 0;
        let mut next = 0;
        for &block in there.iter().chain(&[index.blocks()]) {
            if next < block {
                stretches.push(BlockStretch { position, blocks: next..block, is_gap: true });
                position += 1;
            }
            next = block + 1;
            if block == index.blocks() {
                break;
            }
            match stretches.last_mut().filter(|last| !last.is_gap) {
                Some(last) => last.blocks.end = next,
                None => stretches.push(BlockStretch { position, blocks: block..next, is_gap: false }),
            }
            position += index.rows_in(&(block..next)) as u32;
        }
        Gaps { index, stretches, len: position, missed: Mutex::default() }
    }

    /// What the section consists of.
    pub fn stretches(&self) -> &[BlockStretch] {
        &self.stretches
    }

    /// Where the rows of the partition are.
    pub fn index(&self) -> &BlockIndex {
        &self.index
    }

    /// Positions.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// The row at a position, for a gap its first one; after the last position, the number of rows.
    pub fn row(&self, position: u32) -> u64 {
        if position >= self.len {
            return self.index.rows();
        }
        let after = self.stretches.partition_point(|stretch| stretch.position <= position);
        let stretch = &self.stretches[after - 1];
        self.index.start(stretch.blocks.start) + u64::from(position - stretch.position)
    }

    /// The position of a row; if it is in a gap, the gap's position, and its block is missed. After the last
    /// row, the number of positions.
    pub fn position(&self, row: u64) -> u32 {
        if row >= self.index.rows() {
            return self.len;
        }
        let after = self.stretches.partition_point(|stretch| self.index.start(stretch.blocks.start) <= row);
        let stretch = &self.stretches[after - 1];
        let within = row - self.index.start(stretch.blocks.start);
        if stretch.is_gap && within > 0 {
            self.miss([self.index.block_of(row)]);
            return stretch.position;
        }
        stretch.position + within as u32
    }

    /// The position of a loaded block's first row.
    pub fn position_of_block(&self, block: usize) -> usize {
        self.position(self.index.start(block)) as usize
    }

    /// The gaps among some positions: where each is, and its blocks.
    pub fn within(&self, positions: Range<usize>) -> impl Iterator<Item = (usize, &Range<usize>)> {
        let first = self.stretches.partition_point(|stretch| (stretch.position as usize) < positions.start);
        let stretches = self.stretches[first..].iter();
        let stretches = stretches.take_while(move |stretch| (stretch.position as usize) < positions.end);
        stretches.filter(|stretch| stretch.is_gap).map(|stretch| (stretch.position as usize, &stretch.blocks))
    }

    /// All gaps.
    pub fn all(&self) -> impl Iterator<Item = (usize, &Range<usize>)> {
        self.within(0..self.len())
    }

    /// The blocks of the gap at a position, if one is there.
    pub fn at(&self, position: usize) -> Option<&Range<usize>> {
        self.within(position..position + 1).next().map(|(_, blocks)| blocks)
    }

    /// Records that these blocks are missed.
    pub fn miss(&self, blocks: impl IntoIterator<Item = usize>) {
        lock(&self.missed).extend(blocks);
    }

    /// Takes the blocks that were missed.
    pub fn take_missed(&self) -> BTreeSet<usize> {
        std::mem::take(&mut *lock(&self.missed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_positions_belong_to_each_other() {
        for there in 1u32..64 {
            let mut index = BlockIndex::default();
            [3, 1, 2, 4, 1, 5].into_iter().for_each(|rows| index.push(rows, 0, false));
            let blocks: BTreeSet<usize> = (0..6).filter(|block| there >> block & 1 == 1).collect();
            let gaps = Gaps::new(Arc::new(index), &blocks);
            let mut position = 0;
            for row in 0..16 {
                let block = gaps.index().block_of(row);
                if blocks.contains(&block) {
                    assert_eq!((gaps.row(position), gaps.position(row)), (row, position), "{blocks:?}");
                    assert!(gaps.at(position as usize).is_none() && gaps.take_missed().is_empty());
                    position += 1;
                    continue;
                }
                let at = gaps.position(row);
                let is_first = gaps.row(at) == row;
                assert!(gaps.at(at as usize).unwrap().contains(&block));
                let missed = gaps.take_missed();
                assert_eq!(
                    missed.into_iter().collect::<Vec<_>>(),
                    if is_first { vec![] } else { vec![block] }
                );
                position += u32::from(is_first);
            }
            assert_eq!(
                (gaps.len(), gaps.row(position), gaps.position(16)),
                (position as usize, 16, position)
            );
        }
    }
}
