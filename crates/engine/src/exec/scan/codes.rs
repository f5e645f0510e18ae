//! Conditions that are tested on the codes of blocks, before a value is decoded.
//!
//! - For each stretch, *all* conditions that can be tested so are chosen beforehand, and the storage tests
//!   them together ([`RowGroup::select_runs`]): ranges of integers ([`super::ranges`]), strings in
//!   dictionaries ([`super::truths`]), and strings of symbols ([`super::searches`]), these only if nothing
//!   else may rule out rows at less cost. Their order follows their measured ranks; now and then one is
//!   measured alone.
//! - Where a stage's or a join filter's turn comes later, for rows that others have left, symbols are still
//!   searched instead of decoded, and a value that a whole run of rows has is looked up once.
//!
//! A stage that a condition on codes replaces in a stretch does not run there. The slow twin is to decode
//! values and to run the stage's program, under `SET optimizer = off`.

use super::trial::Trial;
use super::truths::Truths;
use super::walk::Stretch;
use super::{Reading, TableScan};
use crate::exec::key_filter::is_integer;
use crate::exec::key_filter::order::Order;
use entasis_storage::{CodeSearch, Condition, RowGroup, TextSearch};
use entasis_vector::expr::Machine;
use std::ops::Range;
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
    /// Those of `scan`, before the first stretch.
    pub(super) fn new(scan: &TableScan) -> Codes {
        let stages = scan.stages.all.len();
        let count = scan.ranges.all.len() + stages;
        Codes {
            passed: Trial::default(),
            // All may move.
            order: Order::new(count, if scan.is_adaptive { count } else { 0 }),
            conditions: Vec::new(),
            answered: vec![false; stages],
            truths: scan.stages.all.iter().map(|_| Truths::new()).collect(),
            searches: vec![None; stages],
            probe: Vec::new(),
        }
    }

    /// Decides what is tested on the codes of a stretch, which are `runs` of `group`, and in which order.
    /// `machines` run the stages.
    pub(super) fn choose(
        &mut self,
        scan: &TableScan,
        stretch: &Stretch,
        machines: &mut [Machine],
        group: &RowGroup,
        runs: &[Range<usize>],
    ) {
        self.conditions.clear();
        self.answered.fill(false);
        if !scan.on_codes {
            return;
        }
        let sampled = self.order.begin();
        let mut probed = None;
        for &conjunct in self.order.conjuncts() {
            let condition = match conjunct.checked_sub(scan.ranges.all.len()) {
                None if scan.ranges.left(stretch.is_implied).contains(&conjunct) => {
                    Condition::Range(scan.ranges.all[conjunct])
                }
                Some(number) if scan.stages.left(stretch.is_implied).contains(&number) => {
                    let stage = &scan.stages.all[number];
                    let Some(column) = stage.columns.first().filter(|_| stage.is_of_strings) else {
                        continue;
                    };
                    let column = scan.columns[*column];
                    let condition = if let Some(dictionary) = group.dictionary(column, runs) {
                        let rows = match self.conditions.is_empty() {
                            true => stretch.count,
                            false => self.passed.of(stretch.count),
                        };
                        let machine = &mut machines[number];
                        let set = self.truths[number].of(dictionary, rows, stage, machine);
                        set.map(|set| Condition::Codes(column, set))
                    } else if let Some(texts) = stage.texts.as_ref().filter(|_| scan.is_alone()) {
                        let search = search(&mut self.searches[number], texts, group, column, runs);
                        search.map(|search| Condition::Texts(column, search))
                    } else {
                        None
                    };
                    let Some(condition) = condition else { continue };
                    self.answered[number] = true;
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
            group.select_runs(&self.conditions[at..=at], runs, &mut self.probe);
            self.order.measured(stretch.count, self.probe.len(), start.elapsed().as_nanos());
        }
    }
}

/// What `texts` is for the codes of a column in `runs`, if they can be searched; `last` is what it was for
/// those before.
fn search(
    last: &mut Option<Arc<CodeSearch>>,
    texts: &Arc<TextSearch>,
    group: &RowGroup,
    column: usize,
    runs: &[Range<usize>],
) -> Option<Arc<CodeSearch>> {
    let search = group.code_search(column, runs, texts, last.as_ref())?;
    Some(last.insert(search).clone())
}

impl Reading {
    /// Narrows the rows by a stage that looks for texts, if its column has codes that can be searched and is
    /// not decoded. False if it has not run.
    pub(super) fn run_stage_on_codes(&mut self, number: usize, group: &RowGroup, count: usize) -> bool {
        let stage = &self.scan.stages.all[number];
        let (Some(texts), [column]) = (&stage.texts, &stage.columns[..]) else { return false };
        let index = self.scan.columns[*column];
        if !self.scan.on_codes
            || self.decoded[*column]
            || !self.gathered.is_empty()
            || index == self.scan.row_id
        {
            return false;
        }
        let (runs, last) = (&self.walk.runs, &mut self.codes.searches[number]);
        let Some(search) = search(last, texts, group, index, runs) else { return false };
        if self.all {
            group.select_runs(&[Condition::Texts(index, search)], runs, &mut self.rows);
        } else {
            group.retain_texts(index, &search, runs, &mut self.rows);
        }
        self.all = self.rows.len() == count;
        if self.all {
            self.rows.clear();
        }
        true
    }

    /// Narrows the rows by a join filter of one column that is not decoded, if its blocks have runs of equal
    /// values, of which each is looked up once. False if it has not run.
    pub(super) fn run_filter_in_runs(&mut self, filter: usize, group: &RowGroup, count: usize) -> bool {
        let [column] = self.scan.filters[filter].columns[..] else { return false };
        let (index, physical) = (self.scan.columns[column], self.scan.metas[column].ty.physical());
        if !self.scan.on_codes
            || self.decoded[column]
            || !self.gathered.is_empty()
            || index == self.scan.row_id
            || !is_integer(physical)
            || !group.is_in_runs(index, &self.walk.runs)
        {
            return false;
        }
        let Some(values) = self.filters[filter].values() else { return false };
        let before = if self.all { count } else { self.rows.len() };
        if self.all {
            let condition = [Condition::Values(index, physical, values)];
            group.select_runs(&condition, &self.walk.runs, &mut self.rows);
        } else {
            group.retain_in_set(index, &values, physical, &self.walk.runs, &mut self.rows);
        }
        self.filters[filter].count(before, self.rows.len());
        self.all = self.rows.len() == count;
        if self.all {
            self.rows.clear();
        }
        true
    }
}
