//! Columns that do not share the sets of a cache.
//!
//! Great arrays come from the system at the begin of a page. So the same slot of all columns of a table would
//! be the same number of bytes into a page, in a few sets of the caches, and the more columns a row has the
//! less of them a cache could keep: a ripple through a partition was found to take 12 ns in one table and 196
//! in the next one. Here each column begins some lines further on than the column before it.

use std::ops::{Deref, DerefMut};

/// Bytes by which a column begins later than the one before it: 65 lines, so that the columns of a table are
/// in different sets of a cache of a page a way, and of greater ones.
const STEP: usize = 65 * 64;

/// The values of a column.
#[derive(Debug, Clone, Default)]
pub struct Staggered<T> {
    values: Vec<T>,
    skipped: usize,
}

impl<T: Copy + Default> Staggered<T> {
    /// Room for the values of the column with this number.
    pub fn new(number: usize, capacity: usize) -> Staggered<T> {
        let skipped = number * STEP / size_of::<T>();
        let mut values = Vec::with_capacity(skipped + capacity);
        values.resize(skipped, T::default());
        Staggered { values, skipped }
    }

    pub fn push(&mut self, value: T) {
        self.values.push(value);
    }

    pub fn extend_from_slice(&mut self, values: &[T]) {
        self.values.extend_from_slice(values);
    }

    pub fn resize(&mut self, len: usize) {
        self.values.resize(self.skipped + len, T::default());
    }

    pub fn insert(&mut self, at: usize, value: T) {
        self.values.insert(self.skipped + at, value);
    }

    pub fn remove(&mut self, at: usize) -> T {
        self.values.remove(self.skipped + at)
    }

    pub fn swap_remove(&mut self, at: usize) -> T {
        self.values.swap_remove(self.skipped + at)
    }
}

impl<T> Deref for Staggered<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.values[self.skipped..]
    }
}

impl<T> DerefMut for Staggered<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.values[self.skipped..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_where_they_would_be_in_a_list() {
        for number in [0, 1, 7] {
            let (mut own, mut twin) = (Staggered::<i32>::new(number, 4), Vec::new());
            (0..9).for_each(|value| own.push(value));
            twin.extend(0..9);
            own.insert(3, 20);
            twin.insert(3, 20);
            assert_eq!((own.remove(0), own.swap_remove(2)), (twin.remove(0), twin.swap_remove(2)));
            own.extend_from_slice(&[5, 6]);
            twin.extend_from_slice(&[5, 6]);
            own.resize(12);
            twin.resize(12, 0);
            own[11] = 7;
            twin[11] = 7;
            assert_eq!(own[..], twin[..]);
        }
    }
}
