//! `IN` with NULLs and more than one compared column: several hash joins instead of one join that looks at
//! all pairs.
//!
//! # Groups
//! A subquery may be correlated by equalities. The rows of the subquery that belong to one outer row are its
//! *group*. `x IN` the group is
//!
//! 1. true, if a row of the group equals `x`;
//! 2. else NULL, if the group has a NULL;
//! 3. else NULL, if `x` is NULL and the group has any row;
//! 4. else false.
//!
//! A null-aware join has one key and decides 2 and 3 by looking at all rows, which is right only without
//! groups. With groups, each case is a join of its own, on the columns that define the group: 1 on `x` in
//! addition; 2 with the groups that have a NULL; 3 with all groups.
//!
//! # Rows
//! `(a, b) IN (SELECT c, d …)` arrives as `EXISTS (… WHERE equal)` and `EXISTS (… WHERE equal IS NULL)`,
//! where *equal* is `a = c AND b = d`. The second can be true only if there is a NULL on one side. So it is
//! computed in two parts: for all outer rows, whether a row of the subquery with a NULL is possibly equal;
//! and for outer rows with a NULL, whether any row is. As NULL is usually rare, both look at few pairs. `NOT
//! EXISTS (… WHERE equal IS NOT FALSE)` is an anti join on *equal*, followed by these two.
//!
//! The subquery is computed two or three times, so one that may not return the same rows again (`random()`)
//! is left as it is.

use super::Decorrelation;
use crate::plan::correlation::refresh;
use crate::plan::equalities::split_keys;
use crate::plan::tree::substitute;
use crate::plan::{Distinct, Filter, Join, JoinKey, JoinKind, Node, Project};
use entasis_vector::expr::{CompareOp, Expr};
use entasis_vector::{ColumnId, DataType, Value};
use std::collections::HashMap;

impl Decorrelation<'_> {
    /// A null-aware anti or mark join of `outer` with `sub`, on `key` and on the columns that define the
    /// group.
    pub(super) fn null_aware_groups(
        &mut self,
        outer: Node,
        sub: Node,
        kind: JoinKind,
        key: JoinKey,
        group: Vec<JoinKey>,
    ) -> Node {
        let is_null = Expr::IsNull(Box::new(key.right.clone()));
        let (with_null, on_null) = self.groups(&sub, &group, Some(is_null));
        let (all, on_all) = self.groups(&sub, &group, None);
        let input_is_null = Expr::IsNull(Box::new(key.left.clone()));
        let mut on = group;
        on.insert(0, key);
        let JoinKind::Mark { mark, .. } = kind else {
            let node = semi_like(JoinKind::Anti, outer, sub, on, vec![]);
            let node = semi_like(JoinKind::Anti, node, with_null, on_null, vec![]);
            return semi_like(JoinKind::Anti, node, all, on_all, vec![input_is_null]);
        };
        let [is_found, has_null, has_any] =
            ["found", "null", "any"].map(|name| self.columns.add(name, DataType::Boolean, false));
        let marked = |mark| JoinKind::Mark { mark, null_aware: false };
        let node = semi_like(marked(is_found), outer, sub, on, vec![]);
        let node = semi_like(marked(has_null), node, with_null, on_null, vec![]);
        let node = semi_like(marked(has_any), node, all, on_all, vec![]);
        let [is_found, has_null, has_any] = [is_found, has_null, has_any].map(|mark| self.columns.expr(mark));
        let unknown = Expr::Or(vec![has_null, Expr::and([input_is_null, has_any])]);
        let value = Expr::Case {
            branches: vec![
                (is_found, Expr::boolean(true)),
                (unknown, Expr::literal(Value::Null, DataType::Boolean)),
            ],
            otherwise: Some(Box::new(Expr::boolean(false))),
            ty: DataType::Boolean,
        };
        Node::Project(Project { input: Box::new(node), exprs: vec![(mark, value)] })
    }

    /// An anti or mark join of `outer` with `sub` on equalities of which some are NULL and none is false
    /// ([`Unknown`]).
    pub(super) fn perhaps_equal(
        &mut self,
        outer: Node,
        sub: Node,
        kind: JoinKind,
        unknown: Unknown,
        group: Vec<JoinKey>,
    ) -> Node {
        let Unknown { pairs, or_equal } = unknown;
        let (left, right): (Vec<Expr>, Vec<Expr>) =
            pairs.iter().map(|key| (key.left.clone(), key.right.clone())).unzip();
        let condition = |pairs: &[JoinKey]| {
            let equal =
                pairs.iter().map(|key| Expr::compare(CompareOp::Eq, key.left.clone(), key.right.clone()));
            Expr::IsNull(Box::new(Expr::and(equal)))
        };
        let any_null =
            |exprs: Vec<Expr>| Expr::Or(exprs.into_iter().map(|expr| Expr::IsNull(Box::new(expr))).collect());

        let (copy, copies) = self.copy(&sub);
        let predicates = vec![substitute(any_null(right), &copies)];
        let with_null = Node::Filter(Filter { input: Box::new(copy), predicates });
        let (on_null, null_pairs) = (with_right(&group, &copies), with_right(&pairs, &copies));

        // Outer rows without a NULL get a key without match.
        let (copy, copies) = self.copy(&sub);
        let one = Expr::literal(Value::Integer(1), DataType::Int64);
        let asked = self.columns.add("asked", DataType::Int64, false);
        let all = Node::Project(Project { input: Box::new(copy), exprs: vec![(asked, one.clone())] });
        let (mut on_all, all_pairs) = (with_right(&group, &copies), with_right(&pairs, &copies));
        let asks = Expr::Case { branches: vec![(any_null(left), one)], otherwise: None, ty: DataType::Int64 };
        on_all.push(JoinKey { left: asks, right: self.columns.expr(asked), null_equals_null: false });

        let mut node = outer;
        let JoinKind::Mark { mark, .. } = kind else {
            if or_equal {
                let on = pairs.into_iter().chain(group).collect();
                node = semi_like(JoinKind::Anti, node, sub, on, vec![]);
            }
            node = semi_like(JoinKind::Anti, node, with_null, on_null, vec![condition(&null_pairs)]);
            return semi_like(JoinKind::Anti, node, all, on_all, vec![condition(&all_pairs)]);
        };
        let mut marks = Vec::new();
        let mut add = |own: &mut Self, node, right, on, residual| {
            let mark = own.columns.add("perhaps", DataType::Boolean, false);
            marks.push(own.columns.expr(mark));
            semi_like(JoinKind::Mark { mark, null_aware: false }, node, right, on, residual)
        };
        if or_equal {
            let on = pairs.into_iter().chain(group).collect();
            node = add(self, node, sub, on, vec![]);
        }
        node = add(self, node, with_null, on_null, vec![condition(&null_pairs)]);
        node = add(self, node, all, on_all, vec![condition(&all_pairs)]);
        Node::Project(Project { input: Box::new(node), exprs: vec![(mark, Expr::Or(marks))] })
    }

    /// A copy of a subquery, and its columns as expressions over the copy's.
    fn copy(&mut self, sub: &Node) -> (Node, HashMap<ColumnId, Expr>) {
        let mut map: HashMap<ColumnId, ColumnId> = HashMap::new();
        let copy = refresh(sub.clone(), self.columns, &mut map);
        (copy, map.into_iter().map(|(old, new)| (old, self.columns.expr(new))).collect())
    }

    /// The distinct groups with a row for which `condition` is true, and the keys by which they are found.
    fn groups(&mut self, sub: &Node, group: &[JoinKey], condition: Option<Expr>) -> (Node, Vec<JoinKey>) {
        let (mut node, copies) = self.copy(sub);
        if let Some(condition) = condition {
            let predicates = vec![substitute(condition, &copies)];
            node = Node::Filter(Filter { input: Box::new(node), predicates });
        }
        let exprs: Vec<(ColumnId, Expr)> = group
            .iter()
            .map(|key| {
                let expr = substitute(key.right.clone(), &copies);
                (self.columns.add("group", expr.ty(), true), expr)
            })
            .collect();
        let keys: Vec<ColumnId> = exprs.iter().map(|(id, _)| *id).collect();
        let node = Node::Project(Project { input: Box::new(node), exprs });
        let on =
            group.iter().zip(&keys).map(|(key, id)| JoinKey { right: self.columns.expr(*id), ..key.clone() });
        let on = on.collect();
        (Node::Distinct(Distinct::new(node, keys)), on)
    }
}

