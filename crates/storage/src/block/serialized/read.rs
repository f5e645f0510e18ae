//! Bytes to a block: whatever the bytes are, the result is a block whose values can be read, or an error.

use super::{Column, HAS_VALIDITY, IS_ASCENDING, PACKED, PHYSICAL, Shared, VERSION};
use crate::BLOCK_ROWS;
use crate::backend::bytes::Cursor;
use crate::block::alp::Scale;
use crate::block::packed::Packed;
use crate::block::{
    Block, Codes, Fsst, Line, Multiples, Patched, Progression, Runs, Scaled, Singles, Split, StringBytes,
    Values, Views,
};
use crate::value::Zone;
use entasis_vector::{Buffer, Error, ErrorKind, Interval, Native, PhysicalType, Result, Value};

/// How deep encodings are nested: doubles as runs of integers.
const DEPTH: usize = 2;
/// The error of bytes that end too early.
pub(super) const SHORT: &str = "it ends too early";

/// What is wrong.
pub(super) type Flaw = &'static str;

/// The block of a column that [`super::write`] wrote as these bytes. `shared` is what it shares with others.
///
/// # Errors
/// Corruption, if the bytes are no such block.
pub fn read(bytes: &[u8], column: Column, shared: &Shared) -> Result<Block> {
    let mut reader = Reader { cursor: Cursor::new(bytes), column, shared };
    reader.block().map_err(damaged)
}

/// The error of what is wrong.
pub(super) fn damaged(flaw: Flaw) -> Error {
    Error::new(ErrorKind::Corruption, format!("a block is damaged: {flaw}"))
}

/// Bytes that are read in sequence.
pub(super) struct Reader<'a> {
    pub(super) cursor: Cursor<'a>,
    pub(super) column: Column,
    pub(super) shared: &'a Shared,
}

fn check(holds: bool, flaw: Flaw) -> Result<(), Flaw> {
    if holds { Ok(()) } else { Err(flaw) }
}

/// True if an integer may be a value of a type, or the base of its codes.
fn fits(number: i128, physical: PhysicalType) -> bool {
    physical == PhysicalType::I128 || (-(1 << 65)..1 << 65).contains(&number)
}

/// False if the bounds of a block are integers beyond its codes. Digests of columns rely on this check.
fn bounds_have_codes(block: &Block) -> bool {
    let (base, factor, codes) = match &block.values {
        Values::FrameOfReference { base, codes } => (*base, 1, codes),
        Values::Multiples(multiples) => (multiples.least(), multiples.factor(), multiples.codes()),
        _ => return true,
    };
    match (&block.zone.min, &block.zone.max) {
        (Value::Integer(low), Value::Integer(high)) => {
            let reach = high.checked_sub(base).map(|most| most / i128::from(factor.max(1)));
            base <= *low && reach.is_some_and(|reach| reach <= codes.max().into())
        }
        _ => true,
    }
}

impl<'a> Reader<'a> {
    fn block(&mut self) -> Result<Block, Flaw> {
        check(self.u8()? == VERSION, "its version is not known")?;
        let (code, flags, physical) = (self.u8()?, self.u8()?, self.u8()?);
        check(flags & !(HAS_VALIDITY | IS_ASCENDING) == 0, "its flags are not known")?;
        check(PHYSICAL.get(usize::from(physical)) == Some(&self.column.physical), "it is of another type")?;
        let slots = usize::from(self.u16()?);
        check((1..=BLOCK_ROWS).contains(&slots), "its number of slots")?;
        let (min, max) = (self.value()?, self.value()?);
        let nulls = self.cursor.u32().ok_or(SHORT)?;
        let are_bounds = self.is_of_type(&min) && self.is_of_type(&max) && min.is_null() == max.is_null();
        // The count of NULLs may exceed the slots: it includes rows that were removed.
        check(are_bounds && min.total_cmp(&max).is_le(), "its zone")?;
        let mut validity = Vec::new();
        if flags & HAS_VALIDITY != 0 {
            for _ in 0..slots.div_ceil(64) {
                validity.push(self.cursor.u64().ok_or(SHORT)?);
            }
        }
        let values = self.values(code, slots, DEPTH)?;
        check(self.cursor.left() == 0, "more bytes than it has")?;
        let validity = (flags & HAS_VALIDITY != 0).then_some(&validity[..]);
        let block = Block::new(slots, values, validity, Zone { min, max, nulls }, flags & IS_ASCENDING != 0);
        let physical = self.column.physical;
        let is_digested = physical.is_integer() && physical.width() <= 8 && !block.may_be_null();
        check(!is_digested || bounds_have_codes(&block), "its zone is not that of its codes")?;
        Ok(block)
    }

