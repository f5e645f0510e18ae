//! Figure 2a: what the number of partitions is worth, for reads and for writes, on the bare column and on our
//! engine. The paper's trade exists where a curve has its best in the middle.

use super::Settings;
use super::contest::{Entrant, Measured, bare, stored};
use super::record::record;
use crate::column::Mode;
use crate::engine::options;
use crate::operations::steps_of;
use crate::report::{Json, figure};
use crate::workloads::Workload;
use entasis_layout::cost::Access;
use entasis_storage::{Layout, TableOptions};

/// The workloads in which reads and writes meet, and the one with reads in partitions only.
const WORKLOADS: [Workload; 4] =
    [Workload::HybridPoint, Workload::HybridRange, Workload::ReadUniform, Workload::UpdateUniform];

/// Runs everything and prints a table for each workload.
pub fn trade(settings: &Settings) -> Json {
    let mut records = Vec::new();
    for workload in WORKLOADS {
        println!(
            "\n{}: ops/s (insert, point µs, means) by partitions of a chunk or a row group",
            workload.name()
        );
        let steps = steps_of(workload, settings.rows as u64, settings.operations, settings.seed);
        let mut shape = settings.shape(Access::OF_THE_PAPER);
        let frequency = workload.frequency(shape.blocks(), 1.0);
        let mut keep = |name: &'static str, partitions: usize, result: Measured| {
            let (insert, point) = (result.outcome.mean(3), result.outcome.mean(0));
            print!("  {name} {:.0} ({}, {})", result.outcome.throughput(), figure(insert), figure(point));
            let mut entry = vec![
                ("workload", workload.name().into()),
                ("layout", name.into()),
                ("partitions", partitions.into()),
            ];
            entry.extend(record(&result));
            records.push(Json::Map(entry));
        };
        for partitions in (0..10).map(|power| 1usize << power) {
            print!("{partitions:>4}");
            if settings.bare {
                shape.partitions = partitions;
                for (name, mode) in [("bare equi", Mode::Equi), ("bare equi_ghost", Mode::EquiGhost)] {
                    keep(
                        name,
                        partitions,
                        bare(settings, &shape, mode, &shape.plans(mode, &frequency), &steps),
                    );
                }
            }
            if settings.engine && partitions <= 128 {
                for (name, layout) in [("equi", Layout::Equi), ("equi_ghost", Layout::EquiGhost)] {
                    let entrant = Entrant::One(name, TableOptions { partitions, ..options(layout) });
                    keep(name, partitions, stored(settings, &entrant, &steps));
                }
            }
            println!();
        }
    }
    records.into()
}
