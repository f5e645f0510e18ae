//! A pipeline at rest allocates nothing per chunk, counted by the allocator:
//! 1. scan → filter → project → join, between two chunks of the result;
//! 2. aggregates, DISTINCT, set operations, top-N and sort, which give their result at the end, by running
//!    them over twice the rows.
//!
//! This is a leaf with `unsafe`: a global allocator cannot be written without.
#![allow(unsafe_code)]

#[path = "../examples/stored/mod.rs"]
mod stored;

use entasis_engine::exec::{QueryContext, ResultSink, ResultWorker, Settings, execute};
use entasis_engine::plan::{
    Aggregate, AggregateCall, AggregateFunction, Columns, Filter, Join, JoinKey, JoinKind, Node, Output,
    Plan, Project, Scan, SetKind, SetOperation, Sort, SortKey, Values,
};
use entasis_storage::{Table, TableSnapshot};
use entasis_vector::expr::{ArithmeticOp, CompareOp, Expr};
use entasis_vector::{CHUNK_ROWS, Chunk, ColumnId, DataType, Field, Result, Selection, Value, Vector};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use stored::Stored;

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: hands every request on to the system's allocator and only counts.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promises are those that System asks for.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Counts rows, and the allocations between two chunks.
#[derive(Default)]
struct Counter(Arc<Mutex<Counts>>);

#[derive(Default)]
struct Counts {
    rows: usize,
    /// Allocations up to each chunk.
    at: Vec<usize>,
}

impl ResultSink for Counter {
    fn worker(&self) -> Result<Box<dyn ResultWorker>> {
        self.0.lock().unwrap().at.reserve(10_000);
        Ok(Box::new(CounterWorker(self.0.clone())))
    }
}

struct CounterWorker(Arc<Mutex<Counts>>);

