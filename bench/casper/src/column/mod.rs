//! A bare column with the paper's mechanics, and its rivals: plain arrays, no encoding, no versions, no
//! locks.
//!
//! ```text
//! mod          tables of column chunks, by layout        a Store made of Stores, one for each range of keys
//! plan         where partitions begin, how many ghosts    forecast  what operations cost then, by the model
//! partitioned  insertion order, equi, equi_ghost, casper
//! sorted  delta
//! rows         plain arrays
//! loops        over them
//! staggered    a column that does not share the sets of a cache
//! ```
//! What it does not do: rows with equal keys, strings, NULLs, transactions. The paper's engine has
//! transactions; here the mechanics alone are measured, which favours them over our engine.

mod delta;
pub mod forecast;
pub mod loops;
mod partitioned;
pub mod plan;
pub mod rows;
mod sorted;
mod staggered;

pub use partitioned::Partitioned;

use crate::operations::{fill, key_of};
use crate::store::{Counts, Store};
use delta::Delta;
use entasis_layout::cost::Access;
use entasis_layout::frequency::Frequency;
use entasis_layout::solver::Limits;
use plan::Plan;
use rows::Rows;
use sorted::Sorted;
use std::ops::Range;

/// How many slots ripple at once where there are ghosts.
pub const BATCH: usize = 8;

/// The paper's six operation modes; Casper without ghosts; Casper with boundaries and ghosts that are solved
/// together; and equi-width partitions of a block with ghosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Insertion,
    Sorted,
    Delta,
    Equi,
    EquiGhost,
    Casper,
    CasperDense,
    CasperJoint,
    Finest,
}

impl Mode {
    /// All, in the order of the paper.
    pub const ALL: [Mode; 9] = [
        Mode::Insertion,
        Mode::Sorted,
        Mode::Delta,
        Mode::Equi,
        Mode::EquiGhost,
        Mode::Casper,
        Mode::CasperDense,
        Mode::CasperJoint,
        Mode::Finest,
    ];

    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Insertion => "insertion",
            Mode::Sorted => "sorted",
            Mode::Delta => "delta",
            Mode::Equi => "equi",
            Mode::EquiGhost => "equi_ghost",
            Mode::Casper => "casper",
            Mode::CasperDense => "casper_dense",
            Mode::CasperJoint => "casper_joint",
            Mode::Finest => "finest_ghost",
        }
    }
}

/// The shape of a table of column chunks.
#[derive(Debug, Clone)]
pub struct Shape {
    /// Rows that are loaded.
    pub rows: usize,
    /// Payload columns.
    pub payloads: usize,
    /// Rows of a column chunk: 1 M in the paper.
    pub chunk: usize,
    /// Rows of a block: 16 KB of keys in the paper.
    pub block: usize,
    /// Partitions of a chunk with equi-width ones.
    pub partitions: usize,
    /// Ghosts as a share of the rows.
    pub ghosts: f64,
    /// The size of the delta as a share of the rows.
    pub delta: f64,
    /// What accesses cost, for the optimizer.
    pub access: Access,
    /// Limits for the optimizer.
    pub limits: Limits,
}

impl Shape {
    fn chunks(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        (0..self.rows).step_by(self.chunk).map(move |start| start..self.rows.min(start + self.chunk))
    }

    /// The blocks of the whole table.
    pub fn blocks(&self) -> usize {
        self.rows.div_ceil(self.block)
    }

    /// The plan of a chunk with partitions; `frequency` is that of the whole table.
    fn plan(&self, mode: Mode, rows: &Range<usize>, frequency: &Frequency) -> Plan {
        let blocks = rows.start / self.block..rows.end.div_ceil(self.block);
        let own = plan::part(frequency, blocks.clone());
        if mode == Mode::CasperJoint {
            let room = (rows.len(), self.ghosts);
            let (partitioning, ghosts) = plan::joint(&own, room, self.access, &self.limits);
            return Plan { partitioning, ghosts: Some(ghosts), block: self.block };
        }
        let partitioning = match mode {
            Mode::Casper | Mode::CasperDense => plan::best(&own, self.access, &self.limits),
            Mode::Insertion => plan::equal(blocks.len(), 1),
            Mode::Finest => plan::equal(blocks.len(), blocks.len()),
            _ => plan::equal(blocks.len(), self.partitions),
        };
        let ghosts = match mode {
            Mode::EquiGhost | Mode::Finest => Some(plan::even(&partitioning, rows.len(), self.ghosts)),
            Mode::Casper => Some(plan::by_demand(&own, &partitioning, rows.len(), self.ghosts)),
            _ => None,
        };
        Plan { partitioning, ghosts, block: self.block }
    }

