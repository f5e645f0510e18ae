//! Every table compared with a map from keys to rows: build sides of several segments from two workers, keys
//! of all kinds, probes in chunks of every encoding.

use super::*;
use crate::exec::key_filter::{Bits, BuildInput, Expected, Packing, key_bounds};
use crate::exec::materialized::{Placing, column_of};
use crate::exec::testing::{Chance, TwoThreads, chunk_of, column};
use crate::memory::{MemoryBudget, Reservation};
use crate::settings::TableKind;
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{CHUNK_ROWS, Chunk, DataType, Value, Vector};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

type Key = Vec<Value>;

/// A probe side of this many rows, all with a match, most with one.
fn expected_rows(rows: f64) -> Expected {
    Expected { rows, matching: 1.0, per_key: 1.0, ..Expected::default() }
}

/// A build side and the keys to probe.
struct Case {
    name: &'static str,
    types: Vec<DataType>,
    null_equals_null: Vec<bool>,
    build: Vec<Key>,
    probe: Vec<Key>,
}

fn int(v: i64) -> Value {
    Value::Integer(v.into())
}

fn one(keys: impl Iterator<Item = i64>) -> Vec<Key> {
    keys.map(|key| vec![int(key)]).collect()
}

/// The same values in random order.
fn shuffled(mut keys: Vec<Key>, chance: &mut Chance) -> Vec<Key> {
    (1..keys.len()).rev().for_each(|i| keys.swap(i, chance.below(i as u64 + 1) as usize));
    keys
}

fn cases() -> Vec<Case> {
    let mut chance = Chance(2014);
    let chance = &mut chance;
    let case = |name, types: &[DataType], build: Vec<Key>, probe: Vec<Key>| Case {
        name,
        types: types.to_vec(),
        null_equals_null: vec![false; types.len()],
        build,
        probe,
    };
    let (long, text) = (DataType::Int64, DataType::Varchar);
    let mut cases = Vec::new();
    // Enough rows for several segments and partitions.
    let many = 150_000;
    let dense = shuffled(one(-500..many - 500), chance);
    cases.push(case("dense", &[long], dense, one((-600..3000).chain(many - 700..many + 10))));
    let sparse = shuffled(one((0..many).map(|i| i * 7 - i % 3)), chance);
    cases.push(case("sparse", &[long], sparse, one((-10..9000).chain(many * 7 - 20..many * 7 + 20))));
    let mut repeated: Vec<Key> = (0..30_000).map(|_| vec![int(chance.below(9000) as i64 * 5)]).collect();
    (0..30_000).step_by(13).for_each(|i| repeated[i] = vec![Value::Null]);
    let mut probe = one(-5..6000);
    (0..6000).step_by(7).for_each(|i| probe[i] = vec![Value::Null]);
    cases.push(case("repeated, some NULL", &[long], repeated.clone(), probe.clone()));
    let null_safe = vec![true];
    cases.push(Case { null_equals_null: null_safe, ..case("NULL is NULL", &[long], repeated, probe) });
    // Most keys near each other, some far away, some of the latter repeated.
    let far = [i64::MIN, i64::MAX, 1 << 50, 1 << 50, -(1 << 60)];
    let outliers = shuffled(one((0..5000).map(|i| i * 3).chain(far).chain((0..40).map(|i| i << 40))), chance);
    cases.push(case(
        "outliers",
        &[long],
        outliers,
        one((-50..9000).chain(far).chain((0..50).map(|i| i << 40))),
    ));
    let two = |a: i64, b: i64| vec![int(a), int(b)];
    let mut pairs: Vec<Key> =
        (0..20_000).map(|_| two(chance.below(300) as i64, 7 - chance.below(100) as i64)).collect();
    (0..20_000).step_by(17).for_each(|i| pairs[i][i % 2] = Value::Null);
    let probe =
        (0..6000).map(|_| two(chance.below(320) as i64 - 10, 10 - chance.below(120) as i64)).collect();
    cases.push(case("two integers", &[long, DataType::Int16], pairs, probe));
    let name = |i: u64| Value::Text(format!("key number {i}").into());
    let texts =
        (0..10_000).map(|i| vec![if i % 19 == 0 { Value::Null } else { name(chance.below(9000)) }]).collect();
    let probe = (0..5000).map(|_| vec![name(chance.below(12_000))]).collect();
    cases.push(case("texts", &[text], texts, probe));
    let mixed = (0..10_000).map(|_| vec![name(chance.below(300)), int(chance.below(40) as i64)]).collect();
    let probe = (0..5000).map(|_| vec![name(chance.below(330)), int(chance.below(44) as i64)]).collect();
    cases.push(case("text and integer", &[text, long], mixed, probe));
    cases.push(case("one row", &[long], one(42..43), one(40..45)));
    cases.push(case("NULLs only", &[long], vec![vec![Value::Null]; 3], one(0..3)));
    cases.push(case("no rows", &[long], Vec::new(), one(0..3)));
    let same = one((0..3000).map(|_| 5));
    cases.push(case("one key", &[long], same, one(0..10)));
    let unsigned = (0..100u64).map(|i| vec![Value::Integer(i128::from(u64::MAX - i))]).collect();
    let probe = (0..50u64).map(|i| vec![Value::Integer(i128::from(u64::MAX - 3 * i))]).chain(one(-3..3));
    let probe = probe.filter(|key| key[0].total_cmp(&int(0)).is_ge()).collect();
    cases.push(case("beyond the signed range", &[DataType::UInt64], unsigned, probe));
    cases
}

