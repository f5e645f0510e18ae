//! Sorts larger than memory: sorted runs in temporary files, and how they become one order. An external merge
//! sort (Graefe, *Implementing Sorting in Database Systems*, ACM Computing Surveys 2006).
//!
//! 1. *Runs.* A worker whose rows do not fit sorts them, writes them as a [run](super::run), and starts over
//!    without rows. At the end of the input, if
//!    there is a run, the rows still in memory become runs too.
//! 2. *Passes.* If there is no memory for a block of each run, consecutive runs are merged into one, in
//!    another file, until there is. Groups are as large as memory allows and no larger than needed, so that
//!    few rows are written twice. A pass has one file; the previous pass's file is deleted when all runs in
//!    it have been merged.
//! 3. *Merge.* The last [merge](super::merge) passes its rows to the sort's stream: they are never all in
//!    memory.
//!
//! Invariants. Equal rows come out in the order of arrival: by morsel, and within a morsel in its worker's
//! order. A row carries its morsel; and for rows of one morsel, which one worker has, the *list* of runs is
//! in order:
//! - a worker's runs are added to the list as they are made, whatever other workers add between them;
//! - merged runs are a stretch of the list, and the result takes the place of the stretch.
//!
//! So of two runs with rows of one morsel, the first in the list has the earlier rows, and it is enough to
//! break ties by morsel and then by the place in the list.
//!
//! Not here: runs longer than memory (by replacement selection: rows would leave one by one); several workers
//! for a pass or for the last merge.

use super::merge::Merge;
use super::run::{RunWriter, SortedRun};
use super::run_spec::RunSpec;
use crate::context::QueryContext;
use crate::exec::sort::codes::OrderKey;
use crate::exec::spill::file::TempFile;
use crate::exec::spill::policy::left_of;
use crate::settings::Spilling;
use crate::sync::{AtomicUsize, Mutex, Ordering, lock};
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{Result, Vector};
use std::sync::Arc;

/// Bytes of rows below which no run is written before the end, even if there is no memory for them.
pub const LEAST_RUN: usize = 256 << 10;
/// Rows of a worker's first run where runs are forced; each later one has a quarter more of that, so that
/// many rows do not become too many runs.
const FEW_ROWS: usize = 64;
/// The same for the setting `deep`, and the runs that are then merged at once.
const FEW_DEEP_ROWS: usize = 8;
const DEEP_FAN_IN: usize = 3;

/// The shared state of a sort that may write runs.
pub struct SortedRuns {
    spec: RunSpec,
    /// The file of the first runs.
    file: Mutex<Option<Arc<TempFile>>>,
    /// The list of runs.
    list: Mutex<Vec<SortedRun>>,
    /// The outcome, for the profile: runs that workers made, times that a row was merged.
    made: AtomicUsize,
    passes: AtomicUsize,
}

impl SortedRuns {
    /// The state for a sort of rows with these columns; `None` if nothing may be written.
    pub fn new(
        stored: &[ColumnMeta],
        keys: &[OrderKey],
        limit: Option<usize>,
        context: &QueryContext,
    ) -> Option<SortedRuns> {
        if context.settings.temp_directory.is_empty() {
            return None;
        }
        Some(SortedRuns {
            spec: RunSpec::new(stored, keys, limit, context),
            file: Mutex::default(),
            list: Mutex::default(),
            made: AtomicUsize::new(0),
            passes: AtomicUsize::new(0),
        })
    }

    /// What the runs have in common.
    pub fn spec(&self) -> &RunSpec {
        &self.spec
    }

    // ---- when runs are made -------------------------------------------------------------------------------

    /// True if `rows` rows of `bytes` bytes are too many for a worker that has made `made` runs.
    pub fn is_due(&self, rows: usize, bytes: usize, made: usize) -> bool {
        let few = |rows: usize| rows + rows / 4 * made;
        match self.spec.setting {
            Spilling::Auto => bytes > LEAST_RUN && self.spec.policy().is_short(bytes, 0),
            Spilling::All => rows >= few(FEW_ROWS),
            Spilling::Deep => rows >= few(FEW_DEEP_ROWS),
        }
    }

    /// True if some rows are in a run.
    pub fn has_any(&self) -> bool {
        self.made.load(Ordering::Relaxed) > 0
    }

    /// Writes the rows `ids`, as far as they are needed, as a run at the end of the list. `gather` writes all
    /// columns of some of them to vectors. True if it is the first run.
    ///
    /// # Errors
    /// Those of writing.
    pub fn write(&self, ids: &[u32], gather: impl FnMut(&[u32], &mut [Vector])) -> Result<bool> {
        let mut writer = RunWriter::new(&self.spec, self.file()?);
        writer.add(&ids[..ids.len().min(self.spec.limit())], gather)?;
        let Some(run) = writer.finish()? else { return Ok(false) };
        lock(&self.list).push(run);
        Ok(self.made.fetch_add(1, Ordering::Relaxed) == 0)
    }

