//! The arguments of a statement: values for its parameters.

use entasis_sql::Parsed;
use entasis_vector::{DataType, Result, Value};

/// The argument for one parameter.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Argument {
    /// A value.
    Value(Value, DataType),
    /// Values to compare with: `x IN ?`, `x = ANY(?)`.
    List(Vec<(Value, DataType)>),
}

/// The arguments for all parameters, in order.
#[derive(Debug, Clone, PartialEq)]
pub enum Arguments {
    /// One value for each parameter.
    Values(Vec<(Value, DataType)>),
    /// Arguments of which some are lists.
    Lists(Vec<Argument>),
}

impl From<Vec<Argument>> for Arguments {
    fn from(arguments: Vec<Argument>) -> Arguments {
        if arguments.iter().any(|argument| matches!(argument, Argument::List(_))) {
            return Arguments::Lists(arguments);
        }
        let values = arguments.into_iter().filter_map(|argument| match argument {
            Argument::Value(value, ty) => Some((value, ty)),
            Argument::List(_) => None,
        });
        Arguments::Values(values.collect())
    }
}

impl<const N: usize> From<[Argument; N]> for Arguments {
    fn from(arguments: [Argument; N]) -> Arguments {
        Arguments::from(Vec::from(arguments))
    }
}

impl From<bool> for Argument {
    fn from(value: bool) -> Argument {
        Argument::Value(Value::Boolean(value), DataType::Boolean)
    }
}

impl From<i32> for Argument {
    fn from(value: i32) -> Argument {
        Argument::Value(Value::Integer(value.into()), DataType::Int32)
    }
}

impl From<i64> for Argument {
    fn from(value: i64) -> Argument {
        Argument::Value(Value::Integer(value.into()), DataType::Int64)
    }
}

impl From<f64> for Argument {
    fn from(value: f64) -> Argument {
        Argument::Value(Value::Float(value), DataType::Float64)
    }
}

impl From<&str> for Argument {
    fn from(value: &str) -> Argument {
        Argument::Value(Value::Text(value.into()), DataType::Varchar)
    }
}

impl From<&[u8]> for Argument {
    fn from(value: &[u8]) -> Argument {
        Argument::Value(Value::Bytes(value.into()), DataType::Blob)
    }
}

/// `None` becomes NULL.
impl<T: Into<Argument>> From<Option<T>> for Argument {
    fn from(value: Option<T>) -> Argument {
        value.map_or(Argument::Value(Value::Null, DataType::Null), Into::into)
    }
}

/// The statement with one parameter for each value of the lists among its arguments, and these values.
///
/// # Errors
/// Input, if a list is given where only a single value is possible.
pub(crate) fn spread(parsed: &Parsed, arguments: &[Argument]) -> Result<(Parsed, Vec<(Value, DataType)>)> {
    entasis_sql::check_arguments(parsed.parameters(), arguments.len())?;
    let length = |argument: &Argument| match argument {
        Argument::Value(..) => None,
        Argument::List(values) => Some(values.len()),
    };
    let parsed = parsed.with_lists(&arguments.iter().map(length).collect::<Vec<_>>())?;
    let mut values = Vec::with_capacity(parsed.parameters());
    for argument in arguments {
        match argument {
            Argument::Value(value, ty) => values.push((value.clone(), *ty)),
            Argument::List(list) => values.extend_from_slice(list),
        }
    }
    Ok((parsed, values))
}
