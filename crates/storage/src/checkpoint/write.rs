//! Tables to extents: what is unchanged since the last checkpoint is taken over, all else is written anew.
//!
//! 1. A table, and a row group, whose node is the one that was written keeps its extents.
//! 2. So does a block in a row group that has changed, unless a ghost slot of it was stored to.
//! 3. Data extents of which less than half is still needed are given up, and so is whatever stands at the end
//!    of a file that is mostly free ([`Tail`]): what is needed of it is written anew, changed or not.
//! 4. Blocks that are written are those of the snapshot: slots that its live bits do not show are blanked in
//!    the copy, so that it does not matter who stores a ghost meanwhile.
//!
//! Debug builds read every block that is taken over in a changed row group from the file, and compare it with
//! the one in memory, value by value.

use super::group::TableWriter;
use super::manifest::{Manifest, Place};
use super::record::{GroupRecord, Known, TableRecord};
use crate::block::Block;
use crate::block::serialized::{self, Column};
use crate::file::{DataFile, Extent, Tail};
use crate::node::Link;
use crate::table::TableSnapshot;
use crate::tree::RowGroup;
use entasis_vector::{Field, Result, bitmap};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// The extents that a checkpoint writes.
pub(super) struct Writer<'a> {
    file: &'a DataFile,
    /// Extents that are not to stay where they are.
    tail: Tail,
    /// All that were written, to be given back if nothing comes of it.
    written: Vec<Extent>,
    /// For debug builds: the extent that was read last.
    read: Option<(Extent, Vec<u8>)>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(file: &'a DataFile, tail: Tail) -> Writer<'a> {
        Writer { file, tail, written: Vec::new(), read: None }
    }

    /// What checksums of places begin with.
    pub(super) fn seed(&self) -> u64 {
        self.file.seed()
    }

    /// Writes an extent.
    pub(super) fn put(&mut self, payload: &[u8]) -> Result<Extent> {
        let extent = self.file.write(payload)?;
        self.written.push(extent);
        Ok(extent)
    }

    /// Says that nothing will refer to what was written.
    pub(super) fn abandon(self) {
        self.written.into_iter().for_each(|extent| self.file.give_up(extent));
    }

    /// Writes a table as far as it has changed.
    pub(super) fn table(
        &mut self,
        snapshot: &TableSnapshot,
        round: u32,
        last: Option<&Arc<TableRecord>>,
    ) -> Result<Arc<TableRecord>> {
        let mut known = Known::new(last.map(|last| &**last), snapshot);
        let is_far = |extent: Extent| self.tail.holds(extent);
        if let (Some(table), Some(last)) = (known.table(snapshot), last)
            && !table.extents().any(is_far)
        {
            return Ok(last.clone());
        }
        let (root, _) = snapshot.pinned();
        known.look_into_changed(&root.groups);
        let plan = Plan::new(&root.groups, &known, self.tail);
        let kept: Vec<_> = root.groups.iter().map(|group| known.group(*group)).collect();
        kept.iter().flatten().filter(|group| !plan.keeps(group)).for_each(|group| known.look_into(group));
        let (known, shared) = (&known, plan.shared(&known));
        let mut tables = TableWriter { schema: snapshot.schema(), known, plan: &plan, shared, writer: self };
        let mut groups = Vec::with_capacity(root.groups.len());
        for (&group, kept) in root.groups.iter().zip(kept) {
            groups.push(match kept.filter(|group| plan.keeps(group)) {
                Some(kept) => kept.clone(),
                None => tables.group(group)?,
            });
        }
        // An estimate, which need not be of the same moment.
        let sketches = snapshot.table().head().sketches.clone();
        let indexes = groups.iter().map(|group| group.index).collect();
        let manifest = self.put(&Manifest { sketches, groups: indexes }.encode())?;
        Ok(Arc::new(TableRecord::new(snapshot, round, manifest, groups)))
    }

    /// The slow twin of not writing a block: in debug builds, finds out that the file has the same rows.
    pub(super) fn compare(
        &mut self,
        place: Place,
        block: Link<Block>,
        field: &Field,
        live: &[u64],
    ) -> Result<()> {
        if !cfg!(debug_assertions) {
            return Ok(());
        }
        let bytes = match self.read.take().filter(|(extent, _)| *extent == place.extent) {
            Some((_, bytes)) => bytes,
            None => self.file.read(place.extent)?,
        };
        let written = serialized::read(&bytes[place.range()], Column::of(field.ty), &block.shared())?;
        let mut slots = (0..block.slots()).filter(|slot| bitmap::get(live, *slot));
        let differs = slots.find(|&slot| {
            let physical = field.ty.physical();
            !written.datum(slot, physical).is_same(block.datum(slot, physical))
        });
        let name = &field.name;
        assert!(differs.is_none(), "a block of {name} is taken for unchanged, and slot {differs:?} is not");
        self.read = Some((place.extent, bytes));
        Ok(())
    }
}

/// Which extents of a table stay.
pub(super) struct Plan {
    /// Data extents of which too little is needed.
    sparse: HashSet<u64>,
    tail: Tail,
}

impl Plan {
    /// Gives up the extents of which the row groups need less than half as they are now.
    fn new(groups: &[Link<RowGroup>], known: &Known<'_>, tail: Tail) -> Plan {
        let mut needed: BTreeMap<u64, (Extent, u64)> = BTreeMap::new();
        let mut seen = HashSet::new();
        let mut need = |place: &Place| {
            // Dictionaries are needed by several.
            if seen.insert(place.in_file()) {
                needed.entry(place.extent.offset).or_insert((place.extent, 0)).1 += place.bytes;
            }
        };
        let shared = known.shared();
        for &group in groups {
            if let Some(kept) = known.group(group) {
                kept.places().for_each(&mut need);
                continue;
            }
            for block in group.slices.iter().flat_map(|slice| slice.blocks()) {
                known.block(*block).iter().for_each(&mut need);
                let address = block.shared().address();
                address.and_then(|address| shared.get(&address)).into_iter().for_each(&mut need);
            }
        }
        let sparse = needed.into_iter().filter(|(_, (extent, bytes))| bytes * 2 < extent.bytes);
        Plan { sparse: sparse.map(|(offset, _)| offset).collect(), tail }
    }

    /// True if what is in a place stays there.
    pub(super) fn keeps_place(&self, place: &Place) -> bool {
        !self.sparse.contains(&place.extent.offset) && !self.tail.holds(place.extent)
    }

    /// True if all of a row group that has not changed stays where it is.
    fn keeps(&self, group: &GroupRecord) -> bool {
        !self.tail.holds(group.index) && group.places().all(|place| self.keeps_place(place))
    }

    /// Where what blocks share stays.
    fn shared(&self, known: &Known<'_>) -> HashMap<usize, Place> {
        let mut shared = known.shared();
        shared.retain(|_, place| self.keeps_place(place));
        shared
    }
}
