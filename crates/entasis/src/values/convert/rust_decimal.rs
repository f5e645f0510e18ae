//! The type of the crate `rust_decimal`: up to 28 digits, where DECIMAL has 38.

use super::decimal::Decimal as Own;
use super::from_value::{FromValue, mismatch, out_of_range};
use super::to_value::ToValue;
use ::rust_decimal::Decimal;
use entasis_vector::{DataType, Result, Value};

impl ToValue for Decimal {
    fn to_value(&self) -> Result<(Value, DataType)> {
        Own::new(self.mantissa(), self.scale() as u8)?.to_value()
    }
}

impl FromValue for Decimal {
    fn from_value(value: Value, ty: DataType) -> Result<Decimal> {
        let own = Own::from_value(value.clone(), ty).map_err(|_| mismatch::<Decimal>(ty))?;
        let scale = own.scale().into();
        Decimal::try_from_i128_with_scale(own.unscaled(), scale)
            .map_err(|_| out_of_range::<Decimal>(&value, ty))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_and_longer_ones_are_errors() {
        for number in [Decimal::MAX, Decimal::MIN, Decimal::ZERO, Decimal::new(-5, 28)] {
            let (value, ty) = number.to_value().unwrap();
            assert_eq!(Decimal::from_value(value, ty).unwrap(), number);
        }
        let ty = DataType::Decimal { precision: 38, scale: 0 };
        let error = Decimal::from_value(Value::Integer(10_i128.pow(37)), ty).unwrap_err();
        assert!(error.message().contains("out of the range of Decimal"), "{error}");
    }
}
