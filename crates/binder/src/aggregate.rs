//! Calls of aggregates: to which query one belongs, and the engine's call.
//!
//! An aggregate belongs to the innermost of the queries from which its columns come; if it has none, to the
//! query in which it stands. So `sum(t.x)` in a subquery of a query over `t` is computed with the groups of
//! `t`. The clause of *that* query decides whether it is allowed. Its value is a column of its own from the
//! moment at which it is bound; equal calls are one column.

use crate::binder::{Binder, located};
use crate::bound::Bound;
use crate::native::wrong;
use crate::operator::condition;
use crate::scope::{AggregateKey, Clause};
use entasis_engine::plan::{AggregateCall, AggregateFunction, SortKey};
use entasis_functions::aggregates::{Call, Kind, OF_ORDER, aggregates};
use entasis_functions::host::{HostAggregate, HostFunction};
use entasis_functions::types::Given;
use entasis_syntax::clauses;
use entasis_vector::error::sqlstate;
use entasis_vector::expr::Expr;
use entasis_vector::{ColumnId, DataType, Error, Result};
use sqlparser::ast::{
    self, DuplicateTreatment, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArguments,
    NullTreatment, OrderByExpr,
};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// Number of digits that a sum of decimals has in addition to its argument's.
const MORE_DIGITS: u8 = 10;

/// True for the name of an aggregate, in lower case.
pub(crate) fn is_aggregate(name: &str) -> bool {
    is_native(canonical(name)) || kind_of(name).is_some()
}

fn is_native(name: &str) -> bool {
    matches!(name, "count" | "sum" | "avg" | "min" | "max" | "bool_and" | "bool_or" | "any_value")
}

/// The name of an aggregate of the engine that has several.
fn canonical(name: &str) -> &str {
    match name {
        "mean" => "avg",
        "every" | "logical_and" => "bool_and",
        "logical_or" => "bool_or",
        name => name,
    }
}

fn kind_of(name: &str) -> Option<Kind> {
    static BY_NAME: OnceLock<HashMap<&'static str, Kind>> = OnceLock::new();
    BY_NAME.get_or_init(|| aggregates().collect()).get(name).copied()
}

/// What a call asks of an aggregate, besides its arguments.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asked {
    pub(crate) distinct: bool,
    pub(crate) filter: Option<Expr>,
    pub(crate) order_by: Vec<SortKey>,
    pub(crate) ignore_nulls: bool,
}

/// An argument as it is written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Arg<'q> {
    /// An expression.
    Expr(&'q ast::Expr),
    /// `a = 1`, which the parser takes for an argument with a name.
    Equal(&'q ast::Expr, &'q ast::Expr),
    /// The same, where it is a name by itself.
    NameEquals(&'q ast::Ident, &'q ast::Expr),
}

impl<'q> Arg<'q> {
    /// The argument that is an expression, whatever the parser takes it for.
    pub(crate) fn of(arg: &'q FunctionArg) -> Option<Arg<'q>> {
        use ast::FunctionArgOperator::Equals;
        match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(Arg::Expr(expr)),
            FunctionArg::ExprNamed { name, arg: FunctionArgExpr::Expr(right), operator: Equals } => {
                Some(Arg::Equal(name, right))
            }
            FunctionArg::Named { name, arg: FunctionArgExpr::Expr(right), operator: Equals } => {
                Some(Arg::NameEquals(name, right))
            }
            _ => None,
        }
    }
}

/// The arguments of a call as they are written, with its clauses.
pub(crate) struct Written<'q> {
    pub(crate) args: Vec<Arg<'q>>,
    /// `count(*)`, or `count(t.*)` with the name of the table.
    pub(crate) rows: Option<Option<&'q ast::ObjectName>>,
    pub(crate) distinct: bool,
    pub(crate) order_by: Vec<&'q OrderByExpr>,
    pub(crate) filter: Option<&'q ast::Expr>,
    pub(crate) ignore_nulls: bool,
    /// A quantile whose order descends.
    pub(crate) descending: bool,
}

