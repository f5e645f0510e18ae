//! Decoding: chunks of some of the relation's columns, from rows of one row group after another.
//!
//! The numbers of the rows, if they are wanted, are those of the row groups before and the places in this
//! one.
//!
//! A column whose type in the file differs from the relation's is converted, exactly or with an error. A
//! column that the file lacks, or whose value comes from its path, is a constant.

use super::bytes::{FREE, Pages};
use super::contents::{Contents, ParquetFile};
use super::footer::{self, guarded};
use super::morsel::Morsel;
use crate::columns::write_constants;
use arrow_array::RecordBatch;
use entasis_arrow::Importer;
use entasis_engine::exec::{MemoryBudget, QueryContext, Reservation};
use entasis_vector::{Chunk, Error, PhysicalType, Result, Selection, Vector};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder, RowSelection};
use std::collections::VecDeque;
use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

/// The part of the memory that is free that the rows of one batch may take.
const BATCH_SHARE: usize = 16;

/// How many rows are decoded at once, and the memory for them.
#[derive(Clone)]
pub(super) struct Batches {
    /// The most rows of a chunk.
    pub(super) rows: usize,
    pub(super) memory: Arc<MemoryBudget>,
}

impl Batches {
    pub(super) fn of(context: &QueryContext) -> Batches {
        let memory = MemoryBudget::part_of(&context.memory, "long values of Parquet files");
        Batches { rows: context.settings.chunk_rows.max(1), memory }
    }
}

/// One worker's decoder of some columns.
pub(super) struct Decoder {
    relation: Arc<Contents>,
    columns: Vec<usize>,
    batches: Batches,
    state: State,
    importers: Vec<Importer>,
    vectors: Vec<Vector>,
    /// The numbers of the rows, behind all columns, if they are wanted.
    numbers: Option<RowNumbers>,
}

/// What a decoder is doing.
enum State {
    /// It has no rows.
    Between,
    /// No column is in the file: it only counts rows.
    Counting { rows: u64 },
    /// It decodes. The batch is output from `offset` on.
    Reading {
        file: usize,
        group: usize,
        reader: Box<ParquetRecordBatchReader>,
        pages: Pages,
        /// The index of each column in the batch; `None` if it has one value in the whole file.
        places: Vec<Option<usize>>,
        batch: RecordBatch,
        /// That of the batch, if it is large.
        memory: Reservation,
        offset: usize,
    },
}

impl Decoder {
    /// A decoder of `columns` of the relation, and of the numbers of rows, if the last of them is that behind
    /// the relation's last.
    pub(super) fn new(relation: &Arc<Contents>, mut columns: Vec<usize>, batches: &Batches) -> Decoder {
        let numbers = columns.pop_if(|last| *last == relation.schema.len()).map(|_| RowNumbers::new());
        let vector = |&column: &usize| Vector::new(relation.schema[column].ty.physical());
        Decoder {
            relation: relation.clone(),
            batches: batches.clone(),
            state: State::Between,
            importers: columns.iter().map(|_| Importer::default()).collect(),
            vectors: columns.iter().map(vector).collect(),
            columns,
            numbers,
        }
    }

    /// Begins with the rows of `morsel`, or with those of its row group that are selected.
    ///
    /// # Errors
    /// I/O; input, if the file is malformed; not supported, for some compressions.
    pub(super) fn open(&mut self, morsel: &Morsel, selected: Option<RowSelection>) -> Result<()> {
        let rows = morsel.rows.end - morsel.rows.start;
        let relation = self.relation.clone();
        let file = &relation.files[morsel.file];
        let wanted: Vec<Option<usize>> = self.columns.iter().map(|&column| file.column(column)).collect();
        if let Some(numbers) = &mut self.numbers {
            numbers.begin(relation.starts[morsel.index], &morsel.rows, selected.as_ref());
        }
        write_constants(&mut self.vectors, &self.columns, &relation.schema, &file.columns)?;
        if wanted.iter().all(Option::is_none) {
            let rows = selected.map_or(rows, |selected| selected.row_count() as u64);
            self.state = State::Counting { rows };
            return Ok(());
        }
        file.check_codecs(morsel.group, &wanted)?;
        let mask = ProjectionMask::roots(file.metadata.parquet_schema(), wanted.iter().flatten().copied());
        // Batches have the requested columns in the file's order, without duplicates.
        let mut order: Vec<usize> = wanted.iter().flatten().copied().collect();
        order.sort_unstable();
        order.dedup();
        let places = wanted.iter().map(|column| order.binary_search(&(*column)?).ok()).collect();
        let handle =
            File::open(&file.path).map_err(|e| Error::io(format!("'{}'", file.path.display()), &e))?;
        let pages =
            Pages::new(handle, file.metadata.metadata().row_group(morsel.group), &self.batches.memory);
        let handle = pages.clone();
        let batch_rows = self.batch_rows(file, morsel.group, &order);
        let reader = guarded(
            || file.place(morsel.group),
            || {
                // Page indexes know where the pages are that have selected rows.
                let footer = if selected.is_some() { file.indexed() } else { &file.reading };
                let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(handle, footer.clone())
                    .with_row_groups(vec![morsel.group])
                    .with_projection(mask)
                    .with_batch_size(batch_rows);
                if let Some(selected) = selected {
                    return builder.with_row_selection(selected).build();
                }
                // PERF: readers of whole row groups need no list of rows.
                if rows == relation.rows(morsel.file, morsel.group) {
                    return builder.build();
                }
                builder.with_offset(morsel.rows.start as usize).with_limit(rows as usize).build()
            },
        );
        let reader = reader.map_err(|error| pages.failed().unwrap_or(error))?;
        self.state = State::Reading {
            file: morsel.file,
            group: morsel.group,
            batch: RecordBatch::new_empty(file.reading.schema().clone()),
            reader: Box::new(reader),
            pages,
            memory: Reservation::new(&self.batches.memory),
            places,
            offset: 0,
        };
        Ok(())
    }

