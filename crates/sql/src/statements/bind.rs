//! Binds a statement's syntax tree: resolves names and types.
//!
//! Each kind of statement is bound in a module of its own, by methods of the [`Binder`].

use super::binder::{Binder, description};
use super::bound::{ObjectKind, Statement};
use super::locate::locate;
use super::resolve::is_target_database;
use super::zone::plans;
use super::{named_types, resolve, sequence, transaction, zone};
use entasis_binder::Given;
use entasis_binder::environment::schema::{known_schemas, new_name};
use entasis_binder::environment::{Catalog, Parameters, Uses};
use entasis_engine::plan::Plan;
use entasis_syntax::clauses;
use entasis_syntax::object_name::{bare, table_name};
use entasis_syntax::parse::parse;
use entasis_syntax::parsed::{Ast, Command, Parsed};
use entasis_syntax::place::locate_ident;
use entasis_syntax::placeholders::check_arguments;
use entasis_syntax::targets::changed_by;
use entasis_syntax::types::{parse_type, sql_type};
use entasis_syntax::{FreedAside, SEARCH_PATH, on_deep_stack};
use entasis_vector::statement::{STEP, reserve};
use entasis_vector::{DataType, Error, Result, Value};
use sqlparser::ast::{self, Ident, ObjectName, ObjectType, UserDefinedTypeRepresentation};

/// Binds a statement against a catalog, with the values of its parameters.
///
/// # Errors
/// Input, with position and hint where they are known, for unknown names and wrong types; not supported, with
/// the name of the feature; those of the catalog.
pub fn bind(statement: &Parsed, catalog: &dyn Catalog, params: &[(Value, DataType)]) -> Result<Statement> {
    bind_with(statement, catalog, Parameters::Values(params), true)
}

/// Binds a view's query, which the catalog keeps as text: its names are qualified already, and are
/// independent of this connection.
///
/// # Errors
/// Those of [`bind`]; input, if the text is not a query.
pub fn bind_stored(text: &str, catalog: &dyn Catalog) -> Result<Plan> {
    let stored = parse(text)?;
    let [query] = stored.as_slice() else { return Err(Error::input("a view is not a query")) };
    match bind_with(query, catalog, Parameters::Values(&[]), false)? {
        Statement::Query(plan) => Ok(plan),
        _ => Err(Error::input("a view is not a query")),
    }
}

/// Binds a query or a change of rows for many runs: its plan contains parameters of these types, whose values
/// are given later. What it reads from the clock are further parameters behind them, in the order of
/// [`ClockReading::ALL`](entasis_functions::ClockReading::ALL).
///
/// # Errors
/// Those of [`bind`]; input or not supported, too, if the meaning of the statement depends on the values, so
/// that it must be bound for each run.
pub fn bind_template(statement: &Parsed, catalog: &dyn Catalog, types: &[DataType]) -> Result<Statement> {
    match bind_with(statement, catalog, Parameters::Types(types), true)? {
        bound @ (Statement::Query(_) | Statement::Insert(_) | Statement::Change(_)) => Ok(bound),
        _ => Err(Error::not_supported("templates of statements that define something")),
    }
}

/// Binds a statement to describe it: returns the types of its parameters, and the statement bound with
/// parameters of these types. `hints` has the types of some; the others, and those for which it is too short,
/// become what their places ask for, and VARCHAR where none does.
///
/// # Errors
/// Those of [`bind`]; input, if there are more hints than parameters, or if a parameter would have to be of
/// several types; not supported, if the statement cannot be bound without the value of a parameter.
pub fn describe(
    statement: &Parsed,
    catalog: &dyn Catalog,
    hints: &[Option<DataType>],
) -> Result<(Vec<DataType>, Statement)> {
    let count = statement.parameters();
    if hints.len() > count {
        check_arguments(count, hints.len())?;
    }
    let known = (0..count).map(|index| hints.get(index).copied().flatten()).collect();
    let uses = Uses::new(known);
    bind_with(statement, catalog, Parameters::Described(&uses), true)?;
    let types = uses.types()?;
    // The types of other expressions may follow from these.
    let settled = Uses::new(types.iter().copied().map(Some).collect());
    let bound = bind_with(statement, catalog, Parameters::Described(&settled), true)?;
    Ok((types, bound))
}

