//! Joins partition by partition, because memory does not suffice for all rows at once, or because the table
//! of a partition fits into a cache.
//!
//! ```text
//! build side → [build::BuildSink] ── rows by partition: [Split] ──→ those that do not fit into memory → [Store]
//!                    ↓ partitions in memory: one shared table
//! probe side → [route::Route] ── rows of partitions in files ─────────────────────────────────────────→ [Store]
//!                    ↓ the others
//!              [super::probe::Probe] → …                 later: [join_phase::JoinPhase], partition by partition → …
//! ```
//! This is a hybrid hash join (DeWitt et al., *Implementation Techniques for Main Memory Database Systems*,
//! SIGMOD 1984) that partitions by bits of a hash like radix joins (Bandle et al., *To Partition, or Not to
//! Partition*, SIGMOD 2021). Rows are written as [tuples](crate::exec::spill::rows).
//!
//! 1. *Build.* A worker whose rows do not fit splits them by the hash of their keys and writes the largest
//!    partitions until the others fit. A quarter of the memory that was free is left to others.
//! 2. *Table.* When all rows have arrived, more partitions are written if there is no memory for the table.
//!    The partitions in memory share one table, chosen as if there were no others.
//! 3. *Probe.* Rows of written partitions go to another file, unchanged. The others are joined at once.
//! 4. *Join phase.* At the end of the join's stream, each worker takes one partition at a time: it loads the
//!    build rows, builds their own table, pushes the probe rows through the same probe, and then the build
//!    tail.
//! 5. A partition that does not fit is split again, by other bits. If that makes it hardly smaller, one key
//!    has most of the rows: then the build rows are taken in *blocks* that fit, and all probe rows are read
//!    for each block. A byte per probe row remembers what earlier blocks found ([`states`]).
//!
//! Without keys there is one partition. So there is if a NULL may match every key and other conditions decide
//! (null-aware joins with several keys or with conditions), since each probe row must see all build rows.
//! With one key and no conditions it is enough to know whether there is a NULL anywhere.
//!
//! The scans of the probe side still receive the keys of all build rows ([`Seen`](super::table::Seen)).
//!
//! # In memory
//!
//! A *radix join* differs only in where partitions wait: rows of both sides stay in memory, as columns, and
//! all partitions are joined in the join phase. Memory is the second medium of a
//! [store](crate::exec::spill::store). A radix join is forced, or chosen when all build rows have arrived,
//! which are then split ([`strategy`](super::strategy)).
//!
//! 1. *First pass.* Each worker splits rows as they arrive into partitions of its own: nothing is shared or
//!    locked. When the build side has ended, the workers' partitions are put together, without copying, and
//!    the filter for the probe side is made from all of them.
//! 2. *Second pass.* If the build rows of a partition and their table are too large for a cache, the worker
//!    that takes the partition splits both sides again, into enough parts to make them small.
//! 3. If memory is short, partitions of a side go to the file; one partition may be partly in memory.
//!
//! With `bloom_radix`, a Bloom filter of all build keys is tested before a probe row is kept, unless a scan
//! tests the same keys anyway, and only while it rules out enough rows ([`crate::exec::trials`]). If the join
//! outputs rows without a match, a row that does not pass goes to the probe at once, whose table is empty.
//! This is Bandle, Giceva and Neumann's radix join with these differences: rows are columns, not tuples;
//! hashes are computed again and not kept; the number of partitions in the second pass is known from the
//! first, so there is no exact histogram; stores are ordinary ones (decision 13).
//!
//! Invariants: a build row is in exactly one table; a probe row meets exactly one partition, and in it all
//! build rows that may match. Partitions that are not in the store are probed at once, so a partition there
//! has build rows.
//!
//! Not here: writing and reading at the same time.

mod build_side;
mod choice;
pub(crate) mod join_phase;
mod policy;
mod report;
pub(crate) mod route;
mod shared;
pub(crate) mod skew;
mod split;
mod states;
mod statistics;
#[cfg(test)]
mod tests;
mod turns;

pub(crate) use build_side::SplitRows;
pub(crate) use shared::Partitioning;
pub(crate) use split::no_ids;
