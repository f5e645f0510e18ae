//! Turns of workers that load partitions: memory is handed out, and workers wait for each other.

use crate::context::QueryContext;
use crate::exec::join::tuning::ALONE_PART;
use crate::memory::Reservation;
use crate::sync::{Condvar, Mutex, MutexGuard, PoisonError, lock};
use entasis_vector::Result;
use std::time::Duration;

/// Hands out the memory for partitions.
#[derive(Default)]
pub(super) struct Turns {
    running: Mutex<usize>,
    ended: Condvar,
}

/// The right to use memory for a partition. It must be dropped after everything in this memory.
pub(super) struct Turn<'a> {
    turns: &'a Turns,
    /// What it may use.
    pub(super) memory: Reservation,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // The memory is released first, so that a worker that wakes up finds it.
        self.memory = Reservation::default();
        *lock(&self.turns.running) -= 1;
        self.turns.ended.notify_all();
    }
}

impl Turns {
    /// Reserves `bytes`, waiting for other workers; `None` if there is not enough even when no other has any.
    pub(super) fn take(&self, bytes: usize, context: &QueryContext) -> Result<Option<Turn<'_>>> {
        let mut running = lock(&self.running);
        loop {
            context.check()?;
            let mut memory = Reservation::new(&context.memory);
            if bytes <= context.memory.free() / ALONE_PART.1 * ALONE_PART.0 && memory.resize(bytes).is_ok() {
                *running += 1;
                return Ok(Some(Turn { turns: self, memory }));
            }
            if *running == 0 {
                return Ok(None);
            }
            running = self.wait(running);
        }
    }

    /// Waits until no other worker has memory, and takes half of what is free, at most `most`.
    pub(super) fn take_half(&self, most: usize, context: &QueryContext) -> Result<Turn<'_>> {
        let mut running = lock(&self.running);
        while *running > 0 {
            context.check()?;
            running = self.wait(running);
        }
        let mut memory = Reservation::new(&context.memory);
        memory.resize((context.memory.free() / 2).min(most))?;
        *running += 1;
        Ok(Turn { turns: self, memory })
    }

    /// Waits for another worker to finish, with a timeout, since the statement may be cancelled.
    fn wait<'a>(&self, running: MutexGuard<'a, usize>) -> MutexGuard<'a, usize> {
        self.ended.wait_timeout(running, Duration::from_millis(20)).unwrap_or_else(PoisonError::into_inner).0
    }
}
