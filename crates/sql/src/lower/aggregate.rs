//! `GROUP BY`, aggregate functions and `DISTINCT ON`.

use super::expr::{cast_null, settle};
use super::grouping::{Grouping, sets_in};
use super::{Lowered, Lowering, Scope};
use crate::error::from_datafusion;
use crate::functions::Library;
use crate::functions::aggregates::Aggregate;
use crate::hidden::visible;
use datafusion_common::tree_node::TreeNode;
use datafusion_expr::expr::{AggregateFunction as DfAggregate, NullTreatment};
use datafusion_expr::{self as df, Expr as DfExpr, ExprSchemable};
use entasis_arrow::from_arrow_type;
use entasis_engine::plan::{self, AggregateCall, AggregateFunction, Node, Sort, SortKey};
use entasis_functions::aggregates::{Call, Kind};
use entasis_functions::expressions::fold;
use entasis_functions::windows::is_window_function;
use entasis_vector::error::sqlstate;
use entasis_vector::expr::Expr;
use entasis_vector::{DataType, Error, Result};
use std::sync::Arc;

impl Lowering<'_> {
    pub(super) fn aggregate(&mut self, aggregate: &df::Aggregate) -> Result<Lowered> {
        let Lowered { mut node, scope } = self.plan(&aggregate.input)?;
        let mut fields = aggregate.schema.fields().iter();
        let mut columns = Vec::with_capacity(fields.len());
        let mut groups = Vec::with_capacity(aggregate.group_expr.len());
        // The schema has a repeated key only once.
        let mut keys: Vec<&DfExpr> = Vec::with_capacity(aggregate.group_expr.len());
        let mut places = Vec::with_capacity(aggregate.group_expr.len());
        for key in &aggregate.group_expr {
            places.push(keys.iter().position(|known| *known == key).unwrap_or_else(|| {
                keys.push(key);
                keys.len() - 1
            }));
        }
        if keys.len() + aggregate.aggr_expr.len() != fields.len() {
            return Err(Error::internal("a key of GROUP BY is lost"));
        }
        let mut sets = None;
        for expr in keys {
            let name = visible(fields.next().map_or("group", |field| field.name()));
            if let Some(found) = sets_in(expr) {
                let column = self.columns.add("sets", DataType::Int64, false);
                columns.push(column);
                sets = Some((column, found));
                continue;
            }
            let expr = self.expr(expr, &scope, &mut node)?;
            let column = self.columns.add(name, expr.ty(), true);
            columns.push(column);
            groups.push((column, expr));
        }
        let mut calls = Vec::with_capacity(aggregate.aggr_expr.len());
        for expr in &aggregate.aggr_expr {
            let call = self.call(expr, &scope, &mut node)?;
            let name = fields.next().map_or("aggregate", |field| field.name());
            let nullable = !matches!(call.function, AggregateFunction::Count | AggregateFunction::CountStar);
            let column = self.columns.add(visible(name), call.ty, nullable);
            columns.push(column);
            calls.push((column, call));
        }
        let node = match sets {
            Some((id, sets)) => {
                let sets = placed(sets, &places)?;
                self.grouping_sets(Grouping { input: node, keys: groups, places, id, calls, sets })
            }
            None => Node::Aggregate(plan::Aggregate { input: Box::new(node), groups, aggregates: calls }),
        };
        Ok(Lowered { node, scope: Scope { schema: aggregate.schema.clone(), columns } })
    }

    fn call(&mut self, expr: &DfExpr, scope: &Scope, node: &mut Node) -> Result<AggregateCall> {
        match expr {
            DfExpr::Alias(alias) => self.call(&alias.expr, scope, node),
            DfExpr::AggregateFunction(function) => self.aggregate_function(function, expr, scope, node),
            other => Err(Error::internal(format!("{other} is no aggregate"))),
        }
    }

    fn aggregate_function(
        &mut self,
        function: &DfAggregate,
        whole: &DfExpr,
        scope: &Scope,
        node: &mut Node,
    ) -> Result<AggregateCall> {
        let params = &function.params;
        if is_of_outer_query(whole) {
            let text = format!("{}, an aggregate of the outer query, in a subquery", function.func.name());
            return Err(
                Error::not_supported(text).with_hint("compute it in a derived table of the outer query")
            );
        }
        let filter = match &params.filter {
            Some(filter) => Some(cast_null(self.expr(filter, scope, node)?, DataType::Boolean)),
            None => None,
        };
        let mut args = Vec::with_capacity(params.args.len());
        for arg in &params.args {
            args.push(self.expr(arg, scope, node)?);
        }
        let asked = Asked {
            name: function.func.name(),
            bound: &params.args,
            distinct: params.distinct,
            filter,
            order_by: self.sort_keys(&params.order_by, scope, node)?,
            ignore_nulls: params.null_treatment == Some(NullTreatment::IgnoreNulls),
            ty: from_arrow_type(&whole.get_type(&scope.schema).map_err(from_datafusion)?)?,
        };
        asked.call(args, scope)
    }

    /// `DISTINCT ON (keys) …`: the first row of each group in the query's order.
    pub(super) fn distinct_on(&mut self, on: &df::DistinctOn) -> Result<Lowered> {
        let Lowered { mut node, scope } = self.plan(&on.input)?;
        let order = match &on.sort_expr {
            Some(keys) => self.sort_keys(keys, &scope, &mut node)?,
            None => Vec::new(),
        };
        let mut groups = Vec::new();
        for expr in &on.on_expr {
            let expr = self.expr(expr, &scope, &mut node)?;
            groups.push((self.columns.add("key", expr.ty(), true), expr));
        }
        let mut aggregates = Vec::new();
        let mut first = |lowering: &mut Self, name: &str, expr: Expr| -> Result<_> {
            let column = lowering.columns.add(name, expr.ty(), true);
            aggregates.push((column, first_value(expr, order.clone())?));
            Ok(column)
        };
        let mut columns = Vec::new();
        for (expr, field) in on.select_expr.iter().zip(on.schema.fields()) {
            let expr = self.expr(expr, &scope, &mut node)?;
            columns.push(first(self, &visible(field.name()), expr)?);
        }
        // The result keeps the order, so the order's keys pass through the groups, too.
        let mut keys = Vec::new();
        for key in &order {
            let column = first(self, "order", key.expr.clone())?;
            keys.push(SortKey { expr: self.columns.expr(column), ..key.clone() });
        }
        let mut node = Node::Aggregate(plan::Aggregate { input: Box::new(node), groups, aggregates });
        if !keys.is_empty() {
            node = Node::Sort(Sort { input: Box::new(node), keys, limit: None });
        }
        Ok(Lowered { node, scope: Scope { schema: on.schema.clone(), columns } })
    }
}

