//! The state that all sessions of a run share: a clock, numbers, and the progress of each.

use super::history::{Span, TableId};
use super::tables::{CHILD, PARENT, TABLES};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

/// A session that waits this long, while no other makes progress, hangs.
const HANGS: Duration = Duration::from_secs(30);
/// Number of statements that are kept for reports.
const RECENT: usize = 60;
/// How often a session yields to others, which may have nothing to do.
const YIELDS: usize = 100;

/// The statement that a session runs, and its last ones, with the times of calls.
#[derive(Default)]
struct Current {
    sql: String,
    recent: VecDeque<(Span, String)>,
}

/// The kind of statement that is more frequent in a window than in others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Theme {
    Mixed,
    References,
    Definitions,
    Bulk,
}

/// See the module.
pub(crate) struct Common {
    seed: u64,
    /// Names of statements that are excluded.
    without: Vec<String>,
    ticks: AtomicU64,
    numbers: AtomicU64,
    /// Transactions that are still to begin in this window.
    pub(crate) left: AtomicI64,
    /// Number of the window.
    pub(crate) window: AtomicUsize,
    /// True once a session has found a violation.
    pub(crate) stop: AtomicBool,
    /// True while statements run.
    pub(crate) is_running: AtomicBool,
    /// True when the run is over.
    pub(crate) is_over: AtomicBool,
    /// Number of statements that have ended.
    pub(crate) statements: AtomicU64,
    /// Held by the running statement, if statements must not overlap.
    one_at_a_time: Mutex<()>,
    /// By session.
    current: Vec<Mutex<Current>>,
}

impl Common {
    /// The state for this many sessions, numbered from 0; the last number is that of the leader of the run.
    pub(crate) fn new(seed: u64, sessions: usize, without: &[String]) -> Common {
        Common {
            seed,
            without: without.to_vec(),
            ticks: AtomicU64::new(1),
            numbers: AtomicU64::new(1_000_000),
            left: AtomicI64::new(0),
            window: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            is_running: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            statements: AtomicU64::new(0),
            one_at_a_time: Mutex::new(()),
            current: (0..=sessions).map(|_| Mutex::default()).collect(),
        }
    }

    /// False if statements of this name are excluded.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.without.iter().all(|other| other != name)
    }

    /// The theme of this window.
    pub(crate) fn theme(&self) -> Theme {
        let themes = [Theme::Mixed, Theme::References, Theme::Definitions, Theme::Bulk];
        themes[self.window.load(Ordering::Relaxed) % themes.len()]
    }

    /// Two tables that are busy in this window.
    pub(crate) fn hot(&self) -> [TableId; 2] {
        let (window, tables) = (self.window.load(Ordering::Relaxed), TABLES.len());
        if self.theme() == Theme::References {
            return [PARENT, CHILD];
        }
        let one = window % tables;
        [one, (one + 1 + window / tables % (tables - 1)) % tables]
    }

    /// A number that all sessions use for a while.
    pub(crate) fn hot_number(&self) -> i64 {
        (self.statements.load(Ordering::Relaxed) / 64) as i64
    }

    /// Waits until others have run some statements, if they do.
    pub(crate) fn linger(&self, statements: u64) {
        let until = self.statements.load(Ordering::Relaxed) + statements;
        for _ in 0..YIELDS {
            if self.statements.load(Ordering::Relaxed) >= until {
                break;
            }
            thread::yield_now();
        }
    }

    /// The next tick of the clock.
    pub(crate) fn tick(&self) -> u64 {
        self.ticks.fetch_add(1, Ordering::SeqCst)
    }

    /// Draws numbers that are unique.
    pub(crate) fn draw(&self, count: u64) -> Range<u64> {
        let first = self.numbers.fetch_add(count, Ordering::Relaxed);
        first..first + count
    }

    /// Keeps out statements of others while it is held, if none may overlap.
    pub(crate) fn alone(&self) -> Option<MutexGuard<'_, ()>> {
        (!self.has("overlap")).then(|| self.one_at_a_time.lock().expect("no panic while locked"))
    }

    /// Called when a session begins a statement.
    pub(crate) fn enter(&self, session: usize, sql: &str) {
        sql.clone_into(&mut self.current[session].lock().expect("no panic while locked").sql);
    }

    /// Called when its statement has ended, with this outcome.
    pub(crate) fn leave(&self, session: usize, span: Span, outcome: &str) {
        let mut current = self.current[session].lock().expect("no panic while locked");
        let line = format!("session {session}: {} -- {outcome}", std::mem::take(&mut current.sql));
        current.recent.push_back((span, line));
        if current.recent.len() > RECENT {
            current.recent.pop_front();
        }
        drop(current);
        self.statements.fetch_add(1, Ordering::Relaxed);
    }

    /// The last statements that have ended, in the order of their calls.
    pub(crate) fn recent(&self) -> Vec<String> {
        let lock = |current: &Mutex<Current>| current.lock().expect("no panic while locked").recent.clone();
        let mut recent: Vec<(Span, String)> = self.current.iter().flat_map(lock).collect();
        recent.sort_unstable_by_key(|(span, _)| span.start);
        let last = recent.split_off(recent.len().saturating_sub(RECENT));
        last.into_iter().map(|(Span { start, end }, line)| format!("{start}–{end} {line}")).collect()
    }

    /// Ends the process if statements are running and none ends for half a minute: a hanging thread cannot be
    /// ended otherwise.
    pub(crate) fn watch(&self) {
        let (mut seen, mut since) = (0, Instant::now());
        while !self.is_over.load(Ordering::Relaxed) {
            thread::park_timeout(Duration::from_millis(200));
            let now = self.statements.load(Ordering::Relaxed);
            if now != seen || !self.is_running.load(Ordering::Relaxed) {
                (seen, since) = (now, Instant::now());
            } else if since.elapsed() >= HANGS {
                eprintln!(
                    "the database hangs (seed {}): no statement has ended for {} s",
                    self.seed,
                    HANGS.as_secs()
                );
                for (session, current) in self.current.iter().enumerate() {
                    let sql = &current.lock().expect("no panic while locked").sql;
                    if !sql.is_empty() {
                        eprintln!("  session {session} waits in: {sql}");
                    }
                }
                std::process::abort();
            }
        }
    }
}
