//! Cardinalities: how many rows a subplan gives, and what its columns look like, before anything has run.
//!
//! An [`Estimate`] is derived bottom-up. It starts from the exact row counts, minima, maxima and distinct
//! counts of tables, and follows four ideas:
//!
//! - Two distinct counts a column. `distinct` is how many values are *left* after filters, `domain` how many
//!   there were before. A join of `R.a = S.b` keeps `|R| |S| / max(domain(a), domain(b))` rows: filters
//!   elsewhere on either side thin out the rows, not the domain. The result's domain is the smaller one, so
//!   that the estimate of a whole class of equal columns does not depend on the order in which it is joined.
//! - Of two keys those values count that lie in both ranges ([`super::overlap`]), and filters on other
//!   columns narrow the range of a key where rows lie in its order, as the zones of blocks tell.
//! - Keys of several columns are not independent. If the product of the domains exceeds the rows that a side
//!   ever had, that side is taken for a key, or for a reference to one, and the smaller side's rows are the
//!   domain.
//! - Sums and counts of groups are normally distributed around the mean that the group size and the
//!   argument's range imply. That is what tells `HAVING sum(l_quantity) > 300` (hardly anything) from `> 30`
//!   (hardly a filter).
//!
//! Filters of scans that are joined have been tested on samples ([`super::sample`]), which count more than
//! statistics, and values of columns of small tables have been counted ([`super::related`]). What has been
//! found of joins, by samples and by counting, comes with the scans (`optimizer/join_graph/transfer.rs`).
//!
//! Not done: histograms.

use super::overlap::{SharedPart, overlap};
use super::selectivity;
use super::values::{ColumnEstimate, Estimate, cast_range, clamp_distinct, position};
use crate::plan::{
    Aggregate, AggregateCall, AggregateFunction, Columns, Distinct, Frame, JoinKey, JoinKind, Node,
    Reference, Related, Scan, SetKind, SetOperation, Values, Window, WindowFunction,
};
use crate::relation::ColumnStatistics;
use entasis_vector::expr::Expr;
use entasis_vector::{ColumnId, DataType, Value};
use std::collections::{HashMap, HashSet};

/// Rows of a relation that does not know.
const ROWS_UNKNOWN: f64 = 100_000.0;

/// Rows that `node` gives, an estimate; at least 0, and fractions happen.
pub fn estimate_rows(node: &Node, columns: &Columns) -> f64 {
    estimate(node, columns).rows
}

/// Elements of a list.
const ELEMENTS: f64 = 4.0;

/// What is believed of the result of `node`.
pub(crate) fn estimate(node: &Node, columns: &Columns) -> Estimate {
    each_estimate(node, columns, &mut |_, _| ())
}

/// The same; `see` gets every node below whose estimate it needs, and `node`, with its own.
pub(crate) fn each_estimate(
    node: &Node,
    columns: &Columns,
    see: &mut dyn FnMut(&Node, &Estimate),
) -> Estimate {
    let found = estimate_over(node, columns, &mut |input| each_estimate(input, columns, see));
    see(node, &found);
    found
}

/// The estimate of a node from those of its inputs.
fn estimate_over(node: &Node, columns: &Columns, of: &mut dyn FnMut(&Node) -> Estimate) -> Estimate {
    match node {
        // Only in a plan that is not decorrelated yet.
        Node::Dependent(dependent) => of(&dependent.left),
        Node::Recursion(recursion) => of(&recursion.start.node),
        Node::Scan(scan) => estimate_scan(scan, columns),
        Node::Values(values) => estimate_values(values),
        Node::Filter(filter) => {
            let mut input = of(&filter.input);
            selectivity::apply(&filter.predicates, &mut input);
            input
        }
        Node::Project(project) => {
            let mut input = of(&project.input);
            let new: Vec<_> = project.exprs.iter().map(|(id, expr)| (*id, input.expression(expr))).collect();
            input.columns.extend(new);
            input
        }
        Node::Unnest(unnest) => {
            let mut input = of(&unnest.input);
            input.rows *= ELEMENTS;
            let elements = ColumnEstimate::of_distinct(input.rows);
            input.columns.extend(unnest.lists.iter().map(|(id, _)| (*id, elements)));
            input
        }
        Node::Join(join) => {
            let left = of(&join.left);
            let right = of(&join.right);
            estimate_join(join.kind, &join.on, &join.residual, left, right)
        }
        Node::Aggregate(aggregate) => estimate_aggregate(aggregate, of(&aggregate.input)),
        Node::Distinct(distinct) => estimate_distinct(distinct, columns, of(&distinct.input)),
        Node::Window(window) => estimate_window(window, of(&window.input)),
        Node::Sort(sort) => {
            let mut input = of(&sort.input);
            if let Some(limit) = sort.limit
                && (limit as f64) < input.rows
            {
                input.keep(limit as f64 / input.rows);
            }
            input
        }
        Node::Limit(limit) => {
            let mut input = of(&limit.input);
            let rest = (input.rows - limit.offset as f64).max(0.0);
            let rows = limit.count.map_or(rest, |count| rest.min(count as f64));
            if rows < input.rows {
                input.keep(rows / input.rows);
            }
            input
        }
        Node::SetOperation(set) => estimate_set_operation(set, columns, of),
    }
}

