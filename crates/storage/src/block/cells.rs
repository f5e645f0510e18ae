//! Slots of a buffer that one writer may store to while readers load others.
//!
//! So may a live slot, of a block that no snapshot shows: readers of single rows load it under a latch
//! ([`crate::tree::Latch`]), which tells them whether it was written meanwhile.
//!
//! A ghost slot of a block that snapshots share is written in place: no live bitmap of theirs shows it, so
//! whatever a reader finds there is masked before it can matter. Still, both touch the same memory at once,
//! hence
//!
//! 1. the writer stores with relaxed atomics ([`store`]), never through a reference;
//! 2. readers form no reference to the slots either. There are three ways to read: [`load`], one slot, dead
//!    or live, with a relaxed atomic ([`map_each`]: several, one by one); [`fold`], slots that are all live,
//!    which nobody writes; and [`map_into`], neighbouring slots, dead ones among them, in vectors, as the
//!    kernels of `search` do.
//!
//! The last is a data race in the language's memory model, which knows no vector of atomics. Decision 27 says
//! what is relied on instead, why a stale or torn value cannot be seen, and what the alternatives would cost
//! (`docs/decisions/0027-reading-beside-a-writer.md`). Under Miri, [`map_into`] loads with relaxed atomics,
//! which is its slow twin; `make races` runs it as it is shipped, under ThreadSanitizer.
//!
//! Every bit pattern of a [`Native`] is a value. The one exception is a string view, which may point nowhere:
//! views of dead slots are never looked through (see `views`).
//!
//! This is a leaf module with `unsafe`: the loads and the stores.
#![allow(unsafe_code)]

use entasis_vector::simd::widest;
use entasis_vector::{Buffer, Native, relaxed};
use std::marker::PhantomData;

/// Slots of a buffer that outlives the borrow, or of an array of one's own.
#[derive(Clone, Copy)]
pub(crate) struct Slots<'a> {
    at: *const u8,
    bytes: usize,
    of: PhantomData<&'a [u8]>,
}

impl<'a> From<&'a Buffer> for Slots<'a> {
    fn from(buffer: &'a Buffer) -> Slots<'a> {
        Slots { at: buffer.as_ptr(), bytes: buffer.capacity(), of: PhantomData }
    }
}

impl<'a, T: Native> From<&'a [T]> for Slots<'a> {
    fn from(values: &'a [T]) -> Slots<'a> {
        Slots { at: values.as_ptr().cast(), bytes: size_of_val(values), of: PhantomData }
    }
}

impl Slots<'_> {
    /// Slots of so many bytes, from an address on.
    ///
    /// # Safety
    /// They are part of a buffer that is not freed while they are borrowed.
    pub(crate) unsafe fn at<'a>(at: *const u8, bytes: usize) -> Slots<'a> {
        Slots { at, bytes, of: PhantomData }
    }

    /// Where they begin.
    pub(crate) fn as_ptr(self) -> *const u8 {
        self.at
    }

    /// Their bytes.
    pub(crate) fn bytes(self) -> usize {
        self.bytes
    }

    /// The number of slots of `T`.
    fn count<T>(self) -> usize {
        self.bytes / size_of::<T>()
    }
}

/// The value in `slot`.
#[inline(always)]
pub(crate) fn load<'a, T: Native>(slots: impl Into<Slots<'a>>, slot: usize) -> T {
    let slots = slots.into();
    assert!(slot < slots.count::<T>());
    // SAFETY: the slot lies within the buffer, which is aligned to 64 bytes, or within an array of `T`. While
    // others can see it, it is written by `store` alone.
    unsafe { relaxed::load(slots.at.cast::<T>().add(slot)) }
}

/// Writes `value` to `slot`, which is dead in every version that another thread can see, or whose slice the
/// caller has latched, or of a block that no other thread can see.
#[inline(always)]
pub(crate) fn store<T: Native>(buffer: &Buffer, slot: usize, value: T) {
    assert!(slot < Slots::from(buffer).count::<T>());
    // SAFETY: the slot lies within the buffer, whose pointer is good for writing (it owns the bytes), and is
    // aligned to 64 bytes. No reference to slots that are written exists: rules 1 and 2.
    unsafe { relaxed::store(buffer.as_ptr().cast::<T>().add(slot), value) }
}

