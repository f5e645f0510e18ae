//! Window functions. The clauses of each call pass through the binder separately from it (`crate::rewrite`,
//! [`crate::functions::window`]); here calls with the same partitioning and order are combined into one
//! operator.

use super::aggregate::Asked;
use super::{Lowered, Lowering, Scope};
use crate::error::from_datafusion;
use crate::functions::Library;
use crate::functions::window_call::{self, End, Frame, Function, Units, WindowCall};
use crate::hidden::visible;
use datafusion_expr::expr::WindowFunction as DfWindow;
use datafusion_expr::{self as df, Expr as DfExpr, ExprSchemable, WindowFunctionDefinition};
use entasis_arrow::from_arrow_type;
use entasis_engine::plan::{self, Bound, Exclude, FrameUnits, Node, SortKey, WindowFunction};
use entasis_functions::expressions::fold;
use entasis_functions::windows;
use entasis_vector::expr::Expr;
use entasis_vector::{DataType, Error, Result};

impl Lowering<'_> {
    pub(super) fn window(&mut self, window: &df::Window) -> Result<Lowered> {
        let Lowered { mut node, scope } = self.plan(&window.input)?;
        let fields = window.schema.fields().iter().skip(scope.columns.len());
        let mut columns = scope.columns.clone();
        let mut windows: Vec<plan::Window> = Vec::new();
        for (expr, field) in window.window_expr.iter().zip(fields) {
            let (partition, order, call) = self.window_call(expr, &scope, &mut node)?;
            let column = self.columns.add(visible(field.name()), call.ty, true);
            columns.push(column);
            match windows.iter_mut().find(|own| own.partition == partition && own.order == order) {
                Some(own) => own.calls.push((column, call)),
                None => windows.push(plan::Window {
                    input: Box::new(super::one_row()),
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
        Ok(Lowered { node, scope: Scope { schema: window.schema.clone(), columns } })
    }

    /// A call with its partitioning and its order.
    fn window_call(
        &mut self,
        expr: &DfExpr,
        scope: &Scope,
        node: &mut Node,
    ) -> Result<(Vec<Expr>, Vec<SortKey>, plan::WindowCall)> {
        let (function, call) = match expr {
            DfExpr::Alias(alias) => return self.window_call(&alias.expr, scope, node),
            DfExpr::WindowFunction(function) => (function, said_of(function)?),
            other => return Err(Error::internal(format!("{other} is no window function"))),
        };
        let ty = from_arrow_type(&expr.get_type(&scope.schema).map_err(from_datafusion)?)?;
        let params = &function.params;
        let mut partition = Vec::with_capacity(params.partition_by.len());
        for key in &params.partition_by {
            let key = self.expr(key, scope, node)?;
            if !partition.contains(&key) && !matches!(key, Expr::Literal { .. }) {
                partition.push(key);
            }
        }
        let order = self.sort_keys(&params.order_by, scope, node)?;
        let mut args = params.args.iter();
        let own: Vec<DfExpr> = args.by_ref().take(call.args).cloned().collect();
        let frame = match call.frame {
            Some(frame) => {
                let mut offset = |lowering: &mut Self| match args.next() {
                    Some(arg) => lowering.expr(arg, scope, node),
                    None => Err(Error::internal("a frame without its offset")),
                };
                let start = self.bound(frame, frame.start, &order, &mut offset)?;
                let end = self.bound(frame, frame.end, &order, &mut offset)?;
                plan::Frame { units: units(frame), start, end, exclude: exclude(frame) }
            }
            None if order.is_empty() => plan::Frame::whole(),
            None => plan::Frame::up_to_peers(),
        };
        if frame.units == FrameUnits::Groups && order.is_empty() {
            return Err(Error::input("GROUPS needs an ORDER BY in the window"));
        }
        let mut order_by = Vec::with_capacity(call.order.len());
        for (descending, nulls_first) in &call.order {
            let Some(key) = args.next() else { return Err(Error::internal("an order without its key")) };
            let expr = self.expr(key, scope, node)?;
            order_by.push(SortKey { expr, descending: *descending, nulls_first: *nulls_first });
        }
        let filter = match args.next() {
            Some(filter) if call.has_filter => {
                Some(fold::cast_expr(self.expr(filter, scope, node)?, DataType::Boolean, false))
            }
            _ => None,
        };
        let mut lowered = Vec::with_capacity(own.len());
        for arg in &own {
            lowered.push(self.expr(arg, scope, node)?);
        }
        let lowered = plan::WindowCall {
            args: lowered,
            distinct: call.distinct,
            filter,
            order_by,
            ignore_nulls: call.ignore_nulls,
            frame,
            ty,
            ..plan::WindowCall::row_number()
        };
        let call = match plain(&call.name) {
            Some(function) => {
                let types = own.iter().map(|arg| arg.get_type(&scope.schema).map_err(from_datafusion));
                let types = types.map(|ty| from_arrow_type(&ty?)).collect::<Result<Vec<DataType>>>()?;
                let args =
                    lowered.args.into_iter().zip(types).map(|(arg, ty)| fold::cast_expr(arg, ty, false));
                plan::WindowCall { function, args: args.collect(), ..lowered }
            }
            None => {
                // Aggregates have several names, of which lowering knows one.
                let function = Library::get().aggregate(&call.name);
                let asked = Asked {
                    name: function.as_ref().map_or(&*call.name, |function| function.name()),
                    bound: &own,
                    distinct: lowered.distinct,
                    filter: lowered.filter,
                    order_by: lowered.order_by,
                    ignore_nulls: lowered.ignore_nulls,
                    ty,
                };
                let aggregate = asked.call(lowered.args, scope)?;
                plan::WindowCall {
                    function: WindowFunction::Aggregate(aggregate.function),
                    args: aggregate.args,
                    distinct: aggregate.distinct,
                    filter: aggregate.filter,
                    order_by: aggregate.order_by,
                    ignore_nulls: false,
                    frame: lowered.frame,
                    ty: aggregate.ty,
                }
            }
        };
        Ok((partition, order, call))
    }

    /// An end of a frame, with its offset in the type that the frame counts by.
    fn bound(
        &mut self,
        frame: Frame,
        end: End,
        order: &[SortKey],
        offset: &mut impl FnMut(&mut Self) -> Result<Expr>,
    ) -> Result<Bound> {
        let is_preceding = match end {
            End::UnboundedPreceding => return Ok(Bound::UnboundedPreceding),
            End::CurrentRow => return Ok(Bound::CurrentRow),
            End::UnboundedFollowing => return Ok(Bound::UnboundedFollowing),
            End::Preceding => true,
            End::Following => false,
        };
        let offset = offset(self)?;
        let wanted = match (frame.units, order) {
            (Units::Rows | Units::Groups, _) => DataType::Int64,
            (Units::Range, [key]) => match key.expr.ty() {
                ty if ty.is_numeric() => ty,
                DataType::Date
                | DataType::Time
                | DataType::Timestamp
                | DataType::TimestampTz
                | DataType::Interval => DataType::Interval,
                ty => {
                    return Err(Error::input(format!(
                        "RANGE with an offset does not go with an order by {ty}"
                    )));
                }
            },
            (Units::Range, _) => {
                return Err(Error::input(
                    "RANGE with an offset needs exactly one key in the ORDER BY of the window",
                ));
            }
        };
        let given = offset.ty();
        let fits = match wanted {
            DataType::Interval => matches!(given, DataType::Interval | DataType::Varchar),
            wanted => given == wanted || given == DataType::Null || is_exact(given, wanted),
        };
        if !fits {
            let what = if frame.units == Units::Range { "match the ORDER BY key" } else { "be an integer" };
            return Err(Error::input(format!(
                "the offset of a frame must {what} ({wanted}), but has type {given}"
            )));
        }
        let offset = fold::cast_expr(offset, wanted, false);
        Ok(if is_preceding { Bound::Preceding(offset) } else { Bound::Following(offset) })
    }
}

/// Whether an offset of one type can be represented in another: an integer in any number, a number with a
/// fraction in one that has fractions.
fn is_exact(given: DataType, wanted: DataType) -> bool {
    given.is_numeric() && wanted.is_numeric() && (given.is_integer() || !wanted.is_integer())
}

fn said_of(function: &DfWindow) -> Result<&WindowCall> {
    match &function.fun {
        WindowFunctionDefinition::WindowUDF(udf) => {
            let own = udf.inner().downcast_ref::<Function>();
            own.map(|own| &own.call).ok_or_else(|| Error::internal("a window function of somebody else"))
        }
        WindowFunctionDefinition::AggregateUDF(udf) => {
            Err(Error::internal(format!("{} went through the binder as it is written", udf.name())))
        }
    }
}

/// The window function of this name, if it is not an aggregate.
fn plain(name: &str) -> Option<WindowFunction> {
    use WindowFunction as F;
    windows::is_window_function(name).then_some(())?;
    Some(match name {
        "row_number" => F::RowNumber,
        "rank" => F::Rank,
        "dense_rank" => F::DenseRank,
        "percent_rank" => F::PercentRank,
        "cume_dist" => F::CumeDist,
        "ntile" => F::Ntile,
        "lag" => F::Lag,
        "lead" => F::Lead,
        "first_value" => F::FirstValue,
        "last_value" => F::LastValue,
        _ => F::NthValue,
    })
}

fn units(frame: Frame) -> FrameUnits {
    match frame.units {
        Units::Rows => FrameUnits::Rows,
        Units::Range => FrameUnits::Range,
        Units::Groups => FrameUnits::Groups,
    }
}

fn exclude(frame: Frame) -> Exclude {
    match frame.exclude {
        window_call::Exclude::NoOthers => Exclude::NoOthers,
        window_call::Exclude::CurrentRow => Exclude::CurrentRow,
        window_call::Exclude::Group => Exclude::Group,
        window_call::Exclude::Ties => Exclude::Ties,
    }
}
