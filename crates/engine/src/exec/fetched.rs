//! Late materialization: columns of a file that only the result reads are fetched for the few rows that a
//! sort with a limit has left.
//!
//! ```text
//! file: keys, row numbers → [first rows] → row numbers of these → file: all columns, these rows → [first rows] → …
//! ```
//! 1. The first scan reads the columns of the sort's keys and of filters, and the number of each row
//!    ([`Relation::finds_rows`]).
//! 2. When its sort has ended, [`FetchedRows`] knows the numbers of the first rows, and scans the relation
//!    for these alone, by all workers.
//! 3. They are sorted again, with all their columns: they come in the order of the file, as before, so equal
//!    keys stay in the same order.
//!
//! Stored tables need it less: their scans test a threshold on the encoded key before they decode a block of
//! another column, and blocks are small.

use crate::context::QueryContext;
use crate::relation::{Relation, ScanRequest, Source, SourceWorker};
use entasis_vector::{Chunk, ColumnId, DataType, Error, Result, Value};
use std::sync::{Arc, OnceLock};

/// The number of a row: a column that is in no plan. Sorts use the last ids for columns of their own.
pub(crate) const ROW_NUMBER: ColumnId = ColumnId(1 << 31);
/// Its type.
pub(crate) const ROW_NUMBER_TYPE: DataType = DataType::Int64;
/// The most rows that are fetched. That many may lie in each part of a file, so that nothing is saved.
pub(crate) const FETCHED_MAX: usize = 1024;

/// Rows of a relation that are known by number once another source has given these.
pub(crate) struct FetchedRows {
    /// Gives the row numbers.
    pub numbers: Arc<dyn Source>,
    /// The column of `numbers` that has them.
    pub column: usize,
    /// Where the rows are.
    pub relation: Arc<dyn Relation>,
    /// What is read of them.
    pub request: ScanRequest,
    /// Settings and memory.
    pub context: QueryContext,
    /// The scan of these rows, once it has begun.
    pub scan: OnceLock<Result<Arc<dyn Source>>>,
}

impl FetchedRows {
    fn scan(&self) -> Result<&Arc<dyn Source>> {
        self.scan.get_or_init(|| self.begin()).as_ref().map_err(Clone::clone)
    }

    fn begin(&self) -> Result<Arc<dyn Source>> {
        let (mut worker, mut chunk, mut rows) = (self.numbers.worker()?, Chunk::new(), Vec::new());
        while worker.next(&mut chunk)? {
            for row in 0..chunk.len() {
                let number = match chunk.value(row, self.column, ROW_NUMBER_TYPE) {
                    Value::Integer(number) => u64::try_from(number).ok(),
                    _ => None,
                };
                rows.push(number.ok_or_else(|| Error::internal("a row without a number"))?);
            }
        }
        rows.sort_unstable();
        self.relation.scan_rows(&self.request, &rows, &self.context)
    }
}

impl Source for FetchedRows {
    fn worker(&self) -> Result<Box<dyn SourceWorker>> {
        self.scan()?.worker()
    }

    fn pieces(&self) -> Option<usize> {
        self.scan().ok()?.pieces()
    }
}
