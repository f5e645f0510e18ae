//! `VALUES` of an `INSERT`, column by column: each value is one of its column's type by itself.
//!
//! The binder finds one type for each column of a `VALUES` list, and would make a number of `'007'` beside
//! `7`. Where the values of a column are not all written alike, each is cast to the column that it goes to,
//! so that none has to do with its neighbours.

use crate::syntax::parse::parse_query;
use datafusion_sql::sqlparser::ast::{self, Expr, SelectItem, SetExpr, Value};
use entasis_vector::{DataType, Result};

/// How a value is written.
#[derive(PartialEq, Eq, Clone, Copy)]
enum Form {
    Integer,
    Fraction,
    Exponent,
    Text,
    Boolean,
    /// Whatever else: expressions, parameters, typed literals.
    Other,
}

/// Casts the values of the column at `at` to `ty`, unless they are all written alike.
///
/// # Errors
/// Internal, if the type has no name.
pub(super) fn settle(rows: &mut [ast::Parens<Vec<Expr>>], at: usize, ty: DataType) -> Result<()> {
    let mut forms = rows.iter().filter_map(|row| form(&row.content[at]));
    let alike = match forms.next() {
        // Fractions of one column would be shown with as many digits each.
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

/// `None` for NULL, which goes with all others.
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

/// The type as SQL names it.
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
