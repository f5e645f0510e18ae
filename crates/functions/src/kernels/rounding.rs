//! `round` and `trunc`: numbers with as many digits after the decimal point, or before it, as are wanted.

use crate::definition::{Kernel, Row, Signature};
use entasis_vector::types::pow10;
use entasis_vector::{DataType, Error, Result, Value};

const DOUBLE: DataType = DataType::Float64;
const REAL: DataType = DataType::Float32;
const BIGINT: DataType = DataType::Int64;

/// The signature of `round` and `trunc`: integers and floats keep their type, a decimal keeps as many digits
/// after the decimal point as the second argument says, if that is constant.
pub(super) fn cut(
    types: &[DataType],
    constants: &[Option<Value>],
    float: Kernel,
    wide: fn(&Row<'_>) -> Result<Option<i128>>,
) -> Result<Signature> {
    let (Some(&x), 1..=2) = (types.first(), types.len()) else {
        return Err(Error::input("one or two numbers"));
    };
    let mut args = vec![x];
    if let Some(&count) = types.get(1) {
        if !(count.is_integer() || matches!(count, DataType::Null | DataType::Varchar)) {
            return Err(Error::input("the number of digits must be an integer"));
        }
        args.push(BIGINT);
    }
    let (result, kernel) = match x {
        ty if ty.is_integer() => (ty, Kernel::Wide(wide)),
        DataType::Decimal { precision, scale } => {
            let known = match constants.get(1) {
                _ if types.len() == 1 => Some(0),
                Some(Some(Value::Integer(n))) => Some((*n).clamp(-100, 100) as i64),
                _ => None,
            };
            let kept = known.map_or(scale, |n| n.clamp(0, scale.into()) as u8);
            // A carry fits into the digits that are dropped.
            let carried = kept == scale && known.is_none_or(|n| n < 0);
            let precision = (precision + u8::from(carried)).min(38);
            (DataType::Decimal { precision, scale: kept }, Kernel::Wide(wide))
        }
        REAL => (REAL, float),
        DOUBLE | DataType::Null | DataType::Varchar => {
            args[0] = DOUBLE;
            (DOUBLE, float)
        }
        _ => return Err(Error::input("not a number")),
    };
    Ok(Signature { args, result, kernel })
}

fn wanted_digits(row: &Row<'_>) -> i64 {
    if row.count() > 1 { row.whole(1) } else { 0 }
}

pub(super) fn round_float(row: &Row<'_>) -> Result<Option<f64>> {
    Ok(Some(at_digits(row.float(0), wanted_digits(row), f64::round)))
}

pub(super) fn trunc_float(row: &Row<'_>) -> Result<Option<f64>> {
    Ok(Some(at_digits(row.float(0), wanted_digits(row), f64::trunc)))
}

/// Applies `f` to a float at a number of digits after the decimal point. A float without so many digits is
/// returned as it is.
pub(super) fn at_digits(x: f64, digits: i64, f: fn(f64) -> f64) -> f64 {
    if !x.is_finite() || x == 0.0 {
        return x;
    }
    let exponent = x.abs().log10().floor() as i64;
    if digits.saturating_add(exponent) >= 17 {
        return x;
    }
    if digits < -exponent - 1 || digits < -308 {
        // Less than half a unit.
        return 0.0_f64.copysign(x);
    }
    let power = power_of_ten(digits.unsigned_abs().min(350) as u32);
    if !power.is_finite() || !(x * power).is_finite() {
        // A tiny number with digits far after the decimal point: scaled in two steps.
        let (first, second) =
            (power_of_ten(300), power_of_ten(digits.saturating_sub(300).clamp(0, 350) as u32));
        return f(x * first * second) / second / first;
    }
    if digits >= 0 { f(x * power) / power } else { f(x / power) * power }
}

/// The float nearest to 10^n; repeated multiplication would be less accurate.
fn power_of_ten(n: u32) -> f64 {
    if n <= 22 { 10f64.powi(n as i32) } else { format!("1e{n}").parse().unwrap_or(f64::INFINITY) }
}

pub(super) fn round_wide(row: &Row<'_>) -> Result<Option<i128>> {
    cut_wide(row, true)
}

pub(super) fn trunc_wide(row: &Row<'_>) -> Result<Option<i128>> {
    cut_wide(row, false)
}

fn scale_of(ty: DataType) -> i64 {
    match ty {
        DataType::Decimal { scale, .. } => scale.into(),
        _ => 0,
    }
}

fn cut_wide(row: &Row<'_>, round: bool) -> Result<Option<i128>> {
    let (x, scale, target) = (row.wide(0), scale_of(row.ty(0)), scale_of(row.result));
    // First the number in units of the last kept digit, then at the result's scale, which does not exceed the
    // argument's.
    let kept = wanted_digits(row).min(scale);
    let dropped = scale.saturating_sub(kept);
    let cut = if dropped == 0 {
        x
    } else if dropped > 38 {
        return Ok(Some(0));
    } else {
        let unit = pow10(dropped as u8);
        let (whole, rest) = (x / unit, x % unit);
        let carry = round && rest.unsigned_abs() >= unit.unsigned_abs() - rest.unsigned_abs();
        whole + if carry { x.signum() } else { 0 }
    };
    let up = target - kept;
    match up {
        0 => Ok(Some(cut)),
        1..=38 => cut.checked_mul(pow10(up as u8)).map(Some).ok_or_else(|| out_of_range("round")),
        -38..=-1 => Ok(Some(cut / pow10((-up) as u8))),
        _ if cut == 0 => Ok(Some(0)),
        _ => Err(out_of_range("round")),
    }
}

pub(super) fn out_of_range(name: &str) -> Error {
    Error::input(format!("{name}: the result is out of range"))
}
