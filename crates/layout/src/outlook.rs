//! What the operations of a workload cost over a partitioning, kind by kind, and which partitioning would be
//! the best: for people who want to know what a layout is worth.
//!
//! The model is linear in the histograms, so that the cost of one kind of operation is that of the histograms
//! that only this kind fills, divided by the number of its operations. Of a kind that does not occur, the
//! cost of one operation that may be anywhere is given.
//!
//! Not here: what ghosts save, which [`crate::ghosts`] says; and the price of memory, which is none of an
//! operation.

use crate::cost::{Engine, Model, Terms};
use crate::frequency::{Frequency, Kind};
use crate::partitioning::Partitioning;
use crate::solver::{Limits, Prices, Unsolvable, solve};

/// A kind of operation, as users know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are what they are called")]
pub enum OperationKind {
    PointQuery,
    Range,
    Insert,
    Delete,
    Update,
}

impl OperationKind {
    /// All of them.
    pub const ALL: [OperationKind; 5] = [
        OperationKind::PointQuery,
        OperationKind::Range,
        OperationKind::Insert,
        OperationKind::Delete,
        OperationKind::Update,
    ];

    /// What users call it. An update is one of the layout key.
    pub fn name(self) -> &'static str {
        match self {
            OperationKind::PointQuery => "point query",
            OperationKind::Range => "range",
            OperationKind::Insert => "insert",
            OperationKind::Delete => "delete",
            OperationKind::Update => "update of the key",
        }
    }

    /// The histograms that it fills.
    fn kinds(self) -> &'static [Kind] {
        match self {
            OperationKind::PointQuery => &[Kind::PointQuery],
            OperationKind::Range => &[Kind::RangeStart, Kind::Scan, Kind::RangeEnd],
            OperationKind::Insert => &[Kind::Insert],
            OperationKind::Delete => &[Kind::Delete],
            OperationKind::Update => &[
                Kind::UpdateFromForward,
                Kind::UpdateToForward,
                Kind::UpdateFromBackward,
                Kind::UpdateToBackward,
            ],
        }
    }

    /// The histograms in which each operation is counted once.
    fn once(self) -> &'static [Kind] {
        match self {
            OperationKind::Range => &[Kind::RangeStart],
            OperationKind::Update => &[Kind::UpdateFromForward, Kind::UpdateFromBackward],
            other => other.kinds(),
        }
    }

    /// How many operations of this kind a workload has.
    pub fn count(self, frequency: &Frequency) -> f64 {
        self.once().iter().map(|&kind| frequency.of(kind).iter().sum::<f64>()).sum()
    }

    /// The operations of this kind alone; one that may be in any block, if there is none.
    fn alone(self, frequency: &Frequency) -> Frequency {
        let mut own = Frequency::new(frequency.blocks());
        let is_blank = self.count(frequency) <= 0.0;
        let anywhere = 1.0 / frequency.blocks().max(1) as f64;
        for &kind in self.kinds() {
            let forward = matches!(kind, Kind::UpdateFromForward | Kind::UpdateToForward);
            match is_blank {
                true if kind == Kind::Scan || forward => {}
                true => own.of_mut(kind).fill(anywhere),
                false => own.of_mut(kind).copy_from_slice(frequency.of(kind)),
            }
        }
        own
    }
}

/// What operations of one kind cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Expected {
    /// How many there are.
    pub count: f64,
    /// The cost of one, on average; nanoseconds.
    pub each: f64,
}

/// The expected costs over a partitioning, in the order of [`OperationKind::ALL`].
///
/// # Panics
/// If the partitioning has another number of blocks.
pub fn expected(
    engine: &Engine,
    frequency: &Frequency,
    partitioning: &Partitioning,
) -> [Expected; OperationKind::ALL.len()] {
    let engine = Engine { byte: 0.0, ..*engine };
    by(|own| engine.terms(own), frequency, partitioning)
}

/// The same by any terms that are linear in the histograms.
///
/// # Panics
/// If the partitioning has another number of blocks.
pub fn by(
    terms: impl Fn(&Frequency) -> Terms,
    frequency: &Frequency,
    partitioning: &Partitioning,
) -> [Expected; OperationKind::ALL.len()] {
    OperationKind::ALL.map(|kind| {
        let (own, count) = (kind.alone(frequency), kind.count(frequency));
        let times = if count > 0.0 { count } else { 1.0 };
        Expected { count, each: terms(&own).cost(partitioning) / times }
    })
}

/// The cost of all operations together; nanoseconds.
pub fn total(expected: &[Expected]) -> f64 {
    expected.iter().map(|own| own.count * own.each).sum()
}

