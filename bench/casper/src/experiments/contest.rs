//! One contestant on one sequence of operations: built, warmed up, and measured.
//!
//! The first operations of a run are the same for all, and are not counted: pages are touched for the first
//! time, blocks that were packed become writable, ghosts come to be where they are needed, and a delta fills
//! and is merged.

use crate::column::plan::Plan;
use crate::column::{Mode, Shape};
use crate::engine::{self, Keeper, Kept, LAYOUT_OF_TWO, REST, Stored, Two};
use crate::experiments::Settings;
use crate::measure::{Outcome, run};
use crate::operations::Step;
use crate::store::{Counts, Store};
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
    /// Operations before, which were not counted.
    pub warm: usize,
    /// What the structure did meanwhile.
    pub counts: Counts,
    /// What upkeep did meanwhile, if there is any.
    pub kept: Option<Kept>,
}

impl Measured {
    /// Adds the same run once more, from the begin.
    pub fn extend(&mut self, again: &Measured) {
        self.outcome.extend(&again.outcome);
        self.bytes = again.bytes;
        self.warm += again.warm;
        self.counts.add(again.counts);
        self.kept.iter_mut().zip(again.kept).for_each(|(own, again)| own.add(again));
    }

    /// True if there were such queries.
    pub fn has(&self, query: usize) -> bool {
        self.outcome.times[query].count() > 0
    }
}

/// The bare column. With several threads each has the chunks that fall to it in turn, and performs what
/// concerns them.
pub fn bare(
    settings: &Settings,
    shape: &Shape,
    mode: Mode,
    plans: &[Option<Plan>],
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
        stores.push(Box::new(shape.table(mode, plans, |chunk| chunk % threads == thread)));
        parts.push(steps.iter().copied().filter(|step| concerns(*step, thread)).collect());
    }
    let mut result = side_by_side(settings, &mut stores, &parts, None);
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
        Entrant::Two => engine::options(LAYOUT_OF_TWO),
    };
    let table = engine::loaded(settings.rows as u64, settings.payloads, options);
    let full = (settings.rows as f64 * settings.delta) as u64;
    let mut stores: Vec<Box<dyn Store>> = Vec::new();
    let tables = match entrant {
        Entrant::One(..) => {
            let store = Stored::new(table.clone());
            (0..settings.threads).for_each(|_| stores.push(Box::new(store.clone())));
            vec![table]
        }
        Entrant::Two => {
            let store = Two::new(table, settings.payloads, full);
            (0..settings.threads).for_each(|_| stores.push(Box::new(store.clone())));
            store.tables()
        }
    };
    let keeper = Keeper::of(tables, REST);
    let every = |thread: usize| steps.iter().copied().skip(thread).step_by(settings.threads);
    let parts: Vec<Vec<Step>> = (0..settings.threads).map(|thread| every(thread).collect()).collect();
    let mut result = side_by_side(settings, &mut stores, &parts, Some(&keeper));
    // All threads have the same table.
    let [first, ..] = &stores[..] else { unreachable!("there is a thread") };
    result.bytes = first.bytes() as f64 / settings.rows as f64;
    result
}

fn side_by_side(
    settings: &Settings,
    stores: &mut [Box<dyn Store>],
    parts: &[Vec<Step>],
    keeper: Option<&Keeper>,
) -> Measured {
    let all: usize = parts.iter().map(Vec::len).sum();
    let share = settings.warm.min(all / 2) as f64 / all.max(1) as f64;
    let warm: Vec<&[Step]> = parts.iter().map(|part| &part[..(part.len() as f64 * share) as usize]).collect();
    let warmed = phase(settings, stores, &warm);
    // Where the time was up before, the run goes on from there.
    let rest = parts.iter().zip(&warmed).map(|(part, warmed)| &part[warmed.done..]);
    let rest: Vec<&[Step]> = rest.collect();
    let done = |stores: &[Box<dyn Store>]| {
        let mut all = Counts::default();
        // Threads of our engine have one structure, and others one each.
        let own = if keeper.is_some() { &stores[..1] } else { stores };
        own.iter().for_each(|store| all.add(store.counts()));
        (all, keeper.map(Keeper::so_far))
    };
    let (before, kept) = done(stores);
    let mut outcomes = phase(settings, stores, &rest).into_iter();
    let (counts, kept_now) = done(stores);
    let mut outcome = outcomes.next().expect("a thread");
    outcomes.for_each(|other| outcome.join(&other));
    if let ([warmed], [_]) = (&warmed[..], &stores[..]) {
        outcome.digest = warmed.digest.or(outcome.digest);
    }
    Measured {
        outcome,
        bytes: stores.iter().map(|store| store.bytes()).sum::<usize>() as f64 / settings.rows as f64,
        warm: warmed.iter().map(|warmed| warmed.done).sum(),
        counts: counts.since(before),
        kept: kept_now.zip(kept).map(|(now, before)| now.since(before)),
    }
}

/// Operations of each thread at the same time.
fn phase(settings: &Settings, stores: &mut [Box<dyn Store>], parts: &[&[Step]]) -> Vec<Outcome> {
    let barrier = Barrier::new(stores.len());
    let barrier = &barrier;
    std::thread::scope(|scope| {
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
        threads.into_iter().map(|thread| thread.join().expect("a run")).collect()
    })
}