impl<'a, 'q> Binder<'a, 'q> {
    /// The arguments and clauses of a call of an aggregate or a window function.
    pub(crate) fn written(&mut self, name: &str, function: &'q ast::Function) -> Result<Written<'q>> {
        clauses::function(function, |_| true)?;
        let mut written = Written {
            args: Vec::new(),
            rows: None,
            distinct: false,
            order_by: Vec::new(),
            filter: function.filter.as_deref(),
            ignore_nulls: function.null_treatment == Some(NullTreatment::IgnoreNulls),
            descending: false,
        };
        let list = match &function.args {
            FunctionArguments::None => return Ok(written),
            FunctionArguments::List(list) => list,
            FunctionArguments::Subquery(_) => {
                return Err(Error::input(format!("{name} takes values, not a query")));
            }
        };
        written.distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct);
        for arg in &list.args {
            match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Wildcard) if name == "count" => {
                    written.rows = Some(None)
                }
                FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(table)) if name == "count" => {
                    written.rows = Some(Some(table));
                }
                arg => match Arg::of(arg) {
                    Some(arg) => written.args.push(arg),
                    None if matches!(arg, FunctionArg::Unnamed(_)) => {
                        return Err(Error::input(format!("{name} does not take *")));
                    }
                    None => return Err(Error::not_supported(format!("arguments of {name} by name"))),
                },
            }
        }
        for clause in &list.clauses {
            match clause {
                FunctionArgumentClause::OrderBy(keys) => written.order_by.extend(keys),
                FunctionArgumentClause::IgnoreOrRespectNulls(treatment) => {
                    written.ignore_nulls = *treatment == NullTreatment::IgnoreNulls;
                }
                other => return Err(Error::not_supported(format!("{other} in a function"))),
            }
        }
        // `last_value(abs(a) IGNORE NULLS)`: the parser takes the clause for one of `abs`.
        if let Some(Arg::Expr(ast::Expr::Function(last))) = written.args.last()
            && last.over.is_none()
            && let Some(treatment) = last.null_treatment
            && !self.is_aggregate(&crate::call::name_of(last))
        {
            written.ignore_nulls = treatment == NullTreatment::IgnoreNulls;
            self.excused = Some(last);
        }
        self.within_group(name, function, written)
    }

    /// Takes WITHIN GROUP as the arguments and the order that our aggregates take:
    ///
    /// ```text
    /// percentile_disc(0.5) WITHIN GROUP (ORDER BY x DESC)   ⇒   percentile_disc(x, 0.5), descending
    /// quantile_cont(x, 0.5 ORDER BY x)                      ⇒   quantile_cont(x, 0.5)
    /// mode() WITHIN GROUP (ORDER BY x)                      ⇒   mode(x ORDER BY x)
    /// listagg(x, ';') WITHIN GROUP (ORDER BY y)             ⇒   listagg(x, ';' ORDER BY y)
    /// ```
    fn within_group(
        &mut self,
        name: &str,
        function: &'q ast::Function,
        mut written: Written<'q>,
    ) -> Result<Written<'q>> {
        let of_order = OF_ORDER.contains(&name);
        let keys = &function.within_group;
        let single = || match keys.as_slice() {
            [key] => Ok(key),
            _ => Err(Error::input(format!("{name} takes one key in WITHIN GROUP"))),
        };
        let is_descending = |key: &OrderByExpr| key.options.asc == Some(false);
        if of_order {
            if keys.is_empty() {
                let inline = std::mem::take(&mut written.order_by);
                written.descending = inline.first().is_some_and(|key| is_descending(key));
            } else {
                let key = single()?;
                if written.args.is_empty() {
                    return Err(Error::input(format!("{name} takes a fraction: {name}(0.5)")));
                }
                written.args.insert(0, Arg::Expr(&key.expr));
                written.descending = is_descending(key);
            }
        } else if keys.is_empty() {
        } else if name == "mode" && written.args.is_empty() {
            let key = single()?;
            written.args.push(Arg::Expr(&key.expr));
            written.order_by.push(key);
        } else if matches!(name, "string_agg" | "group_concat" | "listagg") {
            if !written.order_by.is_empty() {
                return Err(Error::input(format!("{name} has two orders")));
            }
            written.order_by.extend(keys);
        } else {
            return Err(Error::input(format!("{name} takes no WITHIN GROUP")));
        }
        Ok(written)
    }

    /// Binds the arguments of a call of an aggregate.
    pub(crate) fn asked(&mut self, written: &Written<'q>) -> Result<(Vec<Bound>, Asked)> {
        let mut args = Vec::with_capacity(written.args.len());
        for arg in &written.args {
            args.push(self.argument_of(*arg)?);
        }
        if written.descending {
            if args.len() == 1 {
                args.push(crate::literal::number("0.5")?);
            }
            args.push(Bound::known(Expr::boolean(true)));
        }
        let filter = written.filter.map(|filter| self.condition(filter)).transpose()?;
        let order_by = self.sort_keys(&written.order_by)?;
        Ok((args, Asked { distinct: written.distinct, filter, order_by, ignore_nulls: written.ignore_nulls }))
    }

    /// Binds an argument.
    pub(crate) fn argument_of(&mut self, arg: Arg<'q>) -> Result<Bound> {
        let (left, right) = match arg {
            Arg::Expr(expr) => return self.expr(expr),
            Arg::Equal(left, right) => (self.expr(left)?, self.expr(right)?),
            Arg::NameEquals(left, right) => (self.name(left)?, self.expr(right)?),
        };
        self.operator(&ast::BinaryOperator::Eq, left, right)
    }

    /// Keys of an order within a call; constants do not order anything.
    pub(crate) fn sort_keys(&mut self, keys: &[&'q OrderByExpr]) -> Result<Vec<SortKey>> {
        let mut bound = Vec::with_capacity(keys.len());
        for key in keys {
            let expr = self.expr(&key.expr)?.expr;
            if !matches!(expr, Expr::Literal { .. }) {
                bound.push(sort_key(expr, &key.options));
            }
        }
        Ok(bound)
    }

    /// A call of an aggregate that has no `OVER`.
    pub(crate) fn aggregate_call(&mut self, name: &str, function: &'q ast::Function) -> Result<Bound> {
        let written = self.written(name, function)?;
        if self.scopes.is_empty() {
            return Err(Error::input(format!("the aggregate {name} is not allowed here")));
        }
        let own = self.scopes.len() - 1;
        let captures = self.captures;
        let pending = self.scope().pending.len();
        let (args, asked, mut read) = self.asked_over_rows(&written)?;
        if written.rows.is_some() && written.distinct {
            let error = Error::input(format!("{name} takes DISTINCT with an argument, and not with *"));
            return Err(located(error.with_sqlstate(sqlstate::SYNTAX), &function.name));
        }
        let mut rows = None;
        if let Some(of) = written.rows {
            rows = Some(match of {
                None => None,
                Some(table) => {
                    let (depth, column) = self.column_of_rows(table)?;
                    read = read.max(Some(depth));
                    column
                }
            });
        }
        let owner = read.unwrap_or(own);
        if owner < own && self.scope().pending.len() > pending {
            return Err(Error::not_supported("a subquery within an aggregate of an outer query"));
        }
        for pending in &mut self.scope().pending[pending..] {
            pending.is_below_groups = true;
        }
        if owner < own {
            self.captures = captures + 1;
        }
        self.allow_aggregate(name, owner).map_err(|error| located(error, &function.name))?;
        // What it reads must not be an aggregate of the same groups.
        if self.reads_aggregates(owner, &args, &asked) {
            return Err(located(nested(name), &function.name));
        }
        let ignore_nulls = asked.ignore_nulls;
        let call = match rows {
            Some(None) => aggregate("count", Vec::new(), asked)?,
            Some(Some(column)) => aggregate("count", vec![Bound::known(self.columns.expr(column))], asked)?,
            None => self.aggregate(name, args, asked)?,
        };
        let column = self.aggregate_column(owner, name, call, ignore_nulls, || function.to_string());
        Ok(Bound::known(self.columns.expr(column)))
    }

    /// Binds the arguments of an aggregate. Returns, too, which of the scopes around is the innermost whose
    /// columns they read.
    fn asked_over_rows(&mut self, written: &Written<'q>) -> Result<(Vec<Bound>, Asked, Option<usize>)> {
        let own = self.scopes.len() - 1;
        // Names of results are not names of columns: no alias is visible within.
        let visible = std::mem::take(&mut self.scope().visible_aliases);
        let before = std::mem::take(&mut self.read);
        let bound = self.within(Clause::Aggregate, |binder| binder.asked(written));
        // Scopes within it are none of which it could be.
        let within = if own >= 127 { u128::MAX } else { (2u128 << own) - 1 };
        let read = self.read & within;
        self.read |= before;
        self.scope().visible_aliases = visible;
        let (args, asked) = bound?;
        Ok((args, asked, (read != 0).then(|| 127 - read.leading_zeros() as usize)))
    }

    /// Refuses an aggregate of the query at this depth if the clause that is being bound there has no groups.
    fn allow_aggregate(&mut self, name: &str, owner: usize) -> Result<()> {
        let is_own = owner + 1 == self.scopes.len();
        let clause = if is_own { self.clause() } else { self.scopes[owner].clause };
        if clause.has_groups() {
            return Ok(());
        }
        let error = match clause {
            Clause::Aggregate => nested(name),
            clause => {
                let of = if is_own { "" } else { " of its own query" };
                Error::input(format!("the aggregate {name} is not allowed in {}{of}", clause.name()))
            }
        };
        Err(match is_own {
            true => error.with_hint("compute it in a subquery, or write the condition in HAVING"),
            false => error.with_hint("it belongs to the outer query, from which all its columns come"),
        })
    }

    /// True if a call reads an aggregate of the query at this depth.
    fn reads_aggregates(&self, owner: usize, args: &[Bound], asked: &Asked) -> bool {
        let mut columns = Vec::new();
        let args = args.iter().map(|arg| &arg.expr).chain(&asked.filter);
        args.chain(asked.order_by.iter().map(|key| &key.expr))
            .for_each(|part| part.collect_columns(&mut columns));
        self.scopes[owner].aggregates.iter().any(|(column, _)| columns.contains(column))
    }

    /// The column of a call among the aggregates of the query at this depth: that of an equal one, or a new
    /// one.
    fn aggregate_column(
        &mut self,
        owner: usize,
        name: &str,
        call: AggregateCall,
        ignore_nulls: bool,
        written: impl FnOnce() -> String,
    ) -> ColumnId {
        let key = AggregateKey {
            name: format!("{} {}", canonical(name), call.ty),
            args: call.args.clone(),
            distinct: call.distinct,
            filter: call.filter.clone(),
            order_by: call.order_by.clone(),
            ignore_nulls,
        };
        if let Some(column) = self.scopes[owner].aggregates_by_key.get(&key) {
            return *column;
        }
        let nullable = !matches!(call.function, AggregateFunction::Count | AggregateFunction::CountStar);
        let column = self.columns.add(written(), call.ty, nullable);
        self.scopes[owner].aggregates.push((column, call));
        self.scopes[owner].aggregates_by_key.insert(key, column);
        column
    }

    /// True for the name of an aggregate, in lower case: one of ours, or one of the host program.
    pub(crate) fn is_aggregate(&self, name: &str) -> bool {
        is_aggregate(name) || self.host_aggregate(name).is_some()
    }

    fn host_aggregate(&self, name: &str) -> Option<HostFunction> {
        self.catalog.host_function(name).filter(HostFunction::is_aggregate)
    }

    /// The engine's call of an aggregate of this name, in lower case.
    ///
    /// # Errors
    /// Input, if it does not take such arguments.
    pub(crate) fn aggregate(&mut self, name: &str, args: Vec<Bound>, asked: Asked) -> Result<AggregateCall> {
        let host = if is_aggregate(name) { None } else { self.host_aggregate(name) };
        let Some(function) = host else { return aggregate(name, args, asked) };
        if args.is_empty() {
            return Err(Error::input(format!("{name} takes at least one argument")));
        }
        if asked.ignore_nulls {
            return Err(Error::not_supported(format!("IGNORE NULLS in {name}, a function of the program"))
                .with_hint("it is called without rows that have NULLs, unless it asks for them"));
        }
        let given: Vec<Given> = args.iter().map(|arg| arg.given).collect();
        let types = function.types(&given)?;
        let mut args: Vec<Bound> = args.into_iter().zip(&types).map(|(arg, ty)| arg.into(*ty)).collect();
        // Several arguments are collected as one value.
        let row = match args.len() {
            1 => args.remove(0),
            _ => {
                let names = (0..).map(|place: usize| Bound::text(&format!("argument {place}")));
                let fields = names.zip(args).flat_map(|(name, arg)| [name, arg]).collect();
                self.call("named_struct", fields)?
            }
        };
        Ok(AggregateCall {
            ty: function.result,
            function: AggregateFunction::External(Arc::new(HostAggregate::new(function, types, row.ty()))),
            args: vec![row.expr],
            distinct: asked.distinct,
            filter: asked.filter,
            order_by: asked.order_by,
        })
    }

    /// `count(t.*)`: the depth of the scope of a table, and a column that is NULL exactly where an outer join
    /// has no row of it; none if there is a row always.
    fn column_of_rows(&mut self, table: &ast::ObjectName) -> Result<(usize, Option<ColumnId>)> {
        let parts: Vec<String> = table
            .0
            .iter()
            .filter_map(|part| part.as_ident())
            .map(|ident| ident.value.to_ascii_lowercase())
            .collect();
        for depth in (0..self.scopes.len()).rev() {
            let mut rels = self.scopes[depth].relations_named(&parts);
            let Some(rel) = rels.next() else { continue };
            return Ok((depth, rel.presence));
        }
        Err(Error::input(format!("there is no table {table} in FROM")).with_sqlstate(sqlstate::NO_TABLE))
    }
}

