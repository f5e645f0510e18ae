//! `FETCH FIRST n ROWS WITH TIES`: the first rows of an order, and those after them that are equal to the
//! last one in it.
//!
//! ```text
//! SELECT a FROM t ORDER BY b OFFSET m FETCH FIRST n ROWS WITH TIES
//!   ⇒  SELECT a FROM t QUALIFY rank() OVER (ORDER BY b) <= n + m ORDER BY b OFFSET m
//! ```
//! Names and numbers of results in the order's keys are replaced by the results. Not supported: set
//! operations, `DISTINCT`, `ORDER BY ALL`, and a share of the rows (`PERCENT`).

use entasis_syntax::parse::parse_query;
use entasis_vector::{Error, Result};
use sqlparser::ast::{
    BinaryOperator, Expr, LimitClause, OrderBy, OrderByExpr, OrderByKind, Query, SelectItem, SetExpr, Value,
    WindowType,
};

/// Rewrites a query with `WITH TIES`.
///
/// # Errors
/// Input, without an order; not supported, for the cases listed in the module.
pub(super) fn apply(query: &mut Query) -> Result<()> {
    if !query.fetch.as_ref().is_some_and(|fetch| fetch.with_ties) {
        return Ok(());
    }
    let Some(fetch) = query.fetch.take() else { return Ok(()) };
    if fetch.percent {
        return Err(Error::not_supported("FETCH FIRST … PERCENT"));
    }
    let Some(OrderBy { kind, .. }) = &query.order_by else {
        return Err(Error::input("FETCH FIRST … WITH TIES needs an ORDER BY"));
    };
    let offset = match &query.limit_clause {
        None => None,
        Some(LimitClause::LimitOffset { limit: None, offset, .. }) => {
            offset.as_ref().map(|offset| offset.value.clone())
        }
        Some(_) => return Err(Error::input("a query has both LIMIT and FETCH")),
    };
    let (OrderByKind::Expressions(keys), SetExpr::Select(select)) = (kind, &mut *query.body) else {
        return Err(unsupported());
    };
    if select.distinct.is_some() {
        return Err(unsupported());
    }
    let keys: Vec<OrderByExpr> = keys
        .iter()
        .map(|key| OrderByExpr { expr: meant(&key.expr, &select.projection), ..key.clone() })
        .collect();
    let first = fetch.quantity.unwrap_or_else(|| Expr::value(Value::Number("1".into(), false)));
    let most = match offset {
        Some(offset) => {
            let (left, right) =
                (Box::new(Expr::Nested(Box::new(first))), Box::new(Expr::Nested(Box::new(offset))));
            Expr::BinaryOp { left, op: BinaryOperator::Plus, right }
        }
        None => first,
    };
    let template = parse_query("SELECT 1 FROM t QUALIFY rank() OVER (ORDER BY a) <= 0")?;
    let SetExpr::Select(template) = *template.body else { return Err(Error::internal("a SELECT is one")) };
    let mut ranked = template.qualify.ok_or_else(|| Error::internal("a QUALIFY is one"))?;
    if let Expr::BinaryOp { left, right, .. } = &mut ranked {
        **right = Expr::Nested(Box::new(most));
        if let Expr::Function(function) = &mut **left
            && let Some(WindowType::WindowSpec(window)) = &mut function.over
        {
            window.order_by = keys;
        }
    }
    select.qualify = Some(match select.qualify.take() {
        Some(_) => return Err(unsupported()),
        None => ranked,
    });
    Ok(())
}

fn unsupported() -> Error {
    Error::not_supported("FETCH FIRST … WITH TIES with ORDER BY ALL, DISTINCT, QUALIFY or a set operation")
        .with_hint("put the query into a subquery: SELECT * FROM (…) ORDER BY … FETCH FIRST …")
}

/// What a key of an order refers to: the result with its name or number, or itself.
pub(super) fn meant(key: &Expr, results: &[SelectItem]) -> Expr {
    let of_item = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr.clone()),
        _ => None,
    };
    let found = match key {
        Expr::Identifier(name) => {
            let is_it = |item: &&SelectItem| match item {
                SelectItem::ExprWithAlias { alias, .. } => alias.value.eq_ignore_ascii_case(&name.value),
                _ => false,
            };
            results.iter().find(is_it).and_then(of_item)
        }
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => {
                let place = digits.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
                place.and_then(|place| results.get(place)).and_then(of_item)
            }
            _ => None,
        },
        _ => None,
    };
    found.unwrap_or_else(|| key.clone())
}
