//! Buffers: cache-line aligned bytes that a kernel sees as a slice of one native type.
//!
//! A buffer has a fixed capacity and is always fully initialized (zeroed at birth), so every bit pattern in
//! it is a value. It is shared by `Arc`; a register of the expression machine writes it again for the next
//! chunk iff nobody else holds it ([`unique`]), which is how a pipeline runs without allocating. Buffers that
//! are read in sequence may be contiguous in one piece of memory ([`Buffer::put_together`]).
//!
//! This is a leaf module with `unsafe`: raw allocation and the reinterpretation of bytes. Its safe twin is
//! the test below that reads every native type back.
#![allow(unsafe_code)]

use crate::pages;
use crate::string::StringView;
use crate::types::{Interval, PhysicalType};
use std::alloc::Layout;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering, fence};

/// Alignment of every buffer: one cache line, one AVX-512 register.
const ALIGNMENT: usize = 64;

mod sealed {
    pub trait Sealed {}
}

/// A type that a buffer may be seen as: plain bytes without padding, every bit pattern valid, all zeroes
/// meaningful.
pub trait Native:
    Copy + Default + Send + Sync + PartialEq + std::fmt::Debug + sealed::Sealed + 'static
{
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
native!(i8 => I8, i16 => I16, i32 => I32, i64 => I64, i128 => I128, u8 => U8, u16 => U16, u32 => U32,
    u64 => U64, f32 => F32, f64 => F64, StringView => Str, Interval => Interval);

/// A fixed number of zero-initialized, 64-byte aligned bytes: memory of its own, or a part of a [`Piece`].
pub struct Buffer {
    bytes: *mut u8,
    /// Cache lines.
    lines: u32,
    /// How many cache lines before it its piece of memory begins; 0 if it is no part of a piece.
    piece: u32,
}

/// Values of one type, to be written as those of another type of the same width.
///
/// # Panics
/// If the types differ in size or alignment.
#[inline(always)]
pub fn seen_as_mut<T: Native, U: Native>(values: &mut [T]) -> &mut [U] {
    assert!(size_of::<T>() == size_of::<U>() && align_of::<T>() == align_of::<U>());
    // SAFETY: as many bytes, as they are aligned; any of them are values of both types, which are Native.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast::<U>(), values.len()) }
}

/// The header of a piece of memory that several buffers share: the line before the first of them.
#[repr(C, align(64))]
struct Piece {
    /// The number of buffers left.
    buffers: AtomicUsize,
    /// Cache lines, including this one.
    lines: u32,
}

impl Piece {
    /// Zeroed memory of so many cache lines, the first of which is the header of a piece that so many buffers
    /// share.
    fn allocate(buffers: usize, lines: u32) -> *mut u8 {
        let start = allocate(lines);
        // SAFETY: the first line, which no buffer has.
        unsafe { start.cast::<Piece>().write(Piece { buffers: AtomicUsize::new(buffers), lines }) };
        start
    }
}

const _: () = assert!(size_of::<Buffer>() == 16 && size_of::<Piece>() == ALIGNMENT);

// SAFETY: a Buffer owns its bytes like a Vec<u8>; parts of a piece do not overlap, and its count is atomic.
// The string views that may be stored in it are Send and Sync themselves (see `string.rs`).
unsafe impl Send for Buffer {}
// SAFETY: as above; shared access only reads.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// The bytes that a buffer for `capacity` has: whole cache lines.
    pub fn bytes_for(capacity: usize) -> usize {
        capacity.max(1).next_multiple_of(ALIGNMENT)
    }

    /// A zeroed buffer of at least `capacity` bytes, rounded up to whole cache lines.
    ///
    /// # Panics
    /// If these are 256 GiB or more.
    pub fn zeroed(capacity: usize) -> Buffer {
        let lines = Buffer::bytes_for(capacity) / ALIGNMENT;
        let lines = u32::try_from(lines).expect("a buffer has fewer than 2^32 cache lines");
        Buffer { bytes: allocate(lines), lines, piece: 0 }
    }

    /// A buffer that holds a copy of `values`.
    pub fn from_slice<T: Native>(values: &[T]) -> Buffer {
        let mut buffer = Buffer::zeroed(size_of_val(values));
        buffer.as_mut_slice::<T>()[..values.len()].copy_from_slice(values);
        buffer
    }

    /// Bytes of a piece of memory that several buffers share, besides theirs.
    pub const PIECE_HEAD: usize = ALIGNMENT;

    /// Zeroed buffers of at least so many bytes each, contiguous in one piece of memory, which is freed with
    /// the last of them.
    ///
    /// # Panics
    /// If they have 256 GiB or more together.
    pub fn side_by_side(capacities: &[usize]) -> Vec<Buffer> {
        let lines_for = |capacity: usize| Buffer::bytes_for(capacity) / ALIGNMENT;
        let lines = capacities.iter().map(|&capacity| lines_for(capacity)).sum::<usize>() + 1;
        let lines = u32::try_from(lines).expect("a piece has fewer than 2^32 cache lines");
        if capacities.is_empty() {
            return Vec::new();
        }
        let start = Piece::allocate(capacities.len(), lines);
        let mut at = 1;
        let part = |&capacity: &usize| {
            let lines = lines_for(capacity) as u32;
            // SAFETY: the parts are consecutive within the lines that were allocated.
            let bytes = unsafe { start.add(at as usize * ALIGNMENT) };
            let buffer = Buffer { bytes, lines, piece: at };
            at += lines;
            buffer
        };
        capacities.iter().map(part).collect()
    }

    /// Moves some buffers to one piece of memory, contiguous in their order, which is freed with the last of
    /// them.
    // PERF: sequential reads are twice as fast, as the processor prefetches, which it does not if each buffer
    // is a kilobyte somewhere else (docs/design/compression.md).
    pub fn put_together(buffers: &mut [&mut Buffer]) {
        let lines = buffers.iter().try_fold(1u32, |lines, buffer| lines.checked_add(buffer.lines));
        let Some(lines) = lines.filter(|_| buffers.len() > 1) else { return };
        let start = Piece::allocate(buffers.len(), lines);
        let mut at = 1;
        for buffer in buffers {
            // SAFETY: the parts are consecutive within the lines that were allocated.
            let bytes = unsafe { start.add(at as usize * ALIGNMENT) };
            let mut moved = Buffer { bytes, lines: buffer.lines, piece: at };
            moved.as_mut_slice::<u8>().copy_from_slice(buffer.as_slice::<u8>());
            at += buffer.lines;
            **buffer = moved;
        }
    }

    /// The values of some buffers as one slice, if they are contiguous, as a single one always is.
    pub fn joined<T: Native>(buffers: &[Buffer]) -> Option<&[T]> {
        let (first, others) = buffers.split_first()?;
        let mut lines = first.lines as usize;
        for buffer in others {
            let is_next = first.piece != 0
                && buffer.piece as usize == first.piece as usize + lines
                && buffer.bytes == first.bytes.wrapping_add(lines * ALIGNMENT);
            if !is_next {
                return None;
            }
            lines += buffer.lines as usize;
        }
        // SAFETY: as in `as_slice`. The lines are parts of one piece, whose memory begins at one address, and
        // these buffers, which are borrowed, have all of them.
        Some(unsafe {
            std::slice::from_raw_parts(first.bytes.cast::<T>(), lines * ALIGNMENT / size_of::<T>())
        })
    }

    /// Bytes that this buffer holds.
    pub fn capacity(&self) -> usize {
        self.lines as usize * ALIGNMENT
    }

    /// The first byte, for writers of a buffer that others read: the storage's slots.
    pub fn as_ptr(&self) -> *mut u8 {
        self.bytes
    }

    /// The whole buffer as values of `T`.
    pub fn as_slice<T: Native>(&self) -> &[T] {
        // SAFETY: the bytes are initialized, aligned to 64 (more than any Native needs) and valid for any bit
        // pattern because T is Native (a sealed trait); the length is rounded down.
        unsafe { std::slice::from_raw_parts(self.bytes.cast::<T>(), self.capacity() / size_of::<T>()) }
    }

    /// The whole buffer as values of `T`, to be written.
    pub fn as_mut_slice<T: Native>(&mut self) -> &mut [T] {
        // SAFETY: as in `as_slice`; `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.bytes.cast::<T>(), self.capacity() / size_of::<T>()) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.piece == 0 {
            // SAFETY: allocated in `zeroed` with as many lines.
            return unsafe { free(self.bytes, self.lines) };
        }
        // SAFETY: the maker of the piece has put the header there, and this buffer is one of those that keep
        // it.
        unsafe {
            let start = self.bytes.sub(self.piece as usize * ALIGNMENT);
            let piece = start.cast::<Piece>();
            if (*piece).buffers.fetch_sub(1, Ordering::Release) == 1 {
                // All accesses of others to their parts happened before.
                fence(Ordering::Acquire);
                free(start, (*piece).lines);
            }
        }
    }
}

