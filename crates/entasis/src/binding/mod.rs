//! How names become relations: the front end's view of this connection.
//!
//! A name is looked up among the tables, then (by the front end) among the views, and last among the
//! program's variables. Where a query names something without a schema, the front end asks before all of
//! these for a relation that the host program registered; nothing else means one. A name that is a path is a
//! file.
//!
//! An object of another database than the statement's target database is called `database.schema.object`
//! here. It can only be read: it cannot be redefined.

pub(crate) mod template;

use crate::catalog::search_path::{MAIN, SearchPath};
use crate::catalog::{self as relations, TableRelation};
use crate::layouts;
use crate::layouts::{Binding, Looked};
use crate::session::place::{INFORMATION_SCHEMA, Place, Places};
use crate::session::sequence_numbers::Numbers;
use crate::session::settings;
use crate::session::{Attached, Session};
use crate::state::interrupt::Interrupt;
use crate::state::workload_stats::Record;
use crate::transaction::target_database;
use crate::transaction::{Other, TransactionContext};
use entasis_engine::relation::{Definition, Index, KeyKind, Relation};
use entasis_functions::Argument;
use entasis_functions::host::HostFunction;
use entasis_storage::index::index_columns;
use entasis_storage::{CatalogVersion, Entry, Sequence, TableEntry, TableSnapshot};
use entasis_vector::{DataType, Error, Field, Result, Value, name};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The names that a statement sees: those of its transaction, and those of its connection.
pub(crate) struct Names<'a> {
    /// The session, with its target database.
    session: &'a Session,
    /// Objects of the target database by their names.
    names: CatalogVersion,
    /// The schemas of the current database in which names without a schema are looked up.
    path: SearchPath,
    /// True if the target database is the current database.
    is_here: bool,
    /// The current time and the time zone.
    clocks: entasis_functions::Session,
    /// The transaction that pins tables and records what was seen of them.
    transaction: Mutex<&'a mut TransactionContext>,
    /// True while statements of a sample are bound, which may not name a sample in turn.
    is_in_sample: AtomicBool,
    /// Columns of files that cannot be read, with the reasons. They are bound as texts.
    unreadable: Mutex<Vec<(String, Error)>>,
}

/// A function of a table that binds statements of a sample.
type AboutLayout = fn(&Looked<'_>, &Binding<'_>, Option<&str>) -> Result<Arc<dyn Relation>>;

