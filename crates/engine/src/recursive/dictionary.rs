//! The rows of a recursion with `USING KEY`: one of each key, that which came last.
//!
//! Rows stay in the chunks that they came in. A [hash table](crate::exec) numbers the keys, and each number
//! has the place of its row; a row that is at no such place has been replaced. When more than half of all
//! rows have been, those that are left are packed anew, so that memory is that of the entries, and a round
//! costs what it brings.

use crate::context::QueryContext;
use crate::exec::group_table::GroupTable;
use crate::exec::sink::ResultSink;
use crate::exec::{Collector, ResultSet};
use crate::memory::Reservation;
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{CHUNK_ROWS, Chunk, ColumnId, DataType, Result};

/// See the module.
pub(super) struct Dictionary {
    types: Vec<DataType>,
    /// The columns of the key.
    keys: Vec<usize>,
    table: GroupTable,
    /// By number of a key: the chunk and the row in it.
    places: Vec<(usize, usize)>,
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
    pub(super) fn new(types: Vec<DataType>, keys: Vec<usize>, context: &QueryContext) -> Dictionary {
        let meta = |(i, &column): (usize, &usize)| ColumnMeta {
            id: ColumnId(i as u32),
            ty: types[column],
            physical: types[column].physical(),
            nullable: true,
            range: None,
        };
        let metas: Vec<ColumnMeta> = keys.iter().enumerate().map(meta).collect();
        let table = GroupTable::new(&metas, 0, context.settings.hash_collisions);
        let memory = Reservation::new(&context.memory);
        let (places, chunks, held) = (Vec::new(), Vec::new(), Vec::new());
        Dictionary { types, keys, table, places, chunks, rows: 0, held, memory }
    }

    /// Puts the rows of a round in, each in the place of the one that had its key. Returns those that are in
    /// it then: of rows with one key the last.
    pub(super) fn put(&mut self, found: ResultSet, context: &QueryContext) -> Result<ResultSet> {
        let first = self.chunks.len();
        self.add(found)?;
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

    fn add(&mut self, found: ResultSet) -> Result<()> {
        for chunk in found.chunks {
            let mut numbers = Vec::new();
            self.table.find(&chunk, &self.keys, &mut numbers);
            self.places.resize(self.table.groups(), (0, 0));
            for (row, &number) in numbers.iter().enumerate() {
                self.places[number as usize] = (self.chunks.len(), row);
            }
            self.rows += chunk.len();
            self.chunks.push((chunk, numbers));
        }
        self.held.extend(found.memory);
        let numbers = self.rows * size_of::<u32>() + self.places.capacity() * size_of::<(usize, usize)>();
        self.memory.resize(self.table.bytes() + numbers)
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
