//! Keyed statements: rows named by a unique layout key are read and changed by a short program, run inline on
//! the calling thread, without binding, plan and pipelines (design.md, section 4).
//!
//! The program is compiled for one state of the catalog and anew for the next. Outside a transaction it works
//! on the newest version of the table in place; within one, on the transaction's.
//!
//! What it does not do: anything that needs other rows or tables (checks, foreign keys, indexes), and values
//! that must be converted. Then the answer is `None`, and the statement goes the long way. Nothing has been
//! changed in that case.

use crate::change::constraints::judge_null;
use crate::change::duplicate;
use crate::connection::Connection;
use crate::prepared::Prepared;
use crate::rows::Rows;
use crate::search_path::SearchPath;
use crate::work::Work;
use entasis_engine::relation::{ColumnDefault, OnCommit};
use entasis_sql::{Keyed, KeyedAction, Scalar};
use entasis_storage::{CatalogVersion, Datum, RowId, TableEntry, TableWriter, Waiter};
use entasis_vector::{DataType, Field, Result, Schema, Value};
use std::sync::Arc;

/// A keyed statement on a table.
pub(crate) struct Program {
    entry: Arc<TableEntry>,
    /// By column of the layout key.
    key: Vec<Source>,
    action: Action,
}

/// Where a value comes from, and the type that it must fit.
struct Source {
    scalar: Scalar,
    ty: DataType,
}

enum Action {
    Read {
        columns: Vec<usize>,
        schema: Arc<Schema>,
    },
    /// By column of the table; NULL where there is none.
    Insert(Vec<Option<Source>>),
    /// Columns and their new values; whether the key changes.
    Update(Vec<(usize, Source)>, bool),
    Delete,
}

/// The program for a keyed statement, if these names have one for it.
pub(crate) fn compile(keyed: &Keyed, names: &CatalogVersion, path: &SearchPath) -> Option<Program> {
    let entry = names.table(&path.find(names, &keyed.table))?.clone();
    let (schema, options) = (entry.table.schema().clone(), entry.table.options());
    let find = |name: &String| schema.iter().position(|field| field.name.eq_ignore_ascii_case(name));
    let source = |column: usize, scalar: &Scalar| {
        let source = Source { scalar: scalar.clone(), ty: schema[column].ty };
        let fits = match scalar {
            Scalar::Constant(value) => fit(value, None, source.ty).is_some(),
            Scalar::Parameter(_) => true,
        };
        fits.then_some(source)
    };
    if !options.unique {
        return None;
    }
    let definition = &entry.definition;
    let is_referred = || {
        let mut keys = names.tables().flat_map(|other| &other.definition.foreign_keys);
        keys.any(|key| key.table.eq_ignore_ascii_case(&entry.name))
    };
    let is_read = matches!(keyed.action, KeyedAction::Read(_));
    if !is_read
        && (definition.on_commit != OnCommit::Preserve
            || !definition.checks.is_empty()
            || !definition.foreign_keys.is_empty()
            || entry.indexes.iter().any(Option::is_some)
            || is_referred())
    {
        return None;
    }
    let mut key = Vec::new();
    if !matches!(keyed.action, KeyedAction::Insert(..)) {
        if keyed.key.len() != options.layout_key.len() {
            return None;
        }
        for &column in &options.layout_key {
            let (_, scalar) = keyed.key.iter().find(|(name, _)| find(name) == Some(column))?;
            key.push(source(column, scalar)?);
        }
    }
    let action = match &keyed.action {
        KeyedAction::Delete => Action::Delete,
        KeyedAction::Read(names) => {
            let named = names.iter().map(find).collect::<Option<Vec<_>>>()?;
            let columns = if names.is_empty() { (0..schema.len()).collect() } else { named };
            // As the statement writes them.
            let field = |(at, &column): (usize, &usize)| match names.get(at) {
                Some(name) => Field { name: name.as_str().into(), ..schema[column].clone() },
                None => schema[column].clone(),
            };
            Action::Read { schema: Arc::new(columns.iter().enumerate().map(field).collect()), columns }
        }
        KeyedAction::Insert(names, values) => {
            let named = names.iter().map(find).collect::<Option<Vec<_>>>()?;
            let columns: Vec<usize> = if names.is_empty() { (0..schema.len()).collect() } else { named };
            let mut sources: Vec<Option<Source>> = schema.iter().map(|_| None).collect();
            if columns.len() != values.len() {
                return None;
            }
            for (&column, scalar) in columns.iter().zip(values) {
                if sources[column].replace(source(column, scalar)?).is_some() {
                    return None;
                }
            }
            let is_null = |column: usize| *definition.default_of(column) == ColumnDefault::Null;
            let identity =
                |column: usize| matches!(definition.default_of(column), ColumnDefault::Identity { .. });
            if (0..schema.len())
                .any(|column| identity(column) || (sources[column].is_none() && !is_null(column)))
            {
                return None;
            }
            Action::Insert(sources)
        }
        KeyedAction::Update(set) => {
            let mut sources: Vec<(usize, Source)> = Vec::new();
            for (name, scalar) in set {
                let column = find(name)?;
                let identity = matches!(definition.default_of(column), ColumnDefault::Identity { .. });
                if identity || sources.iter().any(|(other, _)| *other == column) {
                    return None;
                }
                sources.push((column, source(column, scalar)?));
            }
            let moves = sources.iter().any(|(column, _)| options.layout_key.contains(column));
            Action::Update(sources, moves)
        }
    };
    Some(Program { entry, key, action })
}

