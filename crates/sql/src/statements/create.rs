//! `CREATE TABLE` and `CREATE VIEW`. For columns and constraints of tables, see [`super::definition`].

use super::binder::Binder;
use super::bound::Statement;
use super::layout;
use crate::statements::rows;
use entasis_binder::REGISTERED;
use entasis_binder::environment::schema::new_name;
use entasis_engine::relation::{Definition, OnCommit};
use entasis_syntax::clauses;
use entasis_syntax::object_name::is_temporary;
use entasis_syntax::parse::parse_query;
use entasis_syntax::stored::named_objects;
use entasis_syntax::{asof, using_key};
use entasis_vector::{DataType, Error, Result};
use sqlparser::ast::{
    self, CreateTable, CreateView, Ident, Query, SetExpr, TableAliasColumnDef, TableFactor,
};
use std::collections::HashSet;
use std::ops::ControlFlow;

impl Binder<'_> {
    /// `CREATE VIEW`
    pub(super) fn create_view(&self, create: &CreateView) -> Result<Statement> {
        clauses::create_view(create)?;
        if create.if_not_exists && create.or_replace {
            return Err(Error::input("OR REPLACE and IF NOT EXISTS exclude each other"));
        }
        let mut query = create.query.clone();
        if !create.columns.is_empty() {
            query = named_columns(query, create.columns.iter().map(|c| c.name.clone()).collect());
        }
        if has_parameters(&query) {
            return Err(Error::input("a view takes no parameters")
                .with_hint("CREATE TABLE … AS keeps the rows that a query has for their values"));
        }
        let plan = self.query(&query)?;
        let needs: Vec<String> = named_objects(&query).into_iter().collect();
        // It could not be resolved where that database is not attached.
        if let Some(needed) = needs.iter().find(|needed| self.catalog.is_elsewhere(needed)) {
            return Err(Error::input(format!("a view cannot name {needed}, which is in another database"))
                .with_hint(
                    "names without a database are those of the current one; CREATE TABLE … AS makes a copy",
                ));
        }
        // It cannot outlive the objects that it needs.
        let needs_temporary = needs.iter().any(|needed| is_temporary(needed));
        let name = new_name(&create.name, create.temporary || needs_temporary, self.catalog)?;
        Ok(Statement::CreateView {
            becomes_temporary: needs_temporary && !create.temporary && create.name.0.len() == 1,
            name,
            columns: plan.schema(),
            sql: using_key::restored(asof::restored(kept_text(&query))),
            needs,
            if_not_exists: create.if_not_exists,
            or_replace: create.or_replace,
        })
    }

    /// `CREATE TABLE`
    pub(super) fn create_table(&self, create: &CreateTable) -> Result<Statement> {
        clauses::create_table(create)?;
        let name = new_name(&create.name, create.temporary, self.catalog)?;
        let on_commit = on_commit(create, &name)?;
        let (if_not_exists, or_replace) = (create.if_not_exists, create.or_replace);
        if if_not_exists && or_replace {
            return Err(Error::input("OR REPLACE and IF NOT EXISTS exclude each other"));
        }
        if let Some(query) = &create.query {
            clauses::named_only(create)?;
            let query = match create.columns.as_slice() {
                [] => query.clone(),
                columns => named_columns(query.clone(), columns.iter().map(|c| c.name.clone()).collect()),
            };
            let mut plan = self.query(&query)?;
            // A column of untyped NULLs has no type, but a table's column needs one.
            let types: Vec<DataType> =
                plan.output.iter().map(|output| typed(plan.columns.ty(output.column))).collect();
            rows::cast_outputs(&mut plan, &types)?;
            unique_names(plan.output.iter().map(|output| output.name.as_str()))?;
            let layout = layout::of_table(&create.table_options, &plan.schema())?;
            let definition = Definition { layout, on_commit, ..Definition::default() };
            return Ok(Statement::CreateTableAs { name, plan, definition, if_not_exists, or_replace });
        }
        let declared = self.declare(&name, on_commit, create)?;
        Ok(Statement::CreateTable {
            name,
            columns: declared.columns,
            definition: declared.definition,
            sequences: declared.sequences,
            if_not_exists,
            or_replace,
        })
    }
}

/// True if a query has parameters.
fn has_parameters(query: &Query) -> bool {
    let is_parameter = |expr: &ast::Expr| match expr {
        ast::Expr::Value(value) if matches!(value.value, ast::Value::Placeholder(_)) => {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    };
    ast::visit_expressions(query, is_parameter).is_break()
}

/// A type of which no part is that of untyped NULLs.
fn typed(ty: DataType) -> DataType {
    ty.with_innermost(&|ty| if ty == DataType::Null { DataType::Int32 } else { ty })
}

/// The text of a view's query, which names relations of the host program as they are written.
fn kept_text(query: &Query) -> String {
    query.to_string().replace(&format!("\"{REGISTERED}\"."), "")
}

/// What happens to a table of this name when a transaction commits.
fn on_commit(create: &CreateTable, name: &str) -> Result<OnCommit> {
    if create.on_commit.is_some() && !is_temporary(name) {
        return Err(
            Error::input("ON COMMIT is for temporary tables").with_hint("write CREATE TEMPORARY TABLE")
        );
    }
    Ok(match create.on_commit {
        None | Some(ast::OnCommit::PreserveRows) => OnCommit::Preserve,
        Some(ast::OnCommit::DeleteRows) => OnCommit::Delete,
        Some(ast::OnCommit::Drop) => OnCommit::Drop,
    })
}

fn unique_names<'a>(names: impl Iterator<Item = &'a str>) -> Result<()> {
    let mut seen = HashSet::new();
    for name in names {
        if !seen.insert(name.to_ascii_lowercase()) {
            let error = Error::input(format!("there are two columns named {name}"));
            return Err(error.with_hint("rename one of them with AS"));
        }
    }
    Ok(())
}

/// `SELECT * FROM (query) AS t (names)`
fn named_columns(query: Box<Query>, names: Vec<Ident>) -> Box<Query> {
    let mut template = parse_query("SELECT * FROM (SELECT 1) AS t (x)").expect("a constant");
    if let SetExpr::Select(select) = &mut *template.body
        && let TableFactor::Derived { subquery, alias: Some(alias), .. } = &mut select.from[0].relation
    {
        *subquery = query;
        alias.columns = names.into_iter().map(|name| TableAliasColumnDef { name, data_type: None }).collect();
    }
    template
}
