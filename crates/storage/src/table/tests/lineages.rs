//! Random histories of tables that are made of others with other columns, against rows in lists: each is
//! written, laid anew by upkeep, read and dropped, before and after it succeeds the one that it was made of,
//! while snapshots of any of them are held, and tables that were succeeded are read. At the end no node is
//! left.
//!
//! `ENTASIS_SEED` replays one run.

use super::model::{Model, Row, check, keep_up, random_row, random_value, schema, step, tiny};
use crate::node::living;
use crate::table::latencies;
use crate::tests::random::Random;
use crate::{ColumnSource, Datum, Layout, Table, TableOptions, TableSnapshot};
use entasis_layout::outlook::OperationKind;
use entasis_vector::{DataType, Error, Field, Schema, Value};
use std::sync::Arc;
use std::time::Duration;

const TYPES: [DataType; 5] =
    [DataType::Int32, DataType::Varchar, DataType::Float64, DataType::Uuid, DataType::Int64];

/// Other columns for a table: some dropped, some added, in another order. Those of the key stay.
pub(crate) fn altered(
    old: (&Schema, &TableOptions),
    random: &mut Random,
) -> (Schema, Vec<ColumnSource>, TableOptions) {
    let (schema, options) = old;
    let is_key = |column: &usize| options.layout_key.contains(column);
    let mut kept: Vec<usize> =
        (0..schema.len()).filter(|column| is_key(column) || random.below(4) > 0).collect();
    random.shuffle(&mut kept);
    let mut columns: Vec<(Field, ColumnSource)> =
        kept.into_iter().map(|column| (schema[column].clone(), ColumnSource::Old(column))).collect();
    for number in 0..random.below(3) {
        let ty = TYPES[random.below(5) as usize];
        let at = random.below(columns.len() as u64 + 1) as usize;
        let field = Field { nullable: true, ..Field::new(format!("new{number}"), ty) };
        columns.insert(at, (field, ColumnSource::Constant(random_value(ty, random, true))));
    }
    if columns.is_empty() {
        columns.push((schema[0].clone(), ColumnSource::Old(0)));
    }
    let (schema, sources): (Schema, Vec<ColumnSource>) = columns.into_iter().unzip();
    let place = |old: &usize| sources.iter().position(|source| *source == ColumnSource::Old(*old));
    let layout_key = options.layout_key.iter().map(|old| place(old).expect("it stays")).collect();
    let options = TableOptions { layout_key, ..options.clone() };
    (schema, sources, options)
}

/// The rows of the table that is made so, made row by row.
fn remade(model: &Model, sources: &[ColumnSource]) -> Model {
    let of_row = |row: &Row| -> Row {
        let value = |source: &ColumnSource| match source {
            ColumnSource::Old(column) => row[*column].clone(),
            ColumnSource::Constant(value) => value.clone(),
        };
        sources.iter().map(value).collect()
    };
    Model { rows: model.rows.iter().map(of_row).collect() }
}

/// A table and what it should hold.
type Held = (Arc<Table>, Model);
/// A version and what it should hold.
type Seen = (TableSnapshot, Model);

/// Some work on a table in one of the ways in which tables are written. `true` if it may have changed rows.
fn write((table, model): &mut Held, seen: &mut Vec<Seen>, random: &mut Random) -> bool {
    let schema = table.schema().clone();
    let operations = 1 + random.below(12);
    match random.below(5) {
        0 => {
            let mut statement = table.statement();
            let mut copy = model.clone();
            for _ in 0..operations {
                step(&mut statement.write(), &mut copy, random, &schema);
                if random.below(6) == 0 {
                    seen.push((statement.snapshot(), copy.clone()));
                }
            }
            if random.below(3) == 0 {
                return false;
            }
            statement.commit().expect("it is not logged");
            *model = copy;
        }
        1 => {
            let mut copy = model.clone();
            let fails = random.below(2) == 0;
            let done = table.write().atomically(|writer| {
                (0..operations).for_each(|_| step(writer, &mut copy, random, &schema));
                if fails { Err(Error::input("undo")) } else { Ok(()) }
            });
            if done.is_ok() {
                *model = copy;
            }
        }
        2 => {
            let rows: Vec<Row> = (0..random.below(80)).map(|_| random_row(&schema, random)).collect();
            super::rows::insert(table, &rows, random.below(2) == 0);
            let is_changed = !rows.is_empty();
            model.rows.extend(rows);
            return is_changed;
        }
        _ => {
            for _ in 0..operations {
                step(&mut table.write(), model, random, &schema);
                if random.below(5) == 0 {
                    seen.push((table.snapshot(), model.clone()));
                }
            }
        }
    }
    true
}

