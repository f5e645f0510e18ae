//! What a receiver of results implements.

use entasis_vector::{Chunk, Result};

/// Receives the rows of a statement.
pub trait ResultSink: Send + Sync {
    /// What one worker pushes to. `ordered` results come from a single worker, in order.
    fn worker(&self) -> Result<Box<dyn ResultWorker>>;
}

/// One worker's end of a result.
pub trait ResultWorker: Send {
    /// The next chunks are of morsel `morsel`; sorting by it restores the order of the source.
    fn start_morsel(&mut self, morsel: u64) {
        let _ = morsel;
    }
    /// Takes the rows of `chunk`, which has the plan's output columns in order. What is kept must be copied.
    ///
    /// # Errors
    /// Whatever the receiver raises; it ends the statement.
    fn push(&mut self, chunk: &Chunk) -> Result<()>;
    /// No more rows come from this worker.
    fn finish(&mut self) -> Result<()>;
}
