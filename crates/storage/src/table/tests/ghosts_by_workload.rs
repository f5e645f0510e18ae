//! Ghosts by workload: the budget is kept, ghosts come to be where rows are inserted, and nothing moves again
//! and again. Moves are counted, time is not.

use super::counters::{key, loaded, options, row};
use crate::tests::random::Random;
use crate::value::Datum;
use crate::{Layout, RowGroup, Table, TableOptions};
use entasis_vector::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

const WIDTH: usize = 64;

fn table(layout: Layout, ghost: f64) -> Arc<Table> {
    // The keys 0, 10, …, 31990.
    loaded(3200, TableOptions { layout, ghost, ..options(WIDTH, 128, 1) })
}

/// Upkeep until nothing is left to do. Returns how many slots were laid anew.
fn rest(table: &Arc<Table>) -> usize {
    let mut moved = 0;
    for round in 0.. {
        assert!(round < 30, "upkeep comes to an end");
        let done = table.upkeep(Duration::from_secs(60));
        moved += done.spread * WIDTH;
        if done.is_done && done.spread == 0 && done.encoded == 0 && done.warm == 0 {
            break;
        }
    }
    table.snapshot().check();
    moved
}

fn slots(table: &Arc<Table>) -> usize {
    table.snapshot().row_groups().map(RowGroup::slots).sum()
}

/// The ghosts of partitions that begin within some keys, and those of all.
fn ghosts(table: &Arc<Table>, keys: std::ops::Range<i128>) -> (usize, usize) {
    let (snapshot, mut inside, mut all) = (table.snapshot(), 0, 0);
    for group in 0..snapshot.row_groups().len() {
        for partition in snapshot.partitions(group) {
            let is_inside = match partition.first_key.as_deref() {
                Some([Value::Integer(first)]) => keys.contains(first),
                _ => false,
            };
            inside += if is_inside { partition.ghosts } else { 0 };
            all += partition.ghosts;
        }
    }
    (inside, all)
}

fn assert_budget(table: &Arc<Table>, budget: impl Fn(usize) -> usize) {
    for group in table.snapshot().row_groups() {
        let budget = budget(group.rows());
        let ghosts = group.slots() - group.rows();
        assert!(ghosts <= budget + 2 * WIDTH, "{ghosts} ghosts of {}, budget {budget}", group.slots());
    }
}

/// The slices, by address.
fn slices(table: &Arc<Table>) -> BTreeSet<usize> {
    let snapshot = table.snapshot();
    snapshot.row_groups().flat_map(|group| &group.slices).map(|slice| slice.address()).collect()
}

/// Rows of slices other than these, but for those that were added for new rows.
fn rows_elsewhere(table: &Arc<Table>, old: &BTreeSet<usize>) -> usize {
    let snapshot = table.snapshot();
    let slices = snapshot.row_groups().flat_map(|group| &group.slices);
    let moved = slices.filter(|slice| !slice.is_short(WIDTH) && !old.contains(&slice.address()));
    moved.map(|slice| slice.rows()).sum()
}

/// Inserts rows in portions, with a rest after each. Returns the rows that writers and the slots that upkeep
/// laid anew.
fn work(table: &Arc<Table>, portions: usize, keys: std::ops::Range<i64>) -> usize {
    let random = &mut Random(88_172_645_463_325_252);
    let mut moved = 0;
    for _ in 0..portions {
        let before = slices(table);
        let mut writer = table.write();
        for _ in 0..100 {
            let value = keys.start + random.number((keys.end - keys.start) as u64);
            writer.insert(&row(value));
        }
        drop(writer);
        moved += rows_elsewhere(table, &before) + rest(table);
        if table.options().layout == Layout::Casper {
            assert_budget(table, |rows| (table.options().ghost_budget(rows) as usize).max(rows / 8));
        }
    }
    moved
}

