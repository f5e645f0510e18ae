//! Parameters that are lists, dicts or arrays: which type they have, and the value that they are.
//!
//! | Python | SQL |
//! |---|---|
//! | list, tuple, set, array | `T[]`, where `T` is the type of all elements |
//! | dict whose keys are texts | STRUCT, with the fields in their order |
//! | dict with other keys, `entasis.Map` | MAP |
//!
//! Values of several types in one list get the type that holds all of them: integers and decimals a DECIMAL,
//! numbers with a float among them DOUBLE, dates and timestamps TIMESTAMP. NULL is of every type. Others are
//! refused, as an array of numbers and texts has no type in SQL.

use entasis_vector::types::{MICROS_PER_DAY, pow10};
use entasis_vector::value::nested;
use entasis_vector::{DataType, Error, Result, Value};

/// The most digits of a DECIMAL.
const DIGITS: u8 = 38;
/// The digits of a BIGINT.
const DIGITS_OF_BIGINT: u8 = 19;

/// One value of Python, as a parameter.
#[derive(Debug, Clone)]
pub enum Parameter {
    /// A single value with its type.
    Value(Value, DataType),
    /// Values in order.
    List(Vec<Parameter>),
    /// Values by name.
    Struct(Vec<(String, Parameter)>),
    /// Values by key.
    Map(Vec<(Parameter, Parameter)>),
}

impl Parameter {
    /// The value that it is, and its type.
    ///
    /// # Errors
    /// Input, if elements have no common type, or are too large for it.
    pub fn value(&self) -> Result<(Value, DataType)> {
        if let Parameter::Value(value, ty) = self {
            return Ok((value.clone(), *ty));
        }
        let ty = self.ty()?;
        Ok((self.value_of(ty)?, ty))
    }

    fn ty(&self) -> Result<DataType> {
        Ok(match self {
            Parameter::Value(_, ty) => *ty,
            Parameter::List(elements) => DataType::list(common_type(elements)?),
            Parameter::Struct(fields) => {
                let types = fields.iter().map(|(_, value)| value.ty()).collect::<Result<Vec<_>>>()?;
                DataType::structure(fields.iter().map(|(name, _)| &**name).zip(types))
            }
            Parameter::Map(entries) => {
                let key = common_type(entries.iter().map(|(key, _)| key))?;
                DataType::map(key, common_type(entries.iter().map(|(_, value)| value))?)
            }
        })
    }

    /// As a value of `ty`, to which its own type leads.
    fn value_of(&self, ty: DataType) -> Result<Value> {
        let mut bytes = Vec::new();
        match (self, ty) {
            (Parameter::Value(value, own), _) => return converted(value, *own, ty),
            (Parameter::List(elements), DataType::List(element)) => {
                for own in elements {
                    nested::encode_part(&own.value_of(*element)?, *element, &mut bytes)?;
                }
                nested::end_list(&mut bytes);
            }
            (Parameter::Struct(own), DataType::Struct(fields)) => {
                for field in fields {
                    let value = own.iter().find(|(name, _)| name == field.name).map(|(_, value)| value);
                    let value = value.map_or(Ok(Value::Null), |value| value.value_of(field.ty))?;
                    nested::encode_part(&value, field.ty, &mut bytes)?;
                }
            }
            (Parameter::Map(entries), DataType::Map(entry)) => {
                for (key, value) in entries {
                    let (key, value) = (("key".to_owned(), key.clone()), ("value".to_owned(), value.clone()));
                    let own = Parameter::Struct(vec![key, value]).value_of(*entry)?;
                    nested::encode_part(&own, *entry, &mut bytes)?;
                }
                nested::end_list(&mut bytes);
                nested::check(&bytes, ty)?;
            }
            _ => return Err(Error::internal(format!("{self:?} is no {ty}"))),
        }
        Ok(Value::Bytes(bytes.into()))
    }
}

/// The type that all of these can have.
fn common_type<'a>(all: impl IntoIterator<Item = &'a Parameter>) -> Result<DataType> {
    all.into_iter().try_fold(DataType::Null, |common, next| {
        let next = next.ty()?;
        wider(common, next).ok_or_else(|| {
            Error::input(format!("the elements of a list or map must have one type, not {common} and {next}"))
        })
    })
}

