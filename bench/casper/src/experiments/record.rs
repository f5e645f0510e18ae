//! Records of what a contestant did in its runs: medians over them, and what shows that its mechanism ran.

use super::contest::Measured;
use crate::column::forecast::Forecast;
use crate::measure::median;
use crate::operations::Step;
use crate::report::{Json, map};

/// The median over the runs that have a figure. `None` if none has.
pub fn over(runs: &[Measured], figure: impl Fn(&Measured) -> Option<f64>) -> Option<f64> {
    let figures: Vec<f64> = runs.iter().filter_map(figure).collect();
    (!figures.is_empty()).then(|| median(figures))
}

/// Operations a second.
pub fn throughput(runs: &[Measured]) -> f64 {
    over(runs, |run| Some(run.outcome.throughput())).unwrap_or(0.0)
}

/// The runs of a delta in which it was never merged: their figures are not those of a delta.
pub fn unmerged(runs: &[Measured]) -> usize {
    runs.iter().filter(|run| run.counts.merges == 0).count()
}

/// The record of a single run.
pub fn record(run: &Measured) -> Vec<(&'static str, Json)> {
    records(std::slice::from_ref(run), &Forecast::default())
}

/// The record of all runs, and what the model expects of each query.
pub fn records(runs: &[Measured], forecast: &Forecast) -> Vec<(&'static str, Json)> {
    let each = |figure: &dyn Fn(&Measured) -> f64| -> Json {
        runs.iter().map(|run| figure(run).into()).collect::<Vec<Json>>().into()
    };
    let queries = (0..Step::QUERIES.len()).filter(|&query| runs.iter().any(|run| run.has(query)));
    let queries = queries.map(|query| {
        map([
            ("query", Step::QUERIES[query].into()),
            ("count", over(runs, |run| Some(run.outcome.times[query].count() as f64)).into()),
            ("median_us", over(runs, |run| run.outcome.at(query, 0.5)).into()),
            ("mean_us", over(runs, |run| run.outcome.mean(query)).into()),
            ("p99_us", over(runs, |run| run.outcome.at(query, 0.99)).into()),
            ("p999_us", over(runs, |run| run.outcome.at(query, 0.999)).into()),
            ("model_us", forecast[query].map(|time| time / 1000.0).into()),
        ])
    });
    let mut entries = vec![
        ("operations", over(runs, |run| Some(run.outcome.done as f64)).into()),
        ("per_second", throughput(runs).into()),
        ("per_second_by_run", each(&|run| run.outcome.throughput())),
        ("seconds_by_run", each(&|run| run.outcome.seconds)),
        ("warm_operations_by_run", each(&|run| run.warm as f64)),
        ("bytes_per_row", over(runs, |run| Some(run.bytes)).into()),
        ("merges_by_run", each(&|run| run.counts.merges as f64)),
        ("merging_seconds_by_run", each(&|run| run.counts.merging.as_secs_f64())),
        ("into_ghosts_by_run", each(&|run| run.counts.ghosts as f64)),
        ("rippled_by_run", each(&|run| run.counts.rippled as f64)),
        ("crossed_by_run", each(&|run| run.counts.crossed as f64)),
    ];
    if runs.iter().any(|run| run.kept.is_some()) {
        let kept =
            |figure: fn(&crate::engine::Kept) -> f64| each(&move |run| run.kept.as_ref().map_or(0.0, figure));
        entries.push(("laid_anew_by_run", kept(|kept| kept.spread as f64)));
        entries.push(("encoded_by_run", kept(|kept| kept.encoded as f64)));
        entries.push(("upkeep_seconds_by_run", kept(|kept| kept.seconds)));
    }
    entries.push(("queries", queries.collect::<Vec<Json>>().into()));
    entries
}
