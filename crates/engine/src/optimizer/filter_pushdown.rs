//! Rule: filters go down as far as they may, and on their way turn joins into stricter ones.
//!
//! A filter that reaches a scan skips blocks; one that meets a cross product on both sides is a join key.
//! What may pass:
//!
//! | node | what passes |
//! |---|---|
//! | project | predicates, with the computed columns replaced by what they are computed from |
//! | inner join | to the side whose columns it reads; both sides: a key if an equality, else a residual |
//! | left join (right mirrored) | predicates on the left columns; residuals on the right columns |
//! | full join | nothing |
//! | semi, anti, mark, single join | predicates on the left columns; residuals on the right columns |
//! | as-of join | predicates on the left columns |
//! | aggregate | predicates on group keys |
//! | distinct, sort | everything |
//! | window | predicates on partition keys |
//! | set operation | everything, to all inputs |
//! | limit, sort with a limit | nothing |
//!
//! Volatile predicates never move, and none goes to where a volatile expression would be computed again.
//! Where equal rows become one, or are one group or partition, a predicate that tells equal values apart
//! stays above: below, it would keep a part of them. Predicates that may fail stay above others that stay,
//! and above joins, `INTERSECT` and `EXCEPT`, which might have removed the row that they fail on.
//!
//! On the way down the rule also knows which columns cannot be NULL in a row that counts: a predicate above
//! rejects it. An outer join whose far side may not be NULL is an inner join (or left instead of full). A
//! single join whose right side is one row is a cross join; one on a unique key of the right side needs no
//! check for a second match and is a left join (TPC-H Q2, Q17, Q20: then inner, by the filter that compares
//! the subquery's value).

use super::nulls::{makes_null, rejects_null};
use super::properties::{has_one_match, is_one_row};
use super::seen::SeenParts;
use crate::plan::freedom::{ignores_form, is_volatile_join, may_fail, may_move, may_repeat};
use crate::plan::tree::{
    ColumnSet, as_join_key, columns_of, conjuncts, filter, key_predicate, reads, substitute, take,
};
use crate::plan::{Aggregate, Join, JoinKey, JoinKind, Node, Plan, Project, SetKind, SetOperation};
use entasis_vector::expr::Expr;
use entasis_vector::{ColumnId, Result};
use std::collections::HashMap;

/// Pushes the filters of the whole plan.
pub(super) fn apply(plan: &mut Plan) -> Result<()> {
    let root = take(&mut plan.root);
    plan.root = push(root, Vec::new(), &ColumnSet::default());
    Ok(())
}

/// `node` with `predicates` applied, as deep inside as they go. Rows in which a column of `not_null` is NULL
/// do not count above.
pub(super) fn push(node: Node, predicates: Vec<Expr>, not_null: &ColumnSet) -> Node {
    match node {
        Node::Filter(below) => {
            let mut all = conjuncts(below.predicates);
            let mut seen = SeenParts::default();
            for predicate in predicates {
                if !may_repeat(&predicate) || !seen.has(&all, &predicate) {
                    all.push(predicate);
                }
            }
            push(*below.input, all, not_null)
        }
        Node::Scan(mut scan) => {
            let (go, stay) = split(predicates, may_repeat);
            let mut seen = SeenParts::default();
            for predicate in go {
                if !seen.has(&scan.filters, &predicate) {
                    scan.filters.push(predicate);
                }
            }
            filter(Node::Scan(scan), stay)
        }
        Node::Values(_) => filter(node, predicates),
        Node::Project(project) => push_project(project, predicates, not_null),
        Node::Unnest(mut unnest) => {
            let own: ColumnSet = unnest.lists.iter().map(|(id, _)| *id).collect();
            // Rows without elements may be those for which a predicate fails.
            let (go, stay) =
                split(predicates, |e| !reads(e).iter().any(|id| own.contains(id)) && may_move(e));
            *unnest.input = push(take(&mut unnest.input), go, &ColumnSet::default());
            filter(Node::Unnest(unnest), stay)
        }
        Node::Join(join) => push_join(join, predicates, not_null),
        Node::Aggregate(aggregate) => push_aggregate(aggregate, predicates),
        Node::Distinct(mut distinct) => {
            let (go, stay) = split(predicates, |e| may_repeat(e) && ignores_form(e));
            *distinct.input = push(take(&mut distinct.input), go, not_null);
            filter(Node::Distinct(distinct), stay)
        }
        Node::Window(mut window) => {
            let keys: ColumnSet = window.partition_columns().collect();
            let (go, stay) =
                split(predicates, |e| reads(e).is_subset(&keys) && may_repeat(e) && ignores_form(e));
            let mut not_null = not_null.clone();
            not_null.retain(&keys);
            *window.input = push(take(&mut window.input), go, &not_null);
            filter(Node::Window(window), stay)
        }
        Node::Sort(mut sort) => {
            let (go, stay) = split(predicates, |e| sort.limit.is_none() && may_repeat(e));
            let not_null = if sort.limit.is_some() { ColumnSet::default() } else { not_null.clone() };
            *sort.input = push(take(&mut sort.input), go, &not_null);
            filter(Node::Sort(sort), stay)
        }
        node @ (Node::Dependent(_) | Node::Recursion(_)) => filter(node, predicates),
        Node::Limit(mut limit) => {
            *limit.input = push(take(&mut limit.input), Vec::new(), &ColumnSet::default());
            filter(Node::Limit(limit), predicates)
        }
        Node::SetOperation(set) => push_set(set, predicates),
    }
}

