//! Strings of a block, concatenated, and views that point at them.
//!
//! Views are made without copying a byte: they point into the block, which never changes and which the
//! snapshot of the running statement keeps alive (see `entasis_vector::string` on stable strings).
//!
//! This is a leaf module with `unsafe`: it makes those views. The safe twin is [`StringBytes::get`].
#![allow(unsafe_code)]

use entasis_vector::StringView;
use std::ops::Range;

/// The end of each string in the bytes.
#[derive(Debug, Clone)]
enum Ends {
    U16(Box<[u16]>),
    U32(Box<[u32]>),
}

/// Up to 1024 strings, one after the other.
#[derive(Debug, Clone)]
pub(crate) struct StringBytes {
    ends: Ends,
    bytes: Box<[u8]>,
}

impl StringBytes {
    /// Strings whose bytes are in `bytes` and end at `ends`, which ascend to its length.
    pub(crate) fn new(ends: &[u32], bytes: &[u8]) -> StringBytes {
        StringBytes::of(ends, bytes.into())
    }

    /// The same, of bytes that they keep.
    pub(crate) fn of(ends: &[u32], bytes: Box<[u8]>) -> StringBytes {
        debug_assert!(ends.is_sorted() && ends.last().is_none_or(|&end| end as usize == bytes.len()));
        let ends = if u16::try_from(bytes.len()).is_ok() {
            Ends::U16(ends.iter().map(|&end| end as u16).collect())
        } else {
            Ends::U32(ends.into())
        };
        StringBytes { ends, bytes }
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
            + match &self.ends {
                Ends::U16(ends) => ends.len() * 2,
                Ends::U32(ends) => ends.len() * 4,
            }
    }

    /// The end of each string, and all of their bytes.
    pub(crate) fn parts(&self) -> (Vec<u32>, &[u8]) {
        ((0..self.len()).map(|slot| self.end(slot) as u32).collect(), &self.bytes)
    }

    /// The number of strings.
    pub(crate) fn len(&self) -> usize {
        match &self.ends {
            Ends::U16(ends) => ends.len(),
            Ends::U32(ends) => ends.len(),
        }
    }

    /// Where the string in `slot` begins among the bytes.
    #[inline]
    pub(crate) fn start(&self, slot: usize) -> usize {
        if slot == 0 { 0 } else { self.end(slot - 1) }
    }

    /// Where the string in `slot` ends among the bytes.
    #[inline]
    pub(crate) fn end(&self, slot: usize) -> usize {
        match &self.ends {
            Ends::U16(ends) => ends[slot] as usize,
            Ends::U32(ends) => ends[slot] as usize,
        }
    }

    /// The string in `slot`.
    pub(crate) fn get(&self, slot: usize) -> &[u8] {
        &self.bytes[self.start(slot)..self.end(slot)]
    }

    /// The bytes of the strings in some slots, one after the other.
    pub(crate) fn bytes_of(&self, slots: Range<usize>) -> &[u8] {
        &self.bytes[self.start(slots.start)..self.start(slots.end)]
    }

    /// True if each of them is UTF-8: if all of them together are, and none ends within a character.
    // PERF: most texts are ASCII, which is seen in vectors; short strings one by one have no use of them.
    pub(crate) fn are_utf8(&self) -> bool {
        let bytes = self.bytes_of(0..self.len());
        let are_whole = |text: &str| (0..self.len()).all(|slot| text.is_char_boundary(self.end(slot)));
        bytes.is_ascii() || std::str::from_utf8(bytes).is_ok_and(are_whole)
    }

    /// A view of the string in `slot`.
    #[inline]
    pub(crate) fn view(&self, slot: usize) -> StringView {
        pinned_view(self.get(slot))
    }

    /// Writes views of the strings from slot `from` on to all of `out`.
    pub(crate) fn views(&self, from: usize, out: &mut [StringView]) {
        let start = self.start(from);
        match &self.ends {
            Ends::U16(ends) => self.run(start, &ends[from..], out),
            Ends::U32(ends) => self.run(start, &ends[from..], out),
        }
    }

    fn run<E: Copy + Into<u32>>(&self, mut start: usize, ends: &[E], out: &mut [StringView]) {
        for (o, &end) in out.iter_mut().zip(ends) {
            let end = end.into() as usize;
            *o = pinned_view(&self.bytes[start..end]);
            start = end;
        }
    }
}

/// A view of bytes that an immutable block or dictionary owns.
#[inline(always)]
pub(crate) fn pinned_view(bytes: &[u8]) -> StringView {
    // SAFETY: only called on bytes that a `Block` owns in a box or an `Arc<str>`. They never move or change,
    // and the decoder of a block has pinned the table version that it belongs to until the end of the
    // statement. PERF: copying the bytes instead costs 3x the time of a scan of a text column, and its memory
    // bandwidth again.
    unsafe { StringView::new(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_utf8_if_each_of_them_is() {
        let pieces: [&[u8]; 8] =
            [b"a", b"", "ñ".as_bytes(), "日".as_bytes(), b"\xC3", b"\xB1", b"\xFF", b"zz"];
        let (mut right, mut wrong) = (0, 0);
        for number in 0..pieces.len().pow(4) {
            let strings = [1, 8, 64, 512].map(|place| pieces[number / place % pieces.len()]);
            let ends: Vec<u32> = (1..=4).map(|count| strings[..count].concat().len() as u32).collect();
            let are_utf8 = strings.iter().all(|string| std::str::from_utf8(string).is_ok());
            assert_eq!(StringBytes::new(&ends, &strings.concat()).are_utf8(), are_utf8, "{strings:?}");
            *(if are_utf8 { &mut right } else { &mut wrong }) += 1;
        }
        assert!(right > 100 && wrong > 100);
    }

    #[test]
    fn views_show_the_strings() {
        for size in [3, 100] {
            let texts: Vec<String> = (0..1000).map(|i| format!("{i}").repeat(i % size)).collect();
            let mut ends = Vec::new();
            let mut bytes = Vec::new();
            for text in &texts {
                bytes.extend_from_slice(text.as_bytes());
                ends.push(bytes.len() as u32);
            }
            let block = StringBytes::new(&ends, &bytes);
            let mut views = vec![StringView::default(); 990];
            block.views(10, &mut views);
            for (i, view) in views.iter().enumerate() {
                assert_eq!(view.as_bytes(), texts[i + 10].as_bytes());
                assert_eq!(view.as_bytes(), block.get(i + 10));
                assert_eq!(block.view(i + 10), *view);
            }
        }
    }
}
