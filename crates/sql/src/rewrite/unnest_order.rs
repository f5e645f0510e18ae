//! `SELECT unnest(l) AS h FROM t ORDER BY id, h`: a list is taken apart, and the rows are ordered by what is
//! no result. The binder looks for such keys among the results of the rows that are taken apart, where they
//! are missing. It also takes the columns that results read for these results if they are called the same
//! (`SELECT unnest(l), a + 1 AS a`). So results become those of a query within the query, under other names:
//!
//! ```text
//! SELECT "…0" AS h FROM (SELECT unnest(l) AS "…0", id AS "…key0" FROM t) ORDER BY "…key0", "…0"
//! ```
//!
//! Not done for lists with `*`. The keys of a `DISTINCT` are results.

use super::unnests::UNNEST;
use crate::hidden::MARK;
use entasis_syntax::parse::parse_query;
use entasis_syntax::walk::Walk;
use entasis_vector::Result;
use sqlparser::ast::{
    Expr, Ident, OrderBy, OrderByKind, Query, SelectItem, SetExpr, TableFactor, Value, Visitor,
    visit_expressions,
};
use std::collections::HashSet;
use std::ops::ControlFlow;

/// Gives a query whose list takes lists apart the keys of its order as results.
///
/// # Errors
/// Internal.
pub(super) fn apply(query: &mut Query) -> Result<()> {
    let SetExpr::Select(select) = &mut *query.body else { return Ok(()) };
    let keys = match &mut query.order_by {
        None => &mut [][..],
        Some(OrderBy { kind: OrderByKind::Expressions(keys), .. }) => keys,
        Some(_) => return Ok(()),
    };
    if !takes_apart(&select.projection) {
        return Ok(());
    }
    // Expression and name of each result.
    let result = |item: &SelectItem| match item {
        SelectItem::ExprWithAlias { expr, alias } => Some((expr.clone(), alias.clone())),
        SelectItem::UnnamedExpr(expr @ Expr::Identifier(name)) => Some((expr.clone(), name.clone())),
        SelectItem::UnnamedExpr(expr @ Expr::CompoundIdentifier(parts)) => {
            Some((expr.clone(), parts.last()?.clone()))
        }
        SelectItem::UnnamedExpr(expr) => Some((expr.clone(), Ident::with_quote('"', expr.to_string()))),
        _ => None,
    };
    let Some(results) = select.projection.iter().map(result).collect::<Option<Vec<_>>>() else {
        return Ok(());
    };
    let place = |key: &Expr| match key {
        Expr::Identifier(name) => {
            results.iter().position(|(_, own)| own.value.eq_ignore_ascii_case(&name.value))
        }
        key => results.iter().position(|(expr, _)| expr == key),
    };
    let is_number =
        |key: &Expr| matches!(key, Expr::Value(value) if matches!(value.value, Value::Number(..)));
    let are_results = keys.iter().all(|key| is_number(&key.expr) || place(&key.expr).is_some());
    let is_settled = if are_results { !are_misread(&results) } else { select.distinct.is_some() };
    if is_settled {
        return Ok(());
    }
    let hidden = |name: String| Ident::with_quote('"', format!("{MARK}{name}"));
    let mut inner = Vec::with_capacity(results.len() + keys.len());
    let mut outer = Vec::with_capacity(results.len());
    for (number, (expr, name)) in results.iter().enumerate() {
        let own = hidden(number.to_string());
        inner.push(SelectItem::ExprWithAlias { expr: expr.clone(), alias: own.clone() });
        outer.push(SelectItem::ExprWithAlias { expr: Expr::Identifier(own), alias: name.clone() });
    }
    for (number, key) in keys.iter_mut().enumerate() {
        let name = match place(&key.expr) {
            _ if is_number(&key.expr) => continue,
            Some(place) => hidden(place.to_string()),
            None => {
                let own = hidden(format!("key{number}"));
                let expr = key.expr.clone();
                inner.push(SelectItem::ExprWithAlias { expr, alias: own.clone() });
                own
            }
        };
        key.expr = Expr::Identifier(name);
    }
    select.projection = inner;
    let mut around = parse_query(&format!("SELECT 1 FROM (SELECT 1) AS \"{MARK}apart\""))?;
    if let SetExpr::Select(select) = &mut *around.body
        && let TableFactor::Derived { subquery, .. } = &mut select.from[0].relation
    {
        select.projection = outer;
        std::mem::swap(&mut query.body, &mut subquery.body);
        query.body = around.body;
    }
    Ok(())
}

/// True if a result is called as a column that results read, and is not that column.
fn are_misread(results: &[(Expr, Ident)]) -> bool {
    let mut read = HashSet::new();
    for (expr, _) in results {
        let _ = visit_expressions(expr, |part| {
            read.extend(last_name(part).map(|name| name.value.to_ascii_lowercase()));
            ControlFlow::<()>::Continue(())
        });
    }
    results.iter().any(|(expr, name)| {
        let is_itself = last_name(expr).is_some_and(|own| own.value.eq_ignore_ascii_case(&name.value));
        !is_itself && read.contains(&name.value.to_ascii_lowercase())
    })
}

/// The name of a column, without that of its table.
fn last_name(expr: &Expr) -> Option<&Ident> {
    match expr {
        Expr::Identifier(name) => Some(name),
        Expr::CompoundIdentifier(parts) => parts.last(),
        _ => None,
    }
}

/// True if an item of a list takes a list apart.
fn takes_apart(list: &[SelectItem]) -> bool {
    struct Look(usize);
    impl Visitor for Look {
        type Break = ();
        fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            self.0 += 1;
            ControlFlow::Continue(())
        }
        fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            self.0 -= 1;
            ControlFlow::Continue(())
        }
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            match expr {
                Expr::Function(function)
                    if self.0 == 0
                        && function.name.to_string().trim_matches('"').eq_ignore_ascii_case(UNNEST) =>
                {
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(()),
            }
        }
    }
    list.iter().any(|item| item.walk(&mut Look(0)).is_break())
}
