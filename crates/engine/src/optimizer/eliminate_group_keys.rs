//! Rule: group keys that follow from other group keys are not keys.
//!
//! `GROUP BY c_custkey, c_name, o_custkey` over `c_custkey = o_custkey` groups by `c_custkey` alone; the
//! others become `any_value`, computed once a group instead of hashed and compared once a row. What is
//! computed from the keys alone is computed from them above: `GROUP BY a, a - 1` is one key and a projection.
//!
//! What follows from what: a column compared with a constant follows from nothing, equal columns from each
//! other, a computed column from what it reads, all columns of an aggregate from its keys, and all columns of
//! a relation from one that it knows to be unique, or from a declared key of several: TPC-H Q3, Q10 and Q18
//! group by one key. Uniqueness that is only estimated does not count.

use crate::plan::freedom::{has_forms, ignores_form, may_repeat};
use crate::plan::tree::{ColumnSet, columns_of, reads, substitute, take};
use crate::plan::{AggregateCall, AggregateFunction, JoinKind, Node, Plan, Project};
use entasis_vector::expr::{CompareOp, Expr};
use entasis_vector::{ColumnId, Result};
use std::collections::HashMap;

/// Reduces the keys of all aggregates.
pub(super) fn apply(plan: &mut Plan) -> Result<()> {
    reduce(&mut plan.root);
    Ok(())
}

fn reduce(node: &mut Node) {
    node.children_mut().into_iter().for_each(reduce);
    let Node::Aggregate(aggregate) = node else { return };
    if aggregate.groups.len() < 2 {
        return;
    }
    let mut facts = Vec::new();
    collect_facts(&aggregate.input, &mut facts);
    // Strings are the dearest keys: try to lose them first.
    let mut candidates: Vec<usize> = (0..aggregate.groups.len()).rev().collect();
    candidates.sort_by_key(|i| !aggregate.groups[*i].1.ty().is_string());
    let mut gone = vec![false; aggregate.groups.len()];
    let all = closure(aggregate.groups.iter().filter_map(|(_, group)| column(group)).collect(), &facts);
    for candidate in candidates {
        let (_, expr) = &aggregate.groups[candidate];
        if !reads(expr).is_subset(&all) {
            continue;
        }
        let others = aggregate.groups.iter().zip(&gone).enumerate();
        let mut known = ColumnSet::default();
        let mut left = 0;
        for (index, ((_, other), gone)) in others {
            if index != candidate && !gone {
                left += 1;
                column(other).into_iter().for_each(|id| known.insert(id));
            }
        }
        gone[candidate] = left > 0 && follows(expr) && reads(expr).is_subset(&closure(known, &facts));
    }
    let (dependent, kept): (Vec<_>, Vec<_>) =
        std::mem::take(&mut aggregate.groups).into_iter().zip(gone).partition(|(_, gone)| *gone);
    aggregate.groups = kept.into_iter().map(|(group, _)| group).collect();
    let of_key = |(id, expr): &(ColumnId, Expr)| match expr {
        Expr::Column { id: source, ty } => Some((*source, Expr::column(*id, *ty))),
        _ => None,
    };
    let keys: HashMap<ColumnId, Expr> = aggregate.groups.iter().filter_map(of_key).collect();
    let mut computed = Vec::new();
    for ((id, expr), _) in dependent {
        if reads(&expr).iter().all(|source| keys.contains_key(&source)) {
            computed.push((id, substitute(expr, &keys)));
        } else {
            let ty = expr.ty();
            let call = AggregateCall {
                function: AggregateFunction::AnyValue,
                args: vec![expr],
                distinct: false,
                filter: None,
                order_by: Vec::new(),
                ty,
            };
            aggregate.aggregates.push((id, call));
        }
    }
    if !computed.is_empty() {
        *node = Node::Project(Project { input: Box::new(take(node)), exprs: computed });
    }
}

/// The column that an expression is.
fn column(expr: &Expr) -> Option<ColumnId> {
    match expr {
        Expr::Column { id, .. } => Some(*id),
        _ => None,
    }
}

