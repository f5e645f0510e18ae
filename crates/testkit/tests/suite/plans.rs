//! Golden plans: the 22 queries of TPC-H at scale 0.01, optimized, as text under `tests/plans`. A change of
//! the optimizer or of an estimate is visible as a diff there. For a few queries, the plan after each rule
//! that changed it, and the programs into which their expressions are compiled, are kept too.

use crate::tpch::SMALL;
use entasis::{Config, Connection, Database};
use entasis_engine::common_subplans::optimize_traced;
use entasis_engine::exec::{QueryContext, Settings, programs};
use entasis_testkit::golden;

/// Queries for which the plan after each rule is kept too: a subquery that becomes a join, implied filters, a
/// semi join.
const TRACED: [&str; 3] = ["q07", "q17", "q20"];

/// Queries for which the programs are kept too: conditions that narrow, shared expressions, computed keys and
/// CASE.
const COMPILED: [&str; 4] = ["q01", "q06", "q12", "q19"];

#[test]
fn plans_are_the_golden_ones() {
    let connection = SMALL.connect();
    let mut failures = Vec::new();
    for (name, sql) in entasis::tpch::QUERIES {
        let bound = connection.plan(sql).expect("the query is valid");
        let written = bound.to_string();
        let (optimized, trace) =
            optimize_traced(bound, &Settings::default()).expect("the rules keep the plan sound");
        failures.extend(golden::check(&format!("plans/{name}.txt"), &optimized.to_string()).err());
        if COMPILED.contains(&name) {
            let text = programs(&optimized, &QueryContext::default()).expect("the expressions compile");
            failures.extend(golden::check(&format!("plans/{name}_programs.txt"), &text).err());
        }
        if TRACED.contains(&name) {
            let steps = trace.iter().map(|(rule, text)| format!("\nafter {rule}\n{text}"));
            let text = format!("as bound\n{written}{}", steps.collect::<String>());
            failures.extend(golden::check(&format!("plans/{name}_steps.txt"), &text).err());
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// A hundred rows out of a hundred thousand: looking them up is cheaper than reading eight bytes of every
/// row, and more expensive than reading two.
#[test]
fn compression_decides_between_an_index_and_a_scan() {
    let connection = Database::in_memory(Config::default()).expect("a database").connect();
    let mut text = String::new();
    for compression in ["none", "auto"] {
        for sql in [
            &format!(
                "CREATE TABLE {compression}_t (k BIGINT PRIMARY KEY, v BIGINT NOT NULL) WITH (compression = {compression})"
            ),
            &format!("INSERT INTO {compression}_t SELECT i, i % 1000 FROM range(100000) r(i)"),
            &format!("CREATE INDEX {compression}_v ON {compression}_t (v)"),
        ] {
            connection.query(sql, &[]).expect("the statement is valid");
        }
        let plan = connection
            .plan(&format!("SELECT max(k) FROM {compression}_t WHERE v = 77"))
            .expect("the query is valid");
        let (plan, _) = optimize_traced(plan, &Settings::default()).expect("the rules keep the plan sound");
        text += &format!("compression = {compression}\n{plan}\n");
    }
    if let Err(difference) = golden::check("plans/index_or_scan.txt", &text) {
        panic!("{difference}");
    }
}

/// For an inner join, EXPLAIN shows the build side last. The table with few rows is the build side, unless
/// many of its columns are read above, or its strings are compressed: all of these would be decoded, while of
/// a probe side only matching rows are.
#[test]
fn width_and_compression_decide_which_side_is_kept() {
    let connection = Database::in_memory(Config::default()).expect("a database").connect();
    let mut text = String::new();
    for compression in ["none", "fsst"] {
        for sql in [
            &format!("SET compression = '{compression}'"),
            &format!(
                "CREATE TABLE few_{compression} AS SELECT 8 * i AS k, i AS a, i AS b, i AS c, i AS d, i AS e, i AS f, i AS g, \
                 i AS h, 'a comment of some length, the number of which is ' || i AS comment FROM range(100000) r(i)"
            ),
            &format!("CREATE TABLE many_{compression} AS SELECT i AS k, i % 3 AS x FROM range(810000) r(i)"),
        ] {
            connection.query(sql, &[]).expect("the statement is valid");
        }
        for read in ["a", "a + b + c + d + e + f + g + h", "comment"] {
            let tables = format!("few_{compression} JOIN many_{compression} USING (k)");
            let sql = format!("SELECT max({read}) AS most FROM {tables} WHERE x = 1");
            let plan = connection.plan(&sql).expect("the query is valid");
            let (plan, _) =
                optimize_traced(plan, &Settings::default()).expect("the rules keep the plan sound");
            text += &format!("max({read}), compression = {compression}\n{plan}\n");
        }
    }
    if let Err(difference) = golden::check("plans/kept_side.txt", &text) {
        panic!("{difference}");
    }
}

/// A referenced table of which only the key is read proves nothing that the foreign key does not; and keys of
/// several columns are keys.
#[test]
fn declared_keys_remove_joins_and_group_keys() {
    let connection = Database::in_memory(Config::default()).expect("a database").connect();
    for sql in [
        "CREATE TABLE customer (id INTEGER PRIMARY KEY, name VARCHAR)",
        "CREATE TABLE day (y INTEGER, d INTEGER, label VARCHAR, PRIMARY KEY (y, d))",
        "CREATE TABLE orders (id INTEGER, customer INTEGER REFERENCES customer (id), y INTEGER, d INTEGER, \
         price INTEGER, FOREIGN KEY (y, d) REFERENCES day (y, d))",
        "INSERT INTO customer SELECT i, 'customer ' || i FROM range(1000) r(i)",
        "INSERT INTO day SELECT i // 100, i % 100, 'day ' || i FROM range(1000) r(i)",
        "INSERT INTO orders SELECT i, i % 1000, i % 10, i % 100, i FROM range(100000) r(i)",
    ] {
        connection.query(sql, &[]).expect("the statement is valid");
    }
    let queries = [
        "SELECT c.id, sum(price) FROM orders o JOIN customer c ON o.customer = c.id GROUP BY c.id",
        "SELECT sum(price) FROM orders WHERE customer IN (SELECT id FROM customer WHERE id < 10)",
        "SELECT sum(price) FROM orders o JOIN customer c ON o.customer = c.id JOIN day USING (y, d)",
        "SELECT sum(price) FROM orders o JOIN day ON o.d = day.d",
        "SELECT sum(price) FROM orders o LEFT JOIN day USING (y, d)",
        "SELECT day.y, day.d, label, sum(price) FROM orders o JOIN day USING (y, d) GROUP BY day.y, day.d, label",
    ];
    check_plans(&connection, "declared_keys", &queries);
}

/// Lists are taken apart beside their rows where nothing is asked of their elements together; elsewhere rows
/// are told apart by their numbers. No list is a key of a join.
#[test]
fn lists_are_never_compared_to_take_them_apart() {
    let connection = Database::in_memory(Config::default()).expect("a database").connect();
    let table = "CREATE TABLE t AS SELECT i AS id, range(i % 5) AS l FROM range(100000) r(i)";
    connection.query(table, &[]).expect("the statement is valid");
    let queries = [
        "SELECT id, x FROM t, unnest(l) u(x)",
        "SELECT id, x FROM t LEFT JOIN unnest(l) u(x) ON true",
        "SELECT id, (SELECT sum(x) FROM unnest(l) u(x) WHERE x > 1) AS total FROM t",
        "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM unnest(l) u(x) WHERE x = id % 3)",
        "SELECT id FROM t WHERE 3 = ANY (l)",
    ];
    check_plans(&connection, "unnest", &queries);
}

/// Bands, overlaps and as-of joins are searched in sorted order, except for a few rows, or if equal keys
/// leave only a few.
#[test]
fn inequalities_decide_between_an_order_and_a_loop() {
    let connection = Database::in_memory(Config::default()).expect("a database").connect();
    for sql in [
        "CREATE TABLE a AS SELECT i AS id, i % 3 AS k, i * 7919 % 10007 AS x FROM range(20000) r(i)",
        "CREATE TABLE b AS SELECT i AS id, i % 3 AS k, i * 104729 % 10009 AS lo, i * 104729 % 10009 + 5 AS hi FROM range(20000) r(i)",
        "CREATE TABLE few AS SELECT i AS id, i AS lo FROM range(3) r(i)",
    ] {
        connection.query(sql, &[]).expect("the statement is valid");
    }
    let queries = [
        "SELECT count(*) FROM a JOIN b ON a.x BETWEEN b.lo AND b.hi",
        "SELECT count(*) FROM a JOIN b ON b.lo BETWEEN a.x - 5 AND a.x + 5 AND a.id <> b.id",
        "SELECT a.id, b.id FROM a LEFT JOIN b ON a.x < b.hi AND a.id > b.id",
        "SELECT count(*) FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.lo > a.x)",
        "SELECT count(*) FROM a, few WHERE a.x > few.lo",
        "SELECT count(*) FROM a JOIN b ON a.id = b.id AND a.x > b.lo",
        "SELECT count(*) FROM a JOIN b ON a.k = b.k AND a.x > b.lo AND a.x < b.hi",
        "SELECT a.id, b.id FROM a ASOF JOIN b ON a.k = b.k AND a.x >= b.lo",
        "SELECT a.id, b.id FROM a ASOF LEFT JOIN b ON a.x < b.lo",
    ];
    check_plans(&connection, "bounds", &queries);
}

/// A small table of days, of which a filter leaves some, decides which rows of a large one are read, and how
/// many are expected: by the zones of days that lie in order, by the frequency of words that do not, and by
/// the value of a subquery.
#[test]
fn filters_of_small_tables_are_expected_to_keep_what_refers_to_them() {
    let connection = Database::in_memory(Config::default()).expect("a database").connect();
    for sql in [
        "CREATE TABLE days AS SELECT i AS id, i // 365 AS year, i // 30 AS month FROM range(73000) r(i)",
        "CREATE TABLE words AS SELECT i AS id, 'word ' || i AS word FROM range(1000) r(i)",
        "CREATE TABLE uses AS SELECT 36500 + i * 1825 // 200000 AS day, \
         CASE WHEN i * 7919 % 4 = 0 THEN 77 ELSE i * 104729 % 1000 END AS word, i AS amount FROM range(200000) r(i)",
    ] {
        connection.query(sql, &[]).expect("the statement is valid");
    }
    let queries = [
        "SELECT sum(amount) FROM uses JOIN days ON day = days.id WHERE year = 102",
        "SELECT sum(amount) FROM uses JOIN words ON uses.word = words.id WHERE words.word = 'word 77'",
        "SELECT sum(amount) FROM uses JOIN days ON day = days.id WHERE month = (SELECT DISTINCT month FROM days WHERE id = 37000)",
    ];
    check_plans(&connection, "references", &queries);
}

/// What several subqueries compute of one join comes from one pass, and of one table if their conditions are
/// the same, or if ranges of a column tell them apart whose rows are not in blocks of their own.
#[test]
fn figures_of_the_same_rows_are_computed_in_one_pass() {
    let connection = Database::in_memory(Config::default()).expect("a database").connect();
    for sql in [
        "CREATE TABLE hours AS SELECT i AS id, i // 3600 AS hour, i // 60 % 60 AS minute FROM range(86400) r(i)",
        "CREATE TABLE sales AS SELECT i * 7919 % 86400 AS at, i % 100 AS quantity, i AS amount FROM range(200000) r(i)",
    ] {
        connection.query(sql, &[]).expect("the statement is valid");
    }
    let of_hour = "(SELECT count(*) FROM sales, hours WHERE at = hours.id AND amount > 7 AND hour =";
    let queries = [
        &format!("SELECT {of_hour} 8 AND minute >= 30) AS eight, {of_hour} 9 AND minute < 30) AS nine"),
        "SELECT CASE WHEN (SELECT count(*) FROM sales WHERE quantity < 20) > 1000 \
         THEN (SELECT avg(amount) FROM sales WHERE quantity < 20) \
         ELSE (SELECT max(amount) FROM sales WHERE quantity > 50) END AS figure",
        "SELECT * FROM (SELECT sum(amount + 1) AS few FROM sales WHERE quantity < 10) a, \
         (SELECT sum(amount - 1) AS many FROM sales WHERE quantity > 10) b",
        "SELECT (SELECT count(*) FROM sales) AS every, (SELECT count(*) FROM sales WHERE quantity < 20) AS few",
        "SELECT (SELECT max(at) FROM sales WHERE amount = 5) AS a, (SELECT max(at) FROM sales WHERE amount = 6) AS b",
        "SELECT (SELECT sum(100 // quantity) FROM sales WHERE quantity > 20) AS a, \
         (SELECT sum(quantity) FROM sales WHERE quantity < 20) AS b",
        "SELECT (SELECT avg(amount) FROM sales WHERE quantity BETWEEN 0 AND 5 AND (at < 7000 OR amount > 190000)) AS few, \
         (SELECT avg(amount) FROM sales WHERE quantity BETWEEN 6 AND 10 AND (at > 80000 OR amount < 10000)) AS more",
        "SELECT (SELECT avg(quantity) FROM sales WHERE amount BETWEEN 20000 AND 29999 AND (at < 7000 OR quantity > 90)) AS early, \
         (SELECT avg(quantity) FROM sales WHERE amount BETWEEN 30000 AND 39999 AND (at < 8000 OR quantity > 80)) AS late",
    ];
    check_plans(&connection, "figures", &queries);
}

/// A scan knows the result of a scalar subquery, and other inequalities with a few rows, before it begins.
#[test]
fn inequalities_with_few_rows_skip_blocks() {
    let connection = Database::in_memory(Config::default()).expect("a database").connect();
    let run = |sql: &str| connection.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    run("CREATE TABLE t AS SELECT CAST(i AS INTEGER) AS n, DATE '2000-01-01' + CAST(i // 100 AS INTEGER) AS day
         FROM range(100000) r(i)");
    run("CREATE TABLE few AS SELECT DATE '2002-06-01' AS day, CAST(95000 AS BIGINT) AS n");
    let queries = [
        ("SELECT count(*) FROM t WHERE n >= (SELECT max(n) FROM few)", "a lower"),
        ("SELECT count(*) FROM t WHERE day > (SELECT min(day) FROM few)", "a lower"),
        ("SELECT count(*) FROM t WHERE (SELECT min(n) - 93000 FROM few) > n", "an upper"),
        ("SELECT count(*) FROM t JOIN few ON t.day < few.day AND few.n > 1", "an upper"),
        ("SELECT count(*) FROM t SEMI JOIN few ON t.n > few.n + 1", "a lower"),
    ];
    for (sql, bound) in queries {
        let rows = run(&format!("EXPLAIN (ANALYZE, VERBOSE) {sql}"));
        let text = rows.row_values().map(|row| format!("{row:?}\n")).collect::<String>();
        let says = |what: &str| assert!(text.contains(what), "{sql}: {what}\n{text}");
        says(&format!("its rows set {bound} limit to the probe side"));
        says("of 98 blocks skipped by their bounds");
        says("limit of a join on");
    }
}

/// Compares the optimized plans of some queries with those that are kept.
fn check_plans(connection: &Connection, name: &str, queries: &[&str]) {
    let mut text = String::new();
    for sql in queries {
        let plan = connection.plan(sql).expect("the query is valid");
        let (plan, _) = optimize_traced(plan, &Settings::default()).expect("the rules keep the plan sound");
        text += &format!("{sql}\n{plan}\n");
    }
    if let Err(difference) = golden::check(&format!("plans/{name}.txt"), &text) {
        panic!("{difference}");
    }
}
