//! Aggregations against a slow twin that keeps all rows of a group in a map.

use super::*;
use crate::exec::group_table::direct::Direct;
use crate::exec::testing::{Chance, chunk_of, column, context, drain, push_all};
use crate::plan::{AggregateCall, AggregateFunction, SortKey};
use crate::settings::Spilling;
use entasis_vector::aggregate::{ExternalAggregate, GroupStates};
use entasis_vector::{DataType, Value};
use std::any::Any;
use std::collections::BTreeMap;

const DECIMAL: DataType = DataType::Decimal { precision: 12, scale: 2 };
const WIDE: DataType = DataType::Decimal { precision: 38, scale: 2 };

/// An aggregation, and the columns that come out.
struct Operation {
    sink: Arc<dyn Sink>,
    source: Arc<dyn Source>,
    output: Vec<ColumnMeta>,
}

fn operator(
    input: &[ColumnMeta],
    groups: &[(ColumnId, Expr)],
    calls: &[(ColumnId, AggregateCall)],
    expected: f64,
    context: &QueryContext,
    recorder: &Arc<Recorder>,
) -> Result<Operation> {
    let layout = AggregateLayout::new(input, groups, calls)?;
    let output = layout.output.clone();
    let Blocking { sink, source } = aggregate(layout, expected, context, recorder);
    Ok(Operation { sink, source, output })
}

/// group text, group integer, group date, number, decimal, double, text, flag
fn input() -> Vec<ColumnMeta> {
    use DataType::{Boolean, Date, Float64, Int32, Int64, Varchar};
    [Varchar, Int32, Date, Int64, DECIMAL, Float64, Varchar, Boolean]
        .into_iter()
        .enumerate()
        .map(|(i, ty)| column(i as u32, ty))
        .collect()
}

fn make_rows(count: usize, groups: u64, chance: &mut Chance) -> Vec<Vec<Value>> {
    let make = |chance: &mut Chance, value: Value| if chance.below(8) == 0 { Value::Null } else { value };
    let text = |n: u64| {
        Value::Text(format!("{}{n}", if n.is_multiple_of(3) { "a rather long text " } else { "t" }).into())
    };
    (0..count)
        .map(|_| {
            let (a, b) = (chance.below(groups.min(9)), chance.below(groups) as i128);
            let n = chance.below(2000) as i128 - 1000;
            let row = [
                text(a),
                Value::Integer(b),
                Value::Integer(b % 7 - 3),
                Value::Integer(n << 40),
                Value::Integer(n),
                Value::Float(n as f64 / 4.0),
                text(chance.below(50)),
                Value::Boolean(chance.below(3) > 0),
            ];
            row.into_iter().map(|value| make(chance, value)).collect()
        })
        .collect()
}

fn call(function: AggregateFunction, arg: Option<usize>, ty: DataType) -> AggregateCall {
    let args = arg.map(|at| Expr::column(ColumnId(at as u32), input()[at].ty)).into_iter().collect();
    AggregateCall { function, args, distinct: false, filter: None, order_by: Vec::new(), ty }
}

/// Concatenates texts with commas, in input order.
#[derive(Debug)]
struct Join;

#[derive(Default)]
struct JoinStates(Vec<Vec<String>>);

impl ExternalAggregate for Join {
    fn name(&self) -> &str {
        "join"
    }
    fn state(&self) -> Result<Box<dyn GroupStates>> {
        Ok(Box::new(JoinStates::default()))
    }
}

