//! Finds the partitions, and the number of ghost slots in each, that suit a workload: the optimizer of
//! *Optimal Column Layout for Hybrid Workloads* (Athanassoulis, Bøgh, Idreos, PVLDB 12(13), 2019), solved
//! exactly and without an integer programming solver.
//!
//! Pure mathematics over numbers: this crate depends on no tables, files or threads, and on no other crate.
//!
//! ```text
//! outlook     what each kind of operation costs, for people who want to know
//! standing    when to change to another layout, with a bound on regret
//! ghosts      allocation of ghost slots, alone and together with the boundaries
//! solver      the best partitioning within limits
//! cost        the cost of a workload, as terms by block: the paper's model, and our engine's
//! frequency   the ten histograms
//! partitioning, random
//! ```
//! Each depends only on those below it. The design is described in
//! [docs/design/layout.md](../../../docs/design/layout.md).

pub mod cost;
pub mod frequency;
pub mod ghosts;
pub mod outlook;
pub mod partitioning;
pub mod random;
pub mod solver;
pub mod standing;
