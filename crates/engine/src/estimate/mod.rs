//! Estimates: what is believed of a plan before it runs. They choose among equal plans, and never make a
//! result wrong.
//!
//! - [`values`] is what is believed of rows and columns; [`selectivity`] says which share of them satisfies
//!   predicates.
//! - [`overlap`] says which part of two keys' values both of them have.
//! - [`rows`] derives it from a plan, bottom-up: [`estimate`], [`estimate_rows`].
//! - [`sample`] and [`related`] look at some rows, with [`tester`].
//! - [`width`] says what a row weighs that a join keeps, [`join_cost`] what a join costs by that.
//!
//! Rules of the optimizer, the printed plan and the executor ask; none of them is asked from here.

pub(crate) mod join_cost;
pub(crate) mod overlap;
pub(crate) mod related;
mod rows;
pub(crate) mod sample;
pub(crate) mod selectivity;
pub(crate) mod tester;
mod values;
pub(crate) mod width;

pub use rows::estimate_rows;
pub(crate) use rows::{each_estimate, estimate, estimate_join, key_selectivity};
pub(crate) use tester::share_in_zones;
pub(crate) use values::{ColumnEstimate, Estimate, combinations};
