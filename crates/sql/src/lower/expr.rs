//! Expressions: DataFusion's, bound and coerced, to the engine's.
//!
//! DataFusion's types are used only as targets of casts and as argument types of library functions.
//! Everywhere else a lowered expression has its own type.

use super::literal::{from_scalar, into_value, to_scalar};
use super::{Lowering, Scope};
use crate::error::{from_datafusion, readable};
use crate::functions::catalog;
use crate::functions::native::{FloatFunction, Kind, Native, TestFunction, TextFunction};
use crate::functions::outer_aggregate::OuterAggregate;
use crate::functions::scalar::{External, argument_field};
use crate::functions::time::TimeUdf;
use arrow_schema::{DataType as ArrowType, FieldRef};
use datafusion_common::{Result as DfResult, ScalarValue};
use datafusion_expr::simplify::ExprSimplifyResult;
use datafusion_expr::type_coercion::binary::BinaryTypeCoercer;
use datafusion_expr::{self as df, Expr as DfExpr, ExprSchemable, Operator, ReturnFieldArgs, ScalarUDFImpl};
use entasis_arrow::{from_arrow_type, to_arrow_type};
use entasis_engine::plan::Node;
use entasis_functions::TimeZone;
use entasis_functions::catalog::call::{catalog_call, named_call};
use entasis_functions::date_part;
use entasis_functions::expressions::exact::exact;
use entasis_functions::expressions::external::fold_external;
use entasis_functions::expressions::fold;
use entasis_functions::kernels::{SUBSTRING, TRUNCATE_INTERVAL};
use entasis_functions::zoned;
use entasis_vector::expr::{ArithmeticOp, CompareOp, DatePart, Expr, Function};
use entasis_vector::statement;
use entasis_vector::{DataType, Error, Result, Value};
use std::sync::Arc;

