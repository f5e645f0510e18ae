//! Operators: the types of their operands, and the engine's expressions for them.

use crate::binder::Binder;
use crate::bound::Bound;
use crate::literal::number_in;
use entasis_functions::TimeZone;
use entasis_functions::catalog::call::named_call;
use entasis_functions::expressions::exact::exact;
use entasis_functions::expressions::fold;
use entasis_functions::types::{Given, Meeting, arithmetic, common};
use entasis_vector::error::sqlstate;
use entasis_vector::expr::{ArithmeticOp, CompareOp, Expr, Function};
use entasis_vector::{DataType, Error, Result, Value};
use sqlparser::ast::BinaryOperator as Sql;

/// The comparison that an operator is.
pub(crate) fn comparison(op: &Sql) -> Option<CompareOp> {
    Some(match op {
        Sql::Eq => CompareOp::Eq,
        Sql::NotEq => CompareOp::NotEq,
        Sql::Lt => CompareOp::Lt,
        Sql::LtEq => CompareOp::LtEq,
        Sql::Gt => CompareOp::Gt,
        Sql::GtEq => CompareOp::GtEq,
        _ => return None,
    })
}

/// A condition: a BOOLEAN, or what becomes one as in a WHERE.
///
/// # Errors
/// Input, for what is no condition.
pub(crate) fn condition(bound: Bound) -> Result<Expr> {
    match bound.given {
        Given::Known(DataType::Boolean) => Ok(bound.expr),
        Given::Null | Given::Text | Given::Parameter(_) => Ok(bound.cast(DataType::Boolean)),
        given => {
            Err(Error::input(format!("a condition is {given}, not BOOLEAN"))
                .with_hint("compare it: value <> 0"))
        }
    }
}

/// `left op right`, both in their common type.
///
/// # Errors
/// Input, if they have none.
pub(crate) fn compare(op: CompareOp, left: Bound, right: Bound) -> Result<Bound> {
    let (left, right) = comparable(op, left, right)?;
    Ok(Bound::known(Expr::compare(op, left, right)))
}

/// Both operands of a comparison in one type.
///
/// # Errors
/// Input, if there is none.
pub(crate) fn comparable(op: CompareOp, left: Bound, right: Bound) -> Result<(Expr, Expr)> {
    use CompareOp::{DistinctFrom, Eq, NotDistinctFrom, NotEq};
    let meeting = match op {
        Eq | NotEq | DistinctFrom | NotDistinctFrom => Meeting::Equality,
        _ => Meeting::Strict,
    };
    let (left, right) = (beside(left, right.given), right);
    let right = beside(right, left.given);
    let Some(ty) = common([left.given, right.given], meeting) else {
        let error = Error::input(format!("a {} is not compared with a {}", left.given, right.given));
        let error = error.with_sqlstate(sqlstate::NO_FUNCTION);
        return Err(error.with_hint("compare values of one type: CAST(value AS type)"));
    };
    // Exact numbers whose common type has too many digits.
    if let Some(pair) = exact(&left.expr, &right.expr) {
        return Ok(pair);
    }
    Ok((left.cast(ty), right.cast(ty)))
}

/// A text that is written, beside an exact number, as the number that is written in it.
pub(crate) fn beside(bound: Bound, other: Given) -> Bound {
    if bound.given != Given::Text
        || !matches!(other, Given::Known(DataType::Decimal { .. }) | Given::Decimal { .. })
    {
        return bound;
    }
    let Expr::Literal { value: Value::Text(text), .. } = &bound.expr else { return bound };
    match number_in(text) {
        Some(number) => number,
        None => bound,
    }
}

/// Several expressions in their common type.
///
/// # Errors
/// Input, naming where they meet, if there is none.
pub(crate) fn unified(bounds: Vec<Bound>, meeting: Meeting, what: &str) -> Result<(Vec<Expr>, DataType)> {
    let decimal = bounds
        .iter()
        .map(|bound| bound.given)
        .find(|given| matches!(given, Given::Known(DataType::Decimal { .. }) | Given::Decimal { .. }));
    let bounds: Vec<Bound> = match decimal {
        Some(decimal) => bounds.into_iter().map(|bound| beside(bound, decimal)).collect(),
        None => bounds,
    };
    let Some(ty) = common(bounds.iter().map(|bound| bound.given), meeting) else {
        let mut types: Vec<String> = bounds.iter().map(|bound| bound.given.to_string()).collect();
        types.dedup();
        let error = Error::input(format!("{what} takes values of one type, not {}", types.join(" and ")));
        return Err(error.with_hint("cast them: CAST(value AS type)"));
    };
    Ok((bounds.into_iter().map(|bound| bound.cast(ty)).collect(), ty))
}

/// A CASE whose results have one type.
///
/// # Errors
/// Input, if they have none.
pub(crate) fn case(branches: Vec<(Expr, Bound)>, otherwise: Option<Bound>) -> Result<Bound> {
    let (conditions, mut results): (Vec<Expr>, Vec<Bound>) = branches.into_iter().unzip();
    let has_otherwise = otherwise.is_some();
    results.extend(otherwise);
    // Literals alone stay what is written.
    let (mut results, ty) = unified(results, Meeting::Strict, "CASE")?;
    let otherwise = if has_otherwise { results.pop().map(Box::new) } else { None };
    let branches = conditions.into_iter().zip(results).collect();
    Ok(Bound::known(Expr::Case { branches, otherwise, ty }))
}

