//! Text literals have no type of their own: among values of another type, they get that type.
//!
//! ```text
//! CASE WHEN a THEN '5' ELSE 6 END     ⇒  CASE WHEN a THEN 5 ELSE 6 END
//! coalesce(DATE '2020-01-01', '2021') ⇒  coalesce(DATE '2020-01-01', CAST('2021' AS DATE))
//! SELECT 'true' UNION SELECT false    ⇒  SELECT CAST('true' AS BOOLEAN) UNION …
//! ```
//!
//! This applies to the results of a `CASE`, the arguments of functions that return one of them, the rows of
//! `VALUES` and the lists of set operations. Here it is done if the type is written in the statement; if it
//! is that of a column, it is done when types are coerced (`crate::binding::coerce`). For that, a `CASE`
//! whose first result is a literal gets another branch before it that is never taken, so that the binder sees
//! the type of the others first.

use entasis_syntax::walk::WalkMut;
use sqlparser::ast::{
    BinaryOperator, CaseWhen, CastKind, DataType, Expr, FunctionArg, FunctionArgExpr, FunctionArguments,
    Ident, Query, SelectItem, SetExpr, UnaryOperator, Value, VisitMut, VisitorMut,
};
use std::convert::Infallible;
use std::ops::ControlFlow;

/// Gives types to the literals of a statement.
pub(super) fn apply<S: VisitMut>(statement: &mut S) {
    let _ = statement.walk_mut(&mut Literals);
}

/// Functions that return one of their arguments, and the number of the first such argument.
const UNIFYING: [(&str, usize); 7] =
    [("coalesce", 0), ("ifnull", 0), ("nvl", 0), ("greatest", 0), ("least", 0), ("if", 1), ("nvl2", 1)];

struct Literals;

