//! `INSERT` without `ON CONFLICT`: all workers encode rows as they arrive, and all rows are committed
//! together.
//!
//! The same is done for the rows of indexes. A row of a table without a layout key gets its number when it is
//! added, so the rows of indexes of such a table are encoded afterwards, by a scan of what was added. What
//! depends on other rows (keys, foreign keys) is checked on the new rows.

use super::foreign;
use crate::catalog::TableRelation;
use crate::constraints::keys::duplicate;
use crate::constraints::row;
use crate::constraints::values::datum;
use crate::query::execute;
use crate::session::Session;
use crate::state::interrupt::Interrupt;
use crate::transaction::TransactionContext;
use crate::values::rows::Rows;
use entasis_engine::exec::{Collector, Reservation, ResultSink, ResultWorker};
use entasis_engine::plan::Plan;
use entasis_sql::Insert;
use entasis_storage::definition::KeyKind;
use entasis_storage::index::{ROW_NUMBER, index_columns};
use entasis_storage::{Among, AppendedRows, Appender, Datum, RowId, TableEntry, TableSnapshot, TableWriter};
use entasis_vector::{Buffer, Chunk, DataType, Error, PhysicalType, Result, Selection, Value, Vector};
use std::sync::{Arc, Mutex, PoisonError};

/// Runs an [`Insert`].
pub(crate) fn insert(
    session: &Session,
    transaction: &mut TransactionContext,
    insert: Insert,
) -> Result<Rows> {
    let entry = super::target(transaction, &insert.table)?;
    let outputs: Vec<DataType> = insert.plan.schema().iter().map(|field| field.ty).collect();
    let returned = entry.table.schema().len() + insert.checks.len();
    let context = session.context();
    let collector =
        insert.returning.is_some().then(|| Collector::new(&context, outputs[returned..].to_vec()));
    let filled = Filled::default();
    let sink = TableSink {
        session,
        entry: &entry,
        rows: RowsOf::Table,
        keys: &keys_filled_with(&entry),
        checks: &insert.checks,
        collector: collector.as_ref(),
        filled: &filled,
    };
    execute(session, insert.plan, &sink)?;
    let changed = add(session, transaction, &entry, filled.take())?;
    Ok(match (insert.returning, collector) {
        (Some(schema), Some(collector)) => {
            Rows::new(schema, collector.into_chunks(), context).with_changed(changed)
        }
        _ => Rows::changed_rows(changed),
    })
}

/// Adds rows in bulk to a table and its indexes, and checks them. Returns their number.
fn add(
    session: &Session,
    transaction: &mut TransactionContext,
    entry: &Arc<TableEntry>,
    mut rows: Added,
) -> Result<u64> {
    let count: u64 = rows.table.iter().map(AppendedRows::rows).sum();
    let refers = !entry.definition.foreign_keys.is_empty();
    // If they are few, each is looked up in the table, so they are needed after they have been added.
    let few = count <= transaction.snapshot(&entry.table).rows() / 16;
    let seen = if few || refers { rows.table.clone() } else { Vec::new() };
    let first = refer_by_number(entry).then(|| transaction.write(entry, &entry.table).next_number());
    transaction.append(entry, &entry.table, rows.table)?;
    if first.is_some() {
        let added = transaction.snapshot(&entry.table);
        rows.indexes = rows_of_indexes(session, entry, added, first, &all_keys(entry))?;
    }
    let interrupt = transaction.interrupt();
    for (number, index_rows) in rows.indexes.into_iter().enumerate() {
        let index = entry.indexes[number].as_ref();
        let index_seen = if few && index.is_some() { index_rows.clone() } else { Vec::new() };
        if let Some(index) = index {
            transaction.append(entry, index, index_rows)?;
        }
        let among = few.then_some(if index.is_some() { &index_seen } else { &seen });
        let table = index.unwrap_or(&entry.table);
        judge_key(entry, number, &transaction.write(entry, table), among.map(Vec::as_slice), &interrupt)?;
        transaction.go_on()?;
    }
    foreign::judge_added(transaction, entry, &seen)?;
    Ok(count)
}

/// Refuses rows with equal keys, looking at all rows or only at some added ones. `writer` is that of the
/// key's index, or of the table if that is laid out by the key.
pub(super) fn judge_key(
    entry: &TableEntry,
    number: usize,
    writer: &TableWriter<'_>,
    among: Option<&[AppendedRows]>,
    interrupt: &Interrupt,
) -> Result<()> {
    if entry.definition.keys[number].kind == KeyKind::Index {
        return Ok(());
    }
    let places = match among {
        Some(rows) => vec![Among::Appended(rows)],
        None => (0..writer.row_groups()).map(|group| Among::Groups(group..group + 1)).collect(),
    };
    for among in places {
        interrupt.look()?;
        if let Some(row) = writer.first_duplicate(among) {
            return Err(second(entry, number, |column| writer.datum(row, column)));
        }
    }
    Ok(())
}

