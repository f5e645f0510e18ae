//! Statements that change rows: `INSERT`, `UPDATE`, `DELETE`, `MERGE` and `TRUNCATE`.
//!
//! They are bound as queries. `UPDATE t SET a = e FROM u WHERE p` becomes `SELECT row_id, e FROM t, u WHERE
//! p`, where [`ROW_ID`] is a column that only the target has, and only here. The caller applies the
//! statement's action to the resulting rows.
//!
//! A statement is bound in stages. The rows of each stage are a table of the next
//! ([`ROWS`]), whose columns are named as the target's:
//!
//! 1. the given rows: those to insert ([`insert`]), with defaults, or those to update or delete ([`update`]);
//! 2. if the action differs by row, the rows with their actions ([`conflict`], [`merge`]);
//! 3. the constraints on the new rows, and what is returned from them ([`finish`]).
//!
//! Keys and foreign keys are not handled here: the caller checks them after all rows have been changed.

mod conflict;
mod finish;
mod insert;
mod merge;
mod outer;
mod referential;
mod update;
mod values;

pub use referential::{Consequence, Referring, follow};

use crate::statements::binder::Binder;
use crate::statements::bound::Statement;
use crate::statements::columns::find_column;
use crate::statements::rows;
use entasis_binder::environment::schema::{elsewhere, unknown_table};
use entasis_binder::{Given, ROWS, TARGET};
use entasis_engine::plan::Plan;
use entasis_engine::relation::{ColumnDefault, Definition, Relation};
use entasis_syntax::build::{named, null, qualified, select_from, stored_expr, table_alias};
use entasis_syntax::clauses::refuse;
use entasis_syntax::insert_words::Overriding;
use entasis_syntax::object_name::table_name;
use entasis_vector::{DataType, Error, Field, Result, Value, name};
use outer::for_each_outer;
use sqlparser::ast;
use sqlparser::ast::{
    Assignment, AssignmentTarget, CascadeOption, Expr, Ident, ObjectName, Select, SelectItem, SetExpr,
    TableAlias, TableFactor, TableWithJoins, Truncate, TruncateIdentityOption, TruncateTableTarget, VisitMut,
};
use std::sync::Arc;

/// The column that identifies a row of the target; UBIGINT.
pub const ROW_ID: &str = "entasis:row_id";
/// The column with the action for a row.
const ACTION: &str = "entasis:action";

/// The table whose rows a statement changes.
pub(crate) struct Target {
    /// Its name in lower case.
    name: String,
    /// Its alias in the statement.
    alias: TableAlias,
    /// The table, with its row ids if they are needed.
    relation: Arc<dyn Relation>,
    /// Number of columns, not counting row ids.
    width: usize,
    pub(crate) definition: Arc<Definition>,
}

impl Target {
    pub(crate) fn columns(&self) -> &[Field] {
        &self.relation.schema()[..self.width]
    }

    /// `target.column`
    pub(crate) fn column(&self, name: &str) -> Expr {
        qualified(&self.alias.name, name)
    }

    /// Removes the schema from names of the target's columns: statements know it by its own name.
    fn own_names(&self, node: &mut impl VisitMut) {
        for_each_outer(node, |expr| {
            if let Expr::CompoundIdentifier(parts) = expr
                && let [schema, table, _, ..] = &parts[..]
                && name::joined(&name::fold(&schema.value), &name::fold(&table.value)) == self.name
                && name::same(&table.value, &self.alias.name.value)
            {
                parts.remove(0);
            }
        });
    }

    /// Refuses a value for a column that is `GENERATED ALWAYS`, unless `OVERRIDING` says what becomes of it.
    fn takes(&self, column: usize, overriding: Option<Overriding>) -> Result<()> {
        match self.definition.default_of(column) {
            ColumnDefault::Identity { always: true, .. } if overriding.is_none() => {
                let name = &self.columns()[column].name;
                let error =
                    Error::input(format!("the column {name} is GENERATED ALWAYS and takes no values"));
                Err(error
                    .with_hint("leave it out, write DEFAULT, or OVERRIDING SYSTEM VALUE before the rows"))
            }
            _ => Ok(()),
        }
    }

    /// True if the values given for a column are dropped, and its sequence is used.
    fn ignores(&self, column: usize, overriding: Option<Overriding>) -> bool {
        let is_identity = matches!(self.definition.default_of(column), ColumnDefault::Identity { .. });
        is_identity && overriding == Some(Overriding::User)
    }