/// The type that holds the values of both types.
fn wider(one: DataType, other: DataType) -> Option<DataType> {
    use DataType as T;
    Some(match (one, other) {
        _ if one == other => one,
        (T::Null, ty) | (ty, T::Null) => ty,
        (T::Float64, T::Int64 | T::Decimal { .. }) | (T::Int64 | T::Decimal { .. }, T::Float64) => T::Float64,
        (T::Int64 | T::Decimal { .. }, T::Int64 | T::Decimal { .. }) => {
            let ((whole, scale), (others, decimals)) = (digits(one), digits(other));
            let (whole, scale) = (whole.max(others), scale.max(decimals));
            T::Decimal { precision: (whole + scale).min(DIGITS), scale }
        }
        (T::Date, T::Timestamp) | (T::Timestamp, T::Date) => T::Timestamp,
        (T::List(one), T::List(other)) => T::list(wider(*one, *other)?),
        (T::Map(one), T::Map(other)) => match wider(*one, *other)? {
            T::Struct(fields) => T::map(fields[0].ty, fields[1].ty),
            _ => return None,
        },
        (T::Struct(fields), T::Struct(others)) if fields.len() == others.len() => {
            let field = |own: &entasis_vector::types::StructField| {
                let other = others.iter().find(|other| other.name == own.name)?;
                Some((own.name, wider(own.ty, other.ty)?))
            };
            T::structure(fields.iter().map(field).collect::<Option<Vec<_>>>()?)
        }
        _ => return None,
    })
}

/// Digits before and after the point.
fn digits(ty: DataType) -> (u8, u8) {
    match ty {
        DataType::Decimal { precision, scale } => (precision - scale, scale),
        _ => (DIGITS_OF_BIGINT, 0),
    }
}

/// A value of type `from` as one of type `to`, which is [`wider`].
fn converted(value: &Value, from: DataType, to: DataType) -> Result<Value> {
    let Value::Integer(v) = value else { return Ok(value.clone()) };
    Ok(match (from, to) {
        _ if from == to => value.clone(),
        (DataType::Int64, DataType::Float64) => Value::Float(*v as f64),
        (DataType::Decimal { scale, .. }, DataType::Float64) => Value::Float(*v as f64 / pow10(scale) as f64),
        (_, DataType::Decimal { precision, scale }) => {
            let scaled = v.checked_mul(pow10(scale - digits(from).1));
            let scaled = scaled.filter(|v| v.unsigned_abs() < pow10(precision).unsigned_abs());
            Value::Integer(scaled.ok_or_else(|| {
                Error::input(format!("the numbers of a list need more than {DIGITS} digits together"))
            })?)
        }
        (DataType::Date, DataType::Timestamp) => Value::Integer(v * i128::from(MICROS_PER_DAY)),
        _ => return Err(Error::internal(format!("{from} is no {to}"))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(v: i128) -> Parameter {
        Parameter::Value(Value::Integer(v), DataType::Int64)
    }

    fn shown(parameter: &Parameter) -> String {
        let (value, ty) = parameter.value().unwrap();
        format!("{}: {ty}", value.display(ty))
    }

    #[test]
    fn elements_get_a_common_type() {
        let decimal = Parameter::Value(Value::Integer(25), DataType::Decimal { precision: 2, scale: 1 });
        let float = Parameter::Value(Value::Float(0.5), DataType::Float64);
        let null = Parameter::Value(Value::Null, DataType::Null);
        let list = |elements: &[&Parameter]| Parameter::List(elements.iter().copied().cloned().collect());
        assert_eq!(shown(&list(&[&number(1), &null])), "[1, NULL]: BIGINT[]");
        assert_eq!(shown(&list(&[&number(1), &decimal])), "[1.0, 2.5]: DECIMAL(20,1)[]");
        assert_eq!(shown(&list(&[&decimal, &float, &number(3)])), "[2.5, 0.5, 3.0]: DOUBLE[]");
        let nested = list(&[&list(&[&number(1)]), &list(&[&decimal]), &list(&[])]);
        assert_eq!(shown(&nested), "[[1.0], [2.5], []]: DECIMAL(20,1)[][]");
        let text = Parameter::Value(Value::Text("x".into()), DataType::Varchar);
        let error = list(&[&number(1), &text]).value().unwrap_err();
        assert!(error.message().contains("not BIGINT and VARCHAR"), "{error}");
    }

    #[test]
    fn names_and_keys_are_kept() {
        let named = |a, b| Parameter::Struct(vec![("a".to_owned(), number(a)), ("b".to_owned(), number(b))]);
        assert_eq!(shown(&named(1, 2)), "{'a': 1, 'b': 2}: STRUCT(a BIGINT, b BIGINT)");
        let swapped = Parameter::Struct(vec![("b".to_owned(), number(4)), ("a".to_owned(), number(3))]);
        let list = Parameter::List(vec![named(1, 2), swapped]);
        assert!(shown(&list).starts_with("[{'a': 1, 'b': 2}, {'a': 3, 'b': 4}]"), "{}", shown(&list));
        assert_eq!(shown(&Parameter::Map(vec![(number(7), number(8))])), "{7=8}: MAP(BIGINT, BIGINT)");
        assert!(Parameter::Map(vec![(number(7), number(8)), (number(7), number(9))]).value().is_err());
    }
}
