//! Tables to extents: what is unchanged since the last checkpoint is taken over, all else is written anew.
//!
//! 1. A table, and a row group, whose node is the one that was written keeps its extents.
//! 2. So does a block in a row group that has changed, unless a ghost slot of it was stored to.
//! 3. Data extents of which less than half is still needed are given up, and so is whatever stands at the end
//!    of a file that is mostly free ([`crate::file`]): what is needed of it is written anew, changed or not.
//! 4. Blocks that are written are those of the snapshot: slots that its live bits do not show are blanked in
//!    the copy, so that it does not matter who stores a ghost meanwhile.
//!
//! Debug builds read every block that is taken over in a changed row group from the file, and compare it with
//! the one in memory, value by value.

use super::extents::ExtentWriter;
use super::group::GroupWriter;
use super::manifest::Manifest;
use super::plan::Plan;
use super::record::{GroupRecord, Known, TableRecord};
use crate::file::Extent;
use crate::table::TableSnapshot;
use entasis_vector::Result;
use std::sync::Arc;

/// Writes a table that is not in the file. Its round is for whoever publishes it to say.
pub(super) fn whole(writer: &mut ExtentWriter<'_>, snapshot: &TableSnapshot) -> Result<TableRecord> {
    let known = Known::new(None, snapshot);
    let (root, _) = snapshot.pinned();
    let plan = Plan::new(&root.groups, &known, writer.tail());
    let shared = plan.shared(&known);
    let mut new = GroupWriter { schema: snapshot.schema(), known: &known, plan: &plan, shared, writer };
    let groups = root.groups.iter().map(|&group| new.group(group)).collect::<Result<Vec<_>>>()?;
    finish(writer, snapshot, 0, groups)
}

/// Writes a table as far as it has changed.
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

/// Writes the manifest of a table whose row groups are in the file.
fn finish(
    writer: &mut ExtentWriter<'_>,
    snapshot: &TableSnapshot,
    round: u32,
    groups: Vec<Arc<GroupRecord>>,
) -> Result<TableRecord> {
    let (root, _) = snapshot.pinned();
    // An estimate, which need not be of the same moment.
    let sketches = snapshot.table().head().sketches.clone();
    let indexes = groups.iter().map(|group| group.index).collect();
    let manifest = Manifest { next_number: root.next_number, sketches, groups: indexes };
    let manifest = writer.put(&manifest.encode())?;
    Ok(TableRecord::new(snapshot, round, manifest, groups))
}
