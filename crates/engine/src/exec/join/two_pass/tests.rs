//! Joins whose build side is read twice, compared with the same joins read once; and that they are read
//! twice.

use super::*;
use crate::context::QueryContext;
use crate::exec::execute::execute;
use crate::exec::result::Collector;
use crate::exec::tests::stored;
use crate::memory::MemoryBudget;
use crate::plan::{Columns, Join, JoinKey, JoinKind, Node, Output, Plan};
use crate::settings::{Settings, TempCompression};
use entasis_vector::{DataType, Value};

fn int(v: i128) -> Value {
    Value::Integer(v)
}

/// `probe` rows (key, number) join `build` rows (key, number, perhaps NULL).
fn plan(kind: JoinKind, probe: &[Vec<Value>], build: &[Vec<Value>]) -> Plan {
    let mut columns = Columns::default();
    let types = [DataType::Int64, DataType::Int64];
    let (left, left_ids) = stored(&mut columns, &types, probe);
    let (right, right_ids) = stored(&mut columns, &types, build);
    let on = vec![JoinKey {
        left: columns.expr(left_ids[0]),
        right: columns.expr(right_ids[0]),
        null_equals_null: false,
    }];
    let root =
        Node::Join(Join { kind, left: Box::new(left), right: Box::new(right), on, residual: Vec::new() });
    let output =
        root.columns().into_iter().map(|column| Output { name: column.to_string(), column }).collect();
    Plan { root, columns, output }
}

/// The rows in any order, and the profile.
fn run(plan: &Plan, settings: Settings, limit: usize) -> (Vec<String>, String) {
    let settings = Settings { profile: true, optimize: false, threads: 2, ..settings };
    let memory = Arc::new(MemoryBudget::new(limit));
    let context = QueryContext { settings: Arc::new(settings), memory, ..QueryContext::default() };
    let types: Vec<DataType> = plan.output.iter().map(|o| plan.columns.ty(o.column)).collect();
    let collector = Collector::new(&context, types.clone());
    let profile = execute(plan, &context, &collector).unwrap();
    let set = collector.into_chunks();
    let row = |chunk: &entasis_vector::Chunk, row: usize| {
        types.iter().enumerate().map(|(c, &ty)| format!("{:?} ", chunk.value(row, c, ty))).collect::<String>()
    };
    let mut rows: Vec<String> =
        set.chunks.iter().flat_map(|chunk| (0..chunk.len()).map(|r| row(chunk, r))).collect();
    rows.sort();
    drop(set);
    (rows, profile.to_string())
}

fn two_pass(join_table: TableKind) -> Settings {
    Settings { join_build: Readings::Twice, join_table, ..Settings::default() }
}

#[test]
fn both_readings_happen_and_change_no_result() {
    let probe: Vec<Vec<Value>> =
        (0..9000).map(|i| vec![if i % 50 == 3 { Value::Null } else { int(i * 7 % 5000) }, int(i)]).collect();
    // The keys have gaps; some of the numbers are NULL.
    let number = |i: i128| if i % 11 == 0 { Value::Null } else { int(i << 40) };
    let near: Vec<Vec<Value>> = (0..4000).map(|i| vec![int(i * 2671 % 4000 + i / 4001), number(i)]).collect();
    let narrow: Vec<Vec<Value>> =
        near.iter().enumerate().map(|(i, row)| vec![row[0].clone(), int(i as i128 - 50)]).collect();
    let far: Vec<Vec<Value>> =
        (0..4000).map(|i| vec![int(i * 2671 % 4000 + ((i % 3) << 50)), number(i)]).collect();
    let nulls: Vec<Vec<Value>> = near
        .iter()
        .enumerate()
        .map(|(i, row)| vec![if i % 9 == 0 { Value::Null } else { row[0].clone() }, row[1].clone()])
        .collect();
    let repeated: Vec<Vec<Value>> = (0..4000).map(|i| vec![int(i % 1500), number(i)]).collect();
    use TableKind::{Auto, Bitmap, Cat, Cht};
    use TempCompression as Tuples;
    for kind in [JoinKind::Inner, JoinKind::Left, JoinKind::Full, JoinKind::Semi, JoinKind::Anti] {
        for (build, table, noted) in [
            (&near, Auto, true),
            (&near, Cat, true),
            (&near, Cht, true),
            (&narrow, Cat, true),
            (&narrow, Cht, true),
            (&near, Bitmap, matches!(kind, JoinKind::Semi | JoinKind::Anti)),
            (&far, Cht, true),
            (&nulls, Cat, kind != JoinKind::Full),
            (&nulls, Cht, kind != JoinKind::Full),
            (&repeated, Cht, true),
            (&repeated, Cat, false),
            (&Vec::new(), Cat, false),
        ] {
            let plan = plan(kind, &probe, build);
            let (expected, _) =
                run(&plan, Settings { join_build: Readings::Once, ..Settings::default() }, usize::MAX);
            let compressions = [Tuples::Auto, Tuples::Off];
            for temp_compression in compressions {
                let (rows, profile) =
                    run(&plan, Settings { temp_compression, ..two_pass(table) }, usize::MAX);
                assert!(rows == expected, "{kind:?}, {table}, {temp_compression}: {profile}");
                let may_share = temp_compression == Tuples::Auto;
                let has_words = profile.contains("in words of");
                // The other side may be the build side.
                let keeps_right = profile.contains("build side is the right input")
                    || !profile.contains("build side is the");
                let is_as_noted = profile.contains("read twice") == noted;
                assert!(!keeps_right || is_as_noted, "{kind:?}, {table}, {noted}: {profile}");
                let are_put = keeps_right && noted && !profile.contains("bitmap");
                let reads_rows = !matches!(kind, JoinKind::Semi | JoinKind::Anti);
                let must_share = may_share && are_put && reads_rows && std::ptr::eq(build, &narrow);
                assert!(may_share || !has_words, "{kind:?}, {table}: {profile}");
                assert!(has_words || !must_share, "{kind:?}, {table}: {profile}");
            }
        }
    }
}

