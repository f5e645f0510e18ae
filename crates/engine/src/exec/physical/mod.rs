//! Physical planning: from the tree of an optimized plan to pipelines in an order in which they can run.
//!
//! ```text
//! logical plan ── planner ──▶ physical plan ── instantiate ──▶ pipelines
//! ```
//! 1. The [planner] makes the [physical plan](physical_plan), which is data: it can be [printed](display) and
//!    compared. It takes all decisions that do not depend on what is read: needed columns, physical types,
//!    build sides, where join filters are tested, where small chunks are copied together, where order
//!    matters. Expressions are compiled, since what is known of a program's output decides about those above.
//! 2. [`instantiate`] makes what runs: it opens relations, gives memory to each node and counters to
//!    profiles, and makes the parts that pipelines share, such as those of a [join](join_instance).
//!
//! A node becomes a [stream]: sources, the operators that their rows pass, and what is known of each output
//! column. Streaming nodes append an operator. A node that must see all rows ends the stream in a sink, which
//! makes pipelines, and starts a new one. Most streams have one part; `UNION ALL` and joins with a build tail
//! have several, which run one after another into the same sink.
//!
//! Top-down, each node passes on the columns that are [needed] above it, and no others. A stored column that
//! only programs and sums read has the narrowest physical type that holds its range; it is widened where it
//! is kept, compared as a key, or leaves the engine. The tests of join filters also go top-down
//! ([`crate::exec::key_filter::pushed`]). Build sides are planned, and run, before their probe sides, so a
//! slot is filled when the filter is first tested.
//!
//! How each kind of node is planned is in a file of its own.

mod display;
mod instantiate;
mod join;
mod join_instance;
mod leaves;
mod needed;
mod one_input;
mod physical_plan;
mod planned_join;
mod planned_work;
mod planner;
mod set_operation;
mod sort;
mod stream;
#[cfg(test)]
mod tests;

pub(crate) use instantiate::instantiate;
pub(crate) use planner::Planner;
