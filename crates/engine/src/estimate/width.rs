//! What a row weighs that a join keeps: its columns, their bytes, and what it takes to read them.
//!
//! A value is kept in its type's default physical type, a string as its view, so bytes follow from types.
//! Reading follows from how a column is encoded in its table, and is known for the columns of a scan that its
//! own filters do not read.

use super::join_cost::{WeighedSide, Width};
use crate::cost::Costs;
use crate::plan::tree::{ColumnSet, reads_all};
use crate::plan::{Columns, Node};
use entasis_vector::ColumnId;
use std::sync::Arc;

/// The costs of the database whose tables are below `node`.
pub(crate) fn costs(node: &Node) -> Arc<Costs> {
    fn find(node: &Node) -> Option<Arc<Costs>> {
        match node {
            Node::Scan(scan) => Some(scan.relation.costs()),
            _ => node.children().into_iter().find_map(find),
        }
    }
    find(node).unwrap_or_default()
}

/// The columns of `node` for which `wanted` holds, and what each weighs.
pub(crate) fn widths(
    node: &Node,
    columns: &Columns,
    costs: &Costs,
    wanted: impl Fn(ColumnId) -> bool,
) -> Vec<(ColumnId, Width)> {
    let ids = node.columns().into_iter().filter(|id| wanted(*id));
    let scan = match node {
        Node::Scan(scan) => scan.relation.table().map(|table| (scan, table, reads_all(&scan.filters))),
        _ => None,
    };
    let read = |id: ColumnId| {
        let (scan, table, filtered) = scan.as_ref()?;
        let (_, index) = scan.columns.iter().find(|(own, _)| *own == id)?;
        let is_stored = *index < table.schema().len() && !filtered.contains(id);
        is_stored.then(|| costs.read(table, *index))
    };
    let width = |id: ColumnId| Width {
        columns: 1.0,
        bytes: columns.ty(id).physical().width() as f64,
        read: read(id).unwrap_or(0.0),
    };
    ids.map(|id| (id, width(id))).collect()
}

/// The side of a join that `node` is, of so many rows: the join reads the columns `own`, somebody above those
/// in `above`.
pub(crate) fn side(
    node: &Node,
    rows: f64,
    (own, above): (&ColumnSet, &ColumnSet),
    columns: &Columns,
    costs: &Costs,
) -> WeighedSide {
    let mut side = WeighedSide { rows, ..WeighedSide::default() };
    for (id, width) in widths(node, columns, costs, |id| own.contains(id) || above.contains(id)) {
        if above.contains(id) { side.payload.add(width) } else { side.keys.add(width) }
    }
    side
}
