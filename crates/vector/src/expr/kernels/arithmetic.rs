//! Arithmetic on two integers or floats of one physical type; the result is of the same, or of 64 bits where
//! the operands have 32.
//!
//! Where the compiler has proved from ranges that the result fits, the loop wraps and nothing is checked.
//! Otherwise each result is computed wrapping, its overflow is OR-ed into one flag, and the flag is checked
//! once per chunk.

use super::{Operand, Rows, binary, binary_checked, first_failure, operand, strict, unary, unary_checked};
use crate::buffer::Native;
use crate::error::sqlstate;
use crate::expr::ArithmeticOp;
use crate::types::{DataType, PhysicalType};
use crate::vector::Vector;
use crate::{Error, Result, Value};

/// What must be checked of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// Nothing: the ranges of the operands rule failure out.
    Nothing,
    /// That it fits the physical type and the divisor is not zero.
    Fits,
    /// That its magnitude is below this, too: the bound of a decimal's precision.
    Below(i128),
}

/// What the kernels need of an integer.
pub trait Integer: Native + Ord + Into<Wide> {
    const ZERO: Self;
    fn wrapping(op: ArithmeticOp, a: Self, b: Self) -> Self;
    fn overflowing(op: ArithmeticOp, a: Self, b: Self) -> (Self, bool);
    fn low_bits(self) -> u32;
    fn is_below_zero(self) -> bool;
    fn from_wide(v: i128) -> Self;
}

/// Any integer as 128 bits.
#[derive(Debug, Clone, Copy)]
pub struct Wide(pub i128);

macro_rules! integer {
    ($($t:ty),*) => { $(
        impl From<$t> for Wide {
            #[inline(always)]
            fn from(v: $t) -> Wide {
                Wide(v as i128)
            }
        }
        impl Integer for $t {
            const ZERO: $t = 0;
            #[inline(always)]
            fn wrapping(op: ArithmeticOp, a: $t, b: $t) -> $t {
                match op {
                    ArithmeticOp::Add => a.wrapping_add(b),
                    ArithmeticOp::Subtract => a.wrapping_sub(b),
                    ArithmeticOp::Multiply => a.wrapping_mul(b),
                    // Positions that are not rows may hold a zero.
                    ArithmeticOp::Divide => if b == 0 { 0 } else { a.wrapping_div(b) },
                    ArithmeticOp::Modulo => if b == 0 { 0 } else { a.wrapping_rem(b) },
                    ArithmeticOp::BitAnd => a & b,
                    ArithmeticOp::BitOr => a | b,
                    ArithmeticOp::BitXor => a ^ b,
                    ArithmeticOp::ShiftLeft => a.wrapping_shl(b.low_bits() & (<$t>::BITS - 1)),
                    ArithmeticOp::ShiftRight => a.wrapping_shr(b.low_bits() & (<$t>::BITS - 1)),
                }
            }
            #[inline(always)]
            fn overflowing(op: ArithmeticOp, a: $t, b: $t) -> ($t, bool) {
                match op {
                    ArithmeticOp::Add => a.overflowing_add(b),
                    ArithmeticOp::Subtract => a.overflowing_sub(b),
                    ArithmeticOp::Multiply => a.overflowing_mul(b),
                    ArithmeticOp::Divide => if b == 0 { (0, true) } else { a.overflowing_div(b) },
                    // MIN % -1 is 0, which is no overflow.
                    ArithmeticOp::Modulo => if b == 0 { (0, true) } else { (a.wrapping_rem(b), false) },
                    _ => (<$t>::wrapping(op, a, b), false),
                }
            }
            #[inline(always)]
            fn low_bits(self) -> u32 {
                self as u32
            }
            #[inline(always)]
            fn is_below_zero(self) -> bool {
                (self as i128) < 0
            }
            #[inline(always)]
            fn from_wide(v: i128) -> $t {
                v as $t
            }
        }
    )* };
}
integer!(i8, i16, i32, i64, i128, u8, u16, u32, u64);

/// Runs `$body` with `$t` the integer type behind `$physical`; `$otherwise` for physical types that are none.
macro_rules! with_integer {
    ($physical:expr, $t:ident => $body:expr, $otherwise:expr) => {
        match $physical {
            PhysicalType::I8 => {
                type $t = i8;
                $body
            }
            PhysicalType::I16 => {
                type $t = i16;
                $body
            }
            PhysicalType::I32 => {
                type $t = i32;
                $body
            }
            PhysicalType::I64 => {
                type $t = i64;
                $body
            }
            PhysicalType::I128 => {
                type $t = i128;
                $body
            }
            PhysicalType::Bool | PhysicalType::U8 => {
                type $t = u8;
                $body
            }
            PhysicalType::U16 => {
                type $t = u16;
                $body
            }
            PhysicalType::U32 => {
                type $t = u32;
                $body
            }
            PhysicalType::U64 => {
                type $t = u64;
                $body
            }
            _ => $otherwise,
        }
    };
}
pub(crate) use with_integer;