/// The build side in two workers' rows, with the number of each row after its keys.
fn build_rows(case: &Case, chance: &mut Chance) -> Materialized {
    let metas: Vec<ColumnMeta> =
        case.types.iter().chain([&DataType::Int64]).map(|&ty| column_of(ty)).collect();
    let mut parts = [Materialized::new(&metas), Materialized::new(&metas)];
    let numbered = case.build.iter().enumerate().map(|(i, key)| [key.clone(), vec![int(i as i64)]].concat());
    let numbered: Vec<Key> = numbered.collect();
    let positions: Vec<usize> = (0..metas.len()).collect();
    for rows in numbered.chunks(CHUNK_ROWS) {
        parts[chance.below(2) as usize].append(&chunk_of(&metas, rows, chance), &positions, None);
    }
    let [mut rows, other] = parts;
    rows.absorb(other);
    rows
}

/// The numbers of the build rows that match each probe row.
fn expected(case: &Case) -> Vec<Vec<i64>> {
    let name = |key: &Key| format!("{key:?}");
    let can_match =
        |key: &Key| key.iter().zip(&case.null_equals_null).all(|(v, &equal)| equal || !v.is_null());
    let mut map: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for (i, key) in case.build.iter().enumerate().filter(|(_, key)| can_match(key)) {
        map.entry(name(key)).or_default().push(i as i64);
    }
    let of = |key: &Key| {
        if can_match(key) { map.get(&name(key)).cloned().unwrap_or_default() } else { Vec::new() }
    };
    case.probe.iter().map(of).collect()
}

/// Builds the table of this kind and returns why it was chosen.
fn check(
    kind: TableKind,
    asked: LookupKind,
    case: &Case,
    hash_collisions: bool,
    chance: &mut Chance,
) -> String {
    let keys = case.types.len();
    let rows = build_rows(case, chance);
    let nulls = &case.null_equals_null;
    let facts = BuildStats {
        keys,
        bounds: key_bounds(&rows, nulls, &TwoThreads).unwrap(),
        bits: None,
        repetition: None,
    };
    let mut read = vec![false; keys];
    read.push(true);
    let request = TableRequest { kind, asked, read: &read, expected: expected_rows(1e5) };
    let chosen =
        choose(&request, &facts, rows, nulls, hash_collisions, &mut Reservation::default(), &TwoThreads)
            .unwrap();
    let ChosenTable { rows, table, reason } = chosen;
    probe(case, &rows, &*table, asked, hash_collisions, &format!("{}: {reason}", case.name), chance);
    reason
}