/// `is_written`: the statement was written by a user, so its names must be resolved.
fn bind_with(
    statement: &Parsed,
    catalog: &dyn Catalog,
    params: Parameters<'_>,
    is_written: bool,
) -> Result<Statement> {
    // Additional values are for other statements of the script.
    if params.count() < statement.parameters() {
        check_arguments(statement.parameters(), params.count())?;
    }
    let _memory = match statement.binding_bytes() {
        little if little < STEP => None,
        much => reserve(much)?,
    };
    on_deep_stack(statement.is_deep(), || {
        let given = Given { is_view: !is_written, ..Given::default() };
        let binder = Binder { catalog, params, given, with: None };
        let has_database = statement.qualifiers.iter().any(|name| catalog.has_database(name));
        let resolved = match is_written {
            true => resolve::resolved(&statement.ast, catalog, has_database)?,
            false => None,
        };
        let resolved = FreedAside::new(resolved, statement.tokens());
        let ast = resolved.as_ref().unwrap_or(&statement.ast);
        let typed = FreedAside::new(named_types::replaced(ast, catalog), statement.tokens());
        let ast = typed.as_ref().unwrap_or(ast);
        let mut bound = binder.statement(ast).map_err(|error| locate(error, ast))?;
        if let Some(uses) = params.described() {
            plans(&mut bound).into_iter().for_each(|plan| uses.read(plan));
        }
        zone::apply(&mut bound, catalog.session().zone);
        Ok(bound)
    })
}

