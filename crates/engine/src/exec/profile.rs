//! Profiles: what each operator of a plan did, for `EXPLAIN ANALYZE`.
//!
//! As text a profile is either a [table](Profile::table), a line for each operator, or a tree with everything
//! that was noted.
//!
//! The tree follows the plan. While a statement runs, every node has a [`Recorder`] that its physical parts
//! share: the build and the probe of one join, the source and the sink of one aggregation. Workers count in
//! memory of their own and add it up once, when they finish; without [`crate::exec::Settings::profile`] they
//! do not read the clock.

use crate::context::QueryContext;
use crate::memory::MemoryBudget;
use crate::sync::{AtomicU64, Mutex, Ordering, lock};
use std::fmt;
use std::sync::Arc;

/// What a statement did.
#[derive(Debug, Clone, Default)]
pub struct Profile {
    /// The plan's root; `None` unless profiling was on.
    pub root: Option<ProfileNode>,
    /// Wall time of the execution.
    pub nanoseconds: u64,
}

/// What one operator of the plan did, all workers together.
#[derive(Debug, Clone, Default)]
pub struct ProfileNode {
    /// The operator, as `EXPLAIN` shows it.
    pub title: String,
    /// Rows that came out.
    pub rows: u64,
    /// Rows that the optimizer expected.
    pub expected: f64,
    /// Chunks that came out.
    pub chunks: u64,
    /// Time in this operator alone, summed over workers.
    pub nanoseconds: u64,
    /// The most bytes of memory that it had reserved.
    pub bytes: u64,
    /// Decisions and their reasons.
    pub details: Vec<String>,
    /// The inputs, left to right.
    pub children: Vec<ProfileNode>,
}

impl Profile {
    /// A line for each operator: rows, rows expected, how many times too high or too low that was if it was
    /// twice or more, time, memory, and the operator, shortened to a screen's width.
    pub fn table(&self) -> String {
        let mut lines = Vec::new();
        if let Some(root) = &self.root {
            lines.push(TableLine::of(["rows", "expected", "off by", "time", "memory", "operator"]));
            root.add_lines(0, &mut lines);
        }
        let mut text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        text += &format!("total {}", Duration(self.nanoseconds));
        text
    }
}

/// The most characters of a line of [`Profile::table`].
const SCREEN: usize = 120;

/// A line of [`Profile::table`]: rows, expected rows, q-error, time, memory, operator.
struct TableLine([String; 6]);

impl TableLine {
    fn of(cells: [&str; 6]) -> TableLine {
        TableLine(cells.map(str::to_owned))
    }
}

impl fmt::Display for TableLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [rows, expected, error, time, memory, title] = &self.0;
        let line = format!("{rows:>13} {expected:>13} {error:>7} {time:>9} {memory:>9}  {title}");
        match line.char_indices().nth(SCREEN - 1) {
            Some((end, _)) if line.chars().count() > SCREEN => write!(f, "{}…", &line[..end]),
            _ => f.write_str(&line),
        }
    }
}

/// A number with a comma between each three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(root) = &self.root {
            root.write(f, 0)?;
        }
        write!(f, "total {}", Duration(self.nanoseconds))
    }
}

impl ProfileNode {
    /// How many times too high or too low the expected number of rows is, at least 1. (Moerkotte, Neumann,
    /// Steidl: *Preventing Bad Plans by Bounding the Impact of Cardinality Estimation Errors*, VLDB 2009.)
    pub fn q_error(&self) -> f64 {
        let (rows, expected) = ((self.rows as f64).max(1.0), self.expected.max(1.0));
        (rows / expected).max(expected / rows)
    }

    /// Adds the lines of this operator and of those below it.
    fn add_lines(&self, depth: usize, lines: &mut Vec<TableLine>) {
        let error = self.q_error();
        lines.push(TableLine([
            grouped(self.rows),
            grouped(self.expected.round() as u64),
            if error < 2.0 { String::new() } else { format!("{error:.0}x") },
            Duration(self.nanoseconds).to_string(),
            if self.bytes > 0 { Bytes(self.bytes).to_string() } else { String::new() },
            format!("{:indent$}{}", "", self.title, indent = depth * 2),
        ]));
        self.children.iter().for_each(|child| child.add_lines(depth + 1, lines));
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
        let indent = depth * 2;
        write!(
            f,
            "{:indent$}{}  ({} rows, {} chunks, {}",
            "",
            self.title,
            self.rows,
            self.chunks,
            Duration(self.nanoseconds)
        )?;
        if self.bytes > 0 {
            write!(f, ", {}", Bytes(self.bytes))?;
        }
        write!(f, "; {:.0} expected", self.expected)?;
        let error = self.q_error();
        if error >= 2.0 {
            writeln!(f, ", q-error {error:.1})")?
        } else {
            writeln!(f, ")")?
        }
        for detail in &self.details {
            writeln!(f, "{:indent$}    {detail}", "")?;
        }
        self.children.iter().try_for_each(|child| child.write(f, depth + 1))
    }
}

/// Nanoseconds with a unit that suits them.
struct Duration(u64);

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n < 10_000 => write!(f, "{n} ns"),
            n if n < 10_000_000 => write!(f, "{:.1} us", n as f64 / 1e3),
            n if n < 10_000_000_000 => write!(f, "{:.1} ms", n as f64 / 1e6),
            n => write!(f, "{:.1} s", n as f64 / 1e9),
        }
    }
}

/// Bytes with a unit that suits them.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n < 10 << 10 => write!(f, "{n} B"),
            n if n < 10 << 20 => write!(f, "{} KB", n >> 10),
            n => write!(f, "{} MB", n >> 20),
        }
    }
}

