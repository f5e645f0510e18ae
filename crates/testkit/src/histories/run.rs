//! A run: windows of random transactions from several threads, with a check of each window's history.
//!
//! Between two windows there are no writers. Then long lists are cut, so that they do not grow for ever, and
//! the contents of the tables are the beginning of the next window.

use super::anomaly::{Anomaly, Violation};
use super::check::{Checked, check};
use super::common::Common;
use super::define::SHARED_INDEX;
use super::family;
use super::history::{History, Row};
use super::rekey;
use super::session::{Counts, Session, Stop};
use super::tables::{self, CHILD, COLUMNS, TABLES};
use entasis::{Config, Connection, Database};
use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

/// Number of rows above which some are deleted between windows.
const MANY: usize = 400;
/// Lists longer than this are cut.
const LONG: usize = 8;
/// Restricts a deletion to rows that are not referred to.
const UNREFERRED: &str = " AND k NOT IN (SELECT r FROM q WHERE r IS NOT NULL)";

/// The options of a run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Determines all statements, but not how they interleave.
    pub seed: u64,
    /// Number of concurrent sessions.
    pub threads: usize,
    /// Transactions per window.
    pub window: u64,
    /// The run ends after this many transactions, with a whole window.
    pub transactions: u64,
    /// The run ends after this time, with a whole window.
    pub time: Option<Duration>,
    /// Names of statements to exclude, in order to look past a known violation.
    pub without: Vec<String>,
}

/// The names allowed in [`Options::without`]; without `overlap` no two statements run at once, though
/// transactions overlap.
pub const NAMES: [&str; 16] = [
    "rekey",
    "define",
    "refer",
    "family",
    "index",
    "column",
    "junk",
    "dependencies",
    "names",
    "truncate",
    "unique",
    "child",
    "alone",
    "several",
    "transaction",
    "overlap",
];

/// A summary of what was done and checked.
#[derive(Debug, Clone, Copy, Default)]
pub struct Report {
    /// Windows.
    pub windows: u64,
    /// Transactions that were committed, including statements by themselves.
    pub committed: u64,
    /// Transactions that were rolled back intentionally.
    pub rolled_back: u64,
    /// Transactions that had a conflict.
    pub conflicts: u64,
    /// Statements that a constraint refused.
    pub refused: u64,
    /// All statements.
    pub statements: u64,
    /// Changes of tables, indexes and views.
    pub definitions: u64,
    /// True if upkeep was forced between statements.
    pub has_forced_upkeep: bool,
    /// The summary of the checks.
    pub checked: Checked,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Checked { rows, versions, reads, edges, stamps, compared } = self.checked;
        write!(
            f,
            "{} transactions committed, {} rolled back, {} in conflict; {} statements, {} refused by constraints; \
             {} definitions; upkeep {}; {} windows\nchecked: {versions} versions of {rows} rows, {reads} reads, {edges} \
             dependencies, {stamps} stamps, {compared} rows against the model",
            self.committed,
            self.rolled_back,
            self.conflicts,
            self.statements,
            self.refused,
            self.definitions,
            if self.has_forced_upkeep { "forced" } else { "as it comes" },
            self.windows
        )
    }
}

/// A run that found a violation.
#[derive(Debug)]
pub struct Failure {
    /// The first one.
    pub violation: Violation,
    /// The seed of the run.
    pub seed: u64,
    /// The window, from 1.
    pub window: u64,
    /// The report up to then.
    pub report: Report,
    /// The last statements of all sessions, if the violation does not come from a history.
    pub recent: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}, window {}: {}", self.seed, self.window, self.violation)?;
        if !self.recent.is_empty() {
            writeln!(
                f,
                "the last statements, with the ticks of their calls:\n  {}",
                self.recent.join("\n  ")
            )?;
        }
        write!(f, "until then: {}", self.report)
    }
}

