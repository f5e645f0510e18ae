//! Writes tables to extents. What has not changed since the last checkpoint is taken over.
//!
//! 1. A table, or a row group, whose node is unchanged keeps its extents.
//! 2. So does an unchanged block in a changed row group, unless one of its ghost slots was stored to.
//! 3. Data extents of which less than half is still needed are given back, and so is whatever stands at the
//!    end of a file that is mostly free ([`crate::file`]). What is needed of them is written again, changed
//!    or not.
//! 4. Blocks are written as the snapshot shows them: slots that are dead in it are blanked in the copy, so
//!    that concurrent stores to ghost slots do not matter.
//!
//! When a changed row group takes over a block, debug builds read it from the file and compare it with the
//! one in memory, value by value.

use super::extents::ExtentWriter;
use super::group::GroupWriter;
use super::manifest::Manifest;
use super::plan::Plan;
use super::record::{GroupRecord, Known, TableRecord};
use crate::file::Extent;
use crate::table::TableSnapshot;
use crate::tree::key::CurveKey;
use entasis_vector::Result;
use std::sync::Arc;

/// Writes a table that is not in the file. The caller sets the round of the record when it publishes the
/// table.
pub(super) fn whole(writer: &mut ExtentWriter<'_>, snapshot: &TableSnapshot) -> Result<TableRecord> {
    let known = Known::new(None, snapshot);
    let (root, _) = snapshot.pinned();
    let plan = Plan::new(&root.groups, &known, writer.tail());
    let shared = plan.shared(&known);
    let mut new = GroupWriter { schema: snapshot.schema(), known: &known, plan: &plan, shared, writer };
    let groups = root.groups.iter().map(|&group| new.group(group)).collect::<Result<Vec<_>>>()?;
    finish(writer, snapshot, 0, groups)
}

/// Writes what has changed of a table.
pub(super) fn table(
    writer: &mut ExtentWriter<'_>,
    snapshot: &TableSnapshot,
    round: u32,
    last: Option<&Arc<TableRecord>>,
) -> Result<Arc<TableRecord>> {
    let mut known = Known::new(last.map(|last| &**last), snapshot);
    let tail = writer.tail();
    let is_far = |extent: Extent| tail.holds(extent);
    if let (Some(table), Some(last)) = (known.table(snapshot), last)
        && !table.extents().any(is_far)
    {
        return Ok(last.clone());
    }
    let (root, _) = snapshot.pinned();
    known.look_into_changed(&root.groups);
    let plan = Plan::new(&root.groups, &known, tail);
    let kept: Vec<_> = root.groups.iter().map(|group| known.group(*group)).collect();
    kept.iter().flatten().filter(|group| !plan.keeps(group)).for_each(|group| known.look_into(group));
    let (known, shared) = (&known, plan.shared(&known));
    let mut changed = GroupWriter { schema: snapshot.schema(), known, plan: &plan, shared, writer };
    let mut groups = Vec::with_capacity(root.groups.len());
    for (&group, kept) in root.groups.iter().zip(kept) {
        groups.push(match kept.filter(|group| plan.keeps(group)) {
            Some(kept) => kept.clone(),
            None => changed.group(group)?,
        });
    }
    finish(writer, snapshot, round, groups).map(Arc::new)
}

/// Writes the manifest of a table whose row groups have been written.
fn finish(
    writer: &mut ExtentWriter<'_>,
    snapshot: &TableSnapshot,
    round: u32,
    groups: Vec<Arc<GroupRecord>>,
) -> Result<TableRecord> {
    let (root, _) = snapshot.pinned();
    // Estimates, which need not be of the same moment.
    let sketches = snapshot.table().head().sketches.clone();
    let indexes = groups.iter().map(|group| group.index).collect();
    let counted = root.groups.iter().map(|group| Some(group.counters.as_deref()?.kept())).collect();
    let curve = snapshot.table().shape.key.as_ref().and_then(|key| key.curve.as_ref());
    let grid = curve.map(CurveKey::grid);
    let manifest = Manifest { next_number: root.next_number, sketches, groups: indexes, grid, counted };
    let manifest = writer.put(&manifest.encode())?;
    Ok(TableRecord::new(snapshot, round, manifest, groups))
}
