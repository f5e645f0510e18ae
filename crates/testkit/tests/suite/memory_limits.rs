//! A limit bounds memory: real memory, that of the process, not what the budget has counted.
//!
//! Each statement below makes some operator keep rows, or makes long texts or lists: the table has one for
//! each operator, aggregate and function that does. A process of its own runs it twice over:
//! - under a limit that is a part of what it needs: the process grows by no more than 1.25 of the limit, and
//!   what every process needs; the statement succeeds, or says whose memory is short;
//! - without a limit: the process grows by no more than 1.25 of what was counted. So whatever is counted
//!   nowhere is found, whether it would have exceeded the limit or not.
//!
//! The process first runs the statement over few rows, so that code and workers are there. Its memory is the
//! greatest resident size that the system has seen since then, so this runs on Linux only.
#![cfg(target_os = "linux")]

use entasis::{Config, Connection, Database, ErrorKind};
use entasis_testkit::scratch::Scratch;
use std::fmt::Write;
use std::process::Command;

/// The variable that makes [`process`] run a case: its name, and the limit.
const CASE: &str = "ENTASIS_MEMORY_CASE";
/// Variable: only cases whose name holds this text.
const ONLY: &str = "ENTASIS_MEMORY_ONLY";
const MB: usize = 1 << 20;
/// The limit.
const LIMIT: usize = 32 * MB;
/// What a process may need besides: chunks of its workers, blocks that are read and written, and what the
/// allocator keeps.
const BASE: usize = 20 * MB;
/// Rows with which code and workers are warmed up.
const FEW: usize = 300;

/// A statement, in which `{n}` stands for a number of rows.
struct Case {
    name: &'static str,
    /// Statements before it.
    setup: &'static str,
    sql: String,
    rows: usize,
}

