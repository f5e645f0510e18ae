//! Strings that are written in place: a view per slot, and the bytes of long strings in the block's own heap.
//!
//! The heap only grows: what a view pointed to stays where it is, as long as the block lives, so readers that
//! have decoded views need nothing but the block. Overwriting a string leaves its bytes as garbage; every
//! copy of the block is compact, and a block that is not shared is compacted when most of its heap is
//! garbage.
//!
//! A ghost slot of a shared block takes a string if it is short, or if the last piece of the heap has room
//! for it: bytes beyond those used belong to the writer alone. Views of dead slots are never looked
//! through: they may be half written.
//!
//! This is a leaf module with `unsafe`: it makes the views, looks through them, and appends to the heap.
#![allow(unsafe_code)]

use super::codec::{Codec, TextCodec};
use super::example::Example;
use super::serialized::{BlockWriter, Flaw, Reader};
use super::{StringBytes, cells, pinned_view};
use entasis_vector::{Buffer, StringHeap, StringView, bitmap};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Strings of up to so many bytes are stored in their view.
const INLINE_BYTES: usize = 12;
/// Bytes of the first piece of a heap, at least.
const PIECE_MIN: usize = 256;

/// See the module.
#[derive(Debug)]
pub(crate) struct Views {
    views: Buffer,
    pieces: Vec<Buffer>,
    /// Bytes used of the last piece.
    used: AtomicUsize,
    /// Bytes of pieces that no slot shows any more.
    garbage: usize,
}

impl Views {
    /// The strings that `get` gives for slots 0 to `slots` - 1, and room for `capacity`.
    pub(crate) fn new<'a>(slots: usize, capacity: usize, get: impl Fn(usize) -> &'a [u8]) -> Views {
        let long = |bytes: &&[u8]| bytes.len() > INLINE_BYTES;
        let bytes: usize = (0..slots).map(&get).filter(long).map(<[u8]>::len).sum();
        let mut views = Views {
            views: Buffer::zeroed(capacity * size_of::<StringView>()),
            pieces: Vec::new(),
            used: AtomicUsize::new(0),
            garbage: 0,
        };
        if bytes > 0 {
            views.pieces.push(Buffer::zeroed((bytes + bytes / 4).max(PIECE_MIN)));
        }
        (0..slots).for_each(|slot| views.store(slot, get(slot)));
        views
    }

    /// The string in `slot`, which is live.
    #[inline]
    pub(crate) fn get(&self, slot: usize) -> &[u8] {
        assert!((slot + 1) * size_of::<StringView>() <= self.views.capacity());
        // SAFETY: the slot is in the buffer. It is live for the caller, so nobody writes it while the block
        // is shared; the view is inline or points into a piece of this block, which stays.
        unsafe { (*self.views.as_ptr().cast::<StringView>().add(slot)).as_bytes() }
    }

    /// A view of the string in `slot`, which is live.
    #[inline]
    fn load(&self, slot: usize) -> StringView {
        assert!((slot + 1) * size_of::<StringView>() <= self.views.capacity());
        // SAFETY: as in `get`.
        unsafe { self.views.as_ptr().cast::<StringView>().add(slot).read() }
    }

    /// True if `bytes` can be stored without a new piece.
    fn has_room(&self, bytes: &[u8]) -> bool {
        bytes.len() <= INLINE_BYTES
            || self
                .pieces
                .last()
                .is_some_and(|piece| piece.capacity() - self.used.load(Relaxed) >= bytes.len())
    }

    /// Writes a string for which there is room; see [`cells::store`]. Only one thread stores at a time.
    fn store(&self, slot: usize, bytes: &[u8]) {
        debug_assert!(self.has_room(bytes));
        let view = match self.pieces.last().filter(|_| bytes.len() > INLINE_BYTES) {
            None => StringView::inline(bytes),
            Some(piece) => {
                let used = self.used.load(Relaxed);
                assert!(used + bytes.len() <= piece.capacity());
                // SAFETY: the bytes beyond `used` are in the piece, and no view shows them, so no one reads
                // them.
                let copy = unsafe {
                    let to = piece.as_ptr().add(used);
                    std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
                    std::slice::from_raw_parts(to, bytes.len())
                };
                self.used.store(used + bytes.len(), Relaxed);
                pinned_view(copy)
            }
        };
        cells::store(&self.views, slot, view);
    }

    /// Makes room for `bytes` in a block that is not shared.
    pub(crate) fn make_room(&mut self, bytes: &[u8]) {
        if !self.has_room(bytes) {
            let last = self.pieces.last().map_or(PIECE_MIN / 2, Buffer::capacity);
            self.pieces.push(Buffer::zeroed((last * 2).max(bytes.len())));
            *self.used.get_mut() = 0;
        }
    }

    /// Declares that the string in `slot` is about to be overwritten. True if most of the heap is then
    /// garbage.
    pub(crate) fn forget(&mut self, slot: usize) -> bool {
        let len = self.load(slot).len();
        self.garbage += if len > INLINE_BYTES { len } else { 0 };
        self.garbage > 4096 && self.garbage * 2 > self.pieces.iter().map(Buffer::capacity).sum()
    }
}

