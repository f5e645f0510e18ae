//! Which database a statement works on: its target database (docs/decisions/0026).
//!
//! 1. A statement that writes to an object, or creates one: the database of that object, which the
//!    statement's text tells ([`entasis_sql::Subject`]) together with the existing names.
//! 2. A statement about a whole database: that database.
//! 3. A statement that only reads: the target database of the open transaction; without one, the current
//!    database.
//!
//! The code that runs the statement treats its target database as the only database; objects of others can
//! only be read.

use crate::session::place::Places;
use crate::session::{Attached, Session};
use crate::transaction::TransactionContext;
use entasis_sql::{Parsed, Subject, What, WrittenName};
use entasis_storage::CatalogVersion;
use entasis_vector::{Error, Result};

/// The target database of a statement.
pub(crate) struct TargetDatabase {
    /// The session with that target database.
    pub(crate) session: Session,
    /// The tables whose rows or declarations the statement changes.
    pub(crate) targets: Vec<WrittenName>,
}

/// The target database of a statement, by itself or in the open transaction.
///
/// # Errors
/// Input, if it would write to several databases, or to a read-only one.
pub(crate) fn of(
    session: &Session,
    parsed: &Parsed,
    open: Option<&TransactionContext>,
) -> Result<TargetDatabase> {
    if !session.sees_others() {
        return Ok(TargetDatabase { session: session.clone(), targets: parsed.targets() });
    }
    let places = Places::of(session);
    let mut names = |database: &Attached| -> CatalogVersion {
        let seen = open.and_then(|transaction| transaction.names_seen_of(&database.name));
        seen.unwrap_or_else(|| database.newest_names())
    };
    let mut target: Option<(&Attached, String)> = None;
    let mut targets = Vec::new();
    for subject in parsed.subjects() {
        let (database, table) = database_of(&subject, &places, &mut names);
        let written = subject.parts.join(".");
        match &target {
            Some((first, other)) if first.name != database.name => {
                let error = Error::input(format!(
                    "a statement writes to one database: {other} is in {}, and {written} in {}",
                    first.name, database.name
                ));
                return Err(error.with_hint("write a statement for each"));
            }
            _ => target = Some((database, written)),
        }
        targets.extend(table.filter(|_| subject.has_rows));
    }
    let Some((target, _)) = target else {
        let of_transaction = open.and_then(|transaction| places.database(transaction.database()));
        let target = of_transaction.unwrap_or_else(|| places.current());
        return Ok(TargetDatabase { session: session.at(target), targets });
    };
    if target.is_read_only && parsed.writes() {
        return Err(read_only(target));
    }
    Ok(TargetDatabase { session: session.at(target), targets })
}

/// The error of writing to a read-only database.
pub(crate) fn read_only(database: &Attached) -> Error {
    let name = &database.name;
    Error::input(format!("the database {name} is attached READ_ONLY"))
        .with_hint(format!("DETACH {name}, and ATTACH it without READ_ONLY"))
}

/// The database of the subject of a statement, and the object's name there, if it is known.
fn database_of<'a>(
    subject: &Subject,
    places: &'a Places,
    names: &mut dyn FnMut(&Attached) -> CatalogVersion,
) -> (&'a Attached, Option<WrittenName>) {
    let current = places.current();
    let parts = subject.parts.as_slice();
    let found = match (subject.what, parts) {
        (What::Database, [name]) => return (places.database(name).unwrap_or(current), None),
        // A table takes precedence over a database of the same name.
        (What::TableOrDatabase, [name]) => {
            return match places.find(parts, names) {
                Some(place) => (places.database(&place.database).unwrap_or(current), None),
                None => (places.database(name).unwrap_or(current), None),
            };
        }
        (What::Schema, [database, _]) => return (places.database(database).unwrap_or(current), None),
        // A new object without a schema goes to the current database.
        (What::Schema | What::Database | What::New, [] | [_]) => None,
        _ => places.find(parts, names),
    };
    match found {
        Some(place) => {
            let database = places.database(&place.database).unwrap_or(current);
            (database, Some(WrittenName { name: place.own_name(), has_schema: true }))
        }
        None => (current, WrittenName::of_parts(parts)),
    }
}

#[cfg(test)]
mod tests {
    use crate::session::Attached;
    use crate::{Config, Connection, Database, ErrorKind, Value};
    use std::sync::Arc;

    /// A connection to a database of its own that also sees another one, which other connections use.
    fn beside(other: &Database) -> Connection {
        let connection = Database::in_memory(Config::default()).unwrap().connect();
        let shared = other.shared.clone();
        let owner = shared.next_connection();
        let attached = Attached { name: "b".into(), shared, owner, is_read_only: false, _user: None };
        connection.session.set_attached(vec![attached]);
        connection
    }

