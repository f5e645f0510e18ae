//! What a statement takes from its session: the time, and the time zone.

use crate::time_zone::TimeZone;
use entasis_vector::expr::calendar::day_of;
use entasis_vector::types::MICROS_PER_DAY;
use entasis_vector::{DataType, Error, Result, Value};
use std::time::{SystemTime, UNIX_EPOCH};

/// See the module. Times are microseconds since 1970-01-01 00:00:00 UTC.
#[derive(Debug, Clone, Copy)]
pub struct Session {
    /// When its transaction began: `now()`.
    pub transaction: i64,
    /// When the statement began.
    pub statement: i64,
    /// The time zone.
    pub zone: TimeZone,
}

impl Session {
    /// A session in UTC, with a transaction that begins now.
    pub fn now() -> Session {
        let now = clock();
        Session { transaction: now, statement: now, zone: TimeZone::UTC }
    }
}

/// What a function reads from the clock: one value for all its calls in a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClockReading {
    /// When the transaction began.
    Transaction,
    /// When the statement began.
    Statement,
    /// The local time at which the transaction began.
    LocalTimestamp,
    /// Its time of day.
    LocalTime,
    /// Its day.
    Today,
    /// The midnight with which that day began, in local time.
    Midnight,
}

impl ClockReading {
    /// All of them; the place of each is its number.
    pub const ALL: [ClockReading; 6] = [
        ClockReading::Transaction,
        ClockReading::Statement,
        ClockReading::LocalTimestamp,
        ClockReading::LocalTime,
        ClockReading::Today,
        ClockReading::Midnight,
    ];

    /// The type of its value.
    pub fn ty(self) -> DataType {
        match self {
            ClockReading::Transaction | ClockReading::Statement => DataType::TimestampTz,
            ClockReading::LocalTimestamp | ClockReading::Midnight => DataType::Timestamp,
            ClockReading::LocalTime => DataType::Time,
            ClockReading::Today => DataType::Date,
        }
    }

    /// Its value for a statement of this session.
    ///
    /// # Errors
    /// Input, if the clock is out of range.
    pub fn value(self, session: &Session) -> Result<Value> {
        let local = || {
            let local = session.zone.local(session.transaction);
            local.ok_or_else(|| Error::input("the clock is wrong: it is out of range"))
        };
        let micros = match self {
            ClockReading::Transaction => session.transaction,
            ClockReading::Statement => session.statement,
            ClockReading::LocalTimestamp => local()?,
            ClockReading::LocalTime => local()?.rem_euclid(MICROS_PER_DAY),
            ClockReading::Today => day_of(local()?).into(),
            ClockReading::Midnight => local()?.div_euclid(MICROS_PER_DAY) * MICROS_PER_DAY,
        };
        Ok(Value::Integer(micros.into()))
    }
}

/// The current time, in microseconds since 1970-01-01 00:00:00 UTC.
pub fn clock() -> i64 {
    let micros = |time: std::time::Duration| i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => micros(since),
        Err(error) => -micros(error.duration()),
    }
}
