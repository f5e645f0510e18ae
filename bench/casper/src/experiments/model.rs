//! Figure 9: the paper's cost model beside what a bare chunk does on this machine.
//!
//! Inserts into the partitions of a chunk of equal ones, by the number of partitions that their ripple goes
//! through; point queries in partitions of doubling sizes. Predicted twice: from RR, RW and SR as loops of
//! nothing but such accesses have them; and by a line that is fitted to every other point, as the paper fits
//! its constants, of which the errors at the points between are reported.

use super::Settings;
use crate::column::plan::{self, Plan};
use crate::column::{Partitioned, loaded, planned};
use crate::operations::{fill, key_of};
use crate::report::{Json, figure, map};
use crate::store::Store;
use entasis_layout::cost::Access;
use entasis_layout::random::Random;
use std::hint::black_box;
use std::time::Instant;

/// Partitions of the chunk into which rows are inserted, as in the paper.
const PARTITIONS: usize = 100;
/// Rows of the least partition in which a row is sought, as in the paper.
const LEAST: usize = 512;

/// A measured point: what it costs by the model's variable.
type Points = Vec<(f64, f64)>;

/// The cost of something in nanoseconds, by a variable: at 0, and for each unit.
#[derive(Debug, Clone, Copy)]
struct Line {
    base: f64,
    slope: f64,
}

impl Line {
    fn at(self, x: f64) -> f64 {
        self.base + self.slope * x
    }

