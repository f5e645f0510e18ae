//! SELECT: its clauses, bound in the order in which they are computed.
//!
//! 1. FROM, and the names of the select list's items.
//! 2. WHERE; the keys of GROUP BY.
//! 3. The select list, HAVING, QUALIFY, the keys of DISTINCT ON and ORDER BY: expressions over the rows of
//!    FROM, in which each aggregate, window function and subquery is a column.
//! 4. Now it is known whether there are groups, and of what. The operators are made: subqueries that
//!    arguments of aggregates read; groups, over which all expressions are rewritten ([`crate::regroup`]);
//!    subqueries; HAVING; windows; QUALIFY; lists that are taken apart; DISTINCT; order; limit.

use crate::aggregate::{Asked, aggregate, sort_key};
use crate::binder::{Binder, ambiguous, located};
use crate::bound::Bound;
use crate::literal::plain;
use crate::query::{Item, Range, Rows, filter, limited, ordinal, places, project, take};
use crate::regroup::{Regroup, determined};
use crate::scope::{Alias, Clause, Pending, Rel, Scope, WindowUse};
use crate::settle::settled;
use crate::star::Source;
use crate::subquery::join_pending;
use entasis_engine::plan::{
    self, AggregateCall, AggregateFunction, Bound as End, ColumnSet, Frame, Node, Sort, SortKey, Unnest,
    Window, WindowCall, WindowFunction,
};
use entasis_functions::types::Given;
use entasis_syntax::clauses;
use entasis_syntax::walk::Walk;
use entasis_vector::expr::{CompareOp, Expr};
use entasis_vector::{ColumnId, DataType, Error, Result, Value};
use sqlparser::ast::{self, Distinct, OrderBy, OrderByKind, Query, Select, SelectItem, Visitor};
use std::ops::ControlFlow;

