//! Merging sorted runs: their rows in one order, a few blocks in memory at a time.
//!
//! One block of each run is loaded. A round outputs some of the loaded rows:
//! 1. A run whose block has been output loads the next one.
//! 2. The *boundary* is the least of the last loaded rows of the runs that have more blocks: no row that is
//!    still in the file comes before it.
//! 3. The rows of each run up to the boundary, found by binary search, are concatenated, and [ordered](order)
//!    as rows in memory are. They are sorted stretches already, which a stable sort detects and merges. If
//!    only one run has such rows, these are in order.
//!
//! So each row is compared as a code, not as a row of a file, and a round with few rows does little: a binary
//! search for each run, and the loading of one block, the one whose last row was the boundary. Runs that do
//! not overlap pass through one after another.
//!
//! Order of equal rows: by morsel, then by the place of the run among those that are merged ([`super::runs`]
//! says why this is the order of arrival), then as in the run.
//!
//! All memory that a merge will need is reserved when it begins, and released as runs end.
//!
//! Not here: heaps or loser trees, which compare rows one at a time; read-ahead; several workers for one
//! merge.

use super::order::{self, Ordered};
use super::run::{ORDER_BYTES, SortedRun};
use super::run_spec::RunSpec;
use crate::exec::materialized::Materialized;
use crate::exec::spill::rows::Blocks;
use crate::memory::Reservation;
use entasis_vector::{CHUNK_ROWS, Chunk, Result, Vector};
use std::cmp::Ordering;

/// Some runs that are merged into one.
pub struct Merge {
    /// The runs that have rows left, in the order of the list.
    inputs: Vec<Input>,
    /// Rows that are still to be output.
    wanted: usize,
    /// 0, 1, 2, …
    columns: Vec<usize>,
    blocks: Blocks,
    chunk: Chunk,
    vectors: Vec<Vector>,
    memory: Reservation,
    /// The rows of this round, with their morsels.
    ordered: Ordered,
}

/// A run that is being merged.
struct Input {
    run: SortedRun,
    /// Blocks that have been loaded.
    loaded: usize,
    /// The rows of the last one, and how many of them have been output.
    rows: Materialized,
    given: usize,
}

impl Input {
    fn is_given(&self) -> bool {
        self.given == self.rows.rows()
    }
    fn has_more_blocks(&self) -> bool {
        self.loaded < self.run.blocks.len()
    }
    fn last_row(&self) -> usize {
        self.rows.rows() - 1
    }
}

impl Merge {
    /// Merges `runs`, which are consecutive in the list.
    ///
    /// # Errors
    /// Resource, if there is no memory for a block of each.
    pub fn new(runs: &RunSpec, inputs: Vec<SortedRun>) -> Result<Merge> {
        let mut memory = Reservation::new(&runs.context().memory);
        memory.resize(inputs.iter().map(|run| run.needs).sum())?;
        let input = |run| Input { run, loaded: 0, rows: Materialized::new(runs.columns()), given: 0 };
        Ok(Merge {
            wanted: inputs.iter().map(|run| run.rows).sum::<usize>().min(runs.limit()),
            inputs: inputs.into_iter().map(input).collect(),
            columns: (0..runs.columns().len()).collect(),
            blocks: Blocks::new(runs.format(), CHUNK_ROWS),
            chunk: Chunk::new(),
            vectors: runs.columns().iter().map(|meta| Vector::new(meta.physical)).collect(),
            memory,
            ordered: Ordered { rows: Materialized::new(runs.columns()), order: Vec::new() },
        })
    }

    /// Rows that are still to come.
    pub fn rows(&self) -> usize {
        self.wanted
    }

    /// The rows of this round: at first, and at the end, there are none.
    pub fn ordered(&self) -> &Ordered {
        &self.ordered
    }