/// The statement, over rows that take some times the limit.
fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    let mut add = |name, setup, rows, sql: &str| all.push(Case { name, setup, sql: sql.into(), rows });
    // A text of about 100 bytes, different for each row, in no order.
    let text = format!("(range * 7919 % 1000003) || ' {}'", "padding of a text, ".repeat(5));
    let source = format!("(SELECT range i, range * 7919 % 1000003 a, {text} s FROM range({{n}}))");
    let of = |template: &str| template.replace("{t}", &source);
    let n = 600_000;

    add("sort", "", n, &of("SELECT max(s) FROM (SELECT s FROM {t} ORDER BY a OFFSET 1)"));
    add("sort of texts", "", n, &of("SELECT count(*) FROM (SELECT s FROM {t} ORDER BY s OFFSET 1)"));
    add("top", "", n, &of("SELECT max(s) FROM (SELECT s FROM {t} ORDER BY a LIMIT 300000)"));
    add("aggregation", "", n, &of("SELECT count(*) FROM (SELECT s, count(*), sum(i) FROM {t} GROUP BY s)"));
    add("extremes", "", n, &of("SELECT max(m) FROM (SELECT a, max(s) m, min(s) FROM {t} GROUP BY a)"));
    add("distinct", "", n, &of("SELECT count(*) FROM (SELECT DISTINCT s FROM {t})"));
    add("count distinct", "", n, &of("SELECT count(DISTINCT s) FROM {t}"));
    add(
        "count distinct by group",
        "",
        n,
        &of("SELECT max(c) FROM (SELECT i % 9 g, count(DISTINCT s) c FROM {t} GROUP BY g)"),
    );
    add(
        "grouping sets",
        "",
        n,
        &of("SELECT count(*) FROM (SELECT s, a, count(*) FROM {t} GROUP BY CUBE (s, a))"),
    );
    let sums: Vec<String> = (0..300).map(|i| format!("sum(CASE WHEN i % 300 = {i} THEN i END)")).collect();
    let named: Vec<String> = sums.iter().enumerate().map(|(i, sum)| format!("{sum} s{i}")).collect();
    let counts: Vec<String> = (0..300).map(|i| format!("count(s{i})")).collect();
    let wide = format!(
        "SELECT {} FROM (SELECT i // 2 g, {} FROM {{t}} GROUP BY g)",
        counts.join(", "),
        named.join(", ")
    );
    add("wide aggregation", "", 60_000, &of(&wide));

    add("join", "", n, &of("SELECT count(*), max(x.s || y.s) FROM {t} x JOIN {t} y ON x.i = y.i"));
    add("join of texts", "", n, &of("SELECT count(*) FROM {t} x JOIN {t} y ON x.s = y.s"));
    add("left join", "", n, &of("SELECT max(x.s || y.s) FROM {t} x LEFT JOIN {t} y ON x.i = y.a"));
    add(
        "full join",
        "",
        n,
        &of("SELECT max(x.s || y.s), count(x.s) FROM {t} x FULL JOIN {t} y ON x.a = y.i"),
    );
    add(
        "range join",
        "",
        n,
        &of("SELECT max(x.s || y.s) FROM {t} x JOIN {t} y ON x.i BETWEEN y.i AND y.i + 1"),
    );
    add("as-of join", "", n, &of("SELECT max(y.s) FROM {t} x ASOF JOIN {t} y ON x.i >= y.i"));
    add("semi join", "", n, &of("SELECT count(*) FROM {t} WHERE s IN (SELECT s FROM {t})"));
    add(
        "cross join",
        "",
        3_000,
        &of("SELECT max(z) FROM (SELECT x.s || y.i z FROM {t} x, range(200) y(i) ORDER BY z OFFSET 1)"),
    );
    add("intersect", "", n, &of("SELECT count(*) FROM (SELECT s FROM {t} INTERSECT SELECT s FROM {t})"));
    add(
        "except all",
        "",
        n,
        &of("SELECT count(*) FROM (SELECT s FROM {t} EXCEPT ALL SELECT s FROM {t} WHERE i % 2 = 0)"),
    );
    add(
        "shared subquery",
        "",
        n,
        &of(
            "WITH c AS MATERIALIZED (SELECT * FROM {t}) SELECT (SELECT max(s) FROM c), (SELECT min(s) FROM c)",
        ),
    );
    add(
        "recursion",
        "",
        n,
        &of(
            "WITH RECURSIVE r(i, s) AS (SELECT i, s FROM {t} WHERE i < 1000 UNION ALL SELECT r.i + 1000, r.i || r.s FROM r WHERE r.i < {n}) SELECT count(*), max(s) FROM r",
        ),
    );
    add(
        "recursion without duplicates",
        "",
        400_000,
        "WITH RECURSIVE r(i) AS (SELECT 0 UNION SELECT (i * 2 + x) % {n} FROM r, (VALUES (0), (1)) v(x)) SELECT count(*) FROM r",
    );

    add(
        "window",
        "",
        n,
        &of(
            "SELECT max(r), max(l) FROM (SELECT row_number() OVER (ORDER BY a) r, lag(s) OVER (ORDER BY a) l FROM {t})",
        ),
    );
    add(
        "window by partition",
        "",
        n,
        &of("SELECT max(l) FROM (SELECT max(s) OVER (PARTITION BY i % 50 ORDER BY a) l FROM {t})"),
    );
    // What is sorted, or counted, of all rows of a partition.
    for (function, frame) in [
        ("median(a)", "ORDER BY i"),
        ("count(DISTINCT a)", "ORDER BY i"),
        ("count(DISTINCT s)", "ORDER BY i ROWS BETWEEN 20000 PRECEDING AND CURRENT ROW"),
        ("sum(DISTINCT a)", "ORDER BY i"),
        ("max(s)", "PARTITION BY i % 2"),
    ] {
        let sql = format!("SELECT count(w) FROM (SELECT {function} OVER ({frame}) w FROM {{t}})");
        add(format!("{function} over all of {frame}").leak(), "", 300_000, &of(&sql));
    }
    for function in
        ["list(i)", "string_agg(s, ',')", "list(DISTINCT i % 5000)", "mode(s)", "list(s ORDER BY a)"]
    {
        for (frame, rows) in [
            ("ORDER BY i", 6_000),
            ("ORDER BY i ROWS BETWEEN 500 PRECEDING AND 500 FOLLOWING", 20_000),
            ("PARTITION BY i % 2", 60_000),
        ] {
            let sql = format!("SELECT count(w) FROM (SELECT {function} OVER ({frame}) w FROM {{t}})");
            let name = format!("{function} over {frame}").leak();
            // Some of these read each frame anew.
            let rows = if function.contains(' ') || function.starts_with("mode") { rows / 3 } else { rows };
            all.push(Case { name, setup: "", sql: of(&sql), rows });
        }
    }
    let mut add = |name, setup, rows, sql: &str| all.push(Case { name, setup, sql: sql.into(), rows });

    // Aggregates whose states grow: few states and many.
    for function in [
        "list(s)",
        "string_agg(s, ',')",
        "list(DISTINCT s)",
        "list(s ORDER BY a)",
        "mode(s)",
        "entropy(s)",
        "median(i)",
        "quantile_disc(s, 0.5)",
        "mad(i)",
        "approx_count_distinct(s)",
        "max_by(s, i)",
        "first(s)",
        "array_agg(i)",
    ] {
        for groups in ["i * 0", "i % 10", "i // 12"] {
            let sql = format!("SELECT count(w) FROM (SELECT {groups} g, {function} w FROM {{t}} GROUP BY g)");
            let name = format!("{function} by {groups}").leak();
            add(name, "", 400_000, &of(&sql));
        }
    }

    add("result", "", n, &of("SELECT * FROM {t}"));
    add("result of long texts", "", 3_000, "SELECT repeat('x', 100000) || range FROM range({n})");
    add(
        "result of one text many times",
        "",
        3_000,
        "SELECT v FROM (SELECT repeat('x', 1000000) v), range({n})",
    );
    add("repeat", "", 2_000, "SELECT max(length(repeat('xyz', 100000 + range::INTEGER))) FROM range({n})");
    add("one long text", "", 90_000_000, "SELECT length(repeat('x', {n}))");
    add("lpad", "", 500, "SELECT sum(length(lpad('x', 1000000, 'ab'))) FROM range({n})");
    add("replace", "", 12_000, "SELECT length(replace(repeat('a', {n}), 'a', repeat('b', {n})))");
    add(
        "concatenation",
        "",
        26,
        "WITH RECURSIVE r(n, s) AS (SELECT 0, 'x' UNION ALL SELECT n + 1, s || s FROM r WHERE n < {n} % 100) SELECT max(length(s)) FROM r",
    );
    add(
        "list_concat",
        "",
        24,
        "WITH RECURSIVE r(n, l) AS (SELECT 0, [1] UNION ALL SELECT n + 1, list_concat(l, l) FROM r WHERE n < {n} % 100) SELECT max(len(l)) FROM r",
    );
    add("string_split", "", 6_000_000, "SELECT len(string_split(repeat('a,', {n}), ','))");
    add(
        "upper",
        "",
        3_000,
        "SELECT max(upper(s)) FROM (SELECT repeat('x', 30000) || range s FROM range({n}))",
    );
    add(
        "regexp_replace",
        "",
        300,
        "SELECT max(length(regexp_replace(repeat('ab', 20000), 'a', repeat('x', 50), 'g'))) FROM range({n})",
    );
    add(
        "unnest",
        "",
        300_000,
        "SELECT count(*), max(x) FROM (SELECT unnest(l) x FROM (SELECT list(range) l FROM range({n})))",
    );
    add(
        "unnest twice",
        "",
        2_000,
        "SELECT count(*) FROM (SELECT list(range) l FROM range({n})) a, unnest(l) u(x), unnest(l) v(y) WHERE x < 200",
    );
    add(
        "list_sort",
        "",
        600_000,
        "SELECT len(list_sort(list('some text ' || (range * 7919 % 1000003)))) FROM range({n})",
    );

    // One list, and what is made of it.
    let list = "(SELECT list(range * 7919 % 1000003) l, list('some text ' || range) s FROM range({n}))";
    for made in [
        "length(l::VARCHAR)",
        "length(s::VARCHAR)",
        "len(l::DECIMAL(20,2)[])",
        "len(l::VARCHAR[])",
        "len(l::VARCHAR::BIGINT[])",
        "length(concat(l, s))",
        "length(array_to_string(s, ', '))",
        "len(list_reverse(s))",
        "len(list_distinct(s))",
        "len(list_intersect(s, list_reverse(s)))",
        "len([s, s])",
        "list_unique(s)",
        "list_sum(l)",
        "list_min(s)",
    ] {
        add(made, "", 600_000, &format!("SELECT {made} FROM {list}"));
    }
    // One text.
    for made in [
        "length(lower(s || 'Ä'))",
        "length(initcap(s))",
        "length(reverse(s))",
        "length(translate(s, 'ab', 'xy'))",
        "length(hex(s))",
        "length(url_encode(s))",
        "length(quote_literal(s))",
        "length(printf('%s %s', s, s))",
        "length(regexp_replace(s, '[ab]', 'xyz', 'g'))",
        "len(regexp_extract_all(s, '[ab]'))",
        "len(regexp_split_to_array(s, 'b'))",
        "length(base64(encode(s)))",
        "len(string_split(s, ''))",
        "s ILIKE '%x%'",
        "levenshtein(s, 'ab')",
    ] {
        add(made, "", 6_000_000, &format!("SELECT {made} FROM (SELECT repeat('ab', {{n}}) s)"));
    }

    let table = "CREATE TABLE big (id BIGINT PRIMARY KEY, s VARCHAR)";
    add("create table as", "", n, &of("CREATE OR REPLACE TABLE made AS SELECT i, s FROM {t}"));
    add("insert", table, n, &of("INSERT INTO big SELECT i + (SELECT count(*) FROM big) * 2, s FROM {t}"));
    add(
        "insert in no order",
        table,
        n,
        &of("INSERT INTO big SELECT a * 1000000 + i + (SELECT count(*) FROM big) * 7, s FROM {t}"),
    );
    let filled = "CREATE TABLE big (id BIGINT PRIMARY KEY, s VARCHAR); INSERT INTO big SELECT range, 'v' || range FROM range(150000)";
    add("update", filled, 150_000, "UPDATE big SET s = repeat('v' || id, 30) WHERE id < {n}");
    add("delete", filled, 150_000, "DELETE FROM big WHERE id < {n} AND id % 3 = 0");
    add("create index", filled, 150_000, "CREATE INDEX IF NOT EXISTS bi ON big (s)");
    let large = "CREATE TABLE big (id BIGINT PRIMARY KEY, s VARCHAR); INSERT INTO big SELECT range, repeat(md5(range::VARCHAR), 300) FROM range(8000)";
    add("delete of large rows returning", large, 8000, "DELETE FROM big WHERE id < {n} RETURNING s");
    add(
        "update of large rows returning",
        large,
        8000,
        "UPDATE big SET s = s || 'x' WHERE id < {n} RETURNING s",
    );
    let indexed = "CREATE TABLE big (id BIGINT PRIMARY KEY, a VARCHAR, b VARCHAR, c VARCHAR); CREATE INDEX ba ON big (a); CREATE INDEX bb ON big (b); CREATE INDEX bc ON big (c)";
    let rows = "(SELECT count(*) FROM big) + range, md5('a' || range), md5('b' || range), md5('c' || range) FROM range({n})";
    let insert = format!("INSERT INTO big SELECT {rows}");
    add("insert with three indexes", indexed, 150_000, &insert);
    add(
        "upsert",
        filled,
        300_000,
        &of("INSERT INTO big SELECT i, s FROM {t} ON CONFLICT (id) DO UPDATE SET s = excluded.s"),
    );
    add(
        "merge",
        filled,
        300_000,
        &of(
            "MERGE INTO big USING {t} t ON big.id = t.i WHEN MATCHED THEN UPDATE SET s = t.s WHEN NOT MATCHED THEN INSERT VALUES (t.i, t.s)",
        ),
    );
    add("copy to csv", "", n, &of("COPY (SELECT * FROM {t}) TO '{dir}/made.csv'"));
    add("copy to parquet", "", n, &of("COPY (SELECT * FROM {t}) TO '{dir}/made.parquet'"));
    let file = "COPY (SELECT range i, range || 'padding of a text, padding of a text, padding of a text' s FROM range(600000)) TO";
    for kind in ["csv", "parquet"] {
        let setup = format!("{file} '{{dir}}/read.{kind}'").leak();
        let name = format!("read {kind}").leak();
        add(name, setup, n, &format!("SELECT max(s), count(*) FROM '{{dir}}/read.{kind}' WHERE i < {{n}}"));
    }
    add(
        "returning",
        filled,
        300_000,
        &of("INSERT INTO big SELECT i + 1000000 + (SELECT count(*) FROM big), s FROM {t} RETURNING *"),
    );
    all
}

