//! Catalog entries of tables: new entries, and changed ones with other declarations.

use crate::transaction::TransactionContext;
use entasis_engine::relation::{Curve, Definition, LayoutName};
use entasis_storage::index::index_table;
use entasis_storage::{CURVE_COLUMNS, Table, TableEntry, TableOptions, is_temporary};
use entasis_vector::{Error, Result, Schema};
use std::sync::Arc;

/// A table with its indexes, all empty.
pub(super) fn new_entry(name: &str, columns: Schema, definition: Definition) -> Result<Arc<TableEntry>> {
    let options = options_of(&definition, &columns)?;
    let table = Table::with_options(name, columns, options);
    let indexes =
        definition.keys.iter().map(|key| index_table(key, table.schema(), table.options())).collect();
    Ok(Arc::new(TableEntry { name: name.to_owned(), table, definition: Arc::new(definition), indexes }))
}

/// A table with other keys: it keeps its rows, and those indexes that the new keys have as well. Also returns
/// the numbers of its new keys, whose indexes are empty.
pub(super) fn with_keys(entry: &TableEntry, definition: Definition) -> (Arc<TableEntry>, Vec<usize>) {
    let table = &entry.table;
    let mut new = Vec::new();
    let indexes = definition.keys.iter().enumerate().map(|(number, key)| {
        match entry.definition.keys.iter().position(|old| old == key) {
            Some(old) => entry.indexes[old].clone(),
            None => {
                new.push(number);
                index_table(key, table.schema(), table.options())
            }
        }
    });
    let indexes = indexes.collect();
    let (name, table) = (entry.name.clone(), table.clone());
    (Arc::new(TableEntry { name, table, definition: Arc::new(definition), indexes }), new)
}

/// The layout of a table.
pub(super) fn options_of(definition: &Definition, columns: &Schema) -> Result<TableOptions> {
    let options = TableOptions::of(definition, columns);
    if let (Some(Some(curve)), None) = (definition.layout.curve, options.curve) {
        return Err(has_no_space(curve));
    }
    if options.layout.is_keyed() {
        return Ok(options);
    }
    if !matches!(definition.layout.layout, None | Some(LayoutName::Auto | LayoutName::Insertion)) {
        let error = Error::input("this layout orders rows by a key, and the table has none");
        return Err(error.with_hint("declare a PRIMARY KEY, or name columns: WITH (layout_key = (…))"));
    }
    Ok(options)
}

/// The error that a curve does not go through the columns of a layout key.
fn has_no_space(curve: Curve) -> Error {
    let (space, name) = (CURVE_COLUMNS, curve.name());
    let (least, most) = (space.start(), space.end());
    let text = format!("layout_curve = '{name}' needs a layout key of {least} to {most} columns");
    Error::input(text).with_hint("name columns: layout_key = (a, b); or take it back: layout_curve = none")
}

/// Leaves the rows of a table in the order of insertion if they are in it, whatever unique keys the table
/// gets: an index never changes the table. A primary key does, unless the layout is declared.
pub(super) fn keep_order(entry: &TableEntry, definition: &mut Definition) {
    let layout = &definition.layout;
    let is_chosen = layout.key.is_none() && matches!(layout.layout, None | Some(LayoutName::Auto));
    let is_ordered = !entry.table.options().layout.is_keyed();
    let has_unique = definition.primary_key().is_none() && definition.unique_keys().next().is_some();
    if is_ordered && is_chosen && has_unique {
        definition.layout.layout = Some(LayoutName::Insertion);
    }
}

/// The same table with another definition.
pub(super) fn redefined(entry: &TableEntry, definition: Definition) -> Arc<TableEntry> {
    let TableEntry { name, table, indexes, .. } = entry;
    let (name, table, indexes) = (name.clone(), table.clone(), indexes.clone());
    Arc::new(TableEntry { name, table, definition: Arc::new(definition), indexes })
}

/// Refuses index names that are taken: each index needs a name of its own.
pub(super) fn refuse_taken_indexes(transaction: &TransactionContext, entry: &TableEntry) -> Result<()> {
    for key in &entry.definition.keys {
        let is_other = |other: &&Arc<TableEntry>| !other.name.eq_ignore_ascii_case(&entry.name);
        let mut owners = transaction.names.tables_with_index(&key.name, is_temporary(&entry.name));
        if let Some(owner) = owners.find(is_other) {
            let text = format!("an index named \"{}\" already exists, on table {}", key.name, owner.name);
            return Err(
                Error::input(text).with_hint("keys have indexes, whose names are those of their constraints")
            );
        }
    }
    Ok(())
}
