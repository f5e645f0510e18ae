//! Deferred calls: aggregates with `DISTINCT` or `ORDER BY`, whose rows are collected first and fed at the
//! end.
//!
//! A collection holds (group, arguments…, order keys…), under `DISTINCT` in a [`GroupTable`] over all of
//! these, so that equal rows of a group are kept once. At the end its rows are sorted by group and order
//! keys, if there is an order, and fed to the states like any chunk. Collections of several workers are
//! merged before that, so a value that two of them have seen still counts once.

use super::feed::{Feeder, Groups, true_rows};
use super::layout::DeferredSpec;
use super::state::State;
use crate::context::QueryContext;
use crate::exec::group_table::{GroupTable, partition_of};
use crate::exec::materialized::Materialized;
use crate::exec::operator::Tasks;
use crate::exec::sort::order::{OrderKey, bytes_for_row, order};
use crate::memory::Reservation;
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{Buffer, CHUNK_ROWS, Chunk, ColumnId, DataType, Result, Selection, Vector};
use std::sync::Arc;

/// The rows of one deferred call, of one worker.
pub struct Deferred {
    rows: Collected,
    /// 0, 1, 2, …: all columns of `staged`.
    columns: Vec<usize>,
    staged: Chunk,
    group_vector: Vector,
    found: Vec<u32>,
    passing: Vec<u16>,
    spares: Vec<Arc<Buffer>>,
}

enum Collected {
    All(Materialized),
    Distinct(Box<GroupTable>),
}

impl Deferred {
    /// An empty collection for `spec`. `collide` as in [`GroupTable::new`].
    pub fn new(spec: &DeferredSpec, collide: bool) -> Deferred {
        let group = ColumnMeta { nullable: false, ..ColumnMeta::new(ColumnId(0), DataType::UInt32) };
        let column =
            |(i, meta): (usize, &ColumnMeta)| ColumnMeta { id: ColumnId(i as u32 + 1), ..meta.clone() };
        let metas: Vec<ColumnMeta> =
            std::iter::once(group).chain(spec.metas.iter().enumerate().map(column)).collect();
        Deferred {
            columns: (0..metas.len()).collect(),
            rows: match spec.distinct {
                true => Collected::Distinct(Box::new(GroupTable::hashed(&metas, 0, collide))),
                false => Collected::All(Materialized::new(&metas)),
            },
            staged: Chunk::new(),
            group_vector: Vector::new(DataType::UInt32.physical()),
            found: Vec::new(),
            passing: Vec::new(),
            spares: Vec::new(),
        }
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        match &self.rows {
            Collected::All(rows) => rows.bytes(),
            Collected::Distinct(table) => table.bytes(),
        }
    }

    /// Collects the rows of `chunk`, the program's outputs. Row r belongs to group `groups[r]`, or to 0.
    pub fn push(&mut self, spec: &DeferredSpec, chunk: &Chunk, groups: Option<&[u32]>) {
        // The old chunk's vectors go first, so that the group vector is written in place.
        self.staged.reset(chunk.len());
        let values = self.group_vector.begin_flat::<u32>(CHUNK_ROWS);
        match groups {
            Some(groups) => values[..chunk.len()].copy_from_slice(groups),
            None => values.fill(0),
        }
        let first = self.staged.push_group(Selection::ALL);
        self.staged.push_column(self.group_vector.clone(), first);
        for selection in chunk.groups() {
            self.staged.push_group(selection.clone());
        }
        for &column in &spec.columns {
            let column = chunk.column(column);
            self.staged.push_column(column.vector.clone(), column.group + 1);
        }
        if let Some(filter) = spec.filter {
            true_rows(chunk, filter, &mut self.passing);
            if self.passing.is_empty() {
                return;
            }
            self.staged.select(&self.passing, &mut self.spares);
        }
        self.collect();
    }

    fn collect(&mut self) {
        match &mut self.rows {
            Collected::All(rows) => rows.append(&self.staged, &self.columns, None),
            Collected::Distinct(table) => table.find(&self.staged, &self.columns, &mut self.found),
        }
    }

    /// Takes over the rows of `other`, whose group g is the own group `map[g]`.
    ///
    /// # Errors
    /// Interrupted.
    pub fn merge(&mut self, other: &Deferred, map: &[u32], context: &QueryContext) -> Result<()> {
        let theirs = other.materialized();
        let mut vectors: Vec<Vector> =
            theirs.columns().iter().map(|meta| Vector::new(meta.physical)).collect();
        for segment in 0..theirs.segments() {
            let rows = theirs.segment_rows(segment);
            for first in (0..rows).step_by(CHUNK_ROWS) {
                context.check()?;
                let count = CHUNK_ROWS.min(rows - first);
                let columns = vectors.iter_mut().enumerate();
                columns.for_each(|(column, vector)| theirs.read(column, segment, first, count, vector));
                self.take_mapped(&vectors, count, map);
            }
        }
        Ok(())
    }

