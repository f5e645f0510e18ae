//! The experiments of the paper's evaluation, on this machine.
//!
//! | module | paper | |
//! |---|---|---|
//! | [`model`] | figure 9 | the cost model beside measured inserts and point queries |
//! | [`trade`] | figure 2a | throughput by the number of partitions, bare and on our engine |
//! | [`throughput`] | figures 12, 13 | six workloads by layout |
//! | [`ghosts`] | figure 14 | inserts by the share of ghosts |
//! | [`sla`] | figure 15 | limits on the latency of inserts |
//! | [`robust`] | figure 16 | layouts for another workload than they get |
//! | [`solver`] | figure 11 | the time of the optimizer |
//! | [`width`] | 6.2 | what a slice costs to read by the bits of its codes |
//! | [`drift`] | none | a week in which the workload drifts, and layouts that follow it or do not |

pub mod contest;
pub mod drift;
pub mod ghosts;
pub mod model;
pub mod robust;
pub mod sla;
pub mod solver;
pub mod throughput;
pub mod trade;
pub mod width;

use crate::column::Shape;
use entasis_layout::cost::Access;
use entasis_layout::solver::Limits;
use std::time::Duration;

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
    /// The shape of the bare column.
    pub fn shape(&self, access: Access) -> Shape {
        Shape {
            rows: self.rows,
            payloads: self.payloads,
            chunk: (1 << 20) / self.block * self.block,
            block: self.block,
            partitions: self.partitions,
            ghosts: self.ghosts,
            delta: self.delta,
            access,
            limits: Limits::default(),
        }
    }
}
