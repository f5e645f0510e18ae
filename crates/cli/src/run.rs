//! Runs one statement, and writes its result as the session wants it.
//!
//! | the result | is |
//! |---|---|
//! | of a query in a script, or that goes to a file or a command | written while the query runs |
//! | at the prompt | kept until the next statement, for `.last` |
//! | of any other statement | written when it has run |
//!
//! What was written before an error stays written.

use crate::interrupt;
use crate::lex::begins_with;
use crate::others;
use crate::output::{self, Paged};
use crate::progress::with_bar;
use crate::render::{self, Look, Mode, PlanLines, Renderer, ResultPart, Screen};
use crate::report::{Figures, Origin};
use crate::session::{Failure, Fault, Outcome, Session};
use crate::style::{Style, is_dumb};
use crate::words::{count, duration};
use entasis::{Connection, DataType, Error, ErrorKind, Result, Rows, Schema, Stream, TimeZone, Value};
use entasis_vector::Chunk;
use std::io::{self, IsTerminal, Write};
use std::time::Instant;

/// The width that is assumed for a terminal that does not report one.
const WIDTH: usize = 100;

/// Words with which queries begin whose rows can be read while they run.
const QUERIES: [&str; 6] = ["select", "from", "with", "values", "table", "("];

/// Where rows come from.
enum Source {
    /// They are all there; the number of the next chunk.
    Kept(Rows, usize),
    /// They come while the query runs.
    Running(Stream),
}

impl Source {
    /// Runs a statement, or begins to.
    fn open(
        connection: &Connection,
        sql: &str,
        parameters: &[(Value, DataType)],
        keeps: bool,
    ) -> Result<Source> {
        match !keeps && begins_with(sql, &QUERIES) {
            true => connection.stream(sql, parameters).map(Source::Running),
            false => connection.query(sql, parameters).map(|rows| Source::Kept(rows, 0)),
        }
    }

    fn schema(&self) -> &Schema {
        match self {
            Source::Kept(rows, _) => rows.schema(),
            Source::Running(stream) => stream.schema(),
        }
    }

    fn changed(&self) -> Option<u64> {
        match self {
            Source::Kept(rows, _) => rows.changed(),
            Source::Running(stream) => stream.changed(),
        }
    }

    fn next(&mut self) -> Result<Option<Chunk>> {
        match self {
            Source::Kept(rows, next) => {
                *next += 1;
                Ok(rows.chunks().get(*next - 1).cloned())
            }
            Source::Running(stream) => stream.next_chunk(),
        }
    }
}

/// A result of which a part is written.
struct Begun {
    source: Source,
    renderer: Box<dyn Renderer>,
    /// The next rows, if they have come already.
    first: Option<Chunk>,
}

/// How one result is written.
struct View<'a> {
    sql: &'a str,
    look: &'a Look,
    zone: TimeZone,
    terminal: bool,
    /// The width to which tables are shortened.
    width: Option<usize>,
    timer: bool,
    start: Instant,
}

