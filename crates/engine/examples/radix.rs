//! Radix joins beside joins with one table: nanoseconds of wall time a build row and a probe row.
//!
//! `make bench-radix`, or
//! `cargo run --release -p entasis-engine --example radix [MILLIONS OF BUILD ROWS [OF PROBE ROWS]]`
//!
//! As in Bandle et al., *To Partition, or Not to Partition*, section 5.4, with keys that are far from each
//! other, so that every table goes by hash: keys and payloads of 8 bytes and of 4; probe sides of which all
//! rows match or some; more payload on the probe side; keys by Zipf's law; fewer and more probe rows. All
//! payload of both sides comes out, the last column is added up. Building includes keeping the rows. Times
//! are the least of several rounds, tables in turns, on as many threads as the machine has.
//! `TABLES=cht,radix` chooses tables, `CASE=Zipf` cases, `PARTITION=65536` the bytes of a partition,
//! `ROUNDS=1`.

mod random;
mod ready;

use entasis_engine::exec::{QueryContext, Settings, TableKind, execute};
use entasis_engine::plan::{Columns, Join, JoinKey, JoinKind, Node, Output, Plan, Scan};
use entasis_vector::{CHUNK_ROWS, ColumnId, DataType};
use random::Random;
use ready::{Ready, Sum, distinct};
use std::sync::Arc;
use std::time::Instant;

/// Key number i: far from the others, each once.
fn key(i: u64, ty: DataType) -> i64 {
    match ty {
        DataType::Int64 => {
            let mixed = i.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            (mixed ^ mixed >> 32).wrapping_mul(0xBB67_AE85_84CA_A73B) as i64
        }
        _ => i64::from((i as u32).wrapping_mul(0x9E37_79B1) as i32),
    }
}

struct Case {
    name: String,
    ty: DataType,
    payloads: usize,
    /// Share of the probe rows that match, in percent.
    hits: u64,
    zipf: f64,
    /// Build rows of a key.
    repeated: u64,
    build: u64,
    probe: u64,
}

/// Nanoseconds, the sum, what is said of the choice, and the most memory that was reserved.
fn run(
    case: &Case,
    build: &Arc<Ready>,
    probe: &Arc<Ready>,
    table: TableKind,
    partition: usize,
) -> (u64, i64, String, usize) {
    let mut columns = Columns::default();
    let mut scan = |relation: &Arc<Ready>, payloads: usize| {
        let ids: Vec<ColumnId> =
            (0..=payloads).map(|i| columns.add(format!("c{i}"), case.ty, false)).collect();
        let columns = ids.iter().copied().zip(0..).collect();
        (Box::new(Node::Scan(Scan::all(relation.clone(), columns))), ids)
    };
    let ((left, l), (right, r)) = (scan(probe, case.payloads), scan(build, 1));
    let on = vec![JoinKey { left: columns.expr(l[0]), right: columns.expr(r[0]), null_equals_null: false }];
    let root = Node::Join(Join { left, right, kind: JoinKind::Inner, on, residual: Vec::new() });
    let output =
        l[1..].iter().chain(&r[1..]).map(|&column| Output { name: column.to_string(), column }).collect();
    let plan = Plan { root, columns, output };
    let settings =
        Settings { join_table: table, join_partition_size: partition, profile: true, ..Settings::default() };
    let context = QueryContext { settings: Arc::new(settings), ..QueryContext::default() };
    let sum = Sum::default();
    let start = Instant::now();
    let profile = execute(&plan, &context, &sum).expect("a join of integers runs");
    let nanoseconds = start.elapsed().as_nanos() as u64;
    let root = profile.root.expect("asked for");
    (nanoseconds, sum.total(), root.details.join("; "), root.bytes as usize)
}

