//! A partial aggregation: one table of groups with the states of all of them.
//!
//! A worker folds its chunks into a partial. Partials are merged into one another: all groups of one into
//! another ([`Partial::absorb`]), or, once they are sealed, one partition's groups of each into a fresh one
//! ([`Partial::merge`]), which needs only shared access and so runs in parallel.
//!
//! Where memory is short, a partial may also take only rows of groups that it knows
//! ([`Partial::take_known`]).

use super::deferred::Deferred;
use super::feed::{Feeder, Groups};
use super::layout::AggregateLayout;
use super::state::State;
use super::writer::Writer;
use crate::context::QueryContext;
use crate::exec::group_table::{GroupTable, Partition, partition_of};
use crate::exec::materialized::Materialized;
use crate::exec::operator::Tasks;
use crate::memory::Reservation;
use entasis_vector::{Buffer, CHUNK_ROWS, Chunk, Error, Result, Selection, Stored, Vector};
use std::sync::Arc;

/// Deferred rows that are merged before memory is reserved for them.
const DEFERRED_ROWS: usize = 16 << 10;

/// Bytes that the states of a chunk's groups may take before memory is reserved for them.
const WIDE: usize = 256 << 10;
/// Bytes by which states of many groups grow at a time.
const STEP: usize = 4 << 20;
/// Bytes of results of external functions that are made at a time.
const RESULT_BYTES: usize = 1 << 20;

/// Groups and their states.
pub struct Partial {
    /// Maps keys to groups.
    pub table: GroupTable,
    /// One for each of the layout's states, over the table's groups.
    pub states: Vec<State>,
    deferred: Vec<Deferred>,
    /// Rows folded in.
    pub rows: usize,
    /// The morsel of the first of them.
    pub first_morsel: u64,
    groups: Vec<u32>,
    /// Marks of positions, where groups are few.
    marks: Vec<u8>,
    feeder: Feeder,
    context: QueryContext,
    /// The memory of all of this.
    pub reservation: Reservation,
    /// Bytes of the states of a group, and groups for which these were reserved ahead.
    width: usize,
    room: usize,
    key_columns: Vec<usize>,
    gathered: Vec<Vector>,
    staged: Chunk,
    tags: Vec<u32>,
    spares: Vec<Arc<Buffer>>,
}

/// A partial that takes no more rows, with its groups by partition.
pub struct Sealed {
    keys: Materialized,
    states: Vec<State>,
    /// By group id.
    tags: Vec<u32>,
    /// There are `1 << bits` partitions.
    bits: u32,
    /// Where the groups of each partition begin, and where the last one's end.
    starts: Vec<u32>,
    /// The group ids by partition, if there was no memory to reorder the groups.
    order: Option<Vec<u32>>,
    deferred: Vec<SealedRows>,
    _reservation: Reservation,
}

/// Deferred rows: their ids by partition of their groups, and where each partition begins.
struct SealedRows {
    rows: Deferred,
    ids: Vec<u32>,
    starts: Vec<u32>,
}

impl Partial {
    /// No groups yet (one, if there are no keys) in `table`.
    ///
    /// # Errors
    /// Those of external functions.
    pub fn new(layout: &AggregateLayout, table: GroupTable, context: &QueryContext) -> Result<Partial> {
        let collide = context.settings.hash_collisions;
        let states = layout.states.iter().map(|spec| State::new(&spec.kind, spec.argument.as_ref()));
        let states: Vec<State> = states.collect::<Result<_>>()?;
        let mut partial = Partial {
            width: states.iter().map(State::width).sum(),
            room: 0,
            states,
            deferred: layout.deferred.iter().map(|spec| Deferred::new(spec, collide)).collect(),
            rows: 0,
            first_morsel: 0,
            groups: Vec::new(),
            marks: Vec::new(),
            feeder: Feeder::default(),
            context: context.clone(),
            reservation: Reservation::new(&context.memory),
            key_columns: (0..layout.keys.len()).collect(),
            gathered: layout.keys.iter().map(|meta| Vector::new(meta.physical)).collect(),
            staged: Chunk::new(),
            tags: Vec::new(),
            spares: Vec::new(),
            table,
        };
        partial.resize_states();
        Ok(partial)
    }

    fn resize_states(&mut self) {
        let groups = self.table.groups();
        self.states.iter_mut().for_each(|state| state.resize(groups));
    }