/// A value of the process's status, in bytes.
fn status(name: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find(|line| line.starts_with(name)).expect("it has this line");
    line.split_whitespace().nth(1).and_then(|text| text.parse::<usize>().ok()).expect("kilobytes") << 10
}

fn run(connection: &Connection, sql: &str, rows: usize, scratch: &Scratch) -> entasis::Result<u64> {
    let sql = sql
        .replace("{n}", &rows.to_string())
        .replace("{dir}", scratch.path("x").parent().unwrap().to_str().unwrap());
    connection.execute(&sql).map(|rows| rows.rows())
}

/// Not a test: runs a case and prints by how much the process has grown, what was counted, and the outcome.
#[test]
fn process() {
    let Ok(case) = std::env::var(CASE) else { return };
    let (name, limit) = case.split_once('\n').expect("a name and a limit");
    let case = cases().into_iter().find(|case| case.name == name).expect("there is such a case");
    let limit: usize = limit.parse().expect("a number");
    let database = Database::in_memory(Config::new().with_threads(2)).expect("a database");
    let connection = database.connect();
    let scratch = Scratch::new();
    run(&connection, case.setup, 0, &scratch).expect(case.setup);
    run(&connection, &case.sql, FEW, &scratch).unwrap_or_else(|error| panic!("{}: {error:?}", case.sql));
    let memory = connection.context().memory;
    // What tables have already is charged, too.
    let tables = memory.used();
    connection.set("memory_limit", &format!("{}B", limit + tables)).expect("a limit");
    memory.restart_peak();
    std::fs::write("/proc/self/clear_refs", "5").expect("Linux resets the greatest size");
    let before = status("VmHWM");
    let outcome = run(&connection, &case.sql, case.rows, &scratch);
    let (grown, counted) = (status("VmHWM").saturating_sub(before), memory.peak() - tables);
    let outcome = match outcome {
        Ok(rows) => format!("{rows} rows"),
        Err(error) => format!("{:?}: {}", error.kind(), error.message()),
    };
    assert!(run(&connection, "SELECT {n}", 1, &scratch).is_ok(), "the connection goes on");
    println!("measured\t{grown}\t{counted}\t{outcome}");
}