impl View<'_> {
    fn style(&self) -> Style {
        Style::new(self.terminal)
    }

    fn is_plan(&self) -> bool {
        self.look.mode == Mode::Table && begins_with(self.sql, &["explain"])
    }

    fn renderer(&self, schema: &Schema) -> Box<dyn Renderer> {
        if self.is_plan() {
            return Box::new(PlanLines);
        }
        render::renderer(self.look, schema, Screen { width: self.width, style: self.style() })
    }

    /// Whether rows are written only when all have come.
    fn is_shortened(&self) -> bool {
        self.look.mode == Mode::Table && self.terminal && self.look.max_rows != Some(0) && !self.is_plan()
    }

    /// The line after a table, or in place of a result. Empty if there is none.
    fn footer(&self, schema: &Schema, changed: Option<u64>, rows: u64, shown: Option<u64>) -> String {
        let time = match self.timer && self.terminal {
            true => format!(" · {}", duration(self.start.elapsed())),
            false => String::new(),
        };
        if schema.is_empty() {
            // Statements without a result are silent in scripts.
            let what = changed.map_or_else(|| "done".to_owned(), |n| count(n, "row changed", "rows changed"));
            return if self.terminal { what + &time } else { String::new() };
        }
        if self.look.mode != Mode::Table {
            return String::new();
        }
        if self.is_plan() {
            return time.trim_start_matches(" · ").to_owned();
        }
        let part = shown.map_or(String::new(), |shown| format!(" ({shown} shown)"));
        format!("{}{part}{time}", count(rows, "row", "rows"))
    }

    /// Writes all rows of a source. Returns their number.
    fn write(
        &self,
        open: impl FnOnce() -> Result<Source>,
        bar: &dyn Fn(&mut dyn FnMut()),
        out: &mut dyn Write,
    ) -> Result<(Source, u64), Fault> {
        let mut begun = None;
        let mut open = Some(open);
        let mut rows = 0;
        // With a bar, until there is something to see on the terminal.
        let waits = self.is_shortened() || !self.terminal;
        bar(&mut || {
            let open = open.take().expect("it is called once");
            begun = Some(self.begin(open, &mut rows, waits, out));
        });
        let Begun { mut source, mut renderer, mut first } = begun.expect("it was called")?;
        while let Some(chunk) = first.take().map_or_else(|| source.next(), |chunk| Ok(Some(chunk)))? {
            rows += self.write_chunk(&source, &mut *renderer, &chunk, out)?;
        }
        let shown = if source.schema().is_empty() { None } else { renderer.end(out)? };
        let footer = self.footer(source.schema(), source.changed(), rows, shown);
        if !footer.is_empty() {
            writeln!(out, "{}", self.style().dim(footer))?;
        }
        Ok((source, rows))
    }

    /// Opens a source and writes what comes before its rows; and all its rows, if `all`. Otherwise returns
    /// the first ones.
    fn begin(
        &self,
        open: impl FnOnce() -> Result<Source>,
        rows: &mut u64,
        all: bool,
        out: &mut dyn Write,
    ) -> Result<Begun, Fault> {
        let mut source = open()?;
        let mut renderer = self.renderer(source.schema());
        if !source.schema().is_empty() {
            renderer.begin(out)?;
        }
        let mut first = source.next()?;
        while all && let Some(chunk) = first {
            *rows += self.write_chunk(&source, &mut *renderer, &chunk, out)?;
            first = source.next()?;
        }
        Ok(Begun { source, renderer, first })
    }

    fn write_chunk(
        &self,
        source: &Source,
        renderer: &mut dyn Renderer,
        chunk: &Chunk,
        out: &mut dyn Write,
    ) -> Result<u64, Fault> {
        renderer.rows(&ResultPart::new(source.schema(), chunk, self.zone), out)?;
        out.flush()?;
        Ok(chunk.len() as u64)
    }
}

impl Session {
    /// Runs one statement, which starts on line `line` of its script, and writes its result.
    ///
    /// # Errors
    /// Those of standard output.
    pub fn statement(&mut self, sql: &str, line: usize) -> io::Result<Outcome> {
        let look = self.look.clone();
        self.statement_in(sql, line, &look)
    }

    /// The same, with another look.
    ///
    /// # Errors
    /// Those of standard output.
    pub fn statement_in(&mut self, sql: &str, line: usize, look: &Look) -> io::Result<Outcome> {
        if let Some(error) = others::backslash(sql) {
            return self.fail(&error, "", line, Failure::Statement);
        }
        // Before a statement begins, the connection lowers its flag.
        if self.interrupts.is_pressed() {
            return self.fail(&Error::interrupted(), "", line, Failure::Interrupted);
        }
        if self.switches.echo {
            writeln!(self.out, "{sql};")?;
        }
        // PERF: before the statement, which may need the memory.
        self.last.rows = None;
        self.last.sql = Some(sql.to_owned());
        self.out.use_once();
        let result = self.run_statement(sql, look);
        let written = self.out.flush().map_err(Fault::Output);
        self.ended(result.and(written), sql, line)
    }

    fn run_statement(&mut self, sql: &str, look: &Look) -> Result<(), Fault> {
        let start = Instant::now();
        let memory = self.connection().context().memory;
        memory.restart_peak();
        let parameters = self.variables.of(self.connection(), sql)?;
        let keeps = self.is_interactive && self.out.is_standard();
        let (source, rows) = self.limited("the statement", |session| {
            let connection = session.connection().clone();
            let open = || Source::open(&connection, sql, &parameters, keeps);
            session.show(sql, look, start, open, false)
        })?;
        let time = start.elapsed();
        let mut stderr = io::stderr().lock();
        // Then the time is in the line below the result.
        let has_footer = self.out.is_terminal() && (look.mode == Mode::Table || source.schema().is_empty());
        let rows = source.changed().filter(|_| source.schema().is_empty()).unwrap_or(rows);
        if let Source::Kept(kept, _) = source {
            kept.note().map_or(Ok(()), |note| self.reporter.note(&mut stderr, note))?;
            if keeps && !kept.schema().is_empty() {
                self.last.rows = Some(kept);
            }
        }
        if self.switches.timer && !has_footer && !self.switches.stats {
            self.reporter.time(&mut stderr, time)?;
        }
        if self.switches.stats {
            self.reporter.figures(&mut stderr, Figures { rows, time, memory: memory.peak() })?;
        }
        Ok(())
    }

