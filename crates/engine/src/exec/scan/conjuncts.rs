//! Stages and join filters, run in the order of their measured ranks on the candidates of a stretch. Each
//! decodes the columns that it reads, for the candidates, unless it finds its answer in codes: symbols are
//! searched, and a value that a whole run of rows has is looked up once.

use super::candidates::Candidates;
use super::codes::Codes;
use super::decoded::DecodedColumns;
use super::shared::TableScan;
use super::walk::{Slots, Stretch};
use crate::exec::key_filter::order::Order;
use crate::exec::key_filter::{PlacedWorker, is_integer};
use entasis_storage::Condition;
use entasis_vector::expr::Machine;
use entasis_vector::{Chunk, Result};
use std::time::Instant;

/// One worker's filters.
pub(super) struct Conjuncts {
    /// For each stage.
    machines: Vec<Machine>,
    /// For each join filter.
    joins: Vec<PlacedWorker>,
    /// The order of stages, then join filters.
    order: Order,
    /// Conditions on codes.
    pub(super) codes: Codes,
    /// The input of a stage.
    input: Chunk,
}

impl Conjuncts {
    /// Those of `scan`, before the first stretch.
    pub(super) fn new(scan: &TableScan) -> Conjuncts {
        let filters = &scan.filters;
        Conjuncts {
            machines: filters.stages.all.iter().map(|stage| Machine::new(stage.program.clone())).collect(),
            joins: filters.joins.iter().map(|filter| filter.worker(&filters.settings)).collect(),
            order: filters.order(),
            codes: Codes::new(filters),
            input: Chunk::new(),
        }
    }

    /// Decides what is tested on the codes of a stretch.
    pub(super) fn choose_codes(&mut self, scan: &TableScan, stretch: &Stretch, slots: Slots<'_>) {
        self.codes.choose(scan, stretch, slots, &mut self.machines);
    }

    /// Narrows the candidates by stages and join filters; false if none remain.
    pub(super) fn run(
        &mut self,
        scan: &TableScan,
        slots: Slots<'_>,
        columns: &mut DecodedColumns,
        candidates: &mut Candidates,
    ) -> Result<bool> {
        let sampled = self.order.begin();
        let stages = scan.filters.stages.all.len();
        for at in 0..self.order.conjuncts().len() {
            let conjunct = self.order.conjuncts()[at];
            let start = (sampled == Some(conjunct)).then(Instant::now);
            let before = candidates.len();
            let has_run = match conjunct.checked_sub(stages) {
                None => self.run_stage(conjunct, scan, slots, columns, candidates)?,
                Some(filter) => self.run_join(filter, scan, slots, columns, candidates)?,
            };
            let after = candidates.len();
            if let Some(start) = start.filter(|_| has_run) {
                self.order.measured(before, after, start.elapsed().as_nanos());
            }
            if after == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Narrows the candidates by a stage. False if it need not run.
    fn run_stage(
        &mut self,
        number: usize,
        scan: &TableScan,
        slots: Slots<'_>,
        columns: &mut DecodedColumns,
        candidates: &mut Candidates,
    ) -> Result<bool> {
        let stages = &scan.filters.stages;
        if self.codes.answered[number] || !stages.left(candidates.is_implied).contains(&number) {
            return Ok(false);
        }
        if self.run_stage_on_codes(number, scan, slots, columns, candidates) {
            return Ok(true);
        }
        let stage = &stages.all[number];
        for &column in &stage.columns {
            columns.decode(&scan.columns, slots, candidates, column);
        }
        self.input.reset(candidates.len());
        let to = self.input.push_group(candidates.selection());
        for &column in &stage.columns {
            self.input.push_column(columns.vectors[column].clone(), to);
        }
        let picks = self.machines[number].select(&self.input);
        let picks = picks.map(|picks| candidates.pick(picks));
        self.input.reset(0);
        picks.map(|()| true)
    }

    /// Narrows the candidates by a stage that looks for texts, if its column has codes that can be searched
    /// and is not decoded. False if it has not run.
    fn run_stage_on_codes(
        &mut self,
        number: usize,
        scan: &TableScan,
        slots: Slots<'_>,
        columns: &DecodedColumns,
        candidates: &mut Candidates,
    ) -> bool {
        let stage = &scan.filters.stages.all[number];
        let (Some(texts), [column]) = (&stage.texts, &stage.columns[..]) else { return false };
        let Some(index) = on_codes(*column, scan, columns, candidates) else { return false };
        let Some(search) = self.codes.search(number, texts, index, slots) else { return false };
        if candidates.all {
            let condition = [Condition::Texts(index, search)];
            slots.group.select_runs(&condition, slots.runs, &mut candidates.rows);
        } else {
            slots.group.retain_texts(index, &search, slots.runs, &mut candidates.rows);
        }
        candidates.listed();
        true
    }

    /// Narrows the candidates by a join filter. False if it need not run.
    fn run_join(
        &mut self,
        number: usize,
        scan: &TableScan,
        slots: Slots<'_>,
        columns: &mut DecodedColumns,
        candidates: &mut Candidates,
    ) -> Result<bool> {
        if !self.joins[number].is_on(candidates.len()) {
            return Ok(false);
        }
        if self.run_join_in_runs(number, scan, slots, columns, candidates) {
            return Ok(true);
        }
        let keys = &scan.filters.joins[number].columns;
        for &column in keys {
            columns.decode(&scan.columns, slots, candidates, column);
        }
        candidates.list();
        self.joins[number].retain(|key| (&columns.vectors[keys[key]], None), &mut candidates.rows)?;
        candidates.listed();
        Ok(true)
    }

    /// Narrows the candidates by a join filter of one column that is not decoded, if its blocks have runs of
    /// equal values, of which each is looked up once. False if it has not run.
    fn run_join_in_runs(
        &mut self,
        number: usize,
        scan: &TableScan,
        slots: Slots<'_>,
        columns: &DecodedColumns,
        candidates: &mut Candidates,
    ) -> bool {
        let [column] = scan.filters.joins[number].columns[..] else { return false };
        let physical = scan.columns.physical(column);
        let Some(index) = on_codes(column, scan, columns, candidates) else { return false };
        if !is_integer(physical) || !slots.group.is_in_runs(index, slots.runs) {
            return false;
        }
        let Some(values) = self.joins[number].values() else { return false };
        let before = candidates.len();
        if candidates.all {
            let condition = [Condition::Values(index, physical, values)];
            slots.group.select_runs(&condition, slots.runs, &mut candidates.rows);
        } else {
            slots.group.retain_in_set(index, &values, physical, slots.runs, &mut candidates.rows);
        }
        self.joins[number].count(before, candidates.rows.len());
        candidates.listed();
        true
    }
}

/// The index of a column in the table, if candidates may still be tested on its codes: its values are not
/// decoded, and the candidates are at their positions.
fn on_codes(
    column: usize,
    scan: &TableScan,
    columns: &DecodedColumns,
    candidates: &Candidates,
) -> Option<usize> {
    let is_open = scan.filters.on_codes && !columns.has(column) && candidates.gathered().is_none();
    scan.columns.stored(column).filter(|_| is_open)
}
