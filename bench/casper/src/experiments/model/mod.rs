//! Figure 9: the paper's cost model beside what a bare chunk does on this machine.
//!
//! Inserts into the partitions of a chunk of equal ones, by the number of partitions that their ripple goes
//! through; point queries in partitions of doubling sizes from a block on. As in the paper the constants of
//! the model are fitted, here to every other point, and the errors at the points between are reported.
//!
//! **The constants are those of a size.** What a border of partitions costs a ripple, and a block a query,
//! depends on the cache that has it. So operations take turns in random order over the whole column, and the
//! constants are fitted at the size for which they are used: `--rows` here, a chunk for the optimizer.

mod line;
mod measured;

use super::{CHUNK, Settings};
use crate::report::{Json, figure, map};
use entasis_layout::cost::Access;
use line::{Line, Points, error};
use measured::{clock, inserts, points};

/// Every so many of the partitions are shown.
const SHOWN: usize = 8;

/// What a machine takes for both kinds of operations in a column of some size.
struct Measured {
    /// By the partitions from its own to the last one.
    inserts: Points,
    /// By the blocks of the partition.
    points: Points,
    /// What of it is looking at the clock.
    clock: f64,
}

impl Measured {
    fn new(rows: usize, payloads: usize, block: usize) -> Measured {
        // First of all: in memory that other arrays have had before, keys were found to take up to 1.5 times
        // as long to read in one half of the column as in the other.
        let points = points(rows, payloads, block);
        let inserts = inserts(rows, payloads).into_iter().step_by(SHOWN).collect();
        Measured { inserts, points, clock: clock() }
    }

    /// The constants of the model, by some of the points.
    fn access(&self, every: usize) -> Access {
        let of = |points: &Points| Line::through(&points.iter().copied().step_by(every).collect::<Points>());
        let (insert, point) = (of(&self.inserts), of(&self.points));
        Access {
            // Of one block.
            jump: (point.at(1.0) - self.clock).max(0.0),
            random_read: insert.slope / 2.0,
            random_write: insert.slope / 2.0,
            sequential_read: point.slope,
            sequential_write: point.slope,
        }
    }
}

/// The constants of the model by lines through all points, for the optimizer: those of a chunk.
pub fn fitted(settings: &Settings) -> Access {
    let rows = settings.rows.min(CHUNK);
    let access = Measured::new(rows, settings.payloads, settings.block).access(1);
    println!(
        "fitted: a ripple through a partition {:.0} ns, a block of {} keys {:.0} ns, the first {:.0} ns",
        access.random_read + access.random_write,
        settings.block,
        access.sequential_read,
        access.jump
    );
    access
}

/// Prints both experiments, and returns them.
pub fn model(settings: &Settings) -> Json {
    let measured = Measured::new(settings.rows, settings.payloads, settings.block);
    let Access { jump, random_read: rr, random_write: rw, sequential_read: sr, .. } = measured.access(2);
    println!("ns: jump {jump:.0}, RR + RW {:.1}, SR {sr:.0}, clock {:.0}", rr + rw, measured.clock);
    let experiments = [
        experiment("inserts by trailing partitions", &measured.inserts),
        experiment("point queries by blocks of the partition", &measured.points),
    ];
    map([
        ("jump_ns", jump.into()),
        ("ripple_ns", (rr + rw).into()),
        ("sequential_read_ns", sr.into()),
        ("clock_ns", measured.clock.into()),
        ("experiments", Vec::from(experiments).into()),
    ])
}

/// Prints the points, and returns them.
fn experiment(head: &str, points: &Points) -> Json {
    let fitted = Line::through(&points.iter().copied().step_by(2).collect::<Points>());
    println!("\n{head}\n{:>10}{:>12}{:>12}{:>8}", "", "measured", "fitted", "%");
    let mut worst = 0.0f64;
    let rows = points.iter().enumerate().map(|(number, &(x, y))| {
        let (predicted, is_fitted_to) = (fitted.at(x), number % 2 == 0);
        let error = error(predicted, y);
        worst = if is_fitted_to { worst } else { worst.max(error.abs()) };
        let note = if is_fitted_to { "  (fitted to)" } else { "" };
        println!("{:>10}{y:>12.0}{predicted:>12.0}{error:>8.1}{note}", figure(Some(x)));
        map([("x", x.into()), ("measured_ns", y.into()), ("fitted_ns", predicted.into())])
    });
    let rows: Vec<Json> = rows.collect();
    println!(
        "fitted {:.0} + {:.1} x ns, at the points between off by {worst:.0} % at most",
        fitted.base, fitted.slope
    );
    map([
        ("what", head.into()),
        ("worst_percent_fitted_elsewhere", worst.into()),
        ("base_ns", fitted.base.into()),
        ("slope_ns", fitted.slope.into()),
        ("points", rows.into()),
    ])
}
