//! Strings in vectors: 16-byte views, and the heaps that hold the long ones.
//!
//! ```text
//! length ≤ 12:  | length u32 | up to 12 bytes, zero padded        |
//! length > 12:  | length u32 | first 4 bytes | pointer to all bytes |
//! ```
//! Two views differ already in their first eight bytes unless length and first four characters agree, so most
//! comparisons never follow the pointer (Neumann and Freitag, *Umbra*, CIDR 2020, section 3.1).
//!
//! **Who keeps the bytes alive.** A view is a plain copy, it owns nothing. Bytes are either *stable*: they
//! belong to a snapshot or dictionary that the running statement has pinned; or *transient*: they belong to a
//! heap that its owner resets for the next chunk. A vector says which
//! ([`crate::Vector::strings_are_stable`]). An operator that keeps a view beyond the push call which brought
//! it copies transient bytes into its own [`StringHeap`] first.
//!
//! This is a leaf module with `unsafe`: it follows the pointers.
#![allow(unsafe_code)]

use crate::Result;
use crate::statement::{Charge, charge, reserve};
use std::any::Any;
use std::cmp::Ordering;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// Bytes that a view holds by itself.
pub const INLINE_BYTES: usize = 12;

/// A string of bytes, inline or by pointer. Copy; see the module's rule on lifetimes.
#[derive(Clone, Copy, Default)]
#[repr(C, align(8))]
pub struct StringView {
    len: u32,
    prefix: [u8; 4],
    rest: [u8; 8],
}

const _: () = assert!(size_of::<StringView>() == 16 && align_of::<StringView>() == 8);

impl StringView {
    /// A view of at most [`INLINE_BYTES`] bytes, which it holds itself.
    ///
    /// # Panics
    /// If `bytes` is longer.
    #[inline]
    pub fn inline(bytes: &[u8]) -> StringView {
        // PERF: loads that overlap, where a copy of so many bytes would be a call.
        let four = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let (low, high) = match bytes.len() {
            0 => (0, 0),
            n @ 1..4 => {
                let byte = |at: usize| u64::from(bytes[at]) << (8 * at);
                (byte(0) | byte(n / 2) | byte(n - 1), 0)
            }
            n @ 4..8 => (u64::from(four(0)) | u64::from(four(n - 4)) << (8 * (n - 4)), 0),
            n => {
                assert!(n <= INLINE_BYTES);
                let low = u64::from(four(0)) | u64::from(four(4)) << 32;
                (low, u64::from(four(n - 4)) >> (8 * (INLINE_BYTES - n)))
            }
        };
        StringView {
            len: bytes.len() as u32,
            prefix: (low as u32).to_le_bytes(),
            rest: (low >> 32 | high << 32).to_le_bytes(),
        }
    }

    /// The bytes of a view that holds them, followed by zeroes.
    #[inline(always)]
    pub fn padded(&self) -> Option<[u8; INLINE_BYTES]> {
        let mut padded = [0; INLINE_BYTES];
        padded[..4].copy_from_slice(&self.prefix);
        padded[4..].copy_from_slice(&self.rest);
        self.is_inline().then_some(padded)
    }

    /// A view that holds the first `length` of `padded`; those beyond are zero.
    ///
    /// # Panics
    /// If the view cannot hold as many.
    #[inline(always)]
    pub fn of_padded(length: usize, padded: [u8; INLINE_BYTES]) -> StringView {
        assert!(length <= INLINE_BYTES);
        debug_assert!(padded[length..].iter().all(|&byte| byte == 0));
        let (prefix, rest) = padded.split_at(4);
        StringView {
            len: length as u32,
            prefix: prefix.try_into().expect("four bytes"),
            rest: rest.try_into().expect("eight bytes"),
        }
    }

    /// A view of some of the bytes, by itself if they are few. Like a copy of this view, it must not be read
    /// longer than this.
    ///
    /// # Panics
    /// If there are no such bytes.
    #[inline(always)]
    pub fn part(&self, bytes: Range<usize>) -> StringView {
        // SAFETY: the bytes of this view that it does not hold itself live as long as any copy of it is read,
        // and so the caller of `new` or of the heap treats the part, too.
        unsafe { StringView::new(&self.as_bytes()[bytes]) }
    }

