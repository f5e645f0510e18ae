//! Which side of a join is kept in the table: milliseconds of both ways, and the way that the optimizer
//! takes.
//!
//! `make bench-join-sides`, or
//! `cargo run --release -p entasis-engine --example join_sides [THOUSANDS OF KEYS]`
//!
//! As in Barber et al., *Memory-Efficient Hash Joins*, Table 1: n distinct keys of 8 bytes out of 2n values,
//! with none to six payload columns of 8 bytes that come out, joined with 2n, 10n and 40n rows that are only
//! a key. So the side of fewer rows has all of the payload, and the other side's table may need no rows at
//! all. A way is forced by statistics that claim thirty times as many rows and keys for the other side. Times
//! are the least of several rounds, ways in turns, on as many threads as the machine has.

mod random;
mod ready;

use entasis_engine::exec::{QueryContext, Settings, execute};
use entasis_engine::plan::{Columns, Join, JoinKey, JoinKind, Node, Output, Plan, Scan};
use entasis_vector::{ColumnId, DataType};
use random::Random;
use ready::{Ready, Sum};
use std::sync::Arc;
use std::time::Instant;

const ROUNDS: usize = 3;
/// How many times as many rows force a side.
const MANY: u64 = 30;

/// Milliseconds, the sum of the last column, and what is said of the join.
fn run(wide: &Arc<Ready>, keys: &Arc<Ready>, payloads: usize) -> (f64, i64, String) {
    let mut columns = Columns::default();
    let mut scan = |relation: &Arc<Ready>, payloads: usize| {
        let ids: Vec<ColumnId> =
            (0..=payloads).map(|i| columns.add(format!("c{i}"), DataType::Int64, false)).collect();
        let columns = ids.iter().copied().zip(0..).collect();
        (Box::new(Node::Scan(Scan::all(relation.clone(), columns))), ids)
    };
    let ((left, l), (right, r)) = (scan(keys, 0), scan(wide, payloads));
    let on = vec![JoinKey { left: columns.expr(l[0]), right: columns.expr(r[0]), null_equals_null: false }];
    let root = Node::Join(Join { left, right, kind: JoinKind::Inner, on, residual: Vec::new() });
    let read = if payloads == 0 { &l[..] } else { &r[1..] };
    let output = read.iter().map(|&column| Output { name: column.to_string(), column }).collect();
    let plan = Plan { root, columns, output };
    let settings = Settings { profile: true, optimize: false, ..Settings::default() };
    let context = QueryContext { settings: Arc::new(settings), ..QueryContext::default() };
    let sum = Sum::default();
    let start = Instant::now();
    let profile = execute(&plan, &context, &sum).expect("a join of integers runs");
    let milliseconds = start.elapsed().as_nanos() as f64 / 1e6;
    (milliseconds, sum.total(), profile.root.expect("asked for").details.join("; "))
}

fn main() {
    let n = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1000) * 1000u64;
    let mut random = Random(4711);
    let mut keys: Vec<i64> = (0..n as i64).map(|i| 2 * i + random.below(2) as i64).collect();
    (1..keys.len()).rev().for_each(|i| keys.swap(i, random.below(i as u64 + 1) as usize));
    println!(
        "payload columns, rows of the other side: ms if the payload's side is kept, if the other is; chosen"
    );
    for times in [2, 10, 40] {
        let drawn: Vec<i64> = (0..times * n).map(|_| keys[random.below(n) as usize]).collect();
        let other = |more| Arc::new(Ready::of(&drawn, DataType::Int64, 0, more * times * n, Some(more * n)));
        let (true_rows, many_rows) = (other(1), other(MANY));
        for payloads in [0, 1, 3, 6] {
            let wide = |rows| Arc::new(Ready::of(&keys, DataType::Int64, payloads, rows, Some(rows)));
            let (true_wide, many_wide) = (wide(n), wide(MANY * times * n));
            let ways = [(&true_wide, &many_rows), (&many_wide, &true_rows), (&true_wide, &true_rows)];
            let mut best = [f64::INFINITY; 3];
            let (mut sums, mut kept) = ([0; 3], [false; 3]);
            for _ in 0..ROUNDS {
                for (i, (wide, rows)) in ways.into_iter().enumerate() {
                    let (milliseconds, sum, note) = run(wide, rows, payloads);
                    best[i] = best[i].min(milliseconds);
                    (sums[i], kept[i]) = (sum, note.contains("the build side is the right input"));
                }
            }
            assert!(kept[0] && !kept[1], "the sides are forced");
            assert!(sums.iter().all(|&sum| sum == sums[0]), "both ways give the same");
            println!(
                "{payloads} {:10}: {:7.0} {:7.0}; {} {:7.0}",
                times * n,
                best[0],
                best[1],
                if kept[2] { "payload's" } else { "other" },
                best[2],
            );
        }
    }
}
