//! Conversions that depend on a time zone, value by value: between TIMESTAMPTZ and other types, also within
//! lists and structs. All others are those of [`entasis_vector::expr::convert`].
//!
//! Between nested types, each part is converted by itself. For texts of nested values, an instant within is a
//! text: a value is written as the same value with the texts of its instants, and read as one with texts,
//! from which the instants are read.

use super::TimeZone;
use entasis_vector::expr::{convert, convert_leniently, convert_parts};
use entasis_vector::time_tz;
use entasis_vector::{DataType, Error, ErrorKind, Result, Value};

impl TimeZone {
    /// True if a conversion from one type to another depends on a zone.
    pub fn decides(from: DataType, to: DataType) -> bool {
        from != to && (from.contains(DataType::TimestampTz) || to.contains(DataType::TimestampTz))
    }

    /// A value of type `from` as one of type `to`; NULL, if it has no counterpart and the conversion is
    /// `lenient`, within a nested value only for the part that has none.
    ///
    /// # Errors
    /// Input, if it has no counterpart.
    pub fn convert(self, value: &Value, from: DataType, to: DataType, lenient: bool) -> Result<Value> {
        match self.converted(value, from, to, lenient) {
            Err(error) if lenient && error.kind() == ErrorKind::Input => Ok(Value::Null),
            result => result,
        }
    }

    fn converted(self, value: &Value, from: DataType, to: DataType, lenient: bool) -> Result<Value> {
        use DataType::{Date, Time, TimeTz, Timestamp, TimestampNs, TimestampTz, Varchar};
        let local = |instant: &i128| {
            let local = self.local(*instant as i64);
            local.map(|local| Value::Integer(local.into())).ok_or_else(|| out_of_range(from))
        };
        match (value, from, to) {
            _ if value.is_null() || from == to => Ok(value.clone()),
            (Value::Integer(v), TimestampTz, Varchar) => Ok(Value::Text(self.text(*v as i64).into())),
            (Value::Integer(v), TimestampTz, Timestamp) => local(v),
            (Value::Integer(v), TimestampTz, Date | Time) => convert(&local(v)?, Timestamp, to),
            (Value::Integer(v), TimestampTz, TimeTz) => {
                let Value::Integer(time) = convert(&local(v)?, Timestamp, Time)? else {
                    return Ok(Value::Null);
                };
                Ok(Value::Integer(time_tz::pack(time as i64, self.offset(*v as i64)).into()))
            }
            (Value::Integer(v), Timestamp, TimestampTz) => {
                let instant = self.instant(*v as i64);
                instant.map(|instant| Value::Integer(instant.into())).ok_or_else(|| out_of_range(to))
            }
            (_, TimestampTz, TimestampNs) => {
                convert(&self.converted(value, from, Timestamp, lenient)?, Timestamp, to)
            }
            (_, TimestampNs, TimestampTz) => {
                self.converted(&convert(value, from, Timestamp)?, Timestamp, to, lenient)
            }
            (_, Date, TimestampTz) => {
                self.converted(&convert(value, Date, Timestamp)?, Timestamp, to, lenient)
            }
            (Value::Text(text), Varchar, TimestampTz) => Ok(Value::Integer(self.read(text)?.into())),
            _ if from.is_nested() && to.is_nested() => {
                convert_parts(value, from, to, &|part, from, to| self.convert(part, from, to, lenient))
            }
            (_, _, Varchar) if from.is_nested() && from.contains(TimestampTz) => {
                let texts = with_texts(from);
                convert(&self.converted(value, from, texts, lenient)?, texts, Varchar)
            }
            (_, Varchar, _) if to.is_nested() && to.contains(TimestampTz) => {
                let texts = with_texts(to);
                self.converted(&plainly(value, Varchar, texts, lenient)?, texts, to, lenient)
            }
            _ => plainly(value, from, to, lenient),
        }
    }

    /// An instant as text.
    fn text(self, instant: i64) -> String {
        let mut text = String::new();
        self.write(&mut text, instant).expect("a String takes all");
        text
    }

    /// A value of any type as text, as a cast to VARCHAR gives it in a session with this zone; `NULL` for
    /// NULL.
    pub fn shown(self, value: &Value, ty: DataType) -> String {
        match ty.contains(DataType::TimestampTz) && !self.is_utc() {
            true => match self.converted(value, ty, DataType::Varchar, false) {
                Ok(Value::Text(text)) => text.to_string(),
                _ => value.display(ty).to_string(),
            },
            false => value.display(ty).to_string(),
        }
    }
}

/// A conversion without a zone.
fn plainly(value: &Value, from: DataType, to: DataType, lenient: bool) -> Result<Value> {
    match lenient {
        true => convert_leniently(value, from, to),
        false => convert(value, from, to),
    }
}

/// The type with texts in place of instants.
fn with_texts(ty: DataType) -> DataType {
    ty.with_innermost(&|ty| if ty == DataType::TimestampTz { DataType::Varchar } else { ty })
}

fn out_of_range(ty: DataType) -> Error {
    Error::input(format!("the result is out of range for {ty}"))
}
