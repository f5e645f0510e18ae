//! Policies: which chunks are small, by the thresholds of the strategies (section 3.4 of the paper).
//!
//! | strategy | chunks that are copied |
//! |---|---|
//! | full | all that are not full |
//! | binary | of at most 128 of 2048 rows |
//! | dynamic | of at most what the [cost model](super::costs) gives for their mean size, as measured |
//! | learning | of at most what the [learner](crate::learned) tries |

use super::costs::{Behind, ChunkCosts};
use super::standing::Standing;
use crate::learned::{ARMS, Learned, Learner, Selected};
use crate::settings::Compaction;
use crate::sync::{Mutex, MutexGuard, lock};
use entasis_vector::CHUNK_ROWS;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// The threshold of binary compaction as a share of a full chunk, as a divisor.
const SMALL_PART: usize = 16;
/// The number of chunks after which dynamic compaction computes its threshold again.
const CHUNKS_A_LOOK: u64 = 64;
/// The least number of chunks of a pipeline's source for which what was learnt is looked up, and that of
/// `auto`: the hash of a plan takes as long as some chunks, and a plan of many joins has one for each.
const CHUNKS_TO_LEARN: f64 = 8.0;
const CHUNKS_OF_AUTO: f64 = 1024.0;
/// The chunks that arrive at a compaction, over all executions of its plan, before anything is tried; until
/// then it is binary. Of `auto` there are more: over TPC-DS and IMDB, whose pipelines are short, what trying
/// costs is not earned back, whereas pipelines of many thousand chunks are up to a fifth faster.
const PATIENCE: u64 = 64;
const PATIENCE_OF_AUTO: u64 = 8192;

/// The policy of all workers.
pub(super) enum Policy {
    /// By a fixed threshold.
    Fixed { name: &'static str, threshold: usize },
    /// By the cost model.
    Dynamic { costs: ChunkCosts, operators: usize, chunk_rows: usize, last: Arc<Mutex<usize>> },
    /// By trying.
    Learning { model: Arc<Model>, chunk_rows: usize, patience: u64 },
}

/// What the workers of one compaction learn together.
pub(super) struct Model {
    learner: Mutex<Learner>,
    /// Where it came from and is put back, and under which plan.
    kept: (Arc<Learned>, u64),
}

impl Model {
    fn of(learned: &Arc<Learned>, plan: u64) -> Model {
        Model { learner: Mutex::new(learned.of(plan)), kept: (learned.clone(), plan) }
    }

    fn lock(&self) -> MutexGuard<'_, Learner> {
        lock(&self.learner)
    }
}

/// One worker's thresholds.
pub(super) trait Thresholds: Send {
    /// The threshold for a chunk of `rows` rows, which is about to come.
    fn before(&mut self, rows: usize) -> usize;

    /// Called when the chunk has been copied or passed on; `is_empty`: nothing is held back.
    fn after(&mut self, rows: usize, is_empty: bool) {
        let _ = (rows, is_empty);
    }
}

/// True if thresholds are learned in a pipeline that expects so many chunks. Chunks smaller than usual are
/// for tests, which have few of them.
pub(crate) fn learns(compaction: Compaction, chunk_rows: usize, chunks: f64) -> bool {
    let least = if compaction == Compaction::Auto { CHUNKS_OF_AUTO } else { CHUNKS_TO_LEARN };
    compaction.learns() && (chunks >= least || chunk_rows != CHUNK_ROWS)
}

/// The threshold of binary compaction.
fn binary(chunk_rows: usize) -> usize {
    (chunk_rows / SMALL_PART).max(1).min(chunk_rows)
}

impl Policy {
    /// That of a setting; `None` if nothing is copied.
    pub(super) fn of(compaction: Compaction, chunk_rows: usize, standing: &Standing) -> Option<Policy> {
        let binary = Policy::Fixed { name: "binary", threshold: binary(chunk_rows) };
        Some(match compaction {
            Compaction::None | Compaction::Logical => return None,
            Compaction::Binary => binary,
            Compaction::Full => Policy::Fixed { name: "full", threshold: chunk_rows },
            Compaction::Dynamic => {
                let Standing { costs, operators, .. } = *standing;
                Policy::Dynamic { costs, operators, chunk_rows, last: Arc::default() }
            }
            Compaction::Auto | Compaction::Learning | Compaction::Smart
                if !learns(compaction, chunk_rows, standing.chunks) =>
            {
                binary
            }
            Compaction::Auto | Compaction::Learning | Compaction::Smart => {
                let model = Arc::new(Model::of(&standing.learned, standing.plan));
                let patience = if compaction == Compaction::Auto { PATIENCE_OF_AUTO } else { PATIENCE };
                Policy::Learning { model, chunk_rows, patience }
            }
        })
    }

