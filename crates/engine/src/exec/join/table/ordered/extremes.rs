//! A tree of extremes: finds the next place in a stretch whose value is within a bound, without visiting
//! those between.
//!
//! Values are in the order of another expression. The greatest (or least) of 16 neighbours is a value of the
//! next level, and so on up to a level of at most 16. From a place, a search continues to the end of its 16,
//! then among their parents, and descends where an extreme is within the bound. So each match takes time
//! logarithmic in the number of values, and adjacent matches take constant time.
//!
//! This is a priority search tree (McCreight, SIAM Journal on Computing 14(2), 1985) in arrays.

use std::cmp::Ordering;

/// Values of a level that share a parent.
const FANOUT: usize = 16;

/// See the module.
pub(super) struct ExtremeTree<T> {
    /// The values, then their extremes, then the extremes of those, and so on.
    levels: Vec<Vec<T>>,
    /// Whether extremes are the greatest values, rather than the least.
    greatest: bool,
}

impl<T: Ord + Copy> ExtremeTree<T> {
    /// A tree of these values; `greatest`: for bounds below the values.
    pub(super) fn new(values: Vec<T>, greatest: bool) -> ExtremeTree<T> {
        let mut levels = vec![values];
        while let Some(last) = levels.last().filter(|last| last.len() > FANOUT) {
            let extreme = |part: &[T]| {
                part.iter().copied().reduce(|a, b| if (b > a) == greatest { b } else { a }).unwrap_or(part[0])
            };
            let above = last.chunks(FANOUT).map(extreme).collect();
            levels.push(above);
        }
        ExtremeTree { levels, greatest }
    }

    /// The first place from `from`, before `end`, whose value is beyond `bound`, or with `or_equal` also
    /// equal to it; `end` if there is none.
    pub(super) fn next(&self, from: usize, end: usize, bound: &T, or_equal: bool) -> usize {
        let wanted = if self.greatest { Ordering::Greater } else { Ordering::Less };
        let holds = |value: &T| {
            let order = value.cmp(bound);
            order == wanted || (or_equal && order == Ordering::Equal)
        };
        let (mut level, mut at, mut width) = (0, from, 1);
        while at * width < end {
            let values = &self.levels[level];
            let stop = values.len().min((at / FANOUT + 1) * FANOUT).min(end.div_ceil(width));
            match values[at..stop].iter().position(&holds) {
                Some(offset) => return self.down(level, at + offset, holds).min(end),
                None => at = stop,
            }
            if at.is_multiple_of(FANOUT) && level + 1 < self.levels.len() {
                (level, at, width) = (level + 1, at / FANOUT, width * FANOUT);
            }
        }
        end
    }

    /// The first place below this value, which is within the bound, whose value is within it too.
    fn down(&self, mut level: usize, mut at: usize, holds: impl Fn(&T) -> bool) -> usize {
        while level > 0 {
            (level, at) = (level - 1, at * FANOUT);
            let values = &self.levels[level][at..];
            at += values.iter().position(&holds).unwrap_or(0);
        }
        at
    }

    /// Values of all levels.
    pub(super) fn len(&self) -> usize {
        self.levels.iter().map(Vec::capacity).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_place_is_that_of_a_walk() {
        for count in [0usize, 1, 15, 16, 17, 255, 256, 257, 300, 5000] {
            let values: Vec<i64> = (0..count as i64).map(|i| i * 7919 % 1009).collect();
            for greatest in [false, true] {
                let tree = ExtremeTree::new(values.clone(), greatest);
                for i in 0..400 {
                    let from = i * 31 % (count + 1);
                    let end = from + i * 17 % (count + 1 - from);
                    let (bound, or_equal) = ((i * 101 % 1100) as i64 - 40, i % 3 == 0);
                    let holds =
                        |v: i64| (v == bound && or_equal) || if greatest { v > bound } else { v < bound };
                    let expected = (from..end).find(|&place| holds(values[place])).unwrap_or(end);
                    assert_eq!(
                        tree.next(from, end, &bound, or_equal),
                        expected,
                        "{count}, {from}, {end}, {bound}"
                    );
                }
            }
        }
    }
}