    /// The column to which `SET name = …` assigns.
    fn assigned(&self, name: &ObjectName) -> Result<usize> {
        let parts: Vec<&Ident> = name.0.iter().filter_map(|part| part.as_ident()).collect();
        let column = match parts[..] {
            [column] => column,
            [table, column] if table.value.eq_ignore_ascii_case(&self.alias.name.value) => column,
            _ => return Err(Error::input(format!("{name} is not a column of {}", self.alias.name))),
        };
        find_column(self.columns(), column)
            .map_err(|error| error.with_context(format!("table {}", self.name)))
    }
}

/// A table that does not exist yet, or not in this form, for expressions over its columns.
pub(crate) struct TableView<'a> {
    pub(crate) name: &'a str,
    pub(crate) columns: &'a [Field],
}

impl Binder<'_> {
    pub(crate) fn truncate(&self, truncate: &Truncate) -> Result<Statement> {
        let Truncate { table_names, partitions, table: _, if_exists, identity, cascade, on_cluster } =
            truncate;
        refuse([
            (partitions.is_some(), "TRUNCATE … PARTITION"),
            (matches!(identity, Some(TruncateIdentityOption::Restart)), "RESTART IDENTITY"),
            (on_cluster.is_some(), "ON CLUSTER"),
        ])?;
        // Tables have no descendants, so ONLY and * are accepted.
        let names =
            table_names.iter().map(|TruncateTableTarget { name, only: _, has_asterisk: _ }| table_name(name));
        let names = names.collect::<Result<Vec<String>>>()?;
        for name in &names {
            if !if_exists || self.catalog.view(name).is_some() {
                self.table(name)?;
            }
        }
        Ok(Statement::Truncate { names, cascade: matches!(cascade, Some(CascadeOption::Cascade)) })
    }

    /// The target of a statement that needs row ids.
    fn target(&self, table: &TableFactor) -> Result<Target> {
        entasis_syntax::clauses::table_factor(table)?;
        let TableFactor::Table { name, alias, args: None, .. } = table else {
            return Err(Error::not_supported("changing what is not a table"));
        };
        self.target_named(name, alias.clone())
    }

    fn target_named(&self, name: &ObjectName, alias: Option<TableAlias>) -> Result<Target> {
        let lower_name = table_name(name)?;
        let relation = match self.catalog.table_with_row_ids(&lower_name) {
            Some(relation) => relation,
            None if self.catalog.is_elsewhere(&lower_name) && self.catalog.table(&lower_name).is_some() => {
                return Err(elsewhere(&lower_name));
            }
            None if self.catalog.view(&lower_name).is_some() => {
                return Err(Error::input(format!(
                    "{lower_name} is a view; only rows of tables can be changed"
                )));
            }
            None => return Err(unknown_table(&lower_name, self.catalog)),
        };
        let width = relation.schema().len() - 1;
        self.target_of(name, lower_name, alias, relation, width)
    }

    pub(crate) fn target_of(
        &self,
        name: &ObjectName,
        lower_name: String,
        alias: Option<TableAlias>,
        relation: Arc<dyn Relation>,
        width: usize,
    ) -> Result<Target> {
        if alias.as_ref().is_some_and(|alias| !alias.columns.is_empty()) {
            return Err(Error::not_supported("other names for the columns of the table to change"));
        }
        let own_name = || {
            let ident = name.0.last().and_then(|part| part.as_ident()).cloned();
            table_alias(ident.unwrap_or_else(|| Ident::new(&lower_name)))
        };
        let alias = alias.unwrap_or_else(own_name);
        let definition = self.catalog.definition(&lower_name).unwrap_or_default();
        Ok(Target { alias, relation, width, definition, name: lower_name })
    }

    /// The assignments of a `SET`, one by one: column and value. `DEFAULT` is replaced by the default.
    fn assignments(&self, target: &Target, assignments: &[Assignment]) -> Result<Vec<(usize, Expr)>> {
        let mut assigned: Vec<(usize, Expr)> = Vec::with_capacity(assignments.len());
        let mut assign = |name: &ObjectName, value: &Expr| -> Result<()> {
            let column = target.assigned(name)?;
            if assigned.iter().any(|(other, _)| *other == column) {
                return Err(Error::input(format!("the column {name} is set twice")));
            }
            let field = &target.columns()[column];
            let value = match (is_default(value), target.definition.default_of(column)) {
                (true, _) => self.default_expr(target, column)?,
                (false, ColumnDefault::Identity { always: true, .. }) => {
                    return Err(Error::input(format!(
                        "the column {} is GENERATED ALWAYS and can only be set to DEFAULT",
                        field.name
                    )));
                }
                (false, _) => value.clone(),
            };
            assigned.push((column, value));
            Ok(())
        };
        for Assignment { target: to, value } in assignments {
            match to {
                AssignmentTarget::ColumnName(name) => assign(name, value)?,
                AssignmentTarget::Tuple(names) => {
                    let values = row_values(value, names.len())?;
                    for (name, value) in names.iter().zip(&values) {
                        assign(name, value)?;
                    }
                }
            }
        }
        Ok(assigned)
    }

    /// The expression for a column without a given value; possibly NULL.
    fn default_expr(&self, target: &Target, column: usize) -> Result<Expr> {
        match target.definition.default_of(column) {
            ColumnDefault::Null => Ok(null()),
            ColumnDefault::Expression(sql) => stored_expr(sql),
            ColumnDefault::Identity { sequence, .. } => {
                stored_expr(&format!("nextval('{}')", name::shown(sequence).replace('\'', "''")))
            }
        }
    }

    /// Binds `SELECT items FROM target AS alias`, changed by `edit`.
    pub(crate) fn over_target(&self, target: &Target, edit: impl FnOnce(&mut Select)) -> Result<Plan> {
        let query = select_from(TARGET, target.alias.clone(), |select| {
            edit(select);
            target.own_names(select);
        })?;
        let query = self.behind_with(query);
        let given = Given { target: Some(target.relation.clone()), ..Given::default() };
        Binder { catalog: self.catalog, params: self.params, given, with: None }.query(&query)
    }

    /// Binds `SELECT items FROM rows AS alias`, changed by `edit`; the rows are those of a plan. The target
    /// is available, too.
    pub(crate) fn over_rows(
        &self,
        rows: Plan,
        alias: TableAlias,
        target: Option<&Target>,
        edit: impl FnOnce(&mut Select),
    ) -> Result<Plan> {
        let query = self.behind_with(select_from(ROWS, alias, edit)?);
        let given = Given {
            target: target.map(|target| target.relation.clone()),
            rows: Some(Arc::new(rows)),
            ..Given::default()
        };
        Binder { catalog: self.catalog, params: self.params, given, with: None }.query(&query)
    }

    /// Binds `SELECT 1 FROM view`, changed by `edit`, to check that it can be bound.
    pub(crate) fn over_view(&self, view: &TableView, edit: impl FnOnce(&mut Select)) -> Result<Plan> {
        let mut rows = rows::empty_rows(0);
        for column in view.columns {
            let output = rows::add_constant(&mut rows, &column.name, Value::Null, column.ty);
            rows.output.push(output);
        }
        self.over_rows(rows, table_alias(Ident::with_quote('"', view.name)), None, |select| {
            select.projection = vec![named(Expr::Value(ast::Value::Boolean(true).into()), "one")];
            edit(select);
        })
    }
}

