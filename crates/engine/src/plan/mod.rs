//! The plan: the plain data type where front end and engine meet.
//!
//! A plan is a tree of [`Node`]s over columns that have identities, not positions: every node that makes a
//! column gives it a fresh [`ColumnId`], every other node passes ids through, so a rewrite may move nodes
//! without renumbering anything. What an id is called and which type it has stands once, in [`Columns`].
//!
//! The same nodes serve before and after optimization; [`crate::exec`] decides on build sides, tables and
//! pipelines.

mod columns;
pub(crate) mod correlation;
pub(crate) mod display;
pub(crate) mod equalities;
pub(crate) mod freedom;
mod recursion;
mod single_value;
pub(crate) mod tree;
mod window;

pub use columns::{ColumnInfo, Columns};
pub use correlation::{free_columns, refresh};
pub use equalities::{reads_only, split_keys};
pub use freedom::has_forms;
pub use recursion::{Keeps, MakeRecursive, Recursion, RecursionSide};
pub(crate) use single_value::second_row;
pub use single_value::{FirstValue, SingleValue};
pub use tree::{ColumnSet, each_expr_mut, substitute};
pub use window::{Bound, Exclude, Frame, FrameUnits, Top, Window, WindowCall, WindowFunction, bad_offset};

use crate::relation::Relation;
use entasis_vector::aggregate::ExternalAggregate;
use entasis_vector::expr::Expr;
use entasis_vector::{ColumnId, DataType, PhysicalType, Schema, Value};
use std::sync::Arc;

/// A statement's relational part, bound and typed.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The operators.
    pub root: Node,
    /// Every column that occurs anywhere in the plan.
    pub columns: Columns,
    /// The result's columns, in order; a column may occur twice. Names are free of the ones in `columns`.
    pub output: Vec<Output>,
}

/// One column of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// What the result calls it.
    pub name: String,
    /// Which column it is.
    pub column: ColumnId,
}

/// A relational operator. Inputs are owned; a subplan that is used twice stands there twice.
#[derive(Debug, Clone)]
pub enum Node {
    /// Rows of a table or file.
    Scan(Scan),
    /// Rows that stand in the plan.
    Values(Values),
    /// Rows for which all predicates are true.
    Filter(Filter),
    /// The input's columns plus computed ones. Passes every input column through; the optimizer prunes.
    Project(Project),
    /// The input's columns plus elements of lists, a row for each.
    Unnest(Unnest),
    /// Pairs of rows.
    Join(Join),
    /// Pairs of rows, the right ones computed for each left row. [`crate::optimizer::decorrelate`] puts joins
    /// in their place before anything else looks at a plan.
    Dependent(Dependent),
    /// One row a group.
    Aggregate(Aggregate),
    /// Rows without duplicates in `keys`; other columns are gone.
    Distinct(Distinct),
    /// The input's columns plus those of window functions.
    Window(Window),
    /// Rows in order.
    Sort(Sort),
    /// A range of the rows, in the order in which they come.
    Limit(Limit),
    /// `UNION`, `INTERSECT`, `EXCEPT`.
    SetOperation(SetOperation),
    /// `WITH RECURSIVE`, of a query that reads columns of the rows around. Like a dependent join, it is gone
    /// before anything else looks at a plan.
    Recursion(Recursion),
}

/// See [`Node::Scan`].
#[derive(Debug, Clone)]
pub struct Scan {
    /// What is read.
    pub relation: Arc<dyn Relation>,
    /// The columns to read: id in the plan, index in the relation's schema.
    pub columns: Vec<(ColumnId, usize)>,
    /// Rows must satisfy all of these; they read only `columns`. Filled by the optimizer.
    pub filters: Vec<Expr>,
    /// What a sample says of the filters. Filled by the optimizer.
    pub sampled: Option<Sampled>,
    /// What is known of joins with columns of other relations. Filled by the optimizer.
    pub references: Vec<Reference>,
    /// What was counted of columns. Filled by the optimizer.
    pub related: Vec<Related>,
}

