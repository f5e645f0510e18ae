//! `PRAGMA integrity_check`: checks everything, and returns a row for each violation.
//!
//! | what | how it is checked |
//! |---|---|
//! | the tree of each table and index: counts, ranges, fences, zones | [`TableSnapshot::flaws_of_group`] |
//! | NOT NULL | the same |
//! | PRIMARY KEY, UNIQUE | neighbouring rows have different keys, in the table or index ordered by the key |
//! | each index has exactly the rows of its table | sums of hashes of the rows; if they differ, row by row |
//! | CHECK, FOREIGN KEY | queries for rows that violate them |
//! | the file: checksums, and the use of each page | [`entasis_storage::file::DataFile::damage`] |
//!
//! Keys are not checked by queries, as the optimizer relies on declared keys. It relies on foreign keys as
//! well, but not where rows without a partner are asked for, as the query for these does. If the tree of a
//! table has a flaw, its rows are not checked.
//!
//! All tables are seen as of one moment. The check blocks no other connection, and can be interrupted. Like
//! the rows themselves, a CHECK that depends on the time zone is judged by that of the session.

use super::script::{columns, object};
use crate::binding::Names;
use crate::constraints::values::shown;
use crate::query::query;
use crate::session::Session;
use crate::state::interrupt::Interrupt;
use crate::transaction::TransactionContext;
use crate::values::rows::Rows;
use entasis_engine::relation::{ForeignKey, Key, KeyKind};
use entasis_sql::{Statement, quoted};
use entasis_storage::index::{ROW_NUMBER, index_columns, index_type};
use entasis_storage::{Datum, RowId, TableEntry, TableSnapshot, is_temporary};
use entasis_vector::{DataType, Error, ErrorKind, Result, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// The most rows reported that are only in a table or only in its index.
const MOST: usize = 10;

/// Checks one table, or all tables and the file.
pub(super) fn check(
    session: &Session,
    transaction: &mut TransactionContext,
    table: Option<&str>,
) -> Result<Rows> {
    transaction.see_all(session);
    let mut check = Check { interrupt: Interrupt::by(session.cancel.clone()), found: Vec::new() };
    match table {
        Some(name) => {
            let entry = transaction.names.table(name).cloned();
            let entry = entry.ok_or_else(|| Error::input(format!("there is no table {name}")))?;
            match is_temporary(name) {
                true => check.table(session, transaction, &entry)?,
                false => {
                    let plain = session.plain_in_zone();
                    transaction.seen_by(&plain, |transaction| check.table(&plain, transaction, &entry))?;
                }
            }
        }
        None => {
            let plain = session.plain_in_zone();
            transaction.seen_by(&plain, |transaction| {
                let tables: Vec<_> =
                    transaction.names.tables().filter(|entry| !is_temporary(&entry.name)).cloned().collect();
                tables.iter().try_for_each(|entry| check.table(&plain, transaction, entry))
            })?;
            let (interrupt, progress) = (Interrupt::by(session.cancel.clone()), session.progress());
            let damage = session.shared.damage(&mut |share| {
                progress.set(share);
                interrupt.look()
            })?;
            for damage in damage {
                check.found.push([
                    Some(damage.what),
                    None,
                    Some(format!("byte {} of the file", damage.offset)),
                ]);
            }
        }
    }
    if check.found.is_empty() {
        check.found.push([Some("ok".to_owned()), None, None]);
    }
    let value = |text: Option<String>| text.map_or(Value::Null, |text| Value::Text(text.into()));
    let rows: Vec<Vec<Value>> = check.found.into_iter().map(|row| row.map(value).into()).collect();
    Rows::from_values(&COLUMNS, &rows)
}

/// The columns of the result.
pub(crate) const COLUMNS: [(&str, DataType); 3] =
    [("integrity_check", DataType::Varchar), ("table_name", DataType::Varchar), ("place", DataType::Varchar)];

/// The violations found so far.
struct Check {
    interrupt: Interrupt,
    /// What is violated, in which table, and where.
    found: Vec<[Option<String>; 3]>,
}

impl Check {
    fn tell(&mut self, table: &TableEntry, what: String, place: String) {
        self.found.push([Some(what), Some(table.name.clone()), Some(place)]);
    }

    fn table(
        &mut self,
        session: &Session,
        transaction: &mut TransactionContext,
        entry: &Arc<TableEntry>,
    ) -> Result<()> {
        let rows = transaction.snapshot(&entry.table);
        if !self.tree(entry, None, &rows)? {
            return Ok(());
        }
        for (number, key) in entry.definition.keys.iter().enumerate() {
            let index = entry.indexes.get(number).and_then(Option::as_ref);
            let index = index.map(|index| transaction.snapshot(index));
            let is_whole = match &index {
                Some(index) => self.tree(entry, Some(key), index)?,
                None => true,
            };
            if is_whole && key.kind != KeyKind::Index {
                self.unique(entry, key, index.as_ref().unwrap_or(&rows))?;
            }
            if let Some(index) = index.filter(|_| is_whole) {
                self.index(entry, key, &rows, &index)?;
            }
        }
        let name = object(&entry.name);
        for check in &entry.definition.checks {
            // Not as a condition, which might be answered from an index.
            let sql = format!("SELECT count(CASE WHEN NOT ({}) THEN 1 END) FROM {name}", check.sql);
            self.violations(session, transaction, entry, &sql, format!("CHECK {}", check.name))?;
        }
        for key in &entry.definition.foreign_keys {
            self.foreign_key(session, transaction, entry, key)?;
        }
        Ok(())
    }

    /// Checks the tree of a table, or of the index of one of its keys. True if it has no flaw.
    fn tree(&mut self, entry: &TableEntry, key: Option<&Key>, rows: &TableSnapshot) -> Result<bool> {
        let before = self.found.len();
        let mut flaws = rows.flaws();
        for group in 0..rows.row_groups().len() {
            self.interrupt.look()?;
            flaws.extend(rows.flaws_of_group(group));
        }
        for flaw in flaws {
            let place = match key {
                Some(key) => format!("index {}, {}", key.name, flaw.place),
                None => flaw.place,
            };
            self.tell(entry, flaw.what, place);
        }
        Ok(self.found.len() == before)
    }

    /// Checks that no two rows have the same key, in the table or index that is laid out by it.
    fn unique(&mut self, entry: &TableEntry, key: &Key, keyed: &TableSnapshot) -> Result<()> {
        for group in 0..keyed.row_groups().len() {
            self.interrupt.look()?;
            let Some(row) = keyed.first_duplicate(group) else { continue };
            // In an index they are the first columns; in the table they are the key's own.
            let places = keyed.table().options().layout_key.clone();
            let values = values(keyed, row, &places);
            let kind = if key.kind == KeyKind::Primary { "PRIMARY KEY" } else { "UNIQUE" };
            let what = format!("{kind} {}: two rows have {}", key.name, shown(entry, &key.columns, &values));
            self.tell(entry, what, place(row));
        }
        Ok(())
    }

    /// Checks that the index of a key has exactly the rows of its table.
    fn index(
        &mut self,
        entry: &TableEntry,
        key: &Key,
        rows: &TableSnapshot,
        index: &TableSnapshot,
    ) -> Result<()> {
        let of_table = index_columns(key, rows.table().options());
        let of_index: Vec<usize> = (0..of_table.len()).collect();
        // Rows with a NULL in the key are not in a unique index.
        let width = if key.kind == KeyKind::Index { 0 } else { key.columns.len() };
        let (mut table_sum, mut index_sum) = (Sum::default(), Sum::default());
        self.each_row(rows, &of_table, width, |_, hash| table_sum.add(hash))?;
        self.each_row(index, &of_index, 0, |_, hash| index_sum.add(hash))?;
        if table_sum == index_sum {
            return Ok(());
        }
        // By hash: how many more such rows the table has than the index, and one of them.
        let mut difference: HashMap<u64, (i64, RowId)> = HashMap::new();
        self.each_row(rows, &of_table, width, |row, hash| difference.entry(hash).or_insert((0, row)).0 += 1)?;
        self.each_row(index, &of_index, 0, |row, hash| {
            let entry = difference.entry(hash).or_insert((0, row));
            entry.0 -= 1;
            // For rows that only the index has, the place there is reported.
            if entry.0 < 0 {
                entry.1 = row;
            }
        })?;
        let (mut lost, mut left): (Vec<RowId>, Vec<RowId>) = (Vec::new(), Vec::new());
        for (count, row) in difference.into_values() {
            match count {
                1.. => lost.push(row),
                ..0 => left.push(row),
                0 => {}
            }
        }
        for (found, source, columns, what) in [
            (&mut lost, rows, &of_table, "a row of the table is not in it"),
            (&mut left, index, &of_index, "it has a row that the table does not have"),
        ] {
            found.sort_unstable_by_key(|row| (row.group, row.slot));
            for &row in found.iter().take(MOST) {
                let values = values(source, row, columns);
                let what =
                    format!("index {}: {what}: {}", key.name, shown_indexed(entry, &of_table, &values));
                self.tell(entry, what, place(row));
            }
            if found.len() > MOST {
                let what = format!("index {}: {} more of these", key.name, found.len() - MOST);
                self.tell(entry, what, "the same".to_owned());
            }
        }
        Ok(())
    }

    /// Calls `each` with the rows of a snapshot and the hashes of their values, except for rows with a NULL
    /// in one of the first `width` of `columns`.
    fn each_row(
        &mut self,
        rows: &TableSnapshot,
        columns: &[usize],
        width: usize,
        mut each: impl FnMut(RowId, u64),
    ) -> Result<()> {
        let mut datums: Vec<Datum<'_>> = Vec::with_capacity(columns.len());
        for row in rows.row_ids() {
            self.interrupt.look_now_and_then()?;
            datums.clear();
            rows.read_indexed(row, columns, &mut datums);
            if !datums[..width].iter().any(|datum| datum.is_null()) {
                each(row, hash(&datums));
            }
        }
        Ok(())
    }

    fn foreign_key(
        &mut self,
        session: &Session,
        transaction: &mut TransactionContext,
        entry: &TableEntry,
        key: &ForeignKey,
    ) -> Result<()> {
        let what = format!("FOREIGN KEY {}", key.name);
        let Some(parent) = transaction.names.table(&key.table).cloned() else {
            self.tell(entry, format!("{what}: there is no table {}", key.table), "the catalog".to_owned());
            return Ok(());
        };
        if !parent.definition.has_unique_key(&key.references) {
            let columns = columns(&parent, &key.references);
            let text = format!("{what}: ({columns}) is no key of table {}", parent.name);
            self.tell(entry, text, "the catalog".to_owned());
        }
        let column = |table: &TableEntry, column: usize| quoted(&table.table.schema()[column].name);
        let is_not_null = key.columns.iter().map(|&own| format!("c.{} IS NOT NULL", column(entry, own)));
        let is_not_null: Vec<String> = is_not_null.collect();
        let pairs = key.columns.iter().zip(&key.references);
        let are_equal =
            pairs.map(|(&own, &other)| format!("p.{} = c.{}", column(&parent, other), column(entry, own)));
        let are_equal: Vec<String> = are_equal.collect();
        let sql = format!(
            "SELECT count(*) FROM {} AS c WHERE {} AND NOT EXISTS (SELECT 1 FROM {} AS p WHERE {})",
            object(&entry.name),
            is_not_null.join(" AND "),
            object(&parent.name),
            are_equal.join(" AND ")
        );
        self.violations(session, transaction, entry, &sql, what)
    }

    /// Reports violations if a query counts any.
    fn violations(
        &mut self,
        session: &Session,
        transaction: &mut TransactionContext,
        entry: &TableEntry,
        sql: &str,
        what: String,
    ) -> Result<()> {
        match count(session, transaction, sql) {
            Ok(0) => {}
            Ok(rows) => self.tell(entry, format!("{what}: {rows} rows violate it"), "its rows".to_owned()),
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::Resource) => {
                return Err(error);
            }
            Err(error) => {
                let text = format!("{what}: it cannot be checked: {}", error.message());
                self.tell(entry, text, "its rows".to_owned());
            }
        }
        Ok(())
    }
}

