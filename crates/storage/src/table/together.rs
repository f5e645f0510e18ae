//! Writers of the heads of several tables, such as a table and its indexes: single rows of all of them change
//! at one moment, in place.
//!
//! 1. The write locks of all tables are taken, in the order of their ids, and then their heads are locked in
//!    the same order ([`crate::sync::lock_order`]). So nobody sees a part of the change, and nobody can take
//!    a snapshot meanwhile.
//! 2. The commit appends the redo records of all tables to the log as one commit, and then releases the
//!    locks.
//!
//! Nothing is undone: the caller looks before it writes.

use super::head::Table;
use super::logged::{Framed, Recorded};
use super::write_lock::{Waiter, WriteGuard};
use super::writer::TableWriter;
use entasis_vector::Result;
use std::sync::Arc;

/// Writers of the heads of several tables.
pub struct HeadWriters<'a> {
    writers: Vec<(&'a Arc<Table>, TableWriter<'a>)>,
}

impl<'a> HeadWriters<'a> {
    /// Waits for the write locks of tables, which may be in any order.
    ///
    /// # Errors
    /// Interrupted; conflict, if the time is up; I/O, if a table is logged and the log refuses everything.
    pub fn of_tables(
        tables: impl Iterator<Item = &'a Arc<Table>>,
        waiter: &Waiter<'_>,
    ) -> Result<HeadWriters<'a>> {
        let mut tables: Vec<&'a Arc<Table>> = tables.collect();
        tables.sort_by_key(|table| table.id());
        tables.dedup_by_key(|table| table.id());
        let write_locks = tables.iter().map(|&table| table.write_lock(waiter)).collect::<Result<Vec<_>>>()?;
        let of_head = |(table, write_lock): (&'a Arc<Table>, WriteGuard<'a>)| {
            (table, TableWriter::of_head(table, Some(write_lock), table.head()))
        };
        Ok(HeadWriters { writers: tables.into_iter().zip(write_locks).map(of_head).collect() })
    }

    /// The writer of one of the tables.
    ///
    /// # Panics
    /// If it is none of them.
    pub fn of(&mut self, table: &Arc<Table>) -> &mut TableWriter<'a> {
        let mut writers = self.writers.iter_mut();
        let found = writers.find(|(own, _)| Arc::ptr_eq(own, table));
        &mut found.expect("it is one of the tables").1
    }

    /// Ends. If the tables are logged, returns when the changes are as durable as the log's settings ask for.
    ///
    /// # Errors
    /// As of [`TableWriter::commit`].
    pub fn commit(mut self) -> Result<()> {
        let (mut records, mut log) = (Recorded::default(), None);
        for (table, writer) in &mut self.writers {
            writer.tidy_up();
            if let Some(own) = writer.take_records() {
                records.extend(&own);
            }
            log = log.or_else(|| table.logged().map(|logged| logged.log.clone()));
        }
        let framed = log.map_or(Ok(None), |log| Framed::of(&records, &log))?;
        let appended = framed.map(|framed| framed.append()).transpose()?;
        drop(self);
        appended.map_or(Ok(()), |appended| appended.wait())
    }
}
