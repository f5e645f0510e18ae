//! Logic with three values, over bytes 0 and 1 and validity bits.

use super::{Rows, binary, null_constant, operand, strict, unary};
use crate::vector::Vector;
use crate::{CHUNK_ROWS, Result, bitmap};

/// `NOT a`.
///
/// # Errors
/// None; the type is that of all kernels.
pub fn not(a: &Vector, rows: Rows<'_>, out: &mut Vector) -> Result<()> {
    strict(&[a], rows, out, |rows, out| {
        unary(operand::<u8>(a), rows.widened(), out.values_mut(), |v: u8| v ^ 1);
        Ok(())
    })
}

/// `a IS NULL`.
pub fn is_null(a: &Vector, rows: Rows<'_>, out: &mut Vector) {
    out.begin(rows.limit().max(CHUNK_ROWS));
    let values = out.values_mut::<u8>();
    if a.is_constant() || a.validity().is_none() {
        values[..rows.limit().max(1)].fill(u8::from(!a.is_valid(0)));
        if a.is_constant() {
            out.make_constant();
        }
        return;
    }
    let validity = a.validity().expect("just tested");
    rows.each(|p| values[p] = u8::from(!bitmap::get(validity, p)));
}

/// `a AND b` (`or` false) or `a OR b`, both computed for all rows.
pub fn junction(or: bool, a: &Vector, b: &Vector, rows: Rows<'_>, out: &mut Vector) {
    let nulls = a.validity().is_some() || b.validity().is_some();
    if a.is_constant() && b.is_constant() {
        match kleene(or, logical(a, 0), logical(b, 0)) {
            None => null_constant(out),
            Some(value) => {
                out.begin_flat::<u8>(CHUNK_ROWS)[0] = u8::from(value);
                out.make_constant();
            }
        }
        return;
    }
    out.begin(rows.limit().max(CHUNK_ROWS));
    if !nulls {
        let (a, b) = (operand::<u8>(a), operand::<u8>(b));
        if or {
            binary(a, b, rows.widened(), out.values_mut(), |a: u8, b: u8| a | b);
        } else {
            binary(a, b, rows.widened(), out.values_mut(), |a: u8, b: u8| a & b);
        }
        return;
    }
    rows.each(|p| write(out, p, kleene(or, logical(a, p), logical(b, p))));
}

/// Combines `part` with `out`, the result of the earlier parts, for the rows that are still in question.
pub fn junction_into(or: bool, part: &Vector, rows: Rows<'_>, out: &mut Vector) {
    if part.validity().is_none() && out.validity().is_none() {
        let part = operand::<u8>(part);
        let values = out.values_mut::<u8>();
        rows.each(|p| values[p] = if or { values[p] | part.get(p) } else { values[p] & part.get(p) });
        return;
    }
    rows.each(|p| {
        let value = kleene(or, logical(out, p), logical(part, p));
        write(out, p, value);
    });
}

/// Begins `out` as `value` in all rows.
pub fn fill(value: bool, rows: Rows<'_>, out: &mut Vector) {
    let limit = rows.limit();
    out.begin_flat::<u8>(limit.max(CHUNK_ROWS))[..limit].fill(u8::from(value));
}

/// The value at a position of a flat or constant vector; `None` is NULL.
#[inline(always)]
fn logical(v: &Vector, position: usize) -> Option<bool> {
    v.is_valid(position).then(|| operand::<u8>(v).get(position) != 0)
}

#[inline(always)]
fn kleene(or: bool, a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if or { a | b } else { a & b }),
        (Some(v), None) | (None, Some(v)) if v == or => Some(v),
        _ => None,
    }
}

#[inline(always)]
fn write(out: &mut Vector, position: usize, value: Option<bool>) {
    out.values_mut::<u8>()[position] = u8::from(value == Some(true));
    if value.is_none() {
        out.set_null(position);
    } else if out.validity().is_some() {
        bitmap::set(out.validity_mut(position + 1), position, true);
    }
}