/// The sets with the places of their keys among those that differ, each once.
fn placed(sets: Vec<Vec<usize>>, places: &[usize]) -> Result<Vec<Vec<usize>>> {
    let place = |set: Vec<usize>| {
        let mut placed: Vec<usize> = Vec::with_capacity(set.len());
        for number in set {
            let place = *places.get(number).ok_or_else(|| Error::internal("a set has lost a key"))?;
            if !placed.contains(&place) {
                placed.push(place);
            }
        }
        Ok(placed)
    };
    sets.into_iter().map(place).collect()
}

/// An aggregate that a group or a window needs.
pub(super) struct Asked<'a> {
    /// The function.
    pub(super) name: &'a str,
    /// Its arguments as bound by the binder.
    pub(super) bound: &'a [DfExpr],
    /// `DISTINCT`
    pub(super) distinct: bool,
    /// The condition of `FILTER`.
    pub(super) filter: Option<Expr>,
    /// The order within the call.
    pub(super) order_by: Vec<SortKey>,
    /// `IGNORE NULLS`
    pub(super) ignore_nulls: bool,
    /// The type of the result.
    pub(super) ty: DataType,
}

impl Asked<'_> {
    /// The order in which a sum of `arg` takes its rows: those of exact numbers do not depend on it.
    fn order_of(&self, arg: &Expr) -> Vec<SortKey> {
        if arg.ty().is_float() { self.order_by.clone() } else { Vec::new() }
    }

    /// The engine's call, with lowered arguments over `scope`.
    pub(super) fn call(&self, mut args: Vec<Expr>, scope: &Scope) -> Result<AggregateCall> {
        let &Asked { name, ty, ignore_nulls, .. } = self;
        let native = |function, args, ty| AggregateCall {
            function,
            args,
            distinct: self.distinct,
            filter: self.filter.clone(),
            order_by: Vec::new(),
            ty,
        };
        let one = |mut args: Vec<Expr>| match (args.pop(), args.is_empty()) {
            (Some(arg), true) => Ok(arg),
            _ => Err(Error::input(format!("{name} takes one argument"))),
        };
        Ok(match name {
            "count" => {
                let all_rows =
                    args.iter().all(|a| matches!(a, Expr::Literal { value, .. } if !value.is_null()));
                if args.len() > 1 {
                    return Err(Error::input("count takes one argument, or *"));
                }
                if all_rows && !self.distinct {
                    return Ok(native(AggregateFunction::CountStar, vec![], DataType::Int64));
                }
                let arg = cast_null(one(args)?, DataType::Int32);
                native(AggregateFunction::Count, vec![arg], DataType::Int64)
            }
            "sum" | "avg" if !is_number(&args) => {
                let kind = if name == "avg" { Kind::Mean } else { Kind::Span };
                let given: Vec<DataType> = args.iter().map(Expr::ty).collect();
                let (types, result) = kind.types(&given).map_err(|_| {
                    let given: Vec<String> = given.iter().map(ToString::to_string).collect();
                    Error::input(format!("{name} does not take ({})", given.join(", ")))
                })?;
                let args =
                    args.into_iter().zip(&types).map(|(arg, ty)| fold::cast_expr(arg, *ty, false)).collect();
                let call = Call { name: name.into(), kind, args: types, result, ignore_nulls };
                native(AggregateFunction::External(Arc::new(call)), args, result)
            }
            "sum" => {
                let arg = narrow(cast_null(one(args)?, ty));
                let order_by = self.order_of(&arg);
                AggregateCall { order_by, ..native(AggregateFunction::Sum, vec![arg], ty) }
            }
            "avg" => {
                let arg = narrow(cast_null(one(args)?, DataType::Float64));
                let order_by = self.order_of(&arg);
                AggregateCall { order_by, ..native(AggregateFunction::Avg, vec![arg], DataType::Float64) }
            }
            "min" | "max" => {
                let arg = one(args)?;
                let ty = arg.ty();
                let function = if name == "min" { AggregateFunction::Min } else { AggregateFunction::Max };
                AggregateCall { distinct: false, ..native(function, vec![arg], ty) }
            }
            "bool_and" | "bool_or" => {
                let arg = cast_null(one(args)?, DataType::Boolean);
                let function =
                    if name == "bool_and" { AggregateFunction::BoolAnd } else { AggregateFunction::BoolOr };
                AggregateCall { distinct: false, ..native(function, vec![arg], DataType::Boolean) }
            }
            "any_value" => {
                let arg = one(args)?;
                let ty = arg.ty();
                let order_by = self.order_by.clone();
                AggregateCall {
                    distinct: false,
                    order_by,
                    ..native(AggregateFunction::AnyValue, vec![arg], ty)
                }
            }
            _ => {
                let function = Library::get().aggregate(name);
                let own = function.as_ref().and_then(|function| function.inner().downcast_ref::<Aggregate>());
                let own = own.ok_or_else(|| not_computed(name))?;
                settle(&mut args, self.bound, scope)?;
                let (types, _) = own.kind.types(&args.iter().map(Expr::ty).collect::<Vec<_>>())?;
                let args =
                    args.into_iter().zip(&types).map(|(arg, ty)| fold::cast_expr(arg, *ty, false)).collect();
                let call = Call { name: name.into(), kind: own.kind, args: types, result: ty, ignore_nulls };
                let order_by = self.order_by.clone();
                AggregateCall { order_by, ..native(AggregateFunction::External(Arc::new(call)), args, ty) }
            }
        })
    }
}

