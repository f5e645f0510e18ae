//! `CASE` over whole columns: each row has one of two values, or one value and NULL.
//!
//! [`blend`] chooses values in a loop that the compiler turns into vector code, and validities 64 at a time:
//! those of one operand where the condition is true, those of the other elsewhere. Where one of the two is
//! NULL, there is nothing to choose: [`mask`] shares the memory of the values and computes a validity.
//!
//! Strings are blended as views. The caller sees to it that at most one of the two has bytes of its own
//! beyond its views; the result shares them.

use super::boolean::{true_bits, write_bits};
use super::{Operand, Rows, null_constant, operand};
use crate::buffer::Native;
use crate::simd::{Kernel, widest_of};
use crate::string::StringView;
use crate::types::PhysicalType;
use crate::vector::Vector;
use crate::{CHUNK_ROWS, bitmap};

/// `CASE WHEN condition THEN a ELSE b END`, all three computed; NULL is not true.
pub fn blend(condition: &Vector, a: &Vector, b: &Vector, rows: Rows<'_>, out: &mut Vector) {
    let constant = [condition, a, b].iter().all(|operand| operand.is_constant());
    let rows = if constant { Rows::Dense(1) } else { rows.widened() };
    out.begin(rows.limit().max(CHUNK_ROWS));
    match out.physical().width() {
        1 => choose::<u8>(condition, a, b, rows, out),
        2 => choose::<u16>(condition, a, b, rows, out),
        4 => choose::<u32>(condition, a, b, rows, out),
        8 => choose::<u64>(condition, a, b, rows, out),
        _ => choose::<i128>(condition, a, b, rows, out),
    }
    if out.physical() == PhysicalType::Str {
        out.share_strings(if owns_no_bytes(a) { b } else { a });
    }
    if a.validity().is_some() || b.validity().is_some() {
        write_validity(rows.limit(), out, |word| {
            let holds = true_bits(condition, word);
            holds & valid_bits(a, word) | !holds & valid_bits(b, word)
        });
    }
    if constant {
        out.make_constant();
    }
}

/// `CASE WHEN condition THEN value END`, or (`kept` false) `CASE WHEN condition THEN NULL ELSE value END`.
/// NULL is not true, both parts are computed for all rows, and the result shares the memory of `value`.
pub fn mask(condition: &Vector, kept: bool, value: &Vector, rows: Rows<'_>, out: &mut Vector) {
    if condition.is_constant() && (true_bits(condition, 0) & 1 != 0) != kept
        || value.is_constant() && !value.is_valid(0)
    {
        null_constant(out);
        return;
    }
    if value.is_constant() && !condition.is_constant() {
        repeat(value, rows.limit(), out);
    } else {
        out.share_values(value);
    }
    // A constant has a validity of one bit, and is valid here.
    if value.validity().is_some() && !value.is_constant() || !condition.is_constant() {
        write_validity(rows.limit(), out, |word| {
            let holds = true_bits(condition, word);
            valid_bits(value, word) & if kept { holds } else { !holds }
        });
    }
}

/// Whether a vector of strings is one short string, which is in its view.
fn owns_no_bytes(strings: &Vector) -> bool {
    strings.is_constant() && (!strings.is_valid(0) || strings.values::<StringView>()[0].is_inline())
}

/// Writes the values of a blend; those of rows that are NULL mean nothing.
fn choose<T: Native>(condition: &Vector, a: &Vector, b: &Vector, rows: Rows<'_>, out: &mut Vector) {
    let (holds, a, b) = (operand::<u8>(condition), operand::<T>(a), operand::<T>(b));
    let values = out.values_mut::<T>();
    match (rows, holds) {
        (Rows::Dense(n), Operand::Each(holds)) => {
            let cut = |values| match values {
                Operand::Each(values) => Operand::Each(&values[..n]),
                one => one,
            };
            let known = condition.validity();
            widest_of(Choice { holds: &holds[..n], known, a: cut(a), b: cut(b), out: &mut values[..n] });
        }
        _ => rows.each(|p| {
            let is_true = condition.is_valid(p) && holds.get(p) != 0;
            values[p] = if is_true { a.get(p) } else { b.get(p) };
        }),
    }
}

/// Values chosen by bytes.
struct Choice<'a, T> {
    /// Whether the condition is true; at a NULL, anything.
    holds: &'a [u8],
    /// The validity of the condition.
    known: Option<&'a [u64]>,
    /// What is chosen if it is true.
    a: Operand<'a, T>,
    /// What is chosen otherwise.
    b: Operand<'a, T>,
    /// The result.
    out: &'a mut [T],
}

