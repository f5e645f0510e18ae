//! The thread that does upkeep of tables while they are measured, as a database does: for 20 ms at a time,
//! and with 100 ms of rest after a round.

use entasis_storage::{Table, Upkeep};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a round keeps at it.
const BUDGET: Duration = Duration::from_millis(20);
/// How long a database rests after a round.
pub const REST: Duration = Duration::from_millis(100);

/// What upkeep has done.
#[derive(Debug, Clone, Copy, Default)]
pub struct Kept {
    /// Slices that were laid anew.
    pub spread: usize,
    /// Slices that were encoded again.
    pub encoded: usize,
    /// Time that it took, the writers beside it included.
    pub seconds: f64,
}

impl Kept {
    /// A round of upkeep.
    pub fn round(&mut self, table: &Arc<Table>) -> Upkeep {
        let start = Instant::now();
        let done = table.upkeep(BUDGET);
        self.seconds += start.elapsed().as_secs_f64();
        self.spread += done.spread;
        self.encoded += done.encoded;
        done
    }
}

/// The thread. It ends when this is dropped.
pub struct Keeper {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Kept>>,
}

impl Keeper {
    /// Keeps up some tables, and rests for so long between rounds.
    pub fn of(tables: Vec<Arc<Table>>, rest: Duration) -> Keeper {
        let is_over = Arc::new(AtomicBool::new(false));
        let seen = is_over.clone();
        let thread = std::thread::spawn(move || {
            let mut kept = Kept::default();
            while !seen.load(Ordering::Relaxed) {
                for table in &tables {
                    kept.round(table);
                }
                std::thread::park_timeout(rest);
            }
            kept
        });
        Keeper { is_over, thread: Some(thread) }
    }

    /// Ends, and says what was done.
    pub fn end(mut self) -> Kept {
        self.join()
    }

    fn join(&mut self) -> Kept {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.take().map_or_else(Kept::default, |thread| {
            thread.thread().unpark();
            thread.join().expect("upkeep does not panic")
        })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.join();
    }
}
