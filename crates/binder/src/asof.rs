//! `ASOF JOIN`: each left row with the right row that is nearest by an inequality.
//!
//! ```text
//! trades t ASOF LEFT JOIN quotes q ON t.symbol = q.symbol AND t.ts >= q.ts
//! trades ASOF JOIN quotes USING (symbol, ts)                          the last column is compared by >=
//! trades t ASOF JOIN quotes q MATCH_CONDITION (t.ts >= q.ts) ON t.symbol = q.symbol
//! ```
//! The inequality is the only residual of the engine's as-of join; equalities of both sides are its keys. An
//! inequality with a constant is a condition like any other. Right and full joins, `NATURAL`, no inequality
//! or several are refused.

use crate::binder::Binder;
use crate::bound::Bound;
use crate::from::From;
use crate::join::{plain, using_name};
use crate::operator::comparable;
use crate::query::{filter, project};
use crate::scope::{Clause, Merged, Rel, Scope};
use crate::select::has_subquery;
use crate::settle::settled;
use entasis_engine::plan::{ColumnSet, JoinKey, JoinKind, Node, reads_only, split_keys};
use entasis_syntax::place::locate_ident;
use entasis_vector::error::sqlstate;
use entasis_vector::expr::{CompareOp, Expr};
use entasis_vector::{DataType, Error, Result};
use sqlparser::ast::{self, JoinConstraint, ObjectName};

/// The condition of an as-of join.
#[derive(Default)]
struct Condition {
    /// All conditions but the inequality.
    equalities: Vec<Expr>,
    inequality: Option<Expr>,
    /// The columns that USING merges.
    merged: Vec<Merged>,
}

impl<'a, 'q> Binder<'a, 'q> {
    /// `ASOF JOIN`: each left row with the right row that is nearest by an inequality. Conditions of the
    /// right side filter it before the nearest row is looked for; a left row for which one of the left side
    /// is not true has no partner.
    pub(crate) fn asof_join(
        &mut self,
        left: From,
        right: From,
        kind: JoinKind,
        constraint: &'q JoinConstraint,
        nearest: Option<&'q ast::Expr>,
    ) -> Result<From> {
        let outer = match kind {
            JoinKind::Inner | JoinKind::AsOf { .. } => false,
            JoinKind::Left => true,
            _ => return Err(Error::not_supported("ASOF JOIN that is neither an inner nor a LEFT join")),
        };
        let relations: Vec<Rel> = left.relations.iter().chain(&right.relations).cloned().collect();
        let both: Vec<Merged> = left.merged.iter().chain(&right.merged).cloned().collect();
        let condition = match constraint {
            JoinConstraint::Using(names) if nearest.is_none() => self.asof_using(&left, &right, names)?,
            JoinConstraint::Using(_) => {
                return Err(Error::not_supported("ASOF JOIN with MATCH_CONDITION and USING"));
            }
            JoinConstraint::Natural => return Err(Error::not_supported("NATURAL ASOF JOIN")),
            JoinConstraint::On(_) | JoinConstraint::None => {
                let mut conjuncts = Vec::new();
                let written = match constraint {
                    JoinConstraint::On(condition) => vec![condition],
                    _ => Vec::new(),
                };
                written.into_iter().chain(nearest).for_each(|ast| conjuncts_of(ast, &mut conjuncts));
                self.asof_on(&conjuncts, Scope::new(relations.clone(), both.clone(), Clause::On))?
            }
        };
        let Condition { equalities, inequality, merged } = condition;
        let Some(inequality) = inequality else {
            return Err(Error::input("an ASOF JOIN needs an inequality in its ON")
                .with_sqlstate(sqlstate::SYNTAX)
                .with_hint(
                    "add one of >=, >, <= and < between a column of each side, such as t.ts >= q.ts",
                ));
        };
        let mut conditions = Vec::new();
        equalities.into_iter().for_each(|condition| settled(condition).split_conjunction(&mut conditions));
        let made = right.node.columns();
        let node = self.asof_node(left.node, right.node, outer, conditions, settled(inequality))?;
        if outer {
            self.nulled(&made);
        }
        Ok(From { node, relations, merged: merged.into_iter().chain(both).collect() })
    }

