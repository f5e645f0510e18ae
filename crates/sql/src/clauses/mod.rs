//! What the parser accepts and we do not obey is refused, by name.
//!
//! The parser knows the clauses of twenty dialects. Here each of its structures is taken apart into all of
//! its parts: those that are read elsewhere, and those that nobody obeys, each with its name in SQL. A part
//! that a newer parser adds is an error of the compiler until it stands among one or the other.
//!
//! | module | structures |
//! |---|---|
//! | [`table`] | `CREATE TABLE` and constraints, `CREATE VIEW`, `CREATE INDEX` |
//! | [`query`] | queries: their clauses, tables and joins |
//! | [`expression`] | expressions, calls of functions, types |
//!
//! The statements that change rows are taken apart where they are bound ([`crate::statements::change`]).

mod expression;
mod query;
mod table;

pub(crate) use expression::{expression, function};
pub(crate) use query::{cte, query, select, table_factor, wildcard};
pub(crate) use table::{
    check, create_index, create_table, create_view, foreign_key, named_only, primary_key, unique,
};

use entasis_vector::{Error, Result};

/// Refuses the first clause that is there.
pub(crate) fn refuse<const N: usize>(clauses: [(bool, &str); N]) -> Result<()> {
    match clauses.into_iter().find(|(is_there, _)| *is_there) {
        Some((_, name)) => Err(Error::not_supported(name)),
        None => Ok(()),
    }
}
