//! Expressions: the parser's to the engine's.

use crate::binder::{Binder, located};
use crate::bound::Bound;
use crate::literal::{negated, plain, text_of};
use crate::operator::{case, compare, condition};
use crate::rowvalue;
use entasis_functions::expressions::fold;
use entasis_functions::types::Given;
use entasis_syntax::clauses;
use entasis_syntax::types::{rounds_to, sql_type};
use entasis_vector::expr::{ArithmeticOp, CompareOp, DatePart, Expr, Function};
use entasis_vector::{DataType, Error, Interval, Result, Value, statement};
use sqlparser::ast::{self, AccessExpr, BinaryOperator, CastKind, Ident, Subscript, UnaryOperator};

impl<'a, 'q> Binder<'a, 'q> {
    /// Binds an expression. An error without a place gets that of the innermost part that has one.
    ///
    /// # Errors
    /// Input, for unknown names and wrong types; not supported, with the name of the feature.
    pub(crate) fn expr(&mut self, ast: &'q ast::Expr) -> Result<Bound> {
        statement::check()?;
        self.expression(ast).map_err(|error| located(error, ast))
    }

    /// A condition: WHERE, ON, HAVING, the operands of AND, OR and NOT.
    pub(crate) fn condition(&mut self, ast: &'q ast::Expr) -> Result<Expr> {
        let bound = self.expr(ast)?;
        condition(bound).map_err(|error| located(error, ast))
    }

    fn expression(&mut self, ast: &'q ast::Expr) -> Result<Bound> {
        use ast::Expr as Sql;
        match ast {
            Sql::Identifier(ident) => self.name(ident),
            Sql::CompoundIdentifier(idents) => self.qualified_name(idents),
            Sql::CompoundFieldAccess { root, access_chain } => self.accesses(root, access_chain),
            Sql::Value(value) => self.literal(&value.value),
            Sql::TypedString(typed) => match text_of(&typed.value.value) {
                Some(text) => self.cast(Bound::text(text), &typed.data_type, false),
                None => Err(Error::not_supported(format!("the literal {typed}"))),
            },
            Sql::Interval(interval) => self.interval(interval),
            Sql::Nested(inner) => self.expr(inner),
            Sql::BinaryOp { .. } => self.binary(ast),
            Sql::UnaryOp { op, expr } => self.unary(op, expr),
            Sql::InSubquery { expr, subquery, negated } => self.in_subquery(expr, subquery, *negated),
            Sql::Exists { subquery, negated } => self.exists(subquery, *negated),
            Sql::Subquery(query) => self.scalar_subquery(query),
            Sql::AnyOp { left, compare_op, right, is_some: _ } => {
                self.quantified(left, compare_op, right, true, ast)
            }
            Sql::AllOp { left, compare_op, right } => self.quantified(left, compare_op, right, false, ast),
            Sql::Case { operand, conditions, else_result, .. } => {
                self.case(operand.as_deref(), conditions, else_result.as_deref())
            }
            Sql::Cast { kind, expr, data_type, .. } => {
                clauses::expression(ast)?;
                let lenient = matches!(kind, CastKind::TryCast | CastKind::SafeCast);
                let input = self.expr(expr)?;
                self.cast(input, data_type, lenient)
            }
            Sql::Function(function) => self.function(function),
            Sql::IsNull(_)
            | Sql::IsNotNull(_)
            | Sql::IsUnknown(_)
            | Sql::IsNotUnknown(_)
            | Sql::IsTrue(_)
            | Sql::IsNotTrue(_)
            | Sql::IsFalse(_)
            | Sql::IsNotFalse(_)
            | Sql::IsDistinctFrom(..)
            | Sql::IsNotDistinctFrom(..)
            | Sql::Between { .. }
            | Sql::Like { .. }
            | Sql::ILike { .. }
            | Sql::SimilarTo { .. }
            | Sql::InList { .. } => self.predicate(ast),
            _ => self.keyword_call(ast),
        }
    }

