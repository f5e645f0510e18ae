//! Every clause for every type.
//!
//! Each type has a few values in their order. A query over a column `x` of that type must give what it
//! gives over `k`, the numbers of these values: equal values have equal numbers, and lesser ones lesser
//! numbers, so that grouping, joining, comparing and ordering do not depend on which of the two they see.
//! INTEGER, for which all clauses have tests of their own, is the twin of all other types. In a query,
//! `{x}` is the column and `{0}`, `{1}` … are values.

use entasis::{Config, Connection, DataType, Database, Value};
use std::collections::HashMap;

/// Types with values in ascending order, as SQL.
const TYPES: &[(&str, &[&str])] = &[
    ("BOOLEAN", &["false", "true"]),
    ("TINYINT", &["'-128'", "'-1'", "0", "127"]),
    ("SMALLINT", &["'-32768'", "0", "32767"]),
    ("BIGINT", &["'-9223372036854775808'", "'-1000000'", "1000000", "9223372036854775807"]),
    ("UTINYINT", &["0", "1", "255"]),
    ("USMALLINT", &["0", "65535"]),
    ("UINTEGER", &["0", "1", "4294967295"]),
    ("UBIGINT", &["0", "1", "18446744073709551615"]),
    ("REAL", &["'-inf'", "'-1.5'", "0", "1e-45", "'inf'", "'nan'"]),
    ("DOUBLE", &["'-inf'", "'-1e300'", "0", "5e-324", "1e300", "'inf'", "'nan'"]),
    ("DECIMAL(4,1)", &["'-999.9'", "'-0.1'", "0", "0.1", "999.9"]),
    (
        "DECIMAL(38,2)",
        &["'-999999999999999999999999999999999999.99'", "0", "999999999999999999999999999999999999.99"],
    ),
    (
        "VARCHAR",
        &[
            "''",
            "' '",
            "'a'",
            "'a text that is longer than twelve bytes'",
            "'a text that is longer than twelve bytes!'",
            "'b'",
            "'ß'",
        ],
    ),
    (
        "JSON",
        &["' 1'", "'1'", "'[1, \"a text that is longer than twelve bytes\"]'", "'null'", "'{\"a\": null}'"],
    ),
    ("BLOB", &["''", "'\\x00'", "'\\x00\\x00'", "'a'", "'\\xFF'"]),
    ("DATE", &["'-infinity'", "'0044-03-15 (BC)'", "'1970-01-01'", "'2024-02-29'", "'infinity'"]),
    ("TIME", &["'00:00:00'", "'00:00:00.000001'", "'24:00:00'"]),
    (
        "TIMETZ",
        &["'00:00:00+15:59:59'", "'01:00:00+02'", "'00:00:00+01'", "'23:00:00+00'", "'24:00:00-15:59:59'"],
    ),
    ("TIMESTAMP", &["'-infinity'", "'1969-12-31 23:59:59'", "'2024-02-29 12:00:00.5'", "'infinity'"]),
    (
        "TIMESTAMP_NS",
        &[
            "'-infinity'",
            "'1969-12-31 23:59:59.999999999'",
            "'2024-02-29 12:00:00.5'",
            "'2024-02-29 12:00:00.500000001'",
            "'infinity'",
        ],
    ),
    ("TIMESTAMPTZ", &["'-infinity'", "'1969-12-31 23:59:59+00'", "'2024-02-29 12:00:00.5+00'", "'infinity'"]),
    ("INTERVAL", &["'-1 month'", "'-29 days'", "'0 days'", "'1 day 02:00:00'", "'27 hours'", "'1 month'"]),
    (
        "UUID",
        &[
            "'00000000-0000-0000-0000-000000000000'",
            "'7fffffff-ffff-ffff-ffff-ffffffffffff'",
            "'80000000-0000-0000-0000-000000000000'",
            "'ffffffff-ffff-ffff-ffff-ffffffffffff'",
        ],
    ),
    ("ENUM('z', 'a longer label', '', 'a')", &["'z'", "'a longer label'", "''", "'a'"]),
    ("ENUM('b', 'a')[]", &["[]", "['b']", "['b', 'b']", "['a']", "[NULL]"]),
    ("INTEGER[]", &["[]", "[-1]", "[1]", "[1, 2]", "[2]", "[NULL]"]),
    (
        "VARCHAR[]",
        &["[]", "['']", "['', '']", "['a', NULL]", "['a text that is longer than twelve bytes']", "['b']"],
    ),
    ("DOUBLE[][]", &["[]", "[[]]", "[['-inf']]", "[[1.5], []]", "[[1.5], NULL]", "[['nan']]", "[NULL]"]),
    (
        "STRUCT(a INTEGER, b VARCHAR)",
        &[
            "{'a': 1, 'b': ''}",
            "{'a': 1, 'b': 'x, y'}",
            "{'a': 1, 'b': NULL}",
            "{'a': 2, 'b': ''}",
            "{'a': NULL, 'b': 'z'}",
            "{'a': NULL, 'b': NULL}",
        ],
    ),
    ("INTEGER[2]", &["[-1, 5]", "[1, 1]", "[1, 2]", "[1, NULL]", "[NULL, NULL]"]),
    (
        "VARCHAR[1][]",
        &["[]", "[['']]", "[['a text that is longer than twelve bytes']]", "[['b'], ['a']]", "[NULL]"],
    ),
    (
        "MAP(VARCHAR, INTEGER)",
        &[
            "MAP {}",
            "MAP {'': NULL}",
            "MAP {'a': 1}",
            "MAP {'a': 1, 'a text that is longer than twelve bytes': 2}",
            "MAP {'a': 2}",
            "MAP {'a': NULL}",
            "MAP {'b': 0, 'a': 1}",
        ],
    ),
    (
        "MAP(DATE, DOUBLE[])[]",
        &["[]", "[MAP {'1970-01-01': [1.5]}]", "[MAP {'2024-01-01': []}, NULL]", "[NULL]"],
    ),
    (
        "STRUCT(t TIMESTAMP, l STRUCT(n BIGINT)[])",
        &[
            "{'t': '1970-01-01', 'l': []}",
            "{'t': '1970-01-01', 'l': [{'n': 1}]}",
            "{'t': '2024-01-01', 'l': [{'n': NULL}]}",
            "{'t': NULL, 'l': NULL}",
        ],
    ),
];