    /// Values of so many slots under an encoding.
    fn values(&mut self, code: u8, slots: usize, depth: usize) -> Result<Values, Flaw> {
        let physical = self.column.physical;
        let are_integers = physical.is_integer() || physical == PhysicalType::I128;
        let are_strings = physical == PhysicalType::Str;
        check(are_integers || !matches!(code, 1 | 6 | 8 | 12 | 14), "codes of what are no integers")?;
        check(are_strings || !matches!(code, 3 | 4 | 5 | 11), "strings in another column")?;
        check(depth == DEPTH || !matches!(code, 3 | 4 | 5 | 11), "strings within others")?;
        match code {
            0 => {
                let value = self.value()?;
                check(self.is_of_type(&value), "its constant is of another type")?;
                Ok(Values::Constant(value))
            }
            1 => {
                let base = self.integer()?;
                Ok(Values::FrameOfReference { base, codes: self.codes(slots)? })
            }
            2 => {
                check(!are_strings, "flat strings")?;
                Ok(Values::Flat(self.buffer(slots * physical.width())?))
            }
            3 => self.dictionary_codes(slots),
            4 => {
                let strings = self.strings(slots)?;
                self.check_texts(&strings)?;
                Ok(Values::Strings(strings))
            }
            5 => {
                let strings = self.strings(slots)?;
                self.check_texts(&strings)?;
                Ok(Values::Views(Views::new(slots, slots, |slot| strings.get(slot))))
            }
            6 => self.sequence(),
            7 => self.runs(slots, depth),
            8 => self.patched(slots),
            9 => self.scaled(slots, depth),
            10 => {
                check(physical == PhysicalType::F64, "floats that are no doubles")?;
                Ok(Values::Singles(Singles::of_buffer(self.buffer(slots * size_of::<f32>())?)))
            }
            11 => self.symbols(slots),
            12 => self.multiples(slots),
            13 => self.split(slots),
            14 => {
                check(physical.width() <= 8, "a line of what has more than 64 bits")?;
                let (base, slope) = (self.integer()?, self.cursor.i64().ok_or(SHORT)?);
                Ok(Values::Line(Line::of_parts(base, slope, self.packed(slots)?)))
            }
            _ => Err("its encoding is not known"),
        }
    }

    fn dictionary_codes(&mut self, slots: usize) -> Result<Values, Flaw> {
        let Shared::Dictionary(dictionary) = self.shared else { return Err("its dictionary is missing") };
        let codes = self.codes(slots)?;
        let all = if codes.are_plain() { slots } else { BLOCK_ROWS };
        let is_entry = |slot| codes.get(slot) < dictionary.len() as u64;
        check((0..all).all(is_entry), "a code that is none of its dictionary")?;
        Ok(Values::Dictionary { dictionary: dictionary.clone(), codes })
    }

    fn sequence(&mut self) -> Result<Values, Flaw> {
        let (first, step) = (self.integer()?, self.integer()?);
        // Two rows may be as far apart as numbers can be: what counts is where slots are.
        let last = step.checked_mul(BLOCK_ROWS as i128).and_then(|all| first.checked_add(all));
        check(last.is_some() && fits(step, self.column.physical), "its sequence leaves the numbers")?;
        Ok(Values::Sequence(Progression::of_parts(first, step)))
    }