/// True for `DEFAULT` in place of a value.
fn is_default(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(name) if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("default"))
}

/// The values of a row assigned to `count` columns: `(1, 2)`, or for each column a subquery.
fn row_values(value: &Expr, count: usize) -> Result<Vec<Expr>> {
    let values = match value {
        Expr::Tuple(values) => values.clone(),
        Expr::Nested(inner) if count == 1 => vec![(**inner).clone()],
        Expr::Subquery(query) => {
            let SetExpr::Select(select) = &*query.body else {
                return Err(Error::not_supported("SET (a, b) = a subquery with set operations"));
            };
            let plain = |item: &SelectItem| {
                matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. })
            };
            if select.distinct.is_some() || !select.projection.iter().all(plain) {
                return Err(Error::not_supported("SET (a, b) = a subquery with * or DISTINCT"));
            }
            let columns = select.projection.len();
            let of = |i: usize| {
                let mut query = query.clone();
                if let SetExpr::Select(select) = &mut *query.body {
                    select.projection = vec![select.projection[i].clone()];
                }
                Expr::Subquery(query)
            };
            (0..columns).map(of).collect()
        }
        other => return Err(Error::input(format!("{other} is not a row of {count} values"))),
    };
    if values.len() != count {
        return Err(Error::input(format!("{count} columns are set to a row of {} values", values.len())));
    }
    Ok(values)
}

/// The type of row ids.
const ROW_ID_TYPE: DataType = DataType::UInt64;
/// The type of actions.
const ACTION_TYPE: DataType = DataType::Int8;

fn no_joins(table: &TableWithJoins) -> Result<&TableFactor> {
    let TableWithJoins { relation, joins } = table;
    refuse([(!joins.is_empty(), "a join as the table to change")])?;
    Ok(relation)
}