/// Queries. `t(n, x, k)` has every value several times and NULLs, `u(x, k)` some values, `d(x, k)` each once.
const QUERIES: &[&str] = &[
    // ---- order
    "SELECT {x} FROM t ORDER BY {x}",
    "SELECT {x}, n FROM t ORDER BY {x} DESC NULLS FIRST, n",
    "SELECT {x}, n FROM t ORDER BY {x} NULLS LAST, n LIMIT 4",
    "SELECT {x}, n FROM t ORDER BY {x} DESC, n LIMIT 3 OFFSET 2",
    "SELECT {x}, n FROM t ORDER BY n % 2, {x} DESC NULLS LAST, n LIMIT 5",
    "SELECT n FROM t ORDER BY {x}, n",
    "SELECT {x} FROM t ORDER BY {x} FETCH FIRST 2 ROWS WITH TIES",
    "SELECT unnest([{x}, NULL, {x}]) AS u, n FROM t ORDER BY n, u",
    "SELECT unnest([{x}, {x}]) AS u FROM t ORDER BY {x}, n, u",
    // ---- groups and sets
    "SELECT {x}, count(*), sum(n) FROM t GROUP BY {x}",
    "SELECT {x}, n % 3, count(*) FROM t GROUP BY {x}, n % 3",
    "SELECT {x}, count(*) FROM t GROUP BY {x} HAVING count(*) > 1 AND {x} IS NOT NULL",
    "SELECT {x}, n % 2, count(*) FROM t GROUP BY ROLLUP ({x}, n % 2)",
    "SELECT {x}, n % 2, count(*), grouping({x}) FROM t GROUP BY GROUPING SETS (({x}), (n % 2), ())",
    "SELECT DISTINCT {x} FROM t",
    "SELECT DISTINCT {x}, n % 2 FROM t",
    "SELECT DISTINCT ON ({x}) {x}, n FROM t ORDER BY {x}, n DESC",
    "SELECT {x} FROM t UNION SELECT {x} FROM u",
    "SELECT {x} FROM t UNION ALL SELECT {x} FROM u",
    "SELECT {x} FROM t INTERSECT SELECT {x} FROM u",
    "SELECT {x} FROM t INTERSECT ALL SELECT {x} FROM u",
    "SELECT {x} FROM t EXCEPT SELECT {x} FROM u",
    "SELECT {x} FROM t EXCEPT ALL SELECT {x} FROM u",
    "SELECT {x} FROM t UNION ALL SELECT NULL ORDER BY 1 LIMIT 50",
    // ---- aggregates
    "SELECT min({x}), max({x}), count({x}), count(DISTINCT {x}), CASE WHEN any_value({x}) IS NULL THEN 1 END FROM t",
    "SELECT n % 3, min({x}), max({x}), count(DISTINCT {x}) FROM t GROUP BY n % 3",
    "SELECT n % 3, min({x}) FILTER (WHERE n > 3), max({x}) FILTER (WHERE n > 1000) FROM t GROUP BY n % 3",
    "SELECT first({x} ORDER BY n), last({x} ORDER BY n), first(n ORDER BY {x}, n), last({x} ORDER BY {x} NULLS FIRST) FROM t",
    "SELECT arg_min({x}, n), arg_max({x}, n) FROM t WHERE {x} IS NOT NULL",
    "SELECT arg_min(k, {x}), arg_max(k, {x}), max_by(k, {x}) FROM d",
    "SELECT mode({x}) FROM (SELECT {x} FROM t WHERE {x} = {1} UNION ALL SELECT {x} FROM d)",
    "SELECT unnest(l) FROM (SELECT list({x} ORDER BY {x} DESC NULLS LAST) AS l FROM t)",
    "SELECT n % 2, unnest(list({x} ORDER BY n)) FROM t GROUP BY n % 2 ORDER BY 1",
    "SELECT unnest(list(DISTINCT {x} ORDER BY {x})) FROM t",
    "SELECT count(*) FROM (SELECT min({x}) AS m FROM t GROUP BY n HAVING min({x}) IS NOT NULL)",
    // ---- joins and subqueries
    "SELECT a.n, b.n FROM t a JOIN t b ON a.{x} = b.{x}",
    "SELECT a.n, b.{x} FROM t a LEFT JOIN u b ON a.{x} = b.{x}",
    "SELECT {x}, t.n FROM t RIGHT JOIN u USING ({x})",
    "SELECT {x}, t.n FROM t FULL JOIN u USING ({x})",
    "SELECT a.n, b.k FROM t a JOIN u b ON a.{x} IS NOT DISTINCT FROM b.{x}",
    "SELECT a.k, b.k FROM d a JOIN d b ON a.{x} < b.{x}",
    "SELECT a.k, b.k FROM d a JOIN d b ON a.{x} >= b.{x} AND a.k % 2 = b.k % 2",
    "SELECT a.k, b.k FROM d a ASOF JOIN u b ON a.{x} >= b.{x}",
    "SELECT n FROM t WHERE {x} IN (SELECT {x} FROM u)",
    "SELECT n FROM t WHERE {x} NOT IN (SELECT {x} FROM u WHERE {x} IS NOT NULL)",
    "SELECT n FROM t WHERE {x} NOT IN (SELECT {x} FROM u)",
    "SELECT n FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.{x} = t.{x})",
    "SELECT n, (SELECT count(*) FROM u WHERE u.{x} <= t.{x}) FROM t",
    "SELECT n, (SELECT max(u.{x}) FROM u WHERE u.{x} < t.{x}) FROM t",
    "SELECT n FROM t WHERE {x} = (SELECT max({x}) FROM t)",
    "SELECT n FROM t WHERE {x} > ALL (SELECT {x} FROM u WHERE k < 1)",
    "SELECT n FROM t WHERE {x} = ANY (SELECT {x} FROM u)",
    "SELECT a.n, l.{x} FROM t a, LATERAL (SELECT {x} FROM u WHERE u.{x} = a.{x} LIMIT 1) l",
    "WITH c AS (SELECT {x} FROM t) SELECT a.{x} FROM c a JOIN c b ON a.{x} = b.{x}",
    "WITH RECURSIVE r AS (SELECT min({x}) AS v FROM d UNION SELECT d.{x} FROM d, r WHERE d.{x} > r.v) SELECT v FROM r",
    // ---- conditions and expressions
    "SELECT n FROM t WHERE {x} = {1}",
    "SELECT n FROM t WHERE {x} <> {0}",
    "SELECT n FROM t WHERE {x} > {0} AND {x} <= {1}",
    "SELECT n FROM t WHERE {x} BETWEEN {0} AND {1}",
    "SELECT n FROM t WHERE {x} IN ({0}, {1})",
    "SELECT n FROM t WHERE {x} NOT IN ({0}, {1})",
    "SELECT n FROM t WHERE {x} IN ({1}, NULL)",
    "SELECT n FROM t WHERE {x} IS DISTINCT FROM {1}",
    "SELECT n, CASE WHEN n % 2 = 0 THEN {x} END, CASE WHEN n % 3 = 0 THEN {x} ELSE {1} END FROM t",
    "SELECT n, CASE {x} WHEN {0} THEN 'first' WHEN {1} THEN 'second' ELSE 'other' END FROM t",
    "SELECT n, coalesce({x}, {1}), coalesce(NULL, {x}), ifnull({x}, {0}), nullif({x}, {1}) FROM t",
    "SELECT n, greatest({x}, {1}), least({x}, {1}, NULL), if(n > 3, {x}, {0}) FROM t",
    "SELECT n, ([{x}, {1}])[1], ({'s': {x}}).s, len([{x}, {x}]) FROM t",
    "SELECT n, list_position([{0}, {1}, NULL], {x}), CASE WHEN list_contains([{0}, {1}], {x}) THEN 1 END FROM t",
    "SELECT unnest(list_sort([{1}, {x}, {0}])) AS v, n FROM t ORDER BY n",
    "SELECT list_min([{1}, {x}]), list_max([{1}, {x}]), list_unique([{1}, {x}, {x}]), n FROM t",
    "SELECT * FROM (VALUES ({1}), ({0}), (NULL)) v(c) ORDER BY c",
    "SELECT c, i FROM (VALUES ({1}, 1), (NULL, 2), ({0}, 3)) v(c, i) WHERE c IS NOT NULL",
    // ---- windows
    "SELECT n, row_number() OVER (ORDER BY {x}, n), rank() OVER (ORDER BY {x}), dense_rank() OVER (ORDER BY {x} DESC NULLS LAST) FROM t",
    "SELECT n, lag({x}) OVER (ORDER BY n), lead({x}, 2) OVER (ORDER BY n), lag({x}, 1, {1}) OVER (ORDER BY n) FROM t",
    "SELECT n, first_value({x}) OVER w, last_value({x}) OVER w, nth_value({x}, 2) OVER w FROM t WINDOW w AS (PARTITION BY n % 2 ORDER BY {x} DESC, n)",
    "SELECT n, max({x}) OVER (ORDER BY n ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING), min({x}) OVER (PARTITION BY n % 2) FROM t",
    "SELECT n, count(*) OVER (PARTITION BY {x}), count(*) OVER (ORDER BY {x}), count({x}) OVER (ORDER BY n) FROM t",
    "SELECT n, sum(n) OVER (ORDER BY {x} GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t",
    "SELECT {x}, n FROM t QUALIFY row_number() OVER (PARTITION BY {x} ORDER BY n) = 1",
    "SELECT {x}, n FROM t QUALIFY {x} = max({x}) OVER ()",
    "SELECT n, count(DISTINCT {x}) OVER (PARTITION BY n % 2) FROM t",
];

