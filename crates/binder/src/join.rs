//! Joins of relations, with their conditions.
//!
//! Equalities between the sides of a join become its keys, all other conditions residuals. Subqueries in the
//! condition of an inner join filter its pairs; in that of an outer join each is joined below, to the side
//! that it reads. If it reads both, the right side is computed for each left row, filtered by the condition;
//! a full join has the right rows beside, for which the left side has none.
//!
//! A column that USING or NATURAL merges is a column of its own: the left one of inner and left joins, the
//! right one of right joins, the one that is not NULL of full joins. The next USING of a chain takes it.

use crate::binder::{Binder, located};
use crate::bound::Bound;
use crate::from::From;
use crate::operator::{comparable, unified};
use crate::query::{filter, project};
use crate::scope::{Clause, Found, Merged, Pending, Rel, Scope};
use crate::select::has_subquery;
use crate::settle::settled;
use crate::subquery::{is_dependent, join_pending};
use entasis_engine::plan::{
    Dependent, Join, JoinKey, JoinKind, Node, Scan, SetKind, SetOperation, free_columns, refresh, split_keys,
};
use entasis_functions::types::Meeting;
use entasis_syntax::place::locate_ident;
use entasis_vector::error::sqlstate;
use entasis_vector::expr::{CompareOp, Expr};
use entasis_vector::{ColumnId, Error, Result, Value};
use sqlparser::ast::{self, Ident, JoinConstraint, JoinOperator, ObjectName};
use std::collections::{HashMap, HashSet};

/// How the sides of a join are related.
#[derive(Debug, Clone, Copy)]
struct Form {
    kind: JoinKind,
    /// A semi or anti join that keeps rows of the right side.
    swaps: bool,
    /// The right side reads columns of the left one.
    depends: bool,
}

/// A column of each side that USING or NATURAL makes one.
struct Merge {
    name: Box<str>,
    sides: [ColumnId; 2],
    /// The columns of which these are merged already.
    of: Vec<ColumnId>,
}

/// The condition of a join, once it is bound.
#[derive(Default)]
struct Condition<'q> {
    residual: Vec<Expr>,
    /// Subqueries that read both sides.
    over_both: Vec<Pending>,
    /// What is left for a filter on the pairs.
    after: Option<&'q ast::Expr>,
}

impl<'a, 'q> Binder<'a, 'q> {
    /// A join of the relations before it with the next one.
    pub(crate) fn join(&mut self, left: From, join: &'q ast::Join, before: Option<&From>) -> Result<From> {
        use JoinOperator as J;
        let mut nearest = None;
        let none = &JoinConstraint::None;
        let (kind, constraint, swaps) = match &join.join_operator {
            J::Join(c) | J::Inner(c) => (JoinKind::Inner, c, false),
            J::Left(c) | J::LeftOuter(c) => (JoinKind::Left, c, false),
            J::Right(c) | J::RightOuter(c) => (JoinKind::Right, c, false),
            J::FullOuter(c) => (JoinKind::Full, c, false),
            J::CrossJoin(_) => (JoinKind::Inner, none, false),
            J::Semi(c) | J::LeftSemi(c) => (JoinKind::Semi, c, false),
            J::Anti(c) | J::LeftAnti(c) => (JoinKind::Anti, c, false),
            J::RightSemi(c) => (JoinKind::Semi, c, true),
            J::RightAnti(c) => (JoinKind::Anti, c, true),
            J::AsOf { match_condition, constraint } => {
                nearest = Some(match_condition);
                (JoinKind::AsOf { outer: false }, constraint, false)
            }
            other => {
                return Err(Error::not_supported(
                    format!("{other:?}").split('(').next().unwrap_or("this join").to_owned(),
                ));
            }
        };
        let is_asof = join.global || nearest.is_some();
        if is_asof && !matches!(kind, JoinKind::Inner | JoinKind::Left | JoinKind::AsOf { .. }) {
            return Err(Error::not_supported("ASOF JOIN that is neither an inner nor a LEFT join"));
        }
        let captures = self.captures;
        let is_refused = matches!(kind, JoinKind::Right | JoinKind::Full) || swaps;
        let around: Vec<&From> = before.into_iter().chain([&left]).collect();
        let right = self.factor(&join.relation, &around, is_refused)?;
        self.distinguish(&left, &right)?;
        let depends = self.captures > captures && is_dependent(&left.node, &right.node);
        if is_asof {
            if depends {
                return Err(Error::not_supported("ASOF JOIN LATERAL"));
            }
            return self.asof_join(left, right, kind, constraint, nearest);
        }
        self.conditional(left, right, Form { kind, swaps, depends }, constraint)
    }

