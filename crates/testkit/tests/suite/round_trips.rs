//! Values go out and come back: every type, by itself and within lists and structs, through each way out of
//! the database and in again. Texts have all signs that separate anything anywhere; other types have their
//! extremes.
//!
//! The ways through Arrow, pandas and polars are in `crates/python/tests/test_round_trips.py`.

use entasis::{Config, Connection, DataType, Database, Value};
use entasis_testkit::scratch::Scratch;

/// Types, each with values as SQL.
fn values() -> Vec<(&'static str, Vec<String>)> {
    let of = |texts: &[&str]| texts.iter().map(|text| format!("'{text}'")).collect::<Vec<String>>();
    let signs = [
        "",
        "a",
        " ",
        ",",
        "''",
        "\"",
        "\\",
        "[",
        "]",
        "{",
        "}",
        "(",
        ")",
        ":",
        "=",
        ";",
        "|",
        "\t",
        "\n",
        "\r\n",
        "NULL",
        "null",
        "ß\u{1F600}",
    ];
    let mut texts: Vec<String> = Vec::new();
    for (i, a) in signs.iter().enumerate() {
        texts.push(format!("'{a}'"));
        texts.push(format!("'{a}{}'", signs[(i * 7 + 3) % signs.len()]));
        texts.push(format!("'x{a}{}y'", signs[(i * 5 + 2) % signs.len()]));
    }
    texts.extend(of(&[
        "Washington, DC",
        "{''a'': 1}",
        "[1, 2]",
        "it''s",
        "a, b}, {c",
        "''quoted''",
        "\"quoted\"",
        "\\x41",
        "#",
        "-- x",
        "1",
        "true",
    ]));
    let moments = [
        "infinity",
        "-infinity",
        "1970-01-01 00:00:00",
        "2024-02-29 23:59:59.999999",
        "0001-12-31 (BC) 10:00:00",
        "9999-12-31 23:59:59",
        "1969-12-31 23:59:59.5",
    ];
    vec![
        ("BOOLEAN", of(&["true", "false"])),
        ("TINYINT", of(&["-128", "127", "0"])),
        ("SMALLINT", of(&["-32768", "32767"])),
        ("INTEGER", of(&["-2147483648", "2147483647", "0"])),
        ("BIGINT", of(&["-9223372036854775808", "9223372036854775807", "-1"])),
        ("UTINYINT", of(&["0", "255"])),
        ("USMALLINT", of(&["0", "65535"])),
        ("UINTEGER", of(&["0", "4294967295"])),
        ("UBIGINT", of(&["0", "18446744073709551615"])),
        ("REAL", of(&["nan", "inf", "-inf", "0.1", "-3.4028235e38", "1e-45"])),
        ("DOUBLE", of(&["nan", "inf", "-inf", "0.1", "1.7976931348623157e308", "5e-324", "123456789.125"])),
        ("DECIMAL(4,1)", of(&["-999.9", "999.9", "0", "0.1"])),
        ("DECIMAL(18,0)", of(&["-999999999999999999", "999999999999999999"])),
        ("DECIMAL(38,10)", of(&["-9999999999999999999999999999.9999999999", "0.0000000001"])),
        ("VARCHAR", texts),
        ("JSON", of(&["{\"a\": [1, null]}", " 1 ", "\"\\u0041, ]\"", "null", "\"\""])),
        ("ENUM('b', '', 'a, ]', 'NULL', '\"')", of(&["b", "", "a, ]", "NULL", "\""])),
        ("BLOB", of(&["", "a", "\\x00", "\\xFF\\xFE", "\\x2C\\x22\\x27\\x5C", "\\x0A", "NULL", "a,b", "]"])),
        (
            "DATE",
            of(&[
                "infinity",
                "-infinity",
                "1970-01-01",
                "2024-02-29",
                "0001-01-01",
                "0044-03-15 (BC)",
                "9999-12-31",
            ]),
        ),
        ("TIME", of(&["00:00:00", "23:59:59.999999", "24:00:00", "12:00:00.5"])),
        ("TIMETZ", of(&["00:00:00+15:59:59", "24:00:00-15:59:59", "12:34:56.000001+05:30", "12:00:00+00"])),
        ("TIMESTAMP", of(&moments)),
        (
            "TIMESTAMP_NS",
            of(&[
                "infinity",
                "-infinity",
                "1970-01-01 00:00:00",
                "1969-12-31 23:59:59.999999999",
                "2262-04-11 23:47:16.854775806",
            ]),
        ),
        ("TIMESTAMPTZ", of(&moments)),
        (
            "INTERVAL",
            of(&[
                "0 days",
                "1 day 02:00:00",
                "-1 month",
                "14 months -3 days 00:00:00.000001",
                "2147483647 days",
                "-100:00:00",
            ]),
        ),
        (
            "UUID",
            of(&[
                "00000000-0000-0000-0000-000000000000",
                "ffffffff-ffff-ffff-ffff-ffffffffffff",
                "550e8400-e29b-41d4-a716-446655440000",
            ]),
        ),
    ]
}

