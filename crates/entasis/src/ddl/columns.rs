//! Columns that are added and dropped without reading rows.
//!
//! The new rows of a changed table are a query over the old ones. If each of its columns is either a column
//! of the old table or a value that depends on no row, the new table shows the same blocks, and has a
//! constant for each slice of a column of one value ([`entasis_storage::TableSnapshot::with_columns`]). Rows
//! keep their places and numbers, so the indexes stay, too.
//!
//! All other changes, such as a volatile default, another type or another layout key, are left to
//! [`super::alter::rebuilt`], which runs the query; so are those of a table whose rows the transaction has
//! changed before.

use super::entry::options_of;
use crate::dml::insert;
use crate::query::query;
use crate::session::Session;
use crate::transaction::TransactionContext;
use entasis_engine::plan::{Node, Output, Plan, Project, Scan, Values};
use entasis_engine::relation::Definition;
use entasis_storage::index::index_table;
use entasis_storage::{ColumnSource, TableEntry};
use entasis_vector::expr::Expr;
use entasis_vector::{ColumnId, Result, Schema};
use std::collections::HashMap;
use std::sync::Arc;

/// The table with other columns and another definition, and with the rows of the query `rows`; `None` if that
/// has to be run.
pub(super) fn changed(
    session: &Session,
    transaction: &mut TransactionContext,
    entry: &Arc<TableEntry>,
    (columns, definition): (&Schema, &Definition),
    rows: &Plan,
) -> Result<Option<Arc<TableEntry>>> {
    let snapshot = transaction.snapshot(&entry.table);
    // A default that fails must not fail for a table without rows.
    if snapshot.rows() == 0 {
        return Ok(None);
    }
    let Some(sources) = sources(session, rows, columns)? else { return Ok(None) };
    let place = |column: usize| match sources[column] {
        ColumnSource::Old(old) => Some(old),
        ColumnSource::Constant(_) => None,
    };
    let are_same = |new: &[usize], old: &[usize]| {
        new.len() == old.len() && new.iter().zip(old).all(|(new, old)| place(*new) == Some(*old))
    };
    let (options, old) = (options_of(definition, columns)?, entry.table.options());
    if options.layout != old.layout
        || options.curve != old.curve
        || !are_same(&options.layout_key, &old.layout_key)
        || (options.unique, options.distinct) != (old.unique, old.distinct)
    {
        return Ok(None);
    }
    let Some(table) = snapshot.with_columns(columns.clone(), &sources, options) else { return Ok(None) };
    let mut added = Vec::new();
    let indexes = definition.keys.iter().enumerate().map(|(number, key)| {
        let is_it = |old: &entasis_storage::definition::Key| {
            old.name == key.name && old.kind == key.kind && are_same(&key.columns, &old.columns)
        };
        match entry.definition.keys.iter().position(is_it) {
            Some(old) => entry.indexes[old].clone(),
            None => {
                added.push(number);
                index_table(key, table.schema(), table.options())
            }
        }
    });
    let indexes = indexes.collect();
    let new = Arc::new(TableEntry {
        name: entry.name.clone(),
        table: table.clone(),
        definition: Arc::new(definition.clone()),
        indexes,
    });
    insert::fill_indexes(session, &new, table.snapshot(), &added)?;
    Ok(Some(new))
}

/// Where the columns of a query over a table come from, which have the types of `columns`; `None` if the
/// values of one depend on the rows.
fn sources(session: &Session, plan: &Plan, columns: &Schema) -> Result<Option<Vec<ColumnSource>>> {
    let mut computed: HashMap<ColumnId, &Expr> = HashMap::new();
    let mut node = &plan.root;
    while let Node::Project(Project { input, exprs }) = node {
        computed.extend(exprs.iter().map(|(id, expr)| (*id, expr)));
        node = input;
    }
    let Node::Scan(Scan { columns: scanned, filters, .. }) = node else { return Ok(None) };
    if !filters.is_empty() || plan.output.len() != columns.len() {
        return Ok(None);
    }
    let mut sources: Vec<Option<usize>> = Vec::with_capacity(columns.len());
    let mut constants: Vec<(ColumnId, Expr)> = Vec::new();
    let mut outputs: Vec<Output> = Vec::new();
    for (output, field) in plan.output.iter().zip(columns) {
        let expr = resolved(plan.columns.expr(output.column), &computed);
        let mut reads = Vec::new();
        expr.collect_columns(&mut reads);
        match expr {
            _ if plan.columns.ty(output.column) != field.ty => return Ok(None),
            Expr::Column { id, .. } => match scanned.iter().find(|(own, _)| *own == id) {
                Some((_, column)) => sources.push(Some(*column)),
                None => return Ok(None),
            },
            expr if reads.is_empty() && !expr.is_volatile() && !field.ty.is_nested() => {
                sources.push(None);
                outputs.push(output.clone());
                if !constants.iter().any(|(id, _)| *id == output.column) {
                    constants.push((output.column, expr));
                }
            }
            _ => return Ok(None),
        }
    }
    let mut values = Vec::new().into_iter();
    if !constants.is_empty() {
        let one_row = Node::Values(Values { columns: Vec::new(), rows: vec![Vec::new()] });
        let root = Node::Project(Project { input: Box::new(one_row), exprs: constants });
        let rows = query(session, Plan { root, columns: plan.columns.clone(), output: outputs })?;
        values = rows.row_values().next().unwrap_or_default().into_iter();
    }
    let sources = sources.into_iter().map(|source| match source {
        Some(column) => Some(ColumnSource::Old(column)),
        None => values.next().map(ColumnSource::Constant),
    });
    Ok(sources.collect())
}

