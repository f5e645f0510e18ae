//! Parameters that are lists.
//!
//! A parameter may be a list where a value is compared with several: `x IN ?`, `x IN (?)`, `x = ANY(?)`, `x >
//! ALL(?)`. There is no type for lists, so a statement with list arguments is converted to one with a
//! parameter for each of their values ([`Parsed::with_lists`]).

use super::build::query_of;
use super::parsed::{Ast, Parsed};
use super::place::position;
use super::walk::WalkMut;
use entasis_vector::{Error, Result};
use sqlparser::ast::{BinaryOperator, Expr, Parens, SetExpr, Value, ValueWithSpan, Values, VisitorMut};
use std::ops::{ControlFlow, Range};

impl Parsed {
    /// The statement for arguments some of which are lists, with these numbers of values; `None` stands for a
    /// single value. It takes all of these values in order.
    ///
    /// # Errors
    /// Input, if a list is given where only a single value is possible, or the number of parameters differs.
    pub fn with_lists(&self, lengths: &[Option<usize>]) -> Result<Parsed> {
        let mut next = 1;
        let places: Vec<Range<usize>> = lengths
            .iter()
            .map(|length| {
                let first = next;
                next += length.unwrap_or(1);
                first..next
            })
            .collect();
        let mut statement = self.clone();
        let mut spread = Spread { lengths, places };
        if let ControlFlow::Break(error) = visit(&mut statement.ast, &mut spread) {
            return Err(error);
        }
        if let ControlFlow::Break(error) = visit(&mut statement.ast, &mut NoList) {
            return Err(error);
        }
        statement.parameters = next - 1;
        statement.names.clear();
        Ok(statement)
    }
}

fn visit<V: VisitorMut<Break = Error>>(ast: &mut Ast, visitor: &mut V) -> ControlFlow<Error> {
    match ast {
        Ast::Sql(statement) => statement.walk_mut(visitor),
        Ast::Explain { statement, .. } => visit(statement, visitor),
        Ast::Describe(query) | Ast::Summarize(query) | Ast::CopyTo { query, .. } => query.walk_mut(visitor),
        _ => ControlFlow::Continue(()),
    }
}

/// Prefix of the number of a parameter that is a list, until it is found in a place that allows one.
const LIST: &str = "\u{1}list ";

/// Renumbers parameters, and replaces each list by a parameter for each value.
struct Spread<'a> {
    lengths: &'a [Option<usize>],
    /// The new numbers for each old parameter.
    places: Vec<Range<usize>>,
}

impl Spread<'_> {
    /// The parameters for a list's values, if `expr` is a list.
    fn list(&self, expr: &Expr) -> Option<Vec<Expr>> {
        let Expr::Value(ValueWithSpan { value: Value::Placeholder(name), span }) = expr else { return None };
        let index: usize = name.strip_prefix(LIST)?.parse().ok()?;
        let place = |number| {
            Expr::Value(ValueWithSpan { value: Value::Placeholder(format!("${number}")), span: *span })
        };
        Some(self.places.get(index)?.clone().map(place).collect())
    }
}

impl VisitorMut for Spread<'_> {
    type Break = Error;

    fn post_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<Error> {
        if let Value::Placeholder(name) = &mut value.value
            && let Some(index) =
                name.strip_prefix('$').and_then(|n| n.parse::<usize>().ok()).and_then(|n| n.checked_sub(1))
        {
            match (self.lengths.get(index), self.places.get(index)) {
                (Some(Some(_)), _) => *name = format!("{LIST}{index}"),
                (Some(None), Some(place)) => *name = format!("${}", place.start),
                _ => return ControlFlow::Break(Error::input(format!("the parameter {name} has no value"))),
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        let taken = |expr: &mut Expr| Box::new(std::mem::replace(expr, boolean(false)));
        match expr {
            Expr::InList { list, .. } => {
                let spread =
                    std::mem::take(list).into_iter().flat_map(|item| self.list(&item).unwrap_or(vec![item]));
                *list = spread.collect();
                // IN an empty list is always false.
                if let Expr::InList { list, negated, .. } = expr
                    && list.is_empty()
                {
                    *expr = boolean(*negated);
                }
            }
            Expr::AnyOp { left, compare_op, right, .. } => {
                let Some(list) = self.list(right) else { return ControlFlow::Continue(()) };
                match compare_op {
                    _ if list.is_empty() => *expr = boolean(false),
                    BinaryOperator::Eq => *expr = Expr::InList { expr: taken(left), list, negated: false },
                    _ => **right = rows(list),
                }
            }
            Expr::AllOp { left, compare_op, right } => {
                let Some(list) = self.list(right) else { return ControlFlow::Continue(()) };
                match compare_op {
                    _ if list.is_empty() => *expr = boolean(true),
                    BinaryOperator::NotEq => *expr = Expr::InList { expr: taken(left), list, negated: true },
                    _ => **right = rows(list),
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Refuses the remaining lists.
struct NoList;

impl VisitorMut for NoList {
    type Break = Error;

    fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<Error> {
        match &value.value {
            Value::Placeholder(name) if name.starts_with(LIST) => {
                let error = Error::input("a list parameter is only allowed after IN, or in ANY or ALL");
                ControlFlow::Break(error.with_position(position(value.span.start)))
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

fn boolean(value: bool) -> Expr {
    Expr::Value(Value::Boolean(value).into())
}

/// `(VALUES (a), (b), …)`
fn rows(values: Vec<Expr>) -> Expr {
    let row = |value| Parens::with_empty_span(vec![value]);
    let values =
        Values { explicit_row: false, value_keyword: false, rows: values.into_iter().map(row).collect() };
    Expr::Subquery(Box::new(query_of(SetExpr::Values(values))))
}

#[cfg(test)]
mod tests {
    use crate::parse::parse;
    use crate::parsed::{Ast, Parsed};

    fn parsed(sql: &str) -> Parsed {
        parse(sql).unwrap().pop().unwrap()
    }

    #[test]
    fn lists_become_a_place_for_each_value() {
        let list = Some(2);
        for (sql, lengths, expected) in [
            ("SELECT 1 IN ?, ?", [list, None], "SELECT 1 IN ($1, $2), $3"),
            ("SELECT ?, 1 NOT IN ?", [None, list], "SELECT $1, 1 NOT IN ($2, $3)"),
            ("SELECT 1 IN (?, 7), 2 = ANY(?)", [list, list], "SELECT 1 IN ($1, $2, 7), 2 IN ($3, $4)"),
            ("SELECT 1 < ALL(?), ?", [list, None], "SELECT 1 < ALL(VALUES ($1), ($2)), $3"),
            ("SELECT 1 < ALL(?), ?", [Some(0), None], "SELECT true, $1"),
            ("SELECT 1 IN ?, 1 NOT IN ?", [Some(0), Some(0)], "SELECT false, true"),
            ("SELECT position('a' IN ?), ?", [None, None], "SELECT POSITION('a' IN $1), $2"),
        ] {
            let spread = parsed(sql).with_lists(&lengths).unwrap();
            match &spread.ast {
                Ast::Sql(statement) => assert_eq!(statement.to_string(), expected, "{sql}"),
                other => panic!("{other:?}"),
            }
            let given: usize = lengths.iter().map(|length| length.unwrap_or(1)).sum();
            assert_eq!(spread.parameters(), given, "{sql}");
        }
        assert!(parsed("SELECT 1 + ?").with_lists(&[list]).is_err());
        assert!(parsed("SELECT 1 IN ?").with_lists(&[]).is_err());
    }
}
