//! Tables that follow their workload ([`crate::state::workload_stats`]) are laid anew when that pays.
//!
//! Upkeep asks each time that scans have cost enough ([`follow`]); what pays is decided in
//! [`crate::layouts`]. The table is laid anew as by `ALTER TABLE t SET (layout_key = …, layout_curve = …)`,
//! and the standings of its layouts go to the table that comes of it.
//!
//! A table to which somebody writes at the moment is left alone, and one that has changed meanwhile is judged
//! again later: nobody's statement waits or fails because of it, but for a transaction that begins to write
//! in the moment of the commit, which fails as with any other change of the table. Tables that do not ask for
//! it never change their order.

use crate::ddl::lay_anew;
use crate::layouts::{Looked, better_key};
use crate::session::Session;
use crate::state::Shared;
use crate::state::interrupt::Interrupt;
use crate::state::workload_stats::{LaidBy, Record};
use crate::transaction::TransactionContext;
use entasis_storage::TableEntry;
use entasis_vector::Result;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Called at the end of a statement: has the tables judged if something was asked often enough, by upkeep, or
/// at once with `SET upkeep = 'always'`.
pub(crate) fn after_statement(session: &Session) {
    // PERF: a keyed statement takes half a microsecond.
    let shared = &session.shared;
    if !shared.records.are_due() {
        return;
    }
    match session.rests.load(Ordering::Relaxed) {
        true => follow(shared),
        false => shared.wake_upkeep(),
    }
}

/// Judges the tables of a database that follow their workload and were asked often enough, and lays them
/// anew. What fails is judged again later.
pub(crate) fn follow(shared: &Arc<Shared>) {
    shared.records.look();
    let names = shared.catalog.version();
    for entry in names.tables() {
        if let Some(record) = shared.record_of(entry)
            && record.writers() == 0
            && record.is_due()
        {
            let _ = judge(shared, entry, &record);
        }
    }
}

