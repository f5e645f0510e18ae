//! One worker's part of a scan: it takes a stretch from its walk, finds the rows that pass, and outputs them
//! at once or holds them back.

use super::candidates::Candidates;
use super::conjuncts::Conjuncts;
use super::decoded::DecodedColumns;
use super::kept::HeldBack;
use super::shared::TableScan;
use super::stored::StoredRuns;
use super::trial::SPARSE;
use super::walk::{Stretch, Walk};
use crate::access_path::Reach;
use crate::relation::SourceWorker;
use entasis_storage::TableSnapshot;
use entasis_vector::{Chunk, Result, Selection};
use std::ops::ControlFlow;
use std::sync::Arc;

/// See the module.
// PERF: the snapshot is a field of its own, so that it is borrowed while the rest is written. If it were
// cloned for each chunk, all workers would write to one cache line, which is also read to find the tree: a
// quarter of the time of a scan that finds few rows.
pub(super) struct Worker {
    snapshot: TableSnapshot,
    reading: Reading,
}

/// A worker's position, and what it has read.
struct Reading {
    scan: TableScan,
    walk: Walk,
    /// The rows of the current stretch that are left.
    candidates: Candidates,
    conjuncts: Conjuncts,
    columns: DecodedColumns,
    /// Rows that are held back.
    kept: HeldBack,
    /// A stretch whose rows follow rows that are held back.
    ahead: Option<Stretch>,
    /// True if the candidates have been found but follow rows that are held back.
    is_waiting: bool,
    /// The row group of the last chunk.
    number: usize,
    /// The description of the last stored rows, which is reused.
    stored: Option<Arc<StoredRuns>>,
}

