//! Rule: rows that repeat are dropped before joins whose output is made distinct later.
//!
//! `SELECT DISTINCT c.name, d.day FROM f JOIN c ON f.c = c.id JOIN d ON f.d = d.id` wants each pair `(f.c,
//! f.d)` once: what a row repeats, its matches repeat. So a partial `Distinct` goes below the joins, by the
//! columns that are read above it. It drops what it has seen shortly before, keeps nothing else, and
//! suspends itself if nothing repeats ([`crate::exec`]); so it needs no estimate to be right.
//!
//! Duplicates make no difference below `DISTINCT`, groups without calls or with minima and the like only,
//! set operations without `ALL`, and on the right side of semi and anti joins; through filters, projections
//! and joins. A place above a join is taken only if fewer columns are read there than below it.
//!
//! Not done: texts, more than three columns.

use super::properties::is_unique;
use crate::estimate::estimate;
use crate::plan::freedom::{is_volatile_join, may_repeat};
use crate::plan::tree::{ColumnSet, columns_of, reads, reads_all, take};
use crate::plan::{Aggregate, AggregateCall, AggregateFunction, Columns, Distinct, Join, JoinKind};
use crate::plan::{Node, Plan, Project, SetKind};
use entasis_vector::{ColumnId, Result};

/// The number of expected rows from which it is tried.
const MANY_ROWS: f64 = if cfg!(test) { 10.0 } else { 50_000.0 };

/// The share of distinct values from which a column is not expected to repeat.
const DISTINCT: f64 = 0.7;

/// Drops repeated rows in the whole plan.
pub(super) fn apply(plan: &mut Plan) -> Result<()> {
    walk(&mut plan.root, None, &plan.columns);
    Ok(())
}

/// Walks below `node`. Of its rows those that repeat in the columns `read` make no difference, if there are
/// some. Returns the least number of columns in which rows are compared below, if they are.
fn walk(node: &mut Node, read: Option<ColumnSet>, columns: &Columns) -> Option<usize> {
    match node {
        Node::Distinct(distinct) => {
            let keys = distinct.keys.iter().copied().collect();
            walk(&mut distinct.input, Some(keys), columns)
        }
        Node::Aggregate(aggregate) => {
            let read = ignores_duplicates(aggregate).then(|| reads_of(aggregate));
            walk(&mut aggregate.input, read, columns)
        }
        Node::SetOperation(set) => {
            let ids = set.columns.clone();
            for (input, own) in &mut set.inputs {
                let read = match (set.all, &read) {
                    (false, _) => Some(own.iter().copied().collect()),
                    (true, Some(read)) if set.kind == SetKind::Union => {
                        let wanted = ids.iter().zip(&*own).filter(|(id, _)| read.contains(**id));
                        Some(wanted.map(|(_, own)| *own).collect())
                    }
                    _ => None,
                };
                walk(input, read, columns);
            }
            None
        }
        Node::Filter(filter) => {
            let is_volatile = !filter.predicates.iter().all(may_repeat);
            let read = read.filter(|_| !is_volatile).map(|mut read| {
                read.add(&reads_all(&filter.predicates));
                read
            });
            walk(&mut filter.input, read, columns)
        }
        Node::Project(project) => {
            let read = read.and_then(|read| read_below(project, &read));
            walk(&mut project.input, read, columns)
        }
        Node::Join(join) => walk_join(join, read, columns),
        _ => {
            node.children_mut().into_iter().for_each(|child| _ = walk(child, None, columns));
            None
        }
    }
}

fn walk_join(join: &mut Join, read: Option<ColumnSet>, columns: &Columns) -> Option<usize> {
    use JoinKind::{Anti, AsOf, Full, Inner, Left, Mark, NullAwareAnti, Right, Semi, Single};
    let is_volatile = is_volatile_join(join);
    let own = {
        let keys = join.on.iter().flat_map(|key| [&key.left, &key.right]);
        reads_all(keys.chain(&join.residual))
    };
    let above = read.filter(|_| !is_volatile).map(|mut read| {
        read.add(&own);
        read
    });
    let right = match join.kind {
        Inner | Left | Right | Full => above.clone(),
        // A match once or twice is a match.
        Semi | Anti | NullAwareAnti | Mark { .. } => Some(own).filter(|_| !is_volatile),
        Single | AsOf { .. } => None,
    };
    let left = place(&mut join.left, above, columns);
    let right = place(&mut join.right, right, columns);
    left.into_iter().chain(right).min()
}

