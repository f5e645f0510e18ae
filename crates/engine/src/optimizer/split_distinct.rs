//! Rule: an aggregation of distinct values becomes two, of which the inner one removes the duplicates.
//!
//! `SELECT g, count(DISTINCT x), sum(y) … GROUP BY g` is
//! `SELECT g, count(x), sum(s) FROM (SELECT g, x, sum(y) AS s … GROUP BY g, x) GROUP BY g`. Group tables are
//! built by all workers and merged in partitions, while a call that removes duplicates by itself collects
//! them on one thread at the end.
//!
//! It applies where all distinct calls have the same argument and the others can be aggregated twice. A count
//! can only below group keys: without any, the outer sum over no groups is NULL and not 0.

use super::two_steps::in_two_steps;
use crate::plan::freedom::may_repeat;
use crate::plan::tree::take;
use crate::plan::{Aggregate, AggregateCall, AggregateFunction, Columns, Node, Plan};
use entasis_vector::expr::Expr;
use entasis_vector::{ColumnId, Result};

/// Splits the aggregations of the whole plan.
pub(super) fn apply(plan: &mut Plan) -> Result<()> {
    split(&mut plan.root, &mut plan.columns);
    Ok(())
}

fn split(node: &mut Node, columns: &mut Columns) {
    node.children_mut().into_iter().for_each(|child| split(child, columns));
    let Node::Aggregate(aggregate) = node else { return };
    let Some(argument) = distinct_argument(&aggregate.groups, &aggregate.aggregates) else { return };
    let mut inner = Vec::new();
    let mut inner_groups = Vec::new();
    for (id, expr) in &mut aggregate.groups {
        let below = columns.add(columns.get(*id).name.clone(), expr.ty(), true);
        inner_groups.push((below, std::mem::replace(expr, Expr::column(below, expr.ty()))));
    }
    let value = columns.add("distinct", argument.ty(), true);
    inner_groups.push((value, argument.clone()));
    for (id, call) in &mut aggregate.aggregates {
        if is_distinct(call) {
            call.args = vec![Expr::column(value, argument.ty())];
            call.distinct = false;
            continue;
        }
        let (once, twice, ty) = in_two_steps(call).expect("tested by distinct_argument");
        let part = columns.add(columns.get(*id).name.clone(), ty, true);
        let below = AggregateCall { function: once, ty, ..call.clone() };
        *call = AggregateCall {
            function: twice,
            args: vec![Expr::column(part, ty)],
            filter: None,
            ..call.clone()
        };
        inner.push((part, below));
    }
    let input = Box::new(take(&mut aggregate.input));
    *aggregate.input = Node::Aggregate(Aggregate { input, groups: inner_groups, aggregates: inner });
}

/// True if duplicates change the result and are to be removed.
fn is_distinct(call: &AggregateCall) -> bool {
    use AggregateFunction as F;
    call.distinct && matches!(call.function, F::Count | F::Sum | F::Avg | F::External(_))
}

/// True if the rule makes two aggregations of one.
pub(super) fn is_split(groups: &[(ColumnId, Expr)], calls: &[(ColumnId, AggregateCall)]) -> bool {
    distinct_argument(groups, calls).is_some()
}

/// What the distinct calls of an aggregation have as their argument, if the rule applies.
fn distinct_argument(groups: &[(ColumnId, Expr)], calls: &[(ColumnId, AggregateCall)]) -> Option<Expr> {
    let calls = || calls.iter().map(|(_, call)| call);
    let mut distinct = calls().filter(|call| is_distinct(call));
    let first = distinct.next()?;
    let [argument] = &first.args[..] else { return None };
    let fits = |call: &AggregateCall| {
        // An external function may care for the order of its rows.
        !matches!(call.function, AggregateFunction::External(_))
            && call.args == first.args
            && call.filter.is_none()
    };
    let others_fit = calls().filter(|call| !is_distinct(call)).all(|call| {
        let counts = matches!(call.function, AggregateFunction::Count | AggregateFunction::CountStar);
        in_two_steps(call).is_some() && !(counts && groups.is_empty())
    });
    let may_repeat = groups.iter().map(|(_, expr)| expr).chain([argument]).all(may_repeat);
    (fits(first) && distinct.all(fits) && others_fit && may_repeat).then(|| argument.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimizer::testing::Builder;
    use entasis_vector::DataType;

    fn call(function: AggregateFunction, args: Vec<Expr>, distinct: bool) -> AggregateCall {
        AggregateCall { function, args, distinct, filter: None, order_by: Vec::new(), ty: DataType::Int64 }
    }

    fn split_plan(grouped: bool, calls: impl Fn(&Builder) -> Vec<AggregateCall>) -> String {
        let mut b = Builder::default();
        let scan = b.scan("t", 1000, &[("g", 10), ("x", 100), ("y", 100)]);
        let calls = calls(&b);
        let mut plan = b.plan(scan, &[]);
        let key = match plan.root.columns()[..] {
            [g, ..] => plan.columns.expr(g),
            [] => unreachable!(),
        };
        let groups = if grouped { vec![(plan.columns.add("g", key.ty(), false), key)] } else { Vec::new() };
        let aggregates: Vec<(ColumnId, AggregateCall)> =
            calls.into_iter().map(|call| (plan.columns.add("r", call.ty, true), call)).collect();
        let input = Box::new(take(&mut plan.root));
        plan.root = Node::Aggregate(Aggregate { input, groups, aggregates });
        apply(&mut plan).unwrap();
        plan.to_string()
    }

    #[test]
    fn it_splits_where_every_call_can_be_split() {
        use AggregateFunction::{Avg, Count, CountStar, Sum};
        let count = |text: &str| text.matches("Aggregate").count();
        let distinct = |b: &Builder| call(Count, vec![b.column("x")], true);
        assert_eq!(count(&split_plan(true, |b| vec![distinct(b)])), 2);
        assert_eq!(count(&split_plan(false, |b| vec![distinct(b)])), 2);
        let with = |f: AggregateFunction| {
            move |b: &Builder| vec![distinct(b), call(f.clone(), vec![b.column("y")], false)]
        };
        assert_eq!(count(&split_plan(true, with(Sum))), 2);
        assert_eq!(count(&split_plan(true, with(Avg))), 1, "a mean of means is another");
        let star = |b: &Builder| vec![distinct(b), call(CountStar, vec![], false)];
        assert_eq!(count(&split_plan(true, star)), 2);
        assert_eq!(count(&split_plan(false, star)), 1, "a sum of no counts is NULL");
        let two = |b: &Builder| vec![distinct(b), call(Count, vec![b.column("y")], true)];
        assert_eq!(count(&split_plan(true, two)), 1);
        let none = |b: &Builder| vec![call(Count, vec![b.column("y")], false)];
        assert_eq!(count(&split_plan(true, none)), 1);
    }
}
