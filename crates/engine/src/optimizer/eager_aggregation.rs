//! Rule: an aggregation above joins is begun below them, where that leaves few rows to join.
//!
//! `SELECT d.week, sum(f.price) FROM f JOIN d ON f.day = d.day GROUP BY d.week` is
//! `SELECT d.week, sum(s) FROM (SELECT day, sum(price) AS s FROM f GROUP BY day) JOIN d USING (day) GROUP BY
//! d.week`: rows of `f` with the same day meet the same rows of `d`, so they can be summed first. (Yan and
//! Larson, *Eager Aggregation and Lazy Aggregation*, VLDB 1995.) The inner groups are by every column that is
//! read above: keys of the joins, group keys, conditions.
//!
//! - `sum(CASE WHEN c THEN x END)`, where `c` is over the other side, becomes `sum(CASE WHEN c THEN s END)`
//!   of the sums of `x`: a pivot needs a single inner sum for all its columns.
//! - Minima and the like over the other side stay as they are: duplicates do not change them.
//! - It may go below several joins; of all places the cheapest is taken, by estimates, and none if little
//!   would be saved. Join filters pass the inner aggregation, since they are over its keys.
//!
//! Not done: products of both sides (`sum(f.x * d.y)`), means, and sides that a join fills with NULLs.

use super::two_steps::in_two_steps;
use crate::estimate::{Estimate, estimate};
use crate::plan::freedom::{ignores_form, is_volatile_join, may_move, may_repeat};
use crate::plan::tree::{ColumnSet, columns_of, for_each_expr, reads, reads_all};
use crate::plan::tree::{substitute, take};
use crate::plan::{Aggregate, AggregateCall, AggregateFunction, Columns, JoinKind, Node, Plan};
use entasis_vector::expr::Expr;
use entasis_vector::{ColumnId, DataType, Result, Value};
use std::collections::HashMap;

/// Nanoseconds that an aggregation takes a row and key, to find the group.
const KEY: f64 = 4.0;
/// The same for a text.
const TEXT_KEY: f64 = 12.0;
/// Nanoseconds a row with so many groups that they are not in the cache.
const MISS: f64 = 15.0;
/// The number of groups from which they are not.
const FAR: f64 = 100_000.0;
/// Nanoseconds a row and call.
const CALL: f64 = 2.0;
/// Nanoseconds a row and condition of a call.
const CONDITION: f64 = 4.0;
/// Nanoseconds a row that a join looks up.
const PROBE: f64 = 4.0;
/// Nanoseconds that another aggregation takes however few rows there are.
const SETUP: f64 = if cfg!(test) { 0.0 } else { 20_000.0 };
/// The share of the time that must be left at most: estimates err.
const WORTH: f64 = 0.7;

/// Begins aggregations of the whole plan early.
pub(super) fn apply(plan: &mut Plan) -> Result<()> {
    begin(&mut plan.root, &mut plan.columns);
    Ok(())
}

fn begin(node: &mut Node, columns: &mut Columns) {
    if let Node::Aggregate(aggregate) = node
        && let Some(place) = best_place(aggregate, columns)
    {
        split(aggregate, &place, columns);
    }
    node.children_mut().into_iter().for_each(|child| begin(child, columns));
}

/// Which input leads to a node: of a filter the only one, of a join the left or the right one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Only,
    Left,
    Right,
}

fn follow(node: &Node, step: Step) -> &Node {
    match (node, step) {
        (Node::Filter(filter), Step::Only) => &filter.input,
        (Node::Join(join), Step::Left) => &join.left,
        (Node::Join(join), Step::Right) => &join.right,
        _ => unreachable!("steps are of these nodes"),
    }
}

/// The inputs of `node` whose rows may be aggregated before it: those that it does not fill with NULLs.
fn steps(node: &Node) -> &'static [Step] {
    match node {
        Node::Filter(filter) if filter.predicates.iter().all(may_repeat) => &[Step::Only],
        Node::Join(join) if !is_volatile_join(join) => match join.kind {
            JoinKind::Inner => &[Step::Left, Step::Right],
            JoinKind::Left | JoinKind::Semi | JoinKind::Anti => &[Step::Left],
            JoinKind::Right => &[Step::Right],
            _ => &[],
        },
        _ => &[],
    }
}

