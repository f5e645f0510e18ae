//! Nested values, LIST, STRUCT, MAP and arrays of a fixed length: their types, and the bytes that stand for
//! them.
//!
//! A nested value is a string of bytes ([`PhysicalType::Str`]), so that it is stored, compressed, hashed,
//! grouped, joined, sorted and spilled like any other (`docs/decisions/0037-nested-values-are-bytes.md`).
//! The bytes are in the order of the values: to compare two values of one type, compare their bytes.
//!
//! | value | bytes |
//! |---|---|
//! | integers, decimals, dates, times, UUIDs | big-endian, in the width of the type, with the sign's bit flipped |
//! | BOOLEAN | one byte |
//! | REAL, DOUBLE | their place in SQL's order ([`float_ordinal`]), as a BIGINT |
//! | INTERVAL | its estimated length (16 bytes), months and days |
//! | VARCHAR, BLOB | the bytes, 0 as `00 FF`, then `00 01` |
//! | LIST | `01` and the element for each that is not NULL, `02` for NULL; then `00` |
//! | STRUCT | for each field `01` and its value, or `02` for NULL |
//! | an array `T[n]` | those of the list of its elements; see [`check`] |
//! | MAP | those of the list of its entries, each a STRUCT of key and value, in their order; see [`check`] |
//!
//! So 0.0 and -0.0, and all NaNs, are the same bytes, as they are the same value; a list is less than those
//! that begin with it; NULL is greater than any element.
//!
//! Not here: NULL as a whole, which the vector's validity says; many parts at once ([`crate::parts`]).

use super::{Value, float_of_ordinal, float_ordinal, write_blob};
use crate::error::{Error, Result};
use crate::statement::{Growth, Looks, STEP};
use crate::types::{DataType, Interval, MICROS_PER_DAY, PhysicalType, StructField};
use crate::writer::Writer;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// The marker of an element or field that is there.
const THERE: u8 = 1;
/// The marker of NULL.
const NULL: u8 = 2;
/// The end of a list.
const END: u8 = 0;
/// The end of a text or a binary string.
pub(crate) const END_OF_BYTES: [u8; 2] = [0, 1];

/// Appends the bytes of a value of `ty` that is not NULL.
///
/// # Errors
/// Internal, if the value is not of `ty`.
pub fn encode(value: &Value, ty: DataType, out: &mut Vec<u8>) -> Result<()> {
    match (value, ty) {
        (Value::Boolean(v), DataType::Boolean) => out.push(u8::from(*v)),
        (Value::Integer(v), DataType::Uuid) => out.extend((*v as u128).to_be_bytes()),
        (Value::Integer(v), _) if width(ty).is_some() => {
            encode_integer(*v, width(ty).expect("tested"), out);
        }
        (Value::Float(v), DataType::Float32 | DataType::Float64) => {
            encode_integer(float_ordinal(*v).into(), 8, out);
        }
        (Value::Interval(v), DataType::Interval) => {
            encode_integer(v.estimate(), 16, out);
            encode_integer(v.months.into(), 4, out);
            encode_integer(v.days.into(), 4, out);
        }
        (Value::Text(v), DataType::Varchar | DataType::Json) => encode_bytes(v.as_bytes(), out),
        (Value::Bytes(v), DataType::Blob) => encode_bytes(v, out),
        (Value::Bytes(v), _) if ty.is_nested() => out.extend_from_slice(v),
        _ => return Err(Error::internal(format!("{value:?} is no {ty}"))),
    }
    Ok(())
}

/// Appends an integer of `width` bytes.
fn encode_integer(v: i128, width: usize, out: &mut Vec<u8>) {
    let flipped = (v as u128) ^ (1 << (width * 8 - 1));
    out.extend_from_slice(&flipped.to_be_bytes()[16 - width..]);
}

fn encode_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    encode_zeros(bytes, out);
    out.extend(END_OF_BYTES);
}

