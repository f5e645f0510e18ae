//! Decides which extents of a table stay where they are.

use super::manifest::Place;
use super::record::{GroupRecord, Known};
use crate::file::{Extent, Tail};
use crate::node::Link;
use crate::tree::RowGroup;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The decision for one table.
pub(super) struct Plan {
    /// Data extents of which too little is still needed. They are given back.
    sparse: HashSet<u64>,
    tail: Tail,
}

impl Plan {
    /// Gives back extents of which the row groups need less than half in their present state.
    pub(super) fn new(groups: &[Link<RowGroup>], known: &Known<'_>, tail: Tail) -> Plan {
        let mut needed: BTreeMap<u64, (Extent, u64)> = BTreeMap::new();
        let mut seen = HashSet::new();
        let mut need = |place: &Place| {
            // A dictionary may be needed by several row groups, and counts once.
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

    /// True if the bytes of a place stay there.
    pub(super) fn keeps_place(&self, place: &Place) -> bool {
        !self.sparse.contains(&place.extent.offset) && !self.tail.holds(place.extent)
    }

    /// True if all of an unchanged row group stays where it is.
    pub(super) fn keeps(&self, group: &GroupRecord) -> bool {
        !self.tail.holds(group.index) && group.places().all(|place| self.keeps_place(place))
    }

    /// The places of dictionaries and symbol tables that stay, by address.
    pub(super) fn shared(&self, known: &Known<'_>) -> HashMap<usize, Place> {
        let mut shared = known.shared();
        shared.retain(|_, place| self.keeps_place(place));
        shared
    }
}