impl Lowering<'_> {
    /// Lowers an expression over `node`, whose columns `scope` names. Subqueries in it become joins around
    /// `node`.
    pub(super) fn expr(&mut self, expr: &DfExpr, scope: &Scope, node: &mut Node) -> Result<Expr> {
        statement::check()?;
        match expr {
            DfExpr::Alias(alias) => self.expr(&alias.expr, scope, node),
            DfExpr::Column(column) => {
                let index = scope.schema.index_of_column(column).map_err(from_datafusion)?;
                Ok(self.columns.expr(scope.columns[index]))
            }
            DfExpr::OuterReferenceColumn(_, column) => {
                let scope = self.outer.iter().rev().find_map(|scope| {
                    scope.schema.maybe_index_of_column(column).map(|index| scope.columns[index])
                });
                match scope {
                    Some(id) => Ok(self.columns.expr(id)),
                    None => {
                        Err(Error::input(format!("there is no column {} in the outer query", column.name)))
                    }
                }
            }
            DfExpr::Literal(scalar, _) => {
                let (value, ty) = from_scalar(scalar)?;
                Ok(Expr::literal(value, ty))
            }
            DfExpr::Placeholder(placeholder) => self.params.expr(&placeholder.id),
            DfExpr::BinaryExpr(binary) => self.binary(binary, scope, node),
            DfExpr::Not(input) => Ok(fold::not(self.condition(input, scope, node)?)),
            DfExpr::IsNull(input) => Ok(is_null(self.expr(input, scope, node)?)),
            DfExpr::IsNotNull(input) => Ok(fold::not(is_null(self.expr(input, scope, node)?))),
            DfExpr::IsUnknown(input) => Ok(is_null(self.condition(input, scope, node)?)),
            DfExpr::IsNotUnknown(input) => Ok(fold::not(is_null(self.condition(input, scope, node)?))),
            DfExpr::IsTrue(input) => self.is_boolean(CompareOp::NotDistinctFrom, input, true, scope, node),
            DfExpr::IsFalse(input) => self.is_boolean(CompareOp::NotDistinctFrom, input, false, scope, node),
            DfExpr::IsNotTrue(input) => self.is_boolean(CompareOp::DistinctFrom, input, true, scope, node),
            DfExpr::IsNotFalse(input) => self.is_boolean(CompareOp::DistinctFrom, input, false, scope, node),
            DfExpr::Negative(input) => Ok(fold::negate(self.expr(input, scope, node)?)),
            DfExpr::Between(between) => {
                let input = self.expr(&between.expr, scope, node)?;
                let low = self.expr(&between.low, scope, node)?;
                let high = self.expr(&between.high, scope, node)?;
                let (low, high) = (cast_null(low, input.ty()), cast_null(high, input.ty()));
                let within = Expr::and([
                    fold::compare(CompareOp::GtEq, input.clone(), low),
                    fold::compare(CompareOp::LtEq, input, high),
                ]);
                Ok(if between.negated { fold::not(within) } else { within })
            }
            DfExpr::Like(like) => self.like(like, scope, node),
            DfExpr::SimilarTo(_) => Err(Error::not_supported("SIMILAR TO")),
            DfExpr::Case(case) => self.case(case, scope, node),
            DfExpr::Cast(cast) => self.cast(&cast.expr, &cast.field, false, scope, node),
            DfExpr::TryCast(cast) => self.cast(&cast.expr, &cast.field, true, scope, node),
            DfExpr::InList(list) => self.in_list(list, scope, node),
            DfExpr::ScalarFunction(function) => self.function(function, expr, scope, node),
            DfExpr::ScalarSubquery(subquery) => self.scalar_subquery(subquery, node, scope),
            DfExpr::Exists(_) | DfExpr::InSubquery(_) | DfExpr::SetComparison(_) => {
                self.mark_subquery(expr, scope, node)
            }
            DfExpr::AggregateFunction(function) => {
                Err(Error::input(format!("the aggregate {} is not allowed here", function.func.name())))
            }
            DfExpr::WindowFunction(_) => {
                let error = Error::input(
                    "window functions are only allowed in the select list, ORDER BY and QUALIFY",
                );
                Err(error.with_hint("compute it in a subquery"))
            }
            DfExpr::GroupingSet(_) => Err(Error::not_supported("GROUPING SETS, ROLLUP and CUBE")),
            DfExpr::Unnest(_) => {
                let error = Error::input("unnest is only allowed in the select list and in FROM");
                Err(error.with_hint("take it apart in a subquery"))
            }
            other => Err(Error::not_supported(format!("the expression {other}"))),
        }
    }

    /// A BOOLEAN expression; an untyped NULL becomes one.
    fn condition(&mut self, expr: &DfExpr, scope: &Scope, node: &mut Node) -> Result<Expr> {
        let lowered = cast_null(self.expr(expr, scope, node)?, DataType::Boolean);
        match lowered.ty() {
            DataType::Boolean => Ok(lowered),
            other => Err(Error::input(readable(&format!("a condition is {other}, not BOOLEAN: {expr}")))),
        }
    }

    fn is_boolean(
        &mut self,
        op: CompareOp,
        input: &DfExpr,
        value: bool,
        scope: &Scope,
        node: &mut Node,
    ) -> Result<Expr> {
        let input = self.condition(input, scope, node)?;
        Ok(fold::compare(op, input, Expr::boolean(value)))
    }

    fn binary(&mut self, binary: &df::BinaryExpr, scope: &Scope, node: &mut Node) -> Result<Expr> {
        use Operator as Op;
        if matches!(binary.op, Op::And | Op::Or) {
            // Long chains are left-deep: walk them without recursion.
            let mut parts = Vec::new();
            let mut left = &*binary.left;
            let mut rights = vec![&*binary.right];
            while let DfExpr::BinaryExpr(inner) = left
                && inner.op == binary.op
            {
                rights.push(&inner.right);
                left = &inner.left;
            }
            parts.push(self.condition(left, scope, node)?);
            for right in rights.into_iter().rev() {
                parts.push(self.condition(right, scope, node)?);
            }
            return Ok(if binary.op == Op::And { conjunction(parts) } else { fold::or(parts) });
        }
        let left = self.expr(&binary.left, scope, node)?;
        let right = self.expr(&binary.right, scope, node)?;
        let compare = match binary.op {
            Op::Eq => Some(CompareOp::Eq),
            Op::NotEq => Some(CompareOp::NotEq),
            Op::Lt => Some(CompareOp::Lt),
            Op::LtEq => Some(CompareOp::LtEq),
            Op::Gt => Some(CompareOp::Gt),
            Op::GtEq => Some(CompareOp::GtEq),
            Op::IsDistinctFrom => Some(CompareOp::DistinctFrom),
            Op::IsNotDistinctFrom => Some(CompareOp::NotDistinctFrom),
            _ => None,
        };
        if let Some(op) = compare {
            let (left, right) = same_type(left, right);
            return Ok(fold::compare(op, left, right));
        }
        match binary.op {
            Op::RegexMatch => regex(left, right, None),
            Op::RegexIMatch => regex(left, right, Some("i")),
            Op::RegexNotMatch => Ok(fold::not(regex(left, right, None)?)),
            Op::RegexNotIMatch => Ok(fold::not(regex(left, right, Some("i"))?)),
            Op::LikeMatch | Op::ILikeMatch => Ok(like(left, right, None, binary.op == Op::ILikeMatch)),
            Op::NotLikeMatch | Op::NotILikeMatch => {
                Ok(fold::not(like(left, right, None, binary.op == Op::NotILikeMatch)))
            }
            Op::StringConcat => {
                let args = vec![text(left), text(right)];
                Ok(Expr::Function { function: Function::Concat, args, ty: DataType::Varchar })
            }
            op => self.arithmetic(op, left, right),
        }
    }

    fn arithmetic(&mut self, op: Operator, left: Expr, right: Expr) -> Result<Expr> {
        let arithmetic = match op {
            Operator::Plus => ArithmeticOp::Add,
            Operator::Minus => ArithmeticOp::Subtract,
            Operator::Multiply => ArithmeticOp::Multiply,
            Operator::Divide => ArithmeticOp::Divide,
            Operator::Modulo => ArithmeticOp::Modulo,
            Operator::BitwiseAnd => ArithmeticOp::BitAnd,
            Operator::BitwiseOr => ArithmeticOp::BitOr,
            Operator::BitwiseXor => ArithmeticOp::BitXor,
            Operator::BitwiseShiftLeft => ArithmeticOp::ShiftLeft,
            Operator::BitwiseShiftRight => ArithmeticOp::ShiftRight,
            other => return Err(Error::not_supported(format!("the operator {other}"))),
        };
        // The engine requires the interval on the right.
        let (left, right) = match (left.ty(), right.ty()) {
            (DataType::Interval, other) if other != DataType::Interval && arithmetic == ArithmeticOp::Add => {
                (right, left)
            }
            _ => (left, right),
        };
        let (l, r) = (left.ty(), right.ty());
        let ty = match (l, r) {
            (DataType::Null, other) | (other, DataType::Null) => other,
            (DataType::Timestamp | DataType::TimestampTz, DataType::Timestamp | DataType::TimestampTz) => {
                DataType::Interval
            }
            (DataType::Date, DataType::Interval) => DataType::Timestamp,
            (_, DataType::Interval) => l,
            _ if l == r && !l.is_decimal() => l,
            _ => {
                let (l, r) = (to_arrow_type(l), to_arrow_type(r));
                let ty = BinaryTypeCoercer::new(&l, &op, &r).get_result_type().map_err(from_datafusion)?;
                from_arrow_type(&ty)?
            }
        };
        if ty == DataType::Null {
            return Ok(Expr::literal(Value::Null, DataType::Null));
        }
        let (left, right) = (cast_null(left, ty), cast_null(right, ty));
        Ok(fold::arithmetic(arithmetic, left, right, ty))
    }

    fn like(&mut self, pattern: &df::Like, scope: &Scope, node: &mut Node) -> Result<Expr> {
        let input = self.expr(&pattern.expr, scope, node)?;
        let text = self.expr(&pattern.pattern, scope, node)?;
        let matched = like(input, text, pattern.escape_char, pattern.case_insensitive);
        Ok(if pattern.negated { fold::not(matched) } else { matched })
    }

    fn case(&mut self, case: &df::Case, scope: &Scope, node: &mut Node) -> Result<Expr> {
        let operand = match &case.expr {
            Some(operand) => Some(self.expr(operand, scope, node)?),
            None => None,
        };
        let mut branches = Vec::with_capacity(case.when_then_expr.len());
        for (when, then) in &case.when_then_expr {
            let condition = match &operand {
                Some(operand) => {
                    let when = self.expr(when, scope, node)?;
                    let (left, right) = same_type(operand.clone(), when);
                    fold::compare(CompareOp::Eq, left, right)
                }
                None => self.condition(when, scope, node)?,
            };
            branches.push((condition, self.expr(then, scope, node)?));
        }
        let otherwise = match &case.else_expr {
            Some(otherwise) => Some(self.expr(otherwise, scope, node)?),
            None => None,
        };
        Ok(case_of(branches, otherwise))
    }

    fn cast(
        &mut self,
        input: &DfExpr,
        field: &FieldRef,
        lenient: bool,
        scope: &Scope,
        node: &mut Node,
    ) -> Result<Expr> {
        let input = self.expr(input, scope, node)?;
        let ty = from_arrow_type(field.data_type())?;
        Ok(if ty == DataType::Null { input } else { fold::cast_expr(input, ty, lenient) })
    }

    fn in_list(&mut self, list: &df::expr::InList, scope: &Scope, node: &mut Node) -> Result<Expr> {
        let input = self.expr(&list.expr, scope, node)?;
        let mut items = Vec::with_capacity(list.list.len());
        for item in &list.list {
            items.push(cast_null(self.expr(item, scope, node)?, input.ty()));
        }
        let input = match items.first() {
            Some(first) => cast_null(input, first.ty()),
            None => return Ok(Expr::boolean(list.negated)),
        };
        let found = if items.iter().all(|item| matches!(item, Expr::Literal { ty, .. } if *ty == input.ty()))
        {
            let values: Vec<Value> = items.into_iter().map(into_value).collect();
            in_values(input, values)
        } else {
            fold::or(items.into_iter().map(|item| {
                let (left, right) = same_type(input.clone(), item);
                fold::compare(CompareOp::Eq, left, right)
            }))
        };
        Ok(if list.negated { fold::not(found) } else { found })
    }

    // ---- functions ----------------------------------------------------------------------------------------

    fn function(
        &mut self,
        function: &df::expr::ScalarFunction,
        whole: &DfExpr,
        scope: &Scope,
        node: &mut Node,
    ) -> Result<Expr> {
        if let Some(native) = function.func.inner().downcast_ref::<Native>() {
            let kind = native.kind;
            let ty = from_arrow_type(&whole.get_type(&scope.schema).map_err(from_datafusion)?)?;
            let args = self.arguments(&function.args, scope, node)?;
            if let (Kind::DatePart, [Expr::Literal { value: Value::Text(part), .. }, arg]) =
                (kind, args.as_slice())
                && let Some((unit, within)) = offset_part(part)
            {
                return match arg.ty() {
                    DataType::TimestampTz => Ok(zoned::offset(self.session.zone, arg.clone(), unit, within)),
                    other => Err(Error::input(format!("a {other} has no {part}").to_ascii_lowercase())),
                };
            }
            if let (Kind::DateTrunc, [part, instant, zone]) = (kind, args.as_slice()) {
                let part = constant_part(part)?;
                return match zone {
                    Expr::Literal { value: Value::Null, .. } => Ok(Expr::literal(Value::Null, ty)),
                    Expr::Literal { value, .. } => {
                        Ok(zoned::truncated(zoned::zone_of(value)?, part, instant.clone()))
                    }
                    _ => Err(Error::not_supported("date_trunc in a time zone that is not constant")),
                };
            }
            let mut args = args;
            if let (Kind::Binary(op), 2) = (kind, args.len()) {
                let right = args.remove(1);
                return Ok(fold::cast_expr(self.arithmetic(op, args.remove(0), right)?, ty, false));
            }
            return native_call(kind, args, ty);
        }
        if let Some(aggregate) = function.func.inner().downcast_ref::<OuterAggregate>() {
            if aggregate.function.is_some() {
                let column = self.outer_aggregates.get(&aggregate.number).copied();
                let column = column
                    .ok_or_else(|| Error::internal("an aggregate of an outer query is not computed"))?;
                return Ok(self.columns.expr(column));
            }
            return match self.arguments(&function.args, scope, node)?.as_slice() {
                [Expr::Column { id, .. }] => {
                    self.outer_aggregates.insert(aggregate.number, *id);
                    Ok(Expr::boolean(true))
                }
                _ => Err(Error::internal("an aggregate that subqueries read is no column")),
            };
        }
        if let Some(named) = function.func.inner().downcast_ref::<catalog::Function>() {
            let ty = from_arrow_type(&whole.get_type(&scope.schema).map_err(from_datafusion)?)?;
            let mut args = self.arguments(&function.args, scope, node)?;
            settle(&mut args, &function.args, scope)?;
            return catalog_call(named.name, named.definition, args, Some(ty), self.session.zone);
        }
        if let Some(time) = function.func.inner().downcast_ref::<TimeUdf>() {
            if self.params.are_open() && function.func.signature().volatility == df::Volatility::Stable {
                return Err(Error::not_supported(format!(
                    "the function {} in a template",
                    function.func.name()
                )));
            }
            let types =
                function.args.iter().map(|arg| arg.get_type(&scope.schema)).collect::<DfResult<Vec<_>>>();
            let types = time.coerce_types(&types.map_err(from_datafusion)?).map_err(from_datafusion)?;
            let ty = from_arrow_type(&whole.get_type(&scope.schema).map_err(from_datafusion)?)?;
            let args = self.arguments(&function.args, scope, node)?.into_iter().zip(&types);
            let args = args.map(|(arg, ty)| Ok(fold::cast_expr(arg, from_arrow_type(ty)?, false)));
            return time.function.call(args.collect::<Result<_>>()?, ty, &self.session);
        }
        if function.func.name() == "coalesce" {
            let mut args = self.arguments(&function.args, scope, node)?;
            let last = args.pop().ok_or_else(|| Error::input("coalesce needs an argument"))?;
            let branches =
                args.into_iter().map(|arg| (fold::not(is_null(arg.clone())), arg)).collect::<Vec<_>>();
            return Ok(if branches.is_empty() { last } else { case_of(branches, Some(last)) });
        }
        // Functions of the session or the time become constants here; some others become plain expressions.
        if self.params.are_open() && function.func.signature().volatility == df::Volatility::Stable {
            return Err(Error::not_supported(format!("the function {} in a template", function.func.name())));
        }
        let simplified = function
            .func
            .simplify(function.args.clone(), &self.simplify_in(scope))
            .map_err(from_datafusion)?;
        let args = match simplified {
            ExprSimplifyResult::Simplified(DfExpr::ScalarFunction(other)) if other.func == function.func => {
                other.args
            }
            ExprSimplifyResult::Simplified(expr) => return self.expr(&expr, scope, node),
            ExprSimplifyResult::Original(args) => args,
        };
        let mut fields = Vec::with_capacity(args.len());
        let mut lowered = Vec::with_capacity(args.len());
        for arg in &args {
            let (_, field) = arg.to_field(&scope.schema).map_err(from_datafusion)?;
            let ty = from_arrow_type(field.data_type())?;
            let expr = self.expr(arg, scope, node)?;
            lowered.push(fold::cast_expr(expr, ty, false));
            fields.push(field);
        }
        let constants = lowered
            .iter()
            .zip(&fields)
            .map(|(expr, field)| match expr {
                Expr::Literal { value, ty } => to_scalar(value, *ty)
                    .and_then(|s| s.cast_to(field.data_type()).map_err(from_datafusion))
                    .map(Some),
                _ => Ok(None),
            })
            .collect::<Result<Vec<Option<ScalarValue>>>>()?;
        let constants: Vec<Option<&ScalarValue>> = constants.iter().map(Option::as_ref).collect();
        let result = function
            .func
            .return_field_from_args(ReturnFieldArgs { arg_fields: &fields, scalar_arguments: &constants })
            .map_err(from_datafusion)?;
        let external = Arc::new(External::new(function.func.clone(), fields, result, self.config.clone())?);
        let ty = external.ty();
        fold_external(external, lowered, ty)
    }

    fn arguments(&mut self, args: &[DfExpr], scope: &Scope, node: &mut Node) -> Result<Vec<Expr>> {
        args.iter().map(|arg| self.expr(arg, scope, node)).collect()
    }

    fn simplify_in(&self, scope: &Scope) -> datafusion_expr::simplify::SimplifyContext {
        datafusion_expr::simplify::SimplifyContext::builder()
            .with_config_options(self.config.clone())
            .with_query_execution_start_time(self.simplify.query_execution_start_time())
            .with_schema(scope.schema.clone())
            .build()
    }
}

