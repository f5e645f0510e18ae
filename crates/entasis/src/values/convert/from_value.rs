//! Cells: SQL values as Rust values.

use entasis_vector::error::sqlstate;
use entasis_vector::expr::convert;
use entasis_vector::types::{INFINITE_TIMESTAMP, MICROS_PER_DAY};
use entasis_vector::{DataType, Error, Interval, Result, Value};
use std::any::type_name;
use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A Rust value that can be read from a cell of a result.
///
/// The [module](crate::values::convert) lists the types, and the SQL types that they are read from. A type of
/// your own is read by what it consists of:
///
/// ```
/// use entasis::{Config, DataType, Database, Error, FromValue, Result, Value};
///
/// #[derive(Debug, PartialEq)]
/// struct Carrier([u8; 2]);
///
/// impl FromValue for Carrier {
///     fn from_value(value: Value, ty: DataType) -> Result<Carrier> {
///         let text = String::from_value(value, ty)?;
///         let code = text.as_bytes().try_into();
///         code.map(Carrier).map_err(|_| Error::input(format!("{text} is not a carrier")))
///     }
/// }
///
/// let connection = Database::in_memory(Config::default())?.connect();
/// let row = connection.query_row("SELECT 'LH' AS a, 'Lufthansa' AS b", (), |row| Ok(row.clone()))?;
/// assert_eq!(row.get::<Carrier>("a")?, Carrier(*b"LH"));
/// let error = row.get::<Carrier>("b").unwrap_err();
/// assert_eq!(error.message(), "column \"b\": Lufthansa is not a carrier");
/// # Ok::<(), entasis::Error>(())
/// ```
pub trait FromValue: Sized {
    /// The Rust value of a value of the type `ty` that is not NULL.
    ///
    /// # Errors
    /// Input, if such a value cannot be read as this type, or is out of its range.
    fn from_value(value: Value, ty: DataType) -> Result<Self>;

    /// What stands for NULL; `None`, as it is by default, if nothing does, so that NULL is an error.
    fn from_null() -> Option<Self> {
        None
    }

    /// Several of them from a BLOB, if it consists of them.
    #[doc(hidden)]
    fn all_from_bytes(_bytes: &[u8]) -> Option<Vec<Self>> {
        None
    }
}

/// A value of the type `ty`, NULL or not, as a Rust value. `subject` is what an error calls it.
pub(crate) fn read<T: FromValue>(value: Value, ty: DataType, subject: impl Fn() -> String) -> Result<T> {
    if !value.is_null() {
        return T::from_value(value, ty).map_err(|error| error.with_context(subject()));
    }
    T::from_null().ok_or_else(|| {
        Error::input(format!("{} is NULL, which is not a value of {}", subject(), name::<T>()))
            .with_hint(format!("ask for Option<{}>", name::<T>()))
            .with_sqlstate(sqlstate::UNEXPECTED_NULL)
    })
}

/// The name of a Rust type without the paths in it: `Option<String>`.
pub(super) fn name<T: ?Sized>() -> String {
    let mut short = String::new();
    let mut word = String::new();
    for c in type_name::<T>().chars().chain(['\0']) {
        match c {
            c if c.is_alphanumeric() || c == '_' => word.push(c),
            ':' => word.clear(),
            c => {
                short += &std::mem::take(&mut word);
                short.extend((c != '\0').then_some(c));
            }
        }
    }
    short
}

