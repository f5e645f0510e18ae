//! The scan of a stored table: which blocks are read, which of their columns are decoded, and for which rows.
//!
//! A worker reads the slots in stretches ([`walk`]). It skips blocks that the filters rule out by their
//! bounds ([`crate::zone_test`]), or that have no key of a join that the rows go to
//! ([`crate::exec::key_filter`]). For each stretch:
//!
//! 1. Dead slots (ghosts, deleted rows) are left out: the candidates are the live slots. If these are in long
//!    runs, the runs are read in turn; otherwise their positions are kept.
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
//! The index after the table's last column denotes the row id ([`RowId`]).
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

mod codes;
mod conjuncts;
mod decoded;
mod kept;
mod ranges;
mod searches;
mod stages;
mod stored;
mod trial;
mod truths;
mod walk;

use crate::context::QueryContext;
use crate::exec::key_filter::order::Order;
use crate::exec::key_filter::{PlacedFilter, PlacedWorker};
use crate::exec::profile::Recorder;
use crate::plan::Scan;
use crate::reach::{Found, Reach};
use crate::relation::{Source, SourceWorker};
use crate::settings::{Compaction, Settings};
use crate::sync::{AtomicUsize, Ordering};
use crate::zone_test::ZoneTest;
use codes::Codes;
use entasis_storage::{RowGroup, TableSnapshot, ValueRange, Zone};
use entasis_vector::expr::{ColumnMeta, Expr, Machine, Program};
use entasis_vector::{Buffer, Chunk, ColumnId, Result, Vector};
use kept::HeldBack;
use stages::{Stage, stages};
use std::ops::Range;
use std::sync::Arc;
use stored::StoredRuns;
use walk::{Stretch, Walk};

/// The largest fraction of remaining rows that counts as few, as a divisor.
const SPARSE: usize = 8;
/// The part of a scan that workers share.
#[derive(Clone)]
pub(crate) struct TableScan {
    snapshot: TableSnapshot,
    /// For each output column, its index in the table.
    columns: Vec<usize>,
    /// For each column, whether it is read after the filters.
    outputs: Vec<bool>,
    /// The index that denotes the row id.
    row_id: usize,
    metas: Vec<ColumnMeta>,
    reach: Arc<Reach>,
    /// The row groups to scan, each with its slots in reach.
    parts: Arc<[(usize, Range<usize>)]>,
    /// Ranges that rows must be in.
    ranges: Conditions<ValueRange>,
    /// The other filters.
    stages: Conditions<Stage>,
    tests: Vec<ZoneTest>,
    /// For each column whose bounds are tested, its index in the table.
    bounded: Vec<usize>,
    /// Join filters, on output columns.
    filters: Vec<PlacedFilter>,
    /// For each column that is read first, its index in the table; all columns, if there are no filters.
    first: Vec<usize>,
    /// For each column that is also read if conditions on codes are the only filters and leave many rows, its
    /// index in the table.
    next: Vec<usize>,
    recorder: Arc<Recorder>,
    chunk_rows: usize,
    settings: Arc<Settings>,
    /// Conditions may be tested on codes.
    on_codes: bool,
    /// Conjuncts are ordered by measurement.
    is_adaptive: bool,
    /// Rows may be held back.
    may_keep: bool,
    /// Rows that no filter reads stay in their blocks.
    leaves_stored: bool,
    /// The next part.
    next_part: Arc<AtomicUsize>,
}

/// Conditions that rows must satisfy.
#[derive(Clone)]
struct Conditions<T> {
    all: Vec<T>,
    /// How many conditions, from the first, hold for all rows within the layout key's range.
    implied: usize,
}

impl<T> Conditions<T> {
    fn new(implied: Vec<T>, others: Vec<T>) -> Conditions<T> {
        let count = implied.len();
        Conditions { all: implied.into_iter().chain(others).collect(), implied: count }
    }

    /// The indexes of the conditions that must be tested.
    fn left(&self, is_implied: bool) -> Range<usize> {
        if is_implied { self.implied..self.all.len() } else { 0..self.all.len() }
    }
}

