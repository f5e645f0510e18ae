//! Row values: `(a, b) = (c, d)`, `(a, b) IN ((1, 2), (3, 4))`, `(a, b) IN (SELECT …)`, `(a, b) IS NULL`;
//! also written `ROW(a, b)`.
//!
//! Rows are equal if all their columns are, and ordered by the first column that differs. A row `IS NULL` if
//! all its columns are, and `IS NOT NULL` if none is. A query in brackets is compared as the row that it
//! returns. `row IN (query)`, which is `row = ANY (query)`, is true if a row of the query is equal; otherwise
//! NULL if one might be (its comparison is NULL); otherwise false:
//!
//! ```text
//! CASE WHEN EXISTS (query WHERE equal) THEN true
//!      WHEN EXISTS (query WHERE equal IS NULL) THEN NULL
//!      ELSE false END
//! ```
//!
//! For a condition it matters only whether it is true, so as a condition ([`condition`]) `row IN (query)` is
//! just the first `EXISTS`, and `row NOT IN (query)` is `NOT EXISTS (query WHERE equal IS NOT FALSE)`. Other
//! comparisons replace `=`, and `row op ALL (query)` is the negation of `ANY` with the opposite comparison.

use crate::hidden::MARK;
use entasis_syntax::parse::parse_query;
use entasis_vector::{Error, Result};
use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    BinaryOperator, CaseWhen, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Query,
    SelectItem, SetExpr, TableAliasColumnDef, TableFactor, UnaryOperator, Value,
};

