//! A session: runs pieces of script and writes results. It is the same for the prompt, `-c`, `-f` and a
//! script on stdin.

use crate::complete::COMMANDS;
use crate::interrupt::{self, Interrupts};
use crate::lex::tokens;
use crate::others;
use crate::progress;
use crate::render::{self, Answer, Mode, Screen};
use crate::report;
use crate::script::{self, Piece};
use crate::style::Style;
use clap::ValueEnum;
use entasis::{Connection, Error, ErrorKind, Rows, TimeZone};
use entasis_vector::name;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The outcome of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It ran.
    Done,
    /// It failed; the error has been printed.
    Failed,
    /// The user wants to leave.
    Quit,
}

/// A connection and how its results are shown.
pub struct Session {
    connection: Arc<Connection>,
    interrupts: Interrupts,
    out: Box<dyn Write>,
    mode: Mode,
    timer: bool,
    /// Standard output is a terminal.
    terminal: bool,
    /// Nesting depth of `.read`.
    depth: usize,
}

/// Maximum nesting depth of `.read`.
const DEPTH: usize = 16;
/// The width that is assumed for a terminal that does not report one.
const WIDTH: usize = 100;

impl Session {
    /// A session that writes to standard output.
    pub fn new(connection: Connection, mode: Mode) -> Session {
        let terminal = io::stdout().is_terminal();
        let interrupts = Interrupts::new(connection.cancel_flag());
        let out = Box::new(io::BufWriter::new(io::stdout()));
        Session {
            connection: Arc::new(connection),
            interrupts,
            out,
            mode,
            timer: terminal,
            terminal,
            depth: 0,
        }
    }

    /// The connection.
    pub fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    /// The output of results.
    pub fn out(&mut self) -> &mut dyn Write {
        &mut self.out
    }

    /// The colours of results.
    pub fn style(&self) -> Style {
        Style::new(self.terminal)
    }

    /// Runs all of `source`, up to the first piece that fails or quits.
    ///
    /// # Errors
    /// Those of the output.
    pub fn run(&mut self, source: &str) -> io::Result<Outcome> {
        for piece in script::pieces(source) {
            let outcome = match piece {
                Piece::Statement { sql, line } => self.statement(sql, line)?,
                Piece::Command(command) => self.command(command)?,
            };
            if outcome != Outcome::Done {
                return Ok(outcome);
            }
        }
        Ok(Outcome::Done)
    }

    /// Runs one statement, which starts on line `line` of its script, and writes its result.
    ///
    /// # Errors
    /// Those of the output.
    pub fn statement(&mut self, sql: &str, line: usize) -> io::Result<Outcome> {
        if let Some(error) = others::backslash(sql) {
            return self.fail(&error, "", 1);
        }
        let start = Instant::now();
        let bar = io::stderr().is_terminal();
        let (connection, interrupts) = (&self.connection, &self.interrupts);
        let written = interrupts.guard(|| {
            let rows = progress::with_bar("Running", &connection.progress(), bar, || connection.execute(sql));
            let rows = match rows {
                Ok(rows) => rows,
                Err(error) => return Ok(Err(error)),
            };
            let zone = self.connection.time_zone();
            let view = View { sql, mode: self.mode, zone, timer: self.timer, terminal: self.terminal };
            view.write(&rows, start.elapsed(), &mut interrupts.output(&mut self.out))?;
            if let Some(note) = rows.note() {
                eprintln!("Note: {note}");
            }
            Ok(Ok(()))
        });
        match written {
            Ok(Ok(())) => {
                self.out.flush()?;
                Ok(Outcome::Done)
            }
            Ok(Err(error)) if is_closed_output(&error) => Err(io::ErrorKind::BrokenPipe.into()),
            Ok(Err(error)) => self.fail(&error, sql, line),
            Err(error) if interrupt::is_cancelled(&error) => self.fail(&Error::interrupted(), sql, line),
            Err(error) => Err(error),
        }
    }

    /// Writes an error of a statement, which starts on line `line` of its script.
    ///
    /// # Errors
    /// Those of the output.
    pub fn fail(&mut self, error: &Error, sql: &str, line: usize) -> io::Result<Outcome> {
        self.out.flush()?;
        let mut stderr = io::stderr().lock();
        report::error(&mut stderr, Style::new(io::stderr().is_terminal()), error, sql, line)?;
        Ok(Outcome::Failed)
    }

