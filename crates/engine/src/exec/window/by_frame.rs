//! Aggregates frame by frame: those that are computed elsewhere, and those for which the order of a frame's
//! rows, or equal rows in it, matter. The states and loops are the aggregation's, with a group for each
//! frame ([`super::fold`]).
//!
//! Consecutive rows that have the same frame, peers or all rows of a partition, are one group, so that frames
//! that do not move are read once. Of the others,
//! - those whose result depends on a few values, like medians, find these by [rank](super::ranked);
//! - those whose states can be copied are combined in a [segment tree](super::state_tree);
//! - the rest read each frame anew, and take time proportional to the sum of the frames' lengths.
//!
//! Where states can be copied, a [gap](super::gaps) of a frame is a copy of the states of its blocks.
//! Otherwise no frame has gaps.

use super::block_states::BlockStates;
use super::copied::copied;
use super::counting::Counting;
use super::fold::{Fold, FoldSpec, Inputs};
use super::frame::{FrameSpec, Pieces};
use super::ranked::{Ranked, Sliding};
use super::section::Section;
use super::state_tree::{FAN_OUT, StateTree};
use super::view::View;
use crate::context::QueryContext;
use crate::exec::aggregate::layout::AggregateLayout;
use crate::exec::operator::{Alone, Tasks};
use crate::exec::sort::order::OrderKey;
use crate::memory::Reservation;
use crate::plan::{AggregateCall, AggregateFunction};
use crate::sync::{Mutex, lock};
use entasis_vector::aggregate::ExternalAggregate;
use entasis_vector::expr::{ColumnMeta, Expr};
use entasis_vector::{CHUNK_ROWS, ColumnId, Result, Vector};
use std::ops::Range;
use std::sync::Arc;

/// Rows of a frame up to which ranks are found for a chunk at a time.
const NEAR: usize = 2 * CHUNK_ROWS;
/// Rows of a frame up to which it is read anew.
const SHORT: usize = 4 * FAN_OUT;

/// An aggregate over frames.
#[derive(Debug)]
pub struct ByFrame {
    /// The aggregation of its argument columns.
    fold: FoldSpec,
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
            fold: FoldSpec { layout, columns, types },
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
        self.can_copy.as_ref().map(|function| BlockStates::new(&**function)).transpose()
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
        let inputs = Inputs { counts: self.counts(section, tasks)?, gaps: None };
        let mut fold = Fold::new(&self.fold, &inputs, section, context, 1)?;
        (0..section.len()).try_for_each(|position| fold.add_position(position, 0))?;
        blocks.push(&*fold.into_states()?)
    }

    /// The column of the result.
    pub fn output(&self) -> &ColumnMeta {
        &self.fold.layout.results[0].meta
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
            ready.inputs.gaps = Some(Mutex::new(blocks.of_gaps(&**function, gaps)?));
        }
        if self.decided.is_some() {
            if !self.is_near {
                ready.ranked = Some(self.rank(section, 0..section.len(), context, tasks)?);
            }
            return Ok(ready);
        }
        ready.inputs.counts = self.counts(section, tasks)?;
        if self.distinct {
            ready.values = self.number_values(metas, section, context, tasks)?;
        }
        if !self.order.is_empty() {
            ready.places = self.number_places(metas, section, context, tasks)?;
        }
        let has_long = || section.partitions().windows(2).any(|pair| (pair[1] - pair[0]) as usize > SHORT);
        if let Some(function) = self.copied.as_ref().filter(|_| has_long()) {
            let nodes = section.len().div_ceil(FAN_OUT);
            let mut fold = Fold::new(&self.fold, &ready.inputs, section, context, nodes)?;
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

    /// For each row of `section`, the number of its arguments among all distinct ones, in their order.
    fn number_values(
        &self,
        metas: &[ColumnMeta],
        section: &Section,
        context: &QueryContext,
        tasks: &dyn Tasks,
    ) -> Result<Vec<u32>> {
        let columns = &self.fold.columns;
        let mut copied = copied(section, columns, metas, 0..section.len(), None, context, tasks)?;
        let key = |column| OrderKey { column, descending: false, nulls_first: false };
        let keys: Vec<OrderKey> = (0..columns.len()).map(key).collect();
        let ids = copied.order(&keys, tasks)?;
        copied.reserve(section.len() * size_of::<u32>())?;
        let rows = &copied.rows;
        let mut values = vec![0; section.len()];
        let mut value = 0;
        for pair in ids.windows(2) {
            let is_equal = |column| rows.compare(column, pair[0], pair[1], false, false).is_eq();
            value += u32::from(!(0..keys.len()).all(is_equal));
            values[pair[1] as usize] = value;
        }
        Ok(values)
    }

    /// For each row of `section`, its place in the order in which rows reach the aggregate.
    fn number_places(
        &self,
        metas: &[ColumnMeta],
        section: &Section,
        context: &QueryContext,
        tasks: &dyn Tasks,
    ) -> Result<Vec<u32>> {
        let columns: Vec<usize> = self.order.iter().map(|key| key.column).collect();
        let mut copied = copied(section, &columns, metas, 0..section.len(), None, context, tasks)?;
        let keys = self.order.iter().enumerate().map(|(column, key)| OrderKey { column, ..*key });
        let keys: Vec<OrderKey> = keys.collect();
        let ids = copied.order(&keys, tasks)?;
        copied.reserve(section.len() * size_of::<u32>())?;
        let mut places = vec![0; section.len()];
        ids.iter().zip(0..).for_each(|(&id, place)| places[id as usize] = place);
        Ok(places)
    }

    /// Whether the row at a position counts; empty if all do.
    fn counts(&self, section: &Section, tasks: &dyn Tasks) -> Result<Vec<bool>> {
        let mut all = Vec::new();
        if self.filter.is_none() {
            return Ok(all);
        }
        let counting = Counting { args: Vec::new(), filter: self.filter, distinct: false };
        all.reserve_exact(section.len());
        counting.each_chunk(section, 0..section.len(), None, |_, counts| {
            all.extend_from_slice(counts);
            tasks.check()
        })?;
        Ok(all)
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
        let mut fold =
            Fold::new(&self.fold, &ready.inputs, view.section, view.context, distinct_frames.len())?;
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
                    let counts = |position: &u32| ready.inputs.is_counted(*position as usize);
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
        let args = self.fold.columns.iter().copied().filter(|&column| self.metas[column].nullable).collect();
        let counting = Counting { args, filter: self.filter, distinct: false };
        Ranked::new(self.fold.columns[0], &counting, &self.metas, section, range, context, tasks)
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
        let mut fold = Fold::new(&self.fold, &ready.inputs, view.section, view.context, ends.len())?;
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
    /// Which rows count, and the states of gaps.
    inputs: Inputs,
    /// The number of its arguments among all distinct ones.
    values: Vec<u32>,
    /// Its place in the order in which rows reach the aggregate.
    places: Vec<u32>,
    /// The ranks of its values, if the result depends on few rows.
    ranked: Option<Ranked>,
    /// States that are combined for long frames.
    tree: Option<StateTree>,
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
        let gaps = self.inputs.gaps.as_ref().map_or(0, |gaps| lock(gaps).bytes());
        ranked
            + tree
            + gaps
            + self.inputs.counts.capacity()
            + (self.values.capacity() + self.places.capacity()) * size_of::<u32>()
    }
}