impl Scan {
    /// All rows of a relation.
    pub fn all(relation: Arc<dyn Relation>, columns: Vec<(ColumnId, usize)>) -> Scan {
        Scan {
            relation,
            columns,
            filters: Vec::new(),
            sampled: None,
            references: Vec::new(),
            related: Vec::new(),
        }
    }
}

/// What a sample says of filters of a scan ([`crate::estimate`]).
#[derive(Debug, Clone, PartialEq)]
pub struct Sampled {
    /// The number of the scan's filters, from the first, of which it says something.
    pub filters: usize,
    /// The share of the table's rows in blocks whose zones do not rule the filters out, all others having
    /// none: 0 to 1.
    pub within: f64,
    /// The rows of the sample, which are in such blocks.
    pub rows: usize,
    /// Of these, rows that satisfy the filters.
    pub passed: usize,
    /// The bounds of numbers in such blocks, by column, if there are fewer of them than of all blocks: low
    /// and high, as estimates place values on the number line.
    pub ranges: Vec<(ColumnId, (f64, f64))>,
}

/// What was counted of a column of a scan ([`crate::estimate`]).
#[derive(Debug, Clone, PartialEq)]
pub struct Related {
    /// The column.
    pub column: ColumnId,
    /// The number of distinct values in the rows that have partners in the joins above, whatever the filters,
    /// and the smallest and the largest of them, as estimates place values on the number line.
    pub domain: Option<(f64, Option<(f64, f64)>)>,
    /// The number of distinct values in the rows that satisfy the filters.
    pub distinct: Option<f64>,
}

/// What was found of a join ([`crate::estimate`]).
#[derive(Debug, Clone, PartialEq)]
pub struct Reference {
    /// Columns that the join reads, of each of its relations.
    pub columns: Arc<[ColumnId]>,
    /// By how much the join has more rows than statistics expect.
    pub factor: f64,
}

/// See [`Node::Values`].
#[derive(Debug, Clone)]
pub struct Values {
    /// The columns.
    pub columns: Vec<ColumnId>,
    /// The rows, each as long as `columns`. One row of no columns is `SELECT` without `FROM`.
    pub rows: Vec<Vec<Value>>,
}

/// See [`Node::Filter`].
#[derive(Debug, Clone)]
pub struct Filter {
    /// Where rows come from.
    pub input: Box<Node>,
    /// All must be true.
    pub predicates: Vec<Expr>,
}

/// See [`Node::Unnest`].
#[derive(Debug, Clone)]
pub struct Unnest {
    /// Where rows come from.
    pub input: Box<Node>,
    /// A new column of elements for each list. A row becomes as many as its longest list has elements;
    /// shorter ones give NULL at the end. None, if all lists are empty or NULL.
    pub lists: Vec<(ColumnId, Expr)>,
}

/// See [`Node::Project`].
#[derive(Debug, Clone)]
pub struct Project {
    /// Where rows come from.
    pub input: Box<Node>,
    /// New columns.
    pub exprs: Vec<(ColumnId, Expr)>,
}

/// See [`Node::Join`].
#[derive(Debug, Clone)]
pub struct Join {
    /// Left input.
    pub left: Box<Node>,
    /// Right input.
    pub right: Box<Node>,
    /// Which rows and columns come out.
    pub kind: JoinKind,
    /// Pairs of expressions, the first over the left input, the second over the right, that must be equal.
    /// Both sides of a pair have one type.
    pub on: Vec<JoinKey>,
    /// Further conditions over both sides. For the outer, semi, anti and mark kinds they are part of the
    /// match.
    pub residual: Vec<Expr>,
}

/// See [`Node::Dependent`].
#[derive(Debug, Clone)]
pub struct Dependent {
    /// Left input.
    pub left: Box<Node>,
    /// What is computed for each left row, whose columns it may read. Volatile functions in it are computed
    /// each time anew.
    pub right: Box<Node>,
    /// Which rows and columns come out, the right input of each left row being what it is for that row: one
    /// of `Inner`, `Left`, `Semi`, `Anti`, `NullAwareAnti`, `Mark` and `Single`.
    pub kind: JoinKind,
    /// The equality of `IN`.
    pub on: Option<JoinKey>,
    /// Further conditions of a match, over both sides.
    pub residual: Vec<Expr>,
    /// The columns of `right` that come out, after those of `left`, where the kind gives any.
    pub outputs: Vec<ColumnId>,
}

