//! Window functions in a plan: values that each row gets from rows near it.
//!
//! A [`Window`] divides the rows of its input into *partitions*, puts each partition in an order, and adds
//! columns: each call gives every row a value that depends on its place in the order, or on the rows of its
//! *frame*, a stretch of the order. Rows of a partition that are equal in the order are *peers*. All calls of
//! a node share partitions and order; each has its frame. Nothing is implied: a call that is written without
//! a frame has the one that SQL gives it.

use super::{AggregateFunction, Node, SortKey};
use entasis_vector::expr::Expr;
use entasis_vector::{ColumnId, DataType, Error};

/// See [`Node::Window`].
#[derive(Debug, Clone)]
pub struct Window {
    /// Where rows come from.
    pub input: Box<Node>,
    /// Rows that agree in all of these are a partition; NULL agrees with NULL. Without any there is one
    /// partition.
    pub partition: Vec<Expr>,
    /// The order of the rows of a partition. Peers stay in the order of the input.
    pub order: Vec<SortKey>,
    /// New column, call.
    pub calls: Vec<(ColumnId, WindowCall)>,
    /// Only the first rows of each partition come out. Calls see all rows.
    pub top: Option<Top>,
}

/// The first rows of each partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Top {
    /// The number of rows.
    pub rows: usize,
    /// True: the rows whose `rank()` is at most this number. False: those whose `row_number()` is.
    pub with_peers: bool,
}

/// A window function with its arguments and its frame.
#[derive(Debug, Clone)]
pub struct WindowCall {
    /// Which function.
    pub function: WindowFunction,
    /// Arguments.
    pub args: Vec<Expr>,
    /// Only distinct argument rows of the frame count. For aggregates.
    pub distinct: bool,
    /// Only rows for which this is true count. For aggregates.
    pub filter: Option<Expr>,
    /// Rows of the frame reach the function in this order (`array_agg(x ORDER BY y) OVER (…)`). For
    /// aggregates.
    pub order_by: Vec<SortKey>,
    /// Rows whose first argument is NULL are ignored. For `lag`, `lead` and the values of a frame.
    pub ignore_nulls: bool,
    /// The rows of an aggregate, or of a value of the frame. Other functions ignore it.
    pub frame: Frame,
    /// Type of the result.
    pub ty: DataType,
}

/// Window functions. Those that count rows give BIGINT, shares of rows DOUBLE, values the type of their first
/// argument.
#[derive(Debug, Clone)]
pub enum WindowFunction {
    /// `row_number()`: the place in the partition, from 1.
    RowNumber,
    /// `rank()`: the row number of the first peer.
    Rank,
    /// `dense_rank()`: the number of the group of peers, from 1.
    DenseRank,
    /// `percent_rank()`: the share of the other rows that come before the first peer.
    PercentRank,
    /// `cume_dist()`: the share of rows up to the last peer.
    CumeDist,
    /// `ntile(n)`: which of `n` buckets of about as many rows each, from 1.
    Ntile,
    /// `lag(x[, offset[, default]])`: `x` of the row `offset` rows before, `default` or NULL where the
    /// partition has none.
    Lag,
    /// `lead(x[, offset[, default]])`: of the row `offset` rows after.
    Lead,
    /// `first_value(x)`: of the frame's first row.
    FirstValue,
    /// `last_value(x)`: of its last row.
    LastValue,
    /// `nth_value(x, n)`: of its `n`th row, from 1.
    NthValue,
    /// An aggregate of the frame's rows.
    Aggregate(AggregateFunction),
}

impl WindowFunction {
    /// The name, as SQL writes it.
    pub fn name(&self) -> &str {
        match self {
            WindowFunction::RowNumber => "row_number",
            WindowFunction::Rank => "rank",
            WindowFunction::DenseRank => "dense_rank",
            WindowFunction::PercentRank => "percent_rank",
            WindowFunction::CumeDist => "cume_dist",
            WindowFunction::Ntile => "ntile",
            WindowFunction::Lag => "lag",
            WindowFunction::Lead => "lead",
            WindowFunction::FirstValue => "first_value",
            WindowFunction::LastValue => "last_value",
            WindowFunction::NthValue => "nth_value",
            WindowFunction::Aggregate(function) => function.name(),
        }
    }

    /// True if the result depends on the frame.
    pub fn has_frame(&self) -> bool {
        use WindowFunction as F;
        matches!(self, F::FirstValue | F::LastValue | F::NthValue | F::Aggregate(_))
    }
}

/// The rows of a partition that count for one of them: those from `start` to `end`, except those excluded.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// What the bounds count.
    pub units: FrameUnits,
    /// The first row.
    pub start: Bound,
    /// The last row.
    pub end: Bound,
    /// Rows between them that do not count.
    pub exclude: Exclude,
}

