//! A list of buffers that hold the parts of one list of values.
//!
//! A random read has to find the part of its value first, unless all parts are
//! [contiguous](Buffer::side_by_side) and equally long. Whether they are is determined once, when they are
//! put together, and forgotten as soon as a part may change: so the time of [`Buffers::joined`] does not
//! depend on the number of parts.
//!
//! This is a leaf module with `unsafe`: a slice over several buffers. Its twin is the test below, which reads
//! part by part.
#![allow(unsafe_code)]

use crate::buffer::{Buffer, Native};
use std::ops::{Deref, DerefMut};

/// See the module. For reading they are a slice of buffers.
#[derive(Debug, Default)]
pub struct Buffers {
    parts: Vec<Buffer>,
    /// The total bytes, if the parts are contiguous and all but the last are equally long; 0: unknown.
    joined_bytes: usize,
}

impl From<Vec<Buffer>> for Buffers {
    fn from(parts: Vec<Buffer>) -> Buffers {
        let all_but_last = &parts[..parts.len().saturating_sub(1)];
        let are_even = all_but_last.iter().all(|part| part.capacity() == parts[0].capacity());
        let joined = if are_even { Buffer::joined::<u8>(&parts) } else { None };
        Buffers { joined_bytes: joined.map_or(0, <[u8]>::len), parts }
    }
}

impl Buffers {
    /// The values of all parts as one slice, if the parts are contiguous and each but the last is known to
    /// have exactly `part` values.
    #[inline(always)]
    pub fn joined<T: Native>(&self, part: usize) -> Option<&[T]> {
        let first = self.parts.first()?;
        let are_even = self.parts.len() == 1 || first.capacity() == part * size_of::<T>();
        (self.joined_bytes > 0 && are_even).then(|| {
            // SAFETY: as in `Buffer::joined`, which has given as many bytes from there. The parts are the
            // same since, and borrowed: access that may change one makes them unknown.
            unsafe {
                std::slice::from_raw_parts(first.as_ptr().cast::<T>(), self.joined_bytes / size_of::<T>())
            }
        })
    }

    /// Adds a part.
    pub fn push(&mut self, part: Buffer) {
        self.parts_mut().push(part);
    }

    /// Adds parts until there are so many.
    pub fn resize_with(&mut self, count: usize, part: impl FnMut() -> Buffer) {
        self.parts_mut().resize_with(count, part);
    }

    /// The parts, for adding, removing or replacing some.
    fn parts_mut(&mut self) -> &mut Vec<Buffer> {
        self.joined_bytes = 0;
        &mut self.parts
    }
}

impl Deref for Buffers {
    type Target = [Buffer];

    #[inline(always)]
    fn deref(&self) -> &[Buffer] {
        &self.parts
    }
}

impl DerefMut for Buffers {
    fn deref_mut(&mut self) -> &mut [Buffer] {
        self.parts_mut()
    }
}

impl Extend<Buffer> for Buffers {
    fn extend<I: IntoIterator<Item = Buffer>>(&mut self, parts: I) {
        self.parts_mut().extend(parts);
    }
}

impl IntoIterator for Buffers {
    type Item = Buffer;
    type IntoIter = std::vec::IntoIter<Buffer>;

    fn into_iter(self) -> Self::IntoIter {
        self.parts.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Contiguous parts of so many values, which count up.
    fn parts(counts: &[usize]) -> Vec<Buffer> {
        let mut parts = Buffer::side_by_side(&counts.iter().map(|count| count * 8).collect::<Vec<_>>());
        let mut next = 0..;
        parts.iter_mut().for_each(|part| {
            part.as_mut_slice::<u64>().iter_mut().zip(&mut next).for_each(|(to, i)| *to = i)
        });
        parts
    }

    #[test]
    fn even_parts_that_stand_side_by_side_are_one_slice() {
        for counts in [&[8][..], &[24], &[16, 16], &[16, 16, 8], &[16, 16, 40]] {
            let buffers = Buffers::from(parts(counts));
            let one_by_one: Vec<u64> =
                buffers.iter().flat_map(|part| part.as_slice::<u64>().to_vec()).collect();
            assert_eq!(buffers.joined::<u64>(16), Some(&one_by_one[..]), "{counts:?}");
            assert_eq!(buffers.joined::<u64>(8).is_some(), counts.len() == 1);
            assert_eq!(buffers.joined::<u32>(32).map(<[u32]>::len), Some(2 * one_by_one.len()));
        }
        assert!(Buffers::from(parts(&[16, 8, 16])).joined::<u64>(16).is_none());
        assert!(Buffers::from(Vec::new()).joined::<u64>(16).is_none());
        let apart = vec![Buffer::zeroed(128), Buffer::zeroed(128), Buffer::zeroed(128)];
        assert!(Buffers::from(apart).joined::<u64>(16).is_none());
    }

    #[test]
    fn who_may_change_parts_separates_them() {
        let changes: [fn(&mut Buffers); 4] = [
            |buffers| buffers[1] = Buffer::zeroed(128),
            |buffers| buffers.push(Buffer::zeroed(128)),
            |buffers| buffers.extend([Buffer::zeroed(128)]),
            |buffers| buffers.resize_with(4, || Buffer::zeroed(128)),
        ];
        for change in changes {
            let mut buffers = Buffers::from(parts(&[16, 16, 16]));
            assert!(buffers.joined::<u64>(16).is_some());
            change(&mut buffers);
            assert!(buffers.joined::<u64>(16).is_none());
            assert!(Buffers::from(buffers.into_iter().collect::<Vec<_>>()).joined::<u64>(16).is_none());
        }
    }
}