    fn runs(&mut self, slots: usize, depth: usize) -> Result<Values, Flaw> {
        check(depth > 0, "runs within runs")?;
        let count = usize::from(self.u16()?);
        check((1..=slots).contains(&count), "its number of runs")?;
        let ends = self.ascending(count)?;
        check(ends[0] > 0 && usize::from(ends[count - 1]) <= slots, "its runs")?;
        let code = self.u8()?;
        Ok(Values::Runs(Runs::of_parts(ends, self.values(code, count, depth - 1)?)))
    }

    fn patched(&mut self, slots: usize) -> Result<Values, Flaw> {
        let (least, base) = (self.integer()?, self.integer()?);
        let codes = self.packed(slots)?;
        check(least.checked_add(u64::MAX.into()).is_some(), "its patches leave the numbers")?;
        let patches = self.patches(slots, Cursor::u64)?;
        Ok(Values::Patched(Patched::of_parts(base, codes, least, &patches)))
    }

    fn scaled(&mut self, slots: usize, depth: usize) -> Result<Values, Flaw> {
        let is_double = self.column.physical == PhysicalType::F64;
        check(is_double && depth > 0, "scaled values that are no doubles")?;
        let scale = Scale::of_parts(self.u8()?, self.u8()?).ok_or("its scale")?;
        let code = self.u8()?;
        check(matches!(code, 0 | 1 | 2 | 6 | 8 | 12), "its integers")?;
        let column = Column { physical: PhysicalType::I64, is_text: false };
        let mut inner = Reader { cursor: self.cursor, column, shared: self.shared };
        let digits = inner.values(code, slots, depth - 1)?;
        self.cursor = inner.cursor;
        let patches = self.patches(slots, Cursor::f64)?;
        Ok(Values::Scaled(Scaled::of_parts(scale, digits, &patches)))
    }

    /// Strings of symbols.
    fn symbols(&mut self, slots: usize) -> Result<Values, Flaw> {
        let Shared::Symbols(symbols) = self.shared else { return Err("its symbols are missing") };
        let codes = self.strings(slots)?;
        let fsst = Fsst::of_parts(symbols.table().clone(), codes);
        if self.column.is_text {
            self.check_texts(&fsst.strings())?;
        }
        Ok(Values::Fsst(fsst))
    }

    fn multiples(&mut self, slots: usize) -> Result<Values, Flaw> {
        let least = self.integer()?;
        let factor = self.cursor.u64().ok_or(SHORT)?;
        let codes = self.packed(slots)?;
        let greatest = (0..BLOCK_ROWS).map(|slot| codes.get(slot)).max().unwrap_or(0);
        let furthest = greatest.checked_mul(factor).and_then(|far| least.checked_add(far.into()));
        check(factor > 1 && furthest.is_some(), "its multiples leave the numbers")?;
        Ok(Values::Multiples(Multiples::of_parts(least, factor, codes)))
    }

    /// Floats, split into heads and tails.
    fn split(&mut self, slots: usize) -> Result<Values, Flaw> {
        let physical = self.column.physical;
        check(matches!(physical, PhysicalType::F32 | PhysicalType::F64), "heads of what are no floats")?;
        let count = usize::from(self.u8()?);
        let mut heads = Vec::with_capacity(count);
        for _ in 0..count {
            heads.push(self.u16()?);
        }
        let codes = if count > 1 { Some(self.packed(slots)?) } else { None };
        let tails = self.packed(slots)?;
        let patches = self.patches(slots, Cursor::u16)?;
        let split = Split::of_parts(&heads, codes, tails, &patches, physical);
        Ok(Values::Split(Box::new(split.ok_or("its heads")?)))
    }

    pub(super) fn u8(&mut self) -> Result<u8, Flaw> {
        self.cursor.u8().ok_or(SHORT)
    }