fn nested(name: &str) -> Error {
    Error::input(format!(
        "aggregate calls cannot be nested: {name} is within another one, or another one within it"
    ))
    .with_hint("compute the inner one in a subquery")
}

/// One key of an order, NULLs last unless that is written.
pub(crate) fn sort_key(expr: Expr, options: &ast::OrderByOptions) -> SortKey {
    SortKey { expr, descending: options.asc == Some(false), nulls_first: options.nulls_first == Some(true) }
}

/// The engine's call of an aggregate of this name, in lower case.
///
/// # Errors
/// Input, if it does not take such arguments.
pub(crate) fn aggregate(name: &str, mut args: Vec<Bound>, asked: Asked) -> Result<AggregateCall> {
    let name = canonical(name);
    match (name, args.as_slice()) {
        ("count", []) => Ok(count_star(asked)),
        ("count", [_]) => Ok(count(args.remove(0), asked)),
        ("count", _) => Err(Error::input("count takes one argument, or *")),
        ("sum", [arg]) if arg.given.is_numeric() || arg.given == Given::Null => {
            Ok(sum(args.remove(0), asked))
        }
        ("avg", [arg]) if arg.given.is_numeric() || arg.given == Given::Null => {
            let arg = args.remove(0);
            let arg = if arg.given == Given::Null { arg.cast(DataType::Float64) } else { arg.expr };
            Ok(asked.call_of_numbers(AggregateFunction::Avg, arg, DataType::Float64))
        }
        ("sum", [_]) => external(name, Kind::Span, args, asked),
        ("avg", [_]) => external(name, Kind::Mean, args, asked),
        ("min" | "max" | "any_value", [arg]) => {
            let ty = arg.ty();
            let (function, order_by) = match name {
                "min" => (AggregateFunction::Min, Vec::new()),
                "max" => (AggregateFunction::Max, Vec::new()),
                _ => (AggregateFunction::AnyValue, asked.order_by.clone()),
            };
            let asked = Asked { distinct: false, order_by, ..asked };
            Ok(asked.call(function, vec![args.remove(0).expr], ty))
        }
        ("bool_and" | "bool_or", [_]) => {
            let function =
                if name == "bool_and" { AggregateFunction::BoolAnd } else { AggregateFunction::BoolOr };
            let asked = Asked { distinct: false, order_by: Vec::new(), ..asked };
            Ok(asked.call(function, vec![condition(args.remove(0))?], DataType::Boolean))
        }
        _ => match kind_of(name) {
            Some(kind) => external(name, kind, args, asked),
            None => Err(wrong(name, &args)),
        },
    }
}