impl Worker {
    /// A worker of `scan`, before its first morsel.
    pub(super) fn new(scan: &TableScan) -> Worker {
        let reading = Reading {
            walk: Walk::new(),
            candidates: Candidates::new(scan.chunk_rows),
            conjuncts: Conjuncts::new(scan),
            columns: DecodedColumns::new(&scan.columns, scan.chunk_rows),
            kept: HeldBack::default(),
            ahead: None,
            is_waiting: false,
            number: 0,
            stored: None,
            scan: scan.clone(),
        };
        Worker { snapshot: scan.snapshot.clone(), reading }
    }
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
        if std::mem::take(&mut self.is_waiting) {
            self.number = self.walk.number;
            self.give(snapshot, chunk);
            return Ok(true);
        }
        if self.candidates.has_more() {
            self.candidates.gather_next();
        } else {
            match self.next_stretch(snapshot, chunk) {
                ControlFlow::Continue(stretch) => self.begin(snapshot, &stretch),
                ControlFlow::Break(is_given) => return Ok(is_given),
            }
        }
        self.columns.clear();
        let slots = self.walk.slots(snapshot);
        if self.candidates.len() == 0
            || !self.conjuncts.run(&self.scan, slots, &mut self.columns, &mut self.candidates)?
        {
            // An empty chunk lets the pipeline look at the clock.
            return Ok(true);
        }
        let rows = self.candidates.len();
        if self.scan.may_keep && rows * SPARSE <= self.scan.chunk_rows {
            self.kept.keep(self.walk.number, &self.walk.runs, self.candidates.positions());
            // The next rows might not fit.
            if self.kept.len() + rows > self.scan.chunk_rows {
                self.give_kept(snapshot, chunk);
            }
        } else if self.kept.len() > 0 {
            self.is_waiting = true;
            self.give_kept(snapshot, chunk);
        } else {
            self.give(snapshot, chunk);
        }
        Ok(true)
    }

    /// The next stretch whose rows are to be found. If there is none yet, since stored rows or rows that were
    /// held back come first, or none at all, breaks with what [`SourceWorker::next`] returns.
    fn next_stretch(&mut self, snapshot: &TableSnapshot, chunk: &mut Chunk) -> ControlFlow<bool, Stretch> {
        let stretch = self.ahead.take().or_else(|| {
            let chunks = self.conjuncts.codes.passed.chunks(self.scan.chunk_rows);
            self.walk.next(&self.scan, chunks)
        });
        let Some(stretch) = stretch else { return ControlFlow::Break(self.give_kept(snapshot, chunk)) };
        let group = self.walk.slots(snapshot).group;
        let end = self.walk.runs.last().map_or(0, |run| run.end);
        let has_room = self.kept.has_room(self.walk.number, end, group.block_slots());
        if self.kept.len() > 0 && (stretch.is_stored || !has_room) {
            self.ahead = Some(stretch);
            return ControlFlow::Break(self.give_kept(snapshot, chunk));
        }
        self.number = self.walk.number;
        if stretch.is_stored {
            chunk.reset(stretch.count);
            chunk.push_stored(self.stored());
            return ControlFlow::Break(true);
        }
        ControlFlow::Continue(stretch)
    }

    /// Begins a stretch: the candidates are its live slots that pass conditions on codes.
    fn begin(&mut self, snapshot: &TableSnapshot, stretch: &Stretch) {
        let slots = self.walk.slots(snapshot);
        let (scan, conjuncts, candidates) = (&self.scan, &mut self.conjuncts, &mut self.candidates);
        if !scan.morsels.are_rows() {
            let passed = &conjuncts.codes.passed;
            scan.prefetched.request(slots.group, self.walk.slot, &self.walk.wanted, passed);
        }
        candidates.begin(stretch);
        conjuncts.choose_codes(scan, stretch, slots);
        let codes = &mut conjuncts.codes;
        if stretch.is_long || !codes.conditions.is_empty() {
            let rows = if stretch.is_long { candidates.found() } else { &mut candidates.rows };
            slots.group.select_runs(&codes.conditions, slots.runs, rows);
            codes.passed.count(stretch.count, rows.len());
            if stretch.is_long { candidates.gather_next() } else { candidates.listed() }
        } else if !candidates.all {
            let window = slots.runs[0].clone();
            let rows = &mut candidates.rows;
            if let Reach::Rows(found) = &*scan.morsels.reach {
                let found = &found[stretch.rows.clone()];
                rows.extend(found.iter().map(|row| (row.slot as usize - window.start) as u16));
            } else {
                slots.group.each_live(window, |position| rows.push(position as u16));
            }
        }
    }

    /// Outputs the candidates.
    fn give(&mut self, snapshot: &TableSnapshot, chunk: &mut Chunk) {
        self.columns.complete(&self.scan.columns, self.walk.slots(snapshot), &self.candidates);
        let selection = self.candidates.selection();
        self.columns.push(self.candidates.len(), selection, chunk);
    }

    /// Outputs rows that were held back. False if there are none.
    fn give_kept(&mut self, snapshot: &TableSnapshot, chunk: &mut Chunk) -> bool {
        if self.kept.len() == 0 {
            return false;
        }
        self.number = self.kept.number;
        let group = snapshot.row_group(self.number).expect("it is a row group");
        let rows = self.kept.take(self.scan.chunk_rows, group.block_slots(), group.slots());
        self.columns.gather(&self.scan.columns, group, &self.kept);
        self.kept.forget();
        // Rows that wait are decoded into the same memory.
        self.columns.clear();
        self.columns.push(rows, Selection::ALL, chunk);
        true
    }

    /// The current stretch, whose rows stay in their blocks, in reused memory.
    fn stored(&mut self) -> Arc<StoredRuns> {
        let (snapshot, columns) = (&self.scan.snapshot, &self.scan.columns);
        let stored = self.stored.get_or_insert_with(|| Arc::new(StoredRuns::new(snapshot, columns)));
        let told = Arc::get_mut(stored).expect("each chunk is reset before the next is asked for");
        told.group = self.walk.number;
        std::mem::swap(&mut told.runs, &mut self.walk.runs);
        stored.clone()
    }
}
