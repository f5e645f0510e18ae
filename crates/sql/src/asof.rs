//! `ASOF JOIN`: each left row with the one right row that is nearest by an inequality.
//!
//! ```text
//! trades t ASOF LEFT JOIN quotes q ON t.symbol = q.symbol AND t.ts >= q.ts
//! trades ASOF JOIN quotes USING (symbol, ts)                          the last column is compared by >=
//! trades t ASOF JOIN quotes q MATCH_CONDITION (t.ts >= q.ts) ON t.symbol = q.symbol
//! ```
//! The parser knows the last form only, the binder none, so that one travels through both under other names:
//!
//! 1. *Tokens.* `ASOF` becomes `GLOBAL`, a word before a join that means nothing here and is refused where a
//!    user writes it. Views keep their text with `ASOF`.
//! 2. *Syntax tree.* Such a join is an inner or left join; its inequality becomes the argument of a function
//!    that no user can write. `USING` gets its conditions where those of all joins are made
//!    ([`crate::rewrite`]).
//! 3. *Lowering.* The function is taken out of the join's condition: what is in it is the inequality of the
//!    engine's as-of join, and all the others must be its keys.
//!
//! Refused are right and full joins, `NATURAL`, no inequality, several of them, and any condition that is
//! none of these two.

use crate::dialect::EntasisDialect;
use crate::functions::native::{Kind, Native};
use crate::parse::position;
use crate::walk::WalkMut;
use datafusion_expr::{Expr as DfExpr, utils::split_conjunction};
use datafusion_sql::sqlparser::ast::{
    BinaryOperator, Expr, Ident, Join, JoinConstraint, JoinOperator, Select, Statement, TableFactor,
    TableWithJoins, VisitorMut,
};
use datafusion_sql::sqlparser::keywords::Keyword;
use datafusion_sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer, Word};
use entasis_vector::error::sqlstate;
use entasis_vector::{Error, Result};
use std::ops::ControlFlow;

/// The function around the inequality, which no user can write.
pub(crate) const NEAREST: &str = "\u{1}asof";

// ---- tokens -----------------------------------------------------------------------------------------------

/// The keyword that a token is.
fn keyword(token: Option<&TokenWithSpan>) -> Keyword {
    match token.map(|token| &token.token) {
        Some(Token::Word(Word { quote_style: None, keyword, .. })) => *keyword,
        _ => Keyword::NoKeyword,
    }
}

/// The same tokens, with `GLOBAL` in the place of `ASOF` where the parser does not know what follows.
///
/// # Errors
/// Not supported, for a `GLOBAL JOIN` that the user wrote.
pub(crate) fn settle(mut tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>> {
    for at in 0..tokens.len() {
        let is_join = begins_join(tokens.get(at + 1));
        match keyword(tokens.get(at)) {
            Keyword::ASOF if is_join && !has_match_condition(&tokens[at + 1..]) => {
                tokens[at].token = Token::make_keyword("GLOBAL");
            }
            Keyword::GLOBAL if is_join => {
                return Err(
                    Error::not_supported("GLOBAL JOIN").with_position(position(tokens[at].span.start))
                );
            }
            _ => {}
        }
    }
    Ok(tokens)
}

/// True if a join begins with this token.
fn begins_join(token: Option<&TokenWithSpan>) -> bool {
    use Keyword::{CROSS, FULL, INNER, JOIN, LEFT, RIGHT};
    matches!(keyword(token), JOIN | INNER | LEFT | RIGHT | FULL | CROSS)
}

/// The text of a syntax tree as its user would write it, with `ASOF` in its place again.
pub(crate) fn restored(mut text: String) -> String {
    if !text.contains("GLOBAL") {
        return text;
    }
    let Ok(mut tokens) = Tokenizer::new(&EntasisDialect, &text).tokenize_with_location() else { return text };
    tokens.retain(|token| !matches!(token.token, Token::Whitespace(_)));
    for at in (0..tokens.len()).rev() {
        if keyword(tokens.get(at)) == Keyword::GLOBAL && begins_join(tokens.get(at + 1)) {
            let Location { line, column } = tokens[at].span.start;
            let before =
                text.split_inclusive('\n').take(line.saturating_sub(1) as usize).map(str::len).sum::<usize>();
            let within = text[before..].char_indices().nth(column.saturating_sub(1) as usize);
            if let Some((offset, _)) = within {
                let start = before + offset;
                text.replace_range(start..start + "GLOBAL".len(), "ASOF");
            }
        }
    }
    text
}

/// True if the join that begins here has a `MATCH_CONDITION`.
fn has_match_condition(tokens: &[TokenWithSpan]) -> bool {
    let mut depth = 0_usize;
    for (i, token) in tokens.iter().enumerate() {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => return false,
            Token::RParen => depth -= 1,
            Token::SemiColon => return false,
            _ if depth > 0 => {}
            _ => match keyword(Some(token)) {
                Keyword::MATCH_CONDITION => return true,
                Keyword::ON | Keyword::USING | Keyword::WHERE => return false,
                Keyword::JOIN if i > 0 => return false,
                _ => {}
            },
        }
    }
    false
}

// ---- the syntax tree --------------------------------------------------------------------------------------

/// Makes inner and left joins of the as-of joins of a statement. Those with `USING` stay marked until they
/// get conditions.
///
/// # Errors
/// Input and not supported, for what the module names.
pub(crate) fn apply(statement: &mut Statement) -> Result<()> {
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
        let nothing = || Expr::Value(datafusion_sql::sqlparser::ast::Value::Null.into());
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
        // Marked until it has conditions.
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

/// Puts the one inequality of a condition into the function that says what it is.
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
            .with_hint("leave the one by which the nearest row is found, and put others into WHERE")),
    }
}

/// The inequalities among the conditions that all must hold.
fn collect_inequalities<'e>(condition: &'e mut Expr, found: &mut Vec<&'e mut Expr>) {
    match condition {
        Expr::Nested(inner) => collect_inequalities(inner, found),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            collect_inequalities(left, found);
            collect_inequalities(right, found);
        }
        Expr::BinaryOp {
            op: BinaryOperator::Gt | BinaryOperator::GtEq | BinaryOperator::Lt | BinaryOperator::LtEq,
            ..
        } => found.push(condition),
        _ => {}
    }
}

/// The inequality as the binder sees it.
pub(crate) fn nearest(inequality: Expr) -> Expr {
    crate::rewrite::call(NEAREST, vec![inequality])
}

// ---- lowering ---------------------------------------------------------------------------------------------

/// The inequality of an as-of join with this condition, and its other conditions; `None` if it is none.
pub(crate) fn taken_apart(condition: &DfExpr) -> Option<(&DfExpr, Vec<&DfExpr>)> {
    let mut inequality = None;
    let mut others = Vec::new();
    for part in split_conjunction(condition) {
        match part {
            DfExpr::ScalarFunction(call)
                if call
                    .func
                    .inner()
                    .downcast_ref::<Native>()
                    .is_some_and(|native| native.kind == Kind::Nearest) =>
            {
                inequality = call.args.first();
            }
            other => others.push(other),
        }
    }
    Some((inequality?, others))
}
