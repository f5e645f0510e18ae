//! Remembers what the last checkpoint wrote, so that the next one can tell what has changed since.
//!
//! A table that was made of another one with other columns has that one's unchanged blocks: both are of one
//! lineage, and so have stamps of one clock ([`crate::tree::lineage`]).
//!
//! A node is unchanged if and only if it has the same address *and* the same stamp. The address alone is not
//! enough, as it is used again when a node has been freed. With the stamp it is: a stamp belongs to one
//! branch, and all nodes of that branch either were in this version when it was pinned, or have later stamps.
//! (An older stamp alone proves nothing either: a fork that began before a checkpoint and was published after
//! it brings nodes with an old stamp.)
//!
//! An unchanged row group or root has the same rows. An unchanged *block* may have got rows in its ghost
//! slots, and then says so ([`Block::is_stored_after`]). Writing a block does not reset that note; the note
//! has the round of the store. So a store at any moment counts for the next checkpoint, and a checkpoint that
//! fails has nothing to undo.

use super::costs::MachineCosts;
use super::manifest::{GroupIndex, Place};
use super::stored::Load;
use crate::block::Block;
use crate::block::serialized::WeakShared;
use crate::definition::ObjectId;
use crate::file::Extent;
use crate::node::{Link, Linked, Stamp};
use crate::table::{Table, TableSnapshot};
use crate::tree::RowGroup;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Identifies a node of a table's tree, and its state.
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

/// What the last checkpoint wrote, or what was read when the file was opened: all that the next checkpoint
/// may take over. By default nothing.
#[derive(Debug, Default)]
pub struct Checkpointed {
    pub(super) tables: BTreeMap<ObjectId, Arc<TableRecord>>,
    /// The extents of the catalog, of the list of tables, and of the costs.
    pub(super) roots: [Extent; 3],
    /// Loads that commits of the log behind it refer to.
    pub(super) loads: Vec<Arc<Load>>,
    /// Costs that were measured.
    pub(super) costs: Option<Arc<MachineCosts>>,
}

/// What the file has of a table.
#[derive(Debug)]
pub(super) struct TableRecord {
    /// The id of its lineage: stamps of other ones cannot be compared with these.
    pub(super) lineage: u64,
    pub(super) root: NodeId,
    /// The round of checkpoints that ended with the one that wrote it.
    pub(super) round: u32,
    pub(super) manifest: Extent,
    pub(super) groups: Vec<Arc<GroupRecord>>,
}

/// A table that a commit wrote to the file, with the table's id.
pub(super) type Image = (ObjectId, Arc<TableRecord>);

/// What the file has of a row group.
// PERF: 72 bytes a block, beside the 192 of its header.
#[derive(Debug)]
pub(super) struct GroupRecord {
    pub(super) node: NodeId,
    pub(super) index: Extent,
    /// The blocks, slice by slice, in the order of columns.
    blocks: Vec<(NodeId, Place)>,
    shared: Vec<(Option<WeakShared>, Place)>,
    /// The data extents of all of them.
    extents: Vec<Extent>,
}

impl GroupRecord {
    /// The record of a row group whose index has been written or read.
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
        let (node, extents) = (NodeId::of(group, group.stamp), index.extents());
        GroupRecord { node, index: extent, blocks, shared, extents }
    }

    /// The places of everything that it consists of.
    pub(super) fn places(&self) -> impl Iterator<Item = &Place> {
        let blocks = self.blocks.iter().map(|(_, place)| place);
        self.shared.iter().map(|(_, place)| place).chain(blocks).filter(|place| place.is_somewhere())
    }
}

impl TableRecord {
    /// The record of a table that was read, with the indexes of its row groups.
    pub(super) fn new(
        snapshot: &TableSnapshot,
        round: u32,
        manifest: Extent,
        groups: Vec<Arc<GroupRecord>>,
    ) -> TableRecord {
        let (root, _) = snapshot.pinned();
        let node = NodeId::of(root, root.stamp);
        TableRecord { lineage: snapshot.table().lineage().id(), root: node, round, manifest, groups }
    }

    /// All extents of the table, those that several row groups have more than once.
    pub(super) fn extents(&self) -> impl Iterator<Item = Extent> {
        let data = self.groups.iter().flat_map(|group| &group.extents).copied();
        self.groups.iter().map(|group| group.index).chain([self.manifest]).chain(data)
    }
}

