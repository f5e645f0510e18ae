//! Statements that change what there is: tables, views, sequences, indexes.
//!
//! A change of a table's columns, keys or layout makes a new [`TableEntry`], with new rows if they are stored in another way
//! then. Until the work is committed nobody else sees it. Who changes rows of the old one meanwhile fails, or makes the
//! change fail: the first to commit wins.

use crate::change::{foreign, insert};
use crate::connection::Connection;
use crate::relations::TableRelation;
use crate::rows::Rows;
use crate::statement;
use crate::work::Work;
use entasis_engine::plan::Plan;
use entasis_engine::relation::{ColumnDefault, Definition, Key, KeyKind, LayoutChoice, LayoutName};
use entasis_sql::{Alteration, ObjectKind, SequenceOptions, Statement};
use entasis_storage::index::index_table;
use entasis_storage::sequence::Counting;
use entasis_storage::{Entry, IfExists, Sequence, Table, TableEntry, TableOptions, View};
use entasis_vector::{DataType, Error, ErrorKind, Field, Result, Schema};
use std::sync::Arc;

/// Runs a statement that changes what there is.
pub(crate) fn run(connection: &Connection, work: &mut Work, statement: Statement) -> Result<Rows> {
    match statement {
        Statement::CreateTable { name, columns, mut definition, sequences, if_not_exists, or_replace } => {
            definition.layout.compression.get_or_insert(connection.compression());
            let mut note = layout_note(&definition.layout);
            let entry = new_entry(&name, columns, definition, None)?;
            if add(work, Entry::Table(entry), taken(if_not_exists, or_replace))? {
                for (name, options) in sequences {
                    let sequence = Arc::new(Sequence::new(&name, counting(options)));
                    work.names.add(Entry::Sequence(sequence), IfExists::Replace)?;
                }
            } else {
                note = None;
            }
            Ok(Rows::empty().with_note(note))
        }
        Statement::CreateTableAs { name, plan, mut definition, if_not_exists, or_replace } => {
            definition.layout.compression.get_or_insert(connection.compression());
            if if_not_exists && work.names.table(&name).is_some() {
                return Ok(Rows::empty());
            }
            let note = layout_note(&definition.layout);
            let columns = plan.schema().into_iter().map(nullable).collect();
            let entry = new_entry(&name, columns, definition, None)?;
            let rows = insert::fill(connection, &entry, plan, true)?;
            add(work, Entry::Table(entry), taken(if_not_exists, or_replace))?;
            Ok(Rows::changed_rows(rows).with_note(note))
        }
        Statement::CreateView { name, sql, columns, if_not_exists, or_replace } => {
            let view = View { name, sql, schema: columns };
            work.names.add(Entry::View(Arc::new(view)), taken(if_not_exists, or_replace))?;
            Ok(Rows::empty())
        }
        Statement::CreateSequence { name, options, if_not_exists } => {
            let sequence = Arc::new(Sequence::new(&name, counting(options)));
            work.names.add(Entry::Sequence(sequence), taken(if_not_exists, false))?;
            Ok(Rows::empty())
        }
        Statement::CreateIndex { table, key, if_not_exists } => {
            create_index(connection, work, &table, key, if_not_exists)
        }
        Statement::AlterTable { table, if_exists, alteration } => {
            let note = match &alteration {
                Alteration::Layout(layout) => layout_note(layout),
                _ => None,
            };
            match work.names.table(&table).cloned() {
                Some(entry) => alter(connection, work, &entry, alteration)?,
                None if if_exists => {}
                None => return Err(Error::input(format!("there is no table \"{table}\""))),
            }
            Ok(Rows::empty().with_note(note))
        }
        Statement::Drop { kind, names, if_exists } => drop_objects(connection, work, kind, &names, if_exists),
        other => Err(Error::internal(format!("{other:?} was not expected here"))),
    }
}

/// What of a layout is not done as it was asked for.
fn layout_note(layout: &LayoutChoice) -> Option<&'static str> {
    let is_casper = layout.layout == Some(LayoutName::Casper);
    is_casper
        .then_some("layout 'casper': its partitions are all of one size; boundaries are not yet chosen by workload")
}