/// A join condition that equalities of both sides are possibly true.
pub(super) struct Unknown {
    /// The equalities.
    pub(super) pairs: Vec<JoinKey>,
    /// True if all may also be true (`IS NOT FALSE`); false if one of them must be NULL (`IS NULL`).
    pub(super) or_equal: bool,
}

impl Unknown {
    /// Recognizes `equal IS NULL` and `equal IS NOT FALSE`, where *equal* is a conjunction of equalities of
    /// `left` and `right`.
    pub(super) fn read(condition: &Expr, left: &Node, right: &Node) -> Option<Unknown> {
        let (equal, or_equal) = match condition {
            Expr::IsNull(equal) => (&**equal, false),
            Expr::Compare { op: CompareOp::DistinctFrom, left: equal, right: no } if is_false(no) => {
                (&**equal, true)
            }
            Expr::Compare { op: CompareOp::DistinctFrom, left: no, right: equal } if is_false(no) => {
                (&**equal, true)
            }
            _ => return None,
        };
        let mut rest = Vec::new();
        equal.clone().split_conjunction(&mut rest);
        let mut pairs = Vec::new();
        split_keys(left, right, &mut pairs, &mut rest);
        let is_plain = rest.is_empty() && pairs.iter().all(|pair| !pair.null_equals_null);
        is_plain.then_some(Unknown { pairs, or_equal })
    }
}

fn is_false(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal { value: Value::Boolean(false), .. })
}

/// The keys with the right side replaced by its copy.
fn with_right(keys: &[JoinKey], copies: &HashMap<ColumnId, Expr>) -> Vec<JoinKey> {
    keys.iter().map(|key| JoinKey { right: substitute(key.right.clone(), copies), ..key.clone() }).collect()
}

fn semi_like(kind: JoinKind, left: Node, right: Node, on: Vec<JoinKey>, residual: Vec<Expr>) -> Node {
    Node::Join(Join { left: Box::new(left), right: Box::new(right), kind, on, residual })
}
