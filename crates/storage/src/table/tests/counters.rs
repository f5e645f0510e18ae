//! Counters of operations against a twin that counts each operation by its definition, with sampling off; and
//! against the number of operations, while row groups are spread, cut and joined.

use crate::tests::random::Random;
use crate::tree::key::Key;
use crate::tree::{LiveCounters, RowId};
use crate::value::Datum;
use crate::{CounterOptions, Layout, NEVER, Table, TableOptions, TableSnapshot};
use entasis_layout::frequency::Kind;
use entasis_vector::{DataType, Field, Schema, Value};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

fn schema() -> Schema {
    vec![Field { nullable: false, ..Field::new("k", DataType::Int64) }, Field::new("v", DataType::Int32)]
}

pub(super) fn options(block_slots: usize, slices: usize, every: u32) -> TableOptions {
    TableOptions {
        layout: Layout::Casper,
        block_slots,
        group_slots: block_slots * slices,
        partitions: slices,
        ghost: 0.3,
        rest: NEVER,
        counters: CounterOptions { slots: block_slots, every },
        ..TableOptions::keyed(vec![0])
    }
}

/// A table with the keys 0, 10, 20, …
pub(super) fn loaded(rows: i64, options: TableOptions) -> Arc<Table> {
    let table = Table::with_options("t", schema(), options);
    let row = |i: i64| vec![Value::Integer(i128::from(i * 10)), Value::Integer(1)];
    crate::table::tests::rows::insert(&table, &(0..rows).map(row).collect::<Vec<_>>(), false);
    table
}

pub(super) fn key(value: i64) -> [Datum<'static>; 1] {
    [Datum::Integer(value.into())]
}

pub(super) fn row(value: i64) -> [Datum<'static>; 2] {
    [Datum::Integer(value.into()), Datum::Integer(2)]
}

fn counters(snapshot: &TableSnapshot) -> Vec<&LiveCounters> {
    snapshot.row_groups().map(|group| group.counters.as_deref().expect("it counts")).collect()
}

/// How often each kind was counted in the whole table.
fn totals(table: &Arc<Table>) -> [f64; Kind::COUNT] {
    let snapshot = table.snapshot();
    let mut totals = [0.0; Kind::COUNT];
    for own in counters(&snapshot) {
        let frequency = own.frequency();
        Kind::ALL.iter().for_each(|&kind| totals[kind as usize] += frequency.of(kind).iter().sum::<f64>());
    }
    totals
}

/// The twin: asks of each bin what the definitions say.
struct Twin {
    /// The least keys of all bins of the table.
    bins: Vec<Key>,
    counts: Vec<[f64; Kind::COUNT]>,
}

impl Twin {
    fn of(table: &Arc<Table>) -> Twin {
        let snapshot = table.snapshot();
        let fences = counters(&snapshot)
            .into_iter()
            .flat_map(|own| (0..own.bins()).map(|bin| own.fences().get(bin)).collect::<Vec<_>>());
        let bins: Vec<Key> = fences.collect();
        Twin { counts: vec![[0.0; Kind::COUNT]; bins.len()], bins }
    }

    fn word(value: i64) -> Key {
        Key::Word((value as u64) ^ (1 << 63))
    }

    fn home(&self, value: i64) -> usize {
        (0..self.bins.len()).rev().find(|&bin| self.bins[bin] <= Twin::word(value)).unwrap_or(0)
    }

    fn add(&mut self, kind: Kind, bin: usize) {
        self.counts[bin][kind as usize] += 1.0;
    }

    fn range(&mut self, first: usize, last: usize) {
        for bin in 0..self.bins.len() {
            if bin == first {
                self.add(Kind::RangeStart, bin);
            }
            if bin == last {
                self.add(Kind::RangeEnd, bin);
            }
            if bin > first && bin < last {
                self.add(Kind::Scan, bin);
            }
        }
    }

    fn update(&mut self, from: i64, to: i64) {
        let (from, to) = (self.home(from), self.home(to));
        let kinds = if from < to {
            [Kind::UpdateFromForward, Kind::UpdateToForward]
        } else {
            [Kind::UpdateFromBackward, Kind::UpdateToBackward]
        };
        self.add(kinds[0], from);
        self.add(kinds[1], to);
    }

