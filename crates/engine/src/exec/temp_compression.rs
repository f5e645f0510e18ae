//! Decides whether the rows of an operator are kept as tuples: because a setting forces it, or because it
//! pays off.
//!
//! Tuples save memory, and cost time when rows are kept and when they are read. While memory is plentiful,
//! rows stay columns. All workers of an operator share a [`Choice`], which each consults when a segment of
//! its rows is full:
//! 1. Are the operator's rows large compared with the remaining memory?
//! 2. If so, how much smaller would this segment be? If that pays off, full segments of all workers become
//!    tuples from then on, and the last ones when a worker has all its rows. If not, the question is settled.
//!
//! While a segment is encoded it exists twice; this is not reserved.

use crate::context::QueryContext;
use crate::exec::materialized::{Materialized, SEGMENT_ROWS};
use crate::exec::tuple::TupleLayout;
use crate::memory::MemoryBudget;
use crate::settings::TempCompression;
use crate::sync::OnceLock;
use entasis_vector::expr::ColumnMeta;
use std::sync::Arc;

/// The share of the remaining memory beyond which the rows of all workers are large, as a divisor.
const LARGE_PART: usize = 4;

/// True if rows of `bytes` in each of `workers` are large compared with `free` bytes.
fn are_large(bytes: usize, workers: usize, free: usize) -> bool {
    bytes.saturating_mul(workers) > free / LARGE_PART
}

/// True if rows of `columns` bytes should become tuples of `tuples` bytes: they must save a quarter.
fn pays(columns: usize, tuples: usize) -> bool {
    tuples <= columns / 4 * 3
}

/// The approximate bytes of a row as a tuple, if rows that have not arrived are expected to become tuples.
/// `rows` and `bytes` are their number and their bytes as columns.
pub(crate) fn expected_bytes(
    columns: &[ColumnMeta],
    (rows, bytes): (f64, f64),
    context: &QueryContext,
) -> Option<f64> {
    let setting = context.settings.temp_compression;
    let asks = match setting {
        TempCompression::On => true,
        TempCompression::Off => false,
        TempCompression::Auto => are_large((rows * bytes) as usize, 1, context.memory.free()),
    };
    let layout = TupleLayout::new(columns, &vec![false; columns.len()]).filter(|_| asks)?;
    let is_wanted = setting == TempCompression::On || pays(bytes as usize, layout.longest);
    is_wanted.then_some(layout.longest as f64)
}

/// The decision of one operator.
pub struct Choice {
    setting: TempCompression,
    memory: Arc<MemoryBudget>,
    workers: usize,
    columns: Vec<ColumnMeta>,
    is_key: Vec<bool>,
    /// The layout of the tuples, made when first needed.
    layout: OnceLock<Option<Arc<TupleLayout>>>,
    /// The decision, and its reason.
    verdict: OnceLock<(bool, String)>,
}

impl Choice {
    /// The choice for rows with these columns; keys stay columns.
    pub fn new(columns: &[ColumnMeta], is_key: Vec<bool>, context: &QueryContext) -> Choice {
        debug_assert_eq!(columns.len(), is_key.len());
        Choice {
            setting: context.settings.temp_compression,
            memory: context.memory.clone(),
            workers: context.settings.threads,
            columns: columns.to_vec(),
            is_key,
            layout: OnceLock::new(),
            verdict: OnceLock::new(),
        }
    }

    /// Must be called after `rows` have grown by `appended` rows.
    pub fn grown(&self, rows: &mut Materialized, appended: usize) {
        let full = rows.rows() / SEGMENT_ROWS;
        if full == (rows.rows() - appended) / SEGMENT_ROWS {
            return;
        }
        if self.decide(rows, full - 1) {
            self.compress(rows, full);
        }
    }

    /// Must be called when a worker's `rows` are complete.
    pub fn complete(&self, rows: &mut Materialized) {
        let wanted = match self.setting {
            TempCompression::On => true,
            TempCompression::Off => false,
            TempCompression::Auto => self.verdict.get().is_some_and(|(wanted, _)| *wanted),
        };
        if wanted && !rows.is_empty() {
            self.compress(rows, rows.segments());
        }
    }

    /// What happened to all workers' rows and why, for the profile; `None` if nothing had to be decided.
    pub fn report(&self, rows: &Materialized) -> Option<String> {
        let reason = match (self.setting, self.verdict.get()) {
            (_, Some((false, reason))) => return Some(format!("rows stay columns: {reason}")),
            (_, Some((true, reason))) => reason.as_str(),
            (TempCompression::On, None) => "temp_compression is on",
            (_, None) => return None,
        };
        let (compressed, columns, tuples) = rows.compressed();
        let each = |bytes: usize| bytes as f64 / compressed as f64;
        (compressed > 0).then(|| {
            let [columns, tuples] = [columns, tuples].map(each);
            format!(
                "tuples: {compressed} of {} rows, {tuples:.1} instead of {columns:.1} bytes per row; {reason}",
                rows.rows()
            )
        })
    }