    /// Runs a dot command, passed without its dot.
    ///
    /// # Errors
    /// Those of the output.
    pub fn command(&mut self, command: &str) -> io::Result<Outcome> {
        let (name, argument) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        let argument = argument.trim();
        let result = match name {
            "quit" | "exit" | "q" if argument.is_empty() => return Ok(Outcome::Quit),
            "quit" | "exit" | "q" => Err(Error::input(format!(".{name} takes no argument, not {argument}"))),
            "read" => return self.read(argument),
            "help" => help(argument, self.style()),
            "tables" => self.tables(argument),
            "schema" => self.schema(argument),
            "mode" => self.set_mode(argument),
            "timer" => self.set_timer(argument),
            _ => Err(others::unknown_dot(name)),
        };
        match result {
            Ok(text) => {
                write!(self.out, "{text}")?;
                self.out.flush()?;
                Ok(Outcome::Done)
            }
            Err(error) => self.fail(&error, "", 1),
        }
    }

    fn read(&mut self, path: &str) -> io::Result<Outcome> {
        let path = path.trim_matches('\'');
        if path.is_empty() || self.depth >= DEPTH {
            let what = if path.is_empty() {
                ".read takes a file".into()
            } else {
                format!("{path}: .read inside of .read, {DEPTH} deep")
            };
            return self.fail(&Error::input(what), "", 1);
        }
        match std::fs::read_to_string(path) {
            Ok(source) => {
                self.depth += 1;
                let outcome = self.run(&source);
                self.depth -= 1;
                outcome
            }
            Err(error) => self.fail(&Error::io(path, &error), "", 1),
        }
    }

    /// Names of tables and views, those that are LIKE `pattern` if there is one.
    fn tables(&self, pattern: &str) -> Result<String, Error> {
        let names = self.connection.tables();
        let pattern = pattern.trim_matches('\'');
        let shown = |name: &&String| pattern.is_empty() || is_like(name, pattern);
        Ok(names.iter().filter(shown).map(|name| format!("{name}\n")).collect())
    }

    /// The statements that create an object, or all; the columns of what was not created by a statement.
    fn schema(&self, relation: &str) -> Result<String, Error> {
        let is_file = relation.starts_with('\'');
        if !is_file
            && let Some(sql) = self.connection.declarations(Some(relation).filter(|r| !r.is_empty()))?
        {
            return Ok(sql);
        }
        let from = match is_file || relation.contains(['"', '.']) {
            true => relation.to_owned(),
            false => quoted_name(relation),
        };
        let schema = self.connection.describe(&format!("SELECT * FROM {from}"), &[])?.columns;
        let width = schema.iter().map(|field| field.name.chars().count()).max().unwrap_or(0);
        let mut text = format!("{relation}\n");
        for field in &schema {
            let required = if field.nullable { "" } else { " NOT NULL" };
            text.push_str(&format!("  {:width$}  {}{required}\n", field.name, field.ty));
        }
        Ok(text)
    }

    fn set_mode(&mut self, mode: &str) -> Result<String, Error> {
        if mode.is_empty() {
            let now = self.mode.to_possible_value().expect("no mode is hidden");
            return Ok(format!("{} (of {})\n", now.get_name(), Mode::NAMES.join(", ")));
        }
        self.mode = Mode::from_str(mode, true).map_err(|_| {
            Error::input(format!("there is no mode {mode}"))
                .with_hint(format!("the modes are {}", Mode::NAMES.join(", ")))
        })?;
        Ok(String::new())
    }

    fn set_timer(&mut self, argument: &str) -> Result<String, Error> {
        self.timer = match argument {
            "on" => true,
            "off" => false,
            "" => !self.timer,
            other => return Err(Error::input(format!(".timer takes on or off, not {other}"))),
        };
        Ok(if argument.is_empty() {
            format!("timer {}\n", if self.timer { "on" } else { "off" })
        } else {
            String::new()
        })
    }
}

/// All commands, or the one called `only`.
fn help(only: &str, style: Style) -> Result<String, Error> {
    let only = only.trim_start_matches('.');
    if !only.is_empty() && COMMANDS.iter().all(|(name, ..)| *name != only) {
        return Err(others::unknown_dot(only));
    }
    let mut text = String::new();
    for (name, argument, what) in COMMANDS.iter().filter(|(name, ..)| only.is_empty() || *name == only) {
        let usage = format!(".{name} {argument}");
        text.push_str(&format!("  {}  {what}\n", style.bold(format!("{usage:16}"))));
    }
    if !only.is_empty() {
        return Ok(text);
    }
    text.push_str(
        "\nStatements end with a semicolon and may run over several lines. Tab completes, Ctrl-R searches\n",
    );
    text.push_str("the history, Ctrl-C cancels. Files are tables: ");
    Ok(text + "FROM 'flights.parquet', FROM 'logs/*.csv'.\n")
}

/// Whether a name is LIKE a pattern, in either case: `%` is any text, `_` one character. A pattern without
/// either is found anywhere in the name.
fn is_like(name: &str, pattern: &str) -> bool {
    fn rest(name: &[char], pattern: &[char]) -> bool {
        match pattern.split_first() {
            None => name.is_empty(),
            Some(('%', after)) => (0..=name.len()).any(|at| rest(&name[at..], after)),
            Some((c, after)) => {
                name.split_first().is_some_and(|(own, others)| (*c == '_' || c == own) && rest(others, after))
            }
        }
    }
    let chars = |text: &str| text.to_lowercase().chars().collect::<Vec<_>>();
    match pattern.contains(['%', '_']) {
        true => rest(&chars(name), &chars(pattern)),
        false => name.to_lowercase().contains(&pattern.to_lowercase()),
    }
}

