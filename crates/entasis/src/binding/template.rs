//! Statements on rows that are run often, with plans made from templates.
//!
//! A template is bound once and optimized for each run, because what the optimizer concludes holds for one
//! version of the tables and one set of values. What `now()`, `current_date` and others read from the clock
//! is given to each run like values. The time zone is fixed in a template: when it is set to another one, a
//! connection forgets its templates.

use crate::binding::Names;
use crate::prepared::{Kept, Prepared};
use crate::session::Session;
use crate::transaction::TransactionContext;
use entasis_engine::template::Template;
use entasis_functions::ClockReading;
use entasis_sql::{Catalog, ROW_ID, Statement};
use entasis_vector::{DataType, Error, Result, Value};
use std::borrow::Cow;
use std::sync::{Arc, PoisonError};

impl Prepared {
    /// The bound statement of this run, from the template; `None` if the statement must be bound.
    ///
    /// # Errors
    /// Only those that binding would raise.
    pub(crate) fn bound(
        &self,
        session: &Session,
        transaction: &mut TransactionContext,
        parameters: &[(Value, DataType)],
    ) -> Result<Option<Statement>> {
        let catalog = &session.shared.catalog;
        let has_null = parameters.iter().any(|(value, _)| value.is_null());
        // Another run might have less stack.
        if !self.parsed.is_of_rows() || has_null || entasis_sql::is_on_deep_stack() {
            return Ok(None);
        }
        // The state of the catalog in which these names are the newest.
        let state = |transaction: &TransactionContext| {
            catalog.at_rest(|newest| transaction.has_names(newest).then(|| catalog.changes()))
        };
        let Some(changes) = state(transaction) else { return Ok(None) };
        let Some(kept) = self.kept(session, transaction, changes, parameters) else { return Ok(None) };
        loop {
            let plan = {
                let names = Names::new(session, transaction);
                let given = with_clock(parameters, &kept.template, &names)?;
                kept.template.instance(&given, |place| {
                    let name = place.name();
                    let has_row_ids = place.schema().last().is_some_and(|field| &*field.name == ROW_ID);
                    let table = if has_row_ids { names.table_with_row_ids(name) } else { names.table(name) };
                    let gone = || Error::internal(format!("a template reads {name:?}, which is gone"));
                    table.ok_or_else(gone)
                })?
            };
            if plan.is_none() || transaction.sees_one_moment() {
                return Ok(plan.map(|plan| kept.with(plan)));
            }
            if state(transaction) != Some(changes) {
                return Ok(None);
            }
        }
    }

    /// What is kept for all runs, if something is.
    fn kept(
        &self,
        session: &Session,
        transaction: &mut TransactionContext,
        changes: u64,
        parameters: &[(Value, DataType)],
    ) -> Option<Arc<Kept>> {
        let mut known = self.template.lock().unwrap_or_else(PoisonError::into_inner);
        known.runs += 1;
        let types = parameters.iter().map(|(_, ty)| *ty);
        let is_made = known
            .made_for
            .as_ref()
            .is_some_and(|(state, made)| *state == changes && made.iter().copied().eq(types.clone()));
        // Most statements run only once.
        if !is_made && known.runs > 1 {
            let types: Vec<DataType> = types.collect();
            let bound = entasis_sql::bind_template(&self.parsed, &Names::new(session, transaction), &types);
            known.kept = bound.ok().and_then(Kept::new).map(Arc::new);
            known.made_for = Some((changes, types));
            known.took = None;
        }
        if known.runs > 1 { known.kept.clone() } else { None }
    }
}

/// The values for all parameters of a template: those of the statement, and what it reads from the clock.
fn with_clock<'a>(
    parameters: &'a [(Value, DataType)],
    template: &Template,
    names: &Names<'_>,
) -> Result<Cow<'a, [(Value, DataType)]>> {
    if template.parameters() <= parameters.len() {
        return Ok(Cow::Borrowed(parameters));
    }
    let mut all = parameters.to_vec();
    for reading in ClockReading::ALL {
        all.push((reading.value(&names.session())?, reading.ty()));
    }
    Ok(Cow::Owned(all))
}

