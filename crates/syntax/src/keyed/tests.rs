//! Which statements are keyed, and which are not.

use super::*;
use entasis_vector::{DataType, Value};
use std::ops::Bound;

fn integer(value: i128) -> Scalar {
    Scalar::Constant(Value::Integer(value), DataType::Int64)
}

fn of(sql: &str) -> Option<Keyed> {
    parse(sql).unwrap()[0].keyed()
}

#[test]
fn plain_statements_are_recognized() {
    let parameter = |name: &str, index| (name.to_string(), Scalar::Parameter(index));
    let read = of("SELECT a, b FROM t WHERE k = ? AND (2 = j)").unwrap();
    let two = ("j".to_string(), integer(2));
    assert_eq!(read.key, [parameter("k", 0), two]);
    assert_eq!(read.action, KeyedAction::Read(vec!["a".into(), "b".into()]));
    assert_eq!(of("SELECT * FROM main.t WHERE k = $1").unwrap().action, KeyedAction::Read(vec![]));
    let insert = of("INSERT INTO t (k, a) VALUES (?, -1)").unwrap();
    let values = vec![Insertable::Scalar(Scalar::Parameter(0)), Insertable::Scalar(integer(-1))];
    assert_eq!(insert.action, KeyedAction::Insert(vec!["k".into(), "a".into()], vec![values], None));
    let rows = of("INSERT INTO t VALUES (DEFAULT), (-1.50)").unwrap().action;
    let fraction = Scalar::Constant(Value::Integer(-150), DataType::Decimal { precision: 3, scale: 2 });
    let rows_wanted = vec![vec![Insertable::Default], vec![Insertable::Scalar(fraction)]];
    assert_eq!(rows, KeyedAction::Insert(vec![], rows_wanted, None));
    let update = of("UPDATE t SET a = 'x', b = NULL WHERE k = 1").unwrap();
    let set = [("a", Value::Text("x".into()), DataType::Varchar), ("b", Value::Null, DataType::Null)];
    let constant = |value, ty| Assigned::Scalar(Scalar::Constant(value, ty));
    let set = set.map(|(name, value, ty)| (name.to_string(), constant(value, ty))).to_vec();
    assert_eq!(update.action, KeyedAction::Update(set));
    let sum = |column: &str, by, is_negative| Assigned::Sum { column: column.into(), by, is_negative };
    let one = || integer(1);
    let update = of("UPDATE t SET a = a - 1, b = (? + b) WHERE k = 1 RETURNING *").unwrap();
    let set = vec![
        ("a".to_string(), sum("a", one(), true)),
        ("b".to_string(), sum("b", Scalar::Parameter(0), false)),
    ];
    assert_eq!((update.action, update.returning), (KeyedAction::Update(set), Some(vec![])));
    let upsert = "INSERT INTO t VALUES (1) ON CONFLICT (k) DO UPDATE SET a = excluded.b, b = t.b + 1, c = 1";
    let KeyedAction::Insert(_, _, Some(on)) = of(upsert).unwrap().action else { panic!("it is") };
    let set = [
        ("a", Assigned::Excluded("b".into())),
        ("b", sum("b", one(), false)),
        ("c", Assigned::Scalar(integer(1))),
    ];
    assert_eq!(on.set, set.map(|(name, value)| (name.to_string(), value)));
    let on = of("INSERT INTO t VALUES (1) ON CONFLICT (k) DO NOTHING RETURNING a").unwrap();
    assert_eq!(on.returning, Some(vec!["a".to_string()]));
    assert_eq!(of("DELETE FROM t WHERE k = ?").unwrap().key, [parameter("k", 0)]);
}

