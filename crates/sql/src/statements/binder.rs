//! The queries of statements: bound, lowered, and described for `DESCRIBE`.
//!
//! Statements are bound by methods of the [`Binder`]. It passes every context the steps around DataFusion's
//! binder ([`STEPS`]).

use super::resolve::resolved;
use crate::binding::context::{Context, Given, Steps};
use crate::error::from_datafusion;
use crate::lower;
use crate::rewrite::{display_names, rewrite};
use datafusion_common::{Result as DfResult, ScalarValue};
use datafusion_expr::{LogicalPlan, LogicalPlanBuilder, ident, lit};
use entasis_binder::environment::schema::{elsewhere, unknown_table};
use entasis_binder::environment::{Catalog, Parameters};
use entasis_engine::plan::{Columns, Node, Output, Plan, Values};
use entasis_engine::relation::{ColumnDefault, Definition, Relation};
use entasis_syntax::build::query_of;
use entasis_syntax::object_name::table_name;
use entasis_syntax::on_deep_stack;
use entasis_syntax::parse::parse;
use entasis_syntax::parsed::Ast;
use entasis_vector::{ColumnId, DataType, Error, Field, Result, Schema, Value, name};
use sqlparser::ast::{Query, SelectItem, SetExpr, TableFactor, With};
use std::sync::{Arc, OnceLock};

/// The steps before and after DataFusion's binder, for every query.
pub(super) static STEPS: Steps = Steps { rewrite, lower: lower::lower, constant: lower::constant, describe };

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

/// True if queries are bound by [`entasis_binder`]: while the borrowed binder is still there, tests that
/// compare both say `ENTASIS_BINDER=borrowed`.
fn is_own() -> bool {
    static OWN: OnceLock<bool> = OnceLock::new();
    *OWN.get_or_init(|| std::env::var("ENTASIS_BINDER").map_or(true, |binder| binder != "borrowed"))
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

    /// Binds and lowers a query.
    pub(super) fn query(&self, query: &Query) -> Result<Plan> {
        if is_own() {
            let given = entasis_binder::Given {
                target: self.given.target.clone(),
                rows: self.given.rows.as_ref().map(|rows| Arc::new(rows.plan.clone())),
                is_view: self.given.is_view,
                describe: Some(described_rows),
            };
            return entasis_binder::bind_query(query, self.catalog, self.params, &given);
        }
        let names = display_names(query);
        let mut plan = match self.bind_query(query, false) {
            // Two results of the same name are not an error for us: rename those that the binder cannot
            // distinguish.
            Err(error) if error.message().contains("unique expression names") => {
                self.bind_query(query, true)?
            }
            other => other?,
        };
        if names.len() == plan.output.len() {
            for (output, name) in plan.output.iter_mut().zip(names) {
                if let Some(name) = name {
                    output.name = name;
                }
            }
        }
        Ok(plan)
    }

    fn bind_query(&self, query: &Query, suffix: bool) -> Result<Plan> {
        let context = Context::new(self.catalog, self.params, self.given.clone(), &STEPS);
        context.bind_named(Box::new(query.clone()), suffix)
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
fn describe(text: &str, catalog: &dyn Catalog, params: Parameters<'_>) -> Result<LogicalPlan> {
    let (columns, definition) = described_text(text, catalog, params)?;
    description(&columns, &definition).map_err(from_datafusion)
}

/// The same as a plan of constant rows.
fn described_rows(text: &str, catalog: &dyn Catalog, params: Parameters<'_>) -> Result<Plan> {
    let (schema, definition) = described_text(text, catalog, params)?;
    let mut columns = Columns::default();
    let names = ["column_name", "column_type", "null", "key", "default"];
    let ids: Vec<ColumnId> = names.iter().map(|name| columns.add(*name, DataType::Varchar, true)).collect();
    let text = |text: Option<String>| text.map_or(Value::Null, |text| Value::Text(text.into()));
    let row = |(at, field): (usize, &Field)| {
        let Described { name, ty, null, key, default } = described_column(at, field, &definition);
        vec![text(Some(name)), text(Some(ty)), text(Some(null.to_owned())), text(key), text(default)]
    };
    let rows = schema.iter().enumerate().map(row).collect();
    let output =
        names.iter().zip(&ids).map(|(name, column)| Output { name: (*name).to_owned(), column: *column });
    let output = output.collect();
    Ok(Plan { root: Node::Values(Values { columns: ids, rows }), columns, output })
}

/// The columns and constraints of what a `DESCRIBE …` describes.
fn described_text(text: &str, catalog: &dyn Catalog, params: Parameters<'_>) -> Result<(Schema, Definition)> {
    let described = parse(text)?.into_iter().next().map(|parsed| {
        on_deep_stack(parsed.is_deep(), || {
            match resolved(&parsed.ast, catalog, true)?.as_ref().unwrap_or(&parsed.ast) {
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

/// The result of `DESCRIBE` for these columns.
pub(super) fn description(columns: &Schema, definition: &Definition) -> DfResult<LogicalPlan> {
    let row = |(at, field): (usize, &Field)| {
        let Described { name, ty, null, key, default } = described_column(at, field, definition);
        let text = |text: Option<String>| lit(ScalarValue::Utf8(text));
        vec![lit(name), lit(ty), lit(null), text(key), text(default)]
    };
    let names = ["column_name", "column_type", "null", "key", "default"];
    let values = LogicalPlanBuilder::values(columns.iter().enumerate().map(row).collect())?;
    let named = (1..).zip(names).map(|(i, name)| ident(format!("column{i}")).alias(name));
    values.project(named)?.build()
}
