//! A section with everything that its calls need, and the results of some of its rows.

use super::by_frame::Ready;
use super::counted::Counted;
use super::counting::Counting;
use super::distinct::DistinctFrames;
use super::extreme::ExtremeFrames;
use super::frame::Frames;
use super::layout::{Call, WindowLayout, WindowState};
use super::previous::Previous;
use super::range::{RangeKeys, RangeSpec};
use super::ranking::write_ntile;
use super::section::{Places, Section};
use super::summaries::Summaries;
use super::sums::{AdditiveResult, Sums, write_counts, write_sums};
use super::view::View;
use crate::context::QueryContext;
use crate::exec::operator::Tasks;
use crate::memory::Reservation;
use entasis_vector::{Error, Result, Vector};
use std::ops::Range;

/// See the module.
pub struct Prepared {
    /// The rows.
    pub section: Section,
    states: Vec<State>,
    /// By frame, the keys, if bounds are by value.
    keys: Vec<Option<RangeKeys>>,
    /// By call, what it knows about the rows, if it is computed frame by frame.
    ready: Vec<Option<Ready>>,
    memory: Reservation,
}

/// A [`WindowState`] of the section.
enum State {
    Counted(Counted),
    Sums(Sums),
    ExtremeFrames(ExtremeFrames),
    DistinctFrames(DistinctFrames),
}

impl State {
    fn bytes(&self) -> usize {
        match self {
            State::Counted(counted) => counted.bytes(),
            State::Sums(sums) => sums.bytes(),
            State::ExtremeFrames(extremes) => extremes.bytes(),
            State::DistinctFrames(distinct) => distinct.bytes(),
        }
    }
}

impl Prepared {
    /// Prepares `section`.
    ///
    /// # Errors
    /// Resource, if there is no memory for it; those of `tasks`.
    pub fn new(
        layout: &WindowLayout,
        section: Section,
        context: &QueryContext,
        tasks: &dyn Tasks,
    ) -> Result<Prepared> {
        let mut prepared = Prepared::start(layout, section, None, context, tasks)?;
        prepared.complete(layout, None, context, tasks)?;
        Ok(prepared)
    }

    /// Prepares what is needed to find frames; the gaps of `section` have their `summaries`.
    ///
    /// # Errors
    /// As for `new`.
    pub fn start(
        layout: &WindowLayout,
        section: Section,
        summaries: Option<&Summaries>,
        context: &QueryContext,
        tasks: &dyn Tasks,
    ) -> Result<Prepared> {
        let mut memory = Reservation::new(&context.memory);
        memory.resize(section.bytes())?;
        let mut keys = Vec::with_capacity(layout.frames.len());
        for (i, frame) in layout.frames.iter().enumerate() {
            let blocks = summaries.and_then(|summaries| summaries.keys(i));
            let read = |range: &RangeSpec| {
                RangeKeys::read(range, &layout.stored[range.column], &section, blocks, tasks)
            };
            let read = frame.range.as_ref().map(read).transpose()?;
            memory.resize(memory.bytes() + read.as_ref().map_or(0, RangeKeys::bytes))?;
            keys.push(read);
        }
        Ok(Prepared { section, states: Vec::new(), keys, ready: Vec::new(), memory })
    }

    /// Prepares the rest.
    ///
    /// # Errors
    /// As for `new`.
    pub fn complete(
        &mut self,
        layout: &WindowLayout,
        summaries: Option<&Summaries>,
        context: &QueryContext,
        tasks: &dyn Tasks,
    ) -> Result<()> {
        let memory = &mut self.memory;
        let section = &self.section;
        let mut used = memory.bytes();
        let mut reserve = |bytes: usize| {
            used += bytes;
            memory.resize(used)
        };
        let metas = &layout.stored;
        let mut states = Vec::with_capacity(layout.states.len());
        // Calls for distinct values come in pairs, a count and its sum.
        let mut previous: Option<(&Counting, Previous)> = None;
        for (i, spec) in layout.states.iter().enumerate() {
            let counting = spec.counting();
            if counting.distinct && previous.as_ref().is_none_or(|(of, _)| *of != counting) {
                previous = Some((counting, Previous::new(counting, metas, section, context, tasks)?));
            }
            let previous = previous.as_ref().filter(|_| counting.distinct).map(|(_, previous)| previous);
            let state = match spec {
                WindowState::Counted { lists, .. } => {
                    let blocks = summaries.and_then(|summaries| summaries.counts(i));
                    State::Counted(Counted::new(counting, *lists, section, previous, blocks, tasks)?)
                }
                WindowState::Sums(sums) => {
                    let blocks = summaries.and_then(|summaries| summaries.sums(i));
                    let meta = &metas[sums.column];
                    State::Sums(Sums::new(sums, meta, section, previous, blocks, tasks)?)
                }
                WindowState::DistinctFrames(distinct) => {
                    State::DistinctFrames(DistinctFrames::new(distinct, metas, section, context, tasks)?)
                }
                WindowState::ExtremeFrames(extremes) => {
                    let blocks = summaries.and_then(|summaries| summaries.extremes(i));
                    State::ExtremeFrames(ExtremeFrames::new(
                        extremes, metas, section, blocks, context, tasks,
                    )?)
                }
            };
            reserve(state.bytes() + previous.map_or(0, Previous::bytes))?;
            states.push(state);
        }
        let mut ready = Vec::with_capacity(layout.calls.len());
        for (i, (_, call)) in layout.calls.iter().enumerate() {
            let own = match call {
                Call::ByFrame(call) => {
                    let blocks = summaries.and_then(|summaries| summaries.states(i));
                    Some(call.prepare(metas, section, blocks, context, tasks)?)
                }
                _ => None,
            };
            reserve(own.as_ref().map_or(0, Ready::bytes))?;
            ready.push(own);
        }
        (self.states, self.ready) = (states, ready);
        Ok(())
    }

