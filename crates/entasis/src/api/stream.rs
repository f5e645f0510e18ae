//! Results that are read while the statement runs.
//!
//! | statement | what a stream of it does |
//! |---|---|
//! | a query with a plan | runs on a thread of its own, at full speed, while its rows are read |
//! | any other, such as a change with RETURNING | runs first; then its rows, which are in memory, are read |
//!
//! Up to `result_buffer` bytes of a query's rows wait for the reader in memory, the others in a temporary
//! file ([`entasis_engine::exec::stream`]).
//!
//! A query is bound before the stream is returned, and reads the tables as they are then; within a
//! transaction, as the transaction sees them. It holds no locks, and its snapshot only until it has run, not
//! until its rows have been read. The next statement of the connection waits until it has run.
//!
//! A stream that is dropped cancels its query, and so does the connection's flag.

use crate::connection::error_places::placed_in;
use crate::connection::planned::{Bound, bound_for};
use crate::connection::running::{Ending, HasRun};
use crate::connection::{Connection, guarded};
use crate::prepared::{self, Prepared};
use crate::session::Session;
use crate::session::sequence_numbers::Numbers;
use crate::state::{Shared, User};
use crate::transaction::TransactionContext;
use crate::transaction::target_database::{self, TargetDatabase};
use crate::values::rows::Rows;
use arrow_array::RecordBatch;
use entasis_engine::common_subplans;
use entasis_engine::exec::stream::stream;
use entasis_engine::exec::{self, CancelFlag, QueryContext, Reservation, StreamReader, StreamSink};
use entasis_engine::plan::Plan;
use entasis_sql::Statement;
use entasis_vector::error::sqlstate;
use entasis_vector::statement::within;
use entasis_vector::{Chunk, DataType, Error, ErrorKind, Result, Schema, Value};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// The rows of a statement, which are read while it runs. An iterator over its chunks, which ends with the
/// first error.
pub struct Stream {
    schema: Arc<Schema>,
    changed: Option<u64>,
    source: Source,
}

/// Where rows come from.
enum Source {
    /// A statement that has run, and the number of the next chunk.
    Rows(Rows, usize),
    /// A query that runs.
    Running(Running),
}

/// A query that runs on a thread of its own.
struct Running {
    /// Absent only during the drop.
    reader: Option<StreamReader>,
    thread: Option<JoinHandle<()>>,
    cancel: CancelFlag,
    numbers: Arc<Numbers>,
    shared: Arc<Shared>,
    /// Of the parameters.
    _memory: Option<Reservation>,
    /// Keeps the database open.
    _user: User,
}

impl Connection {
    /// As [`Connection::query`], but the rows of a query are read while it runs. For several statements, all
    /// run first, and the rows of the last are read.
    ///
    /// # Errors
    /// Those of binding the query, or of running another statement; those of running the query come from the
    /// stream.
    pub fn stream(&self, sql: &str, parameters: &[(Value, DataType)]) -> Result<Stream> {
        self.refuse_elsewhere()?;
        let values = || parameters.iter().map(|(value, _)| value);
        let memory = prepared::reserve(|| self.session.context().memory, values())?;
        if let Ok(prepared) = self.session.prepare(sql).map_err(|error| self.hinted(error, sql))?
            && !prepared.is_keyed()
            && prepared.parsed.is_query()
        {
            entasis_sql::check_arguments(prepared.parsed.parameters(), parameters.len())?;
            let started = self.started(&prepared, parameters, memory);
            let started = started.map_err(|error| self.explained(error, &prepared.parsed, parameters));
            if let Some(running) = started? {
                return Ok(running);
            }
        }
        Ok(Stream::of(self.query(sql, parameters)?))
    }

    /// Starts a query, with the memory of its parameters. `None` if the statement is no query with a plan.
    fn started(
        &self,
        prepared: &Arc<Prepared>,
        parameters: &[(Value, DataType)],
        memory: Option<Reservation>,
    ) -> Result<Option<Stream>> {
        self.session.cancel.clear();
        let parsed = &prepared.parsed;
        let bound = self.settled(parsed, &|| {
            let mut open = self.open_transaction();
            let (session, statement) = match &mut *open {
                Some(transaction) => {
                    let session = self.enter(transaction, parsed)?;
                    let statement = bound_within(&session, transaction, prepared, parameters)?;
                    (session, statement)
                }
                None => {
                    self.session.refresh()?;
                    let TargetDatabase { session, .. } = target_database::of(&self.session, parsed, None)?;
                    let transaction = &mut TransactionContext::of_reading(&session);
                    let statement = bound_within(&session, transaction, prepared, parameters)?;
                    (session, statement)
                }
            };
            let Statement::Query(plan) = statement else { return Ok(None) };
            let schema = plan.schema();
            let mut context = session.context();
            context.cancel = self.session.cancel.within();
            let plan =
                within(Arc::new(context.clone()), || common_subplans::optimize(plan, &context.settings))?;
            // Before another statement can begin.
            let has_run = Arc::<HasRun>::default();
            self.streaming.begins(has_run.clone());
            Ok(Some((session, schema, context, plan, Ending::of(has_run))))
        })?;
        let Some((session, schema, context, plan, ending)) = bound else { return Ok(None) };
        let (sink, reader) = stream(&context, schema.iter().map(|field| field.ty).collect());
        let cancel = context.cancel.clone();
        let (numbers, shared, is_deep) = (session.numbers.clone(), session.shared.clone(), parsed.is_deep());
        let of = prepared.clone();
        let body = move || {
            let outcome = run(&session, &plan, &context, &sink, is_deep);
            sink.end(
                outcome.map_err(|error| placed_in(error, &of.parsed, || Statement::Query(plan.clone()))),
            );
            // The snapshots go before the connection goes on.
            drop((plan, ending));
        };
        let thread = thread::Builder::new().name("entasis-stream".to_owned()).spawn(body);
        let thread = thread.map_err(|error| Error::io("starting a thread", &error))?;
        let running = Running {
            reader: Some(reader),
            thread: Some(thread),
            cancel,
            numbers,
            _memory: memory,
            _user: User::new(&self.session.own().shared),
            shared,
        };
        let schema = Arc::new(schema);
        Ok(Some(Stream { schema, changed: None, source: Source::Running(running) }))
    }
}

