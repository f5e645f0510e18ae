//! A workload that drifts while upkeep lays rows anew by it, against a map: what the table holds, what
//! snapshots from before and after still hold, and that the share of ghosts stays within its budget. Every
//! operation is counted, so that upkeep decides by what was just done.

use super::counters::{key, options};
use crate::tests::random::Random;
use crate::value::Datum;
use crate::{NEVER, RowGroup, Table, TableOptions, TableSnapshot};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const WIDTH: usize = 64;
const ROWS: i64 = 2400;
/// Days of the drift, and the operations of each.
const DAYS: u64 = 9;
const STEPS: usize = 400;

/// The twin: the values by key.
type Twin = BTreeMap<i64, i64>;

fn whole(datum: &Datum<'_>) -> i64 {
    if let Datum::Integer(value) = datum { *value as i64 } else { panic!("{datum:?}") }
}

fn contents(snapshot: &TableSnapshot) -> Twin {
    let rows: Vec<(i64, i64)> =
        snapshot.row_ids().map(|id| (whole(&snapshot.datum(id, 0)), whole(&snapshot.datum(id, 1)))).collect();
    let twin: Twin = rows.iter().copied().collect();
    assert_eq!(twin.len(), rows.len(), "no key is there twice");
    twin
}

/// The hot keys of a day: they move along the key; on every third day there are none.
fn hot(day: u64) -> std::ops::Range<i64> {
    let (all, start) = (ROWS * 10, (day * 7 % 10) as i64 * ROWS);
    if day % 3 == 2 { 0..all } else { start..(start + ROWS).min(all) }
}

/// An operation on the table and the twin. Late days only read; deletes follow where rows came before.
fn step(table: &Arc<Table>, twin: &mut Twin, day: u64, random: &mut Random) {
    let mut place = |keys: std::ops::Range<i64>| {
        let keys = if random.below(10) == 0 { 0..ROWS * 10 } else { keys };
        keys.start + random.number((keys.end - keys.start) as u64)
    };
    let (at, old) = (place(hot(day)), place(hot(day.saturating_sub(2))));
    let near = |twin: &Twin, at: i64| twin.range(at..).next().map(|(key, _)| *key);
    match if day == 6 { random.below(3) } else { random.below(12) } {
        0 | 1 => {
            let found = table.read(|reader| {
                let (id, mut values) = (reader.find(&key(at))?, Vec::new());
                reader.read(id, &[1], &mut values);
                Some(whole(&values[0]))
            });
            assert_eq!(found, twin.get(&at).copied());
        }
        2 => {
            let (low, high) = (key(at), key(at + 500));
            let snapshot = table.snapshot();
            let ranges = snapshot.scan_range(Bound::Included(&low[..]), Bound::Excluded(&high[..]));
            let live = |range: &crate::SlotRange| {
                snapshot.row_group(range.group).unwrap().live_rows(range.slots.clone())
            };
            let count = twin.range(at..at + 500).count();
            assert!(ranges.iter().map(live).sum::<usize>() >= count, "a range leaves no row out");
        }
        3 | 4 => {
            let Some(gone) = near(twin, old) else { return };
            let mut writer = table.write();
            let id = writer.find(&key(gone)).expect("the row is there");
            writer.delete(id);
            twin.remove(&gone);
        }
        5 => {
            let Some(from) = near(twin, old).filter(|from| !twin.contains_key(&at) || *from == at) else {
                return;
            };
            let mut writer = table.write();
            let id = writer.find(&key(from)).expect("the row is there");
            writer.update(id, &[(0, Datum::Integer(at.into()))]);
            let value = twin.remove(&from).unwrap();
            twin.insert(at, value);
        }
        6 => {
            let Some(own) = near(twin, at) else { return };
            let mut writer = table.write();
            let id = writer.find(&key(own)).expect("the row is there");
            writer.update(id, &[(1, Datum::Integer((day as i64).into()))]);
            twin.insert(own, day as i64);
        }
        _ if twin.contains_key(&at) => {}
        _ => {
            table.write().insert(&[Datum::Integer(at.into()), Datum::Integer((at / 3).into())]);
            twin.insert(at, at / 3);
        }
    }
}

