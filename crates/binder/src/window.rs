//! Window functions: calls with an `OVER`.
//!
//! A call becomes a column of its own when it is bound; equal calls are one column. Calls of one partitioning
//! and one order share an operator ([`Binder::windowed`]). They are computed over the groups, so that their
//! expressions are those of a grouped query.

use crate::aggregate::{Asked, Written};
use crate::binder::Binder;
use crate::bound::Bound;
use crate::operator::unified;
use crate::scope::{Clause, WindowUse};
use entasis_engine::plan::{
    Bound as End, Exclude, Frame, FrameUnits, Node, SortKey, Window, WindowCall, WindowFunction,
};
use entasis_functions::types::{Given, Meeting};
use entasis_functions::windows::is_window_function;
use entasis_syntax::disguise::{EXCLUDE, MARK};
use entasis_vector::error::sqlstate;
use entasis_vector::expr::Expr;
use entasis_vector::{DataType, Error, Result};
use sqlparser::ast::{
    self, Ident, NamedWindowDefinition, NamedWindowExpr, WindowFrameBound, WindowFrameUnits, WindowSpec,
    WindowType,
};
use std::borrow::Cow;
use std::collections::HashMap;

/// A window with the clauses of those that it extends.
struct Extended<'q> {
    partition_by: &'q [ast::Expr],
    order_by: &'q [ast::OrderByExpr],
    frame: Option<&'q ast::WindowFrame>,
    exclude: Exclude,
}

impl<'a, 'q> Binder<'a, 'q> {
    /// Keeps the windows of a WINDOW clause for the calls that name them.
    ///
    /// # Errors
    /// Input, for names that are repeated or do not exist.
    pub(crate) fn name_windows(&mut self, windows: &'q [NamedWindowDefinition]) -> Result<()> {
        for NamedWindowDefinition(name, window) in windows {
            let spec = match window {
                NamedWindowExpr::WindowSpec(spec) => Named::Spec(spec),
                NamedWindowExpr::NamedWindow(base) => Named::Other(base),
            };
            let base = match spec {
                Named::Spec(spec) => exclusion(spec).1,
                Named::Other(base) => Some(base.value.clone()),
            };
            if let Some(base) = base {
                self.window_named(&base)?;
            }
            if self.scope().windows.insert(name.value.to_ascii_lowercase(), spec).is_some() {
                return Err(Error::input(format!("there are two windows named {}", name.value)));
            }
        }
        Ok(())
    }

