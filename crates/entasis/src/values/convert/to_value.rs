//! Parameters: Rust values with the SQL types that they have in statements.

use entasis_vector::error::sqlstate;
use entasis_vector::types::pow10;
use entasis_vector::value::nested::{check, copy_part, encode_part, end_list};
use entasis_vector::{DataType, Error, Interval, Result, Value};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A Rust value that can be a parameter of a statement.
///
/// The [module](crate::values::convert) lists the types that can, with the SQL types that they become. Lists
/// become lists; where a statement compares with several values, as `x IN ?` does, a list is these values.
///
/// A type of your own is a parameter by what it consists of:
///
/// ```
/// use entasis::{Config, DataType, Database, Result, ToValue, Value};
///
/// struct Celsius(f64);
///
/// impl ToValue for Celsius {
///     fn to_value(&self) -> Result<(Value, DataType)> {
///         self.0.to_value()
///     }
/// }
///
/// let connection = Database::in_memory(Config::default())?.connect();
/// let boils: bool = connection.query_row_as("SELECT ? >= 100", (Celsius(99.5),))?;
/// assert!(!boils);
/// # Ok::<(), entasis::Error>(())
/// ```
pub trait ToValue {
    /// The value, and its type.
    ///
    /// # Errors
    /// Input, if SQL has no such value.
    fn to_value(&self) -> Result<(Value, DataType)>;

    /// The type of the elements of an empty list of such values, if it is the same for all: NULL's, if not.
    fn data_type() -> DataType
    where
        Self: Sized,
    {
        DataType::Null
    }

    /// Several of them: a list, or a BLOB.
    ///
    /// # Errors
    /// Those of [`ToValue::to_value`].
    #[doc(hidden)]
    fn all_to_value(all: &[Self]) -> Result<(Value, DataType)>
    where
        Self: Sized,
    {
        list(all, Self::data_type())
    }
}

/// The list of these values, whose elements have the type `expected` if it has none.
fn list<T: ToValue>(all: &[T], expected: DataType) -> Result<(Value, DataType)> {
    let mut element = DataType::Null;
    let mut bytes = Vec::new();
    for (index, one) in all.iter().enumerate() {
        append(one, &mut element, &mut bytes, || format!("element {} of a list", index + 1))?;
    }
    end_list(&mut bytes);
    let element = if element == DataType::Null { expected } else { element };
    Ok((Value::Bytes(bytes.into()), DataType::list(element)))
}

/// Appends one of several values of one type, which is that of the first that is not NULL.
fn append(
    one: &impl ToValue,
    expected: &mut DataType,
    bytes: &mut Vec<u8>,
    subject: impl Fn() -> String,
) -> Result<()> {
    let (value, ty) = one.to_value()?;
    if !value.is_null() && *expected != ty {
        if *expected != DataType::Null {
            let text = format!("{} is {ty}, those before it are {expected}", subject());
            return Err(Error::input(text).with_sqlstate(sqlstate::TYPE_MISMATCH));
        }
        *expected = ty;
    }
    encode_part(&value, ty, bytes)
}

/// The MAP with these entries.
fn map<'a, K: ToValue + 'a, V: ToValue + 'a>(
    entries: impl Iterator<Item = (&'a K, &'a V)>,
) -> Result<(Value, DataType)> {
    let (mut of_key, mut of_value) = (DataType::Null, DataType::Null);
    let (mut bytes, mut entry) = (Vec::new(), Vec::new());
    for (key, value) in entries {
        entry.clear();
        append(key, &mut of_key, &mut entry, || "a key of a map".to_owned())?;
        append(value, &mut of_value, &mut entry, || "a value of a map".to_owned())?;
        copy_part(Some(&entry), &mut bytes);
    }
    end_list(&mut bytes);
    let known = |ty, expected| if ty == DataType::Null { expected } else { ty };
    let ty = DataType::map(known(of_key, K::data_type()), known(of_value, V::data_type()));
    check(&bytes, ty)?;
    Ok((Value::Bytes(bytes.into()), ty))
}

/// Values of one type: how each is a value, and the type.
macro_rules! values {
    ($($own:ty => $ty:expr, |$value:ident| $made:expr;)*) => {$(
        impl ToValue for $own {
            fn to_value(&self) -> Result<(Value, DataType)> {
                let $value = self;
                Ok(($made, $ty))
            }

            fn data_type() -> DataType {
                $ty
            }
        }
    )*};
}

