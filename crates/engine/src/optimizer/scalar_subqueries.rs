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
//! (TPC-DS Q6, Q54, Q58). A subquery that is an aggregate by itself gives one row already: `filter_pushdown`
//! makes its join an inner one.
//!
//! The subquery is computed even if there is no row around it, and fails then, too, if it has several rows.

use super::properties::is_one_row;
use super::renamed::{Renamed, from_below};
use crate::plan::tree::{columns_of, take};
use crate::plan::{Aggregate, AggregateCall, AggregateFunction, Columns, JoinKind, Node, Plan, SingleValue};
use entasis_vector::Result;
use std::sync::Arc;

/// Makes constants in the whole plan.
pub(super) fn apply(plan: &mut Plan) -> Result<()> {
    from_below(plan, make_constant);
    Ok(())
}

/// Makes a constant of the right side of `node`, if it is a single join without conditions.
fn make_constant(node: &mut Node, columns: &mut Columns, renamed: &mut Renamed) {
    let Node::Join(join) = node else { return };
    let is_unconditional = join.on.is_empty() && join.residual.is_empty();
    if join.kind != JoinKind::Single || !is_unconditional || is_one_row(&join.right) {
        return;
    }
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
        renamed.replace(id, value);
    }
    let input = Box::new(take(&mut join.right));
    *join.right = Node::Aggregate(Aggregate { input, groups: Vec::new(), aggregates });
    join.kind = JoinKind::Inner;
}
