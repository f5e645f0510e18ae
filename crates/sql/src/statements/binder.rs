//! The queries of statements: bound, and described for `DESCRIBE`.
//!
//! Statements are bound by methods of the [`Binder`].

use super::named_types::replaced;
use super::resolve::resolved;
use entasis_binder::environment::schema::{elsewhere, unknown_table};
use entasis_binder::environment::{Catalog, Parameters};
use entasis_binder::{Given, bind_query};
use entasis_engine::plan::{Columns, Node, Output, Plan, Values};
use entasis_engine::relation::{ColumnDefault, Definition, Relation};
use entasis_syntax::build::query_of;
use entasis_syntax::object_name::table_name;
use entasis_syntax::on_deep_stack;
use entasis_syntax::parse::parse;
use entasis_syntax::parsed::Ast;
use entasis_vector::{ColumnId, DataType, Error, Field, Result, Schema, Value, name};
use sqlparser::ast::{Query, SelectItem, SetExpr, TableFactor, With};
use std::sync::Arc;

/// Binds one statement.
pub(super) struct Binder<'a> {
    /// The names that the statement may use.
    pub(super) catalog: &'a dyn Catalog,
    /// The statement's parameters.
    pub(super) params: Parameters<'a>,
    /// Tables besides those of the catalog.
    pub(super) given: Given,
    /// The `WITH` before a statement that changes rows: `WITH … INSERT`.
    pub(super) with: Option<&'a With>,
}

impl Binder<'_> {
    /// A query that also sees the `WITH` before the statement.
    pub(super) fn behind_with(&self, mut query: Query) -> Query {
        let Some(with) = self.with else { return query };
        if query.with.is_some() {
            let mut around = query_of(SetExpr::Query(Box::new(query)));
            around.with = Some(with.clone());
            return around;
        }
        query.with = Some(with.clone());
        query
    }

    /// Binds a query.
    pub(super) fn query(&self, query: &Query) -> Result<Plan> {
        let given = Given { describe: Some(described_rows), ..self.given.clone() };
        bind_query(query, self.catalog, self.params, &given)
    }

    /// A table, to which rows can be added.
    ///
    /// # Errors
    /// Input, if there is none of that name.
    pub(super) fn table(&self, name: &str) -> Result<Arc<dyn Relation>> {
        match self.catalog.table(name) {
            Some(_) if self.catalog.is_elsewhere(name) => Err(elsewhere(name)),
            Some(relation) => Ok(relation),
            None if self.catalog.view(name).is_some() => {
                Err(Error::input(format!("{name} is a view; rows go only into tables")))
            }
            None => Err(unknown_table(name, self.catalog)),
        }
    }

    /// The columns that `DESCRIBE` describes, and what is declared for them.
    pub(super) fn described(&self, query: &Query) -> Result<(Schema, Definition)> {
        // A table knows more about its columns than a query over it.
        if let SetExpr::Select(select) = &*query.body
            && let ([from], [SelectItem::Wildcard(_)]) =
                (select.from.as_slice(), select.projection.as_slice())
            && let (TableFactor::Table { name, args: None, .. }, true) =
                (&from.relation, from.joins.is_empty())
            && select.selection.is_none()
            && let Ok(name) = table_name(name)
            && let Some(relation) = self.catalog.table(&name)
        {
            let definition = self.catalog.definition(&name).map(|definition| Definition::clone(&definition));
            return Ok((relation.schema().clone(), definition.unwrap_or_default()));
        }
        Ok((self.query(query)?.schema(), Definition::default()))
    }
}

/// The rows that a `DESCRIBE …` in `FROM` returns.
///
/// # Errors
/// Those of binding the described query, without positions: its text is not the statement's.
fn described_rows(text: &str, catalog: &dyn Catalog, params: Parameters<'_>) -> Result<Plan> {
    let (columns, definition) = described_text(text, catalog, params)?;
    Ok(description(&columns, &definition))
}

/// The columns and constraints of what a `DESCRIBE …` describes.
fn described_text(text: &str, catalog: &dyn Catalog, params: Parameters<'_>) -> Result<(Schema, Definition)> {
    let described = parse(text)?.into_iter().next().map(|parsed| {
        on_deep_stack(parsed.is_deep(), || {
            let resolved = resolved(&parsed.ast, catalog, true)?;
            let ast = resolved.as_ref().unwrap_or(&parsed.ast);
            match replaced(ast, catalog).as_ref().unwrap_or(ast) {
                Ast::Describe(query) => {
                    Binder { catalog, params, given: Given::default(), with: None }.described(query)
                }
                _ => Err(Error::internal(format!("{text} is not DESCRIBE"))),
            }
        })
    });
    described.unwrap_or_else(|| Ok(Default::default()))
}

/// What `DESCRIBE` says of a column.
struct Described {
    name: String,
    ty: String,
    null: &'static str,
    key: Option<String>,
    default: Option<String>,
}

/// The key of a column is `PRI` if it is part of the primary key, and `UNI` if it is unique by itself, as in
/// DuckDB.
fn described_column(at: usize, field: &Field, definition: &Definition) -> Described {
    let is_primary = definition.primary_key().is_some_and(|key| key.columns.contains(&at));
    Described {
        name: field.name.to_string(),
        ty: field.ty.to_string(),
        null: if field.nullable { "YES" } else { "NO" },
        key: match () {
            () if is_primary => Some("PRI".to_owned()),
            () if definition.unique_keys().any(|key| key.columns == [at]) => Some("UNI".to_owned()),
            () => None,
        },
        default: match definition.default_of(at) {
            ColumnDefault::Null => None,
            ColumnDefault::Expression(sql) => Some(sql.clone()),
            ColumnDefault::Identity { sequence, .. } => Some(format!("nextval('{}')", name::shown(sequence))),
        },
    }
}

/// The result of `DESCRIBE` for these columns: constant rows.
pub(super) fn description(described: &Schema, definition: &Definition) -> Plan {
    let mut columns = Columns::default();
    let names = ["column_name", "column_type", "null", "key", "default"];
    let ids: Vec<ColumnId> = names.iter().map(|name| columns.add(*name, DataType::Varchar, true)).collect();
    let text = |text: Option<String>| text.map_or(Value::Null, |text| Value::Text(text.into()));
    let row = |(at, field): (usize, &Field)| {
        let Described { name, ty, null, key, default } = described_column(at, field, definition);
        vec![text(Some(name)), text(Some(ty)), text(Some(null.to_owned())), text(key), text(default)]
    };
    let rows = described.iter().enumerate().map(row).collect();
    let output =
        names.iter().zip(&ids).map(|(name, column)| Output { name: (*name).to_owned(), column: *column });
    let output = output.collect();
    Plan { root: Node::Values(Values { columns: ids, rows }), columns, output }
}
