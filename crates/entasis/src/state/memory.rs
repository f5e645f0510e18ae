//! Who has what of a database's memory: each table and each index, changes that are not committed, and what
//! statements have, by the words of errors ([`MemoryBudget`]).
//!
//! No block is visited: tables count their bytes as they change, and whoever reserves memory belongs to a
//! part of the budget. The holders together have exactly what the budget says is in use. What is charged to
//! no known part (parts of statements below 1 MB, measuring) is a holder of its own, [`OTHER`], and what
//! tables have beyond the limit, so that it could not be charged, is another, [`NOT_CHARGED`], which is
//! negative.
//!
//! Rows that were written one by one are charged to the tables before these are looked at.
//!
//! [`MemoryBudget`]: entasis_engine::exec::MemoryBudget

use super::{CHANGES, Shared, TABLES};
use entasis_storage::{Table, TableEntry, is_temporary};
use entasis_vector::name;
use std::sync::{Arc, PoisonError, Weak};

/// The owner of indexes, those of keys included.
const INDEXES: &str = "indexes";
/// The owner of versions that only snapshots show, of one table.
const OLDER: &str = "older versions";
/// What tables have and is not charged, because the limit does not allow it.
const NOT_CHARGED: &str = "not charged";
/// What is charged to no known part.
const OTHER: &str = "other";
/// Rows in temporary files.
const FILES: &str = "temporary files";

/// Who has some of the memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Holder {
    /// In the words of errors: "tables", "a sort".
    pub(crate) owner: &'static str,
    /// The table or index, as users write it.
    pub(crate) name: Option<String>,
    /// Bytes of memory.
    pub(crate) bytes: i64,
    /// Bytes of temporary files.
    pub(crate) temporary_bytes: i64,
}

impl Holder {
    fn new(owner: &'static str, name: Option<String>, bytes: i64) -> Holder {
        Holder { owner, name, bytes, temporary_bytes: 0 }
    }
}

/// All holders, and the limit for what they have together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Accounts {
    /// Tables and indexes by their names, then all others.
    pub(crate) holders: Vec<Holder>,
    /// Bytes; `None`: there is none.
    pub(crate) limit: Option<i64>,
}

impl Accounts {
    /// Bytes that the holders have together.
    pub(crate) fn used(&self) -> i64 {
        self.holders.iter().map(|holder| holder.bytes).sum()
    }

    /// Bytes of the limit that nobody has; negative if more than that is in use. `None`: there is no limit.
    pub(crate) fn free(&self) -> Option<i64> {
        self.limit.map(|limit| limit - self.used())
    }
}

impl Shared {
    /// Who has what of the memory now.
    pub(crate) fn accounts(&self) -> Accounts {
        let mut holders = self.holders_of_tables();
        holders.push(Holder::new(CHANGES, None, amount(self.changes.used())));
        let parts = self.memory.parts().into_iter().filter(|(owner, _)| ![TABLES, CHANGES].contains(owner));
        holders.extend(parts.map(|(owner, used)| Holder::new(owner, None, amount(used))));
        let mut accounts = Accounts { holders, limit: i64::try_from(self.memory.limit()).ok() };
        // Others may have given back what they had a moment ago.
        let other = (amount(self.memory.used()) - accounts.used()).max(0);
        accounts.holders.push(Holder::new(OTHER, None, other));
        let temporary_bytes = i64::try_from(self.temp.used()).unwrap_or(i64::MAX);
        accounts.holders.push(Holder { temporary_bytes, ..Holder::new(FILES, None, 0) });
        accounts
    }

    /// What tables and indexes have, after it was charged.
    fn holders_of_tables(&self) -> Vec<Holder> {
        let names = self.catalog.version();
        let (mut newest, mut older) = (Vec::new(), Vec::new());
        let mut look = |owner, name: String, table: &Table| {
            let (own, old) = table.held_bytes();
            if old > 0 {
                older.push(Holder::new(OLDER, Some(name.clone()), amount(old)));
            }
            newest.push(Holder::new(owner, Some(name), amount(own)));
        };
        for entry in names.tables() {
            look(TABLES, name::shown(&entry.name), &entry.table);
            for (key, index) in entry.definition.keys.iter().zip(&entry.indexes) {
                if let Some(index) = index {
                    look(INDEXES, index_name(entry, &key.name), index);
                }
            }
        }
        let nameless: Vec<Arc<Table>> = {
            let nameless = self.nameless.lock().unwrap_or_else(PoisonError::into_inner);
            nameless.iter().filter_map(Weak::upgrade).collect()
        };
        for table in nameless {
            let (own, old) = table.held_bytes();
            if own + old > 0 {
                older.push(Holder::new(OLDER, Some(name::shown(table.name())), amount(own + old)));
            }
        }
        newest.sort_by(|a, b| (a.owner != TABLES, &a.name).cmp(&(b.owner != TABLES, &b.name)));
        newest.append(&mut older);
        let held: i64 = newest.iter().map(|holder| holder.bytes).sum();
        let charged = self.charged_for_tables(held);
        if charged != held {
            newest.push(Holder::new(NOT_CHARGED, None, charged - held));
        }
        newest
    }

    /// Charges the tables with what they hold, if the limit allows it. Returns what they are charged with
    /// now.
    fn charged_for_tables(&self, held: i64) -> i64 {
        let mut charged = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        // To look is no reason to fail: statements that write are refused, as without this.
        let _ = charged.resize(usize::try_from(held).unwrap_or(0));
        amount(charged.bytes())
    }
}

/// The name of an index, as users write it. Indexes of all schemas have names of their own, but for those of
/// temporary tables.
fn index_name(entry: &TableEntry, own: &str) -> String {
    let schema = if is_temporary(&entry.name) { name::split(&entry.name).0 } else { name::MAIN };
    name::shown(&name::joined(schema, own))
}

