//! Rows of a plan that are kept until several others have read them: chunks in memory, and pieces of a
//! temporary file once memory gets short.
//!
//! Each worker collects the rows of its morsels. They stay in memory until it gets short ([`super::policy`]).
//! From then on a worker turns its rows into pieces ([`super::rows`]), a morsel's rows into pieces of its
//! own, so that reading gives all rows in the order of the morsels, any number of times.

use crate::context::QueryContext;
use crate::exec::materialized::Materialized;
use crate::exec::result::ResultSet;
use crate::exec::row_copier::RowCopier;
use crate::exec::sink::{ResultSink, ResultWorker};
use crate::exec::spill::file::{Extent, TempFile};
use crate::exec::spill::policy::SpillPolicy;
use crate::exec::spill::rows::{Blocks, RowFormat};
use crate::memory::{MemoryBudget, Reservation};
use crate::sync::{Mutex, PoisonError, lock};
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{CHUNK_ROWS, Chunk, ColumnId, DataType, PhysicalType, Result};
use std::sync::Arc;

/// The size from which rows of a morsel become a piece of the file, in bytes.
const PIECE_BYTES: usize = 512 << 10;

/// How pieces are written, and the file that has them.
type Spilled = Arc<(RowFormat, TempFile)>;

/// Rows in the order of their source.
pub(crate) struct KeptRows {
    parts: Vec<Part>,
    rows: usize,
    /// Absent if there are no pieces.
    spilled: Option<Spilled>,
    _memory: Vec<Reservation>,
    _collected: Option<Arc<ResultSet>>,
}

/// Some rows.
enum Part {
    /// At most [`CHUNK_ROWS`] of them, in dense flat vectors.
    Chunk(Chunk),
    /// A piece of the file.
    Piece(Extent),
}

/// Parts of one morsel.
struct Run {
    morsel: u64,
    parts: Vec<Part>,
}

/// Keeps the rows of a plan; see the module.
pub(crate) struct Keeper(Arc<Kept>);

struct Kept {
    types: Vec<DataType>,
    context: QueryContext,
    /// What all workers use of the memory, and when it is short.
    memory: Arc<MemoryBudget>,
    policy: SpillPolicy,
    done: Mutex<Done>,
}

/// What finished workers have kept, and where all spill.
#[derive(Default)]
struct Done {
    spilled: Option<Spilled>,
    runs: Vec<Run>,
    rows: usize,
    memory: Vec<Reservation>,
}

impl Keeper {
    /// A keeper of rows whose columns have these types.
    pub(crate) fn new(context: &QueryContext, types: Vec<DataType>) -> Keeper {
        let memory = MemoryBudget::part_of(&context.memory, "a shared subquery");
        let policy = SpillPolicy::of_rows_that_stay(&memory);
        policy.set_memory_aside();
        Keeper(Arc::new(Kept { types, context: context.clone(), memory, policy, done: Mutex::default() }))
    }

    /// The rows, once the execution has returned.
    pub(crate) fn into_rows(self) -> KeptRows {
        let kept = Arc::into_inner(self.0).expect("all workers have finished");
        let done = kept.done.into_inner().unwrap_or_else(PoisonError::into_inner);
        let Done { spilled, mut runs, rows, memory } = done;
        runs.sort_by_key(|run| run.morsel);
        let parts = runs.into_iter().flat_map(|run| run.parts).collect();
        KeptRows { parts, rows, spilled, _memory: memory, _collected: None }
    }
}

impl Kept {
    /// True if memory does not get short by so many more bytes.
    fn has_room(&self, bytes: usize) -> bool {
        !self.may_spill() || !self.policy.is_short(self.memory.used() + bytes, bytes)
    }

    fn may_spill(&self) -> bool {
        !self.context.settings.temp_directory.is_empty() && !self.types.is_empty()
    }

    fn columns(&self) -> Vec<ColumnMeta> {
        let column = |(number, &ty)| ColumnMeta::new(ColumnId(number as u32), ty);
        self.types.iter().enumerate().map(column).collect()
    }

    /// The file, which is created if there is none yet.
    fn spilled(&self) -> Result<Spilled> {
        let mut done = lock(&self.done);
        if let Some(spilled) = &done.spilled {
            return Ok(spilled.clone());
        }
        let spilled = Arc::new((RowFormat::new(&self.columns()), TempFile::new(&self.context)?));
        Ok(done.spilled.insert(spilled).clone())
    }
}

impl ResultSink for Keeper {
    fn worker(&self) -> Result<Box<dyn ResultWorker>> {
        let types: Vec<PhysicalType> = self.0.types.iter().map(|ty| ty.physical()).collect();
        Ok(Box::new(KeeperWorker {
            rows: RowCopier::owning(&types),
            morsel: 0,
            runs: Vec::new(),
            count: 0,
            spilling: None,
            memory: Reservation::new(&self.0.memory),
            kept: self.0.clone(),
        }))
    }
}