fn loaded(ghost: f64, rest: u32) -> (Arc<Table>, Twin) {
    // Sixteen slices a row group, so that row groups are cut while it grows.
    let table = super::counters::loaded(ROWS, TableOptions { ghost, rest, ..options(WIDTH, 16, 1) });
    (table, (0..ROWS).map(|i| (i * 10, 1)).collect())
}

/// Upkeep until nothing has been left to do for some rounds. Returns the slices that were laid anew.
fn rest(table: &Arc<Table>) -> usize {
    let (mut spread, mut idle, mut rounds) = (0, 0, 0);
    while idle < 4 {
        let done = table.upkeep(Duration::from_secs(60));
        spread += done.spread;
        idle = if done.is_done && done.spread + done.encoded == 0 { idle + 1 } else { 0 };
        rounds += 1;
        assert!(rounds < 100, "upkeep comes to an end");
    }
    spread
}

fn assert_budget(table: &Arc<Table>, own: bool) {
    for group in table.snapshot().row_groups() {
        let share = table.options().ghost_budget(group.rows()) as usize;
        let budget = if own { share } else { share.max(group.rows() / 8) };
        let ghosts = group.slots() - group.rows();
        assert!(ghosts <= budget + 2 * WIDTH, "{ghosts} ghosts of {}, budget {budget}", group.slots());
    }
}

#[test]
fn a_table_keeps_its_rows_while_its_layout_follows_a_drift() {
    let mut moved = 0;
    for (seed, ghost, wait) in [(1, 0.01, NEVER), (2, 0.1, 2), (3, 0.3, NEVER), (4, 0.5, 1)] {
        let random = &mut Random(seed * 0x9E37_79B9 + 88_172_645_463_325_252);
        let (table, mut twin) = loaded(ghost, wait);
        let mut held: Vec<(TableSnapshot, Twin)> = Vec::new();
        for day in 0..DAYS {
            for number in 0..STEPS {
                step(&table, &mut twin, day, random);
                if number % 80 == 79 {
                    held.push((table.snapshot(), twin.clone()));
                    moved += table.upkeep(Duration::from_secs(60)).spread;
                }
            }
            held.push((table.snapshot(), twin.clone()));
            moved += rest(&table);
            table.snapshot().check();
            assert_budget(&table, false);
            held.push((table.snapshot(), twin.clone()));
            // Those of yesterday are still held while today's operations go on.
            while held.len() > 8 {
                let (snapshot, twin) = held.remove(random.below(held.len() as u64) as usize);
                assert_eq!(contents(&snapshot), twin);
            }
            assert_eq!(contents(&table.snapshot()), twin, "seed {seed}, day {day}");
        }
        (0..12).for_each(|_| moved += table.upkeep(Duration::from_secs(60)).spread);
        assert_budget(&table, true);
        table.snapshot().check();
        held.push((table.snapshot(), twin));
        assert!(held.into_iter().all(|(snapshot, twin)| contents(&snapshot) == twin));
        let decisions =
            (0..table.snapshot().row_groups().len()).map(|group| table.snapshot().decision(group));
        assert!(decisions.flatten().count() > 1, "upkeep has decided by the workload");
    }
    assert!(moved > 10, "rows were laid anew: {moved} slices");
}

/// The same with upkeep on a thread of its own, so that windows are laid while they are written.
#[test]
fn upkeep_beside_a_drift_changes_nothing() {
    let random = &mut Random(88_172_645_463_325_252);
    let (table, mut twin) = loaded(0.3, 1);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                table.upkeep(Duration::from_millis(1));
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        let mut held = Vec::new();
        for day in 0..DAYS {
            for number in 0..STEPS {
                step(&table, &mut twin, day, random);
                if number % 100 == 0 {
                    held.push((table.snapshot(), twin.clone()));
                }
            }
        }
        is_over.store(true, Ordering::Relaxed);
        assert!(held.into_iter().all(|(snapshot, twin)| contents(&snapshot) == twin));
    });
    rest(&table);
    let slots: usize = table.snapshot().row_groups().map(RowGroup::slots).sum();
    table.snapshot().check();
    assert_budget(&table, false);
    assert_eq!(contents(&table.snapshot()), twin);
    assert!(slots >= twin.len());
}
