//! Tables that are made of others with other columns, and succeed them.
//!
//! ```text
//!            with_columns                 succeed, when its name is published
//! owner ───────────────────▶ heir ─────────────────────────────────────────▶ owner
//!   │                          └─ dropped: frees its own nodes
//!   └──────────────────────────────────────────────────────────────────────▶ succeeded
//! ```
//! An **heir** shows the blocks of a version of another table, which it holds, in row groups and slices of
//! its own; the work is in proportion to the slices, not to what the blocks hold. It is written as a fork is:
//! what it shares is copied. When its name is published, it **succeeds** the other table: that one is then a
//! snapshot of the version that the heir was made of, for statements that have found it under its name
//! before, and is not written any more ([`crate::tree::lineage`]).
//!
//! A table has an heir only if what is known of it is in its head: a transaction that has changed its rows
//! writes a new table from a query instead. An heir of an heir that has not been written is made of the same
//! version as that one, so that there are no chains: each holds a table that has succeeded already.
//!
//! The caller who replaces the old table makes sure that its rows have not changed when the new one is
//! published ([`crate::Transaction::alone`], [`crate::Transaction::depend_on`]). If they have, the heir stays
//! an heir: it is right, as a fork is, but holds the version that it was made of. The log has an heir that
//! has not been written as the columns that it was made with (docs/design/file-format.md).

use super::head::{Base, Head, Heir, Role, Table, new_id};
use super::snapshot::{Origin, TableSnapshot};
use crate::definition::{ObjectId, TableOptions};
use crate::node::Link;
use crate::tree::{ColumnSource, Root, Shape};
use crate::value::{Datum, Sketch};
use entasis_vector::{DataType, Schema};
use std::sync::Arc;

impl TableSnapshot {
    /// A new table with the same rows at the same places, and columns from `sources`, one for each field of
    /// `schema`. It shares blocks with the old one. `None` if it cannot: if rows are laid out by other
    /// columns, or a column comes twice or from one of another type, or this is not a version that was
    /// published, or that of a table which another one has succeeded.
    pub fn with_columns(
        &self,
        schema: Schema,
        sources: &[ColumnSource],
        options: TableOptions,
    ) -> Option<Arc<Table>> {
        self.with_columns_as(ObjectId::fresh(), schema, sources, options)
    }

    /// The same for a table that has an id already.
    pub(crate) fn with_columns_as(
        &self,
        object: ObjectId,
        schema: Schema,
        sources: &[ColumnSource],
        options: TableOptions,
    ) -> Option<Arc<Table>> {
        let shape = Shape::new(self.name().to_owned(), schema, options);
        let (base, sources) = {
            let head = self.table().head();
            match (&head.role, self.origin()) {
                (Role::Owner, Origin::Head { changes }) => {
                    (Base::hold(self.table(), self.pinned(), *changes), sources.to_vec())
                }
                (Role::Heir(heir), _) if head.is_unwritten(heir) && heir.root.is(self.pinned().0) => {
                    let composed = sources.iter().map(|source| match source {
                        ColumnSource::Old(column) => heir.sources.get(*column).cloned(),
                        constant => Some(constant.clone()),
                    });
                    (heir.base.clone(), composed.collect::<Option<Vec<_>>>()?)
                }
                _ => return None,
            }
        };
        Table::heir(base, object, shape, sources)
    }

    /// The id of the table that this one is an heir of, and where its columns come from, if this is what it
    /// began with.
    pub(crate) fn inherited(&self) -> Option<(ObjectId, Vec<ColumnSource>)> {
        let head = self.table().head();
        match &head.role {
            Role::Heir(heir) if head.is_unwritten(heir) && heir.root.is(self.pinned().0) => {
                Some((heir.base.table().object(), heir.sources.clone()))
            }
            _ => None,
        }
    }
}

impl Table {
    /// See [`TableSnapshot::with_columns`].
    fn heir(base: Base, object: ObjectId, shape: Shape, sources: Vec<ColumnSource>) -> Option<Arc<Table>> {
        let old = base.table().clone();
        let dropped = dropped(&old.shape, &shape, &sources)?;
        if let (Some(own), Some(of_old)) = (&shape.key, &old.shape.key) {
            own.adopt(of_old);
        }
        let (old_root, _) = base.pinned();
        let head = old.head();
        let sketches = sources.iter().zip(&shape.schema).map(|(source, field)| match source {
            ColumnSource::Old(column) => head.sketches[*column].clone(),
            ColumnSource::Constant(value) => sketch_of(Datum::of_value(value, field.ty)),
        });
        let sketches = sketches.collect();
        let start = head.branch.heir(&shape.options);
        drop(head);
        let branch = start.with_root(|edit| {
            let groups = old_root.groups.iter();
            let groups = groups.map(|group| Link::new(group.with_columns(&sources, &dropped, &shape, edit)));
            let (stamp, groups) = (edit.stamp, groups.collect());
            Root { stamp, groups, rows: old_root.rows, fences: old_root.fences.clone(), ..*old_root }
        });
        let shared_bytes = branch.bytes().saturating_sub(own_bytes(&branch.root, &sources));
        let heir = Heir { base, sources, root: branch.root, shared_bytes };
        let lineage = old.lineage().clone();
        lineage.join(object);
        Some(Table::of_branch((new_id(), object, shape, lineage), branch, sketches, Role::Heir(heir.into())))
    }

