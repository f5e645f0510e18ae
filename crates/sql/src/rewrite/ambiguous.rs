//! Names of columns that more than one table has, in queries within queries.
//!
//! `SELECT … FROM t WHERE t.a IN (SELECT a FROM t x, t y)`: `a` is ambiguous. The binder, which finds it
//! twice, silently continues in the enclosing query and takes it for a column of that. So it is refused here,
//! as the binder refuses it if there is no enclosing query.
//!
//! 1. For each `SELECT` over several tables, the column names are found that its `FROM` has more than once.
//!    Names that `USING` merges were replaced before ([`super::using`]), and do not count.
//! 2. An unqualified occurrence of such a name is an error, except in queries within, which have their own
//!    tables.
//! 3. In `GROUP BY`, `HAVING`, `QUALIFY` and `ORDER BY` it may refer to a result, and is replaced by the
//!    result's expression: `SELECT x.a FROM t x, t y ORDER BY a` orders by `x.a`. In aggregates of `HAVING`
//!    it may not, in any query.
//!
//! If the columns of a `FROM` cannot be determined, nothing is done. Conditions of joins see only some of the
//! tables, and are checked elsewhere ([`super::conditions`]).

use super::each_arm;
use super::order_by::is_aggregate;
use super::using::Joins;
use crate::binding::context::Context;
use crate::error::ambiguous_name;
use entasis_syntax::place::locate_ident;
use entasis_syntax::walk::{Walk, WalkMut};
use entasis_vector::{Error, Result};
use sqlparser::ast::{
    Expr, Ident, OrderBy, OrderByKind, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr,
    Statement, Value, Visit, VisitMut, Visitor, VisitorMut,
};
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

/// Refuses ambiguous names in the nested queries of a statement, and in its aggregates of `HAVING`, and
/// replaces those that refer to results.
///
/// # Errors
/// Input, for an ambiguous name.
pub(super) fn apply(statement: &mut Statement, context: &Context<'_>) -> Result<()> {
    match statement.walk_mut(&mut Queries { joins: Joins::new(context), depth: 0 }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Queries<'a> {
    joins: Joins<'a>,
    /// Number of enclosing queries.
    depth: usize,
}

impl VisitorMut for Queries<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        self.joins.enter_with(query);
        self.depth += 1;
        let settled = match &mut *query.body {
            SetExpr::Select(select) => self.select(select, query.order_by.as_mut()),
            body => each_arm(body, &mut |select| self.select(select, None)),
        };
        match settled {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.depth -= 1;
        self.joins.leave_with();
        ControlFlow::Continue(())
    }
}

impl Queries<'_> {
    fn select(&mut self, select: &mut Select, order_by: Option<&mut OrderBy>) -> Result<()> {
        let is_one_table = matches!(&select.from[..], [table] if table.joins.is_empty());
        if is_one_table
            || select.from.is_empty()
            || (self.depth == 1 && names_in(&select.having, true).is_empty())
        {
            return Ok(());
        }
        let Some(given) = self.joins.given(&select.from) else { return Ok(()) };
        let mut once = HashSet::new();
        let ambiguous: HashSet<&str> =
            given.iter().map(|(name, _)| name.as_str()).filter(|name| !once.insert(*name)).collect();
        if ambiguous.is_empty() {
            return Ok(());
        }
        let refuse = |names: Vec<Ident>| match names.iter().find(|name| ambiguous.contains(&*lower(name))) {
            Some(name) => Err(locate_ident(ambiguous_name(&name.value), name)),
            None => Ok(()),
        };
        refuse(names_in(&select.having, true))?;
        if self.depth == 1 {
            return Ok(());
        }
        refuse(names_in(&select.projection, false))?;
        refuse(names_in(&select.selection, false))?;
        refuse(names_in(&select.named_window, false))?;
        let mut writer =
            Writer { ambiguous: &ambiguous, results: named_results(&select.projection), queries: 0 };
        writer.write(&mut select.group_by)?;
        writer.write(&mut select.having)?;
        writer.write(&mut select.qualify)?;
        writer.results.extend(columns_of_results(&select.projection, &given));
        writer.write(&mut select.distinct)?;
        if let Some(OrderBy { kind: OrderByKind::Expressions(keys), .. }) = order_by {
            for key in keys {
                match place(&key.expr, &select.projection).filter(|_| writer.is_result(&key.expr)) {
                    Some(place) => key.expr = Expr::value(Value::Number(place.to_string(), false)),
                    None => writer.write(&mut key.expr)?,
                }
            }
        }
        Ok(())
    }
}

