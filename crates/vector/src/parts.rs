//! Parts of nested values, the elements of lists and the fields of structs, from their bytes
//! ([`nested`]) into vectors: one loop for all parts of a type, without a [`Value`] for each. The slow twin
//! is [`nested::decode`].

use crate::CHUNK_ROWS;
use crate::bitmap;
use crate::buffer::Native;
use crate::error::{Error, Result};
use crate::statement::STEP;
use crate::string::{StringHeap, StringView};
use crate::types::{DataType, Interval, PhysicalType};
use crate::value::{Value, float_of_ordinal, nested};
use crate::vector::{StringsMut, Vector};
use crate::writer::StringMaker;

/// The bytes of a part; `None` is NULL.
pub type Part<'a> = Option<&'a [u8]>;

/// Writes the values of parts, which have the type `ty`, to the first positions of `out`, a vector of that
/// type. Old contents are gone.
///
/// # Errors
/// Internal, if some bytes are no such value.
pub fn write_parts(parts: &[Part<'_>], ty: DataType, out: &mut Vector) -> Result<()> {
    out.begin(parts.len().max(CHUNK_ROWS));
    match (ty, ty.physical()) {
        (DataType::Boolean, _) => fixed(parts, out, |[byte]: [u8; 1]| u8::from(byte != 0)),
        (DataType::Float32, _) => fixed(parts, out, |bytes| float_of_ordinal(i64_of(bytes)) as f32),
        (DataType::Float64, _) => fixed(parts, out, |bytes| float_of_ordinal(i64_of(bytes))),
        (_, PhysicalType::I8) => fixed(parts, out, |[byte]| (byte ^ 0x80) as i8),
        (_, PhysicalType::U8) => fixed(parts, out, |bytes| i16_of(bytes) as u8),
        (_, PhysicalType::I16) => fixed(parts, out, i16_of),
        (_, PhysicalType::U16) => fixed(parts, out, |bytes| i32_of(bytes) as u16),
        (_, PhysicalType::I32) => fixed(parts, out, i32_of),
        (_, PhysicalType::U32) => fixed(parts, out, |bytes| i64_of(bytes) as u32),
        (_, PhysicalType::I64) => fixed(parts, out, i64_of),
        (_, PhysicalType::U64) => fixed(parts, out, |bytes| i128_of(bytes) as u64),
        (_, PhysicalType::I128) => fixed(parts, out, i128_of),
        (DataType::Interval, _) => {
            let intervals = out.values_mut::<Interval>();
            for (interval, part) in intervals.iter_mut().zip(parts) {
                *interval = match part.map(|bytes| nested::decode(bytes, ty)).transpose()? {
                    Some(Value::Interval(interval)) => interval,
                    _ => Interval::default(),
                };
            }
            Ok(())
        }
        (_, PhysicalType::Str) => strings(parts, ty, out),
        _ if parts.iter().all(Option::is_none) => Ok(()),
        _ => Err(Error::internal(format!("a {ty} is no part of a nested value"))),
    }?;
    if parts.iter().any(Option::is_none) {
        // There are bits for all parts, not only up to the last NULL.
        let validity = out.validity_mut(parts.len());
        let nulls = parts.iter().enumerate().filter(|(_, part)| part.is_none());
        nulls.for_each(|(position, _)| bitmap::set(validity, position, false));
    }
    Ok(())
}

/// Writes values of `WIDTH` bytes.
fn fixed<T: Native, const WIDTH: usize>(
    parts: &[Part<'_>],
    out: &mut Vector,
    value: impl Fn([u8; WIDTH]) -> T,
) -> Result<()> {
    for (slot, part) in out.values_mut::<T>().iter_mut().zip(parts) {
        *slot = match part {
            Some(bytes) => value((*bytes).try_into().map_err(|_| nested::flaw())?),
            None => T::default(),
        };
    }
    Ok(())
}

fn i16_of(bytes: [u8; 2]) -> i16 {
    (u16::from_be_bytes(bytes) ^ 1 << 15) as i16
}

fn i32_of(bytes: [u8; 4]) -> i32 {
    (u32::from_be_bytes(bytes) ^ 1 << 31) as i32
}

fn i64_of(bytes: [u8; 8]) -> i64 {
    (u64::from_be_bytes(bytes) ^ 1 << 63) as i64
}

fn i128_of(bytes: [u8; 16]) -> i128 {
    (u128::from_be_bytes(bytes) ^ 1 << 127) as i128
}

fn strings(parts: &[Part<'_>], ty: DataType, out: &mut Vector) -> Result<()> {
    let StringsMut { views, heap } = out.strings_mut();
    let mut maker = StringMaker::default();
    for (view, part) in views.iter_mut().zip(parts) {
        *view = match part {
            None => StringView::default(),
            Some(bytes) if ty.is_nested() => push(bytes, &mut maker, heap)?,
            Some(bytes) => string(bytes, ty, &mut maker, heap)?,
        };
    }
    Ok(())
}

/// A text or binary string.
fn string(bytes: &[u8], ty: DataType, maker: &mut StringMaker, heap: &mut StringHeap) -> Result<StringView> {
    let content = bytes.strip_suffix(&nested::END_OF_BYTES).ok_or_else(nested::flaw)?;
    if memchr::memchr(0, content).is_some() {
        return match nested::decode(bytes, ty)? {
            Value::Text(text) => push(text.as_bytes(), maker, heap),
            Value::Bytes(bytes) => push(&bytes, maker, heap),
            _ => Err(nested::flaw()),
        };
    }
    if ty.is_text() && std::str::from_utf8(content).is_err() {
        return Err(nested::flaw());
    }
    push(content, maker, heap)
}

/// Copies bytes to the heap; long ones with looks, and once there is memory for them.
fn push(bytes: &[u8], maker: &mut StringMaker, heap: &mut StringHeap) -> Result<StringView> {
    if bytes.len() < STEP {
        return Ok(heap.push(bytes));
    }
    let made = maker.make(heap, |out| out.copy(bytes).map(|()| true))?;
    Ok(made.unwrap_or_default())
}
