//! A session: a connection, how its results are shown, and where they go. It is the same for the prompt,
//! `-c`, `-f` and a script on standard input. Statements run in `run`, dot commands in
//! `commands`.

use crate::interrupt::{ENDED, Interrupts, is_cancelled};
use crate::open::Opener;
use crate::output::Outlet;
use crate::render::{Look, Mode};
use crate::report::{ErrorFormat, Origin, Reporter};
use crate::script::{self, Piece};
use crate::style::Style;
use crate::variables::Variables;
use entasis::{Connection, Error, ErrorKind, Rows};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The outcome of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It ran.
    Done,
    /// It failed; the error has been printed.
    Failed(Failure),
    /// The user wants to leave.
    Quit,
}

/// Why something failed, as the exit code says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// A statement or a command.
    Statement,
    /// The command line.
    Usage,
    /// The database could not be opened.
    Open,
    /// A statement took longer than it may.
    Timeout,
    /// The user has pressed Ctrl-C.
    Interrupted,
}

impl Failure {
    /// The exit code of the program.
    pub fn code(self) -> u8 {
        match self {
            Failure::Statement => 1,
            Failure::Usage => 2,
            Failure::Open => 3,
            Failure::Timeout => 4,
            Failure::Interrupted => ENDED,
        }
    }
}

/// What ends a statement or command early.
#[derive(Debug)]
pub enum Fault {
    /// An error.
    Error(Error),
    /// It took too long.
    Timeout(Error),
    /// A database cannot be opened.
    Open(Error),
    /// The result could not be written.
    Output(io::Error),
}

impl Fault {
    /// Whether it is what a raised flag leads to.
    pub fn is_interruption(&self) -> bool {
        match self {
            Fault::Error(error) => error.kind() == ErrorKind::Interrupted,
            Fault::Output(error) => is_cancelled(error),
            Fault::Timeout(_) => true,
            Fault::Open(_) => false,
        }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        Fault::Error(error)
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Fault {
        Fault::Output(error)
    }
}

/// What is on or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switches {
    /// Say how long each statement took.
    pub timer: bool,
    /// Say what each statement did.
    pub stats: bool,
    /// Write each statement before it runs.
    pub echo: bool,
    /// End a script at its first error.
    pub bail: bool,
    /// Show long results in the pager.
    pub pager: bool,
}

/// The statement that ran last.
#[derive(Default)]
pub struct Last {
    /// Its text.
    pub sql: Option<String>,
    /// Its result, if it has one and the session is at the prompt.
    pub rows: Option<Rows>,
}

/// A connection and how its results are shown.
pub struct Session {
    connection: Arc<Connection>,
    /// Opens other databases as this one was opened.
    pub opener: Opener,
    /// The file that is open; `None`: tables live in memory.
    pub database: Option<PathBuf>,
    /// Ctrl-C.
    pub interrupts: Interrupts,
    /// Where results go.
    pub out: Outlet,
    /// How they are written.
    pub look: Look,
    /// What is on or off.
    pub switches: Switches,
    /// How errors are written.
    pub reporter: Reporter,
    /// Values of parameters.
    pub variables: Variables,
    /// How long a statement may take.
    pub timeout: Option<Duration>,
    /// The statement that ran last.
    pub last: Last,
    /// What the user has written in an editor and is not in the history yet.
    pub edited: Option<String>,
    /// The files of scripts that are running, the innermost last.
    pub files: Vec<String>,
    /// Whether the user types statements at the prompt.
    pub is_interactive: bool,
    /// Whether something has failed and the script has gone on.
    has_failed: bool,
}

/// Maximum nesting depth of `.read`.
const DEPTH: usize = 16;

impl Session {
    /// A session that writes to standard output.
    pub fn new(connection: Connection, opener: Opener, database: Option<PathBuf>, mode: Mode) -> Session {
        let out = Outlet::new();
        let timer = out.is_terminal();
        let style = Style::new(io::stderr().is_terminal());
        Session {
            interrupts: Interrupts::new(connection.cancel_flag()),
            connection: Arc::new(connection),
            opener,
            database,
            look: Look::new(mode),
            switches: Switches { timer, stats: false, echo: false, bail: true, pager: true },
            reporter: Reporter { format: ErrorFormat::Text, style },
            variables: Variables::default(),
            timeout: None,
            last: Last::default(),
            edited: None,
            files: Vec::new(),
            is_interactive: false,
            has_failed: false,
            out,
        }
    }

    /// The connection.
    pub fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    /// Goes on with another database.
    pub fn connect(&mut self, connection: Connection, database: Option<PathBuf>) {
        self.interrupts.attach(connection.cancel_flag());
        self.last = Last::default();
        self.connection = Arc::new(connection);
        self.database = database;
    }

    /// The output of results.
    pub fn out(&mut self) -> &mut dyn Write {
        &mut self.out
    }

    /// The colours of results.
    pub fn style(&self) -> Style {
        Style::new(self.out.is_terminal())
    }

    /// Runs all of `source`, up to the first piece that quits or, unless the session goes on after errors,
    /// fails.
    ///
    /// # Errors
    /// Those of standard output.
    pub fn run(&mut self, source: &str) -> io::Result<Outcome> {
        for piece in script::pieces(source) {
            let outcome = match piece {
                Piece::Statement { sql, line } => self.statement(sql, line)?,
                Piece::Command { text, line } => self.command(text, line)?,
            };
            if self.ends(outcome) {
                return Ok(outcome);
            }
        }
        Ok(Outcome::Done)
    }

    /// True if a script ends because one of its parts had this outcome.
    pub fn ends(&mut self, outcome: Outcome) -> bool {
        match outcome {
            Outcome::Done => false,
            Outcome::Failed(failure) if !self.switches.bail && failure != Failure::Interrupted => {
                self.has_failed = true;
                false
            }
            _ => true,
        }
    }

    /// Runs the script in a file.
    ///
    /// # Errors
    /// Those of standard output.
    pub fn run_file(&mut self, path: &Path, line: usize) -> io::Result<Outcome> {
        let shown = path.display().to_string();
        if self.files.len() >= DEPTH {
            let error = Error::input(format!("{shown}: .read inside of .read, {DEPTH} deep"));
            return self.fail(&error, "", line, Failure::Statement);
        }
        let source = match script::read(path) {
            Ok(source) => source,
            Err(error) => return self.fail(&Error::io(&shown, &error), "", line, Failure::Statement),
        };
        self.files.push(shown);
        let outcome = self.run(&source);
        self.files.pop();
        outcome
    }

    /// The outcome of everything, of which `last` was the outcome of the last part.
    pub fn outcome(&self, last: Outcome) -> Outcome {
        match (last, self.has_failed) {
            (Outcome::Done | Outcome::Quit, true) => Outcome::Failed(Failure::Statement),
            (last, _) => last,
        }
    }

    /// Writes all that is left, and waits for commands that read it.
    ///
    /// # Errors
    /// Those of standard output.
    pub fn close(&mut self) -> io::Result<Outcome> {
        self.out.flush().or_else(|error| if self.out.is_standard() { Err(error) } else { Ok(()) })?;
        match self.out.close() {
            Ok(()) => Ok(Outcome::Done),
            Err(error) => {
                self.reporter.error(&mut io::stderr().lock(), &error, Origin::NONE)?;
                Ok(Outcome::Failed(Failure::Statement))
            }
        }
    }
}