    /// Writes the last result again, whole.
    ///
    /// # Errors
    /// Input, if there is none; those of the output.
    pub fn show_last(&mut self, look: &Look) -> Result<(), Fault> {
        let none = || {
            Error::input("there is no last result")
                .with_hint("at the prompt, it is that of the last statement")
        };
        let rows = self.last.rows.take().ok_or_else(none)?;
        let sql = self.last.sql.clone().unwrap_or_default();
        let look = Look { max_rows: Some(0), ..look.clone() };
        let (source, _) = self.show(&sql, &look, Instant::now(), || Ok(Source::Kept(rows, 0)), true)?;
        if let Source::Kept(rows, _) = source {
            self.last.rows = Some(rows);
        }
        Ok(())
    }

    /// Writes the rows of a source. If it is shown `again`, it takes no time, and may be wider than the
    /// screen.
    fn show(
        &mut self,
        sql: &str,
        look: &Look,
        start: Instant,
        open: impl FnOnce() -> Result<Source>,
        again: bool,
    ) -> Result<(Source, u64), Fault> {
        let terminal = self.out.is_terminal();
        let (height, width) = screen();
        let zone = self.connection().time_zone();
        let timer = self.switches.timer && !again;
        let mut view = View { sql, look, zone, terminal, width: terminal.then_some(width), timer, start };
        let is_paged = self.is_interactive && self.switches.pager && terminal && !is_dumb();
        let pager = if is_paged && !view.is_shortened() { output::pager() } else { None };
        if again && pager.is_some() {
            view.width = None;
        }
        let progress = self.connection().progress();
        let has_bar = !again && io::stderr().is_terminal() && !is_dumb() && !self.out.is_pipe();
        let bar = |run: &mut dyn FnMut()| with_bar("Running", &progress, has_bar, run);
        let (interrupts, out) = (&self.interrupts, &mut self.out);
        interrupts.guard(|| match pager {
            None => view.write(open, &bar, &mut interrupts.output(out)),
            Some(pager) => {
                let mut paged = Paged::new(out, &pager, (height, width));
                let written = view.write(open, &bar, &mut interrupts.output(&mut paged));
                paged.finish()?;
                written
            }
        })
    }

    /// How the session goes on after a statement or a command, whose error is written.
    ///
    /// # Errors
    /// Those of standard output.
    pub fn ended(&mut self, result: Result<(), Fault>, sql: &str, line: usize) -> io::Result<Outcome> {
        let failure = match result {
            Ok(()) => None,
            Err(Fault::Error(error)) if is_closed_output(&error) => {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            Err(Fault::Error(error)) if error.kind() == ErrorKind::Interrupted => {
                Some((error, Failure::Interrupted))
            }
            Err(Fault::Error(error)) => Some((error, Failure::Statement)),
            Err(Fault::Timeout(error)) => Some((error, Failure::Timeout)),
            Err(Fault::Open(error)) => Some((error, Failure::Open)),
            Err(Fault::Output(error)) if interrupt::is_cancelled(&error) => {
                Some((Error::interrupted(), Failure::Interrupted))
            }
            // A command that has read enough; or the pager.
            Err(Fault::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                if self.out.is_standard() && !self.is_interactive {
                    return Err(error);
                }
                None
            }
            Err(Fault::Output(error)) if self.out.is_standard() => return Err(error),
            Err(Fault::Output(error)) => Some((Error::io(self.out.described(), &error), Failure::Statement)),
        };
        let after = self.out.after_piece().err().map(|error| (error, Failure::Statement));
        match failure.or(after) {
            None => Ok(Outcome::Done),
            Some((error, failure)) => self.fail(&error, sql, line, failure),
        }
    }

    /// Writes an error of a statement, which starts on line `line` of its script.
    ///
    /// # Errors
    /// Those of the output.
    pub fn fail(&mut self, error: &Error, sql: &str, line: usize, failure: Failure) -> io::Result<Outcome> {
        // What was written before comes first, wherever it goes.
        let _ = self.out.flush();
        let origin = Origin { file: self.files.last().map(String::as_str), sql, line };
        self.reporter.error(&mut io::stderr().lock(), error, origin)?;
        Ok(Outcome::Failed(failure))
    }
}

/// True if `COPY … TO STDOUT` has failed because the reader of our output has enough.
fn is_closed_output(error: &Error) -> bool {
    let message = error.message();
    error.kind() == ErrorKind::Io && message.starts_with("'/dev/stdout'") && message.contains("Broken pipe")
}

/// Lines and columns of the terminal.
pub fn screen() -> (usize, usize) {
    let size = console::Term::stdout().size_checked();
    size.map_or((usize::MAX, WIDTH), |(height, width)| (usize::from(height), usize::from(width)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_known_by_their_first_word() {
        assert!(begins_with("(SELECT 1)", &QUERIES) && begins_with("With a AS (SELECT 1) FROM a", &QUERIES));
        assert!(!begins_with("UPDATE t SET a = 1", &QUERIES));
    }
}