/// What a SELECT has bound, over the rows of FROM, and then over its groups.
struct Parts {
    items: Vec<Item>,
    having: Option<Expr>,
    qualify: Option<Expr>,
    /// The keys of DISTINCT ON.
    on: Vec<Expr>,
    order: Vec<SortKey>,
}

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
            Some(OrderByKind::Expressions(keys)) => {
                let mut bound = Vec::with_capacity(keys.len());
                let places = places(&items);
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
                        (None, None) => self.result_or_expr(&key.expr, &items, &places, "ORDER BY")?,
                    };
                    bound.push(sort_key(expr, &key.options));
                }
                bound
            }
        };
        Ok(Parts { items, having, qualify, on, order })
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
        places: &std::collections::HashMap<String, Vec<usize>>,
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

    /// Makes the operators: see the module, step 4.
    fn assembled(
        &mut self,
        mut node: Node,
        scope: Scope<'q>,
        mut parts: Parts,
        is_distinct: bool,
        range: Range,
    ) -> Result<Rows> {
        let Scope {
            relations,
            aggregates,
            window_calls,
            pending,
            unnests,
            keys,
            sets,
            is_grouped,
            early,
            ..
        } = scope;
        let (below, mut above): (Vec<Pending>, Vec<Pending>) =
            pending.into_iter().partition(|pending| pending.is_below_groups);
        below.into_iter().for_each(|pending| join_pending(&mut node, pending));
        node = project(node, early.into_iter().map(|(column, expr)| (column, settled(expr))).collect());
        let mut window_calls = window_calls;
        let mut unnests = unnests;
        if is_grouped || !aggregates.is_empty() {
            let input = node.columns();
            let made: Vec<(ColumnId, Expr)> =
                keys.iter().map(|(column, key)| (*column, settled(key.clone()))).collect();
            let mut aggregates: Vec<(ColumnId, AggregateCall)> =
                aggregates.into_iter().map(|(column, call)| (column, settled_call(call))).collect();
            let known = if sets.is_none() { key_columns(&keys) } else { ColumnSet::default() };
            let determined = determined(&node, &known);
            let mut used = Vec::new();
            if !determined.is_empty() {
                let mut look = columns_among(determined, known, &mut used);
                each_over_groups(&mut parts, &mut window_calls, &mut unnests, &mut above, &mut look)?;
            }
            // Of a column that depends on the keys, any value is the value.
            let single: Vec<(Expr, ColumnId)> = used
                .into_iter()
                .map(|(id, expr)| {
                    let column = self.columns.add(self.columns.get(id).name.clone(), expr.ty(), true);
                    aggregates.push((column, any_value(expr.clone())));
                    (expr, column)
                })
                .collect();
            // A subquery has the keys as they are computed.
            let written = keys.iter().map(|(column, key)| (key, *column));
            let computed = made.iter().map(|(column, key)| (key, *column));
            let single = single.iter().map(|(value, column)| (value, *column));
            let regroup = Regroup::new(written.chain(computed).chain(single), &input);
            let columns = &self.columns;
            let name = |id: ColumnId| {
                let of = |rel: &Rel| rel.columns.all.iter().any(|(_, own)| *own == id);
                let name = &columns.get(id).name;
                relations.iter().find(|rel| of(rel)).map_or_else(|| name.clone(), |rel| rel.qualified(name))
            };
            let mut apply = |expr: &mut Expr| regroup.apply(expr, &name);
            each_over_groups(&mut parts, &mut window_calls, &mut unnests, &mut above, &mut apply)?;
            node = self.grouped(node, made, aggregates, sets);
        }
        above.into_iter().for_each(|pending| join_pending(&mut node, pending));
        if let Some(having) = parts.having {
            node = filter(node, settled(having));
        }
        let window_calls = window_calls.into_iter().map(settled_window).collect();
        node = self.windowed(node, window_calls);
        if let Some(qualify) = parts.qualify {
            node = filter(node, settled(qualify));
        }
        node = unnested(node, unnests)?;
        let mut order: Vec<SortKey> = Vec::with_capacity(parts.order.len());
        let mut rows = Rows { node, items: parts.items };
        if !parts.on.is_empty() {
            let first = parts.order.iter().take(parts.on.len());
            if first.into_iter().any(|key| !parts.on.contains(&key.expr)) {
                let error = Error::input("the first keys of ORDER BY are those of DISTINCT ON");
                return Err(error.with_hint("the row that comes first in the order is kept of each key"));
            }
            return self.distinct_on(rows, parts.on, parts.order, range);
        }
        if is_distinct {
            let written: Vec<Expr> = rows.items.iter().map(|item| item.expr.clone()).collect();
            self.distinct(&mut rows);
            for key in parts.order {
                let Some(place) = written.iter().position(|expr| *expr == key.expr) else {
                    let error = Error::input("the ORDER BY of a SELECT DISTINCT has what is no result");
                    return Err(error.with_hint(
                        "its keys are results: duplicates are left out before there is an order",
                    ));
                };
                order.push(SortKey { expr: rows.items[place].expr.clone(), ..key });
            }
        } else {
            // What is both a key and a result is computed once.
            self.computed_keys(&mut rows, &mut parts.order);
            order = parts.order;
        }
        let order: Vec<SortKey> = order
            .into_iter()
            .map(|key| SortKey { expr: settled(key.expr), ..key })
            .filter(|key| !matches!(key.expr, Expr::Literal { .. }))
            .collect();
        self.ordered(&mut rows.node, order, range);
        Ok(rows)
    }

    /// Makes columns of the results that are keys of the order, too.
    fn computed_keys(&mut self, rows: &mut Rows, order: &mut [SortKey]) {
        let mut made = Vec::new();
        for key in order {
            if matches!(key.expr, Expr::Column { .. } | Expr::Literal { .. }) {
                continue;
            }
            let mut column = None;
            for item in rows.items.iter_mut().filter(|item| item.expr == key.expr) {
                let id = *column.get_or_insert_with(|| {
                    let expr = settled(item.expr.clone());
                    let id = self.columns.add(item.name.as_str(), expr.ty(), true);
                    made.push((id, expr));
                    id
                });
                item.expr = self.columns.expr(id);
                if item.given != Given::Null {
                    item.given = Given::Known(item.expr.ty());
                }
            }
            if let Some(column) = column {
                key.expr = self.columns.expr(column);
            }
        }
        rows.node = project(*take(&mut rows.node), made);
    }

    /// The rows in order, and a range of them.
    fn ordered(&mut self, node: &mut Node, order: Vec<SortKey>, range: Range) {
        if range.with_ties && !order.is_empty() {
            self.ranked(node, &order, range);
        }
        if !order.is_empty() {
            *node = Node::Sort(Sort { input: take(node), keys: order, limit: None });
        }
        let count = if range.with_ties { None } else { range.count };
        limited(node, Range { count, ..range });
    }

    /// FETCH FIRST … WITH TIES: rows whose rank in the order is within the range.
    fn ranked(&mut self, node: &mut Node, order: &[SortKey], range: Range) {
        let Some(count) = range.count else { return };
        let rank = self.columns.add("rank", DataType::Int64, false);
        let call = WindowCall {
            function: WindowFunction::Rank,
            frame: Frame::whole(),
            ty: DataType::Int64,
            ..WindowCall::row_number()
        };
        let window = Window {
            input: take(node),
            partition: Vec::new(),
            order: order.to_vec(),
            calls: vec![(rank, call)],
            top: None,
        };
        let last = i64::try_from(range.offset.saturating_add(count)).unwrap_or(i64::MAX);
        let last = Expr::literal(Value::Integer(last.into()), DataType::Int64);
        let within = Expr::compare(CompareOp::LtEq, self.columns.expr(rank), last);
        *node = filter(Node::Window(window), within);
    }

    /// `DISTINCT ON (keys) …`: the first row of each group in the query's order, which the result keeps.
    fn distinct_on(&mut self, rows: Rows, on: Vec<Expr>, order: Vec<SortKey>, range: Range) -> Result<Rows> {
        let Rows { node, items } = rows;
        let order: Vec<SortKey> =
            order.into_iter().map(|key| SortKey { expr: settled(key.expr), ..key }).collect();
        let groups: Vec<(ColumnId, Expr)> =
            on.into_iter().map(|key| (self.columns.add("key", key.ty(), true), settled(key))).collect();
        let mut aggregates = Vec::with_capacity(items.len() + order.len());
        let mut first = |binder: &mut Self, name: &str, expr: Expr| -> Result<Expr> {
            let asked = Asked { order_by: order.clone(), ..Asked::default() };
            let call = aggregate("first", vec![Bound::known(expr)], asked)?;
            let column = binder.columns.add(name, call.ty, true);
            aggregates.push((column, call));
            Ok(binder.columns.expr(column))
        };
        let mut results = Vec::with_capacity(items.len());
        for item in items {
            let Bound { expr, given } = Bound::known(first(self, &item.name, settled(item.expr))?);
            results.push(Item { name: item.name, expr, given });
        }
        let mut keys = Vec::with_capacity(order.len());
        for key in &order {
            keys.push(SortKey { expr: first(self, "order", key.expr.clone())?, ..key.clone() });
        }
        let mut node = Node::Aggregate(plan::Aggregate { input: Box::new(node), groups, aggregates });
        self.ordered(&mut node, keys, range);
        Ok(Rows { node, items: results })
    }
}