/// Statements that keep the column in keys, orders and indexes, and queries of what they have left. `{x}`
/// is not a column of several here, since all tables have only the one of their type.
const KEPT: &[(&[&str], &[&str])] = &[
    (
        &[
            "CREATE TABLE p(c {type} PRIMARY KEY, i INTEGER)",
            "INSERT INTO p SELECT {x}, k + 100 FROM d",
            "UPDATE p SET i = -1 WHERE c = {1}",
            "DELETE FROM p WHERE c = {0}",
        ],
        &[
            "SELECT i FROM p WHERE c = {1}",
            "SELECT i FROM p WHERE c = {0}",
            "SELECT c, i FROM p WHERE c > {0}",
            "SELECT c FROM p ORDER BY c LIMIT 2",
            "SELECT t.n, p.i FROM t JOIN p ON t.{x} = p.c",
            "SELECT min(c), max(c) FROM p",
        ],
    ),
    (
        &[
            "CREATE TABLE o(c {type}, i INTEGER) WITH (layout_key = (c))",
            "INSERT INTO o SELECT {x}, n FROM t",
            "UPDATE o SET c = {1} WHERE i = 2",
            "DELETE FROM o WHERE c = {0}",
            "INSERT INTO o VALUES ({0}, 77)",
        ],
        &[
            "SELECT c, i FROM o ORDER BY c, i",
            "SELECT i FROM o WHERE c >= {1}",
            "SELECT i FROM o WHERE c IS NULL",
            "SELECT c, count(*) FROM o GROUP BY c",
            "SELECT a.i, b.i FROM o a JOIN o b ON a.c = b.c",
        ],
    ),
    (
        &[
            "CREATE TABLE y(i INTEGER PRIMARY KEY, c {type})",
            "INSERT INTO y SELECT n, {x} FROM t",
            "CREATE INDEX yc ON y(c)",
            "UPDATE y SET c = NULL WHERE c = {0}",
            "INSERT INTO y VALUES (99, {1})",
        ],
        &[
            "SELECT i FROM y WHERE c = {1}",
            "SELECT i FROM y WHERE c IN ({0}, {1})",
            "SELECT i FROM y WHERE c > {0} ORDER BY i",
            "SELECT i, c FROM y ORDER BY c, i LIMIT 4",
        ],
    ),
    (
        &[
            "CREATE TABLE z(c {type} DEFAULT {1}, i INTEGER, CHECK (c IS NULL OR c <> {0}))",
            "INSERT INTO z(i) VALUES (1), (2)",
            "INSERT INTO z VALUES (NULL, 3), ({1}, 4)",
            "CREATE VIEW zv AS SELECT c, count(*) AS n FROM z GROUP BY c",
            "ALTER TABLE z ADD COLUMN e {type} DEFAULT {1}",
        ],
        &[
            "SELECT c, n FROM zv",
            "SELECT i FROM z WHERE c = e",
            "INSERT INTO z VALUES ({1}, 5, NULL) RETURNING c",
            "UPDATE z SET e = c WHERE i = 5 RETURNING e",
        ],
    ),
];

