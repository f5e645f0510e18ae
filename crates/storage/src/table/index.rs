//! Indexes. An index is a table: its columns are those of a key and what identifies a row of the table that
//! it belongs to, and it is laid out by the former. Given values of the key, it gives what finds the row.
//!
//! | the table | its rows are identified in an index by |
//! |---|---|
//! | has a layout key | the columns of the layout key |
//! | is in the order of insertion | the row number ([`ROW_NUMBER`]), which stays wherever the row goes |
//!
//! So an index never changes its table. When a transaction is replayed, the rows that it added to a table in
//! the order of insertion get other numbers, and the rows of its indexes with them
//! ([`crate::Transaction::refers_by_number`]).
//!
//! A unique index has no rows for keys with a NULL: they equal no other key, and nobody looks them up.
//! Whoever writes to a table writes to its indexes too; storage only knows which tables belong together by
//! [`crate::TableEntry::indexes`].

use super::head::Table;
use crate::definition::{Key, KeyKind, TableOptions};
use crate::scan::row;
use crate::tree::{Root, RowId};
use crate::value::Datum;
use entasis_vector::{DataType, Field, Schema};
use std::sync::Arc;

/// Among the columns of an index, the last: the row number, which is no column of the table.
pub const ROW_NUMBER: usize = usize::MAX;

/// The columns of a table that its index has: those of the key, then those of the layout key that are not
/// among them, or [`ROW_NUMBER`] if there is no layout key.
pub fn index_columns(key: &Key, options: &TableOptions) -> Vec<usize> {
    let mut columns = key.columns.clone();
    match options.layout.is_keyed() {
        true => columns.extend(options.layout_key.iter().filter(|column| !key.columns.contains(column))),
        false => columns.push(ROW_NUMBER),
    }
    columns
}

/// The type of a column of an index of a table with this schema.
pub fn index_type(column: usize, schema: &Schema) -> DataType {
    if column == ROW_NUMBER { DataType::Int64 } else { schema[column].ty }
}

/// An empty index for `key` of a table with these columns and options. `None` if the table itself is laid out
/// by the key.
pub fn index_table(key: &Key, schema: &Schema, options: &TableOptions) -> Option<Arc<Table>> {
    if options.layout_key == key.columns {
        return None;
    }
    let field = |column: usize| match column {
        ROW_NUMBER => Field { nullable: false, ..Field::new("row number", index_type(ROW_NUMBER, schema)) },
        _ => schema[column].clone(),
    };
    let columns = index_columns(key, options).into_iter().map(field).collect();
    let layout_key = (0..key.columns.len()).collect();
    let unique = key.kind != KeyKind::Index;
    Some(Table::with_options(
        key.name.as_str(),
        columns,
        TableOptions { unique, distinct: unique, ..TableOptions::keyed(layout_key) },
    ))
}

/// Appends the values that an index with these columns has of a row of its table.
pub(super) fn read<'a>(
    root: &'a Root,
    id: RowId,
    columns: &[usize],
    schema: &Schema,
    out: &mut Vec<Datum<'a>>,
) {
    match columns.split_last() {
        Some((&ROW_NUMBER, own)) => {
            row::read(root, id, own, schema, out);
            out.push(Datum::Integer(root.number_of(id).into()));
        }
        _ => row::read(root, id, columns, schema, out),
    }
}