/// Looks up all probe keys and compares the results with the expected ones.
fn probe(
    case: &Case,
    rows: &Materialized,
    table: &dyn JoinTable,
    asked: LookupKind,
    hash_collisions: bool,
    what: &str,
    chance: &mut Chance,
) {
    let (keys, nulls) = (case.types.len(), &case.null_equals_null);
    let metas: Vec<ColumnMeta> = case.types.iter().enumerate().map(|(i, &ty)| column(i as u32, ty)).collect();
    let positions: Vec<usize> = (0..keys).collect();
    let mut probe_keys = ProbeKeys::new(keys, hash_collisions);
    let (mut pairs, mut hits, mut cursor) = (Pairs::default(), Pairs::default(), Cursor::default());
    let mut numbers = Vector::new(DataType::Int64.physical());
    let expected = expected(case);
    let (mut at, mut size) = (0, 1);
    while at < case.probe.len() {
        let end = case.probe.len().min(at + size);
        size = (size * 3).min(CHUNK_ROWS);
        let chunk = chunk_of(&metas, &case.probe[at..end], chance);
        probe_keys.begin(&chunk, &positions, nulls);
        let mut found: Vec<Vec<i64>> = vec![Vec::new(); end - at];
        table.first(&mut probe_keys, &mut pairs, &mut cursor);
        while pairs.len() > 0 {
            assert!(pairs.len() <= chunk.len().max(CHUNK_ROWS), "{what}");
            hits.clear();
            hits.extend(&pairs);
            if !table.is_exact(&cursor) {
                for (key, &null_equals_null) in nulls.iter().enumerate() {
                    let (vector, positions) = probe_keys.column(key);
                    let Pairs { rows: probe, ids } = &mut hits;
                    rows.retain_equal(key, vector, positions, null_equals_null, probe, ids);
                }
            }
            if asked == LookupKind::Rows {
                rows.gather(keys, &hits.ids, &mut numbers);
                hits.rows
                    .iter()
                    .zip(numbers.values::<i64>())
                    .for_each(|(&row, &n)| found[row as usize].push(n));
            } else {
                hits.rows.iter().for_each(|&row| found[row as usize].push(0));
            }
            table.next(&mut probe_keys, &mut pairs, &mut cursor);
        }
        probe_keys.release();
        for (row, (mut found, expected)) in found.into_iter().zip(&expected[at..end]).enumerate() {
            found.sort_unstable();
            match asked {
                LookupKind::Rows => assert_eq!(found, *expected, "{what}, key {:?}", case.probe[at + row]),
                LookupKind::Number => assert_eq!(found.len(), expected.len(), "{what}"),
                LookupKind::Existence => assert_eq!(found.is_empty(), expected.is_empty(), "{what}"),
            }
        }
        at = end;
    }
}

