//! Data definition: statements that create, change and drop tables, views, sequences and indexes.
//!
//! A change of a table's columns, keys or layout makes a new [`TableEntry`], with new rows if these are
//! stored differently then. Nobody else sees it until the transaction is committed. A concurrent transaction
//! that changes rows of the old entry fails, or makes the change fail: the first to commit wins.
//!
//! Objects that need a changed one must remain valid, or the statement is refused: foreign keys of other
//! tables ([`references`]), views ([`views`]), and what needs a dropped object ([`drop`] and [`remove`]).
//!
//! ```text
//! drop             which objects are dropped
//! index            indexes and keys of existing tables
//! alter  create    existing tables that change; new tables
//! columns          columns that are added and dropped without reading rows
//! schemas  views   schemas; views, which need other objects
//! remove           drops an object, and what needs it
//! references       foreign keys, seen from the table that they refer to
//! entry            catalog entries of tables
//! ```

mod alter;
mod columns;
mod create;
mod drop;
mod entry;
mod index;
mod references;
mod remove;
mod schemas;
mod views;

use self::alter::alter;
pub(crate) use self::alter::lay_anew;
use self::create::{add, counting, layout_note, name_sequences, nullable, refuse_identity, replace, taken};
use self::entry::new_entry;
use self::index::{create_index, drop_key};
use self::views::Views;
use crate::dml::insert;
use crate::session::Session;
use crate::transaction::TransactionContext;
use crate::values::rows::Rows;
use entasis_engine::relation::OnCommit;
use entasis_sql::{Alteration, Statement};
use entasis_storage::{Entry, IfExists, NamedType, Sequence, TableEntry, View, is_temporary};
use entasis_vector::{Error, Result};
use std::sync::Arc;

/// Runs a statement of data definition.
pub(crate) fn run(
    session: &Session,
    transaction: &mut TransactionContext,
    statement: Statement,
) -> Result<Rows> {
    match statement {
        Statement::CreateTable { name, columns, mut definition, sequences, if_not_exists, or_replace } => {
            if if_not_exists && transaction.names.table(&name).is_some() {
                return Ok(Rows::empty());
            }
            definition.layout.compression.get_or_insert(session.compression());
            let note = layout_note(&definition.layout);
            let replaced = replace(session, transaction, &name, or_replace)?;
            let sequences = name_sequences(&transaction.names, &name, &mut definition, sequences);
            let entry = new_entry(&name, columns, definition)?;
            add(transaction, entry)?;
            for (name, options) in sequences {
                let sequence = Arc::new(Sequence::new(&name, counting(options)));
                transaction.names.add(Entry::Sequence(sequence), IfExists::Fail)?;
            }
            replaced.judge(session, transaction)?;
            Ok(Rows::empty().with_note(note))
        }
        Statement::CreateTableAs { name, plan, mut definition, if_not_exists, or_replace } => {
            definition.layout.compression.get_or_insert(session.compression());
            if if_not_exists && transaction.names.table(&name).is_some() {
                return Ok(Rows::empty());
            }
            let note = layout_note(&definition.layout);
            let columns = plan.schema().into_iter().map(nullable).collect();
            let entry = new_entry(&name, columns, definition)?;
            let rows = insert::fill(session, &entry, plan)?;
            let replaced = replace(session, transaction, &name, or_replace)?;
            add(transaction, entry)?;
            replaced.judge(session, transaction)?;
            Ok(Rows::changed_rows(rows).with_note(note))
        }
        Statement::CreateView { name, sql, columns, becomes_temporary, needs, if_not_exists, or_replace } => {
            let users = Views::of(session, transaction, &name)?;
            // Relations that the connection registered, and files, are not objects of the catalog.
            let needs = needs.into_iter().filter(|needed| transaction.names.get(needed).is_some()).collect();
            let view = Arc::new(View { name, sql, schema: columns, needs });
            transaction.names.add(Entry::View(view.clone()), taken(if_not_exists, or_replace))?;
            users.judge(session, transaction)?;
            if or_replace {
                views::refuse_circle(session, transaction, &view)?;
            }
            Ok(Rows::empty()
                .with_note(becomes_temporary.then_some("the view is temporary, as what it names is")))
        }
        Statement::CreateSchema { name, if_not_exists } => {
            schemas::create(transaction, &name, if_not_exists)?;
            Ok(Rows::empty())
        }
        Statement::CreateSequence { name, options, if_not_exists, or_replace } => {
            if or_replace {
                refuse_identity(transaction, &name)?;
            }
            let sequence = Arc::new(Sequence::new(&name, counting(options)));
            transaction.names.add(Entry::Sequence(sequence), taken(if_not_exists, or_replace))?;
            Ok(Rows::empty())
        }
        Statement::CreateType { name, ty, or_replace } => {
            transaction.names.add(Entry::Type(Arc::new(NamedType { name, ty })), taken(false, or_replace))?;
            Ok(Rows::empty())
        }
        Statement::CreateIndex { table, key, if_not_exists, or_replace } => {
            let temporary = is_temporary(&table);
            let old = transaction
                .names
                .index(&key.name, Some(temporary))
                .map(|(entry, number)| (entry.clone(), number));
            if let (true, Some((entry, number))) = (or_replace, old) {
                drop_key(session, transaction, &entry, number, false)?;
            }
            create_index(session, transaction, &table, key, if_not_exists)
        }
        Statement::AlterTable { table, if_exists, alteration } => {
            let note = match &alteration {
                Alteration::Layout(layout) => layout_note(layout),
                _ => None,
            };
            match transaction.names.table(&table).cloned() {
                Some(entry) => alter(session, transaction, &entry, alteration)?,
                None if if_exists => {}
                None => return Err(Error::input(format!("there is no table \"{table}\""))),
            }
            Ok(Rows::empty().with_note(note))
        }
        Statement::Drop { kind, names, if_exists, cascade } => {
            drop::objects(session, transaction, kind, &names, if_exists, cascade)
        }
        other => Err(Error::internal(format!("{other:?} was not expected here"))),
    }
}

/// Before a commit: temporary tables are emptied or dropped, as declared.
pub(crate) fn at_commit(session: &Session, transaction: &mut TransactionContext) -> Result<()> {
    let of = |transaction: &TransactionContext, what: OnCommit| -> Vec<Arc<TableEntry>> {
        let tables = transaction
            .names
            .temporary()
            .filter_map(|entry| if let Entry::Table(table) = entry { Some(table) } else { None });
        tables.filter(|table| table.definition.on_commit == what).cloned().collect()
    };
    for table in of(transaction, OnCommit::Delete) {
        transaction.pin(&table);
        if transaction.snapshot(&table.table).rows() > 0 {
            transaction.clear(&table);
        }
    }
    for table in of(transaction, OnCommit::Drop) {
        remove::object(session, transaction, &Entry::Table(table), &[], true)?;
    }
    Ok(())
}