#[test]
fn several_rows_are_named_by_one_column() {
    let several = |sql: &str| match of(sql).unwrap().action {
        KeyedAction::ReadSeveral(_, several) => several,
        other => panic!("{other:?}"),
    };
    let named = |keys, descends, limit| Several { column: "k".into(), keys, descends, limit };
    let list = Keys::List(vec![integer(1), Scalar::Parameter(0)]);
    assert_eq!(several("SELECT a FROM t WHERE k IN (1, ?)"), named(list.clone(), None, None));
    let some = several("SELECT * FROM t WHERE (k IN (1, ?)) ORDER BY K DESC LIMIT 3");
    assert_eq!(some, named(list, Some(true), Some(integer(3))));
    let one = Keys::List(vec![integer(1)]);
    assert_eq!(several("SELECT a FROM t WHERE k = 1 LIMIT 1"), named(one, None, Some(integer(1))));
    let range = |low, high| named(Keys::Range(low, high), None, None);
    let (open, two) = (Bound::Unbounded, integer(2));
    for (condition, low, high) in [
        ("k > 2", Bound::Excluded(two.clone()), open.clone()),
        ("2 <= k", Bound::Included(two.clone()), open.clone()),
        ("k <= ?", open.clone(), Bound::Included(Scalar::Parameter(0))),
        ("2 > k", open.clone(), Bound::Excluded(two.clone())),
        ("k >= 2 AND k < ?", Bound::Included(two.clone()), Bound::Excluded(Scalar::Parameter(0))),
        ("k < ? AND 2 < K", Bound::Excluded(two.clone()), Bound::Excluded(Scalar::Parameter(0))),
        ("k BETWEEN 2 AND ?", Bound::Included(two.clone()), Bound::Included(Scalar::Parameter(0))),
    ] {
        assert_eq!(several(&format!("SELECT a FROM t WHERE {condition}")), range(low, high), "{condition}");
    }
    let all = Keys::Range(open.clone(), open);
    let latest = several("SELECT a FROM t ORDER BY k DESC LIMIT ?");
    assert_eq!(latest, named(all, Some(true), Some(Scalar::Parameter(0))));
}

#[test]
fn everything_else_goes_the_long_way() {
    for sql in [
        "SELECT a + 1 FROM t WHERE k = 1",
        "SELECT a FROM t WHERE k = 1 OR k = 2",
        "SELECT a FROM t WHERE k = 1 AND k = 2",
        "SELECT a FROM t WHERE k = 1 ORDER BY a",
        "SELECT a FROM t WHERE k > 1 ORDER BY k, a",
        "SELECT a FROM t WHERE k > 1 LIMIT 1 OFFSET 1",
        "SELECT a FROM t WHERE k > 1 AND k > 2",
        "SELECT a FROM t WHERE k > 1 AND j < 2",
        "SELECT a FROM t WHERE k NOT IN (1, 2)",
        "SELECT a FROM t WHERE k NOT BETWEEN 1 AND 2",
        "SELECT a FROM t WHERE k IN (SELECT 1)",
        "SELECT a FROM t LIMIT 1",
        "SELECT DISTINCT a FROM t WHERE k = 1",
        "SELECT a AS b FROM t WHERE k = 1",
        "SELECT a FROM t AS u WHERE k = 1",
        "SELECT a FROM t, u WHERE k = 1",
        "SELECT a FROM t JOIN u ON true WHERE k = 1",
        "SELECT a FROM t WHERE k = b",
        "SELECT a FROM t",
        "SELECT a FROM (SELECT 1) t WHERE k = 1",
        "WITH c AS (SELECT 1) SELECT a FROM t WHERE k = 1",
        "SELECT a FROM t WHERE k = 1 UNION ALL SELECT 2",
        "SELECT * EXCLUDE (a) FROM t WHERE k = 1",
        "INSERT INTO t VALUES (1 + 1)",
        "INSERT INTO t SELECT 1",
        "INSERT INTO t VALUES (1) RETURNING a + 1",
        "INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING",
        "INSERT INTO t VALUES (1) ON CONFLICT (k) DO UPDATE SET a = a + 1",
        "INSERT INTO t VALUES (1) ON CONFLICT (k) DO UPDATE SET a = u.a + 1",
        "INSERT INTO t VALUES (1) ON CONFLICT (k) DO UPDATE SET a = excluded.a + 1",
        "INSERT INTO t VALUES (1) ON CONFLICT (k) DO UPDATE SET a = 1 WHERE t.b = 2",
        "UPDATE t SET a = a * 2 WHERE k = 1",
        "UPDATE t SET a = a + b WHERE k = 1",
        "UPDATE t SET a = t.a + 1 WHERE k = 1",
        "UPDATE t SET a = 1",
        "UPDATE t SET a = 1 FROM u WHERE k = 1",
        "UPDATE t SET a = 1 WHERE k = 1 RETURNING a AS b",
        "DELETE FROM t",
        "DELETE FROM t USING u WHERE k = 1",
        "CREATE TABLE t (a INTEGER)",
        "EXPLAIN SELECT a FROM t WHERE k = 1",
    ] {
        assert_eq!(of(sql), None, "{sql}");
    }
}