/// Appends bytes, with what follows a zero within.
fn encode_zeros(bytes: &[u8], out: &mut Vec<u8>) {
    let mut rest = bytes;
    while let Some(zero) = memchr::memchr(0, rest) {
        out.extend_from_slice(&rest[..=zero]);
        out.push(0xff);
        rest = &rest[zero + 1..];
    }
    out.extend_from_slice(rest);
}

/// Appends an element of a list, or a field of a struct, of type `ty`.
///
/// # Errors
/// Those of [`encode`].
pub fn encode_part(value: &Value, ty: DataType, out: &mut Vec<u8>) -> Result<()> {
    if value.is_null() {
        out.push(NULL);
        return Ok(());
    }
    out.push(THERE);
    encode(value, ty, out)
}

/// Begins an element of a list, or a field of a struct, that is not NULL: its bytes are to follow.
pub fn begin_part(out: &mut Vec<u8>) {
    out.push(THERE);
}

/// Appends an element or a field whose bytes are known.
pub fn copy_part(part: Option<&[u8]>, out: &mut Vec<u8>) {
    match part {
        Some(bytes) => {
            out.push(THERE);
            out.extend_from_slice(bytes);
        }
        None => out.push(NULL),
    }
}

/// Appends a text, or a binary string, as an element or a field.
///
/// # Errors
/// Interrupted; resource, if there is not enough memory.
pub fn write_string(string: &[u8], out: &mut Writer<'_>) -> Result<()> {
    out.more(1 + string.len() + END_OF_BYTES.len())?;
    out.bytes(&[THERE]);
    for part in string.chunks(STEP) {
        encode_zeros(part, out.buffer);
        out.read(if part.len() < STEP { 0 } else { STEP })?;
    }
    out.bytes(&END_OF_BYTES);
    Ok(())
}

/// The bytes of a list but for its end: those of its elements.
pub fn without_end(list: &[u8]) -> &[u8] {
    list.strip_suffix(&[END]).unwrap_or(list)
}

/// Appends the end of a list, after its elements.
pub fn end_list(out: &mut Vec<u8>) {
    out.push(END);
}

/// The bytes of an integer of this type; `None` for types that are encoded in another way. Unsigned ones have
/// a byte more, for the sign.
fn width(ty: DataType) -> Option<usize> {
    Some(match ty.physical() {
        PhysicalType::I8 => 1,
        PhysicalType::I16 | PhysicalType::U8 => 2,
        PhysicalType::I32 | PhysicalType::U16 => 4,
        PhysicalType::I64 | PhysicalType::U32 => 8,
        PhysicalType::I128 | PhysicalType::U64 => 16,
        _ => return None,
    })
}

/// Bytes of a value of a type whose values all have as many.
#[inline]
fn fixed_width(ty: DataType) -> Option<usize> {
    match ty {
        DataType::Boolean => Some(1),
        DataType::Float32 | DataType::Float64 => Some(8),
        DataType::Interval => Some(24),
        DataType::Varchar | DataType::Json | DataType::Blob => None,
        _ if ty.is_nested() => None,
        _ => width(ty),
    }
}

