//! Hot blocks of given values: all of them, one for all slots, or some that are picked.

use super::plain::encode_plain;
use super::{
    Block, Fixed, FixedValues, Flat, Form, TextValues, Values, Views, choose, range_of, string_value,
    with_fixed,
};
use crate::value::{Datum, Zone};
use entasis_vector::{DataType, Value, bitmap};

impl Block {
    /// A hot block of the values that `get` gives for slots 0 to `used` - 1, `None` for dead ones; with
    /// memory for `capacity` slots.
    pub(crate) fn of<'a>(
        used: usize,
        capacity: usize,
        ty: DataType,
        get: impl Fn(usize) -> Option<Datum<'a>>,
    ) -> Block {
        Block::of_width(used, capacity, (ty, false), get)
    }

    /// The same; with `are_flat`, numbers are not made narrower.
    pub(super) fn of_width<'a>(
        used: usize,
        capacity: usize,
        (ty, are_flat): (DataType, bool),
        get: impl Fn(usize) -> Option<Datum<'a>>,
    ) -> Block {
        let mut validity = Vec::new();
        let mut nulls = 0;
        for slot in 0..used {
            if get(slot).is_some_and(Datum::is_null) {
                if nulls == 0 {
                    validity.resize(bitmap::words_for(capacity), u64::MAX);
                }
                bitmap::set(&mut validity, slot, false);
                nulls += 1;
            }
        }
        let validity = (nulls > 0).then_some(&validity[..]);
        let present = |slot: usize| get(slot).filter(|datum| !datum.is_null());
        with_fixed!(
            ty.physical(),
            T => {
                let get = |slot: usize| present(slot).map(T::of_datum);
                of_fixed::<T>(used, capacity, (ty, are_flat), (nulls, validity), &get)
            },
            of_strings(used, capacity, ty, nulls, validity, &|slot| match present(slot) {
                Some(Datum::Bytes(bytes)) => Some(bytes),
                _ => None,
            })
        )
    }

    /// A block of slots that all hold one value.
    pub(crate) fn constant(value: &Value, slots: usize, ty: DataType) -> Block {
        let datum = Datum::of_value(value, ty);
        if datum.is_null() {
            return Block::all_null(slots);
        }
        let (min, max) = bounds(datum, datum, ty);
        let physical = match (datum, ty) {
            (Datum::Integer(v), DataType::Uuid) => Value::Integer(v),
            _ => value.clone(),
        };
        Block::new(slots, Values::of_value(physical), None, Zone { min, max, nulls: 0 }, false)
    }

    /// A block of the form, or a hot one if that cannot be written: slot s holds the value of `values` that
    /// `numbers[s]` says, and is dead if that is `none`.
    pub(crate) fn picked<T: Fixed>(
        values: &[T],
        numbers: &[u32],
        none: u32,
        (ty, form): (DataType, Form),
    ) -> Block {
        let mut picked = Vec::with_capacity(numbers.len());
        let first = numbers.iter().find(|number| **number != none);
        let Some(&first) = first else { return empty(numbers.len(), 0) };
        // Slots without a row must not widen the codes.
        let first = values[first as usize];
        picked.extend(numbers.iter().map(|&number| values.get(number as usize).copied().unwrap_or(first)));
        let (min, max) = range_of(&picked).expect("there is a first");
        let (low, high) = bounds(min.datum(), max.datum(), ty);
        let values = match form {
            Form::Writable { .. } => choose::encode(&picked, min, max, numbers.len(), form),
            Form::Cold(_) => encode_plain(&picked, min, max, numbers.len(), true),
        };
        let zone = Zone { min: low, max: high, nulls: 0 };
        Block::new(numbers.len(), Values::Fixed(values), None, zone, false)
    }
}

/// The bounds of values from `min` to `max`, as a zone has them.
pub(super) fn bounds(min: Datum<'_>, max: Datum<'_>, ty: DataType) -> (Value, Value) {
    match ty {
        // A UUID's value is a number whose order is not that of UUIDs, so it bounds nothing.
        DataType::Uuid => (Value::Integer(i128::MIN), Value::Integer(i128::MAX)),
        _ => (min.value(ty), max.value(ty)),
    }
}

/// [`Block::of`] for numbers.
fn of_fixed<T: Fixed>(
    used: usize,
    capacity: usize,
    (ty, are_flat): (DataType, bool),
    (nulls, validity): (u32, Option<&[u64]>),
    get: &dyn Fn(usize) -> Option<T>,
) -> Block {
    let mut values = vec![T::default(); used];
    let mut range: Option<(T, T)> = None;
    let mut holes = nulls > 0;
    for (slot, value) in values.iter_mut().enumerate() {
        match get(slot) {
            None => holes = true,
            Some(v) => {
                *value = v;
                range = Some(match range {
                    None => (v, v),
                    Some((min, max)) => {
                        (if v.before(min) { v } else { min }, if max.before(v) { v } else { max })
                    }
                });
            }
        }
    }
    let Some((min, max)) = range else { return empty(capacity, nulls) };
    if holes {
        // Slots without a value must not widen the codes.
        for (slot, value) in values.iter_mut().enumerate() {
            if get(slot).is_none() {
                *value = min;
            }
        }
    }
    let (low, high) = bounds(min.datum(), max.datum(), ty);
    let values = match are_flat {
        true => FixedValues::Flat(Flat::new(&values, capacity)),
        false => encode_plain(&values, min, max, capacity, true),
    };
    Block::new(capacity, Values::Fixed(values), validity, Zone { min: low, max: high, nulls }, false)
}

/// [`Block::of`] for strings.
fn of_strings<'a>(
    used: usize,
    capacity: usize,
    ty: DataType,
    nulls: u32,
    validity: Option<&[u64]>,
    get: &dyn Fn(usize) -> Option<&'a [u8]>,
) -> Block {
    let present = || (0..used).filter_map(get);
    let (Some(min), Some(max)) = (present().min(), present().max()) else { return empty(capacity, nulls) };
    let zone = Zone { min: string_value(min, ty), max: string_value(max, ty), nulls };
    let views = Views::new(used, capacity, |slot| get(slot).unwrap_or_default());
    Block::new(capacity, Values::Text(TextValues::Views(views)), validity, zone, false)
}

/// A block without a value.
pub(super) fn empty(capacity: usize, nulls: u32) -> Block {
    Block { ascending: nulls == 0, zone: Zone { nulls, ..Zone::EMPTY }, ..Block::all_null(capacity) }
}
