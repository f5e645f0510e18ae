//! The value at a place of an order, of many values, with looks at the statement meanwhile.
//!
//! The selection of the standard library is faster, but goes on to its end: with ten million values that is
//! longer than an interrupt may wait. So as long as there are more than [`FEW`] values, a partition around a
//! pivot, which looks at the statement once in [`STEP`] values, leaves those that may be at the place:
//!
//! 1. The pivot is the value at the same share of a sample of the values, in even steps.
//! 2. The values are parted into smaller, equal and greater ones. If the place is among the equal ones, it is
//!    found; otherwise the search goes on in the part that has it.
//! 3. Each part is smaller than the whole, as the pivot is in neither. An order that defies the sample
//!    [`ROUNDS`] times is left to the standard library, whose worst case is linear.

use entasis_vector::{Result, statement};
use std::cmp::Ordering;
use std::ops::Range;

/// The standard library selects from so many values in some milliseconds.
const FEW: usize = 1 << 18;
/// Values between two looks at the statement.
const STEP: usize = 1 << 16;
/// Values of a sample, and one more.
const SAMPLE: usize = 512;
/// Partitions before the standard library does the rest. Two or three are usual.
const ROUNDS: usize = 24;

/// The value at `place` of the order of `values`, as if they were sorted; afterwards no value before the
/// place is greater, and none behind it is smaller.
///
/// # Errors
/// Interrupted: then the values are in some order.
pub(super) fn select<T: Clone>(
    values: &mut [T],
    place: usize,
    order: impl Fn(&T, &T) -> Ordering + Copy,
) -> Result<&T> {
    let mut part = 0..values.len();
    for _ in 0..ROUNDS {
        if part.len() <= FEW {
            break;
        }
        let pivot = pivot(&values[part.clone()], place - part.start, order);
        let equal = partition(&mut values[part.clone()], &pivot, order)?;
        let equal = part.start + equal.start..part.start + equal.end;
        if equal.contains(&place) {
            return Ok(&values[place]);
        }
        part = if place < equal.start { part.start..equal.start } else { equal.end..part.end };
    }
    statement::check()?;
    let place = place - part.start;
    Ok(values[part].select_nth_unstable_by(place, order).1)
}

/// The least value.
///
/// # Errors
/// Interrupted.
pub(super) fn least<T>(values: &[T], order: impl Fn(&T, &T) -> Ordering + Copy) -> Result<Option<&T>> {
    let mut least: Option<&T> = None;
    for piece in values.chunks(STEP) {
        statement::check()?;
        least = piece.iter().chain(least).min_by(|a, b| order(a, b));
    }
    Ok(least)
}

/// A value that is about at `place` of the order.
fn pivot<T: Clone>(values: &[T], place: usize, order: impl Fn(&T, &T) -> Ordering) -> T {
    let step = (values.len() / SAMPLE).max(1);
    let mut sample: Vec<T> = values.iter().step_by(step).cloned().collect();
    let share = place as f64 / values.len() as f64;
    let at = ((share * sample.len() as f64) as usize).min(sample.len() - 1);
    sample.select_nth_unstable_by(at, order).1.clone()
}

/// Moves values that are smaller than the pivot to the front, and those that are greater to the end. Returns
/// where the equal ones are.
fn partition<T>(values: &mut [T], pivot: &T, order: impl Fn(&T, &T) -> Ordering) -> Result<Range<usize>> {
    // Smaller ones, equal ones, those not looked at, greater ones.
    let (mut smaller, mut next, mut greater) = (0, 0, values.len());
    while next < greater {
        statement::check()?;
        for _ in 0..STEP.min(greater - next) {
            match order(&values[next], pivot) {
                Ordering::Less => {
                    values.swap(smaller, next);
                    smaller += 1;
                    next += 1;
                }
                Ordering::Equal => next += 1,
                Ordering::Greater => {
                    greater -= 1;
                    values.swap(next, greater);
                }
            }
        }
    }
    Ok(smaller..greater)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of several shapes, more than [`FEW`].
    fn shapes() -> Vec<Vec<u32>> {
        let count = FEW as u32 * 2 + 3;
        let mut random = 7_u32;
        let mut next = move || {
            random ^= random << 13;
            random ^= random >> 17;
            random ^= random << 5;
            random
        };
        vec![
            (0..count).collect(),
            (0..count).rev().collect(),
            vec![5; count as usize],
            (0..count).map(|_| next()).collect(),
            (0..count).map(|_| next() % 3).collect(),
            // The sample sees the least values only.
            (0..count)
                .map(|i| if i % (count / SAMPLE as u32) == 0 { 0 } else { 1 + next() % 1000 })
                .collect(),
        ]
    }

    #[test]
    fn what_is_selected_is_what_sorting_finds() {
        for values in shapes() {
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let last = values.len() - 1;
            for place in [0, 1, last / 3, last / 2, last - 1, last] {
                let mut own = values.clone();
                assert_eq!(*select(&mut own, place, u32::cmp).unwrap(), sorted[place]);
                assert!(own[..place].iter().all(|v| *v <= sorted[place]));
                assert!(own[place..].iter().all(|v| *v >= sorted[place]));
            }
            assert_eq!(least(&values, u32::cmp).unwrap(), sorted.first());
            assert_eq!(least(&values, |a, b| b.cmp(a)).unwrap(), sorted.last());
        }
        assert_eq!(least(&[], u32::cmp).unwrap(), None);
    }
}
