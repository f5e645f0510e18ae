//! Logic with three values, over bytes 0 and 1 and validity bits.
//!
//! Where operands have NULLs and many positions count, 64 of them are combined at a time: which are true, and
//! which are known ([`combine`]). Few positions are combined one by one in the same way.

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
        let (value, known) = combine(or, truth(a, 0), truth(b, 0));
        if known & 1 == 0 {
            null_constant(out);
        } else {
            out.begin_flat::<u8>(CHUNK_ROWS)[0] = (value & 1) as u8;
            out.make_constant();
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
            write_words(out, limit, |_, word| combine(or, truths(a, word), truths(b, word)));
        }
        Rows::Sparse(list, limit) => {
            write_each(out, list, limit, |_, p| combine(or, truth(a, p), truth(b, p)))
        }
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
            write_words(out, limit, |out, word| combine(or, truths(out, word), truths(part, word)));
        }
        Rows::Sparse(list, limit) => {
            write_each(out, list, limit, |out, p| combine(or, truth(out, p), truth(part, p)))
        }
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

/// The words of positions that are computed before any of them is written.
const WORDS: usize = CHUNK_ROWS / 64;

/// Writes all positions below `limit`, a word of 64 at a time, `of` what was there before; NULL has the byte
/// of false.
fn write_words(out: &mut Vector, limit: usize, of: impl Fn(&Vector, usize) -> Truths) {
    let all = bitmap::words_for(limit);
    for start in (0..all).step_by(WORDS) {
        let words = start..all.min(start + WORDS);
        let mut truths = [(0, !0); WORDS];
        truths.iter_mut().zip(words.clone()).for_each(|(truths, word)| *truths = of(out, word));
        let truths = &truths[..words.len()];
        let bytes = &mut out.values_mut::<u8>()[start * 64..limit.min(words.end * 64)];
        bytes
            .chunks_mut(64)
            .zip(truths)
            .for_each(|(bytes, (values, known))| write_bits(values & known, bytes));
        if out.validity().is_some() || truths.iter().any(|(_, known)| *known != !0) {
            let validity = &mut out.validity_mut(limit)[words];
            validity.iter_mut().zip(truths).for_each(|(validity, (_, known))| *validity = *known);
        }
    }
}

/// As [`truths`], of one position, in the lowest bit.
#[inline(always)]
fn truth(v: &Vector, position: usize) -> Truths {
    (u64::from(operand::<u8>(v).get(position)), u64::from(v.is_valid(position)))
}

/// Writes the listed positions, `of` what was there before: [`truth`]s; NULL has the byte of false.
fn write_each(out: &mut Vector, list: &[u16], limit: usize, of: impl Fn(&Vector, usize) -> Truths) {
    for list in list.chunks(64) {
        let mut truths = [(0, 1); 64];
        truths.iter_mut().zip(list).for_each(|(truth, &p)| *truth = of(out, usize::from(p)));
        let written = || list.iter().map(|&p| usize::from(p)).zip(&truths);
        let bytes = out.values_mut::<u8>();
        written().for_each(|(p, (value, known))| bytes[p] = (value & known & 1) as u8);
        if out.validity().is_some() || written().any(|(_, (_, known))| known & 1 == 0) {
            let validity = out.validity_mut(limit);
            written().for_each(|(p, (_, known))| bitmap::set(validity, p, known & 1 == 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PhysicalType, Value};

    /// The value at a position of a flat or constant vector; `None` is NULL.
    fn logical(v: &Vector, position: usize) -> Option<bool> {
        v.is_valid(position).then(|| operand::<u8>(v).get(position) != 0)
    }

    fn kleene(or: bool, a: Option<bool>, b: Option<bool>) -> Option<bool> {
        match (a, b) {
            (Some(a), Some(b)) => Some(if or { a | b } else { a & b }),
            (Some(v), None) | (None, Some(v)) if v == or => Some(v),
            _ => None,
        }
    }

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
