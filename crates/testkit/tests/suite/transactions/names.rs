//! Names remain what others rely on: tables with keys that are referred to, names of indexes, sequences.
//!
//! The catalog is compared entry by entry when a transaction commits. Relations between entries, and names
//! that have no entry of their own, must be checked then, too.

use super::sessions::Expected::{Count, Done, Fails, Refused, Rows};
use super::sessions::{Outcome, Sessions};
use entasis::ErrorKind;

// ---- a child comes into being beside a change of its parent -----------------------------------------------

/// While a transaction creates table `c` with a foreign key to `par`, another session runs `change`. One of
/// the two must fail, and the result must be consistent: rows of `c` are checked against `par`, or there is
/// no `c`.
fn check_one_fails(change: &str) {
    let mut sessions = Sessions::new();
    sessions.check(&[
        ("", "CREATE TABLE par (k INTEGER PRIMARY KEY, x INTEGER)", Done),
        ("", "INSERT INTO par VALUES (1, 1)", Count(1)),
        ("1", "BEGIN", Done),
        ("1", "CREATE TABLE c (p INTEGER REFERENCES par (k))", Done),
    ]);
    let changed = sessions.step("2", change);
    let committed = sessions.step("1", "COMMIT");
    if changed.error().is_none() {
        assert_eq!(committed.error(), Some(ErrorKind::Conflict), "\n{}", sessions.transcript());
        sessions.check(&[("", "INSERT INTO c VALUES (1)", Fails(ErrorKind::Input))]);
    } else {
        assert!(
            changed.is_refused() || changed.error() == Some(ErrorKind::Conflict),
            "\n{}",
            sessions.transcript()
        );
        assert_eq!(committed, Outcome::Done, "\n{}", sessions.transcript());
        sessions.check(&[
            ("", "INSERT INTO c VALUES (1)", Count(1)),
            ("", "INSERT INTO c VALUES (2)", Fails(ErrorKind::Constraint)),
        ]);
    }
}

#[test]
fn a_parent_is_dropped_while_its_child_is_made() {
    check_one_fails("DROP TABLE par");
}

#[test]
fn the_key_of_a_parent_is_dropped_while_its_child_is_made() {
    check_one_fails("ALTER TABLE par DROP CONSTRAINT par_pkey");
}

#[test]
fn a_parent_is_replaced_while_its_child_is_made() {
    check_one_fails("CREATE OR REPLACE TABLE par AS SELECT 'one' AS k");
}

#[test]
fn a_child_is_made_while_its_parent_is_dropped() {
    let mut sessions = Sessions::new();
    sessions.check(&[
        ("", "CREATE TABLE par (k INTEGER PRIMARY KEY)", Done),
        ("", "INSERT INTO par VALUES (1)", Count(1)),
        ("1", "BEGIN", Done),
        ("1", "DROP TABLE par", Done),
        ("2", "CREATE TABLE c (p INTEGER REFERENCES par (k))", Done),
        ("1", "COMMIT", Fails(ErrorKind::Conflict)),
        ("", "INSERT INTO c VALUES (1)", Count(1)),
        ("", "INSERT INTO c VALUES (2)", Fails(ErrorKind::Constraint)),
    ]);
}

// ---- names of indexes -------------------------------------------------------------------------------------

#[test]
fn two_transactions_make_an_index_of_one_name() {
    Sessions::new().check(&[
        ("", "CREATE TABLE a (k INTEGER PRIMARY KEY, v INTEGER)", Done),
        ("", "CREATE TABLE b (k INTEGER PRIMARY KEY, v INTEGER)", Done),
        ("1", "BEGIN", Done),
        ("1", "CREATE INDEX ix ON a (v)", Done),
        ("2", "BEGIN", Done),
        ("2", "CREATE INDEX ix ON b (v)", Done),
        ("1", "COMMIT", Done),
        ("2", "COMMIT", Fails(ErrorKind::Conflict)),
        ("", "DROP INDEX ix", Done),
        ("", "DROP INDEX ix", Refused),
    ]);
}

