//! Logic with three values, over bytes 0 and 1 and validity bits.
//!
//! Where operands have NULLs and many positions count, 64 of them are combined at a time: which are true, and
//! which are known ([`combine`]). Few positions are combined one by one ([`kleene`]).

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
    match rows.widened() {
        Rows::Dense(limit) => {
            let words = values[..limit].chunks_mut(64).zip(validity);
            words.for_each(|(bytes, valid)| write_bits(!valid, bytes));
        }
        rows => rows.each(|p| values[p] = u8::from(!bitmap::get(validity, p))),
    }
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
    match rows.widened() {
        Rows::Dense(limit) => {
            for word in 0..bitmap::words_for(limit) {
                write_word(out, word, limit, combine(or, truths(a, word), truths(b, word)));
            }
        }
        rows => rows.each(|p| write(out, p, kleene(or, logical(a, p), logical(b, p)))),
    }
}

/// Combines `part` with `out`, the result of the earlier parts, for the rows that are still in question.
pub fn junction_into(or: bool, part: &Vector, rows: Rows<'_>, out: &mut Vector) {
    if part.validity().is_none() && out.validity().is_none() {
        let part = operand::<u8>(part);
        let values = out.values_mut::<u8>();
        rows.each(|p| values[p] = if or { values[p] | part.get(p) } else { values[p] & part.get(p) });
        return;
    }
    match rows.widened() {
        // Rows that are not in question any more are true, or false for `and`, and stay so.
        Rows::Dense(limit) => {
            for word in 0..bitmap::words_for(limit) {
                let both = combine(or, truths(out, word), truths(part, word));
                write_word(out, word, limit, both);
            }
        }
        rows => rows.each(|p| {
            let value = kleene(or, logical(out, p), logical(part, p));
            write(out, p, value);
        }),
    }
}

/// Begins `out` as `value` in all rows.
pub fn fill(value: bool, rows: Rows<'_>, out: &mut Vector) {
    let limit = rows.limit();
    out.begin_flat::<u8>(limit.max(CHUNK_ROWS))[..limit].fill(u8::from(value));
}

/// Of the positions from 64 `word` on, those at which a flat or constant vector is true; NULL is not.
/// Positions beyond its rows are unspecified.
pub fn true_bits(v: &Vector, word: usize) -> u64 {
    let (values, known) = truths(v, word);
    values & known
}

/// Of 64 positions, those that are true, and those that are true or false. Others than the latter mean
/// nothing in the former.
type Truths = (u64, u64);

/// Those of a word of positions of a flat or constant vector.
#[inline(always)]
fn truths(v: &Vector, word: usize) -> Truths {
    if v.is_constant() {
        let all = |is_set: bool| if is_set { !0 } else { 0 };
        return (all(v.values::<u8>()[0] != 0), all(v.is_valid(0)));
    }
    let (values, start) = (v.values::<u8>(), word * 64);
    let bytes = &values[start..values.len().min(start + 64)];
    let (eights, rest) = bytes.as_chunks();
    let mut bits = eights.iter().rev().fold(0, |bits, eight| bits << 8 | ones(*eight));
    if !rest.is_empty() {
        let mut padded = [0; 8];
        padded[..rest.len()].copy_from_slice(rest);
        bits |= ones(padded) << (eights.len() * 8);
    }
    (bits, v.validity().map_or(!0, |validity| validity[word]))
}