/// A list or struct of which the parts are read in order.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    /// The bytes of one nested value, or of what it contains.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes }
    }

    /// The next element of a list of `ty`: its bytes, or `None` within for NULL. `None` at the end of the
    /// list.
    ///
    /// # Errors
    /// Internal, if these are not the bytes of such a list.
    #[inline]
    pub fn element(&mut self, ty: DataType) -> Result<Option<Option<&'a [u8]>>> {
        match self.byte()? {
            END => Ok(None),
            marker => self.behind(marker, ty).map(Some),
        }
    }

    /// The next field of a struct: its bytes, or `None` for NULL.
    ///
    /// # Errors
    /// As of [`Reader::element`].
    #[inline]
    pub fn field(&mut self, ty: DataType) -> Result<Option<&'a [u8]>> {
        let marker = self.byte()?;
        self.behind(marker, ty)
    }

    #[inline]
    fn behind(&mut self, marker: u8, ty: DataType) -> Result<Option<&'a [u8]>> {
        match marker {
            THERE => {
                let start = self.bytes;
                self.skip(ty)?;
                Ok(Some(&start[..start.len() - self.bytes.len()]))
            }
            NULL => Ok(None),
            _ => Err(flaw()),
        }
    }

    #[inline]
    fn byte(&mut self) -> Result<u8> {
        let (first, rest) = self.bytes.split_first().ok_or_else(flaw)?;
        self.bytes = rest;
        Ok(*first)
    }

    /// Passes over a value.
    #[inline]
    fn skip(&mut self, ty: DataType) -> Result<()> {
        match fixed_width(ty) {
            Some(width) => self.pass(width),
            None => self.skip_varying(ty),
        }
    }

    /// Passes over so many bytes.
    #[inline]
    fn pass(&mut self, bytes: usize) -> Result<()> {
        self.bytes = self.bytes.get(bytes..).ok_or_else(flaw)?;
        Ok(())
    }

    fn skip_varying(&mut self, ty: DataType) -> Result<()> {
        match ty {
            DataType::Varchar | DataType::Json | DataType::Blob => loop {
                let zero = memchr::memchr(0, self.bytes).ok_or_else(flaw)?;
                let behind = *self.bytes.get(zero + 1).ok_or_else(flaw)?;
                self.bytes = &self.bytes[zero + 2..];
                if behind == 1 {
                    return Ok(());
                }
            },
            DataType::List(element) | DataType::Array(element, _) | DataType::Map(element) => {
                let mut looks = Looks::default();
                loop {
                    let before = self.bytes.len();
                    if self.element(*element)?.is_none() {
                        return Ok(());
                    }
                    looks.after(before - self.bytes.len())?;
                }
            }
            DataType::Struct(fields) => fields.iter().try_for_each(|field| self.field(field.ty).map(drop)),
            _ => Err(flaw()),
        }
    }
}

/// The elements of a list in their order, the bytes of each, or `None` for NULL; with looks whether the
/// statement may go on ([`crate::statement`]). Made by [`parts`].
#[derive(Debug, Clone)]
pub struct Parts<'a> {
    reader: Reader<'a>,
    element: DataType,
    /// The bytes of each element, if all have as many.
    width: Option<usize>,
    /// True if the list is long enough for a look.
    is_long: bool,
    looks: Looks,
    is_over: bool,
}

/// The elements, of type `element`, of the list that these bytes stand for. An error is the last item:
/// interrupted; internal, if they are no such list.
pub fn parts(list: &[u8], element: DataType) -> Parts<'_> {
    Parts {
        reader: Reader::new(list),
        element,
        width: fixed_width(element),
        is_long: list.len() >= STEP,
        looks: Looks::default(),
        is_over: false,
    }
}

impl<'a> Iterator for Parts<'a> {
    type Item = Result<Option<&'a [u8]>>;

    #[inline]
    fn next(&mut self) -> Option<Result<Option<&'a [u8]>>> {
        // PERF: in short lists of numbers an element is a test of its marker and an addition.
        match (self.is_over, self.width, self.reader.bytes) {
            (false, Some(width), [THERE, rest @ ..]) if !self.is_long && rest.len() >= width => {
                let (part, rest) = rest.split_at(width);
                self.reader.bytes = rest;
                Some(Ok(Some(part)))
            }
            (false, _, _) => self.next_of_any(),
            (true, _, _) => None,
        }
    }
}

impl<'a> Parts<'a> {
    fn next_of_any(&mut self) -> Option<Result<Option<&'a [u8]>>> {
        let before = self.reader.bytes.len();
        let part = match self.reader.element(self.element) {
            Ok(Some(part)) => self.looks.after(before - self.reader.bytes.len()).map(|()| part),
            Ok(None) => {
                self.is_over = true;
                return None;
            }
            Err(error) => Err(error),
        };
        self.is_over = part.is_err();
        Some(part)
    }
}