/// The expression over columns of the table.
fn resolved(expr: Expr, computed: &HashMap<ColumnId, &Expr>) -> Expr {
    expr.transform(&mut |part| match &part {
        Expr::Column { id, .. } => match computed.get(id) {
            Some(expr) => resolved((*expr).clone(), computed),
            None => part,
        },
        _ => part,
    })
}

#[cfg(test)]
mod tests {
    use crate::{Config, Connection, Database};
    use entasis_storage::{RowId, Table};
    use std::sync::Arc;

    fn table(database: &Database) -> Arc<Table> {
        database.names().table("t").expect("the table exists").table.clone()
    }

    /// The places of the rows of table `t`.
    fn places(database: &Database) -> Vec<RowId> {
        table(database).snapshot().row_ids().collect()
    }

    /// A table `t` of two columns, and so many rows.
    fn database(rows: usize) -> (Database, Connection) {
        let database = Database::in_memory(Config::default()).unwrap();
        let connection = database.connect();
        connection.execute("CREATE TABLE t (a INTEGER, b INTEGER)").unwrap();
        let insert = format!("INSERT INTO t SELECT i * 7919 % 100003, i FROM range({rows}) r(i)");
        connection.execute(&insert).unwrap();
        (database, connection)
    }

    /// Bytes of the tables, and of older versions of them.
    fn held(database: &Database) -> (usize, usize) {
        let table = table(database);
        table.sweep();
        table.held_bytes()
    }

    #[test]
    fn columns_that_stay_take_no_memory_again() {
        let (database, connection) = database(200_000);
        let (before, _) = held(&database);
        connection.execute("BEGIN").unwrap();
        connection.execute("ALTER TABLE t ADD COLUMN n INTEGER DEFAULT 7").unwrap();
        connection.execute("ALTER TABLE t DROP COLUMN a").unwrap();
        connection.execute("COMMIT").unwrap();
        let (after, older) = held(&database);
        assert!(after < before && older < before, "{before}, {after} and {older} bytes");
        connection.execute("ALTER TABLE t ADD COLUMN m VARCHAR").unwrap();
        assert!(held(&database).0 - after < 200 * 1000, "constants, slices and row groups");
    }

    #[test]
    fn rows_that_the_transaction_has_changed_are_in_the_new_table() {
        for (before, after) in [(true, false), (false, true), (true, true), (false, false)] {
            for ends in ["COMMIT", "ROLLBACK"] {
                let (database, connection) = database(3000);
                let other = database.connect();
                let change = |is_done: bool| {
                    if is_done {
                        connection.execute("DELETE FROM t WHERE b % 10 = 0").unwrap();
                        connection.execute("UPDATE t SET b = b + 10000 WHERE b % 10 = 1").unwrap();
                    }
                };
                connection.execute("BEGIN").unwrap();
                change(before);
                connection.execute("SAVEPOINT s").unwrap();
                connection.execute("ALTER TABLE t DROP COLUMN b").unwrap();
                connection.execute("ROLLBACK TO s").unwrap();
                connection.execute("ALTER TABLE t ADD COLUMN n INTEGER DEFAULT 7").unwrap();
                change(after);
                connection.execute(ends).unwrap();
                connection.execute("CREATE TABLE twin AS SELECT i AS b FROM range(3000) r(i)").unwrap();
                let is_kept = ends == "COMMIT";
                for _ in [before, after].into_iter().filter(|is_done| *is_done && is_kept) {
                    connection.execute("DELETE FROM twin WHERE b % 10 = 0").unwrap();
                    connection.execute("UPDATE twin SET b = b + 10000 WHERE b % 10 = 1").unwrap();
                }
                for (a, b) in [("t", "twin"), ("twin", "t")] {
                    let query = format!("SELECT b FROM {a} EXCEPT ALL SELECT b FROM {b}");
                    assert_eq!(
                        other.execute(&query).unwrap().row_values().count(),
                        0,
                        "{before} {after} {ends}"
                    );
                }
                assert_eq!(other.execute("SELECT n FROM t").is_ok(), is_kept);
            }
        }
    }

    #[test]
    fn rows_stay_where_they_are() {
        for (columns, stay) in [
            ("ADD COLUMN n INTEGER", true),
            ("ADD COLUMN n VARCHAR DEFAULT upper('text')", true),
            ("ADD COLUMN n TIMESTAMP DEFAULT now()", true),
            ("DROP COLUMN a", true),
            ("ADD COLUMN n DOUBLE DEFAULT random()", false),
            ("ALTER COLUMN a TYPE VARCHAR", false),
        ] {
            let database = Database::in_memory(Config::default()).unwrap();
            let connection = database.connect();
            connection.execute("CREATE TABLE t (a INTEGER, b INTEGER)").unwrap();
            connection.execute("INSERT INTO t SELECT i, i FROM range(5000) r(i)").unwrap();
            // A few gaps, which a table that is written again does not have.
            connection.execute("DELETE FROM t WHERE b % 100 = 0").unwrap();
            let before = places(&database);
            connection.execute(&format!("ALTER TABLE t {columns}")).unwrap();
            assert_eq!(places(&database) == before, stay, "{columns}");
        }
    }
}
