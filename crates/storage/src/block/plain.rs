//! Numbers as plain codes over a base, or flat where codes would not be narrower: how blocks that are written
//! hold them, and what other encodings are compared with.

use super::codes::plain_bytes;
use super::unencoded::distance;
use super::{Codes, Fixed, FixedValues, Flat, FrameOfReference};
use crate::value::Datum;

/// Encodes values that lie within `min` and `max`, with memory for `capacity` slots. `slack` leaves spare
/// codes on both sides of the values.
pub(super) fn encode_plain<T: Fixed>(
    values: &[T],
    min: T,
    max: T,
    capacity: usize,
    slack: bool,
) -> FixedValues {
    let flat = || FixedValues::Flat(Flat::new(values, capacity));
    let (Datum::Integer(least), Some(span)) = (min.datum(), distance(min, max)) else { return flat() };
    let Some(widest) = widest_code(span, size_of::<T>()) else { return flat() };
    let base = base_of(least, span, widest, slack);
    let low = T::of_code(base, 0);
    let codes = values.iter().map(|value| value.code(low) as u32);
    FixedValues::FrameOfReference(FrameOfReference { base, codes: Codes::new(widest, capacity, codes) })
}

/// The greatest code of the narrowest plain width that holds `span`, if that is narrower than `width` bytes.
fn widest_code(span: u128, width: usize) -> Option<u32> {
    let bytes = plain_bytes(span).filter(|&bytes| bytes < width)?;
    Some(u32::MAX >> (32 - bytes * 8))
}

/// The value of code 0: the least value, or, with slack, so far below it that room is equal on both sides.
fn base_of(min: i128, span: u128, widest: u32, slack: bool) -> i128 {
    let room = (u128::from(widest) - span) / 2;
    min.saturating_sub(if slack { room as i128 } else { 0 })
}