/// Drops repeated rows of an input of a join, and below it. See [`walk`].
fn place(node: &mut Node, read: Option<ColumnSet>, columns: &Columns) -> Option<usize> {
    let read = read.map(|mut read| {
        read.retain(&columns_of(node));
        read
    });
    let below = walk(node, read.clone(), columns);
    let Some(read) = read else { return below };
    let keys: Vec<_> = read.iter().collect();
    let fits = (1..=Distinct::MOST_PARTIAL).contains(&keys.len())
        && below.is_none_or(|below| keys.len() < below)
        && keys.iter().all(|id| Distinct::may_be_partial(columns.ty(*id).physical()))
        && !matches!(node, Node::Distinct(_) | Node::Aggregate(_) | Node::Values(_))
        && !is_unique(node, &read)
        && do_repeat(node, &keys, columns);
    if !fits {
        return below;
    }
    let known = Some(keys.len());
    let input = Box::new(take(node));
    *node = Node::Distinct(Distinct { input, keys, is_partial: true });
    known
}

/// True if many rows are expected, and none of these columns to have another value in nearly each.
fn do_repeat(node: &Node, keys: &[ColumnId], columns: &Columns) -> bool {
    let expected = estimate(node, columns);
    let repeats = |id: &ColumnId| expected.column(*id).distinct < DISTINCT * expected.rows;
    expected.rows >= MANY_ROWS && keys.iter().all(repeats)
}

/// True if no call of an aggregation counts how often a row comes.
fn ignores_duplicates(aggregate: &Aggregate) -> bool {
    use AggregateFunction as F;
    let ignores = |(_, call): &(_, AggregateCall)| {
        let is_native = !matches!(call.function, F::External(_));
        let is_extreme = matches!(call.function, F::Min | F::Max | F::BoolAnd | F::BoolOr | F::AnyValue);
        call.order_by.is_empty() && is_native && (is_extreme || call.distinct)
    };
    let calls = aggregate.aggregates.iter();
    let mut exprs = calls.clone().flat_map(|(_, call)| call.args.iter().chain(&call.filter));
    let mut groups = aggregate.groups.iter();
    groups.all(|(_, expr)| may_repeat(expr)) && exprs.all(may_repeat) && calls.clone().all(ignores)
}

/// What an aggregation reads.
fn reads_of(aggregate: &Aggregate) -> ColumnSet {
    let calls = aggregate.aggregates.iter();
    let exprs = calls.flat_map(|(_, call)| call.args.iter().chain(&call.filter));
    reads_all(exprs.chain(aggregate.groups.iter().map(|(_, expr)| expr)))
}