    /// The rows to be decoded at once from a row group: fewer than those of a chunk, if they are long.
    fn batch_rows(&self, file: &ParquetFile, group: usize, columns: &[usize]) -> usize {
        let parts = file.metadata.parquet_schema();
        let group = file.metadata.metadata().row_group(group);
        let wanted = |leaf: &usize| columns.contains(&parts.get_column_root_idx(*leaf));
        let bytes = |leaf: usize| group.column(leaf).uncompressed_size().max(0) as u64;
        let bytes = (0..group.num_columns()).filter(wanted).map(bytes).fold(0, u64::saturating_add);
        let row_bytes = bytes / group.num_rows().max(1) as u64;
        let most = (self.batches.memory.free() / BATCH_SHARE) as u64 / row_bytes.max(1);
        usize::try_from(most).map_or(self.batches.rows, |most| most.clamp(1, self.batches.rows))
    }

    /// Fills `chunk` with the next rows; false if there are none.
    ///
    /// # Errors
    /// I/O; input, if the file is malformed or a value does not fit the relation's type.
    pub(super) fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        loop {
            match &mut self.state {
                State::Between | State::Counting { rows: 0 } => return Ok(false),
                State::Counting { rows } => {
                    let now = (*rows).min(self.batches.rows as u64);
                    *rows -= now;
                    chunk.reset(now as usize);
                    let group = chunk.push_group(Selection::ALL);
                    self.vectors.iter().for_each(|vector| chunk.push_column(vector.clone(), group));
                    self.numbers.iter_mut().for_each(|numbers| numbers.push(chunk, group));
                    return Ok(true);
                }
                State::Reading { file, group, reader, pages, places, batch, memory, offset } => {
                    let file = &self.relation.files[*file];
                    if *offset == batch.num_rows() {
                        // What is long goes before more comes.
                        (*batch, *offset) = (RecordBatch::new_empty(batch.schema()), 0);
                        if memory.bytes() > 0 {
                            self.vectors.iter_mut().for_each(Vector::drop_strings);
                            memory.resize(0)?;
                        }
                        let next = guarded(|| file.place(*group), || reader.next().transpose());
                        match next.map_err(|error| pages.failed().unwrap_or(error))? {
                            Some(next) => {
                                pages.end_batch();
                                let bytes = next.get_array_memory_size();
                                memory.resize(if bytes > FREE { bytes } else { 0 })?;
                                *batch = next;
                            }
                            None => self.state = State::Between,
                        }
                        continue;
                    }
                    let rows = (batch.num_rows() - *offset).min(self.batches.rows);
                    chunk.reset(rows);
                    let group = chunk.push_group(Selection::ALL);
                    for (slot, place) in places.iter().enumerate() {
                        let vector = &mut self.vectors[slot];
                        if let Some(place) = place {
                            let field = &self.relation.schema[self.columns[slot]];
                            let column = &**batch.column(*place);
                            self.importers[slot].import(column, *offset, rows, field.ty, vector).map_err(
                                |e| {
                                    let file = footer::place(&file.path);
                                    e.with_context(format!("{file}, column \"{}\"", field.name))
                                },
                            )?;
                        }
                        chunk.push_column(vector.clone(), group);
                    }
                    *offset += rows;
                    self.numbers.iter_mut().for_each(|numbers| numbers.push(chunk, group));
                    return Ok(true);
                }
            }
        }
    }
}

/// The numbers of the rows that a decoder gives next.
struct RowNumbers {
    /// Runs of numbers, in order.
    runs: VecDeque<Range<u64>>,
    vector: Vector,
}

impl RowNumbers {
    fn new() -> RowNumbers {
        RowNumbers { runs: VecDeque::new(), vector: Vector::new(PhysicalType::I64) }
    }

    /// Begins with the rows at the places `rows` of a row group whose first row is number `start`, or with
    /// those of the row group that are selected.
    fn begin(&mut self, start: u64, rows: &Range<u64>, selected: Option<&RowSelection>) {
        self.runs.clear();
        let Some(selected) = selected else {
            return self.runs.push_back(start + rows.start..start + rows.end);
        };
        let mut next = start;
        for run in selected.iter() {
            let end = next + run.row_count as u64;
            if !run.skip {
                self.runs.push_back(next..end);
            }
            next = end;
        }
    }

    /// Adds the column for the rows of `chunk`.
    fn push(&mut self, chunk: &mut Chunk, group: usize) {
        let rows = chunk.len();
        for slot in &mut self.vector.begin_flat::<i64>(rows)[..rows] {
            while self.runs.front().is_some_and(Range::is_empty) {
                self.runs.pop_front();
            }
            *slot = self.runs.front_mut().and_then(Iterator::next).map_or(-1, |number| number as i64);
        }
        chunk.push_column(self.vector.clone(), group);
    }
}
