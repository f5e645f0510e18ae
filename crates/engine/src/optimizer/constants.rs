//! Rule: a scalar subquery that does not refer to the rows around it is a constant that is known when the
//! query runs.
//!
//! ```text
//! SELECT … FROM sales, days WHERE day = days.id AND days.month = (SELECT DISTINCT month FROM days WHERE …)
//!     → … days JOIN (SELECT single_value(month) FROM (SELECT DISTINCT …)) s ON days.month = s.month
//! ```
//! A single join ends a tree of joins, and is done where it was written: above the others, after which its
//! comparison is a filter. The aggregate has exactly one row, so that an inner join does the same. It takes
//! part in the order of joins, the comparison becomes its key, and its value a filter of the scan below
//! (TPC-DS Q6, Q54, Q58). A subquery that is an aggregate by itself gives one row already: `pushdown` makes
//! its join an inner one.

use super::properties::is_one_row;
use super::renamed::{Renamed, rename, rename_output};
use crate::plan::tree::{columns_of, take};
use crate::plan::{Aggregate, AggregateCall, AggregateFunction, Columns, JoinKind, Node, Plan, SingleValue};
use entasis_vector::Result;
use std::sync::Arc;

/// Makes constants in the whole plan.
pub(super) fn apply(plan: &mut Plan) -> Result<()> {
    let mut renamed = Renamed::new();
    rewrite(&mut plan.root, &mut plan.columns, &mut renamed);
    rename_output(plan, &renamed);
    Ok(())
}

/// Makes constants in `node`. Adds to `renamed` what is called otherwise above it.
fn rewrite(node: &mut Node, columns: &mut Columns, renamed: &mut Renamed) {
    let mut below = Renamed::new();
    node.children_mut().into_iter().for_each(|child| rewrite(child, columns, &mut below));
    if !below.is_empty() {
        rename(node, &below, columns);
    }
    if let Node::Join(join) = node
        && join.kind == JoinKind::Single
        && join.on.is_empty()
        && join.residual.is_empty()
        && !is_one_row(&join.right)
    {
        let mut aggregates = Vec::new();
        for id in columns_of(&join.right).iter() {
            let column = columns.get(id).clone();
            let value = columns.add(column.name, column.ty, true);
            let call = AggregateCall {
                function: AggregateFunction::External(Arc::new(SingleValue { ty: column.ty })),
                args: vec![columns.expr(id)],
                distinct: false,
                filter: None,
                order_by: Vec::new(),
                ty: column.ty,
            };
            aggregates.push((value, call));
            below.values_mut().filter(|new| **new == id).for_each(|new| *new = value);
            below.insert(id, value);
        }
        let input = Box::new(take(&mut join.right));
        *join.right = Node::Aggregate(Aggregate { input, groups: Vec::new(), aggregates });
        join.kind = JoinKind::Inner;
    }
    renamed.extend(below);
}