/// Casts arguments to the types by which the binder chose the function.
pub(super) fn settle(args: &mut [Expr], bound: &[DfExpr], scope: &Scope) -> Result<()> {
    for (arg, bound) in args.iter_mut().zip(bound) {
        let ty = from_arrow_type(&bound.get_type(&scope.schema).map_err(from_datafusion)?)?;
        if ty != DataType::Null {
            *arg = fold::cast_expr(std::mem::replace(arg, Expr::boolean(false)), ty, false);
        }
    }
    Ok(())
}

/// Whether a pattern matches part of the input.
fn regex(input: Expr, pattern: Expr, flags: Option<&str>) -> Result<Expr> {
    let mut args = vec![text(input), text(pattern)];
    args.extend(flags.map(|flags| Expr::literal(Value::Text(flags.into()), DataType::Varchar)));
    named_call("regexp_matches", args, TimeZone::UTC)
}

fn native_call(kind: Kind, mut args: Vec<Expr>, ty: DataType) -> Result<Expr> {
    match (kind, args.as_slice()) {
        (Kind::CharLength, [arg]) if arg.ty().is_nested() => {
            return named_call("array_length", args, TimeZone::UTC);
        }
        (Kind::CharLength, [arg]) if arg.ty() == DataType::Blob => {
            return Ok(Expr::Function { function: Function::OctetLength, args, ty });
        }
        (Kind::Substring, [text, start, ..])
            if text.ty() == DataType::Blob || start.ty() == DataType::Varchar =>
        {
            return catalog_call("substring", &SUBSTRING, args, Some(ty), TimeZone::UTC);
        }
        (Kind::DateTrunc, [_, at]) if at.ty() == DataType::Interval => {
            return catalog_call("date_trunc", &TRUNCATE_INTERVAL, args, Some(ty), TimeZone::UTC);
        }
        _ => {}
    }
    let wanted: &[DataType] = match kind {
        Kind::Text(_) | Kind::CharLength => &[DataType::Varchar],
        Kind::Test(_) => &[DataType::Varchar, DataType::Varchar],
        Kind::Substring => &[DataType::Varchar, DataType::Int64, DataType::Int64],
        Kind::Float(_) => &[DataType::Float64],
        _ => &[],
    };
    let mut given = std::mem::take(&mut args).into_iter();
    for ty in wanted {
        args.extend(given.next().map(|arg| fold::cast_expr(arg, *ty, false)));
    }
    args.extend(given);
    let function = match kind {
        Kind::Text(TextFunction::Upper) => Function::Upper,
        Kind::Text(TextFunction::Lower) => Function::Lower,
        Kind::CharLength => Function::CharLength,
        Kind::OctetLength => Function::OctetLength,
        Kind::Test(TestFunction::StartsWith) => Function::StartsWith,
        Kind::Test(TestFunction::EndsWith) => Function::EndsWith,
        Kind::Test(TestFunction::Contains) => Function::Contains,
        Kind::Substring => Function::Substring,
        Kind::Abs => Function::Abs,
        Kind::Float(FloatFunction::Floor) => Function::Floor,
        Kind::Float(FloatFunction::Ceil) => Function::Ceil,
        Kind::Float(FloatFunction::Sqrt) => Function::Sqrt,
        Kind::Extract(part) => return extract(part, args.remove(0), ty),
        Kind::DatePart => {
            let part = constant_part(&args[0])?;
            return extract(part, args.remove(1), ty);
        }
        Kind::DateTrunc => {
            let part = constant_part(&args[0])?;
            args.remove(0);
            Function::Truncate(part)
        }
        Kind::NullIf => {
            let (b, a) = (args.pop(), args.pop());
            let (Some(a), Some(b)) = (a, b) else { return Err(Error::internal("nullif without arguments")) };
            let (left, right) = same_type(a.clone(), b);
            let equal = fold::compare(CompareOp::Eq, left, right);
            let null = Expr::literal(Value::Null, a.ty());
            return Ok(case_of(vec![(equal, null)], Some(a)));
        }
        Kind::IfNull => {
            let (b, a) = (args.pop(), args.pop());
            let (Some(a), Some(b)) = (a, b) else { return Err(Error::internal("ifnull without arguments")) };
            return Ok(case_of(vec![(fold::not(is_null(a.clone())), a)], Some(b)));
        }
        Kind::If | Kind::IfNotNull => {
            let (c, b, a) = (args.pop(), args.pop(), args.pop());
            let (Some(a), Some(b)) = (a, b) else { return Err(Error::internal("if without arguments")) };
            let condition = if kind == Kind::If {
                fold::cast_expr(a, DataType::Boolean, false)
            } else {
                fold::not(is_null(a))
            };
            return Ok(case_of(vec![(condition, b)], c));
        }
        Kind::Binary(op) => return Err(Error::internal(format!("{op} is lowered as an operator"))),
        Kind::Operator(op, _) => {
            let (b, a) = (args.pop(), args.pop());
            let (Some(a), Some(b)) = (a, b) else {
                return Err(Error::internal("an operator without operands"));
            };
            return Ok(fold::arithmetic(op, a, b, ty));
        }
        Kind::Exact => return Ok(args.remove(0)),
        Kind::Nearest => return Err(Error::internal("the inequality of an as-of join outside of its ON")),
        Kind::Sets => return Err(Error::input("grouping() needs a GROUP BY")),
        Kind::Uuid => {
            // The library's function returns text.
            let udf = datafusion_functions::string::uuid();
            let result = argument_field(ArrowType::Utf8, false);
            let function = Arc::new(External::new(udf, vec![], result, Arc::default())?);
            let text = Expr::External { function, args: vec![], ty: DataType::Varchar };
            return Ok(fold::cast_expr(text, DataType::Uuid, false));
        }
    };
    Ok(Expr::Function { function, args, ty })
}

