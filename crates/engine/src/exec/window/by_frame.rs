//! Aggregates frame by frame: those that are computed elsewhere, and those for which the order of a frame's
//! rows, or equal rows in it, matter. The states and loops are the aggregation's, with a group for each
//! frame.
//!
//! Consecutive rows that have the same frame, peers or all rows of a partition, are one group, so that frames
//! that do not move are read once. Of the others,
//! - those whose result depends on a few values, like medians, find these by [rank](super::ranked);
//! - those whose states can be copied are combined in a [segment tree](super::state_tree);
//! - the rest read each frame anew, and take time proportional to the sum of the frames' lengths.
//!
//! Where states can be copied, a [gap](super::gaps) of a frame is a copy of the states of its blocks.
//! Otherwise no frame has gaps.

use super::View;
use super::copied::copied;
use super::frame::{FrameSpec, Pieces};
use super::ranked::{Ranked, Sliding};
use super::section::Section;
use super::state_tree::{FAN_OUT, FrameRest, StateTree};
use crate::context::QueryContext;
use crate::exec::aggregate::feed::{Feeder, Groups};
use crate::exec::aggregate::layout::{AggregateLayout, ResultKind};
use crate::exec::aggregate::result::write_result;
use crate::exec::aggregate::state::{State, lock};
use crate::exec::operator::{Alone, Tasks};
use crate::exec::sort::order::OrderKey;
use crate::exec::window::counting::Counting;
use crate::memory::Reservation;
use crate::plan::{AggregateCall, AggregateFunction};
use crate::sync::{Mutex, PoisonError};
use entasis_vector::aggregate::{ExternalAggregate, GroupStates};
use entasis_vector::expr::{ColumnMeta, Expr, Machine};
use entasis_vector::{CHUNK_ROWS, Chunk, ColumnId, Error, PhysicalType, Result, Selection, Vector};
use std::ops::Range;
use std::sync::Arc;

/// Rows of a frame up to which ranks are found for a chunk at a time.
const NEAR: usize = 2 * CHUNK_ROWS;
/// Bytes of states that need not be reserved.
const LITTLE: usize = 64 << 10;
/// Rows of a frame up to which it is read anew.
const SHORT: usize = 4 * FAN_OUT;

/// An aggregate over frames.
pub struct ByFrame {
    /// The aggregation of its argument columns.
    layout: AggregateLayout,
    /// These columns.
    columns: Vec<usize>,
    /// The physical types of the arguments.
    types: Vec<PhysicalType>,
    /// Only rows where this column is true count.
    filter: Option<usize>,
    /// Of the rows of a frame with equal arguments, only the first counts.
    distinct: bool,
    /// The order in which rows reach the aggregate.
    order: Vec<OrderKey>,
    /// The aggregate, if its result depends on few rows of a frame.
    decided: Option<Arc<dyn ExternalAggregate>>,
    /// Frames are so short that ranks are found for a chunk of them at a time.
    is_near: bool,
    /// All columns of kept rows.
    metas: Vec<ColumnMeta>,
    /// The aggregate, if states are combined for long frames.
    copied: Option<Arc<dyn ExternalAggregate>>,
    /// The aggregate, if its states could be combined.
    can_copy: Option<Arc<dyn ExternalAggregate>>,
    /// The frame.
    pub frame: usize,
}

