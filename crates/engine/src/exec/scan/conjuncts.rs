//! Stages and join filters, run in the order of their measured ranks on the rows of a stretch. Each decodes
//! the columns that it reads, for the rows that are left, unless it finds its answer in codes
//! ([`super::codes`]).
//!
//! The rows that are left are either all positions of the stretch, or those listed; a conjunct that drops
//! none leaves that as it is, so that columns are still decoded entirely.

use super::Reading;
use entasis_storage::RowGroup;
use entasis_vector::Result;
use std::time::Instant;

impl Reading {
    /// Narrows the rows by stages and join filters; false if none remain.
    pub(super) fn run_conjuncts(&mut self, group: &RowGroup, count: usize) -> Result<bool> {
        let sampled = self.order.begin();
        let stages = self.scan.stages.all.len();
        for at in 0..self.order.conjuncts().len() {
            let conjunct = self.order.conjuncts()[at];
            let start = (sampled == Some(conjunct)).then(Instant::now);
            let before = if self.all { count } else { self.rows.len() };
            let has_run = match conjunct.checked_sub(stages) {
                None => self.run_stage(conjunct, group, count)?,
                Some(filter) => self.run_filter(filter, group, count)?,
            };
            let after = if self.all { count } else { self.rows.len() };
            if let Some(start) = start.filter(|_| has_run) {
                self.order.measured(before, after, start.elapsed().as_nanos());
            }
            if after == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Narrows the rows by a stage. False if it need not run.
    fn run_stage(&mut self, stage: usize, group: &RowGroup, count: usize) -> Result<bool> {
        if self.codes.answered[stage] || !self.scan.stages.left(self.is_implied).contains(&stage) {
            return Ok(false);
        }
        if self.run_stage_on_codes(stage, group, count) {
            return Ok(true);
        }
        for i in 0..self.scan.stages.all[stage].columns.len() {
            self.decode(group, self.scan.stages.all[stage].columns[i]);
        }
        self.input.reset(if self.all { count } else { self.rows.len() });
        let selection = self.selection();
        let to = self.input.push_group(selection);
        for &column in &self.scan.stages.all[stage].columns {
            self.input.push_column(self.vectors[column].clone(), to);
        }
        let picks = self.machines[stage].select(&self.input);
        match picks {
            Ok(picks) if picks.len() == self.input.len() => {}
            Ok(picks) if self.all => {
                self.rows.extend_from_slice(picks);
                self.all = false;
            }
            Ok(picks) => {
                // Picks ascend, so an element is read before it is overwritten.
                for (to, &pick) in picks.iter().enumerate() {
                    self.rows[to] = self.rows[pick as usize];
                }
                let left = picks.len();
                self.rows.truncate(left);
            }
            Err(error) => {
                self.input.reset(0);
                return Err(error);
            }
        }
        self.input.reset(0);
        Ok(true)
    }

    /// Narrows the rows by a join filter. False if it need not run.
    fn run_filter(&mut self, filter: usize, group: &RowGroup, count: usize) -> Result<bool> {
        if !self.filters[filter].is_on(if self.all { count } else { self.rows.len() }) {
            return Ok(false);
        }
        if self.run_filter_in_runs(filter, group, count) {
            return Ok(true);
        }
        for key in 0..self.scan.filters[filter].columns.len() {
            self.decode(group, self.scan.filters[filter].columns[key]);
        }
        if self.all {
            self.rows.extend(0..count as u16);
            self.all = false;
        }
        let columns = &self.scan.filters[filter].columns;
        self.filters[filter].retain(|key| (&self.vectors[columns[key]], None), &mut self.rows)?;
        self.all = self.rows.len() == count;
        if self.all {
            self.rows.clear();
        }
        Ok(true)
    }
}