impl Parts {
    /// Passes each expression to `f`.
    fn each(&mut self, f: &mut dyn FnMut(&mut Expr) -> Result<()>) -> Result<()> {
        let items = self.items.iter_mut().map(|item| &mut item.expr);
        let conditions = self.having.iter_mut().chain(&mut self.qualify);
        let order = self.order.iter_mut().map(|key| &mut key.expr);
        items.chain(conditions).chain(&mut self.on).chain(order).try_for_each(f)
    }
}

/// Passes each expression over groups to `f`.
fn each_over_groups(
    parts: &mut Parts,
    windows: &mut [WindowUse],
    unnests: &mut [(ColumnId, Expr, usize)],
    subqueries: &mut [Pending],
    f: &mut dyn FnMut(&mut Expr) -> Result<()>,
) -> Result<()> {
    parts.each(f)?;
    windows.iter_mut().try_for_each(|call| each_of_window(call, f))?;
    unnests.iter_mut().try_for_each(|(_, list, _)| f(list))?;
    subqueries.iter_mut().try_for_each(|pending| each_of_pending(pending, f))
}

/// Adds the columns of a set that expressions read to `used`, each once and none that is in `seen`.
fn columns_among(
    set: ColumnSet,
    mut seen: ColumnSet,
    used: &mut Vec<(ColumnId, Expr)>,
) -> impl FnMut(&mut Expr) -> Result<()> {
    move |expr| {
        expr.visit(&mut |part| {
            if let Expr::Column { id, .. } = part
                && set.contains(*id)
                && !seen.contains(*id)
            {
                seen.insert(*id);
                used.push((*id, part.clone()));
            }
        });
        Ok(())
    }
}