impl ByFrame {
    /// The aggregate `call`, which has no filter, no order and no DISTINCT, over the argument columns
    /// `columns` of rows that `metas` describe.
    ///
    /// # Errors
    /// Not supported, for types that an aggregate does not take.
    pub fn new(
        mut call: AggregateCall,
        columns: Vec<usize>,
        metas: &[ColumnMeta],
        (filter, distinct, order): (Option<usize>, bool, Vec<OrderKey>),
        (frame, spec): (usize, &FrameSpec),
    ) -> Result<ByFrame> {
        let input: Vec<ColumnMeta> = (0..)
            .zip(&columns)
            .map(|(id, &column)| ColumnMeta { id: ColumnId(id), ..metas[column].clone() })
            .collect();
        let external = match &call.function {
            AggregateFunction::External(function) if !distinct => Some(function.clone()),
            _ => None,
        };
        let decided = external.clone().filter(|function| function.decisive(1).is_some());
        let is_long = spec.most_rows().is_none_or(|rows| rows > SHORT) && !spec.is_fixed();
        let can_copy = match external.filter(|_| decided.is_none() && order.is_empty()) {
            Some(function) if StateTree::is_possible(&*function)? => Some(function),
            _ => None,
        };
        let copied = can_copy.clone().filter(|_| is_long);
        call.args = input.iter().map(|meta| Expr::column(meta.id, meta.ty)).collect();
        let result = ColumnId(input.len() as u32);
        let layout = AggregateLayout::new(&input, &[], &[(result, call)])?;
        let types = input.iter().map(|meta| meta.physical).collect();
        let is_near = spec.most_rows().is_some_and(|rows| rows <= NEAR);
        let metas = metas.to_vec();
        Ok(ByFrame {
            layout,
            columns,
            types,
            filter,
            distinct,
            order,
            decided,
            is_near,
            metas,
            copied,
            can_copy,
            frame,
        })
    }

    /// True if all rows of a frame are needed, rather than states of some of them.
    pub fn reads_all(&self) -> bool {
        self.can_copy.is_none()
    }

    /// Prepares for the states of the blocks of a stored partition; `None` if they are not needed.
    ///
    /// # Errors
    /// Those of making states.
    pub fn block_states(&self) -> Result<Option<BlockStates>> {
        let states = self.can_copy.as_ref().map(|function| function.state()).transpose()?;
        Ok(states.map(|states| BlockStates { states: Mutex::new(states), blocks: 0 }))
    }

    /// Adds the state of a block, all of `section`.
    ///
    /// # Errors
    /// Those of the states; interrupted.
    pub fn push_block(
        &self,
        blocks: &mut BlockStates,
        section: &Section,
        context: &QueryContext,
        tasks: &dyn Tasks,
    ) -> Result<()> {
        let mut ready = Ready::default();
        self.count(&mut ready, section, tasks)?;
        let mut fold = Fold::new(self, &ready, section, context, 1)?;
        (0..section.len()).try_for_each(|position| fold.add_position(position, 0))?;
        let block = fold.into_states()?;
        blocks.blocks += 1;
        let own =
            lock(&blocks.states).add_copies(&*block, &[0], &[blocks.blocks - 1], blocks.blocks as usize);
        if own? { Ok(()) } else { Err(not_copied()) }
    }

    /// The column of the result.
    pub fn output(&self) -> &ColumnMeta {
        &self.layout.results[0].meta
    }

