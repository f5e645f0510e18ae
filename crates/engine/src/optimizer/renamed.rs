//! Rules that replace columns: from some node of a plan upwards, other columns are read in place of its own.
//!
//! Every node has its own column ids, so what a rule makes in place of a node's columns is called otherwise,
//! and all that is above it must follow: [`from_below`] walks a plan from its leaves, lets the rule change
//! each node, and renames what is read above.

use crate::plan::tree::{for_each_expr, substitute};
use crate::plan::{Columns, Node, Plan};
use entasis_vector::ColumnId;
use entasis_vector::expr::Expr;
use std::collections::HashMap;

/// Columns, and those that are read in their place above.
#[derive(Default)]
pub(super) struct Renamed(HashMap<ColumnId, ColumnId>);

impl Renamed {
    /// Notes that `new` is read in place of `old`, and of all that `old` was read in place of.
    pub(super) fn replace(&mut self, old: ColumnId, new: ColumnId) {
        self.0.values_mut().filter(|column| **column == old).for_each(|column| *column = new);
        self.0.insert(old, new);
    }

    fn exchange(&self, id: &mut ColumnId) {
        *id = self.0.get(id).copied().unwrap_or(*id);
    }

    /// Renames the columns that `node` itself reads.
    pub(super) fn rename(&self, node: &mut Node, columns: &Columns) {
        let with = self.0.iter().map(|(old, new)| (*old, columns.expr(*new))).collect();
        for_each_expr(node, &mut |expr, _| {
            let taken = std::mem::replace(expr, Expr::boolean(true));
            *expr = substitute(taken, &with);
        });
        match node {
            Node::Distinct(distinct) => distinct.keys.iter_mut().for_each(|id| self.exchange(id)),
            Node::SetOperation(set) => {
                set.inputs.iter_mut().flat_map(|(_, ids)| ids).for_each(|id| self.exchange(id));
            }
            _ => {}
        }
    }
}

/// Changes each node of a plan, inputs first. `change` gets a node that reads what it is called by now, and
/// adds the columns that it replaces.
pub(super) fn from_below(plan: &mut Plan, change: impl Fn(&mut Node, &mut Columns, &mut Renamed)) {
    let mut renamed = Renamed::default();
    walk(&mut plan.root, &mut plan.columns, &mut renamed, &change);
    plan.output.iter_mut().for_each(|output| renamed.exchange(&mut output.column));
}

fn walk(
    node: &mut Node,
    columns: &mut Columns,
    renamed: &mut Renamed,
    change: &impl Fn(&mut Node, &mut Columns, &mut Renamed),
) {
    let mut below = Renamed::default();
    node.children_mut().into_iter().for_each(|child| walk(child, columns, &mut below, change));
    if !below.0.is_empty() {
        below.rename(node, columns);
    }
    change(node, columns, &mut below);
    renamed.0.extend(below.0);
}
