//! Figures 12 and 13: the six workloads by layout; throughput beside that of the delta store, and latencies
//! beside what the model expects.
//!
//! Contestants take turns: the first run of all, then the second, so that what disturbs the machine for a
//! while disturbs all of them. All perform the same operations from the same rows.
//!
//! Where rows come and none go, the newest keys soon have many times the rows for which their partitions were
//! planned. So only some are added, and the run is repeated.

use super::contest::{Entrant, Measured, bare, stored};
use super::record::{over, records, throughput as per_second, unmerged};
use super::{Settings, model};
use crate::column::forecast::{Forecast, forecast, query_of};
use crate::column::{Mode, Shape, partitions_of};
use crate::operations::{Step, steps_of};
use crate::report::{Json, figure};
use crate::workloads::Workload;
use entasis_layout::cost::Engine;
use entasis_layout::frequency::Frequency;
use entasis_layout::outlook::{OperationKind, expected};
use entasis_layout::partitioning::Partitioning;
use entasis_storage::{BLOCK_ROWS, Layout};
use std::time::Instant;

/// Loads a layout, and performs operations.
type Run<'a> = Box<dyn Fn(&[Step]) -> Measured + 'a>;

/// A layout that takes part.
struct Contestant<'a> {
    on: &'static str,
    name: &'static str,
    partitions: usize,
    forecast: Forecast,
    /// What it is compared with.
    is_baseline: bool,
    run: Run<'a>,
}

/// Runs everything and prints two tables for each workload.
///
/// # Panics
/// If two layouts give different answers.
pub fn throughput(settings: &Settings) -> Json {
    let mut records = Vec::new();
    let shape = settings.shape(model::fitted(settings));
    for workload in settings.workloads() {
        let frequency = workload.frequency(shape.blocks(), settings.operations as f64);
        let grows = OperationKind::Insert.count(&frequency) > OperationKind::Delete.count(&frequency);
        let most = if grows { (settings.growth * settings.rows as f64) as usize } else { usize::MAX };
        let count = settings.operations.min(most);
        let steps = steps_of(workload, settings.rows as u64, count, settings.seed);
        let contestants = contestants(settings, &shape, workload, &frequency);
        let mut runs: Vec<Vec<Measured>> = contestants.iter().map(|_| Vec::new()).collect();
        for _ in 0..settings.runs {
            for (contestant, runs) in contestants.iter().zip(&mut runs) {
                runs.push(if grows {
                    repeated(settings, contestant, &steps)
                } else {
                    (contestant.run)(&steps)
                });
            }
        }
        let all: Vec<(&Contestant<'_>, &[Measured])> =
            contestants.iter().zip(runs.iter().map(Vec::as_slice)).collect();
        for on in ["bare", "engine"] {
            let own: Vec<_> = all.iter().filter(|(contestant, _)| contestant.on == on).collect();
            records.extend(table(on, workload, &own));
        }
    }
    records.into()
}

/// A run of operations after which the table would not be what it was planned for: it begins anew with the
/// table as it is loaded, until the time is up, that of loading included.
fn repeated(settings: &Settings, contestant: &Contestant<'_>, steps: &[Step]) -> Measured {
    let start = Instant::now();
    let mut all = (contestant.run)(steps);
    while start.elapsed() < settings.limit {
        all.extend(&(contestant.run)(steps));
    }
    all
}

/// All contestants of a workload that are asked for.
fn contestants<'a>(
    settings: &'a Settings,
    shape: &'a Shape,
    workload: Workload,
    frequency: &Frequency,
) -> Vec<Contestant<'a>> {
    let mut all = Vec::new();
    let modes = Mode::ALL.into_iter().filter(|mode| settings.bare && settings.has_layout(mode.name()));
    for mode in modes {
        let plans = shape.plans(mode, frequency);
        all.push(Contestant {
            on: "bare",
            name: mode.name(),
            partitions: partitions_of(&plans),
            forecast: forecast(shape, &plans, frequency),
            is_baseline: mode == Mode::Delta,
            run: Box::new(move |steps| bare(settings, shape, mode, &plans, steps)),
        });
    }
    let entrants = Entrant::all().into_iter();
    for entrant in entrants.filter(|entrant| settings.engine && settings.has_layout(entrant.name())) {
        all.push(Contestant {
            on: "engine",
            name: entrant.name(),
            partitions: 0,
            forecast: engine_forecast(settings, workload, &entrant),
            is_baseline: matches!(entrant, Entrant::Two),
            run: Box::new(move |steps| stored(settings, &entrant, steps)),
        });
    }
    all
}

