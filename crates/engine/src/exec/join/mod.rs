//! Joins: one side is kept in a table, the other streams past it.
//!
//! ```text
//! build side → [build::BuildSink] → finish: facts → [table::choose] → [JoinTable]
//!                                                         ↓
//! probe side → … → [probe::Probe] ── pairs (probe row, build row) ─→ …
//!                                                         ↓ marks of matched build rows
//!                          later: [unmatched::BuildRows], the build rows that matched, or did not
//! ```
//! The build side's columns are kept in a [`Materialized`], in which payload columns may become
//! [tuples](super::tuple); a [`table::JoinTable`] knows only row ids. The table is chosen once all build rows
//! have arrived and their number and bounds are known; it may require the rows in another order.
//!
//! Probing is a few passes over a chunk rather than a loop over rows. The table yields a candidate for each
//! row; the candidates' keys are compared column by column; the residual conditions run on the remaining
//! pairs; and the table moves each pair to its next candidate, until there are none. Pairs accumulate to a
//! full chunk before any payload is read: the probe side's columns stay where they are under a composed
//! selection, and the build side's are gathered as a column group of their own (logical compaction; Qiao and
//! Zhang, *Data Chunk Compaction in Vectorized Execution*, SIGMOD 2025).
//!
//! Every kind of join is one [`Shape`]: what the probe outputs, and what the build side outputs afterwards. A
//! join without keys is the same operator over a table in which every row is a candidate.
//!
//! The [`strategy`] depends on sizes. The input of the build side may be read in [two passes](two_pass), so
//! that its rows are stored once, in their final places. If the build side does not fit into memory, or its
//! table not into a cache, the join is [`partitioned`] and runs partition by partition.
//!
//! A key that arrives as codes of a dictionary is [looked up once for each entry](dictionary_probe).
//!
//! If a table is far larger than the caches, a setting makes workers look up probe rows in the order of their
//! hashes ([`buffered_probe`]).
//!
//! If far more build rows arrive than expected, the sides may be [swapped](swap) before a table is built.
//!
//! What a finished build side publishes to scans and operators below its probe side is a [key
//! filter](crate::exec::key_filter), and [limits] by inequalities if it has few rows.

pub(crate) mod buffered_columns;
pub(crate) mod buffered_probe;
pub(crate) mod build;
pub(crate) mod build_spec;
pub(crate) mod dictionary_probe;
pub(crate) mod limits;
pub(crate) mod partitioned;
pub(crate) mod probe;
pub(crate) mod probe_buffer;
mod shape;
pub(crate) mod side;
pub(crate) mod strategy;
pub(crate) mod swap;
pub(crate) mod table;
pub(crate) mod tuning;
pub(crate) mod two_pass;
pub(crate) mod unmatched;

pub(crate) use shape::{BuildTail, ProbeOutput, Shape};

use crate::exec::materialized::Materialized;
use crate::memory::Reservation;
use crate::sync::{AtomicU64, OnceLock, Ordering};
use entasis_vector::expr::{ColumnMeta, Expr, Machine, Program};
use entasis_vector::{Chunk, Result};
use std::sync::Arc;
use table::JoinTable;

/// The build side once it is complete. Set by the build sink, read by the probe and by the operators after
/// it.
pub(crate) type BuiltSlot = Arc<OnceLock<Built>>;

/// See [`BuiltSlot`].
pub(crate) struct Built {
    /// The rows, keys first, then payload; none if the table alone answers every lookup.
    pub rows: Materialized,
    /// Whether there were any rows, here or in another partition.
    pub any: bool,
    /// Finds rows by key.
    pub table: Box<dyn JoinTable>,
    /// Rows with a NULL in a key that NULL does not equal; kept only for null-aware joins.
    pub null_keys: Vec<u32>,
    /// Whether there are such rows, here or in another partition.
    pub has_null_keys: bool,
    /// A bit per row id: whether it has matched; empty unless the join's shape needs it.
    pub matched: Vec<AtomicU64>,
    /// The reservation for the rows.
    pub _memory: Reservation,
}

impl Built {
    /// Records that the given rows have a match.
    pub(crate) fn mark(&self, ids: &[u32]) {
        for &id in ids {
            let (word, bit) = (&self.matched[id as usize / 64], 1 << (id % 64));
            // Mostly set already: reading first keeps the cache line shared between workers.
            if word.load(Ordering::Relaxed) & bit == 0 {
                word.fetch_or(bit, Ordering::Relaxed);
            }
        }
    }
    /// True if some probe row matched row `id`.
    pub(crate) fn is_matched(&self, id: u32) -> bool {
        self.matched[id as usize / 64].load(Ordering::Relaxed) >> (id % 64) & 1 != 0
    }
}

/// Columns computed from a stream's columns; no program is needed if all are plain columns.
#[derive(Debug, Clone)]
pub(crate) struct Computed {
    program: Option<Arc<Program>>,
    positions: Vec<usize>,
    metas: Vec<ColumnMeta>,
}

impl Computed {
    /// The values of `exprs` over `input`.
    ///
    /// # Errors
    /// Those of compiling the expressions.
    pub(crate) fn new(exprs: &[Expr], input: &[ColumnMeta]) -> Result<Computed> {
        let plain = exprs.iter().map(|expr| match expr {
            Expr::Column { id, .. } => input.iter().position(|meta| meta.id == *id),
            _ => None,
        });
        if let Some(positions) = plain.collect::<Option<Vec<usize>>>() {
            let metas = positions.iter().map(|&p| input[p].clone()).collect();
            return Ok(Computed { program: None, positions, metas });
        }
        // Plain columns are passed through unchanged here too.
        let program = Program::compile_narrow(exprs, input, &|i| matches!(exprs[i], Expr::Column { .. }))?;
        let metas = program.outputs().to_vec();
        Ok(Computed { program: Some(program), positions: (0..exprs.len()).collect(), metas })
    }

    /// The values of columns.
    pub(crate) fn of_columns(positions: &[usize], input: &[ColumnMeta]) -> Computed {
        let metas = positions.iter().map(|&p| input[p].clone()).collect();
        Computed { program: None, positions: positions.to_vec(), metas }
    }

    /// The program that computes the values; `None` if they are plain columns.
    pub(crate) fn program(&self) -> Option<&Program> {
        self.program.as_deref()
    }

    /// What is known of the values.
    pub(crate) fn metas(&self) -> &[ColumnMeta] {
        &self.metas
    }

    /// One worker's instance.
    pub(crate) fn worker(&self) -> ComputedWorker {
        let machine = self.program.clone().map(Machine::new);
        ComputedWorker { machine, positions: self.positions.clone(), output: Chunk::new() }
    }
}

/// See [`Computed::worker`].
pub(crate) struct ComputedWorker {
    machine: Option<Machine>,
    positions: Vec<usize>,
    output: Chunk,
}

impl ComputedWorker {
    /// The chunk that has the values, and their positions: column i is at the i-th.
    pub(crate) fn compute<'a>(&'a mut self, chunk: &'a Chunk) -> Result<(&'a Chunk, &'a [usize])> {
        match &mut self.machine {
            None => Ok((chunk, &self.positions)),
            Some(machine) => {
                self.output.reset(chunk.len());
                machine.project(chunk, &mut self.output)?;
                Ok((&self.output, &self.positions))
            }
        }
    }
    /// Drops the values, so that their memory can be reused.
    pub(crate) fn release(&mut self) {
        self.output.reset(0);
    }
}
