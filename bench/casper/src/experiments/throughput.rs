//! Figures 12 and 13: the six workloads by layout; throughput beside that of the delta store, and latencies.

use super::contest::{Entrant, Measured, bare, record, stored};
use super::{Settings, model};
use crate::column::Mode;
use crate::operations::{Step, steps_of};
use crate::report::{Json, figure};
use entasis_layout::workloads::Workload;

/// Runs everything and prints a table for each workload.
///
/// # Panics
/// If two layouts give different answers.
pub fn throughput(settings: &Settings) -> Json {
    let mut records = Vec::new();
    let shape = settings.shape(model::fitted(settings));
    for workload in Workload::ALL {
        let steps = steps_of(workload, settings.rows as u64, settings.operations, settings.seed);
        let frequency = workload.frequency(shape.blocks(), settings.operations as f64);
        if settings.bare {
            let contestants = Mode::ALL.into_iter().map(|mode| {
                let partitions = shape.partitions_of(mode, &frequency);
                (mode.name(), partitions, bare(settings, &shape, mode, &frequency, &steps))
            });
            records.extend(table("bare", workload, "delta", contestants));
        }
        if settings.engine {
            let entrants = Entrant::all();
            let contestants =
                entrants.iter().map(|entrant| (entrant.name(), 0, stored(settings, entrant, &steps)));
            records.extend(table("engine", workload, "two tables", contestants));
        }
    }
    records.into()
}

/// Prints the contestants of a workload; returns their records.
fn table(
    on: &'static str,
    workload: Workload,
    baseline: &str,
    contestants: impl Iterator<Item = (&'static str, usize, Measured)>,
) -> Vec<Json> {
    let all: Vec<_> = contestants.collect();
    let base = all.iter().find(|(name, ..)| *name == baseline).map(|(_, _, r)| r.outcome.throughput());
    let digest = all.iter().find_map(|(_, _, result)| result.outcome.digest);
    println!("\n{on}: {}", workload.name());
    println!("{:14}{:>10}{:>11}{:>9}  median / p99.9 µs", "layout", "parts", "ops/s", "× delta");
    let mut records = Vec::new();
    for (name, partitions, result) in &all {
        let outcome = &result.outcome;
        assert!(outcome.digest.is_none_or(|own| Some(own) == digest), "{name} gives other answers");
        let relative = base.map(|base| outcome.throughput() / base);
        let queries = (0..Step::QUERIES.len()).filter(|&query| !outcome.times[query].is_empty());
        let latencies: Vec<String> = queries
            .map(|query| {
                let (median, tail) = (outcome.at(query, 0.5), outcome.at(query, 0.999));
                format!("{} {} / {}", &Step::QUERIES[query][..2], figure(median), figure(tail))
            })
            .collect();
        println!(
            "{name:14}{partitions:>10}{:>11.0}{:>9}  {}",
            outcome.throughput(),
            figure(relative),
            latencies.join("   ")
        );
        let mut entry = vec![
            ("on", on.into()),
            ("workload", workload.name().into()),
            ("layout", (*name).into()),
            ("partitions", (*partitions).into()),
            ("by_delta", relative.into()),
        ];
        entry.extend(record(result));
        records.push(Json::Map(entry));
    }
    records
}
