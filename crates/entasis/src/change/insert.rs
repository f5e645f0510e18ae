//! `INSERT` without `ON CONFLICT`: rows are encoded by all workers as they come, and committed together.
//!
//! What must be judged by other rows (keys, foreign keys), and what goes into indexes, is looked at behind that, on the rows
//! that came.

use super::apply::{settle, watched};
use super::constraints;
use crate::connection::Connection;
use crate::rows::Rows;
use crate::statement;
use crate::work::Work;
use entasis_engine::exec::{Collector, Reservation, ResultSink, ResultWorker};
use entasis_engine::plan::Plan;
use entasis_sql::Insert;
use entasis_storage::{AppendedRows, Appender, Table, TableEntry};
use entasis_vector::{Chunk, DataType, Result};
use std::sync::{Arc, Mutex, PoisonError};

/// Runs an [`Insert`].
pub(crate) fn insert(connection: &Connection, work: &mut Work, insert: Insert) -> Result<Rows> {
    let entry = super::target(work, &insert.table)?;
    let outputs: Vec<DataType> = insert.plan.schema().iter().map(|field| field.ty).collect();
    let returned = entry.table.schema().len() + insert.checks.len();
    let context = connection.context();
    let collector = insert.returning.is_some().then(|| Collector::new(&context, outputs[returned..].to_vec()));
    let filled = Filled::default();
    let sink =
        TableSink { connection, entry: &entry, checks: &insert.checks, collector: collector.as_ref(), filled: &filled };
    statement::execute(connection, insert.plan, &sink)?;
    let changed = add(work, &entry, filled.take())?;
    Ok(match (insert.returning, collector) {
        (Some(schema), Some(collector)) => Rows::new(schema, collector.into_chunks(), context).with_changed(changed),
        _ => Rows::changed_rows(changed),
    })
}

/// Adds rows in bulk to a table and its indexes, and judges them. Returns how many they are.
pub(crate) fn add(work: &mut Work, entry: &Arc<TableEntry>, rows: Vec<AppendedRows>) -> Result<u64> {
    let mut watched = watched(work, entry);
    let types: Vec<DataType> = entry.table.schema().iter().map(|field| field.ty).collect();
    for key in &mut watched {
        let columns = key.columns.clone();
        let added = &mut key.added;
        let value = |(datum, &column): (&entasis_storage::Datum<'_>, &usize)| datum.value(types[column]);
        for rows in &rows {
            rows.each_row(&columns, |datums| added.push(datums.iter().zip(&columns).map(value).collect()));
        }
    }
    let changed = work.append(entry, &entry.table, rows)?;
    settle(work, entry, watched)?;
    Ok(changed)
}

/// Runs `plan`, whose columns are the table's, into a table that nobody else knows yet.
pub(crate) fn fill(connection: &Connection, table: &Arc<Table>, plan: Plan) -> Result<u64> {
    let entry = Arc::new(TableEntry::plain(table.clone()));
    let filled = Filled::default();
    let sink = TableSink { connection, entry: &entry, checks: &[], collector: None, filled: &filled };
    statement::execute(connection, plan, &sink)?;
    table.commit(filled.take())
}

/// A result sink that encodes rows of a table.
struct TableSink<'a> {
    connection: &'a Connection,
    entry: &'a Arc<TableEntry>,
    /// CHECK constraints, each a column behind the table's.
    checks: &'a [String],
    /// Takes the columns behind these.
    collector: Option<&'a Collector>,
    filled: &'a Filled,
}

/// What the workers leave behind.
#[derive(Default)]
struct Filled(Arc<Mutex<Parts>>);

#[derive(Default)]
struct Parts {
    rows: Vec<AppendedRows>,
    /// What they take of the memory budget, until the tables are charged with them.
    memory: Vec<Reservation>,
}

impl Filled {
    fn take(&self) -> Vec<AppendedRows> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).rows)
    }
}

impl ResultSink for TableSink<'_> {
    fn worker(&self) -> Result<Box<dyn ResultWorker>> {
        Ok(Box::new(TableWorker {
            entry: self.entry.clone(),
            checks: self.checks.to_vec(),
            appender: Some(self.entry.table.appender()),
            chunk: Chunk::new(),
            morsel: 0,
            memory: Reservation::new(&self.connection.shared.memory),
            collector: self.collector.map(|collector| collector.worker()).transpose()?,
            parts: self.filled.0.clone(),
        }))
    }
}

struct TableWorker {
    entry: Arc<TableEntry>,
    checks: Vec<String>,
    /// Present until the worker has finished.
    appender: Option<Appender>,
    chunk: Chunk,
    morsel: u64,
    memory: Reservation,
    collector: Option<Box<dyn ResultWorker>>,
    parts: Arc<Mutex<Parts>>,
}

impl TableWorker {
    /// Some columns of a chunk.
    fn columns(&mut self, chunk: &Chunk, columns: std::ops::Range<usize>) {
        self.chunk.reset(chunk.len());
        for selection in chunk.groups() {
            self.chunk.push_group(selection.clone());
        }
        for column in &chunk.columns()[columns] {
            self.chunk.push_column(column.vector.clone(), column.group);
        }
    }
}

impl ResultWorker for TableWorker {
    fn start_morsel(&mut self, morsel: u64) {
        self.morsel = morsel;
        if let Some(collector) = &mut self.collector {
            collector.start_morsel(morsel);
        }
    }

    fn push(&mut self, chunk: &Chunk) -> Result<()> {
        let own = self.entry.table.schema().len();
        let returned = own + self.checks.len();
        if !self.checks.is_empty() {
            constraints::judge_checks(&self.entry, &self.checks, own, std::slice::from_ref(chunk))?;
        }
        self.columns(chunk, 0..own);
        let appender = self.appender.as_mut().expect("not finished yet");
        appender.append(&self.chunk, self.morsel)?;
        self.memory.resize(appender.bytes())?;
        if self.collector.is_some() {
            self.columns(chunk, returned..chunk.columns().len());
            self.collector.as_mut().expect("just tested").push(&self.chunk)?;
        }
        self.chunk.reset(0);
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        if let Some(collector) = &mut self.collector {
            collector.finish()?;
        }
        if let Some(appender) = self.appender.take() {
            let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
            parts.rows.push(appender.finish());
            parts.memory.push(std::mem::take(&mut self.memory));
        }
        Ok(())
    }
}