/// The same for keys whose indexes are not published yet.
fn judge_keys(entry: &TableEntry, keys: impl Iterator<Item = usize>, interrupt: &Interrupt) -> Result<()> {
    for number in keys.filter(|&number| entry.definition.keys[number].kind != KeyKind::Index) {
        let rows = entry.indexes[number].as_ref().unwrap_or(&entry.table).snapshot();
        for group in 0..rows.row_groups().len() {
            interrupt.look()?;
            if let Some(row) = rows.first_duplicate(group) {
                return Err(second(entry, number, |column| rows.datum(row, column)));
            }
        }
    }
    Ok(())
}

/// The error for a row whose key another row has; `datum` returns columns of the table that is laid out by
/// the key.
fn second<'a>(entry: &TableEntry, number: usize, datum: impl Fn(usize) -> Datum<'a>) -> Error {
    let table = entry.indexes[number].as_ref().unwrap_or(&entry.table);
    let columns = table.options().layout_key.iter();
    let values: Vec<Value> = columns.map(|&column| datum(column).value(table.schema()[column].ty)).collect();
    duplicate(entry, number, &values)
}

/// Runs `plan`, whose columns are the table's, into a table that is not published yet, and into its indexes.
/// Returns the number of rows added.
///
/// # Errors
/// Constraint, if two rows have the same key; those of the plan.
pub(crate) fn fill(session: &Session, entry: &Arc<TableEntry>, plan: Plan) -> Result<u64> {
    let Added { table, mut indexes } =
        run_into(session, entry, plan, RowsOf::Table, &keys_filled_with(entry))?;
    let count = entry.table.commit(table)?;
    let all = all_keys(entry);
    if refer_by_number(entry) {
        indexes = rows_of_indexes(session, entry, entry.table.snapshot(), None, &all)?;
    }
    fill_new(session, entry, indexes, &all)?;
    Ok(count)
}

/// Adds the rows of a version of the table to the indexes of some keys, which are not published yet.
///
/// # Errors
/// Those of [`fill`].
pub(crate) fn fill_indexes(
    session: &Session,
    entry: &Arc<TableEntry>,
    rows: TableSnapshot,
    keys: &[usize],
) -> Result<()> {
    let rows = rows_of_indexes(session, entry, rows, None, keys)?;
    fill_new(session, entry, rows, keys)
}

/// The rows that the indexes of some keys have for those of a version of the table, by key; if `first` is
/// given, for those with this row number and greater ones.
fn rows_of_indexes(
    session: &Session,
    entry: &Arc<TableEntry>,
    rows: TableSnapshot,
    first: Option<u64>,
    keys: &[usize],
) -> Result<Vec<Vec<AppendedRows>>> {
    let of_table = |&number: &usize| {
        entry.indexes[number].as_ref()?;
        Some(index_columns(&entry.definition.keys[number], entry.table.options()))
    };
    let mut columns: Vec<usize> = keys.iter().filter_map(of_table).flatten().collect();
    columns.sort_unstable();
    columns.dedup();
    if columns.is_empty() {
        return Ok(Vec::new());
    }
    let relation = match refer_by_number(entry) {
        true => TableRelation::with_row_ids(&entry.name, rows.clone(), Vec::new(), Arc::default()),
        false => TableRelation::new(&entry.name, rows.clone(), Vec::new(), Arc::default()),
    };
    let relation = match first {
        Some(first) => relation.within(rows.slots_from(first)),
        None => relation,
    };
    let mut plan = Plan::scan(Arc::new(relation));
    // The row ids come behind all columns of the table, as row numbers do in `columns`.
    let row_ids = entry.table.schema().len();
    let outputs = columns.iter().map(|&column| plan.output[column.min(row_ids)].clone());
    plan.output = outputs.collect();
    let rows = RowsOf::Indexes { columns: &columns, rows: &rows, first: first.unwrap_or(0) };
    Ok(run_into(session, entry, plan, rows, keys)?.indexes)
}

fn run_into(
    session: &Session,
    entry: &Arc<TableEntry>,
    plan: Plan,
    rows: RowsOf<'_>,
    keys: &[usize],
) -> Result<Added> {
    let filled = Filled::default();
    let sink = TableSink { session, entry, rows, keys, checks: &[], collector: None, filled: &filled };
    execute(session, plan, &sink)?;
    Ok(filled.take())
}

