//! The arguments of one row as a kernel sees them.
//!
//! A row may have a single text or list that is as long as a table. So what takes time in proportion to its
//! length looks now and then whether the statement may go on, and what takes memory asks for it: by
//! `pieces` of a text ([`entasis_vector::statement`]), by [`Row::parts`] of a list, and by the [`Writer`].

use crate::time_zone::TimeZone;
use entasis_vector::expr::calendar::{is_finite, is_finite_date, midnight};
use entasis_vector::parts::Part;
use entasis_vector::types::{Interval, MICROS_PER_DAY};
use entasis_vector::value::nested::{self, Parts};
use entasis_vector::vector::uuid_from_ordered;
use entasis_vector::writer::Writer;
use entasis_vector::{DataType, Error, PhysicalType, Result, StringView, Value, Vector};
use std::fmt::{self, Write};

/// A function of one row. If an argument is NULL, the result is NULL without a call, unless the kernel
/// handles NULLs itself.
#[derive(Clone, Copy)]
pub enum Kernel {
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
pub struct Argument<'a> {
    vector: &'a Vector,
    values: Values<'a>,
    ty: DataType,
}

impl<'a> Argument<'a> {
    /// A flat or constant vector of `ty`.
    pub fn new(vector: &'a Vector, ty: DataType) -> Argument<'a> {
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

/// The bytes of a list without elements.
const NO_ELEMENT: &[u8] = &[0];

/// The arguments of one row. A kernel reads each by the accessor for the type that it declared.
pub struct Row<'a> {
    /// The arguments, as vectors.
    pub args: &'a [Argument<'a>],
    /// Its position in them.
    pub at: usize,
    /// The type of the result.
    pub result: DataType,
    /// The session's time zone.
    pub zone: TimeZone,
}

impl<'a> Row<'a> {
    /// Number of arguments.
    pub fn count(&self) -> usize {
        self.args.len()
    }
    /// The type of an argument.
    pub fn ty(&self, i: usize) -> DataType {
        self.args[i].ty
    }
    /// True if an argument is NULL.
    pub fn is_null(&self, i: usize) -> bool {
        !self.args[i].vector.is_valid(self.at)
    }
    /// True if any argument is NULL.
    pub fn has_null(&self) -> bool {
        (0..self.args.len()).any(|i| self.is_null(i))
    }
    fn place(&self, i: usize) -> usize {
        if self.args[i].vector.is_constant() { 0 } else { self.at }
    }
    /// A BOOLEAN.
    pub fn test(&self, i: usize) -> bool {
        self.whole(i) != 0
    }
    /// An integer of up to 64 bits, a date, a time, a timestamp.
    pub fn whole(&self, i: usize) -> i64 {
        self.wide(i) as i64
    }
    /// Any integer; the unscaled number of a decimal.
    pub fn wide(&self, i: usize) -> i128 {
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
    pub fn uuid(&self, i: usize) -> u128 {
        uuid_from_ordered(self.wide(i)) as u128
    }
    /// A REAL or DOUBLE.
    pub fn float(&self, i: usize) -> f64 {
        let at = self.place(i);
        match self.args[i].values {
            Values::F32(values) => values[at].into(),
            Values::F64(values) => values[at],
            _ => 0.0,
        }
    }
    /// An INTERVAL.
    pub fn interval(&self, i: usize) -> Interval {
        match self.args[i].values {
            Values::Interval(values) => values[self.place(i)],
            _ => Interval::default(),
        }
    }
    /// A BLOB, or the bytes of a VARCHAR.
    pub fn bytes(&self, i: usize) -> &'a [u8] {
        match self.args[i].values {
            Values::Str(values) => values[self.place(i)].as_bytes(),
            _ => &[],
        }
    }
    /// A VARCHAR.
    pub fn text(&self, i: usize) -> &'a str {
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
    pub fn clock(&self, i: usize) -> Result<i64> {
        let (at, ty) = (self.whole(i), self.ty(i));
        let clock = match ty {
            DataType::Date => i32::try_from(at).ok().and_then(midnight),
            DataType::TimestampTz => self.zone.local(at),
            _ => Some(at),
        };
        clock.ok_or_else(|| Error::input(format!("the {ty} is out of the range of timestamps")))
    }
    /// The day of a DATE or TIMESTAMP; `None` if it is infinite.
    pub fn day(&self, i: usize) -> Option<i64> {
        let at = self.whole(i);
        match self.ty(i) {
            DataType::Date => i32::try_from(at).is_ok_and(is_finite_date).then_some(at),
            _ => is_finite(at).then(|| at.div_euclid(MICROS_PER_DAY)),
        }
    }
    /// Whether a DATE or timestamp is infinite.
    pub fn is_infinite(&self, i: usize) -> bool {
        self.day(i).is_none()
    }
    /// The elements of a list, or the entries of a map, with looks; none of NULL.
    pub fn parts(&self, i: usize) -> Parts<'a> {
        match self.ty(i).element() {
            Some(element) => nested::parts(self.bytes(i), element),
            None => nested::parts(NO_ELEMENT, DataType::Null),
        }
    }
    /// An argument of any type as text.
    pub fn shown(&self, i: usize) -> String {
        self.zone.shown(&self.value(i), self.ty(i))
    }
    /// Writes an argument of any type as text.
    ///
    /// # Errors
    /// Interrupted; resource, if there is not enough memory.
    pub fn show(&self, i: usize, out: &mut Writer<'_>) -> Result<()> {
        match self.ty(i) {
            ty if ty.is_text() => return out.copy(self.bytes(i)),
            ty if self.zone.is_utc() || !ty.contains(DataType::TimestampTz) => {
                written(match self.args[i].values {
                    Values::Str(_) => nested::write(out, self.bytes(i), ty),
                    _ => write!(out, "{}", self.value(i).display(ty)),
                })?;
            }
            _ => out.copy(self.shown(i).as_bytes())?,
        }
        Ok(())
    }
    /// An argument of any type.
    pub fn value(&self, i: usize) -> Value {
        self.args[i].vector.value(self.at, self.ty(i))
    }
}

/// The result of formatting to a [`Writer`], which tells itself why it fails.
pub fn written(_: fmt::Result) -> Result<bool> {
    Ok(true)
}

/// The item after `n` others, or the first error.
pub fn nth<T>(mut items: impl Iterator<Item = Result<T>>, n: usize) -> Option<Result<T>> {
    for _ in 0..n {
        if let Err(error) = items.next()? {
            return Some(Err(error));
        }
    }
    items.next()
}