impl WindowCall {
    /// `row_number()`
    pub fn row_number() -> WindowCall {
        WindowCall {
            function: WindowFunction::RowNumber,
            args: Vec::new(),
            distinct: false,
            filter: None,
            order_by: Vec::new(),
            ignore_nulls: false,
            frame: Frame::whole(),
            ty: DataType::Int64,
        }
    }
}

impl Frame {
    /// All rows of the partition.
    pub fn whole() -> Frame {
        let (start, end) = (Bound::UnboundedPreceding, Bound::UnboundedFollowing);
        Frame { units: FrameUnits::Range, start, end, exclude: Exclude::NoOthers }
    }

    /// The rows up to the last peer: the frame of a call that is written without one, in a window with an
    /// order.
    pub fn up_to_peers() -> Frame {
        Frame { end: Bound::CurrentRow, ..Frame::whole() }
    }
}

/// What the bounds of a frame count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FrameUnits {
    /// Rows: offsets are BIGINT. The current row is that row alone.
    Rows,
    /// Differences of the order's only key. Offsets have the type of the key; for a date or time they are
    /// INTERVAL. If the key is a TIMESTAMPTZ, a TIMESTAMPTZ is not an offset but the limit that it leads to,
    /// by the clocks of a zone, where days differ in length. The current row stands for all its peers.
    Range,
    /// Groups of peers: offsets are BIGINT. The current row stands for all its peers.
    Groups,
}

/// An end of a frame. Offsets may differ from row to row; one that is NULL or negative is an error.
#[derive(Debug, Clone, PartialEq)]
pub enum Bound {
    /// The first row of the partition.
    UnboundedPreceding,
    /// An offset before the current row.
    Preceding(Expr),
    /// The current row.
    CurrentRow,
    /// An offset after it.
    Following(Expr),
    /// The last row of the partition.
    UnboundedFollowing,
}

impl Bound {
    /// The offset, if there is one.
    pub fn offset(&self) -> Option<&Expr> {
        match self {
            Bound::Preceding(offset) | Bound::Following(offset) => Some(offset),
            Bound::UnboundedPreceding | Bound::CurrentRow | Bound::UnboundedFollowing => None,
        }
    }

    fn offset_mut(&mut self) -> Option<&mut Expr> {
        match self {
            Bound::Preceding(offset) | Bound::Following(offset) => Some(offset),
            Bound::UnboundedPreceding | Bound::CurrentRow | Bound::UnboundedFollowing => None,
        }
    }
}

/// The error of an offset that is NULL or negative.
pub fn bad_offset() -> Error {
    Error::input("the offset of a window frame must not be NULL or negative")
        .with_hint("write PRECEDING for rows before the current one, FOLLOWING for rows after it")
}

/// Rows within the bounds of a frame that are not in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Exclude {
    /// No rows are excluded.
    NoOthers,
    /// The current row is excluded.
    CurrentRow,
    /// The current row and its peers are excluded.
    Group,
    /// Its peers are excluded, but not the row itself.
    Ties,
}

impl WindowCall {
    /// All expressions except the filter.
    pub fn values(&self) -> impl Iterator<Item = &Expr> {
        let bounds = [&self.frame.start, &self.frame.end].into_iter().filter_map(Bound::offset);
        self.args.iter().chain(self.order_by.iter().map(|key| &key.expr)).chain(bounds)
    }

    /// All expressions except the filter, to be rewritten, and the filter.
    pub fn exprs_mut(&mut self) -> (impl Iterator<Item = &mut Expr>, Option<&mut Expr>) {
        let bounds = [&mut self.frame.start, &mut self.frame.end].into_iter().filter_map(Bound::offset_mut);
        let values =
            self.args.iter_mut().chain(self.order_by.iter_mut().map(|key| &mut key.expr)).chain(bounds);
        (values, self.filter.as_mut())
    }
}

impl Window {
    /// All expressions.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let keys = self.partition.iter().chain(self.order.iter().map(|key| &key.expr));
        keys.chain(self.calls.iter().flat_map(|(_, call)| call.values().chain(&call.filter)))
    }

    /// All expressions, to be rewritten.
    pub fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let keys = self.partition.iter_mut().chain(self.order.iter_mut().map(|key| &mut key.expr));
        keys.chain(self.calls.iter_mut().flat_map(|(_, call)| {
            let (values, filter) = call.exprs_mut();
            values.chain(filter)
        }))
    }

    /// The partition keys that are plain columns.
    pub fn partition_columns(&self) -> impl Iterator<Item = ColumnId> {
        self.partition.iter().filter_map(|key| match key {
            Expr::Column { id, .. } => Some(*id),
            _ => None,
        })
    }
}