/// Runs windows of transactions on a database of its own and checks each. Calls `progress` with the report so
/// far.
///
/// # Errors
/// The first violation. A database that hangs ends the process.
pub fn run(options: &Options, mut progress: impl FnMut(&Report)) -> Result<Report, Box<Failure>> {
    let common = Common::new(options.seed, options.threads, &options.without);
    let mut report = Report::default();
    let result = thread::scope(|scope| {
        let watchdog = scope.spawn(|| common.watch());
        let result = windows(options, &common, &mut report, &mut progress);
        common.is_over.store(true, Ordering::Relaxed);
        watchdog.thread().unpark();
        result
    });
    match result {
        Ok(()) => Ok(report),
        Err(violation) => {
            let has_history = !matches!(
                violation.anomaly,
                Anomaly::UnexpectedError
                    | Anomaly::DanglingReference
                    | Anomaly::BrokenDependency
                    | Anomaly::NameTwice
            );
            let recent = if has_history { Vec::new() } else { common.recent() };
            Err(Box::new(Failure {
                violation,
                seed: options.seed,
                window: report.windows + 1,
                report,
                recent,
            }))
        }
    }
}

fn windows(
    options: &Options,
    common: &Common,
    report: &mut Report,
    progress: &mut impl FnMut(&Report),
) -> Result<(), Violation> {
    let began = Instant::now();
    let config = Config::new().with_threads(2);
    let database = Database::in_memory(config).map_err(|error| failed(&error, "opening a database"))?;
    let leader = database.connect();
    let is_forced = leader.execute("SET upkeep = 'always'").is_ok();
    report.has_forced_upkeep = is_forced;
    let definitions = TABLES.iter().flat_map(tables::Table::definition);
    for sql in definitions.chain(rekey::DEFINITION.map(str::to_owned)) {
        leader.execute(&sql).map_err(|error| failed(&error, &sql))?;
    }
    let mut sessions: Vec<Session<'_>> = (0..options.threads)
        .map(|number| Session::new(common, number, database.connect(), options.seed))
        .collect();
    // One session forces upkeep between any two of its statements, and so between those of the others.
    if let Some(session) = sessions.first().filter(|_| is_forced) {
        let sql = "SET upkeep = 'always'";
        session.connection.execute(sql).map_err(|error| failed(&error, sql))?;
    }
    let mut contents = vec![Vec::new(); TABLES.len()];
    let mut begun = 0;
    while begun < options.transactions && options.time.is_none_or(|time| began.elapsed() < time) {
        begun += options.window;
        let rules = TABLES.iter().map(tables::Table::rules).collect();
        let mut history = History::beginning(rules, &contents);
        window(options, common, &mut sessions)?;
        for session in &mut sessions {
            history.transactions.append(&mut session.transactions);
            history.rows.extend(session.rows.drain());
            report.count(&std::mem::take(&mut session.counts));
        }
        common.is_running.store(true, Ordering::Relaxed);
        names_are_unique(&leader)?;
        family::judge(&leader)?;
        history.contents = read(common, &leader)?;
        contents = cut(common, &leader, &history.contents)?;
        common.is_running.store(false, Ordering::Relaxed);
        for session in &mut sessions {
            session.known =
                contents.iter().map(|rows: &Vec<Row>| rows.iter().map(|row| row.key).collect()).collect();
        }
        common.window.fetch_add(1, Ordering::Relaxed);
        report.add(&check(history)?);
        progress(report);
    }
    Ok(())
}

