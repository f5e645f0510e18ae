//! Row values: `(a, b) = (c, d)`, `(a, b) IN ((1, 2), (3, 4))`, `(a, b) IN (SELECT …)`, `(a, b) IS NULL`;
//! also written `ROW(a, b)`.
//!
//! Rows are equal if all their columns are, and ordered by the first column that differs. A row `IS NULL` if
//! all its columns are, and `IS NOT NULL` if none is. A query in brackets is compared as the row that it
//! gives. `row op ANY (query)` is true if a row of the query holds, else NULL if one might, else false.

use crate::binder::Binder;
use crate::bound::Bound;
use crate::expr::any;
use crate::operator::{compare, comparison};
use entasis_vector::expr::{CompareOp, Expr};
use entasis_vector::{DataType, Error, Result, Value};
use sqlparser::ast::{self, BinaryOperator, FunctionArg, FunctionArgExpr, FunctionArguments};

/// The values of a row, if the expression is one.
pub(crate) fn parts(ast: &ast::Expr) -> Option<Vec<&ast::Expr>> {
    match ast {
        ast::Expr::Nested(inner) => parts(inner),
        ast::Expr::Tuple(parts) => Some(parts.iter().collect()),
        ast::Expr::Function(function) if function.name.to_string().eq_ignore_ascii_case("row") => {
            let FunctionArguments::List(list) = &function.args else { return None };
            let value = |arg| match arg {
                &FunctionArg::Unnamed(FunctionArgExpr::Expr(ref value)) => Some(value),
                _ => None,
            };
            list.args.iter().map(value).collect()
        }
        _ => None,
    }
}

/// The error for what is not a row of so many values.
pub(crate) fn no_row(ast: &ast::Expr, length: usize) -> Error {
    Error::input(format!("{ast} is not a row of {length} values"))
}

/// A value of a row, which may be a row itself.
#[derive(Debug, Clone)]
pub(crate) enum Part {
    /// A value.
    Value(Bound),
    /// A row.
    Row(Vec<Part>),
}

/// `left op right` of rows.
pub(crate) fn compare_all(op: CompareOp, left: &[Part], right: &[Part]) -> Result<Expr> {
    use CompareOp::{DistinctFrom, Eq, Gt, GtEq, Lt, LtEq, NotDistinctFrom, NotEq};
    let (l, r) = (left.len(), right.len());
    if l != r {
        return Err(Error::input(format!("a row of {l} values is compared with a row of {r}")));
    }
    let each = |op: CompareOp| {
        let pairs = left.iter().zip(right);
        let compared = pairs.map(|pair| match pair {
            (Part::Value(l), Part::Value(r)) => Ok(compare(op, l.clone(), r.clone())?.expr),
            (Part::Row(l), Part::Row(r)) => compare_all(op, l, r),
            _ => Err(Error::input("a row is compared with what is no row")),
        });
        compared.collect::<Result<Vec<Expr>>>()
    };
    let strict = match op {
        Eq | NotDistinctFrom => return Ok(Expr::and(each(op)?)),
        NotEq | DistinctFrom => return Ok(any(each(op)?)),
        Lt | LtEq => Lt,
        Gt | GtEq => Gt,
    };
    // If the first columns are equal, the order is that of the rest.
    let (equal, less, mut last) = (each(Eq)?, each(strict)?, each(op)?);
    let mut holds = last.pop().ok_or_else(|| Error::input("a row has no values"))?;
    for (equal, less) in equal.into_iter().zip(less).rev().skip(1) {
        holds = Expr::Or(vec![less, Expr::And(vec![equal, holds])]);
    }
    Ok(holds)
}

impl<'a, 'q> Binder<'a, 'q> {
    pub(crate) fn row(&mut self, parts: &[&'q ast::Expr]) -> Result<Vec<Part>> {
        let part = |part: &&'q ast::Expr| match self::parts(part) {
            Some(parts) => self.row(&parts).map(Part::Row),
            None => self.expr(part).map(Part::Value),
        };
        parts.iter().map(part).collect()
    }

