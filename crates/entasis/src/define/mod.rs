//! Statements that change what there is: tables, views, sequences, indexes.
//!
//! A change of a table's columns, keys or layout makes a new [`TableEntry`], with new rows if they are stored
//! in another way then. Until the work is committed nobody else sees it. Who changes rows of the old one
//! meanwhile fails, or makes the change fail: the first to commit wins.
//!
//! What needs an object stays as good as it was, or the statement is refused: foreign keys of other tables
//! are in [`references`], views in [`views`], and what is dropped in [`drop`] and [`remove`].

mod drop;
mod references;
mod remove;
mod schemas;
mod views;

use self::views::Views;
use crate::change::insert;
use crate::execute::query;
use crate::relations::TableRelation;
use crate::rows::Rows;
use crate::session::Session;
use crate::work::Work;
use entasis_engine::plan::Plan;
use entasis_engine::relation::{ColumnDefault, Definition, Key, KeyKind, LayoutChoice, LayoutName, OnCommit};
use entasis_sql::{Alteration, Columns, SequenceOptions, Statement};
use entasis_storage::index::index_table;
use entasis_storage::sequence::Counting;
use entasis_storage::{
    CatalogVersion, Entry, IfExists, Sequence, Table, TableEntry, TableOptions, View, is_temporary,
};
use entasis_vector::{DataType, Error, ErrorKind, Field, Result, Schema};
use std::sync::Arc;

/// Runs a statement that changes what there is.
pub(crate) fn run(session: &Session, work: &mut Work, statement: Statement) -> Result<Rows> {
    match statement {
        Statement::CreateTable { name, columns, mut definition, sequences, if_not_exists, or_replace } => {
            if if_not_exists && work.names.table(&name).is_some() {
                return Ok(Rows::empty());
            }
            definition.layout.compression.get_or_insert(session.compression());
            let note = layout_note(&definition.layout);
            let replaced = replace(session, work, &name, or_replace)?;
            let sequences = name_sequences(&work.names, &name, &mut definition, sequences);
            let entry = new_entry(&name, columns, definition)?;
            add(work, entry)?;
            for (name, options) in sequences {
                let sequence = Arc::new(Sequence::new(&name, counting(options)));
                work.names.add(Entry::Sequence(sequence), IfExists::Fail)?;
            }
            replaced.judge(session, work)?;
            Ok(Rows::empty().with_note(note))
        }
        Statement::CreateTableAs { name, plan, mut definition, if_not_exists, or_replace } => {
            definition.layout.compression.get_or_insert(session.compression());
            if if_not_exists && work.names.table(&name).is_some() {
                return Ok(Rows::empty());
            }
            let note = layout_note(&definition.layout);
            let columns = plan.schema().into_iter().map(nullable).collect();
            let entry = new_entry(&name, columns, definition)?;
            let rows = insert::fill(session, &entry, plan)?;
            let replaced = replace(session, work, &name, or_replace)?;
            add(work, entry)?;
            replaced.judge(session, work)?;
            Ok(Rows::changed_rows(rows).with_note(note))
        }
        Statement::CreateView { name, sql, columns, becomes_temporary, needs, if_not_exists, or_replace } => {
            let users = Views::of(session, work, &name);
            // What the connection has registered, and files, are no objects of the catalog.
            let needs = needs.into_iter().filter(|needed| work.names.get(needed).is_some()).collect();
            let view = Arc::new(View { name, sql, schema: columns, needs });
            work.names.add(Entry::View(view.clone()), taken(if_not_exists, or_replace))?;
            users.judge(session, work)?;
            if or_replace {
                views::refuse_circle(session, work, &view)?;
            }
            Ok(Rows::empty()
                .with_note(becomes_temporary.then_some("the view is temporary, as what it names is")))
        }
        Statement::CreateSchema { name, if_not_exists } => {
            schemas::create(work, &name, if_not_exists)?;
            Ok(Rows::empty())
        }
        Statement::CreateSequence { name, options, if_not_exists, or_replace } => {
            if or_replace {
                refuse_identity(work, &name)?;
            }
            let sequence = Arc::new(Sequence::new(&name, counting(options)));
            work.names.add(Entry::Sequence(sequence), taken(if_not_exists, or_replace))?;
            Ok(Rows::empty())
        }
        Statement::CreateIndex { table, key, if_not_exists, or_replace } => {
            let temporary = is_temporary(&table);
            let old =
                work.names.index(&key.name, Some(temporary)).map(|(entry, number)| (entry.clone(), number));
            if let (true, Some((entry, number))) = (or_replace, old) {
                drop_key(session, work, &entry, number, false)?;
            }
            create_index(session, work, &table, key, if_not_exists)
        }
        Statement::AlterTable { table, if_exists, alteration } => {
            let note = match &alteration {
                Alteration::Layout(layout) => layout_note(layout),
                _ => None,
            };
            match work.names.table(&table).cloned() {
                Some(entry) => alter(session, work, &entry, alteration)?,
                None if if_exists => {}
                None => return Err(Error::input(format!("there is no table \"{table}\""))),
            }
            Ok(Rows::empty().with_note(note))
        }
        Statement::Drop { kind, names, if_exists, cascade } => {
            drop::objects(session, work, kind, &names, if_exists, cascade)
        }
        other => Err(Error::internal(format!("{other:?} was not expected here"))),
    }
}

