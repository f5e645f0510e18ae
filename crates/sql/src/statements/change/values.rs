//! `VALUES` of an `INSERT`, column by column: each value is converted to the column's type by itself.
//!
//! The binder derives one type for each column of a `VALUES` list, and would convert `'007'` next to `7` to a
//! number. If the values of a column are not all written alike, each is cast to the type of its target
//! column, so that it does not depend on its neighbours.

use entasis_syntax::parse::parse_query;
use entasis_vector::{DataType, Result, statement};
use sqlparser::ast::{self, Expr, SelectItem, SetExpr, Value};

/// The form in which a value is written.
#[derive(PartialEq, Eq, Clone, Copy)]
enum Form {
    Integer,
    Fraction,
    Exponent,
    Text,
    Boolean,
    /// Anything else: expressions, parameters, typed literals.
    Other,
}

/// Casts the values of the column at `at` to `ty`, unless they are all written alike.
///
/// # Errors
/// Interrupted; internal, if the type has no name.
pub(super) fn settle(rows: &mut [ast::Parens<Vec<Expr>>], at: usize, ty: DataType) -> Result<()> {
    statement::check()?;
    let mut forms = rows.iter().filter_map(|row| form(&row.content[at]));
    let alike = match forms.next() {
        // As fractions of one column, they would all be shown with the same number of digits.
        Some(Form::Fraction) if ty == DataType::Varchar => false,
        Some(first) => first != Form::Other && forms.all(|form| form == first),
        None => true,
    };
    if alike || rows.len() < 2 {
        return Ok(());
    }
    let ty = named(ty)?;
    for row in rows {
        let value = std::mem::replace(&mut row.content[at], Expr::Value(Value::Null.into()));
        row.content[at] = Expr::Cast {
            kind: ast::CastKind::Cast,
            expr: Box::new(value),
            data_type: ty.clone(),
            array: false,
            format: None,
        };
    }
    Ok(())
}

/// `None` for NULL, which matches every form.
fn form(expr: &Expr) -> Option<Form> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Null => None,
            Value::Number(text, _) if text.bytes().all(|byte| byte.is_ascii_digit()) => Some(Form::Integer),
            Value::Number(text, _) if text.contains(['e', 'E']) => Some(Form::Exponent),
            Value::Number(..) => Some(Form::Fraction),
            Value::SingleQuotedString(_) => Some(Form::Text),
            Value::Boolean(_) => Some(Form::Boolean),
            _ => Some(Form::Other),
        },
        Expr::UnaryOp { op: ast::UnaryOperator::Minus | ast::UnaryOperator::Plus, expr } => form(expr),
        Expr::Nested(inner) => form(inner),
        _ => Some(Form::Other),
    }
}

/// The SQL syntax of a type.
fn named(ty: DataType) -> Result<ast::DataType> {
    let query = parse_query(&format!("SELECT CAST(NULL AS {ty})"))?;
    match &*query.body {
        SetExpr::Select(select) => match select.projection.first() {
            Some(SelectItem::UnnamedExpr(Expr::Cast { data_type, .. })) => Ok(data_type.clone()),
            _ => Err(entasis_vector::Error::internal(format!("{ty} is no name of a type"))),
        },
        _ => Err(entasis_vector::Error::internal(format!("{ty} is no name of a type"))),
    }
}
