//! Syntax trees to statements: names resolved, types settled, queries lowered.

use crate::asof;
use crate::context::{Context, Given, unknown_table};
use crate::error::from_datafusion;
use crate::parameters::Parameters;
use crate::parse::{Ast, Parsed, SEARCH_PATH, on_deep_stack, parse, span_position};
use crate::placeholders::check_arguments;
use crate::rewrite::{display_names, keyed};
use crate::schema::{in_schema, is_temporary, known_schemas, new_name};
use crate::stored::named_objects;
use crate::types::sql_type;
use crate::walk::Walk;
use crate::{
    Catalog, ObjectKind, Statement, clauses, layout, lower, resolve, sequence, time_zone, transaction,
};
use datafusion_common::Result as DfResult;
use datafusion_expr::{LogicalPlan, LogicalPlanBuilder, ident, lit};
use datafusion_sql::sqlparser::ast::{
    self, CreateTable, Expr, Ident, ObjectName, ObjectType, Query, SelectItem, SetExpr, TableFactor, Visitor,
    With,
};
use entasis_engine::plan::Plan;
use entasis_engine::relation::{Definition, OnCommit, Relation};
use entasis_vector::error::{Position, sqlstate};
use entasis_vector::statement::{STEP, reserve};
use entasis_vector::{DataType, Error, ErrorKind, Field, Result, Schema, Value};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Binds a statement against a catalog, with the values of its parameters.
///
/// # Errors
/// Input, with position and advice where they are known, for unknown names and wrong types; not supported,
/// naming the feature; whatever the catalog raises.
pub fn bind(statement: &Parsed, catalog: &dyn Catalog, params: &[(Value, DataType)]) -> Result<Statement> {
    bind_with(statement, catalog, Parameters::Values(params))
}

/// Binds a query for many runs: with parameters of these types, whose values are given later, in its plan.
///
/// # Errors
/// As [`bind`]; input or not supported, too, if the query means another thing with other values or at another
/// moment, so that it must be bound for each run.
pub fn bind_template(query: &Parsed, catalog: &dyn Catalog, types: &[DataType]) -> Result<Plan> {
    match bind_with(query, catalog, Parameters::Types(types))? {
        Statement::Query(plan) => Ok(plan),
        _ => Err(Error::not_supported("templates of statements other than queries")),
    }
}

fn bind_with(statement: &Parsed, catalog: &dyn Catalog, params: Parameters<'_>) -> Result<Statement> {
    // More than that are for other statements of the script.
    if params.len() < statement.parameters() {
        check_arguments(statement.parameters(), params.len())?;
    }
    let _memory = match statement.binding_bytes() {
        little if little < STEP => None,
        much => reserve(much)?,
    };
    on_deep_stack(statement.is_deep(), || {
        let binder = Binder { catalog, params, given: Given::default(), with: None };
        let resolved = resolve::resolved(&statement.ast, catalog);
        let ast = resolved.as_ref().unwrap_or(&statement.ast);
        let mut bound = binder.statement(ast).map_err(|error| locate(error, ast))?;
        time_zone::session::apply(&mut bound, catalog.session().zone);
        Ok(bound)
    })
}

/// The rows that a `DESCRIBE …` in `FROM` gives.
///
/// # Errors
/// Those of binding what is described, without places: its text is not the statement's.
pub(crate) fn describe(text: &str, catalog: &dyn Catalog, params: Parameters<'_>) -> Result<LogicalPlan> {
    let described = parse(text)?.into_iter().next().map(|parsed| {
        on_deep_stack(parsed.is_deep(), || {
            match resolve::resolved(&parsed.ast, catalog).as_ref().unwrap_or(&parsed.ast) {
                Ast::Describe(query) => {
                    Binder { catalog, params, given: Given::default(), with: None }.described(query)
                }
                _ => Err(Error::internal(format!("{text} is not DESCRIBE"))),
            }
        })
    });
    let schema = described.unwrap_or_else(|| Ok(Schema::new()))?;
    description(&schema).map_err(from_datafusion)
}