    fn window_named(&mut self, name: &str) -> Result<Named<'q>> {
        let known = self.scope().windows.get(&name.to_ascii_lowercase()).copied();
        known.ok_or_else(|| Error::input(format!("there is no window named {name}")))
    }

    /// A window with the clauses of the one that it extends.
    ///
    /// # Errors
    /// Input, for clauses that a window cannot add to another.
    fn extended(&mut self, window: Named<'q>, is_definition: bool) -> Result<Extended<'q>> {
        let spec = match window {
            Named::Other(name) => {
                let base = self.window_named(&name.value)?;
                return self.extended(base, true);
            }
            Named::Spec(spec) => spec,
        };
        let (exclude, base) = exclusion(spec);
        let own = Extended {
            partition_by: &spec.partition_by,
            order_by: &spec.order_by,
            frame: spec.window_frame.as_ref(),
            exclude: exclude.unwrap_or(Exclude::NoOthers),
        };
        let Some(base) = base else { return Ok(own) };
        let upon = self.window_named(&base)?;
        let upon = self.extended(upon, true)?;
        if !own.partition_by.is_empty() {
            let text = format!("a window built upon {base} cannot have a PARTITION BY of its own");
            return Err(Error::input(text));
        }
        if !own.order_by.is_empty() && !upon.order_by.is_empty() {
            return Err(Error::input(format!("the window {base} has an ORDER BY already")));
        }
        if upon.frame.is_some() && (is_definition || own.frame.is_some() || !own.order_by.is_empty()) {
            return Err(Error::input(format!("the window {base} has a frame and cannot be extended")));
        }
        Ok(Extended {
            partition_by: upon.partition_by,
            order_by: if own.order_by.is_empty() { upon.order_by } else { own.order_by },
            frame: own.frame.or(upon.frame),
            exclude: exclude.unwrap_or(upon.exclude),
        })
    }

    /// A call with an `OVER`; `name` is its function.
    pub(crate) fn window_call(&mut self, name: &str, function: &'q ast::Function) -> Result<Bound> {
        let is_aggregate = self.is_aggregate(name) && !is_window_function(name);
        if !is_aggregate && !is_window_function(name) {
            let error = Error::input(format!("{name} is neither an aggregate nor a window function"));
            return Err(error.with_sqlstate(sqlstate::NO_FUNCTION));
        }
        match self.clause() {
            Clause::Select | Clause::OrderBy | Clause::Qualify => {}
            Clause::Window => {
                return Err(Error::input(format!("the window function {name} is within another one"))
                    .with_hint("compute the inner one in a subquery"));
            }
            _ => {
                let error = Error::input(
                    "window functions are only allowed in the select list, ORDER BY and QUALIFY",
                );
                return Err(error.with_hint("compute it in a subquery"));
            }
        }
        if !function.within_group.is_empty() {
            return Err(Error::not_supported("WITHIN GROUP with OVER"));
        }
        let window = match &function.over {
            Some(WindowType::WindowSpec(spec)) => self.extended(Named::Spec(spec), false)?,
            Some(WindowType::NamedWindow(name)) => {
                let named = self.window_named(&name.value)?;
                self.extended(named, true)?
            }
            None => return Err(Error::internal("a window function without OVER")),
        };
        let written = self.written(name, function)?;
        if !is_aggregate && (written.distinct || written.filter.is_some() || !written.order_by.is_empty()) {
            let error =
                Error::input(format!("{name} is no aggregate, and takes no DISTINCT, FILTER or ORDER BY"));
            return Err(error.with_sqlstate(sqlstate::SYNTAX));
        }
        let bound =
            self.within(Clause::Window, |binder| binder.window_use(name, is_aggregate, window, written))?;
        let (partition, order, call) = bound;
        let known = self.scope().window_calls.iter().find(|known| {
            known.partition == partition && known.order == order && is_same(&known.call, &call)
        });
        if let Some(known) = known {
            let column = known.column;
            return Ok(Bound::known(self.columns.expr(column)));
        }
        let column = self.columns.add(function.to_string(), call.ty, true);
        self.scope().window_calls.push(WindowUse { column, partition, order, call });
        Ok(Bound::known(self.columns.expr(column)))
    }

    fn window_use(
        &mut self,
        name: &str,
        is_aggregate: bool,
        window: Extended<'q>,
        written: Written<'q>,
    ) -> Result<(Vec<Expr>, Vec<SortKey>, WindowCall)> {
        let mut partition = Vec::with_capacity(window.partition_by.len());
        for key in window.partition_by {
            let key = self.expr(key)?.expr;
            if !partition.contains(&key) && !matches!(key, Expr::Literal { .. }) {
                partition.push(key);
            }
        }
        let keys: Vec<&'q ast::OrderByExpr> = window.order_by.iter().collect();
        let order = self.sort_keys(&keys)?;
        let frame = match window.frame {
            Some(frame) => self.frame(frame, window.exclude, &order)?,
            None if window.exclude != Exclude::NoOthers => {
                return Err(Error::input("EXCLUDE needs a frame before it"));
            }
            None if order.is_empty() => Frame::whole(),
            None => Frame::up_to_peers(),
        };
        if frame.units == FrameUnits::Groups && order.is_empty() {
            return Err(Error::input("GROUPS needs an ORDER BY in the window"));
        }
        let is_all_rows = written.rows.is_some();
        let (args, asked) = self.asked(&written)?;
        if is_aggregate {
            let args = if is_all_rows { Vec::new() } else { args };
            let Asked { distinct, ref filter, ref order_by, ignore_nulls } = asked;
            let _ = (distinct, filter, order_by, ignore_nulls);
            let call = self.aggregate(name, args, asked)?;
            let call = WindowCall {
                function: WindowFunction::Aggregate(call.function),
                args: call.args,
                distinct: call.distinct,
                filter: call.filter,
                order_by: call.order_by,
                ignore_nulls: false,
                frame,
                ty: call.ty,
            };
            return Ok((partition, order, call));
        }
        let (function, args, ty) = plain(name, args)?;
        let call = WindowCall {
            function,
            args,
            ignore_nulls: asked.ignore_nulls,
            frame,
            ty,
            ..WindowCall::row_number()
        };
        Ok((partition, order, call))
    }

    fn frame(&mut self, frame: &'q ast::WindowFrame, exclude: Exclude, order: &[SortKey]) -> Result<Frame> {
        let units = match frame.units {
            WindowFrameUnits::Rows => FrameUnits::Rows,
            WindowFrameUnits::Range => FrameUnits::Range,
            WindowFrameUnits::Groups => FrameUnits::Groups,
        };
        use WindowFrameBound::{CurrentRow, Following, Preceding};
        let end = frame.end_bound.as_ref().unwrap_or(&CurrentRow);
        let wrong = match (&frame.start_bound, end) {
            (Following(None), _) => Some("a frame cannot start with UNBOUNDED FOLLOWING"),
            (_, Preceding(None)) => Some("a frame cannot end with UNBOUNDED PRECEDING"),
            (CurrentRow, Preceding(Some(_))) => {
                Some("a frame that starts at the current row cannot end before it")
            }
            (Following(Some(_)), Preceding(Some(_)) | CurrentRow) => {
                Some("a frame that starts after the current row cannot end at or before it")
            }
            _ => None,
        };
        if let Some(text) = wrong {
            return Err(Error::input(text).with_sqlstate(sqlstate::SYNTAX));
        }
        let start = self.frame_end(&frame.start_bound, units, order)?;
        let end = self.frame_end(end, units, order)?;
        Ok(Frame { units, start, end, exclude })
    }

    /// An end of a frame, with its offset in the type that the frame counts by.
    fn frame_end(
        &mut self,
        bound: &'q WindowFrameBound,
        units: FrameUnits,
        order: &[SortKey],
    ) -> Result<End> {
        let (offset, is_preceding) = match bound {
            WindowFrameBound::CurrentRow => return Ok(End::CurrentRow),
            WindowFrameBound::Preceding(None) => return Ok(End::UnboundedPreceding),
            WindowFrameBound::Following(None) => return Ok(End::UnboundedFollowing),
            WindowFrameBound::Preceding(Some(offset)) => (offset, true),
            WindowFrameBound::Following(Some(offset)) => (offset, false),
        };
        let offset = self.expr(offset)?;
        let wanted = match (units, order) {
            (FrameUnits::Rows | FrameUnits::Groups, _) => DataType::Int64,
            (FrameUnits::Range, [key]) => match key.expr.ty() {
                ty if ty.is_numeric() => ty,
                DataType::Date
                | DataType::Time
                | DataType::Timestamp
                | DataType::TimestampTz
                | DataType::Interval => DataType::Interval,
                ty => {
                    let text = format!("RANGE with an offset does not go with an order by {ty}");
                    return Err(Error::input(text));
                }
            },
            (FrameUnits::Range, _) => {
                let text = "RANGE with an offset needs exactly one key in the ORDER BY of the window";
                return Err(Error::input(text));
            }
        };
        let fits = match (wanted, offset.given) {
            (_, Given::Null) => true,
            (DataType::Interval, Given::Text | Given::Known(DataType::Interval)) => true,
            (DataType::Interval, _) => false,
            (wanted, given) => given.is_numeric() && (given.is_integer() || !wanted.is_integer()),
        };
        if !fits {
            let what = if units == FrameUnits::Range { "match the ORDER BY key" } else { "be an integer" };
            let given = offset.given;
            let text = format!("the offset of a frame must {what} ({wanted}), but has type {given}");
            return Err(Error::input(text));
        }
        let offset = offset.cast(wanted);
        Ok(if is_preceding { End::Preceding(offset) } else { End::Following(offset) })
    }

    /// The rows of `node` with the results of window functions.
    pub(crate) fn windowed(&mut self, mut node: Node, calls: Vec<WindowUse>) -> Node {
        let mut windows: Vec<Window> = Vec::new();
        for WindowUse { column, partition, order, call } in calls {
            match windows.iter_mut().find(|own| own.partition == partition && own.order == order) {
                Some(own) => own.calls.push((column, call)),
                None => windows.push(Window {
                    input: Box::new(crate::query::one_row()),
                    partition,
                    order,
                    calls: vec![(column, call)],
                    top: None,
                }),
            }
        }
        for mut window in windows {
            *window.input = node;
            node = Node::Window(window);
        }
        node
    }
}

