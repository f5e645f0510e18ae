//! `SUMMARIZE`: one row of statistics for each column of a query.
//!
//! One aggregation over the query computes everything; its only row is then laid out column by column. The
//! standard deviation is that of the sample, from the sums of x and x².

use crate::query::query;
use crate::session::Session;
use crate::values::rows::Rows;
use entasis_engine::plan::{Aggregate, AggregateCall, AggregateFunction, Node, Output, Plan, Project};
use entasis_vector::expr::{ArithmeticOp, Expr};
use entasis_vector::{DataType, Result, Value};

/// Number of figures for each column, in the order of the aggregates that compute them.
const FIGURES: usize = 6;

pub(crate) fn summarize(session: &Session, plan: Plan) -> Result<Rows> {
    let fields = plan.schema();
    let Plan { root, mut columns, output } = plan;
    let mut exprs = Vec::new();
    let mut aggregates = Vec::new();
    let mut wanted = Vec::new();
    let mut aggregate = |columns: &mut entasis_engine::plan::Columns, function, args, distinct, ty| {
        let id = columns.add("", ty, true);
        aggregates.push((id, AggregateCall { function, args, distinct, filter: None, order_by: vec![], ty }));
        wanted.push(Output { name: String::new(), column: id });
    };
    for column in &output {
        let value = columns.expr(column.column);
        let ty = value.ty();
        let number = match ty.is_numeric() {
            true => Expr::Cast { input: Box::new(value.clone()), ty: DataType::Float64, lenient: false },
            false => Expr::literal(Value::Null, DataType::Float64),
        };
        let square = Expr::Arithmetic {
            op: ArithmeticOp::Multiply,
            left: Box::new(number.clone()),
            right: Box::new(number.clone()),
            ty: DataType::Float64,
        };
        let squared = columns.add("", DataType::Float64, true);
        exprs.push((squared, square));
        let squared = columns.expr(squared);
        use AggregateFunction::{Avg, Count, Max, Min};
        aggregate(&mut columns, Min, vec![value.clone()], false, ty);
        aggregate(&mut columns, Max, vec![value.clone()], false, ty);
        aggregate(&mut columns, Count, vec![value.clone()], true, DataType::Int64);
        aggregate(&mut columns, Avg, vec![number], false, DataType::Float64);
        aggregate(&mut columns, Avg, vec![squared], false, DataType::Float64);
        aggregate(&mut columns, Count, vec![value], false, DataType::Int64);
    }
    aggregate(&mut columns, AggregateFunction::CountStar, vec![], false, DataType::Int64);

    let input = Box::new(Node::Project(Project { input: Box::new(root), exprs }));
    let root = Node::Aggregate(Aggregate { input, groups: vec![], aggregates });
    let figures = query(session, Plan { root, columns, output: wanted })?;
    let figures = figures.row_values().next().unwrap_or_default();
    let Some(Value::Integer(total)) = figures.last() else {
        return Rows::from_values(&COLUMNS, &[]);
    };

    let rows: Vec<Vec<Value>> = fields
        .iter()
        .zip(figures.chunks(FIGURES))
        .map(|(field, figures)| {
            let as_text = |value: &Value| match value {
                Value::Null => Value::Null,
                value => Value::Text(value.display(field.ty).to_string().into()),
            };
            let [min, max, distinct, mean, mean_square, count] = figures else { return vec![] };
            vec![
                Value::Text(field.name.clone()),
                Value::Text(field.ty.to_string().into()),
                as_text(min),
                as_text(max),
                distinct.clone(),
                mean.clone(),
                deviation(mean, mean_square, count),
                Value::Integer(*total),
                null_share(count, *total),
            ]
        })
        .collect();
    Rows::from_values(&COLUMNS, &rows)
}

/// The columns of the result.
pub(crate) const COLUMNS: [(&str, DataType); 9] = [
    ("column_name", DataType::Varchar),
    ("column_type", DataType::Varchar),
    ("min", DataType::Varchar),
    ("max", DataType::Varchar),
    ("distinct", DataType::Int64),
    ("avg", DataType::Float64),
    ("std", DataType::Float64),
    ("count", DataType::Int64),
    ("null_percentage", DataType::Float64),
];

/// The sample's standard deviation; NULL for fewer than two values.
fn deviation(mean: &Value, mean_square: &Value, count: &Value) -> Value {
    match (mean, mean_square, count) {
        (Value::Float(mean), Value::Float(square), Value::Integer(count)) if *count > 1 => {
            let count = *count as f64;
            let variance = (square - mean * mean).max(0.0) * count / (count - 1.0);
            Value::Float(variance.sqrt())
        }
        _ => Value::Null,
    }
}

fn null_share(count: &Value, total: i128) -> Value {
    match count {
        Value::Integer(count) if total > 0 => {
            let share = (total - count) as f64 / total as f64 * 100.0;
            Value::Float((share * 100.0).round() / 100.0)
        }
        _ => Value::Float(0.0),
    }
}
