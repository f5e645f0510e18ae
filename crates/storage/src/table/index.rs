//! Indexes. An index is a table: its columns are those of a key and those of the layout key of the table that
//! it belongs to, and it is laid out by the former. Given values of the key, it gives values of the layout
//! key, and these find the row.
//!
//! A unique index has no rows for keys with a NULL: they equal no other key, and nobody looks them up.
//! Whoever writes to a table writes to its indexes too; storage only knows which tables belong together by
//! [`crate::TableEntry::indexes`].

use super::head::Table;
use crate::definition::{Key, KeyKind, TableOptions};
use entasis_vector::Schema;
use std::sync::Arc;

/// The columns of a table that its index has: those of the key, then those of the layout key that are not
/// among them.
pub fn index_columns(key: &Key, options: &TableOptions) -> Vec<usize> {
    let others = options.layout_key.iter().filter(|column| !key.columns.contains(column));
    key.columns.iter().chain(others).copied().collect()
}

/// An empty index for `key` of a table with these columns and options. `None` if the table itself is laid out
/// by the key.
pub fn index_table(key: &Key, schema: &Schema, options: &TableOptions) -> Option<Arc<Table>> {
    if options.layout_key == key.columns {
        return None;
    }
    let columns: Schema = index_columns(key, options).iter().map(|&column| schema[column].clone()).collect();
    let layout_key = (0..key.columns.len()).collect();
    let unique = key.kind != KeyKind::Index;
    Some(Table::with_options(
        key.name.as_str(),
        columns,
        TableOptions { unique, distinct: unique, ..TableOptions::keyed(layout_key) },
    ))
}