fn extract(part: DatePart, arg: Expr, ty: DataType) -> Result<Expr> {
    let fits = match arg.ty() {
        DataType::Time => matches!(
            part,
            DatePart::Hour
                | DatePart::Minute
                | DatePart::Second
                | DatePart::Millisecond
                | DatePart::Microsecond
                | DatePart::Epoch
        ),
        DataType::Interval => {
            let of_dates =
                [DatePart::Week, DatePart::YearWeek, DatePart::IsoYear, DatePart::Julian, DatePart::Era];
            !of_dates.contains(&part)
                && !matches!(part, DatePart::DayOfWeek | DatePart::IsoDayOfWeek | DatePart::DayOfYear)
        }
        _ => true,
    };
    if !fits {
        return Err(Error::input(format!("a {} has no {part:?}", arg.ty()).to_ascii_lowercase()));
    }
    Ok(Expr::Function { function: Function::Extract(part), args: vec![arg], ty })
}

/// The unit of a part of a zone's offset, in seconds, and the longer unit of which it is a part.
fn offset_part(part: &str) -> Option<(i64, i64)> {
    match part.to_ascii_lowercase().as_str() {
        "timezone" => Some((1, i64::MAX)),
        "timezone_hour" => Some((3600, i64::MAX)),
        "timezone_minute" => Some((60, 3600)),
        _ => None,
    }
}

