//! Edits: what writing a node needs to know of its branch, and what it leaves to it.
//!
//! A node with the stamp of the edit is written in place. A node that only this branch has is *adopted*. Any
//! other is copied, and the old one is *retired* ([`Link::edit`]). Every kind of node implements how it is
//! copied and retired ([`Node`]), and the edit keeps retired nodes of each kind until no snapshot shows them.
//! This is why this module and those of the nodes depend on each other.

use super::{Epochs, Root, RowGroup, Slice};
use crate::block::Block;
use crate::node::{Link, Linked, Stamp};
use crate::sync::{AtomicIsize, Ordering};
use std::sync::Arc;

/// A node of the version tree other than a block.
pub(crate) trait Node: Linked + Sized {
    /// The stamp under which it was made.
    fn stamp(&self) -> Stamp;
    /// The stamp, to be changed when the node is adopted.
    fn stamp_mut(&mut self) -> &mut Stamp;
    /// A copy for the owner of the edit.
    fn copy(&self, edit: &Edit) -> Self;
    /// Drops what is valid only while nobody writes, because the node is about to be written.
    fn open(&mut self, _edit: &Edit) {}
    /// Retires a node of this kind: the branch no longer shows it.
    fn retire(link: Link<Self>, edit: &mut Edit);
}

impl<T: Node> Link<T> {
    /// The node for writing: itself if it has the stamp of the edit or can be adopted, and otherwise a copy,
    /// which replaces it.
    #[inline]
    pub(crate) fn edit(&mut self, edit: &mut Edit) -> &mut T {
        if self.stamp() != edit.stamp && edit.alone_has(self.stamp()) {
            self.adopt(edit.stamp, T::stamp_mut);
        }
        if self.stamp() != edit.stamp {
            let copy = Link::new(self.copy(edit));
            T::retire(std::mem::replace(self, copy), edit);
        }
        let node = self.own(edit.stamp, T::stamp);
        node.open(edit);
        node
    }
}

/// Allocators return more memory than they are asked for: a third more is assumed. With mimalloc a buffer of
/// 8192 bytes takes 10,900, a slice of 330 takes 420.
const GIVEN_BEYOND: usize = 3;

/// A node that its branch no longer shows.
pub(super) enum Corpse {
    Root(Link<Root>),
    Group(Link<RowGroup>),
    Slice(Link<Slice>),
    Block(Link<Block>),
}

impl Corpse {
    pub(super) fn birth(&self) -> Stamp {
        match self {
            Corpse::Root(link) => link.stamp,
            Corpse::Group(link) => link.stamp,
            Corpse::Slice(link) => Node::stamp(&**link),
            Corpse::Block(link) => link.stamp,
        }
    }

    /// Its address, which no other living node has.
    pub(super) fn address(&self) -> usize {
        match self {
            Corpse::Root(link) => link.address(),
            Corpse::Group(link) => link.address(),
            Corpse::Slice(link) => link.address(),
            Corpse::Block(link) => link.address(),
        }
    }

    /// Bytes of memory that an allocator gives for it, without those of dictionaries.
    fn bytes(&self) -> usize {
        let asked = match self {
            Corpse::Root(link) => size_of::<Root>() + link.groups.len() * size_of::<Link<RowGroup>>(),
            Corpse::Group(link) => size_of::<RowGroup>() + link.slices.len() * size_of::<Link<Slice>>(),
            Corpse::Slice(link) => size_of::<Slice>() + size_of_val(link.blocks()),
            Corpse::Block(link) => link.bytes(),
        };
        asked + asked / GIVEN_BEYOND
    }

    pub(super) fn free(&self) {
        match self {
            Corpse::Root(link) => link.free(),
            Corpse::Group(link) => link.free(),
            Corpse::Slice(link) => link.free(),
            Corpse::Block(link) => link.free(),
        }
    }
}

pub(super) struct Retired {
    pub(super) node: Corpse,
    pub(super) death: Stamp,
    /// Bytes of memory, as they were counted.
    pub(super) bytes: usize,
}

/// Nodes that nothing shows any more. They are freed when this is dropped.
pub(crate) struct Dead(pub(super) Vec<Retired>);

impl Drop for Dead {
    fn drop(&mut self) {
        self.0.iter().for_each(|retired| retired.node.free());
    }
}

