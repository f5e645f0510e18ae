//! Physical planning: from the tree of an optimized plan to pipelines in an order in which they can run.
//!
//! A node becomes a [stream]: sources, the operators that their rows pass, and what is known of each output
//! column. Streaming nodes append an operator. A node that must see all rows ends the stream in a sink, which
//! makes pipelines, and starts a new one. Most streams have one part; `UNION ALL` and joins with a build tail
//! have several, which run one after another into the same sink.
//!
//! Top-down, each node passes on the columns that are [needed] above it, and no others. A stored column that
//! only programs and sums read has the narrowest physical type that holds its range; it is widened where it
//! is kept, compared as a key, or leaves the engine. The slots of join filters also go top-down
//! ([`crate::exec::key_filter::pushed`]). Build sides are planned, and run, before their probe sides, so a
//! slot is filled when the filter is first tested.
//!
//! The [builder] goes down the plan and makes the pipelines; how each kind of node is planned is in a file of
//! its own.

mod builder;
mod join;
mod leaves;
mod needed;
mod one_input;
mod set_operation;
mod sort;
mod stream;

pub(crate) use builder::Builder;
