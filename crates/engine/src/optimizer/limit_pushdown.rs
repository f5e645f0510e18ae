//! Rule: limits go down to where rows can be left out.
//!
//! `ORDER BY … LIMIT n` becomes a sort that keeps only n rows. Below a projection and in the inputs of a
//! `UNION ALL` a limit saves computing rows that nobody asks for.

use crate::plan::tree::{rewrite_up, take};
use crate::plan::{Limit, Node, Plan, SetKind, Sort};
use entasis_vector::Result;

/// Pushes all limits of the plan.
pub(super) fn apply(plan: &mut Plan) -> Result<()> {
    // From the root down: a limit passes several nodes on its way.
    push_below(&mut plan.root);
    rewrite_up(&mut plan.root, &mut |node| match node {
        // What a sort with this very limit gives needs no cutting.
        Node::Limit(Limit { input, offset: 0, count: Some(count) }) => match *input {
            Node::Sort(sort) if sort.limit.is_some_and(|limit| limit <= count) => Node::Sort(sort),
            input => Node::Limit(Limit { input: Box::new(input), offset: 0, count: Some(count) }),
        },
        other => other,
    });
    Ok(())
}

fn push_below(node: &mut Node) {
    let taken = take(node);
    *node = match taken {
        Node::Limit(limit) => push_limit(limit),
        other => other,
    };
    node.children_mut().into_iter().for_each(push_below);
}

fn push_limit(mut limit: Limit) -> Node {
    match *limit.input {
        Node::Limit(below) => {
            // The outer limit sees only what the inner one leaves.
            let left = below.count.map(|count| count.saturating_sub(limit.offset));
            let count = match (left, limit.count) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
            push_limit(Limit { input: below.input, offset: below.offset.saturating_add(limit.offset), count })
        }
        Node::Project(mut project) => {
            limit.input = project.input;
            project.input = Box::new(push_limit(limit));
            Node::Project(project)
        }
        Node::Sort(sort) => {
            let wanted = limit.count.map(|count| count.saturating_add(limit.offset));
            let kept = match (sort.limit, wanted) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
            limit.input = Box::new(Node::Sort(Sort { limit: kept, ..sort }));
            Node::Limit(limit)
        }
        Node::SetOperation(mut set) if set.kind == SetKind::Union && set.all && limit.count.is_some() => {
            let wanted = limit.count.map(|count| count.saturating_add(limit.offset));
            for (input, _) in &mut set.inputs {
                *input = Node::Limit(Limit { input: Box::new(take(input)), offset: 0, count: wanted });
            }
            limit.input = Box::new(Node::SetOperation(set));
            Node::Limit(limit)
        }
        other => {
            limit.input = Box::new(other);
            Node::Limit(limit)
        }
    }
}
