//! The function library ([`entasis_functions`]) as DataFusion's binder sees it, and the functions that are
//! its own.
//!
//! | | computed by |
//! |---|---|
//! | [`native`] | the engine's expressions |
//! | [`catalog`] | kernels of the library, row by row |
//! | [`aggregates`] | states of the library |
//! | [`scalar`] | DataFusion's library, over Arrow arrays; some with other types ([`unifying`]) |
//! | [`sequence`] | a sequence of the catalog |
//! | [`outer_aggregate`] | an aggregate of a query that encloses a subquery |
//! | [`window_call`] | the engine's windows; each call is a function of its own |
//! | [`time`] | functions of the library, value by value |
//! | [`average`], [`sum`] | the engine; here are their types |
//!
//! DataFusion's `count`, `min`, `max`, `bool_and`, `bool_or` and `any_value` are computed by the engine, too.
//! The [`Library`] finds functions by name.
//!
//! ```text
//! outer_aggregate  window_call                     functions that are made for a call
//! library                                          all functions by name
//! catalog  aggregates  time  native                our functions
//! average ← sum   unifying   scalar   sequence     functions of DataFusion's library, and of sequences
//! ```

pub(crate) mod aggregates;
pub(crate) mod average;
pub(crate) mod catalog;
mod library;
pub(crate) mod native;
pub(crate) mod outer_aggregate;
pub(crate) mod scalar;
pub(crate) mod sequence;
pub(crate) mod sum;
pub(crate) mod time;
pub(crate) mod unifying;
pub(crate) mod window_call;

pub(crate) use library::Library;