fn amount(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Connection, Database};
    use entasis_vector::{DataType, Value};

    fn run(connection: &Connection, statements: &[&str]) {
        for sql in statements {
            connection.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
    }

    /// The accounts, which have every byte of the budget.
    fn accounts(database: &Database) -> Accounts {
        let accounts = database.shared.accounts();
        assert_eq!(accounts.used(), amount(database.shared.memory.used()), "{accounts:?}");
        accounts
    }

    /// What a holder has; `None` if it is none.
    fn held(accounts: &Accounts, owner: &str, name: Option<&str>) -> Option<i64> {
        let is_it = |holder: &&Holder| holder.owner == owner && holder.name.as_deref() == name;
        accounts.holders.iter().find(is_it).map(|holder| holder.bytes)
    }

    /// Inserts rows one by one; their texts of 8,000 digits cannot be compressed to less than a third.
    fn insert(connection: &Connection, keys: std::ops::Range<i128>) {
        let mut state = 1_u64;
        for key in keys {
            let mut digits = String::new();
            while digits.len() < 8000 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                digits += &format!("{:08}", (state >> 33) % 100_000_000);
            }
            let values =
                [(Value::Integer(key), DataType::Int64), (Value::Text(digits.into()), DataType::Varchar)];
            connection.query("INSERT INTO t VALUES (?, ?)", &values).unwrap();
        }
    }

    #[test]
    fn every_byte_has_a_holder() {
        let database = Database::in_memory(Config::default()).unwrap();
        let connection = database.connect();
        assert_eq!(accounts(&database).used(), 0);
        run(
            &connection,
            &[
                "CREATE TABLE t (k BIGINT PRIMARY KEY, s VARCHAR)",
                "CREATE SCHEMA x",
                "CREATE TABLE x.u AS SELECT i, i * 7919 % 1000003 AS n FROM range(20000) r(i)",
                "CREATE INDEX by_n ON x.u (n)",
                "CREATE TEMP TABLE own AS SELECT i FROM range(1000) r(i)",
            ],
        );
        insert(&connection, 0..20);
        let found = accounts(&database);
        let tables = [(TABLES, "t"), (TABLES, "x.u"), (TABLES, "temp.own"), (INDEXES, "by_n")];
        let own = tables.map(|(owner, name)| held(&found, owner, Some(name)));
        assert!(own.iter().all(|bytes| bytes.is_some_and(|bytes| bytes > 0)), "{found:?}");
        assert!(own[0] >= Some(20 * 8000 / 3), "single rows are counted, too: {found:?}");
        assert_eq!((held(&found, OTHER, None), held(&found, CHANGES, None)), (Some(0), Some(0)));
        assert_eq!((held(&found, FILES, None), held(&found, NOT_CHARGED, None)), (Some(0), None));
        let sum = own.iter().flatten().sum::<i64>();
        let older = found.holders.iter().filter(|holder| holder.owner == OLDER);
        assert_eq!(sum + older.map(|holder| holder.bytes).sum::<i64>(), found.used());
    }

    #[test]
    fn what_cannot_be_charged_is_shown() {
        let database = Database::in_memory(Config::default()).unwrap();
        let connection = database.connect();
        run(&connection, &["CREATE TABLE t (k BIGINT PRIMARY KEY, s VARCHAR)"]);
        insert(&connection, 0..1);
        let before = accounts(&database);
        database.shared.memory.set_limit(usize::try_from(before.used()).unwrap());
        insert(&connection, 1..20);
        let found = accounts(&database);
        assert!(held(&found, TABLES, Some("t")) > held(&before, TABLES, Some("t")), "{found:?}");
        assert!(held(&found, NOT_CHARGED, None).is_some_and(|bytes| bytes < 0), "{found:?}");
        assert_eq!((found.limit, found.used()), (Some(before.used()), before.used()));
        assert_eq!(found.free(), Some(0));
        database.shared.memory.set_limit(usize::MAX);
        let found = accounts(&database);
        assert_eq!((held(&found, NOT_CHARGED, None), found.free()), (None, None));
        assert!(found.used() > before.used());
    }

    #[test]
    fn transactions_and_results_are_holders() {
        let database = Database::in_memory(Config::default()).unwrap();
        let (one, other) = (database.connect(), database.connect());
        run(
            &one,
            &[
                "CREATE TABLE t (k BIGINT PRIMARY KEY, n BIGINT)",
                "INSERT INTO t SELECT i, i FROM range(20000) r(i)",
            ],
        );
        run(&one, &["BEGIN", "INSERT INTO t SELECT i, i * 7919 % 1000003 FROM range(20000, 40000) r(i)"]);
        assert!(held(&accounts(&database), CHANGES, None) > Some(0));
        run(&one, &["ROLLBACK"]);
        assert_eq!(held(&accounts(&database), CHANGES, None), Some(0));

        let rows = one.execute("SELECT i, i * 7919 % 1000003 FROM range(300000) r(i)").unwrap();
        assert!(held(&accounts(&database), "a result", None) > Some(300_000 * 8));
        drop(rows);
        assert_eq!(held(&accounts(&database), "a result", None), None);

        run(&other, &["BEGIN", "SELECT count(*) FROM t"]);
        run(&one, &["UPDATE t SET n = n + 1"]);
        assert!(held(&accounts(&database), OLDER, Some("t")) > Some(0));
        run(&one, &["DROP TABLE t"]);
        let found = accounts(&database);
        assert!(held(&found, OLDER, Some("t")) > Some(0) && held(&found, TABLES, Some("t")).is_none());
        run(&other, &["COMMIT"]);
    }
}
