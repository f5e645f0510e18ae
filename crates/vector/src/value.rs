//! One value, on its own: literals in plans, bounds in statistics, cells in results. Never the inner loop.
//!
//! A [`Value`] carries no type: the integer 5 may be a BIGINT, a DATE or 0.05 in DECIMAL(15,2). The holder
//! knows the [`DataType`]; [`Value::display`] takes it to print.

pub mod nested;

use crate::time_tz;
use crate::types::{DataType, INFINITE_DATE, INFINITE_TIMESTAMP, Interval, MICROS_PER_DAY, pow10};
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// A single SQL value without its type.
#[derive(Debug, Clone)]
pub enum Value {
    /// NULL of any type.
    Null,
    /// BOOLEAN.
    Boolean(bool),
    /// Integers; the unscaled number of a DECIMAL; DATE (days), TIME and timestamps (microseconds, or
    /// nanoseconds); a TIMETZ ([`time_tz`]); the position of the label of an ENUM; the bits of a UUID (as the
    /// unsigned number, reinterpreted).
    Integer(i128),
    /// REAL and DOUBLE.
    Float(f64),
    /// VARCHAR and JSON.
    Text(Arc<str>),
    /// BLOB; the bytes of a nested value ([`nested`]).
    Bytes(Arc<[u8]>),
    /// INTERVAL.
    Interval(Interval),
}

impl Value {
    /// True for NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// The number of bytes of a text or of a binary or nested value.
    pub fn bytes(&self) -> Option<usize> {
        match self {
            Value::Text(text) => Some(text.len()),
            Value::Bytes(bytes) => Some(bytes.len()),
            _ => None,
        }
    }

    /// The order of two values of one type, as SQL sorts them; NULL is greatest, NaN is greater than any
    /// number. For UUIDs, see [`Value::cmp_in`].
    pub fn total_cmp(&self, other: &Value) -> Ordering {
        use Value::*;
        match (self, other) {
            (Null, Null) => Ordering::Equal,
            (Null, _) => Ordering::Greater,
            (_, Null) => Ordering::Less,
            (Boolean(a), Boolean(b)) => a.cmp(b),
            (Integer(a), Integer(b)) => a.cmp(b),
            (Float(a), Float(b)) => cmp_float(*a, *b),
            (Text(a), Text(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Bytes(a), Bytes(b)) => a.cmp(b),
            (Interval(a), Interval(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }

    /// The order of two values of the type `ty`, as SQL sorts them: [`Value::total_cmp`], but for UUIDs,
    /// whose numbers have no sign.
    pub fn cmp_in(&self, other: &Value, ty: DataType) -> Ordering {
        match (self, other) {
            (Value::Integer(a), Value::Integer(b)) if ty == DataType::Uuid => (*a as u128).cmp(&(*b as u128)),
            _ => self.total_cmp(other),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Value::Boolean(_) => 0,
            Value::Integer(_) => 1,
            Value::Float(_) => 2,
            Value::Text(_) => 3,
            Value::Bytes(_) => 4,
            Value::Interval(_) => 5,
            Value::Null => 6,
        }
    }

    /// The place of a number among those of its type, which for an integer is the integer itself; `None` if
    /// the value is no number. See [`float_ordinal`].
    pub fn ordinal(&self) -> Option<i128> {
        match self {
            Value::Integer(v) => Some(*v),
            Value::Float(v) => Some(float_ordinal(*v).into()),
            _ => None,
        }
    }

    /// The value as text, as a `CAST(… AS VARCHAR)` would give it. NULL prints as `NULL`.
    pub fn display(&self, ty: DataType) -> DisplayValue<'_> {
        DisplayValue { value: self, ty }
    }
}

/// Equality as SQL's `IS NOT DISTINCT FROM`: NULL equals NULL, NaN equals NaN, 0.0 equals -0.0.
impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        self.total_cmp(other) == Ordering::Equal
    }
}
impl Eq for Value {}

impl std::hash::Hash for Value {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Value::Null => {}
            Value::Boolean(v) => v.hash(state),
            Value::Integer(v) => v.hash(state),
            Value::Float(v) => canonical_bits(*v).hash(state),
            Value::Text(v) => v.as_bytes().hash(state),
            Value::Bytes(v) => v.hash(state),
            Value::Interval(v) => v.hash(state),
        }
    }
}

