//! Set operations compared with counts of equal rows, found by comparing each row with all others.
//!
//! Operations, ways to spill, threads, chunk sizes and colliding hashes go through all combinations; types,
//! NULLs, how often rows repeat and where they come from are random, seeded by the number of the case.

use super::crossed::{Apart, Key, TYPES, equal, one_of, value};
use super::*;
use crate::exec::operator::{Flow, OperatorFactory, Push};
use crate::exec::set_operation::Copies;
use crate::exec::testing::Chance;
use entasis_vector::{ErrorKind, Selection, Vector};
use std::collections::{BTreeSet, HashMap};
use std::sync::Mutex;

const OPERATIONS: [(SetKind, bool); 6] = [
    (SetKind::Union, false),
    (SetKind::Union, true),
    (SetKind::Intersect, false),
    (SetKind::Intersect, true),
    (SetKind::Except, false),
    (SetKind::Except, true),
];

/// The copies of a row that occurs `left` times on the left and `right` times on the right.
fn copies((kind, all): (SetKind, bool), left: usize, right: usize) -> usize {
    let (l, r) = if all { (left, right) } else { (left.min(1), right.min(1)) };
    match kind {
        SetKind::Union if all => l + r,
        SetKind::Union => l.max(r),
        SetKind::Intersect => l.min(r),
        SetKind::Except => l.saturating_sub(r),
    }
}

fn set_operation(
    (kind, all): (SetKind, bool),
    inputs: [(Node, Vec<ColumnId>); 2],
    columns: &mut Columns,
) -> Plan {
    let output = inputs[0].1.iter().map(|&id| columns.ty(id)).collect::<Vec<_>>();
    let output = output.into_iter().map(|ty| columns.add("out", ty, true)).collect();
    let set = SetOperation { kind, all, inputs: inputs.into(), columns: output };
    plan(Node::SetOperation(set), columns)
}

fn equal_rows(a: &Row, b: &Row) -> bool {
    a.iter()
        .zip(b)
        .all(|(a, b)| if a.is_null() || b.is_null() { a.is_null() && b.is_null() } else { equal(a, b) })
}

/// How often each row occurs in each of `inputs`, in the order of first occurrence.
fn counts<const N: usize>(inputs: [&[Row]; N]) -> Vec<(Row, [usize; N])> {
    let mut counts: Vec<(Row, [usize; N])> = Vec::new();
    for (input, rows) in inputs.into_iter().enumerate() {
        for row in rows {
            let at = counts.iter().position(|(other, _)| equal_rows(row, other)).unwrap_or_else(|| {
                counts.push((row.clone(), [0; N]));
                counts.len() - 1
            });
            counts[at].1[input] += 1;
        }
    }
    counts
}

/// Rows of `keys`; a third of them repeat often, and a third not at all.
fn rows(keys: &[Key], count: u64, nulls: u64, chance: &mut Chance) -> Vec<Row> {
    let row = |number: u64, chance: &mut Chance| {
        let number = match chance.below(3) {
            0 => chance.below(3),
            1 => chance.below(20),
            _ => number % 120,
        };
        let of = |key: &Key| match nulls > 0 && chance.below(nulls) == 0 {
            true => Value::Null,
            false => value(key, number, chance),
        };
        keys.iter().map(of).collect()
    };
    (0..count).map(|number| row(number, chance)).collect()
}

#[test]
fn set_operations_agree_with_counts_of_rows() {
    let mut number = 0;
    let mut types = BTreeSet::new();
    for spill in [Spilling::Auto, Spilling::All, Spilling::Deep] {
        for (threads, chunk_rows) in
            [1, 2, 4].into_iter().flat_map(|t| [(t, 3), (t, entasis_vector::CHUNK_ROWS)])
        {
            for (hash_collisions, operation) in OPERATIONS.into_iter().flat_map(|o| [(false, o), (true, o)]) {
                number += 1;
                let mut chance = Chance(entasis_vector::hash::hash_u64(number) | 1);
                let chance = &mut chance;
                let apart = [Apart::Next, Apart::Sparse, Apart::Far];
                let key = |_| Key {
                    ty: one_of(&TYPES, chance),
                    apart: one_of(&apart, chance),
                    null_equals_null: true,
                };
                let keys: Vec<Key> = (0..number % 4).map(key).collect();
                types.extend(keys.iter().map(|key| key.ty.to_string()));
                let mut columns = Columns::default();
                let column_types: Vec<DataType> = keys.iter().map(|key| key.ty).collect();
                // Tables order UUIDs differently, and cannot have no columns.
                let may_be_stored = !keys.is_empty() && !column_types.contains(&DataType::Uuid);
                let sides = ["l", "r"].map(|name| {
                    let (count, nulls) =
                        (one_of(&[0, 1, 60, 200, 200], chance), one_of(&[0, 1, 5, 5], chance));
                    let rows = rows(&keys, count, nulls, chance);
                    let input = match may_be_stored && chance.below(2) == 0 {
                        true => stored(&mut columns, &column_types, &rows),
                        false => values(&mut columns, name, &column_types, rows.clone()),
                    };
                    (rows, input)
                });
                let [(left, l), (right, r)] = sides;
                let plan = set_operation(operation, [l, r], &mut columns);
                let settings = Settings {
                    threads,
                    chunk_rows,
                    hash_collisions,
                    aggregate_spill: spill,
                    optimize: false,
                    profile: chance.below(2) == 0,
                    temp_compression: one_of(&[TempCompression::Off, TempCompression::On], chance),
                    ..Settings::default()
                };
                let context = QueryContext { settings: Arc::new(settings), ..QueryContext::default() };
                let what =
                    format!("{operation:?} of {column_types:?}, case {number} under {:?}", context.settings);
                let found = run(&plan, &context).unwrap_or_else(|error| panic!("{what}: {error}"));
                for (row, [left, right, found]) in counts([&left, &right, &found]) {
                    assert_eq!(found, copies(operation, left, right), "{row:?} of {what}");
                }
                assert_eq!((context.memory.used(), context.temp.used()), (0, 0), "{what}");
            }
        }
    }
    assert_eq!(types.len(), TYPES.len());
}

