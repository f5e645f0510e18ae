//! Branches: versions that are being written. The head of a table is one; a transaction's fork is another.
//!
//! **Savepoints.** A savepoint is a snapshot that the branch can go back to. Then all nodes with a younger
//! stamp are retired, and nodes that were retired since are alive again if the savepoint shows them.
//!
//! **Forks.** A fork begins at a snapshot of the head, with a stamp of its own. It notes which of the head's
//! nodes it replaces, but does not retire them. If the head has not changed when the fork is published, the
//! fork's root becomes the head's (*fast-forward*), and the replaced nodes are retired at that moment.
//! Otherwise, or when the fork is abandoned, its own nodes are retired.
//!
//! **Heirs.** A table that is made of a version of another one ([`super::lineage`]) has a branch that is a
//! fork of the other's, and is never published to it: [`Branch::succeed`] makes it the owner of what both
//! show, and the other one a snapshot of the version that the fork began with.
//!
//! **Bytes.** The memory of what the branch shows is asked for after every statement, and so is counted as
//! slices and blocks are added, changed and removed. Dictionaries are counted in full with the first block
//! that has one, and subtracted by shares, so this count may drift; [`Branch::recount`] corrects it. Counted
//! too are the bytes of retired nodes that a snapshot still shows.

use super::edit::{Dead, Edit, Retired};
use super::epochs::is_shown;
use super::{Epochs, Root};
use crate::definition::TableOptions;
use crate::node::{Link, Stamp};
use crate::sync::{AtomicIsize, Ordering};
use std::collections::HashSet;
use std::sync::Arc;

/// Retired nodes are swept when there are so many more of them than the last sweep left.
const SWEEP_EVERY: usize = 64;

/// A version that is being written.
pub(crate) struct Branch {
    pub(crate) root: Link<Root>,
    pub(crate) edit: Edit,
}

/// A branch to be that has no root yet.
pub(crate) struct HeirEdit(Edit);

/// All that a branch has, when the table is dropped.
pub(crate) struct Remains {
    root: Link<Root>,
    retired: Vec<Retired>,
}

/// A version that a branch can go back to.
pub(crate) struct Savepoint {
    root: Link<Root>,
    stamp: Stamp,
    bytes: isize,
}

impl Branch {
    /// The head of an empty table.
    pub(crate) fn new(
        epochs: Arc<Epochs>,
        options: &TableOptions,
        root: impl FnOnce(Stamp) -> Root,
    ) -> Branch {
        let stamp = epochs.next();
        let edit = Edit {
            stamp,
            writes_ghosts: true,
            round: 1,
            block_slots: options.block_slots,
            key: options.layout_key.first().copied().unwrap_or(0),
            epochs,
            visible_since: 0,
            origin: 0,
            is_succeeded: false,
            bytes: AtomicIsize::new(0),
            retired: Vec::new(),
            retired_bytes: 0,
            left: 0,
        };
        Branch { root: Link::new(root(stamp)), edit }
    }

    /// The edit of a table that is made of a version of this one, whose snapshot must be held meanwhile. Its
    /// bytes begin as those of this branch.
    pub(crate) fn heir(&self, options: &TableOptions) -> HeirEdit {
        let epochs = self.edit.epochs.clone();
        let own = epochs.next();
        HeirEdit(Edit {
            stamp: own,
            writes_ghosts: false,
            key: options.layout_key.first().copied().unwrap_or(0),
            epochs,
            origin: own,
            is_succeeded: false,
            bytes: AtomicIsize::new(self.edit.bytes.load(Ordering::Relaxed)),
            retired: Vec::new(),
            retired_bytes: 0,
            left: 0,
            ..self.edit
        })
    }

    /// Takes a snapshot: a root and a stamp. The stamp must be given back to [`Epochs::leave`].
    pub(crate) fn pin(&mut self) -> (Link<Root>, Stamp) {
        let stamp = self.edit.stamp;
        self.edit.epochs.enter(stamp);
        if !self.edit.is_succeeded {
            self.edit.stamp = self.edit.epochs.next();
        }
        (self.root, stamp)
    }

    /// Begins a new round of checkpoints, and returns the number of the one that ends. The checkpoint's
    /// snapshot is taken at the same moment.
    pub(crate) fn end_round(&mut self) -> u32 {
        let ended = self.edit.round;
        self.edit.round += 1;
        ended
    }

    /// A fork of this branch at a snapshot, which must be held.
    pub(crate) fn fork_at(&self, root: Link<Root>, stamp: Stamp) -> (Branch, Savepoint) {
        let epochs = self.edit.epochs.clone();
        epochs.enter(stamp);
        let own = epochs.next();
        let edit = Edit {
            stamp: own,
            writes_ghosts: false,
            epochs,
            origin: own,
            is_succeeded: false,
            bytes: AtomicIsize::new(0),
            retired: Vec::new(),
            retired_bytes: 0,
            left: 0,
            ..self.edit
        };
        (Branch { root, edit }, Savepoint { root, stamp, bytes: 0 })
    }

