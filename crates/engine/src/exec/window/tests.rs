//! Window functions against the slow twin: every function with every frame, and any mixture of them, in
//! chunks and sections of any size, from memory and from files.

mod memory;

use super::twin;
use crate::context::QueryContext;
use crate::exec::execute::execute;
use crate::exec::result::Collector;
use crate::exec::sink::{ResultSink, ResultWorker};
use crate::exec::testing::Chance;
use crate::plan::*;
use crate::settings::{Settings, Spilling, TempCompression};
use entasis_vector::aggregate::{ExternalAggregate, GroupStates};
use entasis_vector::expr::Expr;
use entasis_vector::{DataType, ErrorKind, Interval, Result, Value, Vector};
use std::any::Any;
use std::sync::Arc;

const WIDE: DataType = DataType::Decimal { precision: 38, scale: 2 };
const MONEY: DataType = DataType::Decimal { precision: 9, scale: 2 };

/// The columns of the test rows.
const TYPES: [DataType; 12] = [
    DataType::Int32,     // 0: a key with few values
    DataType::Int64,     // 1: a key with ties
    DataType::Float64,   // 2: quarters, so that sums are exact
    DataType::Varchar,   // 3
    DataType::Boolean,   // 4
    WIDE,                // 5
    DataType::Date,      // 6
    DataType::Int64,     // 7: the number of the row
    DataType::Interval,  // 8
    DataType::Int64,     // 9: 0 to 3, never NULL
    DataType::Timestamp, // 10
    MONEY,               // 11
];

fn make_rows(count: usize, partitions: u64, chance: &mut Chance) -> Vec<Vec<Value>> {
    let texts =
        ["", "a", "b", "a string that is longer than twelve bytes", "another such string, longer still"];
    (0..count)
        .map(|i| {
            let quarter = match chance.below(60) {
                0 => f64::NAN,
                1 => f64::INFINITY,
                2 => f64::NEG_INFINITY,
                n => n as f64 / 4.0 - 7.0,
            };
            let row = [
                Value::Integer(chance.below(partitions) as i128),
                Value::Integer(chance.below(9) as i128 - 4),
                Value::Float(quarter),
                Value::Text(texts[chance.below(5) as usize].into()),
                Value::Boolean(chance.below(2) == 0),
                Value::Integer((chance.below(9) as i128 - 4) << 70),
                Value::Integer(chance.below(70) as i128 + 18_000),
                Value::Integer(i as i128),
                Value::Interval(Interval { months: 0, days: chance.below(9) as i32 - 4, micros: 17 }),
                Value::Integer(chance.below(4) as i128),
                Value::Integer(1_600_000_000_000_000 + chance.below(20) as i128 * 43_200_000_000),
                Value::Integer(chance.below(2000) as i128 - 1000),
            ];
            let nullable = |(c, v)| if c != 7 && c != 9 && chance.below(7) == 0 { Value::Null } else { v };
            row.into_iter().enumerate().map(nullable).collect()
        })
        .collect()
}

fn column(number: usize) -> Expr {
    Expr::column(entasis_vector::ColumnId(number as u32), TYPES[number])
}

fn integer(value: i128) -> Expr {
    Expr::literal(Value::Integer(value), DataType::Int64)
}

fn key(number: usize, descending: bool, nulls_first: bool) -> SortKey {
    SortKey { expr: column(number), descending, nulls_first }
}

fn call(function: WindowFunction, args: Vec<Expr>, ty: DataType) -> WindowCall {
    WindowCall {
        function,
        args,
        distinct: false,
        filter: None,
        order_by: Vec::new(),
        ignore_nulls: false,
        frame: Frame::whole(),
        ty,
    }
}

fn aggregate(function: AggregateFunction, args: Vec<Expr>, ty: DataType) -> WindowCall {
    call(WindowFunction::Aggregate(function), args, ty)
}

/// Concatenates texts, NULL as a dot: the result depends on the order of rows.
#[derive(Debug)]
struct Joined {
    are_copied: bool,
}

