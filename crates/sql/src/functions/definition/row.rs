//! The arguments of one row as a kernel sees them, and the writer for its text.

use crate::environment::TimeZone;
use entasis_vector::expr::calendar::{is_finite, is_finite_date, midnight};
use entasis_vector::meter::Meter;
use entasis_vector::parts::Part;
use entasis_vector::statement::{Charge, LONGEST, STEP, reserve, too_long};
use entasis_vector::types::{Interval, MICROS_PER_DAY};
use entasis_vector::vector::uuid_from_ordered;
use entasis_vector::{DataType, Error, PhysicalType, Result, StringView, Value, Vector};
use std::fmt;

/// A function of one row. If an argument is NULL, the result is NULL without a call, unless the kernel
/// handles NULLs itself.
#[derive(Clone, Copy)]
pub(crate) enum Kernel {
    /// BOOLEAN
    Test(fn(&Row<'_>) -> Result<Option<bool>>),
    /// Integers, DATE, TIME and timestamps. A result out of the type's range is an error.
    Whole(fn(&Row<'_>) -> Result<Option<i64>>),
    /// Decimals (unscaled), UBIGINT and UUID likewise.
    Wide(fn(&Row<'_>) -> Result<Option<i128>>),
    /// REAL and DOUBLE
    Float(fn(&Row<'_>) -> Result<Option<f64>>),
    /// INTERVAL
    Interval(fn(&Row<'_>) -> Result<Option<Interval>>),
    /// VARCHAR and BLOB; returns false for NULL.
    Text(fn(&Row<'_>, &mut Writer<'_>) -> Result<bool>),
    /// VARCHAR, handling NULLs.
    TextOfNulls(fn(&Row<'_>, &mut Writer<'_>) -> Result<bool>),
    /// A part of a nested argument, of any type.
    Part(for<'a> fn(&Row<'a>) -> Result<Part<'a>>),
    /// Integers, handling NULLs.
    WideOfNulls(fn(&Row<'_>) -> Result<Option<i128>>),
    /// The number of the argument that is the result, handling NULLs.
    Choice(fn(&Row<'_>) -> Result<Option<usize>>),
}

/// The values of one argument.
enum Values<'a> {
    Bool(&'a [u8]),
    I8(&'a [i8]),
    I16(&'a [i16]),
    I32(&'a [i32]),
    I64(&'a [i64]),
    I128(&'a [i128]),
    U8(&'a [u8]),
    U16(&'a [u16]),
    U32(&'a [u32]),
    U64(&'a [u64]),
    F32(&'a [f32]),
    F64(&'a [f64]),
    Interval(&'a [Interval]),
    Str(&'a [StringView]),
}

/// One argument, for all rows.
pub(crate) struct Argument<'a> {
    vector: &'a Vector,
    values: Values<'a>,
    ty: DataType,
}

impl<'a> Argument<'a> {
    /// A flat or constant vector of `ty`.
    pub(crate) fn new(vector: &'a Vector, ty: DataType) -> Argument<'a> {
        use PhysicalType as P;
        let values = match vector.physical() {
            P::Bool => Values::Bool(vector.values()),
            P::I8 => Values::I8(vector.values()),
            P::I16 => Values::I16(vector.values()),
            P::I32 => Values::I32(vector.values()),
            P::I64 => Values::I64(vector.values()),
            P::I128 => Values::I128(vector.values()),
            P::U8 => Values::U8(vector.values()),
            P::U16 => Values::U16(vector.values()),
            P::U32 => Values::U32(vector.values()),
            P::U64 => Values::U64(vector.values()),
            P::F32 => Values::F32(vector.values()),
            P::F64 => Values::F64(vector.values()),
            P::Interval => Values::Interval(vector.values()),
            P::Str => Values::Str(vector.values()),
        };
        Argument { vector, values, ty }
    }
}

/// The arguments of one row. A kernel reads each by the accessor for the type that it declared.
pub(crate) struct Row<'a> {
    pub(crate) args: &'a [Argument<'a>],
    pub(crate) at: usize,
    /// The type of the result.
    pub(crate) result: DataType,
    /// The session's time zone.
    pub(crate) zone: TimeZone,
}

impl<'a> Row<'a> {
    /// Number of arguments.
    pub(crate) fn len(&self) -> usize {
        self.args.len()
    }
    /// The type of an argument.
    pub(crate) fn ty(&self, i: usize) -> DataType {
        self.args[i].ty
    }
    /// True if an argument is NULL.
    pub(crate) fn is_null(&self, i: usize) -> bool {
        !self.args[i].vector.is_valid(self.at)
    }
    /// True if any argument is NULL.
    pub(crate) fn has_null(&self) -> bool {
        (0..self.args.len()).any(|i| self.is_null(i))
    }
    fn place(&self, i: usize) -> usize {
        if self.args[i].vector.is_constant() { 0 } else { self.at }
    }
    /// A BOOLEAN.
    pub(crate) fn test(&self, i: usize) -> bool {
        self.whole(i) != 0
    }
    /// An integer of up to 64 bits, a date, a time, a timestamp.
    pub(crate) fn whole(&self, i: usize) -> i64 {
        self.wide(i) as i64
    }
    /// Any integer; the unscaled number of a decimal.
    pub(crate) fn wide(&self, i: usize) -> i128 {
        let at = self.place(i);
        match self.args[i].values {
            Values::Bool(values) | Values::U8(values) => values[at].into(),
            Values::I8(values) => values[at].into(),
            Values::I16(values) => values[at].into(),
            Values::I32(values) => values[at].into(),
            Values::I64(values) => values[at].into(),
            Values::I128(values) => values[at],
            Values::U16(values) => values[at].into(),
            Values::U32(values) => values[at].into(),
            Values::U64(values) => values[at].into(),
            _ => 0,
        }
    }
    /// The number that represents a UUID.
    pub(crate) fn uuid(&self, i: usize) -> u128 {
        uuid_from_ordered(self.wide(i)) as u128
    }
    /// A REAL or DOUBLE.
    pub(crate) fn float(&self, i: usize) -> f64 {
        let at = self.place(i);
        match self.args[i].values {
            Values::F32(values) => values[at].into(),
            Values::F64(values) => values[at],
            _ => 0.0,
        }
    }
    /// An INTERVAL.
    pub(crate) fn interval(&self, i: usize) -> Interval {
        match self.args[i].values {
            Values::Interval(values) => values[self.place(i)],
            _ => Interval::default(),
        }
    }
    /// A BLOB, or the bytes of a VARCHAR.
    pub(crate) fn bytes(&self, i: usize) -> &'a [u8] {
        match self.args[i].values {
            Values::Str(values) => values[self.place(i)].as_bytes(),
            _ => &[],
        }
    }
    /// A VARCHAR.
    pub(crate) fn text(&self, i: usize) -> &'a str {
        match self.args[i].values {
            Values::Str(values) => values[self.place(i)].as_str(),
            _ => "",
        }
    }
    /// The microseconds since 1970 that a clock shows at a TIMESTAMP or DATE, or in the session's zone at a
    /// TIMESTAMPTZ.
    ///
    /// # Errors
    /// Input, if that is not in the range of timestamps.
    pub(crate) fn clock(&self, i: usize) -> Result<i64> {
        let (at, ty) = (self.whole(i), self.ty(i));
        let clock = match ty {
            DataType::Date => i32::try_from(at).ok().and_then(midnight),
            DataType::TimestampTz => self.zone.local(at),
            _ => Some(at),
        };
        clock.ok_or_else(|| Error::input(format!("the {ty} is out of the range of timestamps")))
    }
    /// The day of a DATE or TIMESTAMP; `None` if it is infinite.
    pub(crate) fn day(&self, i: usize) -> Option<i64> {
        let at = self.whole(i);
        match self.ty(i) {
            DataType::Date => i32::try_from(at).is_ok_and(is_finite_date).then_some(at),
            _ => is_finite(at).then(|| at.div_euclid(MICROS_PER_DAY)),
        }
    }
    /// Whether a DATE or timestamp is infinite.
    pub(crate) fn is_infinite(&self, i: usize) -> bool {
        self.day(i).is_none()
    }
    /// An argument of any type as text.
    pub(crate) fn shown(&self, i: usize) -> String {
        self.zone.shown(&self.value(i), self.ty(i))
    }
    /// An argument of any type.
    pub(crate) fn value(&self, i: usize) -> Value {
        self.args[i].vector.value(self.at, self.ty(i))
    }
}

/// Receives the text or bytes that a kernel writes. A result that may be far longer than the arguments must
/// be announced first ([`Writer::room`]).
pub(crate) struct Writer<'a> {
    pub(crate) buffer: &'a mut Vec<u8>,
    pub(crate) meter: &'a mut Meter,
    /// The memory of a long string.
    pub(crate) charge: &'a mut Option<Charge>,
    /// Bytes announced for this row.
    pub(crate) asked: usize,
}

/// A string of at least this length keeps the memory to which it was written.
pub(crate) const LONG: usize = 1 << 16;

impl Writer<'_> {
    /// Reserves room for `bytes` bytes in total.
    ///
    /// # Errors
    /// Interrupted; resource, if there is not enough memory or the string would be too long.
    pub(crate) fn room(&mut self, bytes: usize) -> Result<()> {
        if bytes > self.asked {
            if bytes > LONGEST {
                return Err(too_long(bytes));
            }
            self.meter.step(bytes - self.asked)?;
            // Exactly, if it is announced once; by a quarter more, if it is announced piece by piece.
            let bytes = bytes.max(self.asked + self.asked / 4);
            if bytes >= LONG {
                *self.charge = None;
                *self.charge = reserve(bytes)?;
            }
            self.asked = bytes;
            self.buffer.reserve_exact(bytes.saturating_sub(self.buffer.len()));
        }
        Ok(())
    }
    /// Appends text.
    pub(crate) fn text(&mut self, text: &str) {
        self.buffer.extend_from_slice(text.as_bytes());
    }
    /// Appends bytes; for a VARCHAR they must be UTF-8.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }
    /// Appends bytes `n` times.
    ///
    /// # Errors
    /// Those of [`Writer::room`].
    pub(crate) fn repeat(&mut self, part: &[u8], n: usize) -> Result<()> {
        let total = part.len().saturating_mul(n);
        self.room(self.len().saturating_add(total))?;
        let start = self.len();
        if n > 0 {
            self.bytes(part);
        }
        // Doubles what is written already, by whole parts.
        let most = (STEP / part.len().max(1)).max(1) * part.len();
        while self.len() - start < total {
            let there = self.len() - start;
            let more = there.min(total - there).min(most);
            self.buffer.extend_from_within(start..start + more);
            self.wrote(more)?;
        }
        Ok(())
    }
    /// Looks now and then whether the statement may go on, after so many more bytes were written.
    ///
    /// # Errors
    /// Interrupted.
    #[inline]
    pub(crate) fn wrote(&mut self, bytes: usize) -> Result<()> {
        self.meter.step(bytes)
    }
    /// Appends a character.
    pub(crate) fn char(&mut self, c: char) {
        self.text(c.encode_utf8(&mut [0; 4]));
    }
    /// Number of bytes so far.
    pub(crate) fn len(&self) -> usize {
        self.buffer.len()
    }
}

impl fmt::Write for Writer<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.text(text);
        Ok(())
    }
}

/// The result of writing to a [`Writer`], which cannot fail.
pub(crate) fn written(_: fmt::Result) -> Result<bool> {
    Ok(true)
}
