//! Comparison of exact numbers of different scales, such as a BIGINT and a DECIMAL(38,20).
//!
//! Both are converted to a common decimal type. If the digits of both together exceed a decimal, the binder's
//! common type has 38 digits, and the conversion would fail for a row whose integer has too many, even if it
//! merely does not match. In such a pair only the side with fewer decimals can be too large, and then it is
//! beyond every value of the other side. So it is converted with saturation ([`Function::Saturate`]), and
//! every comparison has the right result.

use super::fold;
use entasis_vector::expr::{Expr, Function};
use entasis_vector::types::pow10;
use entasis_vector::{DataType, Value};

/// The most digits of a decimal.
const DIGITS: u8 = 38;

/// Both operands as decimals of the same scale; `None` unless they are exact numbers of two types, at least
/// one of them a decimal.
pub fn exact(left: &Expr, right: &Expr) -> Option<(Expr, Expr)> {
    let (left, right) = (trimmed(left, right.ty()), trimmed(right, left.ty()));
    let ((l_whole, l_scale), (r_whole, r_scale)) = (digits(left.ty())?, digits(right.ty())?);
    if !left.ty().is_decimal() && !right.ty().is_decimal() {
        return None;
    }
    let (whole, scale) = (l_whole.max(r_whole), l_scale.max(r_scale));
    let ty = DataType::Decimal { precision: (whole + scale).min(DIGITS), scale };
    let side = |expr: Expr, own: u8| match whole + scale > DIGITS && own < scale {
        true => Expr::Function { function: Function::Saturate, args: vec![expr], ty },
        false => fold::cast_expr(expr, ty, false),
    };
    Some((side(left, l_scale), side(right, r_scale)))
}

/// The most digits before and after the decimal point.
fn digits(ty: DataType) -> Option<(u8, u8)> {
    Some(match ty {
        DataType::Int8 | DataType::UInt8 => (3, 0),
        DataType::Int16 | DataType::UInt16 => (5, 0),
        DataType::Int32 | DataType::UInt32 => (10, 0),
        DataType::Int64 => (19, 0),
        DataType::UInt64 => (20, 0),
        DataType::Decimal { precision, scale } => (precision - scale, scale),
        _ => return None,
    })
}

/// A constant without trailing zeros after its decimal point beyond the scale of the other side.
fn trimmed(expr: &Expr, other: DataType) -> Expr {
    if let Expr::Literal { value: Value::Integer(value), ty: DataType::Decimal { precision, scale } } = expr
        && let Some((_, wanted)) = digits(other)
        && *scale > wanted
    {
        let zeros = (1..=scale - wanted).take_while(|zeros| value % pow10(*zeros) == 0).last().unwrap_or(0);
        let ty = DataType::Decimal { precision: (precision - zeros).max(1), scale: scale - zeros };
        return Expr::literal(Value::Integer(value / pow10(zeros)), ty);
    }
    expr.clone()
}
