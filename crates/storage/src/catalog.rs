//! The catalog: what tables and views there are, by name.
//!
//! Names are found without regard to case and kept as they were written, as in DuckDB. Tables and views share one space
//! of names. Whoever has looked a table up keeps it; dropping a name takes nothing from running statements.

use crate::table::Table;
use entasis_vector::{Error, Result, Schema};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A view: a name for the text of a query.
#[derive(Debug, Clone)]
pub struct View {
    /// Its name, as it was written.
    pub name: String,
    /// The text of its SELECT.
    pub sql: String,
    /// Its columns when it was created.
    pub schema: Schema,
}

/// What to do about a name that is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfExists {
    /// An error.
    Fail,
    /// Leave it as it is: `IF NOT EXISTS`.
    Keep,
    /// Put the new one in its place: `OR REPLACE`. Only a table replaces a table, and a view a view.
    Replace,
}

#[derive(Debug, Clone)]
enum Entry {
    Table(Arc<Table>),
    View(Arc<View>),
}

/// Tables and views by name. Shared by all connections of a database.
#[derive(Debug, Default)]
pub struct Catalog {
    /// By lower-cased name.
    entries: RwLock<BTreeMap<String, Entry>>,
}

impl Catalog {
    /// An empty catalog.
    pub fn new() -> Catalog {
        Catalog::default()
    }

    /// Creates an empty table. True if it was created, false if the name was taken and is kept.
    ///
    /// # Errors
    /// Input, if the name is taken.
    pub fn create_table(&self, name: &str, schema: Schema, if_exists: IfExists) -> Result<bool> {
        self.add_table(Table::new(name, schema), if_exists)
    }

    /// Makes a table known, which may have been filled before. True if it was added, false if the name was taken and
    /// is kept.
    ///
    /// # Errors
    /// Input, if the name is taken.
    pub fn add_table(&self, table: Arc<Table>, if_exists: IfExists) -> Result<bool> {
        self.add(Entry::Table(table), if_exists)
    }

    /// Creates a view. True if it was created, false if the name was taken and is kept.
    ///
    /// # Errors
    /// Input, if the name is taken.
    pub fn create_view(&self, view: View, if_exists: IfExists) -> Result<bool> {
        self.add(Entry::View(Arc::new(view)), if_exists)
    }

    fn add(&self, entry: Entry, if_exists: IfExists) -> Result<bool> {
        let name = entry.name();
        let key = key(name);
        let mut entries = self.write();
        if let Some(taken) = entries.get(&key) {
            let same_kind =
                matches!((taken, &entry), (Entry::Table(_), Entry::Table(_)) | (Entry::View(_), Entry::View(_)));
            match if_exists {
                IfExists::Keep if same_kind => return Ok(false),
                IfExists::Replace if same_kind => {}
                _ => return Err(Error::input(format!("a {} named \"{name}\" already exists", taken.kind()))),
            }
        }
        entries.insert(key, entry);
        Ok(true)
    }

    /// Drops a table. False if there is none of this name.
    ///
    /// # Errors
    /// Input, if the name is that of a view.
    pub fn drop_table(&self, name: &str) -> Result<bool> {
        let mut entries = self.write();
        match entries.get(&key(name)) {
            Some(Entry::View(_)) => Err(Error::input(format!("\"{name}\" is a view")).with_hint("use DROP VIEW")),
            _ => Ok(entries.remove(&key(name)).is_some()),
        }
    }

    /// Drops a view. False if there is none of this name.
    ///
    /// # Errors
    /// Input, if the name is that of a table.
    pub fn drop_view(&self, name: &str) -> Result<bool> {
        let mut entries = self.write();
        match entries.get(&key(name)) {
            Some(Entry::Table(_)) => Err(Error::input(format!("\"{name}\" is a table")).with_hint("use DROP TABLE")),
            _ => Ok(entries.remove(&key(name)).is_some()),
        }
    }

    /// The table of this name.
    pub fn table(&self, name: &str) -> Option<Arc<Table>> {
        match self.read().get(&key(name)) {
            Some(Entry::Table(table)) => Some(table.clone()),
            _ => None,
        }
    }

    /// The view of this name.
    pub fn view(&self, name: &str) -> Option<Arc<View>> {
        match self.read().get(&key(name)) {
            Some(Entry::View(view)) => Some(view.clone()),
            _ => None,
        }
    }

    /// All tables, sorted by name.
    pub fn tables(&self) -> Vec<Arc<Table>> {
        let tables = |entry: &Entry| if let Entry::Table(table) = entry { Some(table.clone()) } else { None };
        self.read().values().filter_map(tables).collect()
    }

    /// All views, sorted by name.
    pub fn views(&self) -> Vec<Arc<View>> {
        let views = |entry: &Entry| if let Entry::View(view) = entry { Some(view.clone()) } else { None };
        self.read().values().filter_map(views).collect()
    }

    /// The names of all tables and views, as they were written, sorted.
    pub fn names(&self) -> Vec<String> {
        self.read().values().map(|entry| entry.name().to_owned()).collect()
    }

    // A panic under the lock leaves the map whole: each change is one call.
    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<String, Entry>> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<String, Entry>> {
        self.entries.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn kind(&self) -> &'static str {
        match self {
            Entry::Table(_) => "table",
            Entry::View(_) => "view",
        }
    }

    fn name(&self) -> &str {
        match self {
            Entry::Table(table) => table.name(),
            Entry::View(view) => &view.name,
        }
    }
}

fn key(name: &str) -> String {
    name.to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use entasis_vector::{DataType, Field};

    #[test]
    fn names_are_found_in_any_case_and_kept_as_written() {
        let catalog = Catalog::new();
        let schema = || vec![Field::new("a", DataType::Int32)];
        assert!(catalog.create_table("Trips", schema(), IfExists::Fail).unwrap());
        assert_eq!(catalog.table("TRIPS").unwrap().name(), "Trips");
        assert!(!catalog.create_table("trips", schema(), IfExists::Keep).unwrap());
        let error = catalog.create_table("trips", schema(), IfExists::Fail).unwrap_err();
        assert_eq!(error.message(), "a table named \"trips\" already exists");
        let view = View { name: "trips".into(), sql: "SELECT 1".into(), schema: schema() };
        assert!(catalog.create_view(view.clone(), IfExists::Replace).is_err());
        assert!(catalog.drop_view("trips").is_err());
        assert!(catalog.drop_table("tripS").unwrap());
        assert!(!catalog.drop_table("trips").unwrap());
        assert!(catalog.create_view(view, IfExists::Fail).unwrap());
        assert_eq!(catalog.names(), ["trips"]);
    }
}
