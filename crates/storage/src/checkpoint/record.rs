//! What the last checkpoint wrote, and how the next one finds out what has changed since.
//!
//! A node is the one that was written iff it has the same address *and* the same stamp. An address is used
//! again when a node is freed; but a stamp is that of one branch, all of whose nodes were in this version
//! already when it was pinned, or come under later stamps. (An older stamp alone does not say so: a fork that
//! began before a checkpoint and ends behind it brings nodes of an old stamp.)
//!
//! A row group or root that is the one that was written holds the same rows. A *block* may have been given
//! rows beside, in its ghost slots: then it says so ([`Block::is_stored_after`]). Nothing is taken back from
//! a block when it is written, so a store at any moment counts for the next checkpoint, and a checkpoint that
//! fails leaves nothing to be put right.

use super::costs::MachineCosts;
use super::manifest::{GroupIndex, Place};
use crate::block::Block;
use crate::block::serialized::WeakShared;
use crate::definition::ObjectId;
use crate::file::Extent;
use crate::node::{Link, Linked, Stamp};
use crate::table::TableSnapshot;
use crate::tree::RowGroup;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Which node of a table it is, in one version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct NodeId {
    address: usize,
    stamp: Stamp,
}

impl NodeId {
    pub(super) fn of<T: Linked>(link: Link<T>, stamp: Stamp) -> NodeId {
        NodeId { address: link.address(), stamp }
    }
}

/// All that the last checkpoint wrote, or that was read when the file was opened; by default nothing. What
/// the next checkpoint may take over.
#[derive(Debug, Default)]
pub struct Checkpointed {
    pub(super) tables: BTreeMap<ObjectId, Arc<TableRecord>>,
    /// The extents of the catalog, of the list of tables, and of the costs.
    pub(super) roots: [Extent; 3],
    /// Costs that were measured.
    pub(super) costs: Option<Arc<MachineCosts>>,
}

/// A table as it was written.
#[derive(Debug)]
pub(super) struct TableRecord {
    /// [`crate::Table::id`]: stamps of another one say nothing here.
    pub(super) table: u64,
    pub(super) root: NodeId,
    /// The round of checkpoints that ended with this one.
    pub(super) round: u32,
    pub(super) manifest: Extent,
    pub(super) groups: Vec<Arc<GroupRecord>>,
}

/// A table that was written, by its id.
pub(super) type Image = (ObjectId, Arc<TableRecord>);

/// A row group as it was written.
// PERF: 72 bytes a block, beside the 192 of its header.
#[derive(Debug)]
pub(super) struct GroupRecord {
    pub(super) node: NodeId,
    pub(super) index: Extent,
    /// By slice and column.
    blocks: Vec<(NodeId, Place)>,
    shared: Vec<(Option<WeakShared>, Place)>,
}

impl GroupRecord {
    /// A row group whose index has been written, or read.
    pub(super) fn new(group: Link<RowGroup>, extent: Extent, index: &GroupIndex) -> GroupRecord {
        let mut blocks = Vec::with_capacity(index.slices.len() * group.zones.len());
        let mut shared: Vec<Option<WeakShared>> = index.shared.iter().map(|_| None).collect();
        for (slice, written) in group.slices.iter().zip(&index.slices) {
            for (block, at) in slice.blocks().iter().zip(&written.blocks) {
                blocks.push((NodeId::of(*block, block.stamp), at.place));
                if let Some(number) = at.shared.filter(|number| shared[*number].is_none()) {
                    shared[number] = block.shared().weak();
                }
            }
        }
        let shared = shared.into_iter().zip(index.shared.iter().map(|(_, place)| *place)).collect();
        GroupRecord { node: NodeId::of(group, group.stamp), index: extent, blocks, shared }
    }

    /// The places of all that it needs.
    pub(super) fn places(&self) -> impl Iterator<Item = &Place> {
        let blocks = self.blocks.iter().map(|(_, place)| place);
        self.shared.iter().map(|(_, place)| place).chain(blocks).filter(|place| place.is_somewhere())
    }
}