    /// A join with its condition.
    fn conditional(
        &mut self,
        mut left: From,
        mut right: From,
        form: Form,
        constraint: &'q JoinConstraint,
    ) -> Result<From> {
        let names = merged_names(&left, &right, constraint)?;
        let (keys, merges) = self.merges(&left, &right, &names)?;
        let condition = match constraint {
            JoinConstraint::On(condition) => self.join_condition(condition, form, &mut left, &mut right)?,
            _ => Condition::default(),
        };
        let Condition { residual, over_both, after } = condition;
        let columns = [left.node.columns(), right.node.columns()];
        let sides = [left.node, right.node];
        let node = match over_both.is_empty() {
            true => join_node(sides, form, keys, residual)?,
            false => self.join_over_both(sides, form, over_both, settled(Expr::And(residual))),
        };
        self.nulled_sides(form.kind, &columns);
        let mut from = match (form.kind, form.swaps) {
            (JoinKind::Semi | JoinKind::Anti, false) => {
                From { node, relations: left.relations, merged: left.merged }
            }
            (JoinKind::Semi | JoinKind::Anti, true) => {
                From { node, relations: right.relations, merged: right.merged }
            }
            (kind, _) => {
                let before = left.merged.into_iter().chain(right.merged).collect();
                let (node, merged) = self.merged_columns(node, kind, merges, before)?;
                From { node, relations: left.relations.into_iter().chain(right.relations).collect(), merged }
            }
        };
        if let Some(condition) = after {
            self.scopes.push(from.scope());
            self.scope().clause = Clause::On;
            let filtered = self.filtered(condition, &mut from.node);
            self.scopes.pop();
            filtered?;
        }
        Ok(from)
    }

    /// The keys of the columns that USING or NATURAL merges, and these columns.
    fn merges(&self, left: &From, right: &From, names: &[Ident]) -> Result<(Vec<JoinKey>, Vec<Merge>)> {
        let mut keys = Vec::with_capacity(names.len());
        let mut merges = Vec::with_capacity(names.len());
        for name in names {
            let l = self.side_column(left, name, "left")?;
            let r = self.side_column(right, name, "right")?;
            let [lb, rb] = [l, r].map(|column| Bound::known(self.columns.expr(column)));
            let (le, re) = comparable(CompareOp::Eq, lb, rb).map_err(|error| locate_ident(error, name))?;
            keys.push(JoinKey { left: settled(le), right: settled(re), null_equals_null: false });
            let lower = name.value.to_ascii_lowercase();
            let of = [left, right].into_iter().flat_map(|side| &side.merged);
            let of = of.filter(|merged| *merged.name == *lower).flat_map(|merged| merged.of.clone());
            merges.push(Merge { of: of.collect(), name: lower.into(), sides: [l, r] });
        }
        Ok((keys, merges))
    }