/// One equality of a join.
#[derive(Debug, Clone)]
pub struct JoinKey {
    /// Over the left input.
    pub left: Expr,
    /// Over the right input.
    pub right: Expr,
    /// True: NULL equals NULL (`IS NOT DISTINCT FROM`). False: NULL equals nothing.
    pub null_equals_null: bool,
}

/// Which rows a join gives, a *match* being a pair for which all keys and residuals are true.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JoinKind {
    /// All matches. Without keys and residuals: the cross product.
    Inner,
    /// All matches, and left rows without match, right columns NULL.
    Left,
    /// All matches, and right rows without match, left columns NULL.
    Right,
    /// All matches, and rows of either side without match.
    Full,
    /// Left rows with a match, once. Only the left columns.
    Semi,
    /// Left rows without match. Only the left columns.
    Anti,
    /// Left rows without match, as `NOT IN` wants it: none at all if the right side has a NULL key, and no
    /// left row with a NULL key unless the right side is empty. Exactly one key; further keys that correlate
    /// come as residuals.
    NullAwareAnti,
    /// Every left row once, with a BOOLEAN column `mark`: true with a match; else, if `null_aware`, NULL
    /// where `IN` would say NULL (a NULL key on either side, right side not empty); else false.
    Mark {
        /// The new column.
        mark: ColumnId,
        /// See above.
        null_aware: bool,
    },
    /// Every left row once with its match, right columns NULL without. Two matches are an error: a scalar
    /// subquery gave more than one row.
    Single,
    /// Every left row with the nearest of its matches: the residual is one inequality, each operand over one
    /// side, and of the right rows for which it holds the partner is the one whose operand is next to the
    /// left one's; of several, any of them.
    AsOf {
        /// Left rows without match come too, right columns NULL.
        outer: bool,
    },
}

/// See [`Node::Aggregate`].
#[derive(Debug, Clone)]
pub struct Aggregate {
    /// Where rows come from.
    pub input: Box<Node>,
    /// Group keys: new column, expression. Without any there is one group, even of no rows.
    pub groups: Vec<(ColumnId, Expr)>,
    /// Aggregates: new column, call.
    pub aggregates: Vec<(ColumnId, AggregateCall)>,
}

/// An aggregate function with its arguments.
#[derive(Debug, Clone)]
pub struct AggregateCall {
    /// Which function.
    pub function: AggregateFunction,
    /// Arguments.
    pub args: Vec<Expr>,
    /// Only distinct argument rows count.
    pub distinct: bool,
    /// Only rows for which this is true count.
    pub filter: Option<Expr>,
    /// Rows reach the function in this order (`array_agg(x ORDER BY y)`); empty for most.
    pub order_by: Vec<SortKey>,
    /// Type of the result.
    pub ty: DataType,
}

/// Aggregate functions. NULL arguments do not count; without rows all but the counts give NULL.
#[derive(Debug, Clone)]
pub enum AggregateFunction {
    /// `count(*)`: BIGINT.
    CountStar,
    /// `count(x)`: BIGINT.
    Count,
    /// Sum. Integers: BIGINT, UBIGINT or a decimal of 38 digits; one that does not fit is an error. Decimals:
    /// decimal of the same scale and more digits. Floats: DOUBLE.
    Sum,
    /// Mean, DOUBLE. The argument is any number; decimals are summed exactly and divided once.
    Avg,
    /// Smallest, of the argument's type.
    Min,
    /// Largest, of the argument's type.
    Max,
    /// `bool_and`.
    BoolAnd,
    /// `bool_or`.
    BoolOr,
    /// A value from some row of the group, not NULL if there is one. What functionally dependent columns
    /// become.
    AnyValue,
    /// A function that somebody else computes.
    External(Arc<dyn ExternalAggregate>),
}