    /// The file of the first runs, which is created if there is none yet.
    fn file(&self) -> Result<Arc<TempFile>> {
        let mut file = lock(&self.file);
        if let Some(file) = &*file {
            return Ok(file.clone());
        }
        let new = Arc::new(TempFile::new(self.spec.context())?);
        *file = Some(new.clone());
        Ok(new)
    }

    // ---- how they are merged ------------------------------------------------------------------------------

    /// All rows in one order. No run may be added any more.
    ///
    /// # Errors
    /// I/O; resource, if there is no memory for a block of each of two runs; interrupted.
    pub fn merge(&self) -> Result<Merge> {
        // From now on only runs keep it.
        drop(lock(&self.file).take());
        let mut runs = std::mem::take(&mut *lock(&self.list));
        self.passes.store(1, Ordering::Relaxed);
        loop {
            let free = self.spec.context().memory.free();
            let room = Room { bytes: free - left_of(free), runs: self.fan_in() };
            if room.is_enough(runs.len(), needs(&runs)) {
                return Merge::new(&self.spec, runs);
            }
            self.passes.fetch_add(1, Ordering::Relaxed);
            runs = self.pass(runs, &room)?;
        }
    }

    fn fan_in(&self) -> usize {
        if self.spec.setting == Spilling::Deep { DEEP_FAN_IN } else { usize::MAX }
    }

    /// Merges groups of consecutive runs, until the remaining runs can be merged at once or all have been
    /// merged.
    fn pass(&self, runs: Vec<SortedRun>, room: &Room) -> Result<Vec<SortedRun>> {
        let file = Arc::new(TempFile::new(self.spec.context())?);
        let mut done: Vec<SortedRun> = Vec::new();
        let mut left = (runs.len(), needs(&runs));
        let mut runs = runs.into_iter().peekable();
        while let Some(first) = runs.next() {
            left = (left.0 - 1, left.1 - first.needs);
            // The memory that the group needs, and that its result will need.
            let (mut all, mut most) = (first.needs, first.needs);
            let mut group = vec![first];
            let done_needs = needs(&done);
            while let Some(next) = runs.peek()
                && !room.is_enough(done.len() + 1 + left.0, done_needs + most + left.1)
                && room.is_enough(group.len() + 1, all + next.needs)
            {
                left = (left.0 - 1, left.1 - next.needs);
                (all, most) = (all + next.needs, most.max(next.needs));
                group.extend(runs.next());
            }
            done.extend(if group.len() == 1 { group.pop() } else { self.merge_to(&file, group)? });
        }
        Ok(done)
    }

    /// Merges runs into one, which is written to `file`.
    fn merge_to(&self, file: &Arc<TempFile>, group: Vec<SortedRun>) -> Result<Option<SortedRun>> {
        let columns: Vec<usize> = (0..self.spec.columns().len()).collect();
        let mut merge = Merge::new(&self.spec, group)?;
        let mut writer = RunWriter::new(&self.spec, file.clone());
        while merge.advance(&self.spec)? {
            let ordered = merge.ordered();
            writer.add(&ordered.order, |ids, vectors| ordered.rows.gather_all(&columns, ids, vectors))?;
        }
        writer.finish()
    }

    /// What was written and why, once everything is done; `None` if nothing was.
    pub fn report(&self) -> Option<String> {
        if !self.has_any() {
            return None;
        }
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        let (written, read) = self.spec.traffic();
        let why = match self.spec.setting {
            Spilling::Auto => "they did not fit into memory".to_string(),
            forced => format!("sort_spill = {forced}"),
        };
        let passes = self.passes.load(Ordering::Relaxed);
        Some(format!(
            "{} sorted runs in temporary files, {why}: {:.1} MB written, {:.1} MB read; merged in {passes} {}",
            self.made.load(Ordering::Relaxed),
            megabytes(written),
            megabytes(read),
            if passes == 1 { "pass" } else { "passes" },
        ))
    }
}

/// The runs that may be merged at once.
struct Room {
    bytes: usize,
    runs: usize,
}

impl Room {
    /// True if there is room for `runs` runs that need `bytes` bytes. Two are merged in any case: if there is
    /// no memory for them, reserving it fails.
    fn is_enough(&self, runs: usize, bytes: usize) -> bool {
        runs <= 2 || runs <= self.runs && bytes <= self.bytes
    }
}

fn needs(runs: &[SortedRun]) -> usize {
    runs.iter().map(|run| run.needs).sum()
}
