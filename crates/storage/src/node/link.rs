//! Links between the nodes of the version tree: pointers without a counter.
//!
//! A link is copied with its parent; how long a node lives is not counted but known, from the stamps. The
//! rules that make it sound, each the duty of one place:
//!
//! 1. A node is reached only from a root that is pinned: by the branch that works on it (`Branch`), or by a
//!    snapshot whose stamp is entered (`TableSnapshot`). Links do not leave the crate, references to nodes
//!    borrow from one of the two.
//! 2. A node is given out for writing only if it bears the stamp of the edit: then no snapshot has been taken
//!    since it was made, so that it hangs in this branch alone, which the caller holds exclusively. Or if all
//!    snapshots that were taken since are gone (`Edit::alone_has`): then it is *adopted*, and bears the stamp
//!    from now on.
//! 3. A node that a branch no longer shows is retired, once, and freed when no snapshot shows it
//!    (`Branch::sweep`), or with the table.
//!
//! A link also says where what the node leads to begins ([`Linked::Ahead`]), so that both are asked for at
//! once: from a row group to a value it is four misses one after the other, and so two; to a layout key it is
//! one.
//!
//! This is a leaf module with `unsafe`. Its slow twin would copy the whole path for every change, which the
//! model test reaches by taking a snapshot after every operation.
#![allow(unsafe_code)]

use super::ahead::{Ahead, Linked};
use super::prefetch::prefetch_all;
use super::stamp::Stamp;
use std::ops::Deref;
use std::ptr::NonNull;

/// See the module.
pub(crate) struct Link<T: Linked> {
    node: NonNull<T>,
    ahead: T::Ahead,
}

// SAFETY: a link gives what a shared reference gives, and `edit` what an exclusive one gives, by the rules
// above; what lies ahead is never read.
unsafe impl<T: Linked + Send + Sync> Send for Link<T> {}
// SAFETY: as above.
unsafe impl<T: Linked + Send + Sync> Sync for Link<T> {}

impl<T: Linked> Clone for Link<T> {
    fn clone(&self) -> Link<T> {
        *self
    }
}
impl<T: Linked> Copy for Link<T> {}

impl<T: Linked> Link<T> {
    /// A link to a new node.
    pub(crate) fn new(node: T) -> Link<T> {
        let ahead = node.ahead();
        Link { node: NonNull::from(Box::leak(Box::new(node))), ahead }
    }

    /// Looks again where the node leads to.
    #[inline]
    pub(crate) fn renew(&mut self) {
        self.ahead = self.node().ahead();
    }
}

impl<T: Linked> Link<T> {
    #[inline(always)]
    fn node(&self) -> &T {
        // SAFETY: rule 1. Slots of shared blocks that are written meanwhile are only touched through
        // `block::cells`.
        unsafe { self.node.as_ref() }
    }

    /// Where the node leads to.
    #[inline]
    pub(crate) fn ahead(self) -> T::Ahead {
        self.ahead
    }

    /// Asks for the memory of the node.
    #[inline]
    pub(crate) fn prefetch(self) {
        self.prefetch_first(size_of::<T>());
    }

    /// Asks for the first bytes of the node.
    #[inline]
    pub(crate) fn prefetch_first(self, bytes: usize) {
        prefetch_all(self.node.as_ptr(), bytes);
    }

    /// The memory of the node, for one who may keep it for longer than the node lives.
    pub(crate) fn place(self) -> Ahead {
        Ahead::to(self.node.as_ptr())
    }

    /// Where the node is, as a number that tells it apart from all others that there are now.
    pub(crate) fn address(self) -> usize {
        self.node.as_ptr() as usize
    }

    /// True if both are links to one node.
    pub(crate) fn is(self, other: Link<T>) -> bool {
        self.node == other.node
    }

    /// The node for writing, which bears the stamp of the edit.
    #[inline]
    pub(crate) fn own(&mut self, stamp: Stamp, of: impl Fn(&T) -> Stamp) -> &mut T {
        assert!(of(self) == stamp, "a node is written by the branch whose stamp it bears");
        // SAFETY: rule 2.
        unsafe { self.node.as_mut() }
    }

    /// Makes the node, which this branch alone has, bear a stamp of it.
    #[inline]
    pub(crate) fn adopt(&mut self, stamp: Stamp, of: impl Fn(&mut T) -> &mut Stamp) {
        // SAFETY: rule 2. Who let the last snapshot go has read what it wanted before.
        *of(unsafe { self.node.as_mut() }) = stamp;
    }

    /// Frees the node, but not what hangs in it.
    ///
    /// Only for nodes that nothing shows any more: rule 3.
    pub(crate) fn free(self) {
        // SAFETY: made by `new` from a box, and freed once, by rule 3.
        drop(unsafe { Box::from_raw(self.node.as_ptr()) });
    }
}

impl<T: Linked> Deref for Link<T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        self.node()
    }
}
