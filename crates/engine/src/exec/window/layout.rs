//! The layout of a window: which columns are kept with the rows, what is prepared for a section, and how
//! calls are computed from it.
//!
//! Calls are taken apart so that nothing is kept or prepared twice:
//! - keys, arguments, filters and offsets are columns, one for equal expressions; constants that a function
//!   takes as they are, offsets and numbers of buckets, are no columns;
//! - calls with the same frame share its bounds;
//! - calls that need the same counts, sums or extremes share one *state*.
//!
//! | call | how |
//! |---|---|
//! | ranks, shares, buckets | [`super::ranking`] |
//! | `lag`, `lead` | [`super::shift`] |
//! | values of the frame, `any_value` | [`super::value`] |
//! | `count`, `sum`, `avg`; of distinct values, if frames begin with their partitions | [`super::sums`] |
//! | the same otherwise, of small integers | [`super::distinct`] |
//! | `min`, `max`, `bool_and`, `bool_or` | [`super::extreme`] |
//! | all others | [`super::by_frame`] |

use super::by_frame::ByFrame;
use super::distinct::{self, DistinctSpec};
use super::extreme::{ExtremeSpec, FrameExtreme};
use super::frame::{BoundSpec, FrameSpec};
use super::operand::Operand;
use super::range::{RangeKind, RangeSpec};
use super::ranking::Ranking;
use super::shift::Shift;
use super::sums::{Additive, AdditiveResult, SumSpec};
use super::value::{Pick, Which};
use crate::exec::aggregate::layout::guarded;
use crate::exec::project::Project;
use crate::exec::sort::firsts::Firsts;
use crate::exec::sort::order::OrderKey;
use crate::exec::window::counting::Counting;
use crate::plan::{
    AggregateCall, AggregateFunction, Bound, Exclude, SortKey, Top, Window, WindowCall, WindowFunction,
};
use entasis_vector::expr::{ColumnMeta, Expr};
use entasis_vector::types::pow10;
use entasis_vector::{ColumnId, DataType, Error, PhysicalType, Result, Value};

/// How a window works. Made once, shared by all workers.
pub struct WindowLayout {
    /// The columns kept with the rows: output columns, then those that functions read. Decimals may be wider
    /// than the expressions that compute them.
    pub stored: Vec<ColumnMeta>,
    /// The number of output columns.
    pub passed: usize,
    /// The order in which rows are kept: partition by partition, each in its order.
    pub keys: Vec<SortKey>,
    /// The columns that a partition's rows agree in.
    pub partition: Vec<usize>,
    /// The columns that peers agree in; `None` if peers are not needed.
    pub peers: Option<Vec<usize>>,
    /// All frames.
    pub frames: Vec<FrameSpec>,
    /// All states.
    pub states: Vec<WindowState>,
    /// The calls, each with the column of its result.
    pub calls: Vec<(ColumnMeta, Call)>,
    /// The calls that need all rows of their frames, rather than summaries of some of them: the name of the
    /// function, and the frame.
    pub readers: Vec<(String, usize)>,
    /// Only the first rows of partitions come out.
    pub top: Option<Top>,
    /// The columns that come out: those of the input, then those of the calls.
    pub output: Vec<ColumnMeta>,
}

/// What is prepared for a section, for one call or several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WindowState {
    /// Rows that count, and where they are.
    Counted {
        /// Which rows count.
        counting: Counting,
        /// True if their positions are needed.
        lists: bool,
    },
    /// Sums.
    Sums(SumSpec),
    /// Extremes.
    ExtremeFrames(ExtremeSpec),
    /// Distinct values, in frames that move at both ends.
    DistinctFrames(DistinctSpec),
}

impl WindowState {
    /// The rows that count.
    pub fn counting(&self) -> &Counting {
        match self {
            WindowState::Counted { counting, .. } => counting,
            WindowState::DistinctFrames(distinct) => &distinct.counting,
            WindowState::Sums(sums) => &sums.counting,
            WindowState::ExtremeFrames(extremes) => &extremes.counting,
        }
    }
}

