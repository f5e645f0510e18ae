//! The search path: an object that is named without a schema is looked up among the temporary ones of the
//! connection, then in the schemas of its search path, then in `main`, which need not be in the path. New
//! objects go to the first schema of the path.

use entasis_sql::WrittenName;
use entasis_storage::CatalogVersion;
use entasis_vector::name;
pub(crate) use entasis_vector::name::MAIN;
use std::fmt;
use std::sync::Arc;

/// The schema of temporary objects.
pub(crate) const TEMP: &str = "temp";

/// Schemas in lower case, in the order in which they are searched. `main` is last, if it is not in the path.
#[derive(Debug, Clone, Default)]
pub(crate) struct SearchPath(Arc<[String]>);

impl SearchPath {
    /// The search path of a text: names separated by commas. Lookups skip schemas that do not exist.
    pub(crate) fn parse(text: &str) -> SearchPath {
        let mut schemas: Vec<String> = Vec::new();
        for name in text.split(',').map(|name| name.trim().trim_matches('"').to_ascii_lowercase()) {
            let name = if name == "public" { MAIN.to_owned() } else { name };
            if !name.is_empty() && !schemas.contains(&name) {
                schemas.push(name);
            }
        }
        SearchPath(schemas.into())
    }

    /// The search path of one schema, whose name is in lower case.
    pub(crate) fn of(schema: &str) -> SearchPath {
        SearchPath([schema.to_owned()].into())
    }

    /// True if the path contains only `main`.
    pub(crate) fn is_main(&self) -> bool {
        self.0.iter().all(|schema| schema == MAIN)
    }

    /// Its schemas, with `main` at the end if it is nowhere else.
    pub(crate) fn schemas(&self) -> impl Iterator<Item = &str> {
        let main = (!self.0.iter().any(|schema| schema == MAIN)).then_some(MAIN);
        self.0.iter().map(String::as_str).chain(main)
    }

    /// The schema other than `main` in which an object of this name is found, without its dot.
    pub(crate) fn schema_of<'a>(&'a self, names: &CatalogVersion, name: &str) -> Option<&'a str> {
        if names.get(&name::joined(TEMP, name)).is_some() {
            return Some(TEMP);
        }
        self.found_in(names, name).filter(|schema| *schema != MAIN)
    }

    /// The schema in which an object of this name, not a temporary one, is found.
    pub(crate) fn found_in<'a>(&'a self, names: &CatalogVersion, name: &str) -> Option<&'a str> {
        self.schemas().find(|schema| names.get(&name::joined(schema, name)).is_some())
    }

    /// The key under which the catalog has the object that a text names.
    pub(crate) fn find(&self, names: &CatalogVersion, written: &WrittenName) -> String {
        match written.has_schema {
            true => written.name.clone(),
            false => name::joined(self.schema_of(names, &written.name).unwrap_or(MAIN), &written.name),
        }
    }
}

impl fmt::Display for SearchPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&if self.0.is_empty() { MAIN.to_owned() } else { self.0.join(", ") })
    }
}
