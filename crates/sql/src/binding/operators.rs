//! Operators whose types or meaning differ from DataFusion's, and the special syntax of a few functions, as
//! the binder requests them.
//!
//! An operator to which the binder would give other types becomes casts of its operands, or a call of a
//! native function ([`crate::functions::native`]). Operands and arguments get names that identify them
//! completely, since the binder finds groups and aggregates by name.

use super::coerce;
use crate::error::external;
use crate::functions::Library;
use crate::functions::native::{self, Kind, OperatorResult, exact};
use arrow_schema::{DataType as ArrowType, Field, IntervalUnit};
use datafusion_common::{Column, DFSchema, Result as DfResult, ScalarValue, TableReference};
use datafusion_expr::expr::ScalarFunction;
use datafusion_expr::planner::{ExprPlanner, PlannerResult, RawAggregateExpr, RawBinaryExpr};
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable, Operator, cast};
use entasis_vector::expr::ArithmeticOp;
use entasis_vector::{Error, statement};
use sqlparser::ast::BinaryOperator;

/// The name of `IS DISTINCT FROM` as an operator of the binder.
pub(crate) const IS_DISTINCT: &str = "IS DISTINCT FROM";
/// The name of `IS NOT DISTINCT FROM`.
pub(crate) const IS_NOT_DISTINCT: &str = "IS NOT DISTINCT FROM";

/// Operators for which DuckDB and PostgreSQL agree with each other and differ from DataFusion, and the
/// special syntax of a few functions.
#[derive(Debug)]
pub(crate) struct Operators;

fn call(name: &'static str, kind: Kind, args: Vec<Expr>) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(native::udf(name, kind), args))
}

fn binary(left: Expr, op: Operator, right: Expr) -> Expr {
    Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)))
}

fn library_call(name: &str, args: Vec<Expr>) -> DfResult<PlannerResult<Vec<Expr>>> {
    match Library::get().scalar(name) {
        Some(udf) => Ok(PlannerResult::Planned(Expr::ScalarFunction(ScalarFunction::new_udf(udf, args)))),
        None => Ok(PlannerResult::Original(args)),
    }
}

/// A call of a function that there is.
fn planned_call<T>(name: &str, args: Vec<Expr>) -> DfResult<PlannerResult<T>> {
    match library_call(name, args)? {
        PlannerResult::Planned(expr) => Ok(PlannerResult::Planned(expr)),
        PlannerResult::Original(_) => Err(external(Error::internal(format!("{name} is missing")))),
    }
}

