//! Values of rows that are checked, and how errors show them.

use entasis_storage::index::ROW_NUMBER;
use entasis_storage::{Datum, TableEntry};
use entasis_vector::{Chunk, Error, ErrorKind, Value};

/// Values of some columns of a row.
pub(crate) type Values = Vec<Value>;

/// The value of a row of a chunk.
pub(crate) fn datum(chunk: &Chunk, column: usize, row: usize) -> Datum<'_> {
    let position = chunk.positions(column).map_or(row, |positions| positions[row] as usize);
    Datum::of_vector(chunk.vector(column), position)
}

/// The values that a row of a table has in one of its indexes, which has these columns.
pub(crate) fn indexed(row: &[Value], columns: &[usize], number: u64) -> Values {
    let value = |&column: &usize| match column {
        ROW_NUMBER => Value::Integer(number.into()),
        _ => row[column].clone(),
    };
    columns.iter().map(value).collect()
}

/// The values of a row, for an error message.
pub(crate) fn shown(entry: &TableEntry, columns: &[usize], values: &[Value]) -> String {
    let schema = entry.table.schema();
    let one = |(&column, value): (&usize, &Value)| {
        let field = &schema[column];
        match value {
            Value::Text(text) => format!("{} = '{text}'", field.name),
            value => format!("{} = {}", field.name, value.display(field.ty)),
        }
    };
    columns.iter().zip(values).map(one).collect::<Vec<_>>().join(", ")
}

/// The error of a constraint of a table on these columns.
pub(crate) fn about(entry: &TableEntry, constraint: &str, columns: &[usize], text: String) -> Error {
    let error = Error::new(ErrorKind::Constraint, text).with_table(&*entry.name).with_constraint(constraint);
    match columns {
        [column] => error.with_column(&*entry.table.schema()[*column].name),
        _ => error,
    }
}