    /// Takes a savepoint, which must be given back to [`Branch::roll_back`] or [`Branch::release`].
    pub(crate) fn savepoint(&mut self) -> Savepoint {
        let (root, stamp) = self.pin();
        Savepoint { root, stamp, bytes: self.edit.bytes.load(Ordering::Relaxed) }
    }

    /// Ends a savepoint.
    pub(crate) fn release(&mut self, savepoint: Savepoint) {
        self.edit.epochs.leave(savepoint.stamp);
    }

    /// Goes back to a savepoint of this branch, which is thereby released.
    pub(crate) fn roll_back(&mut self, savepoint: Savepoint) {
        let stamp = savepoint.stamp;
        self.edit.retire_younger(self.root, stamp);
        self.root = savepoint.root;
        *self.edit.bytes.get_mut() = savepoint.bytes;
        // What was replaced since, and is shown by the savepoint, is alive again.
        self.edit.retired.retain(|retired| retired.death <= stamp || retired.node.birth() > stamp);
        self.edit.retired_bytes = self.edit.retired.iter().map(|retired| retired.bytes).sum();
        self.edit.epochs.leave(stamp);
        self.edit.stamp = self.edit.epochs.next();
    }

    /// True if the head has not changed since the fork with this `base` began.
    pub(crate) fn is_at(&self, base: &Savepoint) -> bool {
        self.root.is(base.root)
    }

    /// Makes the state of a fork that of this head, which has not changed since the fork began.
    pub(crate) fn fast_forward(&mut self, fork: Branch, base: Savepoint) {
        debug_assert!(self.is_at(&base));
        let death = self.edit.epochs.next();
        self.root = fork.root;
        self.edit.count(fork.edit.bytes.into_inner());
        self.edit.retired_bytes += fork.edit.retired_bytes;
        self.edit.retired.extend(fork.edit.retired.into_iter().map(|mut retired| {
            if retired.node.birth() < fork.edit.origin {
                retired.death = death;
            }
            retired
        }));
        self.edit.visible_since = death;
        self.edit.stamp = self.edit.epochs.next();
        self.edit.epochs.leave(base.stamp);
    }

    /// Takes over the nodes of a fork that is abandoned.
    pub(crate) fn abandon(&mut self, mut fork: Branch, base: Savepoint) {
        // Snapshots of the fork may still show its nodes, so these die now, not at an earlier stamp.
        fork.edit.stamp = fork.edit.epochs.next();
        fork.edit.retire_younger(fork.root, fork.edit.origin - 1);
        let own = fork.edit.retired.into_iter().filter(|retired| retired.node.birth() >= fork.edit.origin);
        let retired_bytes = &mut self.edit.retired_bytes;
        self.edit.retired.extend(own.inspect(|retired| *retired_bytes += retired.bytes));
        self.edit.epochs.leave(base.stamp);
    }

    /// Makes this the owner of all nodes that `old` has, which it was made of: of the version with this root
    /// and stamp, whose snapshot is still held, and which has the rows of `old`'s newest version. Both show
    /// all of its blocks, except those in the columns that `is_dropped` says.
    ///
    /// 1. `old` goes back to that version: its rows may have been moved since.
    /// 2. What `old` has retired is retired here. What this branch has replaced, and what only `old` shows,
    ///    dies now. Snapshots of `old` from before are held with stamps before this death.
    /// 3. `old` holds that version until it ends.
    pub(crate) fn succeed(
        &mut self,
        old: &mut Branch,
        (root, stamp): (Link<Root>, Stamp),
        is_dropped: &[bool],
    ) {
        if !old.root.is(root) {
            old.edit.retire_younger(old.root, stamp);
            // What was replaced since, and is shown by that version, is alive again.
            let shown = addresses_below(root);
            old.edit.retired.retain(|retired| !shown.contains(&retired.node.address()));
        }
        let death = self.edit.epochs.next();
        let replaced = |retired: &&mut Retired| retired.node.birth() < self.edit.origin;
        self.edit.retired.iter_mut().filter(replaced).for_each(|retired| retired.death = death);
        self.edit.retired.append(&mut old.edit.retired);
        self.edit.retired_bytes = self.edit.retired.iter().map(|retired| retired.bytes).sum();
        self.edit.stamp = death;
        for &group in &root.groups {
            for &slice in &group.slices {
                let dropped = slice.blocks().iter().zip(is_dropped).filter(|(_, is_dropped)| **is_dropped);
                dropped.for_each(|(&block, _)| self.edit.retire_block(block));
                self.edit.retire_slice(slice);
            }
            self.edit.retire_group(group);
        }
        self.edit.retire_root(root);
        self.edit.origin = old.edit.origin;
        self.edit.writes_ghosts = true;
        self.edit.round = self.edit.round.max(old.edit.round);
        self.edit.visible_since = death;
        self.edit.stamp = self.edit.epochs.next();
        old.edit.epochs.enter(stamp);
        (old.root, old.edit.stamp, old.edit.is_succeeded) = (root, stamp, true);
        (*old.edit.bytes.get_mut(), old.edit.retired_bytes, old.edit.left) = (0, 0, 0);
    }