    /// Binds the condition of a join; subqueries that read one side are joined to it.
    fn join_condition(
        &mut self,
        condition: &'q ast::Expr,
        form: Form,
        left: &mut From,
        right: &mut From,
    ) -> Result<Condition<'q>> {
        if form.kind == JoinKind::Inner && has_subquery(condition) {
            return Ok(Condition { after: Some(condition), ..Condition::default() });
        }
        let relations: Vec<Rel> = left.relations.iter().chain(&right.relations).cloned().collect();
        let merged = left.merged.iter().chain(&right.merged).cloned().collect();
        self.scopes.push(Scope::new(relations, merged, Clause::On));
        let residual = self.residual(condition, form.depends, &mut left.node, &mut right.node);
        let scope = self.scopes.pop();
        let over_both = scope.map(|scope| scope.pending).unwrap_or_default();
        Ok(Condition { residual: residual?, over_both, after: None })
    }

    /// The conjuncts of a join's condition. Subqueries that read both sides stay in the scope.
    fn residual(
        &mut self,
        condition: &'q ast::Expr,
        depends: bool,
        left: &mut Node,
        right: &mut Node,
    ) -> Result<Vec<Expr>> {
        let bound = settled(self.condition(condition)?);
        let mut residual = Vec::new();
        bound.split_conjunction(&mut residual);
        let pending = std::mem::take(&mut self.scope().pending);
        if depends && !pending.is_empty() {
            return Err(Error::not_supported("subqueries in the ON of a lateral join"));
        }
        for pending in pending {
            let mut read: Vec<ColumnId> = free_columns(&pending.node).iter().collect();
            if let Some((key, _)) = &pending.key {
                key.collect_columns(&mut read);
            }
            let reads = |side: &Node| side.columns().iter().any(|column| read.contains(column));
            match (reads(left), reads(right)) {
                (true, true) => self.scope().pending.push(pending),
                (_, false) => join_pending(left, pending),
                (false, true) => join_pending(right, pending),
            }
        }
        Ok(residual)
    }

    /// A join whose condition has subqueries over both sides.
    fn join_over_both(
        &mut self,
        sides: [Node; 2],
        form: Form,
        pending: Vec<Pending>,
        condition: Expr,
    ) -> Node {
        let [left, right] = if form.swaps { reversed(sides) } else { sides };
        // Columns have identities, so that the sides of a RIGHT JOIN may be exchanged.
        let (left, mut right, kind) = match form.kind {
            JoinKind::Full => return self.full_over_both(left, right, &pending, condition),
            JoinKind::Right => (right, left, JoinKind::Left),
            kind => (left, right, kind),
        };
        pending.into_iter().for_each(|pending| join_pending(&mut right, pending));
        dependent(left, filter(right, condition), kind, Vec::new())
    }

    /// A full join whose condition has subqueries over both sides: the left rows, each with its matches, and
    /// the right rows that match none. The condition is evaluated for both, so that what is volatile in it
    /// may differ.
    fn full_over_both(&mut self, left: Node, right: Node, pending: &[Pending], condition: Expr) -> Node {
        let columns = [left.columns(), right.columns()];
        let (left, right) = (self.computed_once("left side", left), self.computed_once("right side", right));
        let matching = |mut side: Node| {
            pending.iter().cloned().for_each(|pending| join_pending(&mut side, pending));
            filter(side, condition.clone())
        };
        let found = dependent(left.clone(), matching(right.clone()), JoinKind::Left, Vec::new());
        let alone = dependent(right, matching(left), JoinKind::Anti, Vec::new());
        let mut nulls = Vec::with_capacity(columns[0].len());
        for &column in &columns[0] {
            let ty = self.columns.ty(column);
            nulls.push((self.columns.add("null", ty, true), Expr::literal(Value::Null, ty)));
        }
        let absent = nulls.iter().map(|(column, _)| *column).chain(columns[1].iter().copied()).collect();
        let columns = columns.concat();
        let inputs = [(found, columns.clone()), (project(alone, nulls), absent)].map(|(node, outputs)| {
            // The columns that come out are those of the sides, so that within there are others.
            let mut fresh = HashMap::new();
            let node = refresh(node, &mut self.columns, &mut fresh);
            (node, outputs.iter().map(|column| fresh[column]).collect::<Vec<ColumnId>>())
        });
        Node::SetOperation(SetOperation { kind: SetKind::Union, all: true, inputs: inputs.into(), columns })
    }

    /// The same rows for all who read copies of the node, unless they depend on rows around.
    fn computed_once(&self, name: &str, node: Node) -> Node {
        let is_table = matches!(&node, Node::Scan(scan) if scan.relation.table().is_some());
        if is_table || !free_columns(&node).is_empty() {
            return node;
        }
        let ids = node.columns();
        let columns: Vec<_> = ids.iter().map(|id| (self.columns.get(*id).name.clone(), *id)).collect();
        Node::Scan(Scan::all(self.relation_of(name, node, &columns), ids.into_iter().zip(0..).collect()))
    }

    /// Notes which sides of a join have NULLs where a row has no partner.
    fn nulled_sides(&mut self, kind: JoinKind, [left, right]: &[Vec<ColumnId>; 2]) {
        if matches!(kind, JoinKind::Right | JoinKind::Full) {
            self.nulled(left);
        }
        if matches!(kind, JoinKind::Left | JoinKind::Full) {
            self.nulled(right);
        }
    }

    /// Notes that columns may be NULL above a join.
    pub(crate) fn nulled(&mut self, columns: &[ColumnId]) {
        let (Some(first), Some(last)) = (columns.iter().min(), columns.iter().max()) else { return };
        if (last.0 - first.0) as usize + 1 == columns.len() {
            self.nulled.push((first.0, last.0 + 1));
            return;
        }
        self.nulled.extend(columns.iter().map(|column| (column.0, column.0 + 1)));
    }

    /// Makes one column of each two that are merged. They stand in the order in which they are written, in
    /// front of those that were merged `before`.
    fn merged_columns(
        &mut self,
        node: Node,
        kind: JoinKind,
        merges: Vec<Merge>,
        before: Vec<Merged>,
    ) -> Result<(Node, Vec<Merged>)> {
        let mut made = Vec::new();
        let mut merged = Vec::with_capacity(merges.len());
        for Merge { name, sides: [l, r], of } in merges {
            let column = match kind {
                JoinKind::Right => r,
                JoinKind::Full => self.either(l, r, &mut made)?,
                _ => l,
            };
            let of = [l, r].into_iter().chain(of).collect();
            merged.push(Merged { name, column, of });
        }
        let is_taken = |old: &Merged| merged.iter().any(|new: &Merged| new.stands_for(&old.name, old.column));
        let kept: Vec<Merged> = before.into_iter().filter(|old| !is_taken(old)).collect();
        merged.extend(kept);
        Ok((project(node, made), merged))
    }

    /// The one of two columns that is not NULL.
    fn either(
        &mut self,
        left: ColumnId,
        right: ColumnId,
        made: &mut Vec<(ColumnId, Expr)>,
    ) -> Result<ColumnId> {
        let bounds = [left, right].map(|column| Bound::known(self.columns.expr(column)));
        let (exprs, ty) = unified(bounds.into(), Meeting::Equality, "USING")?;
        let [l, r] = <[Expr; 2]>::try_from(exprs).map_err(|_| Error::internal("USING has two sides"))?;
        let is_there = Expr::Not(Box::new(Expr::IsNull(Box::new(l.clone()))));
        let either = Expr::Case { branches: vec![(is_there, l)], otherwise: Some(Box::new(r)), ty };
        let column = self.columns.add(self.columns.get(left).name.clone(), ty, true);
        made.push((column, either));
        Ok(column)
    }

    /// The column of one side of a join that USING names.
    pub(crate) fn side_column(&self, side: &From, name: &Ident, which: &str) -> Result<ColumnId> {
        let lower = name.value.to_ascii_lowercase();
        match side.scope().find(&lower) {
            Found::Column(column) => Ok(column),
            Found::Several(_) => {
                let text = format!(
                    "USING ({lower}): the column is there more than once on the {which} side of the join"
                );
                Err(locate_ident(Error::input(text), name))
            }
            _ => {
                let error = Error::input(format!(
                    "USING ({lower}): there is no column {lower} on the {which} side of the join"
                ));
                Err(locate_ident(error.with_sqlstate(sqlstate::NO_COLUMN), name))
            }
        }
    }
}

