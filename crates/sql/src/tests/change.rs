//! Statements that change rows: the forms that they bind to.

use super::*;
use crate::{Action, Change, Insert, Repeated};

pub(super) fn insert(sql: &str) -> Insert {
    match try_bind(sql) {
        Ok(Statement::Insert(insert)) => {
            check(&insert.plan, sql);
            let mut expected = columns_of(&insert.table);
            expected.extend(insert.checks.iter().map(|_| DataType::Boolean));
            expected.extend(insert.returning.iter().flatten().map(|field| field.ty));
            assert_eq!(
                insert.plan.schema().iter().map(|field| field.ty).collect::<Vec<_>>(),
                expected,
                "{sql}"
            );
            insert
        }
        other => panic!("{sql}: {other:?}"),
    }
}

pub(super) fn change(sql: &str) -> Change {
    match try_bind(sql) {
        Ok(Statement::Change(change)) => {
            check(&change.plan, sql);
            let table = columns_of(&change.table);
            let mut expected = vec![DataType::UInt64];
            if change.action == Action::ByRow {
                expected.push(DataType::Int8);
                assert_eq!(change.columns, (0..table.len()).collect::<Vec<_>>(), "{sql}");
            }
            expected.extend(change.columns.iter().map(|&i| table[i]));
            expected.extend(change.proposed.iter().map(|_| DataType::Boolean));
            expected.extend(change.checks.iter().map(|_| DataType::Boolean));
            expected.extend(change.returning.iter().flatten().map(|field| field.ty));
            assert_eq!(
                change.plan.schema().iter().map(|field| field.ty).collect::<Vec<_>>(),
                expected,
                "{sql}"
            );
            change
        }
        other => panic!("{sql}: {other:?}"),
    }
}

/// Number of calls of volatile functions in a plan.
fn volatile_calls(plan: &Plan) -> usize {
    let mut calls = 0;
    for node in nodes(plan) {
        if let Node::Project(project) = node {
            for (_, expr) in &project.exprs {
                expr.visit(&mut |e| {
                    calls +=
                        usize::from(matches!(e, Expr::External { function, .. } if function.is_volatile()))
                });
            }
        }
    }
    calls
}

#[test]
fn inserts_fill_all_columns() {
    let values = |sql: &str| match insert(sql).plan {
        Plan { root: Node::Values(values), output, .. } => {
            let at: Vec<usize> = output
                .iter()
                .map(|o| values.columns.iter().position(|id| *id == o.column).unwrap())
                .collect();
            values
                .rows
                .iter()
                .map(|row| at.iter().map(|&i| row[i].clone()).collect::<Vec<_>>())
                .collect::<Vec<_>>()
        }
        plan => panic!("{sql}: {plan:?}"),
    };
    let rows = values("INSERT INTO u (b, a) VALUES (1, 2), (DEFAULT, '3')");
    assert_eq!(rows[0][..3], [Value::Integer(2), Value::Integer(1), Value::Null]);
    assert_eq!(rows[1][..3], [Value::Integer(3), Value::Null, Value::Null]);
    assert_eq!(values("INSERT INTO u DEFAULT VALUES"), [vec![Value::Null; 5]]);
    assert_eq!(
        values("INSERT INTO u VALUES (DEFAULT, DEFAULT, DEFAULT, DEFAULT, DEFAULT)"),
        [vec![Value::Null; 5]]
    );

    // A sequence is called once for each row; constants and now() are constants.
    for sql in [
        "INSERT INTO w (b) SELECT b FROM t",
        "INSERT INTO w (b) VALUES (1), (2)",
        "INSERT INTO w VALUES (DEFAULT, 1, 2, 'x', DEFAULT)",
        "INSERT INTO w DEFAULT VALUES",
    ] {
        assert_eq!(volatile_calls(&insert(sql).plan), 1, "{sql}");
    }
    assert_eq!(volatile_calls(&insert("INSERT INTO w (id) VALUES (1), (DEFAULT), (DEFAULT)").plan), 2);
    insert("INSERT INTO g (q) VALUES (1)");
    insert("INSERT INTO g (p, q) VALUES (DEFAULT, 1)");
    insert("INSERT INTO t AS x (a) SELECT a FROM u UNION ALL SELECT 3");

    for (sql, message) in [
        ("INSERT INTO g VALUES (1, 2, 'x')", "the column p is GENERATED ALWAYS"),
        ("INSERT INTO u (a, a) VALUES (1, 2)", "the column a occurs twice"),
        ("INSERT INTO u (z) VALUES (1)", "there is no column z"),
        ("INSERT INTO u (a) VALUES (1, 2)", "each row has 2 values"),
        ("INSERT INTO v VALUES (1)", "v is a view"),
        ("UPDATE g SET p = 3", "the column p is GENERATED ALWAYS"),
    ] {
        assert!(refused(sql).to_string().contains(message), "{sql}: {}", refused(sql));
    }
}

