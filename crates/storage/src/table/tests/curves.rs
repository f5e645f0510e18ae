//! Tables in the order of a curve: what they have of their own. Random histories are in the model test, files
//! in those of checkpoints.

use super::rows::insert;
use crate::tests::random::Random;
use crate::{
    Among, Condition, Curve, Datum, Layout, Table, TableOptions, TableSnapshot, Transaction, ValueRange,
};
use entasis_layout::cost::blocks_of_box;
use entasis_vector::{DataType, Field, PhysicalType, Schema, Value};
use std::ops::Bound;
use std::sync::Arc;

const CURVES: [Curve; 2] = [Curve::ZOrder, Curve::Hilbert];

fn schema() -> Schema {
    ["a", "b", "v"].into_iter().map(|name| Field::new(name, DataType::Int64)).collect()
}

fn options(curve: Option<Curve>) -> TableOptions {
    TableOptions {
        curve,
        block_slots: 64,
        group_slots: 1024,
        partitions: 16,
        ..TableOptions::keyed(vec![0, 1])
    }
}

fn row(values: [i64; 3]) -> Vec<Value> {
    values.into_iter().map(|value| Value::Integer(value.into())).collect()
}

fn loaded(options: TableOptions, rows: &[[i64; 3]]) -> Arc<Table> {
    let table = Table::with_options("t", schema(), options);
    let rows: Vec<Vec<Value>> = rows.iter().map(|values| row(*values)).collect();
    insert(&table, &rows, false);
    table
}

/// Points of a square, in no order; the second coordinate is skewed.
fn scattered(count: i64) -> Vec<[i64; 3]> {
    let point = |i: i64| {
        let (a, b) = (i * 7919 % 1_000_003, i * 104_729 % 999_983);
        [a, b * b / 1_000_000, i]
    };
    (0..count).map(point).collect()
}

/// Blocks with a row of a box by their zones, and its rows.
fn touched(snapshot: &TableSnapshot, of: [(i128, i128); 2]) -> (usize, usize) {
    let within = |column: usize| {
        let (low, high) = of[column];
        Condition::Range(ValueRange { column, physical: PhysicalType::I64, low, high })
    };
    let is_near = |zone: &crate::Zone, (low, high): (i128, i128)| match (&zone.min, &zone.max) {
        (Value::Integer(min), Value::Integer(max)) => *min <= high && *max >= low,
        _ => false,
    };
    let (mut blocks, mut rows) = (0, 0);
    for group in snapshot.row_groups() {
        let near = |block: &usize| (0..2).all(|column| is_near(group.zone(column, *block), of[column]));
        blocks += (0..group.blocks()).filter(near).count();
        let mut found = Vec::new();
        group.select_runs(&[within(0), within(1)], std::slice::from_ref(&(0..group.slots())), &mut found);
        rows += found.len();
    }
    (blocks, rows)
}

#[test]
fn boxes_touch_few_blocks() {
    let points = scattered(20_000);
    let tables = [None, Some(Curve::ZOrder), Some(Curve::Hilbert)].map(|curve| {
        let table = loaded(options(curve), &points);
        table.snapshot().check();
        table.snapshot()
    });
    let (mut sums, mut expected_blocks) = ([0; 3], 0.0);
    let mut random = Random(5);
    for _ in 0..50 {
        let of = [0, 1].map(|column| {
            let at = points[random.below(20_000) as usize][column];
            (i128::from(at - 30_000), i128::from(at + 30_000))
        });
        let is_within = |point: &&[i64; 3]| {
            (0..2).all(|column| (of[column].0..=of[column].1).contains(&point[column].into()))
        };
        let expected = points.iter().filter(is_within).count();
        let shares = [0, 1].map(|column| {
            let (low, high) = of[column];
            let own = points.iter().filter(|point| (low..=high).contains(&point[column].into())).count();
            own as f64 / points.len() as f64
        });
        let blocks: usize = tables[2].row_groups().map(|group| group.blocks()).sum();
        expected_blocks += blocks_of_box(blocks as f64, &shares);
        for (sum, snapshot) in sums.iter_mut().zip(&tables) {
            let (blocks, rows) = touched(snapshot, of);
            assert_eq!(rows, expected);
            *sum += blocks;
        }
    }
    let [by_columns, by_z_order, by_hilbert] = sums;
    assert!(by_z_order * 2 < by_columns && by_hilbert * 2 < by_columns, "{sums:?}");
    // As the optimizer of layouts expects it.
    for met in [by_z_order, by_hilbert] {
        let ratio = met as f64 / expected_blocks;
        assert!((0.67..1.5).contains(&ratio), "{sums:?} and {expected_blocks}");
    }
}

/// Rows of a box do not stand together, so nothing is taken for whole that is not.
#[test]
fn ranges_by_a_part_of_the_key_are_tested() {
    for curve in CURVES {
        let points = scattered(3000);
        let snapshot = loaded(options(Some(curve)), &points).snapshot();
        let whole = snapshot.range(Bound::Unbounded, Bound::Unbounded);
        assert!(whole.iter().all(|range| range.is_whole), "all rows are in no bounds");
        let bound = [Datum::Integer(500_000)];
        let part = snapshot.range(Bound::Included(&bound), Bound::Unbounded);
        assert!(part.iter().all(|range| !range.is_whole));
        let [a, b, _] = points[77].map(|value| Datum::Integer(value.into()));
        let point = snapshot.scan_range(Bound::Included(&[a, b]), Bound::Included(&[a, b]));
        let slots: usize = point.iter().map(|range| range.slots.len()).sum();
        assert!(slots < 1000 && point.iter().all(|range| !range.is_whole), "{slots} slots");
    }
}