/// How a call is computed. Numbers are those of states and frames.
pub enum Call {
    /// A place in the partition.
    Ranking(Ranking),
    /// A bucket.
    Ntile(Operand),
    /// The value of a row at a given distance.
    Shift(Shift),
    /// The value of a row of the frame.
    Pick(Pick),
    /// A count, a sum or a mean.
    Additive(Additive),
    /// A least or largest value.
    FrameExtreme(FrameExtreme),
    /// A count, a sum or a mean of distinct values.
    DistinctFrames {
        /// The state that knows equal rows, and their sums.
        state: usize,
        /// The frame.
        frame: usize,
        /// The column of the result; the state of a sum is this one.
        result: AdditiveResult,
    },
    /// Any aggregate.
    ByFrame(Box<ByFrame>),
}

/// The ids of columns that only a window reads begin here, so that they are unique.
const FIRST_OWN_ID: u32 = 1 << 31;

/// The most memory that a row takes while the rows of a section are sorted by a number: its copy, what orders
/// it, its place and its rank.
const SORTED_BYTES: usize = 56;

/// Collects the columns that are kept with the rows.
struct KeptOrder {
    exprs: Vec<(ColumnId, Expr)>,
    passed: usize,
}

impl KeptOrder {
    /// The column with the values of `expr`.
    fn column(&mut self, expr: &Expr) -> usize {
        let same = |(_, kept): &(ColumnId, Expr)| kept == expr && !expr.is_volatile();
        if let Some(at) = self.exprs.iter().position(same) {
            return at;
        }
        let id = match expr {
            Expr::Column { id, .. } => *id,
            _ => ColumnId(FIRST_OWN_ID + (self.exprs.len() - self.passed) as u32),
        };
        self.exprs.push((id, expr.clone()));
        self.exprs.len() - 1
    }

    fn operand(&mut self, expr: &Expr) -> Operand {
        match expr {
            Expr::Literal { value, .. } => Operand::Constant(value.clone()),
            other => Operand::Column(self.column(other)),
        }
    }

    fn key(&mut self, key: &SortKey) -> OrderKey {
        OrderKey { column: self.column(&key.expr), descending: key.descending, nulls_first: key.nulls_first }
    }

    fn frame(&mut self, call: &WindowCall, order: &[SortKey]) -> Result<FrameSpec> {
        let mut bound = |bound: &Bound| match bound {
            Bound::UnboundedPreceding => BoundSpec::UnboundedPreceding,
            Bound::Preceding(offset) => BoundSpec::Preceding(self.operand(offset)),
            Bound::CurrentRow => BoundSpec::CurrentRow,
            Bound::Following(offset) => BoundSpec::Following(self.operand(offset)),
            Bound::UnboundedFollowing => BoundSpec::UnboundedFollowing,
        };
        let frame = &call.frame;
        let (start, end) = (bound(&frame.start), bound(&frame.end));
        let mut spec = FrameSpec { units: frame.units, start, end, exclude: frame.exclude, range: None };
        if spec.is_by_value() {
            let [key] = order else {
                return Err(Error::internal("a RANGE with an offset wants one order key"));
            };
            let mut kinds = [&frame.start, &frame.end].into_iter().filter_map(Bound::offset);
            let kind = |offset: &Expr| RangeKind::of(key.expr.ty(), offset.ty());
            let first = kinds.next().map(kind).transpose()?.unwrap_or(RangeKind::Integer);
            if let Some(second) = kinds.next().map(kind).transpose()?
                && second != first
            {
                return Err(Error::not_supported("a RANGE frame whose offsets have different types"));
            }
            let OrderKey { column, descending, nulls_first } = self.key(key);
            spec.range = Some(RangeSpec { column, descending, nulls_first, kind: first });
        }
        Ok(spec)
    }
}

