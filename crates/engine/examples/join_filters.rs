//! Join filters: nanoseconds a probe row with each kind of filter, by the share of the probe rows that match.
//!
//! `cargo run --release -p entasis-engine --example join_filters [BUILD ROWS …]`
//!
//! As in Bandle et al., *To Partition, or Not to Partition*, section 5.4.1: the build side stays, the share
//! of foreign keys that find a partner varies. Keys have 8 bytes and are far from each other. Three plans: a
//! join over a table, whose scan tests the filter; the same with two key columns; and two joins over rows
//! that come from no table, of which the first matches all rows and the second one the share, so that its
//! filter runs before the first. Times are the least of several rounds, the build included, on as many
//! threads as the machine has.

mod random;
mod ready;
mod stored;

use entasis_engine::exec::{FilterKind, QueryContext, Settings, execute};
use entasis_engine::plan::{Columns, Join, JoinKey, JoinKind, Node, Output, Plan, Scan};
use entasis_engine::relation::Relation;
use entasis_storage::Table;
use entasis_vector::{CHUNK_ROWS, Chunk, ColumnId, DataType, Field, Schema, Selection, Vector};
use random::Random;
use ready::{Ready, Sum, distinct};
use std::sync::Arc;
use std::time::Instant;
use stored::Stored;

const ROUNDS: usize = 3;
const PROBES: usize = 10_000_000;
/// From one key to the next.
const FAR: i64 = 1_000_003;

/// A table (key, key with other bits).
fn stored(keys: &[i64]) -> Arc<dyn Relation> {
    let schema: Schema = ["k", "v"].map(|name| Field::new(name, DataType::Int64)).to_vec();
    let table = Table::new("stored", schema);
    let mut appender = table.appender();
    for keys in keys.chunks(CHUNK_ROWS) {
        let mut chunk = Chunk::new();
        chunk.reset(keys.len());
        let group = chunk.push_group(Selection::ALL);
        chunk.push_column(Vector::from_slice(keys), group);
        chunk.push_column(
            Vector::from_slice(&keys.iter().map(|key| key ^ 0x5555).collect::<Vec<i64>>()),
            group,
        );
        appender.append(&chunk, 0).expect("there is memory");
    }
    table.commit(vec![appender.finish()]).expect("nobody else writes");
    Arc::new(Stored(table.snapshot()))
}

/// Joins of the first relation with the others, each on these columns of both; the last one's second column
/// is read.
fn plan(relations: &[Arc<dyn Relation>], on: &[&[usize]]) -> Plan {
    let mut columns = Columns::default();
    let mut inputs = relations.iter().map(|relation| {
        let ids: Vec<ColumnId> =
            ["k", "v"].iter().map(|name| columns.add(*name, DataType::Int64, false)).collect();
        let columns = ids.iter().copied().zip(0..).collect();
        (Node::Scan(Scan::all(relation.clone(), columns)), ids)
    });
    let (mut root, probe) = inputs.next().expect("there is a probe side");
    let builds: Vec<(Node, Vec<ColumnId>)> = inputs.collect();
    let last = builds.last().expect("there is a build side").1[1];
    for ((build, ids), on) in builds.into_iter().zip(on) {
        let key = |&i: &usize| JoinKey {
            left: columns.expr(probe[i]),
            right: columns.expr(ids[i]),
            null_equals_null: false,
        };
        let on = on.iter().map(key).collect();
        let (left, right) = (Box::new(root), Box::new(build));
        root = Node::Join(Join { left, right, kind: JoinKind::Inner, on, residual: Vec::new() });
    }
    Plan { root, columns, output: vec![Output { name: "v".into(), column: last }] }
}

fn run(plan: &Plan, join_filter: FilterKind) -> (f64, i64) {
    let settings = Settings { join_filter, ..Settings::default() };
    let context = QueryContext { settings: Arc::new(settings), ..QueryContext::default() };
    let sum = Sum::default();
    let start = Instant::now();
    execute(plan, &context, &sum).expect("a join of integers runs");
    (start.elapsed().as_nanos() as f64 / PROBES as f64, sum.total())
}

fn main() {
    let sizes: Vec<usize> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![100_000, 1_000_000] } else { sizes };
    let kinds = [FilterKind::Off, FilterKind::Bloom, FilterKind::Auto];
    for n in sizes {
        println!(
            "{n} build rows, {PROBES} probe rows: ns a probe row without filters, with a Bloom filter, as chosen"
        );
        let mut random = Random(4711);
        let build: Vec<i64> = (0..n as i64).map(|i| 2 * i * FAR).collect();
        for percent in [1, 10, 30, 50, 70, 80, 90, 100] {
            let mut key = || {
                let miss = i64::from(random.below(100) >= percent);
                (2 * random.below(n as u64) as i64 + miss) * FAR
            };
            let probe: Vec<i64> = (0..PROBES).map(|_| key()).collect();
            let ready = |keys: &[i64]| -> Arc<dyn Relation> {
                Arc::new(Ready::new(keys, keys.len() as u64, distinct(keys)))
            };
            let every: Vec<i64> = (0..2 * n as i64).map(|i| i * FAR).collect();
            let (few, all, rows, table) = (ready(&build), ready(&every), ready(&probe), stored(&probe));
            let plans = [
                ("one join", plan(&[table.clone(), few.clone()], &[&[0]])),
                ("two columns", plan(&[table, few.clone()], &[&[0, 1]])),
                ("two joins", plan(&[rows, all, few], &[&[0], &[0]])),
            ];
            print!("  {percent:3} % match");
            for (name, plan) in &plans {
                let mut best = [f64::MAX; 3];
                let mut sums = Vec::new();
                for _ in 0..ROUNDS {
                    for (best, kind) in best.iter_mut().zip(kinds) {
                        let (time, sum) = run(plan, kind);
                        *best = best.min(time);
                        sums.push(sum);
                    }
                }
                assert!(sums.iter().all(|&sum| sum == sums[0]), "filters change no result");
                print!("; {name}: {:.1} / {:.1} / {:.1}", best[0], best[1], best[2]);
            }
            println!();
        }
    }
}