    /// A chain of operators. Long ones lean to the left, where they are walked without recursion.
    fn binary(&mut self, ast: &'q ast::Expr) -> Result<Bound> {
        let mut chain = Vec::new();
        let mut first = ast;
        while let ast::Expr::BinaryOp { left, op, right } = first {
            chain.push((op, &**left, &**right));
            first = left;
        }
        let mut parts: Option<(&BinaryOperator, Vec<Expr>)> = None;
        let mut left: Option<Bound> = None;
        while let Some((op, left_ast, right_ast)) = chain.pop() {
            if matches!(op, BinaryOperator::And | BinaryOperator::Or) {
                let mut own = match (parts.take(), left.take()) {
                    (Some((before, own)), _) if before == op => own,
                    (Some((before, own)), _) => vec![connected(before, own)],
                    (None, Some(bound)) => vec![condition(bound).map_err(|error| located(error, left_ast))?],
                    (None, None) => vec![self.condition(left_ast)?],
                };
                own.push(self.condition(right_ast)?);
                parts = Some((op, own));
                continue;
            }
            if let Some((before, own)) = parts.take() {
                left = Some(Bound::known(connected(before, own)));
            }
            let bound = match (left.take(), rowvalue::parts(left_ast), rowvalue::parts(right_ast)) {
                (None, Some(own), other) => self.compare_rows(op, own, right_ast, other, false),
                (None, None, Some(own)) => self.compare_rows(op, own, left_ast, None, true),
                (left, ..) => {
                    let left = match left {
                        Some(left) => left,
                        None => self.expr(left_ast)?,
                    };
                    let right = self.expr(right_ast)?;
                    self.operator(op, left, right)
                }
            };
            left = Some(bound.map_err(|error| located(error, left_ast))?);
        }
        match (parts, left) {
            (Some((op, own)), _) => Ok(Bound::known(connected(op, own))),
            (None, Some(bound)) => Ok(bound),
            (None, None) => Err(Error::internal("an operator without operands")),
        }
    }

    fn unary(&mut self, op: &UnaryOperator, ast: &'q ast::Expr) -> Result<Bound> {
        match op {
            UnaryOperator::Not => Ok(Bound::known(Expr::Not(Box::new(self.condition(ast)?)))),
            UnaryOperator::Plus => self.expr(ast),
            UnaryOperator::Minus => match ast {
                // A sign binds more tightly than a power: `-2 ^ 2` is `(-2) ^ 2`.
                ast::Expr::BinaryOp {
                    left,
                    op: power @ (BinaryOperator::BitwiseXor | BinaryOperator::PGExp),
                    right,
                } => {
                    let (left, right) = (self.unary(op, left)?, self.expr(right)?);
                    self.operator(power, left, right)
                }
                ast => {
                    let bound = self.expr(ast)?;
                    self.negative(bound)
                }
            },
            UnaryOperator::BitwiseNot => {
                let bound = self.expr(ast)?;
                let minus_one = Bound::integer(-1);
                self.operator(&BinaryOperator::PGBitwiseXor, bound, minus_one)
            }
            UnaryOperator::PGSquareRoot => {
                let args = vec![self.expr(ast)?];
                self.call("sqrt", args)
            }
            UnaryOperator::PGCubeRoot => {
                let args = vec![self.expr(ast)?];
                self.call("cbrt", args)
            }
            UnaryOperator::PGAbs => {
                let args = vec![self.expr(ast)?];
                self.call("abs", args)
            }
            other => Err(Error::not_supported(format!("the operator {other}"))),
        }
    }

    fn negative(&mut self, bound: Bound) -> Result<Bound> {
        if let Some(negated) = negated(&bound) {
            return Ok(negated);
        }
        match bound.given {
            Given::Null => Ok(bound),
            Given::Text => {
                let number = bound.into(DataType::Float64);
                Ok(Bound::known(fold::negate(number.expr)))
            }
            _ if bound.given.is_numeric() || bound.ty() == DataType::Interval => {
                Ok(Bound::known(fold::negate(bound.expr)))
            }
            given => Err(Error::input(format!("a {given} has no negative"))),
        }
    }

    fn case(
        &mut self,
        operand: Option<&'q ast::Expr>,
        branches: &'q [ast::CaseWhen],
        otherwise: Option<&'q ast::Expr>,
    ) -> Result<Bound> {
        let operand = operand.map(|operand| self.expr(operand)).transpose()?;
        let mut bound = Vec::with_capacity(branches.len());
        for ast::CaseWhen { condition, result } in branches {
            let condition = match &operand {
                Some(operand) => {
                    let when = self.expr(condition)?;
                    compare(CompareOp::Eq, operand.clone(), when)
                        .map_err(|error| located(error, condition))?
                        .expr
                }
                None => self.condition(condition)?,
            };
            bound.push((condition, self.expr(result)?));
        }
        let otherwise = otherwise.map(|otherwise| self.expr(otherwise)).transpose()?;
        case(bound, otherwise)
    }

    /// `CAST(input AS ty)`
    pub(crate) fn cast(&mut self, input: Bound, ty: &ast::DataType, lenient: bool) -> Result<Bound> {
        let cast = Bound::known(fold::cast_expr(input.expr, sql_type(ty)?, lenient));
        Ok(match rounds_to(ty) {
            None => cast,
            Some(unit) => rounded(cast, unit),
        })
    }