/// Upkeep, sweeps, and reads of a table that somebody uses.
fn look_after((table, model): &Held, seen: &mut Vec<Seen>, random: &mut Random) {
    match random.below(4) {
        0 if table.head().branch.is_succeeded() => assert!(table.upkeep(Duration::from_secs(1)).is_done),
        0 => _ = keep_up(table, model, random.below(3) == 0),
        1 => table.sweep(),
        2 => table.free_old(),
        _ => seen.push((table.snapshot(), model.clone())),
    }
}

/// Makes a table of one, writes both, and lets it succeed or drops it. What happened.
fn alter(table: &mut Held, old: &mut Vec<Held>, seen: &mut Vec<Seen>, random: &mut Random) -> &'static str {
    let snapshot = table.0.snapshot();
    let (schema, sources, options) = altered((snapshot.schema(), table.0.options()), random);
    let heir = snapshot.with_columns(schema, &sources, options).expect("it is a version of the head");
    let mut heir = (heir, remade(&table.1, &sources));
    drop(snapshot);
    let (mut is_overtaken, mut is_written) = (false, false);
    for _ in 0..random.below(6) {
        match random.below(8) {
            0 if random.below(3) == 0 => is_overtaken |= write(table, seen, random),
            0 | 1 => look_after(table, seen, random),
            2 | 3 => is_written |= write(&mut heir, seen, random),
            4 | 5 => {
                look_after(&heir, seen, random);
                is_written |= heir.0.snapshot().inherited().is_none();
            }
            _ => {
                // The heir of an heir is made of the same version, if that has not been written.
                let base = heir.0.snapshot();
                let (schema, sources, options) = altered((base.schema(), heir.0.options()), random);
                match base.with_columns(schema, &sources, options) {
                    Some(next) => heir = (next, remade(&heir.1, &sources)),
                    None => assert!(is_written, "it has not been written"),
                }
            }
        }
        check(&heir.0.snapshot(), &heir.1, random);
    }
    if random.below(3) == 0 {
        return "dropped";
    }
    let before = table.0.changes();
    let has_succeeded = heir.0.succeed();
    assert_eq!(table.0.changes(), before);
    assert!(has_succeeded || is_overtaken, "nobody has written to the old table");
    if !has_succeeded {
        check(&table.0.snapshot(), &table.1, random);
        return "overtaken";
    }
    let left = std::mem::replace(table, heir);
    check(&left.0.snapshot(), &left.1, random);
    assert_eq!(left.0.held_bytes(), (0, 0));
    if random.below(2) == 0 {
        old.push(left);
    }
    "succeeded"
}

