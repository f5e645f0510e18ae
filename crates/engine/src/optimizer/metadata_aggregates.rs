//! Rule: counts and extremes of a whole relation that are known are not computed.
//!
//! ```text
//! SELECT min(day), max(day), count(*) FROM 'sales.parquet'
//!     → VALUES (DATE '1998-01-02', DATE '2003-01-02', 2880404)
//! ```
//! The footers of Parquet files have them ([`Relation::certain`](crate::relation::Relation::certain)); of
//! stored tables the number of rows is known. All calls must be known: if one is not, the rows are read
//! anyway.
//!
//! Not touched: scans with filters; floats, whose order has zeros and NaNs of several kinds.

use crate::plan::tree::rewrite_up;
use crate::plan::{Aggregate, AggregateCall, AggregateFunction, Node, Plan, Scan, Values};
use entasis_vector::expr::Expr;
use entasis_vector::{DataType, Result, Value};

/// Answers what is known in the whole plan.
pub(super) fn apply(plan: &mut Plan) -> Result<()> {
    rewrite_up(&mut plan.root, &mut |node| match &node {
        Node::Aggregate(aggregate) => answer(aggregate).unwrap_or(node),
        _ => node,
    });
    Ok(())
}

/// The one row of an aggregate.
fn answer(aggregate: &Aggregate) -> Option<Node> {
    let Node::Scan(scan) = &*aggregate.input else { return None };
    if !aggregate.groups.is_empty() || aggregate.aggregates.is_empty() || !scan.filters.is_empty() {
        return None;
    }
    let (columns, row): (Vec<_>, Vec<_>) = aggregate
        .aggregates
        .iter()
        .map(|(id, call)| Some((*id, value(call, scan)?)))
        .collect::<Option<Vec<_>>>()?
        .into_iter()
        .unzip();
    Some(Node::Values(Values { columns, rows: vec![row] }))
}

/// What a call gives for all rows of a scan.
fn value(call: &AggregateCall, scan: &Scan) -> Option<Value> {
    if call.filter.is_some() {
        return None;
    }
    let count = |rows: u64| Value::Integer(rows.into());
    let column = || match &call.args[..] {
        [Expr::Column { id, ty }] if !ty.is_float() && *ty != DataType::Uuid => {
            let (_, index) = scan.columns.iter().find(|(own, _)| own == id)?;
            // A row id is no column of the relation.
            (*index < scan.relation.schema().len()).then_some(*index)
        }
        _ => None,
    };
    match call.function {
        AggregateFunction::CountStar => scan.relation.certain_rows().map(count),
        AggregateFunction::Count if !call.distinct => {
            let nulls = scan.relation.certain(column()?).nulls?;
            scan.relation.certain_rows()?.checked_sub(nulls).map(count)
        }
        AggregateFunction::Min => scan.relation.certain(column()?).min,
        AggregateFunction::Max => scan.relation.certain(column()?).max,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::QueryContext;
    use crate::plan::{Columns, Output};
    use crate::relation::{Certain, Relation, ScanRequest, Source, Statistics};
    use entasis_vector::{ColumnId, Error, Field, Schema};
    use std::sync::Arc;

    /// A relation of two columns, of which the first has a known least value and no NULL.
    #[derive(Debug)]
    struct Known(Schema);

    impl Relation for Known {
        fn name(&self) -> &str {
            "known"
        }
        fn schema(&self) -> &Schema {
            &self.0
        }
        fn statistics(&self) -> Statistics {
            Statistics::default()
        }
        fn certain_rows(&self) -> Option<u64> {
            Some(1_000)
        }
        fn certain(&self, column: usize) -> Certain {
            match column {
                0 => Certain { min: Some(Value::Integer(3)), max: None, nulls: Some(10) },
                _ => Certain { max: Some(Value::Null), ..Certain::default() },
            }
        }
        fn scan(&self, _: &ScanRequest, _: &QueryContext) -> Result<Arc<dyn Source>> {
            Err(Error::internal("it is not read"))
        }
    }

    /// The plan of some calls on columns of the relation.
    fn optimized(calls: &[(AggregateFunction, usize)], change: impl FnOnce(&mut Aggregate)) -> String {
        let mut columns = Columns::default();
        let schema: Schema = ["a", "b"].map(|name| Field::new(name, DataType::Int64)).into();
        let ids = ["a", "b"].map(|name| columns.add(name, DataType::Int64, true));
        let scan = Scan::all(Arc::new(Known(schema)), ids.into_iter().zip(0..).collect());
        let calls = calls.iter().map(|(function, column)| {
            let args = match function {
                AggregateFunction::CountStar => Vec::new(),
                _ => vec![columns.expr(ids[*column])],
            };
            let (function, ty) = (function.clone(), DataType::Int64);
            AggregateCall { function, args, distinct: false, filter: None, order_by: Vec::new(), ty }
        });
        let calls: Vec<AggregateCall> = calls.collect();
        let aggregates: Vec<(ColumnId, AggregateCall)> =
            calls.into_iter().map(|call| (columns.add("result", DataType::Int64, true), call)).collect();
        let mut aggregate = Aggregate { input: Box::new(Node::Scan(scan)), groups: Vec::new(), aggregates };
        change(&mut aggregate);
        let output = aggregate.aggregates.iter();
        let output = output.map(|(id, _)| Output { name: "result".to_owned(), column: *id }).collect();
        let mut plan = Plan { root: Node::Aggregate(aggregate), columns, output };
        apply(&mut plan).unwrap();
        match plan.root {
            Node::Values(values) => format!("{:?}", values.rows),
            _ => plan.to_string(),
        }
    }

    #[test]
    fn what_is_known_is_not_read() {
        use AggregateFunction::{Count, CountStar, Max, Min, Sum};
        let known = optimized(&[(Min, 0), (Max, 1), (CountStar, 0), (Count, 0)], |_| {});
        assert_eq!(known, "[[Integer(3), Null, Integer(1000), Integer(990)]]");
        for unknown in [(Sum, 0), (Max, 0), (Count, 1)] {
            let text = optimized(&[(Min, 0), unknown], |_| {});
            assert!(text.contains("Scan known"), "{text}");
        }
        let changes: [fn(&mut Aggregate); 4] = [
            |aggregate| aggregate.aggregates[0].1.filter = Some(Expr::boolean(true)),
            |aggregate| aggregate.aggregates[0].1.distinct = true,
            |aggregate| {
                let Node::Scan(scan) = &mut *aggregate.input else { unreachable!("it reads a relation") };
                scan.filters.push(Expr::boolean(true));
            },
            |aggregate| aggregate.groups = vec![(ColumnId(0), aggregate.aggregates[0].1.args[0].clone())],
        ];
        for change in changes {
            let text = optimized(&[(Count, 0)], change);
            assert!(text.contains("Scan known"), "{text}");
        }
    }
}
