//! The types of the crate `chrono`. SQL counts microseconds: finer parts of parameters are rounded down, and
//! a leap second is the last microsecond before it ends.

use super::from_value::{FromValue, micros, mismatch, moment, out_of_range};
use super::to_value::ToValue;
use ::chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, TimeZone, Timelike, Utc};
use entasis_vector::{DataType, Interval, Result, Value};

/// The day 1970-01-01, counted from the year 1.
const EPOCH: i32 = 719_163;

impl ToValue for NaiveDate {
    fn to_value(&self) -> Result<(Value, DataType)> {
        Ok((Value::Integer((self.num_days_from_ce() - EPOCH).into()), DataType::Date))
    }

    fn data_type() -> DataType {
        DataType::Date
    }
}

impl FromValue for NaiveDate {
    fn from_value(value: Value, ty: DataType) -> Result<NaiveDate> {
        let (Value::Integer(days), DataType::Date) = (&value, ty) else {
            return Err(mismatch::<NaiveDate>(ty));
        };
        let days = i32::try_from(*days).ok().and_then(|days| days.checked_add(EPOCH));
        let date = days.and_then(NaiveDate::from_num_days_from_ce_opt);
        date.ok_or_else(|| out_of_range::<NaiveDate>(&value, ty))
    }
}

/// Microseconds since midnight.
fn of_day(time: NaiveTime) -> i64 {
    i64::from(time.num_seconds_from_midnight()) * 1_000_000
        + i64::from(time.nanosecond().min(999_999_999) / 1000)
}

impl ToValue for NaiveTime {
    fn to_value(&self) -> Result<(Value, DataType)> {
        Ok((Value::Integer(of_day(*self).into()), DataType::Time))
    }

    fn data_type() -> DataType {
        DataType::Time
    }
}

impl FromValue for NaiveTime {
    fn from_value(value: Value, ty: DataType) -> Result<NaiveTime> {
        let (Value::Integer(micros), DataType::Time) = (&value, ty) else {
            return Err(mismatch::<NaiveTime>(ty));
        };
        let (seconds, rest) = (micros / 1_000_000, micros % 1_000_000);
        let time = NaiveTime::from_num_seconds_from_midnight_opt(seconds as u32, rest as u32 * 1000);
        time.ok_or_else(|| out_of_range::<NaiveTime>(&value, ty))
    }
}

/// Microseconds since 1970-01-01 00:00:00.
fn since_epoch(moment: NaiveDateTime) -> i64 {
    i64::from(moment.date().num_days_from_ce() - EPOCH) * 86_400_000_000 + of_day(moment.time())
}

impl ToValue for NaiveDateTime {
    fn to_value(&self) -> Result<(Value, DataType)> {
        Ok((Value::Integer(since_epoch(*self).into()), DataType::Timestamp))
    }

    fn data_type() -> DataType {
        DataType::Timestamp
    }
}

impl FromValue for NaiveDateTime {
    fn from_value(value: Value, ty: DataType) -> Result<NaiveDateTime> {
        if !matches!(ty, DataType::Timestamp | DataType::TimestampNs) {
            return Err(mismatch::<NaiveDateTime>(ty));
        }
        let count = moment::<NaiveDateTime>(&value, ty)?;
        let found = match ty {
            DataType::TimestampNs => Some(DateTime::from_timestamp_nanos(count)),
            _ => DateTime::from_timestamp_micros(count),
        };
        found.map(|utc| utc.naive_utc()).ok_or_else(|| out_of_range::<NaiveDateTime>(&value, ty))
    }
}

impl<Tz: TimeZone> ToValue for DateTime<Tz> {
    fn to_value(&self) -> Result<(Value, DataType)> {
        Ok((Value::Integer(since_epoch(self.naive_utc()).into()), DataType::TimestampTz))
    }

    fn data_type() -> DataType {
        DataType::TimestampTz
    }
}

impl FromValue for DateTime<Utc> {
    fn from_value(value: Value, ty: DataType) -> Result<DateTime<Utc>> {
        if ty != DataType::TimestampTz {
            return Err(mismatch::<DateTime<Utc>>(ty));
        }
        let micros = moment::<DateTime<Utc>>(&value, ty)?;
        DateTime::from_timestamp_micros(micros).ok_or_else(|| out_of_range::<DateTime<Utc>>(&value, ty))
    }
}

impl ToValue for TimeDelta {
    fn to_value(&self) -> Result<(Value, DataType)> {
        let exact = i128::from(self.num_seconds()) * 1_000_000_000 + i128::from(self.subsec_nanos());
        let count = exact.div_euclid(1000);
        let micros = i64::try_from(count).map_err(|_| {
            entasis_vector::Error::input(format!("the span {self} is out of the range of INTERVAL"))
        })?;
        Ok((Value::Interval(Interval { months: 0, days: 0, micros }), DataType::Interval))
    }

    fn data_type() -> DataType {
        DataType::Interval
    }
}

/// A day of the INTERVAL has 24 hours.
impl FromValue for TimeDelta {
    fn from_value(value: Value, ty: DataType) -> Result<TimeDelta> {
        micros::<TimeDelta>(value, ty).map(TimeDelta::microseconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip<T: ToValue + FromValue + PartialEq + std::fmt::Debug>(own: T) {
        let (value, ty) = own.to_value().unwrap();
        assert_eq!(T::from_value(value, ty).unwrap(), own);
    }

    #[test]
    fn values_come_back() {
        for date in [NaiveDate::MIN, NaiveDate::MAX, NaiveDate::from_ymd_opt(1969, 12, 31).unwrap()] {
            round_trip(date);
            round_trip(date.and_hms_micro_opt(23, 59, 59, 999_999).unwrap());
            round_trip(date.and_hms_opt(0, 0, 0).unwrap().and_utc());
        }
        round_trip(TimeDelta::microseconds(-1));
        round_trip(TimeDelta::days(3));
        let late = NaiveTime::from_hms_micro_opt(23, 59, 59, 999_999).unwrap();
        round_trip(late);
        let leap = NaiveTime::from_hms_nano_opt(23, 59, 59, 1_500_000_000).unwrap();
        assert_eq!(leap.to_value().unwrap(), late.to_value().unwrap());
    }

    #[test]
    fn what_chrono_cannot_hold_is_an_error() {
        let infinite = Value::Integer(i32::MAX.into());
        assert!(NaiveDate::from_value(infinite, DataType::Date).is_err());
        assert!(NaiveTime::from_value(Value::Integer(86_400_000_000), DataType::Time).is_err());
        let infinite = Value::Integer(i64::MAX.into());
        assert!(NaiveDateTime::from_value(infinite.clone(), DataType::TimestampNs).is_err());
        assert!(DateTime::<Utc>::from_value(infinite, DataType::TimestampTz).is_err());
        let month = Value::Interval(Interval { months: 1, days: 0, micros: 0 });
        assert!(TimeDelta::from_value(month, DataType::Interval).is_err());
        assert_eq!(
            TimeDelta::nanoseconds(-1).to_value().unwrap().0,
            TimeDelta::microseconds(-1).to_value().unwrap().0
        );
    }
}