/// The way to the input of joins at which an aggregation is best begun, if that is worth it.
fn best_place(aggregate: &Aggregate, columns: &Columns) -> Option<Vec<Step>> {
    let calls = || aggregate.aggregates.iter().map(|(_, call)| call);
    let counts = |call: &AggregateCall| {
        matches!(call.function, AggregateFunction::Count | AggregateFunction::CountStar)
    };
    let exprs = calls().flat_map(|call| call.args.iter().chain(&call.filter));
    let mut exprs = exprs.chain(aggregate.groups.iter().map(|(_, expr)| expr));
    if !matches!(&*aggregate.input, Node::Join(_) | Node::Filter(_))
        || !exprs.all(may_repeat)
        // Without groups a sum of no counts is NULL.
        || (aggregate.groups.is_empty() && calls().any(counts))
    {
        return None;
    }
    let input = estimate(&aggregate.input, columns);
    let groups = input.groups(aggregate.groups.iter().map(|(_, expr)| expr));
    let conditions = calls().filter(|call| call.filter.is_some() || is_case(call)).count();
    let last = find(aggregate.groups.iter().map(|(_, expr)| expr), groups)
        + CALL * calls().count() as f64
        + CONDITION * conditions as f64;
    let rows = input.rows;
    let mut search = Search { aggregate, columns, rows, last, best: None };
    search.below(&aggregate.input, &mut Vec::new(), 0.0, rows, ColumnSet::default());
    search.best.map(|(_, place)| place)
}

/// Nanoseconds that it takes a row to find one of `groups` groups by `keys`.
fn find<'k>(keys: impl Iterator<Item = &'k Expr>, groups: f64) -> f64 {
    let key = |expr: &Expr| if expr.ty().is_string() { TEXT_KEY } else { KEY };
    keys.map(key).sum::<f64>() + if groups > FAR { MISS } else { 0.0 }
}

/// The most groups of `rows` rows by `keys`: keys are correlated, but an aggregation that leaves as many rows
/// as it gets is the worst that can be added.
fn most_groups(keys: &[Expr], input: &Estimate, rows: f64) -> f64 {
    keys.iter().map(|key| input.expression(key).distinct).product::<f64>().min(rows).max(1.0)
}

fn is_case(call: &AggregateCall) -> bool {
    matches!(call.args[..], [Expr::Case { .. }])
}

/// The search for the best place.
struct Search<'a> {
    aggregate: &'a Aggregate,
    columns: &'a Columns,
    /// The aggregation's input rows.
    rows: f64,
    /// Nanoseconds that it takes for one of them.
    last: f64,
    /// What is left of the time, and the place.
    best: Option<(f64, Vec<Step>)>,
}

impl Search<'_> {
    /// Looks at the inputs of `node`, to which `way` leads, and of whose rows at most `most` pass the filters
    /// that joins above it place below it. `joins` are nanoseconds of these joins, and `read` the columns
    /// that they read.
    fn below(&mut self, node: &Node, way: &mut Vec<Step>, joins: f64, most: f64, read: ColumnSet) {
        for &step in steps(node) {
            let input = follow(node, step);
            let mut read = read.clone();
            read.add(&reads_of(node));
            let inside = columns_of(input);
            let mut partials = Partials::default();
            let Some(calls) = split_calls(self.aggregate, &inside, &mut partials) else { continue };
            if !ignore_forms(self.aggregate, &calls) || !joins_ignore_forms(node) {
                continue;
            }
            let estimated = estimate(input, self.columns);
            let most = if is_filtered_by(node) { most } else { f64::MAX };
            let rows = estimated.rows.min(most);
            let joins = joins + if step == Step::Only { 0.0 } else { PROBE * rows };
            way.push(step);
            if step != Step::Only && !matches!(input, Node::Aggregate(_) | Node::Values(_)) {
                let keys = keys(self.aggregate, &calls, &inside, &read);
                let keys: Vec<Expr> = keys.iter().map(|id| self.columns.expr(id)).collect();
                // Without keys there would be a group even of no rows.
                let has_keys = !keys.is_empty();
                let groups = most_groups(&keys, &estimated, rows);
                let share = groups / rows.max(1.0);
                let first = find(keys.iter(), groups) + CALL * partials.0.len() as f64;
                let first = first * rows;
                let before = joins + self.last * self.rows;
                let after = SETUP + first + share * before;
                let known = self.best.as_ref().map_or(f64::MAX, |(best, _)| *best);
                if has_keys && after < WORTH * before && after - before < known {
                    self.best = Some((after - before, way.clone()));
                }
            }
            self.below(input, way, joins, rows, read);
            way.pop();
        }
    }
}