impl Asked {
    /// The engine's call of a function.
    fn call(self, function: AggregateFunction, args: Vec<Expr>, ty: DataType) -> AggregateCall {
        let Asked { distinct, filter, order_by, ignore_nulls: _ } = self;
        AggregateCall { function, args, distinct, filter, order_by, ty }
    }

    /// The engine's call of a sum or an average. That of exact numbers does not depend on the order of their
    /// rows.
    fn call_of_numbers(self, function: AggregateFunction, arg: Expr, ty: DataType) -> AggregateCall {
        let order_by = if arg.ty().is_float() { self.order_by } else { Vec::new() };
        Asked { order_by, ..self }.call(function, vec![arg], ty)
    }
}

/// `count(*)`
fn count_star(asked: Asked) -> AggregateCall {
    let asked = Asked { distinct: false, order_by: Vec::new(), ..asked };
    asked.call(AggregateFunction::CountStar, Vec::new(), DataType::Int64)
}

/// `count(arg)`, which for a constant is that of all rows.
fn count(arg: Bound, asked: Asked) -> AggregateCall {
    if matches!(&arg.expr, Expr::Literal { value, .. } if !value.is_null()) && !asked.distinct {
        return count_star(asked);
    }
    let arg = if arg.given == Given::Null { arg.cast(DataType::Int32) } else { arg.expr };
    let asked = Asked { order_by: Vec::new(), ..asked };
    asked.call(AggregateFunction::Count, vec![arg], DataType::Int64)
}

