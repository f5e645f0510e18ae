//! The mechanics of *Optimal Column Layout for Hybrid Workloads* (Athanassoulis, Bøgh, Idreos, PVLDB 12(13),
//! 2019) beside the storage of Entasis: is the paper's trade, few partitions for writes and many for reads,
//! worth anything on our engine? The answer is decision 29; the figures are in `docs/design/layout.md`.
//!
//! ```text
//! experiments  one for each figure of the paper
//! measure      operations one after the other     report   tables and JSON
//! times        how long they took
//! column       a bare column as in section 3      engine   the same on our storage
//! store        the six queries, and their slow twin
//! operations   the six workloads on concrete keys
//! workloads    the six workloads of the paper's evaluation
//! scenarios    one partitioning for several workloads; its regret
//! ```
//!
//! ```text
//! entasis-casper throughput --on both --rows 1000000 --json out.json
//! ```

mod column;
mod engine;
mod experiments;
mod measure;
mod operations;
mod report;
mod scenarios;
mod store;
mod times;
mod workloads;

use experiments::Settings;
use report::{Json, map};
use std::process::ExitCode;
use std::time::Duration;

const USAGE: &str = "\
entasis-casper model|costs|trade|throughput|ghosts|sla|robust|solver|drift|width [options]
  --on bare|engine|both   what is measured (both)
  --rows N                rows that are loaded (1000000)
  --payloads N            payload columns, at least 13 (16)
  --threads N             threads (1)
  --operations N          operations of a run (100000; of throughput 20000000)
  --seconds S             a run ends after this, too (2; of throughput 30)
  --warm N                operations before a run that are not counted (0; of throughput 1000000)
  --runs N                of throughput, in turns, of which the median counts (5)
  --growth N              operations where rows only come, beside the rows of the table (0.2)
  --workloads 1,2,…       of throughput (all six)
  --layouts NAME,…        of throughput and drift (all)
  --block N               rows of a block (2048)
  --partitions N          partitions of a chunk of the equi-width layouts (128)
  --ghosts SHARE          ghosts of the bare column (0.001)
  --delta SHARE           size of the delta (0.01)
  --rounds N              of the drift, of which the median counts (3)
  --seed N                (1)
  --json FILE             where the record goes";

/// What the command line says: the experiment, its settings, and where the record goes.
fn parse(mut words: impl Iterator<Item = String>) -> Result<(String, Settings, Option<String>), String> {
    let experiment = words.next().ok_or("an experiment is missing")?;
    let mut settings = Settings::of(&experiment);
    let mut json = None;
    while let Some(option) = words.next() {
        let text = words.next().ok_or_else(|| format!("{option} needs a value"))?;
        let number = || text.parse::<f64>().map_err(|_| format!("{option}: {text} is no number"));
        match option.as_str() {
            "--on" => {
                (settings.bare, settings.engine) = match text.as_str() {
                    "bare" => (true, false),
                    "engine" => (false, true),
                    "both" => (true, true),
                    _ => return Err(format!("--on takes bare, engine or both, not {text}")),
                }
            }
            "--rows" => settings.rows = (number()? as usize).max(100_000),
            "--payloads" => settings.payloads = (number()? as usize).max(13),
            "--threads" => settings.threads = (number()? as usize).max(1),
            "--operations" => settings.operations = (number()? as usize).max(1),
            "--seconds" => settings.limit = Duration::from_secs_f64(number()?.max(0.0)),
            "--warm" => settings.warm = number()? as usize,
            "--runs" => settings.runs = (number()? as usize).max(1),
            "--growth" => settings.growth = number()?.max(0.0),
            "--layouts" => settings.layouts = text.split(',').map(str::to_owned).collect(),
            "--workloads" => {
                let numbers: Result<Vec<usize>, _> = text.split(',').map(str::parse).collect();
                settings.workloads = numbers.map_err(|_| format!("{option}: {text} are no numbers"))?;
            }
            "--block" => settings.block = (number()? as usize).max(1),
            "--partitions" => settings.partitions = (number()? as usize).max(1),
            "--ghosts" => settings.ghosts = number()?,
            "--delta" => settings.delta = number()?,
            "--rounds" => settings.rounds = (number()? as usize).max(1),
            "--seed" => settings.seed = number()? as u64,
            "--json" => json = Some(text),
            _ => return Err(format!("there is no option {option}")),
        }
    }
    Ok((experiment, settings, json))
}

fn perform(experiment: &str, settings: &Settings) -> Result<Json, String> {
    Ok(match experiment {
        "model" => experiments::model::model(settings),
        "costs" => experiments::costs::costs(settings),
        "trade" => experiments::trade::trade(settings),
        "throughput" => experiments::throughput::throughput(settings),
        "ghosts" => experiments::ghosts::ghosts(settings),
        "sla" => experiments::sla::sla(settings),
        "robust" => experiments::robust::robust(settings),
        "width" => experiments::width::width(settings),
        "drift" => experiments::drift::drift(settings),
        "solver" => experiments::solver::solver(settings),
        other => return Err(format!("there is no experiment {other}")),
    })
}

fn main() -> ExitCode {
    let result = parse(std::env::args().skip(1)).and_then(|(experiment, settings, json)| {
        let results = perform(&experiment, &settings)?;
        let record = map([
            ("experiment", experiment.as_str().into()),
            ("rows", settings.rows.into()),
            ("payloads", settings.payloads.into()),
            ("threads", settings.threads.into()),
            ("operations", settings.operations.into()),
            ("seconds", settings.limit.as_secs_f64().into()),
            ("warm_operations", settings.warm.into()),
            ("runs", settings.runs.into()),
            ("growth", settings.growth.into()),
            ("block", settings.block.into()),
            ("partitions", settings.partitions.into()),
            ("ghosts", settings.ghosts.into()),
            ("delta", settings.delta.into()),
            ("results", results),
        ]);
        json.map_or(Ok(()), |path| {
            std::fs::write(&path, format!("{record}\n")).map_err(|error| format!("{path}: {error}"))
        })
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}\n\n{USAGE}");
            ExitCode::FAILURE
        }
    }
}