#[cold]
pub(crate) fn flaw() -> Error {
    Error::internal("the bytes of a nested value are damaged")
}

/// The value of type `ty` that these bytes stand for.
///
/// # Errors
/// Internal, if they are not such a value.
pub fn decode(bytes: &[u8], ty: DataType) -> Result<Value> {
    let integer = |at: std::ops::Range<usize>| -> Result<i128> {
        let bytes = bytes.get(at).ok_or_else(flaw)?;
        if let Ok(bytes) = <[u8; 8]>::try_from(bytes) {
            return Ok(((u64::from_be_bytes(bytes) ^ 1 << 63) as i64).into());
        }
        if let Ok(bytes) = <[u8; 4]>::try_from(bytes) {
            return Ok(((u32::from_be_bytes(bytes) ^ 1 << 31) as i32).into());
        }
        let mut wide = [0; 16];
        wide[16 - bytes.len()..].copy_from_slice(bytes);
        let bits = bytes.len() * 8;
        let v = u128::from_be_bytes(wide) ^ (1 << (bits - 1));
        // Extends the sign.
        Ok((v << (128 - bits)) as i128 >> (128 - bits))
    };
    Ok(match ty {
        DataType::Boolean => Value::Boolean(bytes.first().ok_or_else(flaw)? != &0),
        DataType::Uuid => Value::Integer(integer(0..16)? ^ i128::MIN),
        DataType::Float32 | DataType::Float64 => Value::Float(float_of_ordinal(integer(0..8)? as i64)),
        DataType::Interval => {
            let (estimate, months, days) =
                (integer(0..16)?, integer(16..20)? as i32, integer(20..24)? as i32);
            let whole = (i128::from(months) * 30 + i128::from(days)) * i128::from(MICROS_PER_DAY);
            Value::Interval(Interval { months, days, micros: estimate.wrapping_sub(whole) as i64 })
        }
        DataType::Varchar | DataType::Json => Value::Text(Arc::from(&*decode_text(bytes)?)),
        DataType::Blob => Value::Bytes(Arc::from(&*decode_bytes(bytes)?)),
        ty if ty.is_nested() => Value::Bytes(Arc::from(bytes)),
        _ => Value::Integer(integer(0..width(ty).ok_or_else(flaw)?)?),
    })
}

fn decode_bytes(bytes: &[u8]) -> Result<Cow<'_, [u8]>> {
    let mut rest = bytes.strip_suffix(&END_OF_BYTES).ok_or_else(flaw)?;
    if memchr::memchr(0, rest).is_none() {
        return Ok(Cow::Borrowed(rest));
    }
    let mut out = Vec::with_capacity(rest.len());
    while let Some(zero) = memchr::memchr(0, rest) {
        out.extend_from_slice(&rest[..=zero]);
        rest = rest.get(zero + 2..).ok_or_else(flaw)?;
    }
    out.extend_from_slice(rest);
    Ok(Cow::Owned(out))
}

/// The text that these bytes of an element or a field stand for.
///
/// # Errors
/// Internal, if they are no text.
pub fn decode_text(bytes: &[u8]) -> Result<Cow<'_, str>> {
    Ok(match decode_bytes(bytes)? {
        Cow::Borrowed(bytes) => Cow::Borrowed(std::str::from_utf8(bytes).map_err(|_| flaw())?),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8(bytes).map_err(|_| flaw())?),
    })
}

/// The elements of a list, with NULL for those that are NULL.
///
/// # Errors
/// Internal, if these are not the bytes of a list of `element`.
pub fn elements(bytes: &[u8], element: DataType) -> Result<Vec<Value>> {
    values(bytes, element).collect()
}