#[test]
fn a_budget_is_kept_with_fewer_moves() {
    for ghost in [0.0, 0.01, 0.05, 0.2, 0.5] {
        for keys in [10_000..12_000, 0..32_000] {
            let is_skewed = keys.start > 0;
            let [casper, equi_ghost] = [Layout::Casper, Layout::EquiGhost].map(|layout| {
                let table = table(layout, ghost);
                let first = ghosts(&table, 10_000..12_000);
                let moved = work(&table, 20, keys.clone());
                assert_eq!(table.rows(), 5200);
                let (slots, (inside, all)) = (slots(&table), ghosts(&table, 10_000..12_000));
                // Those that were elsewhere from the beginning may stay there.
                let ghosts = (inside, all - (first.1 - first.0).min(all - inside));
                // A long rest.
                let mut last = 0;
                (0..12).for_each(|_| last += table.upkeep(Duration::from_secs(60)).spread * WIDTH);
                table.snapshot().check();
                if layout == Layout::Casper {
                    assert_budget(&table, |rows| table.options().ghost_budget(rows) as usize);
                }
                (moved, slots, ghosts, last)
            });
            println!("{ghost} {keys:?}: casper {casper:?}, equi_ghost {equi_ghost:?}");
            if is_skewed && ghost < 0.3 {
                assert!(casper.0 < equi_ghost.0, "moves");
                // A sixteenth of the keys.
                let (inside, all) = casper.2;
                assert!(inside * 10 >= all * 6, "{inside} of {all} ghosts are where rows come");
            }
            assert!(casper.0 <= equi_ghost.0 + equi_ghost.0 / 2, "nothing moves again and again");
        }
    }
}

#[test]
fn rows_that_are_laid_anew_get_ghosts_where_rows_were_inserted() {
    let table = table(Layout::Casper, 0.5);
    work(&table, 10, 10_000..12_000);
    // Every other place in the range of old keys.
    let more: Vec<Vec<Value>> =
        (0..3200).map(|i| vec![Value::Integer(i * 10 + 5), Value::Integer(1)]).collect();
    crate::table::tests::rows::insert(&table, &more, false);
    table.snapshot().check();
    let (inside, all) = ghosts(&table, 10_000..12_000);
    let (rows_inside, rows) = (1400, 7400);
    assert_eq!(table.rows(), rows as u64);
    // Enough for as many inserts as before, and half as many again for a row as elsewhere.
    assert!(
        inside > 1000 && inside * (rows - rows_inside) * 2 > (all - inside) * rows_inside * 3,
        "{inside} {all}"
    );
}

#[test]
fn reads_and_changes_in_place_move_nothing() {
    let table = table(Layout::Casper, 0.05);
    let random = &mut Random(88_172_645_463_325_252);
    let mut moved = 0;
    for _ in 0..20 {
        for _ in 0..200 {
            let mut writer = table.write();
            let id = writer.find(&key(random.number(3200) * 10)).unwrap();
            writer.update(id, &[(1, Datum::Integer(random.below(100).into()))]);
        }
        moved += rest(&table);
    }
    assert_eq!(moved, 0);
    let decision = table.snapshot().decision(0).expect("one was made");
    assert!(decision.why.starts_with("left as it is") && decision.moved == 0, "{decision:?}");
}

