//! Decimal numbers without another crate.

use super::from_value::{FromValue, mismatch};
use super::to_value::ToValue;
use entasis_vector::error::sqlstate;
use entasis_vector::types::pow10;
use entasis_vector::{DataType, Error, Result, Value};
use std::fmt;
use std::str::FromStr;

/// The most digits of a DECIMAL.
const DIGITS: u8 = 38;

/// A DECIMAL: an integer of up to 38 digits, and how many of them are behind the point. Two of them are equal
/// if both are: 1.5 is not 1.50 here. For arithmetic there are SQL and the crate `rust_decimal`.
///
/// ```
/// use entasis::{Config, Database, Decimal};
///
/// let connection = Database::in_memory(Config::default())?.connect();
/// let price: Decimal = "19.99".parse()?;
/// assert_eq!(price, Decimal::new(1999, 2)?);
/// let total: Decimal = connection.query_row_as("SELECT ? * 3", (price,))?;
/// assert_eq!(total.to_string(), "59.97");
/// # Ok::<(), entasis::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Decimal {
    unscaled: i128,
    scale: u8,
}

impl Decimal {
    /// `unscaled` in units of 10^-`scale`.
    ///
    /// # Errors
    /// Input, if these are more than 38 digits.
    pub fn new(unscaled: i128, scale: u8) -> Result<Decimal> {
        if scale > DIGITS || unscaled.unsigned_abs() >= pow10(DIGITS).unsigned_abs() {
            return Err(too_long());
        }
        Ok(Decimal { unscaled, scale })
    }

    /// The number without its point: 1999 of 19.99.
    pub const fn unscaled(self) -> i128 {
        self.unscaled
    }

    /// The number of digits behind the point: 2 of 19.99.
    pub const fn scale(self) -> u8 {
        self.scale
    }

    /// The narrowest type of the number.
    fn ty(self) -> DataType {
        let digits = self.unscaled.unsigned_abs().checked_ilog10().map_or(1, |log| log as u8 + 1);
        DataType::Decimal { precision: digits.max(self.scale), scale: self.scale }
    }
}

fn too_long() -> Error {
    Error::input(format!("a DECIMAL has up to {DIGITS} digits")).with_sqlstate(sqlstate::OUT_OF_RANGE)
}

impl ToValue for Decimal {
    fn to_value(&self) -> Result<(Value, DataType)> {
        Ok((Value::Integer(self.unscaled), self.ty()))
    }
}

/// Integers too.
impl FromValue for Decimal {
    fn from_value(value: Value, ty: DataType) -> Result<Decimal> {
        match (value, ty) {
            (Value::Integer(unscaled), DataType::Decimal { scale, .. }) => Ok(Decimal { unscaled, scale }),
            (Value::Integer(unscaled), ty) if ty.is_integer() => Ok(Decimal { unscaled, scale: 0 }),
            _ => Err(mismatch::<Decimal>(ty)),
        }
    }
}

impl FromStr for Decimal {
    type Err = Error;

    /// Reads digits with a sign and a point, without an exponent. All digits count: `1.50` has the scale 2.
    fn from_str(text: &str) -> Result<Decimal> {
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let all = whole.bytes().chain(fraction.bytes());
        if whole.len() + fraction.len() == 0 || !all.clone().all(|byte| byte.is_ascii_digit()) {
            return Err(Error::input(format!("'{text}' is not a decimal number"))
                .with_sqlstate(sqlstate::INVALID_TEXT));
        }
        let size = all
            .clone()
            .try_fold(0_i128, |number, byte| number.checked_mul(10)?.checked_add((byte - b'0').into()));
        let scale = u8::try_from(fraction.len()).map_err(|_| too_long())?;
        let size = size.ok_or_else(too_long)?;
        Decimal::new(if text.starts_with('-') { -size } else { size }, scale)
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Value::Integer(self.unscaled).display(self.ty()))
    }
}

impl fmt::Debug for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_numbers() {
        let longest = "9".repeat(38);
        for text in ["0", "-0.05", "19.99", "0.00", &longest] {
            assert_eq!(text.parse::<Decimal>().unwrap().to_string(), text);
        }
        let ten = "1".to_owned() + &"0".repeat(38);
        for text in ["", "-", ".", "1e5", "1,5", "--1", " 1", &ten, &"0".repeat(300)] {
            let read = text.parse::<Decimal>();
            assert!(read.is_err() || text.starts_with("00"), "{text}: {read:?}");
        }
        assert!(format!("0.{}", "0".repeat(300)).parse::<Decimal>().is_err());
        let small = Decimal::new(5, 3).unwrap();
        assert_eq!(small.to_value().unwrap().1, DataType::Decimal { precision: 3, scale: 3 });
        assert!(Decimal::new(i128::MIN, 0).is_err());
    }
}
