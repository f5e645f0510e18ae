//! The function library: which functions exist, under which names, and what computes them.
//!
//! | | computed by |
//! |---|---|
//! | [`native`] | the engine's expressions |
//! | [`catalog`] | our [`kernels`], row by row; it also has an entry for every other function |
//! | [`aggregates`] | our states |
//! | [`scalar`] | DataFusion's library, over Arrow arrays; some with other types ([`unifying`]) |
//! | [`sequence`] | a sequence of the catalog |
//! | [`outer_aggregate`] | an aggregate of a query that encloses a subquery |
//! | [`window`] | the engine's windows; each call is a function of its own ([`window_call`]) |
//! | [`time`] | our code, value by value ([`by_value`]) |
//! | [`average`], [`sum`] | the engine; here are their types |
//!
//! DataFusion's `count`, `min`, `max`, `bool_and`, `bool_or` and `any_value` are computed by the engine, too.
//! The [`Library`] finds functions by name.
//!
//! ```text
//! outer_aggregate  window_call                     functions that are made for a call
//! library                                          all functions by name
//! time                                             by_value, in a time zone
//! catalog                                          every name, with its entry on the page
//! kernels  aggregates  window  native  zone        implementations, with their entries
//! definition  by_value                             what an entry consists of
//! average ← sum   unifying   scalar   sequence     functions of DataFusion's library, and of sequences
//! ```

pub(crate) mod aggregates;
pub(crate) mod average;
pub(crate) mod by_value;
pub(crate) mod catalog;
pub(crate) mod definition;
pub(crate) mod kernels;
mod library;
pub(crate) mod native;
pub(crate) mod outer_aggregate;
pub(crate) mod scalar;
pub(crate) mod sequence;
pub(crate) mod sum;
pub(crate) mod time;
pub(crate) mod unifying;
pub(crate) mod window;
pub(crate) mod window_call;
pub(crate) mod zone;

pub(crate) use library::Library;
