//! Workers that build and probe joins, or group rows, side by side, under a scheduler that tries thousands of
//! interleavings (`shuttle`).
//!
//! The modules are those of the crate, compiled once more, with another `sync`. Whole statements run: the
//! pool, pipelines, the build of every table and filter by partitions, partitions that are written and joined
//! later. Each must give the rows of a nested loop, and all memory back. A run that fails prints its
//! schedule. The scheduler knows one order of all accesses, so what weaker orders of the machine allow is not
//! tried.

#![allow(dead_code, unused_imports, unreachable_pub)]

#[path = "../../src/access_path/mod.rs"]
pub mod access_path;
#[path = "../../src/bounds.rs"]
mod bounds;
#[path = "../../src/calibrate/mod.rs"]
mod calibrate;
#[path = "../../src/context/mod.rs"]
mod context;
#[path = "../../src/cost.rs"]
pub mod cost;
#[path = "../../src/estimate/mod.rs"]
mod estimate;
#[path = "../../src/exec/mod.rs"]
pub mod exec;
#[path = "../../src/explain.rs"]
mod explain;
#[path = "../../src/facts.rs"]
mod facts;
#[path = "../../src/learned/mod.rs"]
mod learned;
#[path = "../../src/memory.rs"]
mod memory;
#[path = "../../src/optimizer/mod.rs"]
pub mod optimizer;
#[path = "../../src/plan/mod.rs"]
pub mod plan;
#[path = "../../src/pruning.rs"]
pub mod pruning;
#[path = "../../src/relation.rs"]
pub mod relation;
#[path = "../../src/scan_predicates.rs"]
pub mod scan_predicates;
#[path = "../../src/settings/mod.rs"]
mod settings;
mod sync;
#[path = "../../src/template.rs"]
pub mod template;
#[path = "../../src/threshold.rs"]
mod threshold;
#[path = "../../src/work_table.rs"]
mod work_table;

use entasis_vector::expr::{CompareOp, Expr};
use entasis_vector::{ColumnId, DataType, ErrorKind, Result, Value};
use exec::{
    Collector, FilterKind, JoinSpill, MemoryBudget, QueryContext, Settings, Spilling, TableKind, execute,
};
use plan::{
    Aggregate, AggregateCall, AggregateFunction, Columns, Join, JoinKey, JoinKind, Node, Output, Plan, Values,
};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, Runner};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

/// A key, which may be NULL, and a number.
type Row = (Option<i64>, i64);

/// Statements under test, all of them with the same settings.
#[derive(Clone)]
struct Case {
    name: &'static str,
    kinds: Vec<JoinKind>,
    left: Vec<Row>,
    right: Vec<Row>,
    settings: Settings,
    limit: usize,
    /// The result is joined with the left rows' numbers once more, so that the first join's keys are tested
    /// below another one.
    twice: bool,
    /// The result is grouped by the left keys: how many rows of each, and the sum of their left numbers.
    grouped: bool,
    /// Somebody cancels the statement at some time.
    cancelled: bool,
    /// Whether there is enough memory may depend on the schedule.
    may_fail: bool,
}

/// Rows with `distinct` keys, `apart` from each other, in an order of no meaning.
fn rows(count: i64, distinct: i64, apart: i64) -> Vec<Row> {
    let key = |i: i64| (i % 7 != 3).then_some(i * 5 % distinct * apart);
    (0..count).map(|i| (key(i), i)).collect()
}

fn case(name: &'static str, settings: Settings) -> Case {
    Case {
        name,
        kinds: vec![JoinKind::Inner, JoinKind::Full],
        // The smaller input is kept. Each of its keys comes to both workers.
        left: rows(9, 4, 9),
        right: rows(13, 11, 9),
        settings: Settings { threads: 2, chunk_rows: 2, optimize: false, ..settings },
        limit: usize::MAX,
        twice: false,
        grouped: false,
        cancelled: false,
        may_fail: false,
    }
}

