//! One contestant on one sequence of operations: built, measured, and what came out as a record.

use crate::column::{Mode, Shape};
use crate::engine::{self, Keeper, REST, Stored, Two};
use crate::experiments::Settings;
use crate::measure::{Outcome, run};
use crate::operations::Step;
use crate::report::{Json, map};
use crate::store::Store;
use entasis_layout::frequency::Frequency;
use entasis_storage::{Layout, TableOptions};
use std::sync::Barrier;

/// A layout of our engine.
#[derive(Debug, Clone)]
pub enum Entrant {
    /// One table.
    One(&'static str, TableOptions),
    /// The delta store of two tables.
    Two,
}

impl Entrant {
    /// All layouts.
    pub fn all() -> Vec<Entrant> {
        let one = |(name, layout)| Entrant::One(name, engine::options(layout));
        let before = [("insertion", Layout::Insertion), ("sorted", Layout::Sorted), ("delta", Layout::Delta)];
        let behind = [("equi", Layout::Equi), ("equi_ghost", Layout::EquiGhost), ("casper", Layout::Casper)];
        before.into_iter().map(one).chain([Entrant::Two]).chain(behind.into_iter().map(one)).collect()
    }

    /// The name in tables.
    pub fn name(&self) -> &'static str {
        match self {
            Entrant::One(name, _) => name,
            Entrant::Two => "two tables",
        }
    }
}

/// What a contestant did, and its size at the end.
pub struct Measured {
    /// Times.
    pub outcome: Outcome,
    /// Bytes by row that was loaded.
    pub bytes: f64,
}

/// The bare column. With several threads each has the chunks that fall to it in turn, and performs what
/// concerns them.
pub fn bare(
    settings: &Settings,
    shape: &Shape,
    mode: Mode,
    frequency: &Frequency,
    steps: &[Step],
) -> Measured {
    let threads = settings.threads;
    let chunk_of = |key: i64| ((key >> 20) as usize).min(settings.rows - 1) / shape.chunk;
    let concerns = |step: Step, thread: usize| {
        let is_mine = |key: i64| chunk_of(key) % threads == thread;
        match step {
            Step::Point(key) | Step::Insert(key) | Step::Delete(key) => is_mine(key),
            Step::Update(from, to) => is_mine(from) || is_mine(to),
            Step::Count(low, high) | Step::Sum(low, high) => {
                (chunk_of(low)..=chunk_of(high)).any(|chunk| chunk % threads == thread)
            }
        }
    };
    let mut stores: Vec<Box<dyn Store>> = Vec::new();
    let mut parts: Vec<Vec<Step>> = Vec::new();
    for thread in 0..threads {
        stores.push(Box::new(shape.table(mode, frequency, |chunk| chunk % threads == thread)));
        parts.push(steps.iter().copied().filter(|step| concerns(*step, thread)).collect());
    }
    let mut result = side_by_side(settings, &mut stores, &parts);
    stores.iter().for_each(|store| store.check());
    // What concerns several threads is one operation.
    let all: usize = parts.iter().map(Vec::len).sum();
    result.outcome.done = (result.outcome.done as f64 * steps.len() as f64 / all as f64) as usize;
    result
}

/// Our engine. With several threads each performs its share of the operations on the same table.
pub fn stored(settings: &Settings, entrant: &Entrant, steps: &[Step]) -> Measured {
    let options = match entrant {
        Entrant::One(_, options) => options.clone(),
        Entrant::Two => engine::options(Layout::Sorted),
    };
    let table = engine::loaded(settings.rows as u64, settings.payloads, options);
    let _keeper = Keeper::of(vec![table.clone()], REST);
    let full = (settings.rows as f64 * settings.delta) as u64;
    let store: Box<dyn Fn() -> Box<dyn Store>> = match entrant {
        Entrant::One(..) => {
            let store = Stored::new(table);
            Box::new(move || -> Box<dyn Store> { Box::new(store.clone()) })
        }
        Entrant::Two => {
            let store = Two::new(table, settings.payloads, full);
            Box::new(move || -> Box<dyn Store> { Box::new(store.clone()) })
        }
    };
    let mut stores: Vec<Box<dyn Store>> = (0..settings.threads).map(|_| store()).collect();
    let every = |thread: usize| steps.iter().copied().skip(thread).step_by(settings.threads);
    let parts: Vec<Vec<Step>> = (0..settings.threads).map(|thread| every(thread).collect()).collect();
    let mut result = side_by_side(settings, &mut stores, &parts);
    result.bytes /= settings.threads as f64;
    result
}

fn side_by_side(settings: &Settings, stores: &mut [Box<dyn Store>], parts: &[Vec<Step>]) -> Measured {
    let barrier = Barrier::new(stores.len());
    let barrier = &barrier;
    let outcomes = std::thread::scope(|scope| {
        let threads: Vec<_> = stores
            .iter_mut()
            .zip(parts)
            .map(|(store, steps)| {
                scope.spawn(move || {
                    barrier.wait();
                    run(&mut **store, steps, settings.payloads, settings.limit)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("a run")).collect::<Vec<Outcome>>()
    });
    let mut outcomes = outcomes.into_iter();
    let mut outcome = outcomes.next().expect("a thread");
    outcomes.for_each(|other| outcome.join(other));
    let bytes = stores.iter().map(|store| store.bytes()).sum::<usize>() as f64 / settings.rows as f64;
    Measured { outcome, bytes }
}

/// A record of a result: throughput, and latencies by query.
pub fn record(result: &Measured) -> Vec<(&'static str, Json)> {
    let outcome = &result.outcome;
    let queries = (0..Step::QUERIES.len()).filter(|&query| !outcome.times[query].is_empty()).map(|query| {
        map([
            ("query", Step::QUERIES[query].into()),
            ("count", outcome.times[query].len().into()),
            ("median_us", outcome.at(query, 0.5).into()),
            ("mean_us", outcome.mean(query).into()),
            ("p999_us", outcome.at(query, 0.999).into()),
        ])
    });
    vec![
        ("operations", outcome.done.into()),
        ("per_second", outcome.throughput().into()),
        ("bytes_per_row", result.bytes.into()),
        ("queries", queries.collect::<Vec<Json>>().into()),
    ]
}