    /// Moves to the next round of rows; false at the end.
    ///
    /// # Errors
    /// I/O, corruption; resource; interrupted.
    pub fn advance(&mut self, runs: &RunSpec) -> Result<bool> {
        // Releases the memory of the last round.
        self.ordered = Ordered { rows: Materialized::new(runs.columns()), order: Vec::new() };
        self.inputs.retain(|input| !input.is_given() || input.has_more_blocks());
        if self.wanted == 0 {
            self.inputs.clear();
        }
        if self.inputs.is_empty() {
            self.memory.resize(0)?;
            return Ok(false);
        }
        for input in self.inputs.iter_mut().filter(|input| input.is_given()) {
            load(input, runs, &mut self.blocks, &mut self.chunk, &self.columns)?;
        }
        let ends = self.ends(runs);
        let mut rows = Materialized::expecting(runs.columns(), self.rows_up_to(&ends));
        let mut taking = 0;
        for (input, &end) in self.inputs.iter_mut().zip(&ends).filter(|(input, end)| input.given < **end) {
            taking += 1;
            while input.given < end {
                let count = (end - input.given).min(CHUNK_ROWS);
                for (column, vector) in self.vectors.iter_mut().enumerate() {
                    input.rows.read(column, 0, input.given, count, vector);
                }
                let vectors: Vec<(&Vector, Option<&[u16]>)> =
                    self.vectors.iter().map(|vector| (vector, None)).collect();
                rows.append_vectors(&vectors, count);
                input.given += count;
            }
        }
        self.account(&rows)?;
        let mut order: Vec<u32> = rows.ids().collect();
        if taking > 1 {
            order = order::merge(&rows, runs.keys(), &order, &|| runs.context().check())?;
        }
        order.truncate(self.wanted);
        self.wanted -= order.len();
        self.ordered = Ordered { rows, order };
        Ok(true)
    }

    /// For each run, the row after the last one of this round.
    fn ends(&self, runs: &RunSpec) -> Vec<usize> {
        let compare = |(a, row): (&Input, usize), (b, other): (&Input, usize)| {
            let (row, other) = (row as u32, other as u32);
            runs.keys().iter().fold(Ordering::Equal, |order, key| {
                order.then_with(|| {
                    a.rows.compare_with(key.column, row, &b.rows, other, key.descending, key.nulls_first)
                })
            })
        };
        let with_more = self.inputs.iter().enumerate().filter(|(_, input)| input.has_more_blocks());
        // Of equal rows the first one, which is the least: that of the first run.
        let boundary = with_more.min_by(|(_, a), (_, b)| compare((a, a.last_row()), (b, b.last_row())));
        let Some((boundary_at, boundary)) = boundary else {
            return self.inputs.iter().map(|input| input.rows.rows()).collect();
        };
        let end = |(i, input): (usize, &Input)| {
            let (mut low, mut high) = (input.given, input.rows.rows());
            while low < high {
                let middle = low.midpoint(high);
                let is_beyond = match compare((input, middle), (boundary, boundary.last_row())) {
                    Ordering::Less => false,
                    // Rows of the boundary's run that equal it may still be in the file.
                    Ordering::Equal => i > boundary_at,
                    Ordering::Greater => true,
                };
                if is_beyond { high = middle } else { low = middle + 1 }
            }
            low
        };
        self.inputs.iter().enumerate().map(end).collect()
    }

    fn rows_up_to(&self, ends: &[usize]) -> usize {
        self.inputs.iter().zip(ends).map(|(input, end)| end - input.given).sum()
    }

    /// Reserves the memory for what is loaded and what is still to come.
    fn account(&mut self, round: &Materialized) -> Result<()> {
        let loaded: usize = self.inputs.iter().map(|input| input.rows.bytes()).sum();
        let needed = self.inputs.iter().map(|input| input.run.needs).sum();
        self.memory.resize((loaded + round.bytes() + round.rows() * ORDER_BYTES).max(needed))
    }
}

/// Loads the next block of a run.
fn load(
    input: &mut Input,
    runs: &RunSpec,
    blocks: &mut Blocks,
    chunk: &mut Chunk,
    columns: &[usize],
) -> Result<()> {
    runs.context().check()?;
    let block = input.run.blocks[input.loaded];
    // Freed before there is another one.
    input.rows = Materialized::new(runs.columns());
    let piece = blocks.next_piece();
    input.run.file.read(block.extent, piece)?;
    runs.note_read(piece.len());
    let mut rows = Materialized::expecting(runs.columns(), block.rows);
    while blocks.next(runs.format(), chunk)? {
        rows.append(chunk, columns, None);
    }
    (input.rows, input.given) = (rows, 0);
    input.loaded += 1;
    Ok(())
}
