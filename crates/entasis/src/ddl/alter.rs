//! `ALTER TABLE`: columns, constraints, names and layouts of existing tables.

use super::entry::{keep_order, new_entry, options_of, refuse_taken_indexes, with_keys};
use super::views::{self, Views};
use super::{columns, references, remove};
use crate::catalog::TableRelation;
use crate::dml::insert;
use crate::query::query;
use crate::session::Session;
use crate::transaction::TransactionContext;
use entasis_engine::plan::Plan;
use entasis_engine::relation::{Curve, Definition, LayoutChoice};
use entasis_sql::{Alteration, Columns};
use entasis_storage::{Entry, IfExists, TableEntry};
use entasis_vector::{Error, ErrorKind, Result, Schema};
use std::sync::Arc;

/// Changes a table.
pub(super) fn alter(
    session: &Session,
    transaction: &mut TransactionContext,
    entry: &Arc<TableEntry>,
    alteration: Alteration,
) -> Result<()> {
    match alteration {
        Alteration::Nothing => Ok(()),
        Alteration::Rename { to } => rename(transaction, entry, to),
        Alteration::Layout(layout) => {
            let names_curve = matches!(layout.curve, Some(Some(_)));
            let layout = layout.over(&entry.definition.layout);
            let definition = Definition { layout, ..(*entry.definition).clone() };
            let columns = entry.table.schema().clone();
            let new = match names_curve {
                // A curve that is named goes through the rows as they are now, even if it is the present one.
                true => filled(session, transaction, entry, columns, definition, None)?,
                false => rebuilt(session, transaction, entry, columns, definition, None)?,
            };
            put(transaction, entry, new)
        }
        Alteration::Columns(columns) => alter_columns(session, transaction, entry, columns),
    }
}

/// Lays a table anew by another layout key, along a curve if there is one, or in the order of insertion.
pub(crate) fn lay_anew(
    session: &Session,
    transaction: &mut TransactionContext,
    entry: &Arc<TableEntry>,
    (key, curve): (Option<Vec<usize>>, Option<Curve>),
) -> Result<()> {
    let layout = LayoutChoice { key, curve: curve.map(Some), ..entry.definition.layout.clone() };
    let definition = Definition { layout, ..(*entry.definition).clone() };
    let new = rebuilt(session, transaction, entry, entry.table.schema().clone(), definition, None)?;
    put(transaction, entry, new)
}

/// Renames a table. Foreign keys follow the new name; views do not.
fn rename(transaction: &mut TransactionContext, entry: &Arc<TableEntry>, to: String) -> Result<()> {
    if transaction.names.get(&to).is_some_and(|_| !to.eq_ignore_ascii_case(&entry.name)) {
        return Err(Error::input(format!("the name \"{to}\" is taken")));
    }
    views::refuse_needed(transaction, entry)?;
    let TableEntry { table, definition, indexes, .. } = &**entry;
    let (table, definition, indexes) = (table.clone(), definition.clone(), indexes.clone());
    let renamed = Arc::new(TableEntry { name: to, table, definition, indexes });
    transaction.relies_on(entry);
    transaction.names.remove(&entry.name, "table")?;
    transaction.names.add(Entry::Table(renamed.clone()), IfExists::Fail)?;
    references::follow_name(transaction, &entry.name, &renamed.name)
}

/// Gives a table other columns or another definition, and updates the objects that need it.
fn alter_columns(
    session: &Session,
    transaction: &mut TransactionContext,
    entry: &Arc<TableEntry>,
    mut to: Columns,
) -> Result<()> {
    for (message, plan) in std::mem::take(&mut to.violations) {
        if query(session, plan)?.rows() > 0 {
            return Err(Error::new(ErrorKind::Constraint, message).with_table(&*entry.name));
        }
    }
    references::follow_columns(transaction, entry, &mut to)?;
    let mut views = Views::of(session, transaction, &entry.name)?;
    views.judge_columns(entry, &to)?;
    let Columns { columns, mut definition, rows, cascade, .. } = to;
    keep_order(entry, &mut definition);
    let new = rebuilt(session, transaction, entry, columns, definition, rows)?;
    put(transaction, entry, new.clone())?;
    let has_kept = |sequence: &&str| new.definition.identities().any(|kept| kept == *sequence);
    remove::identities(
        session,
        transaction,
        entry.definition.identities().filter(|name| !has_kept(name)),
        cascade,
    )?;
    match cascade {
        true => views.drop_broken(session, transaction),
        false => views.judge(session, transaction),
    }
}

/// Replaces a table whose rows were read.
pub(super) fn put(
    transaction: &mut TransactionContext,
    old: &Arc<TableEntry>,
    new: Arc<TableEntry>,
) -> Result<()> {
    transaction.relies_on(old);
    put_in_place(transaction, old, new)
}

/// Replaces a table.
pub(super) fn put_in_place(
    transaction: &mut TransactionContext,
    old: &Arc<TableEntry>,
    new: Arc<TableEntry>,
) -> Result<()> {
    refuse_taken_indexes(transaction, &new)?;
    transaction.names.add(Entry::Table(new.clone()), IfExists::Replace)?;
    for parent in references::renew_parents(transaction, &old.definition, &new.definition, &new.name)? {
        // Its rows were checked, so they must still be the same at the commit.
        transaction.relies_on(&parent);
    }
    Ok(())
}

/// A table with other columns or another definition, and with the rows of `rows`, or else those of the old
/// table.
pub(super) fn rebuilt(
    session: &Session,
    transaction: &mut TransactionContext,
    entry: &Arc<TableEntry>,
    columns: Schema,
    definition: Definition,
    rows: Option<Plan>,
) -> Result<Arc<TableEntry>> {
    if rows.is_none()
        && columns == *entry.table.schema()
        && options_of(&definition, &columns)? == *entry.table.options()
    {
        let (new, indexes) = with_keys(entry, definition);
        insert::fill_indexes(session, &new, transaction.snapshot(&entry.table), &indexes)?;
        return Ok(new);
    }
    if let Some(rows) = &rows
        && let Some(new) = columns::changed(session, transaction, entry, (&columns, &definition), rows)?
    {
        return Ok(new);
    }
    filled(session, transaction, entry, columns, definition, rows)
}

/// The same, whose rows are all written again.
fn filled(
    session: &Session,
    transaction: &mut TransactionContext,
    entry: &Arc<TableEntry>,
    columns: Schema,
    definition: Definition,
    rows: Option<Plan>,
) -> Result<Arc<TableEntry>> {
    let new = new_entry(&entry.name, columns, definition)?;
    insert::fill(session, &new, rows.unwrap_or_else(|| rows_of(transaction, entry)))?;
    Ok(new)
}

/// A query for the rows of a table.
fn rows_of(transaction: &mut TransactionContext, entry: &TableEntry) -> Plan {
    Plan::scan(Arc::new(TableRelation::new(
        &entry.name,
        transaction.snapshot(&entry.table),
        Vec::new(),
        Arc::default(),
    )))
}
