//! `SET upkeep`: whether upkeep of tables runs in the background, or after every statement of a connection.
//!
//! The background thread (`crate::state`) encodes what was written about a second after the last write, so a
//! test that writes and reads immediately never sees an idle table. With `always`, the connection does after
//! each of its statements what the thread would do later: as many rounds for every table and its indexes as
//! it takes until nothing is hot or left to do. Results must be the same.
//!
//! What others hold is left to them: a table with a long-running writer, and rows that must not move while
//! others read them.

use crate::session::Session;
use entasis_storage::Table;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

/// The longest that a round may take.
const BUDGET: Duration = Duration::from_secs(60);
/// Rounds after which a table is left alone, because another connection goes on writing to it: more than the
/// longest that a row group waits until it is encoded for reading.
const ROUNDS: usize = 1000;

/// The values of the setting, and whether each does upkeep after every statement.
pub(crate) const NAMES: [(bool, &str); 2] = [(false, "auto"), (true, "always")];

/// Called at the end of a statement: does upkeep of all tables, if the connection's setting says so.
pub(crate) fn after_statement(session: &Session) {
    // PERF: a keyed statement takes half a microsecond.
    if !session.rests.load(Ordering::Relaxed) {
        return;
    }
    for database in session.databases() {
        let names = database.shared.catalog.version();
        let tables = names
            .tables()
            .flat_map(|entry| std::iter::once(&entry.table).chain(entry.indexes.iter().flatten()));
        tables.for_each(rest);
    }
}

/// Does upkeep until there is nothing left to do.
fn rest(table: &Arc<Table>) {
    for _ in 0..ROUNDS {
        let did = table.upkeep(BUDGET);
        if did.is_done && did.warm + did.spread + did.encoded + did.overtaken == 0 {
            break;
        }
        if !did.is_done {
            // The background thread is at work on it.
            thread::sleep(Duration::from_millis(1));
        }
    }
}