/// What of a projection's input is read, if `read` is read of its output.
fn read_below(project: &Project, read: &ColumnSet) -> Option<ColumnSet> {
    let own: ColumnSet = project.exprs.iter().map(|(id, _)| *id).collect();
    let mut below: ColumnSet = read.iter().filter(|id| !own.contains(*id)).collect();
    for (_, expr) in project.exprs.iter().filter(|(id, _)| read.contains(*id)) {
        if !may_repeat(expr) {
            return None;
        }
        below.add(&reads(expr));
    }
    Some(below)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimizer::testing::Builder;
    use crate::plan::JoinKey;
    use entasis_vector::DataType;

    fn join(b: &Builder, left: Node, right: Node, kind: JoinKind, on: (&str, &str)) -> Node {
        let (one, other) = (b.column(on.0), b.column(on.1));
        let on = vec![JoinKey { left: one, right: other, null_equals_null: false }];
        Node::Join(Join { left: Box::new(left), right: Box::new(right), kind, on, residual: Vec::new() })
    }

    /// The text of `top` over facts that are joined with clients and days, after the rule, and how often rows
    /// that repeat are dropped in it.
    fn dropped(
        rows: u64,
        unique: Option<usize>,
        top: impl Fn(&mut Builder, Node) -> Node,
    ) -> (String, usize) {
        let mut b = Builder::default();
        let facts = b.scan_with_key("facts", rows, &[("c", 1000), ("d", 300), ("n", 99)], unique);
        let clients = b.scan_with_key("clients", 1000, &[("client", 1000), ("age", 90)], Some(0));
        let days = b.scan_with_key("days", 30, &[("day", 300), ("week", 50)], Some(0));
        let with_days = join(&b, facts, days, JoinKind::Inner, ("d", "day"));
        let all = join(&b, with_days, clients, JoinKind::Inner, ("c", "client"));
        let root = top(&mut b, all);
        let mut plan = b.plan(root, &[]);
        apply(&mut plan).unwrap();
        let text = plan.to_string();
        let count = text.matches("Distinct partial").count();
        (text, count)
    }

    fn groups(b: &mut Builder, input: Node, by: &str, call: Option<AggregateFunction>) -> Node {
        let (key, value) = (b.column(by), b.column("n"));
        let groups = vec![(b.columns.add("key", DataType::Int64, true), key)];
        let calls = call.into_iter().map(|function| {
            let call = AggregateCall {
                function,
                args: vec![value.clone()],
                distinct: false,
                filter: None,
                order_by: Vec::new(),
                ty: DataType::Int64,
            };
            (b.columns.add("call", DataType::Int64, true), call)
        });
        let aggregates = calls.collect();
        Node::Aggregate(Aggregate { input: Box::new(input), groups, aggregates })
    }

    #[test]
    fn rows_are_dropped_where_the_fewest_columns_are_read() {
        let ages = |b: &mut Builder, input: Node| {
            let keys = vec![b.id("age"), b.id("week")];
            Node::Distinct(Distinct::new(input, keys))
        };
        let (text, count) = dropped(100_000, None, ages);
        assert_eq!(count, 1, "above the scan, and not where as many columns are read: {text}");
        // Only the client is read above the join with days.
        let (text, count) = dropped(100_000, None, |b, input| groups(b, input, "age", None));
        assert_eq!(count, 2, "{text}");
        let least = |b: &mut Builder, input: Node| groups(b, input, "age", Some(AggregateFunction::Min));
        assert_eq!(dropped(100_000, None, least).1, 2);
    }

    #[test]
    fn nothing_is_dropped_where_rows_count_or_are_few_or_unique() {
        let sum = |b: &mut Builder, input: Node| groups(b, input, "age", Some(AggregateFunction::Sum));
        assert_eq!(dropped(100_000, None, sum).1, 0);
        let ages = |b: &mut Builder, input: Node| groups(b, input, "age", None);
        assert_eq!(dropped(5, None, ages).1, 0);
        let (text, count) = dropped(100_000, Some(1), ages);
        assert_eq!(count, 1, "days are unique, clients repeat: {text}");
        assert_eq!(dropped(100_000, None, |_, input| input).1, 0);
    }

    #[test]
    fn the_right_side_of_a_semi_join_is_wanted_once() {
        for (kind, expected) in
            [(JoinKind::Semi, 1), (JoinKind::Anti, 1), (JoinKind::Inner, 0), (JoinKind::Single, 0)]
        {
            let mut b = Builder::default();
            let few = b.scan("few", 1000, &[("a", 1000)]);
            let many = b.scan("many", 100_000, &[("b", 1000), ("x", 5)]);
            let root = join(&b, few, many, kind, ("a", "b"));
            let mut plan = b.plan(root, &[]);
            apply(&mut plan).unwrap();
            let text = plan.to_string();
            assert_eq!(text.matches("Distinct partial b").count(), expected, "{text}");
        }
    }
}
