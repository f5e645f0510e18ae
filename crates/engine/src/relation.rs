//! Relations: where rows come from, as the engine sees it. A table, a file, an Arrow object of the host
//! program.
//!
//! A relation has a schema and some statistics. A scan asks it for a [`Source`], shared by all workers, from
//! which each worker takes a [`SourceWorker`] of its own and pulls chunks until there are no more.

use crate::context::QueryContext;
use crate::cost::Costs;
use crate::scan_predicates::Question;
pub use crate::threshold::Threshold;
pub use entasis_storage::Compression;
/// What a table promises of its rows: plain data that front end and storage share.
pub use entasis_storage::definition::{
    Check, ColumnDefault, Curve, Definition, ForeignKey, Key, KeyKind, LayoutChoice, LayoutName, OnCommit,
    ReferentialAction,
};
use entasis_storage::{ColumnSummary, RowId, SlotRange, TableSnapshot};
use entasis_vector::expr::{Expr, Program};
use entasis_vector::{Chunk, ColumnId, Error, Result, Schema, Value};
use std::fmt;
use std::sync::Arc;

/// A source of rows with a schema.
pub trait Relation: fmt::Debug + Send + Sync {
    /// What plans and errors call it: a table name, a path.
    fn name(&self) -> &str;
    /// Its columns.
    fn schema(&self) -> &Schema;
    /// What is known before a row is read.
    fn statistics(&self) -> Statistics;
    /// Why a column cannot be read, if it cannot. Its type is a substitute then.
    fn unreadable(&self, column: usize) -> Option<Error> {
        let _ = column;
        None
    }
    /// The rows of it: [`Statistics::rows`].
    fn rows(&self) -> Option<u64> {
        self.table().map_or_else(|| self.statistics().rows, |table| Some(table.rows()))
    }
    /// What is known of one column: an element of [`Statistics::columns`].
    fn column_statistics(&self, column: usize) -> Option<ColumnStatistics> {
        match self.table() {
            Some(table) => Some(table.column_statistics(column).into()),
            None => self.statistics().columns.get(column).cloned(),
        }
    }
    /// The number of its rows, if it is certain before they are read.
    fn certain_rows(&self) -> Option<u64> {
        whole_table(self).map(TableSnapshot::rows)
    }
    /// What is certain of the values of a column before they are read: what aggregates of all rows find. The
    /// bounds of stored tables are not: rows that had them may be gone.
    fn certain(&self, column: usize) -> Certain {
        let _ = column;
        Certain::default()
    }
    /// True if it is certain that no two rows have the same value in `column` and none is NULL: a key,
    /// declared or discovered. Plans rely on it, so an estimate will not do. Stored tables know it of columns
    /// that ascend.
    fn is_unique(&self, column: usize) -> bool {
        self.table().is_some_and(|table| table.column_statistics(column).unique)
    }
    /// Sets of columns, each a key that is declared: no two rows have the same values there, and none is
    /// NULL.
    fn keys(&self) -> &[Vec<usize>] {
        &[]
    }
    /// The keys of other tables to which its rows refer.
    fn parents(&self) -> &[ParentKey] {
        &[]
    }
    /// The snapshot of a stored table, which the engine scans by itself; `None` for everything else.
    fn table(&self) -> Option<&TableSnapshot> {
        None
    }
    /// The indexes of a stored table, as of the same moment.
    fn indexes(&self) -> &[Index] {
        &[]
    }
    /// The only rows of a stored table that are meant, in order, if it is known which; a scan may give others
    /// as well.
    fn only_rows(&self) -> Option<&[RowId]> {
        None
    }
    /// The only slots of a stored table that are meant, in order, if it is known which; a scan may give rows
    /// in others as well.
    fn only_slots(&self) -> Option<&[SlotRange]> {
        None
    }
    /// Called when a scan of a stored table with conditions on its columns begins; `question` says what it
    /// asks, and `slots` is the number of slots that it may look into, before zone maps. A row that is found
    /// by itself counts as a block.
    fn asked(&self, slots: u64, question: &dyn Fn() -> Question) {
        let _ = (slots, question);
    }
    /// True if a scan reads those parts first that have the first values of a [`Threshold`]'s order by their
    /// bounds, and leaves out parts whose bounds are beyond it. Not asked of stored tables.
    fn leaves_out_by_bounds(&self) -> bool {
        false
    }
    /// True if its rows have numbers by which [`Relation::scan_rows`] finds them. A scan gives them as the
    /// column behind the schema's last, which is the last of the request, as 64-bit integers: ascending in
    /// the order of the rows. Not asked of stored tables.
    fn finds_rows(&self) -> bool {
        false
    }
    /// Starts a scan of the rows with these numbers, which ascend. Filters of the request do not matter.
    ///
    /// # Errors
    /// Internal, unless it [finds rows](Relation::finds_rows); those of [`Relation::scan`].
    fn scan_rows(
        &self,
        request: &ScanRequest,
        rows: &[u64],
        context: &QueryContext,
    ) -> Result<Arc<dyn Source>> {
        let _ = (request, rows, context);
        Err(Error::internal(format!("the rows of {} have no numbers", self.name())))
    }
    /// What reading it costs.
    fn costs(&self) -> Arc<Costs> {
        Arc::default()
    }
    /// A relation with the same schema that lacks what none of `readers` wants: columns that none reads, and
    /// rows that satisfy the filters of none. `None` if nothing can be left out.
    fn restricted(&self, readers: &[ScanRequest]) -> Option<Arc<dyn Relation>> {
        let _ = readers;
        None
    }
    /// The plan by which its rows are computed, as text, or what it did, if it has been run and measured;
    /// `None` if they are not computed. What it did is a line for each operator, or has all details.
    fn plan_text(&self, detailed: bool) -> Option<String> {
        let _ = detailed;
        None
    }
    /// The relations that are read when this one is, but for stored tables.
    fn inputs(&self) -> Vec<Arc<dyn Relation>> {
        Vec::new()
    }
    /// Forgets rows that have been computed: what they were computed of has changed, since it is of one round
    /// of a recursion.
    fn forget(&self) {}
    /// Starts a scan. Not called for relations with a [`Relation::table`].
    ///
    /// # Errors
    /// I/O and input, if a file cannot be opened or is malformed.
    fn scan(&self, request: &ScanRequest, context: &QueryContext) -> Result<Arc<dyn Source>>;
}

