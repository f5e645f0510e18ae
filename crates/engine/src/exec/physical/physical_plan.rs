//! The physical plan as data: pipelines in the order in which they run, and what they are made of.
//!
//! Sources, operators and sinks are numbered, since parts of several pipelines share them: all parts of a
//! stream push into the same probe and the same sink, and the two ways of a join with swappable sides read
//! the same source. So are the nodes to which they belong, the joins whose parts they are, and the tests that
//! joins and sorts push down. A number is a place in the plan's list of that kind.
//!
//! There are compiled programs in a plan, since physical types, ranges and NULLs of an operator's output are
//! known only once its expressions are compiled. There is nothing that belongs to a run: no memory, no open
//! files, no counters; and nothing has been read of any relation.

use super::planned_join::PlannedJoin;
use super::planned_work::PlannedWork;
use crate::exec::aggregate::layout::AggregateLayout;
use crate::exec::align::Align;
use crate::exec::filter::Filter;
use crate::exec::join::Computed;
use crate::exec::key_filter::{PlannedFilter, PlannedTest};
use crate::exec::project::Project;
use crate::exec::unnest::Unnest;
use crate::exec::window::layout::WindowLayout;
use crate::plan::{self, Columns, Node, Scan, SortKey};
use entasis_vector::expr::{ColumnMeta, Expr};
use entasis_vector::{ColumnId, PhysicalType};

/// See the module.
#[derive(Debug)]
pub(crate) struct PhysicalPlan<'p> {
    /// The columns of the logical plan.
    pub columns: &'p Columns,
    /// Whose work the parts of pipelines are.
    pub nodes: Vec<PlannedNode<'p>>,
    /// What joins and sorts push down.
    pub tests: Vec<PlannedTest>,
    /// Joins, each way of one.
    pub joins: Vec<PlannedJoin>,
    /// Where rows come from.
    pub sources: Vec<PlannedSource<'p>>,
    /// What rows pass.
    pub operators: Vec<PlannedOperator<'p>>,
    /// Where rows end.
    pub sinks: Vec<PlannedSink<'p>>,
    /// The pipelines, in the order in which they run.
    pub pipelines: Vec<PlannedPipeline>,
    /// The node of the logical plan's root.
    pub root: usize,
}

/// Work that the profile shows as one operator.
#[derive(Debug)]
pub(crate) struct PlannedNode<'p> {
    /// What it is.
    pub work: PlannedWork<'p>,
    /// The nodes that feed it, left to right.
    pub children: Vec<usize>,
    /// Decisions and their reasons; none unless they are asked for.
    pub notes: Vec<String>,
}

/// A pipeline: part of a stream, and the sink in which it ends.
#[derive(Debug)]
pub(crate) struct PlannedPipeline {
    /// The source and the operators.
    pub part: PlannedPart,
    /// The sink.
    pub sink: usize,
    /// No later pipeline ends in this sink.
    pub completes_sink: bool,
    /// The index of the pipeline among those of its sink.
    pub number: usize,
}

/// A source and the operators that its rows pass.
#[derive(Debug, Clone)]
pub(crate) struct PlannedPart {
    /// The source.
    pub source: usize,
    /// The operators in the order in which rows pass them.
    pub operators: Vec<usize>,
    /// The order of rows matters.
    pub ordered: bool,
    /// Chunks may have few rows.
    pub sparse: bool,
    /// No more rows than needed are wanted.
    pub stops_early: bool,
    /// Rows may stay where they are stored.
    pub leaves_stored: bool,
    /// It only runs if the sides of each of these joins are swapped, or are not.
    pub only_if: Vec<(usize, bool)>,
}

/// Where rows come from.
#[derive(Debug)]
pub(crate) struct PlannedSource<'p> {
    /// What it is.
    pub kind: SourceKind<'p>,
    /// Its node.
    pub node: usize,
}