/// Reads the build side twice, in two orders, by chunks divided between two workers, when `expected` rows are
/// expected. Compares the results; returns the number of rows that overflow, and whether columns share words.
/// `None`: this table is impossible.
fn check_twice(
    kind: TableKind,
    case: &Case,
    expected: usize,
    hash_collisions: bool,
    chance: &mut Chance,
) -> Option<(usize, bool)> {
    let (keys, nulls) = (case.types.len(), &case.null_equals_null);
    let numbered: Vec<Key> =
        case.build.iter().enumerate().map(|(i, key)| [key.clone(), vec![int(i as i64)]].concat()).collect();
    // Numbers after the keys; strings cannot be placed.
    let types = case.types.iter().chain([&DataType::Int64]);
    let meta = |(i, &ty): (usize, &DataType)| {
        let values =
            numbered.iter().filter_map(|row| if let Value::Integer(v) = row[i] { Some(v) } else { None });
        let bounds = values.clone().min().zip(values.max());
        ColumnMeta { range: bounds.or(column_of(ty).range), ..column_of(ty) }
    };
    let metas: Vec<ColumnMeta> = types.enumerate().map(meta).collect();
    let positions: Vec<usize> = (0..keys).collect();
    let mut probe_keys = ProbeKeys::new(keys, hash_collisions);
    let mut read = |rows: &[Key], chance: &mut Chance, take: &mut dyn FnMut(&Chunk, &mut ProbeKeys)| {
        for rows in rows.chunks(700) {
            let chunk = chunk_of(&metas, rows, chance);
            probe_keys.begin(&chunk, &positions, nulls);
            take(&chunk, &mut probe_keys);
            probe_keys.release();
        }
    };
    let mut turn = 0;
    let mut next = || {
        turn += 1;
        turn % 2
    };
    let numbering = if kind == TableKind::Cat {
        let all = build_rows(case, chance);
        let packing =
            Packing::of(&key_bounds(&all, nulls, &TwoThreads).unwrap()?).filter(|p| p.places() < 1 << 22)?;
        Numbering::Places(packing)
    } else {
        Numbering::buckets(expected)
    };
    let mut counts = [(); 2].map(|()| RangeCount::new(numbering.clone(), expected as f64));
    read(&numbered, chance, &mut |_, keys| assert!(counts[next()].add(keys)));
    let [mut count, other] = counts;
    count.absorb(&other);
    let parts = count.finish();
    let counted = parts.all_rows();
    let precounted = PrecountedRows::new(
        parts,
        Placing::new(&metas, &vec![true; keys + 1], counted, chance.below(2) == 0),
    );
    let mut batches = [(); 2].map(|()| Batch::new(&metas));
    let all: Vec<usize> = (0..=keys).collect();
    read(&shuffled(numbered, chance), chance, &mut |chunk, keys| {
        let turn = next();
        batches[turn].add(&precounted, keys, chunk, &all).unwrap();
        if turn == 0 {
            batches[0].put(&precounted).unwrap();
        }
    });
    batches.iter_mut().for_each(|batch| batch.put(&precounted).unwrap());
    let (table, rows, overflow): (Box<dyn JoinTable>, Materialized, usize) = if kind == TableKind::Cat {
        let wants_bits = chance.below(2) == 0;
        let mut memory = Reservation::new(&Arc::default());
        let finalized = precounted.finalize_cat(wants_bits, &mut memory, &TwoThreads).unwrap();
        assert_eq!(finalized.bits.is_some(), wants_bits);
        if let Some(bits) = finalized.bits {
            assert_eq!((bits.rows(), bits.keys()), (counted, finalized.table.keys()));
            check_bits(case, &bits, finalized.table.packing());
        }
        (Box::new(finalized.table), finalized.rows, 0)
    } else {
        let mut finalized = precounted.finalize_cht(&TwoThreads).unwrap();
        let rows = &finalized.rows;
        let input = BuildInput { rows, null_equals_null: nulls, hash_collisions, tasks: &TwoThreads };
        finalized.table.add_overflow(&input, &finalized.overflow).unwrap();
        (Box::new(finalized.table), finalized.rows, finalized.overflow.iter().map(Range::len).sum())
    };
    assert_eq!((rows.rows(), rows.id_space()), (counted, counted));
    let has_words = rows.words().is_some();
    probe(
        case,
        &rows,
        &*table,
        LookupKind::Rows,
        hash_collisions,
        &format!("{}, {kind} by two readings", case.name),
        chance,
    );
    Some((overflow, has_words))
}