impl<T: Native> Kernel for Choice<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Choice { holds, known, a, b, out } = self;
        let Some(known) = known else { return choose_piece(holds, a, b, out) };
        for (word, (holds, out)) in holds.chunks(64).zip(out.chunks_mut(64)).enumerate() {
            let mut clean = [0; 64];
            write_bits(known[word], &mut clean[..out.len()]);
            clean.iter_mut().zip(holds).for_each(|(clean, &holds)| *clean &= holds);
            let piece = |values| match values {
                Operand::Each(values) => Operand::Each(&values[word * 64..word * 64 + out.len()]),
                one => one,
            };
            let (a, b) = (piece(a), piece(b));
            choose_piece(&clean[..out.len()], a, b, out);
        }
    }
}

// PERF: every value is read, chosen or not, so that there is no branch.
#[inline(always)]
fn choose_piece<T: Native>(holds: &[u8], a: Operand<'_, T>, b: Operand<'_, T>, out: &mut [T]) {
    let rows = out.iter_mut().zip(holds);
    match (a, b) {
        (Operand::Each(a), Operand::Each(b)) => {
            rows.zip(a.iter().zip(b)).for_each(|((out, &h), (&a, &b))| *out = if h != 0 { a } else { b });
        }
        (Operand::Each(a), Operand::One(b)) => {
            rows.zip(a).for_each(|((out, &h), &a)| *out = if h != 0 { a } else { b });
        }
        (Operand::One(a), Operand::Each(b)) => {
            rows.zip(b).for_each(|((out, &h), &b)| *out = if h != 0 { a } else { b });
        }
        (Operand::One(a), Operand::One(b)) => {
            rows.for_each(|(out, &h)| *out = if h != 0 { a } else { b });
        }
    }
}

/// Writes the value of a constant to `count` positions.
fn repeat(constant: &Vector, count: usize, out: &mut Vector) {
    fn fill<T: Native>(constant: &Vector, count: usize, out: &mut Vector) {
        out.values_mut::<T>()[..count].fill(constant.values::<T>()[0]);
    }
    out.begin(count.max(CHUNK_ROWS));
    match out.physical().width() {
        1 => fill::<u8>(constant, count, out),
        2 => fill::<u16>(constant, count, out),
        4 => fill::<u32>(constant, count, out),
        8 => fill::<u64>(constant, count, out),
        _ => fill::<i128>(constant, count, out),
    }
    if out.physical() == PhysicalType::Str {
        out.share_strings(constant);
    }
}

/// Of the positions from 64 `word` on, those at which a flat or constant vector is valid.
#[inline(always)]
fn valid_bits(v: &Vector, word: usize) -> u64 {
    match v.validity() {
        None => !0,
        Some(_) if v.is_constant() => {
            if v.is_valid(0) {
                !0
            } else {
                0
            }
        }
        Some(validity) => validity[word],
    }
}