/// The kinds of sources.
#[derive(Debug)]
pub(crate) enum SourceKind<'p> {
    /// A stored table.
    Table {
        /// The scan.
        scan: &'p Scan,
        /// The columns that are read, with their places in the table.
        columns: Vec<(ColumnId, usize)>,
        /// Which of them are read above, and not only by filters.
        outputs: Vec<bool>,
        /// What is known of the columns.
        metas: Vec<ColumnMeta>,
        /// Filters from above.
        filters: Vec<PlannedFilter>,
    },
    /// Another relation.
    Relation {
        /// The scan.
        scan: &'p Scan,
        /// The columns that are read, with their places in the relation.
        columns: Vec<(ColumnId, usize)>,
        /// What is known of the columns.
        metas: Vec<ColumnMeta>,
        /// Tests of single columns that are handed to the relation.
        thresholds: Vec<(ColumnId, usize)>,
    },
    /// Rows of the plan.
    Values {
        /// The rows.
        values: &'p plan::Values,
        /// The columns that are read.
        places: Vec<usize>,
        /// What is known of the columns.
        metas: Vec<ColumnMeta>,
    },
    /// What a sink gives once it is complete.
    Output {
        /// The sink.
        sink: usize,
        /// The expected rows.
        rows: f64,
    },
    /// Rows of a relation whose numbers a sink gives once it is complete.
    Fetched {
        /// The sink.
        sink: usize,
        /// The column of the numbers.
        column: usize,
        /// The scan.
        scan: &'p Scan,
        /// The columns that are read, with their places in the relation.
        columns: Vec<(ColumnId, usize)>,
        /// The most rows.
        rows: f64,
    },
    /// The build side of a join whose sides have been swapped.
    KeptRows {
        /// The join as it was planned at first.
        join: usize,
    },
    /// The build rows of a join that matched, or did not.
    BuildTail {
        /// The join.
        join: usize,
    },
    /// The partitions of a join that had to wait.
    Partitions {
        /// The join.
        join: usize,
    },
}

/// What rows pass.
#[derive(Debug)]
pub(crate) struct PlannedOperator<'p> {
    /// What it is.
    pub kind: OperatorKind<'p>,
    /// Its node.
    pub node: usize,
}

/// The kinds of operators.
#[derive(Debug)]
pub(crate) enum OperatorKind<'p> {
    /// Keeps the rows that satisfy conditions.
    Filter {
        /// The conditions.
        predicates: &'p [Expr],
        /// The same, compiled.
        filter: Filter,
    },
    /// Computes columns.
    Project(Project),
    /// Columns in another order, and in other physical types.
    Align {
        /// How each is made.
        align: Align,
        /// The columns that come out.
        output: Vec<ColumnMeta>,
    },
    /// A row for each element of lists.
    Unnest(Unnest),
    /// Passes on a range of the rows.
    Limit {
        /// The rows before it.
        offset: usize,
        /// The rows in it; `None` for all.
        count: Option<usize>,
    },
    /// Tests filters from above that go no further down.
    EarlyFilters(Vec<PlannedFilter>),
    /// Copies small chunks together.
    Compact {
        /// The rows are those of this node.
        below: &'p Node,
        /// The number of its part of their stream.
        part: usize,
        /// Where they come from.
        source: usize,
        /// The columns' physical types.
        types: Vec<PhysicalType>,
        /// The number of operators behind it that profit.
        operators: usize,
    },
    /// Drops rows that repeat recent ones in these columns.
    DropRepeats {
        /// The columns.
        columns: Vec<usize>,
        /// The same columns.
        keys: &'p [ColumnId],
    },
    /// Sends probe rows of partitions that wait to these.
    Route {
        /// The join.
        join: usize,
    },
    /// Holds probe rows back and sorts them by hash.
    BufferedProbe {
        /// The join.
        join: usize,
    },
    /// Finds matches.
    Probe {
        /// The join.
        join: usize,
    },
    /// Joins whole partitions.
    JoinPhase {
        /// The join.
        join: usize,
    },
    /// Repeats counted rows.
    Copies(&'p plan::SetOperation),
}

impl OperatorKind<'_> {
    /// True if it only brings rows into another order, so that it can be left out if the order of the source
    /// is wanted.
    pub(super) fn is_for_order(&self) -> bool {
        matches!(self, OperatorKind::BufferedProbe { .. })
    }
}

/// Where rows end.
#[derive(Debug)]
pub(crate) struct PlannedSink<'p> {
    /// What it is.
    pub kind: SinkKind<'p>,
    /// Its node.
    pub node: usize,
}

/// The kinds of sinks.
#[derive(Debug)]
pub(crate) enum SinkKind<'p> {
    /// The receiver of the result.
    Result {
        /// The columns of the result.
        columns: Vec<ColumnMeta>,
    },
    /// The build side of a join.
    Build {
        /// The join.
        join: usize,
    },
    /// Counts the keys of a build side that is read twice.
    CountKeys {
        /// The join.
        join: usize,
        /// The keys.
        keys: Computed,
    },
    /// An aggregation, or rows without duplicates.
    Aggregate {
        /// How it works.
        layout: Box<AggregateLayout>,
        /// The expected groups.
        groups: f64,
    },
    /// A sort.
    Sort {
        /// The columns that are kept.
        columns: Vec<ColumnMeta>,
        /// The order.
        keys: &'p [SortKey],
        /// Only as many rows come out.
        limit: Option<usize>,
        /// The test that learns of the first rows.
        threshold: Option<usize>,
    },
    /// A window.
    Window(Box<WindowLayout>),
}