/// A value as a column of type `to` has it, if no conversion is needed; `from`: the type that it was given
/// with.
fn fit<'a>(value: &'a Value, from: Option<DataType>, to: DataType) -> Option<Datum<'a>> {
    let fits = match value {
        Value::Null => true,
        Value::Boolean(_) => to == DataType::Boolean,
        Value::Integer(v) => match to.integer_range() {
            Some((least, greatest)) => {
                from.is_none_or(DataType::is_integer) && (least..=greatest).contains(v)
            }
            None => from == Some(to),
        },
        Value::Text(_) => to == DataType::Varchar,
        Value::Float(_) => to == DataType::Float64 || from == Some(to),
        _ => from == Some(to),
    };
    fits.then(|| Datum::of_value(value, to))
}

impl Source {
    fn datum<'a>(&'a self, parameters: &'a [(Value, DataType)]) -> Option<Datum<'a>> {
        match &self.scalar {
            Scalar::Constant(value) => fit(value, None, self.ty),
            Scalar::Parameter(index) => {
                let (value, from) = parameters.get(*index)?;
                fit(value, Some(*from), self.ty)
            }
        }
    }
}

/// Runs a statement, in the transaction that is open or by itself, if it is keyed and its values fit; else
/// `None`.
///
/// # Errors
/// Constraint, if one is violated; resource, if the memory limit is reached; interrupted; conflict, if the
/// time is up. Nothing is changed then.
pub(crate) fn run(
    connection: &Connection,
    open: &mut Option<Work>,
    prepared: &Prepared,
    parameters: &[(Value, DataType)],
    waiter: &Waiter<'_>,
) -> Result<Option<Rows>> {
    let catalog = &connection.shared.catalog;
    // A transaction that has changed names sees others than the rest.
    if open.as_ref().is_some_and(|work| !catalog.at_rest(|newest| work.has_names(newest))) {
        return Ok(None);
    }
    let changes = catalog.changes();
    let Some(program) = prepared.program(changes, connection) else { return Ok(None) };
    if prepared.table().is_some_and(|table| connection.is_registered(table)) {
        return Ok(None);
    }
    let mut key = Vec::with_capacity(program.key.len());
    for source in &program.key {
        match source.datum(parameters) {
            // Nothing equals NULL.
            None | Some(Datum::Null) => return Ok(None),
            Some(datum) => key.push(datum),
        }
    }
    match open {
        Some(work) => program.run_in(work, &key, parameters),
        None => program.run_by_itself(connection, changes, &key, parameters, waiter),
    }
}

