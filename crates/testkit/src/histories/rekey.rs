//! A table of thousands of rows with a plain and a unique index on one column, which single statements change
//! as a whole: from some thousand rows on, rows and keys are changed another way than one by one.
//!
//! No list tells what became of its rows: they stay as many as they were, and no two have the same key.

use super::anomaly::{Anomaly, Violation};
use super::session::{Request, Session, Stop};
use entasis::{Rows, Value};

/// Rows of the table.
const ROWS: i128 = 5_000;

/// The statements that make it.
pub(crate) const DEFINITION: [&str; 4] = [
    "CREATE TABLE many (a BIGINT, b BIGINT)",
    "INSERT INTO many SELECT i, i FROM generate_series(1, 5000) s(i)",
    "CREATE INDEX many_a ON many (a)",
    "CREATE UNIQUE INDEX many_unique ON many (a)",
];

impl Session<'_> {
    /// Changes all keys of the table, or tries to make some of them equal, and looks at them.
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