/// Binds a query in `transaction`, with the interrupts and the memory of its statement.
fn bound_within(
    session: &Session,
    transaction: &mut TransactionContext,
    prepared: &Prepared,
    parameters: &[(Value, DataType)],
) -> Result<Statement> {
    let context = Arc::new(session.context());
    within(context, || bound_for(session, transaction, prepared, parameters).map(Bound::statement))
}

/// Runs an optimized plan.
fn run(
    session: &Session,
    plan: &Plan,
    context: &QueryContext,
    sink: &StreamSink,
    is_deep: bool,
) -> Result<()> {
    let execute = || {
        let body = || exec::execute(plan, context, sink).map(drop);
        within(Arc::new(context.clone()), || guarded(body))
    };
    let mut outcome = entasis_sql::on_deep_stack(is_deep, execute);
    if outcome.as_ref().is_err_and(|error| error.sqlstate() == sqlstate::NEEDS_STACK) {
        outcome = entasis_sql::on_deep_stack(true, execute);
    }
    if outcome.as_ref().is_err_and(|error| error.kind() == ErrorKind::Resource) {
        session.shared.config.when_short.iter().for_each(|when_short| when_short());
    }
    outcome
}

impl Stream {
    /// The rows of a statement that has run.
    pub(crate) fn of(rows: Rows) -> Stream {
        let (schema, changed) = (Arc::new(rows.schema().clone()), rows.changed());
        Stream { schema, changed, source: Source::Rows(rows, 0) }
    }

    /// Names and types of the columns; empty for statements without a result.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Names and types of the columns, shared.
    pub(crate) fn shared_schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Number of rows inserted, changed or copied, for statements that do this.
    pub fn changed(&self) -> Option<u64> {
        self.changed
    }

    /// The next rows, at least one, as a dense chunk of flat vectors; waits until there are some. `None` at
    /// the end, and after an error.
    ///
    /// # Errors
    /// Those of the query, after the rows that come before them.
    pub fn next_chunk(&mut self) -> Result<Option<Chunk>> {
        match &mut self.source {
            Source::Rows(rows, next) => {
                let chunk = rows.chunks().get(*next).cloned();
                *next += 1;
                Ok(chunk)
            }
            Source::Running(running) => {
                let Some(reader) = &mut running.reader else { return Ok(None) };
                let chunk = reader.next_chunk()?;
                // Numbers from sequences are durable before somebody sees them.
                running.numbers.keep()?;
                Ok(chunk)
            }
        }
    }

    /// The columns as an Arrow schema.
    pub fn arrow_schema(&self) -> arrow_schema::SchemaRef {
        Arc::new(entasis_arrow::schema_to_arrow(&self.schema))
    }

    /// The rows of the next chunk as an Arrow batch.
    ///
    /// # Errors
    /// Those of [`Stream::next_chunk`]; input, if a value cannot be represented in Arrow.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let Some(chunk) = self.next_chunk()? else { return Ok(None) };
        let types: Vec<DataType> = self.schema.iter().map(|field| field.ty).collect();
        entasis_arrow::chunk_to_batch(&chunk, &self.arrow_schema(), &types).map(Some)
    }

    /// True if the query has run, whether its rows have been read or not.
    pub fn has_run(&self) -> bool {
        match &self.source {
            Source::Rows(..) => true,
            Source::Running(running) => running.reader.as_ref().is_none_or(StreamReader::has_ended),
        }
    }
}

impl Iterator for Stream {
    type Item = Result<Chunk>;

    fn next(&mut self) -> Option<Result<Chunk>> {
        self.next_chunk().transpose()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.shared.is_here() {
            // The thread does not exist in this forked process.
            std::mem::forget((self.reader.take(), self.thread.take()));
            return;
        }
        self.reader = None;
        self.cancel.raise();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Stream(of {} columns)", self.schema.len())
    }
}