impl Codec for Views {
    const NAME: &'static str = "views";
    /// Strings that a builder makes are never written.
    const EXAMPLES: &'static [Example] = &[];

    fn is_writable(&self) -> bool {
        true
    }

    fn bytes(&self) -> usize {
        self.views.capacity() + self.pieces.iter().map(Buffer::capacity).sum::<usize>()
    }

    fn write(&self, out: &mut BlockWriter<'_>) {
        let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(out.slots));
        for slot in 0..out.slots {
            // Views of other slots may be half written.
            bytes.extend_from_slice(if out.is_live(slot) { self.get(slot) } else { &[] });
            ends.push(bytes.len() as u32);
        }
        out.texts(&StringBytes::new(&ends, &bytes));
    }

    fn read(reader: &mut Reader<'_>, slots: usize) -> Result<Views, Flaw> {
        let strings = reader.strings(slots)?;
        reader.check_texts(&strings)?;
        Ok(Views::new(slots, slots, |slot| strings.get(slot)))
    }
}

impl TextCodec for Views {
    #[inline]
    fn get(&self, slot: usize) -> &[u8] {
        Views::get(self, slot)
    }

    #[inline]
    fn view(&self, slot: usize, _: &mut StringHeap) -> StringView {
        self.load(slot)
    }

    /// Compact; slots that `live` says are dead are empty.
    fn copy(&self, slots: usize, live: &[u64]) -> Views {
        Views::new(slots, slots, |slot| if bitmap::get(live, slot) { self.get(slot) } else { &[] })
    }

    #[inline]
    fn fits(&self, bytes: &[u8]) -> bool {
        self.has_room(bytes)
    }

    #[inline]
    fn store(&self, slot: usize, bytes: &[u8]) {
        Views::store(self, slot, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_stay_where_views_point() {
        let texts: Vec<String> =
            (0..100usize).map(|i| "long enough ".repeat(i % 5) + &i.to_string()).collect();
        let mut views = Views::new(100, 100, |slot| texts[slot].as_bytes());
        let pinned: Vec<StringView> = (0..100).map(|slot| views.load(slot)).collect();
        for slot in (0..100).step_by(2) {
            let text = format!("another string in slot {slot}");
            views.make_room(text.as_bytes());
            views.store(slot, text.as_bytes());
            assert_eq!(views.get(slot), text.as_bytes());
        }
        for (view, text) in pinned.iter().zip(&texts) {
            assert_eq!(view.as_bytes(), text.as_bytes(), "decoded views outlive the slot's string");
        }
        let mut live = [u64::MAX; 2];
        bitmap::set(&mut live, 7, false);
        let copy = views.copy(100, &live);
        assert_eq!((copy.get(7), copy.get(8), copy.get(9)), (&b""[..], views.get(8), texts[9].as_bytes()));
    }
}