/// A foreign key of a stored table: a row has no NULL in `columns` only if the table referred to has a row
/// with the same values in `key`, in a snapshot of the same moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParentKey {
    /// Columns of the relation.
    pub columns: Vec<usize>,
    /// The table referred to: its [`entasis_storage::Table::id`].
    pub table: u64,
    /// The columns of that table to which `columns` refer, in the same order.
    pub key: Vec<usize>,
}

/// The table of which all rows are meant, if it is one.
fn whole_table(relation: &(impl Relation + ?Sized)) -> Option<&TableSnapshot> {
    relation.table().filter(|_| relation.only_rows().is_none() && relation.only_slots().is_none())
}

/// True if two scans of these relations find the same rows.
pub(crate) fn is_same_relation(a: &Arc<dyn Relation>, b: &Arc<dyn Relation>) -> bool {
    if std::ptr::addr_eq(Arc::as_ptr(a), Arc::as_ptr(b)) {
        return true;
    }
    match (a.table(), b.table()) {
        (Some(one), Some(other)) => {
            one.is_same(other) && whole_table(&**a).is_some() && whole_table(&**b).is_some()
        }
        _ => false,
    }
}

/// The place of a relation in a plan that is not run as it is: a name and columns, and no rows.
#[derive(Debug)]
pub struct Place {
    /// [`Relation::name`].
    pub name: String,
    /// [`Relation::schema`].
    pub schema: Schema,
}