#[cfg(test)]
mod tests {
    use crate::{Config, Connection, Database};
    use entasis_vector::{DataType, Value};

    fn number(value: i128) -> (Value, DataType) {
        (Value::Integer(value), DataType::Int64)
    }

    fn run(connection: &Connection, sql: &str, parameters: &[(Value, DataType)]) -> Vec<Vec<Value>> {
        let rows = connection.query(sql, parameters).unwrap_or_else(|error| panic!("{sql}: {error}"));
        rows.row_values().collect()
    }

    fn integers(connection: &Connection, sql: &str) -> Vec<Vec<i128>> {
        let integer = |value: Value| if let Value::Integer(value) = value { value } else { -1 };
        run(connection, sql, &[]).into_iter().map(|row| row.into_iter().map(integer).collect()).collect()
    }

    /// The statements change rows whatever their number of runs, with other values each time, as if each were
    /// run once.
    #[test]
    fn changes_are_the_same_in_every_run() {
        let statements = [
            "INSERT INTO t SELECT ?, 1, 'new' WHERE true ON CONFLICT (id) DO UPDATE SET n = t.n + excluded.n",
            "UPDATE t SET n = n * 10 WHERE n < ? AND text <> 'none'",
            "DELETE FROM t WHERE id % 50 = ?",
            "INSERT INTO t SELECT id + 1000 + ?, n, 'copy' FROM t WHERE id < 4 ON CONFLICT DO NOTHING",
            "UPDATE t SET n = (SELECT max(n) FROM t other WHERE other.id < ?) WHERE id = 33",
            "MERGE INTO t USING (SELECT ? AS k) s ON t.id = s.k WHEN MATCHED THEN UPDATE SET text = 'merged' \
             WHEN NOT MATCHED THEN INSERT VALUES (s.k, 0, 'not')",
        ];
        let [often, once] = [(), ()].map(|()| {
            let connection = Database::in_memory(Config::default()).unwrap().connect();
            for sql in [
                "CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT, text VARCHAR)",
                "CREATE INDEX by_n ON t (n)",
                "INSERT INTO t SELECT i, i % 7, 'row ' || i FROM range(200) r(i)",
            ] {
                connection.execute(sql).unwrap();
            }
            connection
        });
        for (round, value) in [3, 40, 3, 500, 8, 41, 7].into_iter().enumerate() {
            for sql in statements {
                run(&often, sql, &[number(value)]);
                run(&once, &format!("{} -- {round}", sql.replace('?', &value.to_string())), &[]);
                let all = "SELECT id, n, length(text) FROM t ORDER BY id";
                assert_eq!(integers(&often, all), integers(&once, all), "{sql} with {value}");
            }
        }
    }

    /// True if the connection keeps a template for the statement of this text.
    fn has_template(connection: &Connection, sql: &str) -> bool {
        let prepared = connection.session.prepare(sql).unwrap().expect("a single statement");
        let known = prepared.template.lock().unwrap();
        known.kept.is_some()
    }

    #[test]
    fn statements_that_read_the_clock_have_templates() {
        let connection = Database::in_memory(Config::default()).unwrap().connect();
        connection.execute("CREATE TABLE t (k BIGINT, at TIMESTAMPTZ, ts TIMESTAMP, d DATE)").unwrap();
        for zone in ["UTC", "Europe/Berlin"] {
            connection.set("timezone", zone).unwrap();
            for sql in [
                "SELECT now()",
                "SELECT k FROM t WHERE at > now() - INTERVAL '1 day'",
                "SELECT k FROM t WHERE at >= current_timestamp AND k = ?",
                "SELECT k FROM t WHERE d = current_date",
                "SELECT k FROM t WHERE ts < current_date",
                "SELECT k FROM t WHERE ts > localtimestamp - INTERVAL 1 HOUR",
                "SELECT age(ts), localtime, statement_timestamp() FROM t",
                "SELECT make_timestamptz(2026, 1, 2, 3, 4, 5.0)",
                "INSERT INTO t SELECT 1 + count(*), now(), localtimestamp, today() FROM t",
                "UPDATE t SET at = now() WHERE d < current_date AND k = ?",
            ] {
                let values: Vec<_> = sql.contains('?').then(|| number(1)).into_iter().collect();
                for _ in 0..3 {
                    run(&connection, sql, &values);
                }
                assert!(has_template(&connection, sql), "{sql} in {zone}");
            }
        }
        // Another one for each row, and no template.
        for _ in 0..3 {
            run(&connection, "SELECT clock_timestamp()", &[]);
        }
        assert!(!has_template(&connection, "SELECT clock_timestamp()"));
    }