/// Floats in SQL order: NaN equals itself and is greater than infinity, the two zeros are equal.
pub fn cmp_float(a: f64, b: f64) -> Ordering {
    match a.partial_cmp(&b) {
        Some(order) => order,
        None => a.is_nan().cmp(&b.is_nan()),
    }
}

/// Bits that are equal iff two floats are equal in SQL order.
pub fn canonical_bits(v: f64) -> u64 {
    if v.is_nan() {
        f64::NAN.to_bits()
    } else if v == 0.0 {
        0
    } else {
        v.to_bits()
    }
}

/// The ordinal of a float, its place in SQL order: a number that is equal for equal floats, and greater for
/// greater ones. That of NaN is the greatest; between it and that of infinity are ordinals that belong to no
/// float.
pub fn float_ordinal(v: f64) -> i64 {
    let bits = canonical_bits(v);
    let size = (bits & !(1 << 63)) as i64;
    if bits >> 63 == 0 { size } else { -size }
}

/// The float of an ordinal; NaN for ordinals that no float has.
pub fn float_of_ordinal(ordinal: i64) -> f64 {
    let size = f64::from_bits(ordinal.unsigned_abs());
    if ordinal < 0 { -size } else { size }
}

/// Prints a [`Value`] under a type. Made by [`Value::display`].
pub struct DisplayValue<'a> {
    value: &'a Value,
    ty: DataType,
}

impl fmt::Display for DisplayValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value {
            Value::Null => f.write_str("NULL"),
            Value::Boolean(v) => write!(f, "{v}"),
            Value::Integer(v) => match self.ty {
                DataType::Decimal { scale, .. } => write_decimal(f, *v, scale),
                DataType::Date => write_date(f, *v as i64),
                DataType::Time => write_time(f, *v as i64),
                DataType::TimeTz => write_time_tz(f, *v as i64),
                DataType::Timestamp => write_timestamp(f, *v as i64),
                DataType::TimestampNs => write_timestamp_ns(f, *v as i64),
                DataType::TimestampTz => {
                    write_timestamp(f, *v as i64)?;
                    f.write_str(if v.unsigned_abs() < INFINITE_TIMESTAMP as u128 { "+00" } else { "" })
                }
                DataType::Uuid => write_uuid(f, *v as u128),
                DataType::Boolean => write!(f, "{}", *v != 0),
                DataType::Enum(labels) => f.write_str(labels.get(*v).unwrap_or("damaged")),
                _ => write!(f, "{v}"),
            },
            Value::Float(v) => match self.ty {
                DataType::Float32 => write_float(f, *v, format_args!("{:?}", *v as f32)),
                _ => write_float(f, *v, format_args!("{v:?}")),
            },
            Value::Text(v) => f.write_str(v),
            Value::Bytes(v) if self.ty.is_nested() => nested::write(f, v, self.ty),
            Value::Bytes(v) => write_blob(f, v),
            Value::Interval(v) => write_interval(f, *v),
        }
    }
}

fn write_float(f: &mut impl fmt::Write, v: f64, finite: fmt::Arguments<'_>) -> fmt::Result {
    if v.is_nan() {
        f.write_str("nan")
    } else if v.is_infinite() {
        f.write_str(if v > 0.0 { "inf" } else { "-inf" })
    } else {
        f.write_fmt(finite)
    }
}

/// `-12345` at scale 2 is `-123.45`.
pub fn write_decimal(f: &mut impl fmt::Write, v: i128, scale: u8) -> fmt::Result {
    if scale == 0 {
        return write!(f, "{v}");
    }
    let unit = pow10(scale).unsigned_abs();
    let digits = v.unsigned_abs();
    let sign = if v < 0 { "-" } else { "" };
    write!(f, "{sign}{}.{:0width$}", digits / unit, digits % unit, width = scale as usize)
}

/// `2024-02-29`; years before 1 print as `0044-03-15 (BC)`, the ends as `infinity` and `-infinity`.
pub fn write_date(f: &mut impl fmt::Write, days: i64) -> fmt::Result {
    if days.unsigned_abs() == INFINITE_DATE as u64 {
        return f.write_str(if days > 0 { "infinity" } else { "-infinity" });
    }
    let (year, month, day) = civil_from_days(days);
    if year > 0 {
        write!(f, "{year:04}-{month:02}-{day:02}")
    } else {
        write!(f, "{:04}-{month:02}-{day:02} (BC)", 1 - year)
    }
}

