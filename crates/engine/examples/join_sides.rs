//! Which side of a join is kept in the table: milliseconds of both ways, and the way that the optimizer
//! takes.
//!
//! `make bench-join-sides`, or
//! `cargo run --release -p entasis-engine --example join_sides [THOUSANDS OF KEYS | tuning | held-out]`
//!
//! As in Barber et al., *Memory-Efficient Hash Joins*, Table 1: n distinct keys of 8 bytes out of 2n values,
//! with none to six payload columns of 8 bytes that come out, joined with 2n, 10n and 40n rows that are only
//! a key. So the side of fewer rows has all of the payload, and the other side's table may need no rows at
//! all.
//!
//! `tuning` and `held-out` are the two halves of a grid: keys near to and far from each other, 1 to 16 rows
//! of a key on either side, payload on either, tables inside and outside of caches. What repeated keys cost
//! in `estimate/join_cost.rs` was chosen by the first half; what is better on this one alone only fits its
//! figures. These joins run on one thread, and what counts is the time that it was on a processor.
//!
//! A way is forced by costs of which only the number of kept rows counts. Times are the least of several
//! rounds, ways in turns.

mod joined;
mod random;
mod ready;
mod timed;

use entasis_engine::cost::Costs;
use entasis_engine::exec::Settings;
use entasis_engine::relation::Relation;
use entasis_vector::DataType;
use joined::{Input, Outcome, join};
use random::Random;
use ready::Ready;
use std::sync::Arc;

const ROUNDS: usize = 3;
/// Rounds of joins of which one takes less than so many milliseconds.
const MOST_ROUNDS: usize = 9;
const SHORT: f64 = 20.0;
/// What a kept row costs, if nothing else is to count. Nanoseconds.
const ALL: f64 = 1e9;

/// One side: its rows, and how many payload columns come out.
struct Side {
    keys: Vec<i64>,
    payloads: usize,
}

/// The outcomes of the three ways: the left side kept, the right one, and the one that is chosen.
fn measure(left: &Side, right: &Side, distinct: u64, threads: Option<usize>) -> [Outcome; 3] {
    let ready = |side: &Side| {
        Ready::of(&side.keys, DataType::Int64, side.payloads, side.keys.len() as u64, Some(distinct))
    };
    let inputs = [ready(left), ready(right)];
    let rows = [left.keys.len() as u64, right.keys.len() as u64];
    // Costs below 0 keep the side of more rows.
    let keeping = |side: usize| {
        let is_more = rows[side] >= rows[1 - side];
        Costs { row: if is_more { -ALL } else { ALL }, ..Costs::default() }
    };
    let way = |kept: Option<usize>| {
        [0, 1].map(|side| -> Arc<dyn Relation> {
            let costs = kept.map_or_else(Costs::default, keeping);
            // Of equally many rows, the kept side claims one more.
            let more = u64::from(kept == Some(side) && rows[0] == rows[1]);
            Arc::new(inputs[side].claiming(rows[side] + more, costs))
        })
    };
    let ways = [Some(0), Some(1), None].map(way);
    let mut best: [Option<Outcome>; 3] = [None, None, None];
    for round in 0..MOST_ROUNDS {
        let is_long = best.iter().flatten().any(|outcome| outcome.milliseconds > SHORT);
        if round >= ROUNDS && is_long {
            break;
        }
        for ([l, r], best) in ways.iter().zip(&mut best) {
            let settings = Settings::default();
            let settings = Settings { threads: threads.unwrap_or(settings.threads), ..settings };
            let input = |relation, side: &Side| Input { relation, payloads: side.payloads };
            let outcome = join(input(l, left), input(r, right), DataType::Int64, settings);
            if best.as_ref().is_none_or(|best| outcome.milliseconds < best.milliseconds) {
                *best = Some(outcome);
            }
        }
    }
    let outcomes = best.map(|outcome| outcome.expect("there are rounds"));
    assert!(!keeps_right(&outcomes[0]) && keeps_right(&outcomes[1]), "the sides are forced");
    assert!(outcomes.iter().all(|one| one.sum == outcomes[0].sum), "all ways give the same");
    outcomes
}

fn keeps_right(outcome: &Outcome) -> bool {
    outcome.note.contains("the build side is the right input")
}

/// The numbers below `n` in no order.
fn shuffled(n: u64, random: &mut Random) -> Vec<i64> {
    let mut numbers: Vec<i64> = (0..n as i64).collect();
    (1..numbers.len()).rev().for_each(|i| numbers.swap(i, random.below(i as u64 + 1) as usize));
    numbers
}