    /// Prepares `section`, whose columns `metas` describe.
    ///
    /// # Errors
    /// Those of `tasks`.
    pub fn prepare(
        &self,
        metas: &[ColumnMeta],
        section: &Section,
        blocks: Option<&BlockStates>,
        context: &QueryContext,
        tasks: &dyn Tasks,
    ) -> Result<Ready> {
        let mut ready = Ready::default();
        if let (Some(gaps), Some(blocks), Some(function)) = (section.gaps(), blocks, &self.can_copy) {
            let count = gaps.all().count();
            let mut states = function.state()?;
            for (gap, (_, blocks_of)) in gaps.all().enumerate() {
                let ids: Vec<u32> = blocks_of.clone().map(|block| block as u32).collect();
                if !states.add_copies(&**lock(&blocks.states), &ids, &vec![gap as u32; ids.len()], count)? {
                    return Err(not_copied());
                }
            }
            ready.gaps = Some(Mutex::new(states));
        }
        if self.decided.is_some() {
            if !self.is_near {
                ready.ranked = Some(self.rank(section, 0..section.len(), context, tasks)?);
            }
            return Ok(ready);
        }
        self.count(&mut ready, section, tasks)?;
        if self.distinct {
            let mut copied = copied(section, &self.columns, metas, 0..section.len(), None, context, tasks)?;
            let key = |column| OrderKey { column, descending: false, nulls_first: false };
            let keys: Vec<OrderKey> = (0..self.columns.len()).map(key).collect();
            let ids = copied.order(&keys, tasks)?;
            copied.reserve(section.len() * size_of::<u32>())?;
            let rows = &copied.rows;
            ready.values = vec![0; section.len()];
            let mut value = 0;
            for pair in ids.windows(2) {
                let is_equal = |column| rows.compare(column, pair[0], pair[1], false, false).is_eq();
                value += u32::from(!(0..keys.len()).all(is_equal));
                ready.values[pair[1] as usize] = value;
            }
        }
        if !self.order.is_empty() {
            let columns: Vec<usize> = self.order.iter().map(|key| key.column).collect();
            let mut copied = copied(section, &columns, metas, 0..section.len(), None, context, tasks)?;
            let keys = self.order.iter().enumerate().map(|(column, key)| OrderKey { column, ..*key });
            let keys: Vec<OrderKey> = keys.collect();
            let ids = copied.order(&keys, tasks)?;
            copied.reserve(section.len() * size_of::<u32>())?;
            ready.places = vec![0; section.len()];
            ids.iter().zip(0..).for_each(|(&id, place)| ready.places[id as usize] = place);
        }
        let has_long = || section.partitions().windows(2).any(|pair| (pair[1] - pair[0]) as usize > SHORT);
        if let Some(function) = self.copied.as_ref().filter(|_| has_long()) {
            let nodes = section.len().div_ceil(FAN_OUT);
            let mut fold = Fold::new(self, &ready, section, context, nodes)?;
            for position in 0..section.len() {
                fold.add_position(position, (position / FAN_OUT) as u32)?;
            }
            let states = fold.into_states()?;
            // Until the owner of all of this reserves it.
            let mut memory = Reservation::new(&context.memory);
            ready.tree = Some(StateTree::new(&**function, states, nodes, &mut memory)?);
        }
        Ok(ready)
    }

    /// Finds the rows that count.
    fn count(&self, ready: &mut Ready, section: &Section, tasks: &dyn Tasks) -> Result<()> {
        if self.filter.is_none() {
            return Ok(());
        }
        let counting = Counting { args: Vec::new(), filter: self.filter, distinct: false };
        ready.counts.reserve_exact(section.len());
        counting.each_chunk(section, 0..section.len(), None, |_, counts| {
            ready.counts.extend_from_slice(counts);
            tasks.check()
        })
    }

    /// Writes the results for the rows.
    ///
    /// # Errors
    /// Those of the aggregate; interrupted.
    pub fn write(&self, ready: &Ready, view: &View<'_>, out: &mut Vector) -> Result<()> {
        let frames = &view.frames[self.frame];
        if let Some(function) = &self.decided {
            return self.write_decided(&**function, ready, view, out);
        }
        let mut last: Option<Pieces> = None;
        let (mut distinct_frames, mut group_of) = (Vec::new(), Vec::new());
        for row in 0..view.places.rows.len() {
            let pieces = frames.pieces(row);
            if last != Some(pieces) {
                distinct_frames.push(pieces);
                last = Some(pieces);
            }
            group_of.push((distinct_frames.len() - 1) as u16);
        }
        let mut fold = Fold::new(self, ready, view.section, view.context, distinct_frames.len())?;
        let mut members = Vec::new();
        if let Some(tree) = &ready.tree {
            // Piece by piece, to keep the order of rows.
            for i in 0..3 {
                let pieces = distinct_frames.iter().enumerate();
                let pieces = pieces.filter_map(|(frame, pieces)| Some((frame as u32, pieces.iter().nth(i)?)));
                fold.add_frames(tree, pieces)?;
            }
            distinct_frames.clear();
        }
        for (group, pieces) in distinct_frames.iter().enumerate() {
            for piece in pieces.iter() {
                if !self.distinct && self.order.is_empty() {
                    for position in piece {
                        fold.add_position(position, group as u32)?;
                    }
                } else {
                    let counts = |position: &u32| ready.counts.is_empty() || ready.counts[*position as usize];
                    members.extend((piece.start as u32..piece.end as u32).filter(counts));
                }
            }
            ready.arrange(&mut members);
            for position in members.drain(..) {
                fold.add(view.section.id(position), group)?;
            }
        }
        let results = fold.finish()?;
        results.flatten_into(Some(&group_of), group_of.len(), out);
        Ok(())
    }
}