/// The error of reading a value of type `ty` as a type that cannot be read from it.
pub(super) fn mismatch<T>(ty: DataType) -> Error {
    let other = match ty {
        DataType::Boolean => "bool",
        ty if ty.is_integer() => "i64",
        DataType::Float32 => "f32",
        DataType::Float64 => "f64",
        DataType::Decimal { .. } => "entasis::Decimal or f64",
        DataType::Varchar | DataType::Json | DataType::Enum(_) => "String",
        DataType::Blob => "Vec<u8>",
        DataType::Date => "entasis::Date",
        DataType::Time => "entasis::Time",
        DataType::Timestamp | DataType::TimestampNs => "entasis::Timestamp",
        DataType::TimestampTz => "SystemTime",
        DataType::Interval => "entasis::Interval",
        DataType::Uuid => "u128 or, with the feature uuid, uuid::Uuid",
        DataType::List(_) | DataType::Array(..) => "Vec<T>",
        DataType::Map(_) => "HashMap<K, V>",
        DataType::Struct(_) => "entasis::Struct<T>",
        _ => "entasis::Value",
    };
    Error::input(format!("{ty} cannot be read as {}", name::<T>()))
        .with_hint(format!("ask for {other}, or CAST it in the query"))
        .with_sqlstate(sqlstate::TYPE_MISMATCH)
}

/// The error of a value that a type does not have.
pub(super) fn out_of_range<T>(value: &Value, ty: DataType) -> Error {
    Error::input(format!("the {ty} {} is out of the range of {}", value.display(ty), name::<T>()))
        .with_sqlstate(sqlstate::OUT_OF_RANGE)
}

/// An integer, as SQL has them: of an integer type, or a DECIMAL without a fraction.
fn integer<T>(value: &Value, ty: DataType) -> Result<i128> {
    match (value, ty) {
        (Value::Integer(v), DataType::Decimal { scale: 0, .. }) => Ok(*v),
        (Value::Integer(v), ty) if ty.is_integer() => Ok(*v),
        _ => Err(mismatch::<T>(ty)),
    }
}

macro_rules! integers {
    ($($own:ty),*) => {$(
        impl FromValue for $own {
            fn from_value(value: Value, ty: DataType) -> Result<$own> {
                let v = integer::<$own>(&value, ty)?;
                <$own>::try_from(v).map_err(|_| out_of_range::<$own>(&value, ty))
            }
        }
    )*};
}

integers! { i8, i16, i32, i64, i128, isize, u16, u32, u64, usize }

impl FromValue for u8 {
    fn from_value(value: Value, ty: DataType) -> Result<u8> {
        u8::try_from(integer::<u8>(&value, ty)?).map_err(|_| out_of_range::<u8>(&value, ty))
    }

    fn all_from_bytes(bytes: &[u8]) -> Option<Vec<u8>> {
        Some(bytes.to_vec())
    }
}

/// A UUID too.
impl FromValue for u128 {
    fn from_value(value: Value, ty: DataType) -> Result<u128> {
        if let (Value::Integer(bits), DataType::Uuid) = (&value, ty) {
            return Ok(*bits as u128);
        }
        u128::try_from(integer::<u128>(&value, ty)?).map_err(|_| out_of_range::<u128>(&value, ty))
    }
}

impl FromValue for bool {
    fn from_value(value: Value, ty: DataType) -> Result<bool> {
        match value {
            Value::Boolean(v) => Ok(v),
            _ => Err(mismatch::<bool>(ty)),
        }
    }
}

/// The number next to a DECIMAL; an integer only if there is a float that equals it.
impl FromValue for f64 {
    fn from_value(value: Value, ty: DataType) -> Result<f64> {
        match (&value, ty) {
            (Value::Float(v), _) => Ok(*v),
            (Value::Integer(_), DataType::Decimal { .. }) => match convert(&value, ty, DataType::Float64)? {
                Value::Float(v) => Ok(v),
                _ => Err(mismatch::<f64>(ty)),
            },
            (Value::Integer(v), ty) if ty.is_integer() => {
                let float = *v as f64;
                let text = || format!("the {ty} {v} is not exactly a number of f64");
                if float as i128 == *v {
                    Ok(float)
                } else {
                    Err(Error::input(text()).with_hint("ask for i64"))
                }
            }
            _ => Err(mismatch::<f64>(ty)),
        }
    }
}