/// `a op b`, of SQL type `ty`.
///
/// # Errors
/// Input: overflow, division by zero.
pub fn arithmetic(
    op: ArithmeticOp,
    check: Check,
    a: &Vector,
    b: &Vector,
    ty: DataType,
    rows: Rows<'_>,
    out: &mut Vector,
) -> Result<()> {
    let physical = out.physical();
    strict(&[a, b], rows, out, |rows, out| match physical {
        PhysicalType::F64 => float::<f64>(op, a, b, rows, out),
        PhysicalType::F32 => float::<f32>(op, a, b, rows, out),
        PhysicalType::I64 if a.physical() == PhysicalType::I32 => widening(op, a, b, rows, out),
        _ => with_integer!(
            physical,
            T => integers::<T>(op, check, a, b, ty, rows, out),
            Err(Error::internal(format!("{op} has no kernel for {physical:?}")))
        ),
    })
}

fn integers<T: Integer>(
    op: ArithmeticOp,
    check: Check,
    a: &Vector,
    b: &Vector,
    ty: DataType,
    rows: Rows<'_>,
    out: &mut Vector,
) -> Result<()> {
    let (x, y) = (operand::<T>(a), operand::<T>(b));
    // One loop per operation: `op` is a constant in each.
    macro_rules! each_op {
        ($run:ident: $($op:ident),*) => {
            match op {
                $(ArithmeticOp::$op => $run!(ArithmeticOp::$op),)*
            }
        };
    }
    macro_rules! unchecked {
        ($op:expr) => {{
            let wide =
                if matches!(op, ArithmeticOp::Divide | ArithmeticOp::Modulo) { rows } else { rows.widened() };
            binary(x, y, wide, out.values_mut::<T>(), |a, b| T::wrapping($op, a, b))
        }};
    }
    macro_rules! checked {
        ($op:expr) => {{
            let bound = if let Check::Below(bound) = check { bound } else { i128::MAX };
            let failed = if bound == i128::MAX {
                binary_checked(x, y, rows, out.values_mut::<T>(), |a, b| T::overflowing($op, a, b))
            } else {
                binary_checked(x, y, rows, out.values_mut::<T>(), move |a, b| {
                    let (value, overflow) = T::overflowing($op, a, b);
                    (value, overflow | (value.into().0.unsigned_abs() >= bound.unsigned_abs()))
                })
            };
            if failed {
                return first_failure(rows, out, |p| failure::<T>($op, x.get(p), y.get(p), bound, ty));
            }
        }};
    }
    if check == Check::Nothing {
        each_op!(
            unchecked: Add, Subtract, Multiply, Divide, Modulo, BitAnd, BitOr, BitXor, ShiftLeft, ShiftRight
        );
    } else {
        each_op!(
            checked: Add, Subtract, Multiply, Divide, Modulo, BitAnd, BitOr, BitXor, ShiftLeft, ShiftRight
        );
    }
    Ok(())
}

/// `a op b` of 32 bits each, in 64, which hold any sum, difference and product.
fn widening(op: ArithmeticOp, a: &Vector, b: &Vector, rows: Rows<'_>, out: &mut Vector) -> Result<()> {
    let (x, y) = (operand::<i32>(a), operand::<i32>(b));
    let (rows, out) = (rows.widened(), out.values_mut::<i64>());
    match op {
        ArithmeticOp::Add => binary(x, y, rows, out, |a, b| i64::from(a) + i64::from(b)),
        ArithmeticOp::Subtract => binary(x, y, rows, out, |a, b| i64::from(a) - i64::from(b)),
        ArithmeticOp::Multiply => binary(x, y, rows, out, |a, b| i64::from(a) * i64::from(b)),
        _ => return Err(Error::internal(format!("{op} does not widen its operands"))),
    }
    Ok(())
}

/// Why `a op b` has no result, if it has none.
fn failure<T: Integer>(op: ArithmeticOp, a: T, b: T, bound: i128, ty: DataType) -> Option<Error> {
    let (value, overflow) = T::overflowing(op, a, b);
    if matches!(op, ArithmeticOp::Divide | ArithmeticOp::Modulo) && b == T::ZERO {
        return Some(division_by_zero());
    }
    (overflow || value.into().0.unsigned_abs() >= bound.unsigned_abs()).then(|| {
        let text = match ty {
            DataType::Decimal { .. } => format!("decimal overflow: the result of {op} does not fit {ty}"),
            _ => format!("integer overflow: {} {op} {} does not fit {ty}", a.into().0, b.into().0),
        };
        Error::input(text).with_sqlstate(sqlstate::OUT_OF_RANGE)
    })
}

fn division_by_zero() -> Error {
    Error::input("division by zero").with_sqlstate(sqlstate::DIVISION_BY_ZERO)
}

