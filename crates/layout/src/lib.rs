//! Which partitions, and how many ghost slots in each, suit a workload: the optimizer of *Optimal Column
//! Layout for Hybrid Workloads* (Athanassoulis, Bøgh, Idreos, PVLDB 12(13), 2019), solved exactly and without
//! a solver of integer programs.
//!
//! Pure mathematics over numbers: this crate knows no table, no file, no thread, and no other crate.
//!
//! ```text
//! robust      one partitioning for several workloads; its regret
//! ghosts      ghost slots to partitions, alone and together with the boundaries
//! solver      the best partitioning within limits
//! cost        what a workload costs, as terms by block: the paper's model, and our engine's
//! workloads   the six workloads of the paper's evaluation
//! frequency   the ten histograms
//! partitioning, random
//! ```
//! Each knows only those below it. [docs/design/layout.md](../../../docs/design/layout.md) is the page.

pub mod cost;
pub mod frequency;
pub mod ghosts;
pub mod partitioning;
pub mod random;
pub mod robust;
pub mod solver;
pub mod workloads;