    /// One worker's thresholds.
    pub(super) fn worker(&self) -> Box<dyn Thresholds> {
        match self {
            Policy::Fixed { threshold, .. } => Box::new(Fixed(*threshold)),
            Policy::Dynamic { costs, operators, chunk_rows, last } => Box::new(Dynamic {
                costs: *costs,
                operators: *operators,
                chunk_rows: *chunk_rows,
                rows: 0,
                chunks: 0,
                threshold: *chunk_rows / SMALL_PART,
                last: last.clone(),
            }),
            Policy::Learning { model, chunk_rows, patience } => Box::new(Trying {
                waits: model.lock().pass(0) < *patience,
                passed: 0,
                model: model.clone(),
                chunk_rows: *chunk_rows,
                patience: *patience,
                trial: None,
            }),
        }
    }

    /// All workers have ended: what was learnt is kept for the next execution.
    pub(super) fn end(&self) {
        if let Policy::Learning { model, .. } = self {
            let (learned, plan) = &model.kept;
            learned.keep(*plan, model.lock().clone());
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Policy::Fixed { name, threshold } => write!(f, "{name}: up to {threshold} rows"),
            Policy::Dynamic { last, .. } => {
                write!(f, "dynamic: up to {} rows", lock(last))
            }
            Policy::Learning { model, chunk_rows, .. } => {
                let learner = model.lock();
                let all: u64 = learner.taken.iter().sum();
                if all == 0 {
                    return write!(f, "binary: up to {} rows", binary(*chunk_rows));
                }
                f.write_str("learning: ")?;
                let taken = ARMS.iter().zip(&learner.taken).filter(|(_, taken)| **taken > 0);
                for (number, (arm, taken)) in taken.enumerate() {
                    let comma = if number > 0 { ", " } else { "" };
                    write!(f, "{comma}up to {arm} rows {:.0} %", 100.0 * *taken as f64 / all as f64)?;
                }
                if learner.resets > 0 { write!(f, "; restarted {} times", learner.resets) } else { Ok(()) }
            }
        }
    }
}

struct Fixed(usize);

impl Thresholds for Fixed {
    fn before(&mut self, _: usize) -> usize {
        self.0
    }
}

/// The mean size of the chunks tells how far the operators below cut them; those after the compaction are
/// assumed to do the same, and to output as many rows as they take.
struct Dynamic {
    costs: ChunkCosts,
    operators: usize,
    chunk_rows: usize,
    rows: u64,
    chunks: u64,
    threshold: usize,
    last: Arc<Mutex<usize>>,
}

impl Thresholds for Dynamic {
    fn before(&mut self, rows: usize) -> usize {
        self.rows += rows as u64;
        self.chunks += 1;
        if self.chunks.is_multiple_of(CHUNKS_A_LOOK) {
            let reduces = self.chunk_rows as f64 * self.chunks as f64 / self.rows as f64;
            let behind = Behind { operators: self.operators, reduces, multiplies: 1.0 };
            self.threshold = self.costs.threshold(&behind, self.chunk_rows);
            *lock(&self.last) = self.threshold;
        }
        self.threshold
    }
}

/// Tries thresholds, once enough chunks have arrived; a trial lasts until nothing is held back.
struct Trying {
    model: Arc<Model>,
    chunk_rows: usize,
    patience: u64,
    /// Not yet.
    waits: bool,
    /// Chunks that have arrived meanwhile and are not counted yet.
    passed: u64,
    trial: Option<Trial>,
}

struct Trial {
    selected: Selected,
    began: Instant,
    /// Nanoseconds spent on the chunks so far; the time between them is not spent in the operators after the
    /// compaction.
    nanoseconds: u64,
    rows: u64,
    chunks: u64,
}

impl Thresholds for Trying {
    fn before(&mut self, _: usize) -> usize {
        let model = &self.model;
        if self.waits {
            self.passed += 1;
            if self.passed == CHUNKS_A_LOOK {
                self.waits = model.lock().pass(std::mem::take(&mut self.passed)) < self.patience;
            }
            return binary(self.chunk_rows);
        }
        let trial = self.trial.get_or_insert_with(|| Trial {
            selected: model.lock().select(),
            began: Instant::now(),
            nanoseconds: 0,
            rows: 0,
            chunks: 0,
        });
        trial.began = Instant::now();
        ARMS[trial.selected.arm] * self.chunk_rows / CHUNK_ROWS
    }

    fn after(&mut self, rows: usize, is_empty: bool) {
        let Some(trial) = &mut self.trial else { return };
        trial.nanoseconds += trial.began.elapsed().as_nanos() as u64;
        trial.rows += rows as u64;
        trial.chunks += 1;
        if is_empty {
            let nanoseconds = trial.nanoseconds.max(1) as f64 / trial.rows as f64;
            self.model.lock().reward(trial.selected, nanoseconds, trial.chunks);
            self.trial = None;
        }
    }
}
