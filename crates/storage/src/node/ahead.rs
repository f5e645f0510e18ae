//! Where the memory begins that a reader of a node goes to next.

use entasis_vector::Buffer;

/// Where the memory begins that a reader of a node goes to next. A hint, which may be out of date: it is
/// prefetched, never read.
#[derive(Clone, Copy)]
pub(crate) struct Ahead(*const u8);

impl Ahead {
    /// Nowhere.
    pub(crate) const NONE: Ahead = Ahead(std::ptr::null());

    /// Anything.
    pub(crate) fn to<T>(at: *const T) -> Ahead {
        Ahead(at.cast())
    }

    /// Slots of fewer than 64 bytes, in a buffer, whose alignment leaves room for their width.
    pub(crate) fn slots(buffer: &Buffer, width: usize) -> Ahead {
        debug_assert!(buffer.as_ptr().addr().is_multiple_of(64) && width < 64);
        Ahead(buffer.as_ptr().wrapping_add(width))
    }

    /// The first byte.
    pub(crate) fn start(self) -> *const u8 {
        self.0
    }

    /// Where a slot is.
    #[inline]
    pub(crate) fn slot(self, slot: usize) -> *const u8 {
        let width = self.0.addr() % 64;
        self.0.wrapping_sub(width).wrapping_add(slot * width)
    }
}

/// What links lead to.
pub(crate) trait Linked {
    /// Places that its readers go to next.
    type Ahead: Copy;
    /// Where they are.
    fn ahead(&self) -> Self::Ahead;
}
