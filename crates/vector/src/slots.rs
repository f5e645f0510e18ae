//! Slots: a buffer that several threads write to at once, each value to a place of its own.
//!
//! If the place of every value is known beforehand, writers need no ordering. A store is one atomic
//! instruction without ordering, on x86-64 an ordinary one; 16 bytes take two. While slots are written, a
//! place may be read only by the thread that writes it; others read the finished buffer.
//!
//! This is a leaf module with `unsafe`: values are stored and loaded through the buffer's address. Its twin
//! is the test below, which writes to a vector.
#![allow(unsafe_code)]

use crate::buffer::{Buffer, Native};
use crate::buffers::Buffers;
use crate::relaxed;
use std::sync::atomic::{AtomicU64, Ordering};

/// See the module.
pub struct Slots {
    parts: Buffers,
    /// Where the first part begins, and the total bytes of the parts, which are contiguous.
    start: *mut u8,
    bytes: usize,
    /// Bytes of a value: all writers write values of one width.
    width: usize,
}

// SAFETY: the address is that of the first buffer, which is Send and Sync and stays where it is, and all
// accesses to it are atomic.
unsafe impl Send for Slots {}
// SAFETY: as above.
unsafe impl Sync for Slots {}

impl Slots {
    /// Zeroed slots for `count` values of `width` bytes.
    ///
    /// # Panics
    /// As [`Buffer::zeroed`].
    pub fn zeroed(count: usize, width: usize) -> Slots {
        Slots::over(vec![Buffer::zeroed(count * width)], width)
    }

    /// Zeroed slots for so many values in each part, and in total; values are numbered across parts. Each
    /// part but the last has whole cache lines.
    ///
    /// # Panics
    /// As [`Buffer::side_by_side`].
    pub fn in_parts(counts: &[usize], width: usize) -> Slots {
        let capacities: Vec<usize> = counts.iter().map(|count| count * width).collect();
        Slots::over(Buffer::side_by_side(&capacities), width)
    }

    fn over(parts: Vec<Buffer>, width: usize) -> Slots {
        let bytes = Buffer::joined::<u8>(&parts).map_or(0, <[u8]>::len);
        let start = parts.first().map_or(std::ptr::null_mut(), Buffer::as_ptr);
        Slots { parts: parts.into(), start, bytes, width }
    }

    /// Writes `value` as the value number `at`. If two threads write to one place, one of them writes last;
    /// with 16 bytes, each half may be from a different one.
    ///
    /// # Panics
    /// If the slots end before, or are for values of another width.
    #[inline(always)]
    pub fn put<T: Native>(&self, at: usize, value: T) {
        assert!(size_of::<T>() == self.width && at < self.bytes / size_of::<T>());
        let to = self.start.cast::<T>().wrapping_add(at);
        // SAFETY: the value is within the buffers, whose start is aligned to 64 bytes, and nobody reads it or
        // writes to it but by this function, `get`, and those for bits: the buffers are private, and atomic
        // accesses of one width do not race with each other.
        unsafe { relaxed::store(to, value) }
    }

    /// The value number `at`: what this thread has written there, or other threads before a synchronization
    /// with them. While another thread writes, either value; with 16 bytes, each half may be either.
    ///
    /// # Panics
    /// As [`Slots::put`].
    #[inline(always)]
    pub fn get<T: Native>(&self, at: usize) -> T {
        assert!(size_of::<T>() == self.width && at < self.bytes / size_of::<T>());
        let from = self.start.cast::<T>().wrapping_add(at);
        // SAFETY: as in `put`.
        unsafe { relaxed::load(from) }
    }

    /// Sets a bit to zero, of slots for words of 64 bits.
    ///
    /// # Panics
    /// As [`Slots::put`].
    pub fn clear_bit(&self, bit: usize) {
        assert!(self.width == 8 && bit / 8 < self.bytes);
        // SAFETY: as in `put`.
        let word = unsafe { &*self.start.cast::<AtomicU64>().add(bit / 64) };
        word.fetch_and(!(1 << (bit % 64)), Ordering::Relaxed);
    }

    /// True if a bit is one, of slots for words of 64 bits.
    ///
    /// # Panics
    /// As [`Slots::put`].
    pub fn is_set(&self, bit: usize) -> bool {
        self.get::<u64>(bit / 64) >> (bit % 64) & 1 != 0
    }

