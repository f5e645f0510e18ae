//! Overload resolution: chooses the overload whose argument types are nearest to the given ones.
//!
//! A type is implicitly converted where nothing is lost, or where a text may be a literal: integers to wider
//! ones, decimals and floats; a DATE to a TIMESTAMP; a VARCHAR to anything, as DuckDB and PostgreSQL do for
//! literals (which the binder no longer distinguishes here); and anything but a BLOB to a VARCHAR, if no
//! other overload matches.

use super::{Body, Definition, Overload, Signature};
use entasis_vector::types::StructField;
use entasis_vector::{DataType, Error, Result, Value};

/// The signature of `definition` for arguments of these types.
///
/// # Errors
/// Input, if it does not accept such arguments.
pub fn resolve(
    name: &str,
    definition: &Definition,
    types: &[DataType],
    constants: &[Option<Value>],
) -> Result<Signature> {
    let typed = match definition.body {
        Body::Overloads(overloads) => nearest(overloads, types).map(Ok),
        Body::Typed(typed) => Some(typed(types)),
        Body::TypedByConstants(typed) => Some(typed(types, constants)),
        Body::Elsewhere => None,
    };
    // An error with a hint says more than that the types do not match.
    let found = match typed {
        Some(Err(error)) if error.hint().is_some() => return Err(error),
        other => other.and_then(Result::ok),
    };
    found.ok_or_else(|| {
        let types: Vec<String> = types.iter().map(ToString::to_string).collect();
        Error::input(format!("{name} does not take ({})", types.join(", ")))
            .with_hint(format!("it is {name}({})", definition.arguments))
    })
}

fn nearest(overloads: &[Overload], types: &[DataType]) -> Option<Signature> {
    let mut best: Option<(u32, &Overload)> = None;
    for overload in overloads {
        let fixed = overload.args.len();
        if types.len() < fixed || (types.len() > fixed && overload.rest.is_none()) {
            continue;
        }
        let wanted = overload.args.iter().chain(overload.rest.iter().cycle());
        let Some(cost) = types.iter().zip(wanted).map(|(from, to)| distance(*from, *to)).sum::<Option<u32>>()
        else {
            continue;
        };
        if best.is_none_or(|(least, _)| cost < least) {
            best = Some((cost, overload));
        }
    }
    best.map(|(_, overload)| {
        let wanted = overload.args.iter().chain(overload.rest.iter().cycle());
        let args = types.iter().zip(wanted);
        let args = args.map(|(from, to)| if *to == DataType::Null { *from } else { *to }).collect();
        Signature { args, result: overload.result, kernel: overload.kernel }
    })
}

/// The distance of a type from one to which it can be implicitly converted; `None` if it cannot. As a target,
/// NULL stands for any type.
fn distance(from: DataType, to: DataType) -> Option<u32> {
    use DataType as T;
    Some(match (from, to) {
        _ if from == to => 0,
        (_, T::Null) | (T::Null, _) => 1,
        (T::UInt64, T::Int64) => 8,
        (from, to) if from.is_integer() && to.is_integer() => {
            match (from.integer_range(), to.integer_range()) {
                (Some(f), Some(t)) if t.0 <= f.0 && f.1 <= t.1 => {
                    u32::from(width(to)) - u32::from(width(from)) + 1
                }
                // A literal arrives as BIGINT.
                (Some(_), Some(_)) if from == T::Int64 => 12,
                _ => return None,
            }
        }
        (from, T::Decimal { .. }) if from.is_integer() => 16,
        (T::Decimal { .. }, T::Decimal { .. }) => 2,
        (T::Float32, T::Float64) => 4,
        (from, T::Float64) if from.is_integer() || from.is_decimal() => 20,
        (T::Date, T::Timestamp) => 4,
        (T::Date, T::TimestampTz) => 8,
        (T::Timestamp, T::TimestampTz) => 6,
        (T::TimestampTz, T::Timestamp) => 10,
        (T::Time, T::Interval) => 6,
        // A text is taken for a literal of the required type; of two such types the more specific one.
        (T::Varchar, T::Timestamp) => 100,
        (T::Varchar, T::Date | T::TimestampTz | T::Interval | T::Float64) => 101,
        (T::Varchar, _) => 102,
        (T::Blob, _) => return None,
        (_, T::Varchar) => 1000,
        _ => return None,
    })
}

