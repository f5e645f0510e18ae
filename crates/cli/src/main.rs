//! The shell `entasis`: SQL from a prompt, an argument, a file or a pipe; results as tables, CSV, JSON or
//! Markdown.
//!
//! | module | subject |
//! |---|---|
//! | `args`, `main`, `open` | the command line, opening databases |
//! | `session`, `run` | the state of a session; running a statement |
//! | `commands` | the dot commands: one list, one file for each subject |
//! | `render`, `bars`, `output` | one file for each output format; amounts as bars; where results go, and the pager |
//! | `shell`, `editor`, `complete`, `folders` | the prompt: history, colours, completion, `init.sql` |
//! | `others`, `spelling` | commands of other shells, and mistyped words |
//! | `lex`, `script`, `literal` | SQL text: tokens, statements, values |
//! | `variables`, `deadline` | parameters and time limits of statements |
//! | `report`, `style`, `words`, `progress`, `interrupt` | errors, colours, numbers, progress bars, Ctrl-C |
//! | `demo` | `entasis demo` |
//! | `layout`, `plot` | `entasis layout`, and its picture |
//!
//! It uses only the public interface of the crate `entasis`.

mod args;
mod bars;
mod commands;
mod complete;
mod deadline;
mod demo;
mod editor;
mod folders;
mod interrupt;
mod layout;
mod lex;
mod literal;
mod open;
mod others;
mod output;
mod plot;
mod progress;
mod render;
mod report;
mod run;
mod script;
mod session;
mod shell;
mod spelling;
mod style;
mod variables;
mod words;

use args::{Args, Task};
use clap::{CommandFactory, Parser};
use entasis::Error;
use open::{Mistyped, Opener};
use output::Destination;
use report::{Origin, Reporter};
use session::{Failure, Outcome, Session};
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use style::Style;
use variables::Variables;

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(Outcome::Failed(failure)) => ExitCode::from(failure.code()),
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
    match &args.task {
        Some(Task::Completions { shell }) => {
            // It would panic if the reader of our output had enough.
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut Args::command(), "entasis", &mut text);
            io::stdout().write_all(&text)?;
            return Ok(Outcome::Done);
        }
        Some(Task::Man) => {
            clap_mangen::Man::new(Args::command()).render(&mut io::stdout())?;
            return Ok(Outcome::Done);
        }
        _ => {}
    }
    let mut session = match session(args) {
        Ok(session) => session,
        Err((error, failure)) => {
            let style = Style::new(io::stderr().is_terminal());
            Reporter { format: args.errors, style }.error(&mut io::stderr(), &error, Origin::NONE)?;
            return Ok(Outcome::Failed(failure));
        }
    };
    let ran = match &args.task {
        Some(Task::Layout(layout)) => layout::run(&mut session, layout),
        Some(Task::Demo) => demo::run(&mut session),
        _ => scripts(&mut session, args),
    }?;
    let outcome = session.outcome(ran);
    let closed = session.close();
    Ok(if let Outcome::Failed(_) = outcome { outcome } else { session.outcome(closed?) })
}

/// A session as the command line wants it.
fn session(args: &Args) -> Result<Session, (Error, Failure)> {
    match args.database.as_deref().and_then(|path| open::mistyped(path, &Task::NAMES)) {
        Some(Mistyped::Statement(error)) => return Err((error, Failure::Usage)),
        Some(Mistyped::Word(error)) => return Err((error, Failure::Open)),
        None => {}
    }
    let layout = match &args.task {
        Some(Task::Layout(layout)) => Some(&layout.database),
        _ => None,
    };
    let opener = Opener {
        threads: args.threads.clone(),
        memory_limit: args.memory_limit.clone(),
        read_only: args.readonly || layout.is_some(),
    };
    opener.config().map_err(|error| (error, Failure::Usage))?;
    let path = args.database.as_ref().or(layout).filter(|path| *path != Path::new(":memory:"));
    let database = opener.open(path.map(|path| path.as_path())).map_err(|error| (error, Failure::Open))?;
    let mut session = Session::new(database.connect(), opener, path.cloned(), args.mode);
    session.look.headers = !args.no_header;
    session.look.null.clone_from(&args.null);
    session.look.max_rows = args.maxrows;
    session.switches.stats = args.stats;
    session.switches.bail = !args.goes_on;
    session.reporter.format = args.errors;
    session.variables = Variables::new(&args.variables);
    session.timeout = args.timeout;
    if let Some(path) = &args.output {
        let to = Destination::file(path).and_then(|to| session.out.redirect(Some(to)));
        to.map_err(|error| (error, Failure::Usage))?;
    }
    Ok(session)
}

/// Runs the scripts of the command line, or that on standard input, or else opens a prompt.
fn scripts(session: &mut Session, args: &Args) -> io::Result<Outcome> {
    if let Some(init) = &args.init {
        let outcome = session.run_file(init, 1)?;
        if session.ends(outcome) {
            return Ok(outcome);
        }
    }
    let has_scripts = !(args.files.is_empty() && args.commands.is_empty() && args.statements.is_empty());
    if !has_scripts && io::stdin().is_terminal() {
        if args.single_transaction {
            let error = Error::input("--single-transaction needs a script")
                .with_hint("-f FILE, -c SQL, or a script on standard input");
            return session.fail(&error, "", 1, Failure::Usage);
        }
        return shell::run(session, args.no_init || args.init.is_some()).map(|()| Outcome::Quit);
    }
    if args.single_transaction {
        session.connection().execute("BEGIN").map_err(|error| io::Error::other(error.to_string()))?;
    }
    let ran = match has_scripts {
        true => given(session, args),
        false => session.run_file(Path::new("-"), 1),
    };
    let outcome = match ran {
        Err(error) if args.single_transaction && error.kind() == io::ErrorKind::BrokenPipe => {
            let error = Error::input("the reader of the output has gone, and the transaction is rolled back");
            session.fail(&error, "", 1, Failure::Statement)?
        }
        ran => ran?,
    };
    if args.single_transaction { end_transaction(session, outcome) } else { Ok(outcome) }
}

/// Runs the files and then the statements of the command line, up to the first that fails or quits.
fn given(session: &mut Session, args: &Args) -> io::Result<Outcome> {
    for file in &args.files {
        let outcome = session.run_file(file, 1)?;
        if session.ends(outcome) {
            return Ok(outcome);
        }
    }
    for command in args.commands.iter().chain(&args.statements) {
        let outcome = session.run(command)?;
        if session.ends(outcome) {
            return Ok(outcome);
        }
    }
    Ok(Outcome::Done)
}

/// Ends the transaction of `--single-transaction`.
fn end_transaction(session: &mut Session, outcome: Outcome) -> io::Result<Outcome> {
    // With `.bail off`, a script that has failed has gone on.
    let outcome = session.outcome(outcome);
    if !session.connection().in_transaction() {
        let error = Error::input("the script has ended the transaction of --single-transaction")
            .with_hint("leave out COMMIT and ROLLBACK, or the option");
        return match outcome {
            Outcome::Failed(_) => Ok(outcome),
            _ => session.fail(&error, "", 1, Failure::Statement),
        };
    }
    let sql = if let Outcome::Failed(_) = outcome { "ROLLBACK" } else { "COMMIT" };
    match session.connection().execute(sql) {
        Ok(_) => Ok(outcome),
        Err(error) => session.fail(&error, "", 1, Failure::Statement),
    }
}