fn cases() -> Vec<Case> {
    let table = |join_table| Settings { join_table, ..Settings::default() };
    let spill = |join_spill| Settings { join_spill, ..Settings::default() };
    let filter = |join_filter| Settings { join_filter, ..Settings::default() };
    vec![
        case("arrays", table(TableKind::Array)),
        case("ranked arrays", table(TableKind::Ranked)),
        case("partitions in memory", table(TableKind::Radix)),
        case("partitions in memory behind a Bloom filter", table(TableKind::BloomRadix)),
        case("concise array tables", table(TableKind::Cat)),
        Case {
            left: (0..9).map(|i| (Some(i * 5 % 9 * 9), i)).collect(),
            ..case("concise array tables, no key twice", table(TableKind::Cat))
        },
        case("concise hash tables", table(TableKind::Cht)),
        case("unchained tables", table(TableKind::Unchained)),
        case("chains", table(TableKind::Chained)),
        Case { kinds: vec![JoinKind::Semi, JoinKind::Anti], ..case("bitmaps", table(TableKind::Bitmap)) },
        Case { twice: true, ..case("filters of bits", filter(FilterKind::Bits)) },
        Case { twice: true, ..case("Bloom filters", filter(FilterKind::Bloom)) },
        case("every second partition is written", spill(JoinSpill::Half)),
        Case { twice: true, ..case("filters of rows of which some are written", spill(JoinSpill::Half)) },
        case("all partitions are written", spill(JoinSpill::All)),
        Case {
            left: (0..13).map(|i| (Some(1), i)).collect(),
            right: (0..10).map(|i| (Some(i / 9), i)).collect(),
            ..case("partitions are split again", spill(JoinSpill::Deep))
        },
        Case { limit: LITTLE, ..case("partitions are written for lack of memory", spill(JoinSpill::Half)) },
        Case { limit: LESS, may_fail: true, ..case("there is little memory", Settings::default()) },
        Case {
            limit: LESS,
            may_fail: true,
            ..case("partitions wait for each other's memory", spill(JoinSpill::All))
        },
        Case { cancelled: true, ..case("a statement is cancelled", spill(JoinSpill::All)) },
        groups("groups whose rows are written", Spilling::All),
        groups("groups whose rows are split again", Spilling::Deep),
        Case {
            limit: 80 << 10,
            may_fail: true,
            ..groups("there is little memory for groups", Spilling::Auto)
        },
        Case { cancelled: true, ..groups("an aggregation is cancelled", Spilling::Deep) },
    ]
}

/// A join whose result is grouped.
fn groups(name: &'static str, aggregate_spill: Spilling) -> Case {
    let left = (0..30).map(|i| (Some(i * 7 % 23), i)).collect();
    let right = (0..40).map(|i| (Some(i * 3 % 29), i)).collect();
    let settings = Settings { aggregate_spill, ..Settings::default() };
    Case { kinds: vec![JoinKind::Inner], left, right, grouped: true, ..case(name, settings) }
}

/// Bytes with which some partitions stay in memory: a partition of one worker has four kilobytes at least.
const LITTLE: usize = 24 << 10;
/// Bytes with which partitions that are in files wait for each other.
const LESS: usize = 12 << 10;

fn plan(case: &Case, kind: JoinKind) -> Plan {
    let mut columns = Columns::default();
    let number = |v: i64| Value::Integer(v.into());
    let mut values = |name: &str, rows: &[Row]| {
        let ids =
            ["k", "n"].map(|column| columns.add(format!("{name}.{column}"), DataType::Int64, true)).to_vec();
        let rows = rows.iter().map(|&(key, n)| vec![key.map_or(Value::Null, number), number(n)]).collect();
        (Node::Values(Values { columns: ids.clone(), rows }), ids)
    };
    let (left, l) = values("l", &case.left);
    let (right, r) = values("r", &case.right);
    let (again, a) = values("a", &case.left);
    let join = |left: Node, right: Node, kind, keys: (ColumnId, ColumnId)| {
        let on = vec![JoinKey {
            left: columns.expr(keys.0),
            right: columns.expr(keys.1),
            null_equals_null: false,
        }];
        let (left, right) = (Box::new(left), Box::new(right));
        Node::Join(Join { left, right, kind, on, residual: Vec::new() })
    };
    let root = match case.twice {
        true => join(join(left, again, JoinKind::Inner, (l[1], a[1])), right, JoinKind::Inner, (l[0], r[0])),
        false => join(left, right, kind, (l[0], r[0])),
    };
    if case.grouped {
        let key = columns.add("g.k", DataType::Int64, true);
        let count = columns.add("g.count", DataType::Int64, false);
        let sum = columns.add("g.sum", DataType::Int64, true);
        let call = |function, args| AggregateCall {
            function,
            args,
            distinct: false,
            filter: None,
            order_by: Vec::new(),
            ty: DataType::Int64,
        };
        let counting = call(AggregateFunction::CountStar, Vec::new());
        let summing = call(AggregateFunction::Sum, vec![columns.expr(l[1])]);
        let root = Node::Aggregate(Aggregate {
            groups: vec![(key, columns.expr(l[0]))],
            aggregates: vec![(count, counting), (sum, summing)],
            input: Box::new(root),
        });
        let output =
            root.columns().into_iter().map(|column| Output { name: column.to_string(), column }).collect();
        return Plan { root, columns, output };
    }
    let output = root.columns().into_iter().filter(|column| !a.contains(column));
    let output = output.map(|column| Output { name: column.to_string(), column }).collect();
    Plan { root, columns, output }
}

