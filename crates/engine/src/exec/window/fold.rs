//! Folds the rows of frames into states of an aggregation, one for each frame. Rows reach the states a chunk
//! at a time, and what the states take is reserved as they grow.

use super::section::Section;
use super::state_tree::{FrameRest, StateTree};
use crate::context::QueryContext;
use crate::exec::aggregate::feed::{Feeder, Groups};
use crate::exec::aggregate::layout::{AggregateLayout, ResultKind};
use crate::exec::aggregate::result::write_result;
use crate::exec::aggregate::state::State;
use crate::memory::Reservation;
use crate::sync::{Mutex, PoisonError, lock};
use entasis_vector::aggregate::GroupStates;
use entasis_vector::expr::Machine;
use entasis_vector::{CHUNK_ROWS, Chunk, Error, PhysicalType, Result, Selection, Vector};
use std::ops::Range;

/// Bytes of states that need not be reserved.
const LITTLE: usize = 64 << 10;

/// The aggregation of argument columns.
#[derive(Debug)]
pub struct FoldSpec {
    /// The aggregation.
    pub layout: AggregateLayout,
    /// The argument columns.
    pub columns: Vec<usize>,
    /// Their physical types.
    pub types: Vec<PhysicalType>,
}

/// What the positions of a section stand for: rows that count or do not, and gaps.
#[derive(Default)]
pub struct Inputs {
    /// Whether the row at a position counts; empty if all do.
    pub counts: Vec<bool>,
    /// For each gap of the section, the state of its blocks.
    pub gaps: Option<Mutex<Box<dyn GroupStates>>>,
}

impl Inputs {
    /// True if the row at a position counts.
    #[inline]
    pub fn is_counted(&self, position: usize) -> bool {
        self.counts.is_empty() || self.counts[position]
    }
}

/// See the module.
pub struct Fold<'a> {
    spec: &'a FoldSpec,
    inputs: &'a Inputs,
    section: &'a Section,
    context: &'a QueryContext,
    /// The states of the frames, and how many frames there are.
    states: Vec<State>,
    frames: usize,
    /// What the states take.
    memory: Reservation,
    waiting: WaitingRows,
    feeder: Feeder,
}

/// Rows on their way to the states.
struct WaitingRows {
    /// Their ids.
    ids: Vec<u32>,
    /// Their frames.
    groups: Vec<u32>,
    /// Their arguments, and what is computed of these.
    vectors: Vec<Vector>,
    chunk: Chunk,
    computed: Chunk,
    machine: Option<Machine>,
}

