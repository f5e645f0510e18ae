//! Window functions over many rows in few or many partitions: seconds, and the most memory that was reserved.
//!
//! `cargo run --release -p entasis-engine --example windows [MILLIONS OF ROWS [PART OF A CALL'S NAME]]`
//!
//! Rows of a stored table: a partition (one of 1, 1000 or a million), an order (a random number of 32 bits),
//! a number below 1000, a double. Whoever takes the results adds up the last column.

mod median;
mod random;
mod stored;

use entasis_engine::exec::{QueryContext, ResultSink, ResultWorker, Settings, execute};
use entasis_engine::optimizer::optimize;
use entasis_engine::plan::{
    AggregateFunction, Bound, Columns, Exclude, Filter, Frame, FrameUnits, Node, Output, Plan, Scan, SortKey,
    Window, WindowCall, WindowFunction,
};
use entasis_storage::Table;
use entasis_vector::expr::{CompareOp, Expr};
use entasis_vector::{Chunk, DataType, Field, PhysicalType, Result, Selection, Value, Vector};
use median::Median;
use random::Random;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use stored::Stored;

const CHUNK: usize = 2048;

/// Counts rows and adds up the values of their last column.
#[derive(Default)]
struct Sums(Arc<[AtomicU64; 2]>);

impl ResultSink for Sums {
    fn worker(&self) -> Result<Box<dyn ResultWorker>> {
        Ok(Box::new(Sums(self.0.clone())))
    }
}

