//! The shell `entasis`: SQL from a prompt, an argument, a file or a pipe; results as tables, CSV, JSON or
//! Markdown.
//!
//! | module | subject |
//! |---|---|
//! | `args`, `main` | the command line |
//! | `session` | runs pieces of script and dot commands, shows results |
//! | `shell`, `editor`, `complete` | the prompt: history, colours, completion |
//! | `others` | commands of other shells, and mistyped ones |
//! | `lex`, `script` | SQL text: tokens, statements |
//! | `render` | one file for each output format |
//! | `report`, `style`, `progress`, `interrupt` | errors, colours, progress bars, Ctrl-C |
//! | `demo` | `entasis demo` |
//! | `layout`, `plot` | `entasis layout`, and its picture |
//!
//! It uses only the public interface of the crate `entasis`.

mod args;
mod complete;
mod demo;
mod editor;
mod interrupt;
mod layout;
mod lex;
mod others;
mod plot;
mod progress;
mod render;
mod report;
mod script;
mod session;
mod shell;
mod style;

use args::{Args, Task};
use clap::Parser;
use entasis::{Config, Database, Error, Progress};
use progress::with_bar;
use session::{Outcome, Session};
use std::io::{self, IsTerminal, Read};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use style::Style;

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(Outcome::Failed) => ExitCode::FAILURE,
        Ok(_) => ExitCode::SUCCESS,
        // The reader of our output has closed the pipe.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("entasis: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> io::Result<Outcome> {
    if let Some(error) = args.database.as_deref().and_then(mistyped) {
        return fail(&error);
    }
    let connection = match open(args) {
        Ok(database) => database.connect(),
        Err(error) => return fail(&error),
    };
    let mut session = Session::new(connection, args.mode);
    match &args.task {
        Some(Task::Demo) => return demo::run(&mut session),
        Some(Task::Layout(layout)) => return layout::run(&mut session, layout),
        None => {}
    }
    for file in &args.files {
        let source = match read(file) {
            Ok(source) => source,
            Err(error) => return fail(&Error::io(file.display(), &error)),
        };
        let outcome = session.run(&source)?;
        if outcome != Outcome::Done {
            return Ok(outcome);
        }
    }
    for command in args.commands.iter().chain(&args.statements) {
        let outcome = session.run(command)?;
        if outcome != Outcome::Done {
            return Ok(outcome);
        }
    }
    if !args.files.is_empty() || !args.commands.is_empty() || !args.statements.is_empty() {
        return Ok(Outcome::Done);
    }
    if io::stdin().is_terminal() {
        let name = args.database.as_ref().map_or("in memory".to_owned(), |path| path.display().to_string());
        return shell::run(&mut session, &name).map(|()| Outcome::Quit);
    }
    let source = io::read_to_string(io::stdin())?;
    session.run(&source)
}

fn open(args: &Args) -> entasis::Result<Database> {
    let layout = match &args.task {
        Some(Task::Layout(layout)) => Some(&layout.database),
        _ => None,
    };
    let mut config = Config {
        when_idle: Some(entasis_allocator::give_back),
        when_short: Some(entasis_allocator::give_back_now),
        read_only: args.readonly || layout.is_some(),
        ..Config::default()
    };
    if let Some(threads) = &args.threads {
        config.set("threads", threads)?;
    }
    if let Some(limit) = &args.memory_limit {
        config.set("memory_limit", limit)?;
    }
    match args.database.as_ref().or(layout) {
        Some(path) => {
            let opening = Arc::new(Progress::default());
            config.opening = Some(opening.clone());
            let show = io::stdout().is_terminal() && io::stderr().is_terminal();
            with_bar("Opening", &opening, show, || Database::open(path, config))
        }
        None => Database::in_memory(config),
    }
}

/// The error of an argument that is hardly meant to be the name of a new database: a statement, or a word
/// without an extension or a directory, such as a mistyped task.
fn mistyped(database: &Path) -> Option<Error> {
    let name = database.to_str()?;
    if name.is_empty() || name == ":memory:" || database.exists() {
        return None;
    }
    let first = lex::tokens(name).into_iter().find(|token| !token.is_blank())?;
    let begins = |word: &str| first.text(name).eq_ignore_ascii_case(word);
    if STATEMENTS.iter().any(|word| begins(word)) && name.trim().contains(char::is_whitespace) {
        return Some(
            Error::input(format!("'{name}' is a statement and not the name of a database"))
                .with_hint("entasis -c \"SELECT …\" runs a statement, and entasis my.db \"SELECT …\" runs it on a database"),
        );
    }
    if name.contains(['.', '/', '\\']) {
        return None;
    }
    let create = format!("to create a database of this name, write ./{name} or {name}.db");
    let hint = match others::meant(name, ["demo", "layout", "help"].into_iter()) {
        Some("help") => format!("did you mean --help? {create}"),
        Some(task) => format!("did you mean {task}? {create}"),
        None => create,
    };
    Some(Error::input(format!("there is no database '{name}'")).with_hint(hint))
}

/// Words with which statements begin.
const STATEMENTS: [&str; 25] = [
    "alter",
    "attach",
    "backup",
    "begin",
    "call",
    "copy",
    "create",
    "delete",
    "describe",
    "drop",
    "execute",
    "explain",
    "export",
    "from",
    "import",
    "insert",
    "pragma",
    "select",
    "set",
    "show",
    "summarize",
    "update",
    "values",
    "vacuum",
    "with",
];

fn read(path: &Path) -> io::Result<String> {
    let mut source = String::new();
    if path == Path::new("-") {
        io::stdin().read_to_string(&mut source)?;
    } else {
        source = std::fs::read_to_string(path)?;
    }
    Ok(source)
}

fn fail(error: &Error) -> io::Result<Outcome> {
    report::error(&mut io::stderr(), Style::new(io::stderr().is_terminal()), error, "", 1)?;
    Ok(Outcome::Failed)
}