    #[test]
    fn changes_see_the_tables_of_their_run() {
        let connection = Database::in_memory(Config::default()).unwrap().connect();
        connection.execute("CREATE TABLE t AS SELECT i AS id, 0 AS n FROM range(10) r(i)").unwrap();
        let sql = "UPDATE t SET n = n + ? WHERE id % 2 = 0";
        for _ in 0..3 {
            run(&connection, sql, &[number(1)]);
        }
        let sum = "SELECT sum(n) FROM t";
        assert_eq!(integers(&connection, sum), [[15]]);
        // NULL, another type, another column, another table of the name, a transaction that is undone.
        run(&connection, "UPDATE t SET n = coalesce(?, n) WHERE id = 100", &[(Value::Null, DataType::Null)]);
        run(&connection, sql, &[(Value::Integer(2), DataType::Decimal { precision: 3, scale: 0 })]);
        assert_eq!(integers(&connection, sum), [[25]]);
        connection.execute("ALTER TABLE t ADD COLUMN m INTEGER DEFAULT 7").unwrap();
        run(&connection, sql, &[number(1)]);
        assert_eq!(integers(&connection, "SELECT sum(n), sum(m) FROM t"), [[30, 70]]);
        connection.execute("BEGIN").unwrap();
        run(&connection, sql, &[number(1000)]);
        assert_eq!(integers(&connection, sum), [[5030]]);
        connection.execute("ROLLBACK").unwrap();
        assert_eq!(integers(&connection, sum), [[30]]);
        connection.execute("CREATE TEMP TABLE t AS SELECT 4 AS id, 1 AS n").unwrap();
        run(&connection, sql, &[number(1)]);
        assert_eq!(integers(&connection, sum), [[2]]);
        connection.execute("DROP TABLE t").unwrap();
        run(&connection, sql, &[number(1)]);
        assert_eq!(integers(&connection, sum), [[35]]);
        connection.execute("DROP TABLE t").unwrap();
        assert!(connection.query(sql, &[number(1)]).is_err());
    }

    #[test]
    fn a_change_that_fails_leaves_nothing() {
        let connection = Database::in_memory(Config::default()).unwrap().connect();
        for sql in [
            "CREATE TABLE t (id BIGINT PRIMARY KEY, n TINYINT CHECK (n < 100))",
            "INSERT INTO t SELECT i, i FROM range(10) r(i)",
        ] {
            connection.execute(sql).unwrap();
        }
        let sql = "UPDATE t SET n = n + ? WHERE id >= 0 AND n IS NOT NULL";
        for value in [1, 1, 200, 95, 1] {
            let is_ok = connection.query(sql, &[number(value)]).is_ok();
            assert_eq!(is_ok, value == 1, "{value}");
        }
        assert_eq!(integers(&connection, "SELECT sum(n) FROM t"), [[45 + 30]]);
        let sql = "INSERT INTO t SELECT id + ?, 1 FROM t";
        for value in [100, 200, 5] {
            let is_ok = connection.query(sql, &[number(value)]).is_ok();
            assert_eq!(is_ok, value != 5, "{value}");
        }
        assert_eq!(integers(&connection, "SELECT count(*) FROM t"), [[40]]);
    }
}
