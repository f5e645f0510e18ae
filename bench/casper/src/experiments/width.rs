//! What a slice costs to read by the bits of its codes: sums of columns of different widths over all rows of
//! a table with a layout key, which are ranges of whole slices. The constants of `Engine::encoded` are a line
//! through these.

use super::Settings;
use crate::engine::{self, folded};
use crate::report::{Json, map};
use entasis_storage::{Layout, TableOptions};
use std::time::Instant;

/// Bits of the values of each column.
const WIDTHS: [u32; 13] = [1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 28, 31];
/// Each column is read so many times, of which the fastest counts.
const TIMES: usize = 15;
/// Slots of a slice.
const SLICE: f64 = 1024.0;

/// Runs everything, and prints nanoseconds of a slice by the bits of a slot, and the line through them.
pub fn width(settings: &Settings) -> Json {
    let options = TableOptions { ghost: 0.0, ..engine::options(Layout::EquiGhost) };
    let fill = |key: i64, row: &mut [i32]| {
        for (column, (value, bits)) in row.iter_mut().zip(WIDTHS).enumerate() {
            let mixed = (key as u64 >> 20).wrapping_add(column as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            *value = (mixed >> (64 - bits)) as i32;
        }
    };
    let table = engine::filled(settings.rows as u64, WIDTHS.len(), options, fill);
    let snapshot = table.snapshot();
    let slices = settings.rows as f64 / SLICE;
    let time = |columns: &[usize]| {
        let once = || {
            let start = Instant::now();
            std::hint::black_box(folded(&snapshot, i64::MIN, i64::MAX, columns));
            start.elapsed().as_nanos() as f64 / slices
        };
        (0..TIMES).map(|_| once()).fold(f64::INFINITY, f64::min)
    };
    let none = time(&[]);
    println!("{none:.1} ns a slice for the rows alone\n{:>6}{:>10}  of one column", "bits", "ns");
    let mut points: Vec<(f64, f64)> = Vec::new();
    for column in 1..=WIDTHS.len() {
        let (bits, cost) = (snapshot.encoded_bits(&[column]), time(&[column]) - none);
        println!("{bits:>6.1}{cost:>10.1}");
        points.push((bits, cost));
    }
    let count = points.len() as f64;
    let mean = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(&|point| point.0), mean(&|point| point.1));
    let slope = mean(&|point| (point.0 - x) * (point.1 - y)) / mean(&|point| (point.0 - x) * (point.0 - x));
    let flat = y - slope * x;
    println!("line: {flat:.1} ns + {slope:.2} ns a bit");
    let points = points.into_iter().map(|(bits, cost)| map([("bits", bits.into()), ("ns", cost.into())]));
    map([
        ("rows_ns", none.into()),
        ("flat_ns", flat.into()),
        ("bit_ns", slope.into()),
        ("columns", points.collect::<Vec<Json>>().into()),
    ])
}
