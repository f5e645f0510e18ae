//! `ASOF JOIN`: joins each left row with the one right row that is nearest by an inequality.
//!
//! ```text
//! trades t ASOF LEFT JOIN quotes q ON t.symbol = q.symbol AND t.ts >= q.ts
//! trades ASOF JOIN quotes USING (symbol, ts)                          the last column is compared by >=
//! trades t ASOF JOIN quotes q MATCH_CONDITION (t.ts >= q.ts) ON t.symbol = q.symbol
//! ```
//! The parser knows only the last form, the binder none, so such a join passes through both in disguise:
//!
//! 1. *Tokens* ([`entasis_syntax::asof`]). `ASOF` becomes `GLOBAL`.
//! 2. *Syntax tree*, here. The join becomes an inner or left join; its inequality becomes the argument of a
//!    function that no user can write ([`NEAREST`]). `USING` gets its conditions where those of all joins are
//!    made ([`super::using`]).
//! 3. *Lowering* (`crate::lower::asof`). The function is removed from the join's condition: its argument is
//!    the inequality of the engine's as-of join, and all other conditions must be keys.
//!
//! An inequality with a constant is a condition like any other. Right and full joins, `NATURAL`, no
//! inequality or several are refused.

use crate::hidden::NEAREST;
use entasis_syntax::build::call;
use entasis_syntax::walk::{Walk, WalkMut};
use entasis_vector::error::sqlstate;
use entasis_vector::{Error, Result};
use sqlparser::ast::{
    BinaryOperator, Expr, Ident, Join, JoinConstraint, JoinOperator, Select, Statement, TableFactor,
    TableWithJoins, Value, Visitor, VisitorMut,
};
use std::ops::ControlFlow;

/// Turns the as-of joins of a statement into inner and left joins. Those with `USING` stay marked until they
/// get conditions.
///
/// # Errors
/// Input and not supported, for the cases listed in the module.
pub(super) fn apply(statement: &mut Statement) -> Result<()> {
    match statement.walk_mut(&mut Joins) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Joins;

impl VisitorMut for Joins {
    type Break = Error;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        for table in &mut select.from {
            if let Err(error) = joins(table) {
                return ControlFlow::Break(error);
            }
        }
        ControlFlow::Continue(())
    }
}

fn joins(table: &mut TableWithJoins) -> Result<()> {
    let factors =
        std::iter::once(&mut table.relation).chain(table.joins.iter_mut().map(|join| &mut join.relation));
    for factor in factors {
        if let TableFactor::NestedJoin { table_with_joins, .. } = factor {
            joins(table_with_joins)?;
        }
    }
    table.joins.iter_mut().try_for_each(settle_join)
}

fn settle_join(join: &mut Join) -> Result<()> {
    if let JoinOperator::AsOf { match_condition, constraint } = &mut join.join_operator {
        let nothing = || Expr::Value(Value::Null.into());
        let nearest = std::mem::replace(match_condition, nothing());
        let condition = match std::mem::replace(constraint, JoinConstraint::None) {
            JoinConstraint::None => nearest,
            JoinConstraint::On(condition) => and(condition, nearest),
            _ => return Err(Error::not_supported("ASOF JOIN with MATCH_CONDITION and USING")),
        };
        (join.global, join.join_operator) = (true, JoinOperator::Inner(JoinConstraint::On(condition)));
    }
    if !join.global {
        return Ok(());
    }
    let constraint = match &mut join.join_operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint) => constraint,
        _ => return Err(Error::not_supported("ASOF JOIN that is neither an inner nor a LEFT join")),
    };
    match constraint {
        JoinConstraint::On(condition) => {
            mark_inequality(condition)?;
            join.global = false;
            Ok(())
        }
        // It stays marked until it gets conditions.
        JoinConstraint::Using(_) => Ok(()),
        JoinConstraint::Natural => Err(Error::not_supported("NATURAL ASOF JOIN")),
        JoinConstraint::None => Err(without_inequality()),
    }
}

fn and(left: Expr, right: Expr) -> Expr {
    let nested = |expr| Box::new(Expr::Nested(Box::new(expr)));
    Expr::BinaryOp { left: nested(left), op: BinaryOperator::And, right: nested(right) }
}

fn without_inequality() -> Error {
    Error::input("an ASOF JOIN needs an inequality in its ON")
        .with_sqlstate(sqlstate::SYNTAX)
        .with_hint("add one of >=, >, <= and < between a column of each side, such as t.ts >= q.ts")
}

/// Wraps the only inequality of a condition in the function that marks it.
fn mark_inequality(condition: &mut Expr) -> Result<()> {
    let mut found = Vec::new();
    collect_inequalities(condition, &mut found);
    match found.as_mut_slice() {
        [] => Err(without_inequality()),
        [one] => {
            let inequality = std::mem::replace(&mut **one, Expr::Identifier(Ident::new("")));
            **one = nearest(inequality);
            Ok(())
        }
        _ => Err(Error::input("the ON of an ASOF JOIN has several inequalities")
            .with_sqlstate(sqlstate::SYNTAX)
            .with_hint("keep the one that finds the nearest row, and move the others to WHERE")),
    }
}

/// The inequalities among the conjuncts.
fn collect_inequalities<'e>(condition: &'e mut Expr, found: &mut Vec<&'e mut Expr>) {
    match condition {
        Expr::Nested(inner) => collect_inequalities(inner, found),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            collect_inequalities(left, found);
            collect_inequalities(right, found);
        }
        Expr::BinaryOp {
            left,
            op: BinaryOperator::Gt | BinaryOperator::GtEq | BinaryOperator::Lt | BinaryOperator::LtEq,
            right,
        } if reads_columns(left) && reads_columns(right) => found.push(condition),
        _ => {}
    }
}

fn reads_columns(expr: &Expr) -> bool {
    struct Look;
    impl Visitor for Look {
        type Break = ();
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            match expr {
                Expr::Identifier(_) | Expr::CompoundIdentifier(_) => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        }
    }
    expr.walk(&mut Look).is_break()
}

/// The inequality as the binder sees it.
pub(super) fn nearest(inequality: Expr) -> Expr {
    call(NEAREST, vec![inequality])
}
