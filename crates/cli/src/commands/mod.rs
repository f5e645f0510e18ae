//! The dot commands: one list, by which they are run, explained by `.help`, completed by Tab, and described
//! in `docs/shell.md`.
//!
//! | module | commands |
//! |---|---|
//! | [`look`] | what there is: tables, declarations, indexes, databases |
//! | [`memory`] | who has what memory |
//! | [`results`] | how results are written, and where |
//! | [`last`] | the last statement and its result |
//! | [`import`], [`dump`] | rows from files, everything as SQL |
//! | [`run`] | scripts, other programs, another database, the end |
//! | [`help`] | the list itself |
//!
//! A command may be shortened as long as only one begins so.

mod arguments;
mod dump;
mod help;
mod import;
mod last;
mod look;
mod memory;
mod results;
mod run;

use self::arguments::Call;
use crate::others;
use crate::report::Figures;
use crate::session::{Fault, Outcome, Session};
use crate::spelling::meant;
use entasis::Error;
use std::io::{self, Write};
use std::time::Instant;

/// A dot command.
pub struct DotCommand {
    /// Its name, without the dot.
    pub name: &'static str,
    /// Other names.
    aliases: &'static [&'static str],
    /// Its arguments, as `.help` shows them.
    pub arguments: &'static str,
    /// What it does.
    pub help: &'static str,
    /// What Tab offers as its first argument.
    pub offers: Offers,
    run: fn(&mut Session, Call<'_>) -> Ran,
}

/// What Tab offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offers {
    /// Nothing.
    Nothing,
    /// These words.
    Words(&'static [&'static str]),
    /// Tables and views.
    Tables,
    /// Files and directories.
    Files,
    /// The output formats.
    Modes,
    /// The commands.
    Commands,
}

/// How a command ends.
type Ran = Result<Outcome, Fault>;

const ON_OFF: Offers = Offers::Words(&["off", "on"]);

/// Short for an entry of the list.
const fn command(
    name: &'static str,
    arguments: &'static str,
    help: &'static str,
    offers: Offers,
    run: fn(&mut Session, Call<'_>) -> Ran,
) -> DotCommand {
    DotCommand { name, aliases: &[], arguments, help, offers, run }
}

impl DotCommand {
    const fn or(self, aliases: &'static [&'static str]) -> DotCommand {
        DotCommand { aliases, ..self }
    }

    fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }
}

/// All commands, in the order in which `.help` lists them.
pub const COMMANDS: &[DotCommand] = &[
    command("help", "[COMMAND]", "This list, or one command", Offers::Commands, help::help),
    command(
        "tables",
        "[PATTERN]",
        "Tables and views, or those whose names are LIKE a pattern or contain a word",
        Offers::Tables,
        look::tables,
    ),
    command(
        "schema",
        "[TABLE]",
        "The statements that create a table or view with its indexes, or all objects; the columns of a quoted file",
        Offers::Tables,
        look::schema,
    ),
    command("indexes", "[TABLE]", "The statements that create the indexes", Offers::Tables, look::indexes)
        .or(&["indices"]),
    command("databases", "", "The attached databases and their files", Offers::Nothing, look::databases),
    command(
        "memory",
        "",
        "Who has what memory, and how much of memory_limit that is",
        Offers::Nothing,
        memory::memory,
    ),
    command(
        "last",
        "[-x]",
        "The last result again, whole; with -x one value a line",
        Offers::Words(&["-x"]),
        last::last,
    ),
    command(
        "x",
        "[SQL]",
        "The last result, or that of a statement, one value a line",
        Offers::Nothing,
        last::vertical,
    ),
    command(
        "watch",
        "SECONDS [TIMES] [SQL]",
        "Run the last statement, or this one, again and again, until Ctrl-C",
        Offers::Nothing,
        last::watch,
    ),
    command(
        "edit",
        "",
        "Write the last statement in $VISUAL or $EDITOR, then run it",
        Offers::Nothing,
        last::edit,
    ),
    command(
        "mode",
        "[MODE [TABLE]]",
        "How results are written: table, csv, tsv, json, jsonl, markdown, line, list, insert, html",
        Offers::Modes,
        results::mode,
    ),
    command("headers", "[on|off]", "Whether the names of columns come first", ON_OFF, results::headers),
    command(
        "nullvalue",
        "[TEXT]",
        "What NULL is written as; '' is nothing, and .nullvalue - what the mode has",
        Offers::Nothing,
        results::null_value,
    ),
    command(
        "separator",
        "[TEXT]",
        "What separates the values in the modes list and csv; \\t is a tab",
        Offers::Nothing,
        results::separator,
    ),
    command(
        "maxrows",
        "[N|all]",
        "The most rows of a table that are shown",
        Offers::Words(&["40", "all"]),
        results::max_rows,
    ),
    command(
        "pager",
        "[on|off]",
        "Whether results longer than the screen are shown in $PAGER",
        ON_OFF,
        results::pager,
    ),
    command("timer", "[on|off]", "Whether to say how long each statement took", ON_OFF, results::timer),
    command(
        "stats",
        "[on|off]",
        "Whether to say rows, time and memory of each statement",
        ON_OFF,
        results::stats,
    ),
    command(
        "output",
        "[FILE or | CMD]",
        "Write all results to a file or a command; without either, or to -, to standard output",
        Offers::Files,
        results::output,
    ),
    command(
        "once",
        "FILE or | CMD",
        "Write the next result to a file or a command",
        Offers::Files,
        results::once,
    ),
    command("print", "TEXT", "Write a text", Offers::Nothing, results::print),
    command(
        "import",
        "FILE TABLE [--csv] [--skip N] [--delimiter X]",
        "Add the rows of a file to a table, which is made if there is none",
        Offers::Files,
        import::import,
    ),
    command(
        "dump",
        "[TABLE]",
        "Everything, or one table, as a script that makes it again",
        Offers::Tables,
        dump::dump,
    ),
    command("read", "FILE", "Run the statements in a file", Offers::Files, run::read),
    command(
        "open",
        "[--readonly] [FILE]",
        "Go on with another database; without a file, an empty one in memory",
        Offers::Files,
        run::open,
    ),
    command("shell", "CMD", "Run a command of the system", Offers::Files, run::shell).or(&["system"]),
    command("cd", "DIR", "Change the directory in which paths begin", Offers::Files, run::cd),
    command("echo", "[on|off]", "Whether to write statements before they run", ON_OFF, run::echo),
    command("bail", "[on|off]", "Whether a script ends at its first error", ON_OFF, run::bail),
    command("show", "", "The settings of the shell", Offers::Nothing, results::show),
    command("quit", "", "Leave; so does Ctrl-D", Offers::Nothing, run::quit).or(&["exit", "q"]),
];