fn measure(case: &Case, tables: &[TableKind], partition: usize, rounds: usize) {
    let mut random = Random(4711);
    let n = case.build / case.repeated;
    // Equal keys are no neighbours.
    let keys: Vec<i64> = (0..case.build).map(|i| key(i % n, case.ty)).collect();
    let probes: Vec<i64> = (0..case.probe)
        .map(|_| {
            let uniform = (random.below(1 << 53) as f64 + 0.5) / (1u64 << 53) as f64;
            let rank = match case.zipf {
                1.0 => ((n as f64).ln() * uniform).exp(),
                zipf => (((n as f64).powf(1.0 - zipf) - 1.0) * uniform + 1.0).powf(1.0 / (1.0 - zipf)),
            };
            // Frequent keys are no neighbours: a prime that n has not.
            let number = (rank as u64 - 1).min(n - 1) * 15_485_863 % n;
            // Numbers from n on are no keys.
            key(if random.below(100) < case.hits { number } else { number + n }, case.ty)
        })
        .collect();
    let probed = distinct(&probes);
    let build = Arc::new(Ready::of(&keys, case.ty, 1, case.build, Some(n)));
    let probe = Arc::new(Ready::of(&probes, case.ty, case.payloads, case.probe, probed));
    let few = Arc::new(Ready::of(&probes[..CHUNK_ROWS], case.ty, case.payloads, case.probe, probed));
    println!("{}: {} build rows, {} probe rows", case.name, case.build, case.probe);
    let mut best = vec![(u64::MAX, u64::MAX); tables.len()];
    let mut notes = vec![(0, String::new(), 0); tables.len()];
    for _ in 0..rounds {
        for (i, &table) in tables.iter().enumerate() {
            let (built, ..) = run(case, &build, &few, table, partition);
            let (all, sum, reason, bytes) = run(case, &build, &probe, table, partition);
            best[i] = (best[i].0.min(built), best[i].1.min(all));
            notes[i] = (sum, reason, bytes);
        }
    }
    assert!(notes.iter().all(|(sum, ..)| *sum == notes[0].0), "all tables give the same");
    for ((table, (built, all)), (_, reason, bytes)) in tables.iter().zip(best).zip(notes) {
        let build_ns = built as f64 / case.build as f64;
        let probe_ns = all.saturating_sub(built) as f64 / case.probe as f64;
        println!(
            "  {:11} {:6.0} ms; build {build_ns:5.1} ns, probe {probe_ns:5.1} ns a row, {:6.0} MB at most; {reason}",
            table.to_string(),
            all as f64 / 1e6,
            bytes as f64 / f64::from(1 << 20),
        );
    }
}

fn main() {
    let variable = |name: &str| std::env::var(name).ok();
    let number = |name: &str, or: usize| variable(name).and_then(|text| text.parse().ok()).unwrap_or(or);
    let millions: Vec<u64> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    let build = millions.first().unwrap_or(&10) * 1_000_000;
    let probe = millions.get(1).map_or(4 * build, |probe| probe * 1_000_000);
    let tables = variable("TABLES").unwrap_or("auto,cht,chained,radix,bloom_radix".into());
    let tables: Vec<TableKind> = tables.split(',').filter_map(TableKind::parse).collect();
    let only = variable("CASE");
    let base = |name: &str, ty| Case {
        name: name.into(),
        ty,
        payloads: 1,
        hits: 100,
        zipf: 0.0,
        repeated: 1,
        build,
        probe,
    };
    let (wide, narrow) = (DataType::Int64, DataType::Int32);
    let mut cases = vec![base("8/8 bytes", wide), base("4/4 bytes", narrow)];
    for hits in [1, 5, 25, 50, 100] {
        let name = |payloads| format!("{payloads} payload columns, {hits} % of the probes match");
        cases.extend([1, 2, 4, 8].map(|payloads| Case { payloads, hits, ..base(&name(payloads), wide) }));
    }
    cases
        .extend([0.5, 0.75, 1.0, 1.25, 1.5].map(|zipf| Case { zipf, ..base(&format!("Zipf {zipf}"), wide) }));
    cases.extend(
        [build, 16 * build].map(|probe| Case { probe, ..base(&format!("1 : {}", probe / build), wide) }),
    );
    for (repeated, probe) in
        [2, 4, 30].into_iter().flat_map(|r| [build / 2, build, 4 * build].map(|probe| (r, probe)))
    {
        let name = format!(
            "repeated, {repeated} rows of a key, {:.1} probe rows for each",
            probe as f64 / build as f64
        );
        cases.push(Case { repeated, probe, ..base(&name, wide) });
    }
    for hits in [1, 5, 25] {
        let name =
            |payloads| format!("30 rows of a key, {payloads} payload columns, {hits} % of the probes match");
        cases.extend([4, 8].map(|payloads| Case {
            payloads,
            hits,
            repeated: 30,
            probe: probe / 2,
            ..base(&name(payloads), wide)
        }));
    }
    for case in cases.iter().filter(|case| only.as_ref().is_none_or(|only| case.name.contains(only))) {
        measure(case, &tables, number("PARTITION", 1 << 20), number("ROUNDS", 3));
    }
}
