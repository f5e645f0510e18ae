//! A file that is cut to what it needs.
//!
//! A checkpoint writes beside what it replaces, so the file is longest when it ends. The next one moves what
//! stands far behind to the pages that came free, and the end of the file is cut off; unless nothing has
//! changed, when there is none. So it is made in any case.

use super::{Durable, Running, lock};
use entasis_storage::Catalog;
use entasis_storage::checkpoint::{self, Moment};
use entasis_storage::file::State;
use entasis_vector::Result;
use std::sync::PoisonError;

/// Checkpoints that are made at most, each of which makes the file shorter.
const ROUNDS: usize = 4;

impl Durable {
    /// Makes the newest state that of the file, and then makes the file shorter as long as that helps.
    ///
    /// # Errors
    /// I/O.
    pub(in crate::shared) fn compact(&self, catalog: &Catalog) -> Result<()> {
        self.checkpoint(catalog)?;
        for _ in 0..ROUNDS {
            let (pages, _) = self.file.size();
            self.write_anew(catalog)?;
            if self.file.size().0 >= pages {
                break;
            }
        }
        Ok(())
    }

    /// A checkpoint, whether anything has changed or not, in turn with those that commits ask for.
    fn write_anew(&self, catalog: &Catalog) -> Result<()> {
        let upto = {
            let mut rounds = lock(&self.rounds);
            while rounds.is_running {
                rounds = self.ended.wait(rounds).unwrap_or_else(PoisonError::into_inner);
            }
            rounds.check()?;
            rounds.is_running = true;
            rounds.asked
        };
        let mut running = Running { durable: self, upto, result: None };
        let moment = Moment::take(catalog, || 0);
        let mut written = lock(&self.written);
        let new = checkpoint::checkpoint(&self.file, &moment, &written, State::Closed);
        let new = new.map(|new| *written = new);
        drop(written);
        running.result = Some(new.clone());
        new
    }
}
