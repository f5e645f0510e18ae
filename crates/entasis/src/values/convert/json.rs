//! JSON values of the crate `serde_json`.

use super::from_value::{FromValue, mismatch};
use super::to_value::ToValue;
use entasis_vector::{DataType, Error, Result, Value};

/// A JSON, NULL too: the JSON `null` is a value.
impl ToValue for serde_json::Value {
    fn to_value(&self) -> Result<(Value, DataType)> {
        Ok((Value::Text(self.to_string().into()), DataType::Json))
    }

    fn data_type() -> DataType {
        DataType::Json
    }
}

impl FromValue for serde_json::Value {
    fn from_value(value: Value, ty: DataType) -> Result<serde_json::Value> {
        match (value, ty) {
            (Value::Text(text), DataType::Json) => {
                serde_json::from_str(&text).map_err(|error| Error::input(format!("not JSON: {error}")))
            }
            _ => Err(mismatch::<serde_json::Value>(ty)),
        }
    }
}
