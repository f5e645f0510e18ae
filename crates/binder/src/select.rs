//! SELECT: its clauses, bound in the order in which they are computed.
//!
//! 1. FROM, and the names of the select list's items.
//! 2. WHERE; the keys of GROUP BY.
//! 3. The select list, HAVING, QUALIFY, the keys of DISTINCT ON and ORDER BY: expressions over the rows of
//!    FROM, in which each aggregate, window function and subquery is a column.
//! 4. Now it is known whether there are groups, and of what, and the operators are made
//!    ([`crate::assemble`]).

use crate::aggregate::sort_key;
use crate::assemble::Parts;
use crate::binder::{Binder, ambiguous, located};
use crate::bound::Bound;
use crate::literal::plain;
use crate::query::{Item, Range, Rows, filter, ordinal, places, project, take};
use crate::scope::{Alias, Clause, Scope};
use crate::settle::settled;
use crate::star::Source;
use entasis_engine::plan::{Node, SortKey};
use entasis_syntax::clauses;
use entasis_syntax::walk::Walk;
use entasis_vector::expr::Expr;
use entasis_vector::{Error, Result};
use sqlparser::ast::{self, Distinct, OrderBy, OrderByExpr, OrderByKind, Query, Select, SelectItem, Visitor};
use std::collections::HashMap;
use std::ops::ControlFlow;

impl<'a, 'q> Binder<'a, 'q> {
    /// Binds a SELECT with its order and its range of rows.
    pub(crate) fn select(
        &mut self,
        select: &'q Select,
        order: Option<&'q OrderBy>,
        range: Range,
    ) -> Result<Rows> {
        clauses::select(select)?;
        let from = self.relations(&select.from)?;
        let mut node = from.node;
        if let Some(sample) = crate::sample::of_select(select) {
            node = self.sampled_rows(node, &sample?)?;
        }
        self.scopes.push(Scope::new(from.relations, from.merged, Clause::From));
        let parts = self.parts(select, order, &mut node);
        let scope = self.scopes.pop().expect("pushed above");
        let (parts, is_distinct) = (parts?, matches!(select.distinct, Some(Distinct::Distinct)));
        self.assembled(node, scope, parts, is_distinct, range)
    }

    /// Binds the clauses behind FROM; WHERE is applied to `node`.
    fn parts(&mut self, select: &'q Select, order: Option<&'q OrderBy>, node: &mut Node) -> Result<Parts> {
        self.name_windows(&select.named_window)?;
        for item in &select.projection {
            if let SelectItem::ExprWithAlias { expr, alias } = item {
                let name = alias.value.to_ascii_lowercase().into();
                self.scope().aliases.push(Alias { name, ast: expr, bound: None, is_being_bound: false });
            }
        }
        let aliases = self.scope().aliases.len();
        let sources = self.sources(&select.projection)?;
        if let Some(predicate) = &select.selection {
            self.scope().clause = Clause::Where;
            self.scope().visible_aliases = aliases;
            self.filtered(predicate, node)?;
        }
        self.scope().clause = Clause::GroupBy;
        self.scope().visible_aliases = aliases;
        let is_by_all = self.group_by(select, &sources)?;
        self.scope().clause = Clause::Select;
        let asts: Vec<Option<&'q ast::Expr>> = sources.iter().map(Source::ast).collect();
        let items = self.items(sources)?;
        if is_by_all {
            self.group_by_all(&items);
        }
        self.scope().visible_aliases = aliases;
        self.scope().clause = Clause::Having;
        let having = select.having.as_ref().map(|having| self.condition(having)).transpose()?;
        self.scope().is_grouped |= having.is_some();
        self.scope().clause = Clause::Qualify;
        let windows = self.scope().window_calls.len();
        let qualify = select.qualify.as_ref().map(|qualify| self.condition(qualify)).transpose()?;
        if let Some(qualify) = &select.qualify
            && self.scope().window_calls.is_empty()
            && windows == 0
        {
            let error = Error::input("QUALIFY needs a window function");
            return Err(located(error.with_hint("a condition on rows is written in WHERE"), qualify));
        }
        self.scope().clause = Clause::OrderBy;
        let on = match &select.distinct {
            Some(Distinct::On(keys)) => self.distinct_on_keys(keys, &items)?,
            _ => Vec::new(),
        };
        let order = match order.map(|order| &order.kind) {
            None => Vec::new(),
            Some(OrderByKind::All(options)) => {
                items.iter().map(|item| sort_key(item.expr.clone(), options)).collect()
            }
            Some(OrderByKind::Expressions(keys)) => self.order_keys(keys, select, &items, &asts, &on)?,
        };
        Ok(Parts { items, having, qualify, on, order })
    }

