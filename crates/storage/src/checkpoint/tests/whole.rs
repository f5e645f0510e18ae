//! All that there can be in a database comes back as it was.

use super::super::{Images, MachineCosts, Moment, checkpoint};
use super::{Access, DataFile, State, Store, catalog, catalog_of, open};
use crate::block::tests::serialized;
use crate::catalog::{Catalog, Entry, NamedType, TableEntry, View};
use crate::definition::{
    Check, ColumnDefault, CounterOptions, Counting, Curve, Definition, ForeignKey, Key, KeyKind,
    LayoutChoice, LayoutName, ReferentialAction, Sequence,
};
use crate::table::tests::rows;
use crate::tests::random::Random;
use crate::tree::Counted;
use crate::{Compression, Datum, Layout, Table, TableOptions, index};
use entasis_vector::{DataType, Field};
use std::sync::Arc;
use std::time::Duration;

/// Distinct values, by column.
fn estimates(table: &Table) -> Vec<u64> {
    table.head().sketches.iter().map(|sketch| sketch.estimate()).collect()
}

#[test]
fn rows_of_all_types_in_all_layouts_come_back() {
    let layouts =
        [Layout::Insertion, Layout::Sorted, Layout::Delta, Layout::Equi, Layout::EquiGhost, Layout::Casper];
    for (number, layout) in layouts.into_iter().enumerate() {
        let mut random = Random(number as u64 + 1);
        // By a key of one word, of bytes, of two columns, and by curves.
        let keys = [
            (vec![4], None),
            (vec![14], None),
            (vec![3, 21], None),
            (vec![3, 21], Some(Curve::Hilbert)),
            (vec![14, 4, 11, 21], Some(Curve::ZOrder)),
        ];
        for (key, curve) in keys {
            let layout_key = if layout == Layout::Insertion { Vec::new() } else { key };
            let options = TableOptions {
                layout,
                curve: curve.filter(|_| !layout_key.is_empty()),
                layout_key,
                block_slots: 256,
                group_slots: 1024,
                ghost: 0.1,
                ..TableOptions::default()
            };
            for count in [0, 1, 300, 2500] {
                let table = Table::with_options("t", rows::schema(), options.clone());
                let all = rows::random_rows(count, &mut random);
                if count > 0 {
                    rows::insert(&table, &all, false);
                }
                let mut store = Store::new();
                store.check(&catalog_of(&table));
                let opened = store.opened().0.version();
                assert_eq!(estimates(&table), estimates(&opened.table("t").expect("it is there").table));
            }
        }
    }
}

#[test]
fn blocks_of_all_encodings_come_back() {
    let some_nulls: [fn(usize) -> bool; 3] = [|_| false, |i| i % 7 == 3, |_| true];
    let mut seen = std::collections::BTreeSet::new();
    for case in serialized::cases() {
        for compression in case.compressions {
            for nulls in some_nulls {
                for layout in [Layout::Insertion, Layout::EquiGhost] {
                    let table = serialized::table(&case, *compression, layout, nulls);
                    let mut store = Store::new();
                    store.check(&catalog_of(&table));
                    let (opened, _) = store.opened();
                    let names = opened.version();
                    let (one, other) =
                        (table.snapshot(), names.table("t").expect("it is there").table.snapshot());
                    for (a, b) in one.row_groups().zip(other.row_groups()) {
                        for block in 0..a.blocks() {
                            let (a, b) = (a.block_info(1, block), b.block_info(1, block));
                            seen.insert(a.encoding);
                            let is_compact = a.encoding == "views" || a.bytes == b.bytes;
                            assert!(is_compact, "{}: {} and {} bytes", a.encoding, a.bytes, b.bytes);
                        }
                    }
                }
            }
        }
    }
    assert_eq!(seen.len(), 15, "{seen:?}");
}

fn field(name: &str, ty: DataType) -> Field {
    Field { nullable: false, ..Field::new(name, ty) }
}