/// What `DESCRIBE` says of these columns.
fn description(columns: &Schema) -> DfResult<LogicalPlan> {
    let row = |field: &Field| {
        let null = if field.nullable { "YES" } else { "NO" };
        vec![lit(field.name.as_ref()), lit(field.ty.to_string()), lit(null)]
    };
    let names = ["column_name", "column_type", "null"];
    let values = LogicalPlanBuilder::values(columns.iter().map(row).collect())?;
    let named = (1..).zip(names).map(|(i, name)| ident(format!("column{i}")).alias(name));
    values.project(named)?.build()
}

pub(crate) struct Binder<'a> {
    pub(crate) catalog: &'a dyn Catalog,
    pub(crate) params: Parameters<'a>,
    pub(crate) given: Given,
    /// The queries before a statement that changes rows: `WITH … INSERT`.
    pub(crate) with: Option<&'a With>,
}

impl Binder<'_> {
    fn statement(&self, ast: &Ast) -> Result<Statement> {
        Ok(match ast {
            Ast::Sql(statement) => return self.sql(statement),
            Ast::CreateOrReplace(statement) => return self.create_or_replace(statement),
            Ast::Explain { analyze, verbose, statement } => Statement::Explain {
                analyze: *analyze,
                verbose: *verbose,
                statement: Box::new(self.statement(statement)?),
            },
            Ast::Describe(query) => {
                let plan = description(&self.described(query)?).map_err(from_datafusion)?;
                let context = Context::new(self.catalog, self.params, self.given.clone());
                Statement::Query(lower::lower(&plan, &context)?)
            }
            Ast::Summarize(query) => Statement::Summarize { plan: self.query(query)? },
            Ast::Preparing(_) => {
                return Err(Error::not_supported("PREPARE, EXECUTE and DEALLOCATE within something else"));
            }
            Ast::Calibrate => Statement::Calibrate,
            Ast::ShowTables => Statement::ShowTables,
            Ast::ShowSettings => Statement::ShowSettings,
            Ast::ShowSetting(name) => self.show(name)?,
            Ast::Set { name, value } => {
                if let (SEARCH_PATH, Value::Text(schemas)) = (name.as_str(), value) {
                    known_schemas(schemas, self.catalog)?;
                }
                Statement::Set { name: name.clone(), value: value.clone() }
            }
            Ast::Reset(name) => Statement::Reset { name: name.clone() },
            Ast::CopyTo { query, path, options } => {
                Statement::CopyTo { plan: self.query(query)?, path: path.clone(), options: options.clone() }
            }
            Ast::CopyFrom { table, columns, path, options } => {
                self.copy_from(table, columns, path, options)?
            }
        })
    }

    fn sql(&self, statement: &ast::Statement) -> Result<Statement> {
        use ast::Statement as Sql;
        if let Some(statement) = transaction::statement(statement) {
            return statement;
        }
        match statement {
            Sql::Query(query) => match changed_by(query) {
                Some(change) => {
                    let Binder { catalog, params, ref given, .. } = *self;
                    let with = query.with.as_ref();
                    Binder { catalog, params, given: given.clone(), with }.sql(change)
                }
                None => Ok(Statement::Query(self.query(query)?)),
            },
            Sql::CreateTable(create) => self.create_table(create),
            Sql::CreateView(create) => {
                clauses::create_view(create)?;
                if create.if_not_exists && create.or_replace {
                    return Err(Error::input("OR REPLACE and IF NOT EXISTS exclude each other"));
                }
                let mut query = create.query.clone();
                if !create.columns.is_empty() {
                    query = named_columns(query, create.columns.iter().map(|c| c.name.clone()).collect());
                }
                let plan = self.query(&query)?;
                let needs: Vec<String> = named_objects(&query).into_iter().collect();
                // It cannot stay longer than what it needs.
                let needs_temporary = needs.iter().any(|needed| is_temporary(needed));
                let name = new_name(&create.name, create.temporary || needs_temporary, self.catalog)?;
                Ok(Statement::CreateView {
                    becomes_temporary: needs_temporary && !create.temporary && create.name.0.len() == 1,
                    name,
                    columns: plan.schema(),
                    sql: keyed::restored(asof::restored(query.to_string())),
                    needs,
                    if_not_exists: create.if_not_exists,
                    or_replace: create.or_replace,
                })
            }
            Sql::Insert(insert) => self.insert(insert),
            Sql::Drop { object_type, if_exists, names, cascade, restrict: _, purge, temporary, table } => {
                clauses::refuse([
                    (*purge, "DROP … PURGE"),
                    (*temporary, "DROP TEMPORARY"),
                    (table.is_some(), "DROP INDEX … ON"),
                ])?;
                let kind = match object_type {
                    ObjectType::Schema => ObjectKind::Schema,
                    ObjectType::Table => ObjectKind::Table,
                    ObjectType::View => ObjectKind::View,
                    ObjectType::Index => ObjectKind::Index,
                    ObjectType::Sequence => ObjectKind::Sequence,
                    other => return Err(Error::not_supported(format!("DROP {other}"))),
                };
                let name = |name| match kind {
                    ObjectKind::Schema => self.dropped_schema(name),
                    _ => table_name(name),
                };
                let names = names.iter().map(name).collect::<Result<_>>()?;
                Ok(Statement::Drop { kind, names, if_exists: *if_exists, cascade: *cascade })
            }
            Sql::Update(update) => self.update(update),
            Sql::Delete(delete) => self.delete(delete),
            Sql::Merge(merge) => self.merge(merge),
            Sql::Truncate(truncate) => self.truncate(truncate),
            Sql::AlterTable(alter) => self.alter_table(alter),
            Sql::AlterView { .. } | Sql::AlterIndex { .. } => {
                Err(Error::not_supported("ALTER of what is not a table"))
            }
            Sql::CreateIndex(index) => self.create_index(index, false),
            Sql::CreateSequence { temporary, if_not_exists, name, data_type, sequence_options, owned_by } => {
                let owner = owned_by.as_ref().filter(|owner| !owner.to_string().eq_ignore_ascii_case("none"));
                if owner.is_some() {
                    return Err(Error::not_supported("sequences that are OWNED BY a column"));
                }
                let ty = data_type.as_ref().map_or(Ok(DataType::Int64), sql_type)?;
                Ok(Statement::CreateSequence {
                    name: new_name(name, *temporary, self.catalog)?,
                    options: sequence::options(sequence_options, ty)?,
                    if_not_exists: *if_not_exists,
                    or_replace: false,
                })
            }
            Sql::CreateSchema { .. } => self.create_schema(statement),
            Sql::Prepare { .. } | Sql::Execute { .. } | Sql::Deallocate { .. } => {
                Err(Error::not_supported("PREPARE, EXECUTE and DEALLOCATE within something else"))
            }
            other => {
                let text = other.to_string();
                let words: Vec<&str> = text.split_whitespace().take(2).collect();
                Err(Error::not_supported(words.join(" ").to_uppercase()))
            }
        }
    }

    /// `CREATE OR REPLACE` of a sequence or an index.
    fn create_or_replace(&self, statement: &ast::Statement) -> Result<Statement> {
        let bound = match statement {
            ast::Statement::CreateIndex(index) => self.create_index(index, true)?,
            ast::Statement::CreateSchema { .. } => {
                return Err(Error::not_supported("CREATE OR REPLACE SCHEMA")
                    .with_hint("DROP SCHEMA … CASCADE drops all that is in one"));
            }
            other => self.sql(other)?,
        };
        match bound {
            Statement::CreateSequence { if_not_exists: true, .. }
            | Statement::CreateIndex { if_not_exists: true, .. } => {
                Err(Error::input("OR REPLACE and IF NOT EXISTS exclude each other"))
            }
            Statement::CreateSequence { name, options, .. } => {
                Ok(Statement::CreateSequence { name, options, if_not_exists: false, or_replace: true })
            }
            bound => Ok(bound),
        }
    }

    /// A query that sees those of the `WITH` before the statement.
    pub(crate) fn behind_with(&self, mut query: Query) -> Query {
        let Some(with) = self.with else { return query };
        if query.with.is_some() {
            let mut around = crate::change::query_of(SetExpr::Query(Box::new(query)));
            around.with = Some(with.clone());
            return around;
        }
        query.with = Some(with.clone());
        query
    }

    /// Binds and lowers a query.
    pub(crate) fn query(&self, query: &Query) -> Result<Plan> {
        let names = display_names(query);
        let mut plan = match self.bind_query(query, false) {
            // Two results of one name are no error for us: rename what the binder cannot tell apart.
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
        let context = Context::new(self.catalog, self.params, self.given.clone());
        context.bind_named(Box::new(query.clone()), suffix)
    }

    pub(crate) fn table(&self, name: &str) -> Result<Arc<dyn Relation>> {
        match self.catalog.table(name) {
            Some(relation) => Ok(relation),
            None if self.catalog.view(name).is_some() => {
                Err(Error::input(format!("{name} is a view; rows go only into tables")))
            }
            None => Err(unknown_table(name, self.catalog)),
        }
    }

    fn described(&self, query: &Query) -> Result<Schema> {
        // A table knows more of its columns than a query over it.
        if let SetExpr::Select(select) = &*query.body
            && let ([from], [SelectItem::Wildcard(_)]) =
                (select.from.as_slice(), select.projection.as_slice())
            && let (TableFactor::Table { name, args: None, .. }, true) =
                (&from.relation, from.joins.is_empty())
            && select.selection.is_none()
            && let Ok(name) = table_name(name)
            && let Some(relation) = self.catalog.table(&name)
        {
            return Ok(relation.schema().clone());
        }
        Ok(self.query(query)?.schema())
    }

    fn show(&self, name: &Ident) -> Result<Statement> {
        if self.catalog.setting(&name.value).is_some() {
            return Ok(Statement::ShowSetting { name: name.value.clone() });
        }
        let error = Error::input(format!("there is no setting {}", name.value));
        Err(match span_position(name.span) {
            Some(position) => error.with_position(position),
            None => error,
        })
    }

    fn create_table(&self, create: &CreateTable) -> Result<Statement> {
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
            // A column of bare NULLs has no type; a table's needs one.
            let types: Vec<DataType> = plan
                .output
                .iter()
                .map(|output| match plan.columns.ty(output.column) {
                    DataType::Null => DataType::Int32,
                    other => other,
                })
                .collect();
            lower::cast_outputs(&mut plan, &types);
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

/// What becomes of a table of this name when a transaction commits.
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

/// The statement that changes rows behind a `WITH`, if that is what a query is.
pub(crate) fn changed_by(query: &Query) -> Option<&ast::Statement> {
    match &*query.body {
        SetExpr::Insert(change)
        | SetExpr::Update(change)
        | SetExpr::Delete(change)
        | SetExpr::Merge(change) => Some(change),
        _ => None,
    }
}

// ---- names ------------------------------------------------------------------------------------------------

/// The name of a table or view, in lower case, by which the catalog knows it ([`crate::schema`]).
pub(crate) fn table_name(name: &ObjectName) -> Result<String> {
    let parts: Vec<&Ident> = name.0.iter().filter_map(|part| part.as_ident()).collect();
    match parts.as_slice() {
        [table] => Ok(table.value.to_lowercase()),
        [schema, table] => Ok(in_schema(&schema.value.to_lowercase(), &table.value.to_lowercase())),
        _ => Err(Error::input(format!("{name} is no name of a table: it has a schema's at most before it"))),
    }
}

/// The columns of a table that `names` are; all of them if there are no names.
pub(crate) fn target_columns(table: &str, schema: &[Field], names: &[Ident]) -> Result<Vec<usize>> {
    if names.is_empty() {
        return Ok((0..schema.len()).collect());
    }
    let mut columns = Vec::with_capacity(names.len());
    for name in names {
        let column = find_column(schema, name).map_err(|e| e.with_context(format!("table {table}")))?;
        if columns.contains(&column) {
            return Err(locate_ident(Error::input(format!("the column {} occurs twice", name.value)), name));
        }
        columns.push(column);
    }
    Ok(columns)
}

pub(crate) fn find_column(schema: &[Field], name: &Ident) -> Result<usize> {
    let found = schema.iter().position(|field| field.name.eq_ignore_ascii_case(&name.value));
    found.ok_or_else(|| {
        let error =
            Error::input(format!("there is no column {}", name.value)).with_sqlstate(sqlstate::NO_COLUMN);
        let error = locate_ident(error, name);
        match crate::names::nearest(&name.value, schema.iter().map(|field| &*field.name)) {
            Some(near) => error.with_hint(format!("did you mean {near}?")),
            None => error,
        }
    })
}

fn unique_names<'a>(names: impl Iterator<Item = &'a str>) -> Result<()> {
    let mut seen = std::collections::HashSet::new();
    for name in names {
        if !seen.insert(name.to_lowercase()) {
            let error = Error::input(format!("there are two columns named {name}"));
            return Err(error.with_hint("rename one of them with AS"));
        }
    }
    Ok(())
}

/// `SELECT * FROM (query) AS t (names)`
fn named_columns(query: Box<Query>, names: Vec<Ident>) -> Box<Query> {
    let mut template = crate::parse::parse_query("SELECT * FROM (SELECT 1) AS t (x)").expect("a constant");
    if let SetExpr::Select(select) = &mut *template.body
        && let TableFactor::Derived { subquery, alias: Some(alias), .. } = &mut select.from[0].relation
    {
        *subquery = query;
        alias.columns =
            names.into_iter().map(|name| ast::TableAliasColumnDef { name, data_type: None }).collect();
    }
    template
}

// ---- places -----------------------------------------------------------------------------------------------

pub(crate) fn locate_ident(error: Error, name: &Ident) -> Error {
    match (error.position(), span_position(name.span)) {
        (None, Some(position)) => error.with_position(position),
        _ => error,
    }
}

/// An error that names something and does not know where it stands: at the first place where the statement
/// has the name.
fn locate(error: Error, ast: &Ast) -> Error {
    if error.position().is_some() || error.kind() != ErrorKind::Input {
        return error;
    }
    let message = error.message();
    let named = ["there is no table ", "there is no column ", "there are two columns named ", "the column "];
    let name = named.iter().find_map(|prefix| message.split(prefix).nth(1)).map(|rest| {
        let word = rest.split([' ', ',', ':']).next().unwrap_or(rest);
        word.rsplit('.').next().unwrap_or(word).to_lowercase()
    });
    let Some(name) = name else { return error };
    let mut finder = Finder { name };
    let place = match ast {
        Ast::Sql(statement) | Ast::CreateOrReplace(statement) => statement.walk(&mut finder),
        Ast::Describe(query) | Ast::Summarize(query) | Ast::CopyTo { query, .. } => query.walk(&mut finder),
        Ast::Explain { statement, .. } => return locate(error, statement),
        Ast::CopyFrom { table, .. } => finder.pre_visit_relation(table),
        _ => ControlFlow::Continue(()),
    };
    match place {
        ControlFlow::Break(position) => error.with_position(position),
        ControlFlow::Continue(()) => error,
    }
}

/// Looks for an identifier.
struct Finder {
    name: String,
}

impl Finder {
    fn check(&self, ident: &Ident) -> ControlFlow<Position> {
        match span_position(ident.span) {
            Some(position) if ident.value.to_lowercase() == self.name => ControlFlow::Break(position),
            _ => ControlFlow::Continue(()),
        }
    }
}

impl Visitor for Finder {
    type Break = Position;

    fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<Position> {
        name.0.iter().filter_map(|part| part.as_ident()).try_for_each(|ident| self.check(ident))
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Position> {
        match expr {
            Expr::Identifier(ident) => self.check(ident),
            Expr::CompoundIdentifier(idents) => {
                idents.last().map_or(ControlFlow::Continue(()), |i| self.check(i))
            }
            _ => ControlFlow::Continue(()),
        }
    }
}