fn constant_part(arg: &Expr) -> Result<DatePart> {
    match arg {
        Expr::Literal { value: Value::Text(name), .. } => {
            date_part(name).ok_or_else(|| Error::input(format!("there is no date part '{name}'")))
        }
        _ => Err(Error::not_supported("date parts that are not constants")),
    }
}

// ---- small constructors -----------------------------------------------------------------------------------

/// An untyped NULL as a NULL of `ty`; anything else unchanged.
pub(super) fn cast_null(expr: Expr, ty: DataType) -> Expr {
    if expr.ty() == DataType::Null && ty != DataType::Null { fold::cast_expr(expr, ty, false) } else { expr }
}

/// Both operands in one type, for those that the binder left different: untyped NULLs, and exact numbers of
/// two scales.
pub(super) fn same_type(left: Expr, right: Expr) -> (Expr, Expr) {
    let (l, r) = (left.ty(), right.ty());
    if l == r {
        return (left, right);
    }
    if let Some(exact) = exact(&left, &right) {
        return exact;
    }
    let ty = match (l, r) {
        (DataType::Null, other) | (other, DataType::Null) => other,
        _ => l,
    };
    (fold::cast_expr(left, ty, false), fold::cast_expr(right, ty, false))
}

fn text(expr: Expr) -> Expr {
    fold::cast_expr(expr, DataType::Varchar, false)
}

