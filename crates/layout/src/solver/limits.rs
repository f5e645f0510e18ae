//! Limits on a partitioning, and the reasons why no partitioning satisfies them.

use crate::cost::Access;
use std::collections::VecDeque;
use std::fmt;

/// The constraints on a partitioning. None by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Limits {
    /// The most blocks in a partition: the paper's MPS.
    pub width: Option<usize>,
    /// For each block, the most blocks in its partition.
    pub widths: Option<Vec<usize>>,
    /// The most partitions.
    pub partitions: Option<usize>,
    /// For each block, the most partitions that end at or after it.
    pub trailing: Option<Vec<usize>>,
    /// For each block, whether a partition may end with it. One always may with the last block.
    pub may_end: Option<Vec<bool>>,
}

/// Why there is no partitioning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unsolvable {
    /// There are no blocks.
    Empty,
    /// A list does not have one entry for each block.
    Lengths {
        /// The name of the list.
        what: &'static str,
        /// Its length.
        found: usize,
        /// The number of blocks.
        blocks: usize,
    },
    /// A price of further reads is negative, so the costs are not Monge.
    Negative {
        /// The first such block.
        block: usize,
    },
    /// A term is infinite or not a number.
    NotFinite {
        /// The first such block.
        block: usize,
    },
    /// The sum of prices exceeds 64 bits.
    TooGreat {
        /// The block at which it does.
        block: usize,
    },
    /// A latency is less than the shortest possible time of an operation.
    Latency {
        /// The kind of operation.
        what: &'static str,
    },
    /// Blocks that must stay together exceed the width limit of their partition.
    Width {
        /// The first of them.
        first: usize,
        /// The last of them.
        last: usize,
        /// The limit.
        limit: usize,
    },
    /// More partitions are needed than are allowed.
    Partitions {
        /// The least number that the limits on their width require.
        least: usize,
        /// The most that are allowed.
        limit: usize,
    },
    /// More partitions are needed at or after a block than are allowed.
    Trailing {
        /// The block.
        block: usize,
        /// The least number required.
        least: usize,
        /// The most that are allowed.
        limit: usize,
    },
    /// Each limit can be satisfied, but not all together.
    Together,
}

impl fmt::Display for Unsolvable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unsolvable::Empty => write!(f, "there are no blocks to be partitioned"),
            Unsolvable::Lengths { what, found, blocks } => {
                write!(f, "{what} has {found} entries for {blocks} blocks")
            }
            Unsolvable::Negative { block } => {
                write!(f, "reading further blocks with block {block} has a negative price")
            }
            Unsolvable::NotFinite { block } => write!(f, "a price of block {block} is not a finite number"),
            Unsolvable::TooGreat { block } => {
                write!(f, "prices up to block {block} add up to more than 64 bits; take a greater unit")
            }
            Unsolvable::Latency { what } => {
                write!(f, "the limit of the latency of {what} is less than one of them takes in any layout")
            }
            Unsolvable::Width { first, last, limit } => write!(
                f,
                "the limit of the width is {limit} blocks, but blocks {first} to {last} must be in one \
                 partition"
            ),
            Unsolvable::Partitions { least, limit } => write!(
                f,
                "the limit is {limit} partitions, but the limit of their width takes {least} at least"
            ),
            Unsolvable::Trailing { block, least, limit } => write!(
                f,
                "the limit is {limit} partitions at or behind block {block}, but the limit of their width \
                 takes {least} at least"
            ),
            Unsolvable::Together => {
                write!(f, "the limits of trailing partitions and of where partitions end exclude each other")
            }
        }
    }
}

impl std::error::Error for Unsolvable {}

impl Limits {
    /// Equation 21: limits the time of a point query, in nanoseconds.
    ///
    /// The paper gives MPS = (SLA − RR) / SR in the text and one less in the equation. A partition of MPS
    /// blocks takes one random read and MPS − 1 sequential ones by equation 7, so it may have one block
    /// *more* than in the text. This is what is implemented.
    ///
    /// # Errors
    /// If not even a partition of one block is fast enough.
    pub fn with_read_latency(mut self, latency: f64, access: &Access) -> Result<Limits, Unsolvable> {
        let further = ((latency - access.random_read) / access.sequential_read).floor();
        if further.is_nan() || further < 0.0 {
            return Err(Unsolvable::Latency { what: "point queries" });
        }
        let width = (further as usize).saturating_add(1);
        self.width = Some(self.width.map_or(width, |own| own.min(width)));
        Ok(self)
    }