impl ByFrame {
    /// Ranks the rows of `section` at `range` that count.
    fn rank(
        &self,
        section: &Section,
        range: Range<usize>,
        context: &QueryContext,
        tasks: &dyn Tasks,
    ) -> Result<Ranked> {
        let args = self.columns.iter().copied().filter(|&column| self.metas[column].nullable).collect();
        let counting = Counting { args, filter: self.filter, distinct: false };
        Ranked::new(self.columns[0], &counting, &self.metas, section, range, context, tasks)
    }

    /// Writes results that depend on few rows of each frame. Frames that depend on the same rows are one
    /// group.
    fn write_decided(
        &self,
        function: &dyn ExternalAggregate,
        ready: &Ready,
        view: &View<'_>,
        out: &mut Vector,
    ) -> Result<()> {
        let frames = &view.frames[self.frame];
        let own;
        let ranked = match &ready.ranked {
            Some(ranked) => ranked,
            None => {
                let first = frames.starts.iter().min().map_or(0, |&start| start as usize);
                let after = frames.ends.iter().max().map_or(first, |&end| end as usize);
                own = self.rank(view.section, first..after.max(first), view.context, &Alone(view.context))?;
                &own
            }
        };
        let mut sliding = Sliding::default();
        let (mut group_of, mut found, mut last) = (Vec::new(), Vec::new(), Vec::new());
        // The rows of all groups, and where each group's end.
        let (mut members, mut ends) = (Vec::new(), Vec::new());
        for row in 0..view.places.rows.len() {
            found.clear();
            ranked.pick(&frames.pieces(row), |count| function.decisive(count), &mut sliding, &mut found);
            if found != last || ends.is_empty() {
                members.extend_from_slice(&found);
                ends.push(members.len());
                std::mem::swap(&mut last, &mut found);
            }
            group_of.push((ends.len() - 1) as u16);
        }
        let mut fold = Fold::new(self, ready, view.section, view.context, ends.len())?;
        let mut first = 0;
        for (group, &end) in ends.iter().enumerate() {
            for &position in &members[first..end] {
                fold.add(view.section.id(position), group)?;
            }
            first = end;
        }
        fold.finish()?.flatten_into(Some(&group_of), group_of.len(), out);
        Ok(())
    }
}

/// What is known about the rows of a section; each list is empty if it is not needed.
#[derive(Default)]
pub struct Ready {
    /// Whether the row at a position counts.
    counts: Vec<bool>,
    /// The number of its arguments among all distinct ones.
    values: Vec<u32>,
    /// Its place in the order in which rows reach the aggregate.
    places: Vec<u32>,
    /// The ranks of its values, if the result depends on few rows.
    ranked: Option<Ranked>,
    /// States that are combined for long frames.
    tree: Option<StateTree>,
    /// For each gap of the section, the state of its blocks.
    gaps: Option<Mutex<Box<dyn GroupStates>>>,
}

/// The states of the blocks of a stored partition.
pub struct BlockStates {
    /// Locked while copies are added.
    states: Mutex<Box<dyn GroupStates>>,
    blocks: u32,
}

impl BlockStates {
    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        lock(&self.states).bytes()
    }
}

