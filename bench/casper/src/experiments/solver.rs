//! Figure 11: the time that the optimizer takes, by rows in blocks of 1024, with one thread and without
//! cutting the table into chunks. The paper reports 10 seconds for 10^9 rows, in chunks, with 64 cores.

use super::Settings;
use crate::report::{Json, map};
use entasis_layout::cost::{Access, Model, Paper};
use entasis_layout::solver::{Limits, Prices, solve};
use entasis_layout::workloads::Workload;
use std::time::Instant;

/// Prints and returns milliseconds for 10^5 to 10^9 rows.
///
/// # Panics
/// If the terms of a workload are not finite, which they are.
pub fn solver(settings: &Settings) -> Json {
    println!("{:>12}{:>10}{:>12}{:>12}{:>12}", "rows", "blocks", "partitions", "terms, ms", "solve, ms");
    let records = (5..=9).map(|power| {
        let blocks = 10usize.pow(power).div_ceil(1024);
        let frequency = Workload::HybridPoint.frequency(blocks, settings.operations as f64);
        let start = Instant::now();
        let terms = Paper { access: Access::OF_THE_PAPER }.terms(&frequency);
        let prices = Prices::of(&terms).expect("terms are finite");
        let made = start.elapsed().as_secs_f64() * 1000.0;
        let start = Instant::now();
        let solution = solve(&prices, &Limits::default()).expect("there are no limits");
        let solved = start.elapsed().as_secs_f64() * 1000.0;
        let partitions = solution.partitioning.partitions();
        println!("{:>12}{blocks:>10}{partitions:>12}{made:>12.2}{solved:>12.2}", 10usize.pow(power));
        map([
            ("rows", 10f64.powi(power as i32).into()),
            ("partitions", partitions.into()),
            ("terms_ms", made.into()),
            ("solve_ms", solved.into()),
        ])
    });
    records.collect::<Vec<Json>>().into()
}
