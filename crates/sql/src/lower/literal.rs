//! Constants: conversion of DataFusion's scalars to values and back.

use crate::error::from_datafusion;
use datafusion_common::ScalarValue;
use entasis_arrow::{array_to_vector, from_arrow_type, values_to_array};
use entasis_vector::expr::Expr;
use entasis_vector::{DataType, Result, Value, Vector};

/// A scalar with its type.
///
/// # Errors
/// Not supported, for nested types.
pub(super) fn from_scalar(scalar: &ScalarValue) -> Result<(Value, DataType)> {
    let integer = |v: i128, ty| Ok((Value::Integer(v), ty));
    match scalar {
        ScalarValue::Null => Ok((Value::Null, DataType::Null)),
        ScalarValue::Boolean(Some(v)) => Ok((Value::Boolean(*v), DataType::Boolean)),
        ScalarValue::Int64(Some(v)) => integer((*v).into(), DataType::Int64),
        ScalarValue::Int32(Some(v)) => integer((*v).into(), DataType::Int32),
        ScalarValue::Float64(Some(v)) => Ok((Value::Float(*v), DataType::Float64)),
        ScalarValue::Date32(Some(v)) => integer((*v).into(), DataType::Date),
        ScalarValue::Utf8(Some(v)) => Ok((Value::Text(v.as_str().into()), DataType::Varchar)),
        ScalarValue::Decimal128(Some(v), precision, scale) if *scale >= 0 && *scale as u8 <= *precision => {
            integer(*v, DataType::Decimal { precision: *precision, scale: *scale as u8 })
        }
        // The others are rare enough for the general conversion.
        other => {
            let ty = from_arrow_type(&other.data_type())?;
            if other.is_null() {
                return Ok((Value::Null, ty));
            }
            let array = other.to_array().map_err(from_datafusion)?;
            let mut vector = Vector::new(ty.physical());
            array_to_vector(&array, 0, 1, ty, &mut vector)?;
            Ok((vector.value(0, ty), ty))
        }
    }
}

/// A value as a scalar of the Arrow type of `ty`.
///
/// # Errors
/// Internal, if the value is not of `ty`.
pub(super) fn to_scalar(value: &Value, ty: DataType) -> Result<ScalarValue> {
    let array = values_to_array(std::slice::from_ref(value), ty)?;
    ScalarValue::try_from_array(&array, 0).map_err(from_datafusion)
}

/// The value of a literal.
pub(super) fn into_value(expr: Expr) -> Value {
    match expr {
        Expr::Literal { value, .. } => value,
        _ => Value::Null,
    }
}
