//! Places: integer keys as numbers from 0, without the gaps that the keys' bounds rule out.
//!
//! The place of a single key is its distance from the least key, or from the start of a window if a few keys
//! are far from all others. Several keys are packed like digits, the first the most significant and each with
//! as many values as its own bounds allow (Barber et al., section 2.4.1; the paper rounds each part up to
//! whole bits). Places keep the order of the keys: probes in key order walk through memory.

use super::integers::for_each_integer;
use crate::exec::materialized::Materialized;
use entasis_vector::{Vector, bitmap};

/// The place of a row whose key is outside the window or the other side's bounds.
pub(crate) const OUTSIDE: u64 = u64::MAX - 1;
/// The place of a row whose key has a NULL: it equals nothing.
pub(crate) const NOWHERE: u64 = u64::MAX;

/// The most places: tables count them in 32 bits per partition.
const MAX_PLACES: u64 = 1 << 40;

/// How keys become places.
#[derive(Debug, Clone)]
pub(crate) struct Packing {
    parts: Vec<Part>,
    places: u64,
}

#[derive(Debug, Clone)]
struct Part {
    min: i64,
    /// The greatest distance from `min`.
    span: u64,
    /// The distance between the places of consecutive values.
    stride: u64,
}

impl Packing {
    /// Places for keys with these bounds, the smallest and largest value of each; `None` if they are too
    /// many.
    pub(crate) fn of(bounds: &[(i64, i64)]) -> Option<Packing> {
        let mut places = 1u64;
        let mut parts = Vec::with_capacity(bounds.len());
        for &(min, max) in bounds.iter().rev() {
            let span = max.abs_diff(min);
            parts.push(Part { min, span, stride: places });
            places = span.checked_add(1).and_then(|values| places.checked_mul(values))?;
        }
        parts.reverse();
        (places <= MAX_PLACES && !parts.is_empty()).then_some(Packing { parts, places })
    }

    /// At most `places` places, for the keys near the median of `sample` with a small margin; `None` without
    /// keys.
    pub(crate) fn around(sample: &mut [i64], places: u64) -> Option<Packing> {
        sample.sort_unstable();
        let median = *sample.get(sample.len() / 2)?;
        let mut near = sample.iter().copied().filter(|key| key.abs_diff(median) <= places / 4);
        let min = near.next().expect("the median is near itself");
        let max = near.next_back().unwrap_or(min);
        // Keys that are not in the sample may be a little further away.
        let margin = (max.abs_diff(min) / 16 + 16).min(places / 4) as i64;
        Packing::of(&[(min.saturating_sub(margin), max.saturating_add(margin))])
    }

    /// The keys that have a place, of a packing for one key.
    pub(crate) fn window(&self) -> (i64, i64) {
        let Part { min, span, .. } = self.parts[0];
        (min, min.wrapping_add_unsigned(span))
    }

    /// The packing of only the keys from place `first` to place `last`, whose places then start at 0; `None`
    /// if there are several keys.
    pub(crate) fn cut(&self, first: u64, last: u64) -> Option<Packing> {
        let [Part { min, .. }] = self.parts[..] else { return None };
        Packing::of(&[(min.wrapping_add_unsigned(first), min.wrapping_add_unsigned(last))])
    }

    /// The smallest and the largest value of each key that has a place.
    pub(crate) fn bounds(&self) -> Vec<(i64, i64)> {
        self.parts.iter().map(|&Part { min, span, .. }| (min, min.wrapping_add_unsigned(span))).collect()
    }

    /// The number of places.
    pub(crate) fn places(&self) -> u64 {
        self.places
    }

    /// Writes what key column `part` adds to the places of some rows; must be called for all parts in order.
    #[inline(always)]
    pub(crate) fn add(&self, part: usize, keys: impl Iterator<Item = i64>, out: &mut [u64]) {
        let Part { min, span, stride } = self.parts[part];
        let distances = keys.map(|key| key.wrapping_sub(min) as u64);
        if self.parts.len() == 1 {
            out.iter_mut().zip(distances).for_each(|(to, at)| *to = if at <= span { at } else { OUTSIDE });
        } else {
            let first = part == 0;
            for (to, at) in out.iter_mut().zip(distances) {
                let before = if first { 0 } else { *to };
                let is_inside = (at <= span) & (before != OUTSIDE);
                *to = if is_inside { before.wrapping_add(at.wrapping_mul(stride)) } else { OUTSIDE };
            }
        }
    }

    /// Writes the places of the rows of `segment` from offset `first`, as many as `out` has room for.
    pub(crate) fn of_rows(&self, rows: &Materialized, segment: usize, first: usize, out: &mut [u64]) {
        for part in 0..self.parts.len() {
            let physical = rows.columns()[part].physical;
            let mut vector = Vector::new(physical);
            for_each_integer!(physical, |T| {
                let values = rows.values_in::<T>(part, segment, first..first + out.len(), &mut vector);
                self.add(part, values.iter().map(|&key| key as i64), out);
            });
        }
        for part in 0..self.parts.len() {
            if let Some(validity) = rows.validity(part, segment) {
                for (i, to) in out.iter_mut().enumerate() {
                    *to = if bitmap::get(validity, first + i) { *to } else { NOWHERE };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_count_up_without_gaps() {
        let packing = Packing::of(&[(-1, 1), (100, 104), (7, 7)]).unwrap();
        assert_eq!(packing.places(), 15);
        let keys: Vec<[i64; 3]> = (-1..=1).flat_map(|a| (100..=104).map(move |b| [a, b, 7])).collect();
        let mut out = vec![0; 15];
        (0..3).for_each(|part| packing.add(part, keys.iter().map(|key| key[part]), &mut out));
        assert_eq!(out, (0..15).collect::<Vec<u64>>());
        // Each part alone may be out of bounds.
        let keys = [
            [-2, 100, 7],
            [2, 100, 7],
            [0, 99, 7],
            [0, 105, 7],
            [0, 104, 8],
            [1, 104, 7],
            [i64::MIN, 104, 7],
        ];
        let mut out = vec![0; 7];
        (0..3).for_each(|part| packing.add(part, keys.iter().map(|key| key[part]), &mut out));
        assert_eq!(out, [OUTSIDE, OUTSIDE, OUTSIDE, OUTSIDE, OUTSIDE, 14, OUTSIDE]);
    }

    #[test]
    fn too_many_places_are_none() {
        assert!(Packing::of(&[(i64::MIN, i64::MAX)]).is_none());
        assert!(Packing::of(&[(0, 1 << 30), (0, 1 << 30)]).is_none());
        assert!(Packing::of(&[]).is_none());
        assert_eq!(Packing::of(&[(i64::MAX, i64::MAX)]).unwrap().places(), 1);
    }
}