impl ExprPlanner for Operators {
    fn plan_binary_op(
        &self,
        expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> DfResult<PlannerResult<RawBinaryExpr>> {
        use BinaryOperator as Op;
        statement::check().map_err(external)?;
        let typed = matches!(
            expr.op,
            Op::Divide
                | Op::DuckIntegerDivide
                | Op::Minus
                | Op::Plus
                | Op::Multiply
                | Op::BitwiseXor
                | Op::PGExp
                | Op::Eq
                | Op::NotEq
                | Op::Lt
                | Op::LtEq
                | Op::Gt
                | Op::GtEq
                | Op::StringConcat
                | Op::Custom(_)
        );
        if !typed {
            return Ok(PlannerResult::Original(expr));
        }
        let (Ok(left_type), Ok(right_type)) = (expr.left.get_type(schema), expr.right.get_type(schema))
        else {
            return Ok(PlannerResult::Original(expr));
        };
        let RawBinaryExpr { op, left, right } = expr;
        let (left, right) = (bracketed(left, &op, false), bracketed(right, &op, true));
        let interval = ArrowType::Interval(IntervalUnit::MonthDayNano);
        let number = |t: &ArrowType| t.is_numeric();
        let text = |t: &ArrowType| matches!(t, ArrowType::Utf8 | ArrowType::Utf8View | ArrowType::LargeUtf8);
        let uuid = ArrowType::FixedSizeBinary(16);
        let says = |t: &ArrowType| number(t) || *t == uuid || *t == ArrowType::Boolean || t.is_temporal();
        let planned = match (&op, &left_type, &right_type) {
            (Op::StringConcat, ArrowType::List(_), _) | (Op::StringConcat, _, ArrowType::List(_)) => {
                return planned_call("list_concat", vec![left, right]);
            }
            (Op::StringConcat, ArrowType::Null, ArrowType::Null) => {
                binary(cast(left, ArrowType::Utf8), Operator::StringConcat, right)
            }
            // A division of decimals is a DOUBLE.
            (Op::Divide, l, r) if number(l) && number(r) && (l.is_decimal() || r.is_decimal()) => {
                binary(cast(left, ArrowType::Float64), Operator::Divide, cast(right, ArrowType::Float64))
            }
            (Op::DuckIntegerDivide, l, r) if l.is_integer() && r.is_integer() => {
                binary(left, Operator::Divide, right)
            }
            (Op::BitwiseXor | Op::PGExp, l, r) if number(l) && number(r) => {
                let args = vec![cast(left, ArrowType::Float64), cast(right, ArrowType::Float64)];
                match library_call("power", args)? {
                    PlannerResult::Planned(expr) => expr,
                    PlannerResult::Original(_) => return Err(external(Error::internal("power is missing"))),
                }
            }
            (Op::Minus, ArrowType::Date32, ArrowType::Date32) => call(
                "days between",
                Kind::Operator(ArithmeticOp::Subtract, OperatorResult::Days),
                vec![left, right],
            ),
            (Op::Plus, ArrowType::Date32, r) if r.is_integer() => {
                let args = vec![left, cast(right, ArrowType::Int64)];
                call("add days", Kind::Operator(ArithmeticOp::Add, OperatorResult::Date), args)
            }
            (Op::Plus, l, ArrowType::Date32) if l.is_integer() => {
                let args = vec![right, cast(left, ArrowType::Int64)];
                call("add days", Kind::Operator(ArithmeticOp::Add, OperatorResult::Date), args)
            }
            (Op::Minus, ArrowType::Date32, r) if r.is_integer() => {
                let args = vec![left, cast(right, ArrowType::Int64)];
                call("subtract days", Kind::Operator(ArithmeticOp::Subtract, OperatorResult::Date), args)
            }
            // A difference of dates or timestamps; a literal on the other side gets the type, too.
            (Op::Minus, l, r) if is_moment(l) && is_moment(r) => between(left, right, l, r),
            (Op::Minus, l @ ArrowType::Timestamp(..), r) if text(r) && matches!(right, Expr::Literal(..)) => {
                let right = cast(right, l.clone());
                between(left, right, l, l)
            }
            (Op::Minus, l, r @ ArrowType::Timestamp(..)) if text(l) && matches!(left, Expr::Literal(..)) => {
                let left = cast(left, r.clone());
                between(left, right, r, r)
            }
            // A literal on the other side is a date, too.
            (Op::Minus, ArrowType::Date32, r) if text(r) && matches!(right, Expr::Literal(..)) => {
                let args = vec![left, cast(right, ArrowType::Date32)];
                call("days between", Kind::Operator(ArithmeticOp::Subtract, OperatorResult::Days), args)
            }
            (Op::Multiply, l, r) if *l == interval && (number(r) || r.is_null()) => times(left, right, r),
            (Op::Multiply, l, r) if (number(l) || l.is_null()) && *r == interval => times(right, left, l),
            (Op::Divide, l, r) if *l == interval && (number(r) || r.is_null()) => {
                let args = vec![left, cast(right, ArrowType::Float64)];
                call("divided", Kind::Operator(ArithmeticOp::Divide, OperatorResult::Interval), args)
            }
            (Op::Plus | Op::Minus, l, r) if moved(&op, l, r).is_some() => {
                let (result, swapped) = moved(&op, l, r).expect("tested");
                let arithmetic = if op == Op::Plus { ArithmeticOp::Add } else { ArithmeticOp::Subtract };
                let args = if swapped { vec![right, left] } else { vec![left, right] };
                call("moved", Kind::Operator(arithmetic, result), args)
            }
            // A text compared with a number is a number, with a UUID a UUID; likewise with booleans, dates
            // and times.
            (_, l, r) if comparison(&op).is_some() && says(l) && text(r) => {
                let ty = coerce::type_beside(l, &right);
                binary(left, comparison(&op).expect("tested"), cast(right, ty))
            }
            (_, l, r) if comparison(&op).is_some() && text(l) && says(r) => {
                let ty = coerce::type_beside(r, &left);
                binary(cast(left, ty), comparison(&op).expect("tested"), right)
            }
            (_, l, r) if comparison(&op).is_some() && l.is_nested() && text(r) => {
                binary(left, comparison(&op).expect("tested"), cast(right, l.clone()))
            }
            (_, l, r) if comparison(&op).is_some() && text(l) && r.is_nested() => {
                binary(cast(left, r.clone()), comparison(&op).expect("tested"), right)
            }
            (Op::Custom(_), _, _) if comparison(&op).is_some() => {
                binary(left, comparison(&op).expect("tested"), right)
            }
            _ => return Ok(PlannerResult::Original(RawBinaryExpr { op, left, right })),
        };
        Ok(PlannerResult::Planned(planned))
    }

    /// Gives arguments names that identify them completely.
    fn plan_aggregate(&self, mut expr: RawAggregateExpr) -> DfResult<PlannerResult<RawAggregateExpr>> {
        let filter = expr.filter.iter_mut().map(|filter| &mut **filter);
        let keys = expr.order_by.iter_mut().map(|key| &mut key.expr);
        for arg in expr.args.iter_mut().chain(filter).chain(keys) {
            #[expect(deprecated)]
            if !matches!(arg, Expr::Column(_) | Expr::Literal(..) | Expr::Wildcard { .. }) {
                *arg = exact(std::mem::take(arg));
            }
        }
        Ok(PlannerResult::Original(expr))
    }

    fn plan_extract(&self, mut args: Vec<Expr>) -> DfResult<PlannerResult<Vec<Expr>>> {
        // In `extract('year' FROM x)` the field comes with its quotes.
        if let Some(Expr::Literal(ScalarValue::Utf8(Some(field)), _)) = args.first_mut() {
            *field = field.trim_matches('\'').to_owned();
        }
        library_call("date_part", args)
    }

    fn plan_substring(&self, args: Vec<Expr>) -> DfResult<PlannerResult<Vec<Expr>>> {
        library_call("substring", args)
    }

    fn plan_position(&self, args: Vec<Expr>) -> DfResult<PlannerResult<Vec<Expr>>> {
        library_call("strpos", args)
    }

    fn plan_compound_identifier(
        &self,
        field: &Field,
        qualifier: Option<&TableReference>,
        nested: &[String],
    ) -> DfResult<PlannerResult<Vec<Expr>>> {
        let mut expr = Expr::Column(Column::from((qualifier, field)));
        for name in nested {
            let name = Expr::Literal(ScalarValue::Utf8(Some(name.clone())), None);
            expr = match planned_call::<Vec<Expr>>("struct_extract", vec![expr, name])? {
                PlannerResult::Planned(expr) => expr,
                PlannerResult::Original(_) => {
                    return Err(external(Error::internal("struct_extract is missing")));
                }
            };
        }
        Ok(PlannerResult::Planned(expr))
    }

    fn plan_overlay(&self, args: Vec<Expr>) -> DfResult<PlannerResult<Vec<Expr>>> {
        library_call("overlay", args)
    }
}

/// An operand under a name that shows which operator is applied first if brackets determine that: the binder
/// gives `(a + b) * c` and `a + b * c` the same name.
fn bracketed(operand: Expr, around: &BinaryOperator, right: bool) -> Expr {
    use BinaryOperator as Op;
    let around = match around {
        Op::Plus | Op::Minus => Operator::Plus.precedence(),
        Op::Multiply | Op::Divide | Op::DuckIntegerDivide => Operator::Multiply.precedence(),
        _ => return operand,
    };
    match &operand {
        Expr::BinaryExpr(inner) if inner.op.precedence() < around + u8::from(right) => exact(operand),
        _ => operand,
    }
}

fn times(interval: Expr, factor: Expr, ty: &ArrowType) -> Expr {
    let factor = cast(factor, if ty.is_integer() { ArrowType::Int64 } else { ArrowType::Float64 });
    call("times", Kind::Operator(ArithmeticOp::Multiply, OperatorResult::Interval), vec![interval, factor])
}

/// The meaning of `left + right` or `left - right` if one is a date or a time of day and the other an
/// interval or a time; and whether the date has to be moved to the left.
fn moved(op: &BinaryOperator, left: &ArrowType, right: &ArrowType) -> Option<(OperatorResult, bool)> {
    use ArrowType::{Date32, Interval, Time64};
    let plus = *op == BinaryOperator::Plus;
    Some(match (left, right) {
        (Date32, Interval(_)) => (OperatorResult::Timestamp, false),
        (Interval(_), Date32) if plus => (OperatorResult::Timestamp, true),
        (Date32, Time64(_)) if plus => (OperatorResult::Timestamp, false),
        (Time64(_), Date32) if plus => (OperatorResult::Timestamp, true),
        (Time64(_), Interval(_)) => (OperatorResult::Time, false),
        (Interval(_), Time64(_)) if plus => (OperatorResult::Time, true),
        (Time64(_), Time64(_)) if !plus => (OperatorResult::Interval, false),
        _ => return None,
    })
}

/// A date or a timestamp other than a literal whose type is still open.
fn is_moment(ty: &ArrowType) -> bool {
    matches!(ty, ArrowType::Date32 | ArrowType::Timestamp(..))
}

/// The difference of two dates or timestamps, at least one of which is a timestamp: an interval. If one is an
/// instant, the other is converted to one.
fn between(left: Expr, right: Expr, left_type: &ArrowType, right_type: &ArrowType) -> Expr {
    let is_zoned = |ty: &ArrowType| matches!(ty, ArrowType::Timestamp(_, Some(_)));
    let settled = |expr: Expr, own: &ArrowType, other: &ArrowType| {
        let becomes_other = *own == ArrowType::Date32 || (is_zoned(other) && !is_zoned(own));
        if becomes_other { cast(expr, other.clone()) } else { expr }
    };
    let args = vec![settled(left, left_type, right_type), settled(right, right_type, left_type)];
    call("between", Kind::Operator(ArithmeticOp::Subtract, OperatorResult::Interval), args)
}

fn comparison(op: &BinaryOperator) -> Option<Operator> {
    Some(match op {
        BinaryOperator::Eq => Operator::Eq,
        BinaryOperator::NotEq => Operator::NotEq,
        BinaryOperator::Lt => Operator::Lt,
        BinaryOperator::LtEq => Operator::LtEq,
        BinaryOperator::Gt => Operator::Gt,
        BinaryOperator::GtEq => Operator::GtEq,
        BinaryOperator::Custom(name) if name == IS_DISTINCT => Operator::IsDistinctFrom,
        BinaryOperator::Custom(name) if name == IS_NOT_DISTINCT => Operator::IsNotDistinctFrom,
        _ => return None,
    })
}