    /// The condition of USING: equalities, and an inequality of the last column.
    fn asof_using(&self, left: &From, right: &From, names: &[ObjectName]) -> Result<Condition> {
        let mut condition = Condition::default();
        for (place, name) in names.iter().enumerate() {
            let ident = using_name(name)?;
            let l = self.side_column(left, &ident, "left")?;
            let r = self.side_column(right, &ident, "right")?;
            let op = if place + 1 == names.len() { CompareOp::GtEq } else { CompareOp::Eq };
            let [lb, rb] = [l, r].map(|column| Bound::known(self.columns.expr(column)));
            let (le, re) = comparable(op, lb, rb).map_err(|error| locate_ident(error, &ident))?;
            match op {
                CompareOp::Eq => condition.equalities.push(Expr::compare(op, le, re)),
                _ => condition.inequality = Some(Expr::compare(op, le, re)),
            }
            let name = ident.value.to_ascii_lowercase().into();
            condition.merged.push(Merged { name, column: l, of: vec![l, r] });
        }
        Ok(condition)
    }

    /// The condition of ON and MATCH_CONDITION, bound over the rows of both sides.
    fn asof_on(&mut self, conjuncts: &[&'q ast::Expr], both: Scope<'q>) -> Result<Condition> {
        if conjuncts.iter().any(|conjunct| has_subquery(conjunct)) {
            return Err(Error::not_supported("subqueries in the ON of an ASOF JOIN"));
        }
        self.scopes.push(both);
        let bound = conjuncts.iter().map(|conjunct| self.condition(conjunct)).collect::<Result<Vec<Expr>>>();
        self.scopes.pop();
        let mut condition = Condition::default();
        for conjunct in bound? {
            match (is_inequality(&conjunct), &condition.inequality) {
                (false, _) => condition.equalities.push(conjunct),
                (true, None) => condition.inequality = Some(conjunct),
                (true, Some(_)) => {
                    return Err(Error::input("the ON of an ASOF JOIN has several inequalities")
                        .with_sqlstate(sqlstate::SYNTAX)
                        .with_hint("keep the one that finds the nearest row, and move the others to WHERE"));
                }
            }
        }
        Ok(condition)
    }

    /// The operators of an as-of join.
    fn asof_node(
        &mut self,
        left: Node,
        right: Node,
        outer: bool,
        mut conditions: Vec<Expr>,
        inequality: Expr,
    ) -> Result<Node> {
        let mut on = Vec::new();
        split_keys(&left, &right, &mut on, &mut conditions);
        let [left_ids, right_ids] =
            [&left, &right].map(|side| side.columns().into_iter().collect::<ColumnSet>());
        let (of_right, others): (Vec<Expr>, Vec<Expr>) =
            conditions.into_iter().partition(|condition| reads_only(condition, &right_ids));
        if !others.iter().all(|condition| reads_only(condition, &left_ids)) {
            let text = "a condition of both sides of an ASOF JOIN is an equality, or the one inequality";
            return Err(Error::input(text).with_hint("put other conditions into WHERE"));
        }
        let mut right = filter(right, Expr::and(of_right));
        if !others.is_empty() {
            let holds = self.columns.add("holds", DataType::Boolean, false);
            right = project(right, vec![(holds, Expr::boolean(true))]);
            let (left, right) = (Expr::and(others), self.columns.expr(holds));
            on.push(JoinKey { left, right, null_equals_null: false });
        }
        let is_between = match &inequality {
            Expr::Compare { left: a, right: b, .. } => {
                (reads_only(a, &left_ids) && reads_only(b, &right_ids))
                    || (reads_only(b, &left_ids) && reads_only(a, &right_ids))
            }
            _ => false,
        };
        if !is_between {
            return Err(Error::input(
                "the inequality of an ASOF JOIN does not compare its left side with its right one",
            )
            .with_hint("write it between an expression of each side, such as t.ts >= q.ts"));
        }
        Ok(plain(left, right, JoinKind::AsOf { outer }, on, vec![inequality]))
    }
}

/// True for an inequality both of whose sides read columns.
fn is_inequality(condition: &Expr) -> bool {
    match condition {
        Expr::Compare {
            op: CompareOp::Lt | CompareOp::LtEq | CompareOp::Gt | CompareOp::GtEq,
            left,
            right,
        } => reads_columns(left) && reads_columns(right),
        _ => false,
    }
}

fn reads_columns(expr: &Expr) -> bool {
    let mut read = Vec::new();
    expr.collect_columns(&mut read);
    !read.is_empty()
}

fn conjuncts_of<'q>(ast: &'q ast::Expr, into: &mut Vec<&'q ast::Expr>) {
    match ast {
        ast::Expr::Nested(inner) => conjuncts_of(inner, into),
        ast::Expr::BinaryOp { left, op: ast::BinaryOperator::And, right } => {
            conjuncts_of(left, into);
            conjuncts_of(right, into);
        }
        other => into.push(other),
    }
}
