//! Joins by a text column that arrives as codes of dictionaries, beside the same texts without: nanoseconds a
//! probe row.
//!
//! `make bench-dictionaries`, or `cargo run --release -p entasis-engine --example dictionaries [MILLIONS]`
//!
//! The build side has distinct texts of 24 bytes, or each four times, with a number; all probe rows match, or
//! half of them, in chunks of 2048. 61,440 consecutive rows share a dictionary, as the blocks of a row group
//! do; it has so many of the texts, in no order. Dictionaries of as many entries as they have rows are the
//! worst case: all entries are looked up for rows that would have been. Times are the least of several
//! rounds, tables and forms in turns, on as many threads as the machine has, without those of the build,
//! which is measured with a single probe chunk. A sum of what comes out is compared, so that nothing is
//! skipped.

mod random;
mod ready;

use entasis_engine::exec::{QueryContext, Settings, TableKind, execute};
use entasis_engine::plan::{Columns, Join, JoinKey, JoinKind, Node, Output, Plan, Scan};
use entasis_engine::relation::Relation;
use entasis_vector::{
    CHUNK_ROWS, Chunk, DataType, Dictionary, Field, PhysicalType, Schema, Selection, Value, Vector,
};
use random::Random;
use ready::{Ready, Sum};
use std::sync::Arc;
use std::time::Instant;

const ROUNDS: usize = 3;
/// Chunks that share a dictionary.
const SHARED: usize = 30;

/// Text number i.
fn text(i: u64) -> Value {
    Value::Text(format!("customer number {i:08}").into())
}

fn texts(numbers: &[u64]) -> Vector {
    let values: Vec<Value> = numbers.iter().map(|&i| text(i)).collect();
    Vector::from_values(PhysicalType::Str, &values).expect("they are texts")
}

/// Chunks of a text and a number each. `entries`: the texts of a dictionary, or none for flat vectors.
fn relation(chunks: Vec<(Vector, Vec<i64>)>, claimed: u64, distinct: u64) -> Arc<dyn Relation> {
    let schema: Schema =
        [Field::new("k", DataType::Varchar), Field::new("v", DataType::Int64)].into_iter().collect();
    let chunk = |(keys, numbers): (Vector, Vec<i64>)| {
        let mut chunk = Chunk::new();
        chunk.reset(numbers.len());
        let group = chunk.push_group(Selection::ALL);
        chunk.push_column(keys, group);
        chunk.push_column(Vector::from_slice(&numbers), group);
        chunk
    };
    Arc::new(Ready::of_chunks(schema, chunks.into_iter().map(chunk).collect(), claimed, Some(distinct)))
}

/// The probe side: `rows` rows of texts below `texts`, by `entries` of a dictionary. As codes, and flat.
fn probe_side(rows: usize, texts_below: u64, entries: usize, distinct: u64) -> [Arc<dyn Relation>; 2] {
    let mut random = Random(4711);
    let [mut coded, mut flat] = [(); 2].map(|()| Vec::new());
    let mut numbers: Vec<u64> = Vec::new();
    let mut dictionary = Dictionary::new(texts(&[]), 0);
    for chunk in 0..rows / CHUNK_ROWS {
        if chunk % SHARED == 0 {
            numbers = (0..entries).map(|_| random.below(texts_below)).collect();
            dictionary = Dictionary::new(texts(&numbers), entries);
        }
        let codes: Vec<u32> = (0..CHUNK_ROWS).map(|_| random.below(entries as u64) as u32).collect();
        let mut keys = Vector::new(PhysicalType::Str);
        keys.begin_codes(&dictionary, CHUNK_ROWS)[..CHUNK_ROWS].copy_from_slice(&codes);
        let payload: Vec<i64> = (0..CHUNK_ROWS as i64).collect();
        coded.push((keys, payload.clone()));
        let own: Vec<u64> = codes.iter().map(|&code| numbers[code as usize]).collect();
        flat.push((texts(&own), payload));
    }
    [coded, flat].map(|chunks| relation(chunks, rows as u64, distinct))
}

