//! Arrays of nested values to bytes: the arrays of the lowest level are converted to vectors, and each row's
//! bytes are written by going down to them.

use super::array_to_vector;
use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_schema::DataType as ArrowType;
use entasis_vector::value::nested;
use entasis_vector::{DataType, Result, Value, Vector};
use std::ops::Range;

/// The values of an array, to be written as bytes.
pub(super) struct Values<'a> {
    array: &'a dyn Array,
    ty: DataType,
    below: Below<'a>,
}

/// What an array consists of.
enum Below<'a> {
    /// Plain values, from `first` on.
    Plain { vector: Vector, first: usize },
    /// Lists of these.
    Elements(Box<Values<'a>>),
    /// Arrays of so many of these.
    Array(usize, Box<Values<'a>>),
    /// Maps of these entries.
    Entries(Box<Values<'a>>),
    /// Structs of these.
    Fields(Vec<Values<'a>>),
}

impl<'a> Values<'a> {
    /// The values of `ty` at `rows` of an array; `None` if a level of it has to be converted by Arrow first.
    ///
    /// # Errors
    /// Those of [`array_to_vector`].
    pub(super) fn of(array: &'a dyn Array, rows: Range<usize>, ty: DataType) -> Result<Option<Values<'a>>> {
        let below = match (ty, array.data_type()) {
            (DataType::List(element), ArrowType::List(_)) => {
                let lists = array.as_list::<i32>();
                let offsets = lists.value_offsets();
                let range = offsets[rows.start] as usize..offsets[rows.end] as usize;
                let Some(elements) = Values::of(&**lists.values(), range, *element)? else { return Ok(None) };
                Below::Elements(Box::new(elements))
            }
            (DataType::Array(element, length), ArrowType::FixedSizeList(_, size))
                if u32::try_from(*size) == Ok(length) =>
            {
                let (arrays, length) = (array.as_fixed_size_list(), length as usize);
                let range = rows.start * length..rows.end * length;
                match Values::of(&**arrays.values(), range, *element)? {
                    Some(elements) => Below::Array(length, Box::new(elements)),
                    None => return Ok(None),
                }
            }
            (DataType::Map(entry), ArrowType::Map(..)) => {
                let maps = array.as_map();
                let offsets = maps.value_offsets();
                let range = offsets[rows.start] as usize..offsets[rows.end] as usize;
                let Some(entries) = Values::of(maps.entries(), range, *entry)? else { return Ok(None) };
                Below::Entries(Box::new(entries))
            }
            (DataType::Struct(fields), ArrowType::Struct(_))
                if fields.len() == array.as_struct().num_columns() =>
            {
                let columns = array.as_struct().columns().iter().zip(fields);
                let columns = columns.map(|(column, field)| Values::of(&**column, rows.clone(), field.ty));
                match columns.collect::<Result<Option<Vec<_>>>>()? {
                    Some(columns) => Below::Fields(columns),
                    None => return Ok(None),
                }
            }
            (ty, _) if ty.is_nested() => return Ok(None),
            _ => {
                let mut vector = Vector::new(ty.physical());
                array_to_vector(array, rows.start, rows.len(), ty, &mut vector)?;
                Below::Plain { vector, first: rows.start }
            }
        };
        Ok(Some(Values { array, ty, below }))
    }

    /// Appends the bytes of the value at `row`, which is not NULL.
    ///
    /// # Errors
    /// Input, if a map has a key twice, or one that is NULL.
    pub(super) fn write(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        match &self.below {
            Below::Plain { vector, first } => {
                nested::encode(&vector.value(row - first, self.ty), self.ty, out)
            }
            Below::Elements(elements) => {
                let offsets = self.array.as_list::<i32>().value_offsets();
                for element in offsets[row]..offsets[row + 1] {
                    elements.write_part(element as usize, out)?;
                }
                nested::end_list(out);
                Ok(())
            }
            Below::Array(length, elements) => {
                for element in row * length..(row + 1) * length {
                    elements.write_part(element, out)?;
                }
                nested::end_list(out);
                Ok(())
            }
            Below::Entries(entries) => {
                let (start, offsets) = (out.len(), self.array.as_map().value_offsets());
                for entry in offsets[row]..offsets[row + 1] {
                    entries.write_part(entry as usize, out)?;
                }
                nested::end_list(out);
                nested::check(&out[start..], self.ty)
            }
            Below::Fields(fields) => fields.iter().try_for_each(|field| field.write_part(row, out)),
        }
    }

    fn write_part(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        match &self.below {
            Below::Plain { vector, first } => {
                nested::encode_part(&vector.value(row - first, self.ty), self.ty, out)
            }
            _ if self.array.is_null(row) => nested::encode_part(&Value::Null, self.ty, out),
            _ => {
                nested::begin_part(out);
                self.write(row, out)
            }
        }
    }
}