fn run(seed: u64, layout: Layout, happened: &mut Vec<&'static str>) {
    let random = &mut Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let key: &[usize] = if layout.is_keyed() { &[0] } else { &[] };
    let first = schema([DataType::Int64, DataType::Varchar][random.below(2) as usize], random.below(2) == 0);
    let mut table = (Table::with_options("t", first, tiny(layout, key, random)), Model::default());
    let (mut old, mut seen): (Vec<Held>, Vec<Seen>) = Default::default();
    for _ in 0..60 {
        match random.below(6) {
            0 | 1 => happened.push(alter(&mut table, &mut old, &mut seen, random)),
            2 => look_after(&table, &mut seen, random),
            _ => _ = write(&mut table, &mut seen, random),
        }
        check(&table.0.snapshot(), &table.1, random);
        if let Some((table, model)) = old.get(random.below(4) as usize) {
            check(&table.snapshot(), model, random);
            if random.below(4) == 0 {
                look_after(&(table.clone(), model.clone()), &mut seen, random);
            }
        }
        while seen.len() > 5 {
            let (snapshot, model) = seen.swap_remove(random.below(seen.len() as u64) as usize);
            check(&snapshot, &model, random);
        }
        while old.len() > 3 {
            drop(old.swap_remove(random.below(old.len() as u64) as usize));
        }
    }
    if random.below(2) == 0 {
        // The owner goes first.
        drop(table);
        seen.drain(..).for_each(|(snapshot, model)| check(&snapshot, &model, random));
        old.drain(..).for_each(|(table, model)| check(&table.snapshot(), &model, random));
        return;
    }
    seen.drain(..).for_each(|(snapshot, model)| check(&snapshot, &model, random));
    old.drain(..).for_each(|(table, model)| check(&table.snapshot(), &model, random));
    table.0.sweep();
    assert_eq!((table.0.snapshots(), table.0.retired()), (0, 0), "nothing is left of other tables");
    assert_eq!(table.0.bytes(), table.0.snapshot().bytes());
}

fn runs(layout: Layout) {
    let seeds = match std::env::var("ENTASIS_SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => seed..seed + 1,
        None => 1..25,
    };
    let (before, mut happened) = (living(), Vec::new());
    for seed in seeds {
        run(seed, layout, &mut happened);
        assert_eq!(living() - before, 0, "nodes that are left of seed {seed}");
    }
    let happens = |what: &&str| happened.contains(what);
    assert!(["dropped", "overtaken", "succeeded"].iter().all(happens) || happened.len() < 100);
}

#[test]
fn insertion() {
    runs(Layout::Insertion);
}

#[test]
fn equi_ghost() {
    runs(Layout::EquiGhost);
}

#[test]
fn sorted() {
    runs(Layout::Sorted);
}

#[test]
fn delta() {
    runs(Layout::Delta);
}

#[test]
fn casper() {
    runs(Layout::Casper);
}

/// A table of integers: a key, and what it is times two.
fn doubles(rows: i64, options: TableOptions) -> Arc<Table> {
    let fields = ["k", "v"].map(|name| Field { nullable: false, ..Field::new(name, DataType::Int64) });
    let table = Table::with_options("t", fields.to_vec(), options);
    let row = |key: i64| vec![Value::Integer(key.into()), Value::Integer((2 * key).into())];
    super::rows::insert(&table, &(0..rows).map(row).collect::<Vec<_>>(), false);
    table
}

/// The table with one more column.
pub(crate) fn widened(table: &Arc<Table>) -> Arc<Table> {
    let mut schema = table.schema().clone();
    let sources = (0..schema.len()).map(ColumnSource::Old);
    let sources: Vec<_> = sources.chain([ColumnSource::Constant(Value::Integer(7))]).collect();
    schema.push(Field::new(format!("c{}", schema.len()), DataType::Int32));
    let new = table.snapshot().with_columns(schema, &sources, table.options().clone());
    new.expect("it is a version of the head")
}

#[test]
fn no_block_is_copied() {
    for options in [TableOptions::default(), TableOptions::keyed(vec![0])] {
        let table = doubles(300_000, options);
        let (old, before) = (table.snapshot(), living());
        let new = widened(&table);
        let (slices, groups) = {
            let groups = || old.row_groups();
            (groups().map(|group| group.slices.len()).sum::<usize>(), groups().len())
        };
        assert_eq!(
            living() - before,
            (2 * slices + groups + 1) as isize,
            "slices, constants, row groups, a root"
        );
        let new_version = new.snapshot();
        for (a, b) in old.row_groups().zip(new_version.row_groups()) {
            for (a, b) in a.slices.iter().zip(&b.slices) {
                assert!((0..2).all(|column| a.blocks()[column].is(b.blocks()[column])));
            }
        }
        let own = new.own_bytes();
        assert!(own < slices * 1200 && own < new.bytes(), "{own} bytes");
        // A table that succeeds has all of it, and the other one nothing.
        assert!(new.succeed());
        assert_eq!(new.own_bytes(), new.bytes());
        assert_eq!(table.held_bytes(), (0, 0));
        drop((old, new_version, table));
        new.sweep();
        assert_eq!((new.retired(), new.snapshots()), (0, 0));
    }
}