/// Rows that were there before a sample, or that come to a fork meanwhile, are found as all others are.
#[test]
fn the_first_key_decides_whether_there_is_a_grid() {
    for curve in CURVES {
        for single_first in [false, true] {
            let table = Table::with_options("t", schema(), options(Some(curve)));
            let mut fork = Transaction::begin(std::slice::from_ref(&table));
            let single = row([5, 6, 7]);
            if single_first {
                fork.write(&table).insert(&super::model::datums(&single, &schema()));
            }
            let rows: Vec<Vec<Value>> = scattered(2000).into_iter().map(row).collect();
            insert(&table, &rows, false);
            if !single_first {
                fork.write(&table).insert(&super::model::datums(&single, &schema()));
            }
            fork.snapshot(&table).check();
            let snapshot = table.snapshot();
            snapshot.check();
            for values in rows.iter().step_by(37) {
                let (mut found, datums) = (0, super::model::datums(values, &schema()));
                snapshot.find_each(&datums[..2], |_| {
                    found += 1;
                    true
                });
                assert_eq!(found, 1);
            }
            let mut found = 0;
            fork.snapshot(&table).find_each(&[Datum::Integer(5), Datum::Integer(6)], |_| {
                found += 1;
                true
            });
            assert_eq!(found, 1);
        }
    }
}

/// An heir has the grid of the table whose blocks it shows, and so do its new rows.
#[test]
fn heirs_go_on_along_the_curve() {
    for curve in CURVES {
        let table = loaded(options(Some(curve)), &scattered(2000));
        let mut columns = schema();
        columns.push(Field::new("new", DataType::Int64));
        let sources = [
            crate::ColumnSource::Old(0),
            crate::ColumnSource::Old(1),
            crate::ColumnSource::Old(2),
            crate::ColumnSource::Constant(Value::Integer(1)),
        ];
        let made = |options| table.snapshot().with_columns(columns.clone(), &sources, options);
        let other = if curve == Curve::ZOrder { Curve::Hilbert } else { Curve::ZOrder };
        assert!(made(options(None)).is_none() && made(options(Some(other))).is_none());
        let heir = made(options(Some(curve))).expect("it is laid alike");
        for values in scattered(2500).into_iter().skip(2000) {
            let values = [&values[..], &[9]].concat();
            let datums: Vec<Datum<'_>> = values.iter().map(|value| Datum::Integer((*value).into())).collect();
            heir.write().insert(&datums);
        }
        heir.snapshot().check();
        assert_eq!(heir.rows(), 2500);
    }
}

#[test]
fn tables_are_laid_anew_along_curves_and_back() {
    let points = scattered(3000);
    let mut table =
        loaded(TableOptions { block_slots: 64, group_slots: 1024, ..TableOptions::default() }, &points);
    for to in [Some(Curve::Hilbert), None, Some(Curve::ZOrder), Some(Curve::Hilbert)] {
        table = table.snapshot().relaid(options(to)).expect("no text is too long");
        table.snapshot().check();
        let snapshot = table.snapshot();
        let mut rows: Vec<Vec<Value>> = snapshot
            .row_ids()
            .map(|id| (0..3).map(|column| snapshot.datum(id, column).value(DataType::Int64)).collect())
            .collect();
        rows.sort_by(|a, b| a[2].total_cmp(&b[2]));
        assert_eq!(rows, points.iter().map(|point| row(*point)).collect::<Vec<_>>());
    }
}

/// Different keys meet at one position, and equal ones stand on both sides of fences.
#[test]
fn duplicates_are_told_from_neighbours() {
    let random = &mut Random(88_172_645_463_325_252);
    let mut found_some = 0;
    for round in 0..300 {
        let options = TableOptions {
            layout: [Layout::Equi, Layout::EquiGhost][round % 2],
            curve: Some(CURVES[round / 2 % 2]),
            block_slots: 8,
            group_slots: 32,
            partitions: 4,
            ..TableOptions::keyed(vec![0, 1])
        };
        let table = Table::with_options("t", schema(), options);
        let (first, second) = ([2, 30, 2000][random.below(3) as usize], [30, 200][random.below(2) as usize]);
        let mut keys: Vec<[i64; 2]> =
            (0..random.below(200)).map(|_| [random.number(first), random.number(second)]).collect();
        if random.below(2) == 0 {
            keys.sort_unstable();
            keys.dedup();
            random.shuffle(&mut keys);
        }
        let rows: Vec<Vec<Value>> = keys.iter().map(|key| row([key[0], key[1], 0])).collect();
        let bulk = random.below(rows.len() as u64 + 1) as usize;
        insert(&table, &rows[..bulk], false);
        for values in &rows[bulk..] {
            table.write().insert(&super::model::datums(values, &schema()));
        }
        // A key with a NULL equals none.
        (0..2).for_each(|_| _ = table.write().insert(&[Datum::Null, Datum::Integer(1), Datum::Integer(1)]));
        keys.sort_unstable();
        let expected = keys.windows(2).any(|pair| pair[0] == pair[1]);
        let snapshot = table.snapshot();
        snapshot.check();
        let found = (0..snapshot.row_groups().len()).find_map(|group| snapshot.first_duplicate(group));
        assert_eq!(found.is_some(), expected, "{keys:?}");
        let mut alone = Transaction::alone(std::slice::from_ref(&table));
        let groups = 0..snapshot.row_groups().len();
        assert_eq!(alone.write(&table).first_duplicate(Among::Groups(groups)), found);
        if let Some(id) = found {
            let key = [snapshot.datum(id, 0), snapshot.datum(id, 1)];
            let mut count = 0;
            snapshot.find_each(&key, |_| {
                count += 1;
                true
            });
            assert!(count > 1);
            found_some += 1;
        }
    }
    assert!((50..250).contains(&found_some), "{found_some}");
}
