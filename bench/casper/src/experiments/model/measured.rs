//! Operations on a bare chunk, each in the state that the others leave it in.
//!
//! Partitions take turns in random order. Operations that are repeated in one partition find its rows in the
//! nearest cache, where those of a workload do not: RR is the cost of a block *wherever it is*.

use super::line::Points;
use crate::column::loops::total;
use crate::column::{Partitioned, loaded};
use crate::measure::median;
use crate::operations::{fill, key_of};
use crate::store::Store;
use entasis_layout::random::Random;
use std::hint::black_box;
use std::time::Instant;

/// Partitions of the chunk into which rows are inserted, as in the paper.
const PARTITIONS: usize = 100;
/// Operations in each partition, of which the mean of the middle half counts: a border is in a new line now
/// and then, which is a part of the cost, and others use the memory of this machine, which is not.
const TURNS: usize = 101;

/// Nanoseconds that something takes.
fn nanoseconds<R>(what: impl FnOnce() -> R) -> f64 {
    let start = Instant::now();
    black_box(what());
    start.elapsed().as_nanos() as f64
}

/// What it takes to look at the clock twice.
pub fn clock() -> f64 {
    median((0..1001).map(|_| nanoseconds(|| ())).collect())
}

/// What an operation takes in each partition, all of which take turns in random order.
fn in_turns(partitions: usize, mut operation: impl FnMut(usize, &mut Random) -> f64) -> Vec<f64> {
    let (mut random, mut order) = (Random::new(3), (0..partitions).collect::<Vec<usize>>());
    let mut times = vec![Vec::with_capacity(TURNS); partitions];
    for _ in 0..TURNS {
        (1..partitions).rev().for_each(|at| order.swap(at, random.below(at + 1)));
        for &partition in &order {
            times[partition].push(operation(partition, &mut random));
        }
    }
    times.into_iter().map(middle).collect()
}

/// The mean of the middle half.
fn middle(mut times: Vec<f64>) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    let half = &times[TURNS / 4..TURNS - TURNS / 4];
    half.iter().sum::<f64>() / half.len() as f64
}

/// Nanoseconds of an insert by the partitions from its own to the last one.
pub fn inserts(rows: usize, payloads: usize) -> Points {
    // Not of whole blocks, which are powers of two: their borders would share the sets of a cache.
    let starts = (0..PARTITIONS).map(|partition| partition * rows / PARTITIONS);
    let (starts, mut row) = (starts.collect::<Vec<usize>>(), vec![0; payloads]);
    let mut chunk = Partitioned::new(&loaded(0..rows, payloads), &starts, None, 1);
    let times = in_turns(PARTITIONS, |partition, random| {
        let place = starts[partition] + random.below(rows / PARTITIONS);
        let key = key_of(place as u64) + 1;
        fill(key, &mut row);
        nanoseconds(|| chunk.insert(key, &row))
    });
    let points = times.into_iter().enumerate();
    points.map(|(partition, time)| ((PARTITIONS - partition) as f64, time)).rev().collect()
}

/// Nanoseconds of a point query, which returns a position, by the blocks of its partition.
///
/// Before each, as many bytes are read elsewhere as there are of keys. Without it caches would have more of
/// the narrow partitions than of the wide ones, which are read as often.
pub fn points(rows: usize, payloads: usize, block: usize) -> Points {
    // From a block on, which is the least that the model knows. As in the paper, what is left behind the
    // widest of these is one more.
    let starts = (0..).map(|power| block * ((1 << power) - 1)).take_while(|start| start + block <= rows);
    let starts: Vec<usize> = starts.collect();
    let ends: Vec<usize> = starts.iter().skip(1).copied().chain([rows]).collect();
    let chunk = Partitioned::new(&loaded(0..rows, payloads), &starts, None, 1);
    let other = vec![1; 2 * rows];
    let times = in_turns(starts.len(), |partition, random| {
        black_box(total(&other));
        let (start, end) = (starts[partition], ends[partition]);
        let key = key_of((start + random.below(end - start)) as u64);
        nanoseconds(|| chunk.position(key))
    });
    let widths = starts.iter().zip(&ends).map(|(start, end)| (end - start) as f64 / block as f64);
    let mut points: Points = widths.zip(times).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}