impl ResultWorker for Sums {
    fn push(&mut self, chunk: &Chunk) -> Result<()> {
        let last = chunk.columns().len() - 1;
        let vector = chunk.vector(last);
        let at = |row: usize| chunk.positions(last).map_or(row, |positions| positions[row] as usize);
        let valid = (0..chunk.len()).map(at).filter(|&position| vector.is_valid(position));
        let sum = match vector.physical() {
            PhysicalType::F64 => {
                valid.map(|position| vector.values::<f64>()[position] as u64).fold(0, u64::wrapping_add)
            }
            _ => valid.map(|position| vector.values::<u64>()[position]).fold(0, u64::wrapping_add),
        };
        self.0[0].fetch_add(chunk.len() as u64, Ordering::Relaxed);
        self.0[1].fetch_add(sum, Ordering::Relaxed);
        Ok(())
    }
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

fn table(rows: usize, partitions: u64) -> Arc<Table> {
    let fields =
        [("p", DataType::Int64), ("o", DataType::Int64), ("v", DataType::Int64), ("d", DataType::Float64)];
    let table = Table::new("t", fields.map(|(name, ty)| Field::new(name, ty)).into_iter().collect());
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut appender = table.appender();
    for first in (0..rows).step_by(CHUNK) {
        let count = CHUNK.min(rows - first);
        let mut chunk = Chunk::new();
        chunk.reset(count);
        let group = chunk.push_group(Selection::ALL);
        let mut column = |most: u64| (0..count).map(|_| random.below(most) as i64).collect::<Vec<i64>>();
        let (p, o, v) = (column(partitions), column(1 << 32), column(1000));
        let d: Vec<f64> = column(1 << 30).into_iter().map(|v| v as f64 / 1e3).collect();
        [p, o, v].iter().for_each(|values| chunk.push_column(Vector::from_slice(values), group));
        chunk.push_column(Vector::from_slice(&d), group);
        appender.append(&chunk, 0).expect("no constraint");
    }
    table.commit(vec![appender.finish()]).expect("no constraint");
    table
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let millions: f64 = arguments.next().map_or(10.0, |text| text.parse().expect("a number"));
    let wanted = arguments.next().unwrap_or_default();
    let rows = (millions * 1e6) as usize;
    let preceding = |n: i128| Frame {
        units: FrameUnits::Rows,
        start: Bound::Preceding(Expr::literal(Value::Integer(n), DataType::Int64)),
        end: Bound::CurrentRow,
        exclude: Exclude::NoOthers,
    };
    let (big, double) = (DataType::Int64, DataType::Float64);
    let aggregate = WindowFunction::Aggregate;
    let calls = [
        ("row_number", WindowFunction::RowNumber, None, big, Frame::whole()),
        ("rank", WindowFunction::Rank, None, big, Frame::whole()),
        ("lag", WindowFunction::Lag, Some(2), big, Frame::whole()),
        ("running sum", aggregate(AggregateFunction::Sum), Some(2), big, Frame::up_to_peers()),
        ("running sum of doubles", aggregate(AggregateFunction::Sum), Some(3), double, Frame::up_to_peers()),
        ("avg of 10", aggregate(AggregateFunction::Avg), Some(2), double, preceding(9)),
        ("avg of 100,000", aggregate(AggregateFunction::Avg), Some(2), double, preceding(99_999)),
        ("avg of 10 doubles", aggregate(AggregateFunction::Avg), Some(3), double, preceding(9)),
        ("avg of 100,000 doubles", aggregate(AggregateFunction::Avg), Some(3), double, preceding(99_999)),
        ("max of 100", aggregate(AggregateFunction::Max), Some(2), big, preceding(99)),
        (
            "median of 100",
            aggregate(AggregateFunction::External(Arc::new(Median))),
            Some(2),
            double,
            preceding(99),
        ),
        (
            "median of 100,000",
            aggregate(AggregateFunction::External(Arc::new(Median))),
            Some(2),
            double,
            preceding(99_999),
        ),
        ("top 3", WindowFunction::RowNumber, None, big, Frame::whole()),
    ];
    for partitions in [1, 1000, 1_000_000] {
        let table = table(rows, partitions);
        for (name, function, argument, ty, frame) in calls.iter().filter(|(name, ..)| name.contains(&wanted))
        {
            let mut columns = Columns::default();
            let ids: Vec<_> = [("p", big), ("o", big), ("v", big), ("d", double)]
                .map(|(name, ty)| columns.add(name, ty, false))
                .into_iter()
                .collect();
            let scan = Node::Scan(Scan {
                relation: Arc::new(Stored(table.snapshot())),
                columns: ids.iter().copied().zip(0..).collect(),
                filters: Vec::new(),
                sampled: None,
                references: Vec::new(),
                related: Vec::new(),
            });
            let call = WindowCall {
                function: function.clone(),
                args: argument.iter().map(|&at: &usize| columns.expr(ids[at])).collect(),
                distinct: false,
                filter: None,
                order_by: Vec::new(),
                ignore_nulls: false,
                frame: frame.clone(),
                ty: *ty,
            };
            let result = columns.add("w", *ty, true);
            let mut root = Node::Window(Window {
                input: Box::new(scan),
                partition: vec![columns.expr(ids[0])],
                order: vec![SortKey { expr: columns.expr(ids[1]), descending: false, nulls_first: false }],
                calls: vec![(result, call)],
                top: None,
            });
            if *name == "top 3" {
                let three = Expr::literal(Value::Integer(3), big);
                let predicates = vec![Expr::compare(CompareOp::LtEq, columns.expr(result), three)];
                root = Node::Filter(Filter { input: Box::new(root), predicates });
            }
            let output = [ids[0], ids[1], result].map(|column| Output { name: column.to_string(), column });
            let settings = Settings { profile: std::env::var("PROFILE").is_ok(), ..Settings::default() };
            let plan = Plan { root, columns, output: output.to_vec() };
            let plan = optimize(plan, &settings).expect("a plan without a mistake");
            let mut best = f64::MAX;
            let mut found = (0, 0);
            let mut peak = 0;
            for _ in 0..3 {
                let context =
                    QueryContext { settings: Arc::new(settings.clone()), ..QueryContext::default() };
                let sums = Sums::default();
                let start = Instant::now();
                let profile = execute(&plan, &context, &sums).expect("it runs");
                best = best.min(start.elapsed().as_secs_f64());
                found = (sums.0[0].load(Ordering::Relaxed), sums.0[1].load(Ordering::Relaxed));
                peak = context.memory.peak();
                if settings.profile {
                    println!("{profile}");
                }
            }
            println!(
                "{partitions:>8} partitions, {name:<24} {:>7.0} ms {:>6} MB  {} rows, {:016x}",
                best * 1e3,
                peak / 1_000_000,
                found.0,
                found.1
            );
        }
    }
}