/// Nanoseconds, the sum of what came out, and what is said of the join.
fn run(build: &Arc<dyn Relation>, probe: &Arc<dyn Relation>, table: TableKind) -> (u64, i64, String) {
    let mut columns = Columns::default();
    let mut scan = |relation: &Arc<dyn Relation>| {
        let ids = [columns.add("k", DataType::Varchar, false), columns.add("v", DataType::Int64, false)];
        (Box::new(Node::Scan(Scan::all(relation.clone(), ids.into_iter().zip(0..).collect()))), ids)
    };
    let ((left, l), (right, r)) = (scan(probe), scan(build));
    let on = vec![JoinKey { left: columns.expr(l[0]), right: columns.expr(r[0]), null_equals_null: false }];
    let root = Node::Join(Join { left, right, kind: JoinKind::Inner, on, residual: Vec::new() });
    let output = vec![Output { name: "v".into(), column: r[1] }];
    let plan = Plan { root, columns, output };
    let settings = Settings { join_table: table, profile: true, ..Settings::default() };
    let context = QueryContext { settings: Arc::new(settings), ..QueryContext::default() };
    let sum = Sum::default();
    let start = Instant::now();
    let profile = execute(&plan, &context, &sum).expect("a join of texts runs");
    let nanoseconds = start.elapsed().as_nanos() as u64;
    (nanoseconds, sum.total(), profile.root.expect("asked for").details.join("; "))
}

fn main() {
    use TableKind::{Chained, Cht, Unchained};
    let millions: usize = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(4);
    let rows = (millions * 1_000_000).next_multiple_of(CHUNK_ROWS);
    println!(
        "build texts, rows of each, entries, % matching: table, ns a probe row as codes and flat, ratio"
    );
    for texts_built in [1000, 100_000, 1_000_000] {
        for (repeated, hits) in [(1, 100), (1, 50), (4, 100)] {
            let numbers: Vec<u64> = (0..repeated).flat_map(|_| 0..texts_built).collect();
            let parts = numbers.chunks(CHUNK_ROWS);
            let parts = parts.map(|part| (texts(part), part.iter().map(|&i| i as i64).collect())).collect();
            // The side of fewer rows is kept, whatever is claimed of a single chunk.
            let build = relation(parts, texts_built * repeated, texts_built);
            for entries in [25, 1000, 10_000, SHARED * CHUNK_ROWS] {
                let texts_below = texts_built * 100 / hits;
                let distinct = texts_below;
                let [coded, flat] = probe_side(rows, texts_below, entries, distinct);
                let [few_coded, few_flat] = probe_side(CHUNK_ROWS, texts_below, CHUNK_ROWS + 1, distinct);
                for table in [Cht, Unchained, Chained] {
                    if table == Cht && repeated > 1 {
                        continue;
                    }
                    let mut best = [(u64::MAX, u64::MAX); 2];
                    let mut sums = [0; 2];
                    let mut notes = [String::new(), String::new()];
                    for _ in 0..ROUNDS {
                        for (i, (few, all)) in [(&few_coded, &coded), (&few_flat, &flat)].iter().enumerate() {
                            let (built, ..) = run(&build, few, table);
                            let (whole, sum, note) = run(&build, all, table);
                            best[i] = (best[i].0.min(built), best[i].1.min(whole));
                            (sums[i], notes[i]) = (sum, note);
                        }
                    }
                    assert_eq!(sums[0], sums[1], "codes and texts give the same");
                    let [codes, flat] =
                        best.map(|(built, whole)| whole.saturating_sub(built) as f64 / rows as f64);
                    println!(
                        "{texts_built:9} {repeated} {entries:6} {hits:4}: {:10} {codes:6.2} {flat:6.2} {:5.2}{}",
                        table.to_string(),
                        codes / flat,
                        if notes[0].contains("by dictionary code") { ", by entry" } else { "" }
                    );
                }
            }
        }
    }
}
