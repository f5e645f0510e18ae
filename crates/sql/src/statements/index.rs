//! `CREATE INDEX`.
//!
//! A unique index is another name for a unique key. Not supported: indexes on expressions, partial indexes,
//! and indexes with additional columns.

use super::binder::Binder;
use super::bound::Statement;
use super::definition::{has_constraint, key_columns};
use entasis_engine::relation::{Key, KeyKind};
use entasis_syntax::clauses;
use entasis_syntax::object_name::{is_temporary, table_name};
use entasis_syntax::place::locate_ident;
use entasis_vector::{Error, Result, name};
use sqlparser::ast::CreateIndex;

impl Binder<'_> {
    pub(crate) fn create_index(&self, index: &CreateIndex, or_replace: bool) -> Result<Statement> {
        clauses::create_index(index)?;
        let table = table_name(&index.table_name)?;
        let relation = self.table(&table)?;
        let definition = self.catalog.definition(&table).unwrap_or_default();
        let columns = key_columns(relation.schema(), &index.columns)
            .map_err(|error| error.with_context(format!("table {table}")))?;
        for (i, column) in columns.iter().enumerate() {
            if columns[..i].contains(column) {
                let name = &relation.schema()[*column].name;
                return Err(Error::input(format!("the column {name} occurs twice in the index")));
            }
        }
        let name = match &index.name {
            Some(name) if name.0.len() > 2 => {
                return Err(Error::input(format!("there is no database {}", name.0[0])));
            }
            Some(name) => {
                let own = table_name(name)?;
                let is_replaced = or_replace && definition.keys.iter().any(|key| key.name == own);
                if has_constraint(&definition, &own) && !index.if_not_exists && !is_replaced {
                    let error = Error::input(format!("there is an index {own} already"));
                    let ident = name.0.last().and_then(|part| part.as_ident());
                    return Err(ident.map_or(error.clone(), |ident| locate_ident(error, ident)));
                }
                own
            }
            None if index.if_not_exists => {
                return Err(Error::input("CREATE INDEX IF NOT EXISTS needs a name"));
            }
            None => {
                let parts = columns.iter().map(|&i| relation.schema()[i].name.to_ascii_lowercase());
                let (schema, own) = name::split(&table);
                // The names of indexes of temporary tables have no schema.
                let schema = if is_temporary(&table) { name::MAIN } else { schema };
                let words: Vec<String> =
                    std::iter::once(own.to_owned()).chain(parts).chain(["idx".into()]).collect();
                let own = words.join("_");
                let name = name::joined(schema, &own);
                let numbered = (1..).map(|number| name::joined(schema, &format!("{own}{number}")));
                let mut names = std::iter::once(name.clone()).chain(numbered);
                let is_taken =
                    |name: &str| self.catalog.table_with_index(name, is_temporary(&table)).is_some();
                let is_free = |name: &String| !has_constraint(&definition, name) && !is_taken(name);
                names.find(is_free).unwrap_or(name)
            }
        };
        let kind = if index.unique { KeyKind::Unique } else { KeyKind::Index };
        let key = Key { name, columns, kind };
        Ok(Statement::CreateIndex { table, key, if_not_exists: index.if_not_exists, or_replace })
    }
}
