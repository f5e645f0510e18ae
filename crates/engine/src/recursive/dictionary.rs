//! The rows of a recursion with `USING KEY`: one of each key, that which came last.
//!
//! A row that is equal to the one that its key has already changes nothing. Under `UNION` it is not new, so
//! that a recursion ends when nothing changes any more; under `UNION ALL` every row that comes is.
//!
//! Rows stay in the chunks that they came in. A [hash table](crate::exec) numbers the keys, and each number
//! has the place of its row; a row that is at no such place has been replaced. When more than half of all
//! rows have been, those that are left are packed anew, so that memory is that of the entries, and a round
//! costs what it brings.

use crate::context::QueryContext;
use crate::exec::group_table::GroupTable;
use crate::exec::sink::ResultSink;
use crate::exec::{Collector, ResultSet};
use crate::memory::{MemoryBudget, Reservation};
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{CHUNK_ROWS, Chunk, ColumnId, DataType, Result};

/// A chunk, and a row in it.
type Place = (usize, usize);

/// See the module.
pub(super) struct Dictionary {
    types: Vec<DataType>,
    /// The columns of the key.
    keys: Vec<usize>,
    /// Rows that change nothing are not new.
    only_changes: bool,
    table: GroupTable,
    /// By number of a key: the chunk and the row in it.
    places: Vec<Place>,
    /// Chunks of rows, with the numbers of the rows' keys.
    chunks: Vec<(Chunk, Vec<u32>)>,
    /// Rows of all chunks.
    rows: usize,
    /// What the chunks take.
    held: Vec<Reservation>,
    /// What the table takes.
    memory: Reservation,
}

impl Dictionary {
    /// An empty one, for rows of these types.
    pub(super) fn new(
        types: Vec<DataType>,
        keys: Vec<usize>,
        only_changes: bool,
        context: &QueryContext,
    ) -> Dictionary {
        let meta = |(i, &column): (usize, &usize)| ColumnMeta {
            id: ColumnId(i as u32),
            ty: types[column],
            physical: types[column].physical(),
            nullable: true,
            range: None,
        };
        let metas: Vec<ColumnMeta> = keys.iter().enumerate().map(meta).collect();
        let table = GroupTable::new(&metas, 0, context.settings.hash_collisions);
        let memory = Reservation::new(&MemoryBudget::part_of(&context.memory, "a recursion"));
        let (places, chunks, held) = (Vec::new(), Vec::new(), Vec::new());
        Dictionary { types, keys, only_changes, table, places, chunks, rows: 0, held, memory }
    }

    /// Puts the rows of a round in, each in the place of the one that had its key. Returns those that are in
    /// it then and are new: of rows with one key the last.
    pub(super) fn put(&mut self, found: ResultSet, context: &QueryContext) -> Result<ResultSet> {
        let first = self.chunks.len();
        let replaced = self.add(found)?;
        if self.only_changes {
            for (number, old) in replaced {
                if self.are_equal(old, self.places[number as usize]) {
                    self.places[number as usize] = old;
                }
            }
        }
        let new = self.collect(first, context)?;
        if self.rows > 2 * self.places.len() + CHUNK_ROWS {
            let left = self.entries(context)?;
            self.chunks.clear();
            self.held.clear();
            self.rows = 0;
            self.add(left)?;
        }
        Ok(new)
    }

    /// All entries.
    pub(super) fn entries(&self, context: &QueryContext) -> Result<ResultSet> {
        self.collect(0, context)
    }

    /// True if the rows at two places have the same values.
    fn are_equal(&self, a: Place, b: Place) -> bool {
        let value = |(chunk, row): Place, column, ty| self.chunks[chunk].0.value(row, column, ty);
        let mut columns = self.types.iter().enumerate();
        columns.all(|(column, &ty)| value(a, column, ty).total_cmp(&value(b, column, ty)).is_eq())
    }

    /// Adds rows as the entries of their keys. Returns the numbers of the keys that had entries before, with
    /// the places of these.
    fn add(&mut self, found: ResultSet) -> Result<Vec<(u32, Place)>> {
        let (known, first) = (self.table.groups(), self.chunks.len());
        let mut replaced = Vec::new();
        for chunk in found.chunks {
            let mut numbers = Vec::new();
            self.table.find(&chunk, &self.keys, &mut numbers);
            self.places.resize(self.table.groups(), (0, 0));
            for (row, &number) in numbers.iter().enumerate() {
                let place = &mut self.places[number as usize];
                if (number as usize) < known && place.0 < first {
                    replaced.push((number, *place));
                }
                *place = (self.chunks.len(), row);
            }
            self.rows += chunk.len();
            self.chunks.push((chunk, numbers));
        }
        self.held.extend(found.memory);
        let numbers = self.rows * size_of::<u32>() + self.places.capacity() * size_of::<(usize, usize)>();
        self.memory.resize(self.table.bytes() + numbers)?;
        Ok(replaced)
    }

    /// The entries in the chunks from `first` on.
    fn collect(&self, first: usize, context: &QueryContext) -> Result<ResultSet> {
        let collector = Collector::new(context, self.types.clone());
        let mut worker = collector.worker()?;
        worker.start_morsel(0);
        let (mut picks, mut spares) = (Vec::new(), Vec::new());
        for (at, (chunk, numbers)) in self.chunks.iter().enumerate().skip(first) {
            context.check()?;
            picks.clear();
            let is_entry = |&(row, &number): &(usize, &u32)| self.places[number as usize] == (at, row);
            picks.extend(numbers.iter().enumerate().filter(is_entry).map(|(row, _)| row as u16));
            if picks.len() == chunk.len() {
                worker.push(chunk)?;
            } else if !picks.is_empty() {
                let mut chunk = chunk.clone();
                chunk.select(&picks, &mut spares);
                worker.push(&chunk)?;
            }
        }
        worker.finish()?;
        drop(worker);
        Ok(collector.into_chunks())
    }
}