/// Collects what the physical parts of one plan node do.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    title: String,
    /// The number of rows that the optimizer expects.
    expected: f64,
    rows: AtomicU64,
    chunks: AtomicU64,
    nanoseconds: AtomicU64,
    /// A budget from which the operator's parts reserve, to measure and to name them.
    memory: Option<Arc<MemoryBudget>>,
    /// The number of storage blocks that scans considered; and of those that they skipped.
    blocks: AtomicU64,
    skipped_blocks: AtomicU64,
    /// How many rows passed each join filter.
    rates: Mutex<Vec<Arc<PassRate>>>,
    details: Mutex<Vec<String>>,
    children: Mutex<Vec<Arc<Recorder>>>,
}

/// How many rows passed a join filter, for all workers together.
#[derive(Debug, Default)]
pub(crate) struct PassRate {
    /// What the filter is called.
    name: &'static str,
    /// The columns that hold the keys.
    columns: String,
    tested: AtomicU64,
    passed: AtomicU64,
    untested: AtomicU64,
}

impl PassRate {
    /// Adds what one worker counted: rows that were tested, those of them that passed, and rows that were not
    /// tested.
    pub(crate) fn add(&self, [tested, passed, untested]: [u64; 3]) {
        for (to, rows) in [(&self.tested, tested), (&self.passed, passed), (&self.untested, untested)] {
            to.fetch_add(rows, Ordering::Relaxed);
        }
    }
}

impl fmt::Display for PassRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [tested, passed, untested] =
            [&self.tested, &self.passed, &self.untested].map(|rows| rows.load(Ordering::Relaxed));
        let percent = 100.0 * passed as f64 / tested.max(1) as f64;
        let (name, columns) = (self.name, &self.columns);
        write!(f, "{name} on {columns}: {passed} of {tested} rows passed, {percent:.1} %")?;
        if untested > 0 {
            write!(f, "; {untested} more rows were not tested because most passed")?;
        }
        Ok(())
    }
}

impl Recorder {
    /// A recorder of a node that `EXPLAIN` shows as `title`.
    pub(crate) fn new(title: String) -> Arc<Recorder> {
        Arc::new(Recorder { title, ..Recorder::default() })
    }
    /// The same, and it measures the memory that is reserved in its [`Recorder::context`].
    pub(crate) fn measuring(
        title: String,
        owner: &'static str,
        expected: f64,
        context: &QueryContext,
    ) -> Arc<Recorder> {
        let memory = Some(MemoryBudget::part_of(&context.memory, owner));
        Arc::new(Recorder { title, expected, memory, ..Recorder::default() })
    }
    /// A recorder of nothing but the memory, which errors say is that of `owner`.
    pub(crate) fn owning(owner: &'static str, context: &QueryContext) -> Arc<Recorder> {
        Recorder::measuring(String::new(), owner, 0.0, context)
    }
    /// `context` for the physical parts of this node.
    pub(crate) fn context(&self, context: &QueryContext) -> QueryContext {
        let memory = self.memory.as_ref().unwrap_or(&context.memory).clone();
        QueryContext { memory, ..context.clone() }
    }
    /// The title of the node in `EXPLAIN`.
    pub(crate) fn title(&self) -> &str {
        &self.title
    }
    /// Adds the recorder of an input.
    pub(crate) fn add_child(&self, child: &Arc<Recorder>) {
        lock(&self.children).push(child.clone());
    }
    /// Adds rows and chunks to the output.
    pub(crate) fn add_output(&self, rows: u64, chunks: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.chunks.fetch_add(chunks, Ordering::Relaxed);
    }
    /// Adds time spent in this operator alone.
    pub(crate) fn add_time(&self, nanoseconds: u64) {
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }
    /// Adds blocks that a scan considered, and how many of them it skipped by their bounds.
    pub(crate) fn add_blocks(&self, blocks: u64, skipped: u64) {
        self.blocks.fetch_add(blocks, Ordering::Relaxed);
        self.skipped_blocks.fetch_add(skipped, Ordering::Relaxed);
    }
    /// Counts rows at a filter called `name` on `columns`.
    pub(crate) fn pass_rate(&self, name: &'static str, columns: impl Into<String>) -> Arc<PassRate> {
        let rate = Arc::new(PassRate { name, columns: columns.into(), ..PassRate::default() });
        lock(&self.rates).push(rate.clone());
        rate
    }
    /// Notes a decision and its reason.
    pub(crate) fn note(&self, detail: impl Into<String>) {
        lock(&self.details).push(detail.into());
    }
    /// What has been recorded so far.
    pub(crate) fn report(&self) -> ProfileNode {
        let mut details = lock(&self.details).clone();
        let (blocks, skipped) =
            (self.blocks.load(Ordering::Relaxed), self.skipped_blocks.load(Ordering::Relaxed));
        if skipped > 0 {
            details.push(format!("{skipped} of {blocks} blocks skipped by their bounds"));
        }
        let rates = lock(&self.rates);
        details.extend(
            rates.iter().filter(|rate| rate.tested.load(Ordering::Relaxed) > 0).map(ToString::to_string),
        );
        ProfileNode {
            title: self.title.clone(),
            rows: self.rows.load(Ordering::Relaxed),
            expected: self.expected,
            chunks: self.chunks.load(Ordering::Relaxed),
            nanoseconds: self.nanoseconds.load(Ordering::Relaxed),
            bytes: self.memory.as_ref().map_or(0, |memory| memory.peak() as u64),
            details,
            children: lock(&self.children).iter().map(|child| child.report()).collect(),
        }
    }
}
