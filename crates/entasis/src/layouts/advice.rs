//! Which layout key suits a workload: the modelled cost of every key that the workload or the table names,
//! and of the order of insertion.
//!
//! 1. *Candidates*: the present key, the keys and indexes that are declared, and the columns that the sample
//!    bounds; the order of insertion if it is the present one, or no key or index is declared. For a table
//!    that follows its workload, also those that stand well by what was asked before
//!    ([`entasis_layout::standing`]).
//! 2. Under a candidate, an act is placed in the partitions that the table would have
//!    ([`Column::imagined`]), the finest, as these are the best ([`entasis_layout::outlook`]).
//! 3. What the candidate does not bound is found by a declared key or index that all of its columns are given
//!    for, two look-ups a row, or by reading a column, whichever is less: of all rows, or in the present
//!    order of the blocks that their zone maps do not rule out.
//! 4. Along a curve through the two to four columns that the sample bounds most often, an act reads the
//!    blocks that the box of its conditions meets ([`entasis_layout::cost::blocks_of_box`]), or finds one
//!    key.
//! 5. Rows are also written to the index of each declared key that is not the candidate.
//!
//! Of a recorded workload only the present key is known: under another key its points and ranges are found by
//! an index on the present one. The present key is kept unless another saves more than [`WORTH`].
//!
//! Not modelled: zone maps under another order but a curve, looking at zones, joins, and which rows a range
//! has in common with other conditions.

use super::chosen::columns;
use super::column::Column;
use super::looked::{Binding, Looked};
use super::machine::engine;
use super::sample::{Act, Sample};
use super::skipped::blocks_met;
use super::words::{percent, time};
use super::workload::{KeyPlace, Workload, place};
use crate::catalog::listed;
use crate::state::workload_stats::LaidBy;
use entasis_engine::access_path::asked_of;
use entasis_engine::relation::Relation;
use entasis_engine::scan_predicates::Question;
use entasis_layout::cost::{Engine, blocks_of_box};
use entasis_layout::frequency::{Frequency, Operation};
use entasis_layout::outlook::{OperationKind, expected};
use entasis_layout::partitioning::Partitioning;
use entasis_storage::{BLOCK_ROWS, CURVE_COLUMNS, Curve};
use entasis_vector::{DataType, Result, Value};
use std::cmp::Reverse;
use std::sync::Arc;

/// A change of the layout key has to save this share of the costs.
const WORTH: f64 = 0.05;
/// Candidates beyond the present key.
const CANDIDATES: usize = 8;

/// What statements do to rows, in the order of [`Advised::each`].
const ACTS: [&str; 4] = ["read", "insert", "delete", "update"];

/// A candidate and its costs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Advised {
    /// What rows are ordered by.
    pub(super) by: LaidBy,
    is_present: bool,
    /// Number and cost, in nanoseconds, of the acts of each kind ([`ACTS`]).
    each: [(f64, f64); ACTS.len()],
}

impl Advised {
    /// What all acts cost, in nanoseconds.
    pub(super) fn total(&self) -> f64 {
        self.each.iter().map(|(_, cost)| cost).sum()
    }
}

/// All candidates, the present one first, and which is recommended.
#[derive(Debug)]
pub(super) struct Advice {
    pub(super) candidates: Vec<Advised>,
    pub(super) recommended: usize,
}

/// The relation of a call of `entasis_layout_advice`: a row for each candidate, best ones first.
pub(crate) fn advice(
    looked: &Looked<'_>,
    binding: &Binding<'_>,
    workload: Option<&str>,
) -> Result<Arc<dyn Relation>> {
    let columns = [
        ("layout_key", DataType::Varchar),
        ("read_ns", DataType::Float64),
        ("insert_ns", DataType::Float64),
        ("delete_ns", DataType::Float64),
        ("update_ns", DataType::Float64),
        ("total_us", DataType::Float64),
        ("present", DataType::Boolean),
        ("recommended", DataType::Boolean),
    ];
    let column = Column::present(looked.snapshot, &looked.interrupt)?;
    let sample = looked.sample(binding, workload)?;
    let Advice { candidates, recommended } = advise(looked, &column, sample.as_ref())?;
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    order.sort_by(|&a, &b| candidates[a].total().total_cmp(&candidates[b].total()));
    let row = |number: usize| {
        let own = &candidates[number];
        let each = own.each.map(|(count, cost)| match count > 0.0 {
            true => Value::Float((cost / count).round()),
            false => Value::Null,
        });
        let mut row = vec![Value::Text(looked.candidate_text(&own.by).into())];
        row.extend(each);
        row.push(Value::Float((own.total() / 10.0).round() / 100.0));
        row.extend([own.is_present, number == recommended].map(Value::Boolean));
        row
    };
    Ok(listed("entasis_layout_advice", &columns, order.into_iter().map(row).collect()))
}

