//! Digits of exact numbers.
//!
//! | operation | digits before the point | after it |
//! |---|---|---|
//! | common type | the more | the more |
//! | `+`, `-` | the more, and one | the more |
//! | `*` | the sum | the sum |
//! | `%` | the more | the more |
//!
//! More than 38 digits are 38 of the same scale; a value that has more is an error when it is computed.

use super::Given;
use entasis_vector::DataType;

/// The most digits of a decimal.
pub(super) const MOST: u8 = 38;

/// Digits before and after the point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Digits {
    pub whole: u8,
    pub scale: u8,
}

impl Digits {
    /// Those of an exact number; `None` for all else.
    pub fn of(given: Given) -> Option<Digits> {
        match given {
            Given::Integer(value) => Some(Digits { whole: written(value), scale: 0 }),
            Given::Decimal { precision, scale } => Some(Digits { whole: precision - scale, scale }),
            Given::Known(ty) => Digits::of_type(ty),
            Given::Null | Given::Text | Given::Parameter(_) => None,
        }
    }

    /// The most that values of an exact type have.
    pub fn of_type(ty: DataType) -> Option<Digits> {
        match ty {
            DataType::Decimal { precision, scale } => Some(Digits { whole: precision - scale, scale }),
            ty if ty.is_integer() => Some(Digits { whole: digits(ty), scale: 0 }),
            _ => None,
        }
    }

    pub fn common(self, other: Digits) -> Digits {
        Digits { whole: self.whole.max(other.whole), scale: self.scale.max(other.scale) }
    }

    pub fn sum(self, other: Digits) -> Digits {
        let common = self.common(other);
        Digits { whole: common.whole + 1, ..common }
    }

    pub fn product(self, other: Digits) -> Digits {
        Digits { whole: self.whole + other.whole, scale: (self.scale + other.scale).min(MOST) }
    }

    /// True if each number of these digits is one of `other`.
    pub fn fit(self, other: Digits) -> bool {
        self.whole <= other.whole && self.scale <= other.scale
    }

    pub fn ty(self) -> DataType {
        DataType::Decimal {
            precision: (self.whole.saturating_add(self.scale)).clamp(1, MOST),
            scale: self.scale,
        }
    }
}

/// The number of digits of an integer that was written.
fn written(value: i64) -> u8 {
    value.unsigned_abs().checked_ilog10().map_or(1, |log| log as u8 + 1)
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
