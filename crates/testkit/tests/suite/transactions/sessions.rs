//! Named sessions on one database that take turns: a list of steps, each with its expected outcome.

use entasis::{Config, Connection, Database, ErrorKind, Rows};
use std::fmt;

/// The expected outcome of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    /// Anything but an error.
    Done,
    /// This number of changed rows.
    Count(u64),
    /// These rows, with blanks between columns and commas between rows.
    Rows(&'static str),
    /// An error of this kind.
    Fails(ErrorKind),
    /// An error caused by the statement or its data: neither a conflict nor a bug.
    Refused,
}

/// The outcome of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Rows, as [`Expected::Rows`] writes them.
    Rows(String),
    /// The number of changed rows.
    Count(u64),
    /// Nothing to show.
    Done,
    /// The kind of the error and the first line of its message.
    Error(ErrorKind, String),
}

impl Outcome {
    /// The outcome of a statement.
    pub(super) fn of(result: entasis::Result<Rows>) -> Outcome {
        match result {
            Err(error) => {
                Outcome::Error(error.kind(), error.message().lines().next().unwrap_or_default().to_string())
            }
            Ok(rows) if !rows.schema().is_empty() => Outcome::Rows(show(&rows)),
            Ok(rows) => rows.changed().map_or(Outcome::Done, Outcome::Count),
        }
    }

    /// The kind of the error, if it is one.
    pub(super) fn error(&self) -> Option<ErrorKind> {
        match self {
            Outcome::Error(kind, _) => Some(*kind),
            _ => None,
        }
    }

    /// True for an error caused by the statement or its data.
    pub(super) fn is_refused(&self) -> bool {
        matches!(self.error(), Some(ErrorKind::Input | ErrorKind::Constraint | ErrorKind::NotSupported))
    }

    fn is(&self, expected: Expected) -> bool {
        match (expected, self) {
            (Expected::Done, outcome) => outcome.error().is_none(),
            (Expected::Count(expected), Outcome::Count(count)) => expected == *count,
            (Expected::Rows(expected), Outcome::Rows(rows)) => expected == rows,
            (Expected::Fails(expected), Outcome::Error(kind, _)) => expected == *kind,
            (Expected::Refused, outcome) => outcome.is_refused(),
            _ => false,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Rows(rows) => write!(f, "rows {rows:?}"),
            Outcome::Count(count) => write!(f, "{count} rows changed"),
            Outcome::Done => write!(f, "done"),
            Outcome::Error(kind, message) => write!(f, "{kind:?}: {message}"),
        }
    }
}

/// Rows with blanks between columns and commas between rows.
pub(super) fn show(rows: &Rows) -> String {
    let cells = |row: Vec<entasis::Value>| {
        let cells = row.iter().zip(rows.schema()).map(|(value, field)| value.display(field.ty).to_string());
        cells.collect::<Vec<_>>().join(" ")
    };
    rows.row_values().map(cells).collect::<Vec<_>>().join(", ")
}

/// A database in memory with one thread per statement.
pub(super) fn database() -> Database {
    Database::in_memory(Config::new().with_threads(1)).expect("a database in memory")
}

/// Runs statements that must succeed.
pub(super) fn run(connection: &Connection, statements: &[&str]) {
    for sql in statements {
        connection.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }
}

/// The rows of a query that must succeed, as [`show`] writes them.
pub(super) fn query(connection: &Connection, sql: &str) -> String {
    show(&connection.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}")))
}

/// Sessions by name, and a transcript of what they did.
pub(super) struct Sessions {
    database: Database,
    connections: Vec<(String, Connection)>,
    transcript: String,
}

impl Sessions {
    /// No sessions, on a database without tables.
    pub(super) fn new() -> Sessions {
        Sessions { database: database(), connections: Vec::new(), transcript: String::new() }
    }

    /// Runs a statement in a session, which is opened by its first one.
    pub(super) fn step(&mut self, session: &str, sql: &str) -> Outcome {
        if !self.connections.iter().any(|(name, _)| name == session) {
            self.connections.push((session.to_string(), self.database.connect()));
        }
        let (_, connection) =
            self.connections.iter().find(|(name, _)| name == session).expect("it is there now");
        let outcome = Outcome::of(connection.execute(sql));
        self.transcript.push_str(&format!("  {session:3}{sql}\n      {outcome}\n"));
        outcome
    }

    /// Runs steps, each of which must have the expected outcome.
    pub(super) fn check(&mut self, steps: &[(&str, &str, Expected)]) {
        for &(session, sql, expected) in steps {
            let outcome = self.step(session, sql);
            assert!(outcome.is(expected), "{expected:?} was expected at the end of\n{}", self.transcript);
        }
    }

    /// The rows of a query that must succeed, as [`Expected::Rows`] writes them.
    pub(super) fn rows(&mut self, session: &str, sql: &str) -> String {
        match self.step(session, sql) {
            Outcome::Rows(rows) => rows,
            _ => panic!("rows were expected at the end of\n{}", self.transcript),
        }
    }

    /// All statements with their outcomes, for the messages of other assertions.
    pub(super) fn transcript(&self) -> &str {
        &self.transcript
    }
}
