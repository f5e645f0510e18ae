//! Predicates: `IS …`, `BETWEEN`, `LIKE`, `SIMILAR TO`, and `IN` with a list. Those of subqueries are in
//! [`crate::subquery`].

use crate::binder::Binder;
use crate::bound::Bound;
use crate::expr::{any, connected, into_value};
use crate::literal::text_of;
use crate::operator::{compare, like, unified};
use crate::rowvalue;
use entasis_functions::expressions::fold;
use entasis_functions::types::Meeting;
use entasis_syntax::clauses;
use entasis_vector::expr::{CompareOp, Expr};
use entasis_vector::{DataType, Error, Result, Value};
use sqlparser::ast::{self, BinaryOperator, ValueWithSpan};

impl<'a, 'q> Binder<'a, 'q> {
    /// Binds a predicate, which may be negated.
    pub(crate) fn predicate(&mut self, ast: &'q ast::Expr) -> Result<Bound> {
        use ast::Expr as Sql;
        match ast {
            Sql::IsNull(input) => self.is_null(input, false),
            Sql::IsNotNull(input) => self.is_null(input, true),
            Sql::IsUnknown(input) => self.is_unknown(input, false),
            Sql::IsNotUnknown(input) => self.is_unknown(input, true),
            Sql::IsTrue(input) => self.is_truth_value(input, true, false),
            Sql::IsNotTrue(input) => self.is_truth_value(input, true, true),
            Sql::IsFalse(input) => self.is_truth_value(input, false, false),
            Sql::IsNotFalse(input) => self.is_truth_value(input, false, true),
            Sql::IsDistinctFrom(left, right) => self.is_distinct(left, right, CompareOp::DistinctFrom),
            Sql::IsNotDistinctFrom(left, right) => self.is_distinct(left, right, CompareOp::NotDistinctFrom),
            Sql::Between { expr, negated, low, high } => self.between(expr, low, high, *negated),
            Sql::Like { negated, expr, pattern, escape_char, .. }
            | Sql::ILike { negated, expr, pattern, escape_char, .. } => {
                clauses::expression(ast)?;
                let (input, pattern) = (self.expr(expr)?, self.expr(pattern)?);
                let escape = escape_of(escape_char.as_ref().map(|value| &value.value))?;
                let matched = like(input, pattern, escape, matches!(ast, Sql::ILike { .. }))?;
                Ok(negated_if(*negated, matched))
            }
            Sql::SimilarTo { negated, expr, pattern, escape_char } => {
                let matched = self.similar_to(expr, pattern, escape_char.as_ref())?;
                Ok(negated_if(*negated, matched))
            }
            Sql::InList { expr, list, negated } => self.in_list(expr, list, *negated),
            other => Err(Error::internal(format!("{other} is no predicate"))),
        }
    }

    /// `input IS [NOT] NULL`
    fn is_null(&mut self, input: &'q ast::Expr, negated: bool) -> Result<Bound> {
        if let Some(parts) = rowvalue::parts(input) {
            return self.row_is_null(&parts, negated);
        }
        let input = Box::new(self.expr(input)?.expr);
        Ok(negated_if(negated, Expr::IsNull(input)))
    }

    /// `input IS [NOT] UNKNOWN`
    fn is_unknown(&mut self, input: &'q ast::Expr, negated: bool) -> Result<Bound> {
        let input = Box::new(self.condition(input)?);
        Ok(negated_if(negated, Expr::IsNull(input)))
    }

    /// `input IS [NOT] TRUE`, `input IS [NOT] FALSE`
    fn is_truth_value(&mut self, input: &'q ast::Expr, value: bool, negated: bool) -> Result<Bound> {
        let op = if negated { CompareOp::DistinctFrom } else { CompareOp::NotDistinctFrom };
        Ok(Bound::known(Expr::compare(op, self.condition(input)?, Expr::boolean(value))))
    }

    /// `left IS [NOT] DISTINCT FROM right`. The parser takes all that follows for the right side: `a IS
    /// DISTINCT FROM b AND c` is `(a IS DISTINCT FROM b) AND c`.
    fn is_distinct(&mut self, left: &'q ast::Expr, right: &'q ast::Expr, op: CompareOp) -> Result<Bound> {
        if let ast::Expr::BinaryOp {
            left: inner,
            op: connective @ (BinaryOperator::And | BinaryOperator::Or),
            right: rest,
        } = right
        {
            let first = self.is_distinct(left, inner, op)?.expr;
            return Ok(Bound::known(connected(connective, vec![first, self.condition(rest)?])));
        }
        match (rowvalue::parts(left), rowvalue::parts(right)) {
            (Some(left), Some(right)) => self.distinct_rows(&left, &right, op),
            (Some(row), None) => Err(rowvalue::no_row(right, row.len())),
            (None, Some(row)) => Err(rowvalue::no_row(left, row.len())),
            (None, None) => {
                let (left, right) = (self.expr(left)?, self.expr(right)?);
                compare(op, left, right)
            }
        }
    }

