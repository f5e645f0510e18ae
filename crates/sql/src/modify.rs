//! `UPDATE`, `DELETE` and `TRUNCATE`: statements that first ask which rows are meant, and then change them.
//!
//! The question is a query: `UPDATE t SET a = e FROM u WHERE p` asks `SELECT row_id, e FROM t, u WHERE p`, where [`ROW_ID`]
//! is a column that only the target has, and only here. Whoever runs the statement changes the rows that come out, each of
//! them once.

use crate::bind::{Binder, find_column, table_name};
use crate::context::unknown_table;
use crate::lower;
use crate::parse::parse_query;
use crate::{Catalog, Statement};
use datafusion_sql::sqlparser::ast::{
    self, Assignment, AssignmentTarget, Delete, Expr, FromTable, Ident, ObjectName, Query, SelectItem, SetExpr,
    TableAlias, TableFactor, TableWithJoins, Truncate, Update, UpdateTableFromKind,
};
use entasis_engine::relation::Relation;
use entasis_vector::{DataType, Error, Result, Value};
use std::sync::Arc;

/// The column that says where a row stands; UBIGINT.
pub const ROW_ID: &str = "entasis:row_id";
/// What the target is called within the query, so that other mentions of the same table do not get the column.
const TARGET: &str = "entasis:target";

/// The name of the table that an `UPDATE` or `DELETE` changes.
pub(crate) fn target_name(statement: &ast::Statement) -> Option<String> {
    let table = match statement {
        ast::Statement::Update(update) => Some(&update.table),
        ast::Statement::Delete(delete) => {
            let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
            from.first()
        }
        _ => None,
    };
    match &table?.relation {
        TableFactor::Table { name, .. } => table_name(name).ok(),
        _ => None,
    }
}

/// The catalog, and the target with its row ids.
struct WithTarget<'a> {
    catalog: &'a dyn Catalog,
    target: Arc<dyn Relation>,
}

impl Catalog for WithTarget<'_> {
    fn table(&self, name: &str) -> Option<Arc<dyn Relation>> {
        if name == TARGET { Some(self.target.clone()) } else { self.catalog.table(name) }
    }
    fn table_with_row_ids(&self, name: &str) -> Option<Arc<dyn Relation>> {
        self.catalog.table_with_row_ids(name)
    }
    fn view(&self, name: &str) -> Option<String> {
        self.catalog.view(name)
    }
    fn file(&self, path: &str) -> Result<Arc<dyn Relation>> {
        self.catalog.file(path)
    }
    fn table_function(&self, name: &str, args: &[(Option<String>, Value, DataType)]) -> Result<Arc<dyn Relation>> {
        self.catalog.table_function(name, args)
    }
    fn names(&self) -> Vec<String> {
        self.catalog.names()
    }
    fn table_functions(&self) -> Vec<String> {
        self.catalog.table_functions()
    }
    fn setting(&self, name: &str) -> Option<String> {
        self.catalog.setting(name)
    }
}

/// The table that a statement changes rows of.
struct Target {
    /// In lower case.
    name: String,
    /// What the statement calls it.
    alias: TableAlias,
    relation: Arc<dyn Relation>,
}

