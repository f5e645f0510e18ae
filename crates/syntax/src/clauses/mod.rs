//! Refuses by name each clause that the parser accepts and we do not support.
//!
//! The parser knows the clauses of twenty dialects. Here each of its structures is destructured into all of
//! its fields: those that are used elsewhere, and those that are not supported, each with its name in SQL. A
//! field that a newer parser adds is a compile error until it is listed as one or the other.
//!
//! | module | structures |
//! |---|---|
//! | [`table`] | `CREATE TABLE` and constraints, `CREATE VIEW`, `CREATE INDEX` |
//! | [`query`] | queries: their clauses, tables and joins |
//! | [`expression`] | expressions, calls of functions, types |
//!
//! The statements that change rows are destructured where they are bound.

mod expression;
mod query;
mod table;

pub use expression::{expression, function};
pub use query::{cte, query, select, table_factor, wildcard};
pub use table::{
    check, create_index, create_table, create_view, foreign_key, named_only, primary_key, unique,
};

use entasis_vector::{Error, Result};

/// Refuses the first clause that is present.
pub fn refuse<const N: usize>(clauses: [(bool, &str); N]) -> Result<()> {
    match clauses.into_iter().find(|(is_there, _)| *is_there) {
        Some((_, name)) => Err(Error::not_supported(name)),
        None => Ok(()),
    }
}