/// What writing needs to know of the branch, and what it leaves to it.
pub(crate) struct Edit {
    /// Nodes with this stamp are written in place.
    pub(crate) stamp: Stamp,
    /// Ghost slots of shared blocks may be written, because this is the head.
    pub(crate) writes_ghosts: bool,
    /// The number of checkpoints that have pinned the head: stores to ghost slots belong to the round after
    /// the last one.
    pub(super) round: u32,
    /// Slots of a block.
    pub(crate) block_slots: usize,
    /// The first column of the layout key; any, if there is none.
    pub(crate) key: usize,
    pub(super) epochs: Arc<Epochs>,
    /// While a snapshot is older than this, no slot loses its visible bit.
    pub(super) visible_since: Stamp,
    /// The branch began at this stamp; older nodes are not freed by it.
    pub(super) origin: Stamp,
    /// Another branch has succeeded this one, which shows one version of it: all of its snapshots have the
    /// stamp of that, and nothing is written.
    pub(super) is_succeeded: bool,
    /// Bytes that were added since the branch began, less those that were removed.
    pub(super) bytes: AtomicIsize,
    pub(super) retired: Vec<Retired>,
    /// Bytes of retired nodes that have not been freed.
    pub(super) retired_bytes: usize,
    /// How many retired nodes the last sweep left.
    pub(super) left: usize,
}

impl Edit {
    /// True if no snapshot can show anything from before `birth`.
    pub(crate) fn forgets(&self, birth: Stamp) -> bool {
        self.epochs.oldest() >= birth.max(self.visible_since)
    }

    /// True if no snapshot shows a node of this branch that was made at `birth`, because all that could have
    /// are gone. Forks and savepoints hold the snapshots that they began with.
    #[inline]
    pub(crate) fn alone_has(&self, birth: Stamp) -> bool {
        birth >= self.origin && self.epochs.newest() < birth
    }

    fn retire(&mut self, node: Corpse) {
        if node.birth() == self.stamp {
            // Nobody else has ever seen it.
            node.free();
        } else {
            let bytes = node.bytes();
            self.retired_bytes += bytes;
            self.retired.push(Retired { node, death: self.stamp, bytes });
        }
    }

    pub(crate) fn retire_root(&mut self, link: Link<Root>) {
        self.retire(Corpse::Root(link));
    }

    /// Retires a row group, but not its slices.
    pub(crate) fn retire_group(&mut self, link: Link<RowGroup>) {
        self.retire(Corpse::Group(link));
    }

    /// Retires a slice, but not its blocks.
    pub(crate) fn retire_slice(&mut self, link: Link<Slice>) {
        self.retire(Corpse::Slice(link));
    }

    pub(crate) fn retire_block(&mut self, link: Link<Block>) {
        self.retire(Corpse::Block(link));
    }

    /// Counts bytes of memory that were added, or removed if negative.
    #[inline]
    pub(crate) fn count(&self, bytes: isize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Retires a slice and its blocks.
    pub(crate) fn retire_whole_slice(&mut self, link: Link<Slice>) {
        self.count(-(link.bytes() as isize) - link.dictionary_share() as isize);
        link.blocks().iter().for_each(|&block| self.retire_block(block));
        self.retire_slice(link);
    }

    /// Retires a row group and everything in it.
    pub(crate) fn retire_whole_group(&mut self, link: Link<RowGroup>) {
        link.slices.iter().for_each(|&slice| self.retire_whole_slice(slice));
        self.count(-(link.numbers.bytes() as isize));
        Node::retire(link, self);
    }

    /// Retires the nodes below `root` that were made after `stamp`.
    pub(super) fn retire_younger(&mut self, root: Link<Root>, stamp: Stamp) {
        if root.stamp <= stamp {
            return;
        }
        for &group in root.groups.iter().filter(|group| group.stamp > stamp) {
            for &slice in group.slices.iter().filter(|slice| Node::stamp(&***slice) > stamp) {
                let young = slice.blocks().iter().filter(|block| block.stamp > stamp);
                young.for_each(|&block| self.retire_block(block));
                self.retire_slice(slice);
            }
            self.retire_group(group);
        }
        self.retire_root(root);
    }
}