impl WindowLayout {
    /// Decomposes `window`: its `calls` over rows of `input`, of which the columns that `passes` accepts come
    /// out. Also returns what computes the columns that are kept with the rows.
    ///
    /// # Errors
    /// Those of compiling the expressions; not supported, for types and clauses that a function does not
    /// take.
    pub fn new(
        input: &[ColumnMeta],
        passes: impl Fn(ColumnId) -> bool,
        window: &Window,
        calls: &[(ColumnId, WindowCall)],
    ) -> Result<(WindowLayout, Project)> {
        let passed = input.iter().filter(|meta| passes(meta.id));
        let exprs: Vec<_> = passed.map(|meta| (meta.id, Expr::column(meta.id, meta.ty))).collect();
        let mut kept = KeptOrder { passed: exprs.len(), exprs };
        let partition: Vec<usize> = window.partition.iter().map(|key| kept.column(key)).collect();
        let order: Vec<OrderKey> = window.order.iter().map(|key| kept.key(key)).collect();
        let mut parts = Vec::new();
        for (id, call) in calls {
            parts.push(Parts::of(*id, call, &window.order, &mut kept)?);
        }
        let project = Project::new(&kept.exprs, input, &|_| false)?;
        let mut stored = project.output().to_vec();
        for parts in parts
            .iter()
            .filter(|parts| matches!(parts.call.function, WindowFunction::Lag | WindowFunction::Lead))
        {
            // One of two decimals of one type may be held wider than the other.
            if let [value, default] = parts.args[..]
                && stored[value].physical != stored[default].physical
            {
                [value, default]
                    .into_iter()
                    .for_each(|column| stored[column].physical = stored[column].ty.physical());
            }
        }
        let read = |column: usize| Expr::column(stored[column].id, stored[column].ty);
        let by_partition = partition.iter().map(|&column| (column, false, false));
        let by_order = order.iter().map(|key| (key.column, key.descending, key.nulls_first));
        let keys = by_partition.chain(by_order);
        let keys = keys.map(|(column, descending, nulls_first)| SortKey {
            expr: read(column),
            descending,
            nulls_first,
        });
        let mut layout = WindowLayout {
            keys: keys.collect(),
            output: stored[..kept.passed].to_vec(),
            passed: kept.passed,
            partition,
            peers: None,
            frames: Vec::new(),
            states: Vec::new(),
            calls: Vec::new(),
            readers: Vec::new(),
            top: window.top,
            stored,
        };
        for parts in parts {
            let name = parts.call.function.name();
            let (meta, call) = layout.plan(parts)?;
            if let Some(frame) = layout.reads_all(&call) {
                layout.readers.push((name.to_string(), frame));
            }
            layout.output.push(meta.clone());
            layout.calls.push((meta, call));
        }
        let needs_peers =
            |(_, call): &(_, Call)| matches!(call, Call::Ranking(ranking) if ranking.needs_peers());
        let needs_peers = layout.calls.iter().any(needs_peers)
            || layout.frames.iter().any(FrameSpec::needs_peers)
            || layout.top.is_some_and(|top| top.with_peers);
        layout.peers = needs_peers.then(|| order.iter().map(|key| key.column).collect());
        Ok((layout, project))
    }

    /// The frame of `call`, if it needs all rows of it.
    fn reads_all(&self, call: &Call) -> Option<usize> {
        let is_distinct = |state: usize| self.states[state].counting().distinct;
        match call {
            Call::DistinctFrames { frame, .. } => Some(*frame),
            Call::ByFrame(call) => call.reads_all().then_some(call.frame),
            Call::Additive(call) => {
                let sums = match call.result {
                    AdditiveResult::Count => None,
                    AdditiveResult::Sum(state) | AdditiveResult::Mean(state, _) => Some(state),
                };
                call.counted.into_iter().chain(sums).any(is_distinct).then_some(call.frame)
            }
            Call::Ranking(_) | Call::Ntile(_) | Call::Shift(_) | Call::Pick(_) | Call::FrameExtreme(_) => {
                None
            }
        }
    }

    /// The most memory that a row of a section takes besides its columns, without strings, also while it is
    /// prepared.
    pub fn prepared_bytes(&self) -> usize {
        let state = |state: &WindowState| {
            let own = match state {
                WindowState::Counted { .. } => 8,
                WindowState::Sums(_) => 36,
                WindowState::ExtremeFrames(extremes) => 8 + self.stored[extremes.column].physical.width(),
                WindowState::DistinctFrames(distinct) if distinct.sums => SORTED_BYTES + 140,
                WindowState::DistinctFrames(_) => SORTED_BYTES + 16,
            };
            let is_distinct = !matches!(state, WindowState::DistinctFrames(_)) && state.counting().distinct;
            own + if is_distinct { SORTED_BYTES } else { 0 }
        };
        let call =
            |(_, call): &(ColumnMeta, Call)| if matches!(call, Call::ByFrame(_)) { SORTED_BYTES } else { 0 };
        let states: usize = self.states.iter().map(state).sum();
        let calls: usize = self.calls.iter().map(call).sum();
        let keys = self.frames.iter().filter(|frame| frame.range.is_some()).count() * 17;
        states + calls + keys + if self.peers.is_some() { 8 } else { 0 }
    }

