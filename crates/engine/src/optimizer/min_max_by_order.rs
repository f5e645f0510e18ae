//! Rule: the least or greatest value of a file's column is the first in its order.
//!
//! ```text
//! SELECT max(x) FROM 'a.parquet'
//!     → SELECT max(x) FROM (SELECT x FROM 'a.parquet' ORDER BY x DESC LIMIT 1)
//! ```
//! The scan of a sort with a limit reads the parts of the file first that have the first values by their
//! bounds, and leaves those out that are beyond what the sort has found ([`crate::threshold`]): of the bounds
//! only what they rule out is believed. The aggregate stays above, so that no row gives NULL. NULL comes
//! last.
//!
//! Not touched: several calls, as each has another order; scans with filters, whose rows may all lie in the
//! last part; the greatest float, since bounds say nothing of NaN.

use crate::plan::tree::take;
use crate::plan::{Aggregate, AggregateFunction, Node, Plan, Sort, SortKey};
use entasis_vector::Result;
use entasis_vector::expr::Expr;

/// Finds such aggregates in the whole plan.
pub(super) fn apply(plan: &mut Plan) -> Result<()> {
    sort_inputs(&mut plan.root);
    Ok(())
}

fn sort_inputs(node: &mut Node) {
    node.children_mut().into_iter().for_each(sort_inputs);
    if let Node::Aggregate(aggregate) = node
        && let Some(key) = order(aggregate)
    {
        let input = Box::new(take(&mut aggregate.input));
        *aggregate.input = Node::Sort(Sort { input, keys: vec![key], limit: Some(1) });
    }
}

/// The order whose first row has the only value that `aggregate` wants.
fn order(aggregate: &Aggregate) -> Option<SortKey> {
    let ([(_, call)], true, Node::Scan(scan)) =
        (&aggregate.aggregates[..], aggregate.groups.is_empty(), &*aggregate.input)
    else {
        return None;
    };
    let descending = match call.function {
        AggregateFunction::Min => false,
        AggregateFunction::Max => true,
        _ => return None,
    };
    let [expr @ Expr::Column { id, ty }] = &call.args[..] else { return None };
    let (_, column) = scan.columns.iter().find(|(own, _)| own == id)?;
    if call.filter.is_some()
        || !scan.filters.is_empty()
        || (descending && ty.is_float())
        || !scan.relation.leaves_out_by_bounds()
    {
        return None;
    }
    let known = scan.relation.column_statistics(*column)?;
    (known.min.is_some() && known.max.is_some()).then(|| SortKey {
        expr: expr.clone(),
        descending,
        nulls_first: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimizer::testing::Builder;
    use crate::plan::AggregateCall;
    use entasis_vector::DataType;

    fn optimized(function: AggregateFunction, change: impl FnOnce(&mut Aggregate)) -> String {
        let mut b = Builder::default();
        let scan = b.scan_of_file("f", 1000, &[("a", 10), ("b", 100)]);
        let call = AggregateCall {
            function,
            args: vec![b.column("b")],
            distinct: false,
            filter: None,
            order_by: Vec::new(),
            ty: DataType::Int64,
        };
        let id = b.columns.add("m", DataType::Int64, true);
        let mut aggregate =
            Aggregate { input: Box::new(scan), groups: Vec::new(), aggregates: vec![(id, call)] };
        change(&mut aggregate);
        let mut plan = b.plan(Node::Aggregate(aggregate), &[]);
        apply(&mut plan).unwrap();
        plan.to_string()
    }

    #[test]
    fn one_extreme_of_a_whole_file_is_the_first_of_an_order() {
        let max = optimized(AggregateFunction::Max, |_| {});
        assert!(max.contains("TopN 1 by b DESC"), "{max}");
        let min = optimized(AggregateFunction::Min, |_| {});
        assert!(min.contains("TopN 1 by b"), "{min}");
        let changes: [fn(&mut Aggregate); 4] = [
            |aggregate| aggregate.aggregates.extend_from_within(..),
            |aggregate| aggregate.aggregates[0].1.filter = Some(Expr::boolean(true)),
            |aggregate| {
                aggregate.groups =
                    vec![(aggregate.aggregates[0].0, aggregate.aggregates[0].1.args[0].clone())]
            },
            |aggregate| aggregate.aggregates[0].1.function = AggregateFunction::Count,
        ];
        for change in changes {
            let text = optimized(AggregateFunction::Max, change);
            assert!(!text.contains("TopN"), "{text}");
        }
    }
}
