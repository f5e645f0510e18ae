//! How names become relations: the front end's view of this connection.
//!
//! A name is looked for among the relations that the host program registered, then the tables, then (by the
//! front end) the views, and last the program's variables. A name that is a path is a file.
//!
//! What is in another database is called `database.schema.object` here. It can be read, and nothing else:
//! there is no definition of it.

use crate::relations::{self, TableRelation};
use crate::search_path::{MAIN, SearchPath};
use crate::session::{Attached, Session};
use crate::work::{Other, Work};
use crate::{files, settings};
use entasis_engine::relation::{Definition, Index, KeyKind, Relation};
use entasis_sql::Argument;
use entasis_storage::index::index_columns;
use entasis_storage::{CatalogVersion, Entry, Sequence, TEMPORARY, TableSnapshot};
use entasis_vector::{Error, Field, Result, Value};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The schema that tells what there is.
const INFORMATION_SCHEMA: &str = "information_schema";
/// Schemas that every database has.
const STANDING: [&str; 5] = [MAIN, "public", INFORMATION_SCHEMA, "temp", "pg_temp"];

/// The names that a statement sees: those of its work, and those of its connection.
pub(crate) struct Names<'a> {
    /// What its connection knows.
    session: &'a Session,
    /// Objects by their names.
    names: CatalogVersion,
    /// Where those without a schema are looked for.
    path: SearchPath,
    /// The time, and the time zone.
    clocks: entasis_sql::Session,
    /// What is seen of tables.
    work: Mutex<&'a mut Work>,
}

impl<'a> Names<'a> {
    pub(crate) fn new(session: &'a Session, work: &'a mut Work) -> Names<'a> {
        let clocks = entasis_sql::Session {
            transaction: work.began,
            statement: entasis_sql::clock(),
            zone: session.time_zone(),
        };
        Names {
            session,
            names: work.names.clone(),
            path: session.search_path(),
            clocks,
            work: Mutex::new(work),
        }
    }

    /// What a name stands for.
    fn entry(&self, name: &str) -> Option<&Entry> {
        let entry = self.names.get(name)?;
        self.work.lock().unwrap_or_else(PoisonError::into_inner).sees(entry);
        Some(entry)
    }

    /// What the statement sees, for those who look around.
    fn seen(&self) -> relations::Seen<'_> {
        let registered = self.session.registered.read().expect("no panic while locked");
        let mut registered: Vec<_> = registered.iter().map(|(name, of)| (name.clone(), of.clone())).collect();
        registered.sort_by(|(a, _), (b, _)| a.cmp(b));
        relations::Seen { names: &self.names, registered }
    }

    /// The name of a table, and what it sees of it and of its indexes.
    fn snapshot(&self, name: &str) -> Option<(&str, TableSnapshot, Vec<Index>)> {
        let Entry::Table(entry) = self.entry(name)? else { return None };
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        work.pin(entry);
        let keys = entry.definition.keys.iter().zip(&entry.indexes);
        let indexes = keys.filter_map(|(key, index)| {
            Some(Index {
                table: work.snapshot(index.as_ref()?),
                columns: index_columns(key, entry.table.options()),
                key_columns: key.columns.len(),
                is_whole: key.kind == KeyKind::Index,
            })
        });
        let indexes = indexes.collect();
        Some((&entry.name, work.snapshot(&entry.table), indexes))
    }

    /// The other database that a name is of, and its name there.
    fn elsewhere<'n>(&self, name: &'n str) -> Option<(Attached, &'n str)> {
        let (database, rest) = name.split_once('.').filter(|(_, rest)| rest.contains('.'))?;
        let attached = self.session.attached().into_iter().find(|other| other.name == database)?;
        Some((attached, rest.strip_prefix("main.").unwrap_or(rest)))
    }

    /// Does something with what is seen of another database.
    fn other<R>(&self, attached: &Attached, look: impl FnOnce(&mut Other) -> R) -> R {
        look(self.work.lock().unwrap_or_else(PoisonError::into_inner).other(attached))
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
            Some(TableRelation::new(name, rows, indexes, self.session.shared.costs()))
        })
    }

    /// A table with its row ids.
    pub(crate) fn with_row_ids(&self, name: &str) -> Option<TableRelation> {
        let (name, snapshot, indexes) = self.snapshot(name)?;
        Some(TableRelation::with_row_ids(name, snapshot, indexes, self.session.shared.costs()))
    }
}

