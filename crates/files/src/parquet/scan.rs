//! The scan of Parquet files: workers take row groups or parts of them, find the rows that are needed
//! ([`super::select`]), and decode the requested columns ([`super::decode`]).

use super::contents::Contents;
use super::decode::{Batches, Decoder};
use super::morsel::Morsel;
use super::select::{Conditions, Selected, Selector};
use entasis_engine::pruning::PruningPredicate;
use entasis_engine::relation::{ScanRequest, Source, SourceWorker};
use entasis_vector::expr::Expr;
use entasis_vector::{Chunk, ColumnId, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The state that workers share: which rows are next.
struct Shared {
    /// In the order in which they are read, with their places in the order of the files.
    morsels: Vec<(u64, Morsel)>,
    next: AtomicUsize,
}

pub(super) struct ParquetSource {
    relation: Arc<Contents>,
    columns: Arc<[(ColumnId, usize)]>,
    conditions: Option<Arc<Conditions>>,
    batches: Batches,
    shared: Arc<Shared>,
}

impl ParquetSource {
    /// A scan of `morsels`, which have their places in the order of the files.
    pub(super) fn new(
        relation: Arc<Contents>,
        request: &ScanRequest,
        batches: Batches,
        morsels: Vec<(u64, Morsel)>,
    ) -> Self {
        let conditions = Conditions::of(&relation, request).map(Arc::new);
        let shared = Arc::new(Shared { morsels, next: AtomicUsize::new(0) });
        let columns = request.columns.clone().into();
        ParquetSource { relation, columns, conditions, batches, shared }
    }
}

impl Source for ParquetSource {
    fn worker(&self) -> Result<Box<dyn SourceWorker>> {
        let columns = self.columns.iter().map(|(_, column)| *column).collect();
        Ok(Box::new(ParquetWorker {
            decoder: Decoder::new(&self.relation, columns, &self.batches),
            selector: self
                .conditions
                .as_ref()
                .filter(|own| own.is_first)
                .map(|own| Selector::new(own, &self.batches)),
            relation: self.relation.clone(),
            columns: self.columns.clone(),
            conditions: self.conditions.clone(),
            shared: self.shared.clone(),
            morsel: 0,
        }))
    }

    fn pieces(&self) -> Option<usize> {
        Some(self.shared.morsels.len())
    }

    fn progress(&self) -> Option<f64> {
        let total = self.shared.morsels.len().max(1) as f64;
        Some((self.shared.next.load(Ordering::Relaxed) as f64 / total).min(1.0))
    }
}

struct ParquetWorker {
    relation: Arc<Contents>,
    columns: Arc<[(ColumnId, usize)]>,
    conditions: Option<Arc<Conditions>>,
    decoder: Decoder,
    selector: Option<Selector>,
    shared: Arc<Shared>,
    morsel: u64,
}

impl ParquetWorker {
    /// Takes the next rows, of which none may be needed. False if there are none.
    fn take_morsel(&mut self) -> Result<bool> {
        let shared = self.shared.clone();
        let next = shared.next.fetch_add(1, Ordering::Relaxed);
        let Some((place, morsel)) = shared.morsels.get(next) else { return Ok(false) };
        if !self.may_have_rows(morsel) {
            return Ok(true);
        }
        let selected = match (&morsel.picked, &self.conditions) {
            (Some(picked), _) => Selected::rows(picked, morsel.rows.end),
            (None, None) => Selected::All,
            (None, Some(conditions)) => match (conditions.indexed_rows(morsel)?, &mut self.selector) {
                (Selected::None, _) => Selected::None,
                (indexed, Some(selector)) => selector.select(morsel, indexed)?,
                (indexed, None) => indexed,
            },
        };
        self.morsel = *place;
        match selected {
            Selected::None => {}
            Selected::All => self.decoder.open(morsel, None)?,
            Selected::Rows(rows) => self.decoder.open(morsel, Some(rows))?,
        }
        Ok(true)
    }

    /// False if the bounds of a row group rule out all its rows by now.
    fn may_have_rows(&self, morsel: &Morsel) -> bool {
        let column =
            |id: ColumnId| self.columns.iter().find(|(own, _)| *own == id).map(|(_, column)| *column);
        let known = |column: usize| Some(self.relation.bounds(column)[morsel.index].known());
        let may = |condition: &Expr| {
            PruningPredicate::of(condition, &column).is_none_or(|test| test.may_pass(&known))
        };
        self.conditions.as_ref().is_none_or(|conditions| conditions.may_have_rows(may))
    }
}

impl SourceWorker for ParquetWorker {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        chunk.reset(0);
        if self.decoder.next(chunk)? {
            return Ok(true);
        }
        let has_morsel = self.take_morsel()?;
        if has_morsel {
            // If none of its rows are needed, an empty chunk lets the pipeline look at the clock.
            self.decoder.next(chunk)?;
        }
        Ok(has_morsel)
    }

    fn morsel(&self) -> u64 {
        self.morsel
    }
}
