//! One join of two relations by their first columns, run once and timed.

use super::ready::Sum;
use super::timed::timed;
use entasis_engine::exec::{QueryContext, Settings, execute};
use entasis_engine::plan::{Columns, Join, JoinKey, JoinKind, Node, Output, Plan, Scan};
use entasis_engine::relation::Relation;
use entasis_vector::{ColumnId, DataType};
use std::sync::Arc;

/// An input: a relation whose first column is the key, and how many of the columns after it come out.
pub struct Input<'a> {
    pub relation: &'a Arc<dyn Relation>,
    pub payloads: usize,
}

/// What a run gives.
pub struct Outcome {
    /// See [`timed`].
    pub milliseconds: f64,
    /// The sum of the last column.
    pub sum: i64,
    /// What is said of the join.
    pub note: String,
}

/// Runs the inner join of two inputs whose columns all have type `ty`, as it was written: inputs are not
/// exchanged by the optimizer. All payload comes out, or the left key if there is none.
pub fn join(left: Input<'_>, right: Input<'_>, ty: DataType, settings: Settings) -> Outcome {
    let mut columns = Columns::default();
    let mut scan = |input: &Input<'_>| {
        let ids: Vec<ColumnId> =
            (0..=input.payloads).map(|i| columns.add(format!("c{i}"), ty, false)).collect();
        let columns = ids.iter().copied().zip(0..).collect();
        (Box::new(Node::Scan(Scan::all(input.relation.clone(), columns))), ids)
    };
    let ((left, l), (right, r)) = (scan(&left), scan(&right));
    let on = vec![JoinKey { left: columns.expr(l[0]), right: columns.expr(r[0]), null_equals_null: false }];
    let root = Node::Join(Join { left, right, kind: JoinKind::Inner, on, residual: Vec::new() });
    let mut read: Vec<ColumnId> = l[1..].iter().chain(&r[1..]).copied().collect();
    if read.is_empty() {
        read.push(l[0]);
    }
    let output = read.into_iter().map(|column| Output { name: column.to_string(), column }).collect();
    let plan = Plan { root, columns, output };
    let settings = Settings { profile: true, optimize: false, ..settings };
    let context = QueryContext { settings: Arc::new(settings), ..QueryContext::default() };
    let sum = Sum::default();
    let is_alone = context.settings.threads == 1;
    let (milliseconds, profile) = timed(is_alone, || execute(&plan, &context, &sum));
    let profile = profile.expect("a join of integers runs");
    let note = profile.root.expect("asked for").details.join("; ");
    Outcome { milliseconds, sum: sum.total(), note }
}