    /// Binds the keys of ORDER BY. `asts` are the results as they are written, as far as they are, and `on`
    /// the keys of DISTINCT ON.
    fn order_keys(
        &mut self,
        keys: &'q [OrderByExpr],
        select: &'q Select,
        items: &[Item],
        asts: &[Option<&'q ast::Expr>],
        on: &[Expr],
    ) -> Result<Vec<SortKey>> {
        let mut bound = Vec::with_capacity(keys.len());
        let places = places(items);
        for key in keys {
            // A subquery that is a result is computed once.
            let same = match has_subquery(&key.expr) {
                true => asts.iter().position(|ast| *ast == Some(&key.expr)),
                false => None,
            };
            let key_of_distinct = match &select.distinct {
                Some(Distinct::On(keys)) => keys.iter().position(|on| *on == key.expr),
                _ => None,
            };
            let expr = match (same, key_of_distinct) {
                (Some(place), _) => items[place].expr.clone(),
                (None, Some(place)) => on[place].clone(),
                (None, None) => self.result_or_expr(&key.expr, items, &places, "ORDER BY")?,
            };
            bound.push(sort_key(expr, &key.options));
        }
        Ok(bound)
    }

    /// Binds the select list.
    fn items(&mut self, sources: Vec<Source<'q>>) -> Result<Vec<Item>> {
        let mut items = Vec::with_capacity(sources.len());
        let mut before = 0;
        for source in sources {
            match source {
                Source::Column { name, column } => {
                    let Bound { expr, given } = Bound::known(self.columns.expr(column));
                    items.push(Item { name, expr, given });
                }
                Source::Expr { ast, alias, name } => {
                    // An item sees the names of those before it.
                    let bound = match alias {
                        Some(at) => {
                            self.scope().visible_aliases = at;
                            self.item_named(at)?
                        }
                        None => {
                            self.scope().visible_aliases = before;
                            if self.struct_items(ast, &mut items)? {
                                continue;
                            }
                            self.expr(ast)?
                        }
                    };
                    before = alias.map_or(before, |at| at + 1);
                    let name = name.unwrap_or_else(|| self.shown_name(ast, &bound.expr));
                    items.push(Item { name, expr: bound.expr, given: bound.given });
                }
            }
        }
        Ok(items)
    }

    /// The name of an item without an alias: a column keeps the letter case of its declaration, all else is
    /// named as it is written.
    fn shown_name(&self, ast: &ast::Expr, expr: &Expr) -> String {
        let written = crate::expr::written_name(ast);
        match (expr, plain(ast)) {
            (Expr::Column { id, .. }, ast::Expr::Identifier(_) | ast::Expr::CompoundIdentifier(_)) => {
                let own = &self.columns.get(*id).name;
                if own.eq_ignore_ascii_case(&written) { own.clone() } else { written.to_ascii_lowercase() }
            }
            (_, ast::Expr::Identifier(_) | ast::Expr::CompoundIdentifier(_)) => written.to_ascii_lowercase(),
            _ => ast.to_string(),
        }
    }

    /// A filter on `node`. Plain conditions come first, then those with subqueries; `IN` and `EXISTS` become
    /// semi and anti joins.
    pub(crate) fn filtered(&mut self, predicate: &'q ast::Expr, node: &mut Node) -> Result<()> {
        let mut conjuncts = Vec::new();
        split_conjuncts(predicate, &mut conjuncts);
        let (subqueries, plain): (Vec<&'q ast::Expr>, Vec<&'q ast::Expr>) =
            conjuncts.into_iter().partition(|conjunct| has_subquery(conjunct));
        let mut predicates = Vec::new();
        for conjunct in plain {
            predicates.push(self.condition(conjunct)?);
        }
        self.flush(node);
        self.compute_early(node);
        *node = filter(*take(node), settled(Expr::And(predicates)));
        let mut predicates = Vec::new();
        for conjunct in subqueries {
            if !self.semi_join(conjunct, node)? {
                let condition = self.condition(conjunct)?;
                self.flush(node);
                predicates.push(condition);
            }
        }
        self.compute_early(node);
        *node = filter(*take(node), settled(Expr::And(predicates)));
        Ok(())
    }

    /// Computes what several clauses read.
    fn compute_early(&mut self, node: &mut Node) {
        let early = std::mem::take(&mut self.scope().early);
        let early = early.into_iter().map(|(column, expr)| (column, settled(expr))).collect();
        *node = project(*take(node), early);
    }

    /// An expression of ORDER BY or DISTINCT ON: the number or the name of a result comes first, in all else
    /// the names of columns do.
    pub(crate) fn result_or_expr(
        &mut self,
        ast: &'q ast::Expr,
        items: &[Item],
        places: &HashMap<String, Vec<usize>>,
        clause: &str,
    ) -> Result<Expr> {
        if let Some(place) = ordinal(ast, items.len())? {
            return Ok(items[place].expr.clone());
        }
        if let ast::Expr::Identifier(ident) = plain(ast)
            && let Some(found) = places.get(&ident.value.to_ascii_lowercase())
        {
            let first = &items[found[0]].expr;
            if found.iter().any(|place| items[*place].expr != *first) {
                let is_column = |place: &usize| matches!(items[*place].expr, Expr::Column { .. });
                if found.iter().all(is_column) {
                    return Err(located(
                        ambiguous(&ident.value.to_ascii_lowercase(), &[ident.value.to_ascii_lowercase()]),
                        ast,
                    ));
                }
                let text = format!("{} in {clause} may be several results", ident.value);
                return Err(located(Error::input(text).with_hint("write the number of the result"), ast));
            }
            return Ok(first.clone());
        }
        Ok(self.expr(ast)?.expr)
    }

    fn distinct_on_keys(&mut self, keys: &'q [ast::Expr], items: &[Item]) -> Result<Vec<Expr>> {
        let places = places(items);
        keys.iter().map(|key| self.result_or_expr(key, items, &places, "DISTINCT ON")).collect()
    }
}

/// The conjuncts of a condition.
fn split_conjuncts<'q>(ast: &'q ast::Expr, into: &mut Vec<&'q ast::Expr>) {
    let mut rest = vec![ast];
    while let Some(part) = rest.pop() {
        match part {
            ast::Expr::Nested(inner)
                if matches!(**inner, ast::Expr::BinaryOp { op: ast::BinaryOperator::And, .. }) =>
            {
                rest.push(inner);
            }
            ast::Expr::BinaryOp { left, op: ast::BinaryOperator::And, right } => {
                rest.push(right);
                rest.push(left);
            }
            part => into.push(part),
        }
    }
}

/// True if there is a query in the expression.
pub(crate) fn has_subquery(ast: &ast::Expr) -> bool {
    struct Look;
    impl Visitor for Look {
        type Break = ();
        fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            ControlFlow::Break(())
        }
    }
    ast.walk(&mut Look).is_break()
}
