//! Links between the nodes of the version tree: pointers without a counter.
//!
//! A link is copied with its parent. Nodes have no reference counts: how long a node lives follows from the
//! stamps. Three rules make this sound; one place in the code is responsible for each:
//!
//! 1. A node is reached only from a root that is pinned: by the branch that works on it (`Branch`), or by a
//!    snapshot whose stamp is entered (`TableSnapshot`). Links do not leave the crate; references to nodes
//!    borrow from one of the two.
//! 2. A node is written only if it has the stamp of the edit: then no snapshot has been taken since it was
//!    made, so that only this branch leads to it, which the caller holds exclusively. Or if all snapshots
//!    that were taken since are gone (`Edit::alone_has`): then it is *adopted*, which gives it the stamp.
//! 3. A node that a branch no longer shows is retired, once, and freed when no snapshot shows it
//!    (`Branch::sweep`), or with the table.
//!
//! A link also has the addresses that a reader of the node reads next ([`Linked::Ahead`]), so that both are
//! prefetched together: from a row group to a value there would be four cache misses one after the other, and
//! so there are two; to a layout key there is one.
//!
//! This is a leaf module with `unsafe`. Its slow twin would copy the whole path for every change, which the
//! model test reaches by taking a snapshot after every operation.
#![allow(unsafe_code)]

use super::ahead::{Ahead, Linked};
use super::prefetch::prefetch_all;
use super::stamp::Stamp;
use std::ops::Deref;
use std::ptr::NonNull;

#[cfg(test)]
std::thread_local! {
    /// Nodes that were made by this thread, less those that were freed by it.
    static LIVING: std::cell::Cell<isize> = const { std::cell::Cell::new(0) };
}

/// Nodes that were made by this thread, less those that were freed by it: none, if nothing has leaked.
#[cfg(test)]
pub(crate) fn living() -> isize {
    LIVING.get()
}

/// A pointer to a node, with what its readers read next.
pub(crate) struct Link<T: Linked> {
    node: NonNull<T>,
    ahead: T::Ahead,
}

// SAFETY: a link gives what a shared reference gives, and `edit` what an exclusive one gives, by the rules
// above; the addresses ahead are never read.
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
        #[cfg(test)]
        LIVING.set(LIVING.get() + 1);
        let ahead = node.ahead();
        Link { node: NonNull::from(Box::leak(Box::new(node))), ahead }
    }

    /// Updates the addresses ahead.
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

    /// The addresses that a reader of the node reads next.
    #[inline]
    pub(crate) fn ahead(self) -> T::Ahead {
        self.ahead
    }

    /// Prefetches the node.
    #[inline]
    pub(crate) fn prefetch(self) {
        self.prefetch_first(size_of::<T>());
    }

    /// Prefetches the first bytes of the node.
    #[inline]
    pub(crate) fn prefetch_first(self, bytes: usize) {
        prefetch_all(self.node.as_ptr(), bytes);
    }

    /// The address of the node, which may be kept for longer than the node lives.
    pub(crate) fn place(self) -> Ahead {
        Ahead::to(self.node.as_ptr())
    }

    /// The address of the node as a number, which no other living node has.
    pub(crate) fn address(self) -> usize {
        self.node.as_ptr() as usize
    }

    /// True if both are links to one node.
    pub(crate) fn is(self, other: Link<T>) -> bool {
        self.node == other.node
    }

    /// The node for writing, which must have the stamp of the edit.
    #[inline]
    pub(crate) fn own(&mut self, stamp: Stamp, of: impl Fn(&T) -> Stamp) -> &mut T {
        assert!(of(self) == stamp, "a node is written by the branch whose stamp it bears");
        // SAFETY: rule 2.
        unsafe { self.node.as_mut() }
    }

    /// Gives the node, which only this branch leads to, a stamp of the branch.
    #[inline]
    pub(crate) fn adopt(&mut self, stamp: Stamp, of: impl Fn(&mut T) -> &mut Stamp) {
        // SAFETY: rule 2. The reads of the last snapshot happened before it was dropped.
        *of(unsafe { self.node.as_mut() }) = stamp;
    }

    /// Frees the node, but not the nodes that it leads to.
    ///
    /// Only for nodes that nothing shows any more: rule 3.
    pub(crate) fn free(self) {
        #[cfg(test)]
        LIVING.set(LIVING.get() - 1);
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
