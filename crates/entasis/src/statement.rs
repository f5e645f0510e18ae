//! What each kind of statement does, once it is bound.
//!
//! A statement that changes something works on the side and becomes visible in one step at its end: a table is filled
//! before it is in the catalog, inserted rows are committed together, a file has its name only when it is complete. So
//! an error in the middle leaves everything as it was.

use crate::connection::Connection;
use crate::rows::Rows;
use crate::{files, modify, settings, summarize};
use entasis_engine::exec::{self, Collector, Profile, Reservation, ResultSink, ResultWorker};
use entasis_engine::optimizer;
use entasis_engine::plan::{Columns, Node, Output, Plan, Scan};
use entasis_engine::relation::Relation;
use entasis_sql::{Constraint, ObjectKind, Statement};
use entasis_storage::{AppendedRows, Appender, IfExists, Table, View};
use entasis_vector::expr::Expr;
use entasis_vector::{Chunk, DataType, Error, Result, Selection, Value, Vector};
use std::sync::{Arc, Mutex, PoisonError};

/// Runs a bound statement. `open`: the table whose rows it changes, opened for writing before it was bound.
pub(crate) fn run(
    connection: &Connection,
    statement: Statement,
    open: Option<entasis_storage::Statement<'_>>,
) -> Result<Rows> {
    let catalog = &connection.shared.catalog;
    match statement {
        Statement::Query(plan) => query(connection, plan),
        Statement::Explain { analyze, verbose, statement } => explain(connection, *statement, analyze, verbose),
        Statement::CreateTable { name, columns, constraints, options, if_not_exists, or_replace } => {
            refuse_options(&options)?;
            refuse_keys(&constraints)?;
            catalog.create_table(&name, columns, taken(if_not_exists, or_replace))?;
            connection.shared.charge_tables()?;
            Ok(Rows::empty())
        }
        Statement::CreateTableAs { name, plan, options, if_not_exists, or_replace } => {
            refuse_options(&options)?;
            if if_not_exists && catalog.table(&name).is_some() {
                return Ok(Rows::empty());
            }
            let table = Table::new(name.as_str(), plan.schema().into_iter().map(nullable).collect());
            let rows = fill(connection, &table, None, plan, |_| {
                catalog.add_table(table.clone(), taken(if_not_exists, or_replace)).map(|_| ())
            })?;
            Ok(Rows::changed_rows(rows))
        }
        Statement::Insert { table, columns, plan } => insert(connection, &table, columns, plan),
        Statement::CopyFrom { table, columns, path, options } => {
            let target = stored(connection, &table)?;
            let plan = copy_from(&target, &columns, &path, &options)?;
            insert(connection, &table, columns, plan)
        }
        Statement::CopyTo { plan, path, options } => {
            let sink = files::copy_to(&path, &plan.schema(), &options, &connection.context())?;
            execute(connection, plan, &*sink)?;
            Ok(Rows::changed_rows(sink.commit()?))
        }
        Statement::Update { table, columns, plan } => modify::update(connection, &columns, plan, opened(open, &table)?),
        Statement::Delete { table, plan } => modify::delete(connection, plan, opened(open, &table)?),
        Statement::Truncate { names } => modify::truncate(connection, &names),
        Statement::Drop { kind, names, if_exists } => drop_objects(connection, kind, &names, if_exists),
        Statement::CreateView { name, sql, columns, if_not_exists, or_replace } => {
            catalog.create_view(View { name, sql, schema: columns }, taken(if_not_exists, or_replace))?;
            Ok(Rows::empty())
        }
        Statement::ShowTables => {
            let rows: Vec<Vec<Value>> = connection.tables().iter().map(|name| vec![text(name)]).collect();
            Rows::from_values(&[("name", DataType::Varchar)], &rows)
        }
        Statement::ShowSettings => settings::show(connection, None),
        Statement::ShowSetting { name } => settings::show(connection, Some(&name)),
        Statement::Summarize { plan } => summarize::summarize(connection, plan),
        Statement::Set { name, value } => {
            let written = match &value {
                Value::Text(text) => text.to_string(),
                Value::Float(_) => value.display(DataType::Float64).to_string(),
                other => other.display(DataType::Int64).to_string(),
            };
            settings::set(connection, &name, &written)?;
            Ok(Rows::empty())
        }
        Statement::Reset { name } => {
            settings::reset(connection, &name)?;
            Ok(Rows::empty())
        }
    }
}

/// Optimizes a plan and runs it into `sink`.
pub(crate) fn execute(connection: &Connection, plan: Plan, sink: &dyn ResultSink) -> Result<Profile> {
    let context = connection.context();
    let plan = optimizer::optimize(plan, &context.settings)?;
    exec::execute(&plan, &context, sink)
}

/// Runs a query and keeps its rows.
pub(crate) fn query(connection: &Connection, plan: Plan) -> Result<Rows> {
    let schema = plan.schema();
    let context = connection.context();
    let collector = Collector::new(&context, schema.iter().map(|field| field.ty).collect());
    execute(connection, plan, &collector)?;
    Ok(Rows::new(schema, collector.into_chunks(), context))
}