#[test]
fn a_table_that_was_succeeded_is_not_written() {
    let table = doubles(3000, TableOptions::keyed(vec![0]));
    let new = widened(&table);
    assert!(new.succeed() && !new.succeed());
    assert!(table.snapshot().with_columns(table.schema().clone(), &[], table.options().clone()).is_none());
    let key = [Datum::Integer(5)];
    let changed = table.change_in_place(&key, |row| row.change(&[(1, Datum::Integer(6))]).map(Some));
    assert_eq!(changed.expect("it is not logged"), None);
    assert!(table.upkeep(Duration::from_secs(1)).is_done);
    let write = std::panic::AssertUnwindSafe(|| {
        table.write().insert(&[Datum::Integer(-1), Datum::Integer(0)]);
    });
    let message = std::panic::catch_unwind(write).expect_err("it is refused");
    assert!(message.downcast_ref::<&str>().is_some_and(|text| text.contains("is not written")));
    assert_eq!((table.rows(), new.rows()), (3000, 3000));
}

#[test]
fn times_that_were_measured_go_on_with_the_next_table() {
    let table = doubles(100, TableOptions::keyed(vec![0]));
    let latencies = table.latencies();
    while latencies.of(OperationKind::Insert).is_none() {
        latencies.end(OperationKind::Insert, latencies::begin());
    }
    let new = widened(&widened(&table));
    assert_eq!(new.latencies().of(OperationKind::Insert), latencies.of(OperationKind::Insert));
}

/// What a reader of the old table sees stays as it is while the new one puts rows into ghosts of the same
/// blocks.
#[test]
fn ghosts_that_the_old_table_shows_stay() {
    let options = TableOptions { ghost: 0.2, ..TableOptions::keyed(vec![0]) };
    let table = doubles(2000, options);
    let late = table.clone();
    let new = widened(&table);
    assert!(new.succeed());
    for key in (0..2000).step_by(3) {
        let id = new.snapshot().find(&[Datum::Integer(key)]).expect("it is there");
        new.write().delete(id);
        new.write().insert(&[Datum::Integer(key), Datum::Integer(-1), Datum::Integer(8)]);
    }
    let snapshot = late.snapshot();
    for key in 0..2000 {
        let id = snapshot.find(&[Datum::Integer(key)]).expect("it is there");
        assert!(snapshot.datum(id, 1).is_same(Datum::Integer(2 * key)));
    }
    snapshot.check();
    new.snapshot().check();
}

#[test]
fn what_only_the_old_table_shows_is_freed_with_it() {
    let before = living();
    let table = doubles(100_000, TableOptions::default());
    table.sweep();
    let schema = vec![table.schema()[1].clone()];
    let options = table.options().clone();
    let new = table.snapshot().with_columns(schema, &[ColumnSource::Old(1)], options).expect("it can be");
    let with_both = living();
    assert!(new.succeed());
    new.sweep();
    assert_eq!(living(), with_both, "the old table is there");
    drop(table);
    new.sweep();
    let (groups, slices) = (1, 100_000usize.div_ceil(1024) as isize);
    assert_eq!(living() - before, 1 + groups + 2 * slices, "a root, row groups, slices, a column");
}

/// Thousands of tables that were succeeded and are still held end without deep recursion.
#[test]
fn long_lineages_end() {
    let before = living();
    let mut table = doubles(10, TableOptions::default());
    let first = table.snapshot();
    let options = table.options().clone();
    for _ in 0..5000 {
        let sources = [ColumnSource::Old(0), ColumnSource::Constant(Value::Integer(1))];
        let new = table.snapshot().with_columns(table.schema().clone(), &sources, options.clone());
        let new = new.expect("it can be");
        assert!(new.succeed());
        table = new;
        table.free_old();
    }
    assert!(living() - before < 100, "tables between are gone");
    drop((table, first));
    assert_eq!(living(), before);
}
