//! Groups of rows with equal keys, which are adjacent in an order, and their places.
//!
//! The keys of each group are kept as a row, in whichever table a join of these rows would get. So a probe
//! row finds its group as it would find a match.

use super::super::{BuildStats, Cursor, JoinTable, LookupKind, Pairs, ProbeKeys, TableRequest, choose};
use super::ingredients::Ingredients;
use crate::exec::key_filter::{Expected, key_bounds};
use crate::exec::materialized::{Materialized, column_of};
use crate::memory::Reservation;
use crate::settings::TableKind;
use entasis_vector::{CHUNK_ROWS, DataType, Error, Result, Vector};

/// See the module.
pub(super) struct KeyGroups {
    null_equals_null: Vec<bool>,
    /// The keys, and the number of each group.
    keys: Materialized,
    table: Box<dyn JoinTable>,
    /// For each row of `keys`, where its group begins and ends.
    stretches: Vec<(u32, u32)>,
    _memory: Reservation,
}

/// The state of a probe among groups.
#[derive(Debug, Default)]
pub(super) struct GroupCursor {
    candidates: Pairs,
    hits: Pairs,
    cursor: Cursor,
}

impl KeyGroups {
    /// The groups of the rows `order`, which are in the order of their keys, the first columns of `rows`.
    ///
    /// # Errors
    /// Those of the tasks; resource.
    pub(super) fn new(rows: &Materialized, order: &[u32], with: &Ingredients<'_>) -> Result<KeyGroups> {
        let count = with.null_equals_null.len();
        let mut starts: Vec<u32> = Vec::new();
        for (number, ids) in order.chunks(CHUNK_ROWS).enumerate() {
            with.tasks.check()?;
            for (i, &id) in ids.iter().enumerate() {
                let place = number * CHUNK_ROWS + i;
                let before = place.checked_sub(1).map(|before| order[before]);
                let is_same =
                    |before| (0..count).all(|key| rows.compare(key, before, id, false, false).is_eq());
                if !before.is_some_and(is_same) {
                    starts.push(place as u32);
                }
            }
        }
        let metas: Vec<_> =
            rows.columns()[..count].iter().cloned().chain([column_of(DataType::Int64)]).collect();
        let mut keys = Materialized::new(&metas);
        let mut memory = Reservation::new(with.memory);
        let mut vectors: Vec<Vector> = metas.iter().map(|meta| Vector::new(meta.physical)).collect();
        let columns: Vec<usize> = (0..count).collect();
        for (number, part) in starts.chunks(CHUNK_ROWS).enumerate() {
            let ids: Vec<u32> = part.iter().map(|&start| order[start as usize]).collect();
            rows.gather_all(&columns, &ids, &mut vectors[..count]);
            let numbers = vectors[count].begin_flat::<i64>(CHUNK_ROWS);
            numbers.iter_mut().zip((number * CHUNK_ROWS) as i64..).for_each(|(to, number)| *to = number);
            let all: Vec<(&Vector, Option<&[u16]>)> = vectors.iter().map(|vector| (vector, None)).collect();
            keys.append_vectors(&all, ids.len());
            memory.resize(keys.bytes() + starts.capacity() * size_of::<(u32, u32, u32)>())?;
        }
        let bounds = key_bounds(&keys, with.null_equals_null, with.tasks)?;
        let facts = BuildStats { keys: count, bounds, bits: None, repetition: None };
        let read: Vec<bool> = (0..=count).map(|column| column == count).collect();
        let request = TableRequest {
            kind: TableKind::Auto,
            asked: LookupKind::Rows,
            read: &read,
            expected: Expected::default(),
        };
        let chosen = choose(
            &request,
            &facts,
            keys,
            with.null_equals_null,
            with.hash_collisions,
            &mut memory,
            with.tasks,
        )?;
        let (keys, table) = (chosen.rows, chosen.table);
        let mut stretches = vec![(0, 0); keys.id_space()];
        let ids: Vec<u32> = keys.ids().collect();
        for ids in ids.chunks(CHUNK_ROWS) {
            keys.gather(count, ids, &mut vectors[count]);
            for (&id, &number) in ids.iter().zip(vectors[count].values::<i64>()) {
                let end = starts.get(number as usize + 1).map_or(order.len() as u32, |&start| start);
                let start =
                    starts.get(number as usize).ok_or_else(|| Error::internal("a group without rows"))?;
                stretches[id as usize] = (*start, end);
            }
        }
        memory.resize(keys.bytes() + table.bytes() + stretches.capacity() * size_of::<(u32, u32)>())?;
        Ok(KeyGroups {
            null_equals_null: with.null_equals_null.to_vec(),
            keys,
            table,
            stretches,
            _memory: memory,
        })
    }

    /// Writes where each probe row's group begins and ends; a row without a group gets an empty range.
    pub(super) fn find(
        &self,
        keys: &mut ProbeKeys,
        own: &mut GroupCursor,
        starts: &mut [u32],
        ends: &mut [u32],
    ) {
        starts.fill(0);
        ends.fill(0);
        let GroupCursor { candidates, hits, cursor } = own;
        self.table.first(keys, candidates, cursor);
        while candidates.len() > 0 {
            hits.clear();
            hits.extend(candidates);
            if !self.table.is_exact(cursor) {
                for (i, &null_equals_null) in self.null_equals_null.iter().enumerate() {
                    let (vector, positions) = keys.column(i);
                    let Pairs { rows, ids } = &mut *hits;
                    self.keys.retain_equal(i, vector, positions, null_equals_null, rows, ids);
                }
            }
            for (&row, &id) in hits.rows.iter().zip(&hits.ids) {
                (starts[row as usize], ends[row as usize]) = self.stretches[id as usize];
            }
            self.table.next(keys, candidates, cursor);
        }
    }

    /// The number of groups.
    pub(super) fn count(&self) -> usize {
        self.keys.rows()
    }
}
