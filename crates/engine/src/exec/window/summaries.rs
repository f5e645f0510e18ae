//! Summaries of the blocks of a [stored partition](super::stored_partition), for each state and call of a
//! layout: the number of rows that count, a sum, an extreme, or a state of an aggregate.
//!
//! Each block is summarized when it is written, by the code that prepares sections: a block is a section of
//! its own. The summary of a [gap](super::gaps) is folded from those of its blocks.

use super::block_states::BlockStates;
use super::counted::{BlockCounts, Counted};
use super::extreme::{BlockExtremes, ExtremeFrames, GapExtremes};
use super::kept::KeptOrder;
use super::layout::{Call, WindowLayout, WindowState};
use super::range::RangeKeys;
use super::section::Section;
use super::sums::{BlockSums, GapSums, Sums};
use crate::context::QueryContext;
use crate::exec::operator::Tasks;
use entasis_vector::Result;
use std::sync::Arc;

/// See the module.
pub struct Summaries {
    /// The summaries of each state; `None` where distinct values matter.
    states: Vec<Option<Summary>>,
    /// By call, the states of aggregates that are computed by frame.
    calls: Vec<Option<BlockStates>>,
    /// By frame, the keys of the first rows of blocks, if bounds are by value.
    keys: Vec<Option<Arc<RangeKeys>>>,
}

enum Summary {
    Counts(Arc<BlockCounts>),
    Sums(GapSums),
    Extremes(GapExtremes),
}

impl Summaries {
    /// The counts of a state.
    pub fn counts(&self, state: usize) -> Option<&Arc<BlockCounts>> {
        match &self.states[state] {
            Some(Summary::Counts(counts)) => Some(counts),
            _ => None,
        }
    }

    /// The sums of a state.
    pub fn sums(&self, state: usize) -> Option<&GapSums> {
        match &self.states[state] {
            Some(Summary::Sums(sums)) => Some(sums),
            _ => None,
        }
    }

    /// The extremes of a state.
    pub fn extremes(&self, state: usize) -> Option<&GapExtremes> {
        match &self.states[state] {
            Some(Summary::Extremes(extremes)) => Some(extremes),
            _ => None,
        }
    }

    /// The states of a call.
    pub fn states(&self, call: usize) -> Option<&BlockStates> {
        self.calls[call].as_ref()
    }

    /// The keys of a frame.
    pub fn keys(&self, frame: usize) -> Option<&Arc<RangeKeys>> {
        self.keys[frame].as_ref()
    }
}

/// Collects the summaries of blocks.
pub struct Summarizer<'a> {
    layout: &'a WindowLayout,
    context: &'a QueryContext,
    states: Vec<Option<Taking>>,
    calls: Vec<Option<BlockStates>>,
}

enum Taking {
    Counts(BlockCounts),
    Sums(BlockSums),
    Extremes(BlockExtremes),
}

impl<'a> Summarizer<'a> {
    /// Summaries of no blocks yet.
    ///
    /// # Errors
    /// Those of making states.
    pub fn new(layout: &'a WindowLayout, context: &'a QueryContext) -> Result<Summarizer<'a>> {
        let metas = &layout.stored;
        let state = |state: &WindowState| {
            let is_distinct = state.counting().distinct;
            (!is_distinct).then_some(state).and_then(|state| match state {
                WindowState::Counted { .. } => Some(Taking::Counts(BlockCounts::default())),
                WindowState::Sums(sums) => Some(Taking::Sums(BlockSums::new(&metas[sums.column]))),
                WindowState::ExtremeFrames(extremes) => {
                    Some(Taking::Extremes(BlockExtremes::new(&metas[extremes.column])))
                }
                WindowState::DistinctFrames(_) => None,
            })
        };
        let call = |(_, call): &(_, Call)| match call {
            Call::ByFrame(call) => call.block_states(),
            _ => Ok(None),
        };
        let states = layout.states.iter().map(state).collect();
        Ok(Summarizer {
            layout,
            context,
            states,
            calls: layout.calls.iter().map(call).collect::<Result<_>>()?,
        })
    }

    /// Adds the summaries of a block, which is all of `section`.
    ///
    /// # Errors
    /// Those of the functions and of `tasks`.
    pub fn push(&mut self, section: &Section, tasks: &dyn Tasks) -> Result<()> {
        let layout = self.layout;
        let metas = &layout.stored;
        for (spec, taking) in layout.states.iter().zip(&mut self.states) {
            match (spec, taking) {
                (WindowState::Counted { counting, .. }, Some(Taking::Counts(counts))) => {
                    counts.push(&Counted::new(counting, false, section, None, None, tasks)?);
                }
                (WindowState::Sums(sums), Some(Taking::Sums(blocks))) => {
                    blocks.push(&Sums::new(sums, &metas[sums.column], section, None, None, tasks)?);
                }
                (WindowState::ExtremeFrames(extremes), Some(Taking::Extremes(blocks))) => {
                    blocks.push(&ExtremeFrames::new(extremes, metas, section, None, self.context, tasks)?);
                }
                _ => {}
            }
        }
        for ((_, call), blocks) in layout.calls.iter().zip(&mut self.calls) {
            if let (Call::ByFrame(call), Some(blocks)) = (call, blocks) {
                call.push_block(blocks, section, self.context, tasks)?;
            }
        }
        Ok(())
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        let state = |taking: &Taking| match taking {
            Taking::Counts(counts) => counts.bytes(),
            // With the trees above them.
            Taking::Sums(sums) => 2 * sums.bytes(),
            Taking::Extremes(extremes) => 2 * extremes.bytes(),
        };
        let states: usize = self.states.iter().flatten().map(state).sum();
        states + self.calls.iter().flatten().map(BlockStates::bytes).sum::<usize>()
    }

    /// Completes the summaries once all blocks are added; `firsts` are their first rows.
    ///
    /// # Errors
    /// Those of `tasks`.
    pub fn finish(self, firsts: &Arc<KeptOrder>, tasks: &dyn Tasks) -> Result<Summaries> {
        let layout = self.layout;
        let mut states = Vec::with_capacity(self.states.len());
        for (spec, taking) in layout.states.iter().zip(self.states) {
            states.push(match (taking, spec) {
                (Some(Taking::Counts(counts)), _) => Some(Summary::Counts(Arc::new(counts))),
                (Some(Taking::Sums(sums)), _) => Some(Summary::Sums(sums.finish(tasks)?)),
                (Some(Taking::Extremes(extremes)), WindowState::ExtremeFrames(spec)) => {
                    Some(Summary::Extremes(extremes.finish(spec.largest, tasks)?))
                }
                _ => None,
            });
        }
        let firsts = Section::new(firsts.clone(), 0..firsts.len(), vec![0], None, tasks)?;
        let key = |frame: &super::frame::FrameSpec| {
            let range = frame.range.as_ref();
            let read = |range| RangeKeys::read(range, &layout.stored[range.column], &firsts, None, tasks);
            range.map(read).transpose().map(|keys| keys.map(Arc::new))
        };
        let keys = layout.frames.iter().map(key).collect::<Result<_>>()?;
        Ok(Summaries { states, calls: self.calls, keys })
    }
}
