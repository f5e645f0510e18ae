//! Joins compared with a nested loop, over the product of all that a join may depend on: its kind, the table,
//! what is written, held back and filtered, types and number of keys, NULLs, duplicates, how many rows match,
//! residual conditions, which columns are read, where the rows come from, chunks, threads, colliding hashes,
//! tuples.
//!
//! The product is too large, so it is sampled. Kinds, tables and ways to spill go through all combinations,
//! case by case; the rest is random, seeded by the number of the case. The test asserts that any two values
//! of any two dimensions met. A failing case prints itself and its number: `ENTASIS_SEED=n cargo test -p
//! entasis-engine --lib crossed` runs it alone, `ENTASIS_WORKLOADS=n` runs n cases.

use super::*;
use crate::exec::testing::Chance;
use entasis_vector::Interval;
use std::collections::{BTreeMap, BTreeSet};

/// The number of cases: every combination of kind, table and way to spill runs several times.
const CASES: u64 = 1600;

/// Types of keys.
pub(super) const TYPES: [DataType; 18] = [
    DataType::Boolean,
    DataType::Int8,
    DataType::Int16,
    DataType::Int32,
    DataType::Int64,
    DataType::UInt8,
    DataType::UInt64,
    DataType::Float32,
    DataType::Float64,
    DataType::Decimal { precision: 4, scale: 1 },
    DataType::Decimal { precision: 18, scale: 2 },
    DataType::Decimal { precision: 38, scale: 10 },
    DataType::Date,
    DataType::Timestamp,
    DataType::Varchar,
    DataType::Blob,
    DataType::Interval,
    DataType::Uuid,
];

/// The distance between the values of a key.
#[derive(Debug, Clone, Copy)]
pub(super) enum Apart {
    Next,
    Sparse,
    Far,
}

/// A share of something.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Share {
    None,
    Some,
    All,
}

const SHARES: [Share; 3] = [Share::None, Share::Some, Share::All];

#[derive(Debug, Clone, Copy)]
pub(super) struct Key {
    pub ty: DataType,
    pub apart: Apart,
    pub null_equals_null: bool,
}

/// Which columns of the joined rows are read.
#[derive(Debug, Clone, Copy)]
enum Read {
    Everything,
    /// No key column.
    Payload,
    /// No column of the right input.
    Left,
}

/// One join.
#[derive(Debug, Clone)]
struct Case {
    kind: JoinKind,
    keys: Vec<Key>,
    /// The left number must be less than the right one.
    residual: bool,
    /// For each input: its rows, how many keys are NULL, whether it is a table.
    rows: [u64; 2],
    nulls: [Share; 2],
    stored: [bool; 2],
    /// How keys of the right input repeat: not at all, in pairs, or with many rows each.
    repeated: Share,
    /// The share of left rows whose keys may occur on the right.
    matching: Share,
    read: Read,
    settings: Settings,
}

/// One of the given values.
pub(super) fn one_of<T: Copy>(values: &[T], chance: &mut Chance) -> T {
    values[chance.below(values.len() as u64) as usize]
}