impl ResultWorker for CounterWorker {
    fn push(&mut self, chunk: &Chunk) -> Result<()> {
        let mut counts = self.0.lock().unwrap();
        counts.rows += chunk.len();
        counts.at.push(ALLOCATIONS.load(Ordering::Relaxed));
        Ok(())
    }
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Rows (i, i mod 100, a text) for i below `rows`.
fn table(rows: i64) -> TableSnapshot {
    let fields = [("a", DataType::Int64), ("b", DataType::Int32), ("c", DataType::Varchar)];
    let table = Table::new("t", fields.map(|(name, ty)| Field::new(name, ty)).to_vec());
    let mut appender = table.appender();
    for first in (0..rows).step_by(CHUNK_ROWS) {
        let range = first..rows.min(first + CHUNK_ROWS as i64);
        let mut chunk = Chunk::new();
        chunk.reset(range.clone().count());
        let group = chunk.push_group(Selection::ALL);
        let texts: Vec<Value> =
            range.clone().map(|i| Value::Text(format!("text number {}", i % 1000).into())).collect();
        chunk.push_column(Vector::from_slice(&range.clone().collect::<Vec<i64>>()), group);
        chunk.push_column(Vector::from_slice(&range.map(|i| (i % 100) as i32).collect::<Vec<i32>>()), group);
        chunk.push_column(Vector::from_values(DataType::Varchar.physical(), &texts).unwrap(), group);
        appender.append(&chunk, 0).unwrap();
    }
    table.commit(vec![appender.finish()]).unwrap();
    table.snapshot()
}

/// A scan of `rows` rows, and its columns.
fn scan(rows: i64) -> (Columns, Vec<ColumnId>, Scan) {
    let mut columns = Columns::default();
    let ids: Vec<ColumnId> = [("a", DataType::Int64), ("b", DataType::Int32), ("c", DataType::Varchar)]
        .map(|(name, ty)| columns.add(name, ty, false))
        .to_vec();
    let relation = Arc::new(Stored(table(rows)));
    let scan = Scan::all(relation, ids.iter().copied().zip(0..).collect());
    (columns, ids, scan)
}

/// Runs a plan with one worker.
fn run(root: Node, columns: Columns, output: &[ColumnId]) -> Counts {
    let output = output.iter().map(|&column| Output { name: column.to_string(), column }).collect();
    let plan = Plan { root, columns, output };
    let settings = Settings { threads: 1, ..Settings::default() };
    let context = QueryContext { settings: Arc::new(settings), ..QueryContext::default() };
    let counter = Counter::default();
    execute(&plan, &context, &counter).unwrap();
    drop(plan);
    std::mem::take(&mut counter.0.lock().unwrap())
}

/// Runs scan → (filter → project →) join and says how often chunks after the first quarter allocated.
fn steady_allocations(rows: i64, compute: bool) -> usize {
    let (mut columns, ids, mut scan) = scan(rows);
    let number = |v: i128, ty| Expr::literal(Value::Integer(v), ty);
    let compare =
        |op, id, v, columns: &Columns| Expr::compare(op, columns.expr(id), number(v, columns.ty(id)));
    let mut output = vec![ids[0], ids[2]];
    if compute {
        scan.filters = vec![compare(CompareOp::Lt, ids[1], 90, &columns)];
    }
    let mut root = Node::Scan(scan);
    if compute {
        let predicates = vec![compare(CompareOp::NotEq, ids[1], 3, &columns)];
        root = Node::Filter(Filter { input: Box::new(root), predicates });
        let sum = columns.add("sum", DataType::Int64, false);
        let add = Expr::Arithmetic {
            op: ArithmeticOp::Add,
            left: Box::new(columns.expr(ids[0])),
            right: Box::new(number(5, DataType::Int64)),
            ty: DataType::Int64,
        };
        root = Node::Project(Project { input: Box::new(root), exprs: vec![(sum, add)] });
        output.push(sum);
    }
    let (key, name) = (columns.add("k", DataType::Int32, false), columns.add("n", DataType::Varchar, false));
    output.push(name);
    let partners =
        (0..60).map(|k| vec![Value::Integer(k), Value::Text(format!("the partner of {k}").into())]).collect();
    let join = Node::Join(Join {
        left: Box::new(root),
        right: Box::new(Node::Values(Values { columns: vec![key, name], rows: partners })),
        kind: JoinKind::Inner,
        on: vec![JoinKey { left: columns.expr(ids[1]), right: columns.expr(key), null_equals_null: false }],
        residual: Vec::new(),
    });
    let counts = run(join, columns, &output);
    assert_eq!(counts.rows as i64, rows / 100 * if compute { 59 } else { 60 });
    counts.at[counts.at.len() - 1] - counts.at[counts.at.len() / 4]
}

/// What stands above the scan.
#[derive(Debug, Clone, Copy)]
enum Breaker {
    /// Sum, minimum, maximum and mean by a number.
    GroupByNumber,
    /// Count and smallest text by text and number.
    GroupByText,
    /// Without groups.
    Total,
    /// The distinct texts.
    Distinct,
    /// The texts of all rows that there are twice: of this reading and another one.
    Intersect,
    /// The first ten rows.
    Top,
    /// All rows in another order.
    Sort,
}

/// Allocations up to the first chunk of the result, so: while the rows were taken.
fn allocations_until_result(breaker: Breaker, rows: i64) -> usize {
    let (mut columns, ids, scan) = scan(rows);
    let input = Box::new(Node::Scan(scan));
    let call = |function, argument: Option<ColumnId>, ty, columns: &Columns| AggregateCall {
        function,
        args: argument.map(|id| columns.expr(id)).into_iter().collect(),
        distinct: false,
        filter: None,
        order_by: Vec::new(),
        ty,
    };
    let sort = |input: Box<Node>, id, limit: Option<usize>, columns: &Columns| {
        let key = SortKey { expr: columns.expr(id), descending: limit.is_none(), nulls_first: false };
        Node::Sort(Sort { input, keys: vec![key], limit })
    };
    use AggregateFunction::*;
    let of_number = |function, ty| call(function, Some(ids[0]), ty, &columns);
    let int = DataType::Int64;
    let numbers = vec![
        of_number(Sum, int),
        of_number(Min, int),
        of_number(Max, int),
        of_number(Avg, DataType::Float64),
    ];
    let texts =
        vec![call(CountStar, None, int, &columns), call(Min, Some(ids[2]), DataType::Varchar, &columns)];
    let mut aggregate = |groups: &[usize], calls: Vec<AggregateCall>| {
        let groups: Vec<_> = groups
            .iter()
            .map(|&g| (columns.add("group", columns.ty(ids[g]), false), columns.expr(ids[g])))
            .collect();
        let aggregates: Vec<_> =
            calls.into_iter().map(|c| (columns.add("aggregate", c.ty, true), c)).collect();
        let output = groups.iter().map(|g| g.0).chain(aggregates.iter().map(|a| a.0)).collect::<Vec<_>>();
        (Node::Aggregate(Aggregate { input: input.clone(), groups, aggregates }), output)
    };
    let (root, output) = match breaker {
        Breaker::GroupByNumber => aggregate(&[1], numbers),
        Breaker::GroupByText => aggregate(&[2, 1], texts),
        Breaker::Total => aggregate(&[], numbers),
        Breaker::Distinct => aggregate(&[2], Vec::new()),
        Breaker::Intersect => {
            let out = columns.add("text", DataType::Varchar, false);
            let inputs = vec![(*input.clone(), vec![ids[2]]), (*input, vec![ids[2]])];
            let set = SetOperation { kind: SetKind::Intersect, all: true, inputs, columns: vec![out] };
            (Node::SetOperation(set), vec![out])
        }
        Breaker::Top => (sort(input, ids[0], Some(10), &columns), ids.clone()),
        Breaker::Sort => (sort(input, ids[0], None, &columns), ids.clone()),
    };
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    run(root, columns, &output).at[0] - before
}

/// Full blocks, so that a worker does not meet its first dead slots in the last chunk, where it would need
/// memory to gather.
const ROWS: i64 = 600 * 1024;

#[test]
fn a_pipeline_at_rest_does_not_allocate() {
    // One after the other: the counter is the process's.
    assert_eq!(steady_allocations(ROWS, false), 0, "scan and join");
    assert_eq!(steady_allocations(ROWS, true), 0, "scan, filter, project and join");

    use Breaker::*;
    let chunks = ROWS as usize / CHUNK_ROWS;
    for breaker in [GroupByNumber, GroupByText, Total, Distinct, Intersect, Top, Sort] {
        let [once, twice] = [ROWS, 2 * ROWS].map(|rows| allocations_until_result(breaker, rows));
        let more = twice.saturating_sub(once);
        // A sort keeps its rows, in segments of 65,536 that grow twice. The others keep what they have.
        let bound = if matches!(breaker, Sort) { chunks / 2 } else { 16 };
        assert!(more <= bound, "{breaker:?}: {once} allocations, {more} more for {chunks} more chunks");
    }
}
