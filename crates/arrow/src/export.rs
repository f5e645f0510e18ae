//! Vectors to arrays.
//!
//! Each array is written once, in the order of the rows; the selection and the dictionary are resolved on the
//! way. Values at NULL positions are never read: they may be invalid.

mod nested;

use crate::arrow_error;
use crate::types::to_arrow_type;
use arrow_array::builder::{BinaryBuilder, StringBuilder};
use arrow_array::types::{
    ArrowDictionaryKeyType, ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type,
    Int8Type, Int16Type, Int32Type, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType,
    Time64MicrosecondType, TimestampMicrosecondType, TimestampNanosecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, FixedSizeBinaryArray, NullArray, PrimitiveArray, RecordBatch,
    RecordBatchOptions, StringArray,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::SchemaRef;
use entasis_vector::labels::Labels;
use entasis_vector::vector::uuid_from_ordered;
use entasis_vector::{
    Chunk, DataType, Encoding, Error, Interval, Native, PhysicalType, Result, StringView, Value, Vector,
    bitmap,
};
use std::sync::Arc;

/// The rows of `chunk` as a record batch. Column i of the chunk holds `types[i]`; the schema is that of
/// [`crate::schema_to_arrow`].
///
/// # Errors
/// Those of [`vector_to_array`]; internal, if schema and columns do not match.
pub fn chunk_to_batch(chunk: &Chunk, schema: &SchemaRef, types: &[DataType]) -> Result<RecordBatch> {
    let arrays = types
        .iter()
        .enumerate()
        .map(|(i, &ty)| vector_to_array(chunk.vector(i), chunk.positions(i), chunk.len(), ty))
        .collect::<Result<Vec<ArrayRef>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(chunk.len()));
    RecordBatch::try_new_with_options(schema.clone(), arrays, &options).map_err(|e| {
        Error::internal(format!("a result does not fit its schema: {}", arrow_error(e).message()))
    })
}

/// The values of `rows` rows of a vector that holds `ty`, at `positions` (`None`: the first ones), as an
/// array of type [`to_arrow_type`].
///
/// # Errors
/// Input, if an interval is too long for Arrow's nanoseconds; resource, if the strings exceed 2 GiB.
pub fn vector_to_array(
    vector: &Vector,
    positions: Option<&[u16]>,
    rows: usize,
    ty: DataType,
) -> Result<ArrayRef> {
    let rows_of = Rows { vector, positions, rows };
    Ok(match ty {
        DataType::Null => Arc::new(NullArray::new(rows)),
        DataType::Boolean => {
            let values = rows_of.map(|v: u8| v != 0);
            Arc::new(BooleanArray::new(BooleanBuffer::from(values), rows_of.nulls()))
        }
        DataType::Int8 => rows_of.primitive::<Int8Type>(),
        DataType::Int16 => rows_of.primitive::<Int16Type>(),
        DataType::Int32 => rows_of.primitive::<Int32Type>(),
        DataType::Int64 => rows_of.primitive::<Int64Type>(),
        DataType::UInt8 => rows_of.primitive::<UInt8Type>(),
        DataType::UInt16 => rows_of.primitive::<UInt16Type>(),
        DataType::UInt32 => rows_of.primitive::<UInt32Type>(),
        DataType::UInt64 => rows_of.primitive::<UInt64Type>(),
        DataType::Float32 => rows_of.primitive::<Float32Type>(),
        DataType::Float64 => rows_of.primitive::<Float64Type>(),
        DataType::Date => rows_of.primitive::<Date32Type>(),
        DataType::Time => rows_of.primitive::<Time64MicrosecondType>(),
        DataType::Timestamp => rows_of.primitive::<TimestampMicrosecondType>(),
        DataType::TimestampNs => rows_of.primitive::<TimestampNanosecondType>(),
        DataType::TimestampTz => {
            let array = rows_of.primitive_array::<TimestampMicrosecondType>();
            Arc::new(array.with_timezone(crate::types::UTC))
        }
        DataType::TimeTz => rows_of.displayed(ty),
        DataType::Decimal { precision, scale } => rows_of.decimals(precision, scale)?,
        DataType::Varchar | DataType::Json => rows_of.texts()?,
        DataType::Blob => rows_of.blobs()?,
        DataType::Interval => rows_of.intervals()?,
        DataType::Uuid => {
            let values = rows_of.map(|v: i128| uuid_from_ordered(v).to_be_bytes());
            let bytes = Buffer::from_vec(values.into_flattened());
            Arc::new(FixedSizeBinaryArray::try_new(16, bytes, rows_of.nulls()).map_err(arrow_error)?)
        }
        DataType::Enum(labels) => match vector.physical() {
            PhysicalType::U8 => rows_of.dictionary::<UInt8Type>(labels)?,
            PhysicalType::U16 => rows_of.dictionary::<UInt16Type>(labels)?,
            other => return Err(Error::internal(format!("an ENUM held as {other:?}"))),
        },
        DataType::List(_) | DataType::Struct(_) | DataType::Array(..) | DataType::Map(_) => {
            let mut views: Vec<Option<StringView>> = Vec::with_capacity(rows);
            rows_of.strings(|view| views.push(view.copied()));
            let parts: Vec<Option<&[u8]>> =
                views.iter().map(|view| view.as_ref().map(StringView::as_bytes)).collect();
            nested::array_of(&parts, ty)?
        }
    })
}