/// By how much a process that runs a case has grown, what was counted, and the outcome.
fn measure(case: &Case, limit: usize) -> Result<(usize, usize, String), String> {
    let process = Command::new(std::env::current_exe().expect("a path"))
        .args(["--exact", "memory_limits::process", "--nocapture", "--test-threads=1"])
        .env(CASE, format!("{}\n{limit}", case.name))
        // Memory that was freed is given back at once, wherever it is.
        .env("MALLOC_ARENA_MAX", "1")
        .env("MALLOC_TRIM_THRESHOLD_", "0")
        .env("MALLOC_MMAP_THRESHOLD_", "131072")
        .output()
        .expect("a process");
    let said = String::from_utf8_lossy(&process.stdout);
    let line = said.lines().find_map(|line| line.split_once("measured\t"));
    let Some((_, line)) = line else {
        return Err(format!("{said}{}", String::from_utf8_lossy(&process.stderr)));
    };
    let fields: Vec<&str> = line.splitn(3, '\t').collect();
    Ok((fields[0].parse().expect("bytes"), fields[1].parse().expect("bytes"), fields[2].to_owned()))
}

/// True if an error says whose memory is short.
fn names_an_owner(outcome: &str) -> bool {
    let resource = format!("{:?}: ", ErrorKind::Resource);
    outcome.strip_prefix(&resource).is_some_and(|text| {
        text.contains(" more needed for ")
            || text.contains(" over a window needs ")
            || text.contains("a string of ")
    })
}