    /// The line with the least sum of squares of relative errors.
    fn through(points: &[(f64, f64)]) -> Line {
        let (mut w, mut wx, mut wy, mut wxx, mut wxy) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for &(x, y) in points {
            let weight = 1.0 / (y * y);
            w += weight;
            wx += weight * x;
            wy += weight * y;
            wxx += weight * x * x;
            wxy += weight * x * y;
        }
        let slope = (w * wxy - wx * wy) / (w * wxx - wx * wx);
        Line { base: (wy - slope * wx) / w, slope }
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    let middle = times.len() / 2;
    *times.select_nth_unstable_by(middle, f64::total_cmp).1
}

fn nanoseconds<R>(what: impl FnOnce() -> R) -> f64 {
    let start = Instant::now();
    black_box(what());
    start.elapsed().as_nanos() as f64
}

/// What it takes to look at the clock twice.
fn clock() -> f64 {
    median((0..1001).map(|_| nanoseconds(|| ())).collect())
}

/// Nanoseconds of an insert by the partitions from its own to the last one.
fn inserts(rows: usize, payloads: usize, block: usize) -> Points {
    let partitioning = plan::equal(rows.div_ceil(block), PARTITIONS);
    let plan = Plan { partitioning, ghosts: None, block };
    let mut chunk = planned(&loaded(0..rows, payloads), &plan);
    let (starts, mut row) = (plan.starts(), vec![0; payloads]);
    let partitions = starts.len();
    let mut insert = |chunk: &mut Partitioned, partition: usize, number: usize| {
        let key = key_of((starts[partition] + number) as u64) + 1;
        fill(key, &mut row);
        let time = nanoseconds(|| chunk.insert(key, &row));
        chunk.delete(key);
        time
    };
    insert(&mut chunk, 0, 0);
    let measured = (0..partitions).rev().step_by((partitions / 12).max(1)).map(|partition| {
        let times = (0..301).map(|number| insert(&mut chunk, partition, number)).collect();
        ((partitions - partition) as f64, median(times))
    });
    measured.collect()
}

/// Nanoseconds of a point query by the blocks of its partition.
fn points(rows: usize, payloads: usize, block: usize) -> Points {
    let mut starts = vec![0];
    let mut size = LEAST;
    while starts[starts.len() - 1] + 2 * size <= rows {
        starts.push(starts[starts.len() - 1] + size);
        size *= 2;
    }
    let mut chunk = Partitioned::new(&loaded(0..rows, payloads), &starts, None, 1);
    let mut random = Random::new(3);
    let ends = starts.iter().skip(1).copied().chain([rows]);
    let measured = starts.iter().zip(ends).map(|(&start, end)| {
        let times = (0..201).map(|_| {
            let key = key_of((start + random.below(end - start)) as u64);
            nanoseconds(|| chunk.point(key))
        });
        ((end - start) as f64 / block as f64, median(times.collect()))
    });
    measured.collect()
}

/// RR, RW, SR and SW by loops of nothing but such accesses: rows of all columns at the borders of 100
/// partitions in turn, and blocks of keys one behind the other.
fn accesses(rows: usize, payloads: usize, block: usize) -> Access {
    let mut column = loaded(0..rows, payloads);
    let (rounds, mut row) = (100, vec![0; payloads]);
    let place = |number: usize, round: usize| number * (rows / PARTITIONS) + round;
    let each = |time: f64| time / (rounds * PARTITIONS) as f64;
    let random_read = each(nanoseconds(|| {
        for at in (0..rounds).flat_map(|round| (0..PARTITIONS).map(move |number| (number, round))) {
            column.read(place(at.0, at.1), &mut row);
            black_box(&row);
        }
    }));
    let random_write = each(nanoseconds(|| {
        for at in (0..rounds).flat_map(|round| (0..PARTITIONS).map(move |number| (number, round))) {
            column.write(place(at.0, at.1), at.0 as i64, black_box(&row));
        }
    }));
    let blocks = rows / block;
    let block_of = |number: usize| number * block..(number + 1) * block;
    let scan = || (0..blocks).for_each(|number| _ = black_box(column.find(block_of(number), -1)));
    scan();
    let sequential_read = nanoseconds(scan) / blocks as f64;
    let write = || (0..blocks).for_each(|number| column.keys[block_of(number)].fill(black_box(1)));
    let sequential_write = nanoseconds(write) / blocks as f64;
    Access { random_read, random_write, sequential_read, sequential_write }
}

/// The constants of the model by lines through all points, for the optimizer.
pub fn fitted(settings: &Settings) -> Access {
    let rows = settings.rows.min(1 << 20);
    let insert = Line::through(&inserts(rows, settings.payloads, settings.block));
    let point = Line::through(&points(rows, settings.payloads, settings.block));
    let access = Access {
        random_read: insert.slope / 2.0,
        random_write: insert.slope / 2.0,
        sequential_read: point.slope,
        sequential_write: point.slope,
    };
    println!(
        "fitted: a ripple through a partition {:.0} ns, a block of {} keys {:.0} ns",
        insert.slope, settings.block, point.slope
    );
    access
}

/// Prints both experiments, and returns them.
pub fn model(settings: &Settings) -> Json {
    let (rows, payloads, block) = (settings.rows, settings.payloads, settings.block);
    let access = accesses(rows, payloads, block);
    let clock = clock();
    let Access { random_read: rr, random_write: rw, sequential_read: sr, sequential_write: sw } = access;
    println!("ns: RR {rr:.0}, RW {rw:.0}, SR {sr:.0}, SW {sw:.0}, clock {clock:.0}");
    let ripple = rr + rw;
    let by_access = [Line { base: clock + ripple, slope: ripple }, Line { base: clock + rr, slope: sr }];
    let measured = [inserts(rows, payloads, block), points(rows, payloads, block)];
    let heads = ["inserts by trailing partitions", "point queries by blocks of the partition"];
    let experiments = heads.iter().zip(&measured).zip(by_access).map(|((head, points), line)| {
        println!(
            "\n{head}\n{:>10}{:>12}{:>14}{:>8}{:>12}{:>8}",
            "", "measured", "by accesses", "%", "fitted", "%"
        );
        experiment(head, points, line)
    });
    map([
        ("random_read_ns", rr.into()),
        ("random_write_ns", rw.into()),
        ("sequential_read_ns", sr.into()),
        ("sequential_write_ns", sw.into()),
        ("clock_ns", clock.into()),
        ("experiments", experiments.collect::<Vec<Json>>().into()),
    ])
}

fn experiment(head: &str, points: &[(f64, f64)], by_access: Line) -> Json {
    let every_other: Points = points.iter().copied().step_by(2).collect();
    let fitted = Line::through(&every_other);
    let mut worst = [0.0f64; 2];
    let rows = points.iter().enumerate().map(|(number, &(x, y))| {
        let error = |line: Line| (line.at(x) / y - 1.0) * 100.0;
        worst[0] = worst[0].max(error(by_access).abs());
        if number % 2 == 1 {
            worst[1] = worst[1].max(error(fitted).abs());
        }
        println!(
            "{:>10}{y:>12.0}{:>14.0}{:>8.1}{:>12.0}{:>8.1}{}",
            figure(Some(x)),
            by_access.at(x),
            error(by_access),
            fitted.at(x),
            error(fitted),
            if number % 2 == 1 { "" } else { "  (fitted to)" }
        );
        map([
            ("x", x.into()),
            ("measured_ns", y.into()),
            ("by_accesses_ns", by_access.at(x).into()),
            ("fitted_ns", fitted.at(x).into()),
        ])
    });
    let rows: Vec<Json> = rows.collect();
    let (base, slope) = (fitted.base, fitted.slope);
    println!("fitted {base:.0} + {slope:.1} x ns");
    println!("greatest error by accesses {:.0} %, fitted, elsewhere {:.0} %", worst[0], worst[1]);
    map([
        ("what", head.into()),
        ("worst_percent_by_accesses", worst[0].into()),
        ("worst_percent_fitted_elsewhere", worst[1].into()),
        ("base_ns", base.into()),
        ("slope_ns", slope.into()),
        ("points", rows.into()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_through_its_points() {
        let line = Line::through(&[(1.0, 7.0), (2.0, 9.0), (5.0, 15.0)]);
        assert!((line.base - 5.0).abs() < 1e-9 && (line.slope - 2.0).abs() < 1e-9);
        assert!((line.at(10.0) - 25.0).abs() < 1e-9);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
    }
}
