//! Keys of an `ORDER BY` that the binder would misinterpret.

use super::ties::meant;
use crate::functions::Library;
use crate::hidden::{MARK, hidden};
use entasis_syntax::parse::parse_query;
use entasis_syntax::walk::Walk;
use sqlparser::ast::{
    Distinct, Expr, Function, Ident, OrderBy, OrderByExpr, OrderByKind, Query, Select, SelectItem, SetExpr,
    TableFactor, Value, Visitor,
};
use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::ops::ControlFlow;

/// `ORDER BY ALL` orders by the numbers of the results. The binder supports it if all of them are columns: if
/// their number is not known (`*`), and after a set operation, the query is wrapped in another one.
pub(super) fn all(query: &mut Query) {
    let Some(OrderBy { kind: kind @ OrderByKind::All(_), .. }) = &mut query.order_by else { return };
    if let (SetExpr::Select(select), OrderByKind::All(options)) = (&*query.body, &*kind) {
        let results = &select.projection;
        if !results.iter().any(is_wildcard) {
            let key = |number: usize| OrderByExpr {
                expr: Expr::value(Value::Number(number.to_string(), false)),
                options: *options,
                with_fill: None,
            };
            *kind = OrderByKind::Expressions((1..=results.len()).map(key).collect());
            return;
        }
        let is_column = |item: &SelectItem| match item {
            SelectItem::UnnamedExpr(expr) => {
                matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
            }
            item => is_wildcard(item),
        };
        if results.iter().all(is_column) {
            return;
        }
    }
    let mut around = parse_query(&format!("SELECT * FROM (SELECT 1) AS \"{MARK}all\"")).expect("a constant");
    if let SetExpr::Select(select) = &mut *around.body
        && let TableFactor::Derived { subquery, .. } = &mut select.from[0].relation
    {
        std::mem::swap(&mut subquery.body, &mut query.body);
        query.body = around.body;
    }
}

/// `DISTINCT ON (1) … ORDER BY 1`: numbers of results are replaced by the results, which the binder compares.
pub(super) fn distinct_on(query: &mut Query) {
    let SetExpr::Select(select) = &mut *query.body else { return };
    let Select { distinct: Some(Distinct::On(keys)), projection, .. } = &mut **select else { return };
    let is_number =
        |expr: &Expr| matches!(expr, Expr::Value(value) if matches!(value.value, Value::Number(..)));
    if !keys.iter().any(is_number) {
        return;
    }
    let mut settle = |expr: &mut Expr| {
        if is_number(expr) {
            *expr = meant(expr, projection);
        }
    };
    keys.iter_mut().for_each(&mut settle);
    if let Some(OrderBy { kind: OrderByKind::Expressions(keys), .. }) = &mut query.order_by {
        keys.iter_mut().for_each(|key| settle(&mut key.expr));
    }
}

/// `SELECT DISTINCT f(x) … ORDER BY f(x)` orders by a result: it becomes the result's number, since the
/// binder would look for `x`.
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
        if !select.projection[..place].iter().any(is_wildcard) {
            *key = Expr::Value(Value::Number((place + 1).to_string(), false).into());
        }
    }
}

fn is_wildcard(item: &SelectItem) -> bool {
    matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))
}