impl<'a> Names<'a> {
    pub(crate) fn new(session: &'a Session, transaction: &'a mut TransactionContext) -> Names<'a> {
        let clocks = entasis_functions::Session {
            transaction: transaction.began,
            statement: entasis_functions::clock(),
            zone: session.time_zone(),
        };
        Names {
            session,
            names: transaction.names.clone(),
            path: session.search_path(),
            is_here: session.is_here(),
            clocks,
            transaction: Mutex::new(transaction),
            is_in_sample: AtomicBool::new(false),
            unreadable: Mutex::default(),
        }
    }

    /// What files take from the session.
    fn host(&self) -> entasis_files::Host<'_> {
        entasis_files::Host {
            cancel: &self.session.cancel,
            zone: self.clocks.zone,
            parse_type: entasis_sql::parse_type,
        }
    }

    /// A relation of files, whose columns that cannot be read are noted.
    fn noted(&self, relation: Arc<dyn Relation>) -> Arc<dyn Relation> {
        let columns = relation.schema().iter().enumerate();
        let unreadable = columns
            .filter_map(|(column, field)| Some((field.name.to_string(), relation.unreadable(column)?)));
        let mut noted = self.unreadable.lock().unwrap_or_else(PoisonError::into_inner);
        noted.extend(unreadable);
        drop(noted);
        relation
    }

    /// The error of binding `sql`: if it names a column that cannot be read, the reason for that. A function
    /// of the column that does not take a text is not to blame.
    pub(crate) fn explained(&self, sql: &str, error: Error) -> Error {
        let words = |c: char| !(c.is_alphanumeric() || c == '_');
        let noted = self.unreadable.lock().unwrap_or_else(PoisonError::into_inner);
        let named = noted.iter().find(|(column, _)| {
            column.contains(words) && sql.contains(column.as_str())
                || sql.split(words).any(|word| word.eq_ignore_ascii_case(column))
        });
        named.map_or(error, |(_, reason)| reason.clone())
    }

    /// The entry that a name refers to.
    fn entry(&self, name: &str) -> Option<&Entry> {
        let entry = self.names.get(name)?;
        self.transaction.lock().unwrap_or_else(PoisonError::into_inner).sees(entry);
        Some(entry)
    }

    /// What the statement sees of a database, for relations that list it; of all databases, if none is named.
    fn seen(&self, database: Option<&str>) -> Vec<relations::Seen> {
        let is_meant = |other: &Attached| database.is_none_or(|name| *other.name == *name);
        let registered = self.session.registered.read().expect("no panic while locked");
        let mut registered: Vec<_> = registered.iter().map(|(name, of)| (name.clone(), of.clone())).collect();
        registered.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut transaction = self.transaction.lock().unwrap_or_else(PoisonError::into_inner);
        let databases = self.session.databases().into_iter().filter(is_meant);
        let seen = databases.map(|database| relations::Seen {
            names: transaction.names_of(&database),
            registered: match database.name == self.session.own().name {
                true => std::mem::take(&mut registered),
                false => Vec::new(),
            },
            database: database.name,
        });
        seen.collect()
    }

    /// A table, with the snapshots of the table and of its indexes.
    fn snapshot(&self, name: &str) -> Option<(&Arc<TableEntry>, TableSnapshot, Vec<Index>)> {
        let Entry::Table(entry) = self.entry(name)? else { return None };
        let mut transaction = self.transaction.lock().unwrap_or_else(PoisonError::into_inner);
        transaction.pin(entry);
        let keys = entry.definition.keys.iter().zip(&entry.indexes);
        let indexes = keys.filter_map(|(key, index)| {
            Some(Index {
                table: transaction.snapshot(index.as_ref()?),
                columns: index_columns(key, entry.table.options()),
                key_columns: key.columns.len(),
                is_whole: key.kind == KeyKind::Index,
            })
        });
        let indexes = indexes.collect();
        Some((entry, transaction.snapshot(&entry.table), indexes))
    }

    /// The other database to which a name belongs, and its name there.
    fn elsewhere(&self, name: &str) -> Option<(Attached, String)> {
        if !name.contains('.') || !self.session.sees_others() {
            return None;
        }
        let others = self.session.databases().into_iter().filter(|other| other.name != self.session.database);
        { others }.find_map(|other| {
            let own = name::within_database(name, &other.name)?;
            Some((other, own))
        })
    }

    /// How the names of a statement are resolved. If `declared`, they are in a table's declaration, which
    /// names only objects of its own database, the current one.
    fn places(&self, declared: bool) -> Places {
        let places = Places::of(self.session);
        if declared && !self.is_here { places.within(&self.session.database) } else { places }
    }

    /// The table of a name as it is written, with what it declares, in whichever database it is.
    fn written_table(&self, written: &str) -> Option<(TableSnapshot, Arc<Definition>)> {
        let parts = name::parts(written);
        let placed = entasis_sql::Catalog::place(self, &parts, false);
        let written = entasis_sql::WrittenName::of_parts(placed.as_deref().unwrap_or(&parts))?;
        match self.elsewhere(&written.name).filter(|_| written.has_schema) {
            Some((attached, own)) => self.other(&attached, |other| {
                let entry = other.names.table(&own)?.clone();
                Some((other.snapshot(&entry.table), entry.definition.clone()))
            }),
            None => {
                let name = self.path.find(&self.names, &written);
                let (_, rows, _) = self.snapshot(&name)?;
                Some((rows, entasis_sql::Catalog::definition(self, &name)?))
            }
        }
    }

    /// `entasis_tables`: those of the target database, in the order of their names.
    fn all_tables(&self) -> Arc<dyn Relation> {
        let entries: Vec<Arc<TableEntry>> = self.names.tables().cloned().collect();
        let mut transaction = self.transaction.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tables: Vec<layouts::NamedTable> = Vec::new();
        for entry in entries {
            transaction.sees(&Entry::Table(entry.clone()));
            transaction.pin(&entry);
            tables.push((entry.name.clone(), transaction.snapshot(&entry.table), entry.definition.clone()));
        }
        tables.sort_by(|(a, ..), (b, ..)| a.cmp(b));
        layouts::tables(&tables)
    }

    /// A relation about the layout of a table, which may bind statements of a sample.
    fn about_layout(
        &self,
        name: &str,
        args: &[(Option<String>, Argument)],
        function: AboutLayout,
    ) -> Result<Arc<dyn Relation>> {
        let (table, workload) = relations::layout_arguments(name, args)?;
        let unknown = || Error::input(format!("{name}: there is no table \"{table}\""));
        let (snapshot, definition) = self.written_table(table).ok_or_else(unknown)?;
        if self.is_in_sample.swap(true, Ordering::Relaxed) {
            return Err(Error::input(format!("{name} within a sample of a workload")));
        }
        let settings = self.session.settings();
        let looked = Looked {
            name: table,
            snapshot: &snapshot,
            definition,
            costs: self.session.own().shared.costs(),
            record: self.record(table),
            interrupt: Interrupt::by(self.session.cancel.clone()),
        };
        let found = function(&looked, &Binding { catalog: self, settings: &settings }, workload);
        self.is_in_sample.store(false, Ordering::Relaxed);
        found
    }

    /// The record of what is asked of a table, if it follows its workload.
    pub(crate) fn record(&self, name: &str) -> Option<Arc<Record>> {
        match self.entry(name)? {
            Entry::Table(entry) => self.session.shared.record_of(entry),
            _ => None,
        }
    }

    /// The names that are visible in a database.
    fn names_of(&self, database: &Attached) -> CatalogVersion {
        self.transaction.lock().unwrap_or_else(PoisonError::into_inner).names_of(database)
    }

    /// The place that a missing object would have.
    fn missing(&self, places: &Places, schema: &str, name: &str) -> Place {
        let database = places.current().name.clone();
        Place { database, schema: schema.to_owned(), name: name.to_owned() }
    }

    /// Calls `look` with what is seen of another database.
    fn other<R>(&self, attached: &Attached, look: impl FnOnce(&mut Other) -> R) -> R {
        look(self.transaction.lock().unwrap_or_else(PoisonError::into_inner).other(attached))
    }

    /// A table of another database.
    fn table_elsewhere(&self, name: &str, attached: &Attached, own: &str) -> Option<TableRelation> {
        self.other(attached, |other| {
            let entry = other.names.table(own)?.clone();
            let keys = entry.definition.keys.iter().zip(&entry.indexes);
            let indexes = keys.filter_map(|(key, index)| {
                Some(Index {
                    table: other.snapshot(index.as_ref()?),
                    columns: index_columns(key, entry.table.options()),
                    key_columns: key.columns.len(),
                    is_whole: key.kind == KeyKind::Index,
                })
            });
            let indexes = indexes.collect();
            let rows = other.snapshot(&entry.table);
            let costs = self.session.own().shared.costs();
            let relation = TableRelation::new(name, rows, indexes, costs);
            let relation = relation.declared(&entry, |parent| other.names.table(parent).cloned());
            Some(relation.noted(attached.shared.record_of(&entry)))
        })
    }

    /// A table, with its row ids as a column.
    pub(crate) fn with_row_ids(&self, name: &str) -> Option<TableRelation> {
        let (entry, snapshot, indexes) = self.snapshot(name)?;
        let costs = self.session.own().shared.costs();
        let relation = TableRelation::with_row_ids(&entry.name, snapshot, indexes, costs);
        let relation = relation.declared(entry, |parent| self.names.table(parent).cloned());
        Some(relation.noted(self.record(&entry.name)))
    }
}