#[test]
fn updates_and_deletes_ask_for_rows() {
    let made = change("UPDATE t SET b = u.b, a = '5' FROM u WHERE t.a = u.a");
    assert_eq!((made.action, made.columns, made.repeated), (Action::Update, vec![1, 0], Repeated::First));
    let made = change("DELETE FROM t USING u WHERE t.a = u.a");
    assert_eq!((made.action, made.columns.len(), made.plan.output.len()), (Action::Delete, 0, 1));
    change("UPDATE g SET p = DEFAULT, r = DEFAULT");
    change("UPDATE w x SET a = DEFAULT, made = DEFAULT, b = NULL WHERE x.id = 3");
    assert!(refused("UPDATE t SET a = 1, a = 2").message().contains("set twice"));
    assert!(refused("UPDATE t SET z = 1").message().contains("there is no column z"));
    assert!(refused("UPDATE v SET next = 1").message().contains("v is a view"));
}

#[test]
fn checks_are_judged_where_they_can_fail() {
    let names = |statement: &[String]| statement.join(" ");
    assert_eq!(names(&insert("INSERT INTO w (b) VALUES (1)").checks), "w_a_check w_check");
    assert_eq!(names(&change("UPDATE w SET a = a + 1 WHERE id = 3").checks), "w_a_check w_check");
    assert_eq!(names(&change("UPDATE w SET s = 'y'").checks), "w_check");
    assert_eq!(names(&change("UPDATE w SET made = NULL").checks), "");
    assert_eq!(names(&change("DELETE FROM w").checks), "");
}

#[test]
fn rows_are_returned() {
    let schema = |schema: Option<Schema>| {
        schema.unwrap().iter().map(|f| format!("{} {}", f.name, f.ty)).collect::<Vec<_>>().join(", ")
    };
    let all = "id INTEGER, a INTEGER, b BIGINT, S VARCHAR, made TIMESTAMP";
    assert_eq!(schema(insert("INSERT INTO w (b) VALUES (1) RETURNING *").returning), all);
    let sql = "INSERT INTO w AS n (b) SELECT b FROM t RETURNING id, n.b + 1 AS next, upper(s), n.*";
    assert_eq!(schema(insert(sql).returning), format!("id INTEGER, next BIGINT, upper(s) VARCHAR, {all}"));
    let sql = "UPDATE w SET a = 2 WHERE id = 1 RETURNING a, w.a * 2, (SELECT max(a) FROM t) AS m, s, s";
    assert_eq!(schema(change(sql).returning), "a INTEGER, w.a * 2 INTEGER, m INTEGER, S VARCHAR, S VARCHAR");
    let sql = "UPDATE w SET a = t.a FROM t WHERE w.b = t.b RETURNING w.id, t.x, x + 1, ok AS o";
    assert_eq!(schema(change(sql).returning), "id INTEGER, x DOUBLE, x + 1 DOUBLE, o BOOLEAN");
    assert_eq!(schema(change("DELETE FROM w RETURNING *").returning), all);
    let sql = "DELETE FROM w AS d USING u WHERE d.a = u.a RETURNING d.id, u.mixed";
    assert_eq!(schema(change(sql).returning), "id INTEGER, mixed INTEGER");

    let error = refused("INSERT INTO w (b) VALUES (1) RETURNING idd");
    assert_eq!((error.message(), error.hint()), ("there is no column idd", Some("did you mean id?")));
    assert_eq!(error.position().map(|p| p.column), Some(40));
    assert!(refused("DELETE FROM w RETURNING u.*").message().contains("there is no table u"));
}