/// Keys far from each other have buckets rather than places; columns share words where that makes rows
/// smaller.
#[test]
fn keys_that_are_far_from_each_other_are_read_twice_and_no_filter_is_lost() {
    let rows = |count: i128, step: i128| {
        (0..count).map(|i| vec![int((i * step % 4000) << 24), int(i)]).collect::<Vec<_>>()
    };
    let (probe, build) = (rows(9000, 7), rows(4000, 1));
    let wide: Vec<Vec<Value>> = (0..4000).map(|i| vec![int(i << 24), int(i << 40)]).collect();
    let missing: Vec<Vec<Value>> = (0..9000).map(|i| vec![int((i * 7 % 9000) << 24), int(i)]).collect();
    for (probe, build, temp_compression, are_shrunk, is_filtered) in [
        (&probe, &build, TempCompression::Auto, true, false),
        (&probe, &build, TempCompression::Off, false, false),
        (&probe, &wide, TempCompression::Auto, false, false),
        (&missing, &build, TempCompression::Auto, true, true),
    ] {
        let plan = plan(JoinKind::Inner, probe, build);
        let once = Settings { join_build: Readings::Once, ..Settings::default() };
        let (rows, _) = run(&plan, once, usize::MAX);
        let (same, profile) =
            run(&plan, Settings { temp_compression, ..two_pass(TableKind::Auto) }, usize::MAX);
        assert!(rows == same && !rows.is_empty(), "{profile}");
        assert!(
            profile.contains("concise hash table: 4000 rows") && profile.contains("read twice"),
            "{profile}"
        );
        assert_eq!(profile.contains("2 columns of which are in words of 8 bytes"), are_shrunk, "{profile}");
        assert_eq!(profile.contains("join filter: Bloom"), is_filtered, "{profile}");
    }
}

/// Each worker puts several batches of rows into parts; a few keys are repeated, which no sample shows.
#[test]
fn many_rows_go_to_their_parts() {
    let rows = 100_000;
    let pairs = |step: i128, shift: u32, repeated: i128| {
        let key = |i: i128| if i < rows - repeated { i * step % rows } else { rows / 2 };
        (0..rows).map(|i| vec![int(key(i) << shift), int(i)]).collect::<Vec<_>>()
    };
    for (table, shift, repeated) in
        [(TableKind::Cat, 0, 0), (TableKind::Cat, 0, 2), (TableKind::Cht, 24, 0), (TableKind::Cht, 24, 4)]
    {
        let plan = plan(JoinKind::Inner, &pairs(7, shift, 0), &pairs(11, shift, repeated));
        let (expected, _) =
            run(&plan, Settings { join_build: Readings::Once, ..Settings::default() }, usize::MAX);
        let (found, profile) = run(&plan, two_pass(table), usize::MAX);
        assert!(profile.contains("read twice"), "{table}, {repeated}: {profile}");
        assert!(found == expected, "{table}, {repeated}: {profile}");
    }
}

#[test]
fn what_has_no_room_is_kept_as_ever() {
    let rows: Vec<Vec<Value>> = (0..60_000).map(|i| vec![int(i * 7919 % 60_000), int(i << 30)]).collect();
    let plan = plan(JoinKind::Inner, &rows, &rows);
    let (expected, _) = run(&plan, Settings::default(), usize::MAX);
    let mut made = [0; 2];
    for limit in [2 << 10, 100 << 10, 700 << 10, 1 << 20, 3 << 20, 8 << 20] {
        let (found, profile) = run(&plan, two_pass(TableKind::Cat), limit + (16 << 20));
        assert!(found == expected, "{limit}: {profile}");
        made[usize::from(profile.contains("read twice"))] += 1;
    }
    assert!(made[1] > 0, "{made:?}");
}
