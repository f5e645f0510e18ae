//! Execution: an optimized plan is cut into pipelines, which a few workers run.

pub mod aggregate;
mod align;
mod compaction;
mod execute;
mod fetched;
mod filter;
mod gather;
pub(crate) mod group_table;
mod join;
mod key_filter;
mod limit;
pub mod materialized;
pub mod operator;
mod partial_distinct;
mod physical;
mod pipeline;
mod prefetch;
pub mod profile;
mod project;
pub mod result;
pub(crate) mod row_copier;
mod row_id;
mod scan;
mod scatter;
pub mod scheduler;
mod set_operation;
pub(crate) mod sink;
pub mod sort;
mod spill;
pub mod stream;
mod temp_compression;
mod trials;
pub mod tuple;
mod unnest;
mod values;
mod window;

pub use crate::context::{CancelFlag, Overdrawn, Progress, QueryContext, TempSpace, WorkerPool};
pub use crate::learned::Learned;
pub use crate::memory::{MemoryBudget, Reservation};
pub use crate::settings::{
    Compaction, FilterKind, JoinSpill, Readings, Searching, Settings, Spilling, Swapping, TableKind,
    TempCompression, parse_wanted, show_wanted,
};
pub use compaction::costs::{Behind, ChunkCosts};
pub use execute::{execute, programs};
pub use profile::{Profile, ProfileNode};
pub use result::{Collector, ResultSet};
pub use sink::{ResultSink, ResultWorker};
pub(crate) use spill::kept::{Keeper, KeptRows, PartReader};
pub use stream::{StreamReader, StreamSink};

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
