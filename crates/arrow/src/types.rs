//! The mapping of SQL types to Arrow types.
//!
//! Out: each SQL type has exactly one Arrow type, the one that most programs read. In: every Arrow type with
//! such values is accepted, whatever its width, unit or encoding; types that cannot be converted without loss
//! of meaning are refused.
//!
//! LIST, STRUCT, MAP and arrays of a fixed length are Arrow's, with elements, fields and values that may be
//! NULL. A UUID is `FixedSizeBinary(16)`, JSON is text; their fields carry the canonical extension names
//! `arrow.uuid` and `arrow.json`, too. An ENUM is a dictionary of its labels, and a TIMETZ, for which Arrow
//! has no type, is its text; both are texts when they come back.

use arrow_schema::{
    DataType as ArrowType, Field as ArrowField, IntervalUnit, Schema as ArrowSchema, TimeUnit,
};
use entasis_vector::{DataType, Error, Field, PhysicalType, Result, Schema};
use std::collections::HashMap;
use std::sync::Arc;

/// The time zone of every exported `TIMESTAMPTZ`.
pub const UTC: &str = "UTC";

/// The Arrow type of arrays converted from vectors of `ty`.
pub fn to_arrow_type(ty: DataType) -> ArrowType {
    match ty {
        DataType::Null => ArrowType::Null,
        DataType::Boolean => ArrowType::Boolean,
        DataType::Int8 => ArrowType::Int8,
        DataType::Int16 => ArrowType::Int16,
        DataType::Int32 => ArrowType::Int32,
        DataType::Int64 => ArrowType::Int64,
        DataType::UInt8 => ArrowType::UInt8,
        DataType::UInt16 => ArrowType::UInt16,
        DataType::UInt32 => ArrowType::UInt32,
        DataType::UInt64 => ArrowType::UInt64,
        DataType::Float32 => ArrowType::Float32,
        DataType::Float64 => ArrowType::Float64,
        DataType::Decimal { precision, scale } => ArrowType::Decimal128(precision, scale as i8),
        DataType::Varchar | DataType::Json | DataType::TimeTz => ArrowType::Utf8,
        DataType::Blob => ArrowType::Binary,
        DataType::Date => ArrowType::Date32,
        DataType::Time => ArrowType::Time64(TimeUnit::Microsecond),
        DataType::Timestamp => ArrowType::Timestamp(TimeUnit::Microsecond, None),
        DataType::TimestampNs => ArrowType::Timestamp(TimeUnit::Nanosecond, None),
        DataType::TimestampTz => ArrowType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
        DataType::Interval => ArrowType::Interval(IntervalUnit::MonthDayNano),
        DataType::Uuid => ArrowType::FixedSizeBinary(16),
        DataType::Enum(_) => {
            let codes = match ty.physical() {
                PhysicalType::U8 => ArrowType::UInt8,
                _ => ArrowType::UInt16,
            };
            ArrowType::Dictionary(Box::new(codes), Box::new(ArrowType::Utf8))
        }
        DataType::List(element) => ArrowType::List(Arc::new(field_of("item", *element, true))),
        DataType::Array(element, length) => {
            ArrowType::FixedSizeList(Arc::new(field_of("item", *element, true)), length as i32)
        }
        DataType::Struct(fields) => {
            ArrowType::Struct(fields.iter().map(|field| field_of(field.name, field.ty, true)).collect())
        }
        DataType::Map(entry) => {
            let (key, value) = ty.key_and_value().unwrap_or((*entry, *entry));
            let fields = vec![field_of("key", key, false), field_of("value", value, true)];
            let entries = ArrowField::new("entries", ArrowType::Struct(fields.into()), false);
            ArrowType::Map(Arc::new(entries), false)
        }
    }
}