/// The lowest bit of each of eight bytes.
// PERF: the product moves that of byte i to bit 56 + i.
#[inline(always)]
fn ones(eight: [u8; 8]) -> u64 {
    let ones = u64::from_le_bytes(eight) & 0x0101_0101_0101_0101;
    ones.wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// Writes up to 64 bits as bytes 0 and 1.
#[inline(always)]
pub fn write_bits(bits: u64, bytes: &mut [u8]) {
    // PERF: byte i of the product has all eight bits, of which the mask leaves bit i; the sum carries it to
    // the highest one.
    let eight = |at: usize| {
        let some = ((bits >> (8 * at)) & 0xff).wrapping_mul(0x0101_0101_0101_0101) & 0x8040_2010_0804_0201;
        ((some + 0x7f7f_7f7f_7f7f_7f7f) >> 7 & 0x0101_0101_0101_0101).to_le_bytes()
    };
    let (eights, rest) = bytes.as_chunks_mut();
    eights.iter_mut().enumerate().for_each(|(at, bytes)| *bytes = eight(at));
    if !rest.is_empty() {
        let count = rest.len();
        rest.copy_from_slice(&eight(eights.len())[..count]);
    }
}

/// `a AND b` (`or` false) or `a OR b`: known where both are, or where one of them decides.
#[inline(always)]
fn combine(or: bool, (a, known_a): Truths, (b, known_b): Truths) -> Truths {
    let decides = |values: u64, known: u64| if or { values & known } else { !values & known };
    let decided = decides(a, known_a) | decides(b, known_b);
    (if or { decided } else { !decided }, (known_a & known_b) | decided)
}

/// Writes a word of positions below `limit`; NULL has the byte of false.
#[inline(always)]
fn write_word(out: &mut Vector, word: usize, limit: usize, (values, known): Truths) {
    let positions = word * 64..limit.min(word * 64 + 64);
    let bytes = &mut out.values_mut::<u8>()[positions];
    write_bits(values & known, bytes);
    if known != !0 || out.validity().is_some() {
        out.validity_mut(limit)[word] = known;
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PhysicalType, Value};

    /// A vector of true, false and NULL in an irregular order; a constant for `step` 0.
    fn vector(rows: usize, step: usize) -> Vector {
        let of = |row: usize| [Value::Boolean(true), Value::Boolean(false), Value::Null][row % 3].clone();
        if step == 0 {
            return Vector::constant(PhysicalType::Bool, &of(rows)).expect("a boolean");
        }
        let values: Vec<Value> = (0..rows).map(|row| of(row * step / 2 + row / (2 * step))).collect();
        Vector::from_values(PhysicalType::Bool, &values).expect("booleans")
    }

    #[test]
    fn bits_are_written_and_read() {
        let words = [0, !0, 1, 1 << 63, 0x0123_4567_89ab_cdef, 0x8040_2010_0804_0201, 0xf00f_0ff0_55aa_aa55];
        for (bits, length) in words.iter().flat_map(|bits| (0..=64).map(|length| (*bits, length))) {
            let mut bytes = [7; 64];
            write_bits(bits, &mut bytes[..length]);
            let expected: Vec<u8> = (0..length).map(|at| (bits >> at & 1) as u8).collect();
            assert_eq!(&bytes[..length], expected);
            assert!(bytes[length..].iter().all(|&byte| byte == 7), "no byte beyond is written");
            if length > 0 {
                let read = true_bits(&Vector::from_slice(&bytes[..length]), 0);
                assert_eq!(read << (64 - length), bits << (64 - length));
            }
        }
    }

    /// 64 positions at a time give what one at a time gives, whichever rows are asked for.
    #[test]
    fn words_give_what_single_positions_give() {
        for (rows, left, right) in
            (1..200).flat_map(|rows| (0..4).flat_map(move |a| (0..4).map(move |b| (rows, a, b))))
        {
            let (a, b) = (vector(rows, left), vector(rows, right));
            let some: Vec<u16> = (0..rows as u16).filter(|row| row % 3 != 1).collect();
            let few: Vec<u16> = (0..rows as u16).filter(|row| row % 9 == 4).collect();
            for or in [false, true] {
                for asked in [Rows::Dense(rows), Rows::Sparse(&some, rows), Rows::Sparse(&few, rows)] {
                    let (mut out, mut into) = (Vector::new(PhysicalType::Bool), vector(rows, 1 + left));
                    let before = vector(rows, 1 + left);
                    junction(or, &a, &b, asked, &mut out);
                    junction_into(or, &b, asked, &mut into);
                    asked.each(|p| {
                        let both = kleene(or, logical(&a, p), logical(&b, p));
                        let at = if out.is_constant() { 0 } else { p };
                        assert_eq!(logical(&out, at), both, "{rows} rows, {left} and {right}, row {p}");
                        let both = kleene(or, logical(&before, p), logical(&b, p));
                        assert_eq!(logical(&into, p), both, "{rows} rows, {left} and {right}, row {p}");
                    });
                    // What decides stays, asked for or not.
                    let decided = (0..rows).filter(|&p| logical(&before, p) == Some(or));
                    decided.for_each(|p| assert_eq!(logical(&into, p), Some(or), "row {p}"));
                }
            }
        }
    }
}
