//! Snapshots: one version of a table, pinned while the snapshot is held.

use super::duplicates;
use super::head::{Head, Table};
use super::index;
use super::key_sample::KeySample;
use super::reader::TableReader;
use super::row_sample::RowSample;
use super::summaries::Summaries;
use crate::node::{Link, Stamp};
use crate::scan::lookup::{self, SlotRange};
use crate::scan::row::datum;
use crate::tree::key::{Key, LayoutKey};
use crate::tree::{Flaw, Root, RowGroup, RowId};
use crate::value::{ColumnSummary, Datum, Zone};
use entasis_vector::{DataType, Schema, Value};
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

/// The rows of a table at the moment when the snapshot was taken. It pins them, and all strings that are
/// decoded from them. Cheap to clone.
#[derive(Clone)]
pub struct TableSnapshot(Arc<Pinned>);

struct Pinned {
    table: Arc<Table>,
    root: Link<Root>,
    stamp: Stamp,
    summaries: Arc<Summaries>,
    origin: Origin,
}

/// What a snapshot was taken of.
pub(crate) enum Origin {
    /// The head, after this number of changes.
    Head { changes: u64 },
    /// A fork that began with `_base`. The snapshot shows nodes that the head may have retired before the
    /// snapshot's own stamp, so that the base must be held as well.
    Fork { _base: TableSnapshot },
}

impl Drop for Pinned {
    fn drop(&mut self) {
        self.table.lineage().epochs().leave(self.stamp);
    }
}

impl Table {
    /// A snapshot of the newest version.
    pub fn snapshot(self: &Arc<Table>) -> TableSnapshot {
        let mut head = self.head();
        self.pin(&mut head)
    }

    /// A snapshot of the head, which is locked.
    pub(crate) fn pin(self: &Arc<Table>, head: &mut Head) -> TableSnapshot {
        if std::mem::take(&mut head.is_changed) {
            head.summaries = Arc::new(Summaries::new(self.schema().len()));
        }
        let (root, stamp) = head.branch.pin();
        TableSnapshot::new(
            self.clone(),
            root,
            stamp,
            head.summaries.clone(),
            Origin::Head { changes: head.changes },
        )
    }

    /// A snapshot of the head, which is locked, for a checkpoint, and the number of the round that ends with
    /// it ([`crate::block::Block::is_stored_after`]).
    pub(crate) fn pin_round(self: &Arc<Table>, head: &mut Head) -> (TableSnapshot, u32) {
        let round = head.branch.end_round();
        (self.pin(head), round)
    }
}

impl TableSnapshot {
    /// A snapshot of `root`, taken at `stamp`.
    pub(crate) fn new(
        table: Arc<Table>,
        root: Link<Root>,
        stamp: Stamp,
        summaries: Arc<Summaries>,
        origin: Origin,
    ) -> TableSnapshot {
        TableSnapshot(Arc::new(Pinned { table, root, stamp, summaries, origin }))
    }

    /// The root and stamp that a fork begins with.
    pub(crate) fn pinned(&self) -> (Link<Root>, Stamp) {
        (self.0.root, self.0.stamp)
    }

    /// What it was taken of.
    pub(super) fn origin(&self) -> &Origin {
        &self.0.origin
    }

    /// True if this and `other` show the same version of the same table.
    pub fn is_same(&self, other: &TableSnapshot) -> bool {
        let (a, b) = (&self.0, &other.0);
        Arc::ptr_eq(a, b) || (Arc::ptr_eq(&a.table, &b.table) && a.root.is(b.root) && a.stamp == b.stamp)
    }

    /// True if this has the rows of the newest version, in the same places or others.
    pub(crate) fn is_of(&self, head: &Head) -> bool {
        let is_unchanged = matches!(self.0.origin, Origin::Head { changes } if changes == head.changes);
        is_unchanged || self.0.root.is(head.branch.root)
    }

    /// A row of a row group whose layout key another row has, in this row group or one before it. A key with
    /// a NULL equals no other.
    pub fn first_duplicate(&self, group: usize) -> Option<RowId> {
        duplicates::in_group(&self.0.root, &self.0.table.shape, group)
    }

    /// The row number of a row, in a table without a layout key.
    pub fn number_of(&self, row: RowId) -> u64 {
        self.0.root.number_of(row)
    }

    /// The row with a row number, in a table without a layout key.
    pub fn find_number(&self, number: u64) -> Option<RowId> {
        lookup::by_number(&self.0.root, number)
    }

    /// The slots of all rows with this row number and greater ones, in a table without a layout key.
    pub fn slots_from(&self, number: u64) -> Vec<SlotRange> {
        lookup::from_number(&self.0.root, number)
    }