    /// Equation 21: limits the time of an insert, in nanoseconds, wherever it goes.
    ///
    /// # Errors
    /// If not even an insert into a single partition is fast enough.
    pub fn with_update_latency(mut self, latency: f64, access: &Access) -> Result<Limits, Unsolvable> {
        let most = (latency / (access.random_read + access.random_write) - 1.0).floor();
        if most.is_nan() || most < 1.0 {
            return Err(Unsolvable::Latency { what: "inserts" });
        }
        let most = most as usize;
        self.partitions = Some(self.partitions.map_or(most, |own| own.min(most)));
        Ok(self)
    }

    /// The limits on single partitions.
    pub(super) fn window(&self, blocks: usize) -> Result<Window, Unsolvable> {
        let lengths = |what: &'static str, found: Option<usize>| match found {
            Some(found) if found != blocks => Err(Unsolvable::Lengths { what, found, blocks }),
            _ => Ok(()),
        };
        if blocks == 0 {
            return Err(Unsolvable::Empty);
        }
        lengths("widths", self.widths.as_ref().map(Vec::len))?;
        lengths("trailing", self.trailing.as_ref().map(Vec::len))?;
        lengths("may_end", self.may_end.as_ref().map(Vec::len))?;
        let width = self.width.unwrap_or(blocks).min(blocks);
        let mut reach = Vec::with_capacity(blocks);
        match &self.widths {
            None => reach.extend((0..blocks).map(|first| (first + width).min(blocks))),
            Some(widths) => {
                // Of the blocks first..last, those whose limit is less than those of all later ones.
                let limit = |block: usize| widths[block].min(width);
                let (mut least, mut last) = (VecDeque::<usize>::new(), 0);
                for first in 0..blocks {
                    last = last.max(first);
                    while last < blocks {
                        let narrowest = least.front().map_or(limit(last), |&b| limit(b).min(limit(last)));
                        if last + 1 - first > narrowest {
                            break;
                        }
                        while least.back().is_some_and(|&b| limit(b) >= limit(last)) {
                            least.pop_back();
                        }
                        least.push_back(last);
                        last += 1;
                    }
                    reach.push(last);
                    if least.front() == Some(&first) {
                        least.pop_front();
                    }
                }
            }
        }
        let may_end = self.may_end.clone().map(|mut may_end| {
            may_end[blocks - 1] = true;
            may_end
        });
        let window = Window { reach, may_end };
        // Blocks between two places where partitions may end must fit into one partition.
        let mut first = 0;
        for last in (0..blocks).filter(|&last| window.may_end(last)) {
            if window.reach[first] <= last {
                let of = |block: usize| self.widths.as_ref().map_or(width, |widths| widths[block].min(width));
                let limit = (first..=last).map(of).min().unwrap_or(width);
                return Err(Unsolvable::Width { first, last, limit });
            }
            first = last + 1;
        }
        Ok(window)
    }
}

/// Which ranges of blocks may be a partition.
#[derive(Debug, Clone)]
pub(super) struct Window {
    /// For each block, the block after the widest partition that begins with it. Non-decreasing.
    pub(super) reach: Vec<usize>,
    may_end: Option<Vec<bool>>,
}

impl Window {
    /// Whether a partition may end with this block.
    pub(super) fn may_end(&self, block: usize) -> bool {
        self.may_end.as_ref().is_none_or(|may_end| may_end[block])
    }

    /// Blocks of the widest partition.
    pub(super) fn widest(&self) -> usize {
        self.reach.iter().enumerate().map(|(first, end)| end - first).max().unwrap_or(0)
    }

    /// The fewest partitions that cover the blocks from `first` on, if one begins with it. There is such a
    /// covering from block 0, as [`Limits::window`] has checked; `None` if there is none from here.
    pub(super) fn fewest(&self, mut first: usize) -> Option<usize> {
        let (blocks, mut count) = (self.reach.len(), 0);
        while first < blocks {
            let last = (first..self.reach[first]).rfind(|&last| self.may_end(last))?;
            (first, count) = (last + 1, count + 1);
        }
        Some(count)
    }
}
