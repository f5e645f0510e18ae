//! Nodes of the version tree, whatever they hold.
//!
//! ```text
//! stamp        when a node was made
//! prefetch ◀── link ──▶ ahead      a pointer to a node, and what a reader of the node reads next
//! ```
//! Blocks are nodes, so this module is below them. The kinds of nodes, and who may write them, are in
//! [`crate::tree`].

mod ahead;
mod link;
pub(crate) mod prefetch;
mod stamp;

pub(crate) use ahead::{Ahead, Linked};
pub(crate) use link::Link;
#[cfg(test)]
pub(crate) use link::living;
pub(crate) use stamp::Stamp;
