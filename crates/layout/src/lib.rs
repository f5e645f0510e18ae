//! Which partitions, and how many ghost slots in each, suit a workload: the optimizer of *Optimal Column
//! Layout for Hybrid Workloads* (Athanassoulis, Bøgh, Idreos, PVLDB 12(13), 2019), solved exactly and without
//! a solver of integer programs.
//!
//! Pure mathematics over numbers: this crate knows no table, no file, no thread, and no other crate.
//!
//! ```text
//! solver      the best partitioning within limits
//! cost        what a workload costs, as terms by block: the paper's model, and our engine's
//! workloads   the six workloads of the paper's evaluation
//! frequency   the ten histograms
//! partitioning, random
//! ```

pub mod cost;
pub mod frequency;
pub mod partitioning;
pub mod random;
pub mod solver;
pub mod workloads;