impl<'a, 'q> Binder<'a, 'q> {
    /// `left op right` of anything but AND and OR.
    pub(crate) fn operator(&mut self, op: &Sql, left: Bound, right: Bound) -> Result<Bound> {
        if let Some(op) = comparison(op) {
            return compare(op, left, right);
        }
        let pattern = |matched: Result<Expr>, negated: bool| {
            Ok(Bound::known(if negated { Expr::Not(Box::new(matched?)) } else { matched? }))
        };
        match op {
            Sql::Plus => self.arithmetic(ArithmeticOp::Add, left, right, op),
            Sql::Minus => self.arithmetic(ArithmeticOp::Subtract, left, right, op),
            Sql::Multiply => self.arithmetic(ArithmeticOp::Multiply, left, right, op),
            Sql::Divide => self.arithmetic(ArithmeticOp::Divide, left, right, op),
            Sql::Modulo => self.arithmetic(ArithmeticOp::Modulo, left, right, op),
            Sql::BitwiseAnd => self.arithmetic(ArithmeticOp::BitAnd, left, right, op),
            Sql::BitwiseOr => self.arithmetic(ArithmeticOp::BitOr, left, right, op),
            Sql::PGBitwiseXor => self.arithmetic(ArithmeticOp::BitXor, left, right, op),
            Sql::PGBitwiseShiftLeft => self.arithmetic(ArithmeticOp::ShiftLeft, left, right, op),
            Sql::PGBitwiseShiftRight => self.arithmetic(ArithmeticOp::ShiftRight, left, right, op),
            Sql::DuckIntegerDivide if left.given.is_integer() && right.given.is_integer() => {
                self.arithmetic(ArithmeticOp::Divide, left, right, op)
            }
            Sql::BitwiseXor | Sql::PGExp => {
                let args = [left, right].map(|arg| arg.implicit(DataType::Float64, "^").map(Bound::known));
                let [left, right] = args;
                self.call("power", vec![left?, right?])
            }
            Sql::StringConcat => self.concatenation(left, right),
            Sql::PGRegexMatch => pattern(self.regex(left, right, None), false),
            Sql::PGRegexIMatch => pattern(self.regex(left, right, Some("i")), false),
            Sql::PGRegexNotMatch => pattern(self.regex(left, right, None), true),
            Sql::PGRegexNotIMatch => pattern(self.regex(left, right, Some("i")), true),
            Sql::PGLikeMatch => pattern(like(left, right, None, false), false),
            Sql::PGILikeMatch => pattern(like(left, right, None, true), false),
            Sql::PGNotLikeMatch => pattern(like(left, right, None, false), true),
            Sql::PGNotILikeMatch => pattern(like(left, right, None, true), true),
            other => Err(Error::not_supported(format!("the operator {other}"))),
        }
    }

    pub(crate) fn arithmetic(
        &mut self,
        op: ArithmeticOp,
        left: Bound,
        right: Bound,
        written: &Sql,
    ) -> Result<Bound> {
        let left = beside(left, right.given);
        let right = beside(right, left.given);
        let Some(operands) = arithmetic(op, left.given, right.given) else {
            let text = format!("there is no operator {} {written} {}", left.given, right.given);
            let error = Error::input(text).with_sqlstate(sqlstate::NO_FUNCTION);
            return Err(error.with_hint("cast an operand: CAST(value AS type)"));
        };
        if operands.result == DataType::Null {
            return Ok(Bound::null());
        }
        let (left, right) = (left.cast(operands.left), right.cast(operands.right));
        // The engine takes intervals, times and days on the right of what they move.
        let swaps = op == ArithmeticOp::Add
            && match (operands.left, operands.right) {
                (DataType::Interval, other) => other != DataType::Interval,
                (DataType::Int64 | DataType::Time, DataType::Date) => true,
                _ => false,
            }
            || op == ArithmeticOp::Multiply && operands.right == DataType::Interval;
        let (left, right) = if swaps { (right, left) } else { (left, right) };
        Ok(Bound::known(fold::arithmetic(op, left, right, operands.result)))
    }

    /// `left || right`
    fn concatenation(&mut self, left: Bound, right: Bound) -> Result<Bound> {
        let is_list = |bound: &Bound| matches!(bound.ty(), DataType::List(_) | DataType::Array(..));
        if is_list(&left) || is_list(&right) {
            return self.call("list_concat", vec![left, right]);
        }
        if left.ty() == DataType::Blob && right.ty() == DataType::Blob {
            return self.call("concat", vec![left, right]);
        }
        let args = vec![left.cast(DataType::Varchar), right.cast(DataType::Varchar)];
        Ok(Bound::known(Expr::Function { function: Function::Concat, args, ty: DataType::Varchar }))
    }

    /// Whether a pattern matches part of a text.
    pub(crate) fn regex(&mut self, input: Bound, pattern: Bound, flags: Option<&str>) -> Result<Expr> {
        let mut args = vec![input.cast(DataType::Varchar), pattern.cast(DataType::Varchar)];
        args.extend(flags.map(|flags| Bound::text(flags).expr));
        named_call("regexp_matches", args, TimeZone::UTC)
    }
}

/// `input [I]LIKE pattern`
///
/// # Errors
/// None.
pub(crate) fn like(
    input: Bound,
    pattern: Bound,
    escape: Option<char>,
    case_insensitive: bool,
) -> Result<Expr> {
    let input = Box::new(input.cast(DataType::Varchar));
    let pattern = Box::new(pattern.cast(DataType::Varchar));
    Ok(Expr::Like { input, pattern, escape, case_insensitive })
}
