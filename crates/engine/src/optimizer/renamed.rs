//! Columns that other columns replace from some node of a plan upwards.

use crate::plan::tree::{for_each_expr, substitute};
use crate::plan::{Columns, Node, Plan};
use entasis_vector::ColumnId;
use entasis_vector::expr::Expr;
use std::collections::HashMap;

/// Columns, and those that are read in their place above.
pub(super) type Renamed = HashMap<ColumnId, ColumnId>;

/// Renames the columns that `node` itself reads.
pub(super) fn rename(node: &mut Node, renamed: &Renamed, columns: &Columns) {
    let with = renamed.iter().map(|(old, new)| (*old, columns.expr(*new))).collect();
    for_each_expr(node, &mut |expr, _| {
        let taken = std::mem::replace(expr, Expr::boolean(true));
        *expr = substitute(taken, &with);
    });
    match node {
        Node::Distinct(distinct) => distinct.keys.iter_mut().for_each(|id| exchange(id, renamed)),
        Node::SetOperation(set) => {
            set.inputs.iter_mut().flat_map(|(_, ids)| ids).for_each(|id| exchange(id, renamed));
        }
        _ => {}
    }
}

/// Renames the columns that a plan returns.
pub(super) fn rename_output(plan: &mut Plan, renamed: &Renamed) {
    plan.output.iter_mut().for_each(|output| exchange(&mut output.column, renamed));
}

fn exchange(id: &mut ColumnId, renamed: &Renamed) {
    *id = renamed.get(id).copied().unwrap_or(*id);
}
