//! Rejected rows, which are kept for inspection: `read_csv('f', store_rejects => true)`, then `FROM
//! reject_errors`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The kind of error in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RejectKind {
    /// A field is not of the type of its column.
    Cast,
    /// There are too few fields.
    MissingColumns,
    /// There are too many fields.
    TooManyColumns,
    /// A quote is not closed.
    UnclosedQuote,
    /// Text follows a closing quote.
    StrayText,
}

impl RejectKind {
    /// Its name in the table of rejects.
    pub fn name(self) -> &'static str {
        match self {
            RejectKind::Cast => "CAST",
            RejectKind::MissingColumns => "MISSING COLUMNS",
            RejectKind::TooManyColumns => "TOO MANY COLUMNS",
            RejectKind::UnclosedQuote => "UNCLOSED QUOTE",
            RejectKind::StrayText => "TEXT BEHIND A QUOTE",
        }
    }
}

/// An error in a row.
#[derive(Debug, Clone)]
pub struct Reject {
    /// The number of the scan.
    pub scan: u64,
    /// The path of the file.
    pub file: String,
    /// The line on which the row begins, from 1.
    pub line: usize,
    /// The column, if the error is in one.
    pub column: Option<String>,
    /// The kind of error.
    pub kind: RejectKind,
    /// The text of the line.
    pub text: String,
    /// The message of the error that would have been raised.
    pub message: String,
}

/// The rows that scans of a connection have rejected.
#[derive(Debug, Default)]
pub struct Rejects {
    scans: AtomicU64,
    by_scan: Mutex<BTreeMap<u64, Vec<Reject>>>,
}

impl Rejects {
    /// The number for a new scan.
    pub(super) fn begin(&self) -> u64 {
        self.scans.fetch_add(1, Ordering::Relaxed)
    }

    /// Keeps a reject, unless its scan has `limit` already.
    pub(super) fn add(&self, reject: Reject, limit: usize) {
        let mut by_scan = self.by_scan.lock().unwrap_or_else(PoisonError::into_inner);
        let known = by_scan.entry(reject.scan).or_default();
        if known.len() < limit {
            known.push(reject);
        }
    }

    /// All rejects, in the order of scans and of the rows in their files.
    pub fn all(&self) -> Vec<Reject> {
        let by_scan = self.by_scan.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<Reject> = by_scan.values().flatten().cloned().collect();
        all.sort_by(|a, b| (a.scan, &a.file, a.line).cmp(&(b.scan, &b.file, b.line)));
        all
    }
}
