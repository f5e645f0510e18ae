//! What users are shown of a table's partitions and of its workload: how many rows and ghosts each partition
//! has, how often it is touched, how wide its columns are encoded, and what upkeep decided last and why.
//!
//! All of it row group by row group, so that a caller can be interrupted. It reads the keys of all rows.

use super::snapshot::TableSnapshot;
use crate::scan::row::datum;
use crate::sync::Ordering;
use crate::tree::key::Key;
use crate::tree::{Decision, RowGroup, RowId, UpkeepReason};
use entasis_layout::frequency::Kind;
use entasis_vector::Value;

/// How often something was touched, by kind of operation: the ten histograms of *Optimal Column Layout for
/// Hybrid Workloads*, section 4.2. Estimates; what is long ago counts less.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Frequencies(pub [f64; Frequencies::NAMES.len()]);

impl Frequencies {
    /// The paper's names: point queries; ranges that begin here, hold all of it, end here; inserts; deletes;
    /// updates that leave for a later place, come from an earlier one, leave for an earlier one or stay, come
    /// from a later one or stay.
    pub const NAMES: [&'static str; 10] = ["pq", "rs", "sc", "re", "in", "de", "udf", "utf", "udb", "utb"];

    fn of(&self, kinds: &[Kind]) -> f64 {
        kinds.iter().map(|&kind| self.0[kind as usize]).sum()
    }

    /// Point queries and ranges.
    pub fn reads(&self) -> f64 {
        self.of(&[Kind::PointQuery, Kind::RangeStart, Kind::Scan, Kind::RangeEnd])
    }

    /// New rows.
    pub fn inserts(&self) -> f64 {
        self.of(&[Kind::Insert])
    }

    /// Rows that were deleted.
    pub fn deletes(&self) -> f64 {
        self.of(&[Kind::Delete])
    }

    /// Rows that left, came or stayed because their keys were changed.
    pub fn updates(&self) -> f64 {
        self.of(&[
            Kind::UpdateFromForward,
            Kind::UpdateToForward,
            Kind::UpdateFromBackward,
            Kind::UpdateToBackward,
        ])
    }
}

/// A partition.
#[derive(Debug, Clone, PartialEq)]
pub struct PartitionInfo {
    /// The index of its row group.
    pub row_group: usize,
    /// Its index there.
    pub partition: usize,
    /// The least layout key of its rows; `None` if it has no rows.
    pub first_key: Option<Vec<Value>>,
    /// Its rows.
    pub rows: usize,
    /// Its slots.
    pub slots: usize,
    /// Its slots that are empty.
    pub ghosts: usize,
    /// How often it is touched; `None` if that is not counted.
    pub frequencies: Option<Frequencies>,
    /// Inserts less deletes that it is to expect until ghosts are handed out again; `None` if nothing was
    /// counted.
    pub expected: Option<f64>,
    /// Ghosts that it should have by that.
    pub wanted: Option<usize>,
}

/// A range of keys that has counters of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct BinInfo {
    /// The index of its row group.
    pub row_group: usize,
    /// Its index there.
    pub bin: usize,
    /// The least layout key of its rows; `None` if it has no rows.
    pub first_key: Option<Vec<Value>>,
    /// Its rows.
    pub rows: usize,
    /// How often it is touched.
    pub frequencies: Frequencies,
}

/// The least of some keys and where it is, and how many there are.
#[derive(Clone, Default)]
struct Least {
    first: Option<(Key, usize)>,
    rows: usize,
}

impl Least {
    fn add(&mut self, slot: usize, key: &Key) {
        self.rows += 1;
        if self.first.as_ref().is_none_or(|(least, _)| key < least) {
            self.first = Some((key.clone(), slot));
        }
    }
}