#[test]
fn conflicts_are_found_by_key() {
    let kinds = |plan: &Plan| {
        let plan = decorrelated(plan.clone()).unwrap();
        let joins = nodes(&plan).into_iter().filter_map(|node| match node {
            Node::Join(join) => Some((join.kind, join.on.len())),
            _ => None,
        });
        joins.collect::<Vec<_>>()
    };
    let made = change("INSERT INTO w (id, b) VALUES (1, 2) ON CONFLICT DO NOTHING RETURNING *");
    assert_eq!((made.action, made.repeated, made.conflicts), (Action::ByRow, Repeated::First, vec![0, 1]));
    assert_eq!(kinds(&made.plan), [(JoinKind::Left, 1), (JoinKind::Left, 1)]);
    assert_eq!(made.checks.len(), 2);
    let made = change("INSERT OR IGNORE INTO g (q) SELECT a FROM t");
    let (found, calls) = (kinds(&made.plan), volatile_calls(&made.plan));
    assert!(
        matches!(found[..], [(JoinKind::Anti | JoinKind::Left, 2)]) && calls == 1,
        "{found:?}, {calls} calls"
    );
    assert_eq!(change("INSERT INTO w (b) VALUES (2) ON CONFLICT (b) DO NOTHING").conflicts, [1]);
    assert_eq!(
        change("INSERT INTO w (b) VALUES (2) ON CONFLICT ON CONSTRAINT w_b_key DO NOTHING").conflicts,
        [1]
    );
    assert!(kinds(&change("INSERT INTO t (a) VALUES (1) ON CONFLICT DO NOTHING").plan).is_empty());

    for sql in [
        "INSERT INTO w (b, a) VALUES (2, 3) ON CONFLICT (b) DO UPDATE SET a = a + excluded.a, made = now()",
        "INSERT INTO w AS x (b) VALUES (2) ON CONFLICT (B) DO UPDATE SET a = x.a + 1, s = DEFAULT WHERE x.a < excluded.a",
        "INSERT INTO w (b) SELECT b FROM t ON CONFLICT (b) DO UPDATE SET (a, s) = (excluded.a, 'x') RETURNING id, w.a + 1",
        "INSERT INTO w (b) VALUES (1) ON CONFLICT (b) DO UPDATE SET a = (SELECT max(t.a) FROM t) WHERE w.a IS NOT NULL",
    ] {
        let made = change(sql);
        assert_eq!((made.repeated, made.conflicts), (Repeated::Error, vec![1]), "{sql}");
        assert_eq!(volatile_calls(&made.plan), 1, "{sql}");
        assert!(kinds(&made.plan).contains(&(JoinKind::Left, 1)), "{sql}: {:?}", kinds(&made.plan));
    }
    let made = change("INSERT OR REPLACE INTO g (q, r) VALUES (1, 'x')");
    assert_eq!((made.repeated, made.conflicts), (Repeated::Error, vec![0]));

    for (sql, message) in [
        ("INSERT INTO w (b) VALUES (1) ON CONFLICT (a) DO NOTHING", "(a) is not a unique key of table w"),
        ("INSERT INTO w (b) VALUES (1) ON CONFLICT (z) DO NOTHING", "there is no column z"),
        ("INSERT INTO w (b) VALUES (1) ON CONFLICT ON CONSTRAINT x DO NOTHING", "no unique key named x"),
        ("INSERT INTO w (b) VALUES (1) ON CONFLICT DO UPDATE SET a = 1", "several unique keys"),
        ("INSERT OR REPLACE INTO w (b) VALUES (1)", "several unique keys"),
        ("INSERT INTO t (a) VALUES (1) ON CONFLICT DO UPDATE SET a = 1", "no unique key"),
        ("INSERT INTO w (b) VALUES (1) ON CONFLICT (b) DO UPDATE SET z = 1", "there is no column z"),
        (
            "INSERT INTO w (b) VALUES (1) ON CONFLICT (b) DO UPDATE SET a = excluded.z",
            "there is no column excluded.z",
        ),
        ("INSERT INTO g (r) VALUES (1) ON CONFLICT (r) DO NOTHING", "(r) is not a unique key"),
    ] {
        assert!(refused(sql).to_string().contains(message), "{sql}: {}", refused(sql));
    }
    let hint = refused("INSERT INTO w (b) VALUES (1) ON CONFLICT (a) DO NOTHING");
    assert_eq!(hint.hint(), Some("its unique keys are (id) and (b)"));
}

