//! Where ghosts should be if the workload drifts: by yesterday, by yesterday and its neighbours, or
//! everywhere alike? A model without times: how many inserts find no ghost, and what that costs. The answer
//! is decision 32.
//!
//! A column of 128 blocks with 64 rows each gets 2,000 inserts a day, nine in ten into a tenth of the keys.
//! That tenth stays, or moves each day by a twentieth, by a fifth, or to anywhere. Each morning a budget of
//! ghosts is handed out over all blocks, for free, which is the most that knowing helps:
//!
//! | | by |
//! |---|---|
//! | even | nothing: everywhere alike |
//! | yesterday | `ghosts::allocate` for the inserts of yesterday; what nobody is likely to use everywhere alike |
//! | mean | the same for the mean of yesterday and its neighbours: rotated by up to a fifth, or half of it everywhere |
//! | robust | the least worst regret over the same neighbours, by multiplicative weights |
//! | today | the inserts to come: hindsight |
//!
//! `cargo run --release -p entasis-layout --example drift`

use entasis_layout::cost::Engine;
use entasis_layout::ghosts::account::MOVES;
use entasis_layout::ghosts::{Need, allocate};
use entasis_layout::random::Random;

const BLOCKS: usize = 128;
const ROWS: usize = 64;
const INSERTS: f64 = 2000.0;
const DAYS: usize = 14;
/// Rotations of the neighbours.
const ROTATIONS: [f64; 6] = [-0.2, -0.1, -0.05, 0.05, 0.1, 0.2];
/// Rounds of weights.
const ROUNDS: usize = 30;

/// Inserts by block, most of them into the tenth that begins at a place.
fn day(start: f64) -> Vec<f64> {
    let hot = |block: usize| {
        let from = (block as f64 / BLOCKS as f64 - start).rem_euclid(1.0);
        from < 0.1
    };
    let count = (0..BLOCKS).filter(|&block| hot(block)).count() as f64;
    let even = INSERTS * 0.1 / BLOCKS as f64;
    (0..BLOCKS).map(|block| even + if hot(block) { INSERTS * 0.9 / count } else { 0.0 }).collect()
}

/// A workload and its neighbours.
fn neighbours(inserts: &[f64]) -> Vec<Vec<f64>> {
    let rotated = |by: f64| {
        let by = (by.rem_euclid(1.0) * BLOCKS as f64).round() as usize;
        (0..BLOCKS).map(|block| inserts[(block + BLOCKS - by) % BLOCKS]).collect()
    };
    let even = INSERTS / BLOCKS as f64;
    let mut all: Vec<Vec<f64>> = vec![inserts.to_vec()];
    all.extend(ROTATIONS.map(rotated));
    all.push(inserts.iter().map(|own| own / 2.0 + even / 2.0).collect());
    all
}

fn needs(inserts: &[f64]) -> Vec<Need> {
    inserts.iter().map(|&inserts| Need { inserts, room: 1.0 }).collect()
}

/// Inserts that find no ghost.
fn short(inserts: &[f64], ghosts: &[u64]) -> f64 {
    needs(inserts).iter().zip(ghosts).map(|(need, &ghosts)| need.cost(ghosts)).sum()
}

/// Hands out what is left of a budget to all alike.
fn filled(mut ghosts: Vec<u64>, budget: u64) -> Vec<u64> {
    let left = budget - ghosts.iter().sum::<u64>();
    let (each, more) = (left / BLOCKS as u64, left % BLOCKS as u64);
    ghosts.iter_mut().enumerate().for_each(|(at, own)| *own += each + u64::from((at as u64) < more));
    ghosts
}

/// As storage does it: nobody gets more than is likely to be used.
fn by(inserts: &[f64], budget: u64) -> Vec<u64> {
    let likely = |inserts: f64| (inserts + 6.0 * inserts.sqrt() + 6.0) as u64;
    let own = allocate(&needs(inserts), budget);
    filled(own.into_iter().zip(inserts).map(|(own, &inserts)| own.min(likely(inserts))).collect(), budget)
}

