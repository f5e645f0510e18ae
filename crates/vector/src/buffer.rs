//! Buffers: cache-line aligned bytes that a kernel sees as a slice of one native type.
//!
//! A buffer has a fixed capacity and is always fully initialized (zeroed at birth), so every bit pattern in it is a
//! value. It is shared by `Arc`; a register of the expression machine writes it again for the next chunk iff nobody
//! else holds it ([`unique`]), which is how a pipeline runs without allocating.
//!
//! This is a leaf module with `unsafe`: raw allocation and the reinterpretation of bytes. Its safe twin is the test
//! below that reads every native type back.
#![allow(unsafe_code)]

use crate::string::StringView;
use crate::types::{Interval, PhysicalType};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::sync::Arc;

/// Alignment of every buffer: one cache line, one AVX-512 register.
const ALIGNMENT: usize = 64;

mod sealed {
    pub trait Sealed {}
}

/// A type that a buffer may be seen as: plain bytes without padding, every bit pattern valid, all zeroes meaningful.
pub trait Native: Copy + Default + Send + Sync + PartialEq + std::fmt::Debug + sealed::Sealed + 'static {
    /// The physical type whose flat vectors hold this type.
    const PHYSICAL: PhysicalType;
}

macro_rules! native {
    ($($t:ty => $p:ident),* $(,)?) => { $(
        impl sealed::Sealed for $t {}
        impl Native for $t { const PHYSICAL: PhysicalType = PhysicalType::$p; }
    )* };
}
// `u8` stands for booleans and unsigned bytes alike; its constant names the integer.
native!(i8 => I8, i16 => I16, i32 => I32, i64 => I64, i128 => I128, u8 => U8, u16 => U16, u32 => U32, u64 => U64,
    f32 => F32, f64 => F64, StringView => Str, Interval => Interval);

/// A fixed number of zero-initialized, 64-byte aligned bytes.
pub struct Buffer {
    bytes: *mut u8,
    capacity: usize,
}

// SAFETY: a Buffer owns its bytes like a Vec<u8>. The string views that may be stored in it are Send and Sync
// themselves (see `string.rs`).
unsafe impl Send for Buffer {}
// SAFETY: as above; shared access only reads.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// The bytes that a buffer for `capacity` has: whole cache lines.
    pub fn bytes_for(capacity: usize) -> usize {
        capacity.max(1).next_multiple_of(ALIGNMENT)
    }

    /// A zeroed buffer of at least `capacity` bytes, rounded up to whole cache lines.
    pub fn zeroed(capacity: usize) -> Buffer {
        let capacity = Buffer::bytes_for(capacity);
        let layout = Buffer::layout(capacity);
        // SAFETY: the layout has a size above zero.
        let bytes = unsafe { alloc_zeroed(layout) };
        if bytes.is_null() {
            handle_alloc_error(layout);
        }
        Buffer { bytes, capacity }
    }

    /// A buffer that holds a copy of `values`.
    pub fn from_slice<T: Native>(values: &[T]) -> Buffer {
        let mut buffer = Buffer::zeroed(size_of_val(values));
        buffer.as_mut_slice::<T>()[..values.len()].copy_from_slice(values);
        buffer
    }

    fn layout(capacity: usize) -> Layout {
        Layout::from_size_align(capacity, ALIGNMENT).expect("a buffer is smaller than the address space")
    }

    /// Bytes that this buffer holds.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The first byte, for whoever writes to a buffer that others read: the storage's slots.
    pub fn as_ptr(&self) -> *mut u8 {
        self.bytes
    }

    /// The whole buffer as values of `T`.
    pub fn as_slice<T: Native>(&self) -> &[T] {
        // SAFETY: the bytes are initialized, aligned to 64 (more than any Native needs) and valid for any bit pattern
        // because T is Native (a sealed trait); the length is rounded down.
        unsafe { std::slice::from_raw_parts(self.bytes.cast::<T>(), self.capacity / size_of::<T>()) }
    }

    /// The whole buffer as values of `T`, to be written.
    pub fn as_mut_slice<T: Native>(&mut self) -> &mut [T] {
        // SAFETY: as in `as_slice`; `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.bytes.cast::<T>(), self.capacity / size_of::<T>()) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: allocated in `zeroed` with this very layout.
        unsafe { dealloc(self.bytes, Buffer::layout(self.capacity)) }
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer({} bytes)", self.capacity)
    }
}

/// The buffer in `slot` for writing: the one that is there if nobody else holds it and it is large enough, else a new
/// one. In a pipeline at rest it is always the old one.
pub fn unique(slot: &mut Arc<Buffer>, capacity: usize) -> &mut Buffer {
    // PERF: a load, where `get_mut` exchanges. Nobody makes weak references.
    if Arc::strong_count(slot) > 1 || slot.capacity < capacity {
        *slot = Arc::new(Buffer::zeroed(capacity));
    }
    Arc::get_mut(slot).expect("just made or just tested")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_native_type_reads_back() {
        assert_eq!(&Buffer::from_slice(&[1i8, -1]).as_slice::<i8>()[..2], [1, -1]);
        assert_eq!(&Buffer::from_slice(&[1i128, i128::MIN]).as_slice::<i128>()[..2], [1, i128::MIN]);
        assert_eq!(&Buffer::from_slice(&[0.5f64, f64::MAX]).as_slice::<f64>()[..2], [0.5, f64::MAX]);
        let zero = Buffer::zeroed(16);
        assert_eq!(zero.as_slice::<StringView>()[0].as_bytes(), b"");
        assert_eq!(zero.as_slice::<Interval>()[0], Interval::default());
    }

    #[test]
    fn a_shared_buffer_is_not_written() {
        let mut slot = Arc::new(Buffer::from_slice(&[7u64]));
        let reader = slot.clone();
        unique(&mut slot, 8).as_mut_slice::<u64>()[0] = 8;
        assert_eq!(reader.as_slice::<u64>()[0], 7);
        let address = slot.as_slice::<u8>().as_ptr();
        unique(&mut slot, 8);
        assert_eq!(slot.as_slice::<u8>().as_ptr(), address, "an unshared buffer is reused");
    }
}
