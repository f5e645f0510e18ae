//! The frequency model (sections 4.2 and 4.3 of *Optimal Column Layout for Hybrid Workloads*): how often each
//! block of a column is touched, and by which kind of operation. Ten histograms with a bin for each block.
//!
//! | histogram | paper | counts |
//! |---|---|---|
//! | [`Kind::PointQuery`] | pq | point queries for a value of the block |
//! | [`Kind::RangeStart`] | rs | ranges that begin in the block |
//! | [`Kind::Scan`] | sc | ranges that contain the whole block |
//! | [`Kind::RangeEnd`] | re | ranges that end in the block |
//! | [`Kind::Insert`] | in | new values that belong to the block |
//! | [`Kind::Delete`] | de | values of the block that are removed |
//! | [`Kind::UpdateFromForward`] | udf | values of the block that become greater and leave it for a later block |
//! | [`Kind::UpdateToForward`] | utf | values that arrive from an earlier block |
//! | [`Kind::UpdateFromBackward`] | udb | values of the block that leave it for an earlier block, or stay |
//! | [`Kind::UpdateToBackward`] | utb | values that arrive from a later block, or stay |
//!
//! Operations are counted as if each were the first on the data as they are (section 4.2); they do not move
//! bounds. [`Bounds`] determine to which block a value belongs. A workload is learned from single operations
//! ([`Frequency::count`], or [`Counters`] if memory is short), or from distributions ([`distribution`]).
//!
//! **Ambiguities of the paper.** An update within one block is "by convention" backward (section 4.4),
//! whichever value is greater; both pairs of equations give the same cost. A range within one block counts as
//! a start and an end there, as in the text, so that the block is charged twice; that is a constant that does
//! not affect the partitioning. A point query for a value whose duplicates fill several blocks touches them
//! all and is counted as a range. Figures 7 and others print `edb` for udb.
//!
//! Not modelled here: how operations are executed, and the cost of finding a partition, which is the same for
//! all operations.

mod bounds;
mod counters;
pub mod distribution;

pub use bounds::Bounds;
pub use counters::Counters;

/// An operation of the workload. `T` is a value of the layout key, or a block number once the value is
/// located.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation<T> {
    /// Looks up a value.
    Point(T),
    /// Reads all values between two bounds, both included.
    Range(T, T),
    /// Adds a value.
    Insert(T),
    /// Removes a value.
    Delete(T),
    /// Replaces one value by another.
    Update {
        /// The old value.
        from: T,
        /// The new value.
        to: T,
    },
}

/// One of the ten histograms. See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the module's table says what each counts")]
pub enum Kind {
    PointQuery,
    RangeStart,
    Scan,
    RangeEnd,
    Insert,
    Delete,
    UpdateFromForward,
    UpdateToForward,
    UpdateFromBackward,
    UpdateToBackward,
}

impl Kind {
    /// The number of histograms.
    pub const COUNT: usize = 10;

    /// All histograms.
    pub const ALL: [Kind; Kind::COUNT] = [
        Kind::PointQuery,
        Kind::RangeStart,
        Kind::Scan,
        Kind::RangeEnd,
        Kind::Insert,
        Kind::Delete,
        Kind::UpdateFromForward,
        Kind::UpdateToForward,
        Kind::UpdateFromBackward,
        Kind::UpdateToBackward,
    ];
}

impl Operation<usize> {
    /// Calls `each` with the histogram and block of each bin that the operation increments.
    pub fn each_bin(&self, mut each: impl FnMut(Kind, usize)) {
        match *self {
            Operation::Point(block) => each(Kind::PointQuery, block),
            Operation::Range(first, last) => {
                each(Kind::RangeStart, first);
                (first + 1..last).for_each(|block| each(Kind::Scan, block));
                each(Kind::RangeEnd, last.max(first));
            }
            Operation::Insert(block) => each(Kind::Insert, block),
            Operation::Delete(block) => each(Kind::Delete, block),
            Operation::Update { from, to } if from < to => {
                each(Kind::UpdateFromForward, from);
                each(Kind::UpdateToForward, to);
            }
            Operation::Update { from, to } => {
                each(Kind::UpdateFromBackward, from);
                each(Kind::UpdateToBackward, to);
            }
        }
    }
}