    fn value(connection: &Connection, sql: &str) -> Value {
        connection.execute(sql).unwrap().row_values().next().unwrap()[0].clone()
    }

    #[test]
    fn the_first_to_commit_wins_in_another_database_as_well() {
        let other = Database::in_memory(Config::default()).unwrap();
        let theirs = other.connect();
        theirs.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, v INTEGER)").unwrap();
        theirs.execute("INSERT INTO t VALUES (1, 0), (2, 0)").unwrap();
        let (one, two) = (beside(&other), beside(&other));
        // It sees the moment at which it first named the database.
        one.execute("BEGIN").unwrap();
        assert_eq!(value(&one, "SELECT sum(v) FROM b.t"), Value::Integer(0));
        theirs.execute("UPDATE t SET v = 1 WHERE k = 2").unwrap();
        assert_eq!(value(&one, "SELECT sum(v) FROM b.t"), Value::Integer(0));
        one.execute("UPDATE b.t SET v = v + 10 WHERE k = 1").unwrap();
        assert_eq!(value(&one, "SELECT sum(v) FROM b.t"), Value::Integer(10));
        assert_eq!(value(&two, "SELECT sum(v) FROM b.t"), Value::Integer(1));
        one.execute("COMMIT").unwrap();
        assert_eq!(value(&two, "SELECT sum(v) FROM b.t"), Value::Integer(11));
        // Two transactions that change the same row.
        one.execute("BEGIN; UPDATE b.t SET v = 100 WHERE k = 1").unwrap();
        two.execute("USE b; BEGIN; UPDATE t SET v = 200 WHERE k = 1").unwrap();
        two.execute("COMMIT").unwrap();
        assert_eq!(one.execute("COMMIT").unwrap_err().kind(), ErrorKind::Conflict);
        assert_eq!(value(&theirs, "SELECT v FROM t WHERE k = 1"), Value::Integer(200));
        // Changes of declarations are visible to all.
        one.execute("BEGIN; INSERT INTO b.t VALUES (3, 3)").unwrap();
        theirs.execute("ALTER TABLE t ADD COLUMN w INTEGER").unwrap();
        assert_eq!(one.execute("COMMIT").unwrap_err().kind(), ErrorKind::Conflict);
        one.execute("INSERT INTO b.t VALUES (3, 3, 3)").unwrap();
        assert_eq!(value(&two, "SELECT w FROM t WHERE k = 3"), Value::Integer(3));
    }

    #[test]
    fn statements_by_themselves_are_run_again_and_none_is_lost() {
        let other = Database::in_memory(Config::default()).unwrap();
        other.connect().execute("CREATE TABLE t (k INTEGER PRIMARY KEY, v INTEGER)").unwrap();
        other.connect().execute("INSERT INTO t VALUES (1, 0)").unwrap();
        std::thread::scope(|scope| {
            for writer in 0..3 {
                let other = &other;
                scope.spawn(move || {
                    let connection = beside(other);
                    let sql = match writer {
                        0 => "UPDATE b.t SET v = v + 1 WHERE k = 1",
                        1 => "UPDATE b.main.t SET v = v + 1",
                        _ => "UPDATE t SET v = v + 1",
                    };
                    if writer == 2 {
                        connection.execute("USE b").unwrap();
                    }
                    for _ in 0..50 {
                        connection.execute(sql).unwrap();
                    }
                });
            }
        });
        assert_eq!(value(&other.connect(), "SELECT v FROM t"), Value::Integer(150));
    }

    #[test]
    fn what_is_temporary_stays_in_the_connections_own() {
        let other = Database::in_memory(Config::default()).unwrap();
        let theirs = other.connect();
        let users = Arc::strong_count(&other.shared);
        let one = beside(&other);
        one.execute("USE b").unwrap();
        one.execute("CREATE TEMP TABLE t AS SELECT 1 AS a").unwrap();
        assert!(theirs.execute("SELECT * FROM t").is_err());
        assert_eq!(value(&one, "SELECT a FROM t"), Value::Integer(1));
        assert!(other.names().entries().next().is_none());
        drop(one);
        assert_eq!(Arc::strong_count(&other.shared), users, "the database is let go of");
    }

    #[test]
    fn loads_go_to_the_current_database() {
        let other = Database::in_memory(Config::default()).unwrap();
        let one = beside(&other);
        let column = arrow_schema::Field::new("a", arrow_schema::DataType::Int32, true);
        let schema = arrow_schema::Schema::new(vec![column]);
        for (name, database) in [("t", "memory"), ("u", "b")] {
            one.execute(&format!("USE {database}")).unwrap();
            crate::api::table_load::TableLoad::create(&one, name, &schema).unwrap().commit().unwrap();
        }
        assert_eq!(other.connect().tables(), ["u"]);
    }
}
