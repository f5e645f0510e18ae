//! The scan of a stored table: which blocks are read, which of their columns are decoded, and for which rows.
//!
//! The workers share what is asked for ([`shared`]): the columns, the filters ([`filters`]) and the morsels
//! ([`morsels`]). A worker ([`worker`]) reads the slots in stretches ([`walk`]). It skips blocks that the
//! filters rule out by their bounds ([`crate::pruning`]), or that have no key of a join that the rows go to
//! ([`crate::exec::key_filter`]). For each stretch:
//!
//! 1. Dead slots (ghosts, deleted rows) are left out: the [`candidates`] are the live slots. If these are in
//!    long runs, the runs are read in turn; otherwise their positions are kept.
//! 2. Conditions on codes narrow the candidates first: filters that are ranges of integers ([`ranges`]), and
//!    filters on strings whose answers for a dictionary's entries are known ([`truths`]), or which alone
//!    search the codes of symbols ([`searches`]); [`codes`] chooses among them. How many pass decides how
//!    long the next stretch is ([`trial`]); the remaining candidates of a long one are gathered, a chunk at a
//!    time.
//! 3. The other filters run in *stages* ([`stages`]), together with join filters ([`conjuncts`]). A stage
//!    decodes its columns for the candidates, or searches their codes, and narrows these. Filters on the
//!    layout key alone are skipped where all rows are within its range.
//! 4. If few rows of a stretch remain, they are held back ([`kept`]) until there are enough for a chunk.
//! 5. The other columns are decoded if a row remains ([`decoded`]): at the rows' positions, or entirely where
//!    that is faster.
//!
//! The index after the table's last column denotes the row id ([`columns`]).
//!
//! For a consumer that only folds columns, rows may stay in their blocks: a stretch without any filter to run
//! then extends to the end of the reach or to a skipped block; its chunk refers to the stored rows
//! ([`stored`]) and has no columns. Short runs of rows are decoded nevertheless.
//!
//! All columns of the chunk share one group, whose selection is the remaining rows. Vectors are decoded in
//! place into memory that the worker keeps, as narrow as the column's meta allows.
//!
//! Filters are conjuncts, whose order SQL leaves open: they run in the order of their measured ranks
//! ([`crate::exec::key_filter::order`]). A stage that cannot fail never runs after one that can, and if there
//! is one that can, join filters run after both.

mod ahead;
mod candidates;
mod codes;
mod columns;
mod conjuncts;
mod decoded;
mod filters;
mod kept;
mod morsels;
mod ranges;
mod searches;
mod shared;
mod stages;
mod stored;
mod trial;
mod truths;
mod walk;
mod worker;

pub(crate) use shared::TableScan;

use crate::relation::{Source, SourceWorker};
use entasis_vector::Result;
use entasis_vector::expr::Program;
use std::sync::Arc;
use worker::Worker;

impl Source for TableScan {
    fn worker(&self) -> Result<Box<dyn SourceWorker>> {
        Ok(Box::new(Worker::new(self)))
    }

    fn programs(&self) -> Vec<&Program> {
        self.filters.stages.all.iter().map(|stage| &*stage.program).collect()
    }

    fn conditions(&self) -> Vec<String> {
        let name = |column: usize| self.snapshot.schema()[column].name.to_string();
        let filters = &self.filters;
        let ranges = filters.ranges.all.iter().map(|range| ranges::describe(&name(range.column), range));
        let stages = filters.stages.all.iter().filter(|stage| filters.on_codes && stage.is_of_strings);
        let sets = stages.map(|stage| {
            let column = self.columns.indexes[stage.columns[0]];
            format!("codes of {} whose dictionary entries match", name(column))
        });
        ranges.chain(sets).collect()
    }

    fn progress(&self) -> Option<f64> {
        Some(self.morsels.progress())
    }

    fn leaving_stored(&self) -> Option<Arc<dyn Source>> {
        let all_stored = (0..self.columns.len()).all(|column| self.columns.stored(column).is_some());
        all_stored.then(|| Arc::new(TableScan { leaves_stored: true, ..self.clone() }) as Arc<dyn Source>)
    }
}