/// What a workload costs under each candidate: a sample, or what was counted.
pub(super) fn advise(looked: &Looked<'_>, present: &Column, sample: Option<&Sample>) -> Result<Advice> {
    let judge = Judge { looked, engine: engine(&looked.costs, looked.snapshot) };
    let mut candidates = Vec::new();
    for by in judge.candidates(present, sample) {
        looked.interrupt.look()?;
        let is_present = by == present.by();
        let imagined = || match by.key.is_empty() {
            true => Ok(present.without_key()),
            false => Column::imagined(looked.snapshot, &by.key, &looked.interrupt),
        };
        let each = match sample {
            Some(sample) if by.curve.is_some() => judge.along(&by.key, is_present, sample)?,
            Some(sample) => judge.sampled(&imagined()?, sample),
            None => judge.recorded(&imagined()?, present),
        };
        candidates.push(Advised { by, is_present, each });
    }
    let least = |a: &usize, b: &usize| candidates[*a].total().total_cmp(&candidates[*b].total());
    let best = (0..candidates.len()).min_by(least).unwrap_or(0);
    let is_worth = candidates[best].total() < (1.0 - WORTH) * candidates[0].total();
    Ok(Advice { recommended: if is_worth { best } else { 0 }, candidates })
}

impl Advice {
    /// What the recommended key costs less than the present one, in nanoseconds.
    pub(super) fn saved(&self) -> f64 {
        self.candidates[0].total() - self.candidates[self.recommended].total()
    }

    /// What it says, in words.
    pub(super) fn line(&self, looked: &Looked<'_>) -> String {
        let (present, best) = (&self.candidates[0], &self.candidates[self.recommended]);
        let named = |own: &Advised| looked.candidate_text(&own.by);
        match self.recommended {
            0 => format!("{} suits this workload: no other key saves {}", named(present), percent(WORTH)),
            _ => format!(
                "{} would suit this workload better than {}: {} instead of {}",
                named(best),
                named(present),
                time(best.total()),
                time(present.total())
            ),
        }
    }
}

impl Looked<'_> {
    fn candidate_text(&self, by: &LaidBy) -> String {
        let along = by.curve.map_or(String::new(), |curve| format!(" along {}", curve.name()));
        match by.key.is_empty() {
            true => "insertion order".to_owned(),
            false => columns(self.snapshot, &by.key) + &along,
        }
    }
}

struct Judge<'a> {
    looked: &'a Looked<'a>,
    engine: Engine,
}