const SETTINGS: &[&[(&str, &str)]] = &[
    &[],
    &[("chunk_size", "3"), ("threads", "2"), ("optimizer", "off")],
    &[("hash_collisions", "true"), ("chunk_size", "3")],
    &[("aggregate_spill", "all"), ("sort_spill", "all"), ("join_spill", "all")],
];

struct Subject {
    /// The column, and the type of values as it is written.
    column: &'static str,
    written: String,
    literals: Vec<String>,
    /// For cells of the column's type, the numbers of their values by their texts.
    ty: DataType,
    numbers: HashMap<String, String>,
}

impl Subject {
    fn in_place(&self, sql: &str) -> String {
        let mut sql = sql.replace("{x}", self.column).replace("{type}", &self.written);
        for (i, literal) in self.literals.iter().enumerate() {
            sql = sql.replace(&format!("{{{i}}}"), literal);
        }
        sql
    }

    /// The rows of a query, with numbers in place of values; sorted, unless the query orders them.
    fn rows(&self, connection: &Connection, sql: &str) -> Result<Vec<String>, String> {
        let rows = connection.execute(sql).map_err(|error| error.to_string())?;
        let types: Vec<DataType> = rows.schema().iter().map(|field| field.ty).collect();
        let cell = |(value, ty): (&Value, &DataType)| {
            let text = value.display(*ty).to_string();
            match self.numbers.get(&text).filter(|_| *ty == self.ty && !value.is_null()) {
                Some(number) => number.clone(),
                None => text,
            }
        };
        let mut all: Vec<String> = rows
            .row_values()
            .map(|row| row.iter().zip(&types).map(cell).collect::<Vec<_>>().join(" "))
            .collect();
        if !sql.contains("ORDER BY") || sql.contains("OVER") || sql.contains("WITHIN") {
            all.sort();
        }
        Ok(all)
    }
}