fn width(ty: DataType) -> u8 {
    match ty {
        DataType::Int8 | DataType::UInt8 => 1,
        DataType::Int16 | DataType::UInt16 => 2,
        DataType::Int32 | DataType::UInt32 => 3,
        _ => 4,
    }
}

/// The common type of values of all these types, as for the results of a `CASE`; `None` if there is none.
pub fn common(types: &[DataType]) -> Option<DataType> {
    types.iter().copied().try_fold(DataType::Null, common_of_two)
}

/// The same, except that structs get the fields of both, by name.
pub fn common_by_name(types: &[DataType]) -> Option<DataType> {
    types.iter().copied().try_fold(DataType::Null, by_name)
}

fn by_name(a: DataType, b: DataType) -> Option<DataType> {
    match (a, b) {
        (DataType::List(a), DataType::List(b)) => Some(DataType::list(by_name(*a, *b)?)),
        (DataType::Struct(a), DataType::Struct(b)) => {
            let find = |fields: &'static [StructField], name: &str| {
                fields.iter().find(|field| field.name.eq_ignore_ascii_case(name)).map(|field| field.ty)
            };
            let own = a.iter().map(|field| match find(b, field.name) {
                Some(other) => Some((field.name, by_name(field.ty, other)?)),
                None => Some((field.name, field.ty)),
            });
            let others = b.iter().filter(|field| find(a, field.name).is_none());
            let others = others.map(|field| Some((field.name, field.ty)));
            Some(DataType::structure(own.chain(others).collect::<Option<Vec<_>>>()?))
        }
        (a, b) => common_of_two(a, b),
    }
}

fn common_of_two(a: DataType, b: DataType) -> Option<DataType> {
    use DataType as T;
    Some(match (a, b) {
        _ if a == b => a,
        (T::Null, other) | (other, T::Null) => other,
        (T::Varchar, other) | (other, T::Varchar) => other,
        (a, b) if a.is_float() && b.is_numeric() || b.is_float() && a.is_numeric() => T::Float64,
        (T::Decimal { precision: p, scale: s }, T::Decimal { precision: q, scale: t }) => {
            let scale = s.max(t);
            T::Decimal { precision: ((p - s).max(q - t) + scale).min(38), scale }
        }
        (decimal @ T::Decimal { .. }, other) | (other, decimal @ T::Decimal { .. }) if other.is_integer() => {
            return common_of_two(decimal, T::Decimal { precision: digits(other), scale: 0 });
        }
        (a, b) if a.is_integer() && b.is_integer() => {
            let (a, b) = (a.integer_range()?, b.integer_range()?);
            let holds =
                |ty: &T| ty.integer_range().is_some_and(|r| r.0 <= a.0.min(b.0) && r.1 >= a.1.max(b.1));
            let integers = [T::UInt8, T::Int8, T::UInt16, T::Int16, T::UInt32, T::Int32, T::UInt64, T::Int64];
            integers.into_iter().find(holds).unwrap_or(T::Decimal { precision: 20, scale: 0 })
        }
        (T::List(a), T::List(b)) => T::list(common_of_two(*a, *b)?),
        // Of the same fields in the same order; their values may differ in type.
        (T::Struct(a), T::Struct(b)) if a.len() == b.len() => {
            let field = |(a, b): (&StructField, &StructField)| {
                let named = a.name.eq_ignore_ascii_case(b.name);
                named.then(|| Some((a.name, common_of_two(a.ty, b.ty)?))).flatten()
            };
            T::structure(a.iter().zip(b).map(field).collect::<Option<Vec<_>>>()?)
        }
        (T::Date, T::Timestamp) | (T::Timestamp, T::Date) => T::Timestamp,
        (T::Date | T::Timestamp, T::TimestampTz) | (T::TimestampTz, T::Date | T::Timestamp) => T::TimestampTz,
        _ => return None,
    })
}

/// Number of digits of the longest integer of a type.
pub fn digits(ty: DataType) -> u8 {
    match ty {
        DataType::Int8 | DataType::UInt8 => 3,
        DataType::Int16 | DataType::UInt16 => 5,
        DataType::Int32 | DataType::UInt32 => 10,
        DataType::Int64 => 19,
        _ => 20,
    }
}
