//! The thread that does upkeep of tables while they are measured, as a database does: for 20 ms at a time,
//! and with 100 ms of rest after a round.

use entasis_storage::{Table, Upkeep};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
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

    /// Adds what else was done.
    pub fn add(&mut self, other: Kept) {
        self.spread += other.spread;
        self.encoded += other.encoded;
        self.seconds += other.seconds;
    }

    /// What was done since an earlier moment.
    pub fn since(self, before: Kept) -> Kept {
        Kept {
            spread: self.spread - before.spread,
            encoded: self.encoded - before.encoded,
            seconds: self.seconds - before.seconds,
        }
    }
}

/// The thread. It ends when this is dropped.
pub struct Keeper {
    is_over: Arc<AtomicBool>,
    kept: Arc<Mutex<Kept>>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Keeps up some tables, and rests for so long between rounds.
    pub fn of(tables: Vec<Arc<Table>>, rest: Duration) -> Keeper {
        let (is_over, kept) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Kept::default())));
        let (seen, all) = (is_over.clone(), kept.clone());
        let thread = std::thread::spawn(move || {
            let mut kept = Kept::default();
            while !seen.load(Ordering::Relaxed) {
                for table in &tables {
                    kept.round(table);
                }
                *all.lock().unwrap_or_else(PoisonError::into_inner) = kept;
                std::thread::park_timeout(rest);
            }
        });
        Keeper { is_over, kept, thread: Some(thread) }
    }

    /// What was done so far, by whole rounds.
    pub fn so_far(&self) -> Kept {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends, and says what was done.
    pub fn end(mut self) -> Kept {
        self.join();
        self.so_far()
    }

    fn join(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            thread.join().expect("upkeep does not panic");
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.join();
    }
}
