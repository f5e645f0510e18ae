//! Untrusted bytes to the parts of a block: numbers, codes, strings, patches. Each is in bounds, or an error.

use super::{Column, PACKED, Shared};
use crate::backend::bytes::{Cursor, u32_at};
use crate::block::packed::Packed;
use crate::block::{Codes, StringBytes};
use entasis_vector::{Buffer, Interval, Native, PhysicalType, Value};

/// How deep encodings are nested: doubles as runs of integers.
const DEPTH: usize = 2;
/// The error of bytes that end too early.
pub(super) const SHORT: &str = "it ends too early";

/// What is wrong.
pub(crate) type Flaw = &'static str;

/// Bytes that are read in sequence.
pub(crate) struct Reader<'a> {
    pub(super) cursor: Cursor<'a>,
    pub(crate) column: Column,
    pub(crate) shared: &'a Shared,
    /// How many encodings may be nested within this one.
    depth: usize,
}

/// True if an integer may be a value of a type, or the base of its codes. Floats and intervals have none.
fn fits(number: i128, physical: PhysicalType) -> bool {
    physical == PhysicalType::I128 || (physical.is_integer() && (-(1 << 65)..1 << 65).contains(&number))
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8], column: Column, shared: &'a Shared) -> Reader<'a> {
        Reader { cursor: Cursor::new(bytes), column, shared, depth: DEPTH }
    }

    /// An error, unless something holds.
    pub(crate) fn check(&self, holds: bool, flaw: Flaw) -> Result<(), Flaw> {
        if holds { Ok(()) } else { Err(flaw) }
    }

    /// Reads an encoding within another one, of values that are held as in `column`.
    pub(crate) fn within<R>(
        &mut self,
        column: Column,
        read: impl FnOnce(&mut Reader<'a>) -> Result<R, Flaw>,
    ) -> Result<R, Flaw> {
        let depth = self.depth.checked_sub(1).ok_or("encodings that are nested too deep")?;
        let mut inner = Reader { cursor: self.cursor, column, shared: self.shared, depth };
        let found = read(&mut inner)?;
        self.cursor = inner.cursor;
        Ok(found)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Flaw> {
        self.cursor.u8().ok_or(SHORT)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Flaw> {
        self.cursor.u16().ok_or(SHORT)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Flaw> {
        self.cursor.u64().ok_or(SHORT)
    }

    pub(crate) fn i64(&mut self) -> Result<i64, Flaw> {
        self.cursor.i64().ok_or(SHORT)
    }

    pub(crate) fn f64(&mut self) -> Result<f64, Flaw> {
        self.cursor.f64().ok_or(SHORT)
    }

    /// True if an integer may be one of the column's, or the base of codes of those.
    pub(crate) fn fits(&self, number: i128) -> bool {
        fits(number, self.column.physical)
    }

    /// An integer that may be one of the column's.
    pub(crate) fn integer(&mut self) -> Result<i128, Flaw> {
        let number = self.cursor.i128().ok_or(SHORT)?;
        self.check(self.fits(number), "a number that is none of its type")?;
        Ok(number)
    }

    /// A value of any type.
    pub(crate) fn value(&mut self) -> Result<Value, Flaw> {
        let cursor = &mut self.cursor;
        let value = match cursor.u8().ok_or(SHORT)? {
            0 => Some(Value::Null),
            1 => Some(Value::Boolean(false)),
            2 => Some(Value::Boolean(true)),
            3 => cursor.i128().map(Value::Integer),
            4 => cursor.f64().map(Value::Float),
            5 => {
                let text = std::str::from_utf8(cursor.counted().ok_or(SHORT)?);
                Some(Value::Text(text.map_err(|_| "a text that is not UTF-8")?.into()))
            }
            6 => cursor.counted().map(|bytes| Value::Bytes(bytes.into())),
            7 => match (cursor.i32(), cursor.i32(), cursor.i64()) {
                (Some(months), Some(days), Some(micros)) => {
                    Some(Value::Interval(Interval { months, days, micros }))
                }
                _ => None,
            },
            _ => return Err("a value of no type"),
        };
        value.ok_or(SHORT)
    }

    /// Checks that a value may be one of the column's.
    pub(crate) fn check_type(&self, value: &Value, flaw: Flaw) -> Result<(), Flaw> {
        self.check(self.is_of_type(value), flaw)
    }

    /// True if a value may be one of the column's.
    pub(super) fn is_of_type(&self, value: &Value) -> bool {
        use PhysicalType as P;
        match (value, self.column.physical) {
            (Value::Null, _) | (Value::Float(_), P::F32 | P::F64) | (Value::Interval(_), P::Interval) => true,
            (Value::Boolean(_), physical) => physical.is_integer(),
            (&Value::Integer(number), physical) => fits(number, physical),
            (Value::Text(_), P::Str) => self.column.is_text,
            (Value::Bytes(_), P::Str) => !self.column.is_text,
            _ => false,
        }
    }

    /// That many bytes, as they are in memory.
    pub(crate) fn buffer(&mut self, bytes: usize) -> Result<Buffer, Flaw> {
        Ok(Buffer::from_slice(self.cursor.take(bytes).ok_or(SHORT)?))
    }

    /// Codes of so many slots.
    pub(crate) fn codes(&mut self, slots: usize) -> Result<Codes, Flaw> {
        match self.u8()? {
            1 => Ok(Codes::U8(self.buffer(slots)?)),
            2 => Ok(Codes::U16(self.buffer(slots * 2)?)),
            4 => Ok(Codes::U32(self.buffer(slots * 4)?)),
            width => {
                let width =
                    width.checked_sub(PACKED).filter(|width| (1..64).contains(width)).ok_or("its codes")?;
                let bytes = self.cursor.take(Packed::size(width.into())).ok_or(SHORT)?;
                Ok(Codes::Packed(Packed::of_bytes(width.into(), bytes).ok_or("its codes")?))
            }
        }
    }

    /// The same, if they are packed.
    pub(crate) fn packed(&mut self, slots: usize) -> Result<Packed, Flaw> {
        match self.codes(slots)? {
            Codes::Packed(packed) => Ok(packed),
            _ => Err("plain codes where they are packed"),
        }
    }

    /// The ends of so many strings, each of 2 or 4 bytes.
    pub(super) fn ends(&mut self, count: usize, width: u8) -> Result<Vec<u32>, Flaw> {
        let bytes = count.checked_mul(width.into()).ok_or(SHORT)?;
        let ends = self.take(bytes)?;
        let all: Vec<u32> = match width {
            2 => ends.chunks_exact(2).map(|end| u16::from_le_bytes([end[0], end[1]]).into()).collect(),
            _ => ends.chunks_exact(4).map(|end| u32_at(end, 0)).collect(),
        };
        let length = all.last().copied().unwrap_or(0) as usize;
        self.check(
            all.is_sorted() && (width == 2) == (length <= u16::MAX.into()),
            "the ends of its strings",
        )?;
        Ok(all)
    }

    /// That many bytes.
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], Flaw> {
        self.cursor.take(count).ok_or(SHORT)
    }

    /// Checks that the strings of a text column are UTF-8.
    pub(crate) fn check_texts(&self, strings: &StringBytes) -> Result<(), Flaw> {
        self.check(!self.column.is_text || strings.are_utf8(), "a text that is not UTF-8")
    }

    /// That many numbers, which must ascend.
    pub(crate) fn ascending(&mut self, count: usize) -> Result<Vec<u16>, Flaw> {
        let bytes = self.cursor.take(count * 2).ok_or(SHORT)?;
        let numbers: Vec<u16> =
            bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
        self.check(numbers.windows(2).all(|pair| pair[0] < pair[1]), "what is to ascend does not")?;
        Ok(numbers)
    }

    /// Patches of up to so many slots.
    pub(crate) fn patches<V: Native>(
        &mut self,
        slots: usize,
        take: impl Fn(&mut Reader<'a>) -> Result<V, Flaw>,
    ) -> Result<Vec<(u16, V)>, Flaw> {
        let count = usize::from(self.u16()?);
        let at = self.ascending(count)?;
        self.check(at.last().is_none_or(|last| usize::from(*last) < slots), "its patches")?;
        at.into_iter().map(|slot| Ok((slot, take(self)?))).collect()
    }
}
