//! Measures the solver: `cargo run --release -p entasis-layout --example solve [blocks]`.
//!
//! 10^9 rows are 10^6 blocks of 1024. The paper needs 10 seconds for as many rows on 64 cores, in chunks.

use entasis_layout::cost::{Access, Engine, Model, Paper, Terms};
use entasis_layout::partitioning::Partitioning;
use entasis_layout::solver::{Limits, Prices, Rewrites, solve};
use entasis_layout::workloads::Workload;
use std::time::Instant;

fn milliseconds<R>(what: impl FnOnce() -> R) -> (R, f64) {
    let start = Instant::now();
    let result = what();
    (result, start.elapsed().as_secs_f64() * 1000.0)
}

fn show(what: &str, terms: &Terms, limits: &Limits) -> Option<Partitioning> {
    let (prices, rounding) = milliseconds(|| Prices::of(terms));
    let prices = prices.ok()?;
    let (solution, solving) = milliseconds(|| solve(&prices, limits));
    match solution {
        Ok(solution) => {
            let (partitions, widest) = (solution.partitioning.partitions(), solution.partitioning.widest());
            println!("{what:36} {rounding:8.1} {solving:9.1} {partitions:9} {widest:9}");
            Some(solution.partitioning)
        }
        Err(error) => {
            println!("{what:36} {error}");
            None
        }
    }
}

fn main() {
    let blocks = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    println!("{blocks} blocks              milliseconds: round     solve partitions widest");
    let paper = Paper { access: Access::OF_THE_PAPER };
    let count = blocks as f64 * 10.0;
    for workload in Workload::ALL {
        let frequency = workload.frequency(blocks, count);
        let terms = paper.terms(&frequency);
        show(workload.name(), &terms, &Limits::default());
    }
    let frequency = Workload::HybridPoint.frequency(blocks, count);
    let terms = paper.terms(&frequency);
    let narrow = Limits { width: Some(64), ..Limits::default() };
    show("… partitions of 64 blocks at most", &terms, &narrow);
    if let Some(free) = show("… again", &terms, &Limits::default()) {
        let half = Limits { partitions: Some(free.partitions().div_ceil(2)), ..Limits::default() };
        show("… half of the partitions at most", &terms, &half);
        let present = Partitioning::equal(blocks, 128);
        if let Ok(prices) = Prices::of(&terms) {
            let rewrites = vec![(40.0 * 1024.0 * 128.0 / prices.unit()) as i64; present.partitions()];
            let rewrites = Rewrites { present: &present, prices: &rewrites };
            let (solution, solving) = milliseconds(|| rewrites.solve(&prices, &Limits::default()));
            let partitions = solution.map_or(0, |solution| solution.partitioning.partitions());
            println!("{:36} {:8} {solving:9.1} {partitions:9}", "… from partitions of 128 blocks", "");
        }
    }
    let engine = Engine { byte: 1.0, ..Engine::default() };
    show("… by our engine's terms", &engine.terms(&frequency), &Limits::default());
}