impl Relation for Place {
    fn name(&self) -> &str {
        &self.name
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn statistics(&self) -> Statistics {
        Statistics::default()
    }

    fn scan(&self, _request: &ScanRequest, _context: &QueryContext) -> Result<Arc<dyn Source>> {
        Err(Error::internal(format!("{} stands in a plan that was not to be run", self.name)))
    }
}

/// An index of a stored table, which is a table itself.
#[derive(Debug, Clone)]
pub struct Index {
    /// Its rows, laid out by the first of its columns.
    pub table: TableSnapshot,
    /// By column of the index, the column of the table: those of the key, then those of the table's layout
    /// key, or the row number ([`entasis_storage::index::ROW_NUMBER`]).
    pub columns: Vec<usize>,
    /// How many of them are the key.
    pub key_columns: usize,
    /// True if it has a row for each row of the table; otherwise those lack whose key has a NULL.
    pub is_whole: bool,
}

/// What a scan wants.
#[derive(Debug, Clone)]
pub struct ScanRequest {
    /// Columns to give, in this order: the id that `filters` call it, the index in the relation's schema.
    pub columns: Vec<(ColumnId, usize)>,
    /// A hint: rows that do not satisfy all of these are not needed, so whole parts may be skipped. The
    /// engine filters again.
    pub filters: Vec<Expr>,
    /// Hints as well, which change while the scan runs: rows of which a column is beyond a threshold are not
    /// needed. The id is that of the column.
    pub thresholds: Vec<(ColumnId, Arc<Threshold>)>,
}

impl ScanRequest {
    /// All rows, of these columns.
    pub fn all(columns: Vec<(ColumnId, usize)>) -> ScanRequest {
        ScanRequest { columns, filters: Vec::new(), thresholds: Vec::new() }
    }
}

/// A scan in progress, shared by the workers.
pub trait Source: Send + Sync {
    /// What one worker pulls from.
    ///
    /// # Errors
    /// As in [`Relation::scan`].
    fn worker(&self) -> Result<Box<dyn SourceWorker>>;
    /// The compiled expressions that each worker runs, for `EXPLAIN (VERBOSE)`.
    fn programs(&self) -> Vec<&Program> {
        Vec::new()
    }
    /// What it tests without a program, a line each, for `EXPLAIN (VERBOSE)`.
    fn conditions(&self) -> Vec<String> {
        Vec::new()
    }
    /// The share of the scan that is done, 0 to 1, if it can be told.
    fn progress(&self) -> Option<f64> {
        None
    }
    /// The number of its rows, if that is known exactly once the scan is made.
    fn rows(&self) -> Option<usize> {
        None
    }
    /// The number of its pieces of work, if that is known now that it starts: more workers have nothing to
    /// do.
    fn pieces(&self) -> Option<usize> {
        None
    }
    /// False if rows come in an order that means nothing, known now that it starts: then even the first ones
    /// may be asked of several workers.
    fn has_order(&self) -> bool {
        true
    }
    /// Called before it starts, if the consumer may stop before the end: rows that are not there yet are then
    /// to be computed when they are read.
    fn stops_early(&self) {}
    /// All workers have ended: notes what has become of the rows, for `EXPLAIN ANALYZE`. Not called where a
    /// worker has failed, or where the pipeline is left out.
    fn end(&self) {}
    /// The same source, whose workers leave rows that no filter has looked at where they are stored, and give
    /// chunks of any number of these ([`Chunk::stored`]); `None` if there is no such source. For a consumer
    /// that folds columns of integers of up to 64 bits and nothing else.
    fn leaving_stored(&self) -> Option<Arc<dyn Source>> {
        None
    }
}

/// One worker's end of a scan.
pub trait SourceWorker: Send {
    /// Fills `chunk` with the next rows, at most the context's `chunk_rows`: one group or more, the requested
    /// columns in order, each of its type's default physical type. False, and nothing filled, at the end. A
    /// chunk may be empty.
    ///
    /// A source of [`Source::leaving_stored`] may instead give rows that are still stored, as many as there
    /// are.
    ///
    /// The chunk stays good until the next call, and is reset by then.
    ///
    /// # Errors
    /// I/O and input errors of the rows read, which say where they are: file, line or row group, column.
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool>;
    /// The morsel that the last chunk stems from. Ascending in the relation's order: sorting chunks by
    /// morsel, and keeping the order within one, gives the rows in the order in which they are stored.
    fn morsel(&self) -> u64;
}

/// What is known of a relation before a row is read.
#[derive(Debug, Clone, Default)]
pub struct Statistics {
    /// Rows, exact for tables, an estimate for some files.
    pub rows: Option<u64>,
    /// By column of the schema; may be shorter.
    pub columns: Vec<ColumnStatistics>,
}

impl From<ColumnSummary> for ColumnStatistics {
    fn from(summary: ColumnSummary) -> ColumnStatistics {
        ColumnStatistics {
            min: summary.min.filter(|value| !value.is_null()),
            max: summary.max.filter(|value| !value.is_null()),
            nulls: Some(summary.nulls),
            distinct: Some(summary.distinct),
            bounds_are_exact: true,
        }
    }
}

/// What is certain of the values of a column.
#[derive(Debug, Clone, Default)]
pub struct Certain {
    /// The least value, NULL without any; `None` if it is not known.
    pub min: Option<Value>,
    /// The greatest value, NULL without any; `None` if it is not known.
    pub max: Option<Value>,
    /// Rows that are NULL, if it is known how many.
    pub nulls: Option<u64>,
}

/// What is known of a column.
#[derive(Debug, Clone, Default)]
pub struct ColumnStatistics {
    /// No value is smaller; unscaled integer, float or text.
    pub min: Option<Value>,
    /// No value is larger.
    pub max: Option<Value>,
    /// Rows that are NULL.
    pub nulls: Option<u64>,
    /// Distinct values, an estimate.
    pub distinct: Option<u64>,
    /// True: `min` and `max` bound every value that a scan can give, so that kernels may rely on them.
    pub bounds_are_exact: bool,
}
