//! `VACUUM`: does at once what upkeep does over time, and truncates the file to the size that it needs.
//!
//! 1. For each table and its indexes: older versions that nobody sees any more are freed; rows that are far
//!    apart are moved together, and what was written is encoded again
//!    ([`Table::upkeep`](entasis_storage::Table::upkeep)).
//! 2. For a database in a file: a checkpoint writes what has changed by that, and further ones move what
//!    remains to the front of the file.
//!
//! Other statements go on meanwhile. What they write or still see is left as it is.

use crate::session::Session;
use crate::state::all_tables;
use crate::state::interrupt::Interrupt;
use crate::transaction::TransactionContext;
use crate::values::rows::Rows;
use entasis_storage::Table;
use entasis_vector::{Error, Result};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Time between two checks for an interrupt.
const STEP: Duration = Duration::from_millis(50);
/// How long to wait for writers of a table.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long each wait for another thread's upkeep lasts.
const PAUSE: Duration = Duration::from_millis(1);

/// Cleans up one table, or all.
pub(super) fn vacuum(
    session: &Session,
    transaction: &TransactionContext,
    table: Option<&str>,
) -> Result<Rows> {
    if transaction.is_transaction() {
        let error =
            Error::input("VACUUM cannot run in a transaction, which still needs the rows to be freed");
        return Err(error.with_hint("end it first: COMMIT or ROLLBACK"));
    }
    let shared = &session.shared;
    shared.refuse_if_read_only()?;
    let tables: Vec<Arc<Table>> = match table {
        Some(name) => transaction.names.table(name).into_iter().flat_map(|entry| all_tables(entry)).collect(),
        None => shared.catalog.version().tables().flat_map(|entry| all_tables(entry)).collect(),
    };
    let interrupt = Interrupt::by(session.cancel.clone());
    for (number, table) in tables.iter().enumerate() {
        session.progress().set(number as f64 / tables.len() as f64);
        settle(table, &interrupt)?;
    }
    shared.charge_tables()?;
    shared.compact()?;
    Ok(Rows::empty())
}

/// Does the upkeep of a table, as far as concurrent readers and writers allow.
fn settle(table: &Arc<Table>, interrupt: &Interrupt) -> Result<()> {
    let end = Instant::now() + PATIENCE;
    loop {
        interrupt.look()?;
        table.free_old();
        let did = table.upkeep(STEP);
        if (did.is_done && did.warm == 0 && did.overtaken == 0) || Instant::now() >= end {
            break;
        }
        if did.spread + did.encoded == 0 {
            thread::sleep(PAUSE);
        }
    }
    table.free_old();
    Ok(())
}