/// What the kernels need of a float.
trait Float: Native + PartialOrd {
    const ZERO: Self;
    fn apply(op: ArithmeticOp, a: Self, b: Self) -> Self;
}
macro_rules! float {
    ($($t:ty),*) => { $(
        impl Float for $t {
            const ZERO: $t = 0.0;
            #[inline(always)]
            fn apply(op: ArithmeticOp, a: $t, b: $t) -> $t {
                match op {
                    ArithmeticOp::Add => a + b,
                    ArithmeticOp::Subtract => a - b,
                    ArithmeticOp::Multiply => a * b,
                    ArithmeticOp::Divide => a / b,
                    _ => a % b,
                }
            }
        }
    )* };
}
float!(f32, f64);

fn float<T: Float>(op: ArithmeticOp, a: &Vector, b: &Vector, rows: Rows<'_>, out: &mut Vector) -> Result<()> {
    let (x, y) = (operand::<T>(a), operand::<T>(b));
    if matches!(op, ArithmeticOp::Divide | ArithmeticOp::Modulo) {
        let mut zero = false;
        let wide = rows.widened();
        match y {
            Operand::One(y) => zero = y == T::ZERO,
            Operand::Each(y) => rows.each(|p| zero |= y[p] == T::ZERO),
        }
        if zero {
            first_failure(rows, out, |p| (y.get(p) == T::ZERO).then(division_by_zero))?;
        }
        if op == ArithmeticOp::Divide {
            binary(x, y, wide, out.values_mut(), |a, b| T::apply(ArithmeticOp::Divide, a, b));
        } else {
            binary(x, y, rows, out.values_mut(), |a, b| T::apply(ArithmeticOp::Modulo, a, b));
        }
        return Ok(());
    }
    let rows = rows.widened();
    match op {
        ArithmeticOp::Add => binary(x, y, rows, out.values_mut(), |a, b| T::apply(ArithmeticOp::Add, a, b)),
        ArithmeticOp::Subtract => {
            binary(x, y, rows, out.values_mut(), |a, b| T::apply(ArithmeticOp::Subtract, a, b))
        }
        ArithmeticOp::Multiply => {
            binary(x, y, rows, out.values_mut(), |a, b| T::apply(ArithmeticOp::Multiply, a, b))
        }
        _ => return Err(Error::internal(format!("{op} of floats"))),
    }
    Ok(())
}

/// Functions of one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Single {
    /// `-x`
    Negate,
    /// `abs(x)`
    Abs,
    /// `floor(x)`, floats
    Floor,
    /// `ceil(x)`, floats
    Ceil,
    /// `sqrt(x)`, floats
    Sqrt,
}

/// A function of one number, of SQL type `ty`.
///
/// # Errors
/// Input: overflow, the square root of a negative number.
pub fn single(function: Single, a: &Vector, ty: DataType, rows: Rows<'_>, out: &mut Vector) -> Result<()> {
    let physical = out.physical();
    strict(&[a], rows, out, |rows, out| match physical {
        PhysicalType::F64 => {
            let x = operand::<f64>(a);
            let wide = rows.widened();
            match function {
                Single::Negate => unary(x, wide, out.values_mut(), |v: f64| -v),
                Single::Abs => unary(x, wide, out.values_mut(), f64::abs),
                Single::Floor => unary(x, wide, out.values_mut(), f64::floor),
                Single::Ceil => unary(x, wide, out.values_mut(), f64::ceil),
                Single::Sqrt => {
                    let negative = || Error::input("square root of a negative number");
                    first_failure(rows, out, |p| (x.get(p) < 0.0).then(negative))?;
                    unary(x, wide, out.values_mut(), f64::sqrt);
                }
            }
            Ok(())
        }
        PhysicalType::F32 => {
            let x = operand::<f32>(a);
            match function {
                Single::Negate => unary(x, rows.widened(), out.values_mut(), |v: f32| -v),
                Single::Abs => unary(x, rows.widened(), out.values_mut(), f32::abs),
                _ => return Err(Error::internal(format!("{function:?} of REAL"))),
            }
            Ok(())
        }
        _ => with_integer!(
            physical,
            T => {
                let x = operand::<T>(a);
                let negate = function == Single::Negate;
                let turned = move |v: T| match negate || v.is_below_zero() {
                    true => T::overflowing(ArithmeticOp::Subtract, T::ZERO, v),
                    false => (v, false),
                };
                let failed = unary_checked(x, rows, out.values_mut(), turned);
                if failed {
                    first_failure(rows, out, |p| {
                        let v = x.get(p);
                        let overflow = (negate || v.is_below_zero())
                            && T::overflowing(ArithmeticOp::Subtract, T::ZERO, v).1;
                        let shown = Value::Integer(Into::<Wide>::into(v).0);
                        let message = || format!("integer overflow: -({}) does not fit {ty}", shown.display(ty));
                        overflow.then(|| Error::input(message()))
                    })?;
                }
                Ok(())
            },
            Err(Error::internal(format!("{function:?} has no kernel for {physical:?}")))
        ),
    })
}