impl Binder<'_> {
    fn statement(&self, ast: &Ast) -> Result<Statement> {
        Ok(match ast {
            Ast::Sql(statement) => return self.sql(statement),
            Ast::CreateOrReplace(statement) => return self.create_or_replace(statement),
            Ast::Explain { analyze, verbose, json, statement } => Statement::Explain {
                analyze: *analyze,
                verbose: *verbose,
                json: *json,
                statement: Box::new(self.statement(statement)?),
            },
            Ast::ExplainLayout { table, workload } => {
                let name = table_name(table)?;
                let relation = self.catalog.table(&name).filter(|relation| relation.table().is_some());
                let relation = match relation {
                    Some(relation) => relation,
                    None => {
                        self.table(&name)?;
                        return Err(Error::input(format!("{name} is not a table of a database")));
                    }
                };
                Statement::ExplainLayout {
                    relation,
                    definition: self.catalog.definition(&name),
                    workload: workload.clone(),
                }
            }
            Ast::Describe(query) => {
                let (columns, definition) = self.described(query)?;
                Statement::Query(description(&columns, &definition))
            }
            Ast::Summarize(query) => Statement::Summarize { plan: self.query(query)? },
            Ast::Preparing(_) => {
                return Err(Error::not_supported("PREPARE, EXECUTE and DEALLOCATE within something else"));
            }
            Ast::Calibrate => Statement::Calibrate,
            Ast::Checkpoint { database } => Statement::Checkpoint { database: database.clone() },
            Ast::Command(command) => Statement::Command(self.command(command)?),
            Ast::ShowTables { of, views } => Statement::ShowTables { of: of.clone(), views: *views },
            Ast::ShowAllTables => Statement::ShowAllTables,
            Ast::Use { name } => Statement::Use { name: name.clone() },
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
            Sql::CreateView(create) => self.create_view(create),
            Sql::Insert(insert) => self.insert(insert),
            Sql::Drop { object_type, if_exists, names, cascade, restrict: _, purge, temporary, table } => {
                clauses::refuse([
                    (*purge, "DROP … PURGE"),
                    (*temporary, "DROP TEMPORARY"),
                    (table.is_some(), "DROP INDEX … ON"),
                ])?;
                self.drop_objects(object_type, names, *if_exists, *cascade)
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
            Sql::CreateType { name, representation } => self.create_type(name, representation.as_ref()),
            Sql::CreateSchema { .. } => self.create_schema(statement),
            Sql::Prepare { .. } | Sql::Execute { .. } | Sql::Deallocate { .. } => {
                Err(Error::not_supported("PREPARE, EXECUTE and DEALLOCATE within something else"))
            }
            Sql::CreateDatabase { .. } => Err(Error::not_supported("CREATE DATABASE")
                .with_hint("ATTACH 'name.db' opens a database in a file, or makes one; USE name makes it the current one")),
            other => {
                let text = other.to_string();
                let words: Vec<&str> = text.split_whitespace().take(2).collect();
                Err(Error::not_supported(words.join(" ").to_uppercase()))
            }
        }
    }

    fn drop_objects(
        &self,
        kind: &ObjectType,
        names: &[ObjectName],
        if_exists: bool,
        cascade: bool,
    ) -> Result<Statement> {
        let kind = match kind {
            ObjectType::Schema => ObjectKind::Schema,
            ObjectType::Table => ObjectKind::Table,
            ObjectType::View => ObjectKind::View,
            ObjectType::Index => ObjectKind::Index,
            ObjectType::Sequence => ObjectKind::Sequence,
            ObjectType::Type => ObjectKind::Type,
            ObjectType::Database => {
                return Err(Error::not_supported("DROP DATABASE")
                    .with_hint("DETACH name closes a database; its file can be deleted then"));
            }
            other => return Err(Error::not_supported(format!("DROP {other}"))),
        };
        let name = |name| match kind {
            ObjectKind::Schema => self.dropped_schema(name),
            ObjectKind::Type => named_types::type_name(name, self.catalog),
            _ => table_name(name),
        };
        let names = names.iter().map(name).collect::<Result<_>>()?;
        Ok(Statement::Drop { kind, names, if_exists, cascade })
    }

    fn create_type(
        &self,
        name: &ObjectName,
        representation: Option<&UserDefinedTypeRepresentation>,
    ) -> Result<Statement> {
        let Some(UserDefinedTypeRepresentation::Enum { labels }) = representation else {
            return Err(Error::not_supported("CREATE TYPE of anything but an ENUM")
                .with_hint("CREATE TYPE name AS ENUM ('label', …)"));
        };
        if let Some(own) = bare(name)
            && parse_type(&own).is_ok()
        {
            return Err(Error::input(format!("{own} is a type that is built in")));
        }
        if let Some(label) = labels.iter().find(|label| label.quote_style != Some('\'')) {
            return Err(Error::input(format!("a label of an ENUM is a text: '{}'", label.value)));
        }
        Ok(Statement::CreateType {
            name: new_name(name, false, self.catalog)?,
            ty: DataType::enumeration(labels.iter().map(|label| label.value.as_str()))?,
            or_replace: false,
        })
    }

    /// A command, with the name of its table, which must exist.
    fn command(&self, command: &Command<ObjectName>) -> Result<Command<String>> {
        let table = |name: &Option<ObjectName>| {
            // A name that is not a table may be the database.
            name.as_ref().filter(|name| !is_target_database(name, self.catalog)).map(|name| {
                let name = table_name(name)?;
                // None of its rows must be held.
                match self.catalog.definition(&name) {
                    Some(_) => Ok(name),
                    None => Err(self.table(&name).map_or_else(
                        |error| error,
                        |_| Error::input(format!("{name} is no table of the database")),
                    )),
                }
            })
        };
        Ok(match command {
            Command::Export { path, options } => {
                Command::Export { path: path.clone(), options: options.clone() }
            }
            Command::Import { path } => Command::Import { path: path.clone() },
            Command::CheckIntegrity { table: name } => {
                Command::CheckIntegrity { table: table(name).transpose()? }
            }
            Command::Backup { path, options } => {
                Command::Backup { path: path.clone(), options: options.clone() }
            }
            Command::Attach { path, name, if_not_exists, or_replace, options } => Command::Attach {
                path: path.clone(),
                name: name.clone(),
                if_not_exists: *if_not_exists,
                or_replace: *or_replace,
                options: options.clone(),
            },
            Command::Detach { name, if_exists } => {
                Command::Detach { name: name.clone(), if_exists: *if_exists }
            }
            Command::ShowDatabases => Command::ShowDatabases,
            Command::Vacuum { table: name } => Command::Vacuum { table: table(name).transpose()? },
        })
    }

    /// `CREATE OR REPLACE` of a sequence, a type or an index.
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
            Statement::CreateType { name, ty, .. } => {
                Ok(Statement::CreateType { name, ty, or_replace: true })
            }
            bound => Ok(bound),
        }
    }

    fn show(&self, name: &Ident) -> Result<Statement> {
        if self.catalog.setting(&name.value).is_some() {
            return Ok(Statement::ShowSetting { name: name.value.clone() });
        }
        let error = Error::input(format!("there is no setting {}", name.value));
        Err(locate_ident(error, name))
    }
}
