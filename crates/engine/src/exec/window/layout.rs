//! The layout of a window: which columns are kept with the rows, what is prepared for a section, and how
//! calls are computed from it. It is made by [decomposing](super::decompose) the calls.
//!
//! | call | how |
//! |---|---|
//! | ranks, shares, buckets | [`super::ranking`] |
//! | `lag`, `lead` | [`super::shift`] |
//! | values of the frame, `any_value` | [`super::value`] |
//! | `count`, `sum`, `avg`; of distinct values, if frames begin with their partitions | [`super::sums`] |
//! | the same otherwise, of small integers | [`super::distinct`] |
//! | `min`, `max`, `bool_and`, `bool_or` | [`super::extreme`] |
//! | all others | [`super::by_frame`] |

use super::by_frame::ByFrame;
use super::counting::Counting;
use super::distinct::DistinctSpec;
use super::extreme::{ExtremeSpec, FrameExtreme};
use super::frame::FrameSpec;
use super::operand::Operand;
use super::ranking::Ranking;
use super::shift::Shift;
use super::sums::{Additive, AdditiveResult, SumSpec};
use super::value::Pick;
use crate::exec::sort::firsts::Firsts;
use crate::plan::{SortKey, Top};
use entasis_vector::expr::ColumnMeta;

/// The most memory that a row takes while the rows of a section are sorted by a number: its copy, what orders
/// it, its place and its rank.
const SORTED_BYTES: usize = 56;

/// How a window works. Made once, shared by all workers.
#[derive(Debug)]
pub struct WindowLayout {
    /// The columns kept with the rows: output columns, then those that functions read. Decimals may be wider
    /// than the expressions that compute them.
    pub stored: Vec<ColumnMeta>,
    /// The number of output columns.
    pub passed: usize,
    /// The order in which rows are kept: partition by partition, each in its order.
    pub keys: Vec<SortKey>,
    /// The columns that a partition's rows agree in.
    pub partition: Vec<usize>,
    /// The columns that peers agree in; `None` if peers are not needed.
    pub peers: Option<Vec<usize>>,
    /// All frames.
    pub frames: Vec<FrameSpec>,
    /// All states.
    pub states: Vec<WindowState>,
    /// The calls, each with the column of its result.
    pub calls: Vec<(ColumnMeta, Call)>,
    /// The calls that need all rows of their frames, rather than summaries of some of them: the name of the
    /// function, and the frame.
    pub readers: Vec<(String, usize)>,
    /// Only the first rows of partitions come out.
    pub top: Option<Top>,
    /// The columns that come out: those of the input, then those of the calls.
    pub output: Vec<ColumnMeta>,
}

/// What is prepared for a section, for one call or several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WindowState {
    /// Rows that count, and where they are.
    Counted {
        /// Which rows count.
        counting: Counting,
        /// True if their positions are needed.
        lists: bool,
    },
    /// Sums.
    Sums(SumSpec),
    /// Extremes.
    ExtremeFrames(ExtremeSpec),
    /// Distinct values, in frames that move at both ends.
    DistinctFrames(DistinctSpec),
}

impl WindowState {
    /// The rows that count.
    pub fn counting(&self) -> &Counting {
        match self {
            WindowState::Counted { counting, .. } => counting,
            WindowState::DistinctFrames(distinct) => &distinct.counting,
            WindowState::Sums(sums) => &sums.counting,
            WindowState::ExtremeFrames(extremes) => &extremes.counting,
        }
    }
}

/// How a call is computed. Numbers are those of states and frames.
#[derive(Debug)]
pub enum Call {
    /// A place in the partition.
    Ranking(Ranking),
    /// A bucket.
    Ntile(Operand),
    /// The value of a row at a given distance.
    Shift(Shift),
    /// The value of a row of the frame.
    Pick(Pick),
    /// A count, a sum or a mean.
    Additive(Additive),
    /// A least or largest value.
    FrameExtreme(FrameExtreme),
    /// A count, a sum or a mean of distinct values.
    DistinctFrames {
        /// The state that knows equal rows, and their sums.
        state: usize,
        /// The frame.
        frame: usize,
        /// The column of the result; the state of a sum is this one.
        result: AdditiveResult,
    },
    /// Any aggregate.
    ByFrame(Box<ByFrame>),
}

impl WindowLayout {
    /// The frame of `call`, if it needs all rows of it.
    pub fn reads_all(&self, call: &Call) -> Option<usize> {
        let is_distinct = |state: usize| self.states[state].counting().distinct;
        match call {
            Call::DistinctFrames { frame, .. } => Some(*frame),
            Call::ByFrame(call) => call.reads_all().then_some(call.frame),
            Call::Additive(call) => {
                let sums = match call.result {
                    AdditiveResult::Count => None,
                    AdditiveResult::Sum(state) | AdditiveResult::Mean(state, _) => Some(state),
                };
                call.counted.into_iter().chain(sums).any(is_distinct).then_some(call.frame)
            }
            Call::Ranking(_) | Call::Ntile(_) | Call::Shift(_) | Call::Pick(_) | Call::FrameExtreme(_) => {
                None
            }
        }
    }

    /// True if a call, a frame or the end of a partition depends on peers.
    pub fn needs_peers(&self) -> bool {
        let of_call = |(_, call): &(_, Call)| matches!(call, Call::Ranking(ranking) if ranking.needs_peers());
        self.calls.iter().any(of_call)
            || self.frames.iter().any(FrameSpec::needs_peers)
            || self.top.is_some_and(|top| top.with_peers)
    }

    /// The most memory that a row of a section takes besides its columns, without strings, also while it is
    /// prepared.
    pub fn prepared_bytes(&self) -> usize {
        let state = |state: &WindowState| {
            let own = match state {
                WindowState::Counted { .. } => 8,
                WindowState::Sums(_) => 36,
                WindowState::ExtremeFrames(extremes) => 8 + self.stored[extremes.column].physical.width(),
                WindowState::DistinctFrames(distinct) if distinct.sums => SORTED_BYTES + 140,
                WindowState::DistinctFrames(_) => SORTED_BYTES + 16,
            };
            let is_distinct = !matches!(state, WindowState::DistinctFrames(_)) && state.counting().distinct;
            own + if is_distinct { SORTED_BYTES } else { 0 }
        };
        let call =
            |(_, call): &(ColumnMeta, Call)| if matches!(call, Call::ByFrame(_)) { SORTED_BYTES } else { 0 };
        let states: usize = self.states.iter().map(state).sum();
        let calls: usize = self.calls.iter().map(call).sum();
        let keys = self.frames.iter().filter(|frame| frame.range.is_some()).count() * 17;
        states + calls + keys + if self.peers.is_some() { 8 } else { 0 }
    }

    /// The rows that are enough, if only the first ones of partitions come out and the others are not needed.
    pub fn firsts(&self) -> Option<Firsts> {
        let looks_no_further = |(_, call): &(_, Call)| match call {
            Call::Ranking(ranking) => !ranking.needs_all(),
            _ => false,
        };
        let top = self.top.filter(|_| self.calls.iter().all(looks_no_further))?;
        Some(Firsts { keys: self.partition.len(), rows: top.rows, with_peers: top.with_peers })
    }
}
