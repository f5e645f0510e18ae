//! The experiments of the paper's evaluation, on this machine.
//!
//! | module | paper | |
//! |---|---|---|
//! | [`model`] | figure 9 | the cost model beside measured inserts and point queries |
//! | [`costs`] | figure 9 | the cost model of our storage beside measured operations on tables |
//! | [`trade`] | figure 2a | throughput by the number of partitions, bare and on our engine |
//! | [`throughput`] | figures 12, 13 | six workloads by layout |
//! | [`ghosts`] | figure 14 | inserts by the share of ghosts |
//! | [`sla`] | figure 15 | limits on the latency of inserts |
//! | [`robust`] | figure 16 | layouts for another workload than they get |
//! | [`solver`] | figure 11 | the time of the optimizer |
//! | [`width`] | 6.2 | what a slice costs to read by the bits of its codes |
//! | [`drift`] | none | a week in which the workload drifts, and layouts that follow it or do not |

pub mod contest;
pub mod costs;
pub mod drift;
pub mod ghosts;
pub mod model;
pub mod record;
pub mod robust;
pub mod sla;
pub mod solver;
pub mod throughput;
pub mod trade;
pub mod width;

use crate::column::Shape;
use crate::workloads::Workload;
use entasis_layout::cost::Access;
use entasis_layout::solver::Limits;
use std::time::Duration;

/// Rows of a column chunk at most.
const CHUNK: usize = 1 << 20;

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Rows that are loaded.
    pub rows: usize,
    /// Payload columns: 16 or 160 in the paper.
    pub payloads: usize,
    /// Threads.
    pub threads: usize,
    /// Operations of a run.
    pub operations: usize,
    /// A run ends after this, too.
    pub limit: Duration,
    /// The first so many operations of a run are not counted.
    pub warm: usize,
    /// Runs of each contestant, of which the median counts.
    pub runs: usize,
    /// Where rows only come, operations are at most so many times the rows, those before a run included.
    pub growth: f64,
    /// The layouts that take part; all, if none is named.
    pub layouts: Vec<String>,
    /// The numbers of the workloads, from 1 on; all, if there are none.
    pub workloads: Vec<usize>,
    /// Rows of a block.
    pub block: usize,
    /// Partitions of a chunk of the equi-width layouts.
    pub partitions: usize,
    /// Ghosts as a share of the rows, on the bare column.
    pub ghosts: f64,
    /// The delta as a share of the rows.
    pub delta: f64,
    /// The bare column is measured.
    pub bare: bool,
    /// Our engine is measured.
    pub engine: bool,
    /// The drift is measured so many times.
    pub rounds: usize,
    /// The number of the first random sequence.
    pub seed: u64,
}

impl Settings {
    /// What an experiment has where nothing else is asked for.
    pub fn of(experiment: &str) -> Settings {
        let settings = Settings {
            rows: 1_000_000,
            payloads: 16,
            threads: 1,
            operations: 100_000,
            limit: Duration::from_secs(2),
            warm: 0,
            runs: 1,
            growth: 0.2,
            layouts: Vec::new(),
            workloads: Vec::new(),
            block: 2048,
            partitions: 128,
            ghosts: 0.001,
            delta: 0.01,
            bare: true,
            engine: true,
            rounds: 3,
            seed: 1,
        };
        match experiment {
            // As many operations as rows touch the whole table, and fill a delta many times.
            "throughput" => Settings {
                operations: 20_000_000,
                limit: Duration::from_secs(30),
                warm: 1_000_000,
                runs: 5,
                ..settings
            },
            _ => settings,
        }
    }

    /// True if a layout takes part.
    pub fn has_layout(&self, name: &str) -> bool {
        self.layouts.is_empty() || self.layouts.iter().any(|own| own == name)
    }

    /// The workloads that are asked for.
    pub fn workloads(&self) -> impl Iterator<Item = Workload> {
        let numbered = Workload::ALL.into_iter().zip(1..);
        let asked = |number: usize| self.workloads.is_empty() || self.workloads.contains(&number);
        numbered.filter(move |(_, number)| asked(*number)).map(|(workload, _)| workload)
    }

    /// The shape of the bare column.
    pub fn shape(&self, access: Access) -> Shape {
        Shape {
            rows: self.rows,
            payloads: self.payloads,
            chunk: CHUNK / self.block * self.block,
            block: self.block,
            partitions: self.partitions,
            ghosts: self.ghosts,
            delta: self.delta,
            access,
            limits: Limits::default(),
        }
    }
}