/// True if the table has indexes, and these refer to rows by numbers, which rows get when they are added.
fn refer_by_number(entry: &TableEntry) -> bool {
    !entry.table.options().layout.is_keyed() && entry.indexes.iter().any(Option::is_some)
}

fn all_keys(entry: &TableEntry) -> Vec<usize> {
    (0..entry.indexes.len()).collect()
}

/// The keys whose indexes are filled with the same chunks as the table.
fn keys_filled_with(entry: &TableEntry) -> Vec<usize> {
    if refer_by_number(entry) { Vec::new() } else { all_keys(entry) }
}

/// Adds rows to indexes that are not published yet, and checks their keys.
fn fill_new(
    session: &Session,
    entry: &TableEntry,
    rows: Vec<Vec<AppendedRows>>,
    keys: &[usize],
) -> Result<()> {
    for (index, rows) in entry.indexes.iter().zip(rows) {
        if let Some(index) = index {
            index.commit(rows)?;
        }
    }
    judge_keys(entry, keys.iter().copied(), &Interrupt::by(session.cancel.clone()))
}

/// A result sink that encodes rows of a table.
struct TableSink<'a> {
    session: &'a Session,
    entry: &'a Arc<TableEntry>,
    rows: RowsOf<'a>,
    /// The keys whose indexes are filled.
    keys: &'a [usize],
    /// CHECK constraints; the column of each follows the table's columns.
    checks: &'a [String],
    /// Takes the columns after these.
    collector: Option<&'a Collector>,
    filled: &'a Filled,
}

/// What the rows that a sink takes are.
#[derive(Clone, Copy)]
enum RowsOf<'a> {
    /// Rows to be added to the table.
    Table,
    /// Columns of rows that a version of the table has, for indexes only. [`ROW_NUMBER`] stands for the row
    /// ids, from which the numbers follow; rows with numbers before `first` are left out.
    Indexes { columns: &'a [usize], rows: &'a TableSnapshot, first: u64 },
}

/// Rows to add: those of the table, and for each key those of its index.
#[derive(Default)]
struct Added {
    table: Vec<AppendedRows>,
    indexes: Vec<Vec<AppendedRows>>,
}

/// The rows that the workers have encoded.
#[derive(Default)]
struct Filled(Arc<Mutex<Parts>>);

#[derive(Default)]
struct Parts {
    rows: Added,
    /// Reservations for the rows, held until the tables are charged with them.
    memory: Vec<Reservation>,
}

impl Filled {
    fn take(&self) -> Added {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).rows)
    }
}

/// One worker's appender to an index.
struct IndexAppender {
    /// The columns of a chunk that make up the index.
    columns: Vec<usize>,
    /// How many of the first columns must not be NULL in a row of the index.
    required: usize,
    /// By row ids, in the column of a chunk behind those, the last column of the index.
    numbers: Option<Numbers>,
    appender: Appender,
}

/// Finds the row numbers of rows by their ids.
struct Numbers {
    rows: TableSnapshot,
    /// The column of a chunk that has the row ids.
    ids: usize,
    /// The first number that is wanted.
    first: i64,
    /// The numbers of a chunk.
    numbers: Vector,
}

impl Numbers {
    /// The numbers of the rows of a chunk, as a column, and whether all are wanted.
    fn of(&mut self, chunk: &Chunk) -> (Vector, bool) {
        let mut are_wanted = true;
        let numbers = self.numbers.begin_flat::<i64>(chunk.len());
        for (row, number) in numbers[..chunk.len()].iter_mut().enumerate() {
            let Datum::Integer(id) = datum(chunk, self.ids, row) else { unreachable!("each row has an id") };
            *number = self.rows.number_of(RowId::from_u64(id as u64)) as i64;
            are_wanted &= *number >= self.first;
        }
        (self.numbers.clone(), are_wanted)
    }
}

impl IndexAppender {
    /// One entry for each key of a table; `None` unless it is in `filled` and has an index.
    fn of_keys(entry: &TableEntry, rows: RowsOf<'_>, filled: &[usize]) -> Vec<Option<IndexAppender>> {
        let keys = entry.definition.keys.iter().enumerate();
        let place = |column: usize| match rows {
            RowsOf::Table => Some(column),
            RowsOf::Indexes { columns, .. } => columns.iter().position(|own| *own == column),
        };
        let appender = |(number, key): (usize, &entasis_storage::definition::Key)| {
            let appender = entry.indexes[number].as_ref().filter(|_| filled.contains(&number))?.appender();
            let required = if key.kind == KeyKind::Index { 0 } else { key.columns.len() };
            let mut columns = index_columns(key, entry.table.options());
            columns.retain(|column| *column != ROW_NUMBER);
            let columns = columns.into_iter().map(place).collect::<Option<_>>()?;
            let numbers = match rows {
                RowsOf::Indexes { rows, first, .. } if refer_by_number(entry) => Some(Numbers {
                    rows: rows.clone(),
                    ids: place(ROW_NUMBER)?,
                    first: first as i64,
                    numbers: Vector::new(PhysicalType::I64),
                }),
                _ => None,
            };
            Some(IndexAppender { columns, required, numbers, appender })
        };
        keys.map(appender).collect()
    }

