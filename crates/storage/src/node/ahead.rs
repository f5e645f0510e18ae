//! Prefetch hints: where the memory begins that a reader of a node reads next.

use super::prefetch::prefetch;
use entasis_vector::Buffer;

/// The most bytes of a slot whose width is kept.
const WIDEST: usize = 16;
/// Bytes of a row of packed codes.
const ROW_BYTES: usize = 128;

/// The address that a reader of a node reads next. A hint, which may be out of date: it is prefetched, never
/// read.
#[derive(Clone, Copy)]
pub(crate) struct Ahead(*const u8);

impl Ahead {
    /// No address.
    pub(crate) const NONE: Ahead = Ahead(std::ptr::null());

    /// The address of anything.
    pub(crate) fn to<T>(at: *const T) -> Ahead {
        Ahead(at.cast())
    }

    /// The slots of a buffer, each of at most 16 bytes; the width is kept in the low bits, which the buffer's
    /// alignment leaves free.
    pub(crate) fn slots(buffer: &Buffer, width: usize) -> Ahead {
        debug_assert!(buffer.as_ptr().addr().is_multiple_of(64) && width <= WIDEST);
        Ahead(buffer.as_ptr().wrapping_add(width))
    }

    /// Packed codes of so many bits, which are kept in the same way; wider ones than there are bits for have
    /// no address of a slot.
    pub(crate) fn packed(buffer: &Buffer, bits: usize) -> Ahead {
        debug_assert!(buffer.as_ptr().addr().is_multiple_of(64));
        Ahead(buffer.as_ptr().wrapping_add(if WIDEST + bits < 64 { WIDEST + bits } else { 0 }))
    }

    /// The first byte, or another one of its cache line.
    pub(crate) fn start(self) -> *const u8 {
        self.0
    }

    /// Prefetches a slot: one cache line, or the two that a packed code may lie in.
    #[inline]
    pub(crate) fn prefetch_slot(self, slot: usize) {
        let width = self.0.addr() % 64;
        let start = self.0.wrapping_sub(width);
        if width <= WIDEST {
            return prefetch(start.wrapping_add(slot * width));
        }
        // As `block::packed` places it.
        let bits = width - WIDEST;
        let lane_bytes = bits.next_power_of_two().clamp(8, 64) / 8;
        let (row, lane) = (slot / (ROW_BYTES / lane_bytes), slot % (ROW_BYTES / lane_bytes));
        let (word, bit) = (row * bits / (lane_bytes * 8), row * bits % (lane_bytes * 8));
        let first = start.wrapping_add(word * ROW_BYTES + lane * lane_bytes);
        prefetch(first);
        if bit + bits > lane_bytes * 8 {
            prefetch(first.wrapping_add(ROW_BYTES));
        }
    }
}

/// A node that links lead to.
pub(crate) trait Linked {
    /// The addresses that its readers read next.
    type Ahead: Copy;
    /// These addresses.
    fn ahead(&self) -> Self::Ahead;
}