/// Runs the transactions of a window.
fn window(options: &Options, common: &Common, sessions: &mut [Session<'_>]) -> Result<(), Violation> {
    common.left.store(options.window as i64, Ordering::Relaxed);
    common.is_running.store(true, Ordering::Relaxed);
    let results: Vec<Result<(), Stop>> = thread::scope(|scope| {
        let work = |session| {
            let result = Session::work(session);
            if result.is_err() {
                common.stop.store(true, Ordering::Relaxed);
            }
            result
        };
        let threads: Vec<_> = sessions.iter_mut().map(|session| scope.spawn(move || work(session))).collect();
        threads.into_iter().map(|thread| thread.join().expect("sessions do not panic")).collect()
    });
    common.is_running.store(false, Ordering::Relaxed);
    results.into_iter().try_for_each(|result| match result {
        Ok(()) => Ok(()),
        Err(Stop::Violation(violation)) => Err(violation),
        Err(Stop::Conflict) => {
            Err(Violation::new(Anomaly::UnexpectedError, "a conflict outside a transaction"))
        }
    })
}

/// Checks that the index that all sessions create and drop exists at most once.
fn names_are_unique(leader: &Connection) -> Result<(), Violation> {
    let drop = format!("DROP INDEX {SHARED_INDEX}");
    let times = (0..2).filter(|_| leader.execute(&drop).is_ok()).count();
    if times < 2 {
        Ok(())
    } else {
        Err(Violation::new(Anomaly::NameTwice, format!("{drop}\nsucceeds twice")))
    }
}

/// The contents of the tables.
fn read(common: &Common, leader: &Connection) -> Result<Vec<Vec<Row>>, Violation> {
    let read = |table: &tables::Table| {
        let rows = call(common, leader, &format!("SELECT {COLUMNS} FROM {}", table.name))?;
        let row = |values: Vec<entasis::Value>| tables::read(&values).map(|read| read.row);
        rows.row_values()
            .map(row)
            .collect::<Result<_, _>>()
            .map_err(|text| Violation::new(Anomaly::TornRow, text))
    };
    TABLES.iter().map(read).collect()
}

/// Cuts long lists and large tables. Returns the resulting contents of the tables, after comparing them with
/// the expected ones.
fn cut(common: &Common, leader: &Connection, before: &[Vec<Row>]) -> Result<Vec<Vec<Row>>, Violation> {
    let mut expected = before.to_vec();
    let referred: HashSet<i64> = before[CHILD].iter().filter_map(|row| row.refers).collect();
    for (table, rows) in TABLES.iter().zip(&mut expected) {
        if rows.len() > MANY {
            let own = if table.is_referred_to { UNREFERRED } else { "" };
            call(common, leader, &format!("DELETE FROM {} WHERE g <> 3{own}", table.name))?;
            rows.retain(|row| row.group == 3 || (table.is_referred_to && referred.contains(&row.key)));
        }
        let sql = format!(
            "UPDATE {} SET v = split_part(v, ',', 1) || ',' || last, n = 2 WHERE n > {LONG}",
            table.name
        );
        call(common, leader, &sql)?;
        for row in rows.iter_mut().filter(|row| row.list.len() > LONG) {
            row.list = vec![row.list[0], row.list[row.list.len() - 1]];
        }
    }
    let found = read(common, leader)?;
    for ((table, expected), found) in TABLES.iter().zip(&mut expected).zip(&found) {
        let mut found = found.clone();
        found.sort_unstable_by_key(Row::root);
        expected.sort_unstable_by_key(Row::root);
        if *expected != found {
            let text = format!("table {} after lists were cut: {found:?}, expected {expected:?}", table.name);
            return Err(Violation::new(Anomaly::WrongContents, text));
        }
    }
    Ok(found)
}

fn call(common: &Common, leader: &Connection, sql: &str) -> Result<entasis::Rows, Violation> {
    let result = leader.execute(sql);
    common.statements.fetch_add(1, Ordering::Relaxed);
    result.map_err(|error| failed(&error, sql))
}

fn failed(error: &entasis::Error, sql: &str) -> Violation {
    Violation::new(Anomaly::UnexpectedError, format!("{error:?}\n{sql}"))
}

impl Report {
    fn count(&mut self, counts: &Counts) {
        let Counts { committed, rolled_back, conflicts, refused, statements, definitions } = *counts;
        self.committed += committed;
        self.rolled_back += rolled_back;
        self.conflicts += conflicts;
        self.refused += refused;
        self.statements += statements;
        self.definitions += definitions;
    }

    fn add(&mut self, checked: &Checked) {
        self.windows += 1;
        self.checked.rows += checked.rows;
        self.checked.versions += checked.versions;
        self.checked.reads += checked.reads;
        self.checked.edges += checked.edges;
        self.checked.stamps += checked.stamps;
        self.checked.compared += checked.compared;
    }
}