fn taken(if_not_exists: bool, or_replace: bool) -> IfExists {
    match (if_not_exists, or_replace) {
        (true, _) => IfExists::Keep,
        (_, true) => IfExists::Replace,
        _ => IfExists::Fail,
    }
}

fn counting(options: SequenceOptions) -> Counting {
    let SequenceOptions { start, increment, min, max, cycle } = options;
    Counting { start, increment, min, max, cycle }
}

/// A column of `CREATE TABLE AS`: what the query knows of NULLs is not a constraint of the table.
fn nullable(mut field: Field) -> Field {
    field.nullable = true;
    if field.ty == DataType::Null {
        field.ty = DataType::Int32;
    }
    field
}

/// A table with its indexes, all empty, or with the rows of `table`, which is as the definition wants it.
fn new_entry(
    name: &str,
    columns: Schema,
    definition: Definition,
    table: Option<Arc<Table>>,
) -> Result<Arc<TableEntry>> {
    let options = options_of(&definition, &columns)?;
    let table = table.unwrap_or_else(|| Table::with_options(name, columns, options));
    let indexes = definition.keys.iter().map(|key| index_table(key, table.schema(), table.options())).collect();
    Ok(Arc::new(TableEntry { name: name.to_owned(), table, definition: Arc::new(definition), indexes }))
}

/// How a table is laid out.
fn options_of(definition: &Definition, columns: &Schema) -> Result<TableOptions> {
    let options = TableOptions::of(definition, columns);
    if options.layout.is_keyed() {
        return Ok(options);
    }
    if !matches!(definition.layout.layout, None | Some(LayoutName::Auto | LayoutName::Insertion)) {
        let error = Error::input("this layout orders rows by a key, and the table has none");
        return Err(error.with_hint("declare a PRIMARY KEY, or name columns: WITH (layout_key = (…))"));
    }
    if !definition.keys.is_empty() {
        return Err(Error::not_supported("keys and indexes of a table in the order of insertion"));
    }
    Ok(options)
}

/// Makes a table known; one that it replaces must not be referred to. False if the name was taken and is kept.
fn add(work: &mut Work, entry: Entry, if_exists: IfExists) -> Result<bool> {
    if let (IfExists::Replace, Some(old)) = (if_exists, work.names.table(entry.name()).cloned()) {
        refuse_referred(work, &old)?;
        work.relies_on(&old);
    }
    work.names.add(entry, if_exists)
}

fn refuse_referred(work: &Work, entry: &TableEntry) -> Result<()> {
    match foreign::referring_table(work, entry) {
        None => Ok(()),
        Some((child, key)) => {
            let text = format!("table {} is referred to by foreign key {key} of table {child}", entry.name);
            Err(Error::new(ErrorKind::Constraint, text)
                .with_hint(format!("drop table {child} or the constraint first")))
        }
    }
}

fn drop_objects(
    connection: &Connection,
    work: &mut Work,
    kind: ObjectKind,
    names: &[String],
    if_exists: bool,
) -> Result<Rows> {
    let word = match kind {
        ObjectKind::Table => "table",
        ObjectKind::View => "view",
        ObjectKind::Sequence => "sequence",
        ObjectKind::Index => {
            for name in names {
                drop_index(connection, work, name, if_exists)?;
            }
            return Ok(Rows::empty());
        }
    };
    for name in names {
        let entry = work.names.table(name).cloned();
        if let (ObjectKind::Table, Some(entry)) = (kind, entry) {
            let together = |child: &str| names.iter().any(|name| name.eq_ignore_ascii_case(child));
            if foreign::referring_table(work, &entry).is_some_and(|(child, _)| !together(&child)) {
                refuse_referred(work, &entry)?;
            }
            for default in &entry.definition.defaults {
                if let ColumnDefault::Identity { sequence, .. } = default {
                    work.names.remove(sequence, "sequence")?;
                }
            }
            work.relies_on(&entry);
        }
        if !work.names.remove(name, word)? && !if_exists {
            return Err(Error::input(format!("there is no {word} \"{name}\"")));
        }
    }
    Ok(Rows::empty())
}

// ---- tables that change -----------------------------------------------------------------------------------------------