#[test]
fn other_rows_in_the_second_reading_are_an_error() {
    let meta = ColumnMeta { range: None, ..column_of(DataType::Int64) };
    let keys = |count: i64| one((0..count).map(|i| i * 3));
    // As many rows as were counted, one less, one more, and one of them elsewhere.
    for (rows, is_same) in [
        (keys(900), true),
        (keys(899), false),
        (keys(901), false),
        ([keys(899), one([5000].into_iter())].concat(), false),
    ] {
        let mut chance = Chance(9);
        let mut chunk = |rows: &[Key]| chunk_of(std::slice::from_ref(&meta), rows, &mut chance);
        let mut probe_keys = ProbeKeys::new(1, false);
        let mut count = RangeCount::new(Numbering::Places(Packing::of(&[(0, 2700)]).unwrap()), 900.0);
        probe_keys.begin(&chunk(&keys(900)), &[0], &[false]);
        assert!(count.add(&mut probe_keys));
        probe_keys.release();
        let precounted = PrecountedRows::new(
            count.finish(),
            Placing::new(std::slice::from_ref(&meta), &[true], 900, false),
        );
        let mut batch = Batch::new(std::slice::from_ref(&meta));
        let again = chunk(&rows);
        probe_keys.begin(&again, &[0], &[false]);
        let put = batch.add(&precounted, &mut probe_keys, &again, &[0]).and_then(|()| batch.put(&precounted));
        let finalized = put.and_then(|()| {
            precounted.finalize_cat(false, &mut Reservation::new(&Arc::default()), &TwoThreads)
        });
        assert_eq!(finalized.is_ok(), is_same, "{} rows", rows.len());
    }
}

/// Each build key's place has a bit, and no other place has one.
fn check_bits(case: &Case, bits: &Bits, packing: &Packing) {
    let as_key = |value: &Value| if let Value::Integer(v) = value { Some(*v as i64) } else { None };
    let keys = case.build.iter().filter_map(|row| row.iter().map(as_key).collect::<Option<Vec<i64>>>());
    let place = |key: Vec<i64>| {
        let mut place = [0];
        key.iter().enumerate().for_each(|(part, &key)| packing.add(part, [key].into_iter(), &mut place));
        place[0]
    };
    let places: BTreeSet<u64> = keys.map(place).collect();
    assert!(
        (0..packing.places()).all(|place| bits.is_taken(place) == places.contains(&place)),
        "{}",
        case.name
    );
}

#[test]
fn numbers_of_32_bits_are_scaled_as_others_are() {
    let mut chance = Chance(5);
    for count in [1, 2, 3, 64, 1 << 20, NARROW - 1, NARROW] {
        let hashes = [0, 1, u64::MAX >> 32, 1 << 32, u64::MAX - 1, u64::MAX].into_iter();
        for hash in hashes.chain((0..1000).map(|_| chance.below(u64::MAX))) {
            assert_eq!(scale_narrow(hash, count), scale(hash, count), "{hash} to {count}");
        }
    }
}

#[test]
fn tables_by_two_readings_find_the_rows_of_every_key() {
    let mut chance = Chance(41);
    let (mut made, mut with_words) = (0, [0; 2]);
    for case in cases().into_iter().filter(|case| !case.types.contains(&DataType::Varchar)) {
        made +=
            usize::from(check_twice(TableKind::Cat, &case, case.build.len(), false, &mut chance).is_some());
        for _ in 0..3 {
            // The estimate may be wrong.
            let expected = case.build.len() * [1, 3, 6][chance.below(3) as usize] / 3;
            with_words[0] +=
                usize::from(check_twice(TableKind::Cht, &case, expected, false, &mut chance).unwrap().1);
        }
        if case.build.len() <= 3000 {
            let (overflow, has_words) =
                check_twice(TableKind::Cht, &case, case.build.len(), true, &mut chance).unwrap();
            with_words[1] += usize::from(has_words);
            assert!(
                overflow + 2 >= case.build.len() || case.name == "NULLs only",
                "{}: {overflow}",
                case.name
            );
        }
    }
    assert!(with_words.iter().all(|&with| with > 0), "{with_words:?}");
    assert!(made >= 3, "the keys of several cases are integers");
}