    /// A view of `bytes`, inline if they are short.
    ///
    /// # Safety
    /// If `bytes` is longer than [`INLINE_BYTES`], it must stay alive and unchanged as long as any copy of
    /// the view is read.
    ///
    /// # Panics
    /// If `bytes` is 4 GiB or longer.
    #[inline]
    pub unsafe fn new(bytes: &[u8]) -> StringView {
        if bytes.len() <= INLINE_BYTES {
            return StringView::inline(bytes);
        }
        StringView {
            len: u32::try_from(bytes.len()).expect("a string is shorter than 4 GiB"),
            prefix: bytes[..4].try_into().expect("four bytes"),
            rest: (bytes.as_ptr() as usize as u64).to_ne_bytes(),
        }
    }

    /// Length in bytes.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// True for the empty string.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// True if the bytes are in the view.
    #[inline(always)]
    pub fn is_inline(&self) -> bool {
        self.len as usize <= INLINE_BYTES
    }

    /// The bytes.
    #[inline(always)]
    pub fn as_bytes(&self) -> &[u8] {
        if self.is_inline() {
            // SAFETY: prefix and rest are adjacent (repr(C), no padding between them), 12 bytes in all, and
            // the length is at most 12; the pointer comes from the whole view.
            unsafe {
                let start = std::ptr::from_ref(self).cast::<u8>().add(4);
                std::slice::from_raw_parts(start, self.len as usize)
            }
        } else {
            // SAFETY: the caller of `new` promised that the bytes live as long as any copy of this view is
            // read.
            unsafe {
                let start = u64::from_ne_bytes(self.rest) as usize as *const u8;
                std::slice::from_raw_parts(start, self.len as usize)
            }
        }
    }

    /// The bytes as text.
    ///
    /// For views from `VARCHAR` vectors, which hold UTF-8 by invariant: whatever creates one has checked its
    /// bytes.
    #[inline(always)]
    pub fn as_str(&self) -> &str {
        debug_assert!(std::str::from_utf8(self.as_bytes()).is_ok());
        // SAFETY: see the invariant above.
        unsafe { std::str::from_utf8_unchecked(self.as_bytes()) }
    }

    /// Length and first four bytes as one word: different words mean different strings.
    #[inline(always)]
    pub fn head(&self) -> u64 {
        (self.len as u64) | ((u32::from_le_bytes(self.prefix) as u64) << 32)
    }
}

impl PartialEq for StringView {
    #[inline(always)]
    fn eq(&self, other: &StringView) -> bool {
        if self.head() != other.head() {
            return false;
        }
        // Inline strings are zero padded, so the rest decides; long ones with equal pointers are equal.
        self.rest == other.rest || (!self.is_inline() && self.as_bytes() == other.as_bytes())
    }
}
impl Eq for StringView {}

impl PartialOrd for StringView {
    #[inline(always)]
    fn partial_cmp(&self, other: &StringView) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for StringView {
    #[inline(always)]
    fn cmp(&self, other: &StringView) -> Ordering {
        let (a, b) = (u32::from_be_bytes(self.prefix), u32::from_be_bytes(other.prefix));
        // Padding is zero, so a shorter string's prefix is not greater than that of its extension.
        if a != b { a.cmp(&b) } else { self.as_bytes().cmp(other.as_bytes()) }
    }
}

impl std::fmt::Debug for StringView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(self.as_bytes()))
    }
}

/// Bytes of a heap's first block; later ones double up to [`HEAP_BLOCK_MAX`].
const HEAP_BLOCK_MIN: usize = 4 << 10;
/// Bytes of a heap's largest ordinary block.
const HEAP_BLOCK_MAX: usize = 1 << 20;
/// Bytes of a heap that are its statement's without being charged to it: what any vector of a chunk may have.
const FREE: usize = 128 << 10;

/// A bump allocator for the bytes of long strings. Blocks never move, so views into it survive growth and
/// moves of the heap itself; they end with [`StringHeap::clear`] or its drop. Strings that have another owner
/// stay where they are: the heap keeps their owner ([`StringHeap::adopt`]).
///
/// A heap may be *charged* ([`StringHeap::charged`]): what it allocates beyond the first 128 KB is counted as
/// memory of the [statement](crate::statement) that its thread works for, as long as it lives. Those of
/// vectors are, since nobody else knows how long the strings of a chunk are; those of operators are counted
/// by them.
#[derive(Debug, Default)]
pub struct StringHeap {
    blocks: Vec<Block>,
    adopted: Vec<Adopted>,
    bytes: usize,
    is_charged: bool,
}

