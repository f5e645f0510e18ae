//! Figure 16: partitions for one workload under others. Point queries concern the later part of the keys and
//! inserts the earlier one; then a share of the point queries becomes inserts, and both are rotated over the
//! keys. Three layouts: the paper's, planned for the first workload; the one of least worst regret over all
//! of these; and for each workload its own. Bare column, without ghosts.

use super::{Settings, model};
use crate::column::plan::{Plan, best};
use crate::column::{loaded, planned};
use crate::measure::run;
use crate::operations::{drawn, steps};
use crate::report::{Json, map};
use crate::scenarios::{Scenarios, shifted};
use entasis_layout::cost::{Model, Paper};
use entasis_layout::frequency::{Frequency, Kind};
use entasis_layout::partitioning::Partitioning;
use entasis_layout::solver::Limits;

const MASS: [f64; 4] = [0.0, 0.15, 0.25, 0.5];
const ROTATIONS: [f64; 6] = [0.0, 0.05, 0.1, 0.2, 0.3, 0.5];

/// The workload that is planned for.
fn expected(blocks: usize) -> Frequency {
    let mut frequency = Frequency::new(blocks);
    for block in 0..blocks {
        let place = (block as f64 + 0.5) / blocks as f64;
        frequency.of_mut(Kind::PointQuery)[block] = place * place;
        frequency.of_mut(Kind::Insert)[block] = (1.0 - place) * (1.0 - place);
    }
    frequency
}

/// Runs everything and prints microseconds of an operation.
///
/// # Panics
/// If the optimizer finds no partitions, which it does.
pub fn robust(settings: &Settings) -> Json {
    let access = model::fitted(settings);
    let rows = settings.rows.min(1 << 20) / settings.block * settings.block;
    let blocks = rows / settings.block;
    let first = expected(blocks);
    let workload = |mass: f64, rotation: f64| {
        shifted(&first, Kind::PointQuery, Kind::Insert, mass).rotated((rotation * blocks as f64) as usize)
    };
    let all = MASS.into_iter().flat_map(|mass| ROTATIONS.map(|rotation| (mass, rotation)));
    let all: Vec<(f64, f64)> = all.collect();
    let terms = all.iter().map(|&(mass, rotation)| Paper { access }.terms(&workload(mass, rotation)));
    let scenarios = Scenarios::relative(terms.collect(), &Limits::default()).expect("terms are finite");
    let robust = scenarios.least_regret(200).expect("there are partitions").partitioning;
    let paper = best(&first, access, &Limits::default());
    let sorted = loaded(0..rows, settings.payloads);
    println!("partitions: the paper's {}, robust {}", paper.partitions(), robust.partitions());
    println!(
        "{:>8}{:>10}{:>9}{:>9}{:>9}   µs an operation; × own",
        "mass", "rotation", "paper", "robust", "own"
    );
    let records = all.iter().map(|&(mass, rotation)| {
        let frequency = workload(mass, rotation);
        let operations = drawn(&frequency, rows as u64, settings.seed);
        let steps = steps(operations, rows as u64, settings.operations.min(20_000), false);
        let time = |partitioning: &Partitioning| {
            let plan = Plan { partitioning: partitioning.clone(), ghosts: None, block: settings.block };
            let mut chunk = planned(&sorted, &plan);
            1e6 / run(&mut chunk, &steps, settings.payloads, settings.limit).throughput()
        };
        let own = time(&best(&frequency, access, &Limits::default()));
        let (paper, robust) = (time(&paper), time(&robust));
        println!(
            "{:>7.0}%{:>9.0}%{paper:>9.2}{robust:>9.2}{own:>9.2}   {:.2} {:.2}",
            mass * 100.0,
            rotation * 100.0,
            paper / own,
            robust / own
        );
        map([
            ("mass", mass.into()),
            ("rotation", rotation.into()),
            ("paper_us", paper.into()),
            ("robust_us", robust.into()),
            ("own_us", own.into()),
        ])
    });
    records.collect::<Vec<Json>>().into()
}