    /// Folds in the rows of `chunk`, the outputs of the layout's program. The caller reserves memory
    /// afterwards.
    ///
    /// # Errors
    /// Those of the states.
    pub fn take(&mut self, layout: &AggregateLayout, chunk: &Chunk) -> Result<()> {
        let may_mark = layout.sums_rows() && self.table.mark(chunk, &self.key_columns, &mut self.marks);
        if may_mark {
            self.rows += chunk.len();
        } else {
            self.find_groups(chunk);
        }
        let groups = match layout.keys.is_empty() {
            true => Groups::One,
            false if may_mark => Groups::Marks(&self.marks, chunk.positions(0)),
            false => Groups::Rows(&self.groups),
        };
        let group_count = self.table.groups();
        self.feeder.feed(&layout.feeds, chunk, groups, group_count, &mut self.states)?;
        for (deferred, spec) in self.deferred.iter_mut().zip(&layout.deferred) {
            let groups = (!layout.keys.is_empty()).then_some(&self.groups[..]);
            deferred.push(spec, chunk, groups);
        }
        Ok(())
    }

    /// Folds in the rows of `chunk` whose groups are known, and lets the others wait. Hashed tables only, and
    /// nothing may be deferred. Returns how many rows were folded in.
    ///
    /// # Errors
    /// Those of the states, and of writing waiting rows.
    pub fn take_known(
        &mut self,
        layout: &AggregateLayout,
        chunk: &mut Chunk,
        writer: &mut Writer,
    ) -> Result<usize> {
        debug_assert!(self.deferred.is_empty());
        self.table.look_up(chunk, &self.key_columns, &mut self.groups);
        let groups = self.groups.iter().zip(self.table.tags());
        writer.take(chunk, groups.map(|(&group, tag)| (group == GroupTable::NONE).then_some(tag)))?;
        let known = writer.stays();
        if !known.is_empty() {
            self.rows += known.len();
            chunk.select(known, &mut self.spares);
            self.groups.retain(|&group| group != GroupTable::NONE);
            let group_count = self.table.groups();
            self.feeder.feed(
                &layout.feeds,
                chunk,
                Groups::Rows(&self.groups),
                group_count,
                &mut self.states,
            )?;
        }
        Ok(known.len())
    }

    /// Lets all rows of `chunk` wait.
    ///
    /// # Errors
    /// Those of writing.
    pub fn take_none(&mut self, chunk: &Chunk, writer: &mut Writer) -> Result<()> {
        self.table.hash(chunk, &self.key_columns);
        writer.take(chunk, self.table.tags().map(Some))
    }

    /// Folds in the `rows` rows of `stored`, whose `columns` are the outputs of the layout's program.
    ///
    /// # Errors
    /// Those of the states.
    pub fn fold(
        &mut self,
        layout: &AggregateLayout,
        stored: &dyn Stored,
        columns: &[usize],
        rows: usize,
    ) -> Result<()> {
        self.rows += rows;
        for feed in &layout.feeds {
            let column = feed.args.first().map(|&arg| columns[arg]);
            for &state in &feed.states {
                self.states[state].fold(stored, column, rows)?;
            }
        }
        Ok(())
    }

    /// Finds the groups of the rows of `chunk`, whose first columns are the keys.
    fn find_groups(&mut self, chunk: &Chunk) {
        self.rows += chunk.len();
        if !self.key_columns.is_empty() {
            self.table.find(chunk, &self.key_columns, &mut self.groups);
            self.resize_states();
        }
    }

    /// Reserves the memory of the states of `rows` more groups, if a group has so many of them that those of
    /// a chunk count.
    ///
    /// # Errors
    /// Resource.
    pub fn make_room(&mut self, rows: usize) -> Result<()> {
        let most = self.table.groups() + rows;
        if self.width * CHUNK_ROWS < WIDE || most <= self.room {
            return Ok(());
        }
        // As much again, but not more than some megabytes.
        let room = most.max(self.room + self.room.min(STEP / self.width));
        self.reserve()?;
        self.reservation.resize(self.reservation.bytes() + (room - self.room) * self.width)?;
        self.states.iter_mut().for_each(|state| state.reserve(room));
        self.room = room;
        Ok(())
    }

    /// Reserves the memory of all of this.
    ///
    /// # Errors
    /// Resource.
    pub fn reserve(&mut self) -> Result<()> {
        let states: usize = self.states.iter().map(State::bytes).sum();
        let deferred: usize = self.deferred.iter().map(Deferred::bytes).sum();
        let bytes = self.table.bytes() + states.max(self.room * self.width) + deferred;
        if bytes != self.reservation.bytes() { self.reservation.resize(bytes) } else { Ok(()) }
    }