impl Case {
    /// The case with this number.
    fn of(number: u64) -> Case {
        // Consecutive numbers must not give similar cases.
        let mut chance = Chance(entasis_vector::hash::hash_u64(number) | 1);
        let mark = ColumnId(u32::MAX / 2);
        let kinds = [
            JoinKind::Inner,
            JoinKind::Left,
            JoinKind::Right,
            JoinKind::Full,
            JoinKind::Semi,
            JoinKind::Anti,
            JoinKind::NullAwareAnti,
            JoinKind::Mark { mark, null_aware: true },
            JoinKind::Mark { mark, null_aware: false },
            JoinKind::Single,
        ];
        let turn = |values: usize, before: usize| number as usize / before % values;
        let kind = kinds[turn(kinds.len(), 1)];
        let (join_table, _) = TableKind::NAMES[turn(TableKind::NAMES.len(), kinds.len())];
        let (join_spill, _) =
            JoinSpill::NAMES[turn(JoinSpill::NAMES.len(), kinds.len() * TableKind::NAMES.len())];
        let chance = &mut chance;
        let count = match kind {
            JoinKind::NullAwareAnti => 1,
            _ => one_of(&[0, 1, 1, 1, 2, 2, 3], chance),
        };
        let key = |_| Key {
            ty: one_of(&TYPES, chance),
            apart: one_of(&[Apart::Next, Apart::Sparse, Apart::Far], chance),
            null_equals_null: chance.below(4) == 0,
        };
        let keys: Vec<Key> = (0..count).map(key).collect();
        let sizes = [0, 1, 5, 40, 40, 120, 120, 200];
        let is = |chance: &mut Chance| chance.below(2) == 0;
        // Tables order UUIDs differently, which this test does not imitate.
        let may_be_stored = keys.iter().all(|key| key.ty != DataType::Uuid);
        Case {
            kind,
            residual: is(chance),
            rows: [one_of(&sizes, chance), one_of(&sizes, chance)],
            nulls: [one_of(&SHARES, chance), one_of(&SHARES, chance)],
            stored: [may_be_stored && is(chance), may_be_stored && is(chance)],
            repeated: one_of(&SHARES, chance),
            matching: one_of(&SHARES, chance),
            read: one_of(&[Read::Everything, Read::Payload, Read::Left], chance),
            settings: Settings {
                threads: one_of(&[1, 2], chance),
                chunk_rows: one_of(&[3, entasis_vector::CHUNK_ROWS], chance),
                hash_collisions: chance.below(4) == 0,
                profile: is(chance),
                optimize: false,
                temp_compression: one_of(&[TempCompression::Off, TempCompression::On], chance),
                join_table,
                join_filter: one_of(&FilterKind::NAMES, chance).0,
                join_spill,
                // Partitions are small enough for one pass, or never are.
                join_partition_size: one_of(&[1 << 20, 1], chance),
                // A buffer for each chunk, for all rows, or none.
                join_stride: one_of(&[1, 1 << 20, 0], chance),
                join_build: one_of(&[Readings::Twice, Readings::Once], chance),
                join_swap: one_of(&[Swapping::Always, Swapping::Off], chance),
                join_bounds: one_of(&[Searching::Always, Searching::Off], chance),
                ..Settings::default()
            },
            keys,
        }
    }

    /// The dimensions of the product, and this case's value of each.
    fn dimensions(&self) -> Vec<(&'static str, String)> {
        let s = &self.settings;
        let kind = match self.kind {
            JoinKind::Mark { null_aware, .. } => format!("mark {null_aware}"),
            kind => format!("{kind:?}"),
        };
        let first = |of: fn(&Key) -> String| self.keys.first().map_or("none".into(), of);
        vec![
            ("kind", kind),
            ("join_table", s.join_table.to_string()),
            ("join_spill", s.join_spill.to_string()),
            ("join_filter", s.join_filter.to_string()),
            ("join_partition_size", s.join_partition_size.to_string()),
            ("keys", self.keys.len().to_string()),
            ("type", first(|key| key.ty.to_string())),
            ("apart", first(|key| format!("{:?}", key.apart))),
            ("null_equals_null", first(|key| key.null_equals_null.to_string())),
            ("residual", self.residual.to_string()),
            ("left rows", self.rows[0].to_string()),
            ("right rows", self.rows[1].to_string()),
            ("left nulls", format!("{:?}", self.nulls[0])),
            ("right nulls", format!("{:?}", self.nulls[1])),
            ("left stored", self.stored[0].to_string()),
            ("right stored", self.stored[1].to_string()),
            ("repeated", format!("{:?}", self.repeated)),
            ("matching", format!("{:?}", self.matching)),
            ("read", format!("{:?}", self.read)),
            ("threads", s.threads.to_string()),
            ("chunk_rows", s.chunk_rows.to_string()),
            ("hash_collisions", s.hash_collisions.to_string()),
            ("temp_compression", s.temp_compression.to_string()),
            ("join_stride", format!("{:?}", s.join_stride)),
            ("join_build", s.join_build.to_string()),
            ("join_swap", s.join_swap.to_string()),
        ]
    }

