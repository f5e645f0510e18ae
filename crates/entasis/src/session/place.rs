//! Where a named object is: in which of the databases that a session sees, and in which schema
//! (docs/decisions/0026).
//!
//! | written | means |
//! |---|---|
//! | `t` | a temporary object; else what the search path of the current database finds |
//! | `x.t` | `t` in the schema `x` of the current database, if it exists; else in the database `x` |
//! | `x.y.t` | `t` in the schema `y` of the database `x` |
//!
//! Temporary objects are in the database for which the connection was made. Names arrive in lower case.

use crate::catalog::search_path::{MAIN, SearchPath, TEMP};
use crate::session::{Attached, Session};
use entasis_storage::CatalogVersion;
use entasis_vector::name;
use std::sync::Arc;

/// The schema of the views that describe the catalog.
pub(crate) const INFORMATION_SCHEMA: &str = "information_schema";

/// Where an object is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The name of its database.
    pub(crate) database: Arc<str>,
    /// Its schema.
    pub(crate) schema: String,
    /// Its own name.
    pub(crate) name: String,
}

/// How a session resolves names.
pub(crate) struct Places {
    /// The databases that it sees, its own first.
    databases: Vec<Attached>,
    /// The index of the current one.
    current: usize,
    /// The search path of the current database.
    path: SearchPath,
    /// The newest names of the session's own database, if that is not the target database; no temporary
    /// objects are created there in that case.
    own: Option<CatalogVersion>,
}

impl Places {
    /// Name resolution for a session.
    pub(crate) fn of(session: &Session) -> Places {
        let (databases, current) = (session.databases(), session.current());
        let is_it = |other: &Attached| current.database.as_ref() == Some(&other.name);
        let at = databases.iter().position(is_it).unwrap_or(0);
        let own = &databases[0];
        let own = (own.name != session.database).then(|| own.newest_names());
        Places { databases, current: at, path: current.path, own }
    }

    /// The same, with another current database, whose objects are looked up in `main`.
    pub(crate) fn within(self, database: &str) -> Places {
        let at = self.databases.iter().position(|other| *other.name == *database);
        Places { current: at.unwrap_or(self.current), path: SearchPath::default(), ..self }
    }

    /// The current database.
    pub(crate) fn current(&self) -> &Attached {
        &self.databases[self.current]
    }

    /// The database of this name.
    pub(crate) fn database(&self, name: &str) -> Option<&Attached> {
        self.databases.iter().find(|other| *other.name == *name)
    }

    /// The place of the object whose name has these parts; `names` returns the names of a database. `None` if
    /// it cannot be determined: the schema or database that the name begins with does not exist, a name of
    /// one part is not found, or the name is in `information_schema`, which every database has.
    pub(crate) fn find(
        &self,
        parts: &[String],
        names: &mut dyn FnMut(&Attached) -> CatalogVersion,
    ) -> Option<Place> {
        let is_temporary = |schema: &str| schema == TEMP || schema == "pg_temp";
        let is_main = |schema: &str| schema == MAIN || schema == "public";
        let at = |database: &Attached, schema: &str, name: &str| {
            let schema = if is_main(schema) { MAIN } else { schema };
            let schema = if is_temporary(schema) { TEMP } else { schema };
            Place { database: database.name.clone(), schema: schema.to_owned(), name: name.to_owned() }
        };
        let current = self.current();
        match parts {
            [name] => {
                let own = &self.databases[0];
                // PERF: the first look at a database pins all of its tables.
                let own_names = self.own.clone().unwrap_or_else(|| names(own));
                if own_names.get(&name::joined(TEMP, name)).is_some() {
                    return Some(at(own, TEMP, name));
                }
                let names = names(current);
                self.path.found_in(&names, name).map(|schema| at(current, schema, name))
            }
            [schema, _] if schema == INFORMATION_SCHEMA => None,
            [schema, name] if is_temporary(schema) => Some(at(&self.databases[0], TEMP, name)),
            [schema, name] if is_main(schema) => Some(at(current, MAIN, name)),
            [first, name] => match names(current).get(&format!("{first}.")) {
                Some(_) => Some(at(current, first, name)),
                None => self.database(first).map(|database| at(database, MAIN, name)),
            },
            [database, schema, name] => self.database(database).map(|database| at(database, schema, name)),
            _ => None,
        }
    }
}

impl Place {
    /// The key under which the catalog of its database has the object.
    pub(crate) fn own_name(&self) -> String {
        name::joined(&self.schema, &self.name)
    }
}