impl Program {
    fn run_by_itself(
        &self,
        connection: &Connection,
        changes: u64,
        key: &[Datum<'_>],
        parameters: &[(Value, DataType)],
        waiter: &Waiter<'_>,
    ) -> Result<Option<Rows>> {
        let shared = &connection.shared;
        if let Action::Read { columns, schema } = &self.action {
            return self.entry.table.read(|rows| {
                let mut datums = Vec::with_capacity(columns.len());
                if let Some(row) = rows.find(key) {
                    rows.read(row, columns, &mut datums);
                }
                row(schema, &datums).map(Some)
            });
        }
        // What takes rows away needs no memory.
        if !matches!(self.action, Action::Delete) {
            shared.may_write()?;
        }
        let mut writer = self.entry.table.write_as(waiter)?;
        // Whoever changes a table's definition has its turn to write, so now it stays as it is.
        if shared.catalog.changes() != changes {
            return Ok(None);
        }
        let written = self.write(&mut writer, key, parameters)?;
        shared.wrote(self.bytes(parameters));
        Ok(written)
    }

    fn run_in(
        &self,
        work: &mut Work,
        key: &[Datum<'_>],
        parameters: &[(Value, DataType)],
    ) -> Result<Option<Rows>> {
        if let Action::Read { columns, schema } = &self.action {
            let snapshot = work.snapshot(&self.entry.table);
            let mut datums = Vec::with_capacity(columns.len());
            if let Some(row) = snapshot.find(key) {
                snapshot.read(row, columns, &mut datums);
            }
            return row(schema, &datums).map(Some);
        }
        if !matches!(self.action, Action::Delete) {
            work.may_write()?;
        }
        let written = self.write(&mut work.write(&self.entry, &self.entry.table), key, parameters)?;
        work.wrote(self.bytes(parameters));
        Ok(written)
    }

    /// Bytes of memory that a row may take which it writes, about.
    fn bytes(&self, parameters: &[(Value, DataType)]) -> usize {
        let text = |value: &Value| match value {
            Value::Text(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            _ => 0,
        };
        let constant = |source: &Source| match &source.scalar {
            Scalar::Constant(value) => text(value),
            Scalar::Parameter(_) => 0,
        };
        let constants: usize = match &self.action {
            Action::Insert(sources) => sources.iter().flatten().map(constant).sum(),
            Action::Update(sources, _) => sources.iter().map(|(_, source)| constant(source)).sum(),
            Action::Read { .. } | Action::Delete => 0,
        };
        let width = 16 * self.entry.table.schema().len();
        width + constants + parameters.iter().map(|(value, _)| text(value)).sum::<usize>()
    }

    fn write(
        &self,
        writer: &mut TableWriter<'_>,
        key: &[Datum<'_>],
        parameters: &[(Value, DataType)],
    ) -> Result<Option<Rows>> {
        let changed = match &self.action {
            Action::Read { .. } => unreachable!("reads do not write"),
            Action::Insert(sources) => {
                let mut row = Vec::with_capacity(sources.len());
                for (column, source) in sources.iter().enumerate() {
                    let Some(datum) =
                        source.as_ref().map_or(Some(Datum::Null), |source| source.datum(parameters))
                    else {
                        return Ok(None);
                    };
                    judge_null(&self.entry, column, datum)?;
                    row.push(datum);
                }
                let layout_key = &self.entry.table.options().layout_key;
                let key: Vec<Datum<'_>> = layout_key.iter().map(|&column| row[column]).collect();
                self.refuse_taken(writer, &key, None)?;
                writer.insert(&row);
                1
            }
            Action::Delete => match writer.find(key) {
                Some(row) => {
                    writer.delete(row);
                    1
                }
                None => 0,
            },
            Action::Update(sources, moves) => {
                let mut changes = Vec::with_capacity(sources.len());
                for (column, source) in sources {
                    let Some(datum) = source.datum(parameters) else { return Ok(None) };
                    changes.push((*column, datum));
                }
                match writer.find(key) {
                    None => 0,
                    Some(row) => {
                        for &(column, datum) in &changes {
                            judge_null(&self.entry, column, datum)?;
                        }
                        if *moves {
                            let layout_key = self.entry.table.options().layout_key.iter().zip(key);
                            let new = layout_key.map(|(column, old)| {
                                changes
                                    .iter()
                                    .find(|(changed, _)| changed == column)
                                    .map_or(*old, |(_, new)| *new)
                            });
                            self.refuse_taken(writer, &new.collect::<Vec<_>>(), Some(row))?;
                        }
                        writer.update(row, &changes);
                        1
                    }
                }
            }
        };
        Ok(Some(Rows::changed_rows(changed)))
    }

    /// Refuses a key that a row has already, other than `own`.
    fn refuse_taken(&self, writer: &TableWriter<'_>, key: &[Datum<'_>], own: Option<RowId>) -> Result<()> {
        match writer.find(key) {
            Some(row) if Some(row) != own => {
                let number =
                    self.entry.indexes.iter().position(Option::is_none).expect("the layout key is a key");
                let types = self.entry.table.options().layout_key.iter();
                let types = types.map(|&column| self.entry.table.schema()[column].ty);
                let values: Vec<Value> = key.iter().zip(types).map(|(datum, ty)| datum.value(ty)).collect();
                Err(duplicate(&self.entry, number, &values))
            }
            _ => Ok(()),
        }
    }
}

/// A result of one row, or none.
fn row(schema: &Arc<Schema>, datums: &[Datum<'_>]) -> Result<Rows> {
    if datums.is_empty() {
        return Rows::of_schema(Schema::clone(schema), &[]);
    }
    let values = datums.iter().zip(&**schema).map(|(datum, field)| datum.value(field.ty)).collect();
    Ok(Rows::of_row(schema.clone(), values))
}