/// The rows of a nested loop, sorted.
fn expected(case: &Case, kind: JoinKind) -> Vec<Vec<Option<i64>>> {
    let matches = |l: &Row, r: &Row| l.0.is_some() && l.0 == r.0;
    let mut out = Vec::new();
    for l in &case.left {
        let partners: Vec<&Row> = case.right.iter().filter(|r| matches(l, r)).collect();
        match kind {
            JoinKind::Semi => out.extend((!partners.is_empty()).then(|| vec![l.0, Some(l.1)])),
            JoinKind::Anti => out.extend(partners.is_empty().then(|| vec![l.0, Some(l.1)])),
            _ => out.extend(partners.iter().map(|r| vec![l.0, Some(l.1), r.0, Some(r.1)])),
        }
        if kind == JoinKind::Full && !case.twice && partners.is_empty() {
            out.push(vec![l.0, Some(l.1), None, None]);
        }
    }
    if kind == JoinKind::Full && !case.twice {
        let lonely = case.right.iter().filter(|r| !case.left.iter().any(|l| matches(l, r)));
        out.extend(lonely.map(|r| vec![None, None, r.0, Some(r.1)]));
    }
    if case.grouped {
        let mut groups: BTreeMap<Option<i64>, (i64, i64)> = BTreeMap::new();
        for row in &out {
            let (count, sum) = groups.entry(row[0]).or_default();
            (*count, *sum) = (*count + 1, *sum + row[1].unwrap_or(0));
        }
        out = groups.into_iter().map(|(key, (count, sum))| vec![key, Some(count), Some(sum)]).collect();
    }
    out.sort_unstable();
    out
}

fn found(plan: &Plan, context: &QueryContext) -> Result<Vec<Vec<Option<i64>>>> {
    let types = vec![DataType::Int64; plan.output.len()];
    let collector = Collector::new(&QueryContext::default(), types);
    execute(plan, context, &collector)?;
    let mut rows = Vec::new();
    for chunk in &collector.into_chunks().chunks {
        for row in 0..chunk.len() {
            let value = |column| match chunk.value(row, column, DataType::Int64) {
                Value::Integer(v) => i64::try_from(v).ok(),
                _ => None,
            };
            rows.push((0..plan.output.len()).map(value).collect());
        }
    }
    rows.sort_unstable();
    Ok(rows)
}

/// One statement, of all kinds in turn.
fn check(case: &Case) {
    for &kind in &case.kinds {
        let context = QueryContext {
            settings: Arc::new(case.settings.clone()),
            memory: Arc::new(MemoryBudget::new(case.limit)),
            ..QueryContext::default()
        };
        let raiser = case.cancelled.then(|| {
            let cancel = context.cancel.clone();
            sync::thread::spawn(move || cancel.raise())
        });
        match found(&plan(case, kind), &context) {
            Ok(rows) => assert_eq!(rows, expected(case, kind), "{}, {kind:?}", case.name),
            Err(error) => {
                let is_known = match error.kind() {
                    ErrorKind::Interrupted => case.cancelled,
                    ErrorKind::Resource => case.may_fail,
                    _ => false,
                };
                assert!(is_known, "{}, {kind:?}: {error:?}", case.name);
            }
        }
        raiser.into_iter().for_each(|raiser| raiser.join().expect("nothing can fail"));
        assert_eq!((context.memory.used(), context.temp.used()), (0, 0), "{}, {kind:?}", case.name);
    }
}

fn main() {
    // One thread runs them all, so a few of each in every run of the tests; more: ENTASIS_SCHEDULES=300.
    let wanted = std::env::var("ENTASIS_SCHEDULES").ok().and_then(|text| text.parse().ok());
    let schedules = wanted.unwrap_or(100);
    for case in cases() {
        let start = Instant::now();
        let mut config = Config::new();
        config.stack_size = 1 << 20;
        config.silence_warnings = true;
        let schedulers: [Box<dyn Scheduler + Send>; 2] =
            [Box::new(RandomScheduler::new(schedules)), Box::new(PctScheduler::new(3, schedules))];
        let name = case.name;
        for scheduler in schedulers {
            let case = case.clone();
            Runner::new(scheduler, config.clone()).run(move || check(&case));
        }
        println!("{name}: {} schedules in {:.1} s", schedules * 2, start.elapsed().as_secs_f64());
    }
}
