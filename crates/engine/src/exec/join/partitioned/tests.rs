//! Joins that do not fit into memory, compared with nested loops. [`crate::exec::tests`] tests that all kinds
//! of joins give the same rows however they spill.

use super::Partitioning;
use crate::context::QueryContext;
use crate::exec::execute::execute;
use crate::exec::join::build_spec::BuildSpec;
use crate::exec::join::table::LookupKind;
use crate::exec::join::{BuildTail, ProbeOutput, Shape};
use crate::exec::key_filter::Expected;
use crate::exec::materialized::column_of;
use crate::exec::result::Collector;
use crate::exec::sink::{ResultSink, ResultWorker};
use crate::exec::testing::{Chance, TwoThreads, chunk_of};
use crate::memory::MemoryBudget;
use crate::plan::*;
use crate::settings::{FilterKind, JoinSpill, Searching, Settings, TableKind};
use entasis_vector::expr::{CompareOp, Expr};
use entasis_vector::{Chunk, ColumnId, DataType, Error, ErrorKind, Result, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

type Row = Vec<Value>;

fn int(v: i128) -> Value {
    Value::Integer(v)
}

fn text(v: i128) -> Value {
    Value::Text(format!("a text that is longer than twelve bytes, number {v}").into())
}

const TYPES: [DataType; 3] = [DataType::Int64, DataType::Varchar, DataType::Int64];

/// Two inputs with these rows.
struct Inputs {
    columns: Columns,
    nodes: [Node; 2],
    ids: [Vec<ColumnId>; 2],
    rows: [Vec<Row>; 2],
}

fn inputs(left: Vec<Row>, right: Vec<Row>) -> Inputs {
    let mut columns = Columns::default();
    let rows = [left, right];
    let ids = ["l", "r"].map(|name| TYPES.map(|ty| columns.add(name.to_string(), ty, true)).to_vec());
    let nodes =
        [0, 1].map(|side| Node::Values(Values { columns: ids[side].clone(), rows: rows[side].clone() }));
    Inputs { columns, nodes, ids, rows }
}

impl Inputs {
    /// A join by the first `keys` columns; with `less`, the left side's last column must also be less than
    /// the right side's.
    fn join(&self, kind: JoinKind, keys: usize, less: bool) -> Plan {
        let column = |side: usize, i: usize| self.columns.expr(self.ids[side][i]);
        let key = |i| JoinKey { left: column(0, i), right: column(1, i), null_equals_null: false };
        let residual =
            if less { vec![Expr::compare(CompareOp::Lt, column(0, 2), column(1, 2))] } else { vec![] };
        let [left, right] = self.nodes.clone().map(Box::new);
        let root = Node::Join(Join { left, right, kind, on: (0..keys).map(key).collect(), residual });
        let output =
            root.columns().into_iter().map(|column| Output { name: column.to_string(), column }).collect();
        Plan { root, columns: self.columns.clone(), output }
    }

    /// The rows that the join must give.
    fn twin(&self, kind: JoinKind, keys: usize, less: bool) -> Vec<Row> {
        let [left, right] = &self.rows;
        let matches = |l: &Row, r: &Row| {
            (0..keys).all(|i| !l[i].is_null() && l[i] == r[i]) && (!less || l[2].total_cmp(&r[2]).is_lt())
        };
        // Without a key, all rows have the same number.
        let number = |row: &Row| match row[0] {
            Value::Integer(key) if keys > 0 => key,
            _ => 0,
        };
        let by_number = |rows: &[Row]| {
            let mut map: BTreeMap<i128, Vec<Row>> = BTreeMap::new();
            rows.iter().for_each(|row| map.entry(number(row)).or_default().push(row.clone()));
            map
        };
        let (lefts, rights) = (by_number(left), by_number(right));
        let none = Vec::new();
        let mut out = Vec::new();
        let nulls = vec![Value::Null; 3];
        for l in left {
            let rights = rights.get(&number(l)).unwrap_or(&none);
            let partners: Vec<&Row> = rights.iter().filter(|r| matches(l, r)).collect();
            match kind {
                JoinKind::Semi => out.extend((!partners.is_empty()).then(|| l.clone())),
                JoinKind::Anti => out.extend(partners.is_empty().then(|| l.clone())),
                _ => out.extend(partners.iter().map(|r| [l.clone(), r.to_vec()].concat())),
            }
            if matches!(kind, JoinKind::Left | JoinKind::Full) && partners.is_empty() {
                out.push([l.clone(), nulls.clone()].concat());
            }
        }
        if kind == JoinKind::Full {
            let has_partner = |r: &Row| lefts.get(&number(r)).unwrap_or(&none).iter().any(|l| matches(l, r));
            let lonely = right.iter().filter(|r| !has_partner(r));
            out.extend(lonely.map(|r| [nulls.clone(), r.to_vec()].concat()));
        }
        out
    }
}

/// The rows, in any order, and the profile.
fn run(plan: &Plan, context: &QueryContext) -> Result<(Vec<Row>, String)> {
    let types: Vec<DataType> = plan.output.iter().map(|o| plan.columns.ty(o.column)).collect();
    // The result does not count against the limited memory.
    let collector = Collector::new(&QueryContext::default(), types.clone());
    let profile = execute(plan, context, &collector)?;
    let mut rows: Vec<Row> = Vec::new();
    for chunk in &collector.into_chunks().chunks {
        for row in 0..chunk.len() {
            rows.push(types.iter().enumerate().map(|(c, &ty)| chunk.value(row, c, ty)).collect());
        }
    }
    Ok((sorted(rows), profile.to_string()))
}

fn sorted(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort_by(|a, b| {
        a.iter().zip(b).map(|(a, b)| a.total_cmp(b)).find(|o| o.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
    });
    rows
}

fn context(limit: usize, settings: Settings) -> QueryContext {
    let settings = Settings { profile: true, optimize: false, ..settings };
    QueryContext {
        settings: Arc::new(settings),
        memory: Arc::new(MemoryBudget::new(limit)),
        ..QueryContext::default()
    }
}

fn check(inputs: &Inputs, kind: JoinKind, (keys, less): (usize, bool), limit: usize, noted: &[&str]) {
    let plan = inputs.join(kind, keys, less);
    let expected = sorted(inputs.twin(kind, keys, less));
    for threads in [1, 2] {
        let own = context(limit, Settings { threads, ..Settings::default() });
        let (rows, profile) = run(&plan, &own).unwrap_or_else(|error| panic!("{kind:?}: {error:?}"));
        assert_eq!(rows.len(), expected.len(), "{kind:?}, {threads} threads\n{profile}");
        assert!(rows == expected, "{kind:?}, {threads} threads\n{profile}");
        assert_eq!((own.memory.used(), own.temp.used()), (0, 0));
        for noted in noted {
            assert!(profile.contains(noted), "{noted} is not noted: {profile}");
        }
        // The same join if no files may be written.
        let settings = Settings { threads, temp_directory: "".into(), ..Settings::default() };
        let error = run(&plan, &context(limit, settings)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Resource, "{error}");
        assert!(error.hint().is_some_and(|hint| hint.contains("temp_directory")), "{error:?}");
    }
}

/// Rows with keys from 0 to `distinct`, every tenth NULL.
fn rows_of(count: i128, distinct: i128) -> Vec<Row> {
    let row = |i: i128| {
        let key = i * 7919 % distinct;
        vec![if i % 10 == 3 { Value::Null } else { int(key * 1_000_003) }, text(key), int(i)]
    };
    (0..count).map(row).collect()
}

#[test]
fn what_does_not_fit_is_written() {
    let inputs = inputs(rows_of(2000, 9000), rows_of(2500, 9000));
    for kind in [JoinKind::Inner, JoinKind::Left, JoinKind::Full, JoinKind::Semi, JoinKind::Anti] {
        for (keys, less) in [(1, false), (2, true)] {
            check(
                &inputs,
                kind,
                (keys, less),
                64 << 10,
                &["partitions in temporary files, they did not fit into memory"],
            );
        }
    }
}

/// A table has row ids for some segments only, whatever the memory; here for one.
#[test]
fn rows_without_row_ids_go_to_partitions() {
    let few_ids = |threads, temp_directory: &str| {
        let settings = Settings { threads, most_segments: 1, ..Settings::default() };
        context(usize::MAX, Settings { temp_directory: temp_directory.into(), ..settings })
    };
    let files = std::env::temp_dir().display().to_string();
    let frequent = |count: i128, others: i128| -> Vec<Row> {
        (0..count).map(|i| vec![int(if i < others { i + 100 } else { 7 }), text(0), int(i)]).collect()
    };
    for (inputs, kinds, noted) in [
        (
            inputs(rows_of(151_000, 200_000), rows_of(150_000, 200_000)),
            [JoinKind::Inner, JoinKind::Full],
            "of 64 partitions in temporary files",
        ),
        // One key has more rows than there are ids: a part of them has a table at a time.
        (
            inputs(frequent(150_010, 150_000), frequent(150_000, 0)),
            [JoinKind::Semi, JoinKind::Anti],
            "3 blocks of rows with frequent keys",
        ),
    ] {
        for (kind, threads) in [(kinds[0], 1), (kinds[1], 2)] {
            let plan = inputs.join(kind, 1, false);
            let own = few_ids(threads, &files);
            let (rows, profile) = run(&plan, &own).unwrap();
            assert!(rows == sorted(inputs.twin(kind, 1, false)), "{kind:?}\n{profile}");
            assert!(profile.contains(noted), "{noted} is not noted: {profile}");
            assert_eq!((own.memory.used(), own.temp.used()), (0, 0));
            let error = run(&plan, &few_ids(threads, "")).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Resource, "{error}");
            assert!(error.to_string().contains("more rows than it has numbers for"), "{error}");
        }
    }
}

#[test]
fn workers_agree_on_what_is_written() {
    let inputs = inputs(rows_of(9_000, 20_000), rows_of(11_000, 20_000));
    // From nearly everything to nearly nothing written; small chunks give work to both workers.
    for limit in (5..50).step_by(5).map(|part| part * (40 << 10)) {
        for kind in [JoinKind::Inner, JoinKind::Anti, JoinKind::Full] {
            let plan = inputs.join(kind, 1, false);
            let settings = Settings { threads: 2, chunk_rows: 16, ..Settings::default() };
            let own = context(limit, settings);
            let (rows, profile) = run(&plan, &own).unwrap();
            assert!(rows == sorted(inputs.twin(kind, 1, false)), "{kind:?}, {limit} bytes\n{profile}");
        }
    }
}

/// Tables have entries for ids, so the memory that they need must not depend on which worker had the rows.
#[test]
fn rows_of_several_workers_are_numbered_together() {
    let context = context(usize::MAX, Settings::default());
    let columns = [column_of(DataType::Int64)];
    let spec = BuildSpec {
        shape: Shape { probe: ProbeOutput::Pairs, tail: BuildTail::Nothing },
        null_equals_null: vec![false],
        lookup: None,
        null_aware: false,
        marks: false,
        table: TableKind::Auto,
        asked: LookupKind::Existence,
        read: vec![true],
        expected: Expected { rows: 1e4, matching: 1.0, per_key: 1.0, ..Expected::default() },
        settings: context.settings.clone(),
    };
    let partitioning =
        Partitioning::new(&columns, spec, (false, true), Expected::default(), &Arc::default(), &context);
    let mut workers = [partitioning.build_rows(), partitioning.build_rows(), partitioning.build_rows()];
    for (i, worker) in workers.iter_mut().enumerate() {
        let rows: Vec<Row> = (0..1000).map(|n| vec![int(n * 3 + i as i128)]).collect();
        worker.take(&chunk_of(&columns, &rows, &mut Chance(7)), &[0]).unwrap();
    }
    let (rows, memory) = partitioning.complete(workers.into(), None, &TwoThreads).unwrap();
    assert_eq!((rows.rows(), rows.id_space(), memory.bytes()), (3000, 3000, rows.bytes()));
}

#[test]
fn little_memory_makes_deep_partitions() {
    let inputs = inputs(rows_of(90_000, 200_000), rows_of(80_000, 200_000));
    check(
        &inputs,
        JoinKind::Full,
        (1, false),
        100 << 10,
        &["partitions in temporary files", "written again"],
    );
}

#[test]
fn one_frequent_key_is_joined_in_blocks() {
    // Few of the pairs satisfy the condition on the last column.
    let same = |least: i128| {
        (0..3000).map(|i| vec![int(5), text(i % 7), int(least + i * 13 % 3001)]).collect::<Vec<Row>>()
    };
    let inputs = inputs(same(2900), same(0));
    for kind in [JoinKind::Inner, JoinKind::Left, JoinKind::Full, JoinKind::Semi, JoinKind::Anti] {
        // If no build row comes out, only keys and compared columns are kept.
        let limit = if matches!(kind, JoinKind::Semi | JoinKind::Anti) { 30 << 10 } else { 100 << 10 };
        for keys in [0, 1] {
            check(&inputs, kind, (keys, true), limit, &["blocks of rows with frequent keys"]);
        }
    }
}

/// The states of the probe rows go to a file too.
#[test]
fn probe_rows_of_one_key_may_be_more_than_bytes_of_memory() {
    let same = |count: i128, step: i128| {
        (0..count).map(|i| vec![int(5), text(i % 7), int(i * step)]).collect::<Vec<Row>>()
    };
    let inputs = inputs(same(70_000, 1), same(60, 2));
    for kind in [JoinKind::Left, JoinKind::Full, JoinKind::Semi, JoinKind::Anti] {
        let plan = inputs.join(kind, 1, true);
        let own =
            context(512 << 10, Settings { threads: 2, join_spill: JoinSpill::Deep, ..Settings::default() });
        let (rows, profile) = run(&plan, &own).unwrap();
        assert!(rows == sorted(inputs.twin(kind, 1, true)), "{kind:?}\n{profile}");
        assert!(profile.contains("blocks of rows with frequent keys"), "{profile}");
        assert_eq!((own.memory.used(), own.temp.used()), (0, 0));
    }
}

/// Runs a radix join of both kinds with this much memory, and checks what the profile notes.
fn check_radix(inputs: &Inputs, kind: JoinKind, limit: usize, own: &Settings, noted: &[&str]) {
    let plan = inputs.join(kind, 1, false);
    let expected = sorted(inputs.twin(kind, 1, false));
    for join_table in [TableKind::Radix, TableKind::BloomRadix] {
        for threads in [1, 2] {
            let own = context(limit, Settings { threads, join_table, ..own.clone() });
            let (rows, profile) = run(&plan, &own).unwrap_or_else(|error| panic!("{kind:?}: {error:?}"));
            assert!(rows == expected, "{kind:?}, {join_table}, {threads} threads\n{profile}");
            assert_eq!((own.memory.used(), own.temp.used()), (0, 0));
            let note = format!("radix join, join_table = {join_table}: 64 of 64 partitions have build rows");
            for noted in noted.iter().chain([&note.as_str()]) {
                assert!(profile.contains(noted), "{noted} is not noted: {profile}");
            }
        }
    }
}

const KINDS: [JoinKind; 5] =
    [JoinKind::Inner, JoinKind::Left, JoinKind::Full, JoinKind::Semi, JoinKind::Anti];

#[test]
fn partitions_stay_in_memory() {
    let inputs = inputs(rows_of(9_000, 20_000), rows_of(7_000, 20_000));
    for kind in KINDS {
        // No files may be written.
        let no_files = Settings { temp_directory: "".into(), ..Settings::default() };
        check_radix(&inputs, kind, usize::MAX, &no_files, &["1 pass;"]);
        let small = Settings { join_partition_size: 1000, ..no_files };
        check_radix(&inputs, kind, usize::MAX, &small, &["2 passes: 64 partitions were split into"]);
    }
}

#[test]
fn partitions_that_do_not_fit_go_to_files() {
    let inputs = inputs(rows_of(9_000, 20_000), rows_of(7_000, 20_000));
    for kind in KINDS {
        let noted = "; some rows in temporary files, they did not fit into memory: ";
        // Rows of both sides are written, or of the probe side only.
        for limit in [600 << 10, 1500 << 10] {
            check_radix(&inputs, kind, limit, &Settings::default(), &[noted]);
            let small = Settings { join_partition_size: 1000, ..Settings::default() };
            check_radix(&inputs, kind, limit, &small, &[noted]);
        }
        let plan = inputs.join(kind, 1, false);
        let no_files =
            Settings { join_table: TableKind::Radix, temp_directory: "".into(), ..Settings::default() };
        let error = run(&plan, &context(600 << 10, no_files)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Resource, "{error}");
    }
}

/// Unforced: rows arrive as for a single table, and are split when all are there.
#[test]
fn partitions_in_memory_are_chosen_where_they_pay() {
    let inputs = inputs(rows_of(9_000, 20_000), rows_of(7_000, 20_000));
    for kind in KINDS {
        let all = inputs.join(kind, 1, false);
        // The keys alone, and keys with a number and a text.
        let is_key = |i: &usize| i.is_multiple_of(TYPES.len());
        let mut narrow = all.clone();
        narrow.output = (0..all.output.len()).filter(is_key).map(|i| all.output[i].clone()).collect();
        let keys = |row: &Row| (0..row.len()).filter(is_key).map(|i| row[i].clone()).collect();
        let expected = sorted(inputs.twin(kind, 1, false).iter().map(keys).collect());
        for threads in [1, 2] {
            let run = |plan: &Plan, join_partition_size| {
                let settings = Settings { threads, join_partition_size, ..Settings::default() };
                run(plan, &context(1 << 30, settings)).unwrap()
            };
            let (rows, profile) = run(&narrow, 100);
            assert!(rows == expected, "{kind:?}, {threads} threads\n{profile}");
            assert!(profile.contains("radix join, "), "{kind:?}: {profile}");
            // A small build side, and rows that are too wide.
            assert!(!run(&narrow, 1 << 20).1.contains("radix join, "));
            assert!(!run(&all, 100).1.contains("radix join, "));
        }
    }
}

#[test]
fn repeated_keys_are_joined_by_partitions_unless_one_has_most_rows() {
    // Rows per key on the build side; how many rows of ten have one key; and the number of workers. The share
    // of one key is estimated from 49 sampled rows, so it is chosen far from a worker's share.
    for (per_key, rows, threads, is_radix) in [
        (1, 0, 2, true),
        (5, 0, 2, true),
        (10, 0, 2, true),
        (10, 2, 2, true),
        (10, 5, 8, false),
        (10, 8, 2, false),
    ] {
        let row = |key: i128, i: i128| vec![int(key * 1_000_003), text(key), int(i)];
        let build = |i: i128| row(if i % 10 < rows { 3 } else { i / per_key }, i);
        let probe = (0..150_000).map(|i| row(5 + i * 7919 % (100_000 / per_key), i));
        let mut inputs = inputs(probe.collect(), (0..100_000).map(build).collect());
        let (scan, ids) = crate::exec::tests::stored(&mut inputs.columns, &TYPES, &inputs.rows[0]);
        (inputs.nodes[0], inputs.ids[0]) = (scan, ids);
        let mut plan = inputs.join(JoinKind::Inner, 1, false);
        // Keys and numbers.
        let is_wanted = |i: usize| TYPES[i % TYPES.len()] != DataType::Varchar;
        plan.output =
            (0..plan.output.len()).filter(|&i| is_wanted(i)).map(|i| plan.output[i].clone()).collect();
        let run = |join_table, threads| {
            let settings = Settings { threads, join_table, join_partition_size: 100, ..Settings::default() };
            run(&plan, &context(4 << 30, settings)).unwrap()
        };
        let (found, profile) = run(TableKind::Auto, threads);
        assert!(found == run(TableKind::Chained, 1).0, "{profile}");
        assert_eq!(profile.contains("radix join, "), is_radix, "{per_key}, {rows}, {threads}\n{profile}");
        assert_eq!(profile.contains(" per key, "), is_radix && per_key > 1, "{profile}");
    }
}

#[test]
fn a_probe_side_with_frequent_keys_is_not_joined_by_partitions() {
    // How many rows of ten have one of `keys` frequent keys, and the number of workers.
    for (rows, keys, threads, is_radix) in
        [(0, 1, 2, true), (7, 1, 1, true), (7, 1, 2, false), (9, 10, 1, false)]
    {
        let row = |key: i128| vec![int(key * 1_000_003), text(key), int(key)];
        let probe = |i: i128| row(if i % 10 < rows { i % keys } else { i * 7919 % 20_000 });
        let mut inputs = inputs((0..40_000).map(probe).collect(), (0..20_000).map(row).collect());
        let (scan, ids) = crate::exec::tests::stored(&mut inputs.columns, &TYPES, &inputs.rows[0]);
        (inputs.nodes[0], inputs.ids[0]) = (scan, ids);
        let mut plan = inputs.join(JoinKind::Semi, 1, false);
        plan.output.truncate(1);
        let mut expected = inputs.twin(JoinKind::Semi, 1, false);
        expected.iter_mut().for_each(|row| row.truncate(1));
        let settings = Settings { threads, join_partition_size: 100, ..Settings::default() };
        let (rows, profile) = run(&plan, &context(1 << 30, settings)).unwrap();
        assert!(rows == sorted(expected), "{profile}");
        assert_eq!(profile.contains("    radix join, "), is_radix, "{profile}");
        assert_eq!(profile.contains("no radix join: "), !is_radix, "{profile}");
        assert!(profile.contains(" sampled probe keys are repeated (Zipf exponent "), "{profile}");
    }
}

/// What is kept in memory is reserved: at some time at least the values of both sides.
#[test]
fn partitions_in_memory_are_reserved() {
    let inputs = inputs(rows_of(9_000, 20_000), rows_of(7_000, 20_000));
    let settings = Settings { join_table: TableKind::Radix, ..Settings::default() };
    let own = context(usize::MAX, settings);
    run(&inputs.join(JoinKind::Inner, 1, false), &own).unwrap();
    let values = (9_000 + 7_000) * 9 / 10 * (8 + 16 + 8);
    assert!(own.memory.peak() > values, "{} bytes", own.memory.peak());
}

#[test]
fn rows_that_a_bloom_filter_rules_out_are_not_kept() {
    // A tenth of the left rows has a partner.
    let rows = |count: i128, step: i128| (0..count).map(|i| vec![int(i * step), text(i), int(i)]).collect();
    let inputs = inputs(rows(20_000, 1), rows(2_000, 10));
    let megabytes = |profile: &str| {
        let end = profile.find(" MB of probe rows in memory").expect("noted");
        let start = profile[..end].rfind(' ').expect("there are words");
        profile[start + 1..end].parse::<f64>().expect("a number")
    };
    for kind in KINDS {
        let plan = inputs.join(kind, 1, false);
        let run = |join_table, join_filter| {
            let settings = Settings { join_table, join_filter, ..Settings::default() };
            let (rows, profile) = run(&plan, &context(usize::MAX, settings)).unwrap();
            assert!(rows == sorted(inputs.twin(kind, 1, false)), "{kind:?}\n{profile}");
            profile
        };
        let all = run(TableKind::Radix, FilterKind::Off);
        let few = run(TableKind::BloomRadix, FilterKind::Off);
        assert!(few.contains("join filter on the keys, before rows are kept: "), "{few}");
        assert!(!all.contains("before rows are kept"), "{all}");
        assert!(megabytes(&few) < megabytes(&all) / 2.0, "{few}\n{all}");
    }
}

#[test]
fn a_filter_before_partitions_that_all_rows_pass_rests() {
    let inputs = inputs(rows_of(90_000, 1_000), rows_of(1_000, 1_000));
    let settings = Settings { join_table: TableKind::BloomRadix, threads: 1, ..Settings::default() };
    let (_, profile) = run(&inputs.join(JoinKind::Semi, 1, false), &context(usize::MAX, settings)).unwrap();
    assert!(profile.contains("join filter on the keys, before rows are kept: "), "{profile}");
    assert!(profile.contains("more rows were not tested because most passed"), "{profile}");
}

#[test]
fn joins_that_cannot_be_partitioned_have_one_table() {
    let inputs = inputs(rows_of(100, 100), rows_of(100, 100));
    for (join_bounds, table) in [(Searching::Off, "nested loop"), (Searching::Always, "in order")] {
        let settings = Settings { join_table: TableKind::Radix, join_bounds, ..Settings::default() };
        let own = context(usize::MAX, settings);
        let (rows, profile) = run(&inputs.join(JoinKind::Inner, 0, true), &own).unwrap();
        assert!(rows == sorted(inputs.twin(JoinKind::Inner, 0, true)));
        assert!(profile.contains(table), "{profile}");
        assert!(!profile.contains("radix join"), "{profile}");
    }
}

#[test]
fn a_cancelled_join_leaves_no_file() {
    let directory = std::env::temp_dir().join(format!("entasis-cancel-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let rows = || (0..20_000).map(|i| vec![int(i % 3), text(i), int(-i)]).collect::<Vec<Row>>();
    let inputs = inputs(rows(), rows());
    let plan = inputs.join(JoinKind::Left, 1, true);
    for join_spill in [JoinSpill::All, JoinSpill::Deep] {
        let settings = Settings {
            threads: 2,
            join_spill,
            temp_directory: directory.display().to_string().into(),
            ..Settings::default()
        };
        let own = context(usize::MAX, settings);
        let cancel = own.cancel.clone();
        let temp = own.temp.clone();
        let raiser = std::thread::spawn(move || {
            // Waits until something has been written.
            while temp.used() == 0 && !cancel.is_raised() {
                std::thread::yield_now();
            }
            cancel.raise();
        });
        let error = run(&plan, &own).unwrap_err();
        own.cancel.raise();
        raiser.join().unwrap();
        assert_eq!(error.kind(), ErrorKind::Interrupted);
        assert_eq!(own.temp.used(), 0);
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
    }
    std::fs::remove_dir(&directory).unwrap();
}

#[test]
fn a_directory_that_is_not_there_is_named() {
    let inputs = inputs(rows_of(10, 10), rows_of(10, 10));
    let settings = Settings {
        join_spill: JoinSpill::All,
        temp_directory: "/no/such/directory".into(),
        ..Settings::default()
    };
    let error = run(&inputs.join(JoinKind::Inner, 1, false), &context(usize::MAX, settings)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.message().contains("/no/such/directory"), "{error}");
}

/// What the workers of a result share, one of which fails.
#[derive(Default)]
struct Failing {
    arrived: AtomicUsize,
    has_failed: AtomicBool,
    pushes_after: AtomicUsize,
}

struct FailingWorker {
    shared: Arc<Failing>,
    number: Option<usize>,
}

struct FailingSink(Arc<Failing>);

impl ResultSink for FailingSink {
    fn worker(&self) -> Result<Box<dyn ResultWorker>> {
        Ok(Box::new(FailingWorker { shared: self.0.clone(), number: None }))
    }
}

impl ResultWorker for FailingWorker {
    fn push(&mut self, _: &Chunk) -> Result<()> {
        let shared = &self.shared;
        let number = *self.number.get_or_insert_with(|| shared.arrived.fetch_add(1, Ordering::Relaxed));
        while shared.arrived.load(Ordering::Relaxed) < 2
            || (number == 1 && !shared.has_failed.load(Ordering::Relaxed))
        {
            std::thread::yield_now();
        }
        if number == 0 {
            shared.has_failed.store(true, Ordering::Relaxed);
            return Err(Error::input("one of two"));
        }
        shared.pushes_after.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(std::time::Duration::from_millis(1));
        Ok(())
    }
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

/// A few keys, each in a partition of its own with many rows.
#[test]
fn when_one_worker_fails_the_others_leave_their_partitions() {
    let key = |i: i128| int(i % 8 * 1_000_003);
    let rows = |count: i128| (0..count).map(|i| vec![key(i), text(i % 5), int(i)]).collect::<Vec<Row>>();
    let plan = inputs(rows(32_000), rows(8)).join(JoinKind::Inner, 1, false);
    let settings = Settings { threads: 2, chunk_rows: 2, join_spill: JoinSpill::All, ..Settings::default() };
    let own = context(usize::MAX, settings);
    let sink = FailingSink(Arc::default());
    let error = execute(&plan, &own, &sink).unwrap_err();
    assert_eq!(error.message(), "one of two");
    // A partition has two thousand chunks.
    let pushes = sink.0.pushes_after.load(Ordering::Relaxed);
    assert!(pushes < 1000, "{pushes} chunks came after the error");
    assert_eq!((own.memory.used(), own.temp.used()), (0, 0));
}