/// `23:59:59`, with up to six digits of fraction where there are any.
pub fn write_time(f: &mut impl fmt::Write, micros: i64) -> fmt::Result {
    let seconds = micros / 1_000_000;
    write!(f, "{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)?;
    let mut fraction = micros % 1_000_000;
    if fraction != 0 {
        let mut width = 6;
        while fraction % 10 == 0 {
            fraction /= 10;
            width -= 1;
        }
        write!(f, ".{fraction:0width$}")?;
    }
    Ok(())
}

/// `23:59:59+02`, of a TIMETZ ([`time_tz`]).
pub fn write_time_tz(f: &mut impl fmt::Write, packed: i64) -> fmt::Result {
    let (local, offset) = time_tz::unpack(packed);
    write_time(f, local)?;
    write_offset(f, offset)
}

/// Seconds to the east of Greenwich: `+02`, `-03:30`, `+00:53:28`.
pub fn write_offset(f: &mut impl fmt::Write, seconds: i64) -> fmt::Result {
    let size = seconds.abs();
    write!(f, "{}{:02}", if seconds < 0 { '-' } else { '+' }, size / 3600)?;
    if size % 3600 != 0 {
        write!(f, ":{:02}", size / 60 % 60)?;
    }
    if size % 60 != 0 {
        write!(f, ":{:02}", size % 60)?;
    }
    Ok(())
}

/// `2024-02-29 23:59:59.5`, `infinity`, `-infinity`.
pub fn write_timestamp(f: &mut impl fmt::Write, micros: i64) -> fmt::Result {
    if micros.unsigned_abs() == INFINITE_TIMESTAMP as u64 {
        return f.write_str(if micros > 0 { "infinity" } else { "-infinity" });
    }
    write_date(f, micros.div_euclid(MICROS_PER_DAY))?;
    f.write_char(' ')?;
    write_time(f, micros.rem_euclid(MICROS_PER_DAY))
}

/// As [`write_timestamp`], with up to nine digits of fraction.
pub fn write_timestamp_ns(f: &mut impl fmt::Write, nanos: i64) -> fmt::Result {
    let rest = nanos.rem_euclid(1000);
    if rest == 0 || nanos.unsigned_abs() == INFINITE_TIMESTAMP as u64 {
        let is_finite = nanos.unsigned_abs() < INFINITE_TIMESTAMP as u64;
        return write_timestamp(f, if is_finite { nanos.div_euclid(1000) } else { nanos });
    }
    let micros = nanos.div_euclid(1000);
    write_timestamp(f, micros.div_euclid(1_000_000) * 1_000_000)?;
    let fraction = format!("{:09}", nanos.rem_euclid(1_000_000_000));
    write!(f, ".{}", fraction.trim_end_matches('0'))
}

fn write_uuid(f: &mut impl fmt::Write, v: u128) -> fmt::Result {
    write!(
        f,
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        v >> 96,
        (v >> 80) & 0xffff,
        (v >> 64) & 0xffff,
        (v >> 48) & 0xffff,
        v & 0xffff_ffff_ffff
    )
}

fn write_blob(f: &mut (impl fmt::Write + ?Sized), bytes: &[u8]) -> fmt::Result {
    for &b in bytes {
        match b {
            b' '..=b'~' if b != b'\\' => f.write_char(b as char)?,
            _ => write!(f, "\\x{b:02X}")?,
        }
    }
    Ok(())
}

fn write_interval(f: &mut impl fmt::Write, v: Interval) -> fmt::Result {
    let mut space = "";
    let mut part = |f: &mut dyn fmt::Write, n: i32, unit: &str| -> fmt::Result {
        if n != 0 {
            write!(f, "{space}{n} {unit}{}", if n.unsigned_abs() == 1 { "" } else { "s" })?;
            space = " ";
        }
        Ok(())
    };
    part(f, v.months / 12, "year")?;
    part(f, v.months % 12, "month")?;
    part(f, v.days, "day")?;
    if v.micros != 0 || (v.months == 0 && v.days == 0) {
        f.write_str(space)?;
        if v.micros < 0 {
            f.write_char('-')?;
        }
        let magnitude = v.micros.unsigned_abs().min(i64::MAX as u64) as i64;
        write_time(f, magnitude)?;
    }
    Ok(())
}

/// Year, month (1-12) and day (1-31) of a day number, in the proleptic Gregorian calendar (Hinnant's
/// algorithm).
pub fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * shifted_month + 2) / 5 + 1) as u32;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 } as u32;
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// The day number of a date; the inverse of [`civil_from_days`].
pub fn days_from_civil(year: i64, month: u32, day: u32) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let shifted_month = if month > 2 { month - 3 } else { month + 9 } as i64;
    let day_of_year = (153 * shifted_month + 2) / 5 + day as i64 - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: Value, ty: DataType) -> String {
        value.display(ty).to_string()
    }

    #[test]
    fn values_print_as_sql_prints_them() {
        let decimal = DataType::Decimal { precision: 15, scale: 2 };
        assert_eq!(text(Value::Integer(-5), decimal), "-0.05");
        assert_eq!(text(Value::Integer(12345), decimal), "123.45");
        assert_eq!(text(Value::Integer(0), DataType::Date), "1970-01-01");
        assert_eq!(text(Value::Integer(-1), DataType::Timestamp), "1969-12-31 23:59:59.999999");
        for (nanos, expected) in [
            (0, "1970-01-01 00:00:00"),
            (-1, "1969-12-31 23:59:59.999999999"),
            (1_000_000_010, "1970-01-01 00:00:01.00000001"),
            (1_500_000_000, "1970-01-01 00:00:01.5"),
            (i64::MIN, "1677-09-21 00:12:43.145224192"),
            (i64::MAX - 1, "2262-04-11 23:47:16.854775806"),
            (i64::MAX, "infinity"),
            (-i64::MAX, "-infinity"),
        ] {
            assert_eq!(text(Value::Integer(nanos.into()), DataType::TimestampNs), expected);
        }
        assert_eq!(text(Value::Integer(1_500_000), DataType::Time), "00:00:01.5");
        for (local, offset, expected) in [
            (0, 0, "00:00:00+00"),
            (MICROS_PER_DAY, -(3 * 3600 + 1800), "24:00:00-03:30"),
            (1_500_000, time_tz::MOST_OFFSET, "00:00:01.5+15:59:59"),
        ] {
            let packed = time_tz::pack(local, offset);
            assert_eq!(text(Value::Integer(packed.into()), DataType::TimeTz), expected);
        }
        assert_eq!(text(Value::Float(1e300), DataType::Float64), "1e300");
        assert_eq!(text(Value::Float(2.0), DataType::Float64), "2.0");
        assert_eq!(text(Value::Bytes(Arc::from(&b"a\0"[..])), DataType::Blob), "a\\x00");
        let interval = Interval { months: 14, days: -3, micros: 0 };
        assert_eq!(text(Value::Interval(interval), DataType::Interval), "1 year 2 months -3 days");
    }

    #[test]
    fn ordinals_are_in_the_order_of_floats() {
        let ends = [0.0, f64::from_bits(1), f64::MIN_POSITIVE, 0.1, 1.0, 1e300, f64::MAX, f64::INFINITY];
        let mut floats: Vec<f64> =
            ends.into_iter().flat_map(|v| [v, -v, v.next_up(), -v.next_up()]).collect();
        floats.extend([f64::NAN, -f64::NAN, f64::from_bits(f64::INFINITY.to_bits() + 1)]);
        for &a in &floats {
            assert_eq!(canonical_bits(float_of_ordinal(float_ordinal(a))), canonical_bits(a), "{a}");
            for &b in &floats {
                assert_eq!(float_ordinal(a).cmp(&float_ordinal(b)), cmp_float(a, b), "{a} and {b}");
            }
        }
        assert_eq!(float_ordinal(0.0) - 1, float_ordinal(-f64::from_bits(1)));
        assert!(float_of_ordinal(float_ordinal(f64::INFINITY) + 1).is_nan());
    }

    #[test]
    fn days_and_dates_are_inverse() {
        for days in (-1_000_000..1_000_000).step_by(97) {
            let (y, m, d) = civil_from_days(days);
            assert_eq!(days_from_civil(y, m, d), days);
        }
        assert_eq!(civil_from_days(19_782), (2024, 2, 29));
    }
}
