//! Conditions that are tested on the codes of blocks, before a value is decoded.
//!
//! For each stretch, *all* conditions that can be tested so are chosen beforehand, and the storage tests them
//! together (`RowGroup::select_runs`): ranges of integers ([`super::ranges`]), strings in dictionaries
//! ([`super::truths`]), and strings of symbols ([`super::searches`]), these only if nothing else may rule out
//! rows at less cost. Their order follows their measured ranks; now and then one is measured alone.
//!
//! A stage that a condition on codes replaces in a stretch does not run there. The slow twin is to decode
//! values and to run the stage's program, under `SET optimizer = off`.

use super::filters::Filters;
use super::shared::TableScan;
use super::trial::Trial;
use super::truths::Truths;
use super::walk::{Slots, Stretch};
use crate::exec::key_filter::order::Order;
use entasis_storage::{CodeSearch, Condition, TextSearch};
use entasis_vector::expr::Machine;
use std::sync::Arc;
use std::time::Instant;

/// One worker's conditions on codes.
pub(super) struct Codes {
    /// How many rows they were tested on, and how many passed.
    pub(super) passed: Trial,
    /// Their order: ranges, then stages.
    order: Order,
    /// Those for the current stretch.
    pub(super) conditions: Vec<Condition>,
    /// For each stage, whether one of them replaces it in the current stretch.
    pub(super) answered: Vec<bool>,
    /// For each stage.
    truths: Vec<Truths>,
    /// For each stage, what it was for the codes of the last symbols.
    searches: Vec<Option<Arc<CodeSearch>>>,
    /// Rows that pass one condition while it is measured.
    probe: Vec<u16>,
}

impl Codes {
    /// Those of a scan with these filters, before the first stretch.
    pub(super) fn new(filters: &Filters) -> Codes {
        let stages = filters.stages.all.len();
        Codes {
            passed: Trial::default(),
            order: filters.order_on_codes(),
            conditions: Vec::new(),
            answered: vec![false; stages],
            truths: filters.stages.all.iter().map(|_| Truths::new()).collect(),
            searches: vec![None; stages],
            probe: Vec::new(),
        }
    }

    /// Decides what is tested on the codes of a stretch, and in which order. `machines` run the stages.
    pub(super) fn choose(
        &mut self,
        scan: &TableScan,
        stretch: &Stretch,
        slots: Slots<'_>,
        machines: &mut [Machine],
    ) {
        self.conditions.clear();
        self.answered.fill(false);
        let filters = &scan.filters;
        if !filters.on_codes {
            return;
        }
        let sampled = self.order.begin();
        let mut probed = None;
        for at in 0..self.order.conjuncts().len() {
            let conjunct = self.order.conjuncts()[at];
            let condition = match conjunct.checked_sub(filters.ranges.all.len()) {
                None if filters.ranges.left(stretch.is_implied).contains(&conjunct) => {
                    Condition::Range(filters.ranges.all[conjunct])
                }
                Some(stage) if filters.stages.left(stretch.is_implied).contains(&stage) => {
                    let machine = &mut machines[stage];
                    let Some(condition) = self.of_stage(stage, scan, stretch, slots, machine) else {
                        continue;
                    };
                    self.answered[stage] = true;
                    condition
                }
                _ => continue,
            };
            if sampled == Some(conjunct) {
                probed = Some(self.conditions.len());
            }
            self.conditions.push(condition);
        }
        if let Some(at) = probed.filter(|_| self.conditions.len() > 1) {
            self.probe.clear();
            let start = Instant::now();
            slots.group.select_runs(&self.conditions[at..=at], slots.runs, &mut self.probe);
            self.order.measured(stretch.count, self.probe.len(), start.elapsed().as_nanos());
        }
    }

    /// The condition on codes that replaces a stage in a stretch, after those that are chosen already.
    /// `machine` runs the stage.
    fn of_stage(
        &mut self,
        number: usize,
        scan: &TableScan,
        stretch: &Stretch,
        slots: Slots<'_>,
        machine: &mut Machine,
    ) -> Option<Condition> {
        let stage = &scan.filters.stages.all[number];
        let column = scan.columns.indexes[*stage.columns.first().filter(|_| stage.is_of_strings)?];
        if let Some(dictionary) = slots.group.dictionary(column, slots.runs) {
            let rows = match self.conditions.is_empty() {
                true => stretch.count,
                false => self.passed.of(stretch.count),
            };
            let set = self.truths[number].of(dictionary, rows, stage, machine)?;
            return Some(Condition::Codes(column, set));
        }
        let texts = stage.texts.as_ref().filter(|_| scan.filters.is_alone())?;
        Some(Condition::Texts(column, self.search(number, texts, column, slots)?))
    }

    /// What `texts`, which a stage looks for, is for the codes of its column, if these can be searched.
    pub(super) fn search(
        &mut self,
        stage: usize,
        texts: &Arc<TextSearch>,
        column: usize,
        slots: Slots<'_>,
    ) -> Option<Arc<CodeSearch>> {
        let last = &mut self.searches[stage];
        let search = slots.group.code_search(column, slots.runs, texts, last.as_ref())?;
        Some(last.insert(search).clone())
    }
}
