//! `WITH RECURSIVE`, in a form that the binder accepts.
//!
//! The binder takes every set operation of such a `WITH` for a recursion, and ignores everything in its query
//! except the two sides. So queries that do not read themselves are put into brackets, and other clauses of
//! those that do are refused.

use super::reads::reads;
use entasis_syntax::parse::parse_query;
use entasis_vector::{Error, Result};
use sqlparser::ast::{Cte, SetExpr, SetOperator, With};

/// Whether a query of a `WITH RECURSIVE` reads itself.
pub(super) fn reads_itself(cte: &Cte) -> bool {
    reads(&*cte.query, &cte.alias.name.value.to_ascii_lowercase()) > 0
}

/// Prepares the queries of a `WITH RECURSIVE` for the binder.
///
/// # Errors
/// Input, for a query that reads itself elsewhere than in the second side of a `UNION`; not supported, for
/// other clauses of such a query.
pub(super) fn settle(with: &mut With) -> Result<()> {
    for cte in &mut with.cte_tables {
        let name = cte.alias.name.value.clone();
        if !reads_itself(cte) {
            if let SetExpr::SetOperation { .. } = &*cte.query.body {
                let query = std::mem::replace(&mut *cte.query, parse_query("SELECT 1").map(|query| *query)?);
                *cte.query.body = SetExpr::Query(Box::new(query));
            }
            continue;
        }
        let query = &cte.query;
        let SetExpr::SetOperation { op: SetOperator::Union, left, .. } = &*query.body else {
            let text = format!("{name} reads itself, and is not of the form: start UNION [ALL] step");
            return Err(Error::input(text));
        };
        if reads(left, &name.to_ascii_lowercase()) > 0 {
            return Err(Error::input(format!(
                "{name} reads itself in its first side, before there are rows"
            )));
        }
        if query.order_by.is_some()
            || query.limit_clause.is_some()
            || query.fetch.is_some()
            || query.with.is_some()
        {
            let error =
                Error::not_supported(format!("WITH, ORDER BY and LIMIT within {name}, which reads itself"));
            return Err(error.with_hint("write them in the query that reads it"));
        }
    }
    Ok(())
}