impl TableSnapshot {
    /// The partitions of a row group, in order; none if the table has no layout key.
    pub fn partitions(&self, group: usize) -> Vec<PartitionInfo> {
        let Some(node) = self.row_group(group) else { return Vec::new() };
        let shape = &self.table().shape;
        let demand = shape.demand(node);
        let frequencies = frequencies_of(self, node);
        let info = |number: usize| {
            let partition = &node.partitions[number];
            let mut least = Least::default();
            shape.each_key(node, number, |slot, key| least.add(slot, &key));
            PartitionInfo {
                row_group: group,
                partition: number,
                first_key: self.key_values(group, least.first),
                rows: partition.rows as usize,
                slots: partition.slots().len(),
                ghosts: partition.ghosts(),
                frequencies: frequencies.as_ref().map(|all| all[number]),
                expected: demand.as_ref().map(|demand| demand.inserts[number]),
                wanted: demand.as_ref().map(|demand| demand.wanted[number] as usize),
            }
        };
        (0..node.partitions.len()).map(info).collect()
    }

    /// The ranges of keys of a row group for which operations are counted, in order; none if they are not.
    pub fn workload(&self, group: usize) -> Vec<BinInfo> {
        let Some(node) = self.row_group(group) else { return Vec::new() };
        let Some(own) = &node.counters else { return Vec::new() };
        let mut least = vec![Least::default(); own.bins()];
        for number in 0..node.partitions.len() {
            let shape = &self.table().shape;
            shape.each_key(node, number, |slot, key| least[own.bin_of(&key)].add(slot, &key));
        }
        let frequency = own.frequency();
        let info = |(bin, least): (usize, Least)| BinInfo {
            row_group: group,
            bin,
            rows: least.rows,
            first_key: self.key_values(group, least.first),
            frequencies: Frequencies(Kind::ALL.map(|kind| frequency.of(kind)[bin])),
        };
        least.into_iter().enumerate().map(info).collect()
    }

    /// What upkeep decided last about the layout of a row group, and why; `None` if it has not, or if
    /// operations are not counted.
    pub fn decision(&self, group: usize) -> Option<Decision> {
        self.row_group(group)?.counters.as_ref()?.decision()
    }

    /// What upkeep did last to a row group, in any layout, and why it does nothing or something next; `None`
    /// if there is no such row group.
    pub fn upkeep_reason(&self, group: usize) -> Option<UpkeepReason> {
        let node = self.row_group(group)?;
        let looks = node.wear.looks.load(Ordering::Relaxed);
        Some(UpkeepReason { last: node.wear.upkept, next: self.table().shape.standing(node, looks) })
    }

    /// Bits of a slot in some columns together, as their blocks are encoded now: without validity,
    /// dictionaries and headers. It is what a range reads of a row, and what
    /// [`entasis_layout::cost::Engine::on`] charges. A slice counts by the slots that it has memory for, so
    /// that a short one behind a full partition, whose numbers are not encoded yet, counts for little.
    pub fn encoded_bits(&self, columns: &[usize]) -> f64 {
        let (mut bits, mut slots) = (0.0, 0.0);
        for group in self.row_groups() {
            for (block, slice) in group.slices.iter().enumerate() {
                let of = |&column: &usize| group.block_info(column, block).bits_per_value;
                let own = slice.memory_slots() as f64;
                bits += own * columns.iter().map(of).sum::<f64>();
                slots += own;
            }
        }
        bits / f64::max(slots, 1.0)
    }

    fn key_values(&self, group: usize, row: Option<(Key, usize)>) -> Option<Vec<Value>> {
        let (_, slot) = row?;
        let (root, _) = self.pinned();
        let id = RowId { group: group as u32, slot: slot as u32 };
        let value = |&column: &usize| {
            let ty = self.schema()[column].ty;
            datum(&root, id, column, ty).value(ty)
        };
        Some(self.table().options().layout_key.iter().map(value).collect())
    }
}

/// How often each partition is touched.
fn frequencies_of(snapshot: &TableSnapshot, node: &RowGroup) -> Option<Vec<Frequencies>> {
    let own = node.counters.as_ref()?;
    let frequency = own.frequency();
    let of_partition = |shares: Vec<(usize, f64)>| {
        let of = |kind: Kind| shares.iter().map(|&(bin, share)| frequency.of(kind)[bin] * share).sum();
        Frequencies(Kind::ALL.map(of))
    };
    Some(snapshot.table().shape.shares(node, own).into_iter().map(of_partition).collect())
}
