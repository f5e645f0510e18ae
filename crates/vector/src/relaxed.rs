//! Values in memory that several threads touch at once: stored and loaded by atomic instructions without
//! ordering.
//!
//! On x86-64 these are ordinary instructions. A value of 16 bytes takes two of them, so that a load during
//! another thread's store may return a half of each. [`crate::Slots`] are such memory, and so are blocks of a
//! table that are written while others read them.
//!
//! This is a leaf module with `unsafe`: the caller says where the value is. Its twin is a plain store and a
//! plain load.
#![allow(unsafe_code)]

use crate::buffer::Native;
use std::mem::transmute_copy;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

/// Writes a value.
///
/// # Safety
/// `at` points into memory that is good for writing a `T`, and is aligned to the size of `T`, or to 8 bytes
/// if that is 16. Nobody has a reference to these bytes meanwhile.
#[inline(always)]
pub unsafe fn store<T: Native>(at: *mut T, value: T) {
    // SAFETY: the caller's promise. A Native is plain bytes of its size, which is one of these.
    unsafe {
        match size_of::<T>() {
            1 => (*at.cast::<AtomicU8>()).store(transmute_copy(&value), Relaxed),
            2 => (*at.cast::<AtomicU16>()).store(transmute_copy(&value), Relaxed),
            4 => (*at.cast::<AtomicU32>()).store(transmute_copy(&value), Relaxed),
            8 => (*at.cast::<AtomicU64>()).store(transmute_copy(&value), Relaxed),
            _ => {
                const { assert!(size_of::<T>() <= 16) };
                let [first, second]: [u64; 2] = transmute_copy(&value);
                (*at.cast::<AtomicU64>()).store(first, Relaxed);
                (*at.cast::<AtomicU64>().add(1)).store(second, Relaxed);
            }
        }
    }
}

/// The value at a place.
///
/// # Safety
/// `at` points into memory that is good for reading a `T`, aligned as for
/// [`store`]. Nobody writes to it but by [`store`] and other atomic instructions of the same width.
#[inline(always)]
pub unsafe fn load<T: Native>(at: *const T) -> T {
    // SAFETY: the caller's promise; any bytes are a Native.
    unsafe {
        match size_of::<T>() {
            1 => transmute_copy(&(*at.cast::<AtomicU8>()).load(Relaxed)),
            2 => transmute_copy(&(*at.cast::<AtomicU16>()).load(Relaxed)),
            4 => transmute_copy(&(*at.cast::<AtomicU32>()).load(Relaxed)),
            8 => transmute_copy(&(*at.cast::<AtomicU64>()).load(Relaxed)),
            _ => {
                const { assert!(size_of::<T>() <= 16) };
                let halves = at.cast::<AtomicU64>();
                transmute_copy(&[(*halves).load(Relaxed), (*halves.add(1)).load(Relaxed)])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Buffer, Interval};

    fn check<T: Native + PartialEq>(values: &[T]) {
        let mut buffer = Buffer::zeroed(size_of_val(values));
        for (i, &value) in values.iter().enumerate() {
            // SAFETY: the buffer has room for the values, is aligned to 64 bytes, and nobody else has it.
            unsafe { store(buffer.as_ptr().cast::<T>().add(i), value) };
        }
        for (i, &value) in values.iter().enumerate() {
            // SAFETY: as above.
            let loaded = unsafe { load(buffer.as_ptr().cast::<T>().add(i)) };
            assert!(loaded == value);
        }
        assert!(&buffer.as_mut_slice::<T>()[..values.len()] == values, "plain loads see the same");
    }

    #[test]
    fn values_of_every_width_are_loaded_as_they_were_stored() {
        check(&[1u8, 2, 255]);
        check(&[-1i16, 2, i16::MIN]);
        check(&[0.5f32, -2.0]);
        check(&[u64::MAX, 0, 1 << 40]);
        check(&[i128::MIN, 1 << 64, -1]);
        check(&[Interval { months: 1, days: -2, micros: 3 }]);
    }
}
