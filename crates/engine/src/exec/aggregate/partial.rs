//! A partial aggregation: one table of groups with the states of all of them.
//!
//! A worker folds its chunks into a partial. Partials are merged into one another: all groups of one into another
//! ([`Partial::absorb`]), or, once they are sealed, one partition's groups of each into a fresh one
//! ([`Partial::merge`]), which needs no more than shared access and so runs in parallel.

use super::deferred::Deferred;
use super::feed::{Feeder, Groups};
use super::layout::Layout;
use super::state::{Rows, State};
use super::table::{GroupTable, partition_of};
use crate::exec::materialized::Materialized;
use crate::exec::operator::Tasks;
use crate::exec::{QueryContext, Reservation};
use entasis_vector::{CHUNK_ROWS, Chunk, Error, Result, Selection, Stored, Vector};

/// Groups and their states.
pub struct Partial {
    /// Which keys are which group.
    pub table: GroupTable,
    /// One for each of the layout's states, over the table's groups.
    pub states: Vec<State>,
    deferred: Vec<Deferred>,
    /// Rows folded in.
    pub rows: usize,
    groups: Vec<u32>,
    /// Of positions, where groups are few.
    marks: Vec<u8>,
    feeder: Feeder,
    context: QueryContext,
    /// What all of this takes.
    pub reservation: Reservation,
    key_columns: Vec<usize>,
    gathered: Vec<Vector>,
    staged: Chunk,
    tags: Vec<u32>,
}

/// A partial that no row is added to any more, its groups sorted by partition.
pub struct Sealed {
    keys: Materialized,
    states: Vec<State>,
    /// By group id.
    tags: Vec<u32>,
    /// The first group of each partition, and the end.
    starts: Vec<u32>,
    _reservation: Reservation,
}

impl Partial {
    /// No groups yet (one, if there are no keys) in `table`.
    ///
    /// # Errors
    /// Those of external functions.
    pub fn new(layout: &Layout, table: GroupTable, context: &QueryContext) -> Result<Partial> {
        let collide = context.settings.hash_collisions;
        let states = layout.states.iter().map(|spec| State::new(&spec.kind, spec.argument.as_ref()));
        let mut partial = Partial {
            states: states.collect::<Result<_>>()?,
            deferred: layout.deferred.iter().map(|spec| Deferred::new(spec, collide)).collect(),
            rows: 0,
            groups: Vec::new(),
            marks: Vec::new(),
            feeder: Feeder::default(),
            context: context.clone(),
            reservation: Reservation::new(&context.memory),
            key_columns: (0..layout.keys.len()).collect(),
            gathered: layout.keys.iter().map(|meta| Vector::new(meta.physical)).collect(),
            staged: Chunk::new(),
            tags: Vec::new(),
            table,
        };
        partial.resize_states();
        Ok(partial)
    }

    fn resize_states(&mut self) {
        let groups = self.table.groups();
        self.states.iter_mut().for_each(|state| state.resize(groups));
    }

    /// Folds in the rows of `chunk`, which has the outputs of the layout's program.
    ///
    /// # Errors
    /// Those of the states; resource.
    pub fn update(&mut self, layout: &Layout, chunk: &Chunk) -> Result<()> {
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
        self.reserve()
    }

    /// Folds in the `rows` rows of `stored`, of which `columns` are the outputs of the layout's program.
    ///
    /// # Errors
    /// Those of the states.
    pub fn fold(&mut self, layout: &Layout, stored: &dyn Stored, columns: &[usize], rows: usize) -> Result<()> {
        self.rows += rows;
        for feed in &layout.feeds {
            let column = feed.args.first().map(|&arg| columns[arg]);
            for &state in &feed.states {
                self.states[state].fold(stored, column, rows)?;
            }
        }
        Ok(())
    }