    /// Names, fields and elements: `t.l[1].x`, `l[2:3]`, `s['x']`, `m[key]`.
    fn accesses(&mut self, root: &'q ast::Expr, chain: &'q [AccessExpr]) -> Result<Bound> {
        let is_name = |access: &&AccessExpr| matches!(access, AccessExpr::Dot(ast::Expr::Identifier(_)));
        let mut rest = chain;
        let mut of = match root {
            // Names before the first subscript are those of a column, as they are without it.
            ast::Expr::Identifier(first) => {
                let count = chain.iter().take_while(is_name).count();
                let (names, behind) = chain.split_at(count);
                rest = behind;
                let name = |access: &AccessExpr| match access {
                    AccessExpr::Dot(ast::Expr::Identifier(name)) => Some(name.clone()),
                    _ => None,
                };
                let names: Vec<Ident> =
                    std::iter::once(first.clone()).chain(names.iter().filter_map(name)).collect();
                match names.as_slice() {
                    [name] => self.name(name)?,
                    names => self.qualified_name(names)?,
                }
            }
            root => self.expr(root)?,
        };
        for access in rest {
            of = match access {
                AccessExpr::Dot(ast::Expr::Identifier(field)) => self.field(of, &field.value)?,
                AccessExpr::Dot(other) => {
                    let args = vec![of, self.expr(other)?];
                    self.call("struct_extract", args)?
                }
                AccessExpr::Subscript(Subscript::Index { index }) => {
                    let index = self.expr(index)?;
                    let name = match of.ty() {
                        DataType::Map(_) => "map_extract_value",
                        _ if index.given == Given::Text => "struct_extract",
                        _ => "list_extract",
                    };
                    self.call(name, vec![of, index])?
                }
                AccessExpr::Subscript(Subscript::Slice { lower_bound, upper_bound, stride }) => {
                    let is_backwards =
                        matches!(stride, Some(ast::Expr::UnaryOp { op: UnaryOperator::Minus, .. }));
                    let (first, last) = if is_backwards { (i64::MAX, 1) } else { (1, i64::MAX) };
                    let mut bound = |expr: &'q Option<ast::Expr>, without: i64| match expr {
                        Some(expr) => self.expr(expr),
                        None => Ok(Bound::integer(without)),
                    };
                    let mut args = vec![of, bound(lower_bound, first)?, bound(upper_bound, last)?];
                    if let Some(stride) = stride {
                        args.push(self.expr(stride)?);
                    }
                    self.call("list_slice", args)?
                }
            };
        }
        Ok(of)
    }

    /// Fields of a struct within each other.
    pub(crate) fn fields(&mut self, mut of: Bound, fields: &[Ident]) -> Result<Bound> {
        for field in fields {
            of = self.field(of, &field.value)?;
        }
        Ok(of)
    }

    fn field(&mut self, of: Bound, field: &str) -> Result<Bound> {
        self.call("struct_extract", vec![of, Bound::text(field)])
    }
}

/// The conjunction or disjunction of conditions.
pub(crate) fn connected(op: &BinaryOperator, parts: Vec<Expr>) -> Expr {
    match op {
        BinaryOperator::And => Expr::And(parts),
        _ => Expr::Or(parts),
    }
}

/// True if any of these is.
pub(crate) fn any(mut conditions: Vec<Expr>) -> Expr {
    match conditions.len() {
        0 => Expr::boolean(false),
        1 => conditions.remove(0),
        _ => Expr::Or(conditions),
    }
}

/// The value of a literal.
pub(crate) fn into_value(expr: Expr) -> Value {
    match expr {
        Expr::Literal { value, .. } => value,
        _ => Value::Null,
    }
}

/// A TIMESTAMP rounded to a unit of less than a minute, halves up: half a unit more, truncated.
fn rounded(moment: Bound, unit: DatePart) -> Bound {
    let micros = if unit == DatePart::Second { 500_000 } else { 500 };
    let half = Interval { months: 0, days: 0, micros };
    let half = Expr::literal(Value::Interval(half), DataType::Interval);
    let ty = DataType::Timestamp;
    let more = fold::arithmetic(ArithmeticOp::Add, moment.into(ty).expr, half, ty);
    Bound::known(Expr::Function { function: Function::Truncate(unit), args: vec![more], ty })
}

/// The name of a result that is an expression: as it is written.
pub(crate) fn written_name(ast: &ast::Expr) -> String {
    plain_name(plain(ast)).unwrap_or_else(|| ast.to_string())
}

/// The name of a column.
fn plain_name(ast: &ast::Expr) -> Option<String> {
    match ast {
        ast::Expr::Identifier(ident) => Some(ident.value.clone()),
        ast::Expr::CompoundIdentifier(idents) => idents.last().map(|ident| ident.value.clone()),
        _ => None,
    }
}