/// The command of this name, or the only one that begins so.
///
/// # Errors
/// Input, if there is none, or several; with what does the same here, if it is one of another shell.
pub fn find(name: &str) -> entasis::Result<&'static DotCommand> {
    let name = &*name.to_ascii_lowercase();
    if let Some(own) = COMMANDS.iter().find(|own| own.is_called(name)) {
        return Ok(own);
    }
    let error = Error::input(format!("there is no command .{name}"));
    if let Some(instead) = others::instead_of(name) {
        return Err(error.with_hint(instead));
    }
    let begun = || COMMANDS.iter().filter(|own| !name.is_empty() && own.name.starts_with(name));
    match begun().count() {
        1 => begun().next().ok_or(error),
        0 => Err(match meant(name, COMMANDS.iter().map(|own| own.name)) {
            Some(own) => error.with_hint(format!("did you mean .{own}? .help lists the commands")),
            None => error.with_hint(".help lists the commands"),
        }),
        _ => {
            let names: Vec<String> = begun().map(|own| format!(".{}", own.name)).collect();
            Err(error.with_hint(format!("it may be {}", names.join(" or "))))
        }
    }
}

impl Session {
    /// Runs a dot command, passed without its dot, on line `line` of its script.
    ///
    /// # Errors
    /// Those of standard output.
    pub fn command(&mut self, text: &str, line: usize) -> io::Result<Outcome> {
        if self.switches.echo {
            writeln!(self.out, ".{text}")?;
        }
        // `.once|cmd` needs no blank.
        let end = text.find(|c: char| c.is_whitespace() || c == '|').unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        let ran = find(name)
            .map_err(Fault::Error)
            .and_then(|command| (command.run)(self, Call { name: command.name, text: rest.trim(), line }));
        let (outcome, result) = match ran {
            Ok(outcome) => (outcome, Ok(())),
            Err(fault) => (Outcome::Done, Err(fault)),
        };
        let written = self.out.flush().map_err(Fault::Output);
        match self.ended(result.and(written), "", line)? {
            Outcome::Done => Ok(outcome),
            failed => Ok(failed),
        }
    }
}

/// Runs a command as a statement is run: for as long as `--timeout` says, and with what `--stats` says.
/// `run` returns a number of rows.
fn measured(
    session: &mut Session,
    call: Call<'_>,
    run: impl FnOnce(&mut Session) -> Result<u64, Fault>,
) -> Result<u64, Fault> {
    let start = Instant::now();
    let memory = session.connection().context().memory;
    memory.restart_peak();
    let rows = session.limited(&format!(".{}", call.name), run)?;
    if session.switches.stats {
        session.out.flush()?;
        let figures = Figures { rows, time: start.elapsed(), memory: memory.peak() };
        session.reporter.figures(&mut io::stderr().lock(), figures)?;
    }
    Ok(rows)
}

/// Writes a text as a result.
fn say(session: &mut Session, text: impl std::fmt::Display) -> Ran {
    write!(session.out, "{text}")?;
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_by_what_only_they_begin_with() {
        let found = |name| find(name).map(|command| command.name);
        assert_eq!(found("tables").unwrap(), "tables");
        assert_eq!((found("exit").unwrap(), found("indices").unwrap()), ("quit", "indexes"));
        assert_eq!((found("hel").unwrap(), found("t").is_err()), ("help", true));
        assert!(found("o").unwrap_err().hint().unwrap().contains(".output or .once or .open"));
        assert!(found("tabels").unwrap_err().hint().unwrap().contains("did you mean .tables"));
        assert!(found("backup").unwrap_err().hint().unwrap().contains("BACKUP TO"));
        assert!(found("improt").unwrap_err().hint().unwrap().contains(".import"));
        assert_eq!(found("xyzzy").unwrap_err().hint(), Some(".help lists the commands"));
        assert!(found("").is_err());
    }

    #[test]
    fn names_are_unique_and_not_those_of_commands_that_we_do_not_have() {
        let names: Vec<&str> =
            COMMANDS.iter().flat_map(|own| std::iter::once(&own.name).chain(own.aliases)).copied().collect();
        let unique: std::collections::HashSet<&str> = names.iter().copied().collect();
        assert_eq!(unique.len(), names.len());
        assert!(names.iter().all(|name| others::instead_of(name).is_none()));
    }

    #[test]
    fn the_page_of_the_shell_lists_them() {
        let page = include_str!("../../../../docs/shell.md");
        for DotCommand { name, arguments, .. } in COMMANDS {
            let usage = format!("| `.{name} {arguments}").replace('|', "\\|").trim_end().to_owned();
            let usage = usage.replacen("\\|", "|", 1);
            assert!(page.contains(&(usage.clone() + "` |")), "{usage}");
        }
    }
}