/// That a function that the binder knows as an aggregate is none of ours.
fn not_computed(name: &str) -> Error {
    if is_window_function(name) {
        let error = Error::input(format!("{name} is a window function, and needs an OVER"));
        return error.with_sqlstate(sqlstate::SYNTAX);
    }
    Error::not_supported(format!("the aggregate {name}"))
}

/// True if an aggregate belongs to the enclosing query: it reads columns of that query and no others.
fn is_of_outer_query(aggregate: &DfExpr) -> bool {
    let reads_outer =
        aggregate.exists(|part| Ok(matches!(part, DfExpr::OuterReferenceColumn(..)))).unwrap_or(false);
    reads_outer && aggregate.column_refs().is_empty()
}

/// The value of the first row in the given order, NULL or not.
pub(super) fn first_value(expr: Expr, order_by: Vec<SortKey>) -> Result<AggregateCall> {
    let ty = expr.ty();
    let call =
        Call { name: "first".into(), kind: Kind::First, args: vec![ty], result: ty, ignore_nulls: false };
    let function = AggregateFunction::External(Arc::new(call));
    Ok(AggregateCall { function, args: vec![expr], distinct: false, filter: None, order_by, ty })
}

/// True if the only argument is a number or NULL.
fn is_number(args: &[Expr]) -> bool {
    args.iter().all(|arg| arg.ty().is_numeric() || arg.ty() == DataType::Null)
}

/// The argument of a sum or average without the widening cast that the binder added: the engine's sums are
/// wide.
fn narrow(arg: Expr) -> Expr {
    match arg {
        Expr::Cast { input, ty, lenient: false }
            if input.ty().is_integer() && ty.is_integer() && fold::is_embedding(input.ty(), ty) =>
        {
            *input
        }
        other => other,
    }
}
