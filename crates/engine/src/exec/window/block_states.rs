//! The states of the blocks of a stored partition, of which gaps take copies.

use super::fold::not_copied;
use super::gaps::Gaps;
use crate::sync::{Mutex, lock};
use entasis_vector::Result;
use entasis_vector::aggregate::{ExternalAggregate, GroupStates};

/// See the module.
pub struct BlockStates {
    /// Locked while copies are added.
    states: Mutex<Box<dyn GroupStates>>,
    blocks: u32,
}

impl BlockStates {
    /// States of no blocks yet.
    ///
    /// # Errors
    /// Those of making states.
    pub fn new(function: &dyn ExternalAggregate) -> Result<BlockStates> {
        Ok(BlockStates { states: Mutex::new(function.state()?), blocks: 0 })
    }

    /// Adds a block, whose state is the only one of `block`.
    ///
    /// # Errors
    /// Those of the states.
    pub fn push(&mut self, block: &dyn GroupStates) -> Result<()> {
        self.blocks += 1;
        let own = lock(&self.states).add_copies(block, &[0], &[self.blocks - 1], self.blocks as usize);
        if own? { Ok(()) } else { Err(not_copied()) }
    }

    /// For each gap, the state of its blocks.
    ///
    /// # Errors
    /// Those of the states.
    pub fn of_gaps(&self, function: &dyn ExternalAggregate, gaps: &Gaps) -> Result<Box<dyn GroupStates>> {
        let count = gaps.all().count();
        let mut states = function.state()?;
        for (gap, (_, blocks)) in gaps.all().enumerate() {
            let ids: Vec<u32> = blocks.clone().map(|block| block as u32).collect();
            if !states.add_copies(&**lock(&self.states), &ids, &vec![gap as u32; ids.len()], count)? {
                return Err(not_copied());
            }
        }
        Ok(states)
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        lock(&self.states).bytes()
    }
}
