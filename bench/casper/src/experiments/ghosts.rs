//! Figure 14: the latency of inserts by the share of ghosts.

use super::contest::{Entrant, Measured, bare, stored};
use super::record::record;
use super::{Settings, model};
use crate::column::Mode;
use crate::engine::options;
use crate::operations::steps_of;
use crate::report::{Json, figure};
use crate::workloads::Workload;
use entasis_storage::{Layout, TableOptions};

const SHARES: [f64; 4] = [0.0001, 0.001, 0.01, 0.1];
const WORKLOADS: [Workload; 3] = [Workload::HybridPoint, Workload::UpdateSkewed, Workload::UpdateUniform];

/// Runs everything and prints it.
pub fn ghosts(settings: &Settings) -> Json {
    let mut records = Vec::new();
    let mut shape = settings.shape(model::fitted(settings));
    for workload in WORKLOADS {
        println!("\n{}: inserts, µs: mean, median, p99.9; bytes a row", workload.name());
        let steps = steps_of(workload, settings.rows as u64, settings.operations, settings.seed);
        let frequency = workload.frequency(shape.blocks(), settings.operations as f64);
        let mut keep = |name: &'static str, share: f64, result: Measured| {
            let outcome = &result.outcome;
            let figures = [outcome.mean(3), outcome.at(3, 0.5), outcome.at(3, 0.999), Some(result.bytes)];
            let figures = figures.map(|value| format!("{:>10}", figure(value)));
            println!("{:>8.2} %  {name:18}{}", share * 100.0, figures.concat());
            let mut entry =
                vec![("workload", workload.name().into()), ("layout", name.into()), ("share", share.into())];
            entry.extend(record(&result));
            records.push(Json::Map(entry));
        };
        for share in SHARES {
            if settings.bare {
                shape.ghosts = share;
                for (name, mode) in [
                    ("bare equi_ghost", Mode::EquiGhost),
                    ("bare casper", Mode::Casper),
                    ("bare casper_joint", Mode::CasperJoint),
                ] {
                    keep(name, share, bare(settings, &shape, mode, &shape.plans(mode, &frequency), &steps));
                }
            }
            if settings.engine {
                for (name, layout) in [("equi_ghost", Layout::EquiGhost), ("casper", Layout::Casper)] {
                    let entrant = Entrant::One(name, TableOptions { ghost: share, ..options(layout) });
                    keep(name, share, stored(settings, &entrant, &steps));
                }
            }
        }
    }
    records.into()
}
