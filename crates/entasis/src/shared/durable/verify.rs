//! Whether the file is what it should be, while others go on writing to it.
//!
//! What a checkpoint gives up is written over by the next ones. So what is found counts if the state that was
//! looked at is still the newest one; else it is looked at once more, and at last with checkpoints kept
//! waiting.

use super::{Durable, lock};
use entasis_storage::file::Damage;
use entasis_vector::Result;

/// How often a state is looked at while checkpoints may come.
const TRIES: usize = 3;

impl Durable {
    /// What is damaged of the newest state. `go_on` is asked now and then with the share that is done.
    ///
    /// # Errors
    /// What `go_on` says.
    pub(in crate::shared) fn damage(&self, go_on: &mut dyn FnMut(f64) -> Result<()>) -> Result<Vec<Damage>> {
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