/// The same, one after another, with looks as those of [`parts`].
pub fn values(list: &[u8], element: DataType) -> impl Iterator<Item = Result<Value>> + '_ {
    parts(list, element).map(move |part| match part? {
        Some(part) => decode(part, element),
        None => Ok(Value::Null),
    })
}

/// The values of a struct's fields.
///
/// # Errors
/// Internal, if these are not the bytes of such a struct.
pub fn fields(bytes: &[u8], fields: &[StructField]) -> Result<Vec<Value>> {
    let mut reader = Reader::new(bytes);
    let value = |field: &StructField| -> Result<Value> {
        reader.field(field.ty)?.map_or(Ok(Value::Null), |part| decode(part, field.ty))
    };
    fields.iter().map(value).collect()
}

/// Checks what the type of a nested value asks for beyond its parts: the keys of a map are there, and none is
/// there twice; an array has as many elements as its type says. What is within its parts was checked when
/// they were made.
///
/// # Errors
/// Input, if it is not so; interrupted; resource, if there is not enough memory; internal, if these are not
/// the bytes of such a value.
pub fn check(bytes: &[u8], ty: DataType) -> Result<()> {
    if let DataType::Array(element, length) = ty {
        let count = parts(bytes, *element).try_fold(0, |count: u32, part| part.map(|_| count + 1))?;
        return match count == length {
            true => Ok(()),
            false => Err(Error::input(format!("a list of length {count} is no {ty}"))),
        };
    }
    let (DataType::Map(entry), Some((key, _))) = (ty, ty.key_and_value()) else { return Ok(()) };
    let (mut seen, mut growth) = (BTreeSet::new(), Growth::default());
    for part in parts(bytes, *entry) {
        let own = part?.map_or(Ok(None), |entry| Reader::new(entry).field(key))?;
        let own = own.ok_or_else(|| Error::input("the keys of a MAP are not NULL"))?;
        if !seen.insert(own) {
            let mut shown = String::new();
            let _ = write_part(&mut shown, Some(own), key);
            // Long keys are cut in messages.
            if let Some(end) = shown.char_indices().nth(60).map(|(end, _)| end) {
                shown.truncate(end);
                shown.push('…');
            }
            return Err(Error::input(format!("a MAP has the key {shown} twice")));
        }
        // A node of the tree is filled to two thirds.
        growth.add(size_of::<&[u8]>() * 3 / 2)?;
    }
    Ok(())
}

/// Writes a nested value or a binary string as text: `[1, 2, NULL]`, `{'a': 1, 'b': x}`, `{k=1, 'a, b'=2}`,
/// `['', 'a, b', '10:00:00']`, `a\x00`.
///
/// # Errors
/// Those of `f`; for other types.
pub fn write(f: &mut dyn fmt::Write, bytes: &[u8], ty: DataType) -> fmt::Result {
    // An error of `Display` would be a panic of `to_string`.
    match ty {
        DataType::List(element) | DataType::Array(element, _) => {
            f.write_str("[")?;
            for (i, part) in parts(bytes, *element).enumerate() {
                f.write_str(if i == 0 { "" } else { ", " })?;
                match part {
                    Ok(part) => write_part(f, part, *element)?,
                    Err(_) => f.write_str(DAMAGED)?,
                }
            }
            f.write_str("]")
        }
        DataType::Map(entry) => {
            f.write_str("{")?;
            for (i, part) in parts(bytes, *entry).enumerate() {
                f.write_str(if i == 0 { "" } else { ", " })?;
                match (part, ty.key_and_value()) {
                    (Ok(Some(part)), Some((key, value))) => {
                        let mut reader = Reader::new(part);
                        write_field(f, &mut reader, key)?;
                        f.write_str("=")?;
                        write_field(f, &mut reader, value)?;
                    }
                    _ => f.write_str(DAMAGED)?,
                }
            }
            f.write_str("}")
        }
        DataType::Struct(fields) => {
            let mut reader = Reader::new(bytes);
            f.write_str("{")?;
            for (i, field) in fields.iter().enumerate() {
                f.write_str(if i == 0 { "" } else { ", " })?;
                write_quoted(f, field.name)?;
                f.write_str(": ")?;
                write_field(f, &mut reader, field.ty)?;
            }
            f.write_str("}")
        }
        DataType::Blob => write_blob(f, bytes),
        _ => Err(fmt::Error),
    }
}

