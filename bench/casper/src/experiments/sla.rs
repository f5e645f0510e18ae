//! Figure 15: limits on the latency of an insert, met by fewer partitions; without ghosts, whose number no
//! limit can rely on; beside what the model expects of the mean. Our engine has no such limit to set; its
//! latencies are shown below.

use super::contest::{Entrant, Measured, bare, stored};
use super::record;
use super::{Settings, model};
use crate::column::forecast::{Forecast, forecast};
use crate::column::{Mode, partitions_of};
use crate::engine::options;
use crate::operations::steps_of;
use crate::report::{Json, figure};
use crate::workloads::Workload;
use entasis_storage::Layout;

/// Microseconds of an insert.
const LIMITS: [f64; 6] = [100.0, 50.0, 20.0, 10.0, 5.0, 2.0];

/// Runs everything and prints it.
pub fn sla(settings: &Settings) -> Json {
    let mut records = Vec::new();
    let mut shape = settings.shape(model::fitted(settings));
    let ripple = shape.access.random_read + shape.access.random_write;
    let workload = Workload::HybridPoint;
    let steps = steps_of(workload, settings.rows as u64, settings.operations, settings.seed);
    let frequency = workload.frequency(shape.blocks(), settings.operations as f64);
    let heads =
        ["partitions", "ops/s", "Q1", "Q4", "Q4 model", "Q4 p99.9", "Q6"].map(|head| format!("{head:>11}"));
    println!("{:>16}{}", "limit, µs", heads.concat());
    let mut keep = |name: &str, limit: Option<f64>, partitions: usize, result: (Measured, Forecast)| {
        let (result, forecast) = result;
        let (outcome, model) = (&result.outcome, forecast[3].map(|time| time / 1000.0));
        let figures = [outcome.mean(0), outcome.mean(3), model, outcome.at(3, 0.999), outcome.mean(5)];
        let figures = figures.map(|value| format!("{:>11}", figure(value)));
        println!("{name:>16}{partitions:>11}{:>11.0}{}", outcome.throughput(), figures.concat());
        let mut entry =
            vec![("limit_us", limit.into()), ("layout", name.into()), ("partitions", partitions.into())];
        entry.extend(record::records(std::slice::from_ref(&result), &forecast));
        records.push(Json::Map(entry));
    };
    for limit in std::iter::once(None).chain(LIMITS.map(Some)) {
        // An insert costs (RR + RW) · (1 + partitions) at most.
        let most = limit.map(|limit| ((limit * 1000.0 / ripple - 1.0) as usize).max(1));
        shape.limits.partitions = most;
        let plans = shape.plans(Mode::CasperDense, &frequency);
        let partitions = partitions_of(&plans);
        let name = limit.map_or("none".to_owned(), |limit| figure(Some(limit)));
        let result = bare(settings, &shape, Mode::CasperDense, &plans, &steps);
        keep(&name, limit, partitions, (result, forecast(&shape, &plans, &frequency)));
    }
    if settings.engine {
        let entrant = Entrant::One("engine", options(Layout::EquiGhost));
        keep("engine", None, 128, (stored(settings, &entrant, &steps), Forecast::default()));
    }
    records.into()
}