fn run(connection: &Connection, sql: &str) {
    connection.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// A database with the tables, and the two subjects of the queries: the column of the type, and its numbers.
fn filled(written: &str, values: &[&str]) -> (Connection, [Subject; 2]) {
    let connection = Database::in_memory(Config::default()).expect("there is memory").connect();
    let literals: Vec<String> = values.iter().map(|value| format!("CAST({value} AS {written})")).collect();
    for table in ["d", "u", "t"] {
        let number = if table == "t" { "n INTEGER, " } else { "" };
        run(&connection, &format!("CREATE TABLE {table}({number}x {written}, k INTEGER)"));
    }
    let mut n = 0;
    for (k, literal) in literals.iter().enumerate() {
        run(&connection, &format!("INSERT INTO d VALUES ({literal}, {k})"));
        if k % 2 == 1 {
            run(&connection, &format!("INSERT INTO u VALUES ({literal}, {k})"));
        }
    }
    run(&connection, "INSERT INTO u VALUES (NULL, NULL)");
    // Not in their order, and as often as their number says.
    for round in 0..3 {
        for (k, literal) in literals.iter().enumerate().rev().filter(|(k, _)| k % 3 >= round) {
            n += 1;
            run(&connection, &format!("INSERT INTO t VALUES ({n}, {literal}, {k})"));
        }
        n += 1;
        run(&connection, &format!("INSERT INTO t VALUES ({n}, NULL, NULL)"));
    }
    let rows = connection.execute("SELECT x, k FROM d ORDER BY k").expect("the table is there");
    let ty = rows.schema()[0].ty;
    let numbers: HashMap<String, String> = rows
        .row_values()
        .map(|row| (row[0].display(ty).to_string(), row[1].display(DataType::Int32).to_string()))
        .collect();
    assert_eq!(numbers.len(), values.len(), "{written} has values with one text");
    let of_type = Subject { column: "x", written: written.to_owned(), literals, ty, numbers };
    let of_numbers = Subject {
        column: "k",
        written: "INTEGER".to_owned(),
        literals: (0..values.len()).map(|k| format!("CAST({k} AS INTEGER)")).collect(),
        ty: DataType::Int32,
        numbers: HashMap::new(),
    };
    (connection, [of_type, of_numbers])
}

#[test]
fn every_clause_of_every_type() {
    let mut flaws = Vec::new();
    for (written, values) in TYPES {
        let (connection, [of_type, of_numbers]) = filled(written, values);
        // Of the default settings; the numbers of the other ones must be the same.
        let mut expected: Vec<Result<Vec<String>, String>> = Vec::new();
        for settings in SETTINGS {
            let connection = connection.database().connect();
            for (name, value) in *settings {
                connection.set(name, value).unwrap_or_else(|error| panic!("{name} = {value}: {error}"));
            }
            for (i, query) in QUERIES.iter().enumerate() {
                if expected.len() <= i {
                    expected.push(of_numbers.rows(&connection, &of_numbers.in_place(query)));
                }
                let sql = of_type.in_place(query);
                let found = of_type.rows(&connection, &sql);
                if found != expected[i] || found.is_err() {
                    flaws.push(format!(
                        "{written}, {settings:?}: {sql}\n  found {found:?}\n  expected {:?}",
                        expected[i]
                    ));
                }
            }
        }
    }
    assert!(flaws.is_empty(), "{} flaws\n{}", flaws.len(), flaws.join("\n"));
}

#[test]
fn every_type_in_keys_orders_and_indexes() {
    let mut flaws = Vec::new();
    for (written, values) in TYPES {
        for (statements, queries) in KEPT {
            let mut outcomes = Vec::new();
            // Each on a database of its own, since the tables have the same names.
            for which in 0..2 {
                let (connection, subjects) = filled(written, values);
                let subject = &subjects[which];
                let mut outcome = Vec::new();
                for sql in *statements {
                    let done = connection.execute(&subject.in_place(sql));
                    outcome.push((
                        subject.in_place(sql),
                        done.map(|rows| vec![format!("{:?}", rows.changed())])
                            .map_err(|error| error.to_string()),
                    ));
                }
                for sql in *queries {
                    let sql = subject.in_place(sql);
                    let rows = subject.rows(&connection, &sql);
                    outcome.push((sql, rows));
                }
                outcomes.push(outcome);
            }
            let of_numbers = outcomes.pop().expect("there are two");
            for ((sql, found), (_, expected)) in outcomes[0].iter().zip(of_numbers) {
                if *found != expected || found.is_err() {
                    flaws.push(format!("{written}: {sql}\n  found {found:?}\n  expected {expected:?}"));
                    break;
                }
            }
        }
    }
    assert!(flaws.is_empty(), "{} flaws\n{}", flaws.len(), flaws.join("\n"));
}