/// The ten histograms over the blocks of a column. See the module.
#[derive(Debug, Clone, PartialEq)]
pub struct Frequency {
    bins: [Vec<f64>; Kind::COUNT],
}

impl Frequency {
    /// Empty histograms over this many blocks.
    pub fn new(blocks: usize) -> Frequency {
        Frequency { bins: std::array::from_fn(|_| vec![0.0; blocks]) }
    }

    /// The number of blocks.
    pub fn blocks(&self) -> usize {
        self.bins[0].len()
    }

    /// A histogram: a number for each block.
    pub fn of(&self, kind: Kind) -> &[f64] {
        &self.bins[kind as usize]
    }

    /// A histogram, for writing.
    pub fn of_mut(&mut self, kind: Kind) -> &mut [f64] {
        &mut self.bins[kind as usize]
    }

    /// Counts an operation on blocks, given by number ([`Bounds::locate`]), with `weight`.
    pub fn count(&mut self, operation: Operation<usize>, weight: f64) {
        operation.each_bin(|kind, block| self.bins[kind as usize][block] += weight);
    }

    /// Adds the histograms of another workload over the same blocks.
    ///
    /// # Panics
    /// If the numbers of blocks differ.
    pub fn merge(&mut self, other: &Frequency) {
        assert_eq!(self.blocks(), other.blocks(), "histograms over different blocks");
        for (own, other) in self.bins.iter_mut().zip(&other.bins) {
            own.iter_mut().zip(other).for_each(|(own, other)| *own += other);
        }
    }

    /// Multiplies all bins: by less than one to make the past count less (decay), or to scale to another
    /// number of operations.
    pub fn scale(&mut self, factor: f64) {
        self.bins.iter_mut().flatten().for_each(|bin| *bin *= factor);
    }

    /// The same workload over blocks that are `by` times as large; the last one may be smaller.
    ///
    /// Bins of blocks that a range contains entirely are averaged, since the larger block is read once;
    /// operations at a single place are summed.
    ///
    /// # Panics
    /// If `by` is 0.
    pub fn coarsened(&self, by: usize) -> Frequency {
        let coarse = |kind: Kind| {
            let chunks = self.of(kind).chunks(by);
            let share = |chunk: &[f64]| if kind == Kind::Scan { chunk.len() as f64 } else { 1.0 };
            chunks.map(|chunk| chunk.iter().sum::<f64>() / share(chunk)).collect()
        };
        Frequency { bins: Kind::ALL.map(coarse) }
    }

    /// The same workload over finer blocks: each block is cut into as many as `widths` says, alike. What
    /// happens at a single place is shared out evenly, and a range that holds a whole block holds all of its
    /// parts.
    ///
    /// # Panics
    /// If `widths` does not have a number for each block, or one is 0.
    pub fn refined(&self, widths: &[usize]) -> Frequency {
        assert_eq!(self.blocks(), widths.len(), "widths of different blocks");
        assert!(widths.iter().all(|&width| width > 0), "a block of no width");
        let fine = |kind: Kind| {
            let bins = self.of(kind).iter().zip(widths);
            let parts = |(&bin, &width): (&f64, &usize)| {
                let share = if kind == Kind::Scan { bin } else { bin / width as f64 };
                std::iter::repeat_n(share, width)
            };
            bins.flat_map(parts).collect()
        };
        Frequency { bins: Kind::ALL.map(fine) }
    }