impl Checkpointed {
    /// These records, and those of tables and loads that commits have written since.
    pub(super) fn with(&self, images: &[Image], loads: &[Arc<Load>]) -> Checkpointed {
        let tables = self.tables.iter().map(|(id, table)| (*id, table.clone()));
        let tables = tables.chain(images.iter().cloned()).collect();
        let loads = self.loads.iter().chain(loads).cloned().collect();
        Checkpointed { tables, roots: self.roots, loads, costs: self.costs.clone() }
    }

    /// The record of a table, or else of the last one of its lineage.
    pub(super) fn record_of(&self, table: &Table) -> Option<&Arc<TableRecord>> {
        let own = self.tables.get(&table.object());
        own.or_else(|| table.lineage().members().iter().find_map(|member| self.tables.get(member)))
    }

    /// Costs that were measured, on whatever machine.
    pub fn costs(&self) -> Option<&Arc<MachineCosts>> {
        self.costs.as_ref()
    }

    /// All extents of the state but that of the map of free space, by offset.
    pub(super) fn extents(&self) -> BTreeMap<u64, Extent> {
        let of_tables = self.tables.values().flat_map(|table| table.extents());
        let of_loads = self.loads.iter().flat_map(|load| load.extents());
        let all = of_tables.chain(of_loads).chain(self.roots).filter(|extent| extent.bytes > 0);
        all.map(|extent| (extent.offset, extent)).collect()
    }
}

/// What the next checkpoint may take over of one table.
pub(super) struct Known<'a> {
    last: Option<&'a TableRecord>,
    groups: HashMap<NodeId, &'a Arc<GroupRecord>>,
    blocks: HashMap<NodeId, Place>,
}

impl<'a> Known<'a> {
    /// What the last checkpoint wrote of the table of a snapshot, if there was one.
    pub(super) fn new(last: Option<&'a TableRecord>, snapshot: &TableSnapshot) -> Known<'a> {
        let last = last.filter(|last| last.lineage == snapshot.table().lineage().id());
        let groups = last.iter().flat_map(|last| &last.groups).map(|group| (group.node, group)).collect();
        Known { last, groups, blocks: HashMap::new() }
    }

    /// The record of the whole table, if it is unchanged.
    pub(super) fn table(&self, snapshot: &TableSnapshot) -> Option<&'a TableRecord> {
        let (root, _) = snapshot.pinned();
        self.last.filter(|last| last.root == NodeId::of(root, root.stamp))
    }

    /// The record of a row group, if it is unchanged.
    pub(super) fn group(&self, group: Link<RowGroup>) -> Option<&'a Arc<GroupRecord>> {
        self.groups.get(&NodeId::of(group, group.stamp)).copied()
    }

    /// Makes known the blocks of row groups that are not in `groups` any more. Each block is in one row group
    /// only.
    pub(super) fn look_into_changed(&mut self, groups: &[Link<RowGroup>]) {
        let kept: HashSet<NodeId> = groups.iter().map(|group| NodeId::of(*group, group.stamp)).collect();
        let changed: Vec<_> = self.groups.values().filter(|group| !kept.contains(&group.node)).collect();
        self.blocks = changed.into_iter().flat_map(|group| group.blocks.iter().copied()).collect();
    }

    /// Makes known the blocks of an unchanged row group that is to be written again all the same.
    pub(super) fn look_into(&mut self, group: &GroupRecord) {
        self.blocks.extend(group.blocks.iter().copied());
    }

    /// The place of a block, if it is unchanged.
    pub(super) fn block(&self, block: Link<Block>) -> Option<Place> {
        let place = *self.blocks.get(&NodeId::of(block, block.stamp))?;
        let last = self.last?;
        (place.is_somewhere() && !block.is_stored_after(last.round)).then_some(place)
    }

    /// The places of dictionaries and symbol tables in the last checkpoint, by their addresses.
    pub(super) fn shared(&self) -> HashMap<usize, Place> {
        let all = self.last.iter().flat_map(|last| &last.groups).flat_map(|group| &group.shared);
        all.filter_map(|(weak, place)| Some((weak.as_ref()?.address(), *place))).collect()
    }
}