/// The Arrow field of a column, an element or a field.
fn field_of(name: &str, ty: DataType, nullable: bool) -> ArrowField {
    let arrow = ArrowField::new(name, to_arrow_type(ty), nullable);
    let extension = match ty {
        DataType::Uuid => "arrow.uuid",
        DataType::Json => JSON,
        _ => return arrow,
    };
    arrow.with_metadata(HashMap::from([(EXTENSION.to_owned(), extension.to_owned())]))
}

/// Where the metadata of a field says what its values mean.
const EXTENSION: &str = "ARROW:extension:name";
/// The extension of texts that are JSON.
const JSON: &str = "arrow.json";

/// The SQL type for the values of an Arrow field, which may say more than its type: texts are JSON, if it
/// says so.
///
/// # Errors
/// Those of [`from_arrow_type`].
pub fn from_arrow_field(field: &ArrowField) -> Result<DataType> {
    Ok(match from_arrow_type(field.data_type())? {
        DataType::Varchar if field.metadata().get(EXTENSION).is_some_and(|name| name == JSON) => {
            DataType::Json
        }
        ty => ty,
    })
}

/// The SQL type for the values of an Arrow type.
///
/// # Errors
/// Not supported, for unions, and for decimals of more than 38 digits.
pub fn from_arrow_type(ty: &ArrowType) -> Result<DataType> {
    Ok(match ty {
        ArrowType::Null => DataType::Null,
        ArrowType::Boolean => DataType::Boolean,
        ArrowType::Int8 => DataType::Int8,
        ArrowType::Int16 => DataType::Int16,
        ArrowType::Int32 => DataType::Int32,
        ArrowType::Int64 => DataType::Int64,
        ArrowType::UInt8 => DataType::UInt8,
        ArrowType::UInt16 => DataType::UInt16,
        ArrowType::UInt32 => DataType::UInt32,
        ArrowType::UInt64 => DataType::UInt64,
        ArrowType::Float16 | ArrowType::Float32 => DataType::Float32,
        ArrowType::Float64 => DataType::Float64,
        ArrowType::Decimal32(precision, scale)
        | ArrowType::Decimal64(precision, scale)
        | ArrowType::Decimal128(precision, scale)
        | ArrowType::Decimal256(precision, scale) => decimal(*precision, *scale)?,
        ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View => DataType::Varchar,
        ArrowType::FixedSizeBinary(16) => DataType::Uuid,
        ArrowType::Binary
        | ArrowType::LargeBinary
        | ArrowType::BinaryView
        | ArrowType::FixedSizeBinary(_) => DataType::Blob,
        ArrowType::Date32 | ArrowType::Date64 => DataType::Date,
        ArrowType::Time32(_) | ArrowType::Time64(_) => DataType::Time,
        ArrowType::Timestamp(TimeUnit::Nanosecond, None) => DataType::TimestampNs,
        ArrowType::Timestamp(_, None) => DataType::Timestamp,
        ArrowType::Timestamp(_, Some(_)) => DataType::TimestampTz,
        ArrowType::Interval(_) | ArrowType::Duration(_) => DataType::Interval,
        ArrowType::Dictionary(_, values) => from_arrow_type(values)?,
        ArrowType::RunEndEncoded(_, values) => from_arrow_type(values.data_type())?,
        // One of another length than arrays have is a list.
        ArrowType::FixedSizeList(element, length) => {
            let element = from_arrow_field(element)?;
            let array = u64::try_from(*length).ok().and_then(|length| DataType::array(element, length).ok());
            array.unwrap_or_else(|| DataType::list(element))
        }
        ArrowType::List(element)
        | ArrowType::LargeList(element)
        | ArrowType::ListView(element)
        | ArrowType::LargeListView(element) => DataType::list(from_arrow_field(element)?),
        ArrowType::Struct(fields) => {
            let of = |field: &Arc<ArrowField>| Ok((field.name().clone(), from_arrow_field(field)?));
            let fields = fields.iter().map(of).collect::<Result<Vec<(String, DataType)>>>()?;
            DataType::structure(fields.iter().map(|(name, ty)| (name.as_str(), *ty)))
        }
        ArrowType::Map(entries, _) => match entries.data_type() {
            ArrowType::Struct(fields) if fields.len() == 2 => {
                DataType::map(from_arrow_field(&fields[0])?, from_arrow_field(&fields[1])?)
            }
            other => return Err(Error::not_supported(format!("a MAP of {other}"))),
        },
        other => return Err(Error::not_supported(format!("Arrow's {other}"))),
    })
}

