//! A session: runs statements on a connection of its own and records what it did and saw.

use super::anomaly::{Anomaly, Violation};
use super::common::Common;
use super::history::{Effect, Fingerprint, Predicate, Row, Span, Statement, Step, TableId, Transaction};
use super::tables::{self, TABLES};
use crate::random::Random;
use entasis::{Connection, DataType, ErrorKind, Rows, Value};
use std::collections::HashMap;
use std::ops::Range;

/// Why a transaction ends early.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Another transaction was first.
    Conflict,
    /// The database is wrong.
    Violation(Violation),
}

/// A statement to run.
#[derive(Debug, Default)]
pub(crate) struct Request {
    pub(crate) sql: String,
    pub(crate) parameters: Vec<(Value, DataType)>,
    /// The numbers that it may write.
    pub(crate) numbers: Range<u64>,
    /// True if a constraint may refuse it.
    pub(crate) may_be_refused: bool,
}

impl Request {
    /// A statement that writes nothing.
    pub(crate) fn new(sql: impl Into<String>) -> Request {
        Request { sql: sql.into(), ..Request::default() }
    }
}

/// The counts of a session.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) committed: u64,
    pub(crate) rolled_back: u64,
    pub(crate) conflicts: u64,
    pub(crate) refused: u64,
    pub(crate) statements: u64,
    pub(crate) definitions: u64,
}

/// The objects that a session has defined.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Defined {
    /// The table with its index.
    pub(super) index: Option<TableId>,
    /// The table with its column.
    pub(super) column: Option<TableId>,
}

/// See the module.
pub(crate) struct Session<'a> {
    pub(crate) common: &'a Common,
    pub(crate) number: usize,
    pub(crate) connection: Connection,
    pub(crate) random: Random,
    /// The transaction that is open.
    pub(crate) open: Option<Transaction>,
    pub(crate) transactions: Vec<Transaction>,
    pub(crate) rows: HashMap<Fingerprint, Row>,
    /// For each table, keys of rows that existed a while ago.
    pub(crate) known: Vec<Vec<i64>>,
    pub(crate) counts: Counts,
    /// For each kind of definition, the table concerned.
    pub(crate) defined: Defined,
}

