//! Text literals where a condition stands: `WHERE 'true'`, `NOT 'f'`, `a AND 'no'`. They are BOOLEANs, as in comparisons, and the
//! binder wants them to be.

use datafusion_sql::sqlparser::ast::{BinaryOperator, CastKind, DataType, Expr, UnaryOperator, Value};

/// Makes a BOOLEAN of a condition that is a text literal.
pub(super) fn condition(expr: &mut Expr) {
    match expr {
        Expr::Nested(inner) => condition(inner),
        Expr::Value(literal) if matches!(literal.value, Value::SingleQuotedString(_)) => {
            let text = Box::new(std::mem::replace(expr, Expr::Value(Value::Null.into())));
            *expr = Expr::Cast {
                kind: CastKind::Cast,
                expr: text,
                data_type: DataType::Boolean,
                array: false,
                format: None,
            };
        }
        _ => {}
    }
}

/// Does so with the operands of AND, OR and NOT.
pub(super) fn operands(expr: &mut Expr) {
    match expr {
        Expr::BinaryOp { left, op: BinaryOperator::And | BinaryOperator::Or, right } => {
            condition(left);
            condition(right);
        }
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => condition(expr),
        _ => {}
    }
}
