//! Joins with each table: nanoseconds a build row and a probe row, bytes of the table and of the rows that it
//! keeps.
//!
//! `make bench-joins`, or `cargo run --release -p entasis-engine --example joins [ROWS …]`
//!
//! As in Barber et al., *Memory-Efficient Hash Joins*, section 4: n distinct keys of 8 bytes, drawn from 2n
//! values, with a payload of 8 bytes, by which the matches are summed up; probes are drawn from the keys.
//! Further: probes in the order of their keys, of which half find nothing; keys that are all there; keys far
//! from each other, or some of them; keys that occur four or thirty times; and a semi join. Building includes
//! keeping the rows. Times are the least of several rounds, on as many threads as the machine has.

mod random;
mod ready;

use entasis_engine::exec::{QueryContext, Settings, TableKind, execute};
use entasis_engine::plan::{Columns, Join, JoinKey, JoinKind, Node, Output, Plan, Scan};
use entasis_vector::{CHUNK_ROWS, ColumnId, DataType};
use random::Random;
use ready::{Ready, Sum};
use std::sync::{Arc, Mutex};
use std::time::Instant;

const ROUNDS: usize = 3;

fn shuffle(random: &mut Random, keys: &mut [i64]) {
    (1..keys.len()).rev().for_each(|i| keys.swap(i, random.below(i as u64 + 1) as usize));
}

struct Case {
    name: &'static str,
    kind: JoinKind,
    build: Vec<i64>,
    probe: Vec<i64>,
    tables: &'static [TableKind],
    /// Distinct keys.
    distinct: usize,
}

/// Nanoseconds, the sum, why the table was chosen, and the most memory that was reserved.
fn run(
    kind: JoinKind,
    build: &Arc<Ready>,
    probe: &Arc<Ready>,
    table: TableKind,
) -> (u64, i64, String, usize) {
    let mut columns = Columns::default();
    let mut scan = |relation: &Arc<Ready>, name: &str| {
        let ids: Vec<ColumnId> = ["k", "v"]
            .iter()
            .map(|column| columns.add(format!("{name}.{column}"), DataType::Int64, false))
            .collect();
        let columns = ids.iter().copied().zip(0..).collect();
        (Box::new(Node::Scan(Scan::all(relation.clone(), columns))), ids)
    };
    let ((left, l), (right, r)) = (scan(probe, "probe"), scan(build, "build"));
    let on = vec![JoinKey { left: columns.expr(l[0]), right: columns.expr(r[0]), null_equals_null: false }];
    let root = Node::Join(Join { left, right, kind, on, residual: Vec::new() });
    let last = if kind == JoinKind::Semi { l[0] } else { r[1] };
    let plan = Plan { root, columns, output: vec![Output { name: "v".into(), column: last }] };
    let settings = Settings { join_table: table, profile: true, ..Settings::default() };
    let context = QueryContext { settings: Arc::new(settings), ..QueryContext::default() };
    let sum = Sum::default();
    let start = Instant::now();
    let profile = execute(&plan, &context, &sum).expect("a join of integers runs");
    let nanoseconds = start.elapsed().as_nanos() as u64;
    let root = profile.root.expect("asked for");
    (nanoseconds, sum.total(), root.details.join("; "), root.bytes as usize)
}

fn measure(case: &Case) {
    // The side of fewer rows is kept, and the table is the same for few probes.
    let distinct = Some(case.distinct as u64);
    let build = Arc::new(Ready::new(&case.build, case.build.len() as u64, distinct));
    let claimed = (case.probe.len() as u64).max(2 * case.build.len() as u64);
    let probe = Arc::new(Ready::new(&case.probe, claimed, distinct));
    let few = Arc::new(Ready::new(&case.probe[..CHUNK_ROWS], claimed, distinct));
    println!("{}: {} build rows, {} probe rows", case.name, case.build.len(), case.probe.len());
    let mut best = vec![(u64::MAX, u64::MAX); case.tables.len()];
    let mut notes = vec![(0, String::new(), 0); case.tables.len()];
    for _ in 0..ROUNDS {
        for (i, &table) in case.tables.iter().enumerate() {
            let (built, ..) = run(case.kind, &build, &few, table);
            let (all, sum, reason, bytes) = run(case.kind, &build, &probe, table);
            best[i] = (best[i].0.min(built), best[i].1.min(all));
            notes[i] = (sum, reason, bytes);
        }
    }
    let sums: Vec<i64> = notes.iter().map(|(sum, ..)| *sum).collect();
    assert!(sums.iter().all(|&sum| sum == sums[0]), "all tables give the same");
    for ((table, (built, all)), (_, reason, bytes)) in case.tables.iter().zip(best).zip(notes) {
        let build_ns = built as f64 / case.build.len() as f64;
        let probe_ns = all.saturating_sub(built) as f64 / case.probe.len() as f64;
        println!(
            "  {:8} build {build_ns:6.1} ns, probe {probe_ns:6.2} ns a row, {:6.1} MB at most; {reason}",
            table.to_string(),
            bytes as f64 / f64::from(1 << 20),
        );
    }
}

