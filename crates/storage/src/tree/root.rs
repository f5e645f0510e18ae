//! Roots: one version of a whole table.

use super::{Edit, Node};
use crate::node::{Link, Linked, Stamp};
use crate::tree::key::Fences;
use crate::tree::{RowGroup, RowId};

/// The row groups of a table, in the order of their slots, and of the layout key if there is one.
pub(crate) struct Root {
    pub(crate) stamp: Stamp,
    /// The number of rows.
    pub(crate) rows: u64,
    pub(crate) groups: Vec<Link<RowGroup>>,
    /// The least key that may be in each group; the first is the least of all keys.
    pub(crate) fences: Fences,
    /// The number of the next row, in a table without a layout key ([`super::numbers`]).
    pub(crate) next_number: u64,
}

impl Root {
    /// The row number of a row, in a table without a layout key.
    pub(crate) fn number_of(&self, row: RowId) -> u64 {
        self.groups[row.group as usize].numbers.of(row.slot as usize)
    }
}

impl Linked for Root {
    type Ahead = ();
    fn ahead(&self) {}
}

impl Node for Root {
    fn stamp(&self) -> Stamp {
        self.stamp
    }

    fn stamp_mut(&mut self) -> &mut Stamp {
        &mut self.stamp
    }

    fn copy(&self, edit: &Edit) -> Root {
        Root { stamp: edit.stamp, groups: self.groups.clone(), fences: self.fences.clone(), ..*self }
    }

    fn retire(link: Link<Root>, edit: &mut Edit) {
        edit.retire_root(link);
    }
}
