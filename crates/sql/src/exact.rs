//! Comparing exact numbers that no one decimal holds: a BIGINT beside a DECIMAL(38,20).
//!
//! The binder brings both to one type, of 38 digits at most, and a row whose integer has too many fails, even if it merely does
//! not match. Of such a pair only the side with fewer decimals can be too long, and then it is longer than any value of the
//! other. So it is cast leniently:
//!
//! ```text
//! n = d   →   try_cast(n) = d AND NOT (try_cast(n) IS NULL AND n IS NOT NULL AND d IS NOT NULL)
//! n < d   →   CASE WHEN too long THEN n < 0 ELSE try_cast(n) < d END
//! ```
//!
//! The equality stands alone, so that it is still the key of a join or finds blocks.

use arrow_schema::DataType as ArrowType;
use datafusion_common::ScalarValue;
use datafusion_common::{DFSchema, Result as DfResult};
use datafusion_expr::{Expr, ExprSchemable, Operator, TryCast, binary_expr, cast, lit, when};

/// Digits of a decimal.
const DIGITS: u8 = 38;

/// A comparison of `left` and `right` that cannot fail, if the binder's might.
///
/// # Errors
/// Those of asking for types.
pub(crate) fn comparison(left: &Expr, op: Operator, right: &Expr, schema: &DFSchema) -> DfResult<Option<Expr>> {
    let (left_type, right_type) = (left.get_type(schema)?, right.get_type(schema)?);
    let Some((shorter, common)) = beyond_decimals(&left_type, &right_type) else { return Ok(None) };
    let side = |is_left: bool, expr: &Expr| match is_left == (shorter == Side::Left) {
        true => lenient(expr.clone(), common.clone()),
        false => cast(expr.clone(), common.clone()),
    };
    let (l, r) = (side(true, left), side(false, right));
    let (long, other) = if shorter == Side::Left { (left, right) } else { (right, left) };
    let too_long = lenient(long.clone(), common.clone()).is_null().and(long.clone().is_not_null());
    let compared = binary_expr(l, op, r);
    let zero = || cast(lit(0i64), if shorter == Side::Left { left_type.clone() } else { right_type.clone() });
    // Whether the long value is below the other one, where it is too long.
    let is_less = || long.clone().lt(zero());
    let instead = match op {
        Operator::Eq => return Ok(Some(compared.and((too_long.and(other.clone().is_not_null())).is_not_true()))),
        Operator::IsNotDistinctFrom => lit(false),
        Operator::IsDistinctFrom => lit(true),
        Operator::NotEq => lit(true),
        Operator::Lt | Operator::LtEq if shorter == Side::Left => is_less(),
        Operator::Gt | Operator::GtEq if shorter == Side::Right => is_less(),
        Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq => long.clone().gt(zero()),
        _ => return Ok(None),
    };
    let unknown = match op {
        Operator::IsDistinctFrom | Operator::IsNotDistinctFrom => instead,
        _ => when(other.clone().is_null(), Expr::Literal(ScalarValue::Boolean(None), None)).otherwise(instead)?,
    };
    Ok(Some(when(too_long, unknown).otherwise(compared)?))
}

/// The keys of a join of two such columns: what is too long finds no partner.
///
/// # Errors
/// Those of asking for types.
pub(crate) fn keys(left: &Expr, right: &Expr, l: &DFSchema, r: &DFSchema) -> DfResult<Option<(Expr, Expr)>> {
    let found = beyond_decimals(&left.get_type(l)?, &right.get_type(r)?);
    Ok(found.map(|(shorter, common)| match shorter {
        Side::Left => (lenient(left.clone(), common.clone()), cast(right.clone(), common)),
        Side::Right => (cast(left.clone(), common.clone()), lenient(right.clone(), common)),
    }))
}

#[derive(PartialEq, Eq, Clone, Copy)]
enum Side {
    Left,
    Right,
}

/// The side with fewer decimals and the type to compare in, if both sides' digits are more than a decimal has.
fn beyond_decimals(left: &ArrowType, right: &ArrowType) -> Option<(Side, ArrowType)> {
    let ((left_digits, left_scale), (right_digits, right_scale)) = (digits(left)?, digits(right)?);
    let scale = left_scale.max(right_scale);
    if left_digits.max(right_digits) + scale <= DIGITS || left_scale == right_scale {
        return None;
    }
    let side = if left_scale < right_scale { Side::Left } else { Side::Right };
    Some((side, ArrowType::Decimal128(DIGITS, scale as i8)))
}

/// Digits before and after the point.
fn digits(ty: &ArrowType) -> Option<(u8, u8)> {
    Some(match ty {
        ArrowType::Int8 | ArrowType::UInt8 => (3, 0),
        ArrowType::Int16 | ArrowType::UInt16 => (5, 0),
        ArrowType::Int32 | ArrowType::UInt32 => (10, 0),
        ArrowType::Int64 => (19, 0),
        ArrowType::UInt64 => (20, 0),
        ArrowType::Decimal128(precision, scale) => {
            let scale = u8::try_from(*scale).ok()?;
            (precision.checked_sub(scale)?, scale)
        }
        _ => return None,
    })
}

fn lenient(expr: Expr, ty: ArrowType) -> Expr {
    Expr::TryCast(TryCast::new(Box::new(expr), ty))
}