    pub(super) fn u16(&mut self) -> Result<u16, Flaw> {
        self.cursor.u16().ok_or(SHORT)
    }

    /// An integer that may be one of the column's.
    fn integer(&mut self) -> Result<i128, Flaw> {
        let number = self.cursor.i128().ok_or(SHORT)?;
        check(fits(number, self.column.physical), "a number that is none of its type")?;
        Ok(number)
    }

    fn value(&mut self) -> Result<Value, Flaw> {
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

    /// True if a value may be one of the column's.
    fn is_of_type(&self, value: &Value) -> bool {
        use PhysicalType as P;
        match (value, self.column.physical) {
            (Value::Null, _) | (Value::Float(_), P::F32 | P::F64) | (Value::Interval(_), P::Interval) => true,
            (Value::Boolean(_), physical) => physical.is_integer(),
            (&Value::Integer(number), physical) => {
                (physical.is_integer() || physical == P::I128) && fits(number, physical)
            }
            (Value::Text(_), P::Str) => self.column.is_text,
            (Value::Bytes(_), P::Str) => !self.column.is_text,
            _ => false,
        }
    }

    /// That many bytes, as they are in memory.
    fn buffer(&mut self, bytes: usize) -> Result<Buffer, Flaw> {
        Ok(Buffer::from_slice(self.cursor.take(bytes).ok_or(SHORT)?))
    }

    fn codes(&mut self, slots: usize) -> Result<Codes, Flaw> {
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

    fn packed(&mut self, slots: usize) -> Result<Packed, Flaw> {
        match self.codes(slots)? {
            Codes::Packed(packed) => Ok(packed),
            _ => Err("plain codes where they are packed"),
        }
    }

    /// The ends of so many strings, each of 2 or 4 bytes.
    pub(super) fn ends(&mut self, count: usize, width: u8) -> Result<Vec<u32>, Flaw> {
        let bytes = count.checked_mul(width.into()).ok_or(SHORT)?;
        let mut ends = Cursor::new(self.take(bytes)?);
        let mut all = Vec::with_capacity(count);
        for _ in 0..count {
            let end = if width == 2 { ends.u16().map(u32::from) } else { ends.u32() };
            all.push(end.ok_or(SHORT)?);
        }
        let length = all.last().copied().unwrap_or(0) as usize;
        check(all.is_sorted() && (width == 2) == (length <= u16::MAX.into()), "the ends of its strings")?;
        Ok(all)
    }

    /// That many bytes.
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], Flaw> {
        self.cursor.take(count).ok_or(SHORT)
    }

    /// Checks that the strings of a text column are UTF-8.
    pub(super) fn check_texts(&self, strings: &StringBytes) -> Result<(), Flaw> {
        let are_texts = || (0..strings.len()).all(|slot| std::str::from_utf8(strings.get(slot)).is_ok());
        check(!self.column.is_text || are_texts(), "a text that is not UTF-8")
    }

    /// That many numbers, which must ascend.
    fn ascending(&mut self, count: usize) -> Result<Vec<u16>, Flaw> {
        let bytes = self.cursor.take(count * 2).ok_or(SHORT)?;
        let numbers: Vec<u16> =
            bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
        check(numbers.windows(2).all(|pair| pair[0] < pair[1]), "what is to ascend does not")?;
        Ok(numbers)
    }

    /// Patches of up to so many slots.
    fn patches<V: Native>(
        &mut self,
        slots: usize,
        take: impl Fn(&mut Cursor<'a>) -> Option<V>,
    ) -> Result<Vec<(u16, V)>, Flaw> {
        let count = usize::from(self.u16()?);
        let at = self.ascending(count)?;
        check(at.last().is_none_or(|last| usize::from(*last) < slots), "its patches")?;
        at.into_iter().map(|slot| Ok((slot, take(&mut self.cursor).ok_or(SHORT)?))).collect()
    }
}
