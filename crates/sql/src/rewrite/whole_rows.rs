//! `count(t.*)`: counts the rows of `t`, not those that an outer join has filled with NULLs.
//!
//! The binder takes it for `count(*)`. So the table gets a column that is true in each of its rows, and NULL
//! where there is none:
//!
//! ```text
//! SELECT count(r.*) FROM l LEFT JOIN r ON …
//!     ⇒  SELECT count(r."…row") FROM l LEFT JOIN (SELECT *, TRUE AS "…row" FROM r) AS r ON …
//! ```
//! Such a count cannot stand beside a `*` that would show the column. Without a join, nothing is changed.

use super::order_by::is_aggregate_call;
use crate::hidden::MARK;
use entasis_syntax::build::{named, qualified, select_from, table_alias};
use entasis_syntax::walk::WalkMut;
use entasis_vector::{Error, Result};
use sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, OrderBy, Query, Select, SelectItem,
    SetExpr, Statement, TableFactor, TableWithJoins, Value, VisitorMut, WildcardAdditionalOptions,
};
use std::ops::ControlFlow;

/// Gives tables whose rows are counted a column to count.
///
/// # Errors
/// Internal.
pub(super) fn apply(statement: &mut Statement) -> Result<()> {
    match statement.walk_mut(&mut Queries) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Queries;

impl VisitorMut for Queries {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        let order_by = query.order_by.as_mut();
        if let SetExpr::Select(select) = &mut *query.body
            && let Err(error) = count_rows(select, order_by)
        {
            return ControlFlow::Break(error);
        }
        ControlFlow::Continue(())
    }
}

fn count_rows(select: &mut Select, order_by: Option<&mut OrderBy>) -> Result<()> {
    if select.from.iter().all(|table| table.joins.is_empty()) {
        return Ok(());
    }
    let mut counts = Counts { tables: Vec::new(), depth: 0 };
    let _ = select.projection.walk_mut(&mut counts);
    for part in [&mut select.having, &mut select.qualify].into_iter().flatten() {
        let _ = part.walk_mut(&mut counts);
    }
    if let Some(order_by) = order_by {
        let _ = order_by.walk_mut(&mut counts);
    }
    for table in &counts.tables {
        select.from.iter_mut().try_for_each(|from| add_column(from, table))?;
    }
    Ok(())
}

/// The name of the column.
fn column() -> String {
    format!("{MARK}row")
}

/// Replaces `t.*` in aggregates, and finds which tables there are.
struct Counts {
    tables: Vec<String>,
    depth: usize,
}

impl VisitorMut for Counts {
    type Break = std::convert::Infallible;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Self::Break> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Self::Break> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
        if self.depth > 0 || !is_aggregate_call(function) {
            return ControlFlow::Continue(());
        }
        if let FunctionArguments::List(list) = &mut function.args
            && list.duplicate_treatment.is_none()
            && let [FunctionArg::Unnamed(arg)] = list.args.as_mut_slice()
            && let FunctionArgExpr::QualifiedWildcard(name) = arg
            && let Some(table) = name.0.last().and_then(|part| part.as_ident()).cloned()
        {
            *arg = FunctionArgExpr::Expr(qualified(&table, &column()));
            let table = table.value.to_ascii_lowercase();
            if !self.tables.contains(&table) {
                self.tables.push(table);
            }
        }
        ControlFlow::Continue(())
    }
}

/// Adds the column to a table of this name.
fn add_column(from: &mut TableWithJoins, table: &str) -> Result<()> {
    let factors =
        std::iter::once(&mut from.relation).chain(from.joins.iter_mut().map(|join| &mut join.relation));
    for factor in factors {
        if let TableFactor::NestedJoin { table_with_joins, alias: None } = factor {
            add_column(table_with_joins, table)?;
            continue;
        }
        let name = match factor {
            TableFactor::Table { alias: Some(alias), .. }
            | TableFactor::Derived { alias: Some(alias), .. } => Some(alias.name.clone()),
            TableFactor::Table { name, alias: None, .. } => {
                name.0.last().and_then(|part| part.as_ident()).cloned()
            }
            _ => None,
        };
        let Some(name) = name.filter(|name| name.value.to_ascii_lowercase() == table) else { continue };
        let is_lateral = matches!(factor, TableFactor::Derived { lateral: true, .. });
        let alias = table_alias(name.clone());
        let mut query = select_from("t", table_alias(Ident::new("t")), |select| {
            let there = named(Expr::Value(Value::Boolean(true).into()), &column());
            select.projection = vec![SelectItem::Wildcard(WildcardAdditionalOptions::default()), there];
        })?;
        if let SetExpr::Select(select) = &mut *query.body {
            std::mem::swap(&mut select.from[0].relation, factor);
        }
        *factor = TableFactor::Derived {
            lateral: is_lateral,
            subquery: Box::new(query),
            alias: Some(alias),
            sample: None,
        };
    }
    Ok(())
}
