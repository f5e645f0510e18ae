//! Rule: of partitions whose first rows alone are wanted, only these are given.
//!
//! `… QUALIFY row_number() OVER (PARTITION BY a ORDER BY b) <= 3` is a filter over a window. The window
//! itself then keeps no more rows of a partition than can be among the first ([`Top`]), while they come in,
//! and the filter is not needed any more. The same goes for `rank()`, with all peers of the last row. Other
//! filters stay above: what is counted is all rows.

use crate::plan::tree::rewrite_up;
use crate::plan::{Filter, Node, Plan, Top, Window, WindowFunction};
use entasis_vector::expr::{CompareOp, Expr};
use entasis_vector::{Result, Value};

/// Finds such filters in the whole plan.
pub(super) fn apply(plan: &mut Plan) -> Result<()> {
    rewrite_up(&mut plan.root, &mut |node| match node {
        Node::Filter(Filter { input, predicates }) => match *input {
            Node::Window(window) if window.top.is_none() => with_top(window, predicates),
            input => Node::Filter(Filter { input: Box::new(input), predicates }),
        },
        other => other,
    });
    Ok(())
}

fn with_top(mut window: Window, mut predicates: Vec<Expr>) -> Node {
    let found =
        predicates.iter().enumerate().filter_map(|(i, predicate)| Some((i, top(&window, predicate)?)));
    if let Some((i, (top, is_all))) = found.min_by_key(|(_, (top, _))| top.rows) {
        window.top = Some(top);
        if is_all {
            predicates.remove(i);
        }
    }
    crate::plan::tree::filter(Node::Window(window), predicates)
}

/// The rows that `predicate` leaves at most, if it bounds a row number or a rank of `window`, and whether it
/// leaves all of these.
fn top(window: &Window, predicate: &Expr) -> Option<(Top, bool)> {
    let Expr::Compare { op, left, right } = predicate else { return None };
    let (op, id, bound) = match (&**left, &**right) {
        (Expr::Column { id, .. }, Expr::Literal { value: Value::Integer(bound), .. }) => (*op, *id, *bound),
        (Expr::Literal { value: Value::Integer(bound), .. }, Expr::Column { id, .. }) => {
            (op.mirrored(), *id, *bound)
        }
        _ => return None,
    };
    let (rows, is_all) = match op {
        CompareOp::LtEq => (bound, true),
        CompareOp::Lt => (bound.saturating_sub(1), true),
        CompareOp::Eq | CompareOp::NotDistinctFrom => (bound, bound == 1),
        _ => return None,
    };
    let (_, call) = window.calls.iter().find(|(own, _)| *own == id)?;
    let with_peers = match call.function {
        WindowFunction::RowNumber => false,
        WindowFunction::Rank => true,
        _ => return None,
    };
    let rows = usize::try_from(rows.max(0)).ok()?;
    Some((Top { rows, with_peers }, is_all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimizer::testing::Builder;
    use crate::plan::{Frame, SortKey, WindowCall};
    use entasis_vector::DataType;

    fn optimized(function: WindowFunction, op: CompareOp, bound: i128) -> String {
        let mut b = Builder::default();
        let input = Box::new(b.scan("t", 1000, &[("a", 10), ("b", 100)]));
        let call = WindowCall {
            function,
            args: Vec::new(),
            distinct: false,
            filter: None,
            order_by: Vec::new(),
            ignore_nulls: false,
            frame: Frame::whole(),
            ty: DataType::Int64,
        };
        let calls = vec![(b.columns.add("n", DataType::Int64, false), call)];
        let order = vec![SortKey { expr: b.column("b"), descending: true, nulls_first: false }];
        let window = Node::Window(Window { input, partition: vec![b.column("a")], order, calls, top: None });
        let bounded = Expr::compare(op, b.column("n"), Expr::literal(Value::Integer(bound), DataType::Int64));
        let root =
            Node::Filter(Filter { input: Box::new(window), predicates: vec![bounded, b.equal("a", "7")] });
        let mut plan = b.plan(root, &["a", "b"]);
        crate::optimizer::filter_pushdown::apply(&mut plan).unwrap();
        apply(&mut plan).unwrap();
        crate::optimizer::column_pruning::apply(&mut plan).unwrap();
        plan.to_string()
    }

    #[test]
    fn bounds_of_numbers_and_ranks_become_tops() {
        let text = optimized(WindowFunction::RowNumber, CompareOp::LtEq, 3);
        assert!(text.contains("Window by a order b DESC; row_number <= 3"), "{text}");
        assert!(!text.contains("Filter") && text.contains("where (a = 7)"), "{text}");
        let text = optimized(WindowFunction::Rank, CompareOp::Lt, 3);
        assert!(text.contains("; rank <= 2") && !text.contains("Filter"), "{text}");
        let text = optimized(WindowFunction::RowNumber, CompareOp::Eq, 2);
        assert!(
            text.contains("row_number() AS n; row_number <= 2") && text.contains("Filter (n = 2)"),
            "{text}"
        );
        for (function, op) in
            [(WindowFunction::DenseRank, CompareOp::LtEq), (WindowFunction::Rank, CompareOp::Gt)]
        {
            let text = optimized(function, op, 3);
            assert!(!text.contains(';') && text.contains("Filter"), "{text}");
        }
    }
}