/// Predicates on group keys go below an aggregation.
fn push_aggregate(mut aggregate: Aggregate, predicates: Vec<Expr>) -> Node {
    let groups: HashMap<ColumnId, Expr> = aggregate.groups.iter().cloned().collect();
    // A group key is computed once for each row, also if it is volatile.
    let fixed = groups.iter().filter(|(_, key)| may_repeat(key));
    let keys: ColumnSet = fixed.map(|(id, _)| *id).collect();
    let (go, stay) = split(predicates, |e| {
        let read = reads(e);
        !read.is_empty() && read.is_subset(&keys) && may_repeat(e) && ignores_form(e)
    });
    let go = go.into_iter().map(|e| substitute(e, &groups)).collect();
    *aggregate.input = push(take(&mut aggregate.input), go, &ColumnSet::default());
    filter(Node::Aggregate(aggregate), stay)
}

/// Predicates go into all inputs of a set operation.
fn push_set(mut set: SetOperation, predicates: Vec<Expr>) -> Node {
    // Equal rows become one, unless all are kept, and which of them is left is nobody's business.
    let goes = |e: &Expr| match set.kind {
        SetKind::Union => may_repeat(e) && (set.all || ignores_form(e)),
        SetKind::Intersect | SetKind::Except => may_move(e) && ignores_form(e),
    };
    let (go, stay) = split(predicates, goes);
    for (input, ids) in &mut set.inputs {
        let names: HashMap<ColumnId, Expr> =
            set.columns.iter().zip(ids.iter()).map(|(out, id)| (*out, renamed(&go, *out, *id))).collect();
        let own = go.iter().map(|e| substitute(e.clone(), &names)).collect();
        *input = push(take(input), own, &ColumnSet::default());
    }
    filter(Node::SetOperation(set), stay)
}

/// Column `to` with the type that `out` has in `predicates`.
fn renamed(predicates: &[Expr], out: ColumnId, to: ColumnId) -> Expr {
    let mut ty = entasis_vector::DataType::Null;
    for predicate in predicates {
        predicate.visit(&mut |e| {
            if let Expr::Column { id, ty: found } = e
                && *id == out
            {
                ty = *found;
            }
        });
    }
    Expr::column(to, ty)
}

/// The predicates that go below a node, and those that stay above it. If any stays, what may fail stays
/// behind it: it may have removed the row.
fn split(predicates: Vec<Expr>, mut goes: impl FnMut(&Expr) -> bool) -> (Vec<Expr>, Vec<Expr>) {
    let (mut go, mut stay): (Vec<Expr>, Vec<Expr>) = predicates.into_iter().partition(|e| goes(e));
    if !stay.is_empty() {
        stay.extend(go.extract_if(.., |e| may_fail(e)));
    }
    (go, stay)
}

