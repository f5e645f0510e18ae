//! Decomposes the calls of a window, so that nothing is kept or prepared twice:
//! - keys, arguments, filters and offsets are [columns](super::columns);
//! - calls with the same frame share its bounds;
//! - calls that need the same counts, sums or extremes share one *state*.

use super::by_frame::ByFrame;
use super::columns::{KeptColumns, Parts};
use super::counting::Counting;
use super::distinct::{self, DistinctSpec};
use super::extreme::{ExtremeSpec, FrameExtreme};
use super::frame::FrameSpec;
use super::layout::{Call, WindowLayout, WindowState};
use super::operand::Operand;
use super::ranking::Ranking;
use super::shift::Shift;
use super::sums::{Additive, AdditiveResult, SumSpec};
use super::value::{Pick, Which};
use crate::exec::project::Project;
use crate::exec::sort::order::OrderKey;
use crate::plan::{AggregateCall, AggregateFunction, Exclude, SortKey, Window, WindowCall, WindowFunction};
use entasis_vector::expr::{ColumnMeta, Expr};
use entasis_vector::types::pow10;
use entasis_vector::{ColumnId, DataType, Error, PhysicalType, Result, Value};

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
        let mut kept = KeptColumns { passed: exprs.len(), exprs };
        let partition: Vec<usize> = window.partition.iter().map(|key| kept.column(key)).collect();
        let order: Vec<OrderKey> = window.order.iter().map(|key| kept.key(key)).collect();
        let mut parts = Vec::new();
        for (id, call) in calls {
            parts.push(Parts::of(*id, call, &window.order, &mut kept)?);
        }
        let project = Project::new(&kept.exprs, input, &|_| false)?;
        let mut stored = project.output().to_vec();
        parts.iter().for_each(|parts| widen_default(parts, &mut stored));
        let read = |column: usize| Expr::column(stored[column].id, stored[column].ty);
        let by_partition = partition.iter().map(|&column| (column, false, false));
        let by_order = order.iter().map(|key| (key.column, key.descending, key.nulls_first));
        let keys = by_partition.chain(by_order).map(|(column, descending, nulls_first)| SortKey {
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
        let peers = || order.iter().map(|key| key.column).collect();
        layout.peers = layout.needs_peers().then(peers);
        Ok((layout, project))
    }

    /// How a call is computed, with the column of its result.
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

    /// How an aggregate is computed: by the distinct values of its frames, by states that several calls may
    /// share, or frame by frame.
    fn aggregate(
        &mut self,
        function: &AggregateFunction,
        mut parts: Parts<'_>,
    ) -> Result<(ColumnMeta, Call)> {
        use AggregateFunction as F;
        let frame = self.frame(parts.frame.take())?;
        let is_extreme = matches!(function, F::Min | F::Max | F::BoolAnd | F::BoolOr);
        let is_any = matches!(function, F::AnyValue);
        // Neither the order nor equal values affect them.
        let distinct = parts.call.distinct && !is_extreme && !is_any;
        let ordered = !parts.order.is_empty() && matches!(function, F::External(_) | F::AnyValue);
        let moves = distinct && !self.frames[frame].is_running();
        if moves && let Some(planned) = self.distinct_frames(function, &parts, frame) {
            return Ok(planned);
        }
        let is_external = matches!(function, F::External(_));
        let wants_one = !matches!(function, F::CountStar | F::External(_));
        if is_external || ordered || moves || (wants_one && parts.args.len() != 1) {
            if !ordered {
                parts.order.clear();
            }
            return self.by_frame(function, parts, distinct, frame);
        }
        self.by_states(function, &parts, distinct, frame)
    }

    /// A count, a sum or a mean of the distinct values of frames that move at both ends and have no holes, if
    /// the values allow it.
    fn distinct_frames(
        &mut self,
        function: &AggregateFunction,
        parts: &Parts<'_>,
        frame: usize,
    ) -> Option<(ColumnMeta, Call)> {
        use AggregateFunction as F;
        let column = parts.args.first().copied()?;
        if !matches!(function, F::Count | F::Sum | F::Avg) || self.frames[frame].exclude != Exclude::NoOthers
        {
            return None;
        }
        let ty = parts.call.ty;
        let meta = &self.stored[column];
        let (least, most) = meta.range.unwrap_or((i128::MIN, i128::MAX));
        let is_small = least.unsigned_abs().max(most.unsigned_abs()) <= distinct::MOST;
        let is_exact = meta.ty.is_integer() || meta.ty.is_decimal();
        let unit = unit_of(meta.ty);
        let sums = !matches!(function, F::Count);
        let is_mean = matches!(function, F::Avg);
        if sums && !(is_small && is_exact && (is_mean || !ty.is_float())) {
            return None;
        }
        let counting = Counting { args: vec![column], filter: parts.filter, distinct: false };
        let state = self.state(WindowState::DistinctFrames(DistinctSpec { column, counting, sums }));
        let result = match function {
            F::Count => AdditiveResult::Count,
            F::Sum => AdditiveResult::Sum(state),
            _ => AdditiveResult::Mean(state, unit),
        };
        let meta = ColumnMeta { nullable: sums, ..ColumnMeta::new(parts.id, ty) };
        Some((meta, Call::DistinctFrames { state, frame, result }))
    }

    /// An aggregate that reads the rows of its frames.
    fn by_frame(
        &self,
        function: &AggregateFunction,
        parts: Parts<'_>,
        distinct: bool,
        frame: usize,
    ) -> Result<(ColumnMeta, Call)> {
        let plain = AggregateCall {
            function: function.clone(),
            args: Vec::new(),
            distinct: false,
            filter: None,
            order_by: Vec::new(),
            ty: parts.call.ty,
        };
        let rows = (parts.filter, distinct, parts.order);
        let by_frame = ByFrame::new(plain, parts.args, &self.stored, rows, (frame, &self.frames[frame]))?;
        let meta = ColumnMeta { id: parts.id, nullable: true, ..by_frame.output().clone() };
        Ok((meta, Call::ByFrame(Box::new(by_frame))))
    }

    /// An aggregate whose results follow from counts, sums, extremes or positions of a section.
    fn by_states(
        &mut self,
        function: &AggregateFunction,
        parts: &Parts<'_>,
        distinct: bool,
        frame: usize,
    ) -> Result<(ColumnMeta, Call)> {
        use AggregateFunction as F;
        let argument = parts.args.first().copied();
        let counting = Counting {
            args: argument.into_iter().filter(|&column| distinct || self.stored[column].nullable).collect(),
            filter: parts.filter,
            distinct,
        };
        let counts_all = counting.args.is_empty() && counting.filter.is_none();
        let lists = matches!(function, F::AnyValue);
        let counted =
            (!counts_all).then(|| self.state(WindowState::Counted { counting: counting.clone(), lists }));
        let mut meta = ColumnMeta::new(parts.id, parts.call.ty);
        let column = match (function, argument) {
            (F::CountStar | F::Count, _) | (_, None) => {
                meta.nullable = false;
                let result = AdditiveResult::Count;
                return Ok((meta, Call::Additive(Additive { counted, frame, result })));
            }
            (_, Some(column)) => column,
        };
        if matches!(function, F::Sum | F::Avg) {
            let result = self.sum(function, meta.ty, column, counting, frame)?;
            return Ok((meta, Call::Additive(Additive { counted, frame, result })));
        }
        let ColumnMeta { physical, range, .. } = self.stored[column].clone();
        meta = ColumnMeta { physical, range, ..meta };
        let call = match function {
            F::AnyValue => Call::Pick(Pick { value: column, which: Which::First, counted, frame }),
            F::Min | F::Max | F::BoolAnd | F::BoolOr => {
                let largest = matches!(function, F::Max | F::BoolOr);
                let running = self.frames[frame].is_running();
                let extremes = ExtremeSpec { column, counting, largest, running };
                let state = self.state(WindowState::ExtremeFrames(extremes));
                Call::FrameExtreme(FrameExtreme { state, counted, frame })
            }
            _ => return Err(Error::internal("an aggregate of another library, by frames")),
        };
        Ok((meta, call))
    }

    /// The state of a sum or a mean of the type `ty`.
    fn sum(
        &mut self,
        function: &AggregateFunction,
        ty: DataType,
        column: usize,
        counting: Counting,
        frame: usize,
    ) -> Result<AdditiveResult> {
        let is_sum = matches!(function, AggregateFunction::Sum);
        let argument = &self.stored[column];
        let is_float = matches!(argument.physical, PhysicalType::F32 | PhysicalType::F64);
        let is_exact = argument.ty.is_integer() || argument.ty.is_decimal();
        if !is_float && !is_exact || is_sum && is_float != ty.is_float() {
            return Err(Error::not_supported(format!("{} of {}", function.name(), argument.ty)));
        }
        let unit = unit_of(argument.ty);
        // Exact sums do not depend on the frame.
        let running = is_float && self.frames[frame].is_running();
        let state = self.state(WindowState::Sums(SumSpec { column, counting, running }));
        Ok(if is_sum { AdditiveResult::Sum(state) } else { AdditiveResult::Mean(state, unit) })
    }
    /// The rows whose value is not NULL, if others are to be ignored.
    fn values_of(&mut self, column: usize, ignore_nulls: bool) -> Option<usize> {
        let counting = Counting { args: vec![column], filter: None, distinct: false };
        let passes_over = ignore_nulls && self.stored[column].nullable;
        passes_over.then(|| self.state(WindowState::Counted { counting, lists: true }))
    }

    /// The number of this frame among all.
    fn frame(&mut self, frame: Option<FrameSpec>) -> Result<usize> {
        let frame = frame.ok_or_else(|| Error::internal("a call that wants a frame has none"))?;
        Ok(self.frames.iter().position(|other| *other == frame).unwrap_or_else(|| {
            self.frames.push(frame);
            self.frames.len() - 1
        }))
    }

    /// The number of this state among all.
    fn state(&mut self, state: WindowState) -> usize {
        self.states.iter().position(|other| *other == state).unwrap_or_else(|| {
            self.states.push(state);
            self.states.len() - 1
        })
    }
}

/// Makes the value and the default of `lag` or `lead` agree: one of two decimals of one type may be held
/// wider than the other.
fn widen_default(parts: &Parts<'_>, stored: &mut [ColumnMeta]) {
    let is_shift = matches!(parts.call.function, WindowFunction::Lag | WindowFunction::Lead);
    if let [value, default] = parts.args[..]
        && is_shift
        && stored[value].physical != stored[default].physical
    {
        for column in [value, default] {
            stored[column].physical = stored[column].ty.physical();
        }
    }
}

/// The number that a value of this type is divided by.
fn unit_of(ty: DataType) -> f64 {
    match ty {
        DataType::Decimal { scale, .. } => pow10(scale) as f64,
        _ => 1.0,
    }
}