impl Binder<'_> {
    pub(crate) fn delete(&self, delete: &Delete) -> Result<Statement> {
        let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
        let [table] = &from[..] else { return Err(Error::not_supported("DELETE from several tables")) };
        refuse(!delete.tables.is_empty(), "DELETE from several tables")?;
        refuse(delete.returning.is_some() || delete.output.is_some(), "RETURNING")?;
        refuse(!delete.order_by.is_empty(), "ORDER BY in DELETE")?;
        refuse(delete.limit.is_some(), "LIMIT in DELETE")?;
        let target = self.target(table)?;
        let using = delete.using.clone().unwrap_or_default();
        let plan = self.rows_of(&target, Vec::new(), using, delete.selection.clone())?;
        Ok(Statement::Delete { table: target.name, plan })
    }

    pub(crate) fn update(&self, update: &Update) -> Result<Statement> {
        refuse(update.returning.is_some() || update.output.is_some(), "RETURNING")?;
        refuse(update.or.is_some(), "UPDATE OR …")?;
        refuse(!update.order_by.is_empty(), "ORDER BY in UPDATE")?;
        refuse(update.limit.is_some(), "LIMIT in UPDATE")?;
        let target = self.target(&update.table)?;
        let mut columns = Vec::with_capacity(update.assignments.len());
        let mut values = Vec::with_capacity(update.assignments.len());
        for Assignment { target: assigned, value } in &update.assignments {
            let AssignmentTarget::ColumnName(name) = assigned else {
                return Err(Error::not_supported("SET (a, b) = …"));
            };
            let column = self.assigned(&target, name)?;
            if columns.contains(&column) {
                return Err(Error::input(format!("the column {name} is set twice")));
            }
            columns.push(column);
            values.push(value.clone());
        }
        let from = match &update.from {
            None => Vec::new(),
            Some(UpdateTableFromKind::BeforeSet(from) | UpdateTableFromKind::AfterSet(from)) => from.clone(),
        };
        let mut plan = self.rows_of(&target, values, from, update.selection.clone())?;
        let types = columns.iter().map(|&column| target.relation.schema()[column].ty);
        lower::cast_outputs(&mut plan, &std::iter::once(DataType::UInt64).chain(types).collect::<Vec<_>>());
        Ok(Statement::Update { table: target.name, columns, plan })
    }

    pub(crate) fn truncate(&self, truncate: &Truncate) -> Result<Statement> {
        let names = truncate.table_names.iter().map(|target| table_name(&target.name));
        let names = names.collect::<Result<Vec<String>>>()?;
        for name in &names {
            if !truncate.if_exists || self.catalog.view(name).is_some() {
                self.table(name)?;
            }
        }
        Ok(Statement::Truncate { names })
    }

    fn target(&self, table: &TableWithJoins) -> Result<Target> {
        refuse(!table.joins.is_empty(), "a join as the table to change")?;
        let TableFactor::Table { name, alias, .. } = &table.relation else {
            return Err(Error::not_supported("changing what is not a table"));
        };
        let lower_name = table_name(name)?;
        let relation = match self.catalog.table_with_row_ids(&lower_name) {
            Some(relation) => relation,
            None if self.catalog.view(&lower_name).is_some() => {
                return Err(Error::input(format!("{lower_name} is a view; only rows of tables can be changed")));
            }
            None => return Err(unknown_table(&lower_name, self.catalog)),
        };
        let own_name = || TableAlias {
            explicit: true,
            name: name.0.last().and_then(|part| part.as_ident()).cloned().unwrap_or_else(|| Ident::new(&lower_name)),
            columns: Vec::new(),
            at: None,
        };
        let alias = alias.clone().unwrap_or_else(own_name);
        Ok(Target { name: lower_name, alias, relation })
    }

    /// The column of the target that `SET name = …` names.
    fn assigned(&self, target: &Target, name: &ObjectName) -> Result<usize> {
        let parts: Vec<&Ident> = name.0.iter().filter_map(|part| part.as_ident()).collect();
        let column = match parts[..] {
            [column] => column,
            [table, column] if table.value.eq_ignore_ascii_case(&target.alias.name.value) => column,
            _ => return Err(Error::input(format!("{name} is not a column of {}", target.alias.name))),
        };
        let schema = target.relation.schema();
        let own = &schema[..schema.len() - 1];
        find_column(own, column).map_err(|error| error.with_context(format!("table {}", target.name)))
    }

    /// The query for the rows that are meant: their ids, then `values`.
    fn rows_of(
        &self,
        target: &Target,
        values: Vec<Expr>,
        mut others: Vec<TableWithJoins>,
        selection: Option<Expr>,
    ) -> Result<entasis_engine::plan::Plan> {
        let mut query = template()?;
        let SetExpr::Select(select) = &mut *query.body else { return Err(Error::internal("the template is a SELECT")) };
        if let TableFactor::Table { alias, .. } = &mut select.from[0].relation {
            *alias = Some(target.alias.clone());
        }
        let row_id = vec![target.alias.name.clone(), Ident::with_quote('"', ROW_ID)];
        let values = std::iter::once(Expr::CompoundIdentifier(row_id)).chain(values);
        let named = |(i, expr)| SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', format!("{i}")) };
        select.projection = values.enumerate().map(named).collect();
        select.from.append(&mut others);
        select.selection = selection;
        let catalog = WithTarget { catalog: self.catalog, target: target.relation.clone() };
        Binder { catalog: &catalog, params: self.params }.query(&query)
    }
}

fn template() -> Result<Query> {
    parse_query(&format!("SELECT 1 FROM \"{TARGET}\" AS t")).map(|query| *query)
}

fn refuse(present: bool, what: &str) -> Result<()> {
    if present { Err(Error::not_supported(what)) } else { Ok(()) }
}