/// The names of the columns that USING or NATURAL merges.
fn merged_names(left: &From, right: &From, constraint: &JoinConstraint) -> Result<Vec<Ident>> {
    match constraint {
        JoinConstraint::None | JoinConstraint::On(_) => Ok(Vec::new()),
        JoinConstraint::Using(names) => {
            let names = names.iter().map(using_name).collect::<Result<Vec<Ident>>>()?;
            // A column that is named twice is merged once.
            let is_first = |place: usize| {
                !names[..place].iter().any(|name| name.value.eq_ignore_ascii_case(&names[place].value))
            };
            let places = (0..names.len()).filter(|place| is_first(*place));
            Ok(places.map(|place| names[place].clone()).collect())
        }
        JoinConstraint::Natural => {
            let other = right.names();
            let mut names: Vec<Box<str>> = left.names();
            names.retain(|name| other.contains(name));
            let mut seen = HashSet::new();
            names.retain(|name| seen.insert(name.clone()));
            Ok(names.into_iter().map(|name| Ident::with_quote('"', &*name)).collect())
        }
    }
}

/// A join without subqueries over both sides.
fn join_node(sides: [Node; 2], form: Form, mut keys: Vec<JoinKey>, mut residual: Vec<Expr>) -> Result<Node> {
    let [left, right] = if form.swaps { reversed(sides) } else { sides };
    if form.swaps {
        keys.iter_mut().for_each(|key| std::mem::swap(&mut key.left, &mut key.right));
    }
    if form.depends {
        residual.extend(keys.into_iter().map(|key| Expr::compare(CompareOp::Eq, key.left, key.right)));
        if matches!(form.kind, JoinKind::Right | JoinKind::Full) || form.swaps {
            return Err(Error::not_supported("RIGHT and FULL JOIN LATERAL"));
        }
        return Ok(lateral(left, right, form.kind, residual));
    }
    split_keys(&left, &right, &mut keys, &mut residual);
    Ok(plain(left, right, form.kind, keys, residual))
}

