//! Places in the text for errors of running statements, where they are about a constant.

use crate::connection::Connection;
use entasis_sql::{Parsed, Statement};
use entasis_vector::error::sqlstate;
use entasis_vector::{DataType, Error, Value};

impl Connection {
    /// An error of a statement with what helps: the place of the constant that it is about, if it is about
    /// one, and a hint.
    #[cold]
    pub(crate) fn explained(&self, error: Error, parsed: &Parsed, parameters: &[(Value, DataType)]) -> Error {
        self.hinted(self.placed(error, parsed, parameters), parsed.sql())
    }

    /// The statement is bound once more, since only few fail.
    fn placed(&self, error: Error, parsed: &Parsed, parameters: &[(Value, DataType)]) -> Error {
        // Binding may call functions of the program, which may do something.
        if !may_be_of_constant(&error) || !self.session.functions.is_empty() {
            return error;
        }
        match self.bound(parsed, parameters) {
            Ok(mut bound) => entasis_sql::locate_constant(error, parsed, &mut bound),
            // Binding reads no rows, so a constant is to blame.
            Err(own) if own.message() == error.message() => entasis_sql::locate_named_constant(error, parsed),
            Err(_) => error,
        }
    }
}

/// The same for a statement that was bound, if `bound` is needed.
#[cold]
pub(crate) fn placed_in(error: Error, parsed: &Parsed, bound: impl FnOnce() -> Statement) -> Error {
    match may_be_of_constant(&error) {
        true => entasis_sql::locate_constant(error, parsed, &mut bound()),
        false => error,
    }
}

/// True for an error of a value that has no place yet.
fn may_be_of_constant(error: &Error) -> bool {
    error.position().is_none() && matches!(error.sqlstate(), sqlstate::INVALID_TEXT | sqlstate::OUT_OF_RANGE)
}

#[cfg(test)]
mod tests {
    use crate::{Config, Database};

    #[test]
    fn constants_that_cannot_be_cast_have_a_place() {
        let connection = Database::in_memory(Config::default()).unwrap().connect();
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, d DATE, s VARCHAR, b TINYINT)").unwrap();
        connection.execute("INSERT INTO t VALUES (1, '2024-01-31', '2024-02-30', 7)").unwrap();
        for (sql, place) in [
            ("SELECT DATE '2024-02-30'", Some((1, 13))),
            ("SELECT 1,\n  '12x'::INT + 1", Some((2, 3))),
            ("SELECT 300::TINYINT", Some((1, 8))),
            ("SELECT * FROM t WHERE id > 'x'", Some((1, 28))),
            ("INSERT INTO t VALUES ('four', NULL, '', 1)", Some((1, 23))),
            ("INSERT INTO t VALUES (2, NULL, '', 1), (3, NULL, '', 300)", Some((1, 54))),
            ("INSERT INTO t SELECT 4, '2024-13-01', '', 1", Some((1, 25))),
            ("DELETE FROM t WHERE d < '2024-13-01'", Some((1, 25))),
            // Nothing says which of two it is.
            ("SELECT 'x', 'x'::INT", None),
            // It is the row's text that is wrong, and no constant.
            ("SELECT s::DATE FROM t WHERE s = '2024-02-30'", None),
        ] {
            let error = connection.execute(sql).map(drop).unwrap_err();
            assert_eq!(error.position().map(|place| (place.line, place.column)), place, "{sql}: {error}");
            // What an optimized plan casts may be a constant that the statement compares with.
            if place.is_some() {
                let streamed =
                    connection.stream(sql, &[]).and_then(|rows| rows.collect::<crate::Result<Vec<_>>>());
                assert_eq!(streamed.unwrap_err().position(), error.position(), "{sql}, as a stream");
            }
        }
        // Parameters have no place.
        let parameter = [(crate::Value::Text("x".into()), crate::DataType::Varchar)];
        let error = connection.query("SELECT ?::INT", &parameter).map(drop).unwrap_err();
        assert_eq!(error.position(), None);
    }
}