/// Stands for bytes that are no value.
const DAMAGED: &str = "damaged";

/// Writes the next field.
fn write_field(f: &mut dyn fmt::Write, reader: &mut Reader<'_>, ty: DataType) -> fmt::Result {
    match reader.field(ty) {
        Ok(part) => write_part(f, part, ty),
        Err(_) => f.write_str(DAMAGED),
    }
}

/// Writes an element or the value of a field: in quotes if its text could be taken for something else.
fn write_part(f: &mut dyn fmt::Write, part: Option<&[u8]>, ty: DataType) -> fmt::Result {
    let Some(part) = part else { return f.write_str("NULL") };
    if ty.is_nested() {
        return write(f, part, ty);
    }
    if ty.is_text() {
        return match decode_text(part) {
            Ok(text) => write_text(f, &text),
            Err(_) => f.write_str(DAMAGED),
        };
    }
    match decode(part, ty) {
        Ok(value) if ty.is_numeric() => write!(f, "{}", value.display(ty)),
        Ok(value) => write_text(f, &value.display(ty).to_string()),
        Err(_) => f.write_str(DAMAGED),
    }
}

fn write_text(f: &mut dyn fmt::Write, text: &str) -> fmt::Result {
    let has_signs = || {
        let is_sign = |byte| {
            matches!(
                byte,
                b'(' | b')' | b'[' | b']' | b'{' | b'}' | b',' | b':' | b'=' | b'\'' | b'"' | b'\\'
            )
        };
        text.bytes().any(is_sign)
    };
    let is_plain =
        !text.is_empty() && text.trim() == text && !text.eq_ignore_ascii_case("null") && !has_signs();
    if is_plain { f.write_str(text) } else { write_quoted(f, text) }
}