fn opened<'a>(open: Option<entasis_storage::Statement<'a>>, table: &str) -> Result<entasis_storage::Statement<'a>> {
    open.ok_or_else(|| Error::internal(format!("the table {table} was not opened for writing")))
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

fn taken(if_not_exists: bool, or_replace: bool) -> IfExists {
    match (if_not_exists, or_replace) {
        (true, _) => IfExists::Keep,
        (_, true) => IfExists::Replace,
        _ => IfExists::Fail,
    }
}

/// A column of `CREATE TABLE AS`: what the query knows of NULLs is not a constraint of the table.
fn nullable(mut field: entasis_vector::Field) -> entasis_vector::Field {
    field.nullable = true;
    if field.ty == DataType::Null {
        field.ty = DataType::Int32;
    }
    field
}

fn refuse_options(options: &[(String, Value)]) -> Result<()> {
    match options.first() {
        None => Ok(()),
        Some((name, _)) => Err(Error::not_supported(format!("the table option '{name}'"))),
    }
}

fn refuse_keys(constraints: &[Constraint]) -> Result<()> {
    constraints.iter().try_for_each(|constraint| match constraint {
        Constraint::NotNull(_) => Ok(()),
        Constraint::PrimaryKey(_) => Err(Error::not_supported("PRIMARY KEY constraints")),
        Constraint::Unique(_) => Err(Error::not_supported("UNIQUE constraints")),
    })
}

fn stored(connection: &Connection, name: &str) -> Result<Arc<Table>> {
    connection.shared.catalog.table(name).ok_or_else(|| Error::input(format!("\"{name}\" is not a table to write to")))
}

fn drop_objects(connection: &Connection, kind: ObjectKind, names: &[String], if_exists: bool) -> Result<Rows> {
    let catalog = &connection.shared.catalog;
    let (word, exists): (_, fn(&Connection, &str) -> bool) = match kind {
        ObjectKind::Table => ("table", |c, name| c.shared.catalog.table(name).is_some()),
        ObjectKind::View => ("view", |c, name| c.shared.catalog.view(name).is_some()),
    };
    // All names are checked before any is dropped.
    if !if_exists && let Some(missing) = names.iter().find(|name| !exists(connection, name)) {
        let other_kind = catalog.names().iter().any(|name| name.eq_ignore_ascii_case(missing));
        if !other_kind {
            return Err(Error::input(format!("there is no {word} \"{missing}\"")));
        }
    }
    for name in names {
        match kind {
            ObjectKind::Table => catalog.drop_table(name)?,
            ObjectKind::View => catalog.drop_view(name)?,
        };
    }
    connection.shared.charge_tables()?;
    Ok(Rows::empty())
}

// ---- writing rows to a table -------------------------------------------------------------------------------------

fn insert(connection: &Connection, name: &str, columns: Vec<usize>, plan: Plan) -> Result<Rows> {
    let table = stored(connection, name)?;
    let rows = fill(connection, &table, Some(columns), plan, |_| Ok(()))?;
    Ok(Rows::changed_rows(rows))
}

/// Runs `plan` into `table`; output column i goes to column `columns[i]` (all in order if `None`). `publish` runs when
/// all rows are committed. Returns the rows.
fn fill(
    connection: &Connection,
    table: &Arc<Table>,
    columns: Option<Vec<usize>>,
    plan: Plan,
    publish: impl FnOnce(u64) -> Result<()>,
) -> Result<u64> {
    let columns = columns.unwrap_or_else(|| (0..table.schema().len()).collect());
    let sources = (0..table.schema().len()).map(|column| columns.iter().position(|&target| target == column)).collect();
    let shared = Arc::new(Filled { memory: Mutex::new(vec![]), rows: Mutex::new(vec![]) });
    let sink = TableSink { connection, table: table.clone(), sources, shared: shared.clone() };
    execute(connection, plan, &sink)?;
    let rows = table.commit(std::mem::take(&mut *lock(&shared.rows)))?;
    publish(rows)?;
    lock(&shared.memory).clear();
    connection.shared.charge_tables()?;
    Ok(rows)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A result sink that appends to a table.
struct TableSink<'a> {
    connection: &'a Connection,
    table: Arc<Table>,
    /// For each column of the table, the column of the chunks, or none: NULL.
    sources: Arc<[Option<usize>]>,
    shared: Arc<Filled>,
}

/// What the workers leave behind.
struct Filled {
    memory: Mutex<Vec<Reservation>>,
    rows: Mutex<Vec<AppendedRows>>,
}

impl ResultSink for TableSink<'_> {
    fn worker(&self) -> Result<Box<dyn ResultWorker>> {
        let nulls = self
            .table
            .schema()
            .iter()
            .map(|field| Vector::constant(field.ty.physical(), &Value::Null))
            .collect::<Result<Vec<_>>>()?;
        Ok(Box::new(TableWorker {
            appender: Some(self.table.appender()),
            sources: self.sources.clone(),
            nulls,
            chunk: Chunk::new(),
            morsel: 0,
            memory: Reservation::new(&self.connection.shared.memory),
            shared: self.shared.clone(),
        }))
    }
}