/// `SELECT a AS b FROM t ORDER BY t.b`, or `ORDER BY max(b)`, orders by a column of `t` that has the name of
/// a result. The result gets a hidden name.
///
/// If the names of the results must be kept, because other queries refer to them, another query restores
/// them: `SELECT hidden AS b FROM (SELECT a AS hidden FROM t ORDER BY t.b) AS …`.
pub(super) fn columns(query: &mut Query, keep_names: bool) {
    let SetExpr::Select(select) = &mut *query.body else { return };
    let Some(OrderBy { kind: OrderByKind::Expressions(keys), .. }) = &mut query.order_by else { return };
    let mut columns = Columns::default();
    for key in keys.iter() {
        let _ = key.expr.walk(&mut columns);
    }
    if columns.found.is_empty() || (keep_names && select.projection.iter().any(is_wildcard)) {
        return;
    }
    let mut given_back = Vec::new();
    for (i, item) in select.projection.iter_mut().enumerate() {
        let SelectItem::ExprWithAlias { expr, alias } = item else { continue };
        let name = alias.value.to_ascii_lowercase();
        let is_itself = match expr {
            Expr::CompoundIdentifier(parts) => {
                parts.last().is_some_and(|own| own.value.to_ascii_lowercase() == name)
            }
            _ => false,
        };
        if !columns.found.contains(&name) || is_itself {
            continue;
        }
        let renamed = Ident::with_quote('"', format!("{name}{}", hidden(i as u64)));
        for key in keys.iter_mut() {
            if matches!(&key.expr, Expr::Identifier(own) if own.value.to_ascii_lowercase() == name) {
                key.expr = Expr::Identifier(renamed.clone());
            }
        }
        given_back.push((i, std::mem::replace(alias, renamed)));
    }
    if keep_names && !given_back.is_empty() {
        give_back(query, given_back);
    }
}

/// Names that can only be columns: qualified ones, and those in the arguments of aggregates.
#[derive(Default)]
struct Columns {
    found: HashSet<String>,
    /// Number of enclosing aggregates.
    aggregates: usize,
}

/// True for a call of an aggregate that is not over a window.
pub(super) fn is_aggregate(expr: &Expr) -> bool {
    matches!(expr, Expr::Function(function) if is_aggregate_call(function))
}

/// The same of a call.
pub(super) fn is_aggregate_call(function: &Function) -> bool {
    let name = function.name.to_string().trim_matches('"').to_ascii_lowercase();
    function.over.is_none() && Library::get().aggregate(&name).is_some()
}

impl Visitor for Columns {
    type Break = Infallible;

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Infallible> {
        match expr {
            Expr::CompoundIdentifier(parts) => {
                self.found.extend(parts.last().map(|name| name.value.to_ascii_lowercase()))
            }
            Expr::Identifier(name) if self.aggregates > 0 => {
                self.found.extend([name.value.to_ascii_lowercase()]);
            }
            expr => self.aggregates += usize::from(is_aggregate(expr)),
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Infallible> {
        self.aggregates -= usize::from(is_aggregate(expr));
        ControlFlow::Continue(())
    }
}

/// Wraps a query in another that restores the names of these of its results.
fn give_back(query: &mut Query, names: Vec<(usize, Ident)>) {
    let SetExpr::Select(select) = &mut *query.body else { return };
    let mut names: HashMap<usize, Ident> = names.into_iter().collect();
    let mut outer = Vec::with_capacity(select.projection.len());
    for (i, item) in select.projection.iter_mut().enumerate() {
        let (inside, outside) = match item {
            SelectItem::ExprWithAlias { alias, .. } => {
                (alias.clone(), names.remove(&i).unwrap_or_else(|| alias.clone()))
            }
            // A result without a name gets one, by which it can be referred to.
            SelectItem::UnnamedExpr(expr) => {
                let name = match &*expr {
                    Expr::Identifier(name) => name.clone(),
                    Expr::CompoundIdentifier(parts) => {
                        parts.last().cloned().unwrap_or_else(|| Ident::new(""))
                    }
                    other => Ident::with_quote('"', other.to_string()),
                };
                let inside = Ident::with_quote('"', format!("{}{}", name.value, hidden(i as u64)));
                let expr = std::mem::replace(expr, Expr::Value(Value::Null.into()));
                *item = SelectItem::ExprWithAlias { expr, alias: inside.clone() };
                (inside, name)
            }
            _ => return,
        };
        outer.push(SelectItem::ExprWithAlias { expr: Expr::Identifier(inside), alias: outside });
    }
    let mut around =
        parse_query(&format!("SELECT 1 FROM (SELECT 1) AS \"{MARK}ordered\"")).expect("a constant");
    if let SetExpr::Select(select) = &mut *around.body
        && let TableFactor::Derived { subquery, .. } = &mut select.from[0].relation
    {
        std::mem::swap(&mut **subquery, query);
        select.projection = outer;
        *query = *around;
    }
}
