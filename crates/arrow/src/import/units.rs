//! Dates, times, timestamps and spans of time, in the units that Arrow has for them.
//!
//! A moment that lies between two of ours becomes the earlier one, as in a cast of a TIMESTAMP_NS; a span
//! loses what is less than a microsecond. The time zone of an array says how to show its instants, and does
//! not matter here.

use super::slice::Slice;
use arrow_array::types::{
    Date32Type, Date64Type, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
    DurationSecondType, IntervalDayTimeType, IntervalMonthDayNanoType, IntervalYearMonthType,
    Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow_schema::{DataType as ArrowType, IntervalUnit, TimeUnit};
use entasis_vector::types::MICROS_PER_DAY;
use entasis_vector::{DataType, Interval, Result, Vector};

/// Microseconds in a second.
const SECOND: i64 = 1_000_000;
/// Microseconds in a millisecond, and nanoseconds in a microsecond.
const THOUSAND: i64 = 1000;

impl Slice<'_> {
    /// Reads dates, times and timestamps of this type; false if the array has others.
    ///
    /// # Errors
    /// Input, if a value is out of range.
    pub(super) fn read_moments(self, ty: DataType, out: &mut Vector) -> Result<bool> {
        use ArrowType::{Date32, Date64, Time32, Time64, Timestamp};
        match (ty, self.array.data_type()) {
            (DataType::Date, Date32) => self.copy::<Date32Type>(out),
            (DataType::Date, Date64) => {
                let day = |millis: i64| i32::try_from(millis.div_euclid(MICROS_PER_DAY / THOUSAND)).ok();
                self.copy_as::<Date64Type, i32>(ty, out, day)?;
            }
            (DataType::Time, Time32(TimeUnit::Second)) => {
                self.copy_as::<Time32SecondType, i64>(ty, out, |v| Some(i64::from(v) * SECOND))?;
            }
            (DataType::Time, Time32(_)) => {
                self.copy_as::<Time32MillisecondType, i64>(ty, out, |v| Some(i64::from(v) * THOUSAND))?;
            }
            (DataType::Time, Time64(TimeUnit::Nanosecond)) => {
                self.copy_as::<Time64NanosecondType, i64>(ty, out, |v| Some(v.div_euclid(THOUSAND)))?;
            }
            (DataType::Time, Time64(_)) => self.copy::<Time64MicrosecondType>(out),
            (DataType::TimestampNs, Timestamp(TimeUnit::Nanosecond, _)) => {
                self.copy::<TimestampNanosecondType>(out);
            }
            (DataType::Timestamp, Timestamp(TimeUnit::Nanosecond, None)) => return Ok(false),
            (DataType::Timestamp, Timestamp(unit, None))
            | (DataType::TimestampTz, Timestamp(unit, Some(_))) => self.read_timestamps(ty, *unit, out)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn read_timestamps(self, ty: DataType, unit: TimeUnit, out: &mut Vector) -> Result<()> {
        match unit {
            TimeUnit::Second => self.copy_as::<TimestampSecondType, i64>(ty, out, |v| v.checked_mul(SECOND)),
            TimeUnit::Millisecond => {
                self.copy_as::<TimestampMillisecondType, i64>(ty, out, |v| v.checked_mul(THOUSAND))
            }
            TimeUnit::Microsecond => {
                self.copy::<TimestampMicrosecondType>(out);
                Ok(())
            }
            TimeUnit::Nanosecond => {
                self.copy_as::<TimestampNanosecondType, i64>(ty, out, |v| Some(v.div_euclid(THOUSAND)))
            }
        }
    }

    /// Reads intervals and durations; false if the array has others.
    ///
    /// # Errors
    /// Input, if a value is out of range.
    pub(super) fn read_intervals(self, out: &mut Vector) -> Result<bool> {
        use ArrowType::{Duration, Interval as Span};
        let ty = DataType::Interval;
        let of = |micros: i64| Interval { months: 0, days: 0, micros };
        match self.array.data_type() {
            Span(IntervalUnit::YearMonth) => {
                let months = |months| Some(Interval { months, ..Interval::default() });
                self.copy_as::<IntervalYearMonthType, Interval>(ty, out, months)?;
            }
            Span(IntervalUnit::DayTime) => self.copy_as::<IntervalDayTimeType, Interval>(ty, out, |v| {
                Some(Interval { days: v.days, ..of(i64::from(v.milliseconds) * THOUSAND) })
            })?,
            Span(IntervalUnit::MonthDayNano) => {
                self.copy_as::<IntervalMonthDayNanoType, Interval>(ty, out, |v| {
                    Some(Interval { months: v.months, days: v.days, ..of(v.nanoseconds / THOUSAND) })
                })?;
            }
            Duration(TimeUnit::Second) => {
                self.copy_as::<DurationSecondType, Interval>(ty, out, |v| v.checked_mul(SECOND).map(of))?;
            }
            Duration(TimeUnit::Millisecond) => {
                let millis = |v: i64| v.checked_mul(THOUSAND).map(of);
                self.copy_as::<DurationMillisecondType, Interval>(ty, out, millis)?;
            }
            Duration(TimeUnit::Microsecond) => {
                self.copy_as::<DurationMicrosecondType, Interval>(ty, out, |v| Some(of(v)))?;
            }
            Duration(TimeUnit::Nanosecond) => {
                self.copy_as::<DurationNanosecondType, Interval>(ty, out, |v| Some(of(v / THOUSAND)))?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}
