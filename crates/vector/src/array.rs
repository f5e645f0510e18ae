//! Arrays: a number of values that is known beforehand, zeroed, in a buffer of their own.
//!
//! Unlike a `Vec`, large arrays are in huge pages.

use crate::buffer::{Buffer, Native};
use std::ops::{Deref, DerefMut};

/// Values of fixed number.
#[derive(Debug)]
pub struct Array<T> {
    buffer: Buffer,
    len: usize,
    of: std::marker::PhantomData<T>,
}

impl<T: Native> Array<T> {
    /// That many values, all zero.
    pub fn zeroed(len: usize) -> Array<T> {
        Array { buffer: Buffer::zeroed(len * size_of::<T>()), len, of: std::marker::PhantomData }
    }

    /// The first `len` values of a buffer.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn of(buffer: Buffer, len: usize) -> Array<T> {
        assert!(len <= buffer.capacity() / size_of::<T>());
        Array { buffer, len, of: std::marker::PhantomData }
    }

    /// Bytes of so many values.
    pub fn bytes_for(len: usize) -> usize {
        Buffer::bytes_for(len * size_of::<T>())
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        self.buffer.capacity()
    }
}

impl<T: Native> Deref for Array<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        &self.buffer.as_slice()[..self.len]
    }
}

impl<T: Native> DerefMut for Array<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.buffer.as_mut_slice()[..self.len]
    }
}
