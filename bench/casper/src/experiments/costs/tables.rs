//! The tables, and the operations on them.

use super::{GROWTH, SLICES};
use crate::engine::{self, Stored, folded};
use crate::experiments::Settings;
use crate::measure::undisturbed;
use crate::operations::{fill, key_of};
use crate::store::Store;
use entasis_layout::outlook::OperationKind;
use entasis_layout::random::Random;
use entasis_storage::{Datum, Layout, Table, TableOptions};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Operations of a batch. Ranges are fewer by the slices that each reads.
const BATCH: usize = 40_000;
/// So many are timed together: some microseconds, much less than other processes have the processor for.
const AT_ONCE: usize = 10;
/// Each partition of an extended table has got so many rows per slice since it rested.
const EXTENDED_BY: usize = 32;
/// The column that a range sums, which has about as many bits as others.
const SUMMED: usize = 3;

/// How a table is laid out.
pub struct Kind {
    pub name: &'static str,
    layout: Layout,
    /// Slices of a partition.
    width: usize,
    ghost: f64,
    is_extended: bool,
}

impl Kind {
    const fn of(name: &'static str, width: usize, ghost: f64) -> Kind {
        Kind { name, layout: Layout::EquiGhost, width, ghost, is_extended: false }
    }

    /// All of them.
    pub const ALL: [Kind; 8] = [
        Kind::of("1 slice, no ghosts", 1, 0.0),
        Kind::of("1 slice, 1 % ghosts", 1, 0.01),
        Kind { layout: Layout::Casper, ..Kind::of("1 slice, 1 %, casper", 1, 0.01) },
        Kind::of("1 slice, 20 % ghosts", 1, 0.2),
        Kind { is_extended: true, ..Kind::of("1 slice, extended", 1, 0.0) },
        Kind::of("2 slices, 1 % ghosts", 2, 0.01),
        Kind::of("4 slices, 1 % ghosts", 4, 0.01),
        Kind::of("8 slices, 1 % ghosts", 8, 0.01),
    ];
}

/// Upkeep until nothing is left to do.
fn rest(table: &Arc<Table>) {
    loop {
        let done = table.upkeep(Duration::from_secs(60));
        if done.is_done && done.warm + done.spread + done.encoded + done.overtaken == 0 {
            return;
        }
    }
}

/// A table that has been loaded and rests, and was extended then if it is one of those.
pub fn loaded(settings: &Settings, kind: &Kind) -> Arc<Table> {
    let partitions = TableOptions::default().partitions / kind.width;
    let options = TableOptions { partitions, ghost: kind.ghost, ..engine::options(kind.layout) };
    let table = engine::loaded(settings.rows as u64, settings.payloads, options);
    rest(&table);
    if kind.is_extended {
        let (step, mut row) = (table.options().block_slots / EXTENDED_BY, vec![0; settings.payloads]);
        let mut store = Stored::new(table.clone());
        for place in (0..settings.rows).step_by(step) {
            let key = key_of(place as u64) + 2;
            fill(key, &mut row);
            store.insert(key, &row);
        }
    }
    table
}

/// Places in no order, no two of them the same: a walk through all by a step that shares no factor with
/// their number.
fn places(rows: usize, count: usize, random: &mut Random) -> impl Iterator<Item = u64> {
    let shares = |mut a: usize, mut b: usize| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a > 1
    };
    let mut step = rows / 3 + random.below(rows / 3);
    while shares(step, rows) {
        step += 1;
    }
    let start = random.below(rows);
    (0..count).map(move |number| ((start + number * step) % rows) as u64)
}

/// Performs a batch of operations on a table. Returns the nanoseconds of one, on average.
pub fn perform(
    settings: &Settings,
    table: &Arc<Table>,
    operation: OperationKind,
    random: &mut Random,
) -> f64 {
    let count = match operation {
        OperationKind::Range => BATCH / SLICES,
        OperationKind::Insert | OperationKind::Update => (settings.rows as f64 * GROWTH) as usize,
        _ => BATCH,
    };
    let places: Vec<u64> = places(settings.rows, count, random).collect();
    let mut store = Stored::new(table.clone());
    let mut row = vec![0; settings.payloads];
    fill(key_of(7), &mut row);
    let width = table.options().block_slots;
    let rows_of_range = (SLICES * settings.rows / slices(table)) as u64;
    let far = settings.rows as u64 / 2;
    let rows = settings.rows as u64;
    let snapshot = (operation == OperationKind::Range).then(|| table.snapshot());
    let mut act = |place: u64| {
        let key = key_of(place);
        match operation {
            OperationKind::PointQuery => {
                let value = table.read(|reader| {
                    let row = reader.find(&[Datum::Integer(key.into())]).expect("the key is there");
                    let mut values = Vec::with_capacity(1);
                    reader.read(row, &[1 + SUMMED], &mut values);
                    matches!(values[..], [Datum::Integer(_)])
                });
                assert!(value, "a value of the row");
            }
            OperationKind::Range => {
                let snapshot = snapshot.as_ref().expect("ranges read one");
                let low = place.min(rows - rows_of_range - width as u64);
                black_box(folded(snapshot, key_of(low), key_of(low + rows_of_range), &[1 + SUMMED]));
            }
            OperationKind::Insert => store.insert(key + 1, &row),
            OperationKind::Delete => assert!(store.delete(key)),
            OperationKind::Update => assert!(store.update(key, key_of((place + far) % rows) + 1)),
        }
    };
    let at_once = if operation == OperationKind::Range { 1 } else { AT_ONCE };
    let times = places.chunks(at_once).map(|places| {
        let start = Instant::now();
        places.iter().for_each(|&place| act(place));
        start.elapsed().as_nanos() as f64 / places.len() as f64
    });
    undisturbed(times.collect())
}

/// The slices of a table.
fn slices(table: &Arc<Table>) -> usize {
    table.snapshot().row_groups().map(|group| group.blocks()).sum()
}