    /// Sets a bit to one, of slots for words of 64 bits. Returns true to one of the threads that set it, if
    /// it was zero. `is_shared`: others may write to the same word meanwhile.
    ///
    /// # Panics
    /// As [`Slots::put`].
    #[inline(always)]
    pub fn set_bit(&self, bit: usize, is_shared: bool) -> bool {
        assert!(self.width == 8 && bit / 8 < self.bytes);
        // SAFETY: as in `put`.
        let word = unsafe { &*self.start.cast::<AtomicU64>().add(bit / 64) };
        let (old, bit) = (word.load(Ordering::Relaxed), 1 << (bit % 64));
        // PERF: an atomic read-modify-write takes three times as long as a load and a store.
        old & bit == 0
            && match is_shared {
                true => word.fetch_or(bit, Ordering::Relaxed) & bit == 0,
                false => {
                    word.store(old | bit, Ordering::Relaxed);
                    true
                }
            }
    }

    /// Bytes of a value.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Bytes that these slots hold.
    pub fn capacity(&self) -> usize {
        self.bytes
    }

    /// The values written, part by part.
    pub fn into_buffers(self) -> Buffers {
        self.parts
    }

    /// The values written to slots that are in one part.
    ///
    /// # Panics
    /// If they are in several, or in none.
    pub fn into_buffer(self) -> Buffer {
        assert_eq!(self.parts.len(), 1, "slots in one part");
        self.parts.into_iter().next().expect("there is one")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Interval;
    use crate::{StringView, string::INLINE_BYTES};

    fn read_back<T: Native>(value: impl Fn(usize) -> T + Sync) {
        let count = 1000;
        let slots = Slots::zeroed(count, size_of::<T>());
        std::thread::scope(|scope| {
            for writer in 0..3 {
                let (slots, value) = (&slots, &value);
                scope.spawn(move || {
                    (0..count).filter(|i| i % 3 == writer).for_each(|i| slots.put(i, value(i)))
                });
            }
        });
        let expected: Vec<T> = (0..count).map(&value).collect();
        assert!(slots.capacity() >= count * size_of::<T>());
        assert!((0..count).all(|i| slots.get::<T>(i) == expected[i]));
        // In three parts, the same.
        let in_parts = Slots::in_parts(&[384, 384, 232], size_of::<T>());
        (0..count).for_each(|i| in_parts.put(i, value(i)));
        assert_eq!(in_parts.into_buffers().joined::<T>(384).unwrap()[..count], expected);
        assert_eq!(slots.into_buffer().as_slice::<T>()[..count], expected);
    }

    #[test]
    fn each_place_has_what_its_thread_has_written() {
        read_back(|i| i as u8);
        read_back(|i| i as i16 - 500);
        read_back(|i| i as f32 / 8.0);
        read_back(|i| i as u64 * 0x1234_5678_9abc);
        read_back(|i| (i as i128 - 500) << 60);
        read_back(|i| StringView::inline(&vec![b'a' + (i % 26) as u8; i % (INLINE_BYTES + 1)]));
        read_back(|i| Interval { months: i as i32, ..Interval::default() });
    }

    #[test]
    fn bits_that_are_not_cleared_stay() {
        let slots = Slots::zeroed(8, 8);
        (0..8).for_each(|word| slots.put(word, u64::MAX));
        [0, 63, 64, 511].into_iter().for_each(|bit| slots.clear_bit(bit));
        let expected =
            [u64::MAX >> 1 & !1, !1, u64::MAX, u64::MAX, u64::MAX, u64::MAX, u64::MAX, u64::MAX >> 1];
        assert_eq!(slots.into_buffer().as_slice::<u64>(), expected);
    }

    #[test]
    fn a_bit_is_set_by_one_thread() {
        let slots = Slots::zeroed(100, 8);
        let new = |is_shared| (0..6400).filter(|bit| bit % 3 != 0 && slots.set_bit(*bit, is_shared)).count();
        let set: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..3).map(|_| scope.spawn(|| new(true))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(set, (0..6400).filter(|bit| bit % 3 != 0).count());
        assert_eq!(
            (slots.set_bit(1, false), slots.set_bit(3, false), slots.set_bit(3, true)),
            (false, true, false)
        );
        assert_eq!([0, 1, 3, 63, 64].map(|bit| slots.is_set(bit)), [false, true, true, false, true]);
        let words = slots.into_buffer();
        let is_set = |bit: &usize| words.as_slice::<u64>()[bit / 64] >> (bit % 64) & 1 == 1;
        assert!((0..6400).all(|bit| is_set(&bit) == (bit % 3 != 0 || bit == 3)));
    }

    #[test]
    #[should_panic(expected = "assertion")]
    fn values_have_the_width_that_was_said() {
        Slots::zeroed(8, 8).put(0, 0u32);
    }

    #[test]
    #[should_panic(expected = "assertion")]
    fn nothing_is_written_behind_the_end() {
        Slots::zeroed(8, 8).put(8, 0u64);
    }
}