/// An array of `ty` that holds `values`. For parameters and literals, not for data.
///
/// # Errors
/// Those of [`vector_to_array`]; internal, if a value is not of `ty`.
pub fn values_to_array(values: &[Value], ty: DataType) -> Result<ArrayRef> {
    let vector = vector_of(values, ty)?;
    let array = vector_to_array(&vector, None, values.len(), ty)?;
    debug_assert_eq!(array.data_type(), &to_arrow_type(ty));
    Ok(array)
}

/// A flat vector of `ty` that holds `values`. UUIDs are converted to their ordered form, which a vector
/// cannot do by itself, because it does not know its type.
///
/// # Errors
/// Internal, if a value is not of `ty`.
pub fn vector_of(values: &[Value], ty: DataType) -> Result<Vector> {
    Vector::of_values(ty, values)
}

/// Rows of a vector, to be read in order.
struct Rows<'a> {
    vector: &'a Vector,
    positions: Option<&'a [u16]>,
    rows: usize,
}

impl Rows<'_> {
    /// The values, mapped by `f`; arbitrary ones where NULL.
    fn map<T: Native, U: Clone>(&self, f: impl Fn(T) -> U) -> Vec<U> {
        match (self.vector.encoding(), self.positions) {
            (Encoding::Constant, _) => vec![f(self.vector.values::<T>()[0]); self.rows],
            (Encoding::Flat, None) => self.vector.values::<T>()[..self.rows].iter().map(|&v| f(v)).collect(),
            (Encoding::Flat, Some(at)) => {
                let values = self.vector.values::<T>();
                at[..self.rows].iter().map(|&p| f(values[p as usize])).collect()
            }
            (Encoding::Dictionary, at) => {
                let dictionary = self.vector.dictionary().expect("a dictionary vector has one");
                let values = &dictionary.values().values::<T>()[..dictionary.len()];
                let codes = self.vector.codes();
                // The code of a NULL may be invalid.
                let value = |code: u32| f(values.get(code as usize).copied().unwrap_or_default());
                match at {
                    None => codes[..self.rows].iter().map(|&code| value(code)).collect(),
                    Some(at) => at[..self.rows].iter().map(|&p| value(codes[p as usize])).collect(),
                }
            }
        }
    }

    fn primitive_array<A: ArrowPrimitiveType>(&self) -> PrimitiveArray<A>
    where
        A::Native: Native,
    {
        let values: ScalarBuffer<A::Native> = self.map(|v: A::Native| v).into();
        PrimitiveArray::new(values, self.nulls())
    }

    fn primitive<A: ArrowPrimitiveType>(&self) -> ArrayRef
    where
        A::Native: Native,
    {
        Arc::new(self.primitive_array::<A>())
    }

    fn decimals(&self, precision: u8, scale: u8) -> Result<ArrayRef> {
        let values: Vec<i128> = match self.vector.physical() {
            PhysicalType::I64 => self.map(|v: i64| i128::from(v)),
            PhysicalType::I128 => self.map(|v: i128| v),
            other => return Err(Error::internal(format!("a decimal held as {other:?}"))),
        };
        let array = PrimitiveArray::<Decimal128Type>::new(values.into(), self.nulls());
        Ok(Arc::new(array.with_precision_and_scale(precision, scale as i8).map_err(arrow_error)?))
    }

    fn texts(&self) -> Result<ArrayRef> {
        let mut builder = StringBuilder::with_capacity(self.rows, self.string_bytes()?);
        self.strings(|view| match view {
            Some(view) => builder.append_value(view.as_str()),
            None => builder.append_null(),
        });
        Ok(Arc::new(builder.finish()))
    }

    fn blobs(&self) -> Result<ArrayRef> {
        let mut builder = BinaryBuilder::with_capacity(self.rows, self.string_bytes()?);
        self.strings(|view| match view {
            Some(view) => builder.append_value(view.as_bytes()),
            None => builder.append_null(),
        });
        Ok(Arc::new(builder.finish()))
    }

    /// Values held in 64 bits that Arrow has no type for, as texts.
    fn displayed(&self, ty: DataType) -> ArrayRef {
        let values = self.map(|v: i64| Value::Integer(v.into()).display(ty).to_string());
        let nulls = self.nulls();
        let is_null = |row| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
        let texts = values.into_iter().enumerate().map(|(row, text)| (!is_null(row)).then_some(text));
        Arc::new(texts.collect::<StringArray>())
    }

    fn intervals(&self) -> Result<ArrayRef> {
        let values = self.map(|v: Interval| v);
        let nulls = self.nulls();
        let mut out = Vec::with_capacity(self.rows);
        for (i, v) in values.into_iter().enumerate() {
            out.push(match v.micros.checked_mul(1000) {
                Some(nanos) => IntervalMonthDayNano::new(v.months, v.days, nanos),
                None if nulls.as_ref().is_some_and(|n| n.is_null(i)) => IntervalMonthDayNano::default(),
                None => {
                    return Err(Error::input("the interval's time part is too long for Arrow (292 years)"));
                }
            });
        }
        Ok(Arc::new(PrimitiveArray::<IntervalMonthDayNanoType>::new(out.into(), nulls)))
    }

    /// The codes of an ENUM, with its labels.
    fn dictionary<A: ArrowDictionaryKeyType>(&self, labels: &Labels) -> Result<ArrayRef>
    where
        A::Native: Native,
    {
        let labels = Arc::new(StringArray::from_iter_values(labels.iter()));
        let array = DictionaryArray::<A>::try_new(self.primitive_array(), labels).map_err(arrow_error)?;
        Ok(Arc::new(array))
    }

    /// Which rows are NULL; `None` if none is.
    fn nulls(&self) -> Option<NullBuffer> {
        let validity = self.vector.validity()?;
        let bits = match (self.vector.is_constant(), self.positions) {
            (true, _) => match bitmap::get(validity, 0) {
                true => return None,
                false => BooleanBuffer::new_unset(self.rows),
            },
            (false, None) => {
                let words = &validity[..bitmap::words_for(self.rows)];
                BooleanBuffer::new(Buffer::from_slice_ref(words), 0, self.rows)
            }
            (false, Some(at)) => {
                BooleanBuffer::collect_bool(self.rows, |i| bitmap::get(validity, at[i] as usize))
            }
        };
        Some(NullBuffer::new(bits)).filter(|nulls| nulls.null_count() > 0)
    }

    /// Calls `f` for every row with its string, or `None` for NULL.
    fn strings(&self, mut f: impl FnMut(Option<&StringView>)) {
        let position = |row: usize| self.positions.map_or(row, |at| at[row] as usize);
        match self.vector.encoding() {
            Encoding::Constant => {
                let view = self.vector.is_valid(0).then(|| &self.vector.values::<StringView>()[0]);
                (0..self.rows).for_each(|_| f(view));
            }
            Encoding::Flat => {
                let views = self.vector.values::<StringView>();
                for row in 0..self.rows {
                    let at = position(row);
                    f(self.vector.is_valid(at).then(|| &views[at]));
                }
            }
            Encoding::Dictionary => {
                let dictionary = self.vector.dictionary().expect("a dictionary vector has one");
                let views = dictionary.values().values::<StringView>();
                let codes = self.vector.codes();
                for row in 0..self.rows {
                    let at = position(row);
                    f(self.vector.is_valid(at).then(|| &views[codes[at] as usize]));
                }
            }
        }
    }

    /// Total number of bytes of all strings.
    fn string_bytes(&self) -> Result<usize> {
        let mut bytes = 0;
        self.strings(|view| bytes += view.map_or(0, StringView::len));
        if bytes > i32::MAX as usize {
            return Err(Error::resource("the strings of one chunk exceed 2 GiB, Arrow's limit"));
        }
        Ok(bytes)
    }
}