#[test]
fn every_table_finds_the_rows_of_every_key() {
    let mut chance = Chance(4711);
    for case in cases() {
        let is_small = case.build.len() <= 30_000;
        for (kind, _) in TableKind::NAMES {
            for hash_collisions in [false, true] {
                // A single chain of all rows takes too long.
                if hash_collisions && case.build.len() > 3000 {
                    continue;
                }
                let reason = check(kind, LookupKind::Rows, &case, hash_collisions, &mut chance);
                let is_integer = !matches!(
                    case.name,
                    "texts"
                        | "text and integer"
                        | "NULL is NULL"
                        | "NULLs only"
                        | "no rows"
                        | "beyond the signed range"
                );
                let is_repeated = matches!(case.name, "NULL is NULL" | "texts" | "text and integer")
                    || hash_collisions && case.build.len() > 3;
                let wanted = match kind {
                    TableKind::Auto if case.name == "dense" => "direct array",
                    TableKind::Auto if matches!(case.name, "sparse" | "outliers") => "concise array table",
                    TableKind::Auto if !is_integer && is_repeated => "unchained",
                    TableKind::Auto if !is_integer => "concise hash table",
                    TableKind::Chained => "chained",
                    TableKind::Cht => "concise hash table",
                    TableKind::Unchained => "unchained",
                    TableKind::Cat if is_integer => "concise array table",
                    TableKind::Array if is_integer && case.name != "outliers" => "direct array",
                    TableKind::Ranked if is_integer && case.name != "outliers" => "ranked array",
                    _ => "",
                };
                assert!(reason.starts_with(wanted), "{}: wanted {wanted}, got {reason}", case.name);
                let by_hash = matches!(kind, TableKind::Cht | TableKind::Unchained | TableKind::Chained);
                let has_window = case.name == "outliers" && !by_hash;
                assert_eq!(reason.contains("rows outside"), has_window, "{reason}");
            }
        }
        for asked in [LookupKind::Number, LookupKind::Existence] {
            let reason = check(TableKind::Bitmap, asked, &case, false, &mut chance);
            if is_small
                && asked == LookupKind::Existence
                && matches!(case.name, "repeated, some NULL" | "two integers")
            {
                assert!(reason.starts_with("bitmap"), "{reason}");
            }
        }
    }
}

#[test]
fn a_bitmap_knows_that_every_place_is_taken() {
    let mut chance = Chance(3);
    for (gap, is_full) in [(None, true), (Some(17), false)] {
        let build = one((0..300).filter(|key| Some(*key) != gap).map(|key| key - 100));
        let mut probe = one(-150..250);
        probe.push(vec![Value::Null]);
        let case =
            Case { name: "dense", types: vec![DataType::Int64], null_equals_null: vec![false], build, probe };
        let reason = check(TableKind::Bitmap, LookupKind::Existence, &case, false, &mut chance);
        assert_eq!(reason.contains("every value"), is_full, "{reason}");
    }
}

#[test]
fn the_table_is_one_that_there_is_memory_for() {
    let mut chance = Chance(8);
    let far = 1 << 48;
    for (apart, repeated, left, probes, wanted) in [
        (far, 1, usize::MAX, 1e3, "chained"),
        (far, 1, 300_000, 1e5, "concise hash table"),
        (far, 9, 300_000, 1e5, "unchained"),
        // A directory takes 16 bytes per row, and moving the rows another 12, or 16 with their keys.
        (60, 1, usize::MAX, 1e5, "concise array table"),
        (60, 1, 125_000, 1e5, "ranked array"),
        (60, 1, 109_000, 1e5, "concise hash table"),
    ] {
        let mut keys: Vec<i64> = (0..5000).map(|i| i * apart + chance.below(apart as u64) as i64).collect();
        keys.sort_by_cached_key(|_| chance.below(1 << 30));
        let build = one((0..5000).map(|i| keys[i / repeated]));
        let (types, nulls) = (vec![DataType::Int64], vec![false]);
        let case = Case { name: "far", types, null_equals_null: nulls.clone(), build, probe: Vec::new() };
        let rows = build_rows(&case, &mut chance);
        let columns = rows.columns().to_vec();
        let rows = Materialized::dense(&columns, vec![rows]);
        let budget = Arc::new(MemoryBudget::new(rows.bytes().saturating_add(left)));
        let mut memory = Reservation::new(&budget);
        memory.resize(rows.bytes()).unwrap();
        let facts = BuildStats {
            keys: 1,
            bounds: key_bounds(&rows, &nulls, &TwoThreads).unwrap(),
            bits: None,
            repetition: None,
        };
        let expected = expected_rows(probes);
        let request =
            TableRequest { kind: TableKind::Auto, asked: LookupKind::Rows, read: &[false, true], expected };
        let chosen = choose(&request, &facts, rows, &nulls, false, &mut memory, &TwoThreads).unwrap();
        assert!(chosen.reason.starts_with(wanted), "{}", chosen.reason);
    }
}