impl entasis_sql::Catalog for Names<'_> {
    fn table(&self, name: &str) -> Option<Arc<dyn Relation>> {
        let session = self.session;
        if let Some(relation) = relations::information_schema(name, || self.seen()) {
            return Some(relation);
        }
        if let Some(relation) =
            session.registered.read().expect("no panic while locked").get(&name.to_lowercase())
        {
            return Some(relation.clone());
        }
        if let Some((attached, own)) = self.elsewhere(name) {
            let relation = self.table_elsewhere(name, &attached, own)?;
            return Some(Arc::new(relation));
        }
        if let Some((name, snapshot, indexes)) = self.snapshot(name) {
            return Some(Arc::new(TableRelation::new(name, snapshot, indexes, session.shared.costs())));
        }
        if self.names.view(name).is_some() {
            return None;
        }
        let replacement = session.replacement.read().expect("no panic while locked").clone();
        let rejects =
            || (name == relations::REJECT_ERRORS).then(|| relations::reject_errors(&session.rejects));
        replacement.and_then(|find| find(name)).or_else(rejects)
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
        let Entry::Sequence(sequence) = self.entry(name)? else { return None };
        let sequence = sequence.clone();
        let refusal = self.session.shared.refuse_change(&sequence.name).err();
        Some(Arc::new(TakenBy { sequence, refusal, taken: self.session.taken.clone() }))
    }

    fn table_with_index(&self, name: &str, temporary: bool) -> Option<String> {
        self.names.table_with_index(name, temporary).map(|entry| entry.name.to_lowercase())
    }

    fn has_schema(&self, name: &str) -> bool {
        matches!(self.entry(&format!("{name}.")), Some(Entry::Schema(_)))
    }

    fn has_other_schemas(&self) -> bool {
        !self.path.is_main() || self.names.temporary().next().is_some() || !self.session.attached().is_empty()
    }

    fn schema_of(&self, name: &str) -> Option<String> {
        // What the host program has registered comes first.
        if self.session.is_registered(name) {
            return None;
        }
        self.path.schema_of(&self.names, name).map(str::to_owned)
    }

    fn current_schema(&self) -> Option<String> {
        let is_there = |schema: &&str| *schema == MAIN || self.names.get(&format!("{schema}.")).is_some();
        self.path.schemas().find(is_there).filter(|schema| *schema != MAIN).map(str::to_owned)
    }

    fn place(&self, parts: &[String]) -> Option<Vec<String>> {
        let attached = self.session.attached();
        if attached.is_empty() {
            return None;
        }
        let of = |database: &str| attached.iter().find(|other| other.name == database);
        let main = |schema: &str| match schema {
            "public" => MAIN.to_owned(),
            "pg_temp" => TEMPORARY.trim_end_matches('.').to_owned(),
            schema => schema.to_owned(),
        };
        let stands_for = self.session.stands_for.as_ref();
        let current = stands_for.and_then(|(database, path)| Some((of(database)?, path)));
        let own = self.session.database_name();
        match parts {
            [] => None,
            [name] => {
                let (database, path) = current?;
                let is_file = name.contains(['/', '*', '.']);
                if is_file || self.session.is_registered(name) {
                    return None;
                }
                let schema =
                    self.other(database, |other| path.schema_of(&other.names, name).map(str::to_owned));
                let schema = schema.unwrap_or_else(|| MAIN.to_owned());
                Some(vec![format!("{}.{schema}.{name}", database.name)])
            }
            [first, name] => {
                let key = format!("{first}.");
                let is_standing = STANDING.contains(&first.as_str());
                match current {
                    _ if first == INFORMATION_SCHEMA => None,
                    Some((database, _))
                        if is_standing || self.other(database, |other| other.names.get(&key).is_some()) =>
                    {
                        Some(vec![format!("{}.{}.{name}", database.name, main(first))])
                    }
                    None if is_standing || self.names.get(&key).is_some() => None,
                    _ if *first == own => Some(vec![MAIN.to_owned(), name.clone()]),
                    _ => of(first).map(|_| vec![format!("{first}.{MAIN}.{name}")]),
                }
            }
            [database, schema, name] if *database == own => Some(vec![main(schema), name.clone()]),
            [database, schema, name] => {
                of(database).map(|_| vec![format!("{database}.{}.{name}", main(schema))])
            }
            _ => None,
        }
    }

    fn is_elsewhere(&self, name: &str) -> bool {
        self.elsewhere(name).is_some()
    }

    fn view(&self, name: &str) -> Option<String> {
        if let Some((attached, own)) = self.elsewhere(name) {
            let view = self.other(&attached, |other| other.names.view(own).cloned())?;
            return entasis_sql::view_of(&view.sql, &attached.name, &view.needs).ok();
        }
        match self.entry(name)? {
            Entry::View(view) => Some(view.sql.clone()),
            _ => None,
        }
    }

    fn file(&self, path: &str) -> Result<Arc<dyn Relation>> {
        files::open(path, &files::Options::default())
    }

    fn copied_file(
        &self,
        path: &str,
        targets: &[Field],
        options: &[(String, Value)],
    ) -> Result<Arc<dyn Relation>> {
        files::copy_from(path, targets, options)
    }

    fn table_function(&self, name: &str, args: &[(Option<String>, Argument)]) -> Result<Arc<dyn Relation>> {
        relations::table_function(name, args, &self.session.rejects, |table| {
            let schema = if table.contains('.') { None } else { self.path.schema_of(&self.names, table) };
            let table = schema.map_or(table.to_owned(), |schema| format!("{schema}.{table}"));
            self.snapshot(&table).map(|(_, rows, _)| rows)
        })
    }

    fn names(&self) -> Vec<String> {
        let mut names = self.session.names_of(&self.names);
        names.extend(relations::information_schema_names());
        names
    }

    fn setting(&self, name: &str) -> Option<String> {
        settings::get(self.session, name).ok()
    }

    fn session(&self) -> entasis_sql::Session {
        self.clocks
    }
}

/// A sequence, and what a connection took of it last.
#[derive(Debug)]
struct TakenBy {
    sequence: Arc<Sequence>,
    /// Why no value can be taken of it.
    refusal: Option<Error>,
    taken: Arc<Mutex<HashMap<String, i64>>>,
}

impl entasis_sql::Sequence for TakenBy {
    fn next(&self) -> Result<i64> {
        self.refusal.clone().map_or(Ok(()), Err)?;
        let value = self.sequence.take()?;
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.insert(self.sequence.name.to_lowercase(), value);
        Ok(value)
    }

    fn current(&self) -> Result<i64> {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let value = taken.get(&self.sequence.name.to_lowercase()).copied();
        value.ok_or_else(|| {
            let text =
                format!("this connection has not taken a value of sequence {} yet", self.sequence.name);
            Error::input(text).with_hint(format!("nextval('{}') takes one", self.sequence.name))
        })
    }
}