/// What the model of our storage expects of partitions of a slice with ghosts, for which its constants are.
fn engine_forecast(settings: &Settings, workload: Workload, entrant: &Entrant) -> Forecast {
    let mut all = Forecast::default();
    match entrant {
        Entrant::One(_, options) if matches!(options.layout, Layout::EquiGhost | Layout::Casper) => {}
        _ => return all,
    }
    let frequency = workload.frequency(settings.rows.div_ceil(BLOCK_ROWS), 1e6);
    let finest = Partitioning::equal(frequency.blocks(), 1);
    for (operation, expected) in
        OperationKind::ALL.into_iter().zip(expected(&Engine::default(), &frequency, &finest))
    {
        if let Some(query) = query_of(operation).filter(|_| expected.count > 0.0) {
            all[query] = Some(expected.each);
        }
    }
    all
}

/// Prints the contestants of a workload; returns their records.
fn table(on: &str, workload: Workload, all: &[&(&Contestant<'_>, &[Measured])]) -> Vec<Json> {
    if all.is_empty() {
        return Vec::new();
    }
    let base = all.iter().find(|(own, _)| own.is_baseline).map(|(_, runs)| per_second(runs));
    let digest = all.iter().flat_map(|(_, runs)| *runs).find_map(|run| run.outcome.digest);
    println!("\n{on}: {}", workload.name());
    println!(
        "{:14}{:>7}{:>11}{:>22}{:>9}{:>8}  mean / p99.9 (model) µs",
        "layout", "parts", "ops/s", "least to greatest", "× delta", "merges"
    );
    let mut entries = Vec::new();
    for (contestant, runs) in all {
        let name = contestant.name;
        for run in *runs {
            assert!(run.outcome.digest.is_none_or(|own| Some(own) == digest), "{name} gives other answers");
        }
        let speeds = runs.iter().map(|run| run.outcome.throughput());
        let (least, greatest) = (speeds.clone().fold(f64::INFINITY, f64::min), speeds.fold(0.0, f64::max));
        let relative = base.map(|base| per_second(runs) / base);
        let never = contestant.is_baseline.then(|| unmerged(runs));
        println!(
            "{name:14}{:>7}{:>11.0}{:>22}{:>9}{:>8}  {}{}",
            contestant.partitions,
            per_second(runs),
            format!("{least:.0} to {greatest:.0}"),
            figure(relative),
            figure(over(runs, |run| Some(run.counts.merges as f64)).filter(|merges| *merges > 0.0)),
            latencies(runs, &contestant.forecast),
            if never.is_some_and(|never| never > 0) { "  NOT MERGED in each run" } else { "" }
        );
        let mut entry = vec![
            ("on", on.into()),
            ("workload", workload.name().into()),
            ("layout", name.into()),
            ("partitions", contestant.partitions.into()),
            ("by_delta", relative.into()),
        ];
        entry.extend(never.map(|never| ("runs_without_merge", never.into())));
        entry.extend(records(runs, &contestant.forecast));
        entries.push(Json::Map(entry));
    }
    entries
}

/// Mean and tail of each query, and what the model expects.
fn latencies(runs: &[Measured], forecast: &Forecast) -> String {
    let queries = (0..Step::QUERIES.len()).filter(|&query| runs.iter().any(|run| run.has(query)));
    let texts = queries.map(|query| {
        let mean = figure(over(runs, |run| run.outcome.mean(query)));
        let tail = figure(over(runs, |run| run.outcome.at(query, 0.999)));
        let model = figure(forecast[query].map(|time| time / 1000.0));
        format!("{} {mean} / {tail} ({model})", &Step::QUERIES[query][..2])
    });
    texts.collect::<Vec<String>>().join("   ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// All layouts give the same answers: `throughput` panics otherwise. Deltas are merged within the runs,
    /// and what was asked for is in the record.
    #[test]
    fn contestants_take_turns() {
        let settings = Settings {
            rows: 20_000,
            operations: 6000,
            limit: Duration::from_secs(20),
            warm: 1000,
            runs: 2,
            workloads: vec![6],
            layouts: ["delta", "casper_joint", "two tables", "casper"].map(str::to_owned).into(),
            block: 256,
            ..Settings::of("throughput")
        };
        let record = throughput(&settings).to_string();
        assert_eq!(record.matches("\"runs_without_merge\": 0").count(), 2, "{record}");
        assert_eq!(record.matches("\"layout\": \"casper_joint\"").count(), 1);
        assert_eq!(record.matches("\"warm_operations_by_run\": [1000,\n 1000]").count(), 6);
        assert!(record.contains("p99_us") && record.contains("model_us"));
    }

    /// Where rows only come, the table begins anew until the time is up.
    #[test]
    fn growing_runs_are_repeated() {
        let settings = Settings {
            rows: 20_000,
            limit: Duration::from_secs(1),
            runs: 1,
            workloads: vec![1],
            layouts: vec!["delta".to_owned()],
            engine: false,
            block: 256,
            ..Settings::of("throughput")
        };
        let record = throughput(&settings).to_string();
        // Half of the 4,000 operations of each time are counted.
        let operations = record.split("\"operations\": ").nth(1).and_then(|rest| rest.split(',').next());
        let operations: usize = operations.and_then(|text| text.parse().ok()).expect("a number");
        assert!(operations.is_multiple_of(2000) && operations > 2000, "{operations}");
    }
}