#[test]
fn real_memory_stays_within_the_limit_and_what_is_counted() {
    let only = std::env::var(ONLY).unwrap_or_default();
    let mut faults = String::new();
    let mut told = 0;
    for case in cases().iter().filter(|case| case.name.contains(&only)) {
        for limit in [LIMIT, 4096 * MB] {
            let mut fault = |text: String| {
                writeln!(faults, "{} with {} MB: {text}", case.name, limit / MB).expect("a text");
            };
            let (grown, counted, outcome) = match measure(case, limit) {
                Ok(measured) => measured,
                Err(said) => {
                    fault(said);
                    continue;
                }
            };
            if !only.is_empty() {
                println!(
                    "{} with {}: {} grown, {} counted, {outcome}",
                    case.name,
                    limit / MB,
                    grown / MB,
                    counted / MB
                );
            }
            told += usize::from(names_an_owner(&outcome));
            if !outcome.ends_with(" rows") && !names_an_owner(&outcome) {
                fault(format!("does not say whose memory is short: {outcome}"));
            }
            // Writers of files hold parts of bounded size, which they do not count.
            let base = if case.name.starts_with("copy to") { 2 * BASE } else { BASE };
            let most = limit.min(counted) / 4 * 5 + base;
            if grown > most {
                let [grown, counted, most] = [grown, counted, most].map(|bytes| bytes / MB);
                fault(format!("{grown} MB grown, {counted} MB counted, {most} MB allowed; {outcome}"));
            }
        }
    }
    assert!(faults.is_empty(), "\n{faults}");
    assert!(told > 0 || !only.is_empty(), "the limit was reached nowhere");
}