/// Lays a table anew if that is worth it.
fn judge(shared: &Arc<Shared>, entry: &Arc<TableEntry>, record: &Arc<Record>) -> Result<()> {
    let session = Session::new(shared.clone());
    let mut transaction = TransactionContext::of_reading(&session);
    if transaction.names.table(&entry.name).is_none_or(|now| !Arc::ptr_eq(now, entry)) {
        return Ok(());
    }
    transaction.pin(entry);
    let snapshot = transaction.snapshot(&entry.table);
    let looked = Looked {
        name: &entry.name,
        snapshot: &snapshot,
        definition: entry.definition.clone(),
        costs: shared.costs(),
        record: Some(record.clone()),
        interrupt: Interrupt::by(session.cancel.clone()),
    };
    let Some(LaidBy { key, curve }) = better_key(&looked, record)? else { return Ok(()) };
    lay_anew(&session, &mut transaction, entry, ((!key.is_empty()).then_some(key), curve))?;
    // This transaction is one that writes to the table.
    if record.writers() > 1 {
        return Ok(());
    }
    session.waiting(None, |waiter| transaction.commit(waiter))?;
    let new = shared.catalog.version().table(&entry.name).and_then(|entry| shared.record_of(entry));
    new.iter().for_each(|new| new.succeed(record));
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::{Config, Connection, DataType, Database, Value};

    const ROWS: usize = 20_000;

    fn table(connection: &Connection, name: &str, options: &str) {
        for sql in [
            format!("CREATE TABLE {name} (at BIGINT, device INTEGER, x VARCHAR) {options}"),
            format!("INSERT INTO {name} SELECT i, i * 7919 % 1000, 'x' || i FROM range({ROWS}) r(i)"),
        ] {
            connection.execute(&sql).expect(&sql);
        }
    }

    fn text(connection: &Connection, sql: &str) -> Vec<String> {
        let rows = connection.execute(sql).expect(sql);
        let shown = |value: &Value| match value {
            Value::Text(text) => format!("{text} "),
            Value::Integer(number) => format!("{number} "),
            other => format!("{other:?} "),
        };
        rows.row_values().map(|row| row.iter().map(shown).collect()).collect()
    }

    fn layout(connection: &Connection, name: &str) -> String {
        let sql = format!("SELECT layout, layout_key FROM entasis_tables() WHERE table_name = '{name}'");
        text(connection, &sql).concat().trim_end().to_owned()
    }

    fn ask(connection: &Connection, name: &str, column: &str, times: usize) {
        let sql = format!("SELECT count(x) FROM {name} WHERE {column} = ?");
        for i in 0..times {
            connection.query(&sql, &[(Value::Integer(i as i128 % 1000), DataType::Int64)]).expect("a count");
        }
    }

    /// Asks until the table is laid so.
    fn ask_until(connection: &Connection, name: &str, column: &str, laid: &str) {
        let mut asked = 0;
        while layout(connection, name) != laid {
            assert!(asked < 100_000, "{name} is not {laid}");
            ask(connection, name, column, 500);
            asked += 500;
        }
    }

    #[test]
    fn a_table_is_laid_by_what_it_is_asked_for() {
        let connection = Database::in_memory(Config::default()).expect("a database").connect();
        connection.execute("SET upkeep = 'always'").expect("a setting");
        table(&connection, "follows", "WITH (layout = 'auto')");
        table(&connection, "stays", "");
        connection.execute("CREATE INDEX follows_x ON follows (x)").expect("an index");
        let content = "SELECT * FROM follows ORDER BY at";
        let before = text(&connection, content);
        for name in ["follows", "stays"] {
            ask(&connection, name, "device", 40);
            assert_eq!(layout(&connection, name), "insertion Null", "{name}: it does not pay yet");
        }
        let page = text(&connection, "EXPLAIN LAYOUT follows").concat();
        // Sixteen were judged before.
        assert!(page.contains("24 scans with conditions were recorded"), "{page}");
        assert!(page.contains("(device) would suit this workload better than insertion order"), "{page}");
        assert!(page.contains("'auto' lays the table anew, which takes about"), "{page}");
        // Whoever writes is waited for.
        let writer = connection.database().connect();
        writer.execute("BEGIN; INSERT INTO follows VALUES (-1, 7, 'new')").expect("a row");
        for name in ["follows", "stays"] {
            ask(&connection, name, "device", 10_000);
            assert_eq!(layout(&connection, name), "insertion Null");
        }
        writer.execute("ROLLBACK").expect("an end");
        ask_until(&connection, "follows", "device", "equi_ghost (device)");
        assert_eq!(text(&connection, content), before);
        assert_eq!(text(&connection, "SELECT at FROM follows WHERE x = 'x77'"), ["77 "]);
        let why = "SELECT why FROM entasis_tables() WHERE table_name = 'follows'";
        assert_eq!(text(&connection, why), ["chosen by 'auto', by the workload "]);
        // The workload turns away, and back.
        ask_until(&connection, "follows", "at", "equi_ghost (at)");
        ask_until(&connection, "follows", "device", "equi_ghost (device)");
        assert_eq!(text(&connection, content), before);
        ask(&connection, "stays", "device", 10_000);
        assert_eq!(layout(&connection, "stays"), "insertion Null", "it did not ask for it");
    }

    #[test]
    fn rows_that_zone_maps_find_are_not_moved() {
        let connection = Database::in_memory(Config::default()).expect("a database").connect();
        connection.execute("SET upkeep = 'always'").expect("a setting");
        table(&connection, "log", "WITH (layout = 'auto')");
        ask(&connection, "log", "at", 10_000);
        assert_eq!(layout(&connection, "log"), "insertion Null");
        let why = "SELECT why FROM entasis_tables() WHERE table_name = 'log'";
        assert_eq!(text(&connection, why), ["chosen by 'auto': no key suits the workload better by now "]);
    }
}
