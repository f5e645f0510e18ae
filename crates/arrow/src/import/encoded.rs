//! Arrays that stand for other arrays: dictionaries and runs. The rows that are wanted are taken from their
//! values, NULLs included, so that a value that no row has does not matter.

use crate::arrow_error;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int32Type, Int64Type, RunEndIndexType};
use arrow_array::{Array, ArrayRef, RunArray, UInt64Array};
use arrow_buffer::ArrowNativeType;
use arrow_schema::DataType as ArrowType;
use arrow_select::take::take;
use entasis_vector::Result;

/// Rows `offset .. offset + rows` of an encoded array without its encoding; `None` if it has none. What its
/// values are may be encoded in turn.
///
/// # Errors
/// Input, if there are too many bytes for an array.
pub(super) fn decoded(array: &dyn Array, offset: usize, rows: usize) -> Result<Option<ArrayRef>> {
    let taken = match array.data_type() {
        ArrowType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let values = dictionary.values();
            // What is taken from runs has no NULL for a key that is NULL.
            let resolved = decoded(values, 0, values.len())?;
            take(resolved.as_ref().unwrap_or(values), &dictionary.keys().slice(offset, rows), None)
        }
        ArrowType::RunEndEncoded(ends, _) => {
            let runs = match ends.data_type() {
                ArrowType::Int16 => runs_of(array.as_run::<Int16Type>(), offset, rows),
                ArrowType::Int32 => runs_of(array.as_run::<Int32Type>(), offset, rows),
                _ => runs_of(array.as_run::<Int64Type>(), offset, rows),
            };
            take(array.as_any_ree().values(), &runs, None)
        }
        _ => return Ok(None),
    };
    taken.map(Some).map_err(arrow_error)
}

/// The number of the run in which each row is.
fn runs_of<R: RunEndIndexType>(array: &RunArray<R>, offset: usize, rows: usize) -> UInt64Array {
    let ends = array.run_ends();
    // The ends are those of the whole array, of which this one may be a slice.
    let first = ends.offset() + offset;
    let mut run = ends.get_physical_index(offset);
    UInt64Array::from_iter_values((first..first + rows).map(|row| {
        while ends.values()[run].as_usize() <= row {
            run += 1;
        }
        run as u64
    }))
}