    /// True if another branch has succeeded this one.
    pub(crate) fn is_succeeded(&self) -> bool {
        self.edit.is_succeeded
    }

    /// Frees retired nodes that no snapshot shows, if there are enough of them.
    #[inline]
    pub(crate) fn sweep(&mut self) {
        if self.edit.retired.len() >= self.edit.left * 2 + SWEEP_EVERY {
            self.sweep_now();
        }
    }

    /// Frees retired nodes that no snapshot shows.
    pub(crate) fn sweep_now(&mut self) {
        drop(self.take_dead());
    }

    /// Takes out the retired nodes that no snapshot shows. They are freed when the result is dropped, which
    /// may be after the lock of the branch has been released.
    pub(crate) fn take_dead(&mut self) -> Dead {
        let edit = &mut self.edit;
        let active = edit.epochs.active().clone();
        let is_dead = |retired: &mut Retired| {
            let birth = retired.node.birth();
            birth >= edit.origin && !is_shown(&active, birth, retired.death)
        };
        let dead = Dead(edit.retired.extract_if(.., is_dead).collect());
        edit.retired_bytes -= dead.0.iter().map(|retired| retired.bytes).sum::<usize>();
        edit.left = edit.retired.len();
        dead
    }

    /// Bytes of memory of what the branch shows.
    pub(crate) fn bytes(&self) -> usize {
        self.edit.bytes.load(Ordering::Relaxed).max(0) as usize
    }

    /// Bytes of memory of a fork's own nodes.
    pub(crate) fn grown(&self) -> usize {
        let retired = self.edit.retired_bytes as isize;
        (self.edit.bytes.load(Ordering::Relaxed) + retired).max(0) as usize
    }

    /// Bytes of retired nodes that have not been freed. Those of a fork include what it replaced of the
    /// version that it began with.
    pub(crate) fn retired_bytes(&self) -> usize {
        self.edit.retired_bytes
    }

    /// Counts the bytes once more, block by block. Those of a branch that was succeeded are counted by its
    /// successor.
    pub(crate) fn recount(&mut self) {
        if self.edit.is_succeeded {
            return;
        }
        let bytes: usize = self.root.groups.iter().map(|group| group.bytes()).sum();
        *self.edit.bytes.get_mut() = bytes as isize;
    }

    /// Takes over the bytes of all row groups from who has counted them, as [`Branch::recount`] does.
    pub(crate) fn set_bytes(&mut self, bytes: usize) {
        *self.edit.bytes.get_mut() = bytes as isize;
    }

    /// The number of retired nodes that have not been freed.
    pub(crate) fn retired(&self) -> usize {
        self.edit.retired.len()
    }

    /// Takes out everything that it owns, when the table is dropped.
    pub(crate) fn leave(&mut self) -> Remains {
        Remains { root: self.root, retired: std::mem::take(&mut self.edit.retired) }
    }

    /// Frees what is its own, when a table is dropped that did not succeed the one that it was made of. No
    /// snapshot or fork of it is left, and others show nothing of it.
    pub(crate) fn free_own(&mut self) {
        let origin = self.edit.origin;
        self.edit.stamp = self.edit.epochs.next();
        self.edit.retire_younger(self.root, origin - 1);
        let own = self.edit.retired.drain(..).filter(|retired| retired.node.birth() >= origin);
        own.for_each(|retired| retired.node.free());
    }

    /// Ends the hold of a branch that was succeeded on the version that it shows, when the table is dropped,
    /// and frees what forks of it have left.
    pub(crate) fn free_succeeded(&mut self) {
        self.edit.retired.drain(..).for_each(|retired| retired.node.free());
        self.edit.epochs.leave(self.edit.stamp);
    }
}

impl HeirEdit {
    /// The branch, with the root that is made with its edit.
    pub(crate) fn with_root(self, root: impl FnOnce(&Edit) -> Root) -> Branch {
        Branch { root: Link::new(root(&self.0)), edit: self.0 }
    }
}

impl Remains {
    /// Frees everything, when no snapshot of any table is left that shows it.
    pub(crate) fn free(self) {
        self.retired.iter().for_each(|retired| retired.node.free());
        for group in &self.root.groups {
            for slice in &group.slices {
                slice.blocks().iter().for_each(|block| block.free());
                slice.free();
            }
            group.free();
        }
        self.root.free();
    }
}

/// The addresses of a root and of all nodes below it.
fn addresses_below(root: Link<Root>) -> HashSet<usize> {
    let mut addresses = HashSet::from([root.address()]);
    for group in &root.groups {
        addresses.insert(group.address());
        for slice in &group.slices {
            addresses.insert(slice.address());
            addresses.extend(slice.blocks().iter().map(|block| block.address()));
        }
    }
    addresses
}
