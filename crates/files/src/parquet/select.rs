//! Late materialization: the rows of a row group that are needed, found by decoding only the columns that
//! conditions name. The other columns are then decoded for these rows; pages without any are not even
//! decompressed.
//!
//! Conditions are the filters of the scan, but for those that may fail or give another answer when they are
//! asked again, and the thresholds of sorts that keep only their first rows, as they are when the row group
//! is begun. The engine tests all filters again, so rows may be given that do not satisfy them.
//!
//! It does not pay where many rows pass: the columns of conditions are decoded twice, and every gap between
//! rows has its price. So a row group of which more than a quarter pass is decoded whole, and while that is
//! so of the rows tested so far, only one row group in [`RETRY`] is tested.

use super::contents::Contents;
use super::decode::{Batches, Decoder};
use super::morsel::Morsel;
use entasis_engine::relation::{ScanRequest, Threshold};
use entasis_vector::expr::{ColumnMeta, Expr, Machine, Program};
use entasis_vector::{Chunk, ColumnId, Result};
use parquet::arrow::arrow_reader::{RowSelection, RowSelector};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The share of rows up to which rows are selected, as a divisor.
const FEW: u64 = 4;
/// One in so many morsels is tested where too many rows have passed.
const RETRY: u64 = 8;

/// What workers share: the conditions of a scan, and how many rows satisfied them.
pub(super) struct Conditions {
    relation: Arc<Contents>,
    /// Filters that may be asked twice.
    filters: Vec<Expr>,
    thresholds: Vec<(Expr, Arc<Threshold>)>,
    /// The columns of the filters and thresholds: index in the relation, and as they come from a decoder.
    columns: Vec<(usize, ColumnMeta)>,
    /// True if there are other columns, which are decoded later.
    pub(super) is_first: bool,
    tested: AtomicU64,
    passed: AtomicU64,
    /// Morsels of which no row was tested.
    untested: AtomicU64,
}

impl Conditions {
    /// The conditions of a scan; `None` if rows cannot be selected by them.
    pub(super) fn of(relation: &Arc<Contents>, request: &ScanRequest) -> Option<Conditions> {
        let meta = |id: ColumnId| {
            let (_, column) = request.columns.iter().find(|(own, _)| *own == id)?;
            Some((*column, ColumnMeta::new(id, relation.schema[*column].ty)))
        };
        let is_safe = |filter: &&Expr| {
            let mut ids = Vec::new();
            filter.collect_columns(&mut ids);
            let metas: Option<Vec<ColumnMeta>> = ids.iter().map(|id| Some(meta(*id)?.1)).collect();
            let program = metas.and_then(|metas| Program::compile(&[(*filter).clone()], &metas).ok());
            !filter.is_volatile() && program.is_some_and(|program| !program.is_fallible())
        };
        let filters: Vec<Expr> = request.filters.iter().filter(is_safe).cloned().collect();
        let thresholds: Vec<(Expr, Arc<Threshold>)> = request
            .thresholds
            .iter()
            .filter_map(|(id, threshold)| Some((Expr::column(*id, meta(*id)?.1.ty), threshold.clone())))
            .collect();
        let mut ids = Vec::new();
        let exprs = filters.iter().chain(thresholds.iter().map(|(column, _)| column));
        exprs.for_each(|expr| expr.collect_columns(&mut ids));
        ids.sort_unstable();
        ids.dedup();
        let columns = ids.into_iter().map(meta).collect::<Option<Vec<_>>>()?;
        // The numbers of rows are not read.
        let is_later = |(_, column): &(ColumnId, usize)| {
            *column < relation.schema.len() && columns.iter().all(|(own, _)| own != column)
        };
        let is_first = request.columns.iter().any(is_later);
        (!columns.is_empty()).then(|| Conditions {
            relation: relation.clone(),
            filters,
            thresholds,
            columns,
            is_first,
            tested: AtomicU64::new(0),
            passed: AtomicU64::new(0),
            untested: AtomicU64::new(0),
        })
    }