fn estimate_distinct(distinct: &Distinct, columns: &Columns, input: Estimate) -> Estimate {
    let keys: Vec<Expr> = distinct.keys.iter().map(|id| columns.expr(*id)).collect();
    let rows = input.groups(keys.iter());
    let kept = distinct.keys.iter().map(|id| (*id, input.column(*id))).collect();
    Estimate {
        rows,
        base: input.base.min(input.groups(keys.iter()).max(1.0)),
        columns: kept,
        references: if distinct.is_partial { input.references } else { Vec::new() },
    }
}

fn estimate_window(window: &Window, mut input: Estimate) -> Estimate {
    let partitions = input.groups(window.partition.iter());
    let new = window.calls.iter().map(|(id, call)| {
        use WindowFunction as F;
        let per_partition = input.rows / partitions.max(1.0);
        let distinct = match call.function {
            F::RowNumber | F::Rank | F::DenseRank | F::PercentRank | F::CumeDist => per_partition,
            F::Aggregate(_) if call.frame == Frame::whole() => partitions,
            _ => input.rows,
        };
        (*id, ColumnEstimate::of_distinct(distinct))
    });
    let new: Vec<_> = new.collect();
    input.columns.extend(new);
    if let Some(top) = window.top {
        let kept = partitions * top.rows as f64;
        if kept < input.rows {
            input.keep(kept / input.rows);
        }
    }
    input
}

fn estimate_scan(scan: &Scan, columns: &Columns) -> Estimate {
    let rows = scan.relation.rows().map_or(ROWS_UNKNOWN, |rows| rows as f64);
    let known = |id: ColumnId, index: usize| match scan.relation.column_statistics(index) {
        Some(column) => from_statistics(&column, columns.ty(id), rows),
        None => ColumnEstimate::of_distinct(guess_distinct(columns.ty(id), rows)),
    };
    let columns = scan.columns.iter().map(|&(id, index)| (id, known(id, index))).collect();
    let mut estimate = Estimate { rows, base: rows, columns, references: scan.references.clone() };
    let sampled = scan.sampled.as_ref().filter(|sampled| sampled.filters <= scan.filters.len());
    let all = sampled.map(|sampled| (sampled, estimate.clone()));
    selectivity::apply(&scan.filters, &mut estimate);
    if let Some((sampled, all)) = all {
        let (known, rest) = scan.filters.split_at(sampled.filters);
        let share =
            sampled.share(selectivity::selectivity(known, &all)) * selectivity::selectivity(rest, &all);
        let sampled_rows = rows * share;
        if sampled_rows < estimate.rows {
            estimate.keep(sampled_rows / estimate.rows);
        }
        estimate.rows = sampled_rows.max(rows.min(1.0));
        for &(id, (low, high)) in &sampled.ranges {
            if let Some(column) = estimate.column_mut(id)
                && let Some(range) = &mut column.range
            {
                *range = (range.0.max(low), range.1.min(high).max(range.0.max(low)));
            }
        }
    }
    for related in &scan.related {
        if let Some(column) = estimate.column_mut(related.column) {
            relate(column, related);
        }
    }
    estimate
}

/// Narrows a column to what was counted of it.
fn relate(column: &mut ColumnEstimate, related: &Related) {
    if let Some((domain, range)) = related.domain {
        column.domain = column.domain.min(domain).max(1.0);
        column.distinct = column.distinct.min(column.domain);
        column.span = range;
        if let (Some(own), Some(range)) = (&mut column.range, range) {
            let low = own.0.max(range.0);
            *own = (low, own.1.min(range.1).max(low));
        }
    }
    if let Some(distinct) = related.distinct {
        column.distinct = distinct.max(1.0);
    }
}

/// Distinct values of a column that is not counted.
fn guess_distinct(ty: DataType, rows: f64) -> f64 {
    if ty == DataType::Boolean { 2.0 } else { rows.powf(0.75) }
}