/// True if what is read above inner groups is the same for all rows of each of them.
fn ignore_forms(aggregate: &Aggregate, calls: &[Outer]) -> bool {
    let mut groups = aggregate.groups.iter().map(|(_, expr)| expr);
    let mut read = calls.iter().flat_map(|call| call.values.iter().chain(&call.condition));
    groups.all(ignores_form) && read.all(ignores_form)
}

/// The same of the conditions of a filter or join.
fn joins_ignore_forms(node: &Node) -> bool {
    match node {
        Node::Filter(filter) => filter.predicates.iter().all(ignores_form),
        Node::Join(join) => {
            let keys = join.on.iter().flat_map(|key| [&key.left, &key.right]);
            keys.chain(&join.residual).all(ignores_form)
        }
        _ => true,
    }
}

/// True if rows of the inputs that `node` does not pass on are mostly not read: filters are tested where rows
/// are read, and joins place filters of their keys there.
fn is_filtered_by(node: &Node) -> bool {
    match node {
        Node::Filter(_) => true,
        Node::Join(join) => matches!(join.kind, JoinKind::Inner | JoinKind::Semi) && !join.on.is_empty(),
        _ => false,
    }
}

/// The columns that the expressions of a filter or join read.
fn reads_of(node: &Node) -> ColumnSet {
    match node {
        Node::Filter(filter) => reads_all(&filter.predicates),
        Node::Join(join) => {
            let keys = join.on.iter().flat_map(|key| [&key.left, &key.right]);
            reads_all(keys.chain(&join.residual))
        }
        _ => ColumnSet::default(),
    }
}

/// The columns of an input that the inner groups must be by: all that are read above it.
fn keys(aggregate: &Aggregate, calls: &[Outer], inside: &ColumnSet, above: &ColumnSet) -> ColumnSet {
    let mut read = above.clone();
    read.add(&reads_all(aggregate.groups.iter().map(|(_, expr)| expr)));
    for call in calls {
        read.add(&reads_all(call.values.iter().chain(&call.condition)));
    }
    read.retain(inside);
    read
}

/// Inner calls, each once: function, arguments, filter, type.
#[derive(Default)]
struct Partials(Vec<(AggregateFunction, Vec<Expr>, Option<Expr>, DataType)>);

impl Partials {
    /// The number of this call.
    fn add(
        &mut self,
        function: AggregateFunction,
        args: &[Expr],
        filter: Option<Expr>,
        ty: DataType,
    ) -> usize {
        let is_same = |(own, own_args, own_filter, own_ty): &(_, Vec<Expr>, Option<Expr>, DataType)| {
            AggregateFunction::name(own) == function.name()
                && own_args == args
                && *own_filter == filter
                && *own_ty == ty
        };
        self.0.iter().position(is_same).unwrap_or_else(|| {
            self.0.push((function, args.to_vec(), filter, ty));
            self.0.len() - 1
        })
    }
}

/// An outer call.
struct Outer {
    function: AggregateFunction,
    /// The number and type of the inner call whose result is the argument; `None` if the arguments are
    /// `values`.
    part: Option<(usize, DataType)>,
    /// Arguments over the other side.
    values: Vec<Expr>,
    /// The part counts only where this is true.
    condition: Option<Expr>,
    /// What counts elsewhere.
    otherwise: Otherwise,
}

/// What is in place of parts whose condition is not true.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Otherwise {
    /// Nothing: the call has a filter.
    Filtered,
    Null,
    Zero,
}

/// All calls in two steps, the first of them over the columns `inside`; `None` if any cannot be.
fn split_calls(aggregate: &Aggregate, inside: &ColumnSet, partials: &mut Partials) -> Option<Vec<Outer>> {
    aggregate.aggregates.iter().map(|(_, call)| split_call(call, inside, partials)).collect()
}

