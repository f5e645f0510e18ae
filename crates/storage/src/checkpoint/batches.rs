//! Batches: commits of a log that are done once more together, where nobody else knows the tables.
//!
//! ```text
//! commits    1: a b   2: a   3: b c   4: name of d   5: d        records about the tables a, b, c and d
//! done       a: 1 2    b: 1 3    c: 3    ──▶    4    ──▶    d: 5
//! ```
//! Commits are gathered until their records have some megabytes. Then each table gets those about its rows,
//! in their order ([`Table::redo_batch`]): what a commit does to one table does not depend on what it does to
//! another, so threads share out the tables. What sequences give out depends on no row.
//!
//! A commit that changes names, or refers to rows in the data file, ends a batch and is done by itself
//! ([`Replay::commit`]), as it makes the tables that later records are about. In the slow twin every commit
//! is done by itself.
//!
//! If a record does not apply, other tables may be ahead of it. Nobody sees them: there is no database then.

use super::replay::{Replay, at, redo};
use crate::parallel::{Look, share};
use crate::record::{Record, Records, damaged, kind};
use crate::table::Table;
use crate::wal::{Commit, LogReader};
use entasis_vector::{Error, Result, statement};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes of the records of a batch, about.
const BATCH: usize = 16 << 20;

/// How much is done together, and by how many threads.
#[derive(Debug, Clone, Copy)]
pub(super) struct Batching {
    pub(super) threads: usize,
    /// Bytes of records; each commit is done by itself if there are none.
    pub(super) bytes: usize,
}

impl Batching {
    /// As much as is good, by so many threads.
    pub(super) fn by(threads: usize) -> Batching {
        Batching { threads, bytes: BATCH }
    }

    /// Commit by commit, by one thread.
    #[cfg(test)]
    pub(super) fn alone() -> Batching {
        Batching { threads: 1, bytes: 0 }
    }
}

/// The records about the rows of a table, each with the number of its commit.
type OfTable<'c> = (Arc<Table>, Vec<(usize, Record<'c>)>);

/// See the module.
pub(super) struct Batches<'a> {
    /// The state behind all commits that are not gathered.
    pub(super) replay: Replay<'a>,
    batching: Batching,
    /// The commits that are gathered.
    commits: Vec<Commit>,
    /// Bytes of their records.
    bytes: usize,
}

impl<'a> Batches<'a> {
    /// Begins with a state whose tables nobody else knows.
    pub(super) fn new(replay: Replay<'a>, batching: Batching) -> Batches<'a> {
        Batches { replay, batching, commits: Vec::new(), bytes: 0 }
    }

    /// Takes the commit that comes next in a log. It is done now or later.
    ///
    /// # Errors
    /// I/O; corruption, with the place: of this commit, or of one before it.
    pub(super) fn take(&mut self, commit: Commit, log: &LogReader) -> Result<()> {
        if self.batching.bytes == 0 || !may_be_gathered(&commit.records) {
            self.write(log)?;
            let done = self.replay.commit(&commit.records, &mut redo);
            return done.map_err(|error| at(log, &commit, &error));
        }
        self.bytes += commit.records.len();
        self.commits.push(commit);
        if self.bytes < self.batching.bytes { Ok(()) } else { self.write(log) }
    }

    /// Does what is gathered.
    ///
    /// # Errors
    /// Corruption, with the place.
    pub(super) fn write(&mut self, log: &LogReader) -> Result<()> {
        self.bytes = 0;
        let commits = std::mem::take(&mut self.commits);
        let failed = |(number, error): (usize, Error)| at(log, &commits[number], &error);
        let tables = self.by_table(&commits).map_err(failed)?;
        let work = |(): &mut (), task: usize, _: Look<'_>| {
            let (table, records) = &tables[task];
            Ok(table.redo_batch(records))
        };
        let done = share((self.batching.threads, &statement::check), tables.len(), || (), work)?;
        // Whichever thread was first, the error is that of the earliest commit.
        let first = done.into_iter().filter_map(|done| done.err()).min_by_key(|(number, _)| *number);
        first.map_or(Ok(()), |first| Err(failed(first)))
    }

    /// Sorts the records about rows of some commits by their tables, those with most to do first. The error
    /// has the number of a commit.
    fn by_table<'c>(&mut self, commits: &'c [Commit]) -> Result<Vec<OfTable<'c>>, (usize, Error)> {
        let mut by_id: BTreeMap<u64, Vec<(usize, Record<'c>)>> = BTreeMap::new();
        for (number, commit) in commits.iter().enumerate() {
            let sort = |record: Result<Record<'c>>| {
                let mut record = record?;
                if record.kind() == kind::SEQUENCE {
                    return self.replay.sequence(record);
                }
                let id = record.table()?;
                by_id.entry(id).or_default().push((number, record));
                Ok(())
            };
            Records::new(&commit.records).try_for_each(sort).map_err(|error| (number, error))?;
        }
        let known = &self.replay.known.tables;
        let with_table = |(id, records): (u64, Vec<(usize, Record<'c>)>)| match known.get(&id) {
            Some(table) => Ok((table.clone(), records)),
            None => Err((records[0].0, damaged("its table is not there"))),
        };
        let mut tables: Vec<OfTable<'c>> = by_id.into_iter().map(with_table).collect::<Result<_, _>>()?;
        tables.sort_by_key(|(_, records)| Reverse(records.len()));
        Ok(tables)
    }
}

/// True if a commit neither changes names nor refers to rows in the data file. A record that is none is found
/// by whoever does it.
fn may_be_gathered(records: &[u8]) -> bool {
    Records::new(records).all(|record| {
        record.is_ok_and(|record| match record.kind() {
            kind::SEQUENCE => true,
            kind::LOAD => false,
            _ => record.is_of_rows(),
        })
    })
}
