//! What a running statement carries: settings, memory budget, temporary space, cancellation, progress, and
//! its workers.

mod temp_space;
pub(crate) mod workers;

pub use temp_space::TempSpace;
pub use workers::WorkerPool;

use crate::learned::Learned;
use crate::memory::{MemoryBudget, Reservation};
use crate::settings::Settings;
use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering, lock};
use entasis_vector::statement::{Charge, Statement};
use entasis_vector::{Error, Result};
use std::sync::Arc;

/// What a running statement carries. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct QueryContext {
    /// Settings, fixed for the statement.
    pub settings: Arc<Settings>,
    /// The memory it may use, shared by all statements of a database.
    pub memory: Arc<MemoryBudget>,
    /// The bytes of temporary files, shared by all statements of a database.
    pub temp: Arc<TempSpace>,
    /// Raised to stop it.
    pub cancel: CancelFlag,
    /// How far it is.
    pub progress: Arc<Progress>,
    /// What earlier executions of plans have learnt, shared by all statements of a database.
    pub learned: Arc<Learned>,
    /// Who helps the calling thread, shared by all statements of a database.
    pub pool: WorkerPool,
    /// Why the statement must stop, if it has used memory that it could not ask for.
    pub overdrawn: Overdrawn,
}

/// The memory of strings in vectors and of states within a call, as errors call it.
const WITHIN: &str = "texts and lists";

/// The first error of memory that a statement has used beyond the limit, until a check has raised it.
#[derive(Debug, Clone, Default)]
pub struct Overdrawn(Arc<(AtomicBool, Mutex<Option<Error>>)>);

impl Overdrawn {
    #[inline]
    fn check(&self) -> Result<()> {
        if self.0.0.load(Ordering::Relaxed) { self.raise() } else { Ok(()) }
    }

    #[cold]
    fn raise(&self) -> Result<()> {
        let mut error = lock(&self.0.1);
        self.0.0.store(false, Ordering::Relaxed);
        error.take().map_or(Ok(()), Err)
    }

    fn note(&self, error: Error) {
        lock(&self.0.1).get_or_insert(error);
        self.0.0.store(true, Ordering::Relaxed);
    }
}

impl QueryContext {
    /// Fails once the statement has been cancelled, or has used memory beyond the limit. Called at least once
    /// a chunk.
    ///
    /// # Errors
    /// Interrupted; resource.
    #[inline]
    pub fn check(&self) -> Result<()> {
        if self.cancel.is_raised() { Err(Error::interrupted()) } else { self.overdrawn.check() }
    }
}

impl Statement for QueryContext {
    fn check(&self) -> Result<()> {
        QueryContext::check(self)
    }

    fn reserve(&self, bytes: usize) -> Result<Charge> {
        let mut reservation = Reservation::new(&MemoryBudget::part_of(&self.memory, WITHIN));
        reservation.resize(bytes)?;
        Ok(Box::new(reservation))
    }

    fn charge(&self, bytes: usize) -> Charge {
        let mut reservation = Reservation::new(&MemoryBudget::part_of(&self.memory, WITHIN));
        if let Some(error) = reservation.overdraw(bytes) {
            self.overdrawn.note(error);
        }
        Box::new(reservation)
    }
}

/// A flag that stops a statement from another thread or a signal handler. One that is [within](Self::within)
/// another also counts as raised while that one is.
///
/// Debug builds count how often it was looked at, and can raise it at a certain look: so tests interrupt
/// statements at each of their steps, without a clock.
#[derive(Debug, Clone, Default)]
pub struct CancelFlag(Arc<Flag>);

#[derive(Debug, Default)]
struct Flag {
    is_raised: AtomicBool,
    around: Option<CancelFlag>,
    #[cfg(debug_assertions)]
    looks: AtomicU64,
    /// The look at which it is raised; 0: at none.
    #[cfg(debug_assertions)]
    raised_at: AtomicU64,
}

impl CancelFlag {
    /// Asks the statement to stop; it does within a chunk's time.
    pub fn raise(&self) {
        self.0.is_raised.store(true, Ordering::Relaxed);
    }
    /// Forgets an earlier request.
    pub fn clear(&self) {
        self.0.is_raised.store(false, Ordering::Relaxed);
    }
    /// True once asked to stop.
    #[inline]
    pub fn is_raised(&self) -> bool {
        #[cfg(debug_assertions)]
        if self.0.looks.fetch_add(1, Ordering::Relaxed) + 1 == self.0.raised_at.load(Ordering::Relaxed) {
            self.raise();
        }
        self.0.is_raised.load(Ordering::Relaxed) || self.0.around.as_ref().is_some_and(CancelFlag::is_raised)
    }
    /// A flag of its own that is raised with this one, too.
    pub fn within(&self) -> CancelFlag {
        CancelFlag(Arc::new(Flag { around: Some(self.clone()), ..Flag::default() }))
    }
    /// Raises it at the look of this number from now on, from 1; 0: at none. Returns how many looks there
    /// were since this was last called.
    #[cfg(debug_assertions)]
    pub fn raise_at(&self, look: u64) -> u64 {
        self.0.raised_at.store(look, Ordering::Relaxed);
        self.0.looks.swap(0, Ordering::Relaxed)
    }
}

/// How far a statement is: a share of all its work, for a progress bar.
#[derive(Debug, Default)]
pub struct Progress(AtomicU64);

impl Progress {
    /// Publishes the share done, 0 to 1.
    pub fn set(&self, share: f64) {
        self.0.store(share.clamp(0.0, 1.0).to_bits(), Ordering::Relaxed);
    }
    /// The share done, 0 to 1.
    pub fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }
}