fn write_quoted(f: &mut dyn fmt::Write, text: &str) -> fmt::Result {
    f.write_str("'")?;
    let mut rest = text;
    // From one character that needs an escape up to the next.
    while let Some(at) = memchr::memchr2(b'\'', b'\\', rest.as_bytes()) {
        f.write_str(&rest[..at])?;
        f.write_str("\\")?;
        f.write_str(&rest[at..=at])?;
        rest = &rest[at + 1..];
    }
    f.write_str(rest)?;
    f.write_str("'")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(value: &Value, ty: DataType) -> Vec<u8> {
        let mut out = Vec::new();
        encode(value, ty, &mut out).unwrap();
        out
    }

    fn list(values: &[Value], element: DataType) -> Value {
        let mut out = Vec::new();
        values.iter().for_each(|value| encode_part(value, element, &mut out).unwrap());
        end_list(&mut out);
        Value::Bytes(Arc::from(out))
    }

    /// Values of each type, in their order.
    fn ordered() -> Vec<(DataType, Vec<Value>)> {
        let integers = |values: &[i128]| values.iter().map(|v| Value::Integer(*v)).collect::<Vec<_>>();
        let text = |text: &str| Value::Text(Arc::from(text));
        let interval = |months, days, micros| Value::Interval(Interval { months, days, micros });
        let i32s = DataType::list(DataType::Int32);
        let one = |values: &[i128]| list(&integers(values), DataType::Int32);
        let mut all = vec![
            (DataType::Boolean, vec![Value::Boolean(false), Value::Boolean(true)]),
            (
                DataType::Float64,
                [f64::NEG_INFINITY, -1.5, 0.0, 1e-300, 2.0, f64::NAN].map(Value::Float).into(),
            ),
            (DataType::Float32, [-1.5, 0.0, 2.0].map(Value::Float).into()),
            (DataType::Varchar, ["", "\0", "\0\0", "\0a", "a", "a\0", "ab", "b"].map(text).into()),
            (
                DataType::Interval,
                vec![interval(-1, 0, 0), interval(0, 0, 5), interval(0, 1, 0), interval(1, 2, 3)],
            ),
            (
                DataType::Decimal { precision: 38, scale: 2 },
                integers(&[-(10_i128.pow(37)), -1, 0, 10_i128.pow(37)]),
            ),
            (DataType::Uuid, integers(&[0, 5, i128::MAX, i128::MIN, -1])),
            (
                i32s,
                vec![one(&[]), one(&[-5]), one(&[-5, 0]), one(&[1]), list(&[Value::Null], DataType::Int32)],
            ),
            (
                DataType::list(i32s),
                vec![list(&[one(&[1])], i32s), list(&[one(&[1]), one(&[])], i32s), list(&[one(&[2])], i32s)],
            ),
        ];
        for ty in DataType::ALL {
            if let Some((least, most)) = ty.integer_range().filter(|_| ty != DataType::Boolean) {
                all.push((ty, integers(&[least, least + 1, most - 1, most])));
            }
        }
        all
    }

    #[test]
    fn values_come_back_and_bytes_are_in_their_order() {
        for (ty, values) in ordered() {
            let encoded: Vec<Vec<u8>> = values.iter().map(|value| bytes_of(value, ty)).collect();
            assert!(encoded.is_sorted_by(|a, b| a < b), "{ty}: {values:?}");
            for (value, bytes) in values.iter().zip(&encoded) {
                assert_eq!(decode(bytes, ty).unwrap(), *value, "{ty}");
                // As an element, with others beside it.
                let all = [value.clone(), Value::Null, value.clone()];
                let Value::Bytes(whole) = list(&all, ty) else { unreachable!() };
                assert_eq!(elements(&whole, ty).unwrap(), all, "{ty}");
            }
        }
    }

    #[test]
    fn parts_in_vectors_are_what_they_are_one_by_one() {
        let structure = DataType::structure([("a", DataType::Int16)]);
        let of_struct = (structure, vec![Value::Bytes(Arc::from([1, 0x80, 7]))]);
        for (ty, values) in ordered().into_iter().chain([of_struct]) {
            let encoded: Vec<Vec<u8>> = values.iter().map(|value| bytes_of(value, ty)).collect();
            // Each between NULLs, and more than a chunk of them.
            let parts: Vec<Option<&[u8]>> = std::iter::repeat_n(&encoded, 700)
                .flat_map(|encoded| encoded.iter().flat_map(|bytes| [None, Some(&bytes[..]), None]))
                .collect();
            let mut vector = crate::Vector::new(ty.physical());
            for parts in [&parts[..], &parts[1..4], &[]] {
                crate::parts::write_parts(parts, ty, &mut vector).unwrap();
                for (at, part) in parts.iter().enumerate() {
                    let expected = part.map_or(Value::Null, |bytes| decode(bytes, ty).unwrap());
                    assert_eq!(vector.value(at, ty), expected, "{ty}");
                }
            }
            for bytes in &encoded {
                let short = Some(&bytes[..bytes.len() - 1]);
                let is_error = crate::parts::write_parts(&[short], ty, &mut vector).is_err();
                assert!(is_error || ty.is_nested(), "{ty}: {bytes:?} without its end");
            }
        }
    }

    #[test]
    fn maps_are_lists_of_their_entries() {
        let ty = DataType::map(DataType::Varchar, DataType::list(DataType::Int32));
        assert_eq!(ty, DataType::map(DataType::Varchar, DataType::list(DataType::Int32)));
        assert_eq!(ty.to_string(), "MAP(VARCHAR, INTEGER[])");
        let of = |keys: &[Option<&str>]| {
            let mut bytes = Vec::new();
            for key in keys {
                let key = key.map_or(Value::Null, |key| Value::Text(key.into()));
                let mut entry = Vec::new();
                encode_part(&key, DataType::Varchar, &mut entry).unwrap();
                let numbers = list(&[Value::Integer(1), Value::Null], DataType::Int32);
                encode_part(&numbers, DataType::list(DataType::Int32), &mut entry).unwrap();
                copy_part(Some(&entry), &mut bytes);
            }
            end_list(&mut bytes);
            bytes
        };
        let shown = |bytes: Vec<u8>| Value::Bytes(bytes.into()).display(ty).to_string();
        assert_eq!(shown(of(&[])), "{}");
        assert_eq!(shown(of(&[Some("b"), Some("a=")])), "{b=[1, NULL], 'a='=[1, NULL]}");
        let checked =
            |keys: &[Option<&str>]| check(&of(keys), ty).map_err(|error| error.message().to_owned());
        assert_eq!(checked(&[Some("b"), Some(""), Some("a")]), Ok(()));
        assert_eq!(
            checked(&[Some("a b"), Some("a"), Some("a b")]),
            Err("a MAP has the key a b twice".into())
        );
        let long = "é".repeat(1000);
        let cut = format!("a MAP has the key {}… twice", "é".repeat(60));
        assert_eq!(checked(&[Some(long.as_str()), Some(long.as_str())]), Err(cut));
        assert_eq!(checked(&[Some("a"), None]), Err("the keys of a MAP are not NULL".into()));
    }

    #[test]
    fn arrays_are_lists_of_a_length() {
        let ty = DataType::array(DataType::Int32, 2).unwrap();
        assert_eq!(ty.to_string(), "INTEGER[2]");
        assert_eq!(ty, DataType::array(DataType::Int32, 2).unwrap());
        assert_ne!(ty, DataType::array(DataType::Int32, 3).unwrap());
        for wrong in [0, u64::from(crate::types::MOST_OF_ARRAY) + 1, u64::MAX] {
            assert!(DataType::array(DataType::Int32, wrong).is_err(), "{wrong}");
        }
        let Value::Bytes(two) = list(&[Value::Integer(1), Value::Null], DataType::Int32) else { panic!() };
        assert!(check(&two, ty).is_ok());
        let three = DataType::array(DataType::Int32, 3).unwrap();
        assert_eq!(check(&two, three).unwrap_err().message(), "a list of length 2 is no INTEGER[3]");
        assert_eq!(Value::Bytes(two).display(ty).to_string(), "[1, NULL]");
    }

    #[test]
    fn damaged_bytes_are_an_error_and_never_a_panic() {
        for (ty, values) in ordered() {
            let Value::Bytes(whole) = list(&values, ty) else { unreachable!() };
            for end in 0..whole.len() {
                assert!(elements(&whole[..end], ty).is_err(), "{ty} cut at {end}");
            }
            for at in 0..whole.len() {
                for byte in [0, 1, 2, 3, 0xff] {
                    let mut damaged = whole.to_vec();
                    damaged[at] = byte;
                    let _ = elements(&damaged, ty);
                }
            }
        }
    }

    #[test]
    fn nested_values_print_as_duckdb_prints_them() {
        let fields = [("a", DataType::Int64), ("b", DataType::list(DataType::Varchar))];
        let ty = DataType::structure(fields);
        assert_eq!(ty, DataType::structure(fields), "types are interned");
        assert_eq!(ty.to_string(), "STRUCT(a BIGINT, b VARCHAR[])");
        let mut bytes = Vec::new();
        encode_part(&Value::Null, DataType::Int64, &mut bytes).unwrap();
        let texts = list(&[Value::Text("x".into()), Value::Null], DataType::Varchar);
        encode_part(&texts, DataType::list(DataType::Varchar), &mut bytes).unwrap();
        assert_eq!(Value::Bytes(Arc::from(bytes)).display(ty).to_string(), "{'a': NULL, 'b': [x, NULL]}");
    }
}
