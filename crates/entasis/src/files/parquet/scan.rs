//! The scan of Parquet files: workers take row groups or parts of them, and decode the requested columns.
//!
//! A column whose type in the file differs from the relation's is converted, exactly or with an error. A
//! column that the file lacks, or whose value comes from its path, is a constant.

use super::Inner;
use super::footer::{self, guarded};
use crate::files::columns::write_constants;
use arrow_array::RecordBatch;
use entasis_arrow::Importer;
use entasis_engine::relation::{Source, SourceWorker};
use entasis_vector::{Chunk, Error, Result, Selection, Vector};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use std::fs::File;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Rows of one row group that a worker reads.
pub(super) struct Morsel {
    pub(super) file: usize,
    pub(super) group: usize,
    pub(super) rows: Range<u64>,
}

impl Morsel {
    /// The morsel, cut into parts of `length` rows.
    pub(super) fn parts(&self, length: u64) -> impl Iterator<Item = Morsel> {
        let Morsel { file, group, rows: Range { start, end } } = *self;
        let part = move |from: u64| Morsel { file, group, rows: from..end.min(from.saturating_add(length)) };
        (start..end).step_by(length as usize).map(part)
    }
}

/// The state that workers share: which rows are next.
struct Shared {
    morsels: Vec<Morsel>,
    next: AtomicUsize,
}

pub(super) struct ParquetSource {
    relation: Arc<Inner>,
    columns: Vec<usize>,
    chunk_rows: usize,
    shared: Arc<Shared>,
}

impl ParquetSource {
    /// A scan of `morsels`, in that order, that reads `columns` of the relation.
    pub(super) fn new(
        relation: Arc<Inner>,
        columns: Vec<usize>,
        chunk_rows: usize,
        morsels: Vec<Morsel>,
    ) -> Self {
        let shared = Arc::new(Shared { morsels, next: AtomicUsize::new(0) });
        ParquetSource { relation, columns, chunk_rows, shared }
    }
}

impl Source for ParquetSource {
    fn worker(&self) -> Result<Box<dyn SourceWorker>> {
        Ok(Box::new(ParquetWorker {
            relation: self.relation.clone(),
            columns: self.columns.clone(),
            chunk_rows: self.chunk_rows,
            shared: self.shared.clone(),
            morsel: 0,
            state: State::Between,
            importers: self.columns.iter().map(|_| Importer::default()).collect(),
            vectors: self
                .columns
                .iter()
                .map(|&c| Vector::new(self.relation.schema[c].ty.physical()))
                .collect(),
        }))
    }

    fn progress(&self) -> Option<f64> {
        let total = self.shared.morsels.len().max(1) as f64;
        Some((self.shared.next.load(Ordering::Relaxed) as f64 / total).min(1.0))
    }
}

/// What a worker is doing.
enum State {
    /// It has no rows.
    Between,
    /// No column is requested: it only counts rows.
    Counting { rows: u64 },
    /// It decodes. The batch is output from `offset` on.
    Reading {
        file: usize,
        group: usize,
        reader: Box<ParquetRecordBatchReader>,
        /// The index of each requested column in the batch; `None` if it has one value in the whole file.
        places: Vec<Option<usize>>,
        batch: RecordBatch,
        offset: usize,
    },
}

struct ParquetWorker {
    relation: Arc<Inner>,
    columns: Vec<usize>,
    chunk_rows: usize,
    shared: Arc<Shared>,
    morsel: u64,
    state: State,
    importers: Vec<Importer>,
    vectors: Vec<Vector>,
}

impl ParquetWorker {
    /// Takes the next rows. False if there are none.
    fn take_morsel(&mut self) -> Result<bool> {
        let next = self.shared.next.fetch_add(1, Ordering::Relaxed);
        let shared = self.shared.clone();
        let Some(morsel) = shared.morsels.get(next) else {
            self.state = State::Between;
            return Ok(false);
        };
        self.morsel = next as u64;
        let rows = morsel.rows.end - morsel.rows.start;
        let relation = self.relation.clone();
        let file = &relation.files[morsel.file];
        let wanted: Vec<Option<usize>> = self.columns.iter().map(|&column| file.column(column)).collect();
        self.write_constants(morsel.file)?;
        if wanted.iter().all(Option::is_none) {
            self.state = State::Counting { rows };
            return Ok(true);
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
        let reader = guarded(
            || file.place(morsel.group),
            || {
                let builder =
                    ParquetRecordBatchReaderBuilder::new_with_metadata(handle, file.reading.clone())
                        .with_row_groups(vec![morsel.group])
                        .with_projection(mask)
                        .with_batch_size(self.chunk_rows);
                // PERF: readers of whole row groups need no list of rows.
                if rows == relation.rows(morsel.file, morsel.group) {
                    return builder.build();
                }
                builder.with_offset(morsel.rows.start as usize).with_limit(rows as usize).build()
            },
        )?;
        self.state = State::Reading {
            file: morsel.file,
            group: morsel.group,
            batch: RecordBatch::new_empty(file.reading.schema().clone()),
            reader: Box::new(reader),
            places,
            offset: 0,
        };
        Ok(true)
    }

    /// Makes the vectors of the columns that have one value in the whole file.
    fn write_constants(&mut self, file: usize) -> Result<()> {
        let origins = &self.relation.files[file].columns;
        write_constants(&mut self.vectors, &self.columns, &self.relation.schema, origins)
    }
}

impl SourceWorker for ParquetWorker {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        chunk.reset(0);
        loop {
            match &mut self.state {
                State::Between | State::Counting { rows: 0 } => {}
                State::Counting { rows } => {
                    let now = (*rows).min(self.chunk_rows as u64);
                    *rows -= now;
                    chunk.reset(now as usize);
                    let group = chunk.push_group(Selection::ALL);
                    self.vectors.iter().for_each(|vector| chunk.push_column(vector.clone(), group));
                    return Ok(true);
                }
                State::Reading { file, group, reader, places, batch, offset } => {
                    let file = &self.relation.files[*file];
                    if *offset == batch.num_rows() {
                        match guarded(|| file.place(*group), || reader.next().transpose())? {
                            Some(next) => (*batch, *offset) = (next, 0),
                            None => self.state = State::Between,
                        }
                        continue;
                    }
                    let rows = (batch.num_rows() - *offset).min(self.chunk_rows);
                    chunk.reset(rows);
                    let group = chunk.push_group(Selection::ALL);
                    for (slot, place) in places.iter().enumerate() {
                        let vector = &mut self.vectors[slot];
                        if let Some(place) = place {
                            let field = &self.relation.schema[self.columns[slot]];
                            let importer = &mut self.importers[slot];
                            importer
                                .import(&**batch.column(*place), *offset, rows, field.ty, vector)
                                .map_err(|e| {
                                    e.with_context(format!(
                                        "{}, column \"{}\"",
                                        footer::place(&file.path),
                                        field.name
                                    ))
                                })?;
                        }
                        chunk.push_column(vector.clone(), group);
                    }
                    *offset += rows;
                    return Ok(true);
                }
            }
            if !self.take_morsel()? {
                return Ok(false);
            }
        }
    }

    fn morsel(&self) -> u64 {
        self.morsel
    }
}
