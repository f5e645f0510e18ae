//! Comparisons of two values of one physical type, into bytes 0 and 1.

use super::{Rows, binary, operand, strict};
use crate::buffer::Native;
use crate::expr::CompareOp;
use crate::types::{Interval, PhysicalType};
use crate::vector::Vector;
use crate::{CHUNK_ROWS, Result, StringView};

/// Equality and order as SQL has them, in forms that become vector instructions.
pub trait Comparable: Native {
    fn equal(self, other: Self) -> bool;
    fn less(self, other: Self) -> bool;
}
macro_rules! by_operator {
    ($($t:ty),*) => { $(
        impl Comparable for $t {
            #[inline(always)]
            fn equal(self, other: $t) -> bool {
                self == other
            }
            #[inline(always)]
            fn less(self, other: $t) -> bool {
                self < other
            }
        }
    )* };
}
by_operator!(i8, i16, i32, i64, i128, u8, u16, u32, u64, StringView, Interval);
macro_rules! nan_is_greatest {
    ($($t:ty),*) => { $(
        impl Comparable for $t {
            #[inline(always)]
            fn equal(self, other: $t) -> bool {
                (self == other) | (self.is_nan() & other.is_nan())
            }
            #[inline(always)]
            fn less(self, other: $t) -> bool {
                (self < other) | (other.is_nan() & !self.is_nan())
            }
        }
    )* };
}
nan_is_greatest!(f32, f64);

/// Runs `$body` with `$t` the type behind `$physical`.
macro_rules! with_comparable {
    ($physical:expr, $t:ident => $body:expr) => {
        match $physical {
            PhysicalType::F32 => {
                type $t = f32;
                $body
            }
            PhysicalType::F64 => {
                type $t = f64;
                $body
            }
            PhysicalType::Str => {
                type $t = StringView;
                $body
            }
            PhysicalType::Interval => {
                type $t = Interval;
                $body
            }
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
        }
    };
}

/// `a op b`, BOOLEAN.
///
/// # Errors
/// None; the type is that of all kernels.
pub fn compare(op: CompareOp, a: &Vector, b: &Vector, rows: Rows<'_>, out: &mut Vector) -> Result<()> {
    if matches!(op, CompareOp::DistinctFrom | CompareOp::NotDistinctFrom) {
        distinct(op == CompareOp::DistinctFrom, a, b, rows, out);
        return Ok(());
    }
    strict(&[a, b], rows, out, |rows, out| {
        with_comparable!(a.physical(), T => values::<T>(op, a, b, rows, out.values_mut()));
        Ok(())
    })
}

fn values<T: Comparable>(op: CompareOp, a: &Vector, b: &Vector, rows: Rows<'_>, out: &mut [u8]) {
    let (a, b) = (operand::<T>(a), operand::<T>(b));
    // Strings may follow a pointer; that is worth it only for rows.
    let rows = if T::PHYSICAL == PhysicalType::Str { rows } else { rows.widened() };
    match op {
        CompareOp::Eq | CompareOp::NotDistinctFrom => binary(a, b, rows, out, |a, b| u8::from(a.equal(b))),
        CompareOp::NotEq | CompareOp::DistinctFrom => binary(a, b, rows, out, |a, b| u8::from(!a.equal(b))),
        CompareOp::Lt => binary(a, b, rows, out, |a, b| u8::from(a.less(b))),
        CompareOp::LtEq => binary(a, b, rows, out, |a, b| u8::from(!b.less(a))),
        CompareOp::Gt => binary(a, b, rows, out, |a, b| u8::from(b.less(a))),
        CompareOp::GtEq => binary(a, b, rows, out, |a, b| u8::from(!a.less(b))),
    }
}

/// `a IS [NOT] DISTINCT FROM b`: by value where both are valid, by validity elsewhere.
fn distinct(negated: bool, a: &Vector, b: &Vector, rows: Rows<'_>, out: &mut Vector) {
    let op = if negated { CompareOp::NotEq } else { CompareOp::Eq };
    out.begin(rows.limit().max(CHUNK_ROWS));
    let target = out.values_mut::<u8>();
    if a.validity().is_none() && b.validity().is_none() {
        with_comparable!(a.physical(), T => values::<T>(op, a, b, rows, target));
        return;
    }
    rows.each(|p| match (a.is_valid(p), b.is_valid(p)) {
        // The view at a NULL position may be of a string that is gone, so only valid ones are compared.
        (true, true) => {
            with_comparable!(a.physical(), T => {
                let equal = operand::<T>(a).get(p).equal(operand::<T>(b).get(p));
                target[p] = u8::from(equal != negated);
            });
        }
        (a, b) => target[p] = u8::from((a == b) != negated),
    });
}

/// `low <= x AND x <= high` for constants: one comparison of the distance from `low`.
///
/// # Errors
/// None; the type is that of all kernels.
pub fn between(x: &Vector, low: &Vector, high: &Vector, rows: Rows<'_>, out: &mut Vector) -> Result<()> {
    macro_rules! by_distance {
        ($t:ty, $u:ty, $rows:expr, $out:expr) => {{
            let (low, high) = (low.values::<$t>()[0], high.values::<$t>()[0]);
            let span = high.wrapping_sub(low) as $u;
            let some = u8::from(low <= high);
            super::unary(operand::<$t>(x), $rows.widened(), $out.values_mut::<u8>(), move |v| {
                u8::from(v.wrapping_sub(low) as $u <= span) & some
            });
        }};
    }
    strict(&[x, low, high], rows, out, |rows, out| {
        match x.physical() {
            PhysicalType::I8 => by_distance!(i8, u8, rows, out),
            PhysicalType::I16 => by_distance!(i16, u16, rows, out),
            PhysicalType::I32 => by_distance!(i32, u32, rows, out),
            PhysicalType::I64 => by_distance!(i64, u64, rows, out),
            PhysicalType::I128 => by_distance!(i128, u128, rows, out),
            PhysicalType::U16 => by_distance!(u16, u16, rows, out),
            PhysicalType::U32 => by_distance!(u32, u32, rows, out),
            PhysicalType::U64 => by_distance!(u64, u64, rows, out),
            _ => by_distance!(u8, u8, rows, out),
        }
        Ok(())
    })
}