    /// The state that counts, if there is one.
    ///
    /// # Errors
    /// Internal, if it is another one.
    pub fn counted(&self, state: Option<usize>) -> Result<Option<&Counted>> {
        match state.map(|state| &self.states[state]) {
            None => Ok(None),
            Some(State::Counted(counted)) => Ok(Some(counted)),
            Some(_) => Err(mismatch()),
        }
    }

    fn sums(&self, state: usize) -> Result<&Sums> {
        match &self.states[state] {
            State::Sums(sums) => Ok(sums),
            _ => Err(mismatch()),
        }
    }

    /// Finds the places of `rows` and their frames.
    ///
    /// # Errors
    /// Input, if an offset is NULL or negative.
    pub fn find(&self, layout: &WindowLayout, rows: Range<usize>, scratch: &mut Scratch) -> Result<()> {
        scratch.places.find(&self.section, rows);
        scratch.frames.resize_with(layout.frames.len(), Frames::default);
        for ((frames, spec), keys) in scratch.frames.iter_mut().zip(&layout.frames).zip(&self.keys) {
            frames.find(spec, &self.section, &scratch.places, keys.as_ref())?;
        }
        Ok(())
    }

    /// Writes the results of all calls for `rows` to `out`, a vector per call.
    ///
    /// # Errors
    /// Those of the functions; interrupted.
    pub fn write(
        &self,
        layout: &WindowLayout,
        rows: Range<usize>,
        scratch: &mut Scratch,
        context: &QueryContext,
        out: &mut [Vector],
    ) -> Result<()> {
        self.find(layout, rows, scratch)?;
        let view = View { section: &self.section, places: &scratch.places, frames: &scratch.frames, context };
        for (((meta, call), ready), out) in layout.calls.iter().zip(&self.ready).zip(out) {
            if out.physical() != meta.physical {
                *out = Vector::new(meta.physical);
            }
            match call {
                Call::Ranking(ranking) => ranking.write(&view, out),
                Call::Ntile(buckets) => write_ntile(buckets, &view, out)?,
                Call::Shift(shift) => shift.write(self.counted(shift.counted)?, &view, out)?,
                Call::Pick(pick) => pick.write(self.counted(pick.counted)?, &view, out)?,
                Call::Additive(call) => {
                    let counted = self.counted(call.counted)?;
                    match call.result {
                        AdditiveResult::Count => write_counts(counted, call.frame, &view, out),
                        AdditiveResult::Sum(sums) => {
                            write_sums(self.sums(sums)?, counted, call.frame, None, meta, &view, out)?;
                        }
                        AdditiveResult::Mean(sums, unit) => {
                            write_sums(self.sums(sums)?, counted, call.frame, Some(unit), meta, &view, out)?;
                        }
                    }
                }
                Call::FrameExtreme(call) => {
                    let State::ExtremeFrames(extremes) = &self.states[call.state] else {
                        return Err(mismatch());
                    };
                    extremes.write(self.counted(call.counted)?, call.frame, meta.physical, &view, out);
                }
                Call::DistinctFrames { state, frame, result } => {
                    let State::DistinctFrames(distinct) = &self.states[*state] else {
                        return Err(mismatch());
                    };
                    let frames = &view.frames[*frame];
                    match result {
                        AdditiveResult::Count => distinct.write_counts(frames, out),
                        AdditiveResult::Sum(_) => distinct.write_sums(frames, None, meta, out)?,
                        AdditiveResult::Mean(_, unit) => {
                            distinct.write_sums(frames, Some(*unit), meta, out)?
                        }
                    }
                }
                Call::ByFrame(call) => {
                    call.write(ready.as_ref().ok_or_else(mismatch)?, &view, out)?;
                }
            }
        }
        Ok(())
    }
}

fn mismatch() -> Error {
    Error::internal("a window function's state is another one's")
}

/// Memory of one worker.
#[derive(Default)]
pub struct Scratch {
    /// The places of the rows written last.
    pub places: Places,
    frames: Vec<Frames>,
}

impl Scratch {
    /// The places and frames found last.
    pub fn found(&self) -> (&Places, &[Frames]) {
        (&self.places, &self.frames)
    }
}