/// True if rows with equal values of what `expr` reads have equal values of `expr`. The interval of 24 hours
/// equals that of 1 day, and has another day.
fn follows(expr: &Expr) -> bool {
    may_repeat(expr) && ignores_form(expr)
}

/// The second set follows from the first.
type Fact = (ColumnSet, ColumnSet);

fn closure(mut known: ColumnSet, facts: &[Fact]) -> ColumnSet {
    loop {
        let before = known.clone();
        for (from, to) in facts {
            if from.is_subset(&known) {
                known.add(to);
            }
        }
        if known == before {
            return known;
        }
    }
}

fn one(id: ColumnId) -> ColumnSet {
    [id].into_iter().collect()
}

/// What is known of the rows of `node`. NULL counts as a value, equal to itself.
fn collect_facts(node: &Node, into: &mut Vec<Fact>) {
    match node {
        Node::Scan(scan) => {
            scan.filters.iter().for_each(|e| collect_equality(e, into));
            for (id, _) in scan.columns.iter().filter(|(_, index)| scan.relation.is_unique(*index)) {
                into.push((one(*id), columns_of(node)));
            }
            let id_of = |column: &usize| Some(scan.columns.iter().find(|(_, index)| index == column)?.0);
            let keys = scan.relation.keys().iter();
            let keys = keys.filter_map(|key| key.iter().map(id_of).collect::<Option<Vec<ColumnId>>>());
            into.extend(keys.map(|key| (key.into_iter().collect(), columns_of(node))));
        }
        Node::Filter(filter) => {
            collect_facts(&filter.input, into);
            filter.predicates.iter().for_each(|e| collect_equality(e, into));
        }
        Node::Project(project) => {
            collect_facts(&project.input, into);
            for (id, expr) in &project.exprs {
                if follows(expr) {
                    into.push((reads(expr), one(*id)));
                    if let Expr::Column { id: source, .. } = expr {
                        into.push((one(*id), one(*source)));
                    }
                }
            }
        }
        // A row that an outer join fills up with NULLs breaks what is known of that side: a constant is NULL
        // there.
        Node::Join(join) => match join.kind {
            JoinKind::Inner => {
                collect_facts(&join.left, into);
                collect_facts(&join.right, into);
                for key in &join.on {
                    equal(&key.left, &key.right, into);
                }
                join.residual.iter().for_each(|e| collect_equality(e, into));
            }
            JoinKind::Left
            | JoinKind::Semi
            | JoinKind::Anti
            | JoinKind::NullAwareAnti
            | JoinKind::Mark { .. }
            | JoinKind::Single
            | JoinKind::AsOf { .. } => collect_facts(&join.left, into),
            JoinKind::Right => collect_facts(&join.right, into),
            JoinKind::Full => {}
        },
        Node::Aggregate(aggregate) => {
            let keys = aggregate.groups.iter().map(|(id, _)| *id).collect();
            into.push((keys, columns_of(node)));
        }
        Node::Unnest(unnest) => collect_facts(&unnest.input, into),
        Node::Window(window) => collect_facts(&window.input, into),
        Node::Sort(sort) => collect_facts(&sort.input, into),
        Node::Limit(limit) => collect_facts(&limit.input, into),
        Node::Distinct(distinct) => collect_facts(&distinct.input, into),
        Node::Values(_) | Node::SetOperation(_) | Node::Dependent(_) | Node::Recursion(_) => {}
    }
}

fn collect_equality(predicate: &Expr, into: &mut Vec<Fact>) {
    if let Expr::Compare { op: CompareOp::Eq | CompareOp::NotDistinctFrom, left, right } = predicate {
        equal(left, right, into);
    }
}

/// Equal values are one value, unless they have several forms.
fn equal(a: &Expr, b: &Expr, into: &mut Vec<Fact>) {
    if has_forms(a.ty()) {
        return;
    }
    match (a, b) {
        (Expr::Column { id: a, .. }, Expr::Column { id: b, .. }) => {
            into.push((one(*a), one(*b)));
            into.push((one(*b), one(*a)));
        }
        (Expr::Column { id, .. }, Expr::Literal { .. }) | (Expr::Literal { .. }, Expr::Column { id, .. }) => {
            into.push((ColumnSet::default(), one(*id)));
        }
        _ => {}
    }
}