    /// The plans of all chunks; `None` for layouts without partitions. `frequency` is that of the whole
    /// table.
    pub fn plans(&self, mode: Mode, frequency: &Frequency) -> Vec<Option<Plan>> {
        let has_partitions = !matches!(mode, Mode::Sorted | Mode::Delta);
        self.chunks().map(|rows| has_partitions.then(|| self.plan(mode, &rows, frequency))).collect()
    }

    fn chunk_of(&self, mode: Mode, range: &Range<usize>, plan: Option<&Plan>) -> Box<dyn Store> {
        let rows = loaded(range.clone(), self.payloads);
        match plan {
            Some(plan) => Box::new(planned(&rows, plan)),
            None if mode == Mode::Delta => {
                Box::new(Delta::new(rows, (range.len() as f64 * self.delta) as usize))
            }
            None => Box::new(Sorted(rows)),
        }
    }

    /// A table with this layout, as planned; the chunks that `mine` is true for.
    pub fn table(&self, mode: Mode, plans: &[Option<Plan>], mine: impl Fn(usize) -> bool) -> Chunked {
        let chunks = self.chunks().zip(plans).enumerate().filter(|(number, _)| mine(*number));
        let chunks = chunks.map(|(_, (range, plan))| {
            let low = if range.start == 0 { i64::MIN } else { key_of(range.start as u64) };
            let high = if range.end == self.rows { i64::MAX } else { key_of(range.end as u64) - 1 };
            Chunk { low, high, store: self.chunk_of(mode, &range, plan.as_ref()) }
        });
        Chunked { chunks: chunks.collect(), row: vec![0; self.payloads] }
    }
}

/// The partitions of some plans.
pub fn partitions_of(plans: &[Option<Plan>]) -> usize {
    plans.iter().flatten().map(|plan| plan.partitioning.partitions()).sum()
}

/// A partitioned chunk as planned.
pub fn planned(rows: &Rows, plan: &Plan) -> Partitioned {
    Partitioned::new(rows, &plan.starts(), plan.ghosts.as_deref(), BATCH)
}

/// The loaded rows at these places.
pub fn loaded(places: Range<usize>, payloads: usize) -> Rows {
    let mut rows = Rows::with_capacity(payloads, places.len());
    let mut row = vec![0; payloads];
    for key in places.map(|place| key_of(place as u64)) {
        fill(key, &mut row);
        rows.push(key, &row);
    }
    rows
}

/// A range of keys, both ends included, and its rows.
struct Chunk {
    low: i64,
    high: i64,
    store: Box<dyn Store>,
}

/// Column chunks by range of keys. A row whose key moves to another chunk is deleted there and inserted here,
/// with the payload of its new key.
pub struct Chunked {
    chunks: Vec<Chunk>,
    row: Vec<i32>,
}

impl Chunked {
    fn of(&mut self, key: i64) -> Option<&mut Chunk> {
        self.chunks.iter_mut().find(|chunk| (chunk.low..=chunk.high).contains(&key))
    }

    fn each(&mut self, low: i64, high: i64) -> impl Iterator<Item = &mut Chunk> {
        self.chunks.iter_mut().filter(move |chunk| chunk.low <= high && low <= chunk.high)
    }
}

/// What another thread's chunks have is not here, and not found.
impl Store for Chunked {
    fn point(&mut self, key: i64) -> Option<i64> {
        self.of(key).and_then(|chunk| chunk.store.point(key))
    }

    fn count(&mut self, low: i64, high: i64) -> u64 {
        self.each(low, high).map(|chunk| chunk.store.count(low, high)).sum()
    }

    fn sum(&mut self, low: i64, high: i64) -> i64 {
        self.each(low, high).map(|chunk| chunk.store.sum(low, high)).sum()
    }

    fn insert(&mut self, key: i64, row: &[i32]) {
        if let Some(chunk) = self.of(key) {
            chunk.store.insert(key, row);
        }
    }

    fn delete(&mut self, key: i64) -> bool {
        self.of(key).is_some_and(|chunk| chunk.store.delete(key))
    }

    fn update(&mut self, from: i64, to: i64) -> bool {
        if let Some(chunk) = self.of(from)
            && (chunk.low..=chunk.high).contains(&to)
        {
            return chunk.store.update(from, to);
        }
        let is_gone = self.delete(from);
        let mut row = std::mem::take(&mut self.row);
        fill(to, &mut row);
        self.insert(to, &row);
        self.row = row;
        is_gone
    }

    fn counts(&self) -> Counts {
        let mut all = Counts::default();
        self.chunks.iter().for_each(|chunk| all.add(chunk.store.counts()));
        all
    }