fn push_project(mut project: Project, predicates: Vec<Expr>, not_null: &ColumnSet) -> Node {
    let computed: HashMap<ColumnId, Expr> = project.exprs.iter().cloned().collect();
    let fixed: ColumnSet = project.exprs.iter().filter(|(_, e)| !may_move(e)).map(|(id, _)| *id).collect();
    let (go, stay) = split(predicates, |e| may_repeat(e) && !reads(e).intersects(&fixed));
    let go: Vec<Expr> = go.into_iter().map(|e| substitute(e, &computed)).collect();
    // A column that only renames another is NULL where that one is.
    let mut below = not_null.clone();
    for (id, expr) in &project.exprs {
        if let Expr::Column { id: source, .. } = expr
            && not_null.contains(*id)
        {
            below.insert(*source);
        }
    }
    *project.input = push(take(&mut project.input), conjuncts(go), &below);
    filter(Node::Project(project), stay)
}

fn push_join(mut join: Join, predicates: Vec<Expr>, not_null: &ColumnSet) -> Node {
    let (left, right) = (columns_of(&join.left), columns_of(&join.right));
    let mut not_null = not_null.clone();
    predicates.iter().for_each(|e| not_null.add(&rejects_null(e)));
    if let JoinKind::Mark { mark, null_aware } = join.kind
        && let Some(found) = predicates.iter().find_map(|e| mark_value(e, mark))
    {
        // Only rows with this mark count: the join itself selects them, and who reads the mark finds a
        // constant.
        join.kind = match (found, null_aware) {
            (true, _) => JoinKind::Semi,
            (false, false) => JoinKind::Anti,
            (false, true) => JoinKind::NullAwareAnti,
        };
        let project =
            Project { input: Box::new(Node::Join(join)), exprs: vec![(mark, Expr::boolean(found))] };
        let rest = predicates.into_iter().filter(|e| mark_value(e, mark) != Some(found)).collect();
        return push_project(project, rest, &not_null);
    }
    if is_volatile_join(&join) {
        *join.left = push(take(&mut join.left), Vec::new(), &ColumnSet::default());
        *join.right = push(take(&mut join.right), Vec::new(), &ColumnSet::default());
        return filter(Node::Join(join), predicates);
    }
    find_keys(&mut join, &left, &right);
    strengthen(&mut join, &not_null, &left, &right);
    match join.kind {
        JoinKind::Inner => push_inner(join, predicates, &not_null, &left, &right),
        JoinKind::Right => push_outer(mirrored(join), predicates, &not_null, &right, &left),
        _ => push_outer(join, predicates, &not_null, &left, &right),
    }
}

/// True or false if `predicate` is the column `mark` or its negation.
fn mark_value(predicate: &Expr, mark: ColumnId) -> Option<bool> {
    match predicate {
        Expr::Column { id, .. } => (*id == mark).then_some(true),
        Expr::Not(inner) => matches!(&**inner, Expr::Column { id, .. } if *id == mark).then_some(false),
        _ => None,
    }
}

/// A right join as a left join.
pub(super) fn mirrored(join: Join) -> Join {
    let on = join
        .on
        .into_iter()
        .map(|key| JoinKey { left: key.right, right: key.left, null_equals_null: key.null_equals_null })
        .collect();
    Join { left: join.right, right: join.left, kind: JoinKind::Left, on, residual: join.residual }
}

/// Turns conditions that are equalities of the two sides into keys. Null-aware joins have exactly the key
/// they came with.
fn find_keys(join: &mut Join, left: &ColumnSet, right: &ColumnSet) {
    if matches!(join.kind, JoinKind::NullAwareAnti | JoinKind::Mark { null_aware: true, .. }) {
        return;
    }
    for condition in conjuncts(std::mem::take(&mut join.residual)) {
        match as_join_key(condition, left, right) {
            Ok(key) => join.on.push(key),
            Err(condition) => join.residual.push(condition),
        }
    }
}

/// Makes the join as strict as its inputs and what is above allow.
fn strengthen(join: &mut Join, not_null: &ColumnSet, left: &ColumnSet, right: &ColumnSet) {
    if join.kind == JoinKind::Single {
        let unconditional = join.on.is_empty() && join.residual.is_empty();
        if unconditional && is_one_row(&join.right) {
            join.kind = JoinKind::Inner;
        } else if has_one_match(join) {
            join.kind = JoinKind::Left;
        }
    }
    let (left_counts, right_counts) = (not_null.intersects(left), not_null.intersects(right));
    join.kind = match join.kind {
        JoinKind::Left if right_counts => JoinKind::Inner,
        JoinKind::AsOf { .. } if right_counts => JoinKind::AsOf { outer: false },
        JoinKind::Right if left_counts => JoinKind::Inner,
        JoinKind::Full if left_counts && right_counts => JoinKind::Inner,
        JoinKind::Full if left_counts => JoinKind::Left,
        JoinKind::Full if right_counts => JoinKind::Right,
        kind => kind,
    };
}