/// The number that a query returns.
fn count(session: &Session, transaction: &mut TransactionContext, sql: &str) -> Result<i128> {
    let parsed = entasis_sql::parse(sql)?;
    let [parsed] = parsed.as_slice() else { return Err(Error::internal(format!("{sql} is one query"))) };
    let Statement::Query(plan) = entasis_sql::bind(parsed, &Names::new(session, transaction), &[])? else {
        return Err(Error::internal(format!("{sql} is a query")));
    };
    match query(session, plan)?.row_values().next().as_deref() {
        Some([Value::Integer(count)]) => Ok(*count),
        _ => Err(Error::internal(format!("{sql} gives a number"))),
    }
}

/// The number of rows, and the sum of their hashes, which does not depend on their order.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sum {
    rows: u64,
    hashes: u64,
}

impl Sum {
    fn add(&mut self, hash: u64) {
        self.rows += 1;
        self.hashes = self.hashes.wrapping_add(hash);
    }
}

fn hash(datums: &[Datum<'_>]) -> u64 {
    let one = |datum: &Datum<'_>| if datum.is_null() { 0x5bd1_e995 } else { datum.hash() };
    let mix = |hash: u64| (hash ^ (hash >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    datums.iter().fold(0, |hash, datum| mix(hash.rotate_left(23) ^ one(datum)))
}

fn values(rows: &TableSnapshot, row: RowId, columns: &[usize]) -> Vec<Value> {
    let mut datums = Vec::with_capacity(columns.len());
    rows.read_indexed(row, columns, &mut datums);
    let types = columns.iter().map(|&column| index_type(column, rows.schema()));
    datums.iter().zip(types).map(|(datum, ty)| datum.value(ty)).collect()
}

/// The values of a row of an index with these columns, for a message.
fn shown_indexed(entry: &TableEntry, columns: &[usize], values: &[Value]) -> String {
    match (columns.split_last(), values.split_last()) {
        (Some((&ROW_NUMBER, columns)), Some((number, values))) => {
            let number = number.display(index_type(ROW_NUMBER, entry.table.schema()));
            format!("{}, row number {number}", shown(entry, columns, values))
        }
        _ => shown(entry, columns, values),
    }
}

fn place(row: RowId) -> String {
    format!("row group {}, slot {}", row.group, row.slot)
}

#[cfg(test)]
mod tests {
    use crate::{Config, Connection, Database};
    use entasis_storage::{Datum, TableEntry};
    use entasis_vector::DataType;
    use std::sync::Arc;

    fn example() -> Connection {
        let connection = Database::in_memory(Config::default()).unwrap().connect();
        for sql in [
            "CREATE TABLE t (id INTEGER PRIMARY KEY, name VARCHAR UNIQUE, n INTEGER NOT NULL CHECK (n > 0))",
            "CREATE INDEX by_n ON t (n)",
            "CREATE TABLE child (t INTEGER REFERENCES t)",
            "INSERT INTO t SELECT i, 'name ' || i, i FROM range(1, 101) r(i)",
            "INSERT INTO child SELECT i FROM range(1, 51) r(i)",
        ] {
            connection.execute(sql).unwrap();
        }
        connection
    }

    fn entry(connection: &Connection, name: &str) -> Arc<TableEntry> {
        connection.session.shared.catalog.version().table(name).unwrap().clone()
    }

    /// The violations found, without their places.
    fn found(connection: &Connection) -> Vec<String> {
        let rows = connection.execute("PRAGMA integrity_check").unwrap();
        let mut found: Vec<String> =
            rows.row_values().map(|row| row[0].display(DataType::Varchar).to_string()).collect();
        found.sort();
        found
    }

    #[test]
    fn an_index_has_the_rows_of_its_table() {
        let connection = example();
        assert_eq!(found(&connection), ["ok"]);
        let t = entry(&connection, "t");
        let index = t.indexes[t.definition.keys.iter().position(|key| key.name == "by_n").unwrap()].clone();
        let index = index.unwrap();
        {
            let mut writer = index.write();
            let row = writer.find(&[Datum::Integer(7)]).unwrap();
            writer.delete(row);
        }
        let lost = "index by_n: a row of the table is not in it: n = 7, id = 7";
        assert_eq!(found(&connection), [lost]);
        index.write().insert(&[Datum::Integer(500), Datum::Integer(7)]);
        let left = "index by_n: it has a row that the table does not have: n = 500, id = 7";
        assert_eq!(found(&connection), [lost, left]);
        // Many differing rows are not reported one by one.
        index.write().clear();
        let told = found(&connection);
        assert_eq!((told.len(), &*told[0]), (11, "index by_n: 90 more of these"));
    }

    #[test]
    fn rows_satisfy_what_is_declared() {
        let connection = example();
        let t = entry(&connection, "t");
        {
            let mut writer = t.table.write();
            let row = writer.find(&[Datum::Integer(3)]).unwrap();
            writer.update(row, &[(2, Datum::Integer(-3))]);
            let row = writer.find(&[Datum::Integer(50)]).unwrap();
            writer.delete(row);
        }
        let told = found(&connection);
        let has = |what: &str| assert!(told.iter().any(|told| told == what), "{what}: {told:?}");
        has("CHECK t_n_check: 1 rows violate it");
        has("FOREIGN KEY child_t_fkey: 1 rows violate it");
        has("index by_n: a row of the table is not in it: n = -3, id = 3");
        has("index by_n: it has a row that the table does not have: n = 3, id = 3");
        has("index t_name_key: it has a row that the table does not have: name = 'name 50', id = 50");
        assert_eq!(told.len(), 6, "{told:?}");
        {
            let mut writer = t.table.write();
            let row = writer.find(&[Datum::Integer(4)]).unwrap();
            writer.update(row, &[(2, Datum::Null)]);
        }
        // The rows of that table are not checked then.
        assert_eq!(found(&connection)[0], "FOREIGN KEY child_t_fkey: 1 rows violate it");
        assert_eq!(found(&connection)[1], "NOT NULL: 1 rows have NULL in column n");
    }

    #[test]
    fn no_two_rows_have_one_key() {
        let connection = example();
        let t = entry(&connection, "t");
        let row = [Datum::Integer(9), Datum::Bytes(b"another"), Datum::Integer(9)];
        t.table.write().insert(&row);
        let name = t.definition.keys.iter().position(|key| key.name == "t_name_key").unwrap();
        t.indexes[name].as_ref().unwrap().write().insert(&[Datum::Bytes(b"name 8"), Datum::Integer(1)]);
        let told = found(&connection);
        let has = |what: &str| assert!(told.iter().any(|told| told == what), "{what}: {told:?}");
        has("PRIMARY KEY t_pkey: two rows have id = 9");
        has("UNIQUE t_name_key: two rows have name = 'name 8'");
    }

    /// Foreign keys of one column and of two, of a table to another and to itself, with and without an index
    /// on the columns that refer: the parent of a row goes, or the row gets a parent that there is not.
    #[test]
    fn broken_foreign_keys_are_found() {
        for (columns, parent) in [
            ("id INTEGER PRIMARY KEY, b INTEGER REFERENCES p (id)", "p"),
            ("id INTEGER PRIMARY KEY, b INTEGER UNIQUE REFERENCES p (id)", "p"),
            ("id INTEGER PRIMARY KEY, b INTEGER, FOREIGN KEY (id, b) REFERENCES p (id, b)", "p"),
            ("id INTEGER PRIMARY KEY, b INTEGER, FOREIGN KEY (b, id) REFERENCES p (b, id)", "p"),
            ("id INTEGER PRIMARY KEY, b INTEGER REFERENCES c (id)", "c"),
            ("id INTEGER PRIMARY KEY, b INTEGER UNIQUE REFERENCES c (id)", "c"),
        ] {
            for parent_goes in [true, false] {
                let connection = Database::in_memory(Config::default()).unwrap().connect();
                for sql in [
                    "CREATE TABLE p (id INTEGER PRIMARY KEY, b INTEGER, UNIQUE (id, b), UNIQUE (b, id))",
                    "INSERT INTO p SELECT i, (i + 1) % 3000 FROM range(3000) r(i)",
                    &format!("CREATE TABLE c ({columns})"),
                    "INSERT INTO c SELECT id, b FROM p WHERE id < 2999 UNION ALL VALUES (2999, 0)",
                ] {
                    connection.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
                }
                assert_eq!(found(&connection), ["ok"], "{columns}");
                let child = entry(&connection, "c");
                let entry = if parent_goes { entry(&connection, parent) } else { child.clone() };
                let mut writer = entry.table.write();
                let row = writer.find(&[Datum::Integer(7)]).unwrap();
                match parent_goes {
                    true => writer.delete(row),
                    false => drop(writer.update(row, &[(1, Datum::Integer(9999))])),
                }
                drop(writer);
                let broken =
                    format!("FOREIGN KEY {}: 1 rows violate it", child.definition.foreign_keys[0].name);
                assert!(found(&connection).contains(&broken), "{columns}, {parent_goes}: {broken}");
            }
        }
    }
}
