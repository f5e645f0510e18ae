//! FROM: relations and joins.
//!
//! A relation that is LATERAL, as functions are, sees the relations before it, all others only the queries
//! around. Equalities between the sides of a join become its keys, all other conditions residuals. Subqueries
//! in the condition of an inner join filter its pairs; in that of an outer join each is joined below, to the
//! side that it reads. If it reads both, the right side is computed for each left row, filtered by the
//! condition; a full join has the right rows beside, for which the left side has none.
//!
//! A column that USING or NATURAL merges is a column of its own: the left one of inner and left joins, the
//! right one of right joins, the one that is not NULL of full joins. The next USING of a chain takes it.

use crate::binder::{Binder, located};
use crate::bound::Bound;
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
use entasis_syntax::clauses;
use entasis_syntax::place::locate_ident;
use entasis_vector::error::sqlstate;
use entasis_vector::expr::{CompareOp, Expr};
use entasis_vector::{ColumnId, DataType, Error, Result, Value};
use sqlparser::ast::{self, Ident, JoinConstraint, JoinOperator, ObjectName, TableFactor, TableWithJoins};
use std::collections::HashMap;

/// Rows of FROM, with what names mean over them.
#[derive(Debug)]
pub(crate) struct From {
    pub(crate) node: Node,
    pub(crate) relations: Vec<Rel>,
    pub(crate) merged: Vec<Merged>,
}

impl From {
    pub(crate) fn one(node: Node, rel: Rel) -> From {
        From { node, relations: vec![rel], merged: Vec::new() }
    }

    fn scope<'q>(&self) -> Scope<'q> {
        Scope::new(self.relations.clone(), self.merged.clone(), Clause::From)
    }

    /// The columns that an unqualified name may mean, in the order of `*`.
    fn names(&self) -> Vec<Box<str>> {
        let is_merged = |column: &ColumnId| self.merged.iter().any(|merged| merged.of.contains(column));
        let merged = self.merged.iter().map(|merged| merged.name.clone());
        let own = self.relations.iter().flat_map(|rel| &rel.columns.all);
        let mut names: Vec<Box<str>> = merged.collect();
        names.extend(own.filter(|(_, column)| !is_merged(column)).map(|(name, _)| name.clone()));
        names
    }
}

impl<'a, 'q> Binder<'a, 'q> {
    /// Binds the relations of a FROM; without any, one row of no columns.
    pub(crate) fn relations(&mut self, tables: &'q [TableWithJoins]) -> Result<From> {
        let mut all: Option<From> = None;
        for table in tables {
            let captures = self.captures;
            let next = self.joined(table, all.as_ref())?;
            all = Some(match all {
                None => next,
                Some(left) => {
                    self.distinguish(&left, &next)?;
                    self.product(left, next, self.captures > captures)
                }
            });
        }
        Ok(all.unwrap_or_else(|| From {
            node: crate::query::one_row(),
            relations: Vec::new(),
            merged: Vec::new(),
        }))
    }

    /// A relation with the joins behind it; `before` are the relations before the comma.
    fn joined(&mut self, table: &'q TableWithJoins, before: Option<&From>) -> Result<From> {
        let around: Vec<&From> = before.into_iter().collect();
        let mut left = self.factor(&table.relation, &around, false)?;
        for join in &table.joins {
            left = self.join(left, join, before)?;
        }
        Ok(left)
    }

    /// Refuses two relations of one name.
    fn distinguish(&self, left: &From, right: &From) -> Result<()> {
        let named = |rel: &&Rel| !rel.alias.is_empty();
        for rel in right.relations.iter().filter(named) {
            let same = |other: &Rel| other.alias == rel.alias && other.qualifiers == rel.qualifiers;
            if left.relations.iter().any(same) {
                let error = Error::input(format!("there are two tables named {} in FROM", rel.alias));
                return Err(error.with_hint("name one of them differently: FROM table AS name"));
            }
        }
        Ok(())
    }