/// A table with a bit of everything, with indexes, and what it needs.
fn everything() -> Catalog {
    let schema = vec![
        field("k", DataType::Int64),
        Field::new("Größe", DataType::Varchar),
        field("c", DataType::Int32),
    ];
    let key =
        |name: &str, columns: &[usize], kind| Key { name: name.into(), columns: columns.to_vec(), kind };
    let definition = Definition {
        defaults: vec![
            ColumnDefault::Identity { sequence: "s".into(), always: true },
            ColumnDefault::Expression("'x' || nextval('u')".into()),
        ],
        keys: vec![
            key("pk", &[0], KeyKind::Primary),
            key("uq", &[1, 2], KeyKind::Unique),
            key("ix", &[2], KeyKind::Index),
        ],
        checks: vec![Check { name: "positive".into(), sql: "c > 0".into() }],
        foreign_keys: vec![ForeignKey {
            name: "own".into(),
            columns: vec![2],
            table: "t".into(),
            references: vec![0],
            on_delete: ReferentialAction::SetNull,
            on_update: ReferentialAction::Cascade,
        }],
        layout: LayoutChoice {
            layout: Some(LayoutName::Delta),
            key: Some(vec![0]),
            curve: Some(Some(Curve::Hilbert)),
            partitions: Some(7),
            ghost: Some(0.25),
            compression: Some(Compression::Plain),
            column_compressions: vec![(1, Compression::Strings)],
            read_sla: Some(20_000),
            update_sla: None,
        },
        sequences: vec!["u".into()],
        ..Definition::default()
    };
    let options = TableOptions::of(&definition, &schema);
    let table = Table::with_options("t", schema.clone(), options.clone());
    let indexes: Vec<_> =
        definition.keys.iter().map(|key| index::index_table(key, &schema, &options)).collect();
    for key in 0..2000i64 {
        let text = format!("text {key}");
        let row =
            [Datum::Integer(key.into()), Datum::Bytes(text.as_bytes()), Datum::Integer((key % 7 + 1).into())];
        table.write().insert(&row);
        for (own, index) in definition.keys.iter().zip(&indexes) {
            let columns = index::index_columns(own, &options);
            let of_index: Vec<_> = columns.into_iter().map(|column| row[column]).collect();
            index.iter().for_each(|index| _ = index.write().insert(&of_index));
        }
    }
    let counting = Counting { start: 3, increment: -2, min: -9, max: 3, cycle: false };
    let (started, over) = (Sequence::new("s", counting), Sequence::new("u", counting));
    started.take().expect("the first");
    while over.take().is_ok() {}
    let view = View {
        name: "V".into(),
        sql: "SELECT k FROM t".into(),
        schema: vec![field("k", DataType::Decimal { precision: 20, scale: 4 })],
        needs: vec!["t".into()],
    };
    let labels = DataType::enumeration(["sad", "", "happy"]).expect("three labels");
    let mood = NamedType { name: "Mood".into(), ty: DataType::list(labels) };
    let plain = Table::new("temp.gone", schema);
    catalog([
        Entry::Schema("other.".into()),
        Entry::Table(Arc::new(TableEntry {
            name: "T renamed".into(),
            table,
            definition: Arc::new(definition),
            indexes,
        })),
        Entry::View(Arc::new(view)),
        Entry::Sequence(Arc::new(started)),
        Entry::Sequence(Arc::new(over)),
        Entry::Type(Arc::new(mood)),
        Entry::Table(Arc::new(TableEntry::plain(plain))),
    ])
}

#[test]
fn all_kinds_of_objects_come_back() {
    let names = everything();
    let mut store = Store::new();
    store.check(&names);
    let (opened, _) = store.opened();
    let opened = opened.version();
    let table = opened.table("t RENAMED").expect("by its name");
    assert!(opened.get("temp.gone").is_none());
    // The indexes are looked up in, and written to.
    let index = table.indexes[1].as_ref().expect("the unique key's");
    let found = [Datum::Bytes(b"text 77"), Datum::Integer(1)];
    assert!(index.snapshot().find(&found).is_some());
    table.table.write().insert(&[Datum::Integer(9999), Datum::Null, Datum::Integer(1)]);
    table.table.snapshot().check();
    // New objects get new ids.
    assert!(Table::new("new", Vec::new()).object() > index.object());
    // A database without objects, and a file without a checkpoint.
    store.check(&catalog([]));
    assert_eq!(Store::new().opened().0.version().entries().count(), 0);
}

