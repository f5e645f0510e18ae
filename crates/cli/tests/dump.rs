//! `.dump` of a database with everything that there is, read into an empty one.

use entasis::{Config, Connection, Database};
use std::io::Write;
use std::process::{Command, Stdio};

/// The output of the shell for a script, which must not fail.
fn shell(arguments: &[&str], script: &str) -> String {
    let mut child = Command::new(env!("CARGO_BIN_EXE_entasis"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{errors}\n{}", &script[..script.len().min(5000)]);
    String::from_utf8(output.stdout).unwrap()
}

fn values(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| format!("'{text}'")).collect()
}

/// Types, each with some of its values as SQL; the first ones are its extremes.
fn types() -> Vec<(&'static str, Vec<String>)> {
    let moments = ["infinity", "-infinity", "0001-12-31 (BC) 10:00:00", "9999-12-31 23:59:59.999999"];
    vec![
        ("BOOLEAN", values(&["true", "false"])),
        ("TINYINT", values(&["-128", "127"])),
        ("SMALLINT", values(&["-32768", "32767"])),
        ("INTEGER", values(&["-2147483648", "2147483647"])),
        ("BIGINT", values(&["-9223372036854775808", "9223372036854775807"])),
        ("UTINYINT", values(&["0", "255"])),
        ("USMALLINT", values(&["0", "65535"])),
        ("UINTEGER", values(&["0", "4294967295"])),
        ("UBIGINT", values(&["0", "18446744073709551615"])),
        ("REAL", values(&["nan", "inf", "-inf", "-0.0", "0.1", "16777217", "-3.4028235e38", "1e-45"])),
        (
            "DOUBLE",
            values(&[
                "nan",
                "inf",
                "-inf",
                "-0.0",
                "0.1",
                "9007199254740993",
                "1.7976931348623157e308",
                "5e-324",
            ]),
        ),
        ("DECIMAL(4,1)", values(&["-999.9", "999.9", "0"])),
        ("DECIMAL(38,10)", values(&["-9999999999999999999999999999.9999999999", "0.0000000001"])),
        ("VARCHAR", values(&["", "a", "it''s", "a;b -- c", "\n.tables\n", "\r\n\t\\", "NULL", "ß\u{1F600}"])),
        ("JSON", values(&["{\"a\": [1, null]}", " 1 ", "\"\\u0041, ]\"", "null"])),
        ("ENUM('b', '', 'it''s')", values(&["b", "", "it''s"])),
        ("BLOB", values(&["", "\\x00", "\\xFF''\\x5C", "NULL"])),
        ("DATE", values(&["infinity", "-infinity", "0044-03-15 (BC)", "9999-12-31"])),
        ("TIME", values(&["00:00:00", "24:00:00", "23:59:59.999999"])),
        ("TIMETZ", values(&["00:00:00+15:59:59", "24:00:00-15:59:59", "12:34:56.000001+05:30"])),
        ("TIMESTAMP", values(&moments)),
        ("TIMESTAMP_NS", values(&["infinity", "-infinity", "1969-12-31 23:59:59.999999999"])),
        ("TIMESTAMPTZ", values(&moments)),
        ("INTERVAL", values(&["-1 month", "14 months -3 days 00:00:00.000001", "-100:00:00", "0 days"])),
        ("UUID", values(&["00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"])),
    ]
}

/// Nested types of a type, each with what makes its values of a value `x`.
fn nested(ty: &str) -> [(String, &'static str); 4] {
    [
        (format!("{ty}[]"), "[NULL, x, x]"),
        (format!("{ty}[2]"), "[x, NULL]"),
        (format!("STRUCT(a {ty}, \"b, c}}\" {ty}[])"), "{'a': x, 'b, c}': []}"),
        (format!("MAP(VARCHAR, {ty})"), "MAP {'it''s': x, '': NULL}"),
    ]
}

/// Statements that make everything that there is.
fn everything() -> String {
    let mut script = String::new();
    for (i, (ty, values)) in types().into_iter().enumerate() {
        let mut columns = vec![(ty.to_owned(), "x")];
        columns.extend(nested(ty));
        let declared: Vec<String> =
            columns.iter().enumerate().map(|(j, (ty, _))| format!("c{j} {ty}")).collect();
        script += &format!("CREATE TABLE types_{i} (id INTEGER, {});\n", declared.join(", "));
        let made: Vec<String> = columns.iter().map(|(ty, of)| format!("CAST({of} AS {ty})")).collect();
        let (made, nulls) = (made.join(", "), vec!["NULL"; columns.len()].join(", "));
        let rows: Vec<String> =
            values.iter().enumerate().map(|(id, value)| format!("({id}, CAST({value} AS {ty}))")).collect();
        script +=
            &format!("INSERT INTO types_{i} SELECT id, {made} FROM (VALUES {}) v(id, x);\n", rows.join(", "));
        script += &format!("INSERT INTO types_{i} VALUES (-1, {nulls});\n");
    }
    script
        + r#"
CREATE SCHEMA "Odd schema";
CREATE TYPE mood AS ENUM ('ok', 'sad');
CREATE SEQUENCE numbers START WITH 5 INCREMENT BY 3;
CREATE SEQUENCE short MAXVALUE 2;
SELECT nextval('numbers'), nextval('short'), nextval('short');
CREATE TABLE z_parents (id INTEGER PRIMARY KEY, "select" VARCHAR NOT NULL DEFAULT 'x y', n BIGINT DEFAULT nextval('numbers'), UNIQUE ("select"));
INSERT INTO z_parents VALUES (1, 'one', 10), (2, 'it''s', 20);
CREATE TABLE a_children (id INTEGER, "Of" INTEGER REFERENCES z_parents (id) ON DELETE CASCADE, m mood, CHECK (id > 0));
INSERT INTO a_children VALUES (1, 1, 'ok'), (2, NULL, 'sad');
CREATE TABLE tree (id INTEGER PRIMARY KEY, up INTEGER REFERENCES tree (id));
INSERT INTO tree SELECT i, CASE WHEN i < 1499 THEN i + 1 END FROM range(1500) r(i);
CREATE TABLE left_side (id INTEGER PRIMARY KEY, other INTEGER);
CREATE TABLE right_side (id INTEGER PRIMARY KEY, other INTEGER REFERENCES left_side (id));
ALTER TABLE left_side ADD FOREIGN KEY (other) REFERENCES right_side (id);
INSERT INTO left_side VALUES (1, NULL);
INSERT INTO right_side VALUES (1, 1);
UPDATE left_side SET other = 1;
CREATE TABLE "Odd schema"."Odd, ""table" ("a b" INTEGER GENERATED BY DEFAULT AS IDENTITY, "c;" VARCHAR);
INSERT INTO "Odd schema"."Odd, ""table" ("c;") VALUES ('x'), ('y');
CREATE TABLE always (id BIGINT GENERATED ALWAYS AS IDENTITY, x INTEGER);
INSERT INTO always (x) VALUES (7), (8);
CREATE TABLE empty (x INTEGER);
CREATE TABLE laid (k INTEGER, x VARCHAR) WITH (layout_key = (k));
INSERT INTO laid VALUES (1, 'a'), (2, 'b');
CREATE INDEX by_of ON a_children ("Of");
CREATE UNIQUE INDEX by_x ON laid (x);
CREATE VIEW z_view AS SELECT id, "select" FROM z_parents WHERE "select" LIKE '%;%' OR id > 1;
CREATE VIEW a_view AS SELECT count(*) AS n FROM z_view;
CREATE TEMPORARY TABLE z_parents (of_another INTEGER);
"#
}

/// The rows of each table as texts, in the order of the texts.
fn contents(connection: &Connection) -> Vec<(String, Vec<String>)> {
    let mut all = Vec::new();
    for table in connection.tables().into_iter().filter(|table| !table.starts_with("temp.")) {
        let parts: Vec<String> = entasis_vector::name::parts(&table)
            .iter()
            .map(|part| format!("\"{}\"", part.replace('"', "\"\"")))
            .collect();
        let name = if parts.len() == 1 { format!("main.{}", parts[0]) } else { parts.join(".") };
        let rows = connection.execute(&format!("SELECT * FROM {name}")).unwrap();
        let types: Vec<_> = rows.schema().iter().map(|field| field.ty).collect();
        // Debug tells apart what is equal, such as 0.0 and -0.0.
        let shown = |row: Vec<entasis::Value>| -> String { format!("{types:?} {row:?}") };
        let mut rows: Vec<String> = rows.row_values().map(shown).collect();
        rows.sort();
        all.push((table, rows));
    }
    all
}

#[test]
fn a_dump_makes_everything_again() {
    let folder = std::env::temp_dir().join(format!("entasis-dump-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let place = |name: &str| folder.join(name).display().to_string();
    let (first, second) = (place("first.db"), place("second.db"));
    // Whatever the time zone.
    let dump = shell(&[&first], &(everything() + "SET timezone = 'Asia/Tokyo';\n.dump"));
    let dump = &dump[dump.find("BEGIN;").expect("a transaction")..];
    let again = shell(&[&second], &format!("SET timezone = 'America/New_York';\n{dump}"));
    // Only the sequence that is brought to its end says something.
    assert_eq!(again.matches("1 row").count(), 1, "{again}");
    let open = |path: &str| Database::open(path, Config::default()).unwrap().connect();
    {
        let (first, second) = (open(&first), open(&second));
        let (before, after) = (contents(&first), contents(&second));
        assert!(before.len() > 35 && before.iter().map(|(_, rows)| rows.len()).sum::<usize>() > 1600);
        for (one, other) in before.iter().zip(&after) {
            assert_eq!(one, other);
        }
        assert_eq!(before.len(), after.len());
        let declared = |connection: &Connection| connection.declarations(None).unwrap().unwrap();
        assert_eq!(declared(&first), declared(&second));
        assert!(second.execute("SELECT nextval('short')").is_err());
        // Both count on after the rows.
        for connection in [&first, &second] {
            let next: i64 =
                connection.query_row_as("INSERT INTO always (x) VALUES (9) RETURNING id", ()).unwrap();
            assert_eq!(next, 3);
            connection.execute("DELETE FROM always WHERE x = 9").unwrap();
            assert!(connection.execute("INSERT INTO always VALUES (7, 7)").is_err());
        }
    }
    assert_eq!(dump.matches("OVERRIDING SYSTEM VALUE").count(), 1);
    // The copy is dumped as the original is.
    assert_eq!(shell(&[&second], ".dump"), shell(&[&first], ".dump"));
    let one = shell(&[&second], ".dump tree");
    assert!(one.contains("CREATE TABLE \"tree\"") && !one.contains("left_side"));
    assert_eq!(one.matches("INSERT").count(), 1);
    std::fs::remove_dir_all(&folder).unwrap();
}
