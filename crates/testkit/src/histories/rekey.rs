//! A table of thousands of rows with a plain and a unique index on one column, all of which single statements
//! change: above a few thousand rows, rows and keys are changed in bulk, not one by one.
//!
//! No list records the history of its rows: their number does not change, and no two have the same key.

use super::anomaly::{Anomaly, Violation};
use super::session::{Request, Session, Stop};
use entasis::{Rows, Value};

/// Rows of the table.
const ROWS: i128 = 5_000;

/// The statements that create it.
pub(crate) const DEFINITION: [&str; 4] = [
    "CREATE TABLE many (a BIGINT, b BIGINT)",
    "INSERT INTO many SELECT i, i FROM generate_series(1, 5000) s(i)",
    "CREATE INDEX many_a ON many (a)",
    "CREATE UNIQUE INDEX many_unique ON many (a)",
];

impl Session<'_> {
    /// Changes all keys of the table, or tries to make some of them equal, and checks them.
    pub(crate) fn rekey(&mut self) -> Result<(), Stop> {
        let assignment =
            *self.random.pick(&["a = a + 1", "a = 20000 - a", "a = b", "a = a / 2", "a = 7", "b = b + 1"]);
        let changed =
            Request { may_be_refused: true, ..Request::new(format!("UPDATE many SET {assignment}")) };
        self.run(changed, |_, _| Ok(Vec::new()))?;
        let look = "SELECT count(*), count(DISTINCT a) FROM many";
        self.run(Request::new(look), |_, rows| are_unique(rows)).map(drop)
    }
}

fn are_unique(rows: &Rows) -> Result<Vec<super::history::Effect>, Violation> {
    match rows.row_values().next().as_deref() {
        Some([Value::Integer(ROWS), Value::Integer(ROWS)]) => Ok(Vec::new()),
        found => {
            let text = format!("a table of {ROWS} rows with as many keys has {found:?}");
            Err(Violation::new(Anomaly::UniqueViolation, text))
        }
    }
}