    /// The columns of an input: its keys, a number for conditions, the row's own number, a text.
    fn types(&self) -> Vec<DataType> {
        let payload = [DataType::Int32, DataType::Int64, DataType::Varchar];
        self.keys.iter().map(|key| key.ty).chain(payload).collect()
    }

    fn input(&self, side: usize, chance: &mut Chance) -> Vec<Row> {
        let count = self.rows[side];
        let key_of = |row: u64, chance: &mut Chance| match side {
            0 => match self.matching {
                Share::None => 1000 + chance.below(50),
                Share::Some if chance.below(2) == 0 => 1000 + chance.below(50),
                _ => chance.below(self.rows[1].max(1)),
            },
            _ => match self.repeated {
                Share::None => row,
                Share::Some => row / 2,
                // One key has most of the rows.
                Share::All => row / 10 * 10 % 30,
            },
        };
        let row = |row: u64| -> Row {
            let number = key_of(row, chance);
            let key = |key: &Key| {
                let is_null = match self.nulls[side] {
                    Share::None => false,
                    Share::Some => chance.below(6) == 0,
                    Share::All => true,
                };
                let value = value(key, number, chance);
                if is_null { Value::Null } else { value }
            };
            let mut values: Row = self.keys.iter().map(key).collect();
            let text = format!("row {row} of an input, {}", "x".repeat(row as usize % 5 * 4));
            values.extend([int(chance.below(20).into()), int(row.into()), Value::Text(text.into())]);
            values
        };
        (0..count).map(row).collect()
    }
}

/// The key value of this number. If SQL has several equal values, a random one of them.
pub(super) fn value(key: &Key, number: u64, chance: &mut Chance) -> Value {
    let n = i128::from(number);
    let wide = match key.apart {
        Apart::Next => n - 20,
        Apart::Sparse => n * 50 - 2000,
        Apart::Far => i128::from((number as i64).wrapping_mul(0x1357_9bdf_0246_8ace)),
    };
    match key.ty {
        DataType::Boolean => Value::Boolean(number % 2 == 1),
        DataType::Int8 => int((wide as i8).into()),
        DataType::Int16 => int((wide as i16).into()),
        DataType::Int32 => int((wide as i32).into()),
        DataType::UInt8 => int((wide as u8).into()),
        DataType::UInt64 => int((wide as u64).into()),
        DataType::Decimal { precision: 4, .. } => int(wide % 10_000),
        DataType::Decimal { precision: 18, .. } => int(wide % 10i128.pow(18)),
        DataType::Decimal { .. } => int(wide * if wide % 3 == 0 { 1 } else { 10i128.pow(17) + 1 }),
        DataType::Date => int(wide % 1_000_000),
        DataType::Timestamp => int(wide / 4),
        DataType::Float32 | DataType::Float64 => Value::Float(match number {
            0 => one_of(&[0.0, -0.0], chance),
            1 => f64::NAN,
            2 => f64::INFINITY,
            3 => f64::NEG_INFINITY,
            _ if key.ty == DataType::Float32 => f64::from(wide as f32 / 4.0),
            _ => wide as f64 * 0.37,
        }),
        DataType::Varchar => Value::Text(match (number, key.apart) {
            (0, _) => "".into(),
            (_, Apart::Next) => format!("k{number}").into(),
            (_, Apart::Sparse) => format!("key number {number} of many that begin alike").into(),
            (_, Apart::Far) => "y".repeat(number as usize % 40 + number as usize / 40).into(),
        }),
        DataType::Blob => Value::Bytes(number.to_le_bytes().repeat(1 + number as usize % 3).into()),
        DataType::Interval => {
            let whole = i32::try_from(number / 2).expect("numbers are small");
            // A month and thirty days are equal.
            let (months, days) =
                one_of(&[(whole, 0), (0, 30 * whole), (whole / 2, 30 * (whole - whole / 2))], chance);
            Value::Interval(Interval { months, days, micros: (number % 2) as i64 })
        }
        DataType::Uuid => int(n << 64 | n),
        _ => int(wide),
    }
}

