//! What a running statement carries: settings, memory budget, temporary space, cancellation, progress, and
//! its workers.

mod temp_space;
pub(crate) mod workers;

pub use temp_space::TempSpace;
pub use workers::WorkerPool;

use crate::learned::Learned;
use crate::memory::{MemoryBudget, Reservation};
use crate::settings::Settings;
use crate::sync::{AtomicBool, AtomicU64, Ordering};
use entasis_vector::statement::Statement;
use entasis_vector::{Error, Result};
use std::any::Any;
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
}

impl QueryContext {
    /// Fails once the statement has been cancelled. Called at least once a chunk.
    ///
    /// # Errors
    /// Interrupted.
    #[inline]
    pub fn check(&self) -> Result<()> {
        if self.cancel.is_raised() { Err(Error::interrupted()) } else { Ok(()) }
    }
}

impl Statement for QueryContext {
    fn check(&self) -> Result<()> {
        QueryContext::check(self)
    }

    fn reserve(&self, bytes: usize) -> Result<Box<dyn Any + Send + Sync>> {
        let mut reservation = Reservation::new(&self.memory);
        reservation.resize(bytes)?;
        Ok(Box::new(reservation))
    }
}

/// A flag that stops a statement from another thread or a signal handler.
#[derive(Debug, Clone, Default)]
pub struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    /// Asks the statement to stop; it does within a chunk's time.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
    /// Forgets an earlier request.
    pub fn clear(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
    /// True once asked to stop.
    #[inline]
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
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