fn layout(lines: u32) -> Layout {
    let bytes = lines as usize * ALIGNMENT;
    Layout::from_size_align(bytes, ALIGNMENT).expect("a buffer is smaller than the address space")
}

/// Zeroed memory of so many cache lines, at least one.
fn allocate(lines: u32) -> *mut u8 {
    assert!(lines > 0);
    pages::allocate(layout(lines))
}

/// # Safety
/// [`allocate`] returned these bytes for as many lines, and nobody uses them any more.
unsafe fn free(bytes: *mut u8, lines: u32) {
    // SAFETY: the caller's promise.
    unsafe { pages::free(bytes, layout(lines)) }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer({} bytes)", self.capacity())
    }
}

/// The buffer in `slot` for writing: the existing one if nobody else holds it and it is large enough,
/// otherwise a new one. In a warm pipeline it is always the existing one.
pub fn unique(slot: &mut Arc<Buffer>, capacity: usize) -> &mut Buffer {
    // PERF: this is a load, where `get_mut` needs an exchange. There are no weak references.
    if Arc::strong_count(slot) > 1 || slot.capacity() < capacity {
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
    fn values_are_written_as_those_of_a_type_as_wide() {
        let mut numbers = [0f64, 2.0];
        seen_as_mut::<f64, u64>(&mut numbers)[0] = 1.5f64.to_bits();
        assert_eq!(numbers, [1.5, 2.0]);
        let mut bytes = [-1i8; 3];
        seen_as_mut::<i8, u8>(&mut bytes)[1..].fill(7);
        assert_eq!(bytes, [-1, 7, 7]);
    }

    #[test]
    #[should_panic]
    fn values_of_another_width_are_not() {
        seen_as_mut::<u32, u64>(&mut [0, 0]);
    }

    #[test]
    fn buffers_side_by_side_stay_what_they_were() {
        let values = |n: usize| (0..n as u64 * 5).collect::<Vec<u64>>();
        let mut buffers: Vec<Buffer> = (0..40).map(|n| Buffer::from_slice(&values(n))).collect();
        let [some, others] =
            [0..25, 25..40].map(|range| buffers.drain(..range.len()).collect::<Vec<Buffer>>());
        let mut all = [some, others].map(|mut part| {
            Buffer::put_together(&mut part.iter_mut().collect::<Vec<_>>());
            part
        });
        for part in &all {
            let ends = part.iter().map(|buffer| buffer.as_ptr().wrapping_add(buffer.capacity()));
            assert!(ends.zip(&part[1..]).all(|(end, next)| end == next.as_ptr()));
        }
        // Again, with parts of two pieces; then they are dropped in an arbitrary order, on two threads.
        let mut mixed: Vec<Buffer> = all.iter_mut().flat_map(|part| part.drain(5..10)).collect();
        Buffer::put_together(&mut mixed.iter_mut().collect::<Vec<_>>());
        let check = |buffer: &Buffer, n: usize| assert_eq!(buffer.as_slice::<u64>()[..n * 5], values(n));
        mixed.iter().zip((5..10).chain(30..35)).for_each(|(buffer, n)| check(buffer, n));
        let [mut some, others] = all;
        let ends = std::thread::spawn(move || drop(mixed));
        others.iter().zip((25..30).chain(35..40)).for_each(|(buffer, n)| check(buffer, n));
        while some.len() > 1 {
            drop(some.swap_remove(some.len() / 2));
            check(&some[0], 0);
        }
        some[0].as_mut_slice::<u64>()[0] = 7;
        drop(others);
        assert_eq!(some[0].as_slice::<u64>()[0], 7);
        ends.join().unwrap();
        Buffer::put_together(&mut []);
        let beside = Buffer::side_by_side(&[64, 1, 3 << 20]);
        assert_eq!(beside[1].as_ptr(), beside[0].as_ptr().wrapping_add(64));
        assert_eq!(beside[2].as_ptr(), beside[1].as_ptr().wrapping_add(64));
        assert!(beside.into_iter().skip(2).all(|rest| rest.as_slice::<u64>().iter().all(|&word| word == 0)));
        assert!(Buffer::side_by_side(&[]).is_empty());
        let mut three = Buffer::side_by_side(&[128, 64, 64]);
        three.iter_mut().zip(1u64..).for_each(|(buffer, value)| buffer.as_mut_slice().fill(value));
        let is_of = |buffers: &[Buffer], counts: &[(u64, usize)]| {
            let expected: Vec<u64> = counts.iter().flat_map(|&(value, count)| vec![value; count]).collect();
            Buffer::joined::<u64>(buffers) == Some(&expected[..])
        };
        assert!(is_of(&three, &[(1, 16), (2, 8), (3, 8)]) && is_of(&three[1..], &[(2, 8), (3, 8)]));
        three[1] = Buffer::from_slice(&[7u64; 8]);
        assert!(is_of(&three[1..2], &[(7, 8)]) && Buffer::joined::<u64>(&three[..2]).is_none());
        assert!(Buffer::joined::<u64>(&three[1..]).is_none() && Buffer::joined::<u64>(&[]).is_none());
        three.remove(1);
        assert!(Buffer::joined::<u64>(&three).is_none());
        Buffer::put_together(&mut [&mut some[0]]);
        assert_eq!(some[0].capacity(), 64);
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
