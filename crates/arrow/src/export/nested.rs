//! Nested values to arrays: the bytes of all values of one level are taken apart into those of the level
//! below, until they are plain values, so that each level becomes one array.

use super::vector_to_array;
use crate::arrow_error;
use crate::types::to_arrow_type;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, FixedSizeListArray, ListArray, MapArray, StructArray};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::DataType as ArrowType;
use entasis_vector::parts::{Part, write_parts};
use entasis_vector::value::nested::Reader;
use entasis_vector::{DataType, Error, Result, Vector};
use std::sync::Arc;

/// An array of `ty` with the values that these bytes stand for; `None` is NULL.
///
/// # Errors
/// Resource, if there are more elements than 31 bits can count; input, if an interval is too long for Arrow.
pub(super) fn array_of(parts: &[Part<'_>], ty: DataType) -> Result<ArrayRef> {
    let nulls = NullBuffer::from_iter(parts.iter().map(Option::is_some));
    let nulls = Some(nulls).filter(|nulls| nulls.null_count() > 0);
    Ok(match (ty, to_arrow_type(ty)) {
        (DataType::List(element), ArrowType::List(field)) => {
            let (elements, offsets) = elements_of(parts, *element)?;
            Arc::new(ListArray::try_new(field, offsets, elements, nulls).map_err(arrow_error)?)
        }
        (DataType::Array(element, length), ArrowType::FixedSizeList(field, size)) => {
            let length = length as usize;
            let mut elements = Vec::with_capacity(parts.len().saturating_mul(length));
            for (row, part) in parts.iter().enumerate() {
                let mut reader = part.map(Reader::new);
                while let Some(next) = reader.as_mut().map_or(Ok(None), |reader| reader.element(*element))? {
                    elements.push(next);
                }
                // NULL has places for its elements, too.
                elements.resize((row + 1) * length, None);
            }
            let elements = array_of(&elements, *element)?;
            Arc::new(FixedSizeListArray::try_new(field, size, elements, nulls).map_err(arrow_error)?)
        }
        (DataType::Map(entry), ArrowType::Map(field, is_sorted)) => {
            let (entries, offsets) = elements_of(parts, *entry)?;
            let ArrowType::Struct(fields) = field.data_type() else {
                return Err(Error::internal("the entries of a map are structs"));
            };
            // The keys are there.
            let (_, columns, _) = entries.as_struct().clone().into_parts();
            let entries = StructArray::try_new_with_length(fields.clone(), columns, None, entries.len());
            let entries = entries.map_err(arrow_error)?;
            Arc::new(MapArray::try_new(field, offsets, entries, nulls, is_sorted).map_err(arrow_error)?)
        }
        (DataType::Struct(fields), ArrowType::Struct(of)) => {
            let mut columns = vec![Vec::with_capacity(parts.len()); fields.len()];
            for part in parts {
                let mut reader = part.map(Reader::new);
                for (column, field) in columns.iter_mut().zip(fields) {
                    column.push(reader.as_mut().map_or(Ok(None), |reader| reader.field(field.ty))?);
                }
            }
            let arrays = columns.iter().zip(fields).map(|(column, field)| array_of(column, field.ty));
            let arrays = arrays.collect::<Result<Vec<_>>>()?;
            let array = StructArray::try_new_with_length(of, arrays, nulls, parts.len());
            Arc::new(array.map_err(arrow_error)?)
        }
        _ => {
            let mut vector = Vector::new(ty.physical());
            write_parts(parts, ty, &mut vector)?;
            vector_to_array(&vector, None, parts.len(), ty)?
        }
    })
}

/// The elements of lists in one array, and where those of each list begin and end.
///
/// # Errors
/// Those of [`array_of`].
fn elements_of(lists: &[Part<'_>], element: DataType) -> Result<(ArrayRef, OffsetBuffer<i32>)> {
    let (mut elements, mut offsets) = (Vec::new(), vec![0]);
    for part in lists {
        let mut reader = part.map(Reader::new);
        while let Some(next) = reader.as_mut().map_or(Ok(None), |reader| reader.element(element))? {
            elements.push(next);
        }
        let end = i32::try_from(elements.len())
            .map_err(|_| Error::resource("the lists of one chunk have too many elements for Arrow"))?;
        offsets.push(end);
    }
    Ok((array_of(&elements, element)?, OffsetBuffer::new(offsets.into())))
}