impl entasis_sql::Catalog for Names<'_> {
    fn table(&self, name: &str) -> Option<Arc<dyn Relation>> {
        let session = self.session;
        if let Some(relation) = relations::information_schema(name, |database| self.seen(database)) {
            return Some(relation);
        }
        // The host program knows its variables by names without a schema.
        let variable;
        if let Some((attached, own)) = self.elsewhere(name) {
            if let Some(relation) = self.table_elsewhere(name, &attached, &own) {
                return Some(Arc::new(relation));
            }
            let is_other = self.other(&attached, |other| other.names.get(&own).is_some());
            if name::split(&own).0 != MAIN || is_other {
                return None;
            }
            variable = own;
        } else {
            if let Some((entry, snapshot, indexes)) = self.snapshot(name) {
                let costs = session.own().shared.costs();
                let relation = TableRelation::new(&entry.name, snapshot, indexes, costs);
                let relation = relation.declared(entry, |parent| self.names.table(parent).cloned());
                return Some(Arc::new(relation.noted(self.record(&entry.name))));
            }
            if self.names.view(name).is_some() {
                return None;
            }
            variable = name.to_owned();
        }
        // As before names had schemas, one in a schema that there is not is asked for as a whole.
        let name = if name::split(&variable).0 == MAIN { name::own(&variable) } else { &*variable };
        let replacement = session.replacement.read().expect("no panic while locked").clone();
        let rejects =
            || (name == relations::REJECT_ERRORS).then(|| relations::reject_errors(&session.rejects));
        replacement.and_then(|find| find(name)).or_else(rejects)
    }

    fn registered(&self, name: &str) -> Option<Arc<dyn Relation>> {
        self.session.registered_as(name)
    }

    fn host_function(&self, name: &str) -> Option<HostFunction> {
        self.session.functions.of_values(name)
    }

    fn is_host_table(&self, name: &str) -> bool {
        self.session.functions.has_table(name)
    }

    fn table_with_row_ids(&self, name: &str) -> Option<Arc<dyn Relation>> {
        Some(Arc::new(self.with_row_ids(name)?))
    }

    fn definition(&self, name: &str) -> Option<Arc<Definition>> {
        match self.entry(name)? {
            Entry::Table(entry) => Some(entry.definition.clone()),
            _ => None,
        }
    }

    fn sequence(&self, name: &str) -> Option<Arc<dyn entasis_sql::Sequence>> {
        let elsewhere = self.elsewhere(name);
        let sequence = match &elsewhere {
            Some((attached, own)) => self.other(attached, |other| other.names.sequence(own).cloned())?,
            None => match self.entry(name)? {
                Entry::Sequence(sequence) => sequence.clone(),
                _ => return None,
            },
        };
        let database = elsewhere.map(|(attached, _)| attached);
        let database = database.or_else(|| self.session.database_called(&self.session.database))?;
        let refused = database.is_read_only.then(|| target_database::read_only(&database));
        let refused = refused.or_else(|| database.shared.refuse_change(&sequence.name).err());
        Some(Arc::new(TakenBy { sequence, refused, numbers: self.session.numbers.clone() }))
    }

    fn named_type(&self, name: &str) -> Option<DataType> {
        match self.entry(name)? {
            Entry::Type(named) => Some(named.ty),
            _ => None,
        }
    }

    fn has_types(&self) -> bool {
        self.names.has_types()
    }

    fn table_with_index(&self, name: &str, temporary: bool) -> Option<String> {
        self.names.table_with_index(name, temporary).map(|entry| entry.name.to_ascii_lowercase())
    }

    fn has_schema(&self, name: &str) -> bool {
        match name
            .rsplit_once('.')
            .and_then(|(database, own)| Some((self.session.database_called(database)?, own)))
        {
            Some((database, own)) => {
                own == MAIN || self.names_of(&database).get(&format!("{own}.")).is_some()
            }
            None => matches!(self.entry(&format!("{name}.")), Some(Entry::Schema(_))),
        }
    }

    fn has_other_schemas(&self) -> bool {
        !self.path.is_main()
            || self.names.temporary().next().is_some()
            || self.session.sees_others()
            || self.session.has_registered()
    }

    fn has_current_schema(&self, name: &str) -> bool {
        if self.is_here {
            return self.has_schema(name);
        }
        let places = Places::of(self.session);
        self.names_of(places.current()).get(&format!("{name}.")).is_some()
    }

    fn has_database(&self, name: &str) -> bool {
        self.session.database_called(name).is_some()
    }

    fn is_target_database(&self, name: &str) -> bool {
        *self.session.database == *name
    }

    fn schema_of(&self, name: &str) -> Option<String> {
        if !self.is_here {
            return None;
        }
        self.path.schema_of(&self.names, name).map(str::to_owned)
    }

    fn schema_of_new(&self) -> Option<String> {
        if !self.is_here {
            return None;
        }
        let is_there = |schema: &&str| *schema == MAIN || self.names.get(&format!("{schema}.")).is_some();
        self.path.schemas().find(is_there).filter(|schema| *schema != MAIN).map(str::to_owned)
    }

    fn current(&self) -> (String, String) {
        if !self.session.sees_others() {
            let schema = self.schema_of_new().unwrap_or_else(|| MAIN.to_owned());
            return (self.session.database.to_string(), schema);
        }
        let places = Places::of(self.session);
        let names = self.names_of(places.current());
        let is_there = |schema: &&str| *schema == MAIN || names.get(&format!("{schema}.")).is_some();
        let schema = self.path.schemas().find(is_there).unwrap_or(MAIN).to_owned();
        (places.current().name.to_string(), schema)
    }

    fn place(&self, parts: &[String], declared: bool) -> Option<Vec<String>> {
        let places = self.places(declared);
        let target = &self.session.database;
        let is_here = places.current().name == *target;
        let found = places.find(parts, &mut |database| self.names_of(database));
        let place = match (found, parts) {
            (Some(place), _) => place,
            // It may be the name of a file, or of a variable.
            (None, [name]) if name.contains(['/', '*', '.']) => return None,
            // An unknown name must not be found in the target database if that is not the database in which
            // it was looked up.
            (None, [name]) if !is_here => self.missing(&places, MAIN, name),
            (None, [schema, name]) if !is_here && schema != INFORMATION_SCHEMA => {
                self.missing(&places, schema, name)
            }
            (None, _) => return None,
        };
        if place.database != *target || place.schema == INFORMATION_SCHEMA {
            return Some(vec![place.database.to_string(), place.schema, place.name]);
        }
        let is_bare = parts.len() == 1 && place.schema == MAIN;
        if is_bare { None } else { Some(vec![place.schema, place.name]) }
    }

    fn is_elsewhere(&self, name: &str) -> bool {
        self.elsewhere(name).is_some()
    }

    fn view(&self, name: &str) -> Option<String> {
        if let Some((attached, own)) = self.elsewhere(name) {
            let view = self.other(&attached, |other| other.names.view(&own).cloned())?;
            return entasis_sql::view_of(&view.sql, &attached.name, &view.needs).ok();
        }
        match self.entry(name)? {
            Entry::View(view) => Some(view.sql.clone()),
            _ => None,
        }
    }

    fn file(&self, path: &str) -> Result<Arc<dyn Relation>> {
        entasis_files::open(path, &entasis_files::Options::default(), &self.session.cancel)
            .map(|file| self.noted(file))
    }

    fn copied_file(
        &self,
        path: &str,
        targets: &[Field],
        options: &[(String, Value)],
    ) -> Result<Arc<dyn Relation>> {
        entasis_files::copy_from(path, targets, options, &self.host())
    }

    fn table_function(&self, name: &str, args: &[(Option<String>, Argument)]) -> Result<Arc<dyn Relation>> {
        if let Some(rows) = self.session.functions.table(name, args) {
            return rows;
        }
        let lower = name.to_ascii_lowercase();
        let about_layouts = match lower.as_str() {
            relations::LAYOUT_ADVICE => Some(layouts::advice as AboutLayout),
            relations::LAYOUT_PROFILE => Some(layouts::profile as AboutLayout),
            _ => None,
        };
        if [relations::TABLES, relations::MEMORY].contains(&lower.as_str()) {
            return match args {
                [] if lower == relations::TABLES => Ok(self.all_tables()),
                [] => Ok(relations::memory(&self.session.here().shared.accounts())),
                _ => Err(Error::input(format!("{name} takes no arguments"))),
            };
        }
        match about_layouts {
            Some(function) => self.about_layout(name, args, function),
            None => {
                let stored = |table: &str| self.written_table(table).map(|(rows, _)| rows);
                let rejects = &self.session.rejects;
                relations::table_function(name, args, rejects, &self.host(), stored)
                    .map(|found| self.noted(found))
            }
        }
    }

    fn names(&self) -> Vec<String> {
        let mut names = self.session.names_of(&self.names);
        names.extend(relations::information_schema_names());
        for other in self.session.databases().iter().filter(|other| other.name != self.session.database) {
            let entries = other.newest_names();
            let shown = entries.entries().filter(|entry| matches!(entry, Entry::Table(_) | Entry::View(_)));
            names.extend(shown.map(|entry| format!("{}.{}", other.name, entry.shown_name())));
        }
        names
    }

    fn setting(&self, name: &str) -> Option<String> {
        settings::get(self.session, name).ok()
    }

    fn session(&self) -> entasis_functions::Session {
        self.clocks
    }
}

/// A sequence, for a connection that takes values from it.
#[derive(Debug)]
struct TakenBy {
    sequence: Arc<Sequence>,
    /// Why no value can be taken from it.
    refused: Option<Error>,
    numbers: Arc<Numbers>,
}

impl entasis_sql::Sequence for TakenBy {
    fn next(&self) -> Result<i64> {
        if let Some(error) = &self.refused {
            return Err(error.clone());
        }
        self.numbers.take(&self.sequence)
    }

    fn current(&self) -> Result<i64> {
        self.numbers.last(&self.sequence).ok_or_else(|| {
            let text =
                format!("this connection has not taken a value of sequence {} yet", self.sequence.name);
            Error::input(text).with_hint(format!("nextval('{}') takes one", self.sequence.name))
        })
    }
}