    fn decide(&self, rows: &Materialized, segment: usize) -> bool {
        match self.setting {
            TempCompression::On => return true,
            TempCompression::Off => return false,
            TempCompression::Auto => {}
        }
        if let Some((wanted, _)) = self.verdict.get() {
            return *wanted;
        }
        let (bytes, free) = (rows.bytes(), self.memory.free());
        if !are_large(bytes, self.workers, free) {
            return false;
        }
        let Some(layout) = self.layout() else { return false };
        let Some((columns, tuples)) = rows.measure(segment, layout) else { return false };
        let pays = pays(columns, tuples);
        let [columns, tuples] = [columns, tuples].map(|bytes| bytes as f64 / SEGMENT_ROWS as f64);
        let reason = format!(
            "{} MB of rows in one of {} workers, {} MB of memory free, {tuples:.1} instead of {columns:.1} bytes per row",
            bytes >> 20,
            self.workers,
            free >> 20,
        );
        self.verdict.get_or_init(|| (pays, reason)).0
    }

    fn layout(&self) -> Option<&Arc<TupleLayout>> {
        self.layout.get_or_init(|| TupleLayout::new(&self.columns, &self.is_key).map(Arc::new)).as_ref()
    }

    fn compress(&self, rows: &mut Materialized, segments: usize) {
        if let Some(layout) = self.layout() {
            (0..segments).for_each(|segment| rows.compress(segment, layout));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Reservation;
    use crate::settings::Settings;
    use entasis_vector::{ColumnId, DataType, Value, Vector};

    #[test]
    fn rows_are_compressed_if_memory_is_short_and_it_helps() {
        // Bytes of a worker, workers, free bytes.
        assert!(!are_large(10 << 20, 2, 100 << 20));
        assert!(are_large(10 << 20, 2, 70 << 20));
        assert!(are_large(10 << 20, 8, 100 << 20));
        assert!(!are_large(10 << 30, 64, usize::MAX), "without a limit");
        assert!(are_large(1, 1, 0));
        // Bytes as columns, bytes as tuples.
        assert!(pays(40, 30) && pays(40, 12));
        assert!(!pays(40, 31) && !pays(40, 44));
    }

    /// Ten segments of 16 bytes per row, of which 3 are needed.
    fn grow(settings: Settings, limit: usize) -> (Materialized, Option<String>) {
        let meta = |id, range| ColumnMeta {
            nullable: false,
            range: Some(range),
            ..ColumnMeta::new(ColumnId(id), DataType::Int64)
        };
        let columns = [meta(0, (0, 1 << 40)), meta(1, (0, 200)), meta(2, (0, 60_000))];
        let memory = Arc::new(MemoryBudget::new(limit));
        let context = QueryContext { settings: Arc::new(settings), memory, ..QueryContext::default() };
        let choice = Choice::new(&columns, vec![true, false, false], &context);
        let mut reservation = Reservation::new(&context.memory);
        let mut rows = Materialized::new(&columns);
        let vectors = [(); 3].map(|()| Vector::from_slice(&[100i64; 2000]));
        let vectors = vectors.each_ref().map(|vector| (vector, None));
        for _ in 0..327 {
            rows.append_vectors(&vectors, 2000);
            choice.grown(&mut rows, 2000);
            reservation.resize(rows.bytes()).unwrap();
        }
        choice.complete(&mut rows);
        assert_eq!(rows.value(70_000, 1), Value::Integer(100));
        let report = choice.report(&rows);
        (rows, report)
    }

    #[test]
    fn the_setting_and_the_memory_decide() {
        let with = |temp_compression| Settings { threads: 1, temp_compression, ..Settings::default() };
        let (rows, report) = grow(with(TempCompression::Off), 20 << 20);
        assert_eq!((rows.compressed().0, report), (0, None));
        let (rows, report) = grow(with(TempCompression::Auto), 1 << 30);
        assert_eq!((rows.compressed().0, report), (0, None));
        let (rows, report) = grow(with(TempCompression::On), 1 << 30);
        assert_eq!(rows.compressed().0, 654_000);
        let report = report.unwrap();
        assert!(report.starts_with("tuples: 654000 of 654000 rows, 3.0 instead of 16"), "{report}");
        assert!(report.ends_with("temp_compression is on"), "{report}");
        // As columns they would take 16 MB.
        let (rows, report) = grow(with(TempCompression::Auto), 12 << 20);
        assert_eq!(rows.compressed().0, 654_000);
        assert!(rows.bytes() < 8 << 20);
        let report = report.unwrap();
        assert!(report.contains("MB of rows in one of 1 workers"), "{report}");
    }

    #[test]
    fn what_is_expected_is_what_comes() {
        let meta = |range| ColumnMeta {
            nullable: false,
            range: Some(range),
            ..ColumnMeta::new(ColumnId(0), DataType::Int64)
        };
        let columns = [meta((0, 200)), meta((0, 60_000)), meta((0, 1 << 30))];
        let expected = |temp_compression, rows, limit| {
            let settings = Arc::new(Settings { temp_compression, ..Settings::default() });
            let memory = Arc::new(MemoryBudget::new(limit));
            expected_bytes(
                &columns,
                (rows, 24.0),
                &QueryContext { settings, memory, ..QueryContext::default() },
            )
        };
        // One and two bytes, codes, four bytes.
        assert_eq!(expected(TempCompression::On, 10.0, usize::MAX), Some(8.0));
        assert_eq!(expected(TempCompression::Off, 1e6, 1 << 20), None);
        assert_eq!(expected(TempCompression::Auto, 1e6, 1 << 30), None);
        assert_eq!(expected(TempCompression::Auto, 1e6, 90 << 20), Some(8.0));
    }
}
