//! Where a compaction stands in its pipeline, which its policy depends on.

use super::costs::ChunkCosts;
use crate::learned::Learned;
use std::sync::Arc;

/// Where a compaction stands in its pipeline.
#[derive(Debug, Clone)]
pub(crate) struct Standing {
    /// The number of following operators that reduce chunks or cost the same for few rows as for many.
    pub operators: usize,
    /// The expected number of chunks from the pipeline's source.
    pub chunks: f64,
    /// What its chunks and rows cost on this machine.
    pub costs: ChunkCosts,
    /// What earlier executions have learnt.
    pub learned: Arc<Learned>,
    /// A hash of the plan below it, if thresholds are learned.
    pub plan: u64,
}