fn reversed([left, right]: [Node; 2]) -> [Node; 2] {
    [right, left]
}

/// A join without dependence.
pub(crate) fn plain(left: Node, right: Node, kind: JoinKind, on: Vec<JoinKey>, residual: Vec<Expr>) -> Node {
    Node::Join(Join { left: Box::new(left), right: Box::new(right), kind, on, residual })
}

/// A join whose right side is computed for each left row.
fn dependent(left: Node, right: Node, kind: JoinKind, residual: Vec<Expr>) -> Node {
    let outputs = match kind {
        JoinKind::Semi | JoinKind::Anti => Vec::new(),
        _ => right.columns(),
    };
    Node::Dependent(Dependent {
        left: Box::new(left),
        right: Box::new(right),
        kind,
        on: None,
        residual,
        outputs,
    })
}

/// A lateral join. What goes over the single row of a query without FROM goes over each left row.
pub(crate) fn lateral(left: Node, right: Node, kind: JoinKind, residual: Vec<Expr>) -> Node {
    let mut right = right;
    if kind == JoinKind::Inner
        && let Some(row) = single_row(&mut right)
    {
        *row = left;
        return filter(right, Expr::and(residual));
    }
    dependent(left, right, kind, residual)
}

/// The row of no columns over which there are only projections, filters and unnests.
fn single_row(node: &mut Node) -> Option<&mut Node> {
    match node {
        Node::Values(values) if values.columns.is_empty() && values.rows.len() == 1 => Some(node),
        Node::Project(project) => single_row(&mut project.input),
        Node::Unnest(unnest) => single_row(&mut unnest.input),
        Node::Filter(filter) => single_row(&mut filter.input),
        _ => None,
    }
}

/// The name of a column in USING.
pub(crate) fn using_name(name: &ObjectName) -> Result<Ident> {
    match name.0.as_slice() {
        [part] => part.as_ident().cloned(),
        _ => None,
    }
    .ok_or_else(|| located(Error::input(format!("{name} in USING is not the name of a column")), name))
}
