//! The result of each conversion, for one value.
//!
//! The rules: to text as printed; from text by ISO forms; numbers by value, with an error if out of range;
//! decimals round half away from zero, floats to integers half to even; dates become midnights.

use entasis_vector::types::{MICROS_PER_DAY, pow10};
use entasis_vector::value::days_from_civil;
use entasis_vector::{DataType, Error, Result, Value};

/// `value`, of type `from`, as a `to`.
///
/// # Errors
/// Input, if the value cannot be represented; not supported, if the reference does not support the
/// conversion.
pub fn cast(value: &Value, from: DataType, to: DataType) -> Result<Value> {
    use DataType::{Blob, Boolean, Date, Interval, Time, Timestamp, TimestampTz, Uuid, Varchar};
    let day = i128::from(MICROS_PER_DAY);
    if from == to || value.is_null() {
        return Ok(value.clone());
    }
    Ok(match (value, from, to) {
        (_, Blob, Varchar) => return Err(no_opinion(from, to)),
        (_, _, Varchar) => Value::Text(value.display(from).to_string().into()),
        (Value::Text(text), Varchar, _) => return parse(text, to),
        (Value::Boolean(b), ..) if to.is_integer() => Value::Integer((*b).into()),
        (Value::Boolean(b), ..) if to.is_float() => Value::Float(u8::from(*b).into()),
        (Value::Integer(v), _, Boolean) if from.is_numeric() => Value::Boolean(*v != 0),
        (Value::Float(v), _, Boolean) => Value::Boolean(*v != 0.0),
        (Value::Integer(v), Date, Timestamp | TimestampTz) => in_range(v * day, to)?,
        (Value::Integer(v), Timestamp | TimestampTz, Date) => in_range(v.div_euclid(day), to)?,
        (Value::Integer(v), Timestamp | TimestampTz, Time) => Value::Integer(v.rem_euclid(day)),
        (Value::Integer(v), Timestamp, TimestampTz) | (Value::Integer(v), TimestampTz, Timestamp) => {
            Value::Integer(*v)
        }
        (_, Uuid | Interval | Date | Time | Timestamp | TimestampTz | Blob, _) => {
            return Err(no_opinion(from, to));
        }
        (Value::Integer(v), ..) if to.is_integer() || to.is_decimal() => {
            in_range(rescale(*v, scale(from), scale(to))?, to)?
        }
        (Value::Integer(v), ..) if to.is_float() => {
            Value::Float(narrow(*v as f64 / pow10(scale(from)) as f64, to)?)
        }
        (Value::Float(v), ..) if to.is_float() => Value::Float(narrow(*v, to)?),
        (Value::Float(v), ..) if to.is_integer() => in_range(whole(v.round_ties_even())?, to)?,
        (Value::Float(v), ..) if to.is_decimal() => {
            in_range(whole((v * pow10(scale(to)) as f64).round())?, to)?
        }
        _ => return Err(no_opinion(from, to)),
    })
}

fn no_opinion(from: DataType, to: DataType) -> Error {
    Error::not_supported(format!("the cast from {from} to {to} in the reference"))
}

fn in_range(v: i128, ty: DataType) -> Result<Value> {
    match ty.integer_range() {
        Some((low, high)) if (low..=high).contains(&v) => Ok(Value::Integer(v)),
        _ => Err(Error::input(format!("value {v} is out of range for {ty}"))),
    }
}

fn scale(ty: DataType) -> u8 {
    if let DataType::Decimal { scale, .. } = ty { scale } else { 0 }
}

/// Converts between numbers of decimals; dropped digits are rounded, half away from zero.
fn rescale(v: i128, from: u8, to: u8) -> Result<i128> {
    if to >= from {
        return v.checked_mul(pow10(to - from)).ok_or_else(|| Error::input("overflow of a decimal"));
    }
    let unit = pow10(from - to);
    let (quotient, rest) = (v / unit, v % unit);
    Ok(if rest.abs() * 2 >= unit { quotient + v.signum() } else { quotient })
}

fn whole(v: f64) -> Result<i128> {
    if v.is_finite() && v.abs() < 1.6e38 {
        Ok(v as i128)
    } else {
        Err(Error::input(format!("{v} is out of range")))
    }
}

fn narrow(v: f64, to: DataType) -> Result<f64> {
    if to == DataType::Float64 {
        return Ok(v);
    }
    let single = f64::from(v as f32);
    if single.is_infinite() && v.is_finite() {
        Err(Error::input(format!("{v} is out of range for REAL")))
    } else {
        Ok(single)
    }
}

// ---- text -------------------------------------------------------------------------------------------------