#[test]
fn an_index_gets_the_name_of_one_that_a_statement_made_meanwhile() {
    Sessions::new().check(&[
        ("", "CREATE TABLE a (k INTEGER PRIMARY KEY, v INTEGER)", Done),
        ("", "CREATE TABLE b (k INTEGER PRIMARY KEY, v INTEGER)", Done),
        ("1", "BEGIN", Done),
        ("1", "CREATE INDEX ix ON a (v)", Done),
        // In other letter case it is the same name.
        ("2", "CREATE UNIQUE INDEX IX ON b (v)", Done),
        ("1", "COMMIT", Fails(ErrorKind::Conflict)),
        ("", "DROP INDEX ix", Done),
        ("", "INSERT INTO b VALUES (1, 1), (2, 1)", Count(2)),
    ]);
}

#[test]
fn a_constraint_gets_the_name_of_an_index_that_was_made_meanwhile() {
    Sessions::new().check(&[
        ("", "CREATE TABLE a (k INTEGER PRIMARY KEY, v INTEGER)", Done),
        ("1", "BEGIN", Done),
        ("1", "CREATE TABLE b (k INTEGER PRIMARY KEY, v INTEGER, CONSTRAINT ix UNIQUE (v))", Done),
        ("2", "CREATE INDEX ix ON a (v)", Done),
        ("1", "COMMIT", Fails(ErrorKind::Conflict)),
        ("", "SELECT * FROM b", Fails(ErrorKind::Input)),
        ("", "DROP INDEX ix", Done),
    ]);
}

// ---- sequences --------------------------------------------------------------------------------------------

/// Creates a table whose identity column would have a sequence with an existing name. The statement is
/// refused, or its sequence gets another name; and the user's sequence remains, even after the table is
/// dropped.
fn check_sequence_stays(create: &[&str]) {
    let mut sessions = Sessions::new();
    sessions.check(&[
        ("", "CREATE SEQUENCE t_id_seq START WITH 100", Done),
        ("", "SELECT nextval('t_id_seq')", Rows("100")),
    ]);
    for sql in create {
        let outcome = sessions.step("", sql);
        assert!(outcome.error().is_none() || outcome.is_refused(), "\n{}", sessions.transcript());
    }
    sessions.check(&[
        ("", "SELECT nextval('t_id_seq')", Rows("101")),
        ("", "DROP TABLE IF EXISTS t", Done),
        ("", "SELECT nextval('t_id_seq')", Rows("102")),
    ]);
}

#[test]
fn an_identity_column_leaves_a_sequence_of_its_name_alone() {
    check_sequence_stays(&["CREATE TABLE t (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v INTEGER)"]);
}

#[test]
fn a_table_that_replaces_another_leaves_a_sequence_of_its_name_alone() {
    let create = "CREATE OR REPLACE TABLE t (id BIGINT GENERATED BY DEFAULT AS IDENTITY, v INTEGER)";
    check_sequence_stays(&["CREATE TABLE t (id BIGINT)", create, create]);
}

#[test]
fn a_sequence_is_made_while_an_identity_column_takes_its_name() {
    let mut sessions = Sessions::new();
    sessions.check(&[
        ("1", "BEGIN", Done),
        ("1", "CREATE TABLE t (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v INTEGER)", Done),
        ("1", "INSERT INTO t (v) VALUES (1)", Count(1)),
        ("2", "CREATE SEQUENCE t_id_seq START WITH 100", Done),
        ("1", "COMMIT", Fails(ErrorKind::Conflict)),
        ("2", "SELECT nextval('t_id_seq')", Rows("100")),
    ]);
}

#[test]
fn a_sequence_that_an_identity_column_counts_by_cannot_be_dropped() {
    Sessions::new().check(&[
        ("", "CREATE TABLE t (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v INTEGER)", Done),
        ("", "INSERT INTO t (v) VALUES (1)", Count(1)),
        ("", "DROP SEQUENCE t_id_seq", Refused),
        ("", "INSERT INTO t (v) VALUES (2)", Count(1)),
        ("", "SELECT id FROM t ORDER BY v", Rows("1, 2")),
        // It is dropped with its table.
        ("", "DROP TABLE t", Done),
        ("", "CREATE SEQUENCE t_id_seq", Done),
    ]);
}
