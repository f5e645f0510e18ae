//! Where an object is looked for that is named without a schema: among the temporary ones of the connection,
//! then in the schemas of its search path, then in `main`, which need not be named. New objects go to the
//! first schema of the path.

use entasis_sql::WrittenName;
use entasis_storage::{CatalogVersion, TEMPORARY};
use std::fmt;
use std::sync::Arc;

/// The schema that is always there.
pub(crate) const MAIN: &str = "main";

/// Schemas in lower case, as they are searched. `main` is last, if it is not there.
#[derive(Debug, Clone, Default)]
pub(crate) struct SearchPath(Arc<[String]>);

impl SearchPath {
    /// That of a text: names separated by commas. A schema that is not there is passed over when names are
    /// looked for.
    pub(crate) fn parse(text: &str) -> SearchPath {
        let mut schemas: Vec<String> = Vec::new();
        for name in text.split(',').map(|name| name.trim().trim_matches('"').to_lowercase()) {
            let name = if name == "public" { MAIN.to_owned() } else { name };
            if !name.is_empty() && !schemas.contains(&name) {
                schemas.push(name);
            }
        }
        SearchPath(schemas.into())
    }

    /// That of one schema, whose name is in lower case.
    pub(crate) fn of(schema: &str) -> SearchPath {
        SearchPath([schema.to_owned()].into())
    }

    /// True if there is nothing but `main`.
    pub(crate) fn is_main(&self) -> bool {
        self.0.iter().all(|schema| schema == MAIN)
    }

    /// Its schemas, `main` at the end if it is nowhere else.
    pub(crate) fn schemas(&self) -> impl Iterator<Item = &str> {
        let main = (!self.0.iter().any(|schema| schema == MAIN)).then_some(MAIN);
        self.0.iter().map(String::as_str).chain(main)
    }

    /// The schema besides `main` in which an object of this name is found, without its dot.
    pub(crate) fn schema_of<'a>(&'a self, names: &CatalogVersion, name: &str) -> Option<&'a str> {
        if names.get(&format!("{TEMPORARY}{name}")).is_some() {
            return Some(TEMPORARY.trim_end_matches('.'));
        }
        self.found_in(names, name).filter(|schema| *schema != MAIN)
    }

    /// The schema in which an object of this name is found that is not temporary.
    pub(crate) fn found_in<'a>(&'a self, names: &CatalogVersion, name: &str) -> Option<&'a str> {
        let is_there = |schema: &&str| match *schema {
            MAIN => names.get(name).is_some(),
            schema => names.get(&format!("{schema}.{name}")).is_some(),
        };
        self.schemas().find(is_there)
    }

    /// The name by which the catalog knows what a text names.
    pub(crate) fn find(&self, names: &CatalogVersion, written: &WrittenName) -> String {
        let schema = if written.has_schema { None } else { self.schema_of(names, &written.name) };
        schema.map_or_else(|| written.name.clone(), |schema| format!("{schema}.{}", written.name))
    }
}

impl fmt::Display for SearchPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&if self.0.is_empty() { MAIN.to_owned() } else { self.0.join(", ") })
    }
}