fn split_call(call: &AggregateCall, inside: &ColumnSet, partials: &mut Partials) -> Option<Outer> {
    use AggregateFunction as F;
    let ignores_duplicates = matches!(call.function, F::Min | F::Max | F::BoolAnd | F::BoolOr | F::AnyValue);
    if !call.order_by.is_empty() || (call.distinct && !ignores_duplicates) {
        return None;
    }
    if ignores_duplicates && !reads_all(&call.args).intersects(inside) {
        let (values, condition) = (call.args.clone(), call.filter.clone());
        let function = call.function.clone();
        return Some(Outer { function, part: None, values, condition, otherwise: Otherwise::Filtered });
    }
    let (once, twice, ty) = in_two_steps(call)?;
    let counts = matches!(call.function, F::Count | F::CountStar);
    let is_inside = |expr: &Expr| reads(expr).is_subset(inside) && may_move(expr);
    let (within, beyond) = match &call.filter {
        Some(filter) if is_inside(filter) => (Some(filter.clone()), None),
        filter => (None, filter.clone()),
    };
    if call.args.iter().all(is_inside) {
        // A count is 0, and its sum is NULL, where the filter is never true.
        let otherwise = if counts { Otherwise::Zero } else { Otherwise::Filtered };
        let part = Some((partials.add(once, &call.args, within, ty), ty));
        return Some(Outer { function: twice, part, values: Vec::new(), condition: beyond, otherwise });
    }
    let [Expr::Case { branches, otherwise, .. }] = &call.args[..] else { return None };
    let [(condition, value)] = &branches[..] else { return None };
    let otherwise = match otherwise.as_deref() {
        None | Some(Expr::Literal { value: Value::Null, .. }) => Otherwise::Null,
        Some(Expr::Literal { value: Value::Integer(0), .. })
            if matches!(call.function, F::Sum) && !ty.is_float() =>
        {
            Otherwise::Zero
        }
        _ => return None,
    };
    if !is_inside(value) || beyond.is_some() || counts {
        return None;
    }
    let part = Some((partials.add(once, std::slice::from_ref(value), within, ty), ty));
    Some(Outer { function: twice, part, values: Vec::new(), condition: Some(condition.clone()), otherwise })
}

/// Begins an aggregation at `place`.
fn split(aggregate: &mut Aggregate, place: &[Step], columns: &mut Columns) {
    let (inside, above) = {
        let (mut node, mut above) = (&*aggregate.input, ColumnSet::default());
        for &step in place {
            above.add(&reads_of(node));
            node = follow(node, step);
        }
        (columns_of(node), above)
    };
    let mut partials = Partials::default();
    let calls = split_calls(aggregate, &inside, &mut partials).expect("the place was found with it");

    // The inner aggregation, whose keys have new names above it.
    let mut renamed = HashMap::new();
    let mut groups = Vec::new();
    for id in keys(aggregate, &calls, &inside, &above).iter() {
        let known = columns.get(id).clone();
        let new = columns.add(known.name, known.ty, known.nullable);
        groups.push((new, Expr::column(id, known.ty)));
        renamed.insert(id, Expr::column(new, known.ty));
    }
    let mut parts: Vec<ColumnId> = Vec::new();
    let mut aggregates = Vec::new();
    for (function, args, filter, ty) in partials.0 {
        parts.push(columns.add(format!("{} of a part", function.name()), ty, true));
        let call = AggregateCall { function, args, distinct: false, filter, order_by: Vec::new(), ty };
        aggregates.push((parts[parts.len() - 1], call));
    }
    let mut node = &mut *aggregate.input;
    for &step in place {
        for_each_expr(node, &mut |expr, _| rename(expr, &renamed));
        node = match (node, step) {
            (Node::Filter(filter), Step::Only) => &mut filter.input,
            (Node::Join(join), Step::Left) => &mut join.left,
            (Node::Join(join), Step::Right) => &mut join.right,
            _ => unreachable!("steps are of these nodes"),
        };
    }
    let input = Box::new(take(node));
    *node = Node::Aggregate(Aggregate { input, groups, aggregates });

    // The outer one.
    aggregate.groups.iter_mut().for_each(|(_, expr)| rename(expr, &renamed));
    for ((_, call), outer) in aggregate.aggregates.iter_mut().zip(calls) {
        let ty = call.ty;
        *call = outer.call(&parts, ty);
        call.args.iter_mut().chain(&mut call.filter).for_each(|expr| rename(expr, &renamed));
    }
}

impl Outer {
    /// The call, with a result of type `ty`; the inner calls give the columns `parts`.
    fn call(self, parts: &[ColumnId], ty: DataType) -> AggregateCall {
        let Outer { function, part, values, condition, otherwise } = self;
        let (mut args, mut filter) = (values, condition);
        if let Some((number, ty)) = part {
            let part = Expr::column(parts[number], ty);
            let arg = match (otherwise, filter.take()) {
                (_, None) => part,
                (Otherwise::Filtered, condition) => {
                    filter = condition;
                    part
                }
                (otherwise, Some(condition)) => {
                    let zero = || Box::new(Expr::literal(Value::Integer(0), ty));
                    let otherwise = (otherwise == Otherwise::Zero).then(zero);
                    Expr::Case { branches: vec![(condition, part)], otherwise, ty }
                }
            };
            args = vec![arg];
        }
        AggregateCall { function, args, distinct: false, filter, order_by: Vec::new(), ty }
    }
}