/// Whichever worker had the rows: ids of one worker's rows end far before those of the next begin.
#[test]
fn what_fits_can_be_built() {
    let mut chance = Chance(12);
    for (apart, repeated) in [(1, 1), (60, 1), (1 << 48, 1), (1 << 48, 9)] {
        let build = one((0..5000).map(|i| i / repeated * apart));
        let (types, nulls) = (vec![DataType::Int64], vec![false]);
        let case = Case { name: "fits", types, null_equals_null: nulls.clone(), build, probe: Vec::new() };
        let mut fitted = 0;
        for left in (10_000..600_000).step_by(10_000) {
            let rows = build_rows(&case, &mut chance);
            let budget = Arc::new(MemoryBudget::new(rows.bytes() + left));
            let mut memory = Reservation::new(&budget);
            memory.resize(rows.bytes()).unwrap();
            let facts = BuildStats {
                keys: 1,
                bounds: key_bounds(&rows, &nulls, &TwoThreads).unwrap(),
                bits: None,
                repetition: None,
            };
            let expected = expected_rows(1e4);
            let request = TableRequest {
                kind: TableKind::Auto,
                asked: LookupKind::Rows,
                read: &[false, true],
                expected,
            };
            if fits(&request, &facts, &rows, &nulls, &mut memory, &TwoThreads).unwrap() {
                let ChosenTable { rows, table, reason } =
                    choose(&request, &facts, rows, &nulls, false, &mut memory, &TwoThreads).unwrap();
                assert!(rows.bytes() + table.bytes() <= budget.limit(), "{left} bytes beside rows: {reason}");
                fitted += 1;
            }
        }
        assert!((1..59).contains(&fitted), "{fitted}");
    }
}

/// A table that answers everything from overflow would be correct too, so this test checks the numbers.
#[test]
fn hardly_a_row_of_distinct_keys_overflows() {
    let mut chance = Chance(31);
    let keys = one((0..200_000).map(|_| chance.below(1 << 60) as i64));
    let case = Case {
        name: "distinct",
        types: vec![DataType::Int64],
        null_equals_null: vec![false],
        probe: keys[..1000].to_vec(),
        build: keys,
    };
    let rows = build_rows(&case, &mut chance);
    let input =
        BuildInput { rows: &rows, null_equals_null: &[false], hash_collisions: false, tasks: &TwoThreads };
    let (table, arranged) = cht::Cht::build(&input).unwrap();
    // In the paper 0.09 % of the buckets overflow, of which there are eight for each row, and a row takes two
    // bytes.
    assert!((1000..2000).contains(&arranged.overflow), "{}", arranged.overflow);
    assert!((400_000..480_000).contains(&table.bytes()), "{}", table.bytes());
    let mut order = arranged.order.clone();
    order.sort_unstable();
    assert!(order.into_iter().eq(rows.ids()), "every row has one place");

    // Two readings give as many, except for the order of rows within their partition.
    let (overflow, _) = check_twice(TableKind::Cht, &case, 200_000, false, &mut chance).unwrap();
    assert!((1000..2000).contains(&overflow), "{overflow}");
}

