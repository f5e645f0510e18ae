//! Verifies the file while others go on writing to it.
//!
//! Later checkpoints overwrite what a checkpoint frees. So damage counts only if the verified state is still
//! the newest one; otherwise verification is repeated, the last time with checkpoints held up.

use super::{Durable, lock};
use entasis_storage::file::Damage;
use entasis_vector::Result;

/// How often a state is verified while checkpoints may be made.
const TRIES: usize = 3;

impl Durable {
    /// What is wrong with the use of the file's pages, by what is known of them in memory: to be asked before
    /// a checkpoint writes over pages that are in use, and free by the map that was read.
    pub(in crate::state) fn misused(&self) -> Vec<Damage> {
        let written = lock(&self.written);
        self.file.misused(&written.reached())
    }

    /// The damage in the newest state. Calls `go_on` now and then with the share that is done.
    ///
    /// # Errors
    /// Those of `go_on`.
    pub(in crate::state) fn damage(&self, go_on: &mut dyn FnMut(f64) -> Result<()>) -> Result<Vec<Damage>> {
        let mut tries = 1;
        loop {
            let written = lock(&self.written);
            let (header, extents) = (self.file.header(), written.reached());
            let held = (tries > TRIES).then_some(written);
            let all = extents.len().max(1) as f64;
            let found = self.file.damage(&header, &extents, &mut |done| go_on(done as f64 / all))?;
            if found.is_empty() || held.is_some() || self.file.header().number == header.number {
                return Ok(found);
            }
            tries += 1;
        }
    }
}