/// Bytes that never move.
#[derive(Debug)]
struct Block {
    bytes: Vec<u8>,
    _charge: Option<Charge>,
}

/// Bytes of another owner.
#[derive(Debug)]
struct Adopted {
    /// Valid as long as the owner lives.
    bytes: &'static [u8],
    _owner: Arc<dyn Any + Send + Sync>,
}

impl StringHeap {
    /// An empty heap. Allocates nothing.
    pub fn new() -> StringHeap {
        StringHeap::default()
    }

    /// An empty heap whose memory is counted as that of the statement.
    pub fn charged() -> StringHeap {
        StringHeap { is_charged: true, ..StringHeap::default() }
    }

    /// Ends the charge of what it holds and will hold: whoever keeps it counts it.
    pub fn end_charge(&mut self) {
        self.is_charged = false;
        self.blocks.iter_mut().for_each(|block| block._charge = None);
    }

    /// Makes room for a string of `bytes` bytes, to be pushed next.
    ///
    /// # Errors
    /// Resource, if the statement has not enough memory.
    #[inline]
    pub fn ask(&mut self, bytes: usize) -> Result<()> {
        if bytes <= INLINE_BYTES || self.has_room(bytes) {
            return Ok(());
        }
        let capacity = self.next_capacity(bytes);
        let charge = if self.is_charged_for(capacity) { reserve(capacity)? } else { None };
        self.add_block(capacity, charge);
        Ok(())
    }

