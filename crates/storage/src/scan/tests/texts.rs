//! Tables with a column of texts, for tests of conditions on their codes.

use crate::table::tests::rows::insert;
use crate::{Compression, Table, TableOptions};
use entasis_vector::{DataType, Field, Value};
use std::sync::Arc;

/// 5000 texts by their number. Some are NULL, and some blocks hold one text only, or none.
pub fn rows(text: impl Fn(usize) -> String) -> Vec<Value> {
    let text = |i: usize| Value::Text(text(i).into());
    let row = |i: usize| match i {
        1024..2048 => text(1),
        2048..3072 => Value::Null,
        i if i % 11 == 5 && i > 3072 => Value::Null,
        i => text(i),
    };
    (0..5000).map(row).collect()
}

/// A table of texts, behind their numbers, with these options but for the compression.
pub fn table(rows: &[Value], compression: Compression, options: TableOptions) -> Arc<Table> {
    let number = Field { nullable: false, ..Field::new("k", DataType::Int64) };
    let schema = vec![number, Field::new("a", DataType::Varchar)];
    let table = Table::with_options("t", schema, TableOptions { compression, ..options });
    let rows: Vec<Vec<Value>> =
        rows.iter().enumerate().map(|(i, v)| vec![Value::Integer(i as i128), v.clone()]).collect();
    insert(&table, &rows, false);
    table
}