#[test]
fn partitions_and_workload_are_shown() {
    let table = table(Layout::Casper, 0.2);
    work(&table, 3, 10_000..12_000);
    (0..50).for_each(|i| {
        table.snapshot().find(&key(i * 10));
    });
    let snapshot = table.snapshot();
    let (mut rows, mut of_bins, mut last) = (0, 0, None);
    for (group, node) in snapshot.row_groups().enumerate() {
        let (partitions, bins) = (snapshot.partitions(group), snapshot.workload(group));
        let sum = |inserts: bool| -> f64 {
            let own = partitions.iter().filter_map(|partition| partition.frequencies);
            own.map(|own| if inserts { own.inserts() } else { own.reads() }).sum()
        };
        let of = |inserts: bool| -> f64 {
            let own = bins.iter().map(|bin| bin.frequencies);
            own.map(|own| if inserts { own.inserts() } else { own.reads() }).sum()
        };
        assert!((sum(true) - of(true)).abs() < 1e-6 && (sum(false) - of(false)).abs() < 1e-6);
        let wanted: usize = partitions.iter().filter_map(|partition| partition.wanted).sum();
        let is_blank = bins.iter().all(|bin| bin.frequencies == crate::Frequencies::default());
        assert!(is_blank || wanted == table.shape.budget_of(node) as usize);
        for partition in &partitions {
            assert_eq!(partition.rows + partition.ghosts, partition.slots);
            assert!(partition.first_key.is_some() == (partition.rows > 0));
            let Some([Value::Integer(first)]) = partition.first_key.as_deref() else { continue };
            assert!(last.is_none_or(|last| last <= *first));
            last = Some(*first);
            rows += partition.rows;
        }
        of_bins += bins.iter().map(|bin| bin.rows).sum::<usize>();
        let first = &bins[0];
        assert_eq!((first.row_group, first.bin), (group, 0));
    }
    assert_eq!((rows, of_bins), (3500, 3500));
    assert_eq!(snapshot.workload(0)[0].frequencies.0[0], 50.0, "point queries");
    let equi_ghost = self::table(Layout::EquiGhost, 0.2).snapshot();
    assert!(equi_ghost.workload(0).is_empty() && equi_ghost.decision(0).is_none());
    assert!(equi_ghost.partitions(0).iter().all(|own| own.frequencies.is_none() && own.wanted.is_none()));
    let plain = loaded(100, TableOptions::default()).snapshot();
    assert!(plain.partitions(0).is_empty() && plain.partitions(9).is_empty());
}

/// A hot spot of the past is remembered while the table rests again and again and is written a little in
/// between: what has been earned pays for moves once.
#[test]
fn moves_are_paid_for_by_inserts() {
    let table = table(Layout::Casper, 0.0);
    let (mut inserts, mut charged, mut last) = (0, 0, vec![None; 1]);
    let mut insert = |table: &Arc<Table>, value: i64| {
        table.write().insert(&row(value));
        inserts += 1;
    };
    let mut note = |table: &Arc<Table>| {
        let snapshot = table.snapshot();
        last.resize(snapshot.row_groups().len(), None);
        for (group, last) in last.iter_mut().enumerate() {
            let now = snapshot.decision(group);
            if now != *last {
                charged += now.as_ref().map_or(0, |decision| decision.charged);
                *last = now;
            }
        }
    };
    // A hundred rows in one place, and again after each rest.
    for round in 0..30 {
        (0..if round == 0 { 100 } else { 3 }).for_each(|i| insert(&table, 16_001 + round * 7 + i % 60));
        for _ in 0..14 {
            table.upkeep(Duration::from_secs(60));
            note(&table);
        }
        table.snapshot().check();
    }
    assert!(charged <= 2 * inserts, "{charged} rows for {inserts} inserts");
    // Before anything is earned, nothing is spent.
    let credit = |table: &Arc<Table>| -> f64 {
        table
            .snapshot()
            .row_groups()
            .filter_map(|group| group.counters.as_ref())
            .map(|own| own.credit())
            .sum()
    };
    let new = self::table(Layout::Casper, 0.0);
    assert_eq!(credit(&new), 0.0);
    new.write().insert(&row(5));
    let mut writer = new.write();
    let id = writer.find(&key(5)).unwrap();
    writer.update(id, &[(0, Datum::Integer(7))]);
    drop(writer);
    assert_eq!(credit(&new), 2.0, "an insert, and an update of the key");
    new.snapshot().row_groups().next().unwrap().counters.as_ref().unwrap().spend(1.5);
    assert_eq!(credit(&new), 0.0, "parts are rounded up");
}