fn from_statistics(column: &ColumnStatistics, ty: DataType, rows: f64) -> ColumnEstimate {
    let range = match (&column.min, &column.max) {
        (Some(min), Some(max)) => position(min).zip(position(max)),
        _ => None,
    };
    let span = match range {
        Some((low, high)) if ty.integer_range().is_some() => high - low + 1.0,
        _ => f64::MAX,
    };
    let distinct = column.distinct.map_or_else(|| guess_distinct(ty, rows), |distinct| distinct as f64);
    let mut estimate = ColumnEstimate::of_distinct(distinct.min(span).min(rows));
    estimate.range = range;
    estimate.span = range;
    estimate.nulls = column.nulls.map_or(0.0, |nulls| nulls as f64 / rows.max(1.0)).min(1.0);
    estimate
}

fn estimate_values(values: &Values) -> Estimate {
    let rows = values.rows.len() as f64;
    let column = |index: usize| {
        // Long lists are rarely worth counting.
        let cells = || values.rows.iter().map(move |row| &row[index]).take(1024);
        let distinct: HashSet<&Value> = cells().filter(|value| !value.is_null()).collect();
        let share = distinct.len() as f64 / values.rows.len().clamp(1, 1024) as f64;
        let mut column = ColumnEstimate::of_distinct(share * rows);
        let places = || cells().filter_map(position);
        let bounds = (places().fold(f64::MAX, f64::min), places().fold(f64::MIN, f64::max));
        column.range = (values.rows.len() <= 1024 && bounds.0 <= bounds.1).then_some(bounds);
        column.span = column.range;
        column.nulls = cells().filter(|value| value.is_null()).count() as f64 / rows.clamp(1.0, 1024.0);
        column
    };
    let columns = values.columns.iter().enumerate().map(|(index, id)| (*id, column(index))).collect();
    Estimate { rows, base: rows, columns, references: Vec::new() }
}

/// The share of all pairs of rows for which the keys are equal. `domains` has for each key the domain on
/// either side, `base` the rows that either side ever had.
pub(crate) fn key_selectivity(domains: &[(f64, f64)], base: (f64, f64)) -> f64 {
    match domains {
        [] => 1.0,
        [(left, right)] => 1.0 / left.max(*right).max(1.0),
        _ => {
            let left: f64 = domains.iter().map(|(left, _)| *left).product();
            let right: f64 = domains.iter().map(|(_, right)| *right).product();
            let domain = if left >= base.0 && right >= base.1 {
                base.0.min(base.1)
            } else {
                left.min(base.0).max(right.min(base.1))
            };
            1.0 / domain.max(1.0)
        }
    }
}

/// The share of left rows that have a partner.
fn match_share(on: &[JoinKey], left: &Estimate, right: &Estimate) -> f64 {
    if right.rows <= 0.0 {
        return 0.0;
    }
    on.iter()
        .map(|key| {
            let (l, r) = (left.expression(&key.left), right.expression(&key.right));
            let shared = overlap([l, r].into_iter());
            let (of_left, of_right) = (l.within(shared), r.within(shared));
            let distinct = r.distinct.min(right.rows) * of_right.rows;
            of_left.rows * (distinct / of_left.domain.max(of_right.domain).max(1.0)).min(1.0)
        })
        .fold(1.0, f64::min)
}

/// Whether keys or residuals of a semi join compare for inequality only, which nearly always finds a partner.
fn residual_share(residual: &[Expr], both: &Estimate) -> f64 {
    if residual.is_empty() { 1.0 } else { selectivity::selectivity(residual, both).powf(0.25) }
}

/// By how much a join by keys is known to keep more rows than statistics expect: what was found of columns
/// that meet here. They are equal, though the join may compare others that are equal to them.
fn known_factor(left: &Estimate, right: &Estimate) -> f64 {
    let meets = |found: &&Reference| {
        let is_in = |side: &Estimate, id: &ColumnId| side.columns.contains_key(id);
        let are_in = |side: &Estimate| found.columns.iter().all(|id| is_in(side, id));
        let are_here = found.columns.iter().all(|id| is_in(left, id) || is_in(right, id));
        are_here && !are_in(left) && !are_in(right)
    };
    let found = left.references.iter().chain(&right.references).filter(meets);
    found.map(|found| found.factor).product()
}