    /// The thresholds' conditions as they are now.
    fn moving(&self) -> impl Iterator<Item = Expr> {
        self.thresholds.iter().filter_map(|(column, threshold)| threshold.condition(column.clone(), true))
    }

    /// False if all rows are beyond a threshold by now; `may_hold` knows what is possible within their
    /// bounds.
    pub(super) fn may_have_rows(&self, may_hold: impl Fn(&Expr) -> bool) -> bool {
        self.moving().all(|condition| may_hold(&condition))
    }

    /// The rows of `morsel` that indexes of the file do not rule out.
    ///
    /// # Errors
    /// Those of [`Contents::indexed_rows`].
    pub(super) fn indexed_rows(&self, morsel: &Morsel) -> Result<Selected> {
        let conditions: Vec<Expr> = self.filters.iter().cloned().chain(self.moving()).collect();
        let column_of =
            |id: ColumnId| self.columns.iter().find(|(_, meta)| meta.id == id).map(|(column, _)| *column);
        self.relation.indexed_rows(morsel, &conditions, &column_of)
    }

    /// True unless too many rows have passed so far.
    fn are_worth_it(&self) -> bool {
        let (tested, passed) = (self.tested.load(Ordering::Relaxed), self.passed.load(Ordering::Relaxed));
        passed * FEW <= tested || self.untested.fetch_add(1, Ordering::Relaxed) % RETRY == RETRY - 1
    }

    /// Counts rows. What is long ago counts less.
    fn count(&self, tested: u64, passed: u64) {
        if self.tested.load(Ordering::Relaxed) > FEW * tested {
            for total in [&self.tested, &self.passed] {
                total.store(total.load(Ordering::Relaxed) / 2, Ordering::Relaxed);
            }
        }
        self.tested.fetch_add(tested, Ordering::Relaxed);
        self.passed.fetch_add(passed, Ordering::Relaxed);
    }
}

/// What is to be decoded of a morsel.
pub(super) enum Selected {
    /// All rows.
    All,
    /// No row.
    None,
    /// These rows of its row group.
    Rows(RowSelection),
}

impl Selected {
    /// These rows of a row group of `rows` rows.
    pub(super) fn rows(picked: &[u64], rows: u64) -> Selected {
        let mut runs = Runs::after(0);
        for &row in picked {
            runs.push(row - runs.rows, true);
            runs.push(1, false);
        }
        Selected::Rows(runs.selection(rows))
    }
}

/// One worker's search for the rows that are needed.
pub(super) struct Selector {
    conditions: Arc<Conditions>,
    decoder: Decoder,
    /// The thresholds' versions that `machine` tests.
    versions: Vec<u64>,
    machine: Option<Machine>,
    chunk: Chunk,
}

impl Selector {
    /// A search that decodes so many rows at a time.
    pub(super) fn new(conditions: &Arc<Conditions>, batches: &Batches) -> Selector {
        let columns = conditions.columns.iter().map(|(column, _)| *column).collect();
        Selector {
            decoder: Decoder::new(&conditions.relation, columns, batches),
            conditions: conditions.clone(),
            versions: Vec::new(),
            machine: None,
            chunk: Chunk::new(),
        }
    }