/// Rewrites a comparison of rows that is itself a condition.
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
            if let Expr::InSubquery { expr: own, subquery, negated } = inner
                && let Some(own) = row(own)
            {
                *expr = holds(own, subquery, !*negated)?;
            }
            Ok(())
        }
        Expr::InSubquery { expr: own, subquery, negated } => {
            if let Some(own) = row(own) {
                *expr = holds(own, subquery, *negated)?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Rewrites an expression that itself compares or tests rows.
pub(super) fn expression(expr: &mut Expr) -> Result<()> {
    match expr {
        Expr::BinaryOp { left, op, right } => {
            let compared = match (row(left), row(right)) {
                (Some(left), Some(right)) => compare(op, left, right)?,
                (Some(own), None) => match &mut **right {
                    Expr::Subquery(query) => {
                        with_row(query.clone(), own.len(), |row| compare(op, own.clone(), row))?
                    }
                    other => return Err(no_row(other, own.len())),
                },
                (None, Some(own)) => match &mut **left {
                    Expr::Subquery(query) => {
                        with_row(query.clone(), own.len(), |row| compare(op, row, own.clone()))?
                    }
                    other => return Err(no_row(other, own.len())),
                },
                (None, None) => return Ok(()),
            };
            *expr = compared;
        }
        Expr::IsDistinctFrom(left, right) | Expr::IsNotDistinctFrom(left, right) => {
            let (left, right) = match (row(left), row(right)) {
                (Some(left), Some(right)) => (left, right),
                (Some(own), None) => return Err(no_row(right, own.len())),
                (None, Some(own)) => return Err(no_row(left, own.len())),
                (None, None) => return Ok(()),
            };
            same_length(&left, &right)?;
            let distinct = matches!(expr, Expr::IsDistinctFrom(..));
            let pairs = left.into_iter().zip(right).map(|(l, r)| (Box::new(l), Box::new(r)));
            let tests = match distinct {
                true => pairs.map(|(l, r)| Expr::IsDistinctFrom(l, r)).collect(),
                false => pairs.map(|(l, r)| Expr::IsNotDistinctFrom(l, r)).collect(),
            };
            *expr = if distinct { any(tests) } else { all(tests) };
        }
        Expr::IsNull(inner) => {
            if let Some(parts) = row(inner) {
                *expr = all(each(parts, Expr::IsNull)?);
            }
        }
        Expr::IsNotNull(inner) => {
            if let Some(parts) = row(inner) {
                *expr = all(each(parts, Expr::IsNotNull)?);
            }
        }
        Expr::Between { expr: inner, negated, low, high } => {
            let Some(own) = row(inner) else { return Ok(()) };
            let bound = |bound: &mut Expr| row(bound).ok_or_else(|| no_row(bound, own.len()));
            let (low, high) = (bound(low)?, bound(high)?);
            let from = compare(&BinaryOperator::GtEq, own.clone(), low)?;
            let within =
                nested(binary(from, BinaryOperator::And, compare(&BinaryOperator::LtEq, own, high)?));
            *expr = if *negated { not(within) } else { within };
        }
        Expr::InList { expr: inner, list, negated } => {
            let Some(own) = row(inner) else { return Ok(()) };
            let equal = |mut item: Expr| match row(&mut item) {
                Some(item) => compare(&BinaryOperator::Eq, own.clone(), item),
                None => Err(no_row(&item, own.len())),
            };
            let found = any(std::mem::take(list).into_iter().map(equal).collect::<Result<_>>()?);
            *expr = if *negated { not(found) } else { found };
        }
        Expr::InSubquery { expr: inner, subquery, negated } => {
            let Some(own) = row(inner) else { return Ok(()) };
            *expr = compared_with_any(own, &BinaryOperator::Eq, subquery, *negated)?;
        }
        Expr::AnyOp { left, compare_op, right, .. } => {
            let Some(own) = row(left) else { return Ok(()) };
            let Expr::Subquery(query) = &**right else { return Err(no_row(right, own.len())) };
            *expr = compared_with_any(own, compare_op, query, false)?;
        }
        Expr::AllOp { left, compare_op, right } => {
            let Some(own) = row(left) else { return Ok(()) };
            let Expr::Subquery(query) = &**right else { return Err(no_row(right, own.len())) };
            *expr = compared_with_any(own, &opposite(compare_op)?, query, true)?;
        }
        _ => {}
    }
    Ok(())
}

/// A test of each value of a row.
fn each(parts: Vec<Expr>, test: fn(Box<Expr>) -> Expr) -> Result<Vec<Expr>> {
    // A row is not NULL, whatever it contains.
    let test = |mut part: Expr| match row(&mut part) {
        Some(_) => Err(Error::not_supported("tests for NULL of rows within rows")),
        None => Ok(test(Box::new(part))),
    };
    parts.into_iter().map(test).collect()
}

/// Moves the values out of a row, if the expression is one.
fn row(expr: &mut Expr) -> Option<Vec<Expr>> {
    match expr {
        Expr::Nested(inner) => row(inner),
        Expr::Tuple(parts) => Some(std::mem::take(parts)),
        Expr::Function(function) if function.name.to_string().eq_ignore_ascii_case("row") => {
            let FunctionArguments::List(list) = &function.args else { return None };
            let value = |arg: &FunctionArg| match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value.clone()),
                _ => None,
            };
            list.args.iter().map(value).collect()
        }
        _ => None,
    }
}

fn no_row(expr: &Expr, length: usize) -> Error {
    Error::input(format!("{expr} is not a row of {length} values"))
}

fn same_length(left: &[Expr], right: &[Expr]) -> Result<()> {
    let (l, r) = (left.len(), right.len());
    match l == r {
        true => Ok(()),
        false => Err(Error::input(format!("a row of {l} values is compared with a row of {r}"))),
    }
}

/// Whether the comparison of a row holds for any of a query's rows, or if `negated` for none.
fn compared_with_any(row: Vec<Expr>, op: &BinaryOperator, query: &Query, negated: bool) -> Result<Expr> {
    let found = exists(row.clone(), op, query, |holds| holds)?;
    let unknown = exists(row, op, query, |holds| Expr::IsNull(Box::new(nested(holds))))?;
    let result = |found: bool| value(Value::Boolean(found != negated));
    Ok(Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![
            CaseWhen { condition: found, result: result(true) },
            CaseWhen { condition: unknown, result: value(Value::Null) },
        ],
        else_result: Some(Box::new(result(false))),
    })
}

