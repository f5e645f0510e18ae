//! The binder: a query's syntax tree becomes a typed plan of the engine.
//!
//! One pass, without rewriting the tree. Names are found in scopes, from the innermost outward; each
//! expression is bound to an expression of the engine and what is given of its type ([`bound`]), so that
//! literals adopt types and columns do not; where expressions meet, the rules of [`entasis_functions::types`]
//! decide. Aggregates, window functions and subqueries become columns when they are bound; the operators that
//! compute them are made once all clauses of their SELECT are bound ([`select`]). Subqueries become joins,
//! dependent ones if they read columns of the rows around them, which the optimizer decorrelates.
//!
//! ```text
//! query                                    WITH, body, ORDER BY, LIMIT
//! select  assemble                          SELECT: its clauses, and their operators
//! set  with                                 set operations, VALUES; queries with names
//! group  star  sample                      clauses
//! from  join  asof  table                  relations and joins
//! subquery  call  aggregate  window        expressions that need an operator
//! expr  predicate  keyword                 expressions
//! rowvalue  native  operator               their parts
//! literal  settle  regroup  sets
//! binder  scope  bound  zone               state: names, types; the session's time zone
//! environment                              what a statement is bound against: catalog, parameters
//! ```
//!
//! This crate knows nothing of storage or files: tables, files and table functions are
//! [`entasis_engine::relation::Relation`]s that the catalog returns.

mod aggregate;
mod asof;
mod assemble;
mod binder;
mod bound;
mod call;
pub mod environment;
mod expr;
mod from;
mod group;
mod join;
mod keyword;
mod literal;
mod native;
mod operator;
mod predicate;
mod query;
mod regroup;
mod rowvalue;
mod sample;
mod scope;
mod select;
mod set;
mod sets;
mod settle;
mod star;
mod subquery;
mod table;
mod window;
mod with;
pub mod zone;

pub use binder::{Describe, Given, ROWS, TARGET};
pub use table::{REGISTERED, stem};

use binder::Binder;
use entasis_engine::plan::Plan;
use entasis_vector::Result;
use environment::{Catalog, Parameters};
use sqlparser::ast::Query;

/// Binds a query whose names are resolved ([`environment`]).
///
/// # Errors
/// Input, with position and hint where they are known, for unknown names and wrong types; not supported, with
/// the name of the feature; those of the catalog.
pub fn bind_query(
    query: &Query,
    catalog: &dyn Catalog,
    params: Parameters<'_>,
    given: &Given,
) -> Result<Plan> {
    Binder::new(catalog, params, given).plan(query)
}