struct KeeperWorker {
    rows: RowCopier,
    morsel: u64,
    runs: Vec<Run>,
    /// Rows of all runs.
    count: usize,
    /// Rows of the last run that are to become a piece, once memory was short.
    spilling: Option<Materialized>,
    memory: Reservation,
    kept: Arc<Kept>,
}

impl KeeperWorker {
    fn parts(&mut self) -> &mut Vec<Part> {
        &mut self.runs.last_mut().expect("rows come after their run").parts
    }

    /// Keeps the rows that have been copied.
    fn flush(&mut self) -> Result<()> {
        if self.rows.rows() == 0 {
            return Ok(());
        }
        let (chunk, bytes) = self.rows.take();
        self.count += chunk.len();
        if self.spilling.is_none() && self.kept.has_room(bytes) {
            self.memory.resize(self.memory.bytes() + bytes)?;
            self.parts().push(Part::Chunk(chunk));
            return Ok(());
        }
        self.kept.context.check()?;
        let columns: Vec<usize> = (0..self.kept.types.len()).collect();
        let rows = self.spilling.get_or_insert_with(|| Materialized::new(&self.kept.columns()));
        rows.append(&chunk, &columns, None);
        if rows.bytes() >= PIECE_BYTES { self.spill() } else { Ok(()) }
    }

    /// Writes the rows that are to become a piece.
    fn spill(&mut self) -> Result<()> {
        let Some(rows) = self.spilling.take_if(|rows| !rows.is_empty()) else { return Ok(()) };
        let (mut piece, spilled) = (Vec::new(), self.kept.spilled()?);
        let (format, file) = &*spilled;
        format.write_all(&rows, &mut piece)?;
        let extent = file.add(&piece)?;
        self.parts().push(Part::Piece(extent));
        // The next rows are spilled, too.
        self.spilling = Some(Materialized::new(&self.kept.columns()));
        Ok(())
    }

    /// Ends the last run.
    fn end_run(&mut self) -> Result<()> {
        self.flush()?;
        self.spill()
    }
}

impl ResultWorker for KeeperWorker {
    fn start_morsel(&mut self, morsel: u64) {
        self.morsel = morsel;
    }

    fn push(&mut self, chunk: &Chunk) -> Result<()> {
        if self.runs.last().is_none_or(|run| run.morsel != self.morsel) {
            self.end_run()?;
            self.runs.push(Run { morsel: self.morsel, parts: Vec::new() });
        }
        let mut from = 0;
        while from < chunk.len() {
            from += self.rows.append(chunk, from);
            if self.rows.is_full() {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        self.end_run()?;
        let mut done = lock(&self.kept.done);
        done.runs.append(&mut self.runs);
        done.rows += std::mem::take(&mut self.count);
        done.memory.push(std::mem::take(&mut self.memory));
        Ok(())
    }
}

impl From<Arc<ResultSet>> for KeptRows {
    fn from(collected: Arc<ResultSet>) -> KeptRows {
        let parts = collected.chunks.iter().cloned().map(Part::Chunk).collect();
        let (rows, _collected) = (collected.rows, Some(collected));
        KeptRows { parts, rows, spilled: None, _memory: Vec::new(), _collected }
    }
}

impl std::fmt::Debug for KeptRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeptRows({} rows)", self.rows)
    }
}

impl KeptRows {
    /// Their number.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// The number of parts, which can be read apart from each other.
    pub(crate) fn parts(&self) -> usize {
        self.parts.len()
    }

    /// True if some are in the file.
    #[cfg(test)]
    pub(crate) fn has_pieces(&self) -> bool {
        self.spilled.is_some()
    }

    fn file(&self) -> &(RowFormat, TempFile) {
        self.spilled.as_ref().expect("pieces are in a file")
    }
}

/// Reads one part after the other.
#[derive(Default)]
pub(crate) struct PartReader {
    /// The rows that are next, if the part is a chunk.
    chunk: Option<Chunk>,
    /// The blocks of the part, if it is a piece.
    blocks: Option<Blocks>,
    is_piece: bool,
}

impl PartReader {
    /// Begins a part. The one before must have been read.
    ///
    /// # Errors
    /// I/O.
    pub(crate) fn begin(&mut self, rows: &KeptRows, part: usize) -> Result<()> {
        match &rows.parts[part] {
            Part::Chunk(chunk) => (self.chunk, self.is_piece) = (Some(chunk.clone()), false),
            Part::Piece(extent) => {
                let (format, file) = rows.file();
                let blocks = self.blocks.get_or_insert_with(|| Blocks::new(format, CHUNK_ROWS));
                file.read(*extent, blocks.next_piece())?;
                self.is_piece = true;
            }
        }
        Ok(())
    }

    /// Puts the next rows of the part in `chunk`; false at its end, or if none was begun.
    ///
    /// # Errors
    /// Corruption.
    pub(crate) fn next(&mut self, rows: &KeptRows, chunk: &mut Chunk) -> Result<bool> {
        match (self.is_piece, &mut self.blocks) {
            (true, Some(blocks)) => blocks.next(&rows.file().0, chunk),
            _ => Ok(self.chunk.take().map(|next| *chunk = next).is_some()),
        }
    }
}