/// Refuses another sequence in the place of an identity column's, which counts as its column says.
fn refuse_identity(work: &Work, sequence: &str) -> Result<()> {
    let is_its = |table: &&Arc<TableEntry>| {
        table.definition.identities().any(|own| own.eq_ignore_ascii_case(sequence))
    };
    match work.names.tables().find(is_its) {
        Some(table) => {
            let text = format!("sequence {sequence} belongs to an identity column of table {}", table.name);
            Err(Error::input(text).with_hint("declare with the column how it counts"))
        }
        None => Ok(()),
    }
}

/// Before a commit: temporary tables lose their rows, or go, as they were declared to.
pub(crate) fn at_commit(session: &Session, work: &mut Work) -> Result<()> {
    let of = |work: &Work, what: OnCommit| -> Vec<Arc<TableEntry>> {
        let tables = work
            .names
            .temporary()
            .filter_map(|entry| if let Entry::Table(table) = entry { Some(table) } else { None });
        tables.filter(|table| table.definition.on_commit == what).cloned().collect()
    };
    for table in of(work, OnCommit::Delete) {
        work.pin(&table);
        if work.snapshot(&table.table).rows() > 0 {
            work.clear(&table);
        }
    }
    for table in of(work, OnCommit::Drop) {
        remove::object(session, work, &Entry::Table(table), &[], true)?;
    }
    Ok(())
}

/// What of a layout is not done as it was asked for.
fn layout_note(layout: &LayoutChoice) -> Option<&'static str> {
    let is_casper = layout.layout == Some(LayoutName::Casper);
    is_casper.then_some(
        "layout 'casper': its partitions are all of one size; boundaries are not yet chosen by workload",
    )
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

/// A table with its indexes, all empty.
fn new_entry(name: &str, columns: Schema, definition: Definition) -> Result<Arc<TableEntry>> {
    let options = options_of(&definition, &columns)?;
    let table = Table::with_options(name, columns, options);
    let indexes =
        definition.keys.iter().map(|key| index_table(key, table.schema(), table.options())).collect();
    Ok(Arc::new(TableEntry { name: name.to_owned(), table, definition: Arc::new(definition), indexes }))
}