/// What is believed of a join of two subplans.
pub(crate) fn estimate_join(
    kind: JoinKind,
    on: &[JoinKey],
    residual: &[Expr],
    left: Estimate,
    right: Estimate,
) -> Estimate {
    let (left_rows, right_rows) = (left.rows, right.rows);
    let share = match kind {
        JoinKind::Semi | JoinKind::Anti | JoinKind::NullAwareAnti => match_share(on, &left, &right),
        _ => 1.0,
    };
    let keys = KeyEstimates::of(on, &left, &right);
    let known = if on.is_empty() { 1.0 } else { known_factor(&left, &right) };
    let selected = keys.selectivity((left.base, right.base)) * known;
    let references = left.references.iter().chain(&right.references).cloned().collect();
    let mut both = Estimate {
        rows: left_rows * right_rows,
        base: left.base.max(right.base),
        columns: HashMap::new(),
        references,
    };
    both.columns = left.columns.clone();
    both.columns.extend(right.columns);
    let side: selectivity::Side<'_> = &|id| usize::from(!left.columns.contains_key(&id));
    // At least one row, if there can be one: a plan above of which nothing is expected would have no best
    // order.
    let inner = (left_rows * right_rows * selected).max(left_rows.min(right_rows).min(1.0));
    both.rows = inner;
    match kind {
        JoinKind::Inner => {
            keys.equate(on, &mut both);
            clamp_distinct(&mut both);
            selectivity::apply_between(residual, &mut both, side);
            both
        }
        JoinKind::Left | JoinKind::Right | JoinKind::Full | JoinKind::Single | JoinKind::AsOf { .. } => {
            let matched = inner * selectivity::selectivity_between(residual, &both, side);
            both.rows = match kind {
                JoinKind::Left => matched.max(left_rows),
                JoinKind::Right => matched.max(right_rows),
                JoinKind::Full => matched.max(left_rows).max(right_rows),
                _ => left_rows,
            };
            clamp_distinct(&mut both);
            both
        }
        JoinKind::Mark { mark, .. } => {
            let mut left = Estimate { rows: left_rows, ..left };
            left.columns.insert(mark, ColumnEstimate::of_distinct(2.0));
            left
        }
        JoinKind::Semi => {
            let matched = share * residual_share(residual, &both);
            let mut left = Estimate { rows: left_rows, ..left };
            keys.restrict(on, &mut left);
            left.keep(matched.max(1.0 / left_rows.max(1.0)));
            left
        }
        JoinKind::Anti | JoinKind::NullAwareAnti => {
            let matched = share * residual_share(residual, &both);
            let mut left = Estimate { rows: left_rows, ..left };
            left.keep((1.0 - matched).max(0.05));
            left
        }
    }
}

/// What is believed of the keys of a join, each of both sides.
struct KeyEstimates {
    sides: Vec<(ColumnEstimate, ColumnEstimate)>,
    /// The range that both sides have in common.
    shared: Vec<Option<(f64, f64)>>,
    /// What of either side is within it.
    parts: Vec<(SharedPart, SharedPart)>,
}

impl KeyEstimates {
    fn of(on: &[JoinKey], left: &Estimate, right: &Estimate) -> KeyEstimates {
        let sides: Vec<(ColumnEstimate, ColumnEstimate)> =
            on.iter().map(|key| (left.expression(&key.left), right.expression(&key.right))).collect();
        let shared: Vec<_> = sides.iter().map(|&(l, r)| overlap([l, r].into_iter())).collect();
        let parts = sides.iter().zip(&shared).map(|((l, r), range)| (l.within(*range), r.within(*range)));
        KeyEstimates { parts: parts.collect(), shared, sides }
    }

    /// The share of all pairs of rows for which the keys are equal; `base` has the rows that either side ever
    /// had.
    fn selectivity(&self, base: (f64, f64)) -> f64 {
        let domains: Vec<(f64, f64)> = self.parts.iter().map(|(l, r)| (l.domain, r.domain)).collect();
        let within: f64 = self.parts.iter().map(|(l, r)| l.rows * r.rows).product();
        within * key_selectivity(&domains, base)
    }

    /// Makes the key columns of an inner join equal.
    fn equate(&self, on: &[JoinKey], both: &mut Estimate) {
        for (((key, (l, r)), (of_left, of_right)), range) in
            on.iter().zip(&self.sides).zip(&self.parts).zip(&self.shared)
        {
            for side in [&key.left, &key.right] {
                if let Expr::Column { id, .. } = side
                    && let Some(column) = both.columns.get_mut(id)
                {
                    column.domain = of_left.domain.min(of_right.domain);
                    column.distinct = (l.distinct * of_left.rows).min(r.distinct * of_right.rows).max(1.0);
                    column.nulls = 0.0;
                    if range.is_some() {
                        (column.range, column.span) = (*range, *range);
                    }
                }
            }
        }
    }