/// Two inputs, half of whose rows also occur in the other.
#[test]
fn set_operations_spill_where_memory_is_short() {
    let count = 12_000;
    let row = |i: i128| {
        vec![int(i * 7), Value::Text(format!("a longer text, number {}", i % 1000).into()), int(i % 3)]
    };
    let types = [DataType::Int64, DataType::Varchar, DataType::Int16];
    let side = |first: i128| -> Vec<Row> {
        let rows = (first..first + count)
            .map(row)
            .map(|row| if row[2] == int(1) { vec![Value::Null; 3] } else { row });
        rows.chain((0..40).map(|_| row(first))).collect()
    };
    let sides = [side(0), side(count / 2)];
    let mut expected: HashMap<Row, [usize; 2]> = HashMap::new();
    for (i, rows) in sides.iter().enumerate() {
        rows.iter().for_each(|row| expected.entry(row.clone()).or_default()[i] += 1);
    }
    for operation in OPERATIONS.into_iter().filter(|&operation| operation != (SetKind::Union, true)) {
        let mut columns = Columns::default();
        let [l, r] = [0, 1].map(|i| values(&mut columns, ["l", "r"][i], &types, sides[i].clone()));
        let plan = set_operation(operation, [l, r], &mut columns);
        let run = |threads, limit, temp_directory: Option<&str>| {
            let mut settings = Settings { threads, chunk_rows: 300, profile: true, ..Settings::default() };
            settings.temp_directory = temp_directory.map_or(settings.temp_directory, Into::into);
            let memory = Arc::new(MemoryBudget::new(limit));
            let context = QueryContext { settings: Arc::new(settings), memory, ..QueryContext::default() };
            // Drops rows at once.
            let counter = Counter { types: types.to_vec(), rows: Arc::default() };
            let profile = execute(&plan, &context, &counter).map(|profile| profile.to_string());
            assert!(context.memory.peak() <= limit);
            assert_eq!((context.memory.used(), context.temp.used()), (0, 0), "{operation:?}");
            profile.map(|profile| (profile, std::mem::take(&mut *counter.rows.lock().unwrap())))
        };
        for (threads, limit) in
            [1, 2, 4].into_iter().flat_map(|t| [(t, usize::MAX), (t, 4 << 20), (t, 1 << 20)])
        {
            let what = format!("{operation:?} by {threads} threads with {limit} bytes");
            let (profile, found) =
                run(threads, limit, None).unwrap_or_else(|error| panic!("{what}: {error}"));
            for (row, &[left, right]) in &expected {
                let found = found.get(row).copied().unwrap_or(0);
                assert_eq!(found, copies(operation, left, right), "{row:?} of {what}");
            }
            assert!(found.keys().all(|row| expected.contains_key(row)), "{what}");
            // Between these limits it depends on the operation.
            let has_spilled = profile.contains("temporary files");
            assert!(
                if limit == usize::MAX { !has_spilled } else { has_spilled || limit > 1 << 20 },
                "{what}: {profile}"
            );
        }
        let error = run(2, 1 << 20, Some("")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Resource, "{operation:?}: {error}");
    }
}

/// Counts equal rows.
struct Counter {
    types: Vec<DataType>,
    rows: Arc<Mutex<HashMap<Row, usize>>>,
}

struct CounterWorker(Counter);

impl ResultSink for Counter {
    fn worker(&self) -> Result<Box<dyn ResultWorker>> {
        Ok(Box::new(CounterWorker(Counter { types: self.types.clone(), rows: self.rows.clone() })))
    }
}

