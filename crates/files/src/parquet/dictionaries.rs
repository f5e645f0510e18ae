//! Which columns of a Parquet file get dictionaries: those whose values repeat.
//!
//! The writer of the library tries a dictionary for every column, looks each value up in it, and gives it up
//! when it has become too large. For numbers that hardly repeat that is most of what writing them takes. So
//! some values of the first row group are looked at: if n of D values are drawn by chance, about n² / 2D of
//! them have been drawn before (the birthday problem), which says how many there are.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use std::collections::HashSet;
use std::hash::Hash;

/// Values that are looked at.
const LOOKED: usize = 4096;
/// How many times the values of a row group repeat at least, so that a dictionary is tried.
const REPEATS: usize = 4;

/// True if the values of a column of `rows` rows are expected to repeat, by the first of them, or if that
/// cannot be told.
pub(super) fn repeats(column: &ArrayRef, rows: usize) -> bool {
    let looked = column.len().min(LOOKED);
    let valid = |row: &usize| column.is_valid(*row);
    let (seen, distinct) = match column.data_type() {
        DataType::Utf8View => count((0..looked).filter(valid).map(|row| column.as_string_view().value(row))),
        DataType::Utf8 => count((0..looked).filter(valid).map(|row| column.as_string::<i32>().value(row))),
        ty => {
            let Some(width) = ty.primitive_width() else { return true };
            let data = column.to_data();
            let bytes = &data.buffers()[0].as_slice()[data.offset() * width..];
            count((0..looked).filter(valid).map(|row| &bytes[row * width..(row + 1) * width]))
        }
    };
    let again = seen - distinct;
    // Few values say little.
    seen < LOOKED / 8 || (again > 0 && seen * seen / (2 * again) <= rows / REPEATS)
}

/// How many values there are, and how many that differ.
fn count<T: Hash + Eq>(values: impl Iterator<Item = T>) -> (usize, usize) {
    let (mut seen, mut distinct) = (0, HashSet::with_capacity(LOOKED));
    for value in values {
        seen += 1;
        distinct.insert(value);
    }
    (seen, distinct.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{BooleanArray, Int64Array, StringViewArray};
    use std::sync::Arc;

    #[test]
    fn columns_of_few_values_get_dictionaries() {
        let scattered = |i: u64| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 24) ^ i;
        let numbers = |distinct: u64| -> ArrayRef {
            let value = |i: u64| (scattered(scattered(i)) % distinct) as i64;
            Arc::new(Int64Array::from_iter_values((0..16_384).map(value)))
        };
        let rows = 122_880;
        assert!(repeats(&numbers(101), rows));
        assert!(repeats(&numbers(10_007), rows));
        assert!(!repeats(&numbers(100_000_007), rows));
        let texts: ArrayRef =
            Arc::new(StringViewArray::from_iter_values((0..5000).map(|i| format!("text {i}"))));
        assert!(!repeats(&texts, rows));
        assert!(repeats(&texts.slice(0, 100), 100), "they are few");
        assert!(!repeats(&numbers(100_000_007).slice(3000, 5000), rows), "slices begin anywhere");
        let flags: ArrayRef = Arc::new(BooleanArray::from(vec![true; 5000]));
        assert!(repeats(&flags, rows));
    }
}