    /// Counts the rows of `chunk`, whose columns are the keys, in state `state`.
    ///
    /// # Errors
    /// Those of the state; resource.
    pub fn count(&mut self, chunk: &Chunk, state: usize) -> Result<()> {
        self.find_groups(chunk);
        let rows = Rows { count: chunk.len(), positions: None, groups: Some(&self.groups), marks: None };
        self.states[state].update(&[], &rows, self.table.groups())?;
        self.reserve()
    }

    /// Finds the groups of the rows of `chunk`, whose first columns are the keys.
    fn find_groups(&mut self, chunk: &Chunk) {
        self.rows += chunk.len();
        if !self.key_columns.is_empty() {
            self.table.find(chunk, &self.key_columns, &mut self.groups);
            self.resize_states();
        }
    }

    fn reserve(&mut self) -> Result<()> {
        let states: usize = self.states.iter().map(State::bytes).sum();
        let deferred: usize = self.deferred.iter().map(Deferred::bytes).sum();
        let bytes = self.table.bytes() + states + deferred;
        if bytes != self.reservation.bytes() { self.reservation.resize(bytes) } else { Ok(()) }
    }

    /// Merges the groups `ids` of a table with keys `keys` and `states`; with `tags`, into a hashed table. If there is a
    /// `map`, it gets the own group of each.
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

    /// Merges one partition of a sealed table.
    ///
    /// # Errors
    /// Those of the states; resource.
    pub fn merge(&mut self, sealed: &Sealed, partition: usize) -> Result<()> {
        let ids: Vec<u32> = sealed.partition(partition).collect();
        self.merge_groups(&sealed.keys, &sealed.states, &ids, Some(&sealed.tags), None)
    }

    /// Ends the adding of rows and sorts the groups by their partition, of `1 << bits`, keys and states included, so
    /// that each partition is read in one go.
    ///
    /// # Errors
    /// Resource.
    pub fn seal(self, bits: u32) -> Result<Sealed> {
        debug_assert!(self.deferred.is_empty());
        let (mut states, mut reservation) = (self.states, self.reservation);
        let (keys, tags) = self.table.seal();
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
        reservation.resize(2 * keys.bytes() + states.iter().map(State::bytes).sum::<usize>() + ids.len() * 8)?;
        let keys = keys.reordered(&ids);
        states.iter_mut().for_each(|state| state.reorder(&ids));
        let tags: Vec<u32> = ids.iter().map(|&id| tags[id as usize]).collect();
        reservation.resize(keys.bytes() + states.iter().map(State::bytes).sum::<usize>() + tags.len() * 4)?;
        Ok(Sealed { keys, states, tags, starts, _reservation: reservation })
    }

    /// Feeds what was deferred and asks external functions for their results: the states are then ready to be read.
    ///
    /// # Errors
    /// Those of the states; resource; interrupted.
    pub fn complete(&mut self, layout: &Layout, tasks: &dyn Tasks) -> Result<()> {
        let groups = self.table.groups();
        for (mut deferred, spec) in std::mem::take(&mut self.deferred).into_iter().zip(&layout.deferred) {
            deferred.feed(spec, groups, &mut self.states, &mut self.feeder, tasks, &self.context)?;
        }
        for (state, spec) in self.states.iter_mut().zip(layout.results_of_states()) {
            let State::External(external) = state else { continue };
            let meta = spec.ok_or_else(|| Error::internal("an external state without a result"))?;
            let external = external.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
            let mut results = Materialized::new(std::slice::from_ref(meta));
            let mut out = Vector::new(meta.physical);
            for start in (0..groups).step_by(CHUNK_ROWS) {
                self.context.check()?;
                let rows = CHUNK_ROWS.min(groups - start);
                external.finish(start, rows, &mut out)?;
                results.append_vectors(&[(&out, None)], rows);
            }
            *state = State::Results(results);
        }
        self.reserve()
    }
}

impl Sealed {
    /// The groups of a partition.
    pub fn partition(&self, partition: usize) -> std::ops::Range<u32> {
        self.starts[partition]..self.starts[partition + 1]
    }
}