    /// The rows that are enough, if only the first ones of partitions come out and the others are not needed.
    pub fn firsts(&self) -> Option<Firsts> {
        let looks_no_further = |(_, call): &(_, Call)| match call {
            Call::Ranking(ranking) => !ranking.needs_all(),
            _ => false,
        };
        let top = self.top.filter(|_| self.calls.iter().all(looks_no_further))?;
        Some(Firsts { keys: self.partition.len(), rows: top.rows, with_peers: top.with_peers })
    }

    fn plan(&mut self, mut parts: Parts<'_>) -> Result<(ColumnMeta, Call)> {
        use WindowFunction as F;
        let mut meta = ColumnMeta::new(parts.id, parts.call.ty);
        let value = |layout: &WindowLayout| {
            let column = parts.args.first().copied().ok_or_else(|| {
                Error::internal(format!("{} without an argument", parts.call.function.name()))
            })?;
            let ColumnMeta { physical, range, .. } = layout.stored[column].clone();
            Ok((column, ColumnMeta { physical, range, ..ColumnMeta::new(parts.id, parts.call.ty) }))
        };
        let ranking = match parts.call.function {
            F::RowNumber => Some(Ranking::RowNumber),
            F::Rank => Some(Ranking::Rank),
            F::DenseRank => Some(Ranking::DenseRank),
            F::PercentRank => Some(Ranking::PercentRank),
            F::CumeDist => Some(Ranking::CumeDist),
            _ => None,
        };
        if let Some(ranking) = ranking {
            meta.nullable = false;
            if meta.ty == DataType::Int64 {
                meta.range = Some((1, u32::MAX.into()));
            }
            return Ok((meta, Call::Ranking(ranking)));
        }
        let operand = parts.operand.take();
        let call = match (&parts.call.function, operand) {
            (F::Ntile, Some(buckets)) => Call::Ntile(buckets),
            (F::Lag | F::Lead, offset) => {
                let column;
                (column, meta) = value(self)?;
                let default = parts.args.get(1).copied();
                meta.range = meta.range.filter(|_| default.is_none());
                let counted = self.values_of(column, parts.call.ignore_nulls);
                let leads = matches!(parts.call.function, F::Lead);
                let offset = offset.unwrap_or(Operand::Constant(Value::Integer(1)));
                Call::Shift(Shift { value: column, offset, default, leads, counted })
            }
            (F::FirstValue | F::LastValue | F::NthValue, operand) => {
                let column;
                (column, meta) = value(self)?;
                let which = match (&parts.call.function, operand) {
                    (F::FirstValue, _) => Which::First,
                    (F::LastValue, _) => Which::Last,
                    (_, Some(number)) => Which::Nth(number),
                    (_, None) => return Err(Error::internal("nth_value without a number")),
                };
                let counted = self.values_of(column, parts.call.ignore_nulls);
                let frame = self.frame(parts.frame)?;
                Call::Pick(Pick { value: column, which, counted, frame })
            }
            (F::Aggregate(function), _) => return self.aggregate(function, parts),
            (function, _) => return Err(Error::internal(format!("{} without an argument", function.name()))),
        };
        Ok((meta, call))
    }