impl TableRecord {
    /// A table that was read with the indexes of its row groups.
    pub(super) fn new(
        snapshot: &TableSnapshot,
        round: u32,
        manifest: Extent,
        groups: Vec<Arc<GroupRecord>>,
    ) -> TableRecord {
        let (root, _) = snapshot.pinned();
        let node = NodeId::of(root, root.stamp);
        TableRecord { table: snapshot.table().id(), root: node, round, manifest, groups }
    }

    /// All extents that the table takes.
    pub(super) fn extents(&self) -> impl Iterator<Item = Extent> {
        let data = self.groups.iter().flat_map(|group| group.places()).map(|place| place.extent);
        self.groups.iter().map(|group| group.index).chain([self.manifest]).chain(data)
    }
}

impl Checkpointed {
    /// This, and tables that were written since.
    pub(super) fn with(&self, images: &[Image]) -> Checkpointed {
        let tables = self.tables.iter().map(|(id, table)| (*id, table.clone()));
        let tables = tables.chain(images.iter().cloned()).collect();
        Checkpointed { tables, roots: self.roots, costs: self.costs.clone() }
    }

    /// Costs that were measured, on whatever machine.
    pub fn costs(&self) -> Option<&Arc<MachineCosts>> {
        self.costs.as_ref()
    }

    /// All extents of the state but for the map of free space, by their offsets.
    pub(super) fn extents(&self) -> BTreeMap<u64, Extent> {
        let of_tables = self.tables.values().flat_map(|table| table.extents());
        let all = of_tables.chain(self.roots).filter(|extent| extent.bytes > 0);
        all.map(|extent| (extent.offset, extent)).collect()
    }
}

/// What of a table the next checkpoint may take over.
pub(super) struct Known<'a> {
    last: Option<&'a TableRecord>,
    groups: HashMap<NodeId, &'a Arc<GroupRecord>>,
    blocks: HashMap<NodeId, Place>,
}

impl<'a> Known<'a> {
    /// What the last checkpoint, if there was one, wrote of the table that a snapshot is of.
    pub(super) fn new(last: Option<&'a TableRecord>, snapshot: &TableSnapshot) -> Known<'a> {
        let last = last.filter(|last| last.table == snapshot.table().id());
        let groups = last.iter().flat_map(|last| &last.groups).map(|group| (group.node, group)).collect();
        Known { last, groups, blocks: HashMap::new() }
    }

    /// The whole table, if it is unchanged.
    pub(super) fn table(&self, snapshot: &TableSnapshot) -> Option<&'a TableRecord> {
        let (root, _) = snapshot.pinned();
        self.last.filter(|last| last.root == NodeId::of(root, root.stamp))
    }

    /// A row group, if it is unchanged.
    pub(super) fn group(&self, group: Link<RowGroup>) -> Option<&'a Arc<GroupRecord>> {
        self.groups.get(&NodeId::of(group, group.stamp)).copied()
    }

    /// Looks for blocks in the row groups that are not in `groups` any more: a block is in one row group
    /// only.
    pub(super) fn look_into_changed(&mut self, groups: &[Link<RowGroup>]) {
        let kept: HashSet<NodeId> = groups.iter().map(|group| NodeId::of(*group, group.stamp)).collect();
        let changed: Vec<_> = self.groups.values().filter(|group| !kept.contains(&group.node)).collect();
        self.blocks = changed.into_iter().flat_map(|group| group.blocks.iter().copied()).collect();
    }

    /// Looks for blocks in a row group that has not changed, and is written anew nevertheless.
    pub(super) fn look_into(&mut self, group: &GroupRecord) {
        self.blocks.extend(group.blocks.iter().copied());
    }

    /// Where a block is that is unchanged.
    pub(super) fn block(&self, block: Link<Block>) -> Option<Place> {
        let place = *self.blocks.get(&NodeId::of(block, block.stamp))?;
        let last = self.last?;
        (place.is_somewhere() && !block.is_stored_after(last.round)).then_some(place)
    }

    /// Where the last checkpoint has what blocks share, by its address.
    pub(super) fn shared(&self) -> HashMap<usize, Place> {
        let all = self.last.iter().flat_map(|last| &last.groups).flat_map(|group| &group.shared);
        all.filter_map(|(weak, place)| Some((weak.as_ref()?.address(), *place))).collect()
    }
}
