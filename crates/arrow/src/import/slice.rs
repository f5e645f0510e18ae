//! Rows of an array, and the loops that take its values over as they are or one by one.

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::ArrowPrimitiveType;
use entasis_vector::error::sqlstate;
use entasis_vector::{CHUNK_ROWS, DataType, Error, Native, Result, Vector};

/// Rows of an array that is not encoded.
#[derive(Clone, Copy)]
pub(super) struct Slice<'a> {
    pub(super) array: &'a dyn Array,
    pub(super) offset: usize,
    pub(super) rows: usize,
}

impl<'a> Slice<'a> {
    /// Number of values for which there is room in a vector of these rows.
    pub(super) fn capacity(self) -> usize {
        self.rows.max(CHUNK_ROWS)
    }

    /// True for a row that is NULL, whose value may be anything.
    pub(super) fn is_null(self, row: usize) -> bool {
        self.array.is_null(self.offset + row)
    }

    /// The values of these rows.
    pub(super) fn values<A: ArrowPrimitiveType>(self) -> &'a [A::Native] {
        &self.array.as_primitive::<A>().values()[self.offset..self.offset + self.rows]
    }

    /// Takes the values as they are.
    pub(super) fn copy<A: ArrowPrimitiveType>(self, out: &mut Vector)
    where
        A::Native: Native,
    {
        out.begin_flat::<A::Native>(self.capacity())[..self.rows].copy_from_slice(self.values::<A>());
    }

    /// Takes what `convert` makes of the values, which are those of `ty` in another unit or width.
    ///
    /// # Errors
    /// Input, if it makes nothing of one.
    pub(super) fn copy_as<A: ArrowPrimitiveType, T: Native>(
        self,
        ty: DataType,
        out: &mut Vector,
        convert: impl Fn(A::Native) -> Option<T>,
    ) -> Result<()> {
        let values = out.begin_flat::<T>(self.capacity());
        for (row, (value, &theirs)) in values.iter_mut().zip(self.values::<A>()).enumerate() {
            *value = match convert(theirs) {
                Some(own) => own,
                None if self.is_null(row) => T::default(),
                None => {
                    let array = self.array.data_type();
                    let text = format!("value {theirs:?} of {array} is out of range for {ty}");
                    return Err(Error::input(text).with_sqlstate(sqlstate::OUT_OF_RANGE));
                }
            };
        }
        Ok(())
    }

    /// Takes over which rows are NULL.
    pub(super) fn copy_validity(self, out: &mut Vector) {
        let Some(nulls) = self.array.nulls() else { return };
        let bits = nulls.inner().slice(self.offset, self.rows);
        if bits.count_set_bits() == self.rows {
            return;
        }
        let chunks = bits.bit_chunks();
        for (word, chunk) in out.validity_mut(self.rows).iter_mut().zip(chunks.iter_padded()) {
            *word = chunk;
        }
    }
}
