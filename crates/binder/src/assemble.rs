//! The operators of a SELECT whose clauses are bound, from the rows of FROM upward: subqueries that arguments
//! of aggregates read; groups, over which all expressions are rewritten ([`crate::regroup`]); subqueries;
//! HAVING; windows; QUALIFY; lists that are taken apart; DISTINCT; order; limit.

use crate::aggregate::{Asked, aggregate};
use crate::binder::Binder;
use crate::bound::Bound;
use crate::query::{Item, Range, Rows, filter, limited, project, take};
use crate::regroup::{Regroup, determined};
use crate::scope::{KeySets, Pending, Rel, Scope, WindowUse};
use crate::settle::settled;
use crate::subquery::join_pending;
use entasis_engine::plan::{
    self, AggregateCall, AggregateFunction, Bound as End, ColumnSet, Frame, Node, Sort, SortKey, Unnest,
    Window, WindowCall, WindowFunction,
};
use entasis_functions::types::Given;
use entasis_vector::expr::{CompareOp, Expr};
use entasis_vector::{ColumnId, DataType, Error, Result, Value};

/// What a SELECT has bound, over the rows of FROM, and then over its groups.
pub(crate) struct Parts {
    pub(crate) items: Vec<Item>,
    pub(crate) having: Option<Expr>,
    pub(crate) qualify: Option<Expr>,
    /// The keys of DISTINCT ON.
    pub(crate) on: Vec<Expr>,
    pub(crate) order: Vec<SortKey>,
}

/// The groups of a SELECT.
struct Groups {
    keys: Vec<(ColumnId, Expr)>,
    sets: Option<KeySets>,
    aggregates: Vec<(ColumnId, AggregateCall)>,
    /// The relations of FROM, by which errors name columns.
    relations: Vec<Rel>,
}

/// What is computed over groups, or over the rows of FROM if there are none.
struct OverGroups {
    parts: Parts,
    windows: Vec<WindowUse>,
    unnests: Vec<(ColumnId, Expr, usize)>,
    subqueries: Vec<Pending>,
}

impl<'q> Binder<'_, 'q> {
    /// Makes the operators of a SELECT over the rows of its FROM and WHERE.
    pub(crate) fn assembled(
        &mut self,
        mut node: Node,
        scope: Scope<'q>,
        parts: Parts,
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
        let (below, above): (Vec<Pending>, Vec<Pending>) =
            pending.into_iter().partition(|pending| pending.is_below_groups);
        below.into_iter().for_each(|pending| join_pending(&mut node, pending));
        node = project(node, early.into_iter().map(|(column, expr)| (column, settled(expr))).collect());
        let mut over = OverGroups { parts, windows: window_calls, unnests, subqueries: above };
        if is_grouped || !aggregates.is_empty() {
            let groups = Groups { keys, sets, aggregates, relations };
            node = self.with_groups(node, groups, &mut over)?;
        }
        let OverGroups { parts, windows, unnests, subqueries } = over;
        subqueries.into_iter().for_each(|pending| join_pending(&mut node, pending));
        if let Some(having) = parts.having {
            node = filter(node, settled(having));
        }
        node = self.windowed(node, windows.into_iter().map(settled_window).collect());
        if let Some(qualify) = parts.qualify {
            node = filter(node, settled(qualify));
        }
        node = unnested(node, unnests)?;
        let rows = Rows { node, items: parts.items };
        if !parts.on.is_empty() {
            let first = parts.order.iter().take(parts.on.len());
            if first.into_iter().any(|key| !parts.on.contains(&key.expr)) {
                let error = Error::input("the first keys of ORDER BY are those of DISTINCT ON");
                return Err(error.with_hint("the row that comes first in the order is kept of each key"));
            }
            return self.distinct_on(rows, parts.on, parts.order, range);
        }
        self.distinct_or_all(rows, parts.order, is_distinct, range)
    }

    /// The groups of `node`; what is computed over them then reads their columns.
    fn with_groups(&mut self, node: Node, groups: Groups, over: &mut OverGroups) -> Result<Node> {
        let Groups { keys, sets, aggregates, relations } = groups;
        let input = node.columns();
        let made: Vec<(ColumnId, Expr)> =
            keys.iter().map(|(column, key)| (*column, settled(key.clone()))).collect();
        let mut aggregates: Vec<(ColumnId, AggregateCall)> =
            aggregates.into_iter().map(|(column, call)| (column, settled_call(call))).collect();
        let known = if sets.is_none() { key_columns(&keys) } else { ColumnSet::default() };
        let determined = determined(&node, &known);
        let mut used = Vec::new();
        if !determined.is_empty() {
            over.each(&mut columns_among(determined, known, &mut used))?;
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
        over.each(&mut |expr| regroup.apply(expr, &name))?;
        Ok(self.grouped(node, made, aggregates, sets))
    }

    /// All rows or the distinct ones, in order.
    fn distinct_or_all(
        &mut self,
        mut rows: Rows,
        mut order: Vec<SortKey>,
        is_distinct: bool,
        range: Range,
    ) -> Result<Rows> {
        if is_distinct {
            let written: Vec<Expr> = rows.items.iter().map(|item| item.expr.clone()).collect();
            self.distinct(&mut rows);
            for key in &mut order {
                let Some(place) = written.iter().position(|expr| *expr == key.expr) else {
                    let error = Error::input("the ORDER BY of a SELECT DISTINCT has what is no result");
                    return Err(error.with_hint(
                        "its keys are results: duplicates are left out before there is an order",
                    ));
                };
                key.expr = rows.items[place].expr.clone();
            }
        } else {
            // What is both a key and a result is computed once.
            self.computed_keys(&mut rows, &mut order);
        }
        let order: Vec<SortKey> =
            settled_keys(order).into_iter().filter(|key| !matches!(key.expr, Expr::Literal { .. })).collect();
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

impl OverGroups {
    /// Passes each expression to `f`.
    fn each(&mut self, f: &mut dyn FnMut(&mut Expr) -> Result<()>) -> Result<()> {
        self.parts.each(f)?;
        self.windows.iter_mut().try_for_each(|call| each_of_window(call, f))?;
        self.unnests.iter_mut().try_for_each(|(_, list, _)| f(list))?;
        self.subqueries.iter_mut().try_for_each(|pending| each_of_pending(pending, f))
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
