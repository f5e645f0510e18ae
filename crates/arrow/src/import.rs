//! Arrays to vectors.
//!
//! Every array that [`from_arrow_type`] accepts is read as the SQL type that it has there, by one copy of the
//! slice where the layouts agree: [`numbers`], [`decimals`], [`units`] (dates, times and spans), [`strings`],
//! [`nested`]. Where another type is wanted, as for a file of a folder whose columns are wider, or for what a
//! function of the host program gives, a vector of the own type is cast as SQL casts it ([`cast_rows`]), so
//! that a cast means the same wherever values come from. Some pairs of types need no cast, since the same
//! bytes are values of both: texts, bytes, JSON and UUIDs.
//!
//! A dictionary array remains one: its values are converted to a [`Dictionary`] once, and an [`Importer`]
//! that gets the same values again, as in batch after batch of one file, uses the same dictionary, so that
//! results cached per code remain valid. Other encodings are resolved, only for the requested rows
//! ([`encoded`]).

mod decimals;
mod encoded;
mod nested;
mod numbers;
mod slice;
mod strings;
mod units;

use crate::types::from_arrow_type;
use arrow_array::types::ArrowDictionaryKeyType;
use arrow_array::{Array, ArrayRef, PrimitiveArray, downcast_dictionary_array};
use arrow_buffer::ArrowNativeType;
use arrow_schema::DataType as ArrowType;
use encoded::decoded;
use entasis_vector::expr::cast_rows;
use entasis_vector::expr::json_text::check_json;
use entasis_vector::vector::StringsMut;
use entasis_vector::{
    CHUNK_ROWS, DataType, Dictionary, Encoding, Error, ErrorKind, PhysicalType, Result, StringView, Value,
    Vector,
};
use nested::Values;
use slice::Slice;
use std::ops::Range;
use std::sync::Arc;

/// Copies rows `offset .. offset + rows` of `array` to `out`, which becomes a vector of `ty`, row r at
/// position r.
///
/// A dictionary array becomes a dictionary vector if that is less work than decoding its rows; see
/// [`Importer`] for arrays that share their dictionary.
///
/// # Errors
/// Input, if a value does not fit `ty`, or there is no cast from the array's type; not supported, if that is
/// none of ours.
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
    /// Values of the array's own type, before they are cast.
    own: Option<Vector>,
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
        if self.import_dictionary(array, offset, rows, ty, out)? {
            return Ok(());
        }
        match decoded(array, offset, rows)? {
            Some(values) => self.import(&values, 0, rows, ty, out),
            None => self.import_values(Slice { array, offset, rows }, ty, out),
        }
    }

    /// Reads values as those of `ty`, or casts them.
    fn import_values(&mut self, slice: Slice<'_>, ty: DataType, out: &mut Vector) -> Result<()> {
        if read(slice, ty, out)? {
            return Ok(());
        }
        if ty == DataType::Json {
            // What is no text may have a text that is JSON.
            self.import_values(slice, DataType::Varchar, out)?;
            let views = out.values::<StringView>();
            let mut valid = (0..slice.rows).filter(|&row| out.is_valid(row));
            return valid.try_for_each(|row| check_json(views[row].as_str()));
        }
        let theirs = slice.array.data_type();
        let context = |error: Error| error.with_context(format!("cannot read {theirs} as {ty}"));
        let from = own_type(theirs).map_err(context)?;
        let own = self.own.get_or_insert_with(|| Vector::new(from.physical()));
        if own.physical() != from.physical() {
            *own = Vector::new(from.physical());
        }
        if !read(slice, from, own)? {
            return Err(Error::internal(format!("no import of {theirs} as {from}")));
        }
        let done = cast_rows(own, from, ty, slice.rows, out);
        // The array's buffers, if they are shared.
        own.drop_strings();
        done.map_err(context)
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

    /// `values` as a dictionary: the previous one, or a new one, unless it has many more values than there
    /// are rows, or some that no dictionary can have: NULL, or what does not fit and may belong to no row.
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
        if values.is_empty() || values.len() > rows.max(CHUNK_ROWS) || values.logical_null_count() > 0 {
            return Ok(None);
        }
        let mut vector = Vector::new(ty.physical());
        match array_to_vector(values, 0, values.len(), ty, &mut vector) {
            Err(error) if error.kind() == ErrorKind::Input => return Ok(None),
            done => done?,
        }
        if vector.encoding() != Encoding::Flat || vector.validity().is_some() {
            return Ok(None);
        }
        let dictionary = Dictionary::new(vector, values.len());
        self.dictionary = Some((values.clone(), ty, dictionary.clone()));
        Ok(Some(dictionary))
    }
}

fn copy_codes<K: ArrowDictionaryKeyType>(
    keys: &PrimitiveArray<K>,
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
    Slice { array: keys, offset, rows }.copy_validity(out);
}

/// The SQL type as whose values an array is read before they are cast. Decimals of more digits than ours are
/// read as the longest of ours.
fn own_type(ty: &ArrowType) -> Result<DataType> {
    match (from_arrow_type(ty), ty) {
        (Err(_), ArrowType::Decimal128(_, scale @ ..=38) | ArrowType::Decimal256(_, scale @ ..=38)) => {
            Ok(DataType::Decimal { precision: 38, scale: (*scale).max(0) as u8 })
        }
        (own, _) => own,
    }
}

/// Reads the rows of an array that is not encoded as values of `ty`; false if they are others, which have to
/// be cast.
fn read(slice: Slice<'_>, ty: DataType, out: &mut Vector) -> Result<bool> {
    let is_read = match ty {
        DataType::Null => {
            *out = Vector::constant(PhysicalType::Bool, &Value::Null)?;
            return Ok(true);
        }
        // NULL is a value of every type.
        _ if *slice.array.data_type() == ArrowType::Null => {
            out.begin(slice.capacity());
            out.validity_mut(slice.rows).fill(0);
            return Ok(true);
        }
        DataType::Varchar | DataType::Blob => slice.read_strings(ty, out)?,
        DataType::Json => slice.read_json(out)?,
        DataType::Uuid => slice.read_uuids(out)?,
        DataType::Decimal { precision, scale } => slice.read_decimals(precision, scale, out)?,
        DataType::Interval => slice.read_intervals(out)?,
        DataType::Date
        | DataType::Time
        | DataType::Timestamp
        | DataType::TimestampNs
        | DataType::TimestampTz => slice.read_moments(ty, out)?,
        ty if ty.is_nested() => read_nested(slice, ty, out)?,
        ty => slice.read_numbers(ty, out)?,
    };
    if is_read {
        slice.copy_validity(out);
    }
    Ok(is_read)
}

/// Reads lists, structs and maps; false if the array has others.
fn read_nested(slice: Slice<'_>, ty: DataType, out: &mut Vector) -> Result<bool> {
    fn plain(array: &dyn Array, rows: Range<usize>, ty: DataType) -> Result<Vector> {
        let mut vector = Vector::new(ty.physical());
        array_to_vector(array, rows.start, rows.len(), ty, &mut vector)?;
        Ok(vector)
    }
    let Slice { array, offset, rows } = slice;
    let Some(values) = Values::of(array, offset..offset + rows, ty, plain)? else {
        return Ok(false);
    };
    let StringsMut { views, heap } = out.begin_strings(slice.capacity());
    let mut bytes = Vec::new();
    for (row, view) in views[..rows].iter_mut().enumerate() {
        bytes.clear();
        if !slice.is_null(row) {
            values.write(row, &mut bytes)?;
        }
        *view = heap.push(&bytes);
    }
    Ok(true)
}
