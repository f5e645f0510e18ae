//! What is known of one expression.

use entasis_vector::DataType;
use std::fmt;

/// The type of an expression as the rules of this module see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Given {
    /// A type that is settled: of a column, a cast, the result of a function.
    Known(DataType),
    /// A NULL that was written.
    Null,
    /// A text that was written.
    Text,
    /// An integer that was written, or the value of a parameter that is one.
    Integer(i64),
    /// A decimal that was written, or an integer with more than 64 bits.
    Decimal {
        /// Digits in all.
        precision: u8,
        /// Digits after the point.
        scale: u8,
    },
    /// A parameter, from 0, whose type nothing has settled yet.
    Parameter(u32),
}

impl Given {
    /// What an expression of a settled type gives; nothing, if it is a bare NULL.
    pub fn of(ty: DataType) -> Given {
        if ty == DataType::Null { Given::Null } else { Given::Known(ty) }
    }

    /// The type that the expression has where nothing asks for another one. A parameter is a VARCHAR then.
    pub fn settled(self) -> DataType {
        match self {
            Given::Known(ty) => ty,
            Given::Null => DataType::Null,
            Given::Text | Given::Parameter(_) => DataType::Varchar,
            Given::Integer(value) if i32::try_from(value).is_ok() => DataType::Int32,
            Given::Integer(_) => DataType::Int64,
            Given::Decimal { precision, scale } => DataType::Decimal { precision, scale },
        }
    }

    /// True if it says nothing of a type: a NULL, a parameter, a text that was written.
    pub fn is_open(self) -> bool {
        matches!(self, Given::Null | Given::Parameter(_) | Given::Text)
    }

    /// True for a number, written or not.
    pub fn is_numeric(self) -> bool {
        match self {
            Given::Known(ty) => ty.is_numeric(),
            Given::Integer(_) | Given::Decimal { .. } => true,
            Given::Null | Given::Text | Given::Parameter(_) => false,
        }
    }

    /// True for an integer, written or not.
    pub fn is_integer(self) -> bool {
        match self {
            Given::Known(ty) => ty.is_integer(),
            Given::Integer(_) => true,
            _ => false,
        }
    }
}

/// The type, as errors show it.
impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Given::Parameter(_) => f.write_str("a parameter"),
            given => given.settled().fmt(f),
        }
    }
}
