//! Window functions: those that exist besides aggregates.

use crate::definition::{Definition, elsewhere};

/// Entries on the page of functions for those that can only be called with `OVER`.
pub const FUNCTIONS: &[Definition] = &[
    elsewhere(
        &["row_number"],
        "",
        "BIGINT",
        "the place of the row, from 1",
        &[("row_number() OVER ()", "1")],
    ),
    elsewhere(
        &["rank"],
        "",
        "BIGINT",
        "the row number of the first row that is equal in the order",
        &[("rank() OVER (ORDER BY 7)", "1")],
    ),
    elsewhere(
        &["dense_rank"],
        "",
        "BIGINT",
        "the number of the group of rows that are equal in the order, from 1",
        &[("dense_rank() OVER (ORDER BY 7)", "1")],
    ),
    elsewhere(
        &["percent_rank"],
        "",
        "DOUBLE",
        "(rank − 1) / (rows − 1), or 0 of a single row",
        &[("percent_rank() OVER ()", "0.0")],
    ),
    elsewhere(
        &["cume_dist"],
        "",
        "DOUBLE",
        "the share of rows up to the last one that is equal in the order",
        &[("cume_dist() OVER ()", "1.0")],
    ),
    elsewhere(
        &["ntile"],
        "buckets",
        "BIGINT",
        "which of so many buckets of about as many rows each, from 1",
        &[("ntile(4) OVER ()", "1")],
    ),
    elsewhere(
        &["lag"],
        "value[, offset[, default]]",
        "type of value",
        "the value of the row before, or so many rows before; the default, or NULL, where there is none",
        &[("lag(7) OVER ()", "NULL"), ("lag(7, 1, 0) OVER ()", "0")],
    ),
    elsewhere(
        &["lead"],
        "value[, offset[, default]]",
        "type of value",
        "the same of a row behind",
        &[("lead('a', 2, 'z') OVER ()", "z")],
    ),
    elsewhere(
        &["nth_value"],
        "value, n",
        "type of value",
        "the value of the frame's nth row",
        &[("nth_value(7, 1) OVER ()", "7"), ("nth_value(7, 2) OVER ()", "NULL")],
    ),
];

/// Functions that have another meaning with `OVER` than as aggregates, or can only be called with `OVER`.
const NAMES: [&str; 11] = [
    "row_number",
    "rank",
    "dense_rank",
    "percent_rank",
    "cume_dist",
    "ntile",
    "lag",
    "lead",
    "first_value",
    "last_value",
    "nth_value",
];

/// True for a function that is not an aggregate over its frame.
pub fn is_window_function(name: &str) -> bool {
    NAMES.contains(&name)
}

/// The names of all such functions.
pub fn names() -> impl Iterator<Item = &'static str> {
    NAMES.into_iter()
}
