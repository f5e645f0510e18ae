//! Opens databases: the one of the command line, and those of `.open`.

use crate::lex::{self, begins_with};
use crate::progress::with_bar;
use crate::spelling::meant;
use entasis::{Config, Database, Error, Progress, Result};
use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::Arc;

/// The options with which databases are opened.
#[derive(Debug, Clone, Default)]
pub struct Opener {
    /// The setting of this name.
    pub threads: Option<String>,
    /// The setting of this name.
    pub memory_limit: Option<String>,
    /// Files are not written.
    pub read_only: bool,
}

impl Opener {
    /// The options as a configuration.
    ///
    /// # Errors
    /// Input, if one of them is not valid.
    pub fn config(&self) -> Result<Config> {
        let mut config = Config::new()
            .with_read_only(self.read_only)
            .with_when_idle(entasis_allocator::give_back)
            .with_when_short(entasis_allocator::give_back_now);
        if let Some(threads) = &self.threads {
            config.set("threads", threads).map_err(|error| error.with_context("--threads"))?;
        }
        if let Some(limit) = &self.memory_limit {
            config.set("memory_limit", limit).map_err(|error| error.with_context("--memory-limit"))?;
        }
        Ok(config)
    }

    /// Opens a file, or a database in memory.
    ///
    /// # Errors
    /// Those of the options and of the database.
    pub fn open(&self, path: Option<&Path>) -> Result<Database> {
        let mut config = self.config()?;
        let Some(path) = path else { return Database::in_memory(config) };
        if path.as_os_str().is_empty() {
            return Err(Error::input("the name of the database is empty")
                .with_hint(":memory: is a database in memory"));
        }
        let opening = Arc::new(Progress::default());
        config.opening = Some(opening.clone());
        let show = io::stdout().is_terminal() && io::stderr().is_terminal();
        with_bar("Opening", &opening, show, || Database::open(path, config))
    }
}

/// Why an argument is hardly meant to be the name of a database.
#[derive(Debug)]
pub enum Mistyped {
    /// It is a statement.
    Statement(Error),
    /// It is a word without an extension or a directory, such as a mistyped task, and there is no such file.
    Word(Error),
}

/// Whether an argument is hardly meant to be the name of a new database. `tasks` are words that may have been
/// meant.
pub fn mistyped(database: &Path, tasks: &[&str]) -> Option<Mistyped> {
    let name = database.to_str()?;
    if name.is_empty() || name == ":memory:" || database.exists() {
        return None;
    }
    if begins_with(name, &STATEMENTS) && name.trim().contains(char::is_whitespace) {
        return Some(Mistyped::Statement(
            Error::input(format!("'{name}' is a statement and not the name of a database"))
                .with_hint("entasis -c \"SELECT …\" runs a statement, and entasis my.db \"SELECT …\" runs it on a database"),
        ));
    }
    if name.contains(['.', '/', '\\']) || lex::tokens(name).iter().all(lex::Token::is_blank) {
        return None;
    }
    let create = format!("to create a database of this name, write ./{name} or {name}.db");
    let hint = match meant(name, tasks.iter().copied()) {
        Some("help") => format!("did you mean --help? {create}"),
        Some(task) => format!("did you mean {task}? {create}"),
        None => create,
    };
    Some(Mistyped::Word(Error::input(format!("there is no database '{name}'")).with_hint(hint)))
}

/// Words with which statements begin.
const STATEMENTS: [&str; 31] = [
    "alter",
    "attach",
    "backup",
    "begin",
    "call",
    "commit",
    "copy",
    "create",
    "delete",
    "describe",
    "detach",
    "drop",
    "execute",
    "explain",
    "export",
    "from",
    "import",
    "insert",
    "merge",
    "pragma",
    "rollback",
    "select",
    "set",
    "show",
    "summarize",
    "truncate",
    "update",
    "use",
    "values",
    "vacuum",
    "with",
];
