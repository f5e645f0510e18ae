//! Orders against a stable sort of rows of values.

use super::*;
use crate::exec::testing::{Chance, column, drain, push_all};
use crate::settings::{Settings, TempCompression};
use entasis_vector::{DataType, Value};
use std::cmp::Ordering as Order;

const WIDE: DataType = DataType::Decimal { precision: 38, scale: 2 };

pub(super) fn input() -> Vec<ColumnMeta> {
    use DataType::{Boolean, Float32, Float64, Int32, Interval, Varchar};
    [Int32, Varchar, Float64, WIDE, Boolean, Interval, Float32, DataType::Int64]
        .into_iter()
        .enumerate()
        .map(|(i, ty)| column(i as u32, ty))
        .collect()
}

/// Codes and levels end after 16, 32, 48 bytes.
pub(super) const TEXTS: [&str; 11] = [
    "",
    "a",
    "a\0",
    "same prefix",
    "same prefix, longer",
    "same prefiy",
    "sixteen bytes or",
    "sixteen bytes or\0",
    "sixteen bytes or thirty-two of it",
    "sixteen bytes or thirty-two of it, and even more than forty-eight: a",
    "sixteen bytes or thirty-two of it, and even more than forty-eight: b",
];

pub(super) fn make_rows(count: usize, chance: &mut Chance) -> Vec<Vec<Value>> {
    let float = |n: u64| match n {
        0 => f64::NAN,
        1 => -0.0,
        2 => f64::INFINITY,
        n => n as f64 - 6.0,
    };
    (0..count)
        .map(|i| {
            let n = chance.below(30);
            let row = [
                Value::Integer(n as i128 - 15),
                Value::Text(TEXTS[n as usize % TEXTS.len()].into()),
                Value::Float(float(chance.below(12))),
                Value::Integer((chance.below(9) as i128 - 4) << 90),
                Value::Boolean(n.is_multiple_of(2)),
                Value::Interval(entasis_vector::Interval {
                    months: chance.below(2) as i32,
                    days: chance.below(31) as i32,
                    micros: 0,
                }),
                Value::Float(float(chance.below(12))),
                Value::Integer(i as i128),
            ];
            let last = row.len() - 1;
            let nullable = |(c, v)| if c < last && chance.below(10) == 0 { Value::Null } else { v };
            row.into_iter().enumerate().map(nullable).collect()
        })
        .collect()
}

/// The twin's comparison.
pub(super) fn compare(keys: &[(usize, bool, bool)], a: &[Value], b: &[Value]) -> Order {
    keys.iter()
        .map(|&(column, descending, nulls_first)| match (&a[column], &b[column]) {
            (Value::Null, Value::Null) => Order::Equal,
            (Value::Null, _) if nulls_first => Order::Less,
            (_, Value::Null) if nulls_first => Order::Greater,
            (Value::Null, _) => Order::Greater,
            (_, Value::Null) => Order::Less,
            (a, b) if descending => b.total_cmp(a),
            (a, b) => a.total_cmp(b),
        })
        .find(|order| order.is_ne())
        .unwrap_or(Order::Equal)
}

fn check(
    keys: &[(usize, bool, bool)],
    limit: Option<usize>,
    rows: &[Vec<Value>],
    chunk_rows: usize,
    workers: usize,
) {
    for temp_compression in [TempCompression::Off, TempCompression::On] {
        check_with(temp_compression, keys, limit, rows, chunk_rows, workers);
    }
}

fn check_with(
    temp_compression: TempCompression,
    keys: &[(usize, bool, bool)],
    limit: Option<usize>,
    rows: &[Vec<Value>],
    chunk_rows: usize,
    workers: usize,
) {
    let metas = input();
    let sort_keys: Vec<SortKey> = keys
        .iter()
        .map(|&(column, descending, nulls_first)| SortKey {
            expr: Expr::column(ColumnId(column as u32), metas[column].ty),
            descending,
            nulls_first,
        })
        .collect();
    let settings = Settings { chunk_rows, temp_compression, ..Settings::default() };
    let context = QueryContext { settings: Arc::new(settings), ..QueryContext::default() };
    let blocking = sort(&metas, &sort_keys, limit, None, &context, &Recorder::new(String::new())).unwrap();
    push_all(&*blocking.sink, &metas, rows, chunk_rows, workers, &mut Chance(99)).unwrap();
    let result = drain(&*blocking.source, &metas, chunk_rows).unwrap();
    let mut expected = rows.to_vec();
    expected.sort_by(|a, b| compare(keys, a, b));
    expected.truncate(limit.unwrap_or(usize::MAX));
    assert_eq!(result.len(), expected.len());
    for (i, (got, expected)) in result.iter().zip(&expected).enumerate() {
        assert_eq!(
            got, expected,
            "row {i} by {keys:?} limit {limit:?} in chunks of {chunk_rows}, {temp_compression}"
        );
    }
    drop(blocking);
    assert_eq!(context.memory.used(), 0);
}

#[test]
fn orders_agree_with_the_twin() {
    let rows = make_rows(700, &mut Chance(21));
    let orders: [&[(usize, bool, bool)]; 12] = [
        &[(0, false, false)],
        &[(0, true, true)],
        &[(1, false, true)],
        &[(1, true, false)],
        &[(2, false, false)],
        &[(2, true, false), (6, false, true)],
        &[(3, true, true)],
        &[(3, false, false), (2, false, false), (1, true, true)],
        &[(5, false, false), (4, true, false)],
        &[(6, true, false), (0, false, false)],
        &[(2, false, false), (3, false, true), (5, true, false), (0, false, false), (1, true, false)],
        &[],
    ];
    for keys in orders {
        for (chunk_rows, workers) in [(3, 2), (100, 1), (512, 2)] {
            check(keys, None, &rows, chunk_rows, workers);
            for limit in [0, 1, 10, 300, 100_000] {
                check(keys, Some(limit), &rows, chunk_rows, workers);
            }
        }
    }
}

#[test]
fn large_orders_are_merged_in_stretches() {
    let rows = make_rows(150_000, &mut Chance(22));
    check(&[(0, true, false), (1, false, false)], None, &rows, 2048, 2);
    check(&[(3, false, false), (2, true, false)], Some(40_000), &rows, 2048, 2);
    check(&[(1, true, false), (0, false, false)], None, &rows, 2048, 2);
}

#[test]
fn a_bounded_buffer_filters_what_is_beyond_its_threshold() {
    let rows = make_rows(20_000, &mut Chance(23));
    for keys in [
        &[(0, false, true)][..],
        &[(1, true, false), (0, false, false)],
        &[(2, false, false)],
        &[(7, true, true)],
    ] {
        check(keys, Some(20), &rows, 1000, 2);
    }
}