    fn assert_same(&self, table: &Arc<Table>) {
        let snapshot = table.snapshot();
        let mut at = 0;
        for own in counters(&snapshot) {
            let frequency = own.frequency();
            for bin in 0..own.bins() {
                assert_eq!(own.fences().get(bin), self.bins[at], "bins stay as they are");
                for kind in Kind::ALL {
                    let (counted, twin) = (frequency.of(kind)[bin], self.counts[at][kind as usize]);
                    assert_eq!(counted, twin, "{kind:?} of bin {at}");
                }
                at += 1;
            }
        }
        assert_eq!(at, self.bins.len());
    }
}

#[test]
fn each_operation_is_counted_where_it_belongs() {
    let random = &mut Random(88_172_645_463_325_252);
    // Several row groups, with room for some inserts.
    let table = loaded(300, options(16, 8, 1));
    assert!(table.snapshot().row_groups().len() > 2);
    let mut twin = Twin::of(&table);
    assert!(twin.bins.len() > 16);
    let mut keys: Vec<i64> = (0..300).map(|i| i * 10).collect();
    for step in 0..400 {
        let value = random.number(3100) - 50;
        match step % 8 {
            0 | 1 => {
                table.snapshot().find(&key(value));
                let home = twin.home(value);
                twin.add(Kind::PointQuery, home);
            }
            2 => {
                let at = random.below(keys.len() as u64) as usize;
                let old = keys.swap_remove(at);
                // A plain change of another column is a point query and no more.
                let mut writer = table.write();
                let id = writer.find(&key(old)).unwrap();
                writer.update(id, &[(1, Datum::Integer(7))]);
                writer.delete(id);
                let home = twin.home(old);
                twin.add(Kind::PointQuery, home);
                twin.add(Kind::Delete, home);
            }
            3 if !keys.contains(&value) => {
                table.write().insert(&row(value));
                keys.push(value);
                let home = twin.home(value);
                twin.add(Kind::Insert, home);
            }
            4 => {
                let at = random.below(keys.len() as u64) as usize;
                let old = std::mem::replace(&mut keys[at], value);
                let mut writer = table.write();
                let id = writer.find(&key(old)).unwrap();
                writer.update(id, &[(0, Datum::Integer(value.into()))]);
                let home = twin.home(old);
                twin.add(Kind::PointQuery, home);
                twin.update(old, value);
            }
            5 | 6 => {
                let (low, high) = (value.min(1500), value.max(1500));
                let (low, high) = (key(low), key(high));
                let snapshot = table.snapshot();
                let last = twin.bins.len() - 1;
                // Explaining a range reads nothing.
                snapshot.range(Bound::Included(&low), Bound::Included(&high));
                let of = |key: &[Datum<'_>; 1]| match key[0] {
                    Datum::Integer(value) => value as i64,
                    _ => unreachable!("keys are numbers"),
                };
                let (l, h) = (of(&low), of(&high));
                match random.below(3) {
                    0 => {
                        snapshot.scan_range(Bound::Included(&low), Bound::Included(&high));
                        match l == h {
                            true => twin.add(Kind::PointQuery, twin.home(l)),
                            false => twin.range(twin.home(l), twin.home(h)),
                        }
                    }
                    1 => {
                        snapshot.scan_range(Bound::Excluded(&low), Bound::Excluded(&high));
                        twin.range(twin.home(l), twin.home(h - 1).max(twin.home(l)));
                    }
                    _ => {
                        snapshot.scan_range(Bound::Unbounded, Bound::Included(&high));
                        snapshot.scan_range(Bound::Included(&low), Bound::Unbounded);
                        twin.range(0, twin.home(h));
                        twin.range(twin.home(l), last);
                    }
                }
            }
            // A check of the keys is no operation of the workload.
            _ => {
                let snapshot = table.snapshot();
                (0..snapshot.row_groups().len()).for_each(|number| {
                    assert!(snapshot.first_duplicate(number).is_none_or(|id| id.group as usize == number));
                });
            }
        }
        table.snapshot().check();
        if step % 16 == 0 {
            twin.assert_same(&table);
        }
    }
    twin.assert_same(&table);
    // Many at once.
    let snapshot = table.snapshot();
    let ids: Vec<RowId> = snapshot.row_ids().step_by(7).collect();
    for &id in &ids {
        let Datum::Integer(value) = snapshot.datum(id, 0) else { unreachable!("keys are numbers") };
        let home = twin.home(value as i64);
        twin.add(Kind::Delete, home);
    }
    let mut writer = table.write();
    writer.delete_many(&ids);
    drop(writer);
    twin.assert_same(&table);
}