    /// Succeeds the table that it was made of, whose write lock is held or whose rows nobody else can
    /// change. False if that has other rows by now, or this is no heir.
    pub(crate) fn succeed(&self) -> bool {
        let base = match &self.head().role {
            Role::Heir(heir) => heir.base.clone(),
            _ => return false,
        };
        let old = base.table();
        // In the order of ids.
        let (mut old_head, mut head) = (old.head(), self.head());
        if !base.is_of(&old_head) || !matches!(old_head.role, Role::Owner) {
            return false;
        }
        let Role::Heir(heir) = std::mem::replace(&mut head.role, Role::Owner) else { return false };
        let mut is_dropped = vec![true; old.schema().len()];
        heir.sources.iter().filter_map(ColumnSource::old).for_each(|column| is_dropped[column] = false);
        head.branch.succeed(&mut old_head.branch, base.pinned(), &is_dropped);
        // Nothing is written in place any more.
        (old_head.role, old_head.changed_at) = (Role::Succeeded, 0);
        drop((old_head, head));
        true
    }

    /// Bytes of memory that it takes beside those of a table that it was made of and has not succeeded.
    pub fn own_bytes(&self) -> usize {
        let head = self.head();
        match &head.role {
            Role::Heir(heir) => head.branch.bytes().saturating_sub(heir.shared_bytes),
            _ => head.branch.bytes(),
        }
    }
}

impl Head {
    /// True if no row was changed, and none was moved but within nodes that nobody else has seen.
    fn is_unwritten(&self, heir: &Heir) -> bool {
        self.changes == 0 && self.branch.root.is(heir.root)
    }
}

/// The columns of the old table that the new one does not have; `None` if rows cannot keep their places, or
/// columns are not what they were.
fn dropped(old: &Shape, new: &Shape, sources: &[ColumnSource]) -> Option<Vec<usize>> {
    let (from, to) = (&old.options, &new.options);
    let key: Option<Vec<usize>> =
        to.layout_key.iter().map(|&column| sources.get(column).and_then(ColumnSource::old)).collect();
    let is_form_kept = match (&old.key, &new.key) {
        (Some(old), Some(new)) => new.has_form_of(old),
        (old, new) => old.is_none() && new.is_none(),
    };
    let is_laid_alike = is_form_kept
        && to.layout == from.layout
        && key.as_ref() == Some(&from.layout_key)
        && (to.block_slots, to.group_slots) == (from.block_slots, from.group_slots);
    let mut dropped: Vec<Option<DataType>> = old.schema.iter().map(|field| Some(field.ty)).collect();
    // A block has one place in its slice.
    let has_its = |(source, field): (&ColumnSource, &entasis_vector::Field)| match source {
        ColumnSource::Old(column) => dropped.get_mut(*column).and_then(Option::take) == Some(field.ty),
        ColumnSource::Constant(_) => true,
    };
    let are_kept = sources.len() == new.schema.len() && sources.iter().zip(&new.schema).all(has_its);
    let left = dropped.iter().enumerate().filter_map(|(column, left)| left.map(|_| column));
    (is_laid_alike && are_kept).then(|| left.collect())
}

/// The sketch of a column of one value.
fn sketch_of(datum: Datum<'_>) -> Sketch {
    let mut sketch = Sketch::default();
    if !datum.is_null() {
        sketch.add(datum.hash());
    }
    sketch
}

/// Bytes of memory of the nodes that an heir begins with and the other table does not have.
fn own_bytes(root: &Root, sources: &[ColumnSource]) -> usize {
    let new: Vec<usize> = (0..sources.len()).filter(|&column| sources[column].old().is_none()).collect();
    let of_slice = |slice: &crate::tree::Slice| {
        let blocks: usize = new.iter().map(|&column| slice.block(column).bytes()).sum();
        blocks + size_of::<crate::tree::Slice>() + size_of_val(slice.blocks())
    };
    let slices = root.groups.iter().flat_map(|group| &group.slices).map(|slice| of_slice(slice));
    slices.sum::<usize>() + root.groups.iter().map(|group| group.digest_bytes()).sum::<usize>()
}