    fn aggregate(&mut self, function: &AggregateFunction, parts: Parts<'_>) -> Result<(ColumnMeta, Call)> {
        use AggregateFunction as F;
        let call = parts.call;
        let argument = parts.args.first().copied();
        let frame = self.frame(parts.frame)?;
        let running = self.frames[frame].is_running();
        let is_extreme = matches!(function, F::Min | F::Max | F::BoolAnd | F::BoolOr);
        let is_any = matches!(function, F::AnyValue);
        // Neither the order nor equal values affect them.
        let distinct = call.distinct && !is_extreme && !is_any;
        let ordered = !parts.order.is_empty() && matches!(function, F::External(_) | F::AnyValue);
        let is_external = matches!(function, F::External(_));
        let is_whole = self.frames[frame].exclude == Exclude::NoOthers;
        if let (F::Count | F::Sum | F::Avg, Some(column), true) =
            (function, argument, distinct && !running && is_whole)
        {
            let meta = &self.stored[column];
            let (least, most) = meta.range.unwrap_or((i128::MIN, i128::MAX));
            let is_small = least.unsigned_abs().max(most.unsigned_abs()) <= distinct::MOST;
            let is_number = (meta.ty.is_integer() || meta.ty.is_decimal()) && !call.ty.is_float();
            let unit = match meta.ty {
                DataType::Decimal { scale, .. } => pow10(scale) as f64,
                _ => 1.0,
            };
            let sums = !matches!(function, F::Count);
            let is_mean = matches!(function, F::Avg) && (meta.ty.is_integer() || meta.ty.is_decimal());
            if !sums || is_small && (is_number || is_mean) {
                let counting = Counting { args: vec![column], filter: parts.filter, distinct: false };
                let state = self.state(WindowState::DistinctFrames(DistinctSpec { column, counting, sums }));
                let result = match function {
                    F::Count => AdditiveResult::Count,
                    F::Sum => AdditiveResult::Sum(state),
                    _ => AdditiveResult::Mean(state, unit),
                };
                let meta = ColumnMeta { nullable: sums, ..ColumnMeta::new(parts.id, call.ty) };
                return Ok((meta, Call::DistinctFrames { state, frame, result }));
            }
        }
        let wants_one = !matches!(function, F::CountStar | F::External(_));
        if is_external || ordered || (distinct && !running) || (wants_one && parts.args.len() != 1) {
            let plain = AggregateCall {
                function: function.clone(),
                args: Vec::new(),
                distinct: false,
                filter: None,
                order_by: Vec::new(),
                ty: call.ty,
            };
            let order = if ordered { parts.order } else { Vec::new() };
            let rows = (parts.filter, distinct, order);
            let by_frame = ByFrame::new(plain, parts.args, &self.stored, rows, (frame, &self.frames[frame]))?;
            let meta = ColumnMeta { id: parts.id, nullable: true, ..by_frame.output().clone() };
            return Ok((meta, Call::ByFrame(Box::new(by_frame))));
        }
        let counting = Counting {
            args: argument.into_iter().filter(|&column| distinct || self.stored[column].nullable).collect(),
            filter: parts.filter,
            distinct,
        };
        let counts_all = counting.args.is_empty() && counting.filter.is_none();
        let counted = |layout: &mut WindowLayout, lists: bool| {
            (!counts_all).then(|| layout.state(WindowState::Counted { counting: counting.clone(), lists }))
        };
        let mut meta = ColumnMeta::new(parts.id, call.ty);
        let Some(column) = argument else {
            let counted = counted(self, false);
            meta.nullable = false;
            return Ok((meta, Call::Additive(Additive { counted, frame, result: AdditiveResult::Count })));
        };
        let unsupported =
            || Error::not_supported(format!("{} of {}", function.name(), self.stored[column].ty));
        let own = match function {
            F::CountStar | F::Count => {
                meta.nullable = false;
                let counted = counted(self, false);
                Call::Additive(Additive { counted, frame, result: AdditiveResult::Count })
            }
            F::Sum | F::Avg => {
                let argument = &self.stored[column];
                let is_float = matches!(argument.physical, PhysicalType::F32 | PhysicalType::F64);
                if !is_float && !argument.ty.is_integer() && !argument.ty.is_decimal() {
                    return Err(unsupported());
                }
                if matches!(function, F::Sum) && is_float != call.ty.is_float() {
                    return Err(unsupported());
                }
                let unit = match argument.ty {
                    DataType::Decimal { scale, .. } => pow10(scale) as f64,
                    _ => 1.0,
                };
                let counted = counted(self, false);
                // Exact sums do not depend on the frame.
                let sums = SumSpec { column, counting, running: running && is_float };
                let state = self.state(WindowState::Sums(sums));
                let result = match function {
                    F::Sum => AdditiveResult::Sum(state),
                    _ => AdditiveResult::Mean(state, unit),
                };
                Call::Additive(Additive { counted, frame, result })
            }
            F::Min | F::Max | F::BoolAnd | F::BoolOr => {
                let ColumnMeta { physical, range, .. } = self.stored[column].clone();
                meta = ColumnMeta { physical, range, ..meta };
                let counted = counted(self, false);
                let largest = matches!(function, F::Max | F::BoolOr);
                let state = self.state(WindowState::ExtremeFrames(ExtremeSpec {
                    column,
                    counting,
                    largest,
                    running,
                }));
                Call::FrameExtreme(FrameExtreme { state, counted, frame })
            }
            F::AnyValue => {
                let ColumnMeta { physical, range, .. } = self.stored[column].clone();
                meta = ColumnMeta { physical, range, ..meta };
                let counted = counted(self, true);
                Call::Pick(Pick { value: column, which: Which::First, counted, frame })
            }
            F::External(_) => return Err(Error::internal("an aggregate of another library, by frames")),
        };
        Ok((meta, own))
    }

