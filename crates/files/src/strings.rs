//! The strings of a chunk where they stand, for what is written without copies of long ones.

use entasis_vector::statement::{self, Charge};
use entasis_vector::{Chunk, DataType, Encoding, PhysicalType, Result, StringView};

/// Bytes from which on a value is long: it is written part by part.
pub(super) const LONG: usize = 64 << 10;
/// Bytes of a nested value's elements as [values](entasis_vector::Value), for a byte of it, about.
const UNPACKED: usize = 4;

/// The string in a column of a chunk; `None` if it is NULL, or the column has no strings.
pub(super) fn string(chunk: &Chunk, row: usize, column: usize) -> Option<&StringView> {
    let vector = chunk.vector(column);
    if vector.physical() != PhysicalType::Str {
        return None;
    }
    let position = chunk.positions(column).map_or(row, |positions| positions[row] as usize);
    if !vector.is_valid(position) {
        return None;
    }
    Some(match vector.encoding() {
        Encoding::Flat => &vector.values::<StringView>()[position],
        Encoding::Constant => &vector.values::<StringView>()[0],
        Encoding::Dictionary => {
            let dictionary = vector.dictionary().expect("a dictionary vector has one");
            &dictionary.values().values::<StringView>()[vector.codes()[position] as usize]
        }
    })
}

/// Bytes of the strings in a row of a chunk.
pub(super) fn string_bytes(chunk: &Chunk, row: usize) -> usize {
    (0..chunk.columns().len()).filter_map(|column| string(chunk, row, column)).map(StringView::len).sum()
}

/// Reserves the memory for a string of `bytes` bytes as a [`Value`](entasis_vector::Value) of `ty`, and for
/// its parts, if it is long.
///
/// # Errors
/// Resource, if there is not enough.
pub(super) fn reserve_value(bytes: usize, ty: DataType) -> Result<Option<Charge>> {
    match bytes {
        ..=LONG => Ok(None),
        _ if ty.is_nested() => statement::reserve(bytes.saturating_mul(1 + UNPACKED)),
        _ => statement::reserve(bytes),
    }
}
