//! The join graph: a tree of joins taken apart, so that it can be put together in any order.
//!
//! A *region* is a maximal tree of joins with the filters and cheap projections between them. Its leaves are
//! the graph's relations: scans or any other subplans. What holds the relations together:
//!
//! - **Classes** of expressions that are all equal, one a relation or more: `l_orderkey = o_orderkey`. A
//!   class joins any two sets of relations in which it has members, whichever pair the statement wrote down.
//! - Other **predicates** over two relations or more, applied as soon as all of them are together.
//! - **Attached** relations: the right side of a left, semi, anti or mark join. For one row of the left side
//!   such a join is a function of a few of its columns, so it commutes with inner joins that do not look at
//!   its result. An attached relation may join at any time, alone, once the relations whose columns its
//!   condition reads are together. That lets a semi join reduce its relation before all others, or wait until
//!   hardly any rows are left (TPC-H Q18, Q21).
//!
//! Computed columns are replaced by what they are computed from and computed above the region. Full and
//! single joins and volatile conditions end a region.
//!
//! A constant that is compared with one member of a class is compared with the others too: each relation is
//! filtered.

mod collect;
mod estimates;
mod graph;
mod links;
mod readers;
mod transfer;

pub(super) use graph::{Graph, Link, RELATIONS_MAX, Set, members};
