//! Measuring what joins cost: joins of tables that are made for it run on one worker, and their times are
//! compared.
//!
//! | figure | from |
//! |---|---|
//! | `step` | few rows kept, many probed, each with one partner: half of a row, as a pair is a step too |
//! | `fetch` | the same, and columns of the kept rows read above |
//! | `row`, `kept_byte` | many rows kept and one probed, with one column and with many |
//! | `encode`, `field` | the two before, kept as tuples |

use super::{ROWS, fastest, scattered, table};
use crate::context::QueryContext;
use crate::cost::Costs;
use crate::exec::{Collector, execute};
use crate::plan::{
    Aggregate, AggregateCall, AggregateFunction, Columns, Join, JoinKey, JoinKind, Node, Output, Plan, Scan,
};
use crate::relation::{Relation, ScanRequest, Source, Statistics};
use crate::settings::{Settings, TempCompression};
use entasis_storage::{TableOptions, TableSnapshot};
use entasis_vector::{DataType, Error, Result, Schema, Vector, statement};
use std::sync::Arc;

/// Rows of a small build side and of a large one.
pub(super) const FEW: usize = 1 << 10;
const MANY: usize = 4 * ROWS;
/// Columns beside the key.
const PAYLOAD: usize = 8;

/// Sets what joins cost.
///
/// # Errors
/// Interrupted, between two steps of at most some hundredths of a second.
pub(super) fn measure(costs: &mut Costs) -> Result<()> {
    let [few, many] = [FEW, MANY].map(|rows| relation(rows, 1 + PAYLOAD, rows));
    statement::check()?;
    let [one, probes] = [(1, 1), (MANY, FEW)].map(|(rows, keys)| relation(rows, 1, keys));
    statement::check()?;
    let columns = TempCompression::Off;
    let per = |time: f64, before: f64, count: usize| ((time - before) / count as f64).max(0.01);

    let bare = run(&probes, &few, 0, columns)?;
    costs.step = per(bare, 0.0, 2 * MANY);
    costs.fetch = per(run(&probes, &few, PAYLOAD, columns)?, bare, MANY * PAYLOAD);
    costs.field = per(run(&probes, &few, PAYLOAD, TempCompression::On)?, bare, MANY * PAYLOAD);

    let narrow = run(&one, &many, 1, columns)?;
    let wide = run(&one, &many, PAYLOAD, columns)?;
    costs.kept_byte = per(wide, narrow, MANY * (PAYLOAD - 1) * 8);
    costs.row = per(narrow, MANY as f64 * 16.0 * costs.kept_byte, MANY);
    costs.encode = per(run(&one, &many, PAYLOAD, TempCompression::On)?, wide, MANY * PAYLOAD);
    Ok(())
}

/// Nanoseconds of a join that keeps `build`, of which so many columns beside the key are read above.
fn run(
    probe: &Arc<Measured>,
    build: &Arc<Measured>,
    payload: usize,
    temp_compression: TempCompression,
) -> Result<f64> {
    let settings = Settings { threads: 1, temp_compression, ..Settings::default() };
    Probing { probe, build: Some(build), payload }.run(settings)
}

/// An aggregation over a join of two tables by their first columns, or over the first of them alone.
pub(super) struct Probing<'a> {
    pub(super) probe: &'a Arc<Measured>,
    pub(super) build: Option<&'a Arc<Measured>>,
    /// Columns of `build` beside the key that are read above the join.
    pub(super) payload: usize,
}

impl Probing<'_> {
    fn plan(&self) -> Plan {
        let mut columns = Columns::default();
        let mut scan = |relation: &Arc<Measured>, count: usize| {
            let columns = (0..count).map(|index| (columns.add("", DataType::Int64, false), index)).collect();
            Scan::all(relation.clone(), columns)
        };
        let probe = scan(self.probe, 1);
        let build = self.build.map(|build| scan(build, 1 + self.payload));
        let probe_key = columns.expr(probe.columns[0].0);
        let (input, read) = match build {
            None => (Node::Scan(probe), vec![probe_key]),
            Some(build) => {
                let build_key = columns.expr(build.columns[0].0);
                let read = build.columns[1..].iter().map(|(id, _)| columns.expr(*id)).collect();
                let join = Node::Join(Join {
                    left: Box::new(Node::Scan(probe)),
                    right: Box::new(Node::Scan(build)),
                    // It keeps its right side, whatever is known of costs.
                    kind: JoinKind::Single,
                    on: vec![JoinKey { left: probe_key, right: build_key, null_equals_null: false }],
                    residual: Vec::new(),
                });
                (join, read)
            }
        };
        let call = |function, args| AggregateCall {
            function,
            args,
            distinct: false,
            filter: None,
            order_by: Vec::new(),
            ty: DataType::Int64,
        };
        let calls = read.into_iter().map(|column| call(AggregateFunction::Max, vec![column]));
        let calls = calls.chain([call(AggregateFunction::CountStar, Vec::new())]);
        let aggregates: Vec<_> = calls.map(|call| (columns.add("", DataType::Int64, true), call)).collect();
        let output = aggregates.iter().map(|(id, _)| Output { name: String::new(), column: *id }).collect();
        let root = Node::Aggregate(Aggregate { input: Box::new(input), groups: Vec::new(), aggregates });
        Plan { root, columns, output }
    }

    /// Nanoseconds that it takes.
    ///
    /// # Errors
    /// Interrupted.
    pub(super) fn run(&self, settings: Settings) -> Result<f64> {
        let plan = self.plan();
        let context = QueryContext { settings: Arc::new(settings), ..QueryContext::default() };
        let types = plan.output.iter().map(|output| plan.columns.ty(output.column)).collect::<Vec<_>>();
        let time = fastest(3, || {
            let collector = Collector::new(&context, types.clone());
            execute(&plan, &context, &collector).expect("nothing in it can fail");
            assert_eq!(collector.into_chunks().rows, 1, "an aggregation without groups");
        });
        statement::check()?;
        Ok(time)
    }
}

/// A table of so many columns: a key, in turn each of the first `keys` numbers, a power of two,
/// and numbers in no order.
pub(super) fn relation(rows: usize, columns: usize, keys: usize) -> Arc<Measured> {
    let table = table(TableOptions::default(), &vec![DataType::Int64; columns], rows, |column, rows| {
        let value = |row: usize| match column {
            0 => (row * 7 % keys) as i64,
            _ => scattered(row + column) as i64,
        };
        Vector::from_slice(&rows.clone().map(value).collect::<Vec<_>>())
    });
    Arc::new(Measured(table.snapshot()))
}

/// A table in memory.
#[derive(Debug)]
pub(super) struct Measured(TableSnapshot);

impl Relation for Measured {
    fn name(&self) -> &str {
        self.0.name()
    }
    fn schema(&self) -> &Schema {
        self.0.schema()
    }
    fn statistics(&self) -> Statistics {
        Statistics { rows: Some(self.0.rows()), ..Statistics::default() }
    }
    fn table(&self) -> Option<&TableSnapshot> {
        Some(&self.0)
    }
    fn scan(&self, _: &ScanRequest, _: &QueryContext) -> Result<Arc<dyn Source>> {
        Err(Error::internal("the engine scans stored tables by itself"))
    }
}