/// The comparison that is true where the other one is false.
fn opposite(op: &BinaryOperator) -> Result<BinaryOperator> {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    Ok(match op {
        Eq => NotEq,
        NotEq => Eq,
        Lt => GtEq,
        LtEq => Gt,
        Gt => LtEq,
        GtEq => Lt,
        other => return Err(Error::not_supported(format!("the operator {other} on rows"))),
    })
}

/// Whether `row [NOT] IN (query)` is true.
fn holds(row: Vec<Expr>, query: &Query, negated: bool) -> Result<Expr> {
    match negated {
        false => exists(row, &BinaryOperator::Eq, query, |equal| equal),
        true => {
            let test = |equal| Expr::IsNotFalse(Box::new(nested(equal)));
            Ok(not(exists(row, &BinaryOperator::Eq, query, test)?))
        }
    }
}

/// `EXISTS (SELECT 1 FROM (query) AS hidden (names) WHERE test(row op names))`
fn exists(row: Vec<Expr>, op: &BinaryOperator, query: &Query, test: impl Fn(Expr) -> Expr) -> Result<Expr> {
    let (mut template, columns) = over(Box::new(query.clone()), row.len())?;
    if let SetExpr::Select(select) = &mut *template.body {
        select.selection = Some(test(compare(op, row, columns)?));
    }
    Ok(Expr::Exists { subquery: template, negated: false })
}

/// `(SELECT result(names) FROM (query) AS hidden (names))`
fn with_row(query: Box<Query>, length: usize, result: impl Fn(Vec<Expr>) -> Result<Expr>) -> Result<Expr> {
    let (mut template, columns) = over(query, length)?;
    if let SetExpr::Select(select) = &mut *template.body {
        select.projection = vec![SelectItem::UnnamedExpr(result(columns)?)];
    }
    Ok(Expr::Subquery(template))
}

/// `SELECT 1 FROM (query) AS hidden (names)`, and the columns with these names.
fn over(query: Box<Query>, length: usize) -> Result<(Box<Query>, Vec<Expr>)> {
    let table = format!("{MARK}rows");
    let names: Vec<Ident> = (0..length).map(|i| Ident::with_quote('"', format!("{MARK}value{i}"))).collect();
    let columns = names
        .iter()
        .map(|name| Expr::CompoundIdentifier(vec![Ident::with_quote('"', table.as_str()), name.clone()]));
    let columns = columns.collect();
    let mut template = parse_query(&format!("SELECT 1 FROM (SELECT 1) AS \"{table}\" (x)"))?;
    if let SetExpr::Select(select) = &mut *template.body
        && let TableFactor::Derived { subquery, alias: Some(alias), .. } = &mut select.from[0].relation
    {
        *subquery = query;
        alias.columns = names.into_iter().map(|name| TableAliasColumnDef { name, data_type: None }).collect();
    }
    Ok((template, columns))
}

/// `left op right` of rows.
fn compare(op: &BinaryOperator, left: Vec<Expr>, right: Vec<Expr>) -> Result<Expr> {
    use BinaryOperator::{And, Eq, Gt, GtEq, Lt, LtEq, NotEq, Or};
    same_length(&left, &right)?;
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
        // If the first columns are equal, the order is that of the rest.
        if matches!(op, Lt | LtEq | Gt | GtEq) {
            result = binary(binary(left.clone(), Eq, right.clone()), And, result);
        }
        result = binary(binary(left, strict.clone(), right), joined.clone(), result);
    }
    Ok(result)
}

/// True if one of the conditions is true.
fn any(conditions: Vec<Expr>) -> Expr {
    joined(conditions, BinaryOperator::Or)
}

/// True if all conditions are true.
fn all(conditions: Vec<Expr>) -> Expr {
    joined(conditions, BinaryOperator::And)
}

/// The conditions as a balanced tree.
fn joined(mut conditions: Vec<Expr>, op: BinaryOperator) -> Expr {
    match conditions.len() {
        0 => value(Value::Boolean(op == BinaryOperator::And)),
        1 => conditions.remove(0),
        many => {
            let right = conditions.split_off(many / 2);
            binary(joined(conditions, op.clone()), op.clone(), joined(right, op))
        }
    }
}

fn nested(expr: Expr) -> Expr {
    Expr::Nested(Box::new(expr))
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
