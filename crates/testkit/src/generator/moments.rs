//! Dates, timestamps, instants, intervals, and their fields.

use super::Generator;
use super::scope::Scope;
use super::values::Family::*;
use super::values::RARE_FORMS;

/// Time zones: with daylight saving time of an hour and of half an hour, and without.
pub(super) const ZONES: &[&str] =
    &["America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kolkata", "UTC"];

impl Generator {
    pub(super) fn date(&mut self, scope: &Scope, depth: usize, tame: bool) -> String {
        match self.random.below(5) {
            0 => format!("CAST({} AS DATE)", self.expression(Timestamp, scope, depth, tame)),
            1 => format!("CAST({} AS DATE)", self.leaf(Instant, scope, true)),
            2 => {
                let part = self.random.pick(&["month", "year", "week", "decade"]);
                format!("CAST(date_trunc('{part}', {}) AS DATE)", self.leaf(Date, scope, true))
            }
            3 => {
                let operator = self.random.pick(&["+", "-"]);
                format!("({} {operator} {})", self.leaf(Date, scope, true), self.random.between(0, 40))
            }
            _ => {
                let span = self.span(scope);
                format!("CAST({} {span} AS DATE)", self.leaf(Date, scope, true))
            }
        }
    }

    pub(super) fn timestamp(&mut self, scope: &Scope, depth: usize, tame: bool) -> String {
        match self.random.below(6) {
            0 => format!("CAST({} AS TIMESTAMP)", self.leaf(Date, scope, tame)),
            1 => {
                let part = self.random.pick(&["hour", "day", "month", "minute", "quarter"]);
                format!("date_trunc('{part}', {})", self.expression(Timestamp, scope, depth, true))
            }
            2 => {
                let zone = self.random.pick(ZONES);
                format!("({} AT TIME ZONE '{zone}')", self.expression(Instant, scope, depth, true))
            }
            3 => format!("CAST({} AS TIMESTAMP)", self.leaf(Instant, scope, true)),
            _ => {
                // A date is converted to a timestamp.
                let family = if self.random.chance(30) { Date } else { Timestamp };
                let span = self.span(scope);
                format!("({} {span})", self.leaf(family, scope, true))
            }
        }
    }

    pub(super) fn time(&mut self, scope: &Scope, tame: bool) -> String {
        match self.random.below(3) {
            0 => format!("CAST({} AS TIME)", self.leaf(Timestamp, scope, true)),
            1 => format!("CAST({} AS TIME)", self.leaf(Instant, scope, true)),
            _ => self.leaf(Time, scope, tame),
        }
    }

    pub(super) fn instant(&mut self, scope: &Scope, depth: usize) -> String {
        match self.random.below(8) {
            0 | 1 => {
                let zone = self.random.pick(ZONES);
                format!("({} AT TIME ZONE '{zone}')", self.expression(Timestamp, scope, depth, true))
            }
            2 => {
                let part = self.random.pick(&["hour", "day", "month", "week", "quarter", "year"]);
                format!("date_trunc('{part}', {})", self.leaf(Instant, scope, true))
            }
            3 => format!("CAST({} AS TIMESTAMPTZ)", self.leaf(Timestamp, scope, true)),
            4 => format!("CAST({} AS TIMESTAMPTZ)", self.leaf(Date, scope, true)),
            // A text with or without a zone.
            5 => {
                let family = *self.random.pick(&[Timestamp, Instant]);
                format!("CAST(CAST({} AS VARCHAR) AS TIMESTAMPTZ)", self.leaf(family, scope, true))
            }
            _ => {
                let span = self.span(scope);
                format!("({} {span})", self.leaf(Instant, scope, true))
            }
        }
    }

    /// `+` or `-` and an interval.
    fn span(&mut self, scope: &Scope) -> String {
        let operator = *self.random.pick(&["+", "+", "-"]);
        let interval = match self.random.below(20) {
            0 => self.random.pick(RARE_FORMS).to_string(),
            1..=11 => self.literal(Interval),
            _ => self.leaf(Interval, scope, true),
        };
        format!("{operator} {interval}")
    }

    pub(super) fn interval(&mut self, scope: &Scope) -> String {
        match self.random.below(7) {
            6 => {
                let (a, b) = (self.leaf(Instant, scope, true), self.leaf(Instant, scope, true));
                format!("age({a}, {b})")
            }
            0 => format!("(- {})", self.leaf(Interval, scope, true)),
            1 => format!("({} * {})", self.leaf(Interval, scope, true), self.random.between(-2, 3)),
            2 | 3 => {
                let a = *self.random.pick(&[Timestamp, Instant]);
                let b = *self.random.pick(&[Timestamp, Instant, Date]);
                format!("({} - {})", self.leaf(a, scope, true), self.leaf(b, scope, true))
            }
            _ => {
                let operator = self.random.pick(&["+", "-"]);
                format!(
                    "({} {operator} {})",
                    self.leaf(Interval, scope, true),
                    self.leaf(Interval, scope, true)
                )
            }
        }
    }

    /// A field of a date, a timestamp, an instant or an interval.
    pub(super) fn field(&mut self, scope: &Scope, depth: usize) -> String {
        let of_day: &[&str] = &["year", "month", "day", "doy", "dow", "isodow", "quarter", "week", "decade"];
        let of_zone: &[&str] = &["timezone", "timezone_hour", "timezone_minute"];
        if self.random.chance(10) {
            let instant = self.leaf(Instant, scope, true);
            return format!("(CAST(extract(epoch FROM date_trunc('second', {instant})) AS BIGINT) % 86400)");
        }
        let (parts, value): (&[&str], String) = match self.random.below(7) {
            5 => (of_zone, self.leaf(Instant, scope, true)),
            6 => (of_day, self.expression(Instant, scope, depth, true)),
            0 => (of_day, self.expression(Date, scope, depth, true)),
            1 => (of_day, self.leaf(Timestamp, scope, true)),
            2 => (&["hour", "minute", "year"], self.expression(Timestamp, scope, depth, true)),
            3 => (&["hour", "minute", "day", "dow"], self.expression(Instant, scope, depth, true)),
            4 if self.random.chance(70) => {
                (&["year", "month", "day", "hour", "minute"], self.leaf(Interval, scope, true))
            }
            // PostgreSQL's seconds have a fraction.
            _ => (&["second"], self.leaf(Timestamp, scope, true)),
        };
        format!("extract({} FROM {value})", self.random.pick(parts))
    }
}
