//! Decides whether two results are the same.
//!
//! Exact values must be equal. Floats may differ in the last digits, because sums are computed in another
//! order under other settings: 1e-9 relative, or 1e-6 for `REAL`, whose sums have fewer digits. If no order
//! is defined, the rows are compared as multisets: both sides are sorted, by exact columns first, so that
//! floats that almost agree are compared with each other.

use entasis_vector::{DataType, Value};
use std::cmp::Ordering;

/// A result for comparison: types and rows.
#[derive(Debug, Clone)]
pub struct Rows {
    /// Types of the columns.
    pub types: Vec<DataType>,
    /// The rows.
    pub rows: Vec<Vec<Value>>,
}

/// True if two values of type `ty` are the same in the sense above.
pub fn same_value(a: &Value, b: &Value, ty: DataType) -> bool {
    match (a, b) {
        (Value::Float(a), Value::Float(b)) if a.is_finite() && b.is_finite() => {
            let tolerance = if ty == DataType::Float32 { 1e-6 } else { 1e-9 };
            (a - b).abs() <= tolerance * a.abs().max(b.abs()).max(1e-6)
        }
        _ => a == b,
    }
}

/// Describes how `found` differs from `expected`; `None` if it does not. If `ordered`, the rows must also be
/// in the order of `expected`.
pub fn difference(expected: &Rows, found: &Rows, ordered: bool) -> Option<String> {
    if expected.types != found.types {
        return Some(format!("types {:?}, expected {:?}", found.types, expected.types));
    }
    if expected.rows.len() != found.rows.len() {
        let count = format!("{} rows, expected {}", found.rows.len(), expected.rows.len());
        return Some(format!("{count}\nexpected:\n{}\nfound:\n{}", text(expected), text(found)));
    }
    let (mut expected, mut found) = (expected.clone(), found.clone());
    if !ordered {
        sort(&mut expected);
        sort(&mut found);
    }
    for (i, (e, f)) in expected.rows.iter().zip(&found.rows).enumerate() {
        let same = e.iter().zip(f).zip(&expected.types).all(|((e, f), ty)| same_value(e, f, *ty));
        if !same || e.len() != f.len() {
            let order = if ordered { "" } else { " (sorted)" };
            return Some(format!(
                "row {i}{order} is\n  {}, expected\n  {}\nexpected:\n{}\nfound:\n{}",
                line(f, &found.types),
                line(e, &expected.types),
                text(&expected),
                text(&found)
            ));
        }
    }
    None
}

fn sort(rows: &mut Rows) {
    let floats: Vec<bool> = rows.types.iter().map(|ty| ty.is_float()).collect();
    let by = |a: &Vec<Value>, b: &Vec<Value>, float: bool| -> Ordering {
        let chosen = floats.iter().enumerate().filter(|(_, is_float)| **is_float == float);
        chosen.map(|(i, _)| a[i].total_cmp(&b[i])).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    };
    rows.rows.sort_by(|a, b| by(a, b, false).then_with(|| by(a, b, true)));
}

fn line(row: &[Value], types: &[DataType]) -> String {
    let cells: Vec<String> =
        row.iter().zip(types).map(|(value, ty)| value.display(*ty).to_string()).collect();
    cells.join(" | ")
}

/// At most twenty rows as text, for messages.
pub fn text(rows: &Rows) -> String {
    let mut lines: Vec<String> =
        rows.rows.iter().take(20).map(|row| format!("  {}", line(row, &rows.types))).collect();
    if rows.rows.len() > 20 {
        lines.push(format!("  … {} more", rows.rows.len() - 20));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(values: &[(i128, f64)]) -> Rows {
        let rows = values.iter().map(|(i, f)| vec![Value::Integer(*i), Value::Float(*f)]).collect();
        Rows { types: vec![DataType::Int32, DataType::Float64], rows }
    }

    #[test]
    fn multisets_forgive_order_and_the_last_digits_only() {
        let expected = rows(&[(1, 0.1 + 0.2), (2, 5.0)]);
        assert_eq!(difference(&expected, &rows(&[(2, 5.0), (1, 0.3)]), false), None);
        assert!(difference(&expected, &rows(&[(2, 5.0), (1, 0.3)]), true).is_some());
        assert!(difference(&expected, &rows(&[(2, 5.0), (1, 0.300001)]), false).is_some());
        assert!(difference(&expected, &rows(&[(2, 5.0), (2, 5.0)]), false).is_some());
        assert!(difference(&expected, &rows(&[(2, 5.0)]), false).is_some());
    }
}