    /// Copies `bytes` into the heap, unless they are short, and returns a view of them.
    ///
    /// The view must not be read after the heap is cleared or dropped; the caller keeps them together.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) -> StringView {
        if bytes.len() <= INLINE_BYTES {
            return StringView::inline(bytes);
        }
        let copy = self.reserve(bytes.len());
        copy.extend_from_slice(bytes);
        let start = copy.len() - bytes.len();
        // SAFETY: the block has been reserved in full, so its bytes do not move while the heap lives; that
        // views do not outlive the heap's contents is the contract of this type.
        unsafe { StringView::new(&copy[start..]) }
    }

    /// A view of what `write` writes to the first of `room` bytes; it returns how many these are. As
    /// [`StringHeap::push`].
    ///
    /// # Panics
    /// If it returns more.
    #[inline]
    pub fn push_with(&mut self, room: usize, write: impl FnOnce(&mut [u8]) -> usize) -> StringView {
        let block = self.reserve(room);
        let start = block.len();
        block.resize(start + room, 0);
        let length = write(&mut block[start..]);
        assert!(length <= room);
        if length <= INLINE_BYTES {
            let view = StringView::inline(&block[start..start + length]);
            block.truncate(start);
            return view;
        }
        block.truncate(start + length);
        // SAFETY: as in `push`.
        unsafe { StringView::new(&block[start..]) }
    }

    /// Views of some texts that `write` writes one behind the other to the first of `room` bytes. It also
    /// writes the end of each, as many as there are `views`. As [`StringHeap::push`].
    ///
    /// # Panics
    /// If the ends do not ascend, or are greater than `room`.
    pub fn push_all_with(
        &mut self,
        room: usize,
        ends: &mut [u32],
        views: &mut [StringView],
        write: impl FnOnce(&mut [u8], &mut [u32]),
    ) {
        assert_eq!(ends.len(), views.len());
        let block = self.reserve(room);
        let first = block.len();
        block.resize(first + room, 0);
        write(&mut block[first..], ends);
        let (mut start, mut kept) = (first, first);
        for (view, &end) in views.iter_mut().zip(&*ends) {
            let text = &block[start..first + end as usize];
            // SAFETY: as in `push`. A short text is copied to its view.
            *view = unsafe { StringView::new(text) };
            start = first + end as usize;
            kept = if text.len() > INLINE_BYTES { start } else { kept };
        }
        block.truncate(kept);
    }

    /// Keeps bytes alive where they are, until the heap is cleared or absorbed. Returns the number under
    /// which [`StringHeap::view`] finds them.
    pub fn adopt<T: Deref<Target = [u8]> + Send + Sync + 'static>(&mut self, owner: T) -> usize {
        let owner = Arc::new(owner);
        let bytes: *const [u8] = &**owner;
        // SAFETY: only this heap has the owner, which is dropped after all views (the contract of this type),
        // and until then it is only borrowed as shared: so its bytes stay valid for that long.
        let bytes = unsafe { &*bytes };
        self.bytes += bytes.len();
        self.adopted.push(Adopted { bytes, _owner: owner });
        self.adopted.len() - 1
    }

    /// Keeps the charge of bytes that it adopts, as long as it keeps these.
    pub fn keep_charge(&mut self, charge: Option<Charge>) {
        if let Some(charge) = charge.filter(|_| self.is_charged) {
            self.adopted.push(Adopted { bytes: &[], _owner: Arc::new(charge) });
        }
    }

    /// A view of some of the bytes that were adopted under a number. As [`StringHeap::push`].
    ///
    /// # Panics
    /// If nothing was adopted under it, or it has no such bytes.
    #[inline]
    pub fn view(&self, adopted: usize, bytes: Range<usize>) -> StringView {
        // SAFETY: the owner keeps them as long as the heap's contents.
        unsafe { StringView::new(&self.adopted[adopted].bytes[bytes]) }
    }

    /// The block with room for `len` more bytes.
    #[inline]
    fn reserve(&mut self, len: usize) -> &mut Vec<u8> {
        if !self.has_room(len) {
            self.grow(len);
        }
        &mut self.blocks.last_mut().expect("it has room").bytes
    }

    #[inline]
    fn has_room(&self, len: usize) -> bool {
        self.blocks.last().is_some_and(|block| block.bytes.capacity() - block.bytes.len() >= len)
    }

    /// Adds a block. If the statement has no memory for it, it learns so at its next check.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, len: usize) {
        let capacity = self.next_capacity(len);
        let charge = if self.is_charged_for(capacity) { charge(capacity) } else { None };
        self.add_block(capacity, charge);
    }

    fn next_capacity(&self, len: usize) -> usize {
        let twice = |block: &Block| (block.bytes.capacity() * 2).min(HEAP_BLOCK_MAX);
        self.blocks.last().map_or(HEAP_BLOCK_MIN, twice).max(len)
    }

    fn is_charged_for(&self, more: usize) -> bool {
        self.is_charged && self.bytes + more > FREE
    }

    fn add_block(&mut self, capacity: usize, charge: Option<Charge>) {
        self.bytes += capacity;
        self.blocks.push(Block { bytes: Vec::with_capacity(capacity), _charge: charge });
    }

    /// Forgets all strings and keeps the largest block for the next ones.
    pub fn clear(&mut self) {
        self.bytes -= self.adopted.drain(..).map(|adopted| adopted.bytes.len()).sum::<usize>();
        if let Some(mut last) = self.blocks.pop() {
            last.bytes.clear();
            self.bytes = last.bytes.capacity();
            self.blocks.clear();
            self.blocks.push(last);
        }
    }

    /// Takes over the strings of `other`; views into it stay good.
    pub fn absorb(&mut self, mut other: StringHeap) {
        if !self.is_charged {
            other.end_charge();
        }
        self.bytes += other.bytes;
        self.adopted.append(&mut other.adopted);
        // Keep our own last block last: it is the one with room.
        let at = self.blocks.len().saturating_sub(1);
        self.blocks.splice(at..at, other.blocks.drain(..));
    }

    /// Bytes of memory that the heap holds.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_compare_as_their_bytes_do() {
        let mut heap = StringHeap::new();
        let texts = [
            "",
            "a",
            "ab",
            "abc",
            "abcd",
            "abcdefghijkl",
            "abcdefghijklm",
            "abcdefghijklmn",
            "b",
            "a\0",
            "a\0b",
        ];
        let views: Vec<StringView> = texts.iter().map(|t| heap.push(t.as_bytes())).collect();
        for (a, view_a) in texts.iter().zip(&views) {
            assert_eq!(view_a.as_str(), *a);
            for (b, view_b) in texts.iter().zip(&views) {
                assert_eq!(view_a == view_b, a == b, "{a:?} = {b:?}");
                assert_eq!(view_a.cmp(view_b), a.as_bytes().cmp(b.as_bytes()), "{a:?} <=> {b:?}");
            }
        }
    }

    #[test]
    fn texts_that_are_written_together_have_the_views_of_texts_that_are_pushed() {
        let texts: Vec<Vec<u8>> = (0..60).map(|i| vec![b'a' + i as u8 % 26; i * 7 % 31]).collect();
        for texts in [&texts[..], &texts[..1], &texts[..2], &[]] {
            let (mut heap, mut one_by_one) = (StringHeap::new(), StringHeap::new());
            let before = heap.push(b"a text that was there before");
            let (mut ends, mut views) = (vec![0; texts.len()], vec![StringView::default(); texts.len()]);
            heap.push_all_with(4000, &mut ends, &mut views, |bytes, ends| {
                let mut at = 0;
                for (text, end) in texts.iter().zip(ends) {
                    bytes[at..at + text.len()].copy_from_slice(text);
                    at += text.len();
                    *end = at as u32;
                }
            });
            let after = heap.push(b"a text that came behind them");
            for (text, view) in texts.iter().zip(&views) {
                assert_eq!(*view, one_by_one.push(text));
            }
            assert_eq!(before.as_bytes(), b"a text that was there before");
            assert_eq!(after.as_bytes(), b"a text that came behind them");
        }
    }

    #[test]
    #[should_panic]
    fn texts_that_are_written_together_do_not_exceed_their_room() {
        let (mut ends, mut views) = ([0], [StringView::default()]);
        StringHeap::new().push_all_with(20, &mut ends, &mut views, |_, ends| ends[0] = 21);
    }

    #[test]
    fn views_hold_short_strings_and_parts_of_long_ones() {
        let mut heap = StringHeap::new();
        let text: Vec<u8> = (1..=40).collect();
        for length in 0..=40 {
            let view = heap.push(&text[..length]);
            assert_eq!(view.as_bytes(), &text[..length]);
            let padded = view.padded();
            assert_eq!(padded.is_some(), length <= INLINE_BYTES);
            if let Some(padded) = padded {
                assert_eq!(padded[..length], text[..length]);
                assert!(padded[length..].iter().all(|&byte| byte == 0));
                assert_eq!(StringView::of_padded(length, padded).as_bytes(), &text[..length]);
            }
            for (start, end) in (0..=length).flat_map(|end| (0..=end).map(move |start| (start, end))) {
                let part = view.part(start..end);
                assert_eq!(part, heap.push(&text[start..end]), "{start} to {end} of {length}");
            }
        }
    }

    #[test]
    fn what_is_adopted_lives_as_long_as_the_heap() {
        let owner: Arc<[u8]> = Arc::from(&b"some bytes of somebody else"[..]);
        let mut heap = StringHeap::new();
        let number = heap.adopt(owner.clone());
        let views =
            [heap.view(number, 5..10), heap.view(number, 0..27), heap.push(b"a string of the heap itself")];
        assert_eq!(Arc::strong_count(&owner), 2);
        let mut whole = StringHeap::new();
        whole.absorb(heap);
        assert!(whole.bytes() > owner.len());
        assert_eq!(views[0].as_str(), "bytes");
        assert_eq!(views[1].as_bytes(), &*owner);
        assert!(std::ptr::eq(views[1].as_bytes(), &*owner), "it stays where it is");
        assert_eq!(views[2].as_str(), "a string of the heap itself");
        whole.clear();
        assert_eq!((Arc::strong_count(&owner), whole.bytes()), (1, HEAP_BLOCK_MIN));
    }

    #[test]
    fn a_heap_grows_without_moving_strings() {
        let mut heap = StringHeap::new();
        let views: Vec<StringView> =
            (0..10_000).map(|i| heap.push(format!("string number {i:09}").as_bytes())).collect();
        let mut whole = StringHeap::new();
        whole.push(b"something that is long enough");
        whole.absorb(heap);
        for (i, view) in views.iter().enumerate() {
            assert_eq!(view.as_str(), format!("string number {i:09}"));
        }
    }
}
