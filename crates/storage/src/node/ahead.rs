//! Prefetch hints: where the memory begins that a reader of a node reads next.

use entasis_vector::Buffer;

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

    /// The slots of a buffer, each of fewer than 64 bytes; the width is kept in the low bits, which the
    /// buffer's alignment leaves free.
    pub(crate) fn slots(buffer: &Buffer, width: usize) -> Ahead {
        debug_assert!(buffer.as_ptr().addr().is_multiple_of(64) && width < 64);
        Ahead(buffer.as_ptr().wrapping_add(width))
    }

    /// The first byte.
    pub(crate) fn start(self) -> *const u8 {
        self.0
    }

    /// The address of a slot.
    #[inline]
    pub(crate) fn slot(self, slot: usize) -> *const u8 {
        let width = self.0.addr() % 64;
        self.0.wrapping_sub(width).wrapping_add(slot * width)
    }
}

/// A node that links lead to.
pub(crate) trait Linked {
    /// The addresses that its readers read next.
    type Ahead: Copy;
    /// These addresses.
    fn ahead(&self) -> Self::Ahead;
}