    /// `input [NOT] BETWEEN low AND high`
    fn between(
        &mut self,
        input: &'q ast::Expr,
        low: &'q ast::Expr,
        high: &'q ast::Expr,
        negated: bool,
    ) -> Result<Bound> {
        if let Some(own) = rowvalue::parts(input) {
            return self.between_rows(&own, low, high, negated);
        }
        let [input, low, high] = [input, low, high].map(|part| self.expr(part));
        let parts = vec![input?, low?, high?];
        let refused = {
            let [value, low, high] = [&parts[0], &parts[1], &parts[2]].map(|part| part.given);
            format!("{value} is not BETWEEN {low} AND {high}")
        };
        let parts = unified(parts, Meeting::Strict, "BETWEEN").map_err(|_| {
            Error::input(refused).with_hint("compare values of one type: CAST(value AS type)")
        })?;
        let within = match parts.0.as_slice() {
            [input, low, high] => Expr::And(vec![
                Expr::compare(CompareOp::GtEq, input.clone(), low.clone()),
                Expr::compare(CompareOp::LtEq, input.clone(), high.clone()),
            ]),
            _ => return Err(Error::internal("BETWEEN without its bounds")),
        };
        Ok(negated_if(negated, within))
    }

    /// `input SIMILAR TO pattern [ESCAPE escape]`
    fn similar_to(
        &mut self,
        input: &'q ast::Expr,
        pattern: &'q ast::Expr,
        escape: Option<&'q ValueWithSpan>,
    ) -> Result<Expr> {
        let mut args = vec![self.expr(pattern)?];
        if let Some(escape) = escape {
            args.push(self.literal(&escape.value)?);
        }
        let input = self.expr(input)?;
        let pattern = self.call("similar_to_escape", args)?;
        self.regex(input, pattern, None)
    }

    /// `input [NOT] IN (list)`
    fn in_list(&mut self, input: &'q ast::Expr, list: &'q [ast::Expr], negated: bool) -> Result<Bound> {
        if let Some(own) = rowvalue::parts(input) {
            return self.row_in_list(&own, list, negated);
        }
        let mut bounds = Vec::with_capacity(list.len() + 1);
        bounds.push(self.expr(input)?);
        for item in list {
            bounds.push(self.expr(item)?);
        }
        if list.is_empty() {
            return Ok(Bound::known(Expr::boolean(negated)));
        }
        let (mut exprs, ty) = unified(bounds, Meeting::Equality, "IN")?;
        let input = exprs.remove(0);
        let found =
            match exprs.iter().all(|item| matches!(item, Expr::Literal { .. })) && ty != DataType::Null {
                true => in_values(input, exprs.into_iter().map(into_value).collect()),
                false => {
                    let equal = |item| Expr::compare(CompareOp::Eq, input.clone(), item);
                    any(exprs.into_iter().map(equal).collect())
                }
            };
        Ok(negated_if(negated, found))
    }
}

/// A condition, or its negation.
fn negated_if(negated: bool, condition: Expr) -> Bound {
    Bound::known(if negated { Expr::Not(Box::new(condition)) } else { condition })
}

/// `input IN (values)`, with the comparison made before a cast of the input if all values allow that.
fn in_values(input: Expr, values: Vec<Value>) -> Expr {
    if let Expr::Cast { input: inner, ty, lenient: false } = &input
        && fold::is_embedding(inner.ty(), *ty)
    {
        let narrow: Option<Vec<Value>> =
            values.iter().map(|value| fold::cast(value, *ty, inner.ty())).collect();
        if let Some(list) = narrow {
            return Expr::InList { input: inner.clone(), list };
        }
    }
    match <[Value; 1]>::try_from(values) {
        Ok([value]) if !value.is_null() => {
            let ty = input.ty();
            Expr::compare(CompareOp::Eq, input, Expr::literal(value, ty))
        }
        Ok([value]) => Expr::InList { input: Box::new(input), list: vec![value] },
        Err(list) => Expr::InList { input: Box::new(input), list },
    }
}

/// The escape character of LIKE; an empty text turns it off.
fn escape_of(value: Option<&ast::Value>) -> Result<Option<char>> {
    let Some(value) = value else { return Ok(None) };
    let wrong = || Error::input(format!("the escape of LIKE is one character, not {value}"));
    let mut text = text_of(value).ok_or_else(wrong)?.chars();
    match (text.next(), text.next()) {
        (Some(escape), None) => Ok(Some(escape)),
        _ => Err(wrong()),
    }
}
