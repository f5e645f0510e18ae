//! Arrays to vectors.
//!
//! Arrays of the type in [`to_arrow_type`], decimals of 64 bits, and strings of every layout are read
//! directly: fixed widths by one copy of the slice; long strings by a copy to the vector's own heap, or, if
//! the array has views of them, by sharing the array's buffers with the heap. Every other array (other units,
//! widths, encodings) is converted by Arrow first, only for the requested rows.
//!
//! A dictionary array remains one: its values are converted to a [`Dictionary`] once, and an [`Importer`]
//! that gets the same values again, as in batch after batch of one file, uses the same dictionary, so that
//! results cached per code remain valid.

mod nested;

use crate::arrow_error;
use crate::types::to_arrow_type;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowDictionaryKeyType, ArrowPrimitiveType, ByteViewType, Date32Type, Decimal64Type, Decimal128Type,
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, IntervalMonthDayNanoType,
    Time64MicrosecondType, TimestampMicrosecondType, TimestampNanosecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, GenericByteViewArray, downcast_dictionary_array};
use arrow_buffer::ArrowNativeType;
use arrow_cast::{CastOptions, cast_with_options};
use arrow_data::ByteView;
use arrow_schema::{DataType as ArrowType, IntervalUnit, TimeUnit};
use entasis_vector::expr::json_text::check_json;
use entasis_vector::simd::widest;
use entasis_vector::string::INLINE_BYTES;
use entasis_vector::types::pow10;
use entasis_vector::vector::{StringsMut, uuid_to_ordered};
use entasis_vector::{
    CHUNK_ROWS, DataType, Dictionary, Error, Interval, Native, PhysicalType, Result, StringView, Value,
    Vector,
};
use std::sync::Arc;

/// The most buffers of an array of views that are shared: each adds a little cost to every chunk.
const SHARED_BUFFERS: usize = 16;

/// Copies rows `offset .. offset + rows` of `array` to `out`, which becomes a vector of `ty`, row r at
/// position r.
///
/// A dictionary array becomes a dictionary vector if that is less work than decoding its rows; see
/// [`Importer`] for arrays that share their dictionary.
///
/// # Errors
/// Input, if a value does not fit `ty`; not supported, if there is no conversion from the array's type.
pub fn array_to_vector(
    array: &dyn Array,
    offset: usize,
    rows: usize,
    ty: DataType,
    out: &mut Vector,
) -> Result<()> {
    Importer::default().import(array, offset, rows, ty, out)
}

/// Copies the arrays of one column in order, and remembers the dictionary that they share.
#[derive(Debug, Default)]
pub struct Importer {
    dictionary: Option<(ArrayRef, DataType, Arc<Dictionary>)>,
}

impl Importer {
    /// See [`array_to_vector`].
    ///
    /// # Errors
    /// Those of [`array_to_vector`].
    pub fn import(
        &mut self,
        array: &dyn Array,
        offset: usize,
        rows: usize,
        ty: DataType,
        out: &mut Vector,
    ) -> Result<()> {
        if out.physical() != ty.physical() {
            *out = Vector::new(ty.physical());
        }
        if self.import_dictionary(array, offset, rows, ty, out)?
            || import_directly(array, offset, rows, ty, out)?
        {
            return Ok(());
        }
        let options = CastOptions { safe: false, ..CastOptions::default() };
        let converted = cast_with_options(&array.slice(offset, rows), &to_arrow_type(ty), &options)
            .map_err(|e| arrow_error(e).with_context(format!("cannot read {} as {ty}", array.data_type())))?;
        match import_directly(&converted, 0, rows, ty, out)? {
            true => Ok(()),
            false => Err(Error::internal(format!("no import of {} as {ty}", converted.data_type()))),
        }
    }

    /// True if `array` was a dictionary array and is now in `out`.
    fn import_dictionary(
        &mut self,
        array: &dyn Array,
        offset: usize,
        rows: usize,
        ty: DataType,
        out: &mut Vector,
    ) -> Result<bool> {
        if !matches!(array.data_type(), ArrowType::Dictionary(..)) || ty == DataType::Null {
            return Ok(false);
        }
        downcast_dictionary_array!(
            array => {
                let Some(dictionary) = self.dictionary_of(array.values(), rows, ty)? else {
                    return Ok(false);
                };
                copy_codes(array.keys(), offset, rows, &dictionary, out);
                Ok(true)
            },
            _ => Ok(false)
        )
    }