    /// The same workload, moved by `by` blocks towards the end; what passes the end wraps around to the
    /// start.
    pub fn rotated(&self, by: usize) -> Frequency {
        let mut rotated = self.clone();
        for bins in &mut rotated.bins {
            let by = by % bins.len().max(1);
            bins.rotate_right(by);
        }
        rotated
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Figure 7. Its values are not in the text; these agree with everything that the text says about them.
    fn figure_7() -> Bounds<u32> {
        Bounds::of_sorted(&[1, 3, 4, 5, 7, 9, 12, 15, 19, 20, 32, 55, 60, 67, 80, 95], 2)
    }

    fn counted(operations: &[Operation<u32>]) -> Frequency {
        let bounds = figure_7();
        let mut frequency = Frequency::new(bounds.blocks());
        operations.iter().for_each(|operation| frequency.count(bounds.locate(operation), 1.0));
        frequency
    }

    /// The bins that are not 0.
    fn filled(frequency: &Frequency) -> Vec<(Kind, usize, f64)> {
        let bins =
            |kind: Kind| frequency.of(kind).iter().copied().enumerate().map(move |(b, n)| (kind, b, n));
        Kind::ALL.into_iter().flat_map(bins).filter(|bin| bin.2 != 0.0).collect()
    }

    #[test]
    fn the_paper_counts_six_operations() {
        use Kind::{Delete, Insert, PointQuery, RangeEnd, RangeStart, Scan};
        use Kind::{UpdateFromBackward, UpdateFromForward, UpdateToBackward, UpdateToForward};
        assert_eq!(filled(&counted(&[Operation::Point(4)])), [(PointQuery, 1, 1.0)]);
        let range = [(RangeStart, 1, 1.0), (Scan, 2, 1.0), (Scan, 3, 1.0), (RangeEnd, 4, 1.0)];
        assert_eq!(filled(&counted(&[Operation::Range(4, 19)])), range);
        assert_eq!(filled(&counted(&[Operation::Delete(32)])), [(Delete, 5, 1.0)]);
        assert_eq!(filled(&counted(&[Operation::Insert(16)])), [(Insert, 3, 1.0)]);
        let forward = [(UpdateFromForward, 0, 1.0), (UpdateToForward, 3, 1.0)];
        assert_eq!(filled(&counted(&[Operation::Update { from: 3, to: 16 }])), forward);
        let backward = [(UpdateFromBackward, 5, 1.0), (UpdateToBackward, 3, 1.0)];
        assert_eq!(filled(&counted(&[Operation::Update { from: 55, to: 17 }])), backward);
    }

    #[test]
    fn what_is_left_open() {
        use Kind::{RangeEnd, RangeStart, UpdateFromBackward, UpdateToBackward};
        let within = counted(&[Operation::Range(4, 5)]);
        assert_eq!(filled(&within), [(RangeStart, 1, 1.0), (RangeEnd, 1, 1.0)]);
        let stays = counted(&[Operation::Update { from: 4, to: 5 }]);
        assert_eq!(filled(&stays), [(UpdateFromBackward, 1, 1.0), (UpdateToBackward, 1, 1.0)]);
    }

    /// The twin: applies the definitions to each block and operation.
    fn twin(values: &[u32], size: usize, operations: &[Operation<u32>]) -> Frequency {
        let blocks: Vec<&[u32]> = values.chunks(size).collect();
        let mut frequency = Frequency::new(blocks.len());
        let home = |value: u32| (0..blocks.len()).rev().find(|&b| blocks[b][0] <= value).unwrap_or(0);
        let first = |value: u32| {
            let holds = (0..blocks.len()).find(|&b| blocks[b].contains(&value));
            holds.unwrap_or_else(|| home(value))
        };
        for operation in operations {
            for (number, block) in blocks.iter().enumerate() {
                let mut add = |kind: Kind, is_so: bool| {
                    frequency.of_mut(kind)[number] += f64::from(u8::from(is_so));
                };
                match *operation {
                    Operation::Point(value) if first(value) == home(value) => {
                        add(Kind::PointQuery, home(value) == number);
                    }
                    Operation::Point(value) => {
                        add(Kind::RangeStart, first(value) == number);
                        add(Kind::RangeEnd, home(value) == number);
                        add(
                            Kind::Scan,
                            block.iter().all(|v| *v == value)
                                && number > first(value)
                                && number < home(value),
                        );
                    }
                    Operation::Range(low, high) => {
                        let (low, high) = (low.min(high), high.max(low));
                        add(Kind::RangeStart, first(low) == number);
                        add(Kind::RangeEnd, home(high) == number);
                        add(Kind::Scan, number > first(low) && number < home(high));
                    }
                    Operation::Insert(value) => add(Kind::Insert, home(value) == number),
                    Operation::Delete(value) => add(Kind::Delete, home(value) == number),
                    Operation::Update { from, to } => {
                        let forward = home(to) > home(from);
                        add(Kind::UpdateFromForward, forward && home(from) == number);
                        add(Kind::UpdateToForward, forward && home(to) == number);
                        add(Kind::UpdateFromBackward, !forward && home(from) == number);
                        add(Kind::UpdateToBackward, !forward && home(to) == number);
                    }
                }
            }
        }
        frequency
    }

    #[test]
    fn counting_equals_its_twin() {
        let mut random = Random::new(1);
        for _ in 0..300 {
            let (count, size) = (1 + random.below(40), 1 + random.below(5));
            let mut values: Vec<u32> = (0..count).map(|_| 10 + random.below(60) as u32).collect();
            values.sort_unstable();
            let mut value = || random.below(80) as u32;
            let operations: Vec<Operation<u32>> = (0..30)
                .map(|i| match i % 5 {
                    0 => Operation::Point(value()),
                    1 => Operation::Range(value(), value()),
                    2 => Operation::Insert(value()),
                    3 => Operation::Delete(value()),
                    _ => Operation::Update { from: value(), to: value() },
                })
                .collect();
            let bounds = Bounds::of_sorted(&values, size);
            let mut frequency = Frequency::new(bounds.blocks());
            operations.iter().for_each(|operation| frequency.count(bounds.locate(operation), 1.0));
            assert_eq!(frequency, twin(&values, size, &operations), "{values:?} by {size}");
        }
    }

    #[test]
    fn histograms_are_merged_scaled_and_moved() {
        let (a, b) =
            (counted(&[Operation::Range(4, 60)]), counted(&[Operation::Point(7), Operation::Point(7)]));
        let mut both = a.clone();
        both.merge(&b);
        assert_eq!(both.of(Kind::PointQuery)[2], 2.0);
        assert_eq!(both.of(Kind::Scan), a.of(Kind::Scan));
        both.scale(0.5);
        assert_eq!(both.of(Kind::PointQuery)[2], 1.0);
        assert_eq!(a.rotated(3).of(Kind::RangeStart)[4], 1.0);
        assert_eq!(a.rotated(7).of(Kind::RangeStart)[0], 1.0);
        assert_eq!(a.rotated(8), a);
        let coarse = both.coarsened(2);
        assert_eq!(coarse.blocks(), 4);
        assert_eq!(coarse.of(Kind::PointQuery), [0.0, 1.0, 0.0, 0.0]);
        assert_eq!(coarse.of(Kind::Scan), [0.0, 0.5, 0.5, 0.0]);
        assert_eq!(both.coarsened(3).blocks(), 3);
        // Refining and coarsening by the same number lead back.
        assert_eq!(both.refined(&[3; 8]).coarsened(3), both);
        let fine = both.refined(&[1, 1, 4, 1, 1, 1, 1, 2]);
        assert_eq!((fine.blocks(), fine.of(Kind::PointQuery)[2], fine.of(Kind::Scan)[5]), (12, 0.25, 0.5));
    }
}
