//! Figure 9 for our storage: what each operation on a table takes, beside what the cost model of our storage
//! ([`Engine`]) says of it for the partitions that the table has.
//!
//! 1. Tables of several widths of partitions and shares of ghosts are loaded, and rest until upkeep has
//!    nothing left to do. One of them has got rows in each partition since, so that all are *extended*.
//! 2. The five kinds of operations of `EXPLAIN LAYOUT` are performed, at places evenly spread over the key,
//!    in no order: point queries, ranges of [`SLICES`] slices, and each of the three writes on a table of its
//!    own, so that no kind meets what another one has left behind.
//! 3. Tables take turns (`--runs`). An operation takes the mean of its batch, so that what one in a hundred
//!    pays for the others is in it, but for the moments in which another process had the processor; of the
//!    turns the median counts.
//! 4. The model is that of `EXPLAIN LAYOUT`, with constants as `CALIBRATE` has them ([`machine`]): measured
//!    right before each batch, as others use the machine at times. The median of the ratios counts.
//!
//! Not measured: waiting for others, and upkeep, whose time is not the operation's.

mod machine;
mod tables;

use super::Settings;
use crate::measure::median;
use crate::report::{Json, figure, map};
use entasis_layout::cost::{Engine, Machine};
use entasis_layout::frequency::{Frequency, Operation};
use entasis_layout::outlook::{OperationKind, expected};
use entasis_layout::partitioning::Partitioning;
use entasis_layout::random::Random;
use entasis_storage::{Table, TableSnapshot};
use machine::{Measured, stored};
use std::sync::Arc;
use tables::{Kind, loaded, perform};

/// Slices that a range touches.
const SLICES: usize = 16;
/// The share of the rows of a table that are inserted, and whose keys are updated.
const GROWTH: f64 = 0.2;
/// A model is good if it is off by no more than this share.
const GOOD: f64 = 0.15;

/// What an operation takes in one table, in nanoseconds.
struct Point {
    kind: usize,
    operation: OperationKind,
    /// Turn by turn.
    measured: Vec<f64>,
    /// By the model, with the constants of that moment.
    model: Vec<f64>,
}

impl Point {
    /// What is shown of it: the measured time, that of the model, and their ratio; medians.
    fn shown(&self) -> [f64; 3] {
        let ratios = self.model.iter().zip(&self.measured).map(|(model, measured)| model / measured);
        [median(self.measured.clone()), median(self.model.clone()), median(ratios.collect())]
    }
}

/// The partitions of a table as a partitioning of its slices.
fn partitioning(snapshot: &TableSnapshot) -> Partitioning {
    let width = snapshot.table().options().block_slots;
    let groups = 0..snapshot.row_groups().len();
    let slices = groups.flat_map(|group| snapshot.partitions(group)).map(|own| own.slots.div_ceil(width));
    let bits = slices.flat_map(|slices| (1..=slices.max(1)).map(move |number| number == slices.max(1)));
    Partitioning::of_bits(&bits.collect::<Vec<bool>>()).expect("a table has partitions")
}

/// One operation of each kind in each block; ranges of so many blocks.
fn everywhere(blocks: usize, slices: usize) -> Frequency {
    let mut frequency = Frequency::new(blocks);
    for block in 0..blocks {
        frequency.count(Operation::Point(block), 1.0);
        frequency.count(Operation::Insert(block), 1.0);
        frequency.count(Operation::Delete(block), 1.0);
        frequency.count(Operation::Update { from: block, to: (block + blocks / 2) % blocks }, 1.0);
        if block + slices < blocks {
            frequency.count(Operation::Range(block, block + slices), 1.0);
        }
    }
    frequency
}

/// What the model says of an operation on a table.
fn predicted(engine: &Engine, table: &Arc<Table>, operation: OperationKind) -> f64 {
    let partitioning = partitioning(&table.snapshot());
    let frequency = everywhere(partitioning.blocks(), SLICES);
    expected(engine, &frequency, &partitioning)[operation as usize].each
}

/// Runs everything, and prints measured times, those of the model, and how far these are off.
pub fn costs(settings: &Settings) -> Json {
    let machine = Measured::new();
    let mut points: Vec<Point> = Vec::new();
    let (mut random, mut moments) = (Random::new(settings.seed), Vec::new());
    for _ in 0..settings.runs {
        for (number, kind) in Kind::ALL.iter().enumerate() {
            let mut table = loaded(settings, kind);
            let stored = stored(&table);
            for operation in OperationKind::ALL {
                if matches!(operation, OperationKind::Delete | OperationKind::Update) {
                    table = loaded(settings, kind);
                }
                let now = machine.now();
                let model = predicted(&Engine::on(&now, &stored), &table, operation);
                let measured = perform(settings, &table, operation, &mut random);
                moments.push(now);
                match points.iter_mut().find(|own| own.kind == number && own.operation == operation) {
                    None => {
                        let (measured, model) = (vec![measured], vec![model]);
                        points.push(Point { kind: number, operation, measured, model });
                    }
                    Some(own) => {
                        own.measured.push(measured);
                        own.model.push(model);
                    }
                }
            }
        }
    }
    table_of(&points);
    let records = points.iter().map(|point| {
        let [measured, model, ratio] = point.shown();
        map([
            ("table", Kind::ALL[point.kind].name.into()),
            ("operation", point.operation.name().into()),
            ("measured_ns", measured.into()),
            ("turns_ns", point.measured.iter().map(|&own| own.into()).collect::<Vec<Json>>().into()),
            ("model_ns", model.into()),
            ("ratio", ratio.into()),
        ])
    });
    let [lookup, byte] = [|own: &Machine| own.lookup, |own: &Machine| own.byte]
        .map(|of| median(moments.iter().map(of).collect()));
    println!("a look-up takes {lookup:.0} ns, a byte {byte:.3} ns");
    map([
        ("lookup_ns", lookup.into()),
        ("byte_ns", byte.into()),
        ("growth", GROWTH.into()),
        ("points", records.collect::<Vec<Json>>().into()),
    ])
}

/// Prints a line for each table.
fn table_of(points: &[Point]) {
    println!("\nmicroseconds measured, and by the model; their ratio");
    print!("{:28}", "table");
    OperationKind::ALL.iter().for_each(|operation| print!("{:>24}", operation.name()));
    println!();
    let mut worst = (0.0f64, "", "");
    for (number, kind) in Kind::ALL.iter().enumerate() {
        print!("{:28}", kind.name);
        for point in points.iter().filter(|point| point.kind == number) {
            let [measured, model, ratio] = point.shown();
            let mark = if (ratio - 1.0).abs() > GOOD { "*" } else { " " };
            let of = |time: f64| figure(Some(time / 1000.0));
            print!("{:>8}{:>8}{ratio:>7.2}{mark}", of(measured), of(model));
            if (ratio - 1.0).abs() > worst.0 {
                worst = ((ratio - 1.0).abs(), kind.name, point.operation.name());
            }
        }
        println!();
    }
    println!("the model is off by {:.0} % at most: {}, {}", worst.0 * 100.0, worst.1, worst.2);
}
