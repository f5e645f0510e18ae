//! The thread that does upkeep of tables while they are measured, as a database does: for 20 ms at a time,
//! and with 100 ms of rest after a round.

use entasis_storage::Table;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a round keeps at it.
const BUDGET: Duration = Duration::from_millis(20);
/// How long a database rests after a round.
pub const REST: Duration = Duration::from_millis(100);

/// The thread. It ends when this is dropped.
pub struct Keeper {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Keeps up some tables, and rests for so long between rounds.
    pub fn of(tables: Vec<Arc<Table>>, rest: Duration) -> Keeper {
        let is_over = Arc::new(AtomicBool::new(false));
        let seen = is_over.clone();
        let thread = std::thread::spawn(move || {
            while !seen.load(Ordering::Relaxed) {
                for table in &tables {
                    table.upkeep(BUDGET);
                }
                std::thread::park_timeout(rest);
            }
        });
        Keeper { is_over, thread: Some(thread) }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            thread.join().expect("upkeep does not panic");
        }
    }
}