/// Payload with the side of distinct keys, as in the paper.
fn payload_with_distinct_keys(n: u64) {
    let mut random = Random(4711);
    let keys: Vec<i64> =
        shuffled(n, &mut random).into_iter().map(|i| 2 * i + random.below(2) as i64).collect();
    println!(
        "payload columns, rows of the other side: ms if the payload's side is kept, if the other is; chosen"
    );
    for times in [2, 10, 40] {
        let drawn = (0..times * n).map(|_| keys[random.below(n) as usize]).collect();
        let other = Side { keys: drawn, payloads: 0 };
        for payloads in [0, 1, 3, 6] {
            let wide = Side { keys: keys.clone(), payloads };
            let [others, wides, chosen] = measure(&other, &wide, n, None);
            println!(
                "{payloads} {:10}: {:7.0} {:7.0}; {} {:7.0}",
                times * n,
                wides.milliseconds,
                others.milliseconds,
                if keeps_right(&chosen) { "payload's" } else { "other" },
                chosen.milliseconds,
            );
        }
    }
}

/// Rows of a key on the left and on the right side.
const REPEATED: [(u64, u64); 6] = [(1, 1), (1, 2), (1, 4), (1, 16), (2, 2), (2, 4)];
/// Payload columns of the left and of the right side.
const PAYLOADS: [(usize, usize); 6] = [(0, 0), (1, 0), (4, 0), (0, 1), (0, 4), (1, 1)];
/// Distinct keys.
const KEYS: [u64; 4] = [20_000, 120_000, 500_000, 2_000_000];
/// The most rows of a side.
const MOST_ROWS: u64 = 10_000_000;

/// Half of the grid: the cells whose indexes add up to an even number are for tuning.
fn grid(is_held_out: bool) {
    println!(
        "distinct keys, rows of a key, payload columns of both sides: ms if the left side is kept, the right \
         one; chosen; estimates of the chosen way and the other; tables"
    );
    let mut cells = 0;
    // What choosing costs, compared with the better way of each cell.
    let (mut wrong, mut lost, mut worst) = (0, 0.0, 1.0_f64);
    for (i, n) in KEYS.into_iter().enumerate() {
        for far in [1, 1_000_003] {
            for (j, repeated) in REPEATED.into_iter().enumerate() {
                for (k, payloads) in PAYLOADS.into_iter().enumerate() {
                    let is_other = ((i + j + k + usize::from(far > 1)) % 2 == 1) != is_held_out;
                    if is_other || n * repeated.1 > MOST_ROWS {
                        continue;
                    }
                    let mut random = Random(4711);
                    let mut side = |times, payloads| {
                        let keys: Vec<i64> =
                            shuffled(n, &mut random).into_iter().map(|i| 2 * i * far).collect();
                        // Equal keys are no neighbours.
                        let keys = keys.iter().cycle().take((times * n) as usize).copied().collect();
                        Side { keys, payloads }
                    };
                    let (left, right) = (side(repeated.0, payloads.0), side(repeated.1, payloads.1));
                    let [lefts, rights, chosen] = measure(&left, &right, n, Some(1));
                    let own = if keeps_right(&chosen) { &rights } else { &lefts };
                    let better = lefts.milliseconds.min(rights.milliseconds);
                    let ratio = own.milliseconds / better;
                    wrong += usize::from(ratio > 1.1);
                    lost += ratio.ln();
                    worst = worst.max(ratio);
                    cells += 1;
                    println!(
                        "{n} {} {:?} {:?}: {:.2} {:.2}; {} {:.2}; {}; {}, {}",
                        if far > 1 { "far" } else { "near" },
                        repeated,
                        payloads,
                        lefts.milliseconds,
                        rights.milliseconds,
                        if keeps_right(&chosen) { "right" } else { "left" },
                        chosen.milliseconds,
                        estimates(&chosen.note),
                        table(&lefts.note),
                        table(&rights.note),
                    );
                }
            }
        }
    }

    println!(
        "{cells} cells: in {wrong} the chosen way takes over 1.1 of the better one; {:.3} of it by the \
         geometric mean, {worst:.2} at most",
        (lost / f64::from(cells)).exp(),
    );
}

/// The two estimates, as the note has them.
fn estimates(note: &str) -> String {
    let from = note.find("input: estimated ").map_or("", |at| &note[at + "input: estimated ".len()..]);
    let milliseconds =
        |part: Option<&str>| part.and_then(|part| part.split(' ').next()).unwrap_or("").to_string();
    let mut parts = from.split("; ");
    format!("{} {}", milliseconds(parts.next()), milliseconds(parts.next()))
}

/// Which table it was.
fn table(note: &str) -> &'static str {
    let tables = [
        "radix join",
        "bitmap",
        "array table",
        "ranked",
        "direct array",
        "hash table",
        "unchained",
        "chained",
    ];
    tables.into_iter().find(|table| note.contains(table)).unwrap_or("?")
}

fn main() {
    let argument = std::env::args().nth(1);
    match argument.as_deref() {
        Some(half @ ("tuning" | "held-out")) => grid(half == "held-out"),
        thousands => {
            payload_with_distinct_keys(thousands.and_then(|text| text.parse().ok()).unwrap_or(1000) * 1000);
        }
    }
}