/// What ghosts save under weighted workloads, block by block, one after the other: convex in each block, so
/// that the greatest saving comes first.
fn weighted(all: &[Vec<f64>], weights: &[f64], budget: u64) -> Vec<u64> {
    let cost = |block: usize, ghosts: u64| -> f64 {
        let of = |(inserts, weight): (&Vec<f64>, &f64)| {
            weight * Need { inserts: inserts[block], room: 1.0 }.cost(ghosts)
        };
        all.iter().zip(weights).map(of).sum()
    };
    let mut ghosts = vec![0; BLOCKS];
    let mut savings: Vec<f64> = (0..BLOCKS).map(|block| cost(block, 0) - cost(block, 1)).collect();
    for _ in 0..budget {
        let best = (0..BLOCKS).max_by(|&a, &b| savings[a].total_cmp(&savings[b])).expect("blocks");
        ghosts[best] += 1;
        savings[best] = cost(best, ghosts[best]) - cost(best, ghosts[best] + 1);
    }
    ghosts
}

/// The least worst regret of the rounds.
fn robust(all: &[Vec<f64>], budget: u64) -> Vec<u64> {
    let best: Vec<f64> = all.iter().map(|inserts| short(inserts, &by(inserts, budget))).collect();
    let mut weights = vec![1.0f64; all.len()];
    let mut found = (f64::INFINITY, Vec::new());
    for _ in 0..ROUNDS {
        let ghosts = weighted(all, &weights, budget);
        let regrets: Vec<f64> =
            all.iter().zip(&best).map(|(inserts, best)| short(inserts, &ghosts) - best).collect();
        let worst = regrets.iter().copied().fold(0.0, f64::max);
        if worst < found.0 {
            found = (worst, ghosts);
        }
        weights
            .iter_mut()
            .zip(regrets)
            .for_each(|(own, regret)| *own *= (0.5 * regret / worst.max(1.0)).exp());
    }
    found.1
}

fn main() {
    let engine = Engine::default();
    let (room, base) = (MOVES * engine.move_row, engine.lookup + engine.write);
    println!(
        "inserts that find no ghost, percent (in brackets: on the worst day); what they cost an insert\n"
    );
    let names = ["even", "yesterday", "mean", "robust", "today"];
    println!("{:>10} {:>8}{}", "drift", "ghosts", names.map(|name| format!("{name:>22}")).concat());
    for (name, step) in [("stays", 0.0), ("1/20", 0.05), ("1/5", 0.2), ("anywhere", f64::NAN)] {
        for share in [0.01, 0.05, 0.125, 0.3] {
            let budget = (share * (BLOCKS * ROWS) as f64) as u64;
            let (mut random, mut start, mut all) = (Random::new(5), 0.3, Vec::new());
            for _ in 0..DAYS {
                let yesterday = day(start);
                start = if f64::is_nan(step) { random.unit() } else { (start + step) % 1.0 };
                let today = day(start);
                let near = neighbours(&yesterday);
                let mean: Vec<f64> = (0..BLOCKS)
                    .map(|block| near.iter().map(|own| own[block]).sum::<f64>() / near.len() as f64)
                    .collect();
                let ghosts = [
                    filled(vec![0; BLOCKS], budget),
                    by(&yesterday, budget),
                    by(&mean, budget),
                    robust(&near, budget),
                    by(&today, budget),
                ];
                all.push(ghosts.map(|ghosts| short(&today, &ghosts) / INSERTS));
            }
            let cells = (0..names.len()).map(|at| {
                let (mean, worst) = (
                    all.iter().map(|day| day[at]).sum::<f64>() / DAYS as f64,
                    all.iter().map(|day| day[at]).fold(0.0, f64::max),
                );
                let cost = format!("+{:.1} %", mean * room / base * 100.0);
                format!("{:>7.1} ({:>5.1}) {cost:>6}", mean * 100.0, worst * 100.0)
            });
            println!("{name:>10} {:>6.1} %{}", share * 100.0, cells.collect::<String>());
        }
    }
}