impl AggregateFunction {
    /// The name, as SQL writes it.
    pub fn name(&self) -> &str {
        match self {
            AggregateFunction::CountStar | AggregateFunction::Count => "count",
            AggregateFunction::Sum => "sum",
            AggregateFunction::Avg => "avg",
            AggregateFunction::Min => "min",
            AggregateFunction::Max => "max",
            AggregateFunction::BoolAnd => "bool_and",
            AggregateFunction::BoolOr => "bool_or",
            AggregateFunction::AnyValue => "any_value",
            AggregateFunction::External(function) => function.name(),
        }
    }
}

/// See [`Node::Distinct`].
#[derive(Debug, Clone)]
pub struct Distinct {
    /// Where rows come from.
    pub input: Box<Node>,
    /// The columns to be distinct in, and the only ones that come out.
    pub keys: Vec<ColumnId>,
    /// Duplicates may be left: only those are dropped that are found without keeping all rows. Made by the
    /// optimizer.
    pub is_partial: bool,
}

impl Distinct {
    /// The most columns of one that is partial.
    pub(crate) const MOST_PARTIAL: usize = 3;

    /// Rows of `input` without duplicates.
    pub fn new(input: Node, keys: Vec<ColumnId>) -> Distinct {
        Distinct { input: Box::new(input), keys, is_partial: false }
    }

    /// True if columns held so can be those of one that is partial.
    pub(crate) fn may_be_partial(physical: PhysicalType) -> bool {
        !matches!(physical, PhysicalType::I128 | PhysicalType::Str | PhysicalType::Interval)
    }
}

/// See [`Node::Sort`].
#[derive(Debug, Clone)]
pub struct Sort {
    /// Where rows come from.
    pub input: Box<Node>,
    /// Most significant first.
    pub keys: Vec<SortKey>,
    /// Only the first so many rows are wanted.
    pub limit: Option<usize>,
}

/// One key of an order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SortKey {
    /// What is compared.
    pub expr: Expr,
    /// Largest first.
    pub descending: bool,
    /// NULL before all values.
    pub nulls_first: bool,
}

/// See [`Node::Limit`].
#[derive(Debug, Clone)]
pub struct Limit {
    /// Where rows come from.
    pub input: Box<Node>,
    /// Rows to leave out.
    pub offset: usize,
    /// Rows to give at most.
    pub count: Option<usize>,
}

/// See [`Node::SetOperation`].
#[derive(Debug, Clone)]
pub struct SetOperation {
    /// Which one.
    pub kind: SetKind,
    /// True: duplicates count (`ALL`). False: the result is distinct.
    pub all: bool,
    /// Two inputs or more (two for `INTERSECT` and `EXCEPT`), each with its columns in the order of
    /// `columns`.
    pub inputs: Vec<(Node, Vec<ColumnId>)>,
    /// The columns of the result, new, of the inputs' types.
    pub columns: Vec<ColumnId>,
}

/// Set operations. Rows are equal as under `IS NOT DISTINCT FROM`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SetKind {
    /// Rows of any input.
    Union,
    /// Rows of both.
    Intersect,
    /// Rows of the first that are not in the second.
    Except,
}

impl Node {
    /// The columns that come out, in order.
    pub fn columns(&self) -> Vec<ColumnId> {
        let mut columns = Vec::new();
        self.each_column(&mut |id| columns.push(id));
        columns
    }