    /// Leaves the left key columns of a semi join no more values than the right ones have.
    fn restrict(&self, on: &[JoinKey], left: &mut Estimate) {
        for (key, (_, r)) in on.iter().zip(&self.sides) {
            if let Expr::Column { id, .. } = &key.left
                && let Some(column) = left.columns.get_mut(id)
            {
                column.distinct = column.distinct.min(r.distinct);
            }
        }
    }
}

fn estimate_aggregate(aggregate: &Aggregate, input: Estimate) -> Estimate {
    if aggregate.groups.is_empty() {
        let columns =
            aggregate.aggregates.iter().map(|(id, _)| (*id, ColumnEstimate::of_distinct(1.0))).collect();
        return Estimate { rows: 1.0, base: 1.0, columns, references: Vec::new() };
    }
    let rows = input.groups(aggregate.groups.iter().map(|(_, expr)| expr));
    let group_size = (input.rows / rows.max(1.0)).max(1.0);
    let mut columns = HashMap::new();
    for (id, expr) in &aggregate.groups {
        let mut column = input.expression(expr);
        column.distinct = column.distinct.min(rows.max(1.0));
        columns.insert(*id, column);
    }
    for (id, call) in &aggregate.aggregates {
        columns.insert(*id, estimate_call(call, &input, rows, group_size));
    }
    Estimate { rows, base: input.base.min(rows.max(1.0)), columns, references: Vec::new() }
}

/// What an aggregate's results look like over groups of about `group_size` rows, whose sizes vary about as
/// much as their mean.
fn estimate_call(call: &AggregateCall, input: &Estimate, rows: f64, group_size: f64) -> ColumnEstimate {
    let mut column = ColumnEstimate::of_distinct(rows);
    let argument = call.args.first().map(|expr| (input.expression(expr), expr.ty()));
    match (&call.function, argument) {
        (AggregateFunction::CountStar | AggregateFunction::Count, _) => {
            column.bell = Some((group_size, group_size.sqrt()));
        }
        (AggregateFunction::Sum, Some((argument, _))) if let Some((low, high)) = argument.range => {
            let (mean, variance) = ((low + high) / 2.0, (high - low).powi(2) / 12.0);
            column.bell = Some((group_size * mean, (group_size * (variance + mean * mean)).sqrt()));
        }
        (AggregateFunction::Avg, Some((argument, ty))) => {
            column.range = argument.range.and_then(|range| cast_range(range, ty, DataType::Float64));
        }
        (
            AggregateFunction::Min | AggregateFunction::Max | AggregateFunction::AnyValue,
            Some((argument, _)),
        ) => {
            column = argument;
            column.distinct = column.distinct.min(rows.max(1.0));
        }
        (AggregateFunction::BoolAnd | AggregateFunction::BoolOr, _) => {
            column = ColumnEstimate::of_distinct(2.0)
        }
        _ => {}
    }
    column
}

fn estimate_set_operation(
    set: &SetOperation,
    columns: &Columns,
    of: &mut dyn FnMut(&Node) -> Estimate,
) -> Estimate {
    let inputs: Vec<Estimate> = set.inputs.iter().map(|(node, _)| of(node)).collect();
    let total: f64 = inputs.iter().map(|input| input.rows).sum();
    let rows = match set.kind {
        SetKind::Union => total,
        SetKind::Intersect => inputs.iter().map(|input| input.rows).fold(f64::MAX, f64::min) / 2.0,
        SetKind::Except => inputs.first().map_or(0.0, |input| input.rows) / 2.0,
    };
    let mut result = Estimate { rows, base: rows.max(1.0), ..Estimate::nothing() };
    for (index, id) in set.columns.iter().enumerate() {
        let parts = || inputs.iter().zip(&set.inputs).map(|(input, (_, ids))| input.column(ids[index]));
        let mut column =
            ColumnEstimate::of_distinct(parts().map(|c| c.distinct).fold(1.0, f64::max).min(rows.max(1.0)));
        column.domain = parts().map(|c| c.domain).fold(column.distinct, f64::max);
        let all = |of: fn(ColumnEstimate) -> Option<(f64, f64)>| {
            let ranges = parts().map(of);
            ranges.reduce(|a, b| a.zip(b).map(|(a, b)| (a.0.min(b.0), a.1.max(b.1)))).flatten()
        };
        column.range = all(|c| c.range);
        column.span = all(|c| c.span);
        column.nulls = parts().map(|c| c.nulls).fold(0.0, f64::max);
        result.columns.insert(*id, column);
    }
    if !set.all {
        let keys: Vec<Expr> = set.columns.iter().map(|id| columns.expr(*id)).collect();
        result.rows = if set.columns.is_empty() { rows.min(1.0) } else { result.groups(keys.iter()) };
    }
    result
}
