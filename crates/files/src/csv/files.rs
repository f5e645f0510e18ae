//! What is known of the files of a relation, before their rows are read.

use super::CsvOptions;
use super::dialect::Dialect;
use crate::columns::Origin;
use crate::pipe::Pipe;
use entasis_vector::Schema;
use std::path::PathBuf;
use std::sync::Arc;

/// A file, and what is known about it.
#[derive(Debug)]
pub(super) struct CsvFile {
    pub(super) path: PathBuf,
    /// If it is one.
    pub(super) pipe: Option<Arc<Pipe>>,
    pub(super) dialect: Dialect,
    /// Whether the first record contains the names of the columns.
    pub(super) header: bool,
    /// Number of fields in a record; 0 for a file without records.
    pub(super) width: usize,
    /// The source of each column of the relation.
    pub(super) columns: Vec<Origin>,
}

/// The files of a relation, and what is known about them.
pub(super) struct CsvFiles {
    pub(super) name: String,
    pub(super) schema: Schema,
    /// For each column, whether its type was guessed, so that a later value may not fit.
    pub(super) guessed: Vec<bool>,
    pub(super) files: Vec<CsvFile>,
    /// The bytes of text in all of them; `None` if a pipe is among them.
    pub(super) bytes: Option<u64>,
    pub(super) row_bytes: f64,
    pub(super) options: CsvOptions,
}
