//! `WITH RECURSIVE t (a, b) USING KEY (a) AS (start UNION step)`: rows by key, of which the last one is kept.
//!
//! Neither the parser nor the binder knows the clause, so it passes through both in disguise:
//!
//! 1. *Tokens* ([`entasis_syntax::using_key`]). The columns of the key become additional columns of `t`,
//!    after one that no user can write.
//! 2. *Syntax tree*, here. They are removed again, and `t` gets a name with the key's number as a hidden part
//!    ([`crate::hidden::numbered`]). `recurring.t`, by which the recursive term reads all rows so far,
//!    becomes a table of that name with another hidden part. The binder takes a query for a recursion only if
//!    it reads `t` itself: if the recursive term does not, an empty read of it is added.
//! 3. *Lowering* finds the key by its number ([`crate::lower`]).
//!
//! Under `UNION`, a row that changes nothing is not gone on with. Aggregates in place of columns are refused,
//! and so is a key of a query that is not recursive.

use super::reads::reads;
use crate::hidden::{KEY, all_of, query_of_all};
use entasis_syntax::parse::parse_query;
use entasis_syntax::walk::Walk;
use entasis_vector::{Error, Result};
use sqlparser::ast::{Cte, Ident, ObjectName, Query, SetExpr, SetOperator, TableFactor, Visitor};
use std::ops::ControlFlow;

/// Removes the columns of its key from a query of a `WITH` and returns them in lower case.
pub(super) fn take_key(cte: &mut Cte) -> Option<Vec<String>> {
    let columns = &mut cte.alias.columns;
    let at = columns.iter().position(|column| column.name.value == KEY)?;
    let key = columns.split_off(at).into_iter().skip(1).map(|column| column.name.value.to_ascii_lowercase());
    Some(key.collect())
}

/// Prepares a query of this name, with a key, to be bound as a recursion.
///
/// # Errors
/// Input, if it does not read itself, or does so before there are rows.
pub(super) fn prepare(query: &mut Query, name: &str, shown: &str) -> Result<()> {
    let all = all_of(name);
    let SetExpr::SetOperation { op: SetOperator::Union, left, right, .. } = &mut *query.body else {
        let text = format!("{shown} has a key, and is not of the form: start UNION [ALL] step");
        return Err(Error::input(text));
    };
    if reads(&**left, &all) > 0 {
        return Err(Error::input(format!("{shown} reads itself in its first side, before there are rows")));
    }
    if reads(&**right, name) > 0 {
        return Ok(());
    }
    if reads(&**right, &all) == 0 {
        return Err(Error::input(format!("{shown} has a key, and does not read itself")));
    }
    let mut template = parse_query("SELECT 1 UNION ALL SELECT * FROM itself WHERE FALSE")?;
    if let SetExpr::SetOperation { left: step, right: itself, .. } = &mut *template.body {
        std::mem::swap(step, right);
        if let SetExpr::Select(itself) = &mut **itself
            && let TableFactor::Table { name: table, .. } = &mut itself.from[0].relation
        {
            *table = ObjectName::from(Ident::with_quote('"', name));
        }
    }
    *right = template.body;
    Ok(())
}

/// True if a query reads all rows so far of an enclosing recursion.
pub(super) fn reads_all(query: &Query) -> bool {
    struct Look;
    impl Visitor for Look {
        type Break = ();
        fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
            match relation.0.as_slice() {
                [part] if part.as_ident().is_some_and(|name| query_of_all(&name.value).is_some()) => {
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(()),
            }
        }
    }
    query.walk(&mut Look).is_break()
}