    fn row_of(&mut self, ast: &'q ast::Expr, length: usize) -> Result<Vec<Part>> {
        match parts(ast) {
            Some(parts) => self.row(&parts),
            None => Err(no_row(ast, length)),
        }
    }

    pub(crate) fn row_is_null(&mut self, parts: &[&'q ast::Expr], negated: bool) -> Result<Bound> {
        let mut tests = Vec::with_capacity(parts.len());
        for part in parts {
            if self::parts(part).is_some() {
                return Err(Error::not_supported("tests for NULL of rows within rows"));
            }
            let is_null = Expr::IsNull(Box::new(self.expr(part)?.expr));
            tests.push(if negated { Expr::Not(Box::new(is_null)) } else { is_null });
        }
        Ok(Bound::known(Expr::and(tests)))
    }

    /// `own op other`, or with the sides exchanged. The other side is a row, or a query in brackets.
    pub(crate) fn compare_rows(
        &mut self,
        op: &BinaryOperator,
        own: Vec<&'q ast::Expr>,
        other: &'q ast::Expr,
        other_parts: Option<Vec<&'q ast::Expr>>,
        exchanged: bool,
    ) -> Result<Bound> {
        let not_supported = || Error::not_supported(format!("the operator {op} on rows"));
        let op = comparison(op).ok_or_else(not_supported)?;
        let length = own.len();
        let own = self.row(&own)?;
        let other = match (other_parts, other) {
            (Some(parts), _) => self.row(&parts)?,
            (None, ast::Expr::Subquery(query)) => self.row_subquery(query)?,
            (None, other) => return Err(no_row(other, length)),
        };
        let (left, right) = if exchanged { (other, own) } else { (own, other) };
        Ok(Bound::known(compare_all(op, &left, &right)?))
    }

    pub(crate) fn distinct_rows(
        &mut self,
        left: &[&'q ast::Expr],
        right: &[&'q ast::Expr],
        op: CompareOp,
    ) -> Result<Bound> {
        let (left, right) = (self.row(left)?, self.row(right)?);
        Ok(Bound::known(compare_all(op, &left, &right)?))
    }

    pub(crate) fn between_rows(
        &mut self,
        own: &[&'q ast::Expr],
        low: &'q ast::Expr,
        high: &'q ast::Expr,
        negated: bool,
    ) -> Result<Bound> {
        let input = self.row(own)?;
        let (low, high) = (self.row_of(low, input.len())?, self.row_of(high, input.len())?);
        let within = Expr::And(vec![
            compare_all(CompareOp::GtEq, &input, &low)?,
            compare_all(CompareOp::LtEq, &input, &high)?,
        ]);
        Ok(Bound::known(if negated { Expr::Not(Box::new(within)) } else { within }))
    }

    pub(crate) fn row_in_list(
        &mut self,
        own: &[&'q ast::Expr],
        list: &'q [ast::Expr],
        negated: bool,
    ) -> Result<Bound> {
        let input = self.row(own)?;
        let mut equal = Vec::with_capacity(list.len());
        for item in list {
            let item = self.row_of(item, input.len())?;
            equal.push(compare_all(CompareOp::Eq, &input, &item)?);
        }
        let found = any(equal);
        Ok(Bound::known(if negated { Expr::Not(Box::new(found)) } else { found }))
    }

    /// Whether a comparison of a row holds for any of a query's rows; if `negated`, for none.
    pub(crate) fn row_quantified(
        &mut self,
        own: &[&'q ast::Expr],
        op: CompareOp,
        query: &'q ast::Query,
        negated: bool,
    ) -> Result<Bound> {
        let input = self.row(own)?;
        let found = self.row_exists(&input, op, query, |holds| holds)?;
        let unknown = self.row_exists(&input, op, query, |holds| Expr::IsNull(Box::new(holds)))?;
        let branches =
            vec![(found, Expr::boolean(!negated)), (unknown, Expr::literal(Value::Null, DataType::Boolean))];
        let otherwise = Some(Box::new(Expr::boolean(negated)));
        Ok(Bound::known(Expr::Case { branches, otherwise, ty: DataType::Boolean }))
    }
}