fn any_value(of: Expr) -> AggregateCall {
    let ty = of.ty();
    AggregateCall {
        function: AggregateFunction::AnyValue,
        args: vec![of],
        distinct: false,
        filter: None,
        order_by: Vec::new(),
        ty,
    }
}

fn each_of_window(call: &mut WindowUse, f: &mut dyn FnMut(&mut Expr) -> Result<()>) -> Result<()> {
    let WindowUse { partition, order, call, .. } = call;
    let keys = order.iter_mut().chain(&mut call.order_by).map(|key| &mut key.expr);
    let ends = [&mut call.frame.start, &mut call.frame.end].into_iter().filter_map(|end| match end {
        End::Preceding(offset) | End::Following(offset) => Some(offset),
        _ => None,
    });
    let parts = partition.iter_mut().chain(keys).chain(&mut call.args).chain(&mut call.filter);
    parts.chain(ends).try_for_each(f)
}

fn each_of_pending(pending: &mut Pending, f: &mut dyn FnMut(&mut Expr) -> Result<()>) -> Result<()> {
    if let Some((outer, _)) = &mut pending.key {
        f(outer)?;
    }
    let mut result = Ok(());
    plan::each_expr_mut(&mut pending.node, &mut |expr| {
        if result.is_ok() {
            result = f(expr);
        }
    });
    result
}

fn settled_call(call: AggregateCall) -> AggregateCall {
    AggregateCall {
        args: call.args.into_iter().map(settled).collect(),
        filter: call.filter.map(settled),
        order_by: settled_keys(call.order_by),
        ..call
    }
}

fn settled_keys(keys: Vec<SortKey>) -> Vec<SortKey> {
    keys.into_iter().map(|key| SortKey { expr: settled(key.expr), ..key }).collect()
}

fn settled_window(window: WindowUse) -> WindowUse {
    let WindowUse { column, partition, order, call } = window;
    let call = WindowCall {
        args: call.args.into_iter().map(settled).collect(),
        filter: call.filter.map(settled),
        order_by: settled_keys(call.order_by),
        ..call
    };
    WindowUse {
        column,
        partition: partition.into_iter().map(settled).collect(),
        order: settled_keys(order),
        call,
    }
}

/// The columns among the keys of groups.
fn key_columns(keys: &[(ColumnId, Expr)]) -> ColumnSet {
    let mut columns = ColumnSet::default();
    for (_, key) in keys {
        if let Expr::Column { id, .. } = key {
            columns.insert(*id);
        }
    }
    columns
}

/// Takes lists apart: those beside each other at once, those within others after them.
fn unnested(mut node: Node, unnests: Vec<(ColumnId, Expr, usize)>) -> Result<Node> {
    let Some(deepest) = unnests.iter().map(|(.., depth)| *depth).max() else { return Ok(node) };
    for depth in 0..=deepest {
        let lists = unnests.iter().filter(|(.., own)| *own == depth);
        let lists = lists.map(|(column, list, _)| (*column, settled(list.clone()))).collect();
        node = Node::Unnest(Unnest { input: Box::new(node), lists });
    }
    Ok(node)
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