fn alter(connection: &Connection, work: &mut Work, entry: &Arc<TableEntry>, alteration: Alteration) -> Result<()> {
    let renamed = match alteration {
        Alteration::Nothing => return Ok(()),
        Alteration::Rename { to } => {
            if work.names.get(&to).is_some_and(|_| !to.eq_ignore_ascii_case(&entry.name)) {
                return Err(Error::input(format!("the name \"{to}\" is taken")));
            }
            refuse_referred(work, entry)?;
            work.names.remove(&entry.name, "table")?;
            let TableEntry { table, definition, indexes, .. } = &**entry;
            let (table, definition, indexes) = (table.clone(), definition.clone(), indexes.clone());
            Arc::new(TableEntry { name: to, table, definition, indexes })
        }
        Alteration::Layout(layout) => {
            let layout = layout.over(&entry.definition.layout);
            let definition = Definition { layout, ..(*entry.definition).clone() };
            rebuilt(connection, work, entry, entry.table.schema().clone(), definition, None)?
        }
        Alteration::Columns { columns, definition, rows, violations } => {
            for (name, plan) in violations {
                if statement::query(connection, plan)?.rows() > 0 {
                    let text = format!("rows of table {} violate {name}", entry.name);
                    return Err(Error::new(ErrorKind::Constraint, text));
                }
            }
            rebuilt(connection, work, entry, columns, definition, rows)?
        }
    };
    work.relies_on(entry);
    work.names.add(Entry::Table(renamed), IfExists::Replace).map(drop)
}

/// A table with other columns or another definition: its rows are those of `rows`, or those that it has.
fn rebuilt(
    connection: &Connection,
    work: &mut Work,
    entry: &Arc<TableEntry>,
    columns: Schema,
    definition: Definition,
    rows: Option<Plan>,
) -> Result<Arc<TableEntry>> {
    let options = options_of(&definition, &columns)?;
    let is_same = rows.is_none() && columns == *entry.table.schema() && options == *entry.table.options();
    let new = new_entry(&entry.name, columns, definition, is_same.then(|| entry.table.clone()))?;
    let plan = rows.unwrap_or_else(|| {
        Plan::scan(Arc::new(TableRelation::new(work.snapshot(&entry.table), Vec::new(), Arc::default())))
    });
    insert::fill(connection, &new, plan, !is_same)?;
    Ok(new)
}

fn create_index(connection: &Connection, work: &mut Work, table: &str, key: Key, if_not_exists: bool) -> Result<Rows> {
    let entry = crate::change::target(work, table)?;
    if let Some((owner, _)) = work.names.index(&key.name) {
        if if_not_exists {
            return Ok(Rows::empty());
        }
        return Err(Error::input(format!("an index named \"{}\" already exists, on table {}", key.name, owner.name)));
    }
    let mut definition = (*entry.definition).clone();
    // A row of a table without a layout key has nothing that an index could tell it by.
    if !entry.table.options().layout.is_keyed() {
        definition.layout = LayoutChoice { key: Some(key.columns.clone()), ..definition.layout };
    }
    definition.keys.push(key);
    let new = rebuilt(connection, work, &entry, entry.table.schema().clone(), definition, None)?;
    work.relies_on(&entry);
    work.names.add(Entry::Table(new), IfExists::Replace)?;
    Ok(Rows::empty())
}

fn drop_index(connection: &Connection, work: &mut Work, name: &str, if_exists: bool) -> Result<()> {
    let Some((entry, number)) = work.names.index(name).map(|(entry, number)| (entry.clone(), number)) else {
        if if_exists {
            return Ok(());
        }
        return Err(Error::input(format!("there is no index \"{name}\"")));
    };
    let mut definition = (*entry.definition).clone();
    let key = definition.keys.remove(number);
    if key.kind == KeyKind::Primary {
        let text = format!("\"{name}\" is the primary key of table {}", entry.name);
        return Err(Error::input(text).with_hint(format!("use ALTER TABLE {} DROP CONSTRAINT {name}", entry.name)));
    }
    let new = rebuilt(connection, work, &entry, entry.table.schema().clone(), definition, None)?;
    work.relies_on(&entry);
    work.names.add(Entry::Table(new), IfExists::Replace).map(drop)
}