    /// Merges the groups `ids` of a table with keys `keys` and `states`; with `tags`, into a hashed table. If
    /// there is a `map`, it gets the own group of each.
    fn merge_groups(
        &mut self,
        keys: &Materialized,
        states: &[State],
        ids: &[u32],
        tags: Option<&[u32]>,
        mut map: Option<&mut Vec<u32>>,
    ) -> Result<()> {
        for (own, theirs) in self.states.iter_mut().zip(states) {
            own.begin_merge(theirs);
        }
        for ids in ids.chunks(CHUNK_ROWS) {
            self.context.check()?;
            self.make_room(ids.len())?;
            self.staged.reset(ids.len());
            let dense = self.staged.push_group(Selection::ALL);
            for (column, vector) in self.gathered.iter_mut().enumerate() {
                keys.gather(column, ids, vector);
                self.staged.push_column(vector.clone(), dense);
            }
            match tags {
                Some(tags) => {
                    self.tags.clear();
                    self.tags.extend(ids.iter().map(|&id| tags[id as usize]));
                    self.table.find_tagged(&self.staged, &self.key_columns, &self.tags, &mut self.groups);
                }
                None => self.table.find(&self.staged, &self.key_columns, &mut self.groups),
            }
            self.resize_states();
            for (own, theirs) in self.states.iter_mut().zip(states) {
                if !matches!(own, State::External(_)) {
                    own.merge(theirs, ids, &self.groups)?;
                }
            }
            if let Some(map) = &mut map {
                map.extend_from_slice(&self.groups);
            }
            self.reserve()?;
        }
        Ok(())
    }

    /// Merges all of `other`.
    ///
    /// # Errors
    /// Those of the states; resource.
    pub fn absorb(&mut self, mut other: Partial) -> Result<()> {
        let ids: Vec<u32> = (0..other.table.groups() as u32).collect();
        let mut map = Vec::with_capacity(ids.len());
        let states = std::mem::take(&mut other.states);
        let (deferred, reservation) = (other.deferred, other.reservation);
        match self.table.is_hashed() {
            true => {
                let (keys, tags) = other.table.seal();
                self.merge_groups(&keys, &states, &ids, Some(&tags), Some(&mut map))?;
            }
            false => self.merge_groups(other.table.keys(), &states, &ids, None, Some(&mut map))?,
        }
        let groups = self.table.groups();
        for (own, theirs) in self.states.iter_mut().zip(states) {
            if let (State::External(own), State::External(theirs)) = (own, theirs) {
                let own = own.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
                let theirs = theirs.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
                own.merge(theirs, &map, groups)?;
            }
        }
        for (own, theirs) in self.deferred.iter_mut().zip(&deferred) {
            own.merge(theirs, &map, &self.context)?;
        }
        drop((deferred, reservation));
        self.reserve()
    }

    /// Merges one partition of a sealed table: one that it was sealed for, or a part of one.
    ///
    /// # Errors
    /// Those of the states; resource.
    pub fn merge(&mut self, sealed: &Sealed, partition: Partition) -> Result<()> {
        let ids = sealed.groups(partition);
        if sealed.deferred.is_empty() {
            return self.merge_groups(&sealed.keys, &sealed.states, &ids, Some(&sealed.tags), None);
        }
        if ids.is_empty() {
            return Ok(());
        }
        let mut own = Vec::with_capacity(ids.len());
        self.merge_groups(&sealed.keys, &sealed.states, &ids, Some(&sealed.tags), Some(&mut own))?;
        let mut map = vec![GroupTable::NONE; sealed.tags.len()];
        ids.iter().zip(own).for_each(|(&id, own)| map[id as usize] = own);
        for (i, theirs) in sealed.deferred.iter().enumerate() {
            let within = partition.within(sealed.bits);
            let ids = &theirs.ids[theirs.starts[within] as usize..theirs.starts[within + 1] as usize];
            for ids in ids.chunks(DEFERRED_ROWS) {
                self.deferred[i].merge_rows(&theirs.rows, ids, &map, &self.context)?;
                self.reserve()?;
            }
        }
        Ok(())
    }

