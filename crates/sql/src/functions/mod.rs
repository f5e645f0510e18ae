//! The function library: which functions there are, under which names, and who computes them.
//!
//! | | computed by |
//! |---|---|
//! | [`native`] | the engine's expressions |
//! | [`catalog`] | [`kernels`] of ours, a row at a time; it also has an entry for every function of the others |
//! | [`aggregates`] | states of ours |
//! | [`scalar`] | DataFusion's library, over Arrow arrays: the few that are left of it, some with other types ([`unifying`]) |
//! | [`sequence`] | a sequence of the catalog |
//! | [`outer_aggregate`] | an aggregate of the query around a subquery |
//! | [`window`] | the engine's windows, of which each call is a function of its own ([`window_call`]) |
//! | [`time`] | us, value by value ([`by_value`]) |
//! | [`average`], [`sum`] and DataFusion's `count`, `min`, `max`, `bool_and`, `bool_or`, `any_value` | the engine; here are their types |
//!
//! Which there are is asked of the [`Library`].
//!
//! ```text
//! outer_aggregate  window_call                     functions that are made for a call
//! library                                          all functions by name
//! time                                             by_value, in a time zone
//! catalog                                          every name, with what the page says of it
//! kernels  aggregates  window  native  zone        what computes, beside what is said of it
//! definition  by_value                             what there is to say of a function
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