/// SQL's equality of two values that are not NULL.
pub(super) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Float(a), Value::Float(b)) => a == b || a.is_nan() && b.is_nan(),
        _ => a.total_cmp(b).is_eq(),
    }
}

/// The joined rows, by a nested loop. `None`: an error.
fn nested_loop(case: &Case, left: &[Row], right: &[Row]) -> Option<Vec<Row>> {
    let width = case.types().len();
    let residual =
        |l: &Row, r: &Row| !case.residual || l[case.keys.len()].total_cmp(&r[case.keys.len()]).is_lt();
    // True, false, or unknown.
    let compare = |l: &Row, r: &Row| {
        let mut unknown = false;
        for (i, key) in case.keys.iter().enumerate() {
            match (l[i].is_null(), r[i].is_null()) {
                (true, true) if key.null_equals_null => {}
                (true, false) | (false, true) if key.null_equals_null => return Some(false),
                (false, false) if !equal(&l[i], &r[i]) => return Some(false),
                (false, false) => {}
                _ => unknown = true,
            }
        }
        if unknown { None } else { Some(true) }
    };
    let matches = |l: &Row, r: &Row| compare(l, r) == Some(true) && residual(l, r);
    let joined = |l: &[Value], r: &[Value]| [l, r].concat();
    let nulls = vec![Value::Null; width];
    let mut out = Vec::new();
    for l in left {
        let partners: Vec<&Row> = right.iter().filter(|r| matches(l, r)).collect();
        let unknown = || right.iter().any(|r| compare(l, r).is_none() && residual(l, r));
        match case.kind {
            JoinKind::Semi => out.extend((!partners.is_empty()).then(|| l.clone())),
            JoinKind::Anti => out.extend(partners.is_empty().then(|| l.clone())),
            JoinKind::NullAwareAnti => out.extend((partners.is_empty() && !unknown()).then(|| l.clone())),
            JoinKind::Mark { null_aware, .. } => {
                let mark = match partners.is_empty() {
                    false => Value::Boolean(true),
                    true if null_aware && unknown() => Value::Null,
                    true => Value::Boolean(false),
                };
                out.push(joined(l, &[mark]));
            }
            JoinKind::Single if partners.len() > 1 => return None,
            _ => out.extend(partners.iter().map(|r| joined(l, r))),
        }
        let keeps_left = matches!(case.kind, JoinKind::Left | JoinKind::Full | JoinKind::Single);
        if keeps_left && partners.is_empty() {
            out.push(joined(l, &nulls));
        }
    }
    if matches!(case.kind, JoinKind::Right | JoinKind::Full) {
        let lonely = right.iter().filter(|r| !left.iter().any(|l| matches(l, r)));
        out.extend(lonely.map(|r| joined(&nulls, r)));
    }
    Some(out)
}

/// Rows as text, sorted: zeros with their sign, intervals with their parts.
fn texts(rows: &[Row], columns: &[usize]) -> Vec<String> {
    let text = |row: &Row| columns.iter().map(|&column| format!("{:?}|", row[column])).collect::<String>();
    let mut texts: Vec<String> = rows.iter().map(text).collect();
    texts.sort_unstable();
    texts
}