/// `sum(arg)` of numbers. Its type has room for the sum of many.
fn sum(arg: Bound, asked: Asked) -> AggregateCall {
    let (taken, result) = match arg.ty() {
        DataType::Null => (DataType::Int64, DataType::Int64),
        ty @ (DataType::Int64 | DataType::UInt64) => (ty, DataType::Decimal { precision: 38, scale: 0 }),
        DataType::Decimal { precision, scale } => {
            let more = DataType::Decimal { precision: precision.saturating_add(MORE_DIGITS).min(38), scale };
            (arg.ty(), more)
        }
        ty if ty.is_float() => (DataType::Float64, DataType::Float64),
        ty if ty.integer_range().is_some_and(|(low, _)| low == 0) => (ty, DataType::UInt64),
        ty => (ty, DataType::Int64),
    };
    asked.call_of_numbers(AggregateFunction::Sum, arg.cast(taken), result)
}

/// A call of an aggregate that the engine knows only by its interface.
fn external(name: &str, kind: Kind, args: Vec<Bound>, asked: Asked) -> Result<AggregateCall> {
    let types: Vec<DataType> = args.iter().map(Bound::ty).collect();
    let (types, result) = kind.types(&types).map_err(|_| wrong(name, &args))?;
    let args: Vec<Expr> = args.into_iter().zip(&types).map(|(arg, ty)| arg.cast(*ty)).collect();
    let own = Call { name: name.into(), kind, args: types, result, ignore_nulls: asked.ignore_nulls };
    Ok(asked.call(AggregateFunction::External(Arc::new(own)), args, result))
}