/// A window of a WINDOW clause, or in an `OVER`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Named<'q> {
    /// Its clauses.
    Spec(&'q WindowSpec),
    /// Another name for it.
    Other(&'q Ident),
}

/// Windows by name, in lower case.
pub(crate) type Windows<'q> = HashMap<String, Named<'q>>;

/// What a window excludes, if it says so, and the window that it extends. The parser does not know EXCLUDE,
/// so it was made part of that name ([`entasis_syntax`]).
fn exclusion(spec: &WindowSpec) -> (Option<Exclude>, Option<String>) {
    let Some(name) = &spec.window_name else { return (None, None) };
    let Some(rest) = name.value.strip_prefix(EXCLUDE) else { return (None, Some(name.value.clone())) };
    let (what, base) = rest.split_once(MARK).unwrap_or((rest, ""));
    let exclude = match what {
        "row" => Exclude::CurrentRow,
        "group" => Exclude::Group,
        "ties" => Exclude::Ties,
        _ => Exclude::NoOthers,
    };
    (Some(exclude), Some(base.to_owned()).filter(|base| !base.is_empty()))
}

/// A window function that is no aggregate, with its arguments in their types, and the type of its result.
fn plain(name: &str, mut args: Vec<Bound>) -> Result<(WindowFunction, Vec<Expr>, DataType)> {
    use WindowFunction as F;
    let types: Vec<String> = args.iter().map(|arg| arg.given.to_string()).collect();
    let takes = |wanted: &str| {
        let text: Cow<'_, str> = types.join(", ").into();
        Err(Error::input(format!("{name} does not take ({text}), only {wanted}")))
    };
    let is_integer = |arg: &Bound| arg.given.is_integer() || arg.given == Given::Null;
    let rank = match name {
        "row_number" => Some((F::RowNumber, DataType::Int64)),
        "rank" => Some((F::Rank, DataType::Int64)),
        "dense_rank" => Some((F::DenseRank, DataType::Int64)),
        "percent_rank" => Some((F::PercentRank, DataType::Float64)),
        "cume_dist" => Some((F::CumeDist, DataType::Float64)),
        _ => None,
    };
    if let Some((function, ty)) = rank {
        return if args.is_empty() { Ok((function, Vec::new(), ty)) } else { takes("no arguments") };
    }
    match (name, args.as_slice()) {
        ("ntile", [count]) if is_integer(count) => {
            Ok((F::Ntile, vec![args.remove(0).cast(DataType::Int64)], DataType::Int64))
        }
        ("ntile", _) => takes("a number of buckets"),
        ("lag" | "lead", [_]) => {
            let value = args.remove(0).expr;
            let ty = value.ty();
            Ok((if name == "lag" { F::Lag } else { F::Lead }, vec![value], ty))
        }
        ("lag" | "lead", [_, offset, rest @ ..]) if is_integer(offset) && rest.len() <= 1 => {
            let offset = args.remove(1).cast(DataType::Int64);
            let what = format!("{name} with a default");
            let (mut values, ty) = unified(args, Meeting::Strict, &what)?;
            values.insert(1, offset);
            Ok((if name == "lag" { F::Lag } else { F::Lead }, values, ty))
        }
        ("lag" | "lead", _) => takes("a value, an offset and a default"),
        ("first_value" | "last_value", [_]) => {
            let value = args.remove(0).expr;
            let ty = value.ty();
            Ok((if name == "first_value" { F::FirstValue } else { F::LastValue }, vec![value], ty))
        }
        ("first_value" | "last_value", _) => takes("one value"),
        ("nth_value", [_, number]) if is_integer(number) => {
            let number = args.remove(1).cast(DataType::Int64);
            let value = args.remove(0).expr;
            let ty = value.ty();
            Ok((F::NthValue, vec![value, number], ty))
        }
        _ => takes("a value and the number of a row"),
    }
}

/// True if two calls have the same results.
fn is_same(a: &WindowCall, b: &WindowCall) -> bool {
    a.function.name() == b.function.name()
        && a.args == b.args
        && a.distinct == b.distinct
        && a.filter == b.filter
        && a.order_by == b.order_by
        && a.ignore_nulls == b.ignore_nulls
        && a.frame == b.frame
        && a.ty == b.ty
}