/// The best partitioning for a workload, with partitions of at most `widest` blocks; the finest of those that
/// cost the same, so that a workload of nothing is laid as any other.
///
/// # Errors
/// Those of [`solve`].
pub fn best(
    engine: &Engine,
    frequency: &Frequency,
    widest: Option<usize>,
) -> Result<Partitioning, Unsolvable> {
    let mut terms = engine.terms(frequency);
    // An operation that nobody has asked for yet, a millionth of one, in each block: it decides ties.
    let mut hint = Frequency::new(frequency.blocks());
    hint.of_mut(Kind::PointQuery).fill(1e-6);
    terms.add(&Terms { boundary: vec![0.0; frequency.blocks()], ..engine.terms(&hint) }, 1.0);
    let prices = Prices::of(&terms)?;
    let limits = Limits { width: widest, ..Limits::default() };
    Ok(solve(&prices, &limits)?.partitioning)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frequency::Operation;
    use crate::random::Random;

    /// The twin: the costs of one operation by the tables of `cost::Engine` and `docs/design/layout.md`.
    fn cost_of(engine: &Engine, operation: Operation<usize>, partitioning: &Partitioning) -> f64 {
        let of = |block: usize| {
            let partition = partitioning.iter().find(|blocks| blocks.contains(&block)).expect("a block");
            (block - partition.start(), partition.end() - block)
        };
        let width = |block: usize| (of(block).0 + of(block).1) as f64;
        let looked = |block: usize| engine.lookup + engine.compare * width(block) / 2.0;
        let added = |block: usize| engine.lookup + (engine.compare + engine.pass) * width(block);
        match operation {
            Operation::Point(block) => looked(block) + engine.read,
            Operation::Range(first, last) => {
                let ((before, rest), (start, behind)) = (of(first), of(last));
                let further = engine.filter * (before + behind) as f64;
                let own = (engine.filter - engine.scan) * (rest + start) as f64;
                let between = engine.scan * (last - first).saturating_sub(1) as f64;
                engine.range + 2.0 * engine.filter + further + own + between
            }
            Operation::Insert(block) => added(block) + engine.write + 2.0 * engine.move_row,
            Operation::Delete(block) => looked(block) + engine.delete,
            Operation::Update { from, to } => looked(from) + engine.delete + added(to) + engine.arrive,
        }
    }

    fn operation(kind: OperationKind, blocks: usize, random: &mut Random) -> Operation<usize> {
        let (a, b) = (random.below(blocks), random.below(blocks));
        match kind {
            OperationKind::PointQuery => Operation::Point(a),
            OperationKind::Range => Operation::Range(a.min(b), a.max(b)),
            OperationKind::Insert => Operation::Insert(a),
            OperationKind::Delete => Operation::Delete(a),
            OperationKind::Update => Operation::Update { from: a, to: b },
        }
    }

    #[test]
    fn each_kind_costs_what_its_operations_cost() {
        let (engine, mut random) = (Engine::default(), Random::new(11));
        for _ in 0..300 {
            let blocks = 1 + random.below(12);
            let bits: Vec<bool> = (0..blocks).map(|_| random.below(3) == 0).collect();
            let partitioning = Partitioning::of_bits(&bits).expect("blocks");
            let mut frequency = Frequency::new(blocks);
            let mut sums = [(0.0, 0.0); OperationKind::ALL.len()];
            for _ in 0..random.below(40) {
                let number = random.below(OperationKind::ALL.len());
                let operation = operation(OperationKind::ALL[number], blocks, &mut random);
                frequency.count(operation, 1.0);
                sums[number].0 += 1.0;
                sums[number].1 += cost_of(&engine, operation, &partitioning);
            }
            let found = expected(&engine, &frequency, &partitioning);
            for (found, (count, sum)) in found.iter().zip(sums) {
                assert_eq!(found.count, count);
                if count > 0.0 {
                    assert!(
                        (found.each * count - sum).abs() < 1e-6 * sum,
                        "{} for {sum}",
                        found.each * count
                    );
                }
            }
            let whole = engine.terms(&frequency).cost(&partitioning);
            assert!((total(&found) - whole).abs() <= 1e-6 * whole.max(1.0));
        }
    }

    /// What was never asked for costs what it would cost somewhere.
    #[test]
    fn a_workload_of_nothing_has_costs() {
        let engine = Engine::default();
        for (width, partitions) in [(1, Partitioning::equal(6, 1)), (3, Partitioning::equal(6, 3))] {
            let found = expected(&engine, &Frequency::new(6), &partitions);
            assert!(found.iter().all(|own| own.count == 0.0));
            assert!((found[OperationKind::Insert as usize].each - engine.insert(width)).abs() < 1e-9);
        }
        assert_eq!(best(&engine, &Frequency::new(6), None).expect("a solution"), Partitioning::equal(6, 1));
    }

    #[test]
    fn memory_with_a_price_makes_wide_partitions_and_promises_narrow_ones() {
        let engine = Engine { byte: 10.0, ..Engine::default() };
        let mut frequency = Frequency::new(16);
        frequency.of_mut(Kind::PointQuery)[3] = 1000.0;
        let wide = best(&engine, &frequency, None).expect("a solution");
        assert!(wide.partitions() < 16 && wide.ends_at(2) && wide.ends_at(3), "{wide:?}");
        let narrow = best(&engine, &frequency, Some(2)).expect("a solution");
        assert!(narrow.widest() <= 2 && narrow.partitions() > wide.partitions(), "{narrow:?}");
    }
}