impl<'a> Fold<'a> {
    /// No rows of so many frames yet.
    ///
    /// # Errors
    /// Those of making states.
    pub fn new(
        spec: &'a FoldSpec,
        inputs: &'a Inputs,
        section: &'a Section,
        context: &'a QueryContext,
        frames: usize,
    ) -> Result<Fold<'a>> {
        let layout = &spec.layout;
        let states = layout.states.iter().map(|state| State::new(&state.kind, state.argument.as_ref()));
        let mut states = states.collect::<Result<Vec<State>>>()?;
        states.iter_mut().for_each(|state| state.resize(frames));
        for (state, kept) in states.iter_mut().zip(&layout.states) {
            if let State::External(state) = state {
                // The groups exist even if no row counts.
                let types = if kept.argument.is_some() { &spec.types[..] } else { &[] };
                let none: Vec<Vector> = types.iter().map(|ty| Vector::new(*ty)).collect();
                lock(state).update(&none, &[], 0, frames)?;
            }
        }
        let waiting = WaitingRows {
            ids: Vec::with_capacity(CHUNK_ROWS),
            groups: Vec::with_capacity(CHUNK_ROWS),
            vectors: spec.types.iter().map(|ty| Vector::new(*ty)).collect(),
            chunk: Chunk::new(),
            computed: Chunk::new(),
            machine: layout.program.clone().map(Machine::new),
        };
        let memory = Reservation::new(&context.memory);
        Ok(Fold {
            spec,
            inputs,
            section,
            context,
            states,
            frames,
            memory,
            waiting,
            feeder: Feeder::default(),
        })
    }

    /// Adds the row at `position` to a frame, if it counts.
    ///
    /// # Errors
    /// Those of the states; interrupted.
    #[inline]
    pub fn add_position(&mut self, position: usize, frame: u32) -> Result<()> {
        if let (Some(gaps), Some(states)) = (self.section.gaps(), &self.inputs.gaps)
            && gaps.at(position).is_some()
        {
            let gap = gaps.within(0..position).count() as u32;
            return self.add_copies(&**lock(states), &[gap], &[frame]);
        }
        if self.inputs.is_counted(position) {
            self.add(self.section.id(position as u32), frame as usize)
        } else {
            Ok(())
        }
    }

    /// Feeds the frames the rows at these positions, at most one stretch for each frame, by the nodes of
    /// `tree`.
    ///
    /// # Errors
    /// Those of the states; interrupted.
    pub fn add_frames(
        &mut self,
        tree: &StateTree,
        frames: impl Iterator<Item = (u32, Range<usize>)>,
    ) -> Result<()> {
        for (level, parts) in tree.cut(frames) {
            if level == 0 {
                for FrameRest { frame, range } in parts {
                    for position in range {
                        self.add_position(position, frame)?;
                    }
                }
                continue;
            }
            let (mut ids, mut map) = (Vec::new(), Vec::new());
            for FrameRest { frame, range } in parts {
                map.extend(std::iter::repeat_n(frame, range.len()));
                ids.extend(range.map(|node| node as u32));
            }
            self.add_copies(&**tree.nodes(level), &ids, &map)?;
        }
        Ok(())
    }

    /// Adds copies of the states `ids` of `other` to the frames of `map`, after the rows so far.
    ///
    /// # Errors
    /// Those of the states; interrupted.
    fn add_copies(&mut self, other: &dyn GroupStates, ids: &[u32], map: &[u32]) -> Result<()> {
        self.flush()?;
        let frames = self.frames;
        let is_copied = lock(self.external()?).add_copies(other, ids, map, frames)?;
        if is_copied || ids.is_empty() { self.reserve() } else { Err(not_copied()) }
    }

    /// Reserves the memory of the states.
    fn reserve(&mut self) -> Result<()> {
        let bytes: usize = self.states.iter().map(State::bytes).sum();
        if bytes.abs_diff(self.memory.bytes()) >= LITTLE { self.memory.resize(bytes) } else { Ok(()) }
    }

    /// The states of the frames, of an aggregate of another library.
    ///
    /// # Errors
    /// Those of the states; interrupted.
    pub fn into_states(mut self) -> Result<Box<dyn GroupStates>> {
        self.flush()?;
        match self.states.pop() {
            Some(State::External(states)) => Ok(states.into_inner().unwrap_or_else(PoisonError::into_inner)),
            _ => Err(mismatch()),
        }
    }

    fn external(&self) -> Result<&Mutex<Box<dyn GroupStates>>> {
        match &self.states[..] {
            [State::External(states)] => Ok(states),
            _ => Err(mismatch()),
        }
    }

    /// Adds a row to a frame.
    ///
    /// # Errors
    /// Those of the states; interrupted.
    #[inline]
    pub fn add(&mut self, id: u32, frame: usize) -> Result<()> {
        let waiting = &mut self.waiting;
        waiting.ids.push(id);
        waiting.groups.push(frame as u32);
        if waiting.ids.len() == CHUNK_ROWS { self.flush() } else { Ok(()) }
    }

    /// Feeds the states the rows that wait.
    fn flush(&mut self) -> Result<()> {
        self.context.check()?;
        let WaitingRows { ids, groups, vectors, chunk, computed, machine } = &mut self.waiting;
        let rows = ids.len();
        if rows == 0 {
            return Ok(());
        }
        chunk.reset(rows);
        let dense = chunk.push_group(Selection::ALL);
        for (&column, vector) in self.spec.columns.iter().zip(vectors) {
            self.section.gather(column, ids, vector);
            chunk.push_column(vector.clone(), dense);
        }
        computed.reset(rows);
        if let Some(machine) = machine {
            machine.project(chunk, computed)?;
        }
        let feeds = &self.spec.layout.feeds;
        self.feeder.feed(feeds, computed, Groups::Rows(groups), self.frames, &mut self.states)?;
        computed.reset(0);
        chunk.reset(0);
        ids.clear();
        groups.clear();
        self.reserve()
    }

    /// The result of each frame, flat.
    ///
    /// # Errors
    /// Those of the states; resource, if there is no memory for the results; interrupted.
    pub fn finish(mut self) -> Result<Vector> {
        self.flush()?;
        // Long results take about as much as the states that they are written of.
        let states = self.memory.bytes();
        self.memory.resize(2 * states)?;
        let result = &self.spec.layout.results[0];
        let mut out = Vector::new(result.meta.physical);
        match result.kind {
            ResultKind::External(_) => lock(self.external()?).finish(0, self.frames, &mut out)?,
            _ => write_result(result, &self.states, 0, self.frames, &mut out)?,
        }
        Ok(out)
    }
}

/// The error if an aggregate does not keep its promise.
pub fn not_copied() -> Error {
    Error::internal("states that could be copied cannot be any more")
}

fn mismatch() -> Error {
    Error::internal("a result that another library gives has no state")
}
