//! Rule: an order that nobody sees is not made.
//!
//! `SELECT … FROM (SELECT … ORDER BY a) x LIMIT 1` takes the first row of the order, and a list of a derived
//! table comes in its order. But joins, groups, `DISTINCT` and another sort leave nothing of the order of
//! their inputs, so a sort without a limit goes from below them. Aggregates that depend on the order of their
//! rows keep it.

use crate::plan::freedom::may_repeat;
use crate::plan::tree::take;
use crate::plan::{AggregateFunction, Node, Plan, SetKind};
use entasis_vector::Result;

/// Removes needless sorts from the whole plan.
pub(super) fn apply(plan: &mut Plan) -> Result<()> {
    visit(&mut plan.root);
    Ok(())
}

fn visit(node: &mut Node) {
    match node {
        Node::Join(join) => {
            drop_order(&mut join.left);
            drop_order(&mut join.right);
        }
        Node::Distinct(distinct) => drop_order(&mut distinct.input),
        Node::Sort(sort) => drop_order(&mut sort.input),
        Node::SetOperation(set) if !(set.kind == SetKind::Union && set.all) => {
            set.inputs.iter_mut().for_each(|(input, _)| drop_order(input));
        }
        Node::Aggregate(aggregate) => {
            use AggregateFunction as F;
            let ignores_order = |function: &AggregateFunction| {
                matches!(
                    function,
                    F::CountStar | F::Count | F::Sum | F::Avg | F::Min | F::Max | F::BoolAnd | F::BoolOr
                )
            };
            if aggregate.aggregates.iter().all(|(_, call)| ignores_order(&call.function)) {
                drop_order(&mut aggregate.input);
            }
        }
        _ => {}
    }
    node.children_mut().into_iter().for_each(visit);
}

/// Removes the sorts that order the rows of `node`.
fn drop_order(node: &mut Node) {
    match node {
        Node::Sort(sort) if sort.limit.is_none() => {
            *node = take(&mut sort.input);
            drop_order(node);
        }
        Node::Filter(filter) => drop_order(&mut filter.input),
        Node::Project(project) if project.exprs.iter().all(|(_, expr)| may_repeat(expr)) => {
            drop_order(&mut project.input);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimizer::testing::{Builder, join};
    use crate::plan::{JoinKind, Limit, Sort, SortKey};

    fn sorted(b: &Builder, input: Node, by: &str, limit: Option<usize>) -> Node {
        let keys = vec![SortKey { expr: b.column(by), descending: false, nulls_first: false }];
        Node::Sort(Sort { input: Box::new(input), keys, limit })
    }

    fn sorts(b: Builder, root: Node) -> usize {
        let mut plan = b.plan(root, &[]);
        apply(&mut plan).unwrap();
        plan.to_string()
            .lines()
            .filter(|line| line.trim_start().starts_with("Sort") || line.trim_start().starts_with("Top"))
            .count()
    }

    #[test]
    fn joins_and_groups_need_no_order() {
        let tables = |b: &mut Builder| (b.scan("t", 10, &[("a", 10)]), b.scan("u", 10, &[("k", 10)]));
        let joined = |limit| {
            let mut b = Builder::default();
            let (t, u) = tables(&mut b);
            let (t, u) = (sorted(&b, t, "a", limit), sorted(&b, u, "k", None));
            let on = vec![b.equal("a", "k")];
            (b, join(JoinKind::Left, t, u, on))
        };
        let (b, root) = joined(None);
        assert_eq!(sorts(b, root), 0);
        let (b, root) = joined(Some(3));
        assert_eq!(sorts(b, root), 1, "the first rows are others than the rest");
        let (mut b, root) = joined(Some(3));
        let root = b.count_by(root, "a", "g", "n");
        assert_eq!(sorts(b, root), 1);
        let mut b = Builder::default();
        let (t, _) = tables(&mut b);
        let root = sorted(&b, t, "a", None);
        let root = Node::Limit(Limit { input: Box::new(root), offset: 0, count: Some(1) });
        assert_eq!(sorts(b, root), 1);
    }
}