#[test]
fn merges_do_what_fits_first() {
    let kind = |sql: &str| {
        let made = change(sql);
        assert_eq!((made.action, made.repeated), (Action::ByRow, Repeated::Error), "{sql}");
        let join = nodes(&made.plan).into_iter().find_map(|node| match node {
            Node::Join(join) => Some(join.kind),
            _ => None,
        });
        join.unwrap_or_else(|| panic!("{sql}: no join"))
    };
    let sql = "MERGE INTO w USING t ON w.id = t.a WHEN MATCHED AND t.b > 3 THEN UPDATE SET a = t.a + w.a, s = DEFAULT \
               WHEN MATCHED THEN DELETE";
    assert_eq!(kind(sql), JoinKind::Inner);
    let sql = "MERGE INTO w AS x USING (SELECT a, b FROM t) AS n ON x.id = n.a WHEN MATCHED AND n.b IS NULL THEN DO NOTHING \
               WHEN MATCHED THEN UPDATE SET b = n.b WHEN NOT MATCHED AND n.b = 2 THEN DO NOTHING \
               WHEN NOT MATCHED BY TARGET THEN INSERT (id, b) VALUES (n.a, n.b) RETURNING x.*, n.a AS source_a";
    assert_eq!(kind(sql), JoinKind::Left);
    let returning = change(sql).returning.unwrap();
    assert_eq!(
        returning.iter().map(|f| &*f.name).collect::<Vec<_>>(),
        ["id", "a", "b", "S", "made", "source_a"]
    );
    let sql = "MERGE INTO w USING t ON w.id = t.a WHEN MATCHED THEN UPDATE SET w.a = 1 \
               WHEN NOT MATCHED THEN INSERT (b) VALUES (DEFAULT) WHEN NOT MATCHED BY SOURCE THEN DELETE";
    assert_eq!(kind(sql), JoinKind::Full);
    let sql = "MERGE INTO w USING t AS n ON w.id = n.a WHEN NOT MATCHED BY SOURCE AND w.a > 3 THEN UPDATE SET a = 0";
    kind(sql);
    for (sql, message) in [
        ("MERGE INTO w USING t ON w.id = t.a", "MERGE has no WHEN clause"),
        (
            "MERGE INTO g USING t ON g.q = t.a WHEN NOT MATCHED THEN INSERT VALUES (1, 2, 'x')",
            "GENERATED ALWAYS",
        ),
        (
            "MERGE INTO w USING t ON w.id = t.a WHEN NOT MATCHED THEN INSERT (id) VALUES (1, 2)",
            "each row has 2 values",
        ),
        ("MERGE INTO v USING t ON true WHEN MATCHED THEN DELETE", "v is a view"),
        ("MERGE INTO w USING tt ON true WHEN MATCHED THEN DELETE", "there is no table tt"),
        ("MERGE INTO w USING t ON w.id = t.a WHEN MATCHED THEN UPDATE SET q = 1", "there is no column q"),
    ] {
        assert!(refused(sql).to_string().contains(message), "{sql}: {}", refused(sql));
    }
}

#[test]
fn several_columns_are_set_at_once() {
    assert_eq!(change("UPDATE t SET (a, b) = (1, a), s = 'x'").columns, [0, 1, 2]);
    assert_eq!(change("UPDATE t SET (b, a) = (SELECT u.b, u.a FROM u WHERE u.s = t.s)").columns, [1, 0]);
    assert_eq!(change("UPDATE w AS x SET x.a = x.a + 1 WHERE x.id = 1").columns, [1]);
    assert!(
        refused("UPDATE t SET (a, b) = (1, 2, 3)")
            .message()
            .contains("2 columns are set to a row of 3 values")
    );
    assert!(refused("UPDATE t SET (a, b) = (1, 2), a = 3").message().contains("set twice"));
}