impl GroupStates for JoinStates {
    fn update(&mut self, args: &[Vector], groups: &[u32], rows: usize, group_count: usize) -> Result<()> {
        self.0.resize_with(group_count, Vec::new);
        for (row, &group) in groups[..rows].iter().enumerate() {
            self.0[group as usize]
                .push(args[0].value(row, DataType::Varchar).display(DataType::Varchar).to_string());
        }
        Ok(())
    }
    fn merge(&mut self, other: Box<dyn GroupStates>, map: &[u32], group_count: usize) -> Result<()> {
        self.0.resize_with(group_count, Vec::new);
        let other: Box<JoinStates> = other.into_any().downcast().expect("of the same function");
        other.0.into_iter().zip(map).for_each(|(texts, &group)| self.0[group as usize].extend(texts));
        Ok(())
    }
    fn finish(&mut self, start: usize, rows: usize, out: &mut Vector) -> Result<()> {
        self.0.resize_with(self.0.len().max(start + rows), Vec::new);
        out.begin(rows);
        for row in 0..rows {
            out.write_value(row, &Value::Text(self.0[start + row].join(",").into()))?;
        }
        Ok(())
    }
    fn bytes(&self) -> usize {
        self.0.len() * 24
    }
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

fn calls() -> Vec<(ColumnId, AggregateCall)> {
    use AggregateFunction as F;
    let flag = Expr::column(ColumnId(7), DataType::Boolean);
    let text = Expr::column(ColumnId(6), DataType::Varchar);
    let by = |expr: &Expr, descending| SortKey { expr: expr.clone(), descending, nulls_first: false };
    let calls = vec![
        call(F::CountStar, None, DataType::Int64),
        call(F::Count, Some(3), DataType::Int64),
        call(F::Sum, Some(3), DataType::Int64),
        call(F::Sum, Some(4), WIDE),
        call(F::Avg, Some(4), DataType::Float64),
        call(F::Sum, Some(5), DataType::Float64),
        call(F::Min, Some(6), DataType::Varchar),
        call(F::Max, Some(6), DataType::Varchar),
        call(F::Max, Some(5), DataType::Float64),
        call(F::Min, Some(2), DataType::Date),
        call(F::BoolAnd, Some(7), DataType::Boolean),
        AggregateCall { filter: Some(flag.clone()), ..call(F::Sum, Some(4), WIDE) },
        AggregateCall { distinct: true, ..call(F::Count, Some(6), DataType::Int64) },
        AggregateCall { distinct: true, filter: Some(flag), ..call(F::Sum, Some(4), WIDE) },
        AggregateCall {
            order_by: vec![by(&text, true)],
            ..call(F::External(Arc::new(Join)), Some(6), DataType::Varchar)
        },
        AggregateCall {
            distinct: true,
            order_by: vec![by(&text, false)],
            ..call(F::External(Arc::new(Join)), Some(6), DataType::Varchar)
        },
    ];
    calls.into_iter().enumerate().map(|(i, call)| (ColumnId(100 + i as u32), call)).collect()
}

/// The twin: one call over the rows of one group.
fn naive(call: &AggregateCall, rows: &[&Vec<Value>]) -> Value {
    use AggregateFunction as F;
    let at = |expr: &Expr| match expr {
        Expr::Column { id, .. } => id.0 as usize,
        _ => unreachable!("tests use columns"),
    };
    let rows =
        rows.iter().filter(|row| call.filter.as_ref().is_none_or(|f| row[at(f)] == Value::Boolean(true)));
    if let F::CountStar = call.function {
        return Value::Integer(rows.count() as i128);
    }
    let arg = at(&call.args[0]);
    let external = matches!(call.function, F::External(_));
    let mut values: Vec<Value> =
        rows.map(|row| row[arg].clone()).filter(|v| external || !v.is_null()).collect();
    values.sort_by(Value::total_cmp);
    if call.distinct {
        values.dedup();
    }
    let integers = || values.iter().map(|v| if let Value::Integer(v) = v { *v } else { panic!("{v:?}") });
    let float = |v: &Value| if let Value::Float(v) = v { *v } else { panic!("{v:?}") };
    match &call.function {
        F::Count => Value::Integer(values.len() as i128),
        F::External(_) => {
            if call.order_by[0].descending {
                // NULLs stay last.
                let nulls = values.iter().filter(|v| v.is_null()).count();
                values.truncate(values.len() - nulls);
                values.reverse();
                values.extend(std::iter::repeat_n(Value::Null, nulls));
            }
            let texts: Vec<String> =
                values.iter().map(|v| v.display(DataType::Varchar).to_string()).collect();
            Value::Text(texts.join(",").into())
        }
        _ if values.is_empty() => Value::Null,
        F::Sum if matches!(values[0], Value::Float(_)) => Value::Float(values.iter().map(float).sum()),
        F::Sum => Value::Integer(integers().sum()),
        F::Avg => Value::Float(integers().sum::<i128>() as f64 / (values.len() as f64 * 100.0)),
        F::Min | F::BoolAnd => values[0].clone(),
        F::Max | F::BoolOr => values[values.len() - 1].clone(),
        other => unreachable!("{other:?} has no twin"),
    }
}

/// Runs keys and calls and compares with the twin.
fn check(
    keys: &[usize],
    calls: &[(ColumnId, AggregateCall)],
    rows: &[Vec<Value>],
    setup: (usize, bool, usize),
) {
    let (chunk_rows, collide, workers) = setup;
    check_in(&context(chunk_rows, collide), keys, calls, rows, workers).unwrap();
}

/// The same with given settings and memory. Fails if the aggregation does.
fn check_in(
    context: &QueryContext,
    keys: &[usize],
    calls: &[(ColumnId, AggregateCall)],
    rows: &[Vec<Value>],
    workers: usize,
) -> Result<()> {
    let chunk_rows = context.settings.chunk_rows;
    let setup = (chunk_rows, context.settings.hash_collisions, workers, context.settings.aggregate_spill);
    let mut metas = input();
    metas[1].range = Some((0, 1 << 20));
    metas[2].range = Some((-3, 3));
    let groups: Vec<(ColumnId, Expr)> = keys
        .iter()
        .map(|&k| (ColumnId(50 + k as u32), Expr::column(ColumnId(k as u32), metas[k].ty)))
        .collect();
    let blocking = operator(&metas, &groups, calls, 10.0, context, &Arc::default()).unwrap();
    let mut chance = Chance(rows.len() as u64 * 77 + 5);
    push_all(&*blocking.sink, &metas, rows, chunk_rows, workers, &mut chance)?;
    let mut result = drain(&*blocking.source, &blocking.output, chunk_rows)?;
    let compare = |a: &Vec<Value>, b: &Vec<Value>| {
        a.iter().zip(b).map(|(a, b)| a.total_cmp(b)).find(|o| o.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
    };
    result.sort_by(compare);

    let mut map: std::collections::HashMap<Vec<Value>, Vec<&Vec<Value>>> = Default::default();
    for row in rows {
        map.entry(keys.iter().map(|&k| row[k].clone()).collect()).or_default().push(row);
    }
    if keys.is_empty() && rows.is_empty() {
        map.insert(Vec::new(), Vec::new());
    }
    let expect = |(key, rows): (&Vec<Value>, &Vec<&Vec<Value>>)| {
        key.iter().cloned().chain(calls.iter().map(|(_, call)| naive(call, rows))).collect::<Vec<Value>>()
    };
    let mut expected: Vec<Vec<Value>> = map.iter().map(expect).collect();
    expected.sort_by(compare);
    assert_eq!(result.len(), expected.len(), "groups by {keys:?} with {setup:?}");
    for (got, expected) in result.iter().zip(&expected) {
        assert_eq!(got, expected, "groups by {keys:?} with {setup:?}");
    }
    for (c, meta) in blocking.output.iter().enumerate().filter(|(_, meta)| !meta.nullable) {
        assert!(result.iter().all(|row| !row[c].is_null()), "{meta:?} is said not to be NULL");
    }
    drop(blocking);
    assert_eq!((context.memory.used(), context.temp.used()), (0, 0));
    Ok(())
}

#[test]
fn aggregations_agree_with_the_twin() {
    let mut chance = Chance(42);
    let rows = make_rows(1500, 40, &mut chance);
    let calls = calls();
    for keys in [&[][..], &[0], &[1], &[2], &[0, 1, 2], &[6, 2], &[5], &[7, 3]] {
        for setup in [(3, false, 2), (100, false, 1), (64, true, 2), (2048, false, 2)] {
            check(keys, &calls, &rows, setup);
            check(keys, &calls[..11], &rows[..rows.len() / 2], setup);
            check(keys, &calls, &[], setup);
            check(keys, &[], &rows[..100], setup);
        }
    }
}

fn spilling(chunk_rows: usize, collide: bool, setting: Spilling) -> QueryContext {
    let mut context = context(chunk_rows, collide);
    Arc::make_mut(&mut context.settings).aggregate_spill = setting;
    context
}

#[test]
fn aggregations_whose_rows_are_written_agree_with_the_twin() {
    let mut chance = Chance(43);
    let rows = make_rows(1500, 400, &mut chance);
    let calls = calls();
    for setting in [Spilling::All, Spilling::Deep] {
        for keys in [&[][..], &[0], &[1], &[2], &[0, 1, 2], &[6, 2], &[5], &[7, 3]] {
            for (chunk_rows, collide, workers) in
                [(3, false, 2), (100, false, 1), (64, true, 2), (2048, false, 2)]
            {
                let context = spilling(chunk_rows, collide, setting);
                check_in(&context, keys, &calls, &rows, workers).unwrap();
                check_in(&context, keys, &calls[..11], &rows, workers).unwrap();
                check_in(&context, keys, &calls, &rows[..20], workers).unwrap();
                check_in(&context, keys, &calls, &[], workers).unwrap();
                check_in(&context, keys, &[], &rows, workers).unwrap();
            }
        }
    }
}

#[test]
fn rows_are_written_where_memory_is_short() {
    let mut chance = Chance(44);
    let rows = make_rows(30_000, 25_000, &mut chance);
    let calls = calls();
    for (keys, calls) in
        [(&[1, 3][..], &calls[..12]), (&[6, 1], &calls[..4]), (&[1], &calls[..14]), (&[0, 1], &[])]
    {
        let mut least = usize::MAX;
        let mut failed = 0;
        for kilobytes in [25_000, 6_000, 3_000, 2_000, 1_500, 1_000, 700, 20] {
            let context = spilling(1000, false, Spilling::Auto);
            context.memory.set_limit(kilobytes << 10);
            match check_in(&context, keys, calls, &rows, 2) {
                Ok(()) => {
                    assert_eq!(failed, 0, "{kilobytes} KB are enough, more are not");
                    least = kilobytes;
                }
                Err(error) => {
                    assert_eq!(error.kind(), entasis_vector::ErrorKind::Resource, "{error}");
                    assert!(kilobytes < 2000, "{kilobytes} KB: {error}");
                    failed += 1;
                }
            }
            assert!(context.memory.peak() <= kilobytes << 10);
            assert_eq!((context.memory.used(), context.temp.used()), (0, 0));
        }
        // This is enough for only some groups at a time.
        let mut context = spilling(1000, false, Spilling::Auto);
        context.memory.set_limit(least << 10);
        Arc::make_mut(&mut context.settings).temp_directory = "".into();
        let error = check_in(&context, keys, calls, &rows, 2).unwrap_err();
        assert_eq!(error.kind(), entasis_vector::ErrorKind::Resource, "{error}");
    }
}

#[test]
fn partitions_are_split_for_their_groups_only() {
    // Many rows of few groups in one partition, which has little memory.
    let mut rows = make_rows(100_000, 80, &mut Chance(45));
    rows.iter_mut().enumerate().for_each(|(i, row)| row[1] = Value::Integer(i as i128 / 1250));
    let context = spilling(2048, true, Spilling::All);
    context.memory.set_limit(4 << 20);
    let recorder: Arc<Recorder> = Arc::default();
    let groups = [(ColumnId(51), Expr::column(ColumnId(1), DataType::Int32))];
    let blocking = operator(&input(), &groups, &calls()[..4], 10.0, &context, &recorder).unwrap();
    push_all(&*blocking.sink, &input(), &rows, 2048, 2, &mut Chance(46)).unwrap();
    assert_eq!(drain(&*blocking.source, &blocking.output, 2048).unwrap().len(), 80);
    drop(blocking);
    let details = recorder.report().details.join("; ");
    assert!(details.contains("merged in 1 partitions; rows of some groups in temporary files"), "{details}");
}

#[test]
fn many_groups_are_merged_in_partitions() {
    let mut chance = Chance(7);
    let rows = make_rows(60_000, 45_000, &mut chance);
    let calls = &calls()[..12];
    for keys in [&[0, 1, 6][..], &[3, 1], &[1]] {
        check(keys, calls, &rows, (2048, false, 2));
        check(keys, calls, &rows, (1000, false, 1));
    }
}

#[test]
fn wide_spans_are_direct_if_many_groups_are_expected() {
    let mut metas = [column(0, DataType::Int64)];
    metas[0].range = Some((1, 2_000_000));
    assert!(Direct::new(&metas, 300_000).is_some());
    assert!(Direct::new(&metas, 3000).is_none());
    metas[0].range = Some((0, 1 << 40));
    assert!(Direct::new(&metas, usize::MAX >> 8).is_none());
}

#[test]
fn clustered_keys_are_found_by_runs() {
    let mut chance = Chance(9);
    let mut rows = make_rows(5000, 3, &mut chance);
    for (i, row) in rows.iter_mut().enumerate() {
        row[3] = Value::Integer((i as i128 / 7) << 33);
    }
    check(&[3], &calls()[..9], &rows, (512, false, 2));
}

#[test]
fn keys_that_do_not_repeat_are_not_looked_up() {
    let metas = [column(0, DataType::Int64)];
    let groups = [(ColumnId(1), Expr::column(ColumnId(0), DataType::Int64))];
    let count = (ColumnId(2), call(AggregateFunction::CountStar, None, DataType::Int64));
    let blocking = operator(&metas, &groups, &[count], 10.0, &context(2048, false), &Arc::default()).unwrap();
    let mut worker = blocking.sink.worker().unwrap();
    let distinct = 100_000i64;
    for _ in 0..2 {
        for first in (0..distinct).step_by(2000) {
            let mut chunk = Chunk::new();
            chunk.reset(2000);
            let dense = chunk.push_group(Selection::ALL);
            let values: Vec<i64> = (first..first + 2000).map(|v| v * 1_000_003 % distinct).collect();
            chunk.push_column(Vector::from_slice(&values), dense);
            worker.push(&mut chunk).unwrap();
        }
    }
    worker.finish().unwrap();
    blocking.sink.finish(&crate::exec::testing::TwoThreads).unwrap();
    let rows = drain(&*blocking.source, &blocking.output, 2048).unwrap();
    let map: BTreeMap<i128, i128> = rows
        .iter()
        .map(|row| match row[..] {
            [Value::Integer(key), Value::Integer(count)] => (key, count),
            _ => panic!("{row:?}"),
        })
        .collect();
    assert_eq!((rows.len(), map.len()), (distinct as usize, distinct as usize));
    assert!(map.values().all(|&count| count == 2));
}

#[test]
fn a_sum_that_does_not_fit_is_an_error() {
    let metas = [column(0, DataType::Int64)];
    let sum = AggregateCall {
        args: vec![Expr::column(ColumnId(0), DataType::Int64)],
        ..call(AggregateFunction::Sum, None, DataType::Int64)
    };
    let blocking =
        operator(&metas, &[], &[(ColumnId(1), sum)], 1.0, &context(2048, false), &Arc::default()).unwrap();
    let rows = vec![vec![Value::Integer(i64::MAX.into())]; 3];
    push_all(&*blocking.sink, &metas, &rows, 2, 1, &mut Chance(3)).unwrap();
    let error = drain(&*blocking.source, &blocking.output, 2048).unwrap_err();
    assert_eq!(error.message(), "sum 27670116110564327421 does not fit BIGINT");
}

#[test]
fn memory_is_charged_and_given_back() {
    let mut context = context(2048, false);
    Arc::make_mut(&mut context.settings).temp_directory = "".into();
    let metas = input();
    let keys = [ColumnId(6), ColumnId(3)];
    let blocking = aggregate(distinct(&metas, &keys).unwrap(), 1.0, &context, &Arc::default());
    let rows = make_rows(3000, 100, &mut Chance(11));
    push_all(&*blocking.sink, &metas, &rows, 2048, 2, &mut Chance(12)).unwrap();
    assert!(context.memory.used() > 3000 * 24);
    drop(blocking);
    assert_eq!(context.memory.used(), 0);
    context.memory.set_limit(10_000);
    let blocking = aggregate(distinct(&metas, &keys).unwrap(), 1.0, &context, &Arc::default());
    let mut worker = blocking.sink.worker().unwrap();
    let error = worker.push(&mut chunk_of(&metas, &rows[..2048], &mut Chance(13))).unwrap_err();
    assert_eq!(error.kind(), entasis_vector::ErrorKind::Resource);
}

#[test]
fn sums_of_narrow_columns_are_exact() {
    use AggregateFunction as F;
    let mut chance = Chance(0x5eed);
    let edges =
        [(-5, 5), (0, 16_777_215), (0, 16_777_216), (i32::MIN.into(), i32::MAX.into()), (0, i32::MAX.into())];
    for (range, groups) in
        edges.iter().flat_map(|&range: &(i128, i128)| [1, 4, 8, 30].map(|groups| (range, groups)))
    {
        let key = ColumnMeta { range: Some((0, groups - 1)), nullable: false, ..column(0, DataType::Int32) };
        let number =
            |id, ty, physical| ColumnMeta { physical, range: Some(range), nullable: false, ..column(id, ty) };
        let narrow = entasis_vector::PhysicalType::I32;
        let metas = [key, number(1, DataType::Int64, narrow), number(2, WIDE, narrow)];
        let rows: Vec<Vec<Value>> = (0..5000)
            .map(|_| {
                // Mostly one extreme, so that sums are as large as possible.
                let number = if chance.below(9) == 0 { range.0 } else { range.1 };
                vec![
                    Value::Integer(chance.below(groups as u64) as i128),
                    Value::Integer(number),
                    Value::Integer(number),
                ]
            })
            .collect();
        let sum = |arg: Expr, ty| AggregateCall {
            function: F::Sum,
            args: vec![arg],
            distinct: false,
            filter: None,
            order_by: Vec::new(),
            ty,
        };
        let of = |id, ty| Expr::column(ColumnId(id), ty);
        let calls = [
            (ColumnId(10), sum(of(1, DataType::Int64), DataType::Int64)),
            (ColumnId(11), sum(of(2, WIDE), WIDE)),
            (
                ColumnId(12),
                AggregateCall { function: F::Min, ..sum(of(1, DataType::Int64), DataType::Int64) },
            ),
            (ColumnId(13), AggregateCall { distinct: true, ..sum(of(2, WIDE), WIDE) }),
        ];
        let mut expected: BTreeMap<i128, Vec<i128>> = BTreeMap::new();
        for row in &rows {
            let [Value::Integer(group), Value::Integer(number), _] = row[..] else { unreachable!() };
            let sums = expected.entry(group).or_insert_with(|| vec![0, 0, i128::MAX, 0]);
            (sums[0], sums[1], sums[2]) = (sums[0] + number, sums[1] + number, sums[2].min(number));
        }
        for sums in expected.values_mut() {
            // Both extremes occur in each group, or they are equal.
            sums[3] = range.0 + range.1;
        }
        let keys = [(ColumnId(20), of(0, DataType::Int32))];
        for chunk_rows in [3, 700, 2048] {
            let context = context(chunk_rows, false);
            let blocking = operator(&metas, &keys, &calls, groups as f64, &context, &Arc::default()).unwrap();
            push_all(&*blocking.sink, &metas, &rows, chunk_rows, 2, &mut chance).unwrap();
            let found: BTreeMap<i128, Vec<i128>> = drain(&*blocking.source, &blocking.output, chunk_rows)
                .unwrap()
                .into_iter()
                .map(|row| {
                    let number =
                        |value: &Value| if let Value::Integer(v) = value { *v } else { panic!("{value:?}") };
                    (number(&row[0]), row[1..].iter().map(number).collect())
                })
                .collect();
            assert_eq!(found, expected, "{range:?}, {groups} groups, chunks of {chunk_rows}");
        }
    }
}