impl TableScan {
    /// A scan of `columns` (id, index in the table), described by `metas`, for rows that satisfy the filters
    /// of `scan`. Columns not in `outputs` are only for the filters.
    ///
    /// # Errors
    /// Those of compiling the filters.
    pub(crate) fn new(
        snapshot: TableSnapshot,
        scan: &Scan,
        columns: &[(ColumnId, usize)],
        outputs: &[bool],
        metas: &[ColumnMeta],
        join_filters: Vec<PlacedFilter>,
        recorder: &Arc<Recorder>,
        context: &QueryContext,
    ) -> Result<TableScan> {
        // Row ids have no bounds.
        let row_id = snapshot.schema().len();
        let place =
            |id: ColumnId| columns.iter().find(|(c, index)| *c == id && *index != row_id).map(|(_, i)| *i);
        let mut conjuncts = Vec::new();
        scan.filters.iter().for_each(|filter| filter.clone().split_conjunction(&mut conjuncts));
        let found = match context.settings.optimize {
            true => Found::of(&*scan.relation, &snapshot, &conjuncts, &place, true),
            false => Found::everywhere(&conjuncts),
        };
        let (mut implied, mut others) = (Vec::new(), Vec::new());
        let implies = found.implied.iter();
        conjuncts
            .into_iter()
            .zip(implies)
            .for_each(|(c, &is)| if is { implied.push(c) } else { others.push(c) });
        // Rows that an index names are tested one at a time.
        let on_codes = context.settings.optimize && !matches!(found.reach, Reach::Rows(_));
        let take =
            |conjuncts: &mut Vec<Expr>| if on_codes { ranges::take(conjuncts, &place) } else { Vec::new() };
        let ranges = Conditions::new(take(&mut implied), take(&mut others));
        let mut ids: Vec<ColumnId> = Vec::new();
        others.iter().for_each(|conjunct| conjunct.collect_columns(&mut ids));
        let mut bounded: Vec<usize> = ids.into_iter().filter_map(place).collect();
        bounded.extend(
            join_filters
                .iter()
                .flat_map(|filter| &filter.columns)
                .map(|&column| columns[column].1)
                .filter(|&index| index != row_id),
        );
        bounded.sort_unstable();
        bounded.dedup();
        // The conditions that made the reach rule out none of its blocks.
        let tests = others.iter().filter_map(|conjunct| ZoneTest::of(conjunct, &place)).collect();
        let stages = Conditions::new(stages(implied, metas)?, stages(others, metas)?);
        let index = |column: usize| columns[column].1;
        let (range, stage) = (ranges.all.get(ranges.implied), stages.all.get(stages.implied));
        let first: Vec<usize> = match (range, stage, join_filters.first()) {
            (Some(range), ..) => vec![range.column],
            (None, Some(stage), _) => stage.columns.iter().map(|&column| index(column)).collect(),
            (None, None, Some(filter)) => filter.columns.iter().map(|&column| index(column)).collect(),
            (None, None, None) => (0..columns.len()).filter(|&column| outputs[column]).map(index).collect(),
        };
        let only_codes = stages.all.is_empty() && join_filters.is_empty() && !ranges.all.is_empty();
        let outputs_left = (0..columns.len()).filter(|&column| only_codes && outputs[column]).map(index);
        let next = outputs_left.filter(|index| *index != row_id && !first.contains(index)).collect();
        let mut parts = found.reach.parts(snapshot.row_groups().len());
        best_first(&mut parts, &snapshot, columns, &join_filters);
        Ok(TableScan {
            row_id,
            parts: parts.into(),
            tests,
            bounded,
            ranges,
            stages,
            first: first.into_iter().filter(|&index| index != row_id).collect(),
            next,
            columns: columns.iter().map(|(_, index)| *index).collect(),
            outputs: outputs.to_vec(),
            metas: metas.to_vec(),
            filters: join_filters,
            recorder: recorder.clone(),
            chunk_rows: context.settings.chunk_rows,
            settings: context.settings.clone(),
            on_codes,
            is_adaptive: context.settings.adaptive,
            // Rows that an index names are output at once.
            may_keep: context.settings.compaction == Compaction::Auto
                && !matches!(found.reach, Reach::Rows(_)),
            reach: Arc::new(found.reach),
            leaves_stored: false,
            next_part: Arc::default(),
            snapshot,
        })
    }
}

