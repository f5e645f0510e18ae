//! Tests the binary from outside: its output and exit codes.

use std::io::Write;
use std::process::{Command, Output, Stdio};

fn entasis(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_entasis"));
    command.args(arguments).current_dir("../../data/flights");
    command
}

fn run(arguments: &[&str]) -> Output {
    entasis(arguments).stdin(Stdio::null()).output().unwrap()
}

fn run_with_input(arguments: &[&str], input: &str) -> Output {
    let mut child = entasis(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

#[test]
fn the_question_of_the_readme() {
    let sql = "SELECT carrier, count(*) n, avg(dep_delay) d FROM 'flights.parquet' GROUP BY carrier ORDER BY n DESC";
    let output = run(&["-c", sql]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("│ carrier │") && text.contains("│ UA      │  58665 │"), "{text}");
    assert!(text.ends_with("16 rows\n"), "{text}");
}

#[test]
fn every_mode_writes_the_same_rows() {
    let sql = "SELECT * FROM (VALUES (1, 'one'), (2, NULL)) v(n, name) ORDER BY n";
    let written = |mode| stdout(&run(&["--mode", mode, "-c", sql])).to_owned();
    assert_eq!(written("csv"), "n,name\n1,one\n2,\n");
    assert_eq!(written("jsonl"), "{\"n\":1,\"name\":\"one\"}\n{\"n\":2,\"name\":null}\n");
    assert_eq!(written("json"), "[\n  {\"n\":1,\"name\":\"one\"},\n  {\"n\":2,\"name\":null}\n]\n");
    assert_eq!(written("markdown"), "| n | name |\n|--:|---|\n| 1 | one |\n| 2 |  |\n");
    assert_eq!(written("line"), "   n = 1\nname = one\n\n   n = 2\nname = NULL\n");
}

#[test]
fn errors_point_at_their_place_and_end_with_exit_code_1() {
    let output =
        run(&["-c", "SELECT 1", "-c", "SELECT carier FROM 'airlines.csv'", "-c", "SELECT 'not reached'"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("carier"), "{}", stderr(&output));
    assert!(!stdout(&output).contains("not reached"));
    let output = run(&["-c", "SELECT 1 +\n  FROM"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("LINE 2:   FROM\n"), "{}", stderr(&output));
    assert!(stderr(&output).contains('^'));
}

#[test]
fn bad_input_is_an_error_and_not_a_crash() {
    let deep = format!("SELECT {}1{}", "(".repeat(10_000), ")".repeat(10_000));
    let long = format!("SELECT '{}'", "x".repeat(1 << 20));
    assert!(stdout(&run_with_input(&["-m", "csv"], &long)).len() > 1 << 20);
    for sql in [
        "SELECT * FROM 'no-such.parquet'",
        "SELECT * FROM nothing_of_that_name",
        "SELECT 1 / 0",
        "SELECT 9223372036854775807 + 1",
        "SELEC 1",
        &deep,
    ] {
        let output = run_with_input(&[], sql);
        let sql = &sql[..sql.len().min(50)];
        assert_eq!(output.status.code(), Some(1), "{sql}");
        assert!(
            !stderr(&output).is_empty() && !stderr(&output).contains("panicked"),
            "{sql}\n{}",
            stderr(&output)
        );
    }
}

#[test]
fn scripts_come_from_files_and_from_standard_input() {
    let script = "CREATE TABLE t AS SELECT 1 AS i; INSERT INTO t VALUES (2); -- two rows\n.mode csv\nSELECT * FROM t ORDER BY i";
    let output = run_with_input(&[], script);
    assert_eq!(stdout(&output), "i\n1\n2\n", "{}", stderr(&output));
    let file = std::env::temp_dir().join(format!("entasis-script-{}.sql", std::process::id()));
    std::fs::write(&file, script).unwrap();
    let path = file.to_str().unwrap();
    assert_eq!(stdout(&run(&["-f", path, "-c", "SELECT count(*) AS n FROM t"])), "i\n1\n2\nn\n2\n");
    assert_eq!(stdout(&run(&["-c", &format!(".read {path}")])), "i\n1\n2\n");
    std::fs::remove_file(file).unwrap();
    let output = run(&["-f", "no-such.sql"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("no-such.sql"));
}

#[test]
fn errors_in_scripts_name_the_line_of_the_script() {
    let output = run_with_input(&[], "SELECT 1;\n\nSELECT\n  nothing;\n");
    assert!(stderr(&output).contains("LINE 4:   nothing"), "{}", stderr(&output));
}

#[test]
fn dot_commands() {
    let output = run_with_input(
        &[],
        "CREATE TABLE t (n BIGINT, label VARCHAR);\n.tables\n.schema t\n.quit\nSELECT 'not reached'",
    );
    assert!(output.status.success());
    assert_eq!(stdout(&output), "t\nCREATE TABLE t (\n    n BIGINT,\n    label VARCHAR\n);\n");
    let output = run_with_input(&[], ".nonsense\n");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains(".nonsense"));
}

#[test]
fn database_files_keep_tables() {
    let file = std::env::temp_dir().join(format!("entasis-shell-{}.db", std::process::id()));
    let path = file.to_str().unwrap();
    let sql = "CREATE TABLE t AS SELECT 7 AS n";
    assert!(run(&[path, "-c", sql]).status.success());
    assert_eq!(stdout(&run(&["-m", "csv", path, "-c", "SELECT n FROM t"])), "n\n7\n");
    std::fs::remove_file(file).unwrap();
    let output = run(&["no-such-directory/some.db", "-c", "SELECT 1"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("cannot open the database"), "{}", stderr(&output));
}

#[test]
fn layouts_are_explained_and_drawn() {
    let place = |name: &str| std::env::temp_dir().join(format!("entasis-{}-{name}", std::process::id()));
    let (file, workload, plot) = (place("layout.db"), place("ops.sql"), place("plot.svg"));
    let [path, sample, svg] = [&file, &workload, &plot].map(|path| path.to_str().unwrap());
    let table = "CREATE TABLE t (k INTEGER PRIMARY KEY, a INTEGER); \
                 INSERT INTO t SELECT i, i % 10 FROM range(5000) r(i)";
    assert!(run(&[path, "-c", table]).status.success());
    std::fs::write(&workload, "SELECT a FROM t WHERE k = 7; DELETE FROM t; INSERT INTO t VALUES (-1, 2)")
        .unwrap();
    let output = run(&["layout", path, "--table", "t", "--workload", sample, "--plot", svg]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    for part in ["equi_ghost by (k)", "a sample of 3 statements", "point query", "recommended", "plot.svg"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let drawn = std::fs::read_to_string(&plot).unwrap();
    assert!(drawn.starts_with("<svg ") && drawn.contains("class=\"write\""), "{drawn}");
    // Nothing was run.
    assert_eq!(stdout(&run(&["-m", "csv", path, "-c", "SELECT count(*) AS n FROM t"])), "n\n5000\n");
    let output = run(&["layout", path, "--table", "nothing"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("nothing"), "{}", stderr(&output));
    [file, workload, plot].into_iter().for_each(|path| std::fs::remove_file(path).unwrap());
}

#[test]
fn a_reader_that_has_enough_is_no_error() {
    for sql in ["SELECT * FROM 'flights.parquet'", "COPY (FROM 'flights.parquet') TO STDOUT"] {
        let mut child =
            entasis(&["-m", "csv", "-c", sql]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(stderr(&output), "");
        assert!(output.status.success(), "{sql}");
    }
}

#[test]
fn help_teaches_by_example() {
    let output = run(&["--help"]);
    assert!(stdout(&output).contains("entasis -c \"SELECT carrier"));
}

#[test]
fn schema_prints_what_creates_the_same_objects() {
    let declare = "CREATE TABLE p (id INTEGER PRIMARY KEY, \"a b\" VARCHAR NOT NULL DEFAULT 'x y', CHECK (id > 0));\n\
                   CREATE TABLE c (id INTEGER, of INTEGER REFERENCES p (id) ON DELETE CASCADE);\n\
                   CREATE INDEX by_of ON c (of); CREATE VIEW v AS SELECT id FROM p; CREATE SEQUENCE s START WITH 5;";
    let first = run_with_input(&[], &format!("{declare}\n.schema"));
    let again = run_with_input(&[], &format!("{}\n.schema", stdout(&first)));
    assert_eq!(stdout(&first), stdout(&again), "{}", stderr(&again));
    for part in [
        "NOT NULL",
        "DEFAULT 'x y'",
        "ON DELETE CASCADE",
        "CREATE INDEX by_of",
        "CREATE VIEW v",
        "CREATE SEQUENCE s",
    ] {
        assert!(stdout(&first).contains(part), "{part}: {}", stdout(&first));
    }
    let one =
        run_with_input(&[], &format!("{declare}\n.schema C\n.schema 'airlines.csv'\n.tables %p%\n.tables V"));
    let text = stdout(&one);
    assert!(
        text.starts_with("CREATE TABLE c (") && text.contains("by_of") && !text.contains("TABLE p"),
        "{text}"
    );
    assert!(text.ends_with("p\nv\n") && text.contains("carrier"), "{text}");
}

#[test]
fn no_argument_of_a_dot_command_is_ignored() {
    for (command, part) in [
        (".quit 3", "takes no argument"),
        (".help nothing", "nothing"),
        (".mode", "table"),
        (".help mode", ".mode [MODE]"),
        (".dump", "EXPORT DATABASE"),
        (".import a.csv t", "COPY t FROM"),
        (".open x.db", "ATTACH"),
        (".tabels", "did you mean .tables"),
        ("\\dt", ".tables"),
    ] {
        let output = run_with_input(&[], command);
        let text = format!("{}{}", stdout(&output), stderr(&output));
        assert!(text.contains(part), "{command}: {text}");
    }
    assert!(stdout(&run_with_input(&[], ".mode box\nSELECT 1 AS a")).contains("a │"));
}

#[test]
fn a_mistyped_argument_makes_no_database() {
    let folder = std::env::temp_dir().join(format!("entasis-mistyped-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let try_to =
        |arguments: &[&str]| entasis(arguments).current_dir(&folder).stdin(Stdio::null()).output().unwrap();
    for (argument, hint) in
        [("dmeo", "demo"), ("sales", "sales.db"), ("select 1", "-c"), ("SELECT 1.5 FROM x.y", "-c")]
    {
        let output = try_to(&[argument]);
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains(hint), "{argument}: {}", stderr(&output));
    }
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    for argument in ["./sales", "sales.db", "my sales.db"] {
        let output = try_to(&["-m", "csv", argument, "SELECT 1 AS a", "SELECT 2 AS b"]);
        assert_eq!(stdout(&output), "a\n1\nb\n2\n", "{}", stderr(&output));
    }
    assert_eq!(stdout(&try_to(&["-m", "csv", "sales", "SELECT 3 AS c"])), "c\n3\n");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn lists_and_structs_are_json() {
    let sql = "SELECT [1, NULL] AS l, {'s': 'x\"', 'd': DATE '2024-02-29', 'n': [1.50]} AS s";
    let output = run(&["-m", "jsonl", "-c", sql]);
    assert_eq!(
        stdout(&output),
        "{\"l\":[1,null],\"s\":{\"s\":\"x\\\"\",\"d\":\"2024-02-29\",\"n\":[1.50]}}\n",
        "{}",
        stderr(&output)
    );
}

#[test]
fn instants_are_in_the_zone_of_the_session_in_every_mode() {
    let sql = "SET timezone = 'Asia/Tokyo'; SELECT i, [i] AS l, {'i': [i]} AS s \
               FROM (SELECT TIMESTAMPTZ '2024-01-01 00:00:00+00' AS i)";
    for mode in ["table", "csv", "json", "jsonl", "markdown", "line"] {
        let output = run(&["-m", mode, "-c", sql]);
        let text = stdout(&output);
        assert_eq!(text.matches("2024-01-01 09:00:00+09").count(), 3, "{mode}: {text}{}", stderr(&output));
    }
}

/// What the prompt prints for keys that arrive all at once, without the marks of a bracketed paste.
#[cfg(target_os = "linux")]
fn typed(keys: &str) -> String {
    let home = std::env::temp_dir().join(format!("entasis-home-{}", std::process::id()));
    std::fs::create_dir_all(&home).unwrap();
    // `script` gives the shell a terminal.
    let mut child = Command::new("script")
        .args(["-qec", env!("CARGO_BIN_EXE_entasis"), "/dev/null"])
        .env("XDG_DATA_HOME", &home)
        .env("TERM", "xterm")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program script of util-linux");
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(keys.as_bytes()).unwrap();
    stdin.flush().unwrap();
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    let _ = std::fs::remove_dir_all(&home);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[cfg(target_os = "linux")]
#[test]
fn all_statements_of_a_paste_run() {
    let statements: String = (0..10).map(|i| format!("SELECT {i} * 1001 AS pasted;\r")).collect();
    let text = typed(&(statements + ".quit\r"));
    for i in 0..10 {
        // Not what was typed, but the result.
        let result = format!("{} │", i * 1001);
        assert!(text.contains(&result), "{result} is missing: {text}");
    }
}

#[test]
fn what_is_not_closed_is_an_error_at_its_beginning() {
    for (open, says) in [
        ("/* open\nmore", "a comment has no closing */"),
        ("/* /* open */\nmore", "a comment has no closing */"),
        ("'open\nmore", "a text literal has no closing quote"),
        ("E'open\nmore", "a text literal has no closing quote"),
        ("$$open\nmore", "a text literal has no closing dollar sign"),
        ("$tag$open$$\nmore", "a text literal has no closing dollar sign"),
        ("\"open\nmore", "'\"'"),
    ] {
        // After nothing, after a statement, and within one.
        for (before, row) in
            [("", 1), (" SELECT 1;\n\n", 3), ("SELECT 1;\nSELECT 2,\n  ", 3), (".mode csv\n", 2)]
        {
            let sql = format!("{before}{open}");
            let line = sql.lines().nth(row - 1).unwrap();
            let column = line.find(open.lines().next().unwrap()).unwrap();
            let place =
                format!("LINE {row}: {line}\n{}^", " ".repeat(format!("LINE {row}: ").len() + column));
            for output in [run(&["-c", &sql]), run_with_input(&[], &sql)] {
                assert_eq!(output.status.code(), Some(1), "{sql}");
                let text = stderr(&output);
                assert!(text.contains(says) && text.contains(&place), "{sql}\n{text}");
            }
        }
    }
    for closed in ["/* closed */", "/* /* closed */ */ -- more", "SELECT '/*'", ";-- /*"] {
        assert!(run(&["-c", closed]).status.success(), "{closed}");
    }
}

/// The files of a directory with their contents.
#[cfg(unix)]
fn files(directory: &std::path::Path) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    let mut files: Vec<(String, Vec<u8>)> = entries
        .map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    files
}

/// Files cannot become longer than a limit, which is to the database what a full disk is.
#[cfg(unix)]
#[test]
fn an_opening_that_fails_leaves_the_files_that_it_found() {
    let directory = std::env::temp_dir().join(format!("entasis-full-{}", std::process::id()));
    let database = directory.join("a.db").display().to_string();
    let made = |sql: &str| assert!(run(&[&database, "-c", sql]).status.success(), "{sql}");
    let nothing: &dyn Fn() = &|| ();
    let empty: &dyn Fn() = &|| std::fs::write(&database, "").unwrap();
    let closed: &dyn Fn() = &|| made("CREATE TABLE t AS SELECT i FROM range(10) r(i)");
    for (what, prepare) in [("nothing", nothing), ("an empty file", empty), ("a closed database", closed)] {
        let mut failures = 0;
        // In blocks of half a kilobyte or a whole one, up to some megabytes.
        for limit in (0..32).step_by(3).chain((5..16).map(|bits| 1 << bits)) {
            std::fs::remove_dir_all(&directory).ok();
            std::fs::create_dir_all(&directory).unwrap();
            prepare();
            let before = files(&directory);
            let output = Command::new("sh")
                .args(["-c", "trap '' XFSZ; ulimit -f \"$0\"; exec \"$@\"", &limit.to_string()])
                .args([env!("CARGO_BIN_EXE_entasis"), &database, "-c", "SELECT 1"])
                .stdin(Stdio::null())
                .output()
                .unwrap();
            if output.status.success() {
                break;
            }
            failures += 1;
            assert_eq!(output.status.code(), Some(1), "{what}, limit {limit}: {}", stderr(&output));
            let after = files(&directory);
            let names =
                |files: &[(String, Vec<u8>)]| files.iter().map(|file| file.0.clone()).collect::<Vec<_>>();
            assert_eq!(names(&after), names(&before), "{what}, limit {limit}: {}", stderr(&output));
            // It can be opened as if nothing had happened.
            assert!(what == "a closed database" || after == before, "{what}, limit {limit}");
            made("SELECT 1");
        }
        assert!(failures > 0, "{what}: the limit was never reached");
    }
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_database_is_not_overwritten_whatever_its_name() {
    let directory = std::env::temp_dir().join(format!("entasis-own-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    for name in ["a.db", "a.csv", "a"] {
        let database = directory.join(name).display().to_string();
        let copy = format!("COPY t TO '{database}'");
        for sql in [copy.clone(), format!("{copy} (FORMAT csv)"), format!("{copy} (FORMAT parquet)")] {
            let output = run(&[&database, "-c", "CREATE OR REPLACE TABLE t AS SELECT 1 a", "-c", &sql]);
            assert_eq!(output.status.code(), Some(1), "{sql}");
            assert!(stderr(&output).contains("belongs to a database that is open"), "{}", stderr(&output));
        }
        let output = run(&["-c", &format!("COPY (SELECT 1) TO '{database}'")]);
        assert!(stderr(&output).contains("is a database"), "{}", stderr(&output));
    }
    std::fs::remove_dir_all(&directory).unwrap();
}
