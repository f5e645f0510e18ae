//! A segment tree of another library's states: each node has seen the rows of [`FAN_OUT`] of the level below,
//! the lowest ones so many rows. For aggregates whose states can be copied ([`GroupStates::add_copies`]).
//!
//! The frames of a chunk are built in parallel, a state each: first their rows up to the next node, then
//! nodes up to the next node above, and so on until nothing is left in between; then back down. So each state
//! sees the rows of its frame in their order.

use crate::memory::Reservation;
use crate::sync::{Mutex, MutexGuard, lock};
use entasis_vector::Result;
use entasis_vector::aggregate::{ExternalAggregate, GroupStates};
use std::ops::Range;

/// Rows, or nodes, of one node.
pub const FAN_OUT: usize = 16;

/// See the module.
pub struct StateTree {
    /// Locked while copies are added.
    levels: Vec<Mutex<Box<dyn GroupStates>>>,
    bytes: usize,
}

/// A stretch of rows, or of nodes, that a frame has yet to see.
pub struct FrameRest {
    /// The frame.
    pub frame: u32,
    /// Positions, or numbers of nodes.
    pub range: Range<usize>,
}

impl StateTree {
    /// True if the states of `function` can be copied.
    ///
    /// # Errors
    /// Those of making states.
    pub fn is_possible(function: &dyn ExternalAggregate) -> Result<bool> {
        let none = function.state()?;
        function.state()?.add_copies(&*none, &[], &[], 0)
    }

    /// The tree over `nodes` states, each of which has seen [`FAN_OUT`] rows. Its bytes are reserved level by
    /// level.
    ///
    /// # Errors
    /// Those of the states; resource.
    pub fn new(
        function: &dyn ExternalAggregate,
        states: Box<dyn GroupStates>,
        mut nodes: usize,
        memory: &mut Reservation,
    ) -> Result<StateTree> {
        let mut bytes = states.bytes();
        memory.resize(bytes)?;
        let mut levels = vec![states];
        while nodes > FAN_OUT {
            let ids: Vec<u32> = (0..nodes as u32).collect();
            let map: Vec<u32> = ids.iter().map(|id| id / FAN_OUT as u32).collect();
            nodes = nodes.div_ceil(FAN_OUT);
            let mut level = function.state()?;
            level.add_copies(&**levels.last().expect("there is one"), &ids, &map, nodes)?;
            bytes += level.bytes();
            memory.resize(bytes)?;
            levels.push(level);
        }
        Ok(StateTree { levels: levels.into_iter().map(Mutex::new).collect(), bytes })
    }

    /// The parts of which frames are built, at most one stretch of positions for each: levels, 0 for the
    /// rows, with the stretches to be seen, in that order.
    pub fn cut(&self, frames: impl Iterator<Item = (u32, Range<usize>)>) -> Vec<(usize, Vec<FrameRest>)> {
        let mut parts: Vec<FrameRest> = frames.map(|(frame, range)| FrameRest { frame, range }).collect();
        let mut steps = Vec::new();
        // By level, from the rows on: the stretches at the ends.
        let mut ends: Vec<(usize, Vec<FrameRest>)> = Vec::new();
        for level in 0..=self.levels.len() {
            if parts.is_empty() {
                break;
            }
            let (mut now, mut above, mut end) = (Vec::new(), Vec::new(), Vec::new());
            for FrameRest { frame, range } in parts {
                if range.len() < 2 * FAN_OUT || level == self.levels.len() {
                    now.push(FrameRest { frame, range });
                    continue;
                }
                let (first, last) = (range.start.next_multiple_of(FAN_OUT), range.end / FAN_OUT * FAN_OUT);
                now.push(FrameRest { frame, range: range.start..first });
                above.push(FrameRest { frame, range: first / FAN_OUT..last / FAN_OUT });
                end.push(FrameRest { frame, range: last..range.end });
            }
            steps.push((level, now));
            ends.push((level, end));
            parts = above;
        }
        steps.extend(ends.into_iter().rev());
        steps
    }

    /// The nodes of a level above the rows, to be copied.
    pub fn nodes(&self, level: usize) -> MutexGuard<'_, Box<dyn GroupStates>> {
        lock(&self.levels[level - 1])
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}