/// Puts the row groups first that have the first rows of a sort with a limit, by their bounds: with these the
/// threshold soon rules out others. Rows know the number of their row group, so the sort loses nothing.
fn best_first(
    parts: &mut [(usize, Range<usize>)],
    snapshot: &TableSnapshot,
    columns: &[(ColumnId, usize)],
    filters: &[PlacedFilter],
) {
    let threshold =
        filters.iter().find_map(|filter| Some((filter.test.threshold()?, columns[filter.columns[0]].1)));
    let Some((threshold, column)) = threshold.filter(|(_, column)| *column < snapshot.schema().len()) else {
        return;
    };
    let zone = |number: usize| snapshot.row_group(number).map(|group| group.column_zone(column));
    parts.sort_by(|(a, _), (b, _)| match (zone(*a), zone(*b)) {
        (Some(a), Some(b)) => threshold.compare_zones(a, b),
        _ => std::cmp::Ordering::Equal,
    });
}

impl TableScan {
    /// The most rows that the scan can output.
    pub(crate) fn rows(&self) -> u64 {
        self.reach.rows(self.snapshot.rows())
    }

    /// The ranges that must be tested.
    fn ranges_left(&self, is_implied: bool) -> &[ValueRange] {
        &self.ranges.all[self.ranges.left(is_implied)]
    }

    /// True if a condition may be tested on codes.
    fn may_use_codes(&self, is_implied: bool) -> bool {
        let stages = &self.stages.all[self.stages.left(is_implied)];
        !self.ranges.left(is_implied).is_empty()
            || (self.on_codes && stages.iter().any(|stage| stage.is_of_strings))
    }

    /// The order of stages and join filters; those after a stage that may fail do not move.
    fn order(&self) -> Order {
        let count = self.stages.all.len() + self.filters.len();
        let fallible = self.stages.all.iter().position(|stage| stage.program.is_fallible());
        Order::new(count, if self.is_adaptive { fallible.unwrap_or(count) } else { 0 })
    }

    /// True if there is one stage and no join filter: nothing else may rule out rows at less cost, but
    /// ranges.
    fn is_alone(&self) -> bool {
        self.stages.all.len() == 1 && self.filters.is_empty()
    }

    /// True if no filter tests single rows.
    fn is_unfiltered(&self, is_implied: bool) -> bool {
        let left = (self.ranges.left(is_implied), self.stages.left(is_implied));
        left.0.is_empty() && left.1.is_empty() && self.filters.is_empty()
    }

    /// False if bounds, which `zone` yields by column of the table, rule out all rows; `may_be_within` has
    /// tested those of ranges.
    fn may_have_rows<'z>(
        &self,
        zone: &impl Fn(usize) -> &'z Zone,
        may_be_within: &impl Fn(&ValueRange) -> bool,
    ) -> bool {
        // Row ids have no bounds.
        let has_keys = |filter: &PlacedFilter| {
            let columns = filter.columns.iter().map(|&column| self.columns[column]).enumerate();
            let mut stored = columns.filter(|&(_, column)| column != self.row_id);
            stored.all(|(key, column)| filter.may_be_in(zone(column), key))
        };
        self.ranges_left(true).iter().all(may_be_within)
            && self.tests.iter().all(|test| test.may_pass(zone))
            && self.filters.iter().all(has_keys)
    }
}

impl Source for TableScan {
    fn worker(&self) -> Result<Box<dyn SourceWorker>> {
        let reading = Reading {
            walk: Walk::new(),
            vectors: self.metas.iter().map(|meta| Vector::new(meta.physical)).collect(),
            decoded: vec![false; self.columns.len()],
            machines: self.stages.all.iter().map(|stage| Machine::new(stage.program.clone())).collect(),
            filters: self.filters.iter().map(|filter| filter.worker(&self.settings)).collect(),
            codes: Codes::new(self),
            order: self.order(),
            found: Vec::new(),
            gathered: 0..0,
            kept: HeldBack::default(),
            ahead: None,
            waiting: None,
            number: 0,
            is_implied: false,
            input: Chunk::new(),
            rows: Vec::with_capacity(self.chunk_rows),
            all: true,
            selection: Arc::new(Buffer::zeroed(self.chunk_rows * 2)),
            stored: None,
            scan: self.clone(),
        };
        Ok(Box::new(Worker { snapshot: self.snapshot.clone(), reading }))
    }