    /// `values` as a dictionary: the previous one, or a new one unless it has many more values than there are
    /// rows.
    fn dictionary_of(
        &mut self,
        values: &ArrayRef,
        rows: usize,
        ty: DataType,
    ) -> Result<Option<Arc<Dictionary>>> {
        if let Some((known, known_ty, dictionary)) = &self.dictionary
            && *known_ty == ty
            && (Arc::ptr_eq(known, values) || known.to_data().ptr_eq(&values.to_data()))
        {
            return Ok(Some(dictionary.clone()));
        }
        if values.null_count() > 0 || values.is_empty() || values.len() > rows.max(CHUNK_ROWS) {
            return Ok(None);
        }
        let mut vector = Vector::new(ty.physical());
        array_to_vector(values, 0, values.len(), ty, &mut vector)?;
        let dictionary = Dictionary::new(vector, values.len());
        self.dictionary = Some((values.clone(), ty, dictionary.clone()));
        Ok(Some(dictionary))
    }
}

fn copy_codes<K: ArrowDictionaryKeyType>(
    keys: &arrow_array::PrimitiveArray<K>,
    offset: usize,
    rows: usize,
    dictionary: &Arc<Dictionary>,
    out: &mut Vector,
) {
    let codes = &mut out.begin_codes(dictionary, rows.max(CHUNK_ROWS))[..rows];
    let last = dictionary.len() as u32 - 1;
    for (code, key) in codes.iter_mut().zip(&keys.values()[offset..offset + rows]) {
        // The key of a NULL may be invalid, but it must still be a code.
        *code = (key.as_usize() as u32).min(last);
    }
    copy_validity(keys, offset, rows, out);
}

/// Rows of an array.
#[derive(Clone, Copy)]
struct Slice<'a> {
    array: &'a dyn Array,
    offset: usize,
    rows: usize,
}

/// Reads the rows of an array without a conversion; false if the array's type needs one first.
fn import_directly(
    array: &dyn Array,
    offset: usize,
    rows: usize,
    ty: DataType,
    out: &mut Vector,
) -> Result<bool> {
    let slice = Slice { array, offset, rows };
    let is_done = match ty {
        DataType::Null => {
            *out = Vector::constant(PhysicalType::Bool, &Value::Null)?;
            return Ok(true);
        }
        DataType::Varchar | DataType::Blob => slice.import_strings(ty, out),
        DataType::Json => slice.import_json(out)?,
        DataType::Decimal { precision, scale } => slice.import_decimals(precision, scale, out)?,
        ty if ty.is_nested() => slice.import_nested(ty, out)?,
        ty => slice.import_fixed(ty, out),
    };
    if is_done {
        copy_validity(array, offset, rows, out);
    }
    Ok(is_done)
}

impl<'a> Slice<'a> {
    /// Number of values for which there is room in a vector of these rows.
    fn capacity(self) -> usize {
        self.rows.max(CHUNK_ROWS)
    }