    /// Appends the rows of a chunk; `own` and `spares` are scratch memory.
    fn append(
        &mut self,
        chunk: &Chunk,
        morsel: u64,
        own: &mut Chunk,
        spares: &mut Vec<Arc<Buffer>>,
    ) -> Result<()> {
        project(chunk, self.columns.iter().copied(), own);
        let (mut are_wanted, mut first) = (true, 0);
        if let Some(numbers) = &mut self.numbers {
            let group = own.push_group(Selection::ALL);
            let (column, all) = numbers.of(chunk);
            own.push_column(column, group);
            (are_wanted, first) = (all, i128::from(numbers.first));
        }
        let required = 0..self.required;
        if !are_wanted || required.clone().any(|column| own.vector(column).validity().is_some()) {
            let last = own.columns().len() - 1;
            let has_null = |row: u16| required.clone().any(|column| datum(own, column, row.into()).is_null());
            let is_wanted = |row: u16| {
                are_wanted
                    || matches!(datum(own, last, row.into()), Datum::Integer(number) if number >= first)
            };
            let picks: Vec<u16> =
                (0..own.len() as u16).filter(|&row| !has_null(row) && is_wanted(row)).collect();
            own.select(&picks, spares);
        }
        let result = self.appender.append(own, morsel);
        own.reset(0);
        result
    }
}

/// Copies some columns of a chunk to another.
fn project(chunk: &Chunk, columns: impl Iterator<Item = usize>, to: &mut Chunk) {
    to.reset(chunk.len());
    for selection in chunk.groups() {
        to.push_group(selection.clone());
    }
    for column in columns.map(|column| chunk.column(column)) {
        to.push_column(column.vector.clone(), column.group);
    }
}

impl ResultSink for TableSink<'_> {
    fn worker(&self) -> Result<Box<dyn ResultWorker>> {
        Ok(Box::new(TableWorker {
            entry: self.entry.clone(),
            checks: self.checks.to_vec(),
            appender: matches!(self.rows, RowsOf::Table).then(|| self.entry.table.appender()),
            indexes: IndexAppender::of_keys(self.entry, self.rows, self.keys),
            spares: Vec::new(),
            chunk: Chunk::new(),
            morsel: 0,
            memory: Reservation::new(&self.session.shared.changes),
            collector: self.collector.map(|collector| collector.worker()).transpose()?,
            parts: self.filled.0.clone(),
        }))
    }
}

struct TableWorker {
    entry: Arc<TableEntry>,
    checks: Vec<String>,
    /// `None` if only indexes are filled.
    appender: Option<Appender>,
    indexes: Vec<Option<IndexAppender>>,
    spares: Vec<Arc<Buffer>>,
    chunk: Chunk,
    morsel: u64,
    memory: Reservation,
    collector: Option<Box<dyn ResultWorker>>,
    parts: Arc<Mutex<Parts>>,
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
            row::judge_checks(&self.entry, &self.checks, own, own, std::slice::from_ref(chunk))?;
        }
        let mut bytes = 0;
        if let Some(appender) = &mut self.appender {
            project(chunk, 0..own, &mut self.chunk);
            appender.append(&self.chunk, self.morsel)?;
            bytes += appender.bytes();
        }
        for index in self.indexes.iter_mut().flatten() {
            index.append(chunk, self.morsel, &mut self.chunk, &mut self.spares)?;
            bytes += index.appender.bytes();
        }
        self.memory.resize(bytes)?;
        if let Some(collector) = &mut self.collector {
            project(chunk, returned..chunk.columns().len(), &mut self.chunk);
            collector.push(&self.chunk)?;
        }
        self.chunk.reset(0);
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        if let Some(collector) = &mut self.collector {
            collector.finish()?;
        }
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        parts.rows.table.extend(self.appender.take().map(Appender::finish));
        parts.rows.indexes.resize_with(self.entry.indexes.len(), Vec::new);
        for (rows, index) in parts.rows.indexes.iter_mut().zip(self.indexes.drain(..)) {
            rows.extend(index.map(|index| index.appender.finish()));
        }
        parts.memory.push(std::mem::take(&mut self.memory));
        Ok(())
    }
}