    /// Takes no more rows, and sorts the groups by partition, of `1 << bits`; if there is memory, keys and
    /// states too, so that each partition is read sequentially.
    ///
    /// # Errors
    /// Resource.
    pub fn seal(self, bits: u32) -> Result<Sealed> {
        let (mut states, mut reservation) = (self.states, self.reservation);
        let (mut keys, mut tags) = self.table.seal();
        let mut starts = vec![0u32; (1 << bits) + 1];
        tags.iter().for_each(|&tag| starts[partition_of(tag, bits) + 1] += 1);
        (1..starts.len()).for_each(|p| starts[p] += starts[p - 1]);
        let mut next = starts.clone();
        let mut ids = vec![0; tags.len()];
        for (id, &tag) in tags.iter().enumerate() {
            let slot = &mut next[partition_of(tag, bits)];
            ids[*slot as usize] = id as u32;
            *slot += 1;
        }
        let sealed_rows = |mut rows: Deferred| {
            rows.end();
            let (ids, starts) = rows.by_partition(&tags, bits);
            SealedRows { rows, ids, starts }
        };
        let deferred: Vec<SealedRows> = self.deferred.into_iter().map(sealed_rows).collect();
        let rows: usize = deferred.iter().map(|of| of.rows.bytes() + of.ids.len() * 4).sum();
        let groups = ids.len();
        let bytes = |keys: &Materialized, states: &[State], of_group: usize| {
            rows + keys.bytes() + states.iter().map(State::bytes).sum::<usize>() + groups * of_group
        };
        // Deferred rows refer to groups by their ids.
        let is_in_order =
            deferred.is_empty() && reservation.resize(bytes(&keys, &states, 8) + keys.bytes()).is_ok();
        if is_in_order {
            keys = keys.reordered(&ids);
            states.iter_mut().for_each(|state| state.reorder(&ids));
            tags = ids.iter().map(|&id| tags[id as usize]).collect();
        }
        reservation.resize(bytes(&keys, &states, if is_in_order { 4 } else { 8 }))?;
        let order = (!is_in_order).then_some(ids);
        Ok(Sealed { keys, states, tags, bits, starts, order, deferred, _reservation: reservation })
    }

    /// Feeds deferred rows and gets the results of external functions: the states are then ready to be read.
    ///
    /// # Errors
    /// Those of the states; resource; interrupted.
    pub fn complete(&mut self, layout: &AggregateLayout, tasks: &dyn Tasks) -> Result<()> {
        let groups = self.table.groups();
        for (mut deferred, spec) in std::mem::take(&mut self.deferred).into_iter().zip(&layout.deferred) {
            let memory = (&self.context, &mut self.reservation);
            deferred.feed(spec, groups, &mut self.states, &mut self.feeder, tasks, memory)?;
        }
        for (state, spec) in self.states.iter_mut().zip(layout.results_of_states()) {
            let State::External(external) = state else { continue };
            let meta = spec.ok_or_else(|| Error::internal("an external state without a result"))?;
            let external = external.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
            let mut results = Materialized::new(std::slice::from_ref(meta));
            let mut out = Vector::new(meta.physical);
            let others = self.reservation.bytes().saturating_sub(external.bytes());
            // As many results at a time as are some megabytes, if they are as large as their states.
            let step = (RESULT_BYTES / (external.bytes() / groups.max(1)).max(1)).clamp(1, CHUNK_ROWS);
            for start in (0..groups).step_by(step) {
                self.context.check()?;
                let rows = step.min(groups - start);
                external.finish(start, rows, &mut out)?;
                results.append_vectors(&[(&out, None)], rows);
                self.reservation.resize(others + external.bytes() + results.bytes())?;
            }
            *state = State::Results(results);
        }
        self.reserve()
    }
}

impl Sealed {
    /// The groups of a partition: one that it was sealed for, or a part of one.
    pub fn groups(&self, partition: Partition) -> Vec<u32> {
        let within = partition.within(self.bits);
        let places = self.starts[within]..self.starts[within + 1];
        let is_whole = partition.bits() == self.bits;
        let has = |id: &u32| is_whole || partition.has(self.tags[*id as usize]);
        match &self.order {
            Some(order) => {
                order[places.start as usize..places.end as usize].iter().copied().filter(has).collect()
            }
            None => places.filter(has).collect(),
        }
    }

    /// Adds to `counts` the groups of each of the `1 << bits` parts of a partition.
    pub fn count_parts(&self, whole: Partition, bits: u32, counts: &mut [usize]) {
        debug_assert!(whole.bits() >= self.bits || whole.bits() == 0 && bits == self.bits);
        if whole.bits() == 0 && bits == self.bits {
            let sizes = self.starts.windows(2).map(|range| (range[1] - range[0]) as usize);
            counts.iter_mut().zip(sizes).for_each(|(count, size)| *count += size);
        } else {
            self.groups(whole)
                .iter()
                .for_each(|&id| counts[whole.part_of(self.tags[id as usize], bits)] += 1);
        }
    }
}
