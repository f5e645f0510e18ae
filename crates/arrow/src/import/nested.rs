//! Arrays of nested values to bytes: the arrays of the lowest level are converted to vectors, and each row's
//! bytes are written by going down to them.
//!
//! Lists of every layout are lists and arrays of a fixed length, whose length is checked. The fields of a
//! struct are found by their names, as in a cast; if the names are others, but as many, by their places.

use super::encoded::decoded;
use crate::arrow_error;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ListLikeArray, UInt64Array};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType as ArrowType, Fields};
use arrow_select::take::take;
use entasis_vector::types::StructField;
use entasis_vector::value::nested;
use entasis_vector::{DataType, Result, Value, Vector};
use std::ops::Range;

/// What reads rows of an array of plain values as values of a type.
pub(super) type ReadPlain = fn(&dyn Array, Range<usize>, DataType) -> Result<Vector>;

/// Values of rows of an array, to be written as bytes.
pub(super) struct Values {
    ty: DataType,
    nulls: Option<NullBuffer>,
    below: Below,
}

/// What they consist of.
enum Below {
    /// Plain values.
    Plain(Vector),
    /// Lists, arrays or maps: where the elements of each end, one list after another.
    Elements(Vec<usize>, Box<Values>),
    /// Structs of these.
    Fields(Vec<Values>),
}

impl Values {
    /// The values of `ty` at `rows` of an array; `None` if a level of it is of another shape, and so has to
    /// be cast.
    ///
    /// # Errors
    /// Those of `plain`.
    pub(super) fn of(
        array: &dyn Array,
        rows: Range<usize>,
        ty: DataType,
        plain: ReadPlain,
    ) -> Result<Option<Values>> {
        if ty.is_nested()
            && let Some(taken) = decoded(array, rows.start, rows.len())?
        {
            return Values::of(&taken, 0..rows.len(), ty, plain);
        }
        let nulls = array.nulls().map(|nulls| nulls.slice(rows.start, rows.len()));
        let below = match (ty, array.data_type()) {
            (_, ArrowType::Null) => Some(Below::Plain(plain(array, rows, ty)?)),
            (DataType::Struct(fields), ArrowType::Struct(theirs)) => match places(theirs, fields) {
                Some(places) => {
                    let columns = array.as_struct().columns();
                    let column = |(place, field): (usize, &StructField)| {
                        Values::of(&*columns[place], rows.clone(), field.ty, plain)
                    };
                    let columns = places.into_iter().zip(fields).map(column);
                    columns.collect::<Result<Option<Vec<Values>>>>()?.map(Below::Fields)
                }
                None => None,
            },
            (DataType::Map(element), ArrowType::Map(..)) => {
                let maps = array.as_map();
                let offsets = maps.value_offsets();
                let span = |row: usize| offsets[row] as usize..offsets[row + 1] as usize;
                elements_of(maps.entries(), spans(array, rows, span), *element, plain)?
            }
            (DataType::List(element) | DataType::Array(element, _), theirs) => {
                let lists: &dyn ListLikeArray = match theirs {
                    ArrowType::List(_) => array.as_list::<i32>(),
                    ArrowType::LargeList(_) => array.as_list::<i64>(),
                    ArrowType::ListView(_) => array.as_list_view::<i32>(),
                    ArrowType::LargeListView(_) => array.as_list_view::<i64>(),
                    ArrowType::FixedSizeList(..) => array.as_fixed_size_list(),
                    _ => return Ok(None),
                };
                let span = |row: usize| lists.element_range(row);
                elements_of(&**lists.values(), spans(array, rows, span), *element, plain)?
            }
            (ty, _) if ty.is_nested() => None,
            _ => Some(Below::Plain(plain(array, rows, ty)?)),
        };
        Ok(below.map(|below| Values { ty, nulls, below }))
    }

    /// Appends the bytes of the value at `row`, which is not NULL.
    ///
    /// # Errors
    /// Input, if a map has a key twice, or one that is NULL, or an array has another length.
    pub(super) fn write(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        match &self.below {
            Below::Plain(vector) => nested::encode(&vector.value(row, self.ty), self.ty, out),
            Below::Elements(ends, elements) => {
                let start = out.len();
                let (first, end) = (row.checked_sub(1).map_or(0, |before| ends[before]), ends[row]);
                for element in first..end {
                    elements.write_part(element, out)?;
                }
                nested::end_list(out);
                match self.ty {
                    DataType::List(_) => Ok(()),
                    DataType::Array(_, length) if length as usize == end - first => Ok(()),
                    ty => nested::check(&out[start..], ty),
                }
            }
            Below::Fields(fields) => fields.iter().try_for_each(|field| field.write_part(row, out)),
        }
    }

    fn write_part(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        match &self.below {
            Below::Plain(vector) => nested::encode_part(&vector.value(row, self.ty), self.ty, out),
            _ if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) => {
                nested::encode_part(&Value::Null, self.ty, out)
            }
            _ => {
                nested::begin_part(out);
                self.write(row, out)
            }
        }
    }
}

/// Where the elements of each row's list are. NULL has none, whatever its place says.
fn spans(lists: &dyn Array, rows: Range<usize>, span: impl Fn(usize) -> Range<usize>) -> Vec<Range<usize>> {
    rows.map(|row| if lists.is_null(row) { 0..0 } else { span(row) }).collect()
}

/// The elements of lists, one list after another: a range of `values` if they are so in it, or else copies,
/// so that elements that no list has are not read.
fn elements_of(
    values: &dyn Array,
    spans: Vec<Range<usize>>,
    element: DataType,
    plain: ReadPlain,
) -> Result<Option<Below>> {
    let mut count = 0;
    let ends = spans.iter().map(|span| {
        count += span.len();
        count
    });
    let ends: Vec<usize> = ends.collect();
    let mut filled = spans.iter().filter(|span| !span.is_empty());
    let first = filled.clone().next().map_or(0, |span| span.start);
    let mut next = first;
    let elements = if filled.all(|span| std::mem::replace(&mut next, span.end) == span.start) {
        Values::of(values, first..first + count, element, plain)?
    } else {
        let places = spans.into_iter().flatten().map(|place| place as u64);
        let taken = take(values, &UInt64Array::from_iter_values(places), None).map_err(arrow_error)?;
        Values::of(&taken, 0..count, element, plain)?
    };
    Ok(elements.map(|elements| Below::Elements(ends, Box::new(elements))))
}

/// The places of the fields that are read as `fields`; `None` if the struct lacks some.
fn places(theirs: &Fields, fields: &[StructField]) -> Option<Vec<usize>> {
    let as_many = theirs.len() == fields.len();
    if as_many && theirs.iter().zip(fields).all(|(theirs, field)| theirs.name() == field.name) {
        return Some((0..fields.len()).collect());
    }
    let place =
        |field: &StructField| theirs.iter().position(|theirs| theirs.name().eq_ignore_ascii_case(field.name));
    let by_name: Option<Vec<usize>> = fields.iter().map(place).collect();
    by_name.or_else(|| as_many.then(|| (0..fields.len()).collect()))
}