impl Judge<'_> {
    fn candidates(&self, present: &Column, sample: Option<&Sample>) -> Vec<LaidBy> {
        let definition = &self.looked.definition;
        let mut found = vec![present.by()];
        if let Some(record) = &self.looked.record
            && sample.is_some_and(|sample| sample.is_recorded)
        {
            found.extend(record.standings().known().filter(|by| **by != present.by()).cloned());
        }
        let mut add = |key: Vec<usize>| {
            let by = LaidBy { key, curve: None };
            if !found.contains(&by) && found.len() <= CANDIDATES {
                found.push(by);
            }
        };
        if definition.keys.is_empty() {
            add(Vec::new());
        }
        definition.keys.iter().for_each(|key| add(key.columns.clone()));
        for question in sample.iter().flat_map(|sample| &sample.acts).filter_map(question_of) {
            question.comparisons.iter().for_each(|own| add(vec![own.column]));
        }
        let bounded = self.bounded(sample);
        for columns in CURVE_COLUMNS.filter(|columns| *columns <= bounded.len()) {
            let by = LaidBy { key: bounded[..columns].to_vec(), curve: Some(Curve::Hilbert) };
            if !found.contains(&by) && found.len() <= CANDIDATES + CURVE_COLUMNS.count() {
                found.push(by);
            }
        }
        found
    }

    /// The columns that the acts of a sample bound, those that most of them do first.
    fn bounded(&self, sample: Option<&Sample>) -> Vec<usize> {
        let schema = self.looked.snapshot.schema();
        let mut often: Vec<(usize, usize)> = (0..schema.len()).map(|column| (column, 0)).collect();
        for question in sample.iter().flat_map(|sample| &sample.acts).filter_map(question_of) {
            for (column, acts) in &mut often {
                *acts += usize::from(asked_of(question, &[*column], schema).is_some());
            }
        }
        often.retain(|(_, acts)| *acts > 0);
        often.sort_by_key(|&(column, acts)| (Reverse(acts), column));
        often.into_iter().map(|(column, _)| column).collect()
    }

    /// The cost of each kind of act in a sample, along a curve through the columns of `key`.
    fn along(&self, key: &[usize], is_present: bool, sample: &Sample) -> Result<[(f64, f64); ACTS.len()]> {
        let (looked, snapshot) = (self.looked, self.looked.snapshot);
        let schema = snapshot.schema();
        let single = key.iter().map(|&column| Column::imagined(snapshot, &[column], &looked.interrupt));
        let single = single.collect::<Result<Vec<Column>>>()?;
        let slices = snapshot.rows() as f64 / BLOCK_ROWS as f64;
        let share = |question: &Question, column: &Column| {
            asked_of(question, &column.key, schema).map_or(1.0, |asked| match column.locate(&asked) {
                Operation::Range(first, last) => (last - first) as f64 / column.parts.len() as f64,
                _ => 0.0,
            })
        };
        let find = |question: &Question| {
            if asked_of(question, key, schema).is_some_and(|asked| asked.is_point) {
                return self.reading(1.0);
            }
            let blocks = match is_present {
                true => blocks_met(snapshot, question),
                false => {
                    let shares: Vec<f64> = single.iter().map(|column| share(question, column)).collect();
                    blocks_of_box(slices, &shares)
                }
            };
            self.by_index(question).min(self.reading(blocks))
        };
        Ok(ACTS.map(|name| {
            let (mut count, mut cost) = (0.0, 0.0);
            for act in sample.acts.iter().filter(|act| name_of(act) == name) {
                let found = match act {
                    Act::Insert(_) => self.engine.insert(1),
                    Act::Read(which) | Act::Delete(which) => find(which) + self.written(act),
                    Act::Update { which, set } => {
                        let moves = set.iter().any(|(column, _)| key.contains(column));
                        find(which) + self.written(act) + if moves { self.engine.insert(1) } else { 0.0 }
                    }
                };
                count += 1.0;
                cost += found + self.indexes(act, key);
            }
            let added = if name == ACTS[1] { sample.added as f64 } else { 0.0 };
            (sample.weight * count + added, sample.weight * cost + added * self.engine.insert(1))
        }))
    }

    /// The cost of each kind of act in a sample.
    fn sampled(&self, column: &Column, sample: &Sample) -> [(f64, f64); ACTS.len()] {
        let finest = Partitioning::equal(column.parts.len(), 1);
        ACTS.map(|name| {
            let (mut count, mut cost) = (0.0, 0.0);
            let mut frequency = Frequency::new(column.parts.len());
            for act in sample.acts.iter().filter(|act| name_of(act) == name) {
                let found = match place(act, column, self.looked.snapshot.schema()) {
                    KeyPlace::At(Operation::Insert(_)) if column.key.is_empty() => self.engine.write,
                    KeyPlace::At(operation) => {
                        frequency.count(within(operation), 1.0);
                        0.0
                    }
                    KeyPlace::Whole => self.elsewhere(column, question_of(act)) + self.written(act),
                    KeyPlace::Unknown(_) => continue,
                };
                count += 1.0;
                cost += found + self.indexes(act, &column.key);
            }
            let placed = expected(&self.engine, &frequency, &finest);
            let placed: f64 = placed.iter().map(|own| own.count * own.each).sum();
            let mut both = (sample.weight * count, sample.weight * (cost + placed));
            if name == ACTS[1] {
                let each = if column.key.is_empty() { self.engine.write } else { self.engine.insert(1) };
                both = (both.0 + sample.added as f64, both.1 + sample.added as f64 * each);
            }
            both
        })
    }

    /// The cost of what was counted, under a key.
    fn recorded(&self, column: &Column, present: &Column) -> [(f64, f64); ACTS.len()] {
        let workload = Workload::recorded(present);
        let frequency = workload.by_slice(present);
        let own = expected(&self.engine, &frequency, &present.partitioning());
        let of = |operation: OperationKind| {
            (own[operation as usize].count, own[operation as usize].count * own[operation as usize].each)
        };
        let count = |operation: OperationKind| own[operation as usize].count;
        let (points, ranges) = (of(OperationKind::PointQuery), of(OperationKind::Range));
        let (inserts, deletes, updates) =
            (of(OperationKind::Insert), of(OperationKind::Delete), of(OperationKind::Update));
        if column.key == present.key {
            return [(points.0 + ranges.0, points.1 + ranges.1), inserts, deletes, updates];
        }
        let (by_index, whole) = (self.row_by_index(), self.whole());
        let Engine { lookup, write, delete, .. } = self.engine;
        let (twice, kinds) = (2.0 * lookup, self.engine.insert(1));
        match column.key.is_empty() {
            true => [
                (points.0 + ranges.0, (points.0 + ranges.0) * whole),
                (inserts.0, inserts.0 * write),
                (deletes.0, deletes.0 * (whole + delete)),
                (updates.0, updates.0 * (whole + write)),
            ],
            // An index on the present key, which has to be written as well.
            false => [
                (points.0 + ranges.0, points.0 * by_index + count(OperationKind::Range) * whole),
                (inserts.0, inserts.1 + inserts.0 * kinds),
                (deletes.0, deletes.0 * 2.0 * (twice + delete)),
                (updates.0, updates.1 + updates.0 * (twice + kinds)),
            ],
        }
    }

    /// Reading a column of all rows.
    fn whole(&self) -> f64 {
        self.reading(self.looked.snapshot.rows() as f64 / BLOCK_ROWS as f64)
    }

    /// Reading a column of so many slices.
    fn reading(&self, slices: f64) -> f64 {
        self.engine.lookup + self.engine.filter * slices.ceil().max(1.0)
    }

    /// Reading a row that an index names.
    fn row_by_index(&self) -> f64 {
        2.0 * self.engine.lookup + self.engine.read
    }

    /// Finding rows that the layout key does not find: by a declared key or index, or by looking at all.
    fn elsewhere(&self, column: &Column, question: Option<&Question>) -> f64 {
        let Some(question) = question else { return self.whole() };
        let snapshot = self.looked.snapshot;
        let options = snapshot.table().options();
        let whole = match column.key == options.layout_key && column.curve == options.curve {
            true => self.reading(blocks_met(snapshot, question)),
            false => self.whole(),
        };
        self.by_index(question).min(whole)
    }

    /// Finding rows by a declared key or index that all columns are given for; infinite if there is none.
    fn by_index(&self, question: &Question) -> f64 {
        let snapshot = self.looked.snapshot;
        let keys = self.looked.definition.keys.iter();
        let asked = |columns: &[usize]| asked_of(question, columns, snapshot.schema());
        let by_index = keys.filter(|key| asked(&key.columns).is_some_and(|asked| asked.is_point));
        let rows = |columns: &[usize]| {
            let distinct = columns.iter().map(|&column| snapshot.column_statistics(column).distinct).max();
            snapshot.rows() as f64 / distinct.unwrap_or(1).max(1) as f64
        };
        let found = by_index.map(|key| self.row_by_index() * rows(&key.columns).max(1.0));
        found.fold(f64::INFINITY, f64::min)
    }

    /// Writing a row that was found elsewhere.
    fn written(&self, act: &Act) -> f64 {
        match act {
            Act::Read(_) => 0.0,
            Act::Delete(_) => self.engine.delete,
            Act::Insert(_) | Act::Update { .. } => self.engine.write,
        }
    }

    /// Writing to the indexes that a table laid by `key` has.
    fn indexes(&self, act: &Act, key: &[usize]) -> f64 {
        let others = self.looked.definition.keys.iter().filter(|own| own.columns != key);
        let each = match act {
            Act::Insert(_) => self.engine.insert(1),
            Act::Delete(_) => self.engine.lookup + self.engine.delete,
            Act::Read(_) => 0.0,
            Act::Update { set, .. } => {
                let is_set = |column: &usize| set.iter().any(|(own, _)| own == column);
                let touched = others.filter(|own| own.columns.iter().any(is_set)).count();
                return touched as f64 * (self.engine.lookup + self.engine.delete + self.engine.insert(1));
            }
        };
        others.count() as f64 * each
    }
}

/// A range within one partition is found as a point query is: so the first columns of a key are as good as
/// these alone.
fn within(operation: Operation<usize>) -> Operation<usize> {
    match operation {
        Operation::Range(first, last) if first == last => Operation::Point(first),
        other => other,
    }
}

fn name_of(act: &Act) -> &'static str {
    match act {
        Act::Read(_) => ACTS[0],
        Act::Insert(_) => ACTS[1],
        Act::Delete(_) => ACTS[2],
        Act::Update { .. } => ACTS[3],
    }
}

fn question_of(act: &Act) -> Option<&Question> {
    match act {
        Act::Read(which) | Act::Delete(which) | Act::Update { which, .. } => Some(which),
        Act::Insert(_) => None,
    }
}
