//! Rule: disjunctions give up what all their branches share, and what they imply for one relation.
//!
//! ```text
//! (p = l AND brand = 'A' AND q < 1) OR (p = l AND brand = 'B' AND q < 2)        TPC-H Q19
//!     → p = l                                                       a join key
//!       brand = 'A' OR brand = 'B'                                  a filter on part
//!       q < 1 OR q < 2                                              a filter on lineitem
//!       (brand = 'A' AND q < 1) OR (brand = 'B' AND q < 2)          what is left for the pairs
//! ```
//!
//! Without it Q19 is a cross product and Q7 joins all nations. The implied filters are additions, the
//! disjunction stays beside them. They are made only of conjuncts that cannot fail: a row may meet them that
//! no branch would have met.

use super::simplify_expressions::simplify;
use crate::plan::freedom::{may_move, may_repeat};
use crate::plan::tree::{ColumnSet, Role, columns_of, conjuncts, reads};
use crate::plan::{Join, JoinKind, Node, Plan};
use entasis_vector::Result;
use entasis_vector::expr::Expr;

/// Factors the disjunctions of all filters and join conditions.
pub(super) fn apply(plan: &mut Plan) -> Result<()> {
    factor_node(&mut plan.root);
    Ok(())
}

fn factor_node(node: &mut Node) {
    node.children_mut().into_iter().for_each(factor_node);
    match node {
        Node::Filter(filter) => {
            let mut leaves = Vec::new();
            collect_leaves(&filter.input, &mut leaves);
            filter.predicates = factor(std::mem::take(&mut filter.predicates), &leaves);
        }
        // Only where the condition is a filter on the pairs; a match of an outer join may not be widened this
        // way.
        Node::Join(Join { kind: JoinKind::Inner | JoinKind::Semi, left, right, residual, .. })
            if !residual.is_empty() =>
        {
            let mut leaves = Vec::new();
            collect_leaves(left, &mut leaves);
            collect_leaves(right, &mut leaves);
            *residual = factor(std::mem::take(residual), &leaves);
        }
        Node::Join(join) => {
            join.residual = factor(std::mem::take(&mut join.residual), &[]);
        }
        _ => {}
    }
}

/// The columns of the relations that are joined below `node`, one set each.
fn collect_leaves(node: &Node, into: &mut Vec<ColumnSet>) {
    match node {
        Node::Filter(filter) => collect_leaves(&filter.input, into),
        Node::Project(project) => {
            collect_leaves(&project.input, into);
            // A computed column belongs to the relation that it is computed from.
            for (id, expr) in &project.exprs {
                let read = reads(expr);
                if let Some(leaf) = into.iter_mut().find(|leaf| !read.is_empty() && read.is_subset(leaf)) {
                    leaf.insert(*id);
                }
            }
        }
        Node::Join(join) => {
            collect_leaves(&join.left, into);
            if matches!(join.kind, JoinKind::Inner | JoinKind::Left | JoinKind::Right | JoinKind::Full) {
                collect_leaves(&join.right, into);
            }
        }
        // What holds of the keys alone may go below it.
        Node::Aggregate(aggregate) => into.push(aggregate.groups.iter().map(|(id, _)| *id).collect()),
        other => into.push(columns_of(other)),
    }
}

fn factor(predicates: Vec<Expr>, leaves: &[ColumnSet]) -> Vec<Expr> {
    let mut result = Vec::with_capacity(predicates.len());
    for predicate in predicates {
        match predicate {
            Expr::Or(parts) if parts.iter().all(may_repeat) => {
                let (common, rest) = take_common(parts);
                result.extend(common);
                if let Some(rest) = rest {
                    imply(&rest, leaves, &mut result);
                    result.push(rest);
                }
            }
            other => result.push(other),
        }
    }
    conjuncts(result)
}

/// Splits a disjunction into the conjuncts that all branches have and the disjunction of what else they have;
/// none if a branch has nothing else, so that the common part alone decides.
fn take_common(parts: Vec<Expr>) -> (Vec<Expr>, Option<Expr>) {
    let mut branches: Vec<Vec<Expr>> = parts.into_iter().map(|part| conjuncts(vec![part])).collect();
    let (first, others) = branches.split_first().expect("a disjunction has branches");
    let common: Vec<Expr> = first
        .iter()
        .filter(|conjunct| others.iter().all(|branch| branch.contains(conjunct)))
        .cloned()
        .collect();
    if !common.is_empty() {
        branches.iter_mut().for_each(|branch| branch.retain(|conjunct| !common.contains(conjunct)));
    }
    if branches.iter().any(Vec::is_empty) {
        return (common, None);
    }
    (common, Some(simplify(Expr::Or(branches.into_iter().map(Expr::and).collect()), Role::Predicate)))
}

/// Adds what a disjunction over several relations implies for each one alone.
fn imply(disjunction: &Expr, leaves: &[ColumnSet], into: &mut Vec<Expr>) {
    let Expr::Or(parts) = disjunction else { return };
    let read = reads(disjunction);
    for leaf in leaves.iter().filter(|leaf| read.intersects(leaf) && !read.is_subset(leaf)) {
        let of_leaf = |part: &Expr| -> Option<Expr> {
            let conjuncts = conjuncts(vec![part.clone()]);
            let own: Vec<Expr> = conjuncts
                .into_iter()
                .filter(|e| {
                    let read = reads(e);
                    !read.is_empty() && read.is_subset(leaf) && may_move(e)
                })
                .collect();
            (!own.is_empty()).then(|| Expr::and(own))
        };
        if let Some(branches) = parts.iter().map(of_leaf).collect::<Option<Vec<Expr>>>() {
            let implied = simplify(Expr::Or(branches), Role::Predicate);
            if !into.contains(&implied) {
                into.push(implied);
            }
        }
    }
}
