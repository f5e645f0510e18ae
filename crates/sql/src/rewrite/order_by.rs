//! Keys of an `ORDER BY` that the binder would take for something else.

use crate::hidden::hidden;
use datafusion_sql::sqlparser::ast::{
    Distinct, Expr, Ident, OrderBy, OrderByKind, Query, SelectItem, SetExpr, Value, Visit, Visitor,
};
use std::collections::HashSet;
use std::convert::Infallible;
use std::ops::ControlFlow;

/// `SELECT DISTINCT f(x) … ORDER BY f(x)` orders by a result: by its number, since the binder would look for `x`.
pub(super) fn results(query: &mut Query) {
    let SetExpr::Select(select) = &*query.body else { return };
    let Some(OrderBy { kind: OrderByKind::Expressions(keys), .. }) = &mut query.order_by else { return };
    if !matches!(select.distinct, Some(Distinct::Distinct)) {
        return;
    }
    for key in keys.iter_mut().map(|key| &mut key.expr) {
        let same = |item: &SelectItem| match item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => expr == key,
            _ => false,
        };
        let is_name = matches!(key, Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_));
        let Some(place) = select.projection.iter().position(same).filter(|_| !is_name) else { continue };
        let is_wildcard =
            |item: &SelectItem| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..));
        if !select.projection[..place].iter().any(is_wildcard) {
            *key = Expr::Value(Value::Number((place + 1).to_string(), false).into());
        }
    }
}

/// `SELECT a AS b FROM t ORDER BY t.b` orders by a column of `t` that a result has the name of. The result gets a hidden name, which
/// a query within another cannot have, since that other one knows it by its own.
pub(super) fn columns(query: &mut Query) {
    struct Columns(HashSet<String>);
    impl Visitor for Columns {
        type Break = Infallible;
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Infallible> {
            if let Expr::CompoundIdentifier(parts) = expr {
                self.0.extend(parts.last().map(|name| name.value.to_lowercase()));
            }
            ControlFlow::Continue(())
        }
    }
    let SetExpr::Select(select) = &mut *query.body else { return };
    let Some(OrderBy { kind: OrderByKind::Expressions(keys), .. }) = &mut query.order_by else { return };
    let mut columns = Columns(HashSet::new());
    for key in keys.iter() {
        let _ = key.expr.visit(&mut columns);
    }
    for (i, item) in select.projection.iter_mut().enumerate() {
        let SelectItem::ExprWithAlias { expr, alias } = item else { continue };
        let name = alias.value.to_lowercase();
        let is_itself = matches!(expr, Expr::CompoundIdentifier(parts) if parts.last().is_some_and(|own| own.value.to_lowercase() == name));
        if !columns.0.contains(&name) || is_itself {
            continue;
        }
        let renamed = Ident::with_quote('"', format!("{name}{}", hidden(i as u64)));
        for key in keys.iter_mut() {
            if matches!(&key.expr, Expr::Identifier(own) if own.value.to_lowercase() == name) {
                key.expr = Expr::Identifier(renamed.clone());
            }
        }
        *alias = renamed;
    }
}