/// Arrow allows negative scales and scales above the precision; both need more digits.
fn decimal(precision: u8, scale: i8) -> Result<DataType> {
    let digits = i16::from(precision) - i16::from(scale.min(0));
    let scale = scale.max(0) as u8;
    let precision = digits.max(i16::from(scale)).max(1);
    match u8::try_from(precision) {
        Ok(precision @ ..=38) => Ok(DataType::Decimal { precision, scale }),
        _ => Err(Error::not_supported("decimals of more than 38 digits")),
    }
}

/// The Arrow schema of batches with the columns of `schema`.
pub fn schema_to_arrow(schema: &Schema) -> ArrowSchema {
    let fields: Vec<ArrowField> =
        schema.iter().map(|field| field_of(&field.name, field.ty, field.nullable)).collect();
    ArrowSchema::new(fields)
}

/// The columns of batches with an Arrow schema.
///
/// # Errors
/// Those of [`from_arrow_type`], with the name of the column.
pub fn schema_from_arrow(schema: &ArrowSchema) -> Result<Schema> {
    schema
        .fields()
        .iter()
        .map(|field| {
            let ty = from_arrow_field(field)
                .map_err(|e| Error::not_supported(format!("{} (column {})", e.message(), field.name())))?;
            Ok(Field { name: Arc::from(field.name().as_str()), ty, nullable: field.is_nullable() })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_comes_back() {
        let widest = DataType::Decimal { precision: 38, scale: 38 };
        let own = |ty: &DataType| *ty != DataType::TimeTz;
        let types = || DataType::ALL.into_iter().filter(own).chain([widest]);
        for ty in types() {
            assert_eq!(from_arrow_field(&field_of("a", ty, true)).unwrap(), ty);
        }
        let schema: Schema = types().map(|ty| Field::new(ty.to_string(), ty)).collect();
        assert_eq!(schema_from_arrow(&schema_to_arrow(&schema)).unwrap(), schema);
    }

    #[test]
    fn odd_decimals_get_the_digits_they_need() {
        let ty = |p, s| from_arrow_type(&ArrowType::Decimal128(p, s));
        assert_eq!(ty(5, -3).unwrap(), DataType::Decimal { precision: 8, scale: 0 });
        assert_eq!(ty(2, 4).unwrap(), DataType::Decimal { precision: 4, scale: 4 });
        assert!(ty(38, -1).is_err());
        assert!(from_arrow_type(&ArrowType::Decimal256(39, 0)).is_err());
    }

    #[test]
    fn nested_types_come_back_and_unions_are_refused_with_the_column() {
        let texts = DataType::list(DataType::Varchar);
        let ty = DataType::list(DataType::structure([
            ("a", texts),
            ("b", DataType::Uuid),
            ("c", DataType::list(DataType::Json)),
            ("e", DataType::array(DataType::Uuid, 3).unwrap()),
            ("d", DataType::map(DataType::Json, DataType::map(DataType::Date, texts))),
        ]));
        assert_eq!(from_arrow_type(&to_arrow_type(ty)).unwrap(), ty);
        let union = ArrowType::Union(arrow_schema::UnionFields::empty(), arrow_schema::UnionMode::Sparse);
        let schema = ArrowSchema::new(vec![ArrowField::new("tags", union, true)]);
        assert!(schema_from_arrow(&schema).unwrap_err().message().contains("(column tags)"));
    }
}