/// A column of a type, as values of SQL over one of `x`.
struct Form {
    ty: String,
    of: &'static str,
}

/// The type itself, and nested types of it. Names of fields have signs of their own.
fn forms(ty: &str) -> Vec<Form> {
    let form = |ty: String, of| Form { ty, of };
    vec![
        form(ty.into(), "x"),
        form(format!("{ty}[]"), "CASE id % 4 WHEN 0 THEN [x] WHEN 1 THEN [] WHEN 2 THEN [NULL, x, x] END"),
        form(
            format!("STRUCT(a {ty}, \"b, c}}\" {ty}[], \"it's\" INTEGER, \"select\" VARCHAR)"),
            "{'a': x, 'b, c}': [x, NULL], 'it''s': id, 'select': '\"'}",
        ),
        form(
            format!("STRUCT(n {ty}, \"o:\" STRUCT(p {ty}[][]))[]"),
            "[{'n': x, 'o:': {'p': [[x], [], NULL, [NULL]]}}, NULL, {'n': NULL, 'o:': NULL}]",
        ),
        form(
            format!("MAP({ty}, {ty}[])"),
            "CASE WHEN x IS NULL THEN MAP {} ELSE map([x], [CASE WHEN id % 2 = 0 THEN [x, NULL] END]) END",
        ),
        form(
            format!("STRUCT(a {ty}[2], m MAP(INTEGER, {ty})[1])[]"),
            "[{'a': [x, NULL], 'm': [MAP {id: x, -2: NULL}]}, {'a': NULL, 'm': [NULL]}]",
        ),
    ]
}

fn run(connection: &Connection, sql: &str) -> Result<(), String> {
    connection.execute(sql).map(drop).map_err(|error| format!("{sql}: {error}"))
}

fn number(connection: &Connection, sql: &str) -> Result<i128, String> {
    let rows = connection.execute(sql).map_err(|error| format!("{sql}: {error}"))?;
    match rows.row_values().next().as_deref() {
        Some([Value::Integer(n)]) => Ok(*n),
        other => Err(format!("{sql}: {other:?}")),
    }
}

/// A database with a table `v` of all values of a form, and NULL.
fn filled(form: &Form, base: &str, values: &[String]) -> Result<Connection, String> {
    let connection = Database::in_memory(Config::default()).expect("there is memory").connect();
    run(&connection, &format!("CREATE TABLE x(id INTEGER, x {base})"))?;
    for (i, value) in values.iter().map(String::as_str).chain(["NULL"]).enumerate() {
        run(&connection, &format!("INSERT INTO x VALUES ({i}, {value}::{base})"))?;
    }
    run(&connection, &format!("CREATE TABLE v(id INTEGER, x {})", form.ty))?;
    run(&connection, &format!("INSERT INTO v SELECT id, {} FROM x", form.of))?;
    run(&connection, "INSERT INTO v VALUES (-1, NULL)")?;
    Ok(connection)
}

/// Fails unless `w` has the rows of `v`.
fn is_same(connection: &Connection) -> Result<(), String> {
    let all = number(connection, "SELECT count(*) FROM v")?;
    let same = number(
        connection,
        "SELECT count(*) FROM v JOIN w ON v.id = w.id WHERE v.x IS NOT DISTINCT FROM w.x",
    )?;
    let there = number(connection, "SELECT count(*) FROM w")?;
    if (all, all) == (same, there) {
        return Ok(());
    }
    let sql = "SELECT v.id, v.x::VARCHAR, w.x::VARCHAR FROM v LEFT JOIN w ON v.id = w.id WHERE v.x IS DISTINCT FROM w.x ORDER BY v.id LIMIT 3";
    let rows = connection.execute(sql).map_err(|error| error.to_string())?;
    let shown = |row: Vec<Value>| {
        row.iter().map(|v| v.display(DataType::Varchar).to_string()).collect::<Vec<_>>().join(" | ")
    };
    Err(format!(
        "{all} rows, {there} came back, {same} are the same: {:?}",
        rows.row_values().map(shown).collect::<Vec<_>>()
    ))
}

type Way = fn(&Connection, &Form, &Scratch) -> Result<(), String>;