fn lower(name: &Ident) -> String {
    name.value.to_ascii_lowercase()
}

/// Results that were given a name, by that name.
fn named_results(items: &[SelectItem]) -> HashMap<String, Expr> {
    let named = items.iter().rev().filter_map(|item| match item {
        SelectItem::ExprWithAlias { expr, alias } => Some((lower(alias), expr.clone())),
        _ => None,
    });
    named.collect()
}

/// Results that are columns of a table, `x.a` and those of `x.*`, by their names.
fn columns_of_results(items: &[SelectItem], given: &[(String, Expr)]) -> Vec<(String, Expr)> {
    let mut found = Vec::new();
    for item in items {
        match item {
            SelectItem::UnnamedExpr(expr @ Expr::CompoundIdentifier(parts)) => {
                found.extend(parts.last().map(|name| (lower(name), expr.clone())));
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(table), _) => {
                let table = table.0.last().and_then(|part| part.as_ident()).map(lower);
                let is_own = |expr: &Expr| match expr {
                    Expr::CompoundIdentifier(parts) => parts.iter().rev().nth(1).map(lower) == table,
                    _ => false,
                };
                found.extend(given.iter().filter(|(_, expr)| is_own(expr)).cloned());
            }
            _ => {}
        }
    }
    found
}

/// The number of the result to which a key refers, if it can be determined.
fn place(key: &Expr, items: &[SelectItem]) -> Option<usize> {
    let Expr::Identifier(name) = key else { return None };
    let is_named = |item: &SelectItem| match item {
        SelectItem::ExprWithAlias { alias, .. } => lower(alias) == lower(name),
        _ => false,
    };
    let place = items.iter().position(is_named)?;
    let is_star =
        |item: &SelectItem| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..));
    (!items[..place].iter().any(is_star)).then_some(place + 1)
}

/// Replaces ambiguous names that refer to results, and refuses others.
struct Writer<'a> {
    ambiguous: &'a HashSet<&'a str>,
    /// The expressions of results, by their names.
    results: HashMap<String, Expr>,
    /// Number of enclosing queries.
    queries: usize,
}

impl Writer<'_> {
    fn write(&mut self, part: &mut impl VisitMut) -> Result<()> {
        match part.walk_mut(self) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(error) => Err(error),
        }
    }

    /// True for an ambiguous name that refers to a result.
    fn is_result(&self, key: &Expr) -> bool {
        let Expr::Identifier(name) = key else { return false };
        let name = lower(name);
        self.ambiguous.contains(&*name) && self.results.contains_key(&name)
    }
}

impl VisitorMut for Writer<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    // Replacements are not visited again.
    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if let Expr::Identifier(name) = expr
            && self.queries == 0
            && self.ambiguous.contains(&*lower(name))
        {
            match self.results.get(&lower(name)) {
                Some(result @ Expr::CompoundIdentifier(_)) => *expr = result.clone(),
                Some(result) => *expr = Expr::Nested(Box::new(result.clone())),
                None => return ControlFlow::Break(locate_ident(ambiguous_name(&name.value), name)),
            }
        }
        ControlFlow::Continue(())
    }
}

/// The unqualified names in a part of a query, except those in nested queries; or only those in aggregates.
pub(super) fn names_in(part: &impl Visit, only_in_aggregates: bool) -> Vec<Ident> {
    let mut names = Names { aggregates: 0, queries: 0, only_in_aggregates, found: Vec::new() };
    let _ = part.walk(&mut names);
    names.found
}

struct Names {
    /// Number of enclosing aggregates.
    aggregates: usize,
    /// Number of enclosing subqueries.
    queries: usize,
    only_in_aggregates: bool,
    found: Vec<Ident>,
}

impl Visitor for Names {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(name)
                if self.queries == 0 && (!self.only_in_aggregates || self.aggregates > 0) =>
            {
                self.found.push(name.clone());
            }
            expr => self.aggregates += usize::from(is_aggregate(expr)),
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        self.aggregates -= usize::from(is_aggregate(expr));
        ControlFlow::Continue(())
    }
}