impl<'a> Session<'a> {
    pub(crate) fn new(common: &'a Common, number: usize, connection: Connection, seed: u64) -> Session<'a> {
        Session {
            common,
            number,
            connection,
            random: Random::new(seed.wrapping_mul(1009).wrapping_add(number as u64)),
            open: None,
            transactions: Vec::new(),
            rows: HashMap::new(),
            known: vec![Vec::new(); TABLES.len()],
            counts: Counts::default(),
            defined: Defined::default(),
        }
    }

    /// Runs a statement and records its effects, in the open transaction or as one by itself. False if it was
    /// refused, or, by itself, had a conflict.
    pub(crate) fn run(
        &mut self,
        request: Request,
        effects: impl FnOnce(&mut Self, &Rows) -> Result<Vec<Effect>, Violation>,
    ) -> Result<bool, Stop> {
        let (span, result) = self.call(&request);
        let Request { sql, parameters, numbers, may_be_refused } = request;
        let sql = with_values(&sql, &parameters);
        let kind = result.as_ref().err().map(entasis::Error::kind);
        let effects = match &result {
            Ok(rows) => effects(self, rows).map_err(|violation| {
                let account = format!("{}\nin session {}: {sql}", violation.account, self.number);
                Stop::Violation(Violation { account, ..violation })
            })?,
            Err(error) if error.kind() == ErrorKind::Conflict => Vec::new(),
            Err(error) if error.kind() == ErrorKind::Constraint && may_be_refused => Vec::new(),
            Err(error) => return Err(self.unexpected(error, &sql)),
        };
        let statement = Statement { sql, numbers, failed: kind.is_some(), effects };
        self.counts.refused += u64::from(kind == Some(ErrorKind::Constraint));
        match &mut self.open {
            Some(transaction) => {
                transaction.steps.push(Step::Statement(statement));
                if kind == Some(ErrorKind::Conflict) {
                    return Err(Stop::Conflict);
                }
            }
            None => {
                let transaction = Transaction {
                    session: self.number,
                    begin: span,
                    commit: span,
                    committed: kind.is_none(),
                    steps: vec![Step::Statement(statement)],
                };
                self.counts.committed += u64::from(kind.is_none());
                self.counts.conflicts += u64::from(kind == Some(ErrorKind::Conflict));
                self.transactions.push(transaction);
            }
        }
        Ok(kind.is_none())
    }

    /// Runs a statement outside the history. `None` if it had a conflict.
    pub(crate) fn aside(&mut self, sql: &str) -> Result<Option<(Span, Rows)>, Stop> {
        let request = Request::new(sql);
        match self.call(&request) {
            (span, Ok(rows)) => Ok(Some((span, rows))),
            (_, Err(error)) if error.kind() == ErrorKind::Conflict => {
                self.counts.conflicts += 1;
                if self.open.is_some() { Err(Stop::Conflict) } else { Ok(None) }
            }
            (_, Err(error)) => Err(self.unexpected(&error, sql)),
        }
    }

    /// Calls the database.
    pub(crate) fn call(&mut self, request: &Request) -> (Span, entasis::Result<Rows>) {
        self.counts.statements += 1;
        let _alone = self.common.alone();
        self.common.enter(self.number, &request.sql);
        let start = self.common.tick();
        let result = self.connection.query(&request.sql, &request.parameters);
        let end = self.common.tick();
        let span = Span { start, end };
        let outcome = result.as_ref().map_or_else(|error| error.kind().label(), |_| "done");
        self.common.leave(self.number, span, outcome);
        (span, result)
    }

    pub(crate) fn unexpected(&self, error: &entasis::Error, sql: &str) -> Stop {
        let account = format!("{error:?}\nin session {}: {sql}", self.number);
        Stop::Violation(Violation::new(Anomaly::UnexpectedError, account))
    }

    /// Records a version.
    pub(crate) fn note(&mut self, table: TableId, row: Row) -> Fingerprint {
        let fingerprint = row.fingerprint(table);
        self.rows.entry(fingerprint).or_insert(row);
        fingerprint
    }

    /// The rows of a result, from the column `first` on.
    pub(crate) fn rows_of(&self, rows: &Rows, first: usize) -> Result<Vec<Row>, Violation> {
        let read = |values: Vec<Value>| tables::read(&values[first..]).map(|read| read.row);
        rows.row_values()
            .map(read)
            .collect::<Result<_, _>>()
            .map_err(|text| Violation::new(Anomaly::TornRow, text))
    }

    /// What a read of one table returned: a result with the columns [`tables::COLUMNS`].
    pub(crate) fn saw(
        &mut self,
        table: TableId,
        predicate: Predicate,
        rows: &Rows,
    ) -> Result<Vec<Effect>, Violation> {
        let values: Vec<Vec<Value>> = rows.row_values().collect();
        self.saw_values(table, predicate, values.iter().map(Vec::as_slice))
    }

    /// What a read of one table returned.
    pub(crate) fn saw_values<'v>(
        &mut self,
        table: TableId,
        predicate: Predicate,
        rows: impl Iterator<Item = &'v [Value]>,
    ) -> Result<Vec<Effect>, Violation> {
        let (mut effects, mut shown) = (Vec::new(), Vec::new());
        for values in rows {
            let tables::Read { row, stamp } =
                tables::read(values).map_err(|text| Violation::new(Anomaly::TornRow, text))?;
            if let Some(stamp) = stamp {
                effects.push(Effect::Stamped { table, key: row.key, stamp });
            }
            shown.push(self.note(table, row));
        }
        effects.push(Effect::Read { table, predicate, shown });
        Ok(effects)
    }

    /// A table, more often one of those that are busy in this window.
    pub(crate) fn some_table(&mut self) -> TableId {
        match self.random.chance(60) {
            true => *self.random.pick(&self.common.hot()),
            false => self.random.below(TABLES.len()),
        }
    }

    /// The key of a row that a table may contain.
    pub(crate) fn some_key(&mut self, table: TableId) -> i64 {
        if !TABLES[table].has_fresh_keys && self.random.chance(25) {
            return self.common.hot_number() % tables::KEYS;
        }
        let known = &self.known[table];
        if !TABLES[table].has_fresh_keys && (known.is_empty() || self.random.chance(50)) {
            return self.random.between(0, tables::KEYS - 1);
        }
        // Other sessions may know the most recent rows as well.
        let newest = known.len().saturating_sub(if self.random.chance(50) { 5 } else { known.len() });
        if known.is_empty() { -1 } else { *self.random.pick(&known[newest..]) }
    }
}

/// A statement with its parameters, for reports.
fn with_values(sql: &str, parameters: &[(Value, DataType)]) -> String {
    match parameters {
        [] => sql.to_owned(),
        _ => format!(
            "{sql} -- {}",
            parameters.iter().map(|(value, _)| format!("{value:?}")).collect::<Vec<_>>().join(", ")
        ),
    }
}