fn main() {
    use TableKind::{Array, Auto, Bitmap, BloomRadix, Cat, Chained, Cht, Radix, Ranked, Unchained};
    let sizes: Vec<usize> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![100_000, 1_000_000, 10_000_000] } else { sizes };
    let only = Mutex::new(std::env::var("CASE").ok());
    for n in sizes {
        let probes = (4 * n).clamp(10_000_000, 40_000_000);
        let mut random = Random(4711);
        let random = &mut random;
        // Half of the values up to 2n: of each two neighbours one.
        let mut keys: Vec<i64> = (0..n as i64).map(|i| 2 * i + random.below(2) as i64).collect();
        let drawn = |keys: &[i64], random: &mut Random| -> Vec<i64> {
            (0..probes).map(|_| keys[random.below(keys.len() as u64) as usize]).collect()
        };
        let in_order: Vec<i64> =
            (0..probes).map(|i| (i as u64 * 2 * n as u64 / probes as u64) as i64).collect();
        let ascending = keys.clone();
        shuffle(random, &mut keys);
        let mut full: Vec<i64> = (0..n as i64).collect();
        let full_ascending = full.clone();
        shuffle(random, &mut full);
        let far: Vec<i64> = keys.iter().map(|key| key * 1_000_003).collect();
        let few_far: Vec<i64> =
            keys.iter().map(|key| if key % 100 == 7 { key << 32 } else { *key }).collect();
        let thin: Vec<i64> = keys.iter().map(|key| key * 16).collect();
        let mut four: Vec<i64> = (0..n as i64).map(|i| i / 4 * 8).collect();
        shuffle(random, &mut four);
        let far_four: Vec<i64> = four.iter().map(|key| key * 1_000_003).collect();
        let mut far_thirty: Vec<i64> = (0..n as i64).map(|i| i / 30 * 1_000_003).collect();
        shuffle(random, &mut far_thirty);
        let half: Vec<i64> = drawn(&keys, random).iter().map(|key| key ^ random.below(2) as i64).collect();
        let all: &[TableKind] = &[Auto, Array, Ranked, Cat, Cht, Unchained, Chained, Radix, BloomRadix];
        let hashed: &[TableKind] = &[Auto, Cht, Unchained, Chained, Radix, BloomRadix];
        let (inner, left) = (JoinKind::Inner, JoinKind::Left);
        let case = |name, kind, build: &[i64], probe: Vec<i64>, tables| Case {
            name,
            kind,
            build: build.to_vec(),
            probe,
            tables,
            distinct: n,
        };
        let cases = [
            case("every second value", inner, &keys, drawn(&keys, random), all),
            case("every second value, half of the probes match", left, &keys, half.clone(), all),
            case("every second value in order, probes in order", left, &ascending, in_order.clone(), all),
            case("every 32nd value", inner, &thin, drawn(&thin, random), all),
            case("all values", inner, &full, drawn(&full, random), all),
            case("all values in order", inner, &full_ascending, drawn(&full, random), all),
            case("far values", inner, &far, drawn(&far, random), hashed),
            case(
                "far values, half of the probes match",
                left,
                &far,
                half.iter().map(|k| k * 1_000_003).collect(),
                hashed,
            ),
            case(
                "every second value, a hundredth far",
                inner,
                &few_far,
                drawn(&few_far, random),
                &[Auto, Cat, Cht, Unchained, Chained],
            ),
            Case {
                distinct: n / 4,
                ..case("each key four times", inner, &four, drawn(&four, random)[..probes / 4].to_vec(), all)
            },
            Case {
                distinct: n / 4,
                ..case(
                    "far values, each four times",
                    inner,
                    &far_four,
                    drawn(&far_four, random)[..probes / 4].to_vec(),
                    hashed,
                )
            },
            Case {
                distinct: n / 30,
                ..case(
                    "far values, each thirty times",
                    inner,
                    &far_thirty,
                    drawn(&far_thirty, random)[..probes / 30].to_vec(),
                    hashed,
                )
            },
            case(
                "semi join",
                JoinKind::Semi,
                &keys,
                drawn(&keys, random),
                &[Auto, Bitmap, Cat, Cht, Unchained, Chained],
            ),
            case(
                "semi join, half of the probes match",
                JoinKind::Semi,
                &keys,
                half,
                &[Auto, Bitmap, Cat, Cht, Unchained, Chained],
            ),
        ];
        let only = only.lock().expect("nobody else has it").clone();
        cases
            .iter()
            .filter(|case| only.as_ref().is_none_or(|only| case.name.contains(only)))
            .for_each(measure);
    }
}