    /// All pairs.
    fn product(&mut self, left: From, right: From, may_depend: bool) -> From {
        let node = match may_depend && is_dependent(&left.node, &right.node) {
            true => lateral(left.node, right.node, JoinKind::Inner, Vec::new()),
            false => plain(left.node, right.node, JoinKind::Inner, Vec::new(), Vec::new()),
        };
        From {
            node,
            relations: left.relations.into_iter().chain(right.relations).collect(),
            merged: left.merged.into_iter().chain(right.merged).collect(),
        }
    }

    fn join(&mut self, left: From, join: &'q ast::Join, before: Option<&From>) -> Result<From> {
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
        self.conditional(left, right, (kind, swaps), constraint, depends)
    }

    /// A join with its condition.
    fn conditional(
        &mut self,
        left: From,
        right: From,
        (kind, swaps): (JoinKind, bool),
        constraint: &'q JoinConstraint,
        depends: bool,
    ) -> Result<From> {
        let (mut left, mut right) = (left, right);
        let mut on: Vec<JoinKey> = Vec::new();
        let mut merged: Vec<(Box<str>, [ColumnId; 2], Vec<ColumnId>)> = Vec::new();
        let names = match constraint {
            JoinConstraint::None => Vec::new(),
            JoinConstraint::On(_) => Vec::new(),
            JoinConstraint::Using(names) => {
                let names = names.iter().map(using_name).collect::<Result<Vec<Ident>>>()?;
                // A column that is named twice is merged once.
                let is_first = |place: usize| {
                    !names[..place].iter().any(|name| name.value.eq_ignore_ascii_case(&names[place].value))
                };
                (0..names.len()).filter(|place| is_first(*place)).map(|place| names[place].clone()).collect()
            }
            JoinConstraint::Natural => {
                let other = right.names();
                let mut names: Vec<Box<str>> = left.names();
                names.retain(|name| other.contains(name));
                let mut seen = std::collections::HashSet::new();
                names.retain(|name| seen.insert(name.clone()));
                names.into_iter().map(|name| Ident::with_quote('"', &*name)).collect()
            }
        };
        for name in &names {
            let l = self.side_column(&left, name, "left")?;
            let r = self.side_column(&right, name, "right")?;
            let bound = [l, r].map(|column| Bound::known(self.columns.expr(column)));
            let [lb, rb] = bound;
            let (le, re) = comparable(CompareOp::Eq, lb, rb).map_err(|error| locate_ident(error, name))?;
            on.push(JoinKey { left: settled(le), right: settled(re), null_equals_null: false });
            let lower = name.value.to_ascii_lowercase();
            let of = [&left, &right].into_iter().flat_map(|side| &side.merged);
            let of = of.filter(|merged| *merged.name == *lower).flat_map(|merged| merged.of.clone());
            let of = of.collect();
            merged.push((lower.into(), [l, r], of));
        }
        let relations: Vec<Rel> = left.relations.iter().chain(&right.relations).cloned().collect();
        let mut residual = Vec::new();
        let mut after: Vec<&'q ast::Expr> = Vec::new();
        let mut over_both = None;
        if let JoinConstraint::On(condition) = constraint {
            let both = left.merged.iter().chain(&right.merged).cloned().collect();
            self.scopes.push(Scope::new(relations.clone(), both, Clause::On));
            let bound = self.on_condition(condition, kind, depends, &mut left.node, &mut right.node);
            let scope = self.scopes.pop();
            let (conditions, filters, pending) = bound?;
            (residual, after) = (conditions, filters);
            over_both = pending.then(|| scope.map(|scope| scope.pending).unwrap_or_default());
        }
        let made_left = left.node.columns();
        let made_right = right.node.columns();
        let (mut left_node, mut right_node) = (left.node, right.node);
        if swaps {
            std::mem::swap(&mut left_node, &mut right_node);
            for key in &mut on {
                std::mem::swap(&mut key.left, &mut key.right);
            }
        }
        let mut node = match over_both {
            Some(pending) if kind == JoinKind::Full => {
                self.full_over_both(left_node, right_node, &pending, settled(Expr::And(residual)))
            }
            Some(pending) => {
                // Columns have identities, so that the sides of a RIGHT JOIN may be exchanged.
                let kind = match kind {
                    JoinKind::Right => {
                        std::mem::swap(&mut left_node, &mut right_node);
                        JoinKind::Left
                    }
                    kind => kind,
                };
                pending.into_iter().for_each(|pending| join_pending(&mut right_node, pending));
                let right = filter(right_node, settled(Expr::And(residual)));
                dependent(left_node, right, kind, Vec::new())
            }
            None if depends => {
                let equal = on.into_iter().map(|key| Expr::compare(CompareOp::Eq, key.left, key.right));
                residual.extend(equal);
                if matches!(kind, JoinKind::Right | JoinKind::Full) || swaps {
                    return Err(Error::not_supported("RIGHT and FULL JOIN LATERAL"));
                }
                lateral(left_node, right_node, kind, residual)
            }
            None => {
                split_keys(&left_node, &right_node, &mut on, &mut residual);
                plain(left_node, right_node, kind, on, residual)
            }
        };
        match kind {
            JoinKind::Left => self.nulled(&made_right),
            JoinKind::Right => self.nulled(&made_left),
            JoinKind::Full => {
                self.nulled(&made_left);
                self.nulled(&made_right);
            }
            _ => {}
        }
        let mut from = match (kind, swaps) {
            (JoinKind::Semi | JoinKind::Anti, false) => {
                From { node, relations: left.relations, merged: left.merged }
            }
            (JoinKind::Semi | JoinKind::Anti, true) => {
                From { node, relations: right.relations, merged: right.merged }
            }
            _ => {
                let mut all: Vec<Merged> = left.merged.into_iter().chain(right.merged).collect();
                let mut made = Vec::new();
                // Merged columns stand in the order in which they are written.
                let mut own = Vec::with_capacity(merged.len());
                for (name, [l, r], of) in merged {
                    let column = match kind {
                        JoinKind::Right => r,
                        JoinKind::Full => self.either(l, r, &mut made)?,
                        _ => l,
                    };
                    let of = [l, r].into_iter().chain(of).collect();
                    own.push(Merged { name, column, of });
                }
                node = project(node, made);
                all.retain(|old| !own.iter().any(|new| new.of.contains(&old.column)));
                own.extend(all);
                From { node, relations, merged: own }
            }
        };
        if !after.is_empty() {
            self.scopes.push(from.scope());
            self.scope().clause = Clause::On;
            let filtered =
                after.into_iter().try_for_each(|condition| self.filtered(condition, &mut from.node));
            self.scopes.pop();
            filtered?;
        }
        Ok(from)
    }