    /// Values of a fixed width; false if the array's are others.
    fn import_fixed(self, ty: DataType, out: &mut Vector) -> bool {
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
            (DataType::Float32, ArrowType::Float32) => self.copy::<Float32Type>(out),
            (DataType::Float64, ArrowType::Float64) => self.copy::<Float64Type>(out),
            (DataType::Date, ArrowType::Date32) => self.copy::<Date32Type>(out),
            (DataType::Time, ArrowType::Time64(TimeUnit::Microsecond)) => {
                self.copy::<Time64MicrosecondType>(out);
            }
            (DataType::Timestamp, ArrowType::Timestamp(TimeUnit::Microsecond, None))
            | (DataType::TimestampTz, ArrowType::Timestamp(TimeUnit::Microsecond, Some(_))) => {
                self.copy::<TimestampMicrosecondType>(out);
            }
            (DataType::TimestampNs, ArrowType::Timestamp(TimeUnit::Nanosecond, None)) => {
                self.copy::<TimestampNanosecondType>(out);
            }
            (DataType::Interval, ArrowType::Interval(IntervalUnit::MonthDayNano)) => {
                let source = self.values::<IntervalMonthDayNanoType>();
                for (value, v) in out.begin_flat::<Interval>(self.capacity()).iter_mut().zip(source) {
                    *value = Interval { months: v.months, days: v.days, micros: v.nanoseconds / 1000 };
                }
            }
            (DataType::Uuid, ArrowType::FixedSizeBinary(16)) => {
                let array = self.array.as_fixed_size_binary();
                let values = &mut out.begin_flat::<i128>(self.capacity())[..self.rows];
                for (i, value) in values.iter_mut().enumerate() {
                    let bytes = array.value(self.offset + i).try_into().expect("sixteen bytes");
                    *value = uuid_to_ordered(i128::from_be_bytes(bytes));
                }
            }
            _ => return false,
        }
        true
    }

    /// The values of these rows.
    fn values<A: ArrowPrimitiveType>(self) -> &'a [A::Native] {
        &self.array.as_primitive::<A>().values()[self.offset..self.offset + self.rows]
    }

    fn copy<A: ArrowPrimitiveType>(self, out: &mut Vector)
    where
        A::Native: Native,
    {
        out.begin_flat::<A::Native>(self.capacity())[..self.rows].copy_from_slice(self.values::<A>());
    }

    /// Decimals of this scale; false if the array's are others.
    fn import_decimals(self, precision: u8, scale: u8, out: &mut Vector) -> Result<bool> {
        match self.array.data_type() {
            ArrowType::Decimal128(_, from) if *from == scale as i8 => {
                self.copy_decimals::<Decimal128Type>(precision, scale, out)?;
            }
            ArrowType::Decimal64(_, from) if *from == scale as i8 => {
                self.copy_decimals::<Decimal64Type>(precision, scale, out)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Decimals, narrowed to 64 bits if the type is narrow. Arrow does not guarantee that values have at most
    /// the digits of their type; kernels rely on it, so it is checked here.
    fn copy_decimals<A: ArrowPrimitiveType>(self, precision: u8, scale: u8, out: &mut Vector) -> Result<()>
    where
        A::Native: Native + Ord + Into<i128>,
    {
        let source = self.values::<A>();
        let bound = pow10(precision);
        let fits = |v: A::Native| (1 - bound..bound).contains(&v.into());
        let zero = A::Native::default();
        let range = || source.iter().fold((zero, zero), |(min, max), &v| (v.min(min), v.max(max)));
        let (min, max) = widest(range);
        if !fits(min) || !fits(max) {
            let wrong = (0..self.rows).find(|&i| self.array.is_valid(self.offset + i) && !fits(source[i]));
            if let Some(i) = wrong {
                let ty = DataType::Decimal { precision, scale };
                let value = Value::Integer(source[i].into());
                return Err(Error::input(format!("{} has more digits than {ty}", value.display(ty))));
            }
        }
        let capacity = self.capacity();
        if out.physical() == PhysicalType::I64 {
            out.begin_flat::<i64>(capacity)
                .iter_mut()
                .zip(source)
                .for_each(|(value, &v)| *value = v.into() as i64);
        } else {
            out.begin_flat::<i128>(capacity).iter_mut().zip(source).for_each(|(value, &v)| *value = v.into());
        }
        Ok(())
    }

    /// Texts or bytes; false if the array has others.
    fn import_strings(self, ty: DataType, out: &mut Vector) -> bool {
        match (ty, self.array.data_type()) {
            (DataType::Varchar, ArrowType::Utf8) => {
                let array = self.array.as_string::<i32>();
                self.copy_strings(out, |i| array.value(i).as_bytes());
            }
            (DataType::Varchar, ArrowType::LargeUtf8) => {
                let array = self.array.as_string::<i64>();
                self.copy_strings(out, |i| array.value(i).as_bytes());
            }
            (DataType::Varchar, ArrowType::Utf8View) => self.share_strings(self.array.as_string_view(), out),
            (DataType::Blob, ArrowType::Binary) => {
                let array = self.array.as_binary::<i32>();
                self.copy_strings(out, |i| array.value(i));
            }
            (DataType::Blob, ArrowType::LargeBinary) => {
                let array = self.array.as_binary::<i64>();
                self.copy_strings(out, |i| array.value(i));
            }
            (DataType::Blob, ArrowType::BinaryView) => self.share_strings(self.array.as_binary_view(), out),
            (DataType::Blob, ArrowType::FixedSizeBinary(_)) => {
                let array = self.array.as_fixed_size_binary();
                self.copy_strings(out, |i| array.value(i));
            }
            _ => return false,
        }
        true
    }

    /// Texts that are JSON; false if the array has no texts.
    fn import_json(self, out: &mut Vector) -> Result<bool> {
        if !self.import_strings(DataType::Varchar, out) {
            return Ok(false);
        }
        let views = out.values::<StringView>();
        let mut valid = (0..self.rows).filter(|&row| self.array.is_valid(self.offset + row));
        valid.try_for_each(|row| check_json(views[row].as_str()))?;
        Ok(true)
    }

    /// Lists, structs and maps; false if the array has others.
    fn import_nested(self, ty: DataType, out: &mut Vector) -> Result<bool> {
        let Slice { array, offset, rows } = self;
        let Some(values) = nested::Values::of(array, offset..offset + rows, ty)? else {
            return Ok(false);
        };
        let StringsMut { views, heap } = out.begin_strings(self.capacity());
        let mut bytes = Vec::new();
        for (i, view) in views[..rows].iter_mut().enumerate() {
            bytes.clear();
            if array.is_valid(offset + i) {
                values.write(offset + i, &mut bytes)?;
            }
            *view = heap.push(&bytes);
        }
        Ok(true)
    }

    /// Strings that are views: short ones are copied, the buffers of long ones are shared.
    fn share_strings<T: ByteViewType>(self, array: &GenericByteViewArray<T>, out: &mut Vector) {
        let Slice { offset, rows, .. } = self;
        let buffers = array.data_buffers();
        if buffers.len() > SHARED_BUFFERS {
            return self.copy_strings(out, |i| array.value(i).as_ref());
        }
        let StringsMut { views, heap } = out.begin_strings(self.capacity());
        let numbers: Vec<usize> = buffers.iter().map(|buffer| heap.adopt(buffer.clone())).collect();
        for (i, (view, &theirs)) in views.iter_mut().zip(&array.views()[offset..offset + rows]).enumerate() {
            *view = match ByteView::from(theirs) {
                _ if array.is_null(offset + i) => StringView::default(),
                ByteView { length, .. } if length as usize <= INLINE_BYTES => {
                    StringView::inline(&theirs.to_le_bytes()[4..][..length as usize])
                }
                long => {
                    let start = long.offset as usize;
                    heap.view(numbers[long.buffer_index as usize], start..start + long.length as usize)
                }
            };
        }
    }

    fn copy_strings<'b>(self, out: &mut Vector, bytes: impl Fn(usize) -> &'b [u8]) {
        let Slice { array, offset, rows } = self;
        let StringsMut { views, heap } = out.begin_strings(self.capacity());
        if array.null_count() == 0 {
            for (i, view) in views[..rows].iter_mut().enumerate() {
                *view = heap.push(bytes(offset + i));
            }
        } else {
            for (i, view) in views[..rows].iter_mut().enumerate() {
                *view = if array.is_valid(offset + i) {
                    heap.push(bytes(offset + i))
                } else {
                    Default::default()
                };
            }
        }
    }
}

fn copy_validity(array: &dyn Array, offset: usize, rows: usize, out: &mut Vector) {
    let Some(nulls) = array.nulls() else { return };
    let bits = nulls.inner().slice(offset, rows);
    if bits.count_set_bits() == rows {
        return;
    }
    let chunks = bits.bit_chunks();
    for (word, chunk) in out.validity_mut(rows).iter_mut().zip(chunks.iter_padded()) {
        *word = chunk;
    }
}
