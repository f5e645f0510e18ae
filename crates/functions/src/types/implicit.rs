//! Casts that are made unasked, and what they cost.
//!
//! | from | to |
//! |---|---|
//! | a parameter, NULL | anything |
//! | a text that was written | anything |
//! | an integer that was written | an integer type that holds it, and what its own type becomes |
//! | a decimal that was written | a decimal that holds it, REAL, DOUBLE |
//! | TINYINT … BIGINT | wider signed integers, decimals with enough digits, REAL, DOUBLE |
//! | UTINYINT … UBIGINT | wider integers with and without a sign, decimals with enough digits, REAL, DOUBLE |
//! | a decimal | wider decimals, DOUBLE |
//! | REAL | DOUBLE |
//! | DATE | TIMESTAMP, TIMESTAMP_NS, TIMESTAMPTZ |
//! | TIMESTAMP | TIMESTAMP_NS, TIMESTAMPTZ |
//! | TIMESTAMP_NS | TIMESTAMP, where a function or an operator has no other form |
//! | TIME | TIMETZ, in UTC |
//! | JSON, an ENUM | VARCHAR |
//! | a list, a map, a struct | one whose elements, keys and values, or fields of the same names, are so |
//!
//! An array `T[n]` also becomes a list, at one more.
//!
//! Nothing else becomes a VARCHAR but by `||`, `concat` and UNION, which ask for it. An *assignment* (INSERT,
//! UPDATE, DEFAULT) also casts numbers with a check of their range, lists to arrays with one of their length,
//! and texts to anything.

use super::Given;
use super::decimal::Digits;
use entasis_vector::DataType;

/// What a cast costs that is made unasked: the sum of a call's casts decides between overloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Implicit(pub u32);

/// What a written text costs as another type than VARCHAR.
const ADOPTED_TEXT: u32 = 20;
/// By how much a written integer is cheaper than a column as an integer type that holds it.
const ADOPTED_INTEGER: u32 = 90;

/// The cost of nanoseconds as microseconds: more than that of all casts that lose nothing.
const TRUNCATED_NANOS: u32 = 130;

/// The cost of a cast to a type: the smaller, the more it is preferred.
fn target(to: DataType) -> u32 {
    use DataType as T;
    match to {
        T::Int64 => 101,
        T::Int32 => 102,
        T::Float64 => 104,
        T::Decimal { .. } => 105,
        T::Timestamp => 120,
        T::TimestampTz => 123,
        T::TimestampNs => 125,
        T::Varchar => 149,
        _ if to.is_nested() => 160,
        _ => 110,
    }
}

/// The cost at which an expression becomes one of type `to` unasked; `None` if that needs a cast that is
/// written.
pub fn implicit(from: Given, to: DataType) -> Option<Implicit> {
    use DataType as T;
    let cost = match from {
        Given::Parameter(_) => 0,
        Given::Null => target(to),
        Given::Text if to == T::Varchar => 1,
        Given::Text => ADOPTED_TEXT,
        Given::Integer(value) => match to.integer_range() {
            _ if to == from.settled() => 0,
            Some((low, high)) if to.is_integer() && (low..=high).contains(&value.into()) => {
                target(to) - ADOPTED_INTEGER
            }
            _ => known(from.settled(), to)?,
        },
        Given::Decimal { .. } if to == from.settled() => 0,
        Given::Decimal { .. } if to == T::Float32 => target(to),
        Given::Decimal { .. } => known(from.settled(), to)?,
        Given::Known(ty) => known(ty, to)?,
    };
    Some(Implicit(cost))
}

/// The cost of a cast between two types.
fn known(from: DataType, to: DataType) -> Option<u32> {
    use DataType as T;
    let becomes = match (from, to) {
        _ if from == to => return Some(0),
        (T::Null, _) => true,
        (from, to) if from.is_integer() && to.is_integer() => {
            let (from, to) = (from.integer_range()?, to.integer_range()?);
            to.0 <= from.0 && from.1 <= to.1
        }
        (from, T::Decimal { .. }) => Digits::of_type(from)?.fit(Digits::of_type(to)?),
        (from, T::Float32) => from.is_integer(),
        (from, T::Float64) => from.is_numeric(),
        (T::TimestampNs, T::Timestamp) => return Some(TRUNCATED_NANOS),
        (T::Date, T::Timestamp | T::TimestampNs | T::TimestampTz)
        | (T::Timestamp, T::TimestampNs | T::TimestampTz)
        | (T::Time, T::TimeTz)
        | (T::Json | T::Enum(_), T::Varchar) => true,
        (T::Array(from, _), T::List(to)) => return Some(known(*from, *to)? + 1),
        (T::Array(_, length), T::Array(_, other)) if length != other => false,
        (T::List(from), T::List(to)) | (T::Map(from), T::Map(to)) | (T::Array(from, _), T::Array(to, _)) => {
            return known(*from, *to);
        }
        (T::Struct(from), T::Struct(to)) if from.len() == to.len() => {
            let mut most = 0;
            for (from, to) in from.iter().zip(to.iter()) {
                if !from.name.eq_ignore_ascii_case(to.name) {
                    return None;
                }
                most = most.max(known(from.ty, to.ty)?);
            }
            return Some(most);
        }
        _ => false,
    };
    becomes.then(|| target(to))
}

/// True if a value may be stored in a column of type `to` without a cast that is written.
pub fn assignment(from: Given, to: DataType) -> bool {
    use DataType as T;
    let settled = from.settled();
    implicit(from, to).is_some()
        || (settled.is_numeric() && (to.is_numeric() || to == T::Varchar))
        || settled == T::Varchar
        || matches!(
            (settled, to),
            (T::Timestamp | T::TimestampNs | T::TimestampTz, T::Date | T::Time | T::Timestamp)
                | (T::TimestampTz, T::TimestampNs | T::TimeTz)
                | (T::TimeTz, T::Time)
                | (T::Enum(_), T::Enum(_))
                | (T::TimestampNs, T::TimestampTz)
                | (T::Boolean | T::Uuid, T::Varchar)
        )
        || (to == T::Varchar
            && matches!(
                settled,
                T::Date | T::Time | T::TimeTz | T::Timestamp | T::TimestampNs | T::TimestampTz | T::Interval
            ))
        || matches!(
            (settled, to),
            (T::List(from) | T::Array(from, _), T::List(to) | T::Array(to, _)) | (T::Map(from), T::Map(to))
                if assignment(Given::Known(*from), *to)
        )
        || matches!((settled, to), (T::Struct(from), T::Struct(to)) if from.len() == to.len()
            && from.iter().zip(to.iter()).all(|(from, to)| assignment(Given::Known(from.ty), to.ty)))
}