/// Makes those of the first `limit` positions of `out` NULL that `valid` does not have, a word at a time.
/// Without any, `out` has no validity.
fn write_validity(limit: usize, out: &mut Vector, valid: impl Fn(usize) -> u64) {
    let count = bitmap::words_for(limit);
    let beyond = |word: usize| match limit - word * 64 {
        rest @ 0..64 => !0 << rest,
        _ => 0,
    };
    let Some(first) = (0..count).find(|&word| valid(word) | beyond(word) != !0) else { return };
    let words = out.validity_mut(limit);
    (first..count).for_each(|word| words[word] = valid(word));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DataType, Interval, Value};

    const TYPES: [(PhysicalType, DataType); 14] = [
        (PhysicalType::Bool, DataType::Boolean),
        (PhysicalType::I8, DataType::Int8),
        (PhysicalType::I16, DataType::Int16),
        (PhysicalType::I32, DataType::Int32),
        (PhysicalType::I64, DataType::Int64),
        (PhysicalType::I128, DataType::Decimal { precision: 38, scale: 0 }),
        (PhysicalType::U8, DataType::UInt8),
        (PhysicalType::U16, DataType::UInt16),
        (PhysicalType::U32, DataType::UInt32),
        (PhysicalType::U64, DataType::UInt64),
        (PhysicalType::F32, DataType::Float32),
        (PhysicalType::F64, DataType::Float64),
        (PhysicalType::Str, DataType::Varchar),
        (PhysicalType::Interval, DataType::Interval),
    ];

    /// How an operand comes.
    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Form {
        Valid,
        WithNulls,
        Constant,
        Null,
    }
    const FORMS: [Form; 4] = [Form::Valid, Form::WithNulls, Form::Constant, Form::Null];

    fn value(ty: PhysicalType, v: usize) -> Value {
        match ty {
            PhysicalType::Bool => Value::Boolean(v % 3 == 1),
            PhysicalType::F32 | PhysicalType::F64 => Value::Float(v as f64),
            PhysicalType::Str => Value::Text("a text of some length"[..v % 13].into()),
            PhysicalType::Interval => {
                Value::Interval(Interval { months: v as i32, days: 1, micros: v as i64 })
            }
            _ => Value::Integer((v % 100) as i128),
        }
    }

    /// A vector of some irregular values, other ones for another seed.
    fn vector(ty: PhysicalType, form: Form, seed: usize, rows: usize) -> Vector {
        let at = |row: usize| value(ty, row * (3 + seed) + row / (5 + seed) + seed);
        match form {
            Form::Constant => return Vector::constant(ty, &at(1)).unwrap(),
            Form::Null => return Vector::constant(ty, &Value::Null).unwrap(),
            Form::Valid | Form::WithNulls => {}
        }
        let is_null = |row: usize| form == Form::WithNulls && row * 7 % (11 + seed) < 4;
        let values: Vec<Value> =
            (0..rows).map(|row| if is_null(row) { Value::Null } else { at(row) }).collect();
        let mut vector = Vector::from_values(ty, &values).unwrap();
        if ty == PhysicalType::Bool {
            // What stands at a NULL does not matter.
            let bytes = vector.values_mut::<u8>();
            (0..rows).filter(|row| is_null(*row)).for_each(|row| bytes[row] = (row * 31 % 256) as u8);
        }
        vector
    }

    fn holds(condition: &Vector, p: usize) -> bool {
        condition.value(p, DataType::Boolean) == Value::Boolean(true)
    }

    /// Every row asked for is what one row at a time gives.
    fn for_all(
        second: impl Fn(PhysicalType, Form) -> bool,
        check: impl Fn(&Vector, &Vector, &Vector, Rows<'_>, &mut Vector, DataType),
    ) {
        for (rows, (physical, ty)) in [1, 63, 64, 130].iter().flat_map(|rows| TYPES.map(|ty| (*rows, ty))) {
            let most: Vec<u16> = (0..rows as u16).filter(|row| row % 3 != 1).collect();
            let few: Vec<u16> = (0..rows as u16).rev().filter(|row| row % 9 == 0).collect();
            let mut out = Vector::new(physical);
            for (condition, (a, b)) in
                FORMS.iter().flat_map(|c| FORMS.iter().flat_map(move |a| FORMS.map(|b| (*c, (*a, b)))))
            {
                if !second(physical, b) {
                    continue;
                }
                let condition = vector(PhysicalType::Bool, condition, 1, rows);
                let (a, b) = (vector(physical, a, 2, rows), vector(physical, b, 3, rows));
                for asked in [Rows::Dense(rows), Rows::Sparse(&most, rows), Rows::Sparse(&few, rows)] {
                    check(&condition, &a, &b, asked, &mut out, ty);
                }
            }
        }
    }

    #[test]
    fn blends_give_what_single_rows_give() {
        // Of two columns of strings only one may have bytes of its own.
        let is_short = |ty, form| ty != PhysicalType::Str || matches!(form, Form::Constant | Form::Null);
        for_all(is_short, |condition, a, b, rows, out, ty| {
            for (a, b) in [(a, b), (b, a)] {
                blend(condition, a, b, rows, out);
                rows.each(|p| {
                    let expected = if holds(condition, p) { a } else { b };
                    assert_eq!(out.value(p, ty), expected.value(p, ty), "{ty} at {p} of {}", rows.limit());
                });
            }
        });
    }

    #[test]
    fn masks_give_what_single_rows_give() {
        for_all(
            |_, form| form == Form::Null,
            |condition, value, _, rows, out, ty| {
                for kept in [false, true] {
                    let before = value.clone();
                    mask(condition, kept, value, rows, out);
                    rows.each(|p| {
                        let is_kept = holds(condition, p) == kept;
                        let expected = if is_kept { value.value(p, ty) } else { Value::Null };
                        assert_eq!(out.value(p, ty), expected, "{ty} at {p} of {}", rows.limit());
                        assert_eq!(value.value(p, ty), before.value(p, ty), "the value is only read");
                    });
                    out.drop_values();
                }
            },
        );
    }

    #[test]
    fn a_mask_copies_nothing() {
        let value = vector(PhysicalType::I64, Form::WithNulls, 2, 100);
        let condition = vector(PhysicalType::Bool, Form::WithNulls, 1, 100);
        let mut out = Vector::new(PhysicalType::I64);
        mask(&condition, false, &value, Rows::Dense(100), &mut out);
        assert_eq!(out.values::<i64>().as_ptr(), value.values::<i64>().as_ptr());
        assert_ne!(out.validity().unwrap().as_ptr(), value.validity().unwrap().as_ptr());
        let validity = out.validity().unwrap().as_ptr();
        out.drop_values();
        mask(&condition, true, &value, Rows::Dense(100), &mut out);
        assert_eq!(out.validity().unwrap().as_ptr(), validity, "memory of the last chunk");
    }
}
