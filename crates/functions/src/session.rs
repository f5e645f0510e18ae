//! What a statement takes from its session: the time, and the time zone.

use crate::time_zone::TimeZone;
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

/// The current time, in microseconds since 1970-01-01 00:00:00 UTC.
pub fn clock() -> i64 {
    let micros = |time: std::time::Duration| i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => micros(since),
        Err(error) => -micros(error.duration()),
    }
}
