//! Rewrites the syntax tree before binding, where our semantics differ from DataFusion's:
//!
//! * **Names are case-insensitive**, quoted or not: every identifier is folded to lower case. The names of
//!   result columns are taken from the text first ([`display_names`]).
//! * **Unnamed results are named as they are written** (`sum(l_tax)`, not `sum(lineitem.l_tax)`), and may
//!   occur twice.
//! * **`INTERSECT` and `EXCEPT`** are bags under `ALL`; DataFusion plans them as semi and anti joins. They
//!   pass through the binder as a `UNION ALL`, which coerces the columns of both sides, under a table alias
//!   that no user can write ([`marked_set`](crate::hidden::marked_set)); lowering turns them back.
//! * **Lists and structs** are made and taken apart by functions ([`nested`]), those in FROM by a lateral
//!   query ([`unnests`]).
//! * **`ASOF JOIN`** becomes an inner or left join with a call around its inequality ([`asof`]).
//! * **`USING` and `NATURAL`** merge columns; the binder gets conditions and lists instead ([`using`]).
//! * **A derived table without a name** gets one ([`nameless`]); the column of a function in FROM gets that
//!   of its alias ([`scalars_in_from`]).
//! * **`count(t.*)`** counts a column that is in every row of `t` ([`whole_rows`]).
//! * **Equal volatile calls** stay several ([`volatile`]); a `QUALIFY` gets a window function ([`qualify`]).
//! * **Arguments like `a = 1`** are equalities ([`equalities`]).
//! * **Ambiguous names** in nested queries are refused ([`ambiguous`]).
//! * **A table of an outer query** may have the name of a column ([`outer_names`]).
//! * **An aggregate of an outer query** is computed there ([`aggregates`]).
//! * **`WITHIN GROUP`** becomes an argument, or the order of the rows ([`orders`]).
//! * **A `WITH` may hide another** of the same name, and is computed once where that matters ([`ctes`]).
//! * **Rows may be compared** ([`rows`]).
//! * **`SIMILAR TO`** becomes a match of the equivalent regular expression.
//! * **`INTERVAL` literals** and **`AT TIME ZONE`** become casts and calls ([`intervals`]).
//! * **`TABLESAMPLE`** becomes a condition or a limit on the rows ([`sample`]).
//! * **Grouping sets** become one grouping with a key that lists the sets ([`grouping`]).
//! * **`WITH RECURSIVE`** loses clauses that the binder would ignore ([`recursive`]).
//! * **Window functions** become calls of functions made for them ([`windows`]).
//! * **Text literals as conditions** are BOOLEANs ([`conditions`]); among values of another type they get
//!   that type ([`literals`]).
//! * **Casts are part of a name**: the binder finds groups and aggregates by name and leaves casts out of
//!   it; a call of [`native::exact`](crate::functions::native::exact) around every cast makes the difference
//!   visible.
//! * **Unsupported features** are refused here, by name and position.

mod aggregates;
mod ambiguous;
mod asof;
mod conditions;
mod ctes;
mod equalities;
mod grouping;
mod intervals;
mod literals;
mod nameless;
mod nested;
mod order_by;
mod orders;
mod outer_names;
mod qualify;
mod reads;
mod recursive;
mod rewriter;
mod rows;
mod sample;
mod scalars_in_from;
mod ties;
mod unnest_order;
mod unnests;
mod using;
mod using_key;
mod volatile;
mod whole_rows;
mod windows;

use self::rewriter::Rewriter;
use crate::binding::context::{Context, ResultNames};
use entasis_syntax::walk::WalkMut;
use entasis_vector::Result;
use sqlparser::ast::{Query, Select, SelectItem, SetExpr, Statement};
use std::ops::ControlFlow;

/// Rewrites a query for the binder.
///
/// # Errors
/// Not supported, for unsupported features; input, for unknown functions.
pub(crate) fn rewrite(statement: &mut Statement, names: ResultNames, context: &Context<'_>) -> Result<()> {
    equalities::apply(statement);
    nested::apply(statement);
    literals::apply(statement);
    sample::apply(statement)?;
    asof::apply(statement)?;
    nameless::apply(statement);
    scalars_in_from::apply(statement);
    whole_rows::apply(statement)?;
    ctes::apply(statement, context)?;
    using::apply(statement, context)?;
    ambiguous::apply(statement, context)?;
    outer_names::apply(statement, context);
    aggregates::apply(statement, context)?;
    let mut rewriter = Rewriter::new(context, names);
    match statement.walk_mut(&mut rewriter) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

/// The name that the user gave each item of a query's select list, or `None` if it is the column's own;
/// `None` as a whole if there are wildcards, whose number of columns is not known here.
pub(crate) fn display_names(query: &Query) -> Vec<Option<String>> {
    let mut body = &*query.body;
    loop {
        match body {
            SetExpr::SetOperation { left, .. } => body = &**left,
            SetExpr::Query(query) => body = &*query.body,
            SetExpr::Select(select) => {
                return select
                    .projection
                    .iter()
                    .filter(|item| !sample::is_mark(item))
                    .map(|item| match item {
                        SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.clone()),
                        _ => None,
                    })
                    .collect();
            }
            _ => return Vec::new(),
        }
    }
}

/// Passes `each` the SELECTs of a set operation, except those in brackets, which are visited separately.
fn each_arm(body: &mut SetExpr, each: &mut dyn FnMut(&mut Select) -> Result<()>) -> Result<()> {
    match body {
        SetExpr::Select(select) => each(select),
        SetExpr::SetOperation { left, right, .. } => {
            each_arm(left, each)?;
            each_arm(right, each)
        }
        _ => Ok(()),
    }
}