    /// Takes over those rows of `ids` of `other` whose group g has an own group, `map[g]`.
    ///
    /// # Errors
    /// Interrupted.
    pub fn merge_rows(
        &mut self,
        other: &Deferred,
        ids: &[u32],
        map: &[u32],
        context: &QueryContext,
    ) -> Result<()> {
        let theirs = other.materialized();
        let mut vectors: Vec<Vector> =
            theirs.columns().iter().map(|meta| Vector::new(meta.physical)).collect();
        let group = |id: u32| theirs.values::<u32>(0, (id >> 16) as usize)[(id & 0xffff) as usize];
        let has_own = |id: &u32| map[group(*id) as usize] != GroupTable::NONE;
        let ids: Vec<u32> = ids.iter().copied().filter(has_own).collect();
        for ids in ids.chunks(CHUNK_ROWS) {
            context.check()?;
            vectors.iter_mut().enumerate().for_each(|(column, vector)| theirs.gather(column, ids, vector));
            self.take_mapped(&vectors, ids.len(), map);
        }
        Ok(())
    }

    /// Collects rows of another collection: `vectors` are its columns, and its group g is the own group
    /// `map[g]`.
    fn take_mapped(&mut self, vectors: &[Vector], rows: usize, map: &[u32]) {
        self.staged.reset(rows);
        let values = self.group_vector.begin_flat::<u32>(CHUNK_ROWS);
        let groups = vectors[0].values::<u32>();
        values.iter_mut().zip(&groups[..rows]).for_each(|(v, &group)| *v = map[group as usize]);
        let dense = self.staged.push_group(Selection::ALL);
        self.staged.push_column(self.group_vector.clone(), dense);
        vectors[1..].iter().for_each(|vector| self.staged.push_column(vector.clone(), dense));
        self.collect();
        self.staged.reset(0);
    }

    /// Takes no more rows: drops the index that finds equal ones.
    pub fn end(&mut self) {
        let none = Collected::All(Materialized::new(&[]));
        self.rows = match std::mem::replace(&mut self.rows, none) {
            Collected::Distinct(table) => Collected::All(table.into_keys()),
            all => all,
        };
    }

    /// The rows of the collection by the partition of their group, of `1 << bits`: ids, and where each
    /// partition begins. Group g has the tag `tags[g]`.
    pub fn by_partition(&self, tags: &[u32], bits: u32) -> (Vec<u32>, Vec<u32>) {
        let rows = self.materialized();
        let partition = |segment: usize| {
            let groups = rows.values::<u32>(0, segment);
            groups.iter().map(|&group| partition_of(tags[group as usize], bits))
        };
        let mut starts = vec![0u32; (1 << bits) + 1];
        (0..rows.segments()).flat_map(partition).for_each(|p| starts[p + 1] += 1);
        (1..starts.len()).for_each(|p| starts[p] += starts[p - 1]);
        let mut next = starts.clone();
        let mut ids = vec![0; rows.rows()];
        for (id, partition) in rows.ids().zip((0..rows.segments()).flat_map(partition)) {
            ids[next[partition] as usize] = id;
            next[partition] += 1;
        }
        (ids, starts)
    }

    fn materialized(&self) -> &Materialized {
        match &self.rows {
            Collected::All(rows) => rows,
            Collected::Distinct(table) => table.keys(),
        }
    }

    /// Feeds everything collected to `states`, whose growth is added to `memory`.
    ///
    /// # Errors
    /// Those of the states; interrupted; resource.
    pub fn feed(
        &mut self,
        spec: &DeferredSpec,
        group_count: usize,
        states: &mut [State],
        feeder: &mut Feeder,
        tasks: &dyn Tasks,
        (context, memory): (&QueryContext, &mut Reservation),
    ) -> Result<()> {
        let rows = self.materialized();
        let (before, of_states) = (memory.bytes(), bytes_of(states));
        let ids: Vec<u32> = match spec.order.is_empty() {
            true => rows.ids().collect(),
            false => {
                let key = |&(column, descending, nulls_first): &(usize, bool, bool)| OrderKey {
                    column: column + 1,
                    descending,
                    nulls_first,
                };
                let group = OrderKey { column: 0, descending: false, nulls_first: false };
                let keys: Vec<OrderKey> = std::iter::once(group).chain(spec.order.iter().map(key)).collect();
                memory.resize(before + rows.rows() * bytes_for_row(rows.columns(), &keys))?;
                order(rows, &keys, rows.ids().collect(), Some(tasks))?
            }
        };
        let before = before + ids.len() * size_of::<u32>();
        let mut vectors: Vec<Vector> = rows.columns().iter().map(|meta| Vector::new(meta.physical)).collect();
        let mut groups = Vec::new();
        let mut chunk = Chunk::new();
        for ids in ids.chunks(CHUNK_ROWS) {
            context.check()?;
            chunk.reset(ids.len());
            let dense = chunk.push_group(Selection::ALL);
            for (column, vector) in vectors.iter_mut().enumerate() {
                rows.gather(column, ids, vector);
                chunk.push_column(vector.clone(), dense);
            }
            groups.clear();
            groups.extend_from_slice(&chunk.vector(0).values::<u32>()[..ids.len()]);
            feeder.feed(&spec.feeds, &chunk, Groups::Rows(&groups), group_count, states)?;
            memory.resize(before + bytes_of(states).saturating_sub(of_states))?;
        }
        Ok(())
    }
}

fn bytes_of(states: &[State]) -> usize {
    states.iter().map(State::bytes).sum()
}
