//! Rule: a union of unions is one union.
//!
//! `a UNION b UNION c` comes as a union of a union, each with a `DISTINCT` around it. All arms become inputs
//! of one, and of the `DISTINCT`s the outermost is left: whether a row was distinct below does not matter to
//! it. Under `UNION ALL` only unions of all rows are merged.

use crate::plan::tree::take;
use crate::plan::{Node, Plan, SetKind, SetOperation};
use entasis_vector::{ColumnId, Result};
use std::collections::HashMap;

/// Merges nested unions in the whole plan.
pub(super) fn apply(plan: &mut Plan) -> Result<()> {
    visit(&mut plan.root, false);
    Ok(())
}

/// `is_distinct`: whatever `node` gives twice is taken once.
fn visit(node: &mut Node, is_distinct: bool) {
    let below = match node {
        Node::Distinct(_) => true,
        Node::SetOperation(set) if set.kind == SetKind::Union => is_distinct || !set.all,
        Node::SetOperation(set) => !set.all,
        _ => false,
    };
    if let Node::SetOperation(set) = node
        && set.kind == SetKind::Union
    {
        let mut arms = Vec::with_capacity(set.inputs.len());
        for (input, columns) in std::mem::take(&mut set.inputs) {
            collect(input, columns, below, &mut arms);
        }
        set.inputs = arms;
    }
    node.children_mut().into_iter().for_each(|child| visit(child, below));
}

/// Adds an input of a union to `arms`, or, if it is a union itself, that one's inputs.
fn collect(
    mut input: Node,
    columns: Vec<ColumnId>,
    is_distinct: bool,
    arms: &mut Vec<(Node, Vec<ColumnId>)>,
) {
    if let Node::Distinct(distinct) = &mut input
        && is_distinct
        && let Node::SetOperation(set) = &*distinct.input
        && set.kind == SetKind::Union
        && set.columns.iter().all(|column| distinct.keys.contains(column))
    {
        input = take(&mut distinct.input);
    }
    match input {
        Node::SetOperation(SetOperation { kind: SetKind::Union, all, inputs, columns: own })
            if all || is_distinct =>
        {
            let places: HashMap<ColumnId, usize> =
                own.iter().enumerate().map(|(place, id)| (*id, place)).collect();
            for (below, arm) in inputs {
                let moved = columns.iter().map(|id| arm[places[id]]).collect();
                collect(below, moved, is_distinct, arms);
            }
        }
        other => arms.push((other, columns)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimizer::testing::Builder;
    use crate::plan::Distinct;
    use entasis_vector::DataType;

    fn union(b: &mut Builder, all: bool, inputs: Vec<(Node, Vec<ColumnId>)>) -> (Node, Vec<ColumnId>) {
        let id = b.columns.add("u", DataType::Int64, true);
        (Node::SetOperation(SetOperation { kind: SetKind::Union, all, inputs, columns: vec![id] }), vec![id])
    }

    fn distinct((input, keys): (Node, Vec<ColumnId>)) -> (Node, Vec<ColumnId>) {
        (Node::Distinct(Distinct::new(input, keys.clone())), keys)
    }

    /// The inputs of the uppermost union, and the operators that make rows distinct.
    fn shape(
        mut b: Builder,
        make: impl FnOnce(&mut Builder, [(Node, Vec<ColumnId>); 3]) -> (Node, Vec<ColumnId>),
    ) -> (usize, usize) {
        let arms = ["a", "c", "e"].map(|name| {
            let scan = b.scan(name, 10, &[(name, 10)]);
            let columns = scan.columns();
            (scan, columns)
        });
        let (root, _) = make(&mut b, arms);
        let mut plan = b.plan(root, &[]);
        apply(&mut plan).unwrap();
        fn distincts(node: &Node) -> usize {
            usize::from(
                matches!(node, Node::Distinct(_)) || matches!(node, Node::SetOperation(set) if !set.all),
            ) + node.children().into_iter().map(distincts).sum::<usize>()
        }
        let top = if let Node::Distinct(distinct) = &plan.root { &distinct.input } else { &plan.root };
        let Node::SetOperation(set) = top else { panic!("a union is one") };
        (set.inputs.len(), distincts(&plan.root))
    }

    #[test]
    fn nested_unions_are_one() {
        let all = |b: &mut Builder, [x, y, z]: [(Node, Vec<ColumnId>); 3]| {
            let below = union(b, true, vec![x, y]);
            union(b, true, vec![below, z])
        };
        assert_eq!(shape(Builder::default(), all), (3, 0));
        let each = |b: &mut Builder, [x, y, z]: [(Node, Vec<ColumnId>); 3]| {
            let below = union(b, true, vec![x, y]);
            let above = union(b, true, vec![distinct(below), z]);
            distinct(above)
        };
        assert_eq!(shape(Builder::default(), each), (3, 1));
        let both = |b: &mut Builder, [x, y, z]: [(Node, Vec<ColumnId>); 3]| {
            let below = union(b, false, vec![x, y]);
            union(b, false, vec![z, below])
        };
        assert_eq!(shape(Builder::default(), both), (3, 1));
        let rows_count = |b: &mut Builder, [x, y, z]: [(Node, Vec<ColumnId>); 3]| {
            let below = union(b, true, vec![x, y]);
            union(b, true, vec![distinct(below), z])
        };
        assert_eq!(shape(Builder::default(), rows_count), (2, 1), "how often a row comes counts above");
    }
}