    fn bytes(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.store.bytes()).sum()
    }

    fn check(&self) {
        self.chunks.iter().for_each(|chunk| chunk.store.check());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::twin::compare;
    use crate::workloads::Workload;

    const PAYLOADS: usize = 16;

    fn shape(rows: usize, ghosts: f64) -> Shape {
        Shape {
            rows,
            payloads: PAYLOADS,
            chunk: rows,
            block: 32,
            partitions: 9,
            ghosts,
            delta: 0.05,
            access: Access::OF_THE_PAPER,
            limits: Limits::default(),
        }
    }

    /// All layouts, with and without ghosts, against the twin.
    #[test]
    fn all_layouts_equal_their_twin() {
        for (seed, ghosts) in [(1, 0.0), (2, 0.02), (3, 0.3)] {
            let shape = shape(1000, ghosts);
            for workload in [Workload::HybridPoint, Workload::UpdateUniform] {
                let frequency = workload.frequency(shape.blocks(), 1000.0);
                for mode in Mode::ALL {
                    let mut table = shape.table(mode, &shape.plans(mode, &frequency), |_| true);
                    compare(mode.name(), &mut table, 1000, PAYLOADS, seed);
                }
            }
        }
    }

    /// Without reads, few ghosts are pooled in wide partitions; with them partitions are narrow. Growth
    /// favours few partitions, and as many rows that go as come do not.
    #[test]
    fn boundaries_and_ghosts_are_solved_together() {
        let shape = Shape { chunk: 100_000, block: 1000, ..shape(100_000, 0.001) };
        let plan = |workload: Workload| {
            let frequency = workload.frequency(shape.blocks(), 1e6);
            let plan = shape.plans(Mode::CasperJoint, &frequency).remove(0).expect("it has partitions");
            assert!(plan.ghosts.as_ref().expect("it has ghosts").iter().sum::<u64>() <= 100);
            plan.partitioning.partitions()
        };
        let [growing, balanced] = [Workload::HybridPoint, Workload::UpdateUniform].map(plan);
        assert!(growing < balanced, "{growing} {balanced}");
        let dense = Workload::UpdateUniform.frequency(shape.blocks(), 1e6);
        assert!(partitions_of(&shape.plans(Mode::Casper, &dense)) < balanced);
    }

    /// What structures count is what they do.
    #[test]
    fn mechanisms_are_counted() {
        let rows = loaded(0..60, PAYLOADS);
        let row = [0; PAYLOADS];
        let starts: Vec<usize> = (0..60).step_by(10).collect();
        let mut chunk = Partitioned::new(&rows, &starts, Some(&[1, 0, 0, 0, 0, 4]), 1);
        chunk.insert(key_of(3) + 1, &row);
        assert_eq!(chunk.counts(), Counts { ghosts: 1, ..Counts::default() });
        chunk.insert(key_of(33) + 1, &row);
        assert_eq!(chunk.counts(), Counts { ghosts: 1, rippled: 1, crossed: 2, ..Counts::default() });
        let mut delta = Delta::new(rows, 2);
        (0..5).for_each(|number| delta.insert(key_of(number) + 1, &row));
        assert_eq!(delta.counts().merges, 2);
    }

    /// Partitions so narrow that more slots ripple than they have rows, and some without any row.
    #[test]
    fn narrow_partitions_equal_their_twin() {
        for (ghosts, batch) in [(None, 1), (Some(0), 1), (Some(0), 8), (Some(1), 8), (Some(3), 2)] {
            let rows = loaded(0..60, PAYLOADS);
            let starts: Vec<usize> = (0..60).step_by(2).collect();
            let ghosts = ghosts.map(|ghosts| vec![ghosts; starts.len()]);
            let mut chunk = Partitioned::new(&rows, &starts, ghosts.as_deref(), batch);
            compare("narrow", &mut chunk, 60, PAYLOADS, 7);
        }
    }

    /// Each key is in one chunk; ranges and changes of keys cross their borders.
    #[test]
    fn chunks_divide_the_keys() {
        let mut shape = shape(1000, 0.01);
        shape.chunk = 256;
        let frequency = Workload::HybridPoint.frequency(shape.blocks(), 1000.0);
        for mode in Mode::ALL {
            let plans = shape.plans(mode, &frequency);
            let mut all = shape.table(mode, &plans, |_| true);
            let (mut even, mut odd) =
                (shape.table(mode, &plans, |n| n % 2 == 0), shape.table(mode, &plans, |n| n % 2 == 1));
            let (low, high) = (key_of(100), key_of(900));
            assert_eq!(all.count(low, high), 801);
            assert_eq!(even.count(low, high) + odd.count(low, high), 801);
            assert!(all.update(key_of(3), key_of(999) + 1));
            assert_eq!((all.point(key_of(3)), all.count(i64::MIN, i64::MAX)), (None, 1000));
            assert!(all.point(key_of(999) + 1).is_some());
        }
    }
}
