//! The objects of a catalog, under their names.

use crate::definition::{Definition, Sequence};
use crate::table::Table;
use entasis_vector::{DataType, Schema, name};
use std::sync::Arc;

/// A view: a name for the text of a query.
#[derive(Debug, Clone)]
pub struct View {
    /// Its name, as it was written.
    pub name: String,
    /// The text of its SELECT.
    pub sql: String,
    /// Its columns when it was created.
    pub schema: Schema,
    /// The names of the tables, views and sequences in its query, in lower case.
    pub needs: Vec<String>,
}

/// A table under its name, with its declarations. A change of the declarations makes a new entry.
#[derive(Debug)]
pub struct TableEntry {
    /// Its name, as it was written.
    pub name: String,
    /// The rows.
    pub table: Arc<Table>,
    /// The declarations.
    pub definition: Arc<Definition>,
    /// For each key of the definition, the table by which it is looked up ([`crate::table::index`]); `None`
    /// if that is the table itself, because the key is its layout key.
    pub indexes: Vec<Option<Arc<Table>>>,
}

impl TableEntry {
    /// A table without declarations, under its own name.
    pub fn plain(table: Arc<Table>) -> TableEntry {
        TableEntry { name: table.name().to_owned(), table, definition: Arc::default(), indexes: Vec::new() }
    }
}

/// A name for a type. Whoever uses it takes the type, and does not need the name any more.
#[derive(Debug, Clone)]
pub struct NamedType {
    /// Its name, as it was written.
    pub name: String,
    /// The type.
    pub ty: DataType,
}

/// What a name stands for.
#[derive(Debug, Clone)]
pub enum Entry {
    /// A table.
    Table(Arc<TableEntry>),
    /// A view.
    View(Arc<View>),
    /// A sequence.
    Sequence(Arc<Sequence>),
    /// A type.
    Type(Arc<NamedType>),
    /// A schema: its name and a dot, with which the names of all objects in it begin.
    Schema(Arc<str>),
}

impl Entry {
    /// Its kind, as errors name it.
    pub fn kind(&self) -> &'static str {
        match self {
            Entry::Table(_) => "table",
            Entry::View(_) => "view",
            Entry::Sequence(_) => "sequence",
            Entry::Type(_) => "type",
            Entry::Schema(_) => "schema",
        }
    }

    /// Its name, as it was written.
    pub fn name(&self) -> &str {
        match self {
            Entry::Table(entry) => &entry.name,
            Entry::View(view) => &view.name,
            Entry::Sequence(sequence) => &sequence.name,
            Entry::Type(named) => &named.name,
            Entry::Schema(name) => name,
        }
    }

    /// Its name as users write it.
    pub fn shown_name(&self) -> String {
        match self {
            Entry::Schema(name) => name.trim_end_matches('.').to_owned(),
            other => name::shown(other.name()),
        }
    }

    /// True if both are the same object, not one that has replaced the other.
    pub fn is(&self, other: &Entry) -> bool {
        match (self, other) {
            (Entry::Table(a), Entry::Table(b)) => Arc::ptr_eq(a, b),
            (Entry::View(a), Entry::View(b)) => Arc::ptr_eq(a, b),
            (Entry::Sequence(a), Entry::Sequence(b)) => Arc::ptr_eq(a, b),
            (Entry::Type(a), Entry::Type(b)) => Arc::ptr_eq(a, b),
            (Entry::Schema(a), Entry::Schema(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

/// The prefix of the names of temporary objects.
const TEMPORARY: &str = "temp.";

/// True if this is the name of a temporary object.
pub fn is_temporary(name: &str) -> bool {
    name.get(..TEMPORARY.len()).is_some_and(|start| start.eq_ignore_ascii_case(TEMPORARY))
}

/// The prefix of the keys of the temporary objects of an owner, and of no others.
pub(super) fn space_of(owner: u64) -> String {
    format!("{SPACE}{owner}:")
}

/// The first character of the key of a temporary object.
pub(super) const SPACE: &str = "\u{1}";

/// The space of a key: its prefix, which is empty for the common space.
pub(super) fn space(key: &str) -> &str {
    match key.starts_with(SPACE) {
        true => key.find(':').map_or("", |end| &key[..=end]),
        false => "",
    }
}

/// A name in the form in which it is looked up.
pub(crate) fn key(name: &str) -> String {
    name::fold(name)
}

/// The names that an object needs but its own, in lower case.
pub(super) fn needs(entry: &Entry) -> Vec<String> {
    let needed: Vec<&str> = match entry {
        Entry::View(view) => view.needs.iter().map(String::as_str).collect(),
        Entry::Table(table) => {
            let definition = &table.definition;
            let parents = definition.foreign_keys.iter().map(|foreign| foreign.table.as_str());
            parents
                .chain(definition.identities())
                .chain(definition.sequences.iter().map(String::as_str))
                .collect()
        }
        Entry::Sequence(_) | Entry::Type(_) | Entry::Schema(_) => Vec::new(),
    };
    let own = key(entry.name());
    let schema = schema_of(entry.name()).filter(|schema| schema.len() < own.len());
    needed
        .into_iter()
        .chain(schema)
        .map(key)
        .filter(|needed| matches!(entry, Entry::View(_)) || *needed != own)
        .collect()
}

/// The schema in a qualified name, with the dot.
fn schema_of(name: &str) -> Option<&str> {
    name.find('.').map(|dot| &name[..=dot])
}