    fn programs(&self) -> Vec<&Program> {
        self.stages.all.iter().map(|stage| &*stage.program).collect()
    }

    fn conditions(&self) -> Vec<String> {
        let name = |column: usize| self.snapshot.schema()[column].name.to_string();
        let ranges = self.ranges.all.iter().map(|range| ranges::describe(&name(range.column), range));
        let stages = self.stages.all.iter().filter(|stage| self.on_codes && stage.is_of_strings);
        let sets = stages.map(|stage| {
            format!("codes of {} whose dictionary entries match", name(self.columns[stage.columns[0]]))
        });
        ranges.chain(sets).collect()
    }

    fn progress(&self) -> Option<f64> {
        Some(self.next_part.load(Ordering::Relaxed) as f64 / self.parts.len().max(1) as f64)
    }

    fn leaving_stored(&self) -> Option<Arc<dyn Source>> {
        // Row ids are not stored.
        let all_stored = !self.columns.contains(&self.row_id);
        all_stored.then(|| Arc::new(TableScan { leaves_stored: true, ..self.clone() }) as Arc<dyn Source>)
    }
}

/// One worker's part of a scan.
// PERF: the snapshot is a field of its own, so that it is borrowed while the rest is written. If it were
// cloned for each chunk, all workers would write to one cache line, which is also read to find the tree: a
// quarter of the time of a scan that finds few rows.
struct Worker {
    snapshot: TableSnapshot,
    reading: Reading,
}

/// A worker's position, and what it has read.
struct Reading {
    scan: TableScan,
    walk: Walk,
    vectors: Vec<Vector>,
    /// Columns that are decoded for the current stretch.
    decoded: Vec<bool>,
    machines: Vec<Machine>,
    /// For each join filter.
    filters: Vec<PlacedWorker>,
    /// The input of a stage.
    input: Chunk,
    /// Conditions on codes.
    codes: Codes,
    /// The order of stages, then join filters.
    order: Order,
    /// Positions that pass conditions on codes in a stretch that is longer than a chunk, for several chunks.
    found: Vec<u16>,
    /// The positions that are the rows of the current chunk, gathered; empty if rows stay at their positions.
    gathered: Range<usize>,
    /// Rows that are held back.
    kept: HeldBack,
    /// A stretch whose rows follow rows that are held back.
    ahead: Option<Stretch>,
    /// The number of positions of a chunk whose rows have been found but follow rows that are held back.
    waiting: Option<usize>,
    /// The row group of the last chunk.
    number: usize,
    /// True if the first stages hold for all rows of the current stretch.
    is_implied: bool,
    /// Remaining positions, unless all remain.
    rows: Vec<u16>,
    all: bool,
    selection: Arc<Buffer>,
    /// The description of the last stored rows, which is reused.
    stored: Option<Arc<StoredRuns>>,
}

impl SourceWorker for Worker {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        self.reading.next(&self.snapshot, chunk)
    }

    fn morsel(&self) -> u64 {
        self.reading.number as u64
    }
}