fn like(input: Expr, pattern: Expr, escape: Option<char>, case_insensitive: bool) -> Expr {
    Expr::Like { input: Box::new(text(input)), pattern: Box::new(text(pattern)), escape, case_insensitive }
}

fn is_null(expr: Expr) -> Expr {
    match expr {
        Expr::Literal { value, .. } => Expr::boolean(value.is_null()),
        other => Expr::IsNull(Box::new(other)),
    }
}

/// The conjunction of conditions, folded to FALSE if one of them is FALSE.
fn conjunction(parts: Vec<Expr>) -> Expr {
    let is_false = |part: &Expr| matches!(part, Expr::Literal { value: Value::Boolean(false), .. });
    if parts.iter().any(is_false) { Expr::boolean(false) } else { Expr::and(parts) }
}

/// A CASE with all results in one type.
fn case_of(branches: Vec<(Expr, Expr)>, otherwise: Option<Expr>) -> Expr {
    let results = branches.iter().map(|(_, result)| result).chain(otherwise.as_ref());
    let ty = results.map(Expr::ty).find(|ty| *ty != DataType::Null).unwrap_or(DataType::Null);
    let branches = branches
        .into_iter()
        .map(|(condition, result)| (condition, fold::cast_expr(result, ty, false)))
        .collect();
    let otherwise = otherwise.map(|result| Box::new(fold::cast_expr(result, ty, false)));
    Expr::Case { branches, otherwise, ty }
}

/// `input IN (values)`, with the comparison made before a cast of the input if all values allow that.
fn in_values(input: Expr, values: Vec<Value>) -> Expr {
    if let Expr::Cast { input: inner, ty, lenient: false } = &input
        && fold::is_embedding(inner.ty(), *ty)
    {
        let narrow: Option<Vec<Value>> =
            values.iter().map(|value| fold::cast(value, *ty, inner.ty())).collect();
        if let Some(list) = narrow {
            return Expr::InList { input: inner.clone(), list };
        }
    }
    if let ([value], false) = (values.as_slice(), values.iter().any(Value::is_null)) {
        let ty = input.ty();
        return fold::compare(CompareOp::Eq, input, Expr::literal(value.clone(), ty));
    }
    Expr::InList { input: Box::new(input), list: values }
}
