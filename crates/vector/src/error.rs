//! Errors that say who is at fault and what can be done about it.
//!
//! One opaque type for the whole workspace: a kind to decide on, a message to read, and, where the error
//! points into the text of a statement, the place.

use std::fmt;

/// The result of everything that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Who is at fault, and so what can be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The statement or its data are wrong: unknown names, type errors, overflow, malformed files. Change the
    /// input.
    Input,
    /// The feature is known but not supported yet. The message names it.
    NotSupported,
    /// A constraint of a table refuses the change.
    Constraint,
    /// Another transaction was first. Retry.
    Conflict,
    /// A limit was reached: memory, nesting. Raise it or request less.
    Resource,
    /// The statement was cancelled.
    Interrupted,
    /// The operating system refused: a missing or unreadable file, a full disk.
    Io,
    /// Stored bytes are not what was written.
    Corruption,
    /// A defect of Entasis. The statement failed, the database continues.
    Internal,
}

impl ErrorKind {
    /// The word that introduces an error of this kind in messages.
    pub fn label(self) -> &'static str {
        match self {
            ErrorKind::Input => "Error",
            ErrorKind::NotSupported => "Not supported yet",
            ErrorKind::Constraint => "Constraint violated",
            ErrorKind::Conflict => "Conflict",
            ErrorKind::Resource => "Out of resources",
            ErrorKind::Interrupted => "Interrupted",
            ErrorKind::Io => "I/O error",
            ErrorKind::Corruption => "Corruption",
            ErrorKind::Internal => "Internal error",
        }
    }

    /// The name of this kind for programs.
    pub fn name(self) -> &'static str {
        match self {
            ErrorKind::Input => "input",
            ErrorKind::NotSupported => "not_supported",
            ErrorKind::Constraint => "constraint",
            ErrorKind::Conflict => "conflict",
            ErrorKind::Resource => "resource",
            ErrorKind::Interrupted => "interrupted",
            ErrorKind::Io => "io",
            ErrorKind::Corruption => "corruption",
            ErrorKind::Internal => "internal",
        }
    }

    /// The SQLSTATE of PostgreSQL for errors of this kind that have no narrower one
    /// ([`Error::with_sqlstate`]).
    pub fn sqlstate(self) -> &'static str {
        match self {
            ErrorKind::Input => "42000",
            ErrorKind::NotSupported => "0A000",
            ErrorKind::Constraint => "23000",
            ErrorKind::Conflict => "40001",
            ErrorKind::Resource => "53000",
            ErrorKind::Interrupted => "57014",
            ErrorKind::Io => "58030",
            ErrorKind::Corruption => "XX001",
            ErrorKind::Internal => "XX000",
        }
    }
}

/// Conditions that have an SQLSTATE narrower than that of their kind.
pub mod sqlstate {
    /// A query that returns no row where one is expected.
    pub const NO_ROW: &str = "02000";
    /// Numbers and values of parameters do not match.
    pub const PARAMETERS: &str = "07001";
    /// A statement that changes one row twice.
    pub const CARDINALITY: &str = "21000";
    /// NULL where the program asks for a value.
    pub const UNEXPECTED_NULL: &str = "22002";
    /// A value is too large for its type.
    pub const OUT_OF_RANGE: &str = "22003";
    /// A division by zero.
    pub const DIVISION_BY_ZERO: &str = "22012";
    /// A text that is no value of a type.
    pub const INVALID_TEXT: &str = "22P02";
    /// A change that foreign keys would have to make twice.
    pub const TRIGGERED_CHANGE: &str = "27000";
    /// NULL in a column that must not have it.
    pub const NOT_NULL: &str = "23502";
    /// A row without its partner in another table, or the other way round.
    pub const FOREIGN_KEY: &str = "23503";
    /// A duplicate key.
    pub const UNIQUE: &str = "23505";
    /// A row for which a CHECK is false.
    pub const CHECK: &str = "23514";
    /// A change of something that is read-only.
    pub const READ_ONLY: &str = "25006";
    /// A value of one type where the program asks for another.
    pub const TYPE_MISMATCH: &str = "42804";
    /// A prepared statement that does not exist.
    pub const NOT_PREPARED: &str = "26000";
    /// Text that is no SQL.
    pub const SYNTAX: &str = "42601";
    /// A column that does not exist.
    pub const NO_COLUMN: &str = "42703";
    /// A function that does not exist.
    pub const NO_FUNCTION: &str = "42883";
    /// The name of a function that is taken.
    pub const FUNCTION_TAKEN: &str = "42723";
    /// A schema that does not exist.
    pub const NO_SCHEMA: &str = "3F000";
    /// A table that does not exist.
    pub const NO_TABLE: &str = "42P01";
    /// A parameter that would have to be of several types.
    pub const AMBIGUOUS_PARAMETER: &str = "42P08";
    /// A prepared statement's name that is taken.
    pub const PREPARED_TAKEN: &str = "42P05";
    /// A name that is taken.
    pub const TAKEN: &str = "42P07";
    /// A limit of nesting or length.
    pub const TOO_COMPLEX: &str = "54001";
    /// Not seen by users: the statement is run again on a thread with a larger stack.
    pub const NEEDS_STACK: &str = "ENT01";
}