impl VisitorMut for Literals {
    type Break = Infallible;

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        match &mut *query.body {
            SetExpr::Values(values) => {
                let mut rows: Vec<&mut Vec<Expr>> =
                    values.rows.iter_mut().map(|row| &mut row.content).collect();
                let width = rows.iter().map(|row| row.len()).min().unwrap_or(0);
                for column in 0..width {
                    settle(rows.iter_mut().map(|row| &mut row[column]).collect());
                }
            }
            body @ SetExpr::SetOperation { .. } => lists(body),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        match expr {
            Expr::Case { conditions, else_result, .. } => {
                let results = conditions.iter_mut().map(|when| &mut when.result);
                settle(results.chain(else_result.as_deref_mut()).collect());
                show_type(conditions, else_result.as_deref());
            }
            Expr::Function(function) => {
                let name = function.name.to_string().to_ascii_lowercase();
                if let Some((_, first)) = UNIFYING.iter().find(|(own, _)| *own == name)
                    && let FunctionArguments::List(list) = &mut function.args
                {
                    let args = list.args.iter_mut().skip(*first).filter_map(|arg| match arg {
                        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
                        _ => None,
                    });
                    settle(args.collect());
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Gives types to the literals in the lists of a set operation, column by column.
fn lists(body: &mut SetExpr) {
    let mut arms = Vec::new();
    collect(body, &mut arms);
    let width = arms.iter().map(|arm| arm.len()).min().unwrap_or(0);
    for column in 0..width {
        let exprs: Option<Vec<&mut Expr>> = arms.iter_mut().map(|arm| expr_of(&mut arm[column])).collect();
        settle(exprs.unwrap_or_default());
    }
    // A column is named as it was written.
    fn collect<'a>(body: &'a mut SetExpr, arms: &mut Vec<&'a mut [SelectItem]>) {
        match body {
            SetExpr::Select(select) => {
                for item in &mut select.projection {
                    if let SelectItem::UnnamedExpr(expr) = item
                        && text_of(expr).is_some()
                    {
                        let alias = Ident::with_quote('"', expr.to_string());
                        let expr = std::mem::replace(expr, Expr::Value(Value::Null.into()));
                        *item = SelectItem::ExprWithAlias { expr, alias };
                    }
                }
                arms.push(&mut select.projection);
            }
            SetExpr::SetOperation { left, right, .. } => {
                collect(left, arms);
                collect(right, arms);
            }
            SetExpr::Query(query) => collect(&mut query.body, arms),
            _ => {}
        }
    }
}

fn expr_of(item: &mut SelectItem) -> Option<&mut Expr> {
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    }
}

/// The type of an expression, as far as its text shows it.
#[derive(Clone)]
enum Written {
    /// An integer or a fraction in digits, or an expression of such numbers.
    Number,
    /// A type by its name.
    Named(DataType),
}

/// Gives the text literals among `exprs` the type that others have by their text.
fn settle(exprs: Vec<&mut Expr>) {
    if !exprs.iter().any(|expr| text_of(expr).is_some()) {
        return;
    }
    let Some(ty) = exprs.iter().find_map(|expr| written(expr)) else { return };
    if matches!(&ty, Written::Named(ty) if is_text(ty)) {
        return;
    }
    for expr in exprs {
        let Some(text) = text_of(expr) else { continue };
        // Numbers keep all of their digits.
        if matches!(
            &ty,
            Written::Number | Written::Named(DataType::Decimal(_) | DataType::Numeric(_) | DataType::Dec(_))
        ) && let Some(number) = number(text.trim())
        {
            *expr = number;
            continue;
        }
        let ty = match &ty {
            Written::Number => DataType::BigInt(None),
            Written::Named(ty) => ty.clone(),
        };
        let literal = Box::new(std::mem::replace(expr, Expr::Value(Value::Null.into())));
        *expr = Expr::Cast { kind: CastKind::Cast, expr: literal, data_type: ty, array: false, format: None };
    }
}

/// The text of a literal.
fn text_of(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Nested(inner) => text_of(inner),
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

/// The number that a text represents, if it consists of digits with at most one decimal point.
fn number(text: &str) -> Option<Expr> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let is_number = digits.bytes().any(|byte| byte.is_ascii_digit())
        && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        && digits.bytes().filter(|byte| *byte == b'.').count() <= 1;
    let number = is_number.then(|| Expr::Value(Value::Number(digits.to_owned(), false).into()))?;
    Some(match is_negative {
        true => Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(number) },
        false => number,
    })
}

fn written(expr: &Expr) -> Option<Written> {
    use BinaryOperator as Op;
    let boolean = Some(Written::Named(DataType::Boolean));
    match expr {
        Expr::Nested(inner) => written(inner),
        Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr } => written(expr),
        Expr::UnaryOp { op: UnaryOperator::Not, .. } => boolean,
        Expr::Value(value) => match &value.value {
            Value::Number(..) => Some(Written::Number),
            Value::Boolean(_) => boolean,
            _ => None,
        },
        Expr::TypedString(typed) => Some(Written::Named(typed.data_type.clone())),
        Expr::Cast { data_type, .. } => Some(Written::Named(data_type.clone())),
        Expr::Interval(_) => Some(Written::Named(DataType::Interval { fields: None, precision: None })),
        Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsTrue(_)
        | Expr::IsNotTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsNotFalse(_)
        | Expr::IsDistinctFrom(..)
        | Expr::IsNotDistinctFrom(..)
        | Expr::InList { .. }
        | Expr::InSubquery { .. }
        | Expr::Between { .. }
        | Expr::Like { .. }
        | Expr::ILike { .. }
        | Expr::SimilarTo { .. }
        | Expr::Exists { .. }
        | Expr::AnyOp { .. }
        | Expr::AllOp { .. } => boolean,
        Expr::BinaryOp { left, op, right } => match op {
            Op::Eq | Op::NotEq | Op::Lt | Op::LtEq | Op::Gt | Op::GtEq | Op::And | Op::Or => boolean,
            Op::Plus | Op::Minus | Op::Multiply | Op::Modulo => match (written(left)?, written(right)?) {
                (Written::Number, Written::Number) => Some(Written::Number),
                _ => None,
            },
            _ => None,
        },
        Expr::Case { conditions, else_result, .. } => {
            let results = conditions.iter().map(|when| &when.result);
            results.chain(else_result.as_deref()).find_map(written)
        }
        _ => None,
    }
}

fn is_text(ty: &DataType) -> bool {
    matches!(
        ty,
        DataType::Varchar(_)
            | DataType::Text
            | DataType::String(_)
            | DataType::Char(_)
            | DataType::Character(_)
            | DataType::CharacterVarying(_)
            | DataType::CharVarying(_)
            | DataType::Nvarchar(_)
    )
}

/// Adds a branch with a column before the results of a `CASE`, if the first of them that is not NULL is a
/// literal.
fn show_type(conditions: &mut Vec<CaseWhen>, else_result: Option<&Expr>) {
    let mut results = conditions.iter().map(|when| &when.result).chain(else_result);
    let is_null = |expr: &&Expr| matches!(expr, Expr::Value(value) if value.value == Value::Null);
    if results.clone().find(|expr| !is_null(expr)).is_none_or(|first| text_of(first).is_none()) {
        return;
    }
    let column = results.find(|expr| matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_)));
    if let Some(column) = column.cloned() {
        let condition = Expr::Value(Value::Null.into());
        conditions.insert(0, CaseWhen { condition, result: column });
    }
}
