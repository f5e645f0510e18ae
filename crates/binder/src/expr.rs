//! Expressions: the parser's to the engine's.

use crate::binder::{Binder, located};
use crate::bound::Bound;
use crate::literal::{negated, plain, text_of};
use crate::operator::{case, compare, condition, like, unified};
use crate::rowvalue;
use entasis_functions::expressions::fold;
use entasis_functions::types::{Given, Meeting};
use entasis_syntax::clauses;
use entasis_syntax::types::{rounds_to, sql_type};
use entasis_vector::expr::{ArithmeticOp, CompareOp, DatePart, Expr, Function};
use entasis_vector::{DataType, Error, Interval, Result, Value, statement};
use sqlparser::ast::{
    self, AccessExpr, BinaryOperator, CastKind, DateTimeField, Ident, Subscript, TrimWhereField,
    UnaryOperator,
};

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
        let test = |expr| Ok(Bound::known(expr));
        let not = |bound: Bound, negated: bool| match negated {
            true => Bound::known(Expr::Not(Box::new(bound.expr))),
            false => bound,
        };
        match ast {
            Sql::Identifier(ident) => self.name(ident),
            Sql::CompoundIdentifier(idents) => self.qualified_name(idents),
            Sql::CompoundFieldAccess { root, access_chain } => self.accesses(root, access_chain),
            Sql::Value(value) => self.literal(&value.value),
            Sql::Nested(inner) => self.expr(inner),
            Sql::BinaryOp { .. } => self.binary(ast),
            Sql::UnaryOp { op, expr } => self.unary(op, expr),
            Sql::IsNull(input) | Sql::IsNotNull(input) => {
                let negated = matches!(ast, Sql::IsNotNull(_));
                if let Some(parts) = rowvalue::parts(input) {
                    return self.row_is_null(&parts, negated);
                }
                let input = Box::new(self.expr(input)?.expr);
                let is_null = Bound::known(Expr::IsNull(input));
                Ok(not(is_null, negated))
            }
            Sql::IsUnknown(input) | Sql::IsNotUnknown(input) => {
                let input = Box::new(self.condition(input)?);
                Ok(not(Bound::known(Expr::IsNull(input)), matches!(ast, Sql::IsNotUnknown(_))))
            }
            Sql::IsTrue(input) | Sql::IsFalse(input) | Sql::IsNotTrue(input) | Sql::IsNotFalse(input) => {
                let op = match ast {
                    Sql::IsTrue(_) | Sql::IsFalse(_) => CompareOp::NotDistinctFrom,
                    _ => CompareOp::DistinctFrom,
                };
                let value = Expr::boolean(matches!(ast, Sql::IsTrue(_) | Sql::IsNotTrue(_)));
                test(Expr::compare(op, self.condition(input)?, value))
            }
            Sql::IsDistinctFrom(left, right) => self.is_distinct(left, right, CompareOp::DistinctFrom),
            Sql::IsNotDistinctFrom(left, right) => self.is_distinct(left, right, CompareOp::NotDistinctFrom),
            Sql::Between { expr, negated, low, high } => self.between(expr, low, high, *negated),
            Sql::Like { negated, expr, pattern, escape_char, .. }
            | Sql::ILike { negated, expr, pattern, escape_char, .. } => {
                clauses::expression(ast)?;
                let (input, pattern) = (self.expr(expr)?, self.expr(pattern)?);
                let escape = escape_of(escape_char.as_ref().map(|value| &value.value))?;
                let matched = like(input, pattern, escape, matches!(ast, Sql::ILike { .. }))?;
                Ok(not(Bound::known(matched), *negated))
            }
            Sql::SimilarTo { negated, expr, pattern, escape_char } => {
                let mut args = vec![self.expr(pattern)?];
                if let Some(escape) = escape_char {
                    args.push(self.literal(&escape.value)?);
                }
                let input = self.expr(expr)?;
                let pattern = self.call("similar_to_escape", args)?;
                Ok(not(Bound::known(self.regex(input, pattern, None)?), *negated))
            }
            Sql::InList { expr, list, negated } => self.in_list(expr, list, *negated),
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
            Sql::TypedString(typed) => match text_of(&typed.value.value) {
                Some(text) => self.cast(Bound::text(text), &typed.data_type, false),
                None => Err(Error::not_supported(format!("the literal {typed}"))),
            },
            Sql::Interval(interval) => self.interval(interval),
            Sql::AtTimeZone { timestamp, time_zone } => {
                let args = vec![self.expr(time_zone)?, self.expr(timestamp)?];
                self.call("timezone", args)
            }
            Sql::Extract { field, expr, .. } => {
                let field = match field {
                    DateTimeField::Custom(field) => field.value.clone(),
                    field => field.to_string(),
                };
                let args = vec![Bound::text(field.trim_matches('\'')), self.expr(expr)?];
                self.call("date_part", args)
            }
            Sql::Ceil { expr, .. } => {
                clauses::expression(ast)?;
                let args = vec![self.expr(expr)?];
                self.call("ceil", args)
            }
            Sql::Floor { expr, .. } => {
                clauses::expression(ast)?;
                let args = vec![self.expr(expr)?];
                self.call("floor", args)
            }
            Sql::Position { expr, r#in } => {
                let args = vec![self.expr(r#in)?, self.expr(expr)?];
                self.call("strpos", args)
            }
            Sql::Substring { expr, substring_from, substring_for, .. } => {
                clauses::expression(ast)?;
                let mut args = vec![self.expr(expr)?];
                match substring_from {
                    Some(from) => args.push(self.expr(from)?),
                    None => args.push(Bound::integer(1)),
                }
                if let Some(count) = substring_for {
                    args.push(self.expr(count)?);
                }
                self.call("substring", args)
            }
            Sql::Trim { trim_where, trim_what, expr, trim_characters } => {
                let name = match trim_where {
                    Some(TrimWhereField::Leading) => "ltrim",
                    Some(TrimWhereField::Trailing) => "rtrim",
                    Some(TrimWhereField::Both) | None => "btrim",
                };
                let mut args = vec![self.expr(expr)?];
                for what in trim_what.as_deref().into_iter().chain(trim_characters.iter().flatten()) {
                    args.push(self.expr(what)?);
                }
                self.call(name, args)
            }
            Sql::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
                let parts = [Some(expr), Some(overlay_what), Some(overlay_from), overlay_for.as_ref()];
                let args = parts.into_iter().flatten().map(|part| self.expr(part));
                let args = args.collect::<Result<_>>()?;
                self.call("overlay", args)
            }
            Sql::Array(array) => {
                let args = array.elem.iter().map(|element| self.expr(element)).collect::<Result<_>>()?;
                self.call("list_value", args)
            }
            Sql::Dictionary(fields) => {
                let mut args = Vec::with_capacity(2 * fields.len());
                for field in fields {
                    args.push(Bound::text(&field.key.value));
                    args.push(self.expr(&field.value)?);
                }
                self.call("named_struct", args)
            }
            Sql::Function(function) => self.function(function),
            Sql::Tuple(_) => {
                Err(Error::not_supported("row values other than in comparisons, IN and IS NULL"))
            }
            Sql::Rollup(_) | Sql::Cube(_) | Sql::GroupingSets(_) => {
                Err(Error::not_supported("sets of keys outside of GROUP BY"))
            }
            Sql::Map(map) => {
                let mut list = |part: fn(&ast::MapEntry) -> &ast::Expr| {
                    let parts = map.entries.iter().map(|entry| self.expr(part(entry)));
                    let parts = parts.collect::<Result<_>>()?;
                    self.call("list_value", parts)
                };
                let args = vec![list(|entry| &entry.key)?, list(|entry| &entry.value)?];
                self.call("map", args)
            }
            Sql::Struct { .. } => {
                Err(Error::not_supported("STRUCT(…)").with_hint("write {'name': value, …}"))
            }
            Sql::Lambda(_) => Err(Error::not_supported("lambda functions")),
            other => {
                clauses::expression(other)?;
                Err(Error::not_supported(format!("the expression {other}")))
            }
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

    /// `left IS [NOT] DISTINCT FROM right`. The parser takes all that follows for the right side: `a IS
    /// DISTINCT FROM b AND c` is `(a IS DISTINCT FROM b) AND c`.
    fn is_distinct(&mut self, left: &'q ast::Expr, right: &'q ast::Expr, op: CompareOp) -> Result<Bound> {
        if let ast::Expr::BinaryOp {
            left: inner,
            op: connective @ (BinaryOperator::And | BinaryOperator::Or),
            right: rest,
        } = right
        {
            let first = self.is_distinct(left, inner, op)?.expr;
            return Ok(Bound::known(connected(connective, vec![first, self.condition(rest)?])));
        }
        match (rowvalue::parts(left), rowvalue::parts(right)) {
            (Some(left), Some(right)) => self.distinct_rows(&left, &right, op),
            (Some(row), None) => Err(rowvalue::no_row(right, row.len())),
            (None, Some(row)) => Err(rowvalue::no_row(left, row.len())),
            (None, None) => {
                let (left, right) = (self.expr(left)?, self.expr(right)?);
                compare(op, left, right)
            }
        }
    }

    fn between(
        &mut self,
        input: &'q ast::Expr,
        low: &'q ast::Expr,
        high: &'q ast::Expr,
        negated: bool,
    ) -> Result<Bound> {
        if let Some(own) = rowvalue::parts(input) {
            return self.between_rows(&own, low, high, negated);
        }
        let [input, low, high] = [input, low, high].map(|part| self.expr(part));
        let parts = vec![input?, low?, high?];
        let refused = {
            let [value, low, high] = [&parts[0], &parts[1], &parts[2]].map(|part| part.given);
            format!("{value} is not BETWEEN {low} AND {high}")
        };
        let parts = unified(parts, Meeting::Strict, "BETWEEN").map_err(|_| {
            Error::input(refused).with_hint("compare values of one type: CAST(value AS type)")
        })?;
        let within = match parts.0.as_slice() {
            [input, low, high] => Expr::And(vec![
                Expr::compare(CompareOp::GtEq, input.clone(), low.clone()),
                Expr::compare(CompareOp::LtEq, input.clone(), high.clone()),
            ]),
            _ => return Err(Error::internal("BETWEEN without its bounds")),
        };
        Ok(Bound::known(if negated { Expr::Not(Box::new(within)) } else { within }))
    }

    fn in_list(&mut self, input: &'q ast::Expr, list: &'q [ast::Expr], negated: bool) -> Result<Bound> {
        if let Some(own) = rowvalue::parts(input) {
            return self.row_in_list(&own, list, negated);
        }
        let mut bounds = Vec::with_capacity(list.len() + 1);
        bounds.push(self.expr(input)?);
        for item in list {
            bounds.push(self.expr(item)?);
        }
        if list.is_empty() {
            return Ok(Bound::known(Expr::boolean(negated)));
        }
        let (mut exprs, ty) = unified(bounds, Meeting::Equality, "IN")?;
        let input = exprs.remove(0);
        let found =
            match exprs.iter().all(|item| matches!(item, Expr::Literal { .. })) && ty != DataType::Null {
                true => in_values(input, exprs.into_iter().map(into_value).collect()),
                false => {
                    let equal = |item| Expr::compare(CompareOp::Eq, input.clone(), item);
                    any(exprs.into_iter().map(equal).collect())
                }
            };
        Ok(Bound::known(if negated { Expr::Not(Box::new(found)) } else { found }))
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
    match <[Value; 1]>::try_from(values) {
        Ok([value]) if !value.is_null() => {
            let ty = input.ty();
            Expr::compare(CompareOp::Eq, input, Expr::literal(value, ty))
        }
        Ok([value]) => Expr::InList { input: Box::new(input), list: vec![value] },
        Err(list) => Expr::InList { input: Box::new(input), list },
    }
}

/// The escape character of LIKE; an empty text turns it off.
fn escape_of(value: Option<&ast::Value>) -> Result<Option<char>> {
    let Some(value) = value else { return Ok(None) };
    let wrong = || Error::input(format!("the escape of LIKE is one character, not {value}"));
    let mut text = text_of(value).ok_or_else(wrong)?.chars();
    match (text.next(), text.next()) {
        (Some(escape), None) => Ok(Some(escape)),
        _ => Err(wrong()),
    }
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