impl FromValue for f32 {
    fn from_value(value: Value, ty: DataType) -> Result<f32> {
        match (value, ty) {
            (Value::Float(v), DataType::Float32) => Ok(v as f32),
            _ => Err(mismatch::<f32>(ty)),
        }
    }
}

/// The text of a VARCHAR, a JSON or the label of an ENUM.
fn text<T>(value: Value, ty: DataType) -> Result<Arc<str>> {
    match (value, ty) {
        (Value::Text(text), _) => Ok(text),
        (Value::Integer(v), DataType::Enum(labels)) => {
            labels.get(v).map(Arc::from).ok_or_else(|| Error::internal("an ENUM has no such label"))
        }
        _ => Err(mismatch::<T>(ty)),
    }
}

macro_rules! texts {
    ($($own:ty),*) => {$(
        impl FromValue for $own {
            fn from_value(value: Value, ty: DataType) -> Result<$own> {
                Ok((&*text::<$own>(value, ty)?).into())
            }
        }
    )*};
}

texts! { String, Box<str>, Rc<str> }

impl FromValue for Arc<str> {
    fn from_value(value: Value, ty: DataType) -> Result<Arc<str>> {
        text::<Arc<str>>(value, ty)
    }
}

impl FromValue for char {
    fn from_value(value: Value, ty: DataType) -> Result<char> {
        let text = text::<char>(value, ty)?;
        let mut chars = text.chars();
        match (chars.next(), chars.next()) {
            (Some(one), None) => Ok(one),
            _ => Err(Error::input(format!("'{text}' is not one character"))),
        }
    }
}

impl FromValue for Cow<'static, str> {
    fn from_value(value: Value, ty: DataType) -> Result<Cow<'static, str>> {
        String::from_value(value, ty).map(Cow::Owned)
    }
}

impl FromValue for Arc<[u8]> {
    fn from_value(value: Value, ty: DataType) -> Result<Arc<[u8]>> {
        match (value, ty) {
            (Value::Bytes(bytes), DataType::Blob) => Ok(bytes),
            _ => Err(mismatch::<Arc<[u8]>>(ty)),
        }
    }
}

impl FromValue for Interval {
    fn from_value(value: Value, ty: DataType) -> Result<Interval> {
        match value {
            Value::Interval(interval) => Ok(interval),
            _ => Err(mismatch::<Interval>(ty)),
        }
    }
}

/// The microseconds of an interval whose days have 24 hours.
///
/// # Errors
/// Input, if it has months, whose length depends on the date.
pub(super) fn micros<T>(value: Value, ty: DataType) -> Result<i64> {
    let interval = Interval::from_value(value, ty).map_err(|_| mismatch::<T>(ty))?;
    if interval.months != 0 {
        let text = format!("the INTERVAL {} has months, {} has not", shown(interval), name::<T>());
        return Err(Error::input(text).with_hint("ask for entasis::Interval"));
    }
    let days = i64::from(interval.days).checked_mul(MICROS_PER_DAY);
    let micros = days.and_then(|days| days.checked_add(interval.micros));
    micros.ok_or_else(|| out_of_range::<T>(&Value::Interval(interval), ty))
}

fn shown(interval: Interval) -> String {
    Value::Interval(interval).display(DataType::Interval).to_string()
}

/// A day of the INTERVAL has 24 hours.
impl FromValue for Duration {
    fn from_value(value: Value, ty: DataType) -> Result<Duration> {
        let micros = micros::<Duration>(value.clone(), ty)?;
        u64::try_from(micros).map(Duration::from_micros).map_err(|_| out_of_range::<Duration>(&value, ty))
    }
}

/// The microseconds of a finite moment of this type.
pub(super) fn moment<T>(value: &Value, ty: DataType) -> Result<i64> {
    match value {
        Value::Integer(v) if v.unsigned_abs() < INFINITE_TIMESTAMP as u128 => Ok(*v as i64),
        _ => Err(out_of_range::<T>(value, ty)),
    }
}

