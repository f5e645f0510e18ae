//! How names become relations: the front end's view of this connection.
//!
//! A name is looked for among the relations that the host program registered, then the tables, then (by the front
//! end) the views, and last the program's variables. A name that is a path is a file.

use crate::connection::Connection;
use crate::relations::TableRelation;
use crate::{files, relations, settings};
use entasis_engine::relation::Relation;
use entasis_vector::{DataType, Result, Value};
use std::sync::Arc;

/// The names that a connection sees.
pub(crate) struct Names<'a>(pub(crate) &'a Connection);

impl entasis_sql::Catalog for Names<'_> {
    fn table(&self, name: &str) -> Option<Arc<dyn Relation>> {
        let connection = self.0;
        if let Some(relation) = connection.registered.read().expect("no panic while locked").get(&name.to_lowercase()) {
            return Some(relation.clone());
        }
        if let Some(table) = connection.shared.catalog.table(name) {
            return Some(Arc::new(TableRelation::new(table.snapshot())));
        }
        if connection.shared.catalog.view(name).is_some() {
            return None;
        }
        let replacement = connection.replacement.read().expect("no panic while locked").clone();
        replacement.and_then(|find| find(name))
    }

    fn table_with_row_ids(&self, name: &str) -> Option<Arc<dyn Relation>> {
        let table = self.0.shared.catalog.table(name)?;
        Some(Arc::new(TableRelation::with_row_ids(table.snapshot())))
    }

    fn view(&self, name: &str) -> Option<String> {
        self.0.shared.catalog.view(name).map(|view| view.sql.clone())
    }

    fn file(&self, path: &str) -> Result<Arc<dyn Relation>> {
        files::open(path, &files::Options::default())
    }

    fn table_function(&self, name: &str, args: &[(Option<String>, Value, DataType)]) -> Result<Arc<dyn Relation>> {
        relations::table_function(name, args)
    }

    fn names(&self) -> Vec<String> {
        self.0.tables()
    }

    fn setting(&self, name: &str) -> Option<String> {
        settings::get(self.0, name).ok()
    }
}