#[test]
fn what_was_opened_goes_on() {
    let table = Table::with_options(
        "t",
        vec![field("k", DataType::Int64), Field::new("v", DataType::Varchar)],
        TableOptions { block_slots: 64, group_slots: 256, ..TableOptions::keyed(vec![0]) },
    );
    let mut store = Store::new();
    let mut names = catalog_of(&table);
    let mut random = Random(9);
    for round in 0..12 {
        let version = names.version();
        let table = &version.table("t").expect("it is there").table;
        for _ in 0..100 {
            let key = random.below(700) as i64;
            let text = format!("round {round}, {}", random.below(40));
            let mut writer = table.write();
            match writer.find(&[Datum::Integer(key.into())]) {
                Some(id) if random.below(2) == 0 => writer.delete(id),
                Some(id) => _ = writer.update(id, &[(1, Datum::Bytes(text.as_bytes()))]),
                None => _ = writer.insert(&[Datum::Integer(key.into()), Datum::Bytes(text.as_bytes())]),
            }
        }
        store.check(&names);
        if round % 3 == 2 {
            // The file is opened again, and goes on from what is in it.
            let backend = store.backend.clone();
            let file = DataFile::open(Arc::new(backend.clone()), Access::Write).expect("it is a database");
            let (opened, last) = open(&file).expect("it is whole");
            let before = file.size();
            store = Store { backend, file, last };
            names = opened;
            store.check(&names);
            let after = store.file.size();
            assert!(after.0 <= before.0 + 4, "nothing has changed: {before:?} pages, now {after:?}");
        }
    }
}

/// Costs that were measured stay until others were, and come back with any state.
#[test]
fn costs_come_back() {
    let mut store = Store::new();
    let catalog = catalog([]);
    let costs = |machine: &str| {
        let figures = vec![("byte read".to_owned(), 0.055), ("row looked up".to_owned(), 117.0)];
        Some(Arc::new(MachineCosts { machine: machine.to_owned(), figures }))
    };
    let kept = |store: &Store| store.opened().1.costs().cloned();
    store.check(&catalog);
    assert_eq!(kept(&store), None);
    for machine in ["one", "one", "another"] {
        let moment = Moment::take(&catalog, &Images::default(), || 0).with_costs(costs(machine));
        store.last =
            checkpoint(&store.file, &moment, &store.last, State::Open).expect("memory does not fail");
        assert_eq!(kept(&store), costs(machine));
        store.assert_nothing_is_lost();
        store.check(&catalog);
        assert_eq!(kept(&store), costs(machine));
    }
}

/// What was counted of a table and decided by it goes on where it was, and so does the account.
#[test]
fn counters_come_back() {
    for key in [vec![4], vec![14]] {
        let options = TableOptions {
            layout: Layout::Casper,
            layout_key: key,
            block_slots: 256,
            group_slots: 1024,
            counters: CounterOptions { every: 1, ..CounterOptions::default() },
            ..TableOptions::default()
        };
        let table = Table::with_options("t", rows::schema(), options);
        let mut random = Random(7);
        (0..3).for_each(|_| rows::insert(&table, &rows::random_rows(700, &mut random), false));
        (0..20).for_each(|_| assert!(table.upkeep(Duration::from_secs(60)).is_done));
        rows::insert(&table, &rows::random_rows(50, &mut random), false);
        let kept = |table: &Arc<Table>| -> Vec<Option<Counted>> {
            let snapshot = table.snapshot();
            snapshot.row_groups().map(|group| Some(group.counters.as_deref()?.kept())).collect()
        };
        let before = kept(&table);
        let known = |of: fn(&Counted) -> bool| before.iter().flatten().any(of);
        assert!(known(|own| own.credit > 0) && known(|own| own.numbers.iter().flatten().any(|n| *n > 0)));
        let mut store = Store::new();
        store.check(&catalog_of(&table));
        let opened = store.opened().0.version();
        let restored = kept(&opened.table("t").expect("it is there").table);
        // How often one operation of many is counted is not declared, so only what is kept is compared.
        assert_eq!(restored, before);
        assert!(known(|own| own.decision.is_some()));
        assert!(before.iter().flatten().count() > 1, "a table of several row groups");
    }
}