fn parse(text: &str, to: DataType) -> Result<Value> {
    let bad = || Error::input(format!("cannot cast '{text}' to {to}"));
    let trimmed = text.trim();
    Ok(match to {
        DataType::Boolean => match trimmed.to_lowercase().as_str() {
            "true" | "t" | "yes" | "y" | "on" | "1" => Value::Boolean(true),
            "false" | "f" | "no" | "n" | "off" | "0" => Value::Boolean(false),
            _ => return Err(bad()),
        },
        _ if to.is_integer() => in_range(decimal(trimmed, 0).ok_or_else(bad)?, to)?,
        _ if to.is_float() => Value::Float(narrow(trimmed.parse::<f64>().map_err(|_| bad())?, to)?),
        DataType::Decimal { scale, .. } => in_range(decimal(trimmed, scale).ok_or_else(bad)?, to)?,
        DataType::Date => Value::Integer(date(trimmed).ok_or_else(bad)?.into()),
        DataType::Time => Value::Integer(time(trimmed).ok_or_else(bad)?.into()),
        DataType::Timestamp => {
            let (day, rest) = trimmed.split_once([' ', 'T']).unwrap_or((trimmed, "00:00:00"));
            let day = i128::from(date(day).ok_or_else(bad)?) * i128::from(MICROS_PER_DAY);
            Value::Integer(day + i128::from(time(rest).ok_or_else(bad)?))
        }
        DataType::Uuid => {
            let digits: String = trimmed.chars().filter(|c| *c != '-').collect();
            if digits.len() != 32 {
                return Err(bad());
            }
            Value::Integer(u128::from_str_radix(&digits, 16).map_err(|_| bad())? as i128)
        }
        _ => return Err(no_opinion(DataType::Varchar, to)),
    })
}

/// Digits with at most one decimal point, converted to `scale` decimals.
fn decimal(text: &str, scale: u8) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (before, after) = digits.split_once('.').unwrap_or((digits, ""));
    if before.len() + after.len() == 0 || !(before.to_string() + after).chars().all(|c| c.is_ascii_digit()) {
        return None;
    }
    let unscaled: i128 = (before.to_string() + after).parse().ok()?;
    let value = rescale(unscaled, u8::try_from(after.len()).ok()?, scale).ok()?;
    Some(if negative { -value } else { value })
}

/// `YYYY-MM-DD`.
fn date(text: &str) -> Option<i64> {
    let fields: Vec<&str> = text.split('-').collect();
    let [year, month, day] = fields[..] else { return None };
    let (year, month, day): (i64, u32, u32) = (year.parse().ok()?, month.parse().ok()?, day.parse().ok()?);
    let valid = (1..=12).contains(&month) && (1..=month_length(year, month)).contains(&day);
    valid.then(|| days_from_civil(year, month, day))
}

/// Number of days in a month.
pub fn month_length(year: i64, month: u32) -> u32 {
    let next = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    (days_from_civil(next.0, next.1, 1) - days_from_civil(year, month, 1)) as u32
}

/// `HH:MM[:SS[.ffffff]]`.
fn time(text: &str) -> Option<i64> {
    let (clock, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut fields = clock.split(':').map(|field| field.parse::<i64>().ok());
    let (hour, minute) = (fields.next()??, fields.next()??);
    let second = fields.next().unwrap_or(Some(0))?;
    if fields.next().is_some()
        || !(0..24).contains(&hour)
        || !(0..60).contains(&minute)
        || !(0..60).contains(&second)
    {
        return None;
    }
    if fraction.len() > 6 || !fraction.chars().all(|c| c.is_ascii_digit()) {
        return None;
    }
    let micros: i64 = format!("{fraction:0<6}").parse().ok()?;
    Some(((hour * 60 + minute) * 60 + second) * 1_000_000 + micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MONEY: DataType = DataType::Decimal { precision: 5, scale: 2 };

    fn text(text: &str, to: DataType) -> Result<Value> {
        cast(&Value::Text(text.into()), DataType::Varchar, to)
    }

    #[test]
    fn numbers_round_and_refuse() {
        let float = |v, to| cast(&Value::Float(v), DataType::Float64, to);
        assert_eq!(float(2.5, DataType::Int32).expect("fits"), Value::Integer(2));
        assert_eq!(float(3.5, DataType::Int32).expect("fits"), Value::Integer(4));
        assert!(float(128.0, DataType::Int8).is_err() && float(f64::NAN, DataType::Int8).is_err());
        assert_eq!(cast(&Value::Integer(-250), MONEY, DataType::Int32).expect("fits"), Value::Integer(-3));
        assert!(cast(&Value::Integer(1000), DataType::Int32, MONEY).is_err());
    }

    #[test]
    fn text_is_read_in_iso_form() {
        assert_eq!(text(" 1.005 ", MONEY).expect("a decimal"), Value::Integer(101));
        assert_eq!(text("1970-01-02", DataType::Date).expect("a date"), Value::Integer(1));
        assert_eq!(
            text("1970-01-01 00:00:01.5", DataType::Timestamp).expect("valid"),
            Value::Integer(1_500_000)
        );
        assert!(text("2023-02-29", DataType::Date).is_err() && text("x", DataType::Int64).is_err());
        assert!(text("24:00:00", DataType::Time).is_err());
    }
}