values! {
    bool => DataType::Boolean, |v| Value::Boolean(*v);
    i8 => DataType::Int8, |v| Value::Integer((*v).into());
    i16 => DataType::Int16, |v| Value::Integer((*v).into());
    i32 => DataType::Int32, |v| Value::Integer((*v).into());
    i64 => DataType::Int64, |v| Value::Integer((*v).into());
    isize => DataType::Int64, |v| Value::Integer(*v as i128);
    u16 => DataType::UInt16, |v| Value::Integer((*v).into());
    u32 => DataType::UInt32, |v| Value::Integer((*v).into());
    u64 => DataType::UInt64, |v| Value::Integer((*v).into());
    usize => DataType::UInt64, |v| Value::Integer(*v as i128);
    f32 => DataType::Float32, |v| Value::Float((*v).into());
    f64 => DataType::Float64, |v| Value::Float(*v);
    String => DataType::Varchar, |v| Value::Text(v.as_str().into());
    char => DataType::Varchar, |v| Value::Text(v.encode_utf8(&mut [0; 4]).to_owned().into());
    Interval => DataType::Interval, |v| Value::Interval(*v);
}

impl ToValue for str {
    fn to_value(&self) -> Result<(Value, DataType)> {
        Ok((Value::Text(self.into()), DataType::Varchar))
    }
}

impl ToValue for u8 {
    fn to_value(&self) -> Result<(Value, DataType)> {
        Ok((Value::Integer((*self).into()), DataType::UInt8))
    }

    fn data_type() -> DataType {
        DataType::UInt8
    }

    fn all_to_value(all: &[u8]) -> Result<(Value, DataType)> {
        Ok((Value::Bytes(all.into()), DataType::Blob))
    }
}

/// The type of integers beyond 64 bits.
const WIDEST: DataType = DataType::Decimal { precision: 38, scale: 0 };

impl ToValue for i128 {
    fn to_value(&self) -> Result<(Value, DataType)> {
        match self.unsigned_abs() < pow10(38).unsigned_abs() {
            true => Ok((Value::Integer(*self), WIDEST)),
            false => Err(too_large(self)),
        }
    }

    fn data_type() -> DataType {
        WIDEST
    }
}

impl ToValue for u128 {
    fn to_value(&self) -> Result<(Value, DataType)> {
        i128::try_from(*self).map_err(|_| too_large(self))?.to_value()
    }

    fn data_type() -> DataType {
        WIDEST
    }
}

fn too_large(value: impl std::fmt::Display) -> Error {
    Error::input(format!("the integer {value} has more than 38 digits")).with_sqlstate(sqlstate::OUT_OF_RANGE)
}

/// An instant, TIMESTAMPTZ.
impl ToValue for SystemTime {
    fn to_value(&self) -> Result<(Value, DataType)> {
        // Rounded down, before 1970 too.
        let micros = match self.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(since) => i128::try_from(since.as_micros()).ok(),
            Err(before) => i128::try_from(before.duration().as_nanos()).ok().map(|n| (-n).div_euclid(1000)),
        };
        let micros = micros.filter(|micros| micros.unsigned_abs() < i64::MAX as u128);
        let micros = micros.ok_or_else(|| out_of_range("the instant", DataType::TimestampTz))?;
        Ok((Value::Integer(micros), DataType::TimestampTz))
    }

    fn data_type() -> DataType {
        DataType::TimestampTz
    }
}

/// An INTERVAL of microseconds.
impl ToValue for Duration {
    fn to_value(&self) -> Result<(Value, DataType)> {
        let micros = i64::try_from(self.as_micros());
        let micros = micros.map_err(|_| out_of_range("the duration", DataType::Interval))?;
        Ok((Value::Interval(Interval { months: 0, days: 0, micros }), DataType::Interval))
    }

    fn data_type() -> DataType {
        DataType::Interval
    }
}

fn out_of_range(what: &str, ty: DataType) -> Error {
    Error::input(format!("{what} is out of the range of {ty}")).with_sqlstate(sqlstate::OUT_OF_RANGE)
}

/// NULL.
impl ToValue for () {
    fn to_value(&self) -> Result<(Value, DataType)> {
        Ok((Value::Null, DataType::Null))
    }
}

