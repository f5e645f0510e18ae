//! `CREATE`: new tables, and the sequences of their identity columns, which may replace existing ones.

use super::entry::refuse_taken_indexes;
use super::views::Views;
use super::{references, remove};
use crate::layouts::sla_note;
use crate::session::Session;
use crate::transaction::TransactionContext;
use entasis_engine::relation::{ColumnDefault, Definition, LayoutChoice, LayoutName};
use entasis_sql::SequenceOptions;
use entasis_storage::sequence::Counting;
use entasis_storage::{CatalogVersion, Entry, IfExists, TableEntry};
use entasis_vector::{DataType, Error, Field, Result};
use std::sync::Arc;

/// A note about what the table's layout does not do as requested.
pub(super) fn layout_note(layout: &LayoutChoice) -> Option<String> {
    let is_casper = layout.layout == Some(LayoutName::Casper);
    sla_note(layout).or_else(|| {
        is_casper.then(|| {
            "layout 'casper': ghosts go where rows are inserted; its partitions are all of one size, as no \
             operation pays for their number (EXPLAIN LAYOUT shows what they cost)"
                .to_owned()
        })
    })
}

/// What to do with an existing object of the same name.
pub(super) fn taken(if_not_exists: bool, or_replace: bool) -> IfExists {
    match (if_not_exists, or_replace) {
        (true, _) => IfExists::Keep,
        (_, true) => IfExists::Replace,
        _ => IfExists::Fail,
    }
}

/// How a sequence counts.
pub(super) fn counting(options: SequenceOptions) -> Counting {
    let SequenceOptions { start, increment, min, max, cycle } = options;
    Counting { start, increment, min, max, cycle }
}

/// A column of `CREATE TABLE AS`: it is not NOT NULL just because the query has no NULLs.
pub(super) fn nullable(mut field: Field) -> Field {
    field.nullable = true;
    if field.ty == DataType::Null {
        field.ty = DataType::Int32;
    }
    field
}

/// Names the sequences of identity columns: as requested, or by the next free names.
pub(super) fn name_sequences(
    names: &CatalogVersion,
    table: &str,
    definition: &mut Definition,
    sequences: Vec<(String, SequenceOptions)>,
) -> Vec<(String, SequenceOptions)> {
    let mut named: Vec<(String, SequenceOptions)> = Vec::new();
    for (wanted, options) in sequences {
        let numbered = (1..).map(|number| format!("{wanted}{number}"));
        let is_free = |name: &String| {
            names.get(name).is_none() && name != table && named.iter().all(|(taken, _)| taken != name)
        };
        let name =
            std::iter::once(wanted.clone()).chain(numbered).find(is_free).unwrap_or_else(|| wanted.clone());
        for default in &mut definition.defaults {
            if let ColumnDefault::Identity { sequence, .. } = default
                && *sequence == wanted
            {
                sequence.clone_from(&name);
            }
        }
        named.push((name, options));
    }
    named
}

/// Drops a table that is to be replaced, with its sequences. Views that need it must be checked afterwards.
pub(super) fn replace(
    session: &Session,
    transaction: &mut TransactionContext,
    name: &str,
    or_replace: bool,
) -> Result<Views> {
    let views = Views::of(session, transaction, name)?;
    if let (true, Some(old)) = (or_replace, transaction.names.table(name).cloned()) {
        references::refuse_referred(transaction, &old, &[])?;
        transaction.relies_on(&old);
        transaction.names.remove(&old.name, "table")?;
        references::renew_parents(transaction, &old.definition, &Definition::default(), name)?;
        remove::identities(session, transaction, old.definition.identities(), false)?;
    }
    Ok(views)
}

/// Adds a new table to the catalog.
pub(super) fn add(transaction: &mut TransactionContext, entry: Arc<TableEntry>) -> Result<()> {
    refuse_taken_indexes(transaction, &entry)?;
    transaction.names.add(Entry::Table(entry.clone()), IfExists::Fail)?;
    references::renew_parents(transaction, &Definition::default(), &entry.definition, &entry.name).map(drop)
}

/// Refuses to replace the sequence of an identity column, which counts as its column declares.
pub(super) fn refuse_identity(transaction: &TransactionContext, sequence: &str) -> Result<()> {
    let is_its = |table: &&Arc<TableEntry>| {
        table.definition.identities().any(|own| own.eq_ignore_ascii_case(sequence))
    };
    match transaction.names.tables().find(is_its) {
        Some(table) => {
            let text = format!("sequence {sequence} belongs to an identity column of table {}", table.name);
            Err(Error::input(text).with_hint("declare the sequence options with the column"))
        }
        None => Ok(()),
    }
}
