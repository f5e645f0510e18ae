//! Nodes: what a version of a table is made of, before it is known what a node holds.
//!
//! ```text
//! stamp        when a node was made
//! prefetch ◀── link ──▶ ahead      a pointer to a node, and where what that leads to begins
//! ```
//! Blocks are nodes, so this stands below them. Which nodes there are, and who may write them, is in
//! [`crate::tree`].

mod ahead;
mod link;
pub(crate) mod prefetch;
mod stamp;

pub(crate) use ahead::{Ahead, Linked};
pub(crate) use link::Link;
pub(crate) use stamp::Stamp;
