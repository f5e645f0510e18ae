//! Loading Arrow batches into a table, all or nothing.
//!
//! A [`TableLoad`] gathers batches into row groups of its own; the table sees none of them until
//! [`TableLoad::commit`], and all of them after.

use crate::connection::Connection;
use crate::session::Session;
use arrow_array::RecordBatch;
use entasis_engine::exec::Reservation;
use entasis_storage::{Appender, Entry, IfExists, Table, TableEntry, Transaction, Waiter};
use entasis_vector::{CHUNK_ROWS, Chunk, Result, Selection, Vector};
use std::marker::PhantomData;
use std::sync::Arc;

/// A load in progress. Dropped without a commit, it leaves nothing behind.
pub struct TableLoad<'a> {
    connection: PhantomData<&'a Connection>,
    /// The session, whose target database is the current database at the time the load began.
    session: Session,
    table: Arc<Table>,
    /// True if this load creates the table, which is not in the catalog yet.
    create: bool,
    appender: Appender,
    memory: Reservation,
    vectors: Vec<Vector>,
    chunk: Chunk,
    rows: u64,
}

impl<'a> TableLoad<'a> {
    /// Begins a load into a new table `name` with the columns of `schema`. The table enters the catalog at
    /// the commit.
    ///
    /// # Errors
    /// Not supported, for a type that Entasis does not have.
    pub fn create(
        connection: &'a Connection,
        name: &str,
        schema: &arrow_schema::Schema,
    ) -> Result<TableLoad<'a>> {
        let table = Table::new(name, entasis_arrow::schema_from_arrow(schema)?);
        Ok(TableLoad::new(connection, table, true))
    }

    fn new(connection: &'a Connection, table: Arc<Table>, create: bool) -> TableLoad<'a> {
        let vectors = table.schema().iter().map(|field| Vector::new(field.ty.physical())).collect();
        let session = connection.session.here();
        let memory = Reservation::new(&session.shared.changes);
        let appender = table.appender();
        TableLoad {
            connection: PhantomData,
            session,
            table,
            create,
            appender,
            memory,
            vectors,
            chunk: Chunk::new(),
            rows: 0,
        }
    }

    /// Appends the rows of a batch, whose columns must be the table's.
    ///
    /// # Errors
    /// Input, if a value does not fit the column's type; constraint, for a NULL in a NOT NULL column;
    /// resource, if memory runs out.
    pub fn append(&mut self, batch: &RecordBatch) -> Result<()> {
        for start in (0..batch.num_rows()).step_by(CHUNK_ROWS) {
            let rows = (batch.num_rows() - start).min(CHUNK_ROWS);
            self.chunk.reset(rows);
            let group = self.chunk.push_group(Selection::ALL);
            for (index, (vector, field)) in self.vectors.iter_mut().zip(self.table.schema()).enumerate() {
                entasis_arrow::array_to_vector(batch.column(index).as_ref(), start, rows, field.ty, vector)
                    .map_err(|error| error.with_context(format!("column '{}'", field.name)))?;
                self.chunk.push_column(vector.clone(), group);
            }
            self.appender.append(&self.chunk, 0)?;
            self.rows += rows as u64;
        }
        self.memory.resize(self.appender.bytes())
    }

    /// Makes the rows visible and returns their number.
    ///
    /// # Errors
    /// Input, if a table to be created exists by now; I/O, if the rows cannot be written to the file.
    pub fn commit(self) -> Result<u64> {
        let TableLoad { session, table, create, appender, memory, rows, .. } = self;
        let shared = &session.shared;
        shared.can_commit()?;
        table.commit(vec![appender.finish()])?;
        if create {
            let base = session.newest_names();
            let mut names = base.clone();
            names.add(Entry::Table(Arc::new(TableEntry::plain(table))), IfExists::Fail)?;
            let nothing = Transaction::default();
            shared.publish(nothing, (&base, &names), &[], &Waiter::default(), |_| Ok(()))?;
        }
        drop(memory);
        shared.charge_tables()?;
        shared.committed();
        Ok(rows)
    }
}