struct JoinedStates {
    texts: Vec<String>,
    are_copied: bool,
}

impl ExternalAggregate for Joined {
    fn name(&self) -> &str {
        "joined"
    }
    fn state(&self) -> Result<Box<dyn GroupStates>> {
        Ok(Box::new(JoinedStates { texts: Vec::new(), are_copied: self.are_copied }))
    }
}

impl GroupStates for JoinedStates {
    fn update(&mut self, args: &[Vector], groups: &[u32], rows: usize, group_count: usize) -> Result<()> {
        self.texts.resize(group_count, String::new());
        for (row, &group) in groups[..rows].iter().enumerate() {
            let text = match args[0].value(row, DataType::Varchar) {
                Value::Text(text) => text.to_string(),
                _ => ".".into(),
            };
            self.texts[group as usize] += &text;
        }
        Ok(())
    }
    fn merge(&mut self, _: Box<dyn GroupStates>, _: &[u32], _: usize) -> Result<()> {
        unreachable!("frames are not merged")
    }
    fn add_copies(
        &mut self,
        other: &dyn GroupStates,
        ids: &[u32],
        map: &[u32],
        group_count: usize,
    ) -> Result<bool> {
        let other = other.as_any().and_then(|other| other.downcast_ref::<JoinedStates>()).unwrap();
        self.texts.resize(group_count, String::new());
        for (&id, &to) in ids.iter().zip(map) {
            self.texts[to as usize] += &other.texts[id as usize];
        }
        Ok(self.are_copied)
    }
    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
    fn finish(&mut self, start: usize, rows: usize, out: &mut Vector) -> Result<()> {
        out.begin(rows);
        (0..rows)
            .try_for_each(|row| out.write_value(row, &Value::Text(self.texts[start + row].as_str().into())))
    }
    fn bytes(&self) -> usize {
        0
    }
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// The median of integers, the lower one of two: the middle value decides it.
#[derive(Debug)]
struct Middle {
    is_decided: bool,
}

#[derive(Default)]
struct MiddleStates(Vec<Vec<i64>>);

impl ExternalAggregate for Middle {
    fn name(&self) -> &str {
        "middle"
    }
    fn state(&self) -> Result<Box<dyn GroupStates>> {
        Ok(Box::new(MiddleStates::default()))
    }
    fn decisive(&self, count: usize) -> Option<std::ops::RangeInclusive<usize>> {
        self.is_decided.then(|| (count - 1) / 2..=count / 2)
    }
}

impl GroupStates for MiddleStates {
    fn update(&mut self, args: &[Vector], groups: &[u32], rows: usize, group_count: usize) -> Result<()> {
        self.0.resize(group_count, Vec::new());
        for (row, &group) in groups[..rows].iter().enumerate().filter(|(row, _)| args[0].is_valid(*row)) {
            let position = if args[0].is_constant() { 0 } else { row };
            self.0[group as usize].push(args[0].values::<i64>()[position]);
        }
        Ok(())
    }
    fn merge(&mut self, _: Box<dyn GroupStates>, _: &[u32], _: usize) -> Result<()> {
        unreachable!("frames are not merged")
    }
    fn finish(&mut self, start: usize, rows: usize, out: &mut Vector) -> Result<()> {
        out.begin(rows);
        for row in 0..rows {
            let values = &mut self.0[start + row];
            values.sort_unstable();
            let middle = values.len().checked_sub(1).map(|last| values[last / 2] + values[values.len() / 2]);
            out.write_value(row, &middle.map_or(Value::Null, |sum| Value::Integer(sum.into())))?;
        }
        Ok(())
    }
    fn bytes(&self) -> usize {
        0
    }
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// Every function, with every clause that it takes.
fn functions() -> Vec<WindowCall> {
    use AggregateFunction as A;
    use WindowFunction as F;
    let big = DataType::Int64;
    let mut calls = vec![
        call(F::RowNumber, vec![], big),
        call(F::Rank, vec![], big),
        call(F::DenseRank, vec![], big),
        call(F::PercentRank, vec![], DataType::Float64),
        call(F::CumeDist, vec![], DataType::Float64),
        call(F::Ntile, vec![integer(3)], big),
        call(F::Lag, vec![column(3)], DataType::Varchar),
        call(F::Lead, vec![column(2), integer(2)], DataType::Float64),
        call(
            F::Lag,
            vec![column(3), column(9), Expr::literal(Value::Text("none".into()), DataType::Varchar)],
            DataType::Varchar,
        ),
        call(F::Lead, vec![column(7), integer(-1), column(1)], big),
        call(F::NthValue, vec![column(3), integer(2)], DataType::Varchar),
    ];
    for function in [F::Lag, F::Lead] {
        for offset in [1, 2, 0, -1] {
            let shift = call(function.clone(), vec![column(3), integer(offset)], DataType::Varchar);
            calls.push(WindowCall { ignore_nulls: true, ..shift });
        }
    }
    for function in [F::FirstValue, F::LastValue] {
        for ignore_nulls in [false, true] {
            calls.push(WindowCall {
                ignore_nulls,
                ..call(function.clone(), vec![column(2)], DataType::Float64)
            });
            calls.push(WindowCall {
                ignore_nulls,
                ..call(function.clone(), vec![column(3)], DataType::Varchar)
            });
        }
    }
    let third = call(F::NthValue, vec![column(5), integer(3)], WIDE);
    calls.push(WindowCall { ignore_nulls: true, ..third });
    let aggregates = [
        aggregate(A::CountStar, vec![], big),
        aggregate(A::Count, vec![column(3)], big),
        aggregate(A::Sum, vec![column(1)], big),
        aggregate(A::Sum, vec![column(9)], big),
        aggregate(A::Sum, vec![column(5)], WIDE),
        aggregate(A::Sum, vec![column(2)], DataType::Float64),
        aggregate(A::Avg, vec![column(2)], DataType::Float64),
        aggregate(A::Avg, vec![column(11)], DataType::Float64),
        aggregate(A::Min, vec![column(2)], DataType::Float64),
        aggregate(A::Max, vec![column(1)], big),
        aggregate(A::Min, vec![column(3)], DataType::Varchar),
        aggregate(A::Max, vec![column(5)], WIDE),
        aggregate(A::Max, vec![column(8)], DataType::Interval),
        aggregate(A::BoolAnd, vec![column(4)], DataType::Boolean),
        aggregate(A::BoolOr, vec![column(4)], DataType::Boolean),
        aggregate(A::AnyValue, vec![column(3)], DataType::Varchar),
        aggregate(A::External(Arc::new(Joined { are_copied: false })), vec![column(3)], DataType::Varchar),
        aggregate(A::External(Arc::new(Joined { are_copied: true })), vec![column(3)], DataType::Varchar),
        aggregate(A::External(Arc::new(Middle { is_decided: false })), vec![column(1)], big),
        aggregate(A::External(Arc::new(Middle { is_decided: true })), vec![column(1)], big),
    ];
    for plain in aggregates {
        calls.push(WindowCall { filter: Some(column(4)), ..plain.clone() });
        if !plain.args.is_empty() {
            calls.push(WindowCall { distinct: true, ..plain.clone() });
            calls.push(WindowCall { distinct: true, filter: Some(column(4)), ..plain.clone() });
        }
        if matches!(plain.function, F::Aggregate(A::External(_) | A::AnyValue)) {
            let order_by = vec![key(1, true, true), key(7, false, false)];
            calls.push(WindowCall { order_by, ..plain.clone() });
        }
        calls.push(plain);
    }
    calls
}

fn bounds(is_end: bool, offset: &Expr) -> Vec<Bound> {
    let unbounded = if is_end { Bound::UnboundedFollowing } else { Bound::UnboundedPreceding };
    vec![unbounded, Bound::Preceding(offset.clone()), Bound::CurrentRow, Bound::Following(offset.clone())]
}

const EXCLUDES: [Exclude; 4] = [Exclude::NoOthers, Exclude::CurrentRow, Exclude::Group, Exclude::Ties];

/// The rows of the engine, in the order of their numbers.
fn run(window: &Window, rows: &[Vec<Value>], settings: &Settings) -> Result<Vec<Vec<Value>>> {
    let mut columns = Columns::default();
    let ids = TYPES.iter().enumerate().map(|(i, ty)| columns.add(format!("c{i}"), *ty, true)).collect();
    let mut window = window.clone();
    window.input = Box::new(Node::Values(Values { columns: ids, rows: rows.to_vec() }));
    for (id, call) in &mut window.calls {
        *id = columns.add("w", call.ty, true);
    }
    let root = Node::Window(window);
    let output = root.columns().into_iter().map(|column| Output { name: String::new(), column }).collect();
    let plan = Plan { root, columns, output };
    let context = QueryContext { settings: Arc::new(settings.clone()), ..QueryContext::default() };
    let types: Vec<DataType> = plan.output.iter().map(|output| plan.columns.ty(output.column)).collect();
    let collector = Collector::new(&context, types.clone());
    execute(&plan, &context, &collector)?;
    let mut found: Vec<Vec<Value>> = Vec::new();
    let result = collector.into_chunks();
    for chunk in &result.chunks {
        for row in 0..chunk.len() {
            found.push(types.iter().enumerate().map(|(c, ty)| chunk.value(row, c, *ty)).collect());
        }
    }
    drop(result);
    assert_eq!(context.memory.used(), 0);
    Ok(by_number(found))
}

fn by_number(mut rows: Vec<Vec<Value>>) -> Vec<Vec<Value>> {
    rows.sort_by(|a, b| a[7].total_cmp(&b[7]));
    rows
}

fn check(window: &Window, rows: &[Vec<Value>], settings: &Settings) {
    let expected = twin::evaluate(window, rows).map(by_number);
    check_against(window, rows, settings, expected.as_deref());
}

fn check_against(window: &Window, rows: &[Vec<Value>], settings: &Settings, expected: Option<&[Vec<Value>]>) {
    let what = || format!("{window:?}\nwith {settings:?}");
    match (run(window, rows, settings), expected) {
        (Ok(found), Some(expected)) => {
            assert_eq!(found.len(), expected.len(), "{}", what());
            for (found, expected) in found.iter().zip(expected) {
                for (column, (a, b)) in found.iter().zip(expected).enumerate() {
                    if a != b {
                        let call = &window.calls[column - TYPES.len()].1;
                        panic!("{a:?} and not {b:?} of {call:?}\nin {expected:?}\n{}", what());
                    }
                }
            }
        }
        (Err(error), None) => assert_eq!(error.kind(), ErrorKind::Input, "{error}"),
        (Ok(_), None) => panic!("no error of {}", what()),
        (Err(error), Some(_)) => panic!("{error} of {}", what()),
    }
}

fn numbered(calls: Vec<WindowCall>) -> Vec<(entasis_vector::ColumnId, WindowCall)> {
    calls.into_iter().map(|call| (entasis_vector::ColumnId(0), call)).collect()
}

fn window(partition: Vec<Expr>, order: Vec<SortKey>, calls: Vec<WindowCall>) -> Window {
    let none = Node::Values(Values { columns: Vec::new(), rows: Vec::new() });
    Window { input: Box::new(none), partition, order, calls: numbered(calls), top: None }
}

fn settings(
    chunk_rows: usize,
    threads: usize,
    sort_spill: Spilling,
    temp_compression: TempCompression,
) -> Settings {
    Settings { chunk_rows, threads, sort_spill, temp_compression, ..Settings::default() }
}

fn all_settings() -> [Settings; 4] {
    [
        settings(2048, 2, Spilling::Auto, TempCompression::Auto),
        settings(3, 1, Spilling::Auto, TempCompression::On),
        settings(3, 2, Spilling::All, TempCompression::Auto),
        settings(7, 2, Spilling::Deep, TempCompression::On),
    ]
}

#[test]
fn every_function_with_every_frame() {
    let rows = make_rows(24, 2, &mut Chance(5));
    // Alone in its partition.
    let mut rows = rows;
    rows[11][0] = Value::Integer(77);
    for units in [FrameUnits::Rows, FrameUnits::Range, FrameUnits::Groups] {
        for (i, start) in bounds(false, &integer(2)).into_iter().enumerate() {
            for (j, end) in bounds(true, &integer(1)).into_iter().enumerate() {
                for exclude in EXCLUDES {
                    let frame = Frame { units, start: start.clone(), end: end.clone(), exclude };
                    let calls = functions()
                        .into_iter()
                        .map(|call| WindowCall { frame: frame.clone(), ..call })
                        .collect();
                    let order = vec![key(1, i % 2 == 1, j % 2 == 1)];
                    let window = window(vec![column(0)], order, calls);
                    let expected = twin::evaluate(&window, &rows).map(by_number);
                    let in_parts = settings(3, 2, Spilling::Deep, TempCompression::Auto);
                    for settings in all_settings()[..2].iter().chain([&in_parts]) {
                        check_against(&window, &rows, settings, expected.as_deref());
                    }
                }
            }
        }
    }
}

/// A random frame, over a window in this order.
fn any_frame(order: &[SortKey], chance: &mut Chance) -> Frame {
    let ranges = order.len() == 1 && [1, 2, 6, 10, 11].contains(&place(&order[0].expr));
    let units = match chance.below(3) {
        0 => FrameUnits::Rows,
        1 => FrameUnits::Groups,
        _ => FrameUnits::Range,
    };
    let offset = |chance: &mut Chance| {
        let n = chance.below(4) as i128;
        if units != FrameUnits::Range {
            return if chance.below(3) == 0 { column(9) } else { integer(n * 3) };
        }
        match place(&order[0].expr) {
            2 => Expr::literal(Value::Float(n as f64 / 2.0), DataType::Float64),
            6 | 10 => {
                let interval = Interval { months: (n % 2) as i32, days: n as i32, micros: 3_600_000_000 };
                Expr::literal(Value::Interval(interval), DataType::Interval)
            }
            11 => Expr::literal(Value::Integer(n * 100), MONEY),
            _ if chance.below(3) == 0 => column(9),
            _ => integer(n),
        }
    };
    let mut bound = |is_end: bool| match chance.below(4) {
        0 if is_end => Bound::UnboundedFollowing,
        0 => Bound::UnboundedPreceding,
        1 => Bound::CurrentRow,
        _ if units == FrameUnits::Range && !ranges => Bound::CurrentRow,
        2 => Bound::Preceding(offset(chance)),
        _ => Bound::Following(offset(chance)),
    };
    let (start, end) = (bound(false), bound(true));
    let exclude = if chance.below(2) == 0 { Exclude::NoOthers } else { EXCLUDES[chance.below(4) as usize] };
    Frame { units, start, end, exclude }
}

fn place(expr: &Expr) -> usize {
    match expr {
        Expr::Column { id, .. } => id.0 as usize,
        _ => usize::MAX,
    }
}

fn any_window(chance: &mut Chance) -> Window {
    let partition = [vec![], vec![0], vec![0, 4], vec![3], vec![2]][chance.below(5) as usize].clone();
    let keys = [vec![], vec![1], vec![1, 7], vec![2], vec![6], vec![10], vec![11], vec![3, 8]];
    let keys = keys[chance.below(8) as usize].clone();
    let order: Vec<SortKey> =
        keys.into_iter().map(|at| key(at, chance.below(2) == 0, chance.below(2) == 0)).collect();
    let all = functions();
    let mut calls = Vec::new();
    let shared = any_frame(&order, chance);
    while calls.len() < 6 {
        let call = all[chance.below(all.len() as u64) as usize].clone();
        let frame = if chance.below(2) == 0 { shared.clone() } else { any_frame(&order, chance) };
        calls.push(WindowCall { frame, ..call });
    }
    window(partition.into_iter().map(column).collect(), order, calls)
}

#[test]
fn mixtures_of_calls_agree_with_the_twin() {
    let mut chance = Chance(0x5EED);
    for round in 0..260 {
        let count = [0, 1, 2, 9, 40, 150][chance.below(6) as usize];
        let partitions = [1, 3, 40][chance.below(3) as usize];
        let rows = make_rows(count, partitions, &mut chance);
        let mut window = any_window(&mut chance);
        if round % 5 == 0 {
            window.top = Some(Top { rows: chance.below(4) as usize, with_peers: chance.below(2) == 0 });
        }
        let expected = twin::evaluate(&window, &rows).map(by_number);
        for settings in all_settings() {
            check_against(&window, &rows, &settings, expected.as_deref());
        }
    }
}

#[test]
fn partitions_of_many_sections() {
    let mut chance = Chance(0xB16);
    for partitions in [1, 2, 9] {
        let rows = make_rows(700, partitions, &mut chance);
        for _ in 0..6 {
            let mut window = any_window(&mut chance);
            window.partition = vec![column(0)];
            let expected = twin::evaluate(&window, &rows).map(by_number);
            for settings in all_settings() {
                check_against(&window, &rows, &settings, expected.as_deref());
            }
        }
    }
}

#[test]
fn first_rows_are_found_while_rows_come() {
    use WindowFunction as F;
    let mut chance = Chance(0x709);
    for round in 0..150 {
        let count = [0, 10, 90, 700][chance.below(4) as usize];
        let partitions = [1, 3, 40][chance.below(3) as usize];
        let rows = make_rows(count, partitions, &mut chance);
        let keys = [vec![1], vec![2], vec![3], vec![7], vec![1, 2], vec![4, 7], vec![10]]
            [chance.below(7) as usize]
            .clone();
        let order = keys.into_iter().map(|at| key(at, chance.below(2) == 0, chance.below(2) == 0)).collect();
        let partition =
            [vec![], vec![column(0)], vec![column(3), column(4)]][chance.below(3) as usize].clone();
        let all =
            [F::RowNumber, F::Rank, F::DenseRank].map(|function| call(function, vec![], DataType::Int64));
        // Without calls the rows still come out.
        let calls = all[..chance.below(4) as usize].to_vec();
        let mut window = window(partition, order, calls);
        window.top = Some(Top { rows: chance.below(4) as usize, with_peers: round % 2 == 0 });
        let expected = twin::evaluate(&window, &rows).map(by_number);
        for settings in all_settings() {
            check_against(&window, &rows, &settings, expected.as_deref());
            let collide = Settings { hash_collisions: true, ..settings };
            check_against(&window, &rows, &collide, expected.as_deref());
        }
    }
}

#[test]
fn bad_arguments_are_errors() {
    use WindowFunction as F;
    let rows = make_rows(5, 1, &mut Chance(3));
    let settings = &all_settings()[0];
    let order = vec![key(7, false, false)];
    let frame =
        |start| Frame { start, end: Bound::CurrentRow, units: FrameUnits::Rows, exclude: Exclude::NoOthers };
    let count = aggregate(AggregateFunction::CountStar, vec![], DataType::Int64);
    let null = Expr::literal(Value::Null, DataType::Int64);
    for offset in [integer(-1), null.clone()] {
        let call = WindowCall { frame: frame(Bound::Preceding(offset)), ..count.clone() };
        check(&window(vec![], order.clone(), vec![call]), &rows, settings);
    }
    let by_value = Frame { units: FrameUnits::Range, ..frame(Bound::Preceding(integer(-2))) };
    check(&window(vec![], order.clone(), vec![WindowCall { frame: by_value, ..count }]), &rows, settings);
    check(
        &window(vec![], order.clone(), vec![call(F::Ntile, vec![integer(0)], DataType::Int64)]),
        &rows,
        settings,
    );
    check(
        &window(vec![], order.clone(), vec![call(F::Ntile, vec![null.clone()], DataType::Int64)]),
        &rows,
        settings,
    );
    let nth = |n| call(F::NthValue, vec![column(3), n], DataType::Varchar);
    check(&window(vec![], order.clone(), vec![nth(integer(0))]), &rows, settings);
    check(&window(vec![], order.clone(), vec![nth(null)]), &rows, settings);
    // Without rows there is no error.
    check(&window(vec![], order, vec![nth(integer(0))]), &[], settings);
}

#[test]
fn sums_that_do_not_fit_are_errors() {
    let mut rows = make_rows(4, 1, &mut Chance(3));
    rows.iter_mut().for_each(|row| row[1] = Value::Integer(i64::MAX.into()));
    let sum = aggregate(AggregateFunction::Sum, vec![column(1)], DataType::Int64);
    let frame = Frame {
        units: FrameUnits::Rows,
        start: Bound::Preceding(integer(1)),
        end: Bound::CurrentRow,
        exclude: Exclude::NoOthers,
    };
    let order = vec![key(7, false, false)];
    let of = |frame: Frame| window(vec![], order.clone(), vec![WindowCall { frame, ..sum.clone() }]);
    check_against(&of(frame.clone()), &rows, &all_settings()[0], None);
    // One value at a time fits.
    check(&of(Frame { start: Bound::CurrentRow, ..frame }), &rows, &all_settings()[0]);
    rows.iter_mut().for_each(|row| row[5] = Value::Integer(10i128.pow(38) - 1));
    let sum = aggregate(AggregateFunction::Sum, vec![column(5)], WIDE);
    check_against(&window(vec![], order.clone(), vec![sum.clone()]), &rows, &all_settings()[0], None);
    let single = Frame { units: FrameUnits::Rows, start: Bound::CurrentRow, ..Frame::up_to_peers() };
    check(&window(vec![], order, vec![WindowCall { frame: single, ..sum }]), &rows, &all_settings()[0]);
}

#[test]
fn many_rows_are_prepared_by_all_workers() {
    let count = 120_000;
    let mut chance = Chance(17);
    let mut rows = make_rows(count, 1, &mut chance);
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = Value::Integer(i128::from(i < 1000));
        row[1] = Value::Integer(chance.below(1000) as i128);
    }
    let preceding = |n| Frame {
        units: FrameUnits::Rows,
        start: Bound::Preceding(integer(n)),
        end: Bound::CurrentRow,
        exclude: Exclude::NoOthers,
    };
    let running = Frame { units: FrameUnits::Rows, ..Frame::up_to_peers() };
    let of = |function, column_number: usize, ty, frame: &Frame| WindowCall {
        frame: frame.clone(),
        ..aggregate(function, vec![column(column_number)], ty)
    };
    use AggregateFunction as A;
    let calls = vec![
        of(A::Sum, 1, DataType::Int64, &running),
        of(A::Sum, 2, DataType::Float64, &running),
        of(A::Sum, 2, DataType::Float64, &preceding(20)),
        of(A::Max, 1, DataType::Int64, &preceding(20)),
        of(A::Count, 3, DataType::Int64, &preceding(20)),
        of(A::External(Arc::new(Middle { is_decided: true })), 1, DataType::Int64, &preceding(700)),
        WindowCall { distinct: true, ..of(A::Count, 1, DataType::Int64, &preceding(700)) },
        WindowCall { distinct: true, ..of(A::Count, 1, DataType::Int64, &running) },
    ];
    let window = window(vec![column(0)], vec![key(7, false, false)], calls);
    let found = run(&window, &rows, &all_settings()[0]).unwrap();
    let first = TYPES.len();
    for partition in [0..1000, 1000..count] {
        let (mut sum, mut floats, mut seen) = (0, 0.0, std::collections::HashSet::new());
        for i in partition.clone() {
            let near = &rows[partition.start.max(i.saturating_sub(20))..=i];
            let integers =
                near.iter().filter_map(|row| if let Value::Integer(v) = row[1] { Some(v) } else { None });
            let quarters = |row: &Vec<Value>| if let Value::Float(v) = row[2] { v } else { 0.0 };
            if let Value::Integer(v) = rows[i][1] {
                sum += v;
                seen.insert(v);
            }
            floats += quarters(&rows[i]);
            let results = &found[i][first..];
            assert_eq!(results[0], Value::Integer(sum), "row {i}");
            assert!(matches!(results[1], Value::Null) || results[1] == Value::Float(floats), "row {i}");
            let near_sum = near.iter().map(quarters).sum();
            assert!(matches!(results[2], Value::Null) || results[2] == Value::Float(near_sum), "row {i}");
            assert_eq!(results[3], integers.max().map_or(Value::Null, Value::Integer), "row {i}");
            let texts = near.iter().filter(|row| !row[3].is_null()).count();
            assert_eq!(results[4], Value::Integer(texts as i128), "row {i}");
            assert_eq!(results[7], Value::Integer(seen.len() as i128), "row {i}");
            if i % 97 == 0 {
                let long = &rows[partition.start.max(i.saturating_sub(700))..=i];
                let values =
                    long.iter().filter_map(|row| if let Value::Integer(v) = row[1] { Some(v) } else { None });
                let mut values: Vec<i128> = values.collect();
                values.sort_unstable();
                let middle =
                    values.len().checked_sub(1).map(|last| values[last / 2] + values[values.len() / 2]);
                assert_eq!(results[5], middle.map_or(Value::Null, Value::Integer), "row {i}");
                values.dedup();
                assert_eq!(results[6], Value::Integer(values.len() as i128), "row {i}");
            }
        }
    }
}

#[test]
fn rows_without_columns_are_counted() {
    let mut columns = Columns::default();
    let ids = vec![columns.add("c", DataType::Int64, true)];
    let rows = (0..10).map(|i| vec![Value::Integer(i)]).collect();
    let input = Box::new(Node::Values(Values { columns: ids, rows }));
    let calls = vec![
        call(WindowFunction::RowNumber, vec![], DataType::Int64),
        aggregate(AggregateFunction::CountStar, vec![], DataType::Int64),
    ];
    let mut calls = numbered(calls);
    calls.iter_mut().for_each(|(id, call)| *id = columns.add("w", call.ty, false));
    let output = calls.iter().map(|(column, _)| Output { name: String::new(), column: *column }).collect();
    let root = Node::Window(Window { input, partition: vec![], order: vec![], calls, top: None });
    let plan = Plan { root, columns, output };
    for settings in all_settings() {
        let context = QueryContext { settings: Arc::new(settings), ..QueryContext::default() };
        let collector = Collector::new(&context, vec![DataType::Int64; 2]);
        execute(&plan, &context, &collector).unwrap();
        let mut found = Vec::new();
        for chunk in &collector.into_chunks().chunks {
            let value = |row, column| chunk.value(row, column, DataType::Int64).ordinal();
            found.extend((0..chunk.len()).map(|row| (value(row, 0), value(row, 1))));
        }
        found.sort_unstable();
        let expected: Vec<_> = (1..=10).map(|i| (Some(i), Some(10))).collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn a_window_stops_when_it_is_asked_to() {
    let rows = make_rows(50, 3, &mut Chance(3));
    let context = QueryContext::default();
    context.cancel.raise();
    let mut columns = Columns::default();
    let ids = TYPES.iter().map(|ty| columns.add("c", *ty, true)).collect();
    let mut window = any_window(&mut Chance(3));
    window.input = Box::new(Node::Values(Values { columns: ids, rows }));
    window.calls.iter_mut().for_each(|(id, call)| *id = columns.add("w", call.ty, true));
    let column = window.calls[0].0;
    let output = vec![Output { name: String::new(), column }];
    let plan = Plan { root: Node::Window(window), columns, output };
    let types = vec![plan.columns.ty(plan.output[0].column)];
    let error = execute(&plan, &context, &Collector::new(&context, types)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Interrupted);
    assert_eq!(context.memory.used(), 0);
}