    /// Passes each of them to `see`.
    pub(crate) fn each_column(&self, see: &mut dyn FnMut(ColumnId)) {
        match self {
            Node::Scan(scan) => scan.columns.iter().for_each(|(id, _)| see(*id)),
            Node::Values(values) => values.columns.iter().for_each(|id| see(*id)),
            Node::Filter(filter) => filter.input.each_column(see),
            Node::Project(project) => {
                project.input.each_column(see);
                project.exprs.iter().for_each(|(id, _)| see(*id));
            }
            Node::Unnest(unnest) => {
                unnest.input.each_column(see);
                unnest.lists.iter().for_each(|(id, _)| see(*id));
            }
            Node::Join(join) => {
                join.left.each_column(see);
                match join.kind {
                    JoinKind::Inner
                    | JoinKind::Left
                    | JoinKind::Right
                    | JoinKind::Full
                    | JoinKind::Single
                    | JoinKind::AsOf { .. } => join.right.each_column(see),
                    JoinKind::Mark { mark, .. } => see(mark),
                    JoinKind::Semi | JoinKind::Anti | JoinKind::NullAwareAnti => {}
                }
            }
            Node::Dependent(join) => {
                join.left.each_column(see);
                match join.kind {
                    JoinKind::Mark { mark, .. } => see(mark),
                    _ => join.outputs.iter().for_each(|id| see(*id)),
                }
            }
            Node::Aggregate(aggregate) => {
                aggregate.groups.iter().for_each(|(id, _)| see(*id));
                aggregate.aggregates.iter().for_each(|(id, _)| see(*id));
            }
            Node::Distinct(distinct) => distinct.keys.iter().for_each(|id| see(*id)),
            Node::Window(window) => {
                window.input.each_column(see);
                window.calls.iter().for_each(|(id, _)| see(*id));
            }
            Node::Sort(sort) => sort.input.each_column(see),
            Node::Limit(limit) => limit.input.each_column(see),
            Node::SetOperation(set) => set.columns.iter().for_each(|id| see(*id)),
            Node::Recursion(recursion) => recursion.columns.iter().for_each(|id| see(*id)),
        }
    }

    /// The inputs, left to right.
    pub fn children(&self) -> Vec<&Node> {
        match self {
            Node::Scan(_) | Node::Values(_) => vec![],
            Node::Filter(Filter { input, .. })
            | Node::Project(Project { input, .. })
            | Node::Unnest(Unnest { input, .. })
            | Node::Aggregate(Aggregate { input, .. })
            | Node::Distinct(Distinct { input, .. })
            | Node::Window(Window { input, .. })
            | Node::Sort(Sort { input, .. })
            | Node::Limit(Limit { input, .. }) => vec![input],
            Node::Join(Join { left, right, .. }) | Node::Dependent(Dependent { left, right, .. }) => {
                vec![left, right]
            }
            Node::SetOperation(set) => set.inputs.iter().map(|(node, _)| node).collect(),
            Node::Recursion(Recursion { start, step, .. }) => vec![&start.node, &step.node],
        }
    }

    /// The inputs, left to right, to be rewritten.
    pub fn children_mut(&mut self) -> Vec<&mut Node> {
        match self {
            Node::Scan(_) | Node::Values(_) => vec![],
            Node::Filter(Filter { input, .. })
            | Node::Project(Project { input, .. })
            | Node::Unnest(Unnest { input, .. })
            | Node::Aggregate(Aggregate { input, .. })
            | Node::Distinct(Distinct { input, .. })
            | Node::Window(Window { input, .. })
            | Node::Sort(Sort { input, .. })
            | Node::Limit(Limit { input, .. }) => vec![input],
            Node::Join(Join { left, right, .. }) | Node::Dependent(Dependent { left, right, .. }) => {
                vec![left, right]
            }
            Node::SetOperation(set) => set.inputs.iter_mut().map(|(node, _)| node).collect(),
            Node::Recursion(Recursion { start, step, .. }) => vec![&mut start.node, &mut step.node],
        }
    }
}

impl Plan {
    /// Calls `f` for every expression, not for parts of one.
    pub fn for_each_expr(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        each_expr_mut(&mut self.root, f);
    }

    /// All rows and columns of a relation.
    pub fn scan(relation: Arc<dyn Relation>) -> Plan {
        let mut columns = Columns::default();
        let fields = relation.schema().iter().zip(0..);
        let scanned: Vec<_> = fields
            .map(|(field, index)| (columns.add(&*field.name, field.ty, field.nullable), index))
            .collect();
        let names = relation.schema().iter().zip(&scanned);
        let output = names
            .map(|(field, (column, _))| Output { name: field.name.to_string(), column: *column })
            .collect();
        Plan { root: Node::Scan(Scan::all(relation, scanned)), columns, output }
    }

    /// The result's columns with their types. Each may be NULL: where a column is made says nothing of the
    /// joins above.
    pub fn schema(&self) -> Schema {
        let field = |output: &Output| {
            entasis_vector::Field::new(output.name.as_str(), self.columns.ty(output.column))
        };
        self.output.iter().map(field).collect()
    }
}