    /// The table's name.
    pub fn name(&self) -> &str {
        self.0.table.name()
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.0.table
    }

    /// The columns.
    pub fn schema(&self) -> &Schema {
        self.0.table.schema()
    }

    /// The number of rows.
    pub fn rows(&self) -> u64 {
        self.0.root.rows
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.row_groups().map(RowGroup::bytes).sum()
    }

    /// The row groups, in the order of their slots.
    pub fn row_groups(&self) -> impl ExactSizeIterator<Item = &RowGroup> {
        self.0.root.groups.iter().map(|group| &**group)
    }

    /// The row group at an index.
    pub fn row_group(&self, index: usize) -> Option<&RowGroup> {
        self.0.root.groups.get(index).map(|group| &**group)
    }

    /// The ids of all rows, in the order of their places.
    pub fn row_ids(&self) -> impl Iterator<Item = RowId> {
        self.row_groups().enumerate().flat_map(|(group, node)| {
            let slots = (0..node.slots()).filter(|&slot| node.is_live(slot));
            slots.map(move |slot| RowId { group: group as u32, slot: slot as u32 })
        })
    }

    /// A row whose layout key is `key`: a datum for each of its columns.
    pub fn find(&self, key: &[Datum<'_>]) -> Option<RowId> {
        lookup::first(&self.0.root, &self.0.table.shape, key)
    }

    /// Calls `each` with every row whose layout key is `key`, until it returns false.
    pub fn find_each(&self, key: &[Datum<'_>], each: impl FnMut(RowId) -> bool) {
        lookup::find_each(&self.0.root, &self.0.table.shape, key, each);
    }

    /// The slots that may hold rows whose layout key is within bounds, in order. A bound has a datum for each
    /// of the first columns of the key, and stands for all keys that begin with these. All slots if the table
    /// has no layout key.
    pub fn range(&self, low: Bound<&[Datum<'_>]>, high: Bound<&[Datum<'_>]>) -> Vec<SlotRange> {
        self.range_keys(low, high, |low, high| lookup::range(&self.0.root, low, high))
    }

    /// The same for somebody who is going to read these slots, so that it counts as a range query, or as a
    /// point query if both bounds are the same whole key.
    pub fn scan_range(&self, low: Bound<&[Datum<'_>]>, high: Bound<&[Datum<'_>]>) -> Vec<SlotRange> {
        let shape = &self.0.table.shape;
        if let (Some(key), Bound::Included(least), Bound::Included(greatest)) = (&shape.key, low, high)
            && [least, greatest].iter().all(|bound| bound.len() == key.columns.len())
        {
            let point = key.of_datums(least);
            if point == key.of_datums(greatest) {
                lookup::count_point(&self.0.root, shape, &point);
                return self.range(low, high);
            }
        }
        self.range_keys(low, high, |low, high| {
            lookup::count_range(&self.0.root, shape, low, high);
            lookup::range(&self.0.root, low, high)
        })
    }

    fn range_keys(
        &self,
        low: Bound<&[Datum<'_>]>,
        high: Bound<&[Datum<'_>]>,
        find: impl FnOnce(Bound<&Key>, Bound<&Key>) -> Vec<SlotRange>,
    ) -> Vec<SlotRange> {
        let Some(key) = &self.0.table.shape.key else {
            let whole = |(group, node): (usize, &RowGroup)| SlotRange {
                group,
                slots: 0..node.slots(),
                is_whole: false,
            };
            return self.row_groups().enumerate().map(whole).collect();
        };
        if key.curve.is_some() {
            return self.range_on_curve(key, low, high);
        }
        let low = match low {
            Bound::Excluded(datums) => Bound::Excluded(key.last_of(datums)),
            other => other.map(|datums| key.of_datums(datums)),
        };
        let high = match high {
            Bound::Included(datums) => Bound::Included(key.last_of(datums)),
            other => other.map(|datums| key.of_datums(datums)),
        };
        find(low.as_ref(), high.as_ref())
    }

    /// The slots of one key, if the bounds say that, and otherwise all: on a curve, keys with a common
    /// beginning are not together. Each row must be tested, since different keys may be at one position.
    fn range_on_curve(
        &self,
        key: &LayoutKey,
        low: Bound<&[Datum<'_>]>,
        high: Bound<&[Datum<'_>]>,
    ) -> Vec<SlotRange> {
        let is_point = |(low, high): (&[Datum<'_>], &[Datum<'_>])| {
            low.len() == key.columns.len()
                && low.len() == high.len()
                && low.iter().zip(high).all(|(low, high)| low.total_cmp(*high).is_eq())
        };
        let mut ranges = match (low, high) {
            (Bound::Included(low), Bound::Included(high)) if is_point((low, high)) => {
                let position = key.of_datums(low);
                lookup::range(&self.0.root, Bound::Included(&position), Bound::Included(&position))
            }
            _ => lookup::range(&self.0.root, Bound::Unbounded, Bound::Unbounded),
        };
        let are_bounded = !matches!((low, high), (Bound::Unbounded, Bound::Unbounded));
        ranges.iter_mut().for_each(|range| range.is_whole &= !are_bounded);
        ranges
    }

    /// Reads single rows of this version.
    pub(crate) fn reader(&self) -> TableReader<'_> {
        TableReader::new(&self.0.table, &self.0.root)
    }

    /// Appends some values of a row to `out`, in the order of `columns`. Faster than reading them one by one.
    pub fn read<'r>(&'r self, row: RowId, columns: &[usize], out: &mut Vec<Datum<'r>>) {
        crate::scan::row::read(&self.0.root, row, columns, self.schema(), out);
    }

    /// The same for columns of an index of the table ([`index::index_columns`]).
    pub fn read_indexed<'r>(&'r self, row: RowId, columns: &[usize], out: &mut Vec<Datum<'r>>) {
        index::read(&self.0.root, row, columns, self.schema(), out);
    }

    /// One value of a row.
    pub fn datum(&self, row: RowId, column: usize) -> Datum<'_> {
        datum(&self.0.root, row, column, self.schema()[column].ty)
    }

    /// Flaws of this version as a whole, of counts and fences. There are none unless there is a defect.
    pub fn flaws(&self) -> Vec<Flaw> {
        crate::tree::check::of_root(&self.0.root, &self.0.table.shape)
    }

    /// Flaws of a row group, of counts, ranges, fences and zones, and NULLs in NOT NULL columns.
    pub fn flaws_of_group(&self, number: usize) -> Vec<Flaw> {
        let (root, shape) = (&self.0.root, &self.0.table.shape);
        let mut found = crate::tree::check::of_group(root, shape, number);
        found.extend(crate::tree::check::unwanted_nulls(root, shape, number));
        found
    }

    /// Checks the invariants of this version. For tests.
    ///
    /// # Panics
    /// If one does not hold.
    pub fn check(&self) {
        crate::tree::check::check(&self.0.root, &self.0.table.shape);
    }

    /// What is known of a column. The index after the last one stands for the id of the row ([`RowId`]).
    pub fn column_statistics(&self, column: usize) -> ColumnSummary {
        if column == self.schema().len() {
            return ColumnSummary { min: None, max: None, nulls: 0, distinct: self.rows(), unique: true };
        }
        self.0.summaries.of(column, || self.summarize(column))
    }

    /// A sample of a column of the table: of this version, or of one with about as many rows.
    pub fn key_sample(&self, column: usize) -> Arc<KeySample> {
        let physical = self.schema()[column].ty.physical();
        self.table().key_samples.of(&self.0.root, column, physical)
    }

    /// A sample of the rows of the table: of this version, or of a similar one.
    pub fn row_sample(&self) -> RowSample<'_> {
        let table = self.table();
        table.row_samples.of(&self.0.root, self.schema().len(), table.options().group_slots)
    }

    fn summarize(&self, column: usize) -> ColumnSummary {
        let mut zone = Zone::EMPTY;
        let mut nulls = 0;
        for group in self.row_groups() {
            nulls += group.nulls(column);
            zone.merge(&Zone { nulls: 0, ..group.column_zone(column).clone() });
        }
        let values = self.rows() - nulls;
        let bounds_are_known = self.schema()[column].ty != DataType::Uuid && values > 0;
        let known = |value: Value| (bounds_are_known && !value.is_null()).then_some(value);
        let groups: Vec<&RowGroup> = self.row_groups().filter(|group| group.rows() > 0).collect();
        let ascends = nulls == 0
            && groups.iter().all(|group| group.ascends(column))
            && groups.windows(2).all(|pair| {
                let (a, b) = (pair[0].column_zone(column), pair[1].column_zone(column));
                a.max.total_cmp(&b.min).is_lt()
            });
        let options = self.table().options();
        let is_key = options.unique && options.layout_key == [column] && nulls == 0;
        let distinct = if (ascends && bounds_are_known) || is_key {
            values
        } else if zone.min == zone.max && bounds_are_known {
            values.min(1)
        } else {
            self.table().head().sketches[column].estimate().clamp(values.min(1), values)
        };
        ColumnSummary {
            min: known(zone.min),
            max: known(zone.max),
            nulls,
            distinct,
            unique: ascends || is_key,
        }
    }
}

impl fmt::Debug for TableSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TableSnapshot({}, {} rows)", self.name(), self.rows())
    }
}
