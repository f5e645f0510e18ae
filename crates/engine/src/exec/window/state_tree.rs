//! A segment tree of another library's states: each node has seen the rows of [`FAN_OUT`] of the level below, the lowest ones so many rows.
//! For aggregates whose states can be copied ([`GroupStates::add_copies`]).
//!
//! The frames of a chunk are put together side by side, a state each: first their rows up to the next node, then nodes up to
//! the next node above, and so on until nothing is left in between; then back down. So each state sees the rows of its frame
//! in their order.

use super::by_frame::Fold;
use crate::plan::{ExternalAggregate, GroupStates};
use crate::sync::{Mutex, PoisonError};
use entasis_vector::Result;
use std::ops::Range;

/// Rows, or nodes, of one node.
pub const FAN_OUT: usize = 16;

/// See the module.
pub struct StateTree {
    /// Locked by whoever adds copies.
    levels: Vec<Mutex<Box<dyn GroupStates>>>,
    bytes: usize,
}

/// A stretch of rows, or of nodes, that a frame is still to see.
#[derive(Clone)]
struct Part {
    frame: u32,
    range: Range<usize>,
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

    /// The tree over `nodes` states, each of which has seen [`FAN_OUT`] rows.
    ///
    /// # Errors
    /// Those of the states.
    pub fn new(function: &dyn ExternalAggregate, states: Box<dyn GroupStates>, mut nodes: usize) -> Result<StateTree> {
        let mut levels = vec![states];
        while nodes > FAN_OUT {
            let ids: Vec<u32> = (0..nodes as u32).collect();
            let map: Vec<u32> = ids.iter().map(|id| id / FAN_OUT as u32).collect();
            nodes = nodes.div_ceil(FAN_OUT);
            let mut level = function.state()?;
            level.add_copies(&**levels.last().expect("there is one"), &ids, &map, nodes)?;
            levels.push(level);
        }
        let bytes = levels.iter().map(|level| level.bytes()).sum();
        Ok(StateTree { levels: levels.into_iter().map(Mutex::new).collect(), bytes })
    }

    /// Lets the states of `fold` see the rows at these positions, of each frame one stretch at most.
    ///
    /// # Errors
    /// Those of the states; interrupted.
    pub fn feed(&self, frames: impl Iterator<Item = (u32, Range<usize>)>, fold: &mut Fold<'_>) -> Result<()> {
        let mut parts: Vec<Part> = frames.map(|(frame, range)| Part { frame, range }).collect();
        // By level, from the rows on: what comes at the ends.
        let mut ends: Vec<Vec<Part>> = Vec::new();
        for level in 0..=self.levels.len() {
            if parts.is_empty() {
                break;
            }
            let (mut now, mut above, mut end) = (Vec::new(), Vec::new(), Vec::new());
            for Part { frame, range } in parts {
                if range.len() < 2 * FAN_OUT || level == self.levels.len() {
                    now.push(Part { frame, range });
                    continue;
                }
                let (first, last) = (range.start.next_multiple_of(FAN_OUT), range.end / FAN_OUT * FAN_OUT);
                now.push(Part { frame, range: range.start..first });
                above.push(Part { frame, range: first / FAN_OUT..last / FAN_OUT });
                end.push(Part { frame, range: last..range.end });
            }
            self.see(level, now, fold)?;
            ends.push(end);
            parts = above;
        }
        for (level, end) in ends.into_iter().enumerate().rev() {
            self.see(level, end, fold)?;
        }
        Ok(())
    }

    /// Lets states see rows (level 0) or nodes.
    fn see(&self, level: usize, parts: Vec<Part>, fold: &mut Fold<'_>) -> Result<()> {
        let Some(level) = level.checked_sub(1) else {
            for Part { frame, range } in parts {
                for position in range {
                    fold.add_position(position, frame)?;
                }
            }
            return Ok(());
        };
        let (mut ids, mut map) = (Vec::new(), Vec::new());
        for Part { frame, range } in parts {
            map.extend(std::iter::repeat_n(frame, range.len()));
            ids.extend(range.map(|node| node as u32));
        }
        let states = self.levels[level].lock().unwrap_or_else(PoisonError::into_inner);
        fold.add_copies(&**states, &ids, &map)
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}
