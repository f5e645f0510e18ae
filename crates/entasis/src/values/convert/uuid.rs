//! The type of the crate `uuid`.

use super::from_value::{FromValue, mismatch};
use super::to_value::ToValue;
use ::uuid::Uuid;
use entasis_vector::{DataType, Result, Value};

impl ToValue for Uuid {
    fn to_value(&self) -> Result<(Value, DataType)> {
        Ok((Value::Integer(self.as_u128() as i128), DataType::Uuid))
    }

    fn data_type() -> DataType {
        DataType::Uuid
    }
}

impl FromValue for Uuid {
    fn from_value(value: Value, ty: DataType) -> Result<Uuid> {
        match (value, ty) {
            (Value::Integer(bits), DataType::Uuid) => Ok(Uuid::from_u128(bits as u128)),
            _ => Err(mismatch::<Uuid>(ty)),
        }
    }
}