impl Reading {
    /// See [`SourceWorker::next`].
    fn next(&mut self, snapshot: &TableSnapshot, chunk: &mut Chunk) -> Result<bool> {
        // Releases the chunk, so that memory it shares with this worker can be overwritten.
        chunk.reset(0);
        if let Some(count) = self.waiting.take() {
            self.number = self.walk.number;
            self.give(snapshot, count, chunk);
            return Ok(true);
        }
        let count;
        if self.gathered.end < self.found.len() {
            count = self.gather_next();
        } else {
            let stretch = match self.ahead.take() {
                Some(stretch) => stretch,
                None => {
                    let chunks = self.codes.passed.chunks(self.scan.chunk_rows);
                    match self.walk.next(&self.scan, chunks) {
                        Some(stretch) => stretch,
                        None => return Ok(self.give_kept(snapshot, chunk)),
                    }
                }
            };
            let group = snapshot.row_group(self.walk.number).expect("the row group is open");
            let end = self.walk.runs.last().map_or(0, |run| run.end);
            let has_room = self.kept.has_room(self.walk.number, end, group.block_slots());
            if self.kept.len() > 0 && (stretch.is_stored || !has_room) {
                self.ahead = Some(stretch);
                return Ok(self.give_kept(snapshot, chunk));
            }
            self.number = self.walk.number;
            if stretch.is_stored {
                chunk.reset(stretch.count);
                chunk.push_stored(self.stored());
                return Ok(true);
            }
            if !matches!(&*self.scan.reach, Reach::Rows(_)) {
                let first = &self.scan.first;
                // Comparing by digests already prefetches what comes next.
                if self.scan.ranges.all.is_empty() || !first.iter().all(|&column| group.is_digested(column)) {
                    group.prefetch(self.walk.slot, first, &self.walk.wanted);
                }
                if self.codes.passed.are_many() {
                    group.prefetch(self.walk.slot, &self.scan.next, &self.walk.wanted);
                }
            }
            self.is_implied = stretch.is_implied;
            count = self.find_rows(group, &stretch);
        }
        let group = snapshot.row_group(self.walk.number).expect("the row group is open");
        self.decoded.fill(false);
        let none = !self.all && self.rows.is_empty();
        if none || !self.run_conjuncts(group, count)? {
            // An empty chunk lets the pipeline look at the clock.
            return Ok(true);
        }
        let rows = if self.all { count } else { self.rows.len() };
        if self.scan.may_keep && rows * SPARSE <= self.scan.chunk_rows {
            self.keep(count);
            // The next rows might not fit.
            if self.kept.len() + rows > self.scan.chunk_rows {
                self.give_kept(snapshot, chunk);
            }
        } else if self.kept.len() > 0 {
            self.waiting = Some(count);
            self.give_kept(snapshot, chunk);
        } else {
            self.give(snapshot, count, chunk);
        }
        Ok(true)
    }

    /// Holds back the remaining rows of `count` positions.
    fn keep(&mut self, count: usize) {
        let (all, rows) =
            (0..if self.all { count } else { 0 }, self.rows.iter().map(|&row| usize::from(row)));
        let left = all.chain(rows);
        let (number, runs) = (self.walk.number, &self.walk.runs);
        if self.gathered.is_empty() {
            self.kept.keep(number, runs, left);
        } else {
            let found = &self.found[self.gathered.clone()];
            self.kept.keep(number, runs, left.map(|row| usize::from(found[row])));
        }
    }

    /// Begins with the live slots within the ranges of values. Returns the number of positions in the chunk.
    fn find_rows(&mut self, group: &RowGroup, stretch: &Stretch) -> usize {
        self.rows.clear();
        self.found.clear();
        self.gathered = 0..0;
        self.all = stretch.is_dense;
        self.codes.choose(&self.scan, stretch, &mut self.machines, group, &self.walk.runs);
        if stretch.is_long || !self.codes.conditions.is_empty() {
            let rows = if stretch.is_long { &mut self.found } else { &mut self.rows };
            group.select_runs(&self.codes.conditions, &self.walk.runs, rows);
            self.codes.passed.count(stretch.count, rows.len());
            if stretch.is_long {
                return self.gather_next();
            }
            self.all = self.rows.len() == stretch.count;
            if self.all {
                self.rows.clear();
            }
            return stretch.count;
        }
        if self.all {
            return stretch.count;
        }
        let window = self.walk.runs[0].clone();
        let rows = &mut self.rows;
        if let Reach::Rows(found) = &*self.scan.reach {
            rows.extend(
                found[stretch.rows.clone()].iter().map(|row| (row.slot as usize - window.start) as u16),
            );
        } else {
            group.each_live(window, |position| rows.push(position as u16));
        }
        stretch.count
    }

    /// Continues with the next rows found in a long stretch, which are gathered. Returns how many there are.
    fn gather_next(&mut self) -> usize {
        self.rows.clear();
        let start = self.gathered.end;
        self.gathered = start..self.found.len().min(start + self.scan.chunk_rows);
        self.all = !self.gathered.is_empty();
        self.gathered.len()
    }
}