    /// The rows of `morsel` that are needed, of which `indexed` are left so far.
    ///
    /// # Errors
    /// Those of [`Decoder`] and of compiling conditions.
    pub(super) fn select(&mut self, morsel: &Morsel, indexed: Selected) -> Result<Selected> {
        self.refresh()?;
        let file = &self.conditions.relation.files[morsel.file];
        let in_file = self.conditions.columns.iter().any(|(column, _)| file.column(*column).is_some());
        let Some(machine) = self.machine.as_mut().filter(|_| in_file && self.conditions.are_worth_it())
        else {
            return Ok(indexed);
        };
        let (left, skipped) = match indexed {
            Selected::Rows(rows) => (Some(rows), 0),
            _ => (None, morsel.rows.start),
        };
        self.decoder.open(morsel, left.clone())?;
        let mut rows = Runs::after(skipped);
        while self.decoder.next(&mut self.chunk)? {
            let picks = machine.select(&self.chunk)?;
            rows.add(self.chunk.len(), picks);
            self.chunk.reset(0);
        }
        let (tested, passed) = (rows.rows - skipped, rows.passed);
        self.conditions.count(tested, passed);
        Ok(match (passed, left) {
            (0, _) => Selected::None,
            (passed, left) if passed * FEW > tested => left.map_or(Selected::All, Selected::Rows),
            // Of the rows that indexes have left.
            (_, Some(left)) => Selected::Rows(left.and_then(&RowSelection::from(rows.runs))),
            (_, None) => {
                let relation = &self.conditions.relation;
                Selected::Rows(rows.selection(relation.rows(morsel.file, morsel.group)))
            }
        })
    }

    /// Compiles the conditions, if a threshold has moved.
    fn refresh(&mut self) -> Result<()> {
        let conditions = &self.conditions;
        let versions: Vec<u64> =
            conditions.thresholds.iter().map(|(_, threshold)| threshold.version()).collect();
        if self.machine.is_some() && self.versions == versions {
            return Ok(());
        }
        let exprs: Vec<Expr> = conditions.filters.iter().cloned().chain(conditions.moving()).collect();
        let metas: Vec<ColumnMeta> = conditions.columns.iter().map(|(_, meta)| meta.clone()).collect();
        self.machine = match exprs.is_empty() {
            true => None,
            false => Some(Machine::new(Program::compile(&exprs, &metas)?)),
        };
        self.versions = versions;
        Ok(())
    }
}

/// Rows as runs that are skipped and read in turn.
struct Runs {
    runs: Vec<RowSelector>,
    /// The length of all runs.
    rows: u64,
    passed: u64,
}

impl Runs {
    /// Nothing yet but a number of rows that are skipped.
    fn after(skipped: u64) -> Runs {
        let mut runs = Runs { runs: Vec::new(), rows: 0, passed: 0 };
        runs.push(skipped, true);
        runs
    }

    fn push(&mut self, rows: u64, skip: bool) {
        if rows == 0 {
            return;
        }
        self.rows += rows;
        self.passed += if skip { 0 } else { rows };
        match self.runs.last_mut().filter(|last| last.skip == skip) {
            Some(last) => last.row_count += rows as usize,
            None => self.runs.push(RowSelector { row_count: rows as usize, skip }),
        }
    }

    /// Adds `rows` rows, of which those at `picks`, which ascend, are read.
    fn add(&mut self, rows: usize, picks: &[u16]) {
        let mut next = 0;
        for &pick in picks {
            self.push(u64::from(pick) - next, true);
            self.push(1, false);
            next = u64::from(pick) + 1;
        }
        self.push(rows as u64 - next, true);
    }

    /// The selection, of a row group of `rows` rows.
    fn selection(mut self, rows: u64) -> RowSelection {
        self.push(rows.saturating_sub(self.rows), true);
        RowSelection::from(self.runs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_the_picked_rows() {
        let mut runs = Runs::after(3);
        runs.add(4, &[0, 1, 3]);
        runs.add(2, &[]);
        runs.add(2, &[1]);
        assert_eq!((runs.rows, runs.passed), (11, 4));
        let selection: Vec<RowSelector> = runs.selection(20).into();
        let expected = [(3, true), (2, false), (1, true), (1, false), (3, true), (1, false), (9, true)];
        let expected: Vec<RowSelector> =
            expected.iter().map(|&(row_count, skip)| RowSelector { row_count, skip }).collect();
        assert_eq!(selection, expected);
    }
}