impl ResultWorker for CounterWorker {
    fn push(&mut self, chunk: &Chunk) -> Result<()> {
        let mut rows = self.0.rows.lock().unwrap();
        for row in 0..chunk.len() {
            let row = self.0.types.iter().enumerate().map(|(c, &ty)| chunk.value(row, c, ty)).collect();
            *rows.entry(row).or_default() += 1;
        }
        Ok(())
    }
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

#[test]
fn rows_that_come_out_many_times_need_no_memory() {
    // All pairs of 600 and 500 rows, which are equal.
    let mut columns = Columns::default();
    let text = Value::Text("a text that is not stored in its view".into());
    let mut side = |name: &str| {
        let mut of =
            |count: usize| values(&mut columns, name, &[DataType::Varchar], vec![vec![text.clone()]; count]);
        let ((left, l), (right, r)) = (of(600), of(500));
        let (left, right) = (Box::new(left), Box::new(right));
        let join = Join { left, right, kind: JoinKind::Inner, on: Vec::new(), residual: Vec::new() };
        (Node::Join(join), [l, r].concat())
    };
    let sides = [side("l"), side("r")];
    let set = set_operation((SetKind::Intersect, true), sides, &mut columns);
    let count = columns.add("count", DataType::Int64, false);
    let call = AggregateCall {
        function: AggregateFunction::CountStar,
        args: Vec::new(),
        distinct: false,
        filter: None,
        order_by: Vec::new(),
        ty: DataType::Int64,
    };
    let aggregates = vec![(count, call)];
    let plan = plan(
        Node::Aggregate(Aggregate { input: Box::new(set.root), groups: Vec::new(), aggregates }),
        &columns,
    );
    for spill in [Spilling::Auto, Spilling::All, Spilling::Deep] {
        for threads in [1, 2, 4] {
            let settings = Settings { threads, aggregate_spill: spill, ..Settings::default() };
            let memory = Arc::new(MemoryBudget::new(512 << 10));
            let context = QueryContext { settings: Arc::new(settings), memory, ..QueryContext::default() };
            assert_eq!(run(&plan, &context).unwrap(), [[int(300_000)]], "{spill} by {threads} threads");
        }
    }
}

/// Takes consecutive copies of rows 7, 8, 9, …, and stops or cancels after a million.
struct Taker {
    context: QueryContext,
    taken: u64,
    /// The action after a million.
    end: End,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    Stop,
    Cancel,
    Elsewhere,
}

impl Push for Taker {
    fn push(&mut self, chunk: &mut Chunk) -> Result<Flow> {
        assert!(self.taken < 1_000_000 && chunk.len() <= self.context.settings.chunk_rows);
        assert_eq!(chunk.columns().len(), 1);
        for row in [0, chunk.len() - 1] {
            assert_eq!(chunk.value(row, 0, DataType::Int64), int(8));
        }
        self.taken += chunk.len() as u64;
        match self.end {
            _ if self.taken < 1_000_000 => return Ok(Flow::Continue),
            End::Stop => return Ok(Flow::Stop),
            End::Cancel => self.context.cancel.raise(),
            End::Elsewhere => {}
        }
        Ok(Flow::Continue)
    }

    fn is_over(&self) -> bool {
        self.end == End::Elsewhere && self.taken >= 1_000_000
    }
}

#[test]
fn a_thousand_million_copies_can_be_stopped() {
    let mut columns = Columns::default();
    let inputs = ["l", "r"].map(|name| values(&mut columns, name, &[DataType::Int64], Vec::new()));
    let plan = set_operation((SetKind::Intersect, true), inputs, &mut columns);
    let Node::SetOperation(set) = &plan.root else { unreachable!("it was made here") };
    for (end, chunk_rows) in [End::Stop, End::Cancel, End::Elsewhere]
        .into_iter()
        .flat_map(|end| [(end, 3), (end, entasis_vector::CHUNK_ROWS)])
    {
        let settings = Settings { chunk_rows, ..Settings::default() };
        let context = QueryContext { settings: Arc::new(settings), ..QueryContext::default() };
        let mut copies = Copies::new(set, &context).worker().unwrap();
        let many = 1_000_000_000i64;
        let mut chunk = Chunk::new();
        chunk.reset(3);
        let group = chunk.push_group(Selection::ALL);
        // The row, how often it occurs, and how often on the left.
        for column in [[7i64, 8, 9], [many, 2 * many, many], [many, many, many]] {
            chunk.push_column(Vector::from_slice(&column), group);
        }
        let mut taker = Taker { context, taken: 0, end };
        match (end, copies.push(&mut chunk, &mut taker)) {
            (End::Cancel, Err(error)) => assert_eq!(error.kind(), ErrorKind::Interrupted),
            (_, flow) => assert_eq!(flow.unwrap(), Flow::Stop, "{end:?}"),
        }
        assert!(taker.taken < 1_000_000 + chunk_rows as u64, "{end:?}");
    }
}