fn check(number: u64) -> std::result::Result<(), String> {
    let case = Case::of(number);
    let mut chance = Chance(number.wrapping_mul(2) | 1);
    let rows = [0, 1].map(|side| case.input(side, &mut chance));
    let mut columns = Columns::default();
    let types = case.types();
    let [(left, l), (right, r)] = [0, 1].map(|side| match case.stored[side] {
        true => stored(&mut columns, &types, &rows[side]),
        false => values(&mut columns, ["l", "r"][side], &types, rows[side].clone()),
    });
    let kind = match case.kind {
        JoinKind::Mark { null_aware, .. } => {
            JoinKind::Mark { mark: columns.add("mark".to_string(), DataType::Boolean, true), null_aware }
        }
        kind => kind,
    };
    let keys = case.keys.len();
    let on = case.keys.iter().enumerate().map(|(i, key)| JoinKey {
        left: columns.expr(l[i]),
        right: columns.expr(r[i]),
        null_equals_null: key.null_equals_null,
    });
    let on = on.collect();
    let less = || Expr::compare(CompareOp::Lt, columns.expr(l[keys]), columns.expr(r[keys]));
    let residual = case.residual.then(less).into_iter().collect();
    let join = Join { left: Box::new(left), right: Box::new(right), kind, on, residual };
    let mut plan = plan(Node::Join(join), &columns);
    let is_read = |column: &usize| {
        let of_right = *column >= types.len();
        match case.read {
            Read::Everything => true,
            Read::Payload => *column % types.len() >= keys,
            // A mark belongs to neither input.
            Read::Left => !of_right || matches!(kind, JoinKind::Mark { .. }),
        }
    };
    let read: Vec<usize> = (0..plan.output.len()).filter(is_read).collect();
    plan.output = read.iter().map(|&column| plan.output[column].clone()).collect();

    let context = QueryContext { settings: Arc::new(case.settings.clone()), ..QueryContext::default() };
    let found = run(&plan, &context);
    let left_behind = (context.memory.used(), context.temp.used());
    let expected = nested_loop(&case, &rows[0], &rows[1]);
    let all: Vec<usize> = (0..read.len()).collect();
    let problem = match (expected, found) {
        _ if left_behind != (0, 0) => format!("left behind: {left_behind:?} bytes of memory and of files"),
        (Some(expected), Ok(found)) => {
            let (expected, found) = (texts(&expected, &read), texts(&found, &all));
            let differs = || expected.iter().zip(&found).find(|(a, b)| a != b);
            match expected == found {
                true => return Ok(()),
                false => format!("{} rows, expected {}; first: {:?}", found.len(), expected.len(), differs()),
            }
        }
        (None, Err(error)) if error.kind() == entasis_vector::ErrorKind::Input => return Ok(()),
        (Some(_), Err(error)) => format!("{error:?}"),
        (None, found) => format!("{found:?}, expected an error"),
    };
    Err(format!(
        "{problem}\n{case:#?}\nagain: ENTASIS_SEED={number} cargo test -p entasis-engine --lib crossed"
    ))
}

fn environment(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")))
}

#[test]
fn joins_agree_with_nested_loops() {
    if let Some(number) = environment("ENTASIS_SEED") {
        return check(number).unwrap_or_else(|problem| panic!("{problem}"));
    }
    let cases = environment("ENTASIS_WORKLOADS").unwrap_or(CASES);
    let mut values: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let mut met = BTreeSet::new();
    for number in 0..cases {
        check(number).unwrap_or_else(|problem| panic!("{problem}"));
        let own = Case::of(number).dimensions();
        for (i, a) in own.iter().enumerate() {
            values.entry(a.0).or_default().insert(a.1.clone());
            met.extend(own[..i].iter().map(|b| (a.clone(), b.clone())));
        }
    }
    if cases < CASES {
        return;
    }
    // Without keys, the dimensions of the first key are empty; joins from NOT IN have one key.
    let dimensions = Case::of(0).dimensions();
    let is_possible = |a: &(&str, String), b: &(&str, String)| {
        let of_keys = |name: &str| matches!(name, "keys" | "type" | "apart" | "null_equals_null");
        let of_kind = |(name, value): &(&str, String)| *name == "kind" && value == "NullAwareAnti";
        let stored = |(name, value): &(&str, String)| name.ends_with("stored") && value == "true";
        !(of_keys(a.0) && of_keys(b.0)
            || of_kind(a) && of_keys(b.0)
            || of_kind(b) && of_keys(a.0)
            || stored(a) && b.1 == DataType::Uuid.to_string()
            || stored(b) && a.1 == DataType::Uuid.to_string())
    };
    for (i, (a, _)) in dimensions.iter().enumerate() {
        for (b, _) in &dimensions[..i] {
            for pair in values[a]
                .iter()
                .flat_map(|v| values[b].iter().map(move |w| ((*a, v.clone()), (*b, w.clone()))))
            {
                assert!(met.contains(&pair) || !is_possible(&pair.0, &pair.1), "no case has {pair:?}");
            }
        }
    }
    assert_eq!(values["type"].len(), TYPES.len() + 1);
}