/// The columns of the join's keys in which NULL finds no partner.
fn rejected_by_keys(on: &[JoinKey]) -> ColumnSet {
    let mut rejected = ColumnSet::default();
    for key in on.iter().filter(|key| !key.null_equals_null) {
        rejected.add(&makes_null(&key.left));
        rejected.add(&makes_null(&key.right));
    }
    rejected
}

fn push_inner(
    mut join: Join,
    predicates: Vec<Expr>,
    not_null: &ColumnSet,
    left: &ColumnSet,
    right: &ColumnSet,
) -> Node {
    let (mut to_left, mut to_right, mut above, mut residual) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut keys: Vec<JoinKey> = Vec::new();
    let own = std::mem::take(&mut join.on).into_iter().map(key_predicate);
    for predicate in conjuncts(own.chain(std::mem::take(&mut join.residual)).chain(predicates).collect()) {
        let read = reads(&predicate);
        let movable = may_move(&predicate);
        if read.is_empty() || !may_repeat(&predicate) {
            above.push(predicate);
        } else if movable && read.is_subset(left) {
            to_left.push(predicate);
        } else if movable && read.is_subset(right) {
            to_right.push(predicate);
        } else {
            match as_join_key(predicate, left, right) {
                Ok(key) => {
                    match keys.iter_mut().find(|known| known.left == key.left && known.right == key.right) {
                        // Both must hold, so NULL equals NULL only if both say so.
                        Some(known) => known.null_equals_null &= key.null_equals_null,
                        None => keys.push(key),
                    }
                }
                Err(predicate) if movable => residual.push(predicate),
                Err(predicate) => above.push(predicate),
            }
        }
    }
    let mut not_null = not_null.clone();
    not_null.add(&rejected_by_keys(&keys));
    residual.iter().for_each(|e| not_null.add(&rejects_null(e)));
    *join.left = push(take(&mut join.left), to_left, &not_null);
    *join.right = push(take(&mut join.right), to_right, &not_null);
    join.on = keys;
    join.residual = residual;
    filter(Node::Join(join), above)
}

/// Left, full, semi, anti, mark, single and as-of joins.
fn push_outer(
    mut join: Join,
    predicates: Vec<Expr>,
    not_null: &ColumnSet,
    left: &ColumnSet,
    right: &ColumnSet,
) -> Node {
    let full = join.kind == JoinKind::Full;
    let null_aware = matches!(join.kind, JoinKind::NullAwareAnti | JoinKind::Mark { null_aware: true, .. });
    let (mut to_left, above) = split(predicates, |e| !full && may_move(e) && reads(e).is_subset(left));
    let (mut to_right, mut residual) = (Vec::new(), Vec::new());
    for condition in conjuncts(std::mem::take(&mut join.residual)) {
        let read = reads(&condition);
        if matches!(join.kind, JoinKind::AsOf { .. }) {
            // Which row is the nearest depends on it.
            residual.push(condition);
        } else if !full && !read.is_empty() && read.is_subset(right) && may_move(&condition) {
            to_right.push(condition);
        } else if join.kind == JoinKind::Semi && read.is_subset(left) && may_move(&condition) {
            to_left.push(condition);
        } else {
            residual.push(condition);
        }
    }
    join.residual = residual;
    let keys = rejected_by_keys(&join.on);
    let mut left_not_null = ColumnSet::default();
    if !full {
        left_not_null.add(not_null);
        left_not_null.retain(left);
    }
    if join.kind == JoinKind::Semi {
        left_not_null.add(&keys);
    }
    let right_not_null = if full || null_aware { ColumnSet::default() } else { keys };
    *join.left = push(take(&mut join.left), to_left, &left_not_null);
    *join.right = push(take(&mut join.right), to_right, &right_not_null);
    filter(Node::Join(join), above)
}
