//! Where the rows of a window go in: a [sort](crate::exec::sort) keeps them and puts them in order.

use super::morsels::{Ready, Shared};
use super::stream::RowsInOrder;
use crate::exec::operator::{Sink, SinkWorker, Tasks};
use crate::exec::sort::{Outcome, SortSink};
use entasis_vector::expr::Program;
use entasis_vector::{Error, Result};
use std::sync::Arc;

/// Keeps the rows of a window, puts them in order, and cuts them into morsels.
pub struct WindowSink {
    /// The sort that keeps the rows.
    pub rows: SortSink,
    /// What all workers share.
    pub shared: Arc<Shared>,
}

impl Sink for WindowSink {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        self.rows.worker()
    }

    fn programs(&self) -> Vec<&Program> {
        self.rows.programs()
    }

    fn finish(&self, tasks: &dyn Tasks) -> Result<()> {
        let shared = &self.shared;
        let ready = match shared.sort.order(tasks)? {
            Outcome::InMemory(ordered, memory) => shared.divide(*ordered, memory, tasks)?,
            Outcome::InFiles(merge) => Ready::streamed(RowsInOrder::Merge(merge, 0, shared.sort.clone())),
        };
        shared.ready.set(ready).map_err(|_| Error::internal("a window was finished twice"))
    }
}