/// A place in the text of a statement, both counted from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Line, from 1.
    pub line: usize,
    /// Character within the line, from 1.
    pub column: usize,
}

/// An error with its kind, its message and, if known, its place in the statement.
///
/// Boxed inside, so that `Result<u64>` in a kernel stays two words.
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    message: String,
    hint: Option<String>,
    position: Option<Position>,
    sqlstate: Option<&'static str>,
    table: Option<Box<str>>,
    column: Option<Box<str>>,
    constraint: Option<Box<str>>,
}

impl Error {
    /// An error of `kind` that reads `message`.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error(Box::new(Inner {
            kind,
            message: message.into(),
            hint: None,
            position: None,
            sqlstate: None,
            table: None,
            column: None,
            constraint: None,
        }))
    }
    /// The statement or its data are wrong.
    pub fn input(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Input, message)
    }
    /// `feature` is not supported yet.
    pub fn not_supported(feature: impl Into<String>) -> Error {
        Error::new(ErrorKind::NotSupported, feature)
    }
    /// A limit was reached.
    pub fn resource(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Resource, message)
    }
    /// The operating system refused to work on `what`.
    pub fn io(what: impl fmt::Display, error: &std::io::Error) -> Error {
        Error::new(ErrorKind::Io, format!("{what}: {error}"))
    }
    /// A defect of Entasis.
    pub fn internal(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Internal, message)
    }
    /// The statement was cancelled.
    pub fn interrupted() -> Error {
        Error::new(ErrorKind::Interrupted, "the statement was cancelled")
    }
    /// The same error with advice on what to do next.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Error {
        self.0.hint = Some(hint.into());
        self
    }
    /// The same error pointing at a place in the statement.
    pub fn with_position(mut self, position: Position) -> Error {
        self.0.position = Some(position);
        self
    }
    /// The same error with a narrower SQLSTATE than its kind's: one of [`sqlstate`].
    pub fn with_sqlstate(mut self, code: &'static str) -> Error {
        self.0.sqlstate = Some(code);
        self
    }
    /// The same error with the table that it is about.
    pub fn with_table(mut self, name: impl Into<Box<str>>) -> Error {
        self.0.table = Some(name.into());
        self
    }
    /// The same error with the column that it is about.
    pub fn with_column(mut self, name: impl Into<Box<str>>) -> Error {
        self.0.column = Some(name.into());
        self
    }
    /// The same error with the constraint that it is about.
    pub fn with_constraint(mut self, name: impl Into<Box<str>>) -> Error {
        self.0.constraint = Some(name.into());
        self
    }
    /// The same error with `context` in front of its message: where it happened.
    pub fn with_context(mut self, context: impl fmt::Display) -> Error {
        self.0.message = format!("{context}: {}", self.0.message);
        self
    }
    /// Who is at fault.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }
    /// What happened, without kind and hint.
    pub fn message(&self) -> &str {
        &self.0.message
    }
    /// What can be done about it, if that is known.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }
    /// Its SQLSTATE, as in PostgreSQL: that of its condition, if known, otherwise that of its kind.
    pub fn sqlstate(&self) -> &'static str {
        self.0.sqlstate.unwrap_or(self.0.kind.sqlstate())
    }
    /// The table that the error is about, if that is known: of a violated constraint, the table that
    /// declares it.
    pub fn table(&self) -> Option<&str> {
        self.0.table.as_deref()
    }
    /// The column that the error is about, if that is known and there is only one.
    pub fn column(&self) -> Option<&str> {
        self.0.column.as_deref()
    }
    /// The name of the violated constraint, if it has one: that of NOT NULL has none.
    pub fn constraint(&self) -> Option<&str> {
        self.0.constraint.as_deref()
    }
    /// Where in the statement, if that is known.
    pub fn position(&self) -> Option<Position> {
        self.0.position
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.kind.label(), self.0.message)?;
        match &self.0.hint {
            Some(hint) => write!(f, "\nHint: {hint}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")?;
        match self.0.position {
            Some(p) => write!(f, " (line {}, column {})", p.line, p.column),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}