    /// The rows whose value is not NULL, if others are to be ignored.
    fn values_of(&mut self, column: usize, ignore_nulls: bool) -> Option<usize> {
        let counting = Counting { args: vec![column], filter: None, distinct: false };
        let passes_over = ignore_nulls && self.stored[column].nullable;
        passes_over.then(|| self.state(WindowState::Counted { counting, lists: true }))
    }

    fn frame(&mut self, frame: Option<FrameSpec>) -> Result<usize> {
        let frame = frame.ok_or_else(|| Error::internal("a call that wants a frame has none"))?;
        Ok(self.frames.iter().position(|other| *other == frame).unwrap_or_else(|| {
            self.frames.push(frame);
            self.frames.len() - 1
        }))
    }

    fn state(&mut self, state: WindowState) -> usize {
        self.states.iter().position(|other| *other == state).unwrap_or_else(|| {
            self.states.push(state);
            self.states.len() - 1
        })
    }
}

/// A call, its expressions replaced by columns.
struct Parts<'a> {
    id: ColumnId,
    call: &'a WindowCall,
    /// Arguments; for `lag` and `lead` the value and the default.
    args: Vec<usize>,
    /// An argument that may be a constant.
    operand: Option<Operand>,
    filter: Option<usize>,
    order: Vec<OrderKey>,
    frame: Option<FrameSpec>,
}

impl<'a> Parts<'a> {
    fn of(id: ColumnId, call: &'a WindowCall, order: &[SortKey], kept: &mut KeptOrder) -> Result<Parts<'a>> {
        use WindowFunction as F;
        let name = call.function.name();
        let is_aggregate = matches!(call.function, F::Aggregate(_));
        let refused = match call {
            _ if is_aggregate => None,
            WindowCall { distinct: true, .. } => Some("DISTINCT"),
            WindowCall { filter: Some(_), .. } => Some("FILTER"),
            WindowCall { order_by, .. } if !order_by.is_empty() => Some("ORDER BY"),
            _ => None,
        };
        if let Some(refused) = refused {
            return Err(Error::not_supported(format!(
                "{refused} in a call of {name}, which is not an aggregate"
            )));
        }
        if call.ignore_nulls
            && (is_aggregate || !matches!(call.function, F::Lag | F::Lead) && !call.function.has_frame())
        {
            return Err(Error::not_supported(format!("IGNORE NULLS in a call of {name}")));
        }
        let mut parts =
            Parts { id, call, args: vec![], operand: None, filter: None, order: vec![], frame: None };
        if call.function.has_frame() {
            parts.frame = Some(kept.frame(call, order)?);
        }
        parts.filter = call.filter.as_ref().map(|filter| kept.column(filter));
        match (&call.function, &call.args[..]) {
            (F::Ntile, [buckets]) => parts.operand = Some(kept.operand(buckets)),
            (F::Lag | F::Lead, [value, rest @ ..]) if rest.len() <= 2 => {
                parts.args.push(kept.column(value));
                parts.operand = rest.first().map(|offset| kept.operand(offset));
                let default = rest
                    .get(1)
                    .filter(|default| !matches!(default, Expr::Literal { value: Value::Null, .. }));
                parts.args.extend(default.map(|default| kept.column(default)));
            }
            (F::NthValue, [value, number]) => {
                parts.args.push(kept.column(value));
                parts.operand = Some(kept.operand(number));
            }
            (F::FirstValue | F::LastValue, [value]) => parts.args.push(kept.column(value)),
            (F::Aggregate(_), args) => {
                for arg in args {
                    parts.args.push(kept.column(&guarded(arg, call.filter.as_ref())));
                }
                parts.order = call.order_by.iter().map(|key| kept.key(key)).collect();
            }
            (_, []) => {}
            (_, args) => return Err(Error::not_supported(format!("{name} of {} arguments", args.len()))),
        }
        Ok(parts)
    }
}
