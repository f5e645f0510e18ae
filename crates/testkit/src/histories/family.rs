//! Two small tables, one of which refers to the other. All sessions fill, empty, change, drop and create
//! them, in every order in which that is allowed and in some in which it must be refused.
//!
//! No history of their rows is kept. Whatever happens, no row refers to one that does not exist, and only
//! missing names, constraints and conflicts are allowed as errors.

use super::anomaly::{Anomaly, Violation};
use super::session::{Request, Session, Stop};
use entasis::{Connection, Rows};

/// A query that must return no rows.
const DANGLING: &str =
    "SELECT c.r FROM kin_child c LEFT JOIN kin_parent p ON p.k = c.r WHERE c.r IS NOT NULL AND p.k IS NULL";

impl Session<'_> {
    /// Runs a statement on these tables.
    pub(crate) fn family(&mut self) -> Result<(), Stop> {
        let key = self.random.between(1, 3);
        let sql = match self.random.below(32) {
            0..=3 => format!("INSERT INTO kin_child (r) VALUES ({key})"),
            4 => format!("INSERT INTO kin_child (r) SELECT k FROM kin_parent WHERE k >= {key}"),
            5 => format!("UPDATE kin_child SET r = {key}"),
            6..=8 => "DELETE FROM kin_child".into(),
            9..=10 => {
                "INSERT INTO kin_parent (k) SELECT i FROM generate_series(1, 3) s(i) ON CONFLICT DO NOTHING"
                    .into()
            }
            11..=13 => format!("DELETE FROM kin_parent WHERE k = {key}"),
            14 => format!("UPDATE kin_parent SET k = k + 3 WHERE k = {key}"),
            15..=16 => "TRUNCATE kin_parent".into(),
            17 | 24..=27 => "CREATE TABLE IF NOT EXISTS kin_parent (x INTEGER, k BIGINT PRIMARY KEY)".into(),
            18 | 28..=31 => {
                "CREATE TABLE IF NOT EXISTS kin_child (r BIGINT REFERENCES kin_parent (k))".into()
            }
            19 => "ALTER TABLE kin_child ADD COLUMN IF NOT EXISTS x INTEGER".into(),
            20 => "ALTER TABLE kin_parent ADD COLUMN IF NOT EXISTS y INTEGER DEFAULT 5".into(),
            21 => "DROP TABLE kin_child".into(),
            22 => "DROP TABLE kin_parent".into(),
            _ if self.common.has("junk") => "ALTER TABLE kin_parent DROP COLUMN IF EXISTS x".into(),
            _ => "TRUNCATE kin_child".into(),
        };
        self.attempt(&sql).map(drop)
    }

    /// Checks both tables in one statement.
    pub(crate) fn judge_family(&mut self) -> Result<(), Stop> {
        let result = match self.call(&Request::new(DANGLING)).1 {
            Ok(rows) => nothing_dangles(&rows),
            // One of them may not exist.
            Err(_) => Ok(()),
        };
        result.map_err(Stop::Violation)
    }

    /// Runs several of the statements in one transaction.
    pub(crate) fn family_transaction(&mut self) -> Result<(), Stop> {
        for _ in 0..self.random.between(1, 3) {
            self.family()?;
            self.common.linger(self.random.below(6) as u64);
        }
        Ok(())
    }
}

/// Checks these tables, if both exist.
///
/// # Errors
/// Dangling references.
pub(crate) fn judge(connection: &Connection) -> Result<(), Violation> {
    connection.execute(DANGLING).map_or(Ok(()), |rows| nothing_dangles(&rows))
}

fn nothing_dangles(rows: &Rows) -> Result<(), Violation> {
    match rows.row_values().next() {
        None => Ok(()),
        Some(row) => {
            let text = format!("kin_child refers to {:?}, which is not in kin_parent", row[0]);
            Err(Violation::new(Anomaly::DanglingReference, text))
        }
    }
}