impl Ready {
    /// Sorts the rows of a frame and keeps only the first of equal ones.
    fn arrange(&self, members: &mut Vec<u32>) {
        if !self.values.is_empty() {
            members.sort_unstable_by_key(|&position| (self.values[position as usize], position));
            members.dedup_by_key(|position| self.values[*position as usize]);
            members.sort_unstable();
        }
        if !self.places.is_empty() {
            members.sort_unstable_by_key(|&position| self.places[position as usize]);
        }
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        let ranked = self.ranked.as_ref().map_or(0, Ranked::bytes);
        let tree = self.tree.as_ref().map_or(0, StateTree::bytes);
        let gaps = self.gaps.as_ref().map_or(0, |gaps| lock(gaps).bytes());
        ranked
            + tree
            + gaps
            + self.counts.capacity()
            + (self.values.capacity() + self.places.capacity()) * size_of::<u32>()
    }
}

/// States of some frames, and rows on their way to them. What the states take is reserved as they grow.
struct Fold<'a> {
    memory: Reservation,
    spec: &'a ByFrame,
    ready: &'a Ready,
    section: &'a Section,
    context: &'a QueryContext,
    states: Vec<State>,
    frames: usize,
    machine: Option<Machine>,
    feeder: Feeder,
    ids: Vec<u32>,
    groups: Vec<u32>,
    vectors: Vec<Vector>,
    chunk: Chunk,
    computed: Chunk,
}

impl<'a> Fold<'a> {
    fn new(
        spec: &'a ByFrame,
        ready: &'a Ready,
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
        Ok(Fold {
            memory: Reservation::new(&context.memory),
            spec,
            ready,
            section,
            context,
            states,
            frames,
            machine: layout.program.clone().map(Machine::new),
            feeder: Feeder::default(),
            ids: Vec::with_capacity(CHUNK_ROWS),
            groups: Vec::with_capacity(CHUNK_ROWS),
            vectors: spec.types.iter().map(|ty| Vector::new(*ty)).collect(),
            chunk: Chunk::new(),
            computed: Chunk::new(),
        })
    }

    /// Adds the row at `position` to a frame, if it counts.
    ///
    /// # Errors
    /// Those of the states; interrupted.
    fn add_position(&mut self, position: usize, frame: u32) -> Result<()> {
        if let (Some(gaps), Some(states)) = (self.section.gaps(), &self.ready.gaps)
            && gaps.at(position).is_some()
        {
            let gap = gaps.within(0..position).count() as u32;
            return self.add_copies(&**lock(states), &[gap], &[frame]);
        }
        let counts = self.ready.counts.is_empty() || self.ready.counts[position];
        if counts { self.add(self.section.id(position as u32), frame as usize) } else { Ok(()) }
    }

    /// Feeds the frames the rows at these positions, at most one stretch for each frame, by the nodes of
    /// `tree`.
    ///
    /// # Errors
    /// Those of the states; interrupted.
    fn add_frames(
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

    /// The states of the frames.
    fn into_states(mut self) -> Result<Box<dyn GroupStates>> {
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

    fn add(&mut self, id: u32, frame: usize) -> Result<()> {
        self.ids.push(id);
        self.groups.push(frame as u32);
        if self.ids.len() == CHUNK_ROWS { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.context.check()?;
        let rows = self.ids.len();
        if rows == 0 {
            return Ok(());
        }
        self.chunk.reset(rows);
        let dense = self.chunk.push_group(Selection::ALL);
        for (&column, vector) in self.spec.columns.iter().zip(&mut self.vectors) {
            self.section.gather(column, &self.ids, vector);
            self.chunk.push_column(vector.clone(), dense);
        }
        self.computed.reset(rows);
        if let Some(machine) = &mut self.machine {
            machine.project(&self.chunk, &mut self.computed)?;
        }
        let groups = Groups::Rows(&self.groups);
        self.feeder.feed(&self.spec.layout.feeds, &self.computed, groups, self.frames, &mut self.states)?;
        self.computed.reset(0);
        self.chunk.reset(0);
        self.ids.clear();
        self.groups.clear();
        self.reserve()
    }

    /// The result of each frame, flat.
    fn finish(mut self) -> Result<Vector> {
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

fn not_copied() -> Error {
    Error::internal("states that could be copied cannot be any more")
}

fn mismatch() -> Error {
    Error::internal("a result that another library gives has no state")
}