/// A table with other keys: it keeps its rows and those indexes that the new keys have as well. The numbers
/// of the keys that it has not had before, whose indexes are empty.
fn with_keys(entry: &TableEntry, definition: Definition) -> (Arc<TableEntry>, Vec<usize>) {
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

/// Gives identity columns the names of their sequences: those that are wanted, or the next that are free.
fn name_sequences(
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

/// Takes a table away that another is to replace, with its sequences. Views that need it must be judged
/// behind that.
fn replace(session: &Session, work: &mut Work, name: &str, or_replace: bool) -> Result<Views> {
    let views = Views::of(session, work, name);
    if let (true, Some(old)) = (or_replace, work.names.table(name).cloned()) {
        references::refuse_referred(work, &old, &[])?;
        work.relies_on(&old);
        work.names.remove(&old.name, "table")?;
        references::renew_parents(work, &old.definition, &Definition::default(), name)?;
        remove::identities(session, work, old.definition.identities(), false)?;
    }
    Ok(views)
}

/// Makes a new table known.
fn add(work: &mut Work, entry: Arc<TableEntry>) -> Result<()> {
    refuse_taken_indexes(work, &entry)?;
    work.names.add(Entry::Table(entry.clone()), IfExists::Fail)?;
    references::renew_parents(work, &Definition::default(), &entry.definition, &entry.name).map(drop)
}

/// An index has a name of its own.
fn refuse_taken_indexes(work: &Work, entry: &TableEntry) -> Result<()> {
    for key in &entry.definition.keys {
        let is_taken = |other: &&Arc<TableEntry>| {
            !other.name.eq_ignore_ascii_case(&entry.name)
                && other.definition.keys.iter().any(|own| own.name.eq_ignore_ascii_case(&key.name))
        };
        let is_beside = |other: &&Arc<TableEntry>| is_temporary(&other.name) == is_temporary(&entry.name);
        if let Some(owner) = work.names.tables().filter(is_beside).find(is_taken) {
            let text = format!("an index named \"{}\" already exists, on table {}", key.name, owner.name);
            return Err(
                Error::input(text).with_hint("keys have indexes, whose names are those of their constraints")
            );
        }
    }
    Ok(())
}

/// The same table with something else declared of it.
fn redefined(entry: &TableEntry, definition: Definition) -> Arc<TableEntry> {
    let TableEntry { name, table, indexes, .. } = entry;
    let (name, table, indexes) = (name.clone(), table.clone(), indexes.clone());
    Arc::new(TableEntry { name, table, definition: Arc::new(definition), indexes })
}

// ---- tables that change -----------------------------------------------------------------------------------

fn alter(session: &Session, work: &mut Work, entry: &Arc<TableEntry>, alteration: Alteration) -> Result<()> {
    match alteration {
        Alteration::Nothing => Ok(()),
        Alteration::Rename { to } => rename(work, entry, to),
        Alteration::Layout(layout) => {
            let layout = layout.over(&entry.definition.layout);
            let definition = Definition { layout, ..(*entry.definition).clone() };
            let new = rebuilt(session, work, entry, entry.table.schema().clone(), definition, None)?;
            put(work, entry, new)
        }
        Alteration::Columns(columns) => alter_columns(session, work, entry, columns),
    }
}

/// Gives a table another name, which foreign keys follow; views do not.
fn rename(work: &mut Work, entry: &Arc<TableEntry>, to: String) -> Result<()> {
    if work.names.get(&to).is_some_and(|_| !to.eq_ignore_ascii_case(&entry.name)) {
        return Err(Error::input(format!("the name \"{to}\" is taken")));
    }
    views::refuse_needed(work, entry)?;
    let TableEntry { table, definition, indexes, .. } = &**entry;
    let (table, definition, indexes) = (table.clone(), definition.clone(), indexes.clone());
    let renamed = Arc::new(TableEntry { name: to, table, definition, indexes });
    work.relies_on(entry);
    work.names.remove(&entry.name, "table")?;
    work.names.add(Entry::Table(renamed.clone()), IfExists::Fail)?;
    references::follow_name(work, &entry.name, &renamed.name)
}

/// Gives a table other columns or another definition, and has those follow that need it.
fn alter_columns(session: &Session, work: &mut Work, entry: &Arc<TableEntry>, mut to: Columns) -> Result<()> {
    for (name, plan) in std::mem::take(&mut to.violations) {
        if query(session, plan)?.rows() > 0 {
            let text = format!("rows of table {} violate {name}", entry.name);
            return Err(Error::new(ErrorKind::Constraint, text));
        }
    }
    references::follow_columns(work, entry, &mut to)?;
    let mut views = Views::of(session, work, &entry.name);
    views.judge_columns(entry, &to)?;
    let Columns { columns, definition, rows, cascade, .. } = to;
    let new = rebuilt(session, work, entry, columns, definition, rows)?;
    put(work, entry, new.clone())?;
    let has_kept = |sequence: &&str| new.definition.identities().any(|kept| kept == *sequence);
    remove::identities(session, work, entry.definition.identities().filter(|name| !has_kept(name)), cascade)?;
    match cascade {
        true => views.drop_broken(session, work),
        false => views.judge(session, work),
    }
}

/// Puts a table in the place of what it was, whose rows were looked at.
fn put(work: &mut Work, old: &Arc<TableEntry>, new: Arc<TableEntry>) -> Result<()> {
    work.relies_on(old);
    put_in_place(work, old, new)
}

fn put_in_place(work: &mut Work, old: &Arc<TableEntry>, new: Arc<TableEntry>) -> Result<()> {
    refuse_taken_indexes(work, &new)?;
    work.names.add(Entry::Table(new.clone()), IfExists::Replace)?;
    for parent in references::renew_parents(work, &old.definition, &new.definition, &new.name)? {
        // Its rows were looked at, whether they are all there.
        work.relies_on(&parent);
    }
    Ok(())
}

/// A table with other columns or another definition: its rows are those of `rows`, or those that it has.
fn rebuilt(
    session: &Session,
    work: &mut Work,
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
        insert::fill_indexes(session, &new, rows_of(work, entry), &indexes)?;
        return Ok(new);
    }
    let new = new_entry(&entry.name, columns, definition)?;
    insert::fill(session, &new, rows.unwrap_or_else(|| rows_of(work, entry)))?;
    Ok(new)
}

/// A query for the rows of a table.
fn rows_of(work: &mut Work, entry: &TableEntry) -> Plan {
    Plan::scan(Arc::new(TableRelation::new(
        &entry.name,
        work.snapshot(&entry.table),
        Vec::new(),
        Arc::default(),
    )))
}

/// Puts a table with other keys in the place of what it was. Others go on writing to it while indexes are
/// built, which catch up at the commit; unless it must be laid out anew.
fn put_keys(session: &Session, work: &mut Work, old: &Arc<TableEntry>, definition: Definition) -> Result<()> {
    let columns = old.table.schema().clone();
    if options_of(&definition, &columns)? != *old.table.options() {
        let new = rebuilt(session, work, old, columns, definition, None)?;
        return put(work, old, new);
    }
    let (new, indexes) = with_keys(old, definition);
    insert::fill_indexes(session, &new, rows_of(work, old), &indexes)?;
    work.built(old, &new, indexes);
    put_in_place(work, old, new)
}

fn create_index(
    session: &Session,
    work: &mut Work,
    table: &str,
    key: Key,
    if_not_exists: bool,
) -> Result<Rows> {
    let entry = crate::change::target(work, table)?;
    if let Some(owner) = work.names.table_with_index(&key.name, is_temporary(&entry.name)) {
        if if_not_exists {
            return Ok(Rows::empty());
        }
        return Err(Error::input(format!(
            "an index named \"{}\" already exists, on table {}",
            key.name, owner.name
        )));
    }
    let mut definition = (*entry.definition).clone();
    // A row of a table without a layout key has nothing that an index could tell it by.
    if !entry.table.options().layout.is_keyed() {
        definition.layout = LayoutChoice { key: Some(key.columns.clone()), ..definition.layout };
    }
    definition.keys.push(key);
    put_keys(session, work, &entry, definition)?;
    Ok(Rows::empty())
}

/// Drops the index or unique key of a table that has this number.
fn drop_key(
    session: &Session,
    work: &mut Work,
    entry: &Arc<TableEntry>,
    number: usize,
    cascade: bool,
) -> Result<()> {
    let mut definition = (*entry.definition).clone();
    let key = definition.keys.remove(number);
    if key.kind == KeyKind::Primary {
        let name = &key.name;
        let text = format!("\"{name}\" is the primary key of table {}", entry.name);
        return Err(
            Error::input(text).with_hint(format!("use ALTER TABLE {} DROP CONSTRAINT {name}", entry.name))
        );
    }
    let columns = entry.table.schema().clone();
    let mut to = Columns {
        places: (0..columns.len()).map(Some).collect(),
        revalued: Vec::new(),
        columns,
        definition,
        cascade,
        rows: None,
        violations: Vec::new(),
    };
    references::follow_columns(work, entry, &mut to)?;
    put_keys(session, work, entry, to.definition)
}
