//! Row values: `(a, b) = (c, d)`, `(a, b) IN ((1, 2), (3, 4))`, `(a, b) IN (SELECT …)`.
//!
//! Rows are equal if all their columns are, and ordered by the first that differs. `row IN (query)` is true if a row of
//! the query is equal, else NULL if one might be (its comparison is NULL), else false:
//!
//! ```text
//! CASE WHEN EXISTS (query WHERE equal) THEN true WHEN EXISTS (query WHERE equal IS NULL) THEN NULL ELSE false END
//! ```
//!
//! A condition asks only whether it is true, so where one stands ([`condition`]), `row IN (query)` is the first `EXISTS`
//! alone, and `row NOT IN (query)` is `NOT EXISTS (query WHERE equal IS NOT FALSE)`.

use crate::hidden::MARK;
use crate::parse::parse_query;
use datafusion_sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion_sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, Expr, Ident, Query, SetExpr, TableAliasColumnDef, TableFactor, UnaryOperator, Value,
};
use entasis_vector::{Error, Result};

/// Rewrites what compares rows at the top of a condition.
pub(super) fn condition(expr: &mut Expr) -> Result<()> {
    match expr {
        Expr::Nested(inner) => condition(inner),
        Expr::BinaryOp { left, op: BinaryOperator::And | BinaryOperator::Or, right } => {
            condition(left)?;
            condition(right)
        }
        Expr::UnaryOp { op: UnaryOperator::Not, expr: inner } => {
            let mut inner = &mut **inner;
            while let Expr::Nested(nested) = inner {
                inner = nested;
            }
            if let Expr::InSubquery { expr: row, subquery, negated } = inner
                && let Expr::Tuple(row) = &mut **row
            {
                *expr = holds(std::mem::take(row), subquery, !*negated)?;
            }
            Ok(())
        }
        Expr::InSubquery { expr: row, subquery, negated } => {
            if let Expr::Tuple(row) = &mut **row {
                *expr = holds(std::mem::take(row), subquery, *negated)?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Rewrites an expression that compares rows itself.
pub(super) fn expression(expr: &mut Expr) -> Result<()> {
    match expr {
        Expr::BinaryOp { left, op, right } => {
            if let (Expr::Tuple(left), Expr::Tuple(right)) = (&mut **left, &mut **right) {
                *expr = compare(op, std::mem::take(left), std::mem::take(right))?;
            }
        }
        Expr::InList { expr: row, list, negated } => {
            let Expr::Tuple(row) = &mut **row else { return Ok(()) };
            let equal = |item| match item {
                Expr::Tuple(item) => compare(&BinaryOperator::Eq, row.clone(), item),
                other => Err(Error::input(format!("{other} is not a row of {} values", row.len()))),
            };
            let found = any(std::mem::take(list).into_iter().map(equal).collect::<Result<_>>()?);
            *expr = if *negated { not(found) } else { found };
        }
        Expr::InSubquery { expr: row, subquery, negated } => {
            let Expr::Tuple(row) = &mut **row else { return Ok(()) };
            let row = std::mem::take(row);
            let found = exists(row.clone(), subquery.clone(), |equal| equal)?;
            let unknown = exists(row, subquery.clone(), |equal| Expr::IsNull(Box::new(equal)))?;
            let result = |found: bool| value(Value::Boolean(found != *negated));
            *expr = Expr::Case {
                case_token: AttachedToken::empty(),
                end_token: AttachedToken::empty(),
                operand: None,
                conditions: vec![
                    CaseWhen { condition: found, result: result(true) },
                    CaseWhen { condition: unknown, result: value(Value::Null) },
                ],
                else_result: Some(Box::new(result(false))),
            };
        }
        _ => {}
    }
    Ok(())
}

/// Whether `row [NOT] IN (query)` is true.
fn holds(row: Vec<Expr>, query: &mut Box<Query>, negated: bool) -> Result<Expr> {
    let query = query.clone();
    match negated {
        false => exists(row, query, |equal| equal),
        true => Ok(not(exists(row, query, |equal| Expr::IsNotFalse(Box::new(equal)))?)),
    }
}

/// `EXISTS (SELECT 1 FROM (query) AS hidden (names) WHERE test(row = names))`
fn exists(row: Vec<Expr>, query: Box<Query>, test: impl Fn(Expr) -> Expr) -> Result<Expr> {
    let table = format!("{MARK}rows");
    let names: Vec<Ident> = (0..row.len()).map(|i| Ident::with_quote('"', format!("{MARK}value{i}"))).collect();
    let columns =
        names.iter().map(|name| Expr::CompoundIdentifier(vec![Ident::with_quote('"', table.as_str()), name.clone()]));
    let equal = compare(&BinaryOperator::Eq, row, columns.collect())?;
    let mut template = parse_query(&format!("SELECT 1 FROM (SELECT 1) AS \"{table}\" (x)"))?;
    if let SetExpr::Select(select) = &mut *template.body
        && let TableFactor::Derived { subquery, alias: Some(alias), .. } = &mut select.from[0].relation
    {
        *subquery = query;
        alias.columns = names.into_iter().map(|name| TableAliasColumnDef { name, data_type: None }).collect();
        select.selection = Some(test(equal));
    }
    Ok(Expr::Exists { subquery: template, negated: false })
}

/// `left op right` of rows.
fn compare(op: &BinaryOperator, left: Vec<Expr>, right: Vec<Expr>) -> Result<Expr> {
    use BinaryOperator::{And, Eq, Gt, GtEq, Lt, LtEq, NotEq, Or};
    if left.len() != right.len() {
        let (l, r) = (left.len(), right.len());
        return Err(Error::input(format!("a row of {l} values is compared with a row of {r}")));
    }
    let (strict, joined) = match op {
        Eq => (Eq, And),
        NotEq => (NotEq, Or),
        Lt | LtEq => (Lt, Or),
        Gt | GtEq => (Gt, Or),
        other => return Err(Error::not_supported(format!("the operator {other} on rows"))),
    };
    let mut pairs = left.into_iter().zip(right).rev();
    let Some((left, right)) = pairs.next() else { return Err(Error::input("a row has no values")) };
    let mut result = binary(left, op.clone(), right);
    for (left, right) in pairs {
        // Beyond equal first columns, an order is that of the rest.
        if matches!(op, Lt | LtEq | Gt | GtEq) {
            result = binary(binary(left.clone(), Eq, right.clone()), And, result);
        }
        result = binary(binary(left, strict.clone(), right), joined.clone(), result);
    }
    Ok(result)
}

/// True if one of the conditions is. As many of them are a tree that is no deeper than it must be.
fn any(mut conditions: Vec<Expr>) -> Expr {
    match conditions.len() {
        0 => value(Value::Boolean(false)),
        1 => conditions.remove(0),
        many => {
            let right = conditions.split_off(many / 2);
            binary(any(conditions), BinaryOperator::Or, any(right))
        }
    }
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

fn not(expr: Expr) -> Expr {
    Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(expr) }
}

fn value(value: Value) -> Expr {
    Expr::Value(value.into())
}