fn as_text(connection: &Connection, form: &Form, _: &Scratch) -> Result<(), String> {
    run(
        connection,
        &format!("CREATE TABLE w AS SELECT id, CAST(CAST(x AS VARCHAR) AS {}) AS x FROM v", form.ty),
    )?;
    is_same(connection)
}

/// As text of a session in another time zone.
fn as_text_elsewhere(connection: &Connection, form: &Form, scratch: &Scratch) -> Result<(), String> {
    run(connection, "SET TimeZone = 'Asia/Kolkata'")?;
    as_text(connection, form, scratch)
}

fn as_csv(connection: &Connection, form: &Form, scratch: &Scratch) -> Result<(), String> {
    let path = scratch.path("v.csv").display().to_string();
    run(connection, &format!("COPY v TO '{path}' (HEADER)"))?;
    run(connection, &format!("CREATE TABLE w(id INTEGER, x {})", form.ty))?;
    run(connection, &format!("COPY w FROM '{path}' (HEADER)"))?;
    is_same(connection)
}

fn as_parquet(connection: &Connection, form: &Form, scratch: &Scratch) -> Result<(), String> {
    let path = scratch.path("v.parquet").display().to_string();
    if form.ty.contains("INTERVAL") {
        // Parquet has no type for them that other programs read.
        let refused = run(connection, &format!("COPY v TO '{path}'"));
        return match refused {
            Err(error) if error.contains("INTERVAL in Parquet files") => Ok(()),
            other => Err(format!("{other:?}")),
        };
    }
    run(connection, &format!("COPY v TO '{path}'"))?;
    if form.ty.contains("ENUM") || form.ty.contains("TIMETZ") {
        // Their values are texts there.
        run(connection, &format!("CREATE TABLE w AS SELECT id, x::{} AS x FROM '{path}'", form.ty))?;
        return is_same(connection);
    }
    run(connection, &format!("CREATE TABLE w AS SELECT * FROM '{path}'"))?;
    let types = number(
        connection,
        "SELECT count(*) FROM (SELECT typeof(x) AS t FROM v LIMIT 1) a, (SELECT typeof(x) AS t FROM w LIMIT 1) b WHERE a.t = b.t",
    )?;
    if types != 1 {
        let rows =
            connection.execute("SELECT typeof(x) FROM w LIMIT 1").map_err(|error| error.to_string())?;
        let found = rows.row_values().next();
        return Err(format!("{} came back as {found:?}", form.ty));
    }
    is_same(connection)
}

fn exported(connection: &Connection, scratch: &Scratch, options: &str) -> Result<(), String> {
    let path = scratch.path("e").display().to_string();
    run(connection, &format!("EXPORT DATABASE '{path}' {options}"))?;
    run(connection, "ALTER TABLE v RENAME TO kept")?;
    run(connection, "DROP TABLE x")?;
    run(connection, &format!("IMPORT DATABASE '{path}'"))?;
    run(connection, "ALTER TABLE v RENAME TO w")?;
    run(connection, "ALTER TABLE kept RENAME TO v")?;
    is_same(connection)
}

fn as_parameters(connection: &Connection, form: &Form, _: &Scratch) -> Result<(), String> {
    run(connection, &format!("CREATE TABLE w(id INTEGER, x {})", form.ty))?;
    let rows = connection.execute("SELECT id, x FROM v").map_err(|error| error.to_string())?;
    let types: Vec<DataType> = rows.schema().iter().map(|field| field.ty).collect();
    for row in rows.row_values() {
        let parameters: Vec<(Value, DataType)> = row.into_iter().zip(types.iter().copied()).collect();
        connection
            .query("INSERT INTO w VALUES (?, ?)", &parameters)
            .map_err(|error| format!("{parameters:?}: {error}"))?;
    }
    is_same(connection)
}

#[test]
fn what_goes_out_comes_back() {
    let ways: [(&str, Way); 7] = [
        ("text", as_text),
        ("text in another time zone", as_text_elsewhere),
        ("CSV", as_csv),
        ("Parquet", as_parquet),
        ("EXPORT", |connection, _, scratch| exported(connection, scratch, "")),
        ("EXPORT as Parquet", |connection, _, scratch| exported(connection, scratch, "(FORMAT parquet)")),
        ("parameters", as_parameters),
    ];
    let mut flaws = Vec::new();
    for (base, values) in values() {
        for form in forms(base) {
            for (name, way) in ways {
                let scratch = Scratch::new();
                let outcome =
                    filled(&form, base, &values).and_then(|connection| way(&connection, &form, &scratch));
                flaws.extend(outcome.err().map(|flaw| format!("{} as {name}: {flaw}", form.ty)));
            }
        }
    }
    assert!(flaws.is_empty(), "{} flaws\n{}", flaws.len(), flaws.join("\n"));
}