    /// Binds the condition of a join. Returns its residuals; conjuncts that are left for a filter on the
    /// pairs; and whether there are subqueries left, which read both sides.
    fn on_condition(
        &mut self,
        condition: &'q ast::Expr,
        kind: JoinKind,
        depends: bool,
        left: &mut Node,
        right: &mut Node,
    ) -> Result<(Vec<Expr>, Vec<&'q ast::Expr>, bool)> {
        if kind == JoinKind::Inner && has_subquery(condition) {
            return Ok((Vec::new(), vec![condition], false));
        }
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
        let is_left = !self.scope().pending.is_empty();
        Ok((residual, Vec::new(), is_left))
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

    /// Notes that columns may be NULL above a join.
    pub(crate) fn nulled(&mut self, columns: &[ColumnId]) {
        let (Some(first), Some(last)) = (columns.iter().min(), columns.iter().max()) else { return };
        if (last.0 - first.0) as usize + 1 == columns.len() {
            self.nulled.push((first.0, last.0 + 1));
            return;
        }
        self.nulled.extend(columns.iter().map(|column| (column.0, column.0 + 1)));
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

    /// A relation of FROM. `around` are the relations before it; those of the left side of a join are found
    /// and refused if `is_refused`.
    fn factor(&mut self, factor: &'q TableFactor, around: &[&From], is_refused: bool) -> Result<From> {
        clauses::table_factor(factor)?;
        match factor {
            TableFactor::Table { name, alias, args: None, sample, .. } => {
                let from = self.table(name, alias.as_ref())?;
                self.sampled(from, sample.as_ref())
            }
            TableFactor::Table { name, alias, args: Some(args), sample, .. } => {
                let from = self.beside(around, is_refused, |binder| {
                    binder.table_function(name, &args.args, alias.as_ref())
                })?;
                self.sampled(from, sample.as_ref())
            }
            TableFactor::Function { name, args, alias, .. } => {
                self.beside(around, is_refused, |binder| binder.table_function(name, args, alias.as_ref()))
            }
            TableFactor::Derived { lateral, subquery, alias, sample } => {
                let rows = match lateral {
                    true => self.beside(around, is_refused, |binder| binder.query_rows(subquery))?,
                    false => self.query_rows(subquery)?,
                };
                let (node, columns) = self.projected(rows);
                let from = self.named(node, columns, "", alias.as_ref())?;
                self.sampled(from, sample.as_ref())
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                let mut from = self.joined_in_brackets(table_with_joins, around)?;
                if let Some(alias) = alias {
                    let columns = self.columns_in_order(&from);
                    from = self.named(from.node, columns, "", Some(alias))?;
                }
                Ok(from)
            }
            other => Err(Error::not_supported(format!("{other} in FROM"))),
        }
    }

    fn joined_in_brackets(&mut self, table: &'q TableWithJoins, around: &[&From]) -> Result<From> {
        let mut left = self.factor(&table.relation, around, false)?;
        for join in &table.joins {
            left = self.join(left, join, around.first().copied())?;
        }
        Ok(left)
    }

    /// Binds what sees the relations before it.
    fn beside<T>(
        &mut self,
        around: &[&From],
        is_refused: bool,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let depth = self.scopes.len();
        for from in around {
            let mut scope = from.scope();
            scope.relations.iter_mut().for_each(|rel| rel.is_refused |= is_refused);
            self.scopes.push(scope);
        }
        let bound = bind(self);
        self.scopes.truncate(depth);
        bound
    }

    /// The columns of `*`, with their names.
    fn columns_in_order(&self, from: &From) -> Vec<(String, ColumnId)> {
        let is_merged = |column: &ColumnId| from.merged.iter().any(|merged| merged.of.contains(column));
        let merged = from.merged.iter().map(|merged| (merged.name.to_string(), merged.column));
        let own = from.relations.iter().flat_map(|rel| &rel.columns.all);
        let own = own.filter(|(_, column)| !is_merged(column));
        merged.chain(own.map(|(name, column)| (name.to_string(), *column))).collect()
    }

    /// Rows under the name of their alias, or else under `name`.
    pub(crate) fn named(
        &mut self,
        node: Node,
        columns: Vec<(String, ColumnId)>,
        name: &str,
        alias: Option<&ast::TableAlias>,
    ) -> Result<From> {
        let mut listed: Vec<(Box<str>, ColumnId)> =
            columns.into_iter().map(|(name, column)| (name.to_ascii_lowercase().into(), column)).collect();
        let mut own = name.to_owned();
        if let Some(alias) = alias {
            own = alias.name.value.to_ascii_lowercase();
            if alias.columns.len() > listed.len() {
                let (there, given) = (listed.len(), alias.columns.len());
                let error = Error::input(format!("{there} columns are given {given} names"));
                return Err(locate_ident(error.with_sqlstate(sqlstate::SYNTAX), &alias.name));
            }
            for (column, given) in listed.iter_mut().zip(&alias.columns) {
                column.0 = given.name.value.to_ascii_lowercase().into();
            }
        }
        let mut rel = Rel::new(&own, listed);
        let mut node = node;
        if self.counted.contains(&own) {
            let presence = self.columns.add("row", DataType::Boolean, false);
            node = project(node, vec![(presence, Expr::boolean(true))]);
            rel.presence = Some(presence);
        }
        Ok(From::one(node, rel))
    }
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
fn lateral(left: Node, right: Node, kind: JoinKind, residual: Vec<Expr>) -> Node {
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