/// Writes what `map` makes of the values from slot `from` on to all of `out`. `map` is arithmetic: it neither
/// branches on a value nor uses it as an index, as the slot may be written meanwhile.
#[inline(always)]
pub(crate) fn map_into<'a, T: Native, U>(
    slots: impl Into<Slots<'a>>,
    from: usize,
    out: &mut [U],
    map: impl Fn(T) -> U,
) {
    let slots = slots.into();
    assert!(from + out.len() <= slots.count::<T>());
    // SAFETY: the slots from `from` on, as many as `out` has, lie within the buffer. PERF: a loop over a raw
    // pointer is vectorized as one over a slice is; atomic loads are not. What `map` captures must be its
    // own, or each store might change it: 1.8 values a ns instead of 10.
    widest(move || unsafe {
        let first = slots.at.cast::<T>().add(from);
        for (i, o) in out.iter_mut().enumerate() {
            *o = map(read_beside_writer(first.add(i)));
        }
    });
}

/// As [`map_into`], one value at a time: `map` may branch on it and use it as an index.
#[inline(always)]
pub(crate) fn map_each<'a, T: Native, U>(
    slots: impl Into<Slots<'a>>,
    from: usize,
    out: &mut [U],
    map: impl Fn(T) -> U,
) {
    let slots = slots.into();
    out.iter_mut().enumerate().for_each(|(i, o)| *o = map(load(slots, from + i)));
}

/// Folds the values of `count` slots from `from` on, which are live in a version that the caller has pinned,
/// or of a block that no other thread can see: so no thread writes them.
#[inline(always)]
pub(crate) fn fold<'a, T: Native, A>(
    slots: impl Into<Slots<'a>>,
    from: usize,
    count: usize,
    start: A,
    step: impl Fn(A, T) -> A,
) -> A {
    let slots = slots.into();
    assert!(from + count <= slots.count::<T>());
    // SAFETY: `count` slots from `from` on lie within the buffer, and nobody writes them.
    // PERF: as in `map_into`.
    widest(|| unsafe {
        let first = slots.at.cast::<T>().add(from);
        (0..count).fold(start, |folded, i| step(folded, first.add(i).read()))
    })
}

/// A copy of the first `slots` slots, in a buffer with room for `capacity`.
pub(crate) fn copy<T: Native>(buffer: &Buffer, slots: usize, capacity: usize) -> Buffer {
    let mut copy = Buffer::zeroed(capacity * size_of::<T>());
    map_into::<T, T>(buffer, 0, &mut copy.as_mut_slice::<T>()[..slots], |value| value);
    copy
}

/// The value that `at` points to, or any other if a [`store`] to it is under way.
///
/// # Safety
/// `at` points into a live buffer, and is aligned.
#[inline(always)]
unsafe fn read_beside_writer<T: Native>(at: *const T) -> T {
    if cfg!(miri) {
        // SAFETY: the caller's promise; slots are written by `store` alone while others can see them.
        return unsafe { relaxed::load(at) };
    }
    // SAFETY: the caller's promise; every bit pattern is a value of a Native. A plain load that meets a
    // `store` is a race in the language's memory model, and a load of either value to the compiler and the
    // machines that we have: decision 27.
    unsafe { at.read() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use entasis_vector::Interval;

    #[test]
    fn what_is_stored_is_loaded() {
        fn check<T: Native>(values: &[T]) {
            let buffer = Buffer::zeroed(size_of_val(values));
            for (slot, &value) in values.iter().enumerate() {
                store(&buffer, slot, value);
            }
            let mut out = vec![T::default(); values.len() - 1];
            map_into::<T, T>(&buffer, 1, &mut out, |value| value);
            assert_eq!(out, values[1..]);
            assert_eq!(load::<T>(&copy::<T>(&buffer, values.len(), 100), 0), values[0]);
        }
        check(&[1u8, 2, 255]);
        check(&[-1i16, 2, 3]);
        check(&[0.5f32, 2.0]);
        check(&[u64::MAX, 7]);
        check(&[i128::MIN, 7]);
        check(&[Interval { months: 1, days: 2, micros: 3 }, Interval::default()]);
    }
}