#[test]
fn an_unchained_table_turns_away_most_keys_that_are_not_there() {
    let mut chance = Chance(2024);
    let keys = one((0..200_000).map(|_| chance.below(1 << 60) as i64));
    let (types, nulls) = (vec![DataType::Int64], [false]);
    let case =
        Case { name: "distinct", types, null_equals_null: nulls.to_vec(), build: keys, probe: Vec::new() };
    let rows = build_rows(&case, &mut chance);
    let input =
        BuildInput { rows: &rows, null_equals_null: &nulls, hash_collisions: false, tasks: &TwoThreads };
    let (table, arranged) = unchained::Unchained::build(&input).unwrap();
    assert_eq!(table.bytes(), 200_001 * 8);
    assert!((0.6..0.66).contains(&table.taken()), "as many as of balls in bins: {}", table.taken());
    let mut order = arranged.order.clone();
    order.sort_unstable();
    assert!(order.into_iter().eq(rows.ids()), "every row has one place");
    let mut probe_keys = ProbeKeys::new(1, false);
    let (mut pairs, mut cursor) = (Pairs::default(), Cursor::default());
    let probes: Vec<i64> = (0..CHUNK_ROWS).map(|_| 1 << 61 | chance.below(1 << 60) as i64).collect();
    let mut chunk = Chunk::new();
    chunk.reset(CHUNK_ROWS);
    let group = chunk.push_group(entasis_vector::Selection::ALL);
    chunk.push_column(Vector::from_slice(&probes), group);
    probe_keys.begin(&chunk, &[0], &nulls);
    table.first(&mut probe_keys, &mut pairs, &mut cursor);
    // Two bits of 32 for each of about one row per slot.
    assert!(pairs.len() * 25 < CHUNK_ROWS, "{} candidates", pairs.len());
}

#[test]
fn a_part_of_the_hashes_tells_how_often_keys_are_repeated() {
    let mut chance = Chance(12);
    for (rows, repeated) in [(0, 1), (1, 1), (100, 4), (30_000, 1), (150_000, 1), (150_000, 3), (150_000, 50)]
    {
        // In order and in random order, with some NULLs.
        for shuffle in [false, true] {
            let mut build = one((0..rows).map(|i| i / repeated * 1_000_003));
            build.extend((0..rows / 10).map(|_| vec![Value::Null]));
            if shuffle {
                build = shuffled(build, &mut chance);
            }
            let (types, nulls) = (vec![DataType::Int64], [false]);
            let case =
                Case { name: "some", types, null_equals_null: nulls.to_vec(), build, probe: Vec::new() };
            let rows_kept = build_rows(&case, &mut chance);
            let input = BuildInput {
                rows: &rows_kept,
                null_equals_null: &nulls,
                hash_collisions: false,
                tasks: &TwoThreads,
            };
            let found = repetition::repetition(&input).unwrap().per_key;
            let expected = if rows == 0 { 0.0 } else { repeated as f64 };
            assert!((found - expected).abs() <= 0.02 * expected, "{found} of {repeated} in {rows} rows");
        }
    }
}

#[test]
fn a_row_of_every_chunk_tells_how_frequent_the_most_frequent_key_is() {
    let mut chance = Chance(31);
    let rows = 300 * CHUNK_ROWS as i64;
    let has_one = |share: i64| one((0..rows).map(|i| if i % 10 < share { -7 } else { i / 4 }));
    // Keys recur after as many rows as a chunk has: none is frequent.
    let in_turns = one((0..rows).map(|i| i % CHUNK_ROWS as i64));
    for (build, expected) in [(has_one(0), 0.0), (has_one(3), 0.3), (has_one(10), 1.0), (in_turns, 0.0)] {
        let (types, nulls) = (vec![DataType::Int64], [false]);
        let case = Case { name: "some", types, null_equals_null: nulls.to_vec(), build, probe: Vec::new() };
        let rows = build_rows(&case, &mut chance);
        let input =
            BuildInput { rows: &rows, null_equals_null: &nulls, hash_collisions: false, tasks: &TwoThreads };
        let most = repetition::repetition(&input).unwrap().most;
        assert!((most - expected).abs() <= 0.1, "{most}, expected {expected}");
    }
}
