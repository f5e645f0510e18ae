//! Booleans, integers and floats: all but floats of 16 bits by one copy.

use super::slice::Slice;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_schema::DataType as ArrowType;
use entasis_vector::{DataType, Result, Vector};

impl Slice<'_> {
    /// Reads booleans and numbers of this type; false if the array has others.
    pub(super) fn read_numbers(self, ty: DataType, out: &mut Vector) -> Result<bool> {
        match (ty, self.array.data_type()) {
            (DataType::Boolean, ArrowType::Boolean) => {
                let bits = self.array.as_boolean().values().slice(self.offset, self.rows);
                let values = out.begin_flat::<u8>(self.capacity());
                for (value, bit) in values.iter_mut().zip(&bits) {
                    *value = u8::from(bit);
                }
            }
            (DataType::Int8, ArrowType::Int8) => self.copy::<Int8Type>(out),
            (DataType::Int16, ArrowType::Int16) => self.copy::<Int16Type>(out),
            (DataType::Int32, ArrowType::Int32) => self.copy::<Int32Type>(out),
            (DataType::Int64, ArrowType::Int64) => self.copy::<Int64Type>(out),
            (DataType::UInt8, ArrowType::UInt8) => self.copy::<UInt8Type>(out),
            (DataType::UInt16, ArrowType::UInt16) => self.copy::<UInt16Type>(out),
            (DataType::UInt32, ArrowType::UInt32) => self.copy::<UInt32Type>(out),
            (DataType::UInt64, ArrowType::UInt64) => self.copy::<UInt64Type>(out),
            (DataType::Float32, ArrowType::Float16) => {
                self.copy_as::<Float16Type, f32>(ty, out, |v| Some(v.to_f32()))?;
            }
            (DataType::Float32, ArrowType::Float32) => self.copy::<Float32Type>(out),
            (DataType::Float64, ArrowType::Float64) => self.copy::<Float64Type>(out),
            _ => return Ok(false),
        }
        Ok(true)
    }
}