#[test]
fn no_count_is_lost_where_row_groups_are_cut_and_joined() {
    for seed in 1..6 {
        let random = &mut Random(seed * 0x9E37_79B9 + 88_172_645_463_325_252);
        let table = loaded(200, options(8, 8, 1));
        let mut keys: Vec<i64> = (0..200).map(|i| i * 10).collect();
        let mut twin = [0.0; Kind::COUNT];
        let (mut most, mut snapshots) = (0, Vec::new());
        for step in 0..1500 {
            // First it grows, then it shrinks, but so that no row group is left without a row.
            let grows = step < 900;
            let mut writer = table.write();
            if grows || random.below(4) == 0 {
                let span = if random.below(2) == 0 { 2000 } else { 100 };
                let value = random.number(span);
                writer.insert(&row(value));
                keys.push(value);
                twin[Kind::Insert as usize] += 1.0;
            } else if keys.len() > 150 {
                let old = keys.swap_remove(random.below(keys.len() as u64) as usize);
                let id = writer.find(&key(old)).unwrap();
                twin[Kind::PointQuery as usize] += 1.0;
                writer.delete(id);
                twin[Kind::Delete as usize] += 1.0;
            }
            drop(writer);
            if step % 90 == 0 {
                snapshots.push(table.snapshot());
                while !table.upkeep(Duration::from_secs(60)).is_done {}
            }
            let snapshot = table.snapshot();
            most = most.max(snapshot.row_groups().len());
            let is_whole = snapshot.row_groups().all(|group| group.rows() > 0);
            assert!(is_whole || !grows);
            if step % 10 == 0 && grows {
                assert_eq!(totals(&table), twin, "step {step}");
                let credit: f64 = counters(&snapshot).into_iter().map(LiveCounters::credit).sum();
                assert!(credit <= twin[Kind::Insert as usize], "what is shared out is not made: {credit}");
            }
        }
        assert!(most > 6, "row groups were cut");
        let before = totals(&table);
        snapshots.clear();
        // Neighbours are joined: nothing is dropped, since all have rows.
        if table.snapshot().row_groups().all(|group| group.rows() > 0) {
            (0..4).for_each(|_| assert!(table.upkeep(Duration::from_secs(60)).is_done));
            assert_eq!(totals(&table), before);
        }
    }
}

#[test]
fn rows_laid_anew_keep_counts_and_other_layouts_have_none() {
    let table = loaded(200, options(8, 8, 1));
    (0..50).for_each(|i| {
        table.snapshot().find(&key(i));
    });
    // So many that all is laid out anew.
    let rows: Vec<Vec<Value>> =
        (0..500).map(|i| vec![Value::Integer(i * 4 + 1), Value::Integer(3)]).collect();
    crate::table::tests::rows::insert(&table, &rows, false);
    assert_eq!(totals(&table)[Kind::PointQuery as usize], 50.0);
    let low = counters(&table.snapshot())[0].frequency();
    assert_eq!(low.of(Kind::PointQuery).iter().sum::<f64>(), 50.0, "they stay with their keys");
    table.write().clear();
    assert!(table.snapshot().row_groups().len() == 0);
    for options in [
        TableOptions { layout: Layout::EquiGhost, ..options(8, 8, 1) },
        TableOptions::default(),
        options(8, 8, 0),
    ] {
        let table = loaded(100, options);
        table.snapshot().find(&key(10));
        table.write().insert(&row(3));
        assert!(table.snapshot().row_groups().all(|group| group.counters.is_none()));
    }
}

#[test]
fn a_sample_is_about_right_and_the_past_fades() {
    let table = loaded(40, options(8, 8, 8));
    (0..80_000).for_each(|_| {
        table.snapshot().find(&key(100));
    });
    let counted = totals(&table)[Kind::PointQuery as usize];
    // 10,000 in the mean, with a standard error of about 94, times eight.
    assert!((counted - 80_000.0).abs() < 8.0 * 94.0 * 6.0, "{counted}");
    table.upkeep(Duration::from_secs(60));
    let faded = totals(&table)[Kind::PointQuery as usize];
    assert!((faded - counted / 2.0).abs() <= 8.0, "{counted} {faded}");
    // Not again before as much has happened.
    table.upkeep(Duration::from_secs(60));
    assert_eq!(totals(&table)[Kind::PointQuery as usize], faded);
}
