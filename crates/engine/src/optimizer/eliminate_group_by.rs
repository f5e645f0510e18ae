//! Rule: where every group is one row, nothing is grouped.
//!
//! ```text
//! SELECT c.id, count(o.id) FROM customer c LEFT JOIN orders o ON o.customer = c.id GROUP BY c.id
//!     → the rule eager:  sums by c.id of customer ⟕ (counts of orders by customer)
//!     → this rule:       customer ⟕ (counts of orders by customer), with 0 for customers without any
//! ```
//! So orders are grouped and joined by one hash table, and no second one is built: a group-join (G. Moerkotte
//! and T. Neumann, "Accelerating Queries with Group-By and Join by Groupjoin", VLDB 2011). `SELECT DISTINCT`
//! of columns with a key is no work, either.
//!
//! A group is one row if the group keys contain what is unique in the input ([`is_unique`]). Then the sum of
//! a group is the value of its row, and a count is 1 or 0. Left alone: sums of floats, of which one value may
//! be -0.0 and is no sum; means; functions of other libraries.

use super::properties::is_unique;
use crate::plan::tree::{ColumnSet, take};
use crate::plan::{Aggregate, AggregateCall, AggregateFunction, Node, Plan, Project};
use entasis_vector::expr::Expr;
use entasis_vector::{ColumnId, DataType, Result, Value};

/// Finds such aggregations in the whole plan.
pub(super) fn apply(plan: &mut Plan) -> Result<()> {
    ungroup(&mut plan.root);
    Ok(())
}

fn ungroup(node: &mut Node) {
    node.children_mut().into_iter().for_each(ungroup);
    match node {
        Node::Aggregate(aggregate) => {
            if let Some(exprs) = of_single_rows(aggregate) {
                let input = Box::new(take(&mut aggregate.input));
                *node = Node::Project(Project { input, exprs });
            }
        }
        Node::Distinct(distinct) if !distinct.is_partial => {
            let keys: ColumnSet = distinct.keys.iter().copied().collect();
            if is_unique(&distinct.input, &keys) {
                *node = take(&mut distinct.input);
            }
        }
        _ => {}
    }
}

/// What the columns of `aggregate` are, if each group is one row.
fn of_single_rows(aggregate: &Aggregate) -> Option<Vec<(ColumnId, Expr)>> {
    let key = |(_, expr): &(ColumnId, Expr)| match expr {
        Expr::Column { id, .. } => Some(*id),
        _ => None,
    };
    let keys: ColumnSet = aggregate.groups.iter().filter_map(key).collect();
    if aggregate.groups.is_empty() || !is_unique(&aggregate.input, &keys) {
        return None;
    }
    let calls = aggregate.aggregates.iter().map(|(id, call)| Some((*id, of_single_row(call)?)));
    aggregate.groups.iter().cloned().map(Some).chain(calls).collect()
}

/// The result of `call` for a group of one row.
fn of_single_row(call: &AggregateCall) -> Option<Expr> {
    let number = |value| Expr::literal(Value::Integer(value), DataType::Int64);
    let argument = || match &call.args[..] {
        [argument] => Some(argument.clone()),
        _ => None,
    };
    let choose = |condition: Expr, then: Expr, otherwise: Option<Expr>| Expr::Case {
        ty: then.ty(),
        branches: vec![(condition, then)],
        otherwise: otherwise.map(Box::new),
    };
    let (value, without) = match call.function {
        AggregateFunction::CountStar => (number(1), Some(number(0))),
        AggregateFunction::Count => {
            let is_null = Expr::IsNull(Box::new(argument()?));
            (choose(is_null, number(0), Some(number(1))), Some(number(0)))
        }
        AggregateFunction::Sum if !argument()?.ty().is_float() => {
            let argument = argument()?;
            let cast = |input: Expr| Expr::Cast { input: Box::new(input), ty: call.ty, lenient: false };
            (if argument.ty() == call.ty { argument } else { cast(argument) }, None)
        }
        AggregateFunction::Min
        | AggregateFunction::Max
        | AggregateFunction::AnyValue
        | AggregateFunction::BoolAnd
        | AggregateFunction::BoolOr => (argument()?, None),
        _ => return None,
    };
    if value.ty() != call.ty {
        return None;
    }
    Some(match &call.filter {
        None => value,
        Some(filter) => choose(filter.clone(), value, without),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimizer::testing::Builder;

    fn optimized(groups: &[&str], calls: Vec<AggregateCall>) -> String {
        let mut b = Builder::default();
        let table = b.scan("t", 1000, &[("a", 10), ("b", 100), ("c", 100)]);
        let inner = vec![(b.columns.add("k", DataType::Int64, true), b.column("a"))];
        let sum = call(AggregateFunction::Sum, vec![b.column("b")]);
        let inner_sum = vec![(b.columns.add("s", DataType::Int64, true), sum)];
        let input =
            Node::Aggregate(Aggregate { input: Box::new(table), groups: inner, aggregates: inner_sum });
        let keys: Vec<(ColumnId, Expr)> = groups
            .iter()
            .map(|name| (b.columns.add(format!("{name}'"), DataType::Int64, true), b.column(name)))
            .collect();
        let aggregates: Vec<(ColumnId, AggregateCall)> = calls
            .into_iter()
            .enumerate()
            .map(|(i, mut call)| {
                if call.function.name() != "count" || i > 0 {
                    call.args = vec![b.column("s")];
                }
                (b.columns.add(format!("r{i}"), DataType::Int64, true), call)
            })
            .collect();
        let root = Node::Aggregate(Aggregate { input: Box::new(input), groups: keys, aggregates });
        let mut plan = b.plan(root, &["r0"]);
        apply(&mut plan).unwrap();
        plan.to_string()
    }

    fn call(function: AggregateFunction, args: Vec<Expr>) -> AggregateCall {
        let (filter, order_by) = (None, Vec::new());
        AggregateCall { function, args, distinct: false, filter, order_by, ty: DataType::Int64 }
    }

    #[test]
    fn groups_of_one_row_are_that_row() {
        let of = |function| call(function, Vec::new());
        let calls = || {
            vec![of(AggregateFunction::CountStar), of(AggregateFunction::Sum), of(AggregateFunction::Count)]
        };
        let text = optimized(&["k"], calls());
        assert!(text.contains("1 AS r0") && text.contains("s AS r1") && text.contains("IS NULL"), "{text}");
        assert_eq!(text.matches("Aggregate").count(), 1, "{text}");
        let text = optimized(&["s"], calls());
        assert_eq!(text.matches("Aggregate").count(), 2, "not by a unique key: {text}");
        let text = optimized(&["k"], vec![of(AggregateFunction::Avg)]);
        assert_eq!(text.matches("Aggregate").count(), 2, "a mean: {text}");
    }
}