struct TableWorker {
    /// Present until the worker has finished.
    appender: Option<Appender>,
    sources: Arc<[Option<usize>]>,
    nulls: Vec<Vector>,
    chunk: Chunk,
    morsel: u64,
    memory: Reservation,
    shared: Arc<Filled>,
}

impl ResultWorker for TableWorker {
    fn start_morsel(&mut self, morsel: u64) {
        self.morsel = morsel;
    }

    fn push(&mut self, chunk: &Chunk) -> Result<()> {
        self.chunk.reset(chunk.len());
        for selection in chunk.groups() {
            self.chunk.push_group(selection.clone());
        }
        let constants = self.chunk.push_group(Selection::ALL);
        for (source, null) in self.sources.iter().zip(&self.nulls) {
            match source {
                Some(source) => {
                    let column = chunk.column(*source);
                    self.chunk.push_column(column.vector.clone(), column.group);
                }
                None => self.chunk.push_column(null.clone(), constants),
            }
        }
        let appender = self.appender.as_mut().expect("not finished yet");
        appender.append(&self.chunk, self.morsel)?;
        self.chunk.reset(0);
        self.memory.resize(appender.bytes())
    }

    fn finish(&mut self) -> Result<()> {
        if let Some(appender) = self.appender.take() {
            lock(&self.shared.rows).push(appender.finish());
            lock(&self.shared.memory).push(std::mem::take(&mut self.memory));
        }
        Ok(())
    }
}

/// The plan of `COPY table FROM file`: a scan of the file, cast to the table's columns.
fn copy_from(table: &Table, columns: &[usize], path: &str, options: &[(String, Value)]) -> Result<Plan> {
    let targets: Vec<_> = columns.iter().map(|&column| table.schema()[column].clone()).collect();
    let relation: Arc<dyn Relation> = files::copy_from(path, &targets, options)?;
    if relation.schema().len() != targets.len() {
        return Err(Error::input(format!(
            "'{path}' has {} columns, but {} of {} are to be filled",
            relation.schema().len(),
            targets.len(),
            table.name()
        )));
    }
    let mut ids = Columns::default();
    let scanned: Vec<_> = relation
        .schema()
        .iter()
        .enumerate()
        .map(|(index, field)| (ids.add(&*field.name, field.ty, field.nullable), index))
        .collect();
    let mut exprs = Vec::new();
    let mut output = Vec::new();
    for ((id, _), target) in scanned.iter().zip(&targets) {
        let mut column = *id;
        if ids.ty(*id) != target.ty {
            let input = Box::new(ids.expr(*id));
            column = ids.add(&*target.name, target.ty, true);
            exprs.push((column, Expr::Cast { input, ty: target.ty, lenient: false }));
        }
        output.push(Output { name: target.name.to_string(), column });
    }
    let scan = Node::Scan(Scan { relation, columns: scanned, filters: vec![] });
    let root = match exprs.is_empty() {
        true => scan,
        false => Node::Project(entasis_engine::plan::Project { input: Box::new(scan), exprs }),
    };
    Ok(Plan { root, columns: ids, output })
}

// ---- EXPLAIN ------------------------------------------------------------------------------------------------------

/// `EXPLAIN`: one row a line. `VERBOSE` shows the plan after each rule of the optimizer that changed it, and at the end the
/// programs into which its expressions are compiled.
fn explain(connection: &Connection, statement: Statement, analyze: bool, verbose: bool) -> Result<Rows> {
    let plan = match statement {
        Statement::Query(plan)
        | Statement::CreateTableAs { plan, .. }
        | Statement::Insert { plan, .. }
        | Statement::CopyTo { plan, .. }
            if !analyze =>
        {
            plan
        }
        Statement::Query(plan) => plan,
        _ if analyze => return Err(Error::not_supported("EXPLAIN ANALYZE of statements other than queries")),
        _ => return Err(Error::input("only statements with a query have a plan to explain")),
    };
    let mut context = connection.context();
    let mut lines = String::new();
    if verbose {
        lines += &format!("as written\n{plan}\n");
        let (_, trace) = optimizer::optimize_traced(plan.clone(), &context.settings)?;
        for (rule, plan) in trace {
            lines += &format!("after {rule}\n{plan}\n");
        }
    }
    let plan = optimizer::optimize(plan, &context.settings)?;
    if analyze {
        Arc::make_mut(&mut context.settings).profile = true;
        let collector = Collector::new(&context, plan.schema().iter().map(|field| field.ty).collect());
        lines += &exec::execute(&plan, &context, &collector)?.to_string();
    } else {
        lines += &plan.to_string();
    }
    if verbose {
        lines += &format!("\nprograms\n{}", exec::programs(&plan, &context)?);
    }
    let rows: Vec<Vec<Value>> = lines.lines().map(|line| vec![text(line)]).collect();
    Rows::from_values(&[("plan", DataType::Varchar)], &rows)
}
