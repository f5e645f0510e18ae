//! A segment tree: an associative and commutative function of any stretch of values, in logarithmic time
//! (Leis, Kundhikanjana, Kemper and Neumann, *Efficient Processing of Window Functions in Analytical SQL
//! Queries*, VLDB 2015).
//!
//! Each node stands for [`FAN_OUT`] of the level below, the lowest of which are the values. A stretch is
//! folded from both ends: single values up to the next node, single nodes up to the next node above, until no
//! whole node is left. The fan-out makes the tree flat: the nodes above the values are a fifteenth of them,
//! and the values of a short frame are adjacent.

use super::section::TASK_ROWS;
use crate::exec::operator::{Tasks, in_parallel};
use entasis_vector::Result;
use std::ops::Range;

/// Values, or nodes, of one node.
const FAN_OUT: usize = 16;

/// See the module.
pub struct Tree<T> {
    /// The values, then each level's nodes.
    levels: Vec<Vec<T>>,
}

impl<T: Copy + Send + Sync> Tree<T> {
    /// The tree over `values`.
    ///
    /// # Errors
    /// Those of `tasks`.
    pub fn new(values: Vec<T>, combine: impl Fn(T, T) -> T + Sync, tasks: &dyn Tasks) -> Result<Tree<T>> {
        let mut levels = vec![values];
        while let Some(below) = levels.last().filter(|below| below.len() > FAN_OUT) {
            let mut level: Vec<T> = below.iter().step_by(FAN_OUT).copied().collect();
            let parts = level.chunks_mut(TASK_ROWS / FAN_OUT).zip(below.chunks(TASK_ROWS)).collect();
            in_parallel(tasks, parts, &|_, (nodes, below)| {
                for (node, values) in nodes.iter_mut().zip(below.chunks(FAN_OUT)) {
                    *node = values[1..].iter().fold(values[0], |a, &b| combine(a, b));
                }
                tasks.check()
            })?;
            levels.push(level);
        }
        Ok(Tree { levels })
    }

    /// `start` and the values in `range`, combined.
    #[inline]
    pub fn fold(&self, range: Range<usize>, start: T, combine: impl Fn(T, T) -> T) -> T {
        let Range { start: mut low, end: mut high } = range;
        let mut result = start;
        for level in &self.levels {
            if high <= low {
                break;
            }
            if high - low < 2 * FAN_OUT {
                return level[low..high].iter().fold(result, |a, &b| combine(a, b));
            }
            let (first, last) = (low.next_multiple_of(FAN_OUT), high / FAN_OUT * FAN_OUT);
            result = level[low..first].iter().fold(result, |a, &b| combine(a, b));
            result = level[last..high].iter().fold(result, |a, &b| combine(a, b));
            (low, high) = (first / FAN_OUT, last / FAN_OUT);
        }
        result
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.levels[0].len()
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        self.levels.iter().map(|level| level.capacity() * size_of::<T>()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::testing::TwoThreads;

    #[test]
    fn stretches_of_any_length_are_folded() {
        for count in [0, 1, 15, 16, 17, 33, 300, 5000] {
            let values: Vec<i64> = (0..count as i64).map(|i| i * 7919 % 1009 - 500).collect();
            let least = Tree::new(values.clone(), i64::min, &TwoThreads).unwrap();
            let sums = Tree::new(values.clone(), |a, b| a + b, &TwoThreads).unwrap();
            for low in (0..=count).step_by(1 + count / 40) {
                for high in (low..=count).step_by(1 + count / 70) {
                    let part = &values[low..high];
                    let expected = part.iter().copied().min().unwrap_or(i64::MAX);
                    assert_eq!(
                        least.fold(low..high, i64::MAX, i64::min),
                        expected,
                        "{low}..{high} of {count}"
                    );
                    assert_eq!(sums.fold(low..high, 0, |a, b| a + b), part.iter().sum::<i64>());
                }
            }
        }
    }

    #[test]
    fn levels_above_are_a_fifteenth() {
        let tree = Tree::new(vec![1u64; 1 << 20], |a, b| a + b, &TwoThreads).unwrap();
        assert!(tree.bytes() < (1 << 20) * 9, "{}", tree.bytes());
        assert_eq!(tree.fold(0..1 << 20, 0, |a, b| a + b), 1 << 20);
    }
}