/// A name that may have a schema, with its parts in quotes.
fn quoted_name(name: &str) -> String {
    let quote = |part: &String| format!("\"{}\"", part.replace('"', "\"\""));
    name::parts(name).iter().map(quote).collect::<Vec<_>>().join(".")
}

/// How the result of one statement is shown.
struct View<'a> {
    sql: &'a str,
    mode: Mode,
    zone: TimeZone,
    timer: bool,
    terminal: bool,
}

impl View<'_> {
    fn write(&self, rows: &Rows, took: Duration, out: &mut dyn Write) -> io::Result<()> {
        let style = Style::new(self.terminal);
        let time = if self.timer { format!(" · {}", duration(took)) } else { String::new() };
        if rows.schema().is_empty() {
            // Statements without a result are silent in scripts.
            let what =
                rows.changed().map_or_else(|| "done".to_owned(), |n| count(n, "row changed", "rows changed"));
            return if self.terminal { writeln!(out, "{}", style.dim(what + &time)) } else { Ok(()) };
        }
        let answer = Answer::new(rows.schema(), rows.chunks()).in_zone(self.zone);
        if self.mode != Mode::Table {
            render::write(self.mode, &answer, Screen { width: None, style: Style::PLAIN }, out)?;
            out.flush()?;
            if self.timer {
                eprintln!("{}", duration(took));
            }
            return Ok(());
        }
        if is_explain(self.sql) {
            let last = rows.schema().len() - 1;
            for row in 0..answer.rows() {
                writeln!(out, "{}", answer.text(row, last).unwrap_or_default().trim_end())?;
            }
            return if self.timer { writeln!(out, "{}", style.dim(duration(took))) } else { Ok(()) };
        }
        let screen = Screen { width: self.terminal.then(width), style };
        let shown = render::write(Mode::Table, &answer, screen, out)?;
        let part = if shown < answer.rows() { format!(" ({shown} shown)") } else { String::new() };
        let rows = count(answer.rows() as u64, "row", "rows");
        writeln!(out, "{}", style.dim(format!("{rows}{part}{time}")))
    }
}

/// True if `COPY … TO STDOUT` has failed because the reader of our output has enough.
fn is_closed_output(error: &Error) -> bool {
    let message = error.message();
    error.kind() == ErrorKind::Io && message.starts_with("'/dev/stdout'") && message.contains("Broken pipe")
}

fn width() -> usize {
    console::Term::stdout().size_checked().map_or(WIDTH, |(_, width)| usize::from(width))
}

fn is_explain(sql: &str) -> bool {
    tokens(sql).iter().find(|t| !t.is_blank()).is_some_and(|t| t.text(sql).eq_ignore_ascii_case("explain"))
}

/// `1 row`, `12,345 rows`.
pub fn count(n: u64, one: &str, many: &str) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    format!("{text} {}", if n == 1 { one } else { many })
}

/// A duration in readable form: `0.4 ms`, `12 ms`, `3.2 s`.
pub fn duration(time: Duration) -> String {
    match time.as_secs_f64() {
        s if s < 0.01 => format!("{:.1} ms", s * 1e3),
        s if s < 1.0 => format!("{:.0} ms", s * 1e3),
        s if s < 120.0 => format!("{s:.1} s"),
        s => format!("{:.0} min {:02.0} s", (s / 60.0).floor(), (s % 60.0).floor()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_times_read_well() {
        assert_eq!(count(1, "row", "rows"), "1 row");
        assert_eq!(count(1234567, "row", "rows"), "1,234,567 rows");
        assert_eq!(duration(Duration::from_micros(430)), "0.4 ms");
        assert_eq!(duration(Duration::from_millis(12)), "12 ms");
        assert_eq!(duration(Duration::from_millis(3210)), "3.2 s");
        assert_eq!(duration(Duration::from_secs(125)), "2 min 05 s");
    }

    #[test]
    fn patterns_choose_names() {
        for (name, pattern, is) in [
            ("orders", "ord", true),
            ("orders", "ORD%", true),
            ("orders", "o_d_rs", true),
            ("orders", "o_d", false),
            ("orders", "%s", true),
            ("orders", "x", false),
        ] {
            assert_eq!(is_like(name, pattern), is, "{pattern}");
        }
    }

    #[test]
    fn explain_is_known_by_its_first_word() {
        assert!(is_explain("-- why\n explain select 1"));
        assert!(!is_explain("select 'explain'"));
    }
}