fn rename(expr: &mut Expr, renamed: &HashMap<ColumnId, Expr>) {
    let old = std::mem::replace(expr, Expr::boolean(true));
    *expr = substitute(old, renamed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimizer::testing::Builder;
    use crate::plan::{Join, JoinKey};

    fn call(function: AggregateFunction, args: Vec<Expr>) -> AggregateCall {
        AggregateCall {
            function,
            args,
            distinct: false,
            filter: None,
            order_by: Vec::new(),
            ty: DataType::Int64,
        }
    }

    /// The plan of some calls over a fact table joined with days, by week.
    fn plan(kind: JoinKind, days: u64, calls: impl Fn(&Builder) -> Vec<AggregateCall>) -> String {
        let mut b = Builder::default();
        let facts = b.scan("facts", 1_000_000, &[("day", days), ("price", 1000), ("store", 10)]);
        let dates = b.scan_with_key("dates", days, &[("d", days), ("week", 50), ("name", 7)], Some(0));
        let (left, right) = (b.column("day"), b.column("d"));
        let on = vec![JoinKey { left, right, null_equals_null: false }];
        let (left, right, residual) = (Box::new(facts), Box::new(dates), Vec::new());
        let join = Node::Join(Join { left, right, kind, on, residual });
        let calls = calls(&b);
        let week = b.column("week");
        let mut plan = b.plan(join, &[]);
        let groups = vec![(plan.columns.add("w", week.ty(), true), week)];
        let aggregates: Vec<(ColumnId, AggregateCall)> =
            calls.into_iter().map(|call| (plan.columns.add("r", call.ty, true), call)).collect();
        let input = Box::new(take(&mut plan.root));
        plan.root = Node::Aggregate(Aggregate { input, groups, aggregates });
        apply(&mut plan).unwrap();
        plan.to_string()
    }

    fn aggregations(text: &str) -> usize {
        text.matches("Aggregate").count()
    }

    #[test]
    fn sums_and_counts_begin_below_a_join_that_leaves_few_rows() {
        use AggregateFunction as F;
        let sum = |b: &Builder| call(F::Sum, vec![b.column("price")]);
        assert_eq!(aggregations(&plan(JoinKind::Inner, 400, |b| vec![sum(b)])), 2);
        assert_eq!(aggregations(&plan(JoinKind::Left, 400, |b| vec![sum(b)])), 2);
        assert_eq!(aggregations(&plan(JoinKind::Full, 400, |b| vec![sum(b)])), 1);
        assert_eq!(aggregations(&plan(JoinKind::Inner, 900_000, |b| vec![sum(b)])), 1, "nothing is saved");
        assert_eq!(aggregations(&plan(JoinKind::Inner, 400, |_| vec![call(F::CountStar, vec![])])), 2);
        let smallest = |b: &Builder| vec![sum(b), call(F::Min, vec![b.column("name")])];
        assert_eq!(aggregations(&plan(JoinKind::Inner, 400, smallest)), 2);
        let of_days = |b: &Builder| vec![sum(b), call(F::Sum, vec![b.column("name")])];
        assert_eq!(aggregations(&plan(JoinKind::Inner, 400, of_days)), 1, "days count as often as facts");
        let mean = |b: &Builder| vec![call(F::Avg, vec![b.column("price")])];
        assert_eq!(aggregations(&plan(JoinKind::Inner, 400, mean)), 1);
    }

    #[test]
    fn a_pivot_needs_one_inner_sum() {
        let pivot = |b: &Builder| {
            let of = |day: i128| {
                let is_day = Expr::compare(
                    entasis_vector::expr::CompareOp::Eq,
                    b.column("name"),
                    Expr::literal(Value::Integer(day), DataType::Int64),
                );
                let branches = vec![(is_day, b.column("price"))];
                let case = Expr::Case { branches, otherwise: None, ty: DataType::Int64 };
                call(AggregateFunction::Sum, vec![case])
            };
            (0..7).map(of).collect()
        };
        let text = plan(JoinKind::Inner, 400, pivot);
        assert_eq!(aggregations(&text), 2, "{text}");
        assert_eq!(text.matches("sum(price)").count(), 1, "{text}");
    }
}
