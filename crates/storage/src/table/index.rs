//! Indexes: an index is a table (design.md 5.7). Its rows are the columns of a key and those of the layout
//! key of the table that it belongs to, laid out by the former: whoever knows the key's values finds the
//! layout key's, and by them the row.
//!
//! A unique index has no rows for keys with a NULL: these are equal to none, and nobody looks for them.
//! Whoever writes to a table writes to its indexes; storage does not know which belong together but by
//! [`crate::TableEntry::indexes`].

use super::head::Table;
use crate::definition::{Key, KeyKind, TableOptions};
use entasis_vector::Schema;
use std::sync::Arc;

/// The columns of a table that a row of its index consists of: those of the key, then those of the layout key
/// that are not among them.
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