impl FromValue for SystemTime {
    fn from_value(value: Value, ty: DataType) -> Result<SystemTime> {
        if ty != DataType::TimestampTz {
            return Err(mismatch::<SystemTime>(ty));
        }
        let micros = moment::<SystemTime>(&value, ty)?;
        let distance = Duration::from_micros(micros.unsigned_abs());
        let instant = match micros < 0 {
            true => SystemTime::UNIX_EPOCH.checked_sub(distance),
            false => SystemTime::UNIX_EPOCH.checked_add(distance),
        };
        instant.ok_or_else(|| out_of_range::<SystemTime>(&value, ty))
    }
}

/// Any value, as it is.
impl FromValue for Value {
    fn from_value(value: Value, _: DataType) -> Result<Value> {
        Ok(value)
    }

    fn from_null() -> Option<Value> {
        Some(Value::Null)
    }
}

/// NULL is `None`.
impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: Value, ty: DataType) -> Result<Option<T>> {
        T::from_value(value, ty).map(Some)
    }

    fn from_null() -> Option<Option<T>> {
        Some(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn as_type<T: FromValue>(value: i128, ty: DataType) -> Result<T> {
        read(Value::Integer(value), ty, || "x".to_owned())
    }

    #[test]
    fn integers_never_wrap() {
        assert_eq!(as_type::<u8>(255, DataType::Int64).unwrap(), 255);
        let error = as_type::<u8>(256, DataType::Int64).unwrap_err();
        assert_eq!(error.message(), "x: the BIGINT 256 is out of the range of u8");
        assert_eq!(error.sqlstate(), sqlstate::OUT_OF_RANGE);
        assert!(as_type::<u64>(-1, DataType::Int8).is_err());
        assert_eq!(as_type::<u128>(-1, DataType::Uuid).unwrap(), u128::MAX);
        let whole = DataType::Decimal { precision: 38, scale: 0 };
        assert_eq!(as_type::<i64>(7, whole).unwrap(), 7);
        let cents = DataType::Decimal { precision: 9, scale: 2 };
        assert!(as_type::<i64>(700, cents).unwrap_err().message().contains("cannot be read as i64"));
        assert_eq!(as_type::<f64>(725, cents).unwrap(), 7.25);
        assert!(
            as_type::<f64>((1 << 53) + 1, DataType::Int64).unwrap_err().message().contains("not exactly")
        );
        assert!(as_type::<i64>(0, DataType::Date).unwrap_err().hint().unwrap().contains("entasis::Date"));
    }

    #[test]
    fn names_of_types_have_no_paths() {
        assert_eq!(name::<Option<Vec<String>>>(), "Option<Vec<String>>");
        assert_eq!(name::<(i64, &'static str, [u8; 4])>(), "(i64, &str, [u8; 4])");
        assert_eq!(name::<std::collections::HashMap<Box<str>, SystemTime>>().matches("::").count(), 0);
    }

    #[test]
    fn null_is_only_read_as_what_has_it() {
        let error = read::<i64>(Value::Null, DataType::Int64, || "x".to_owned()).unwrap_err();
        assert_eq!(error.message(), "x is NULL, which is not a value of i64");
        assert_eq!(error.hint(), Some("ask for Option<i64>"));
        assert_eq!(read::<Option<i64>>(Value::Null, DataType::Int64, String::new).unwrap(), None);
    }

    #[test]
    fn instants_before_1970_and_infinite_ones() {
        let read = |micros| as_type::<SystemTime>(micros, DataType::TimestampTz);
        assert_eq!(read(-1).unwrap(), SystemTime::UNIX_EPOCH - Duration::from_micros(1));
        let error = read(INFINITE_TIMESTAMP.into()).unwrap_err();
        assert!(error.message().contains("infinity is out of the range of SystemTime"), "{error}");
    }
}