/// `None` is NULL.
impl<T: ToValue> ToValue for Option<T> {
    fn to_value(&self) -> Result<(Value, DataType)> {
        self.as_ref().map_or(Ok((Value::Null, DataType::Null)), T::to_value)
    }

    fn data_type() -> DataType {
        T::data_type()
    }
}

/// A value with its type, as it is.
impl ToValue for (Value, DataType) {
    fn to_value(&self) -> Result<(Value, DataType)> {
        Ok(self.clone())
    }
}

impl<T: ToValue> ToValue for [T] {
    fn to_value(&self) -> Result<(Value, DataType)> {
        T::all_to_value(self)
    }
}

impl<T: ToValue, const N: usize> ToValue for [T; N] {
    fn to_value(&self) -> Result<(Value, DataType)> {
        T::all_to_value(self)
    }
}

impl<T: ToValue> ToValue for Vec<T> {
    fn to_value(&self) -> Result<(Value, DataType)> {
        T::all_to_value(self)
    }
}

impl<K: ToValue, V: ToValue, S> ToValue for HashMap<K, V, S> {
    fn to_value(&self) -> Result<(Value, DataType)> {
        map(self.iter())
    }
}

impl<K: ToValue, V: ToValue> ToValue for BTreeMap<K, V> {
    fn to_value(&self) -> Result<(Value, DataType)> {
        map(self.iter())
    }
}

impl<T: ToValue + ToOwned + ?Sized> ToValue for Cow<'_, T> {
    fn to_value(&self) -> Result<(Value, DataType)> {
        T::to_value(self)
    }
}

/// What leads to a value is that value.
macro_rules! pointers {
    ($($pointer:ty),*) => {$(
        impl<T: ToValue + ?Sized> ToValue for $pointer {
            fn to_value(&self) -> Result<(Value, DataType)> {
                T::to_value(self)
            }
        }
    )*};
}

pointers! { &T, &mut T, Box<T>, Rc<T>, Arc<T> }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sql_cannot_hold_is_an_error() {
        assert!((10_i128.pow(38) - 1).to_value().is_ok());
        for refused in [10_i128.pow(38).to_value(), i128::MIN.to_value(), u128::MAX.to_value()] {
            let error = refused.unwrap_err();
            assert!(error.message().contains("more than 38 digits"), "{error}");
            assert_eq!(error.sqlstate(), sqlstate::OUT_OF_RANGE);
        }
        assert!(Duration::MAX.to_value().unwrap_err().message().contains("INTERVAL"));
    }

    #[test]
    fn instants_before_1970_are_rounded_down() {
        let instant = SystemTime::UNIX_EPOCH - Duration::from_nanos(1);
        assert_eq!(instant.to_value().unwrap().0, Value::Integer(-1));
        let instant = SystemTime::UNIX_EPOCH + Duration::from_nanos(1999);
        assert_eq!(instant.to_value().unwrap().0, Value::Integer(1));
    }

    #[test]
    fn maps_have_keys_that_are_not_null() {
        let ages = BTreeMap::from([("a", Some(1)), ("b", None)]);
        let (value, ty) = ages.to_value().unwrap();
        assert_eq!(ty, DataType::map(DataType::Varchar, DataType::Int32));
        assert_eq!(value.display(ty).to_string(), "{a=1, b=NULL}");
        let empty = HashMap::<String, i64>::new().to_value().unwrap();
        assert_eq!(empty.1, DataType::map(DataType::Varchar, DataType::Int64));
        let error = BTreeMap::from([(None::<i32>, 1)]).to_value().unwrap_err();
        assert!(error.message().contains("keys of a MAP are not NULL"), "{error}");
    }

    #[test]
    fn lists_have_one_type() {
        assert_eq!(vec![Some(1_i64), None].to_value().unwrap().1, DataType::list(DataType::Int64));
        assert_eq!(Vec::<Vec<i32>>::new().to_value().unwrap().1, DataType::list(DataType::Null));
        assert_eq!([b'a'].to_value().unwrap(), (Value::Bytes(b"a"[..].into()), DataType::Blob));
        let mixed: [&dyn ToValue; 2] = [&1_i32, &"x"];
        let error = mixed[..].to_value().unwrap_err();
        assert_eq!(error.message(), "element 2 of a list is VARCHAR, those before it are INTEGER");
    }
}
