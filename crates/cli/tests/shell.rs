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
    assert_eq!(output.status.code(), Some(3));
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
        (".help mode", ".mode [MODE"),
        (".help memory", "memory_limit"),
        (".memory all", "takes no argument, not all"),
        (".backup x.db", "BACKUP TO"),
        (".tabels", "did you mean .tables"),
        (".o", ".output or .once or .open"),
        ("\\dt", ".tables"),
        (".headers maybe", "on or off, not maybe"),
        (".timer on off", "off is too much"),
        (".mode csv x", "takes no argument x"),
        (".maxrows -1", "not -1"),
        (".read", "takes a file"),
        (".import a.csv", "a file and a table"),
        (".import a.csv t --what", "no option --what"),
        (".open --what", "no option --what"),
        (".once", "takes a file"),
        (".watch soon", "a number of seconds"),
        (".watch", "a number of seconds"),
        (".watch 1", "no last statement"),
        (".last", "no last result"),
        (".edit x", "takes no argument"),
        (".shell", "takes a command"),
        (".shell exit 3", "ended with"),
        (".cd no-such-directory", "no-such-directory"),
        (".open no-such", "there is no database"),
        (".print 'x", "'x"),
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
        assert_eq!(output.status.code(), Some(if hint == "-c" { 2 } else { 3 }));
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
    for mode in ["table", "csv", "tsv", "json", "jsonl", "markdown", "line", "list", "html"] {
        let output = run(&["-m", mode, "-c", sql]);
        let text = stdout(&output);
        assert_eq!(text.matches("2024-01-01 09:00:00+09").count(), 3, "{mode}: {text}{}", stderr(&output));
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
            assert!(
                matches!(output.status.code(), Some(1 | 3)),
                "{what}, limit {limit}: {}",
                stderr(&output)
            );
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

#[test]
fn exit_codes_say_what_failed() {
    for (arguments, code) in [
        (&["-c", "SELECT 1"][..], 0),
        (&["-c", "SELECT x"], 1),
        (&["--what"], 2),
        (&["--memory-limit", "much", "-c", "SELECT 1"], 2),
        (&["--threads", "0", "-c", "SELECT 1"], 2),
        (&["--timeout", "5", "-c", "SELECT 1"], 2),
        (&["-o", "no-such-directory/x", "-c", "SELECT 1"], 2),
        (&["no-such-directory/x.db", "-c", "SELECT 1"], 3),
        (&["airlines.csv", "-c", "SELECT 1"], 3),
        (&["--timeout", "30ms", "-c", "SELECT count(*) FROM range(100000000) a(i), range(10000) b(j)"], 4),
        (&["--continue", "-c", "SELECT x", "-c", "SELECT 1"], 1),
        (&["-1", "--continue", "-c", "SELECT 1"], 2),
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr(&output));
        assert_eq!(stderr(&output).is_empty(), code == 0, "{arguments:?}");
    }
}

#[test]
fn a_script_goes_on_after_errors_if_it_is_told_so() {
    let script = "SELECT x;\n.what\nSELECT 7 AS n;\n.bail on\nSELECT y;\nSELECT 8";
    let output = run_with_input(&["-m", "csv", "--continue"], script);
    assert_eq!((stdout(&output), output.status.code()), ("n\n7\n", Some(1)));
    assert_eq!(stderr(&output).matches("Error: ").count(), 3, "{}", stderr(&output));
    let output = run_with_input(&["-m", "csv"], ".bail off\nSELECT x;\nSELECT 7 AS n;");
    assert_eq!((stdout(&output), output.status.code()), ("n\n7\n", Some(1)));
}

/// The objects on standard error.
fn objects(output: &Output) -> Vec<serde_json::Value> {
    stderr(output).lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

#[test]
fn programs_get_errors_and_statistics_as_json() {
    let file = std::env::temp_dir().join(format!("entasis-json-{}.sql", std::process::id()));
    std::fs::write(&file, "SELECT 1;\nSET jit = 'on';\nSELECT\n  carrier, carier FROM 'airlines.csv'")
        .unwrap();
    let path = file.to_str().unwrap();
    let output = run(&["--errors", "json", "--stats", "-m", "csv", "-f", path]);
    let found = objects(&output);
    let kinds: Vec<&str> = found.iter().filter_map(|object| object["kind"].as_str()).collect();
    assert_eq!(kinds, ["stats", "note", "stats", "input"], "{}", stderr(&output));
    assert_eq!(found[0]["rows"], 1);
    assert!(found[0]["seconds"].is_number() && found[0]["peak_memory"].is_number());
    let error = &found[3];
    assert_eq!((&error["line"], &error["column"]), (&4.into(), &12.into()), "{error}");
    assert_eq!((&error["file"], &error["sqlstate"]), (&path.into(), &"42703".into()));
    assert!(error["message"].as_str().unwrap().contains("carier"));
    assert!(error["hint"].as_str().unwrap().contains("carrier"));
    std::fs::remove_file(file).unwrap();
    let output = run(&["--errors", "json", "no-such-directory/x.db"]);
    assert_eq!(objects(&output)[0]["kind"], "io");
    let output = run(&["--errors", "json", "-c", "SELECT 1;\n.what"]);
    assert_eq!(objects(&output)[0]["line"], 2);
    let sql = "SELECT count(*) FROM range(100000000) a(i), range(10000) b(j)";
    let output = run(&["--errors", "json", "--timeout", "30ms", "-c", sql]);
    assert_eq!(objects(&output)[0]["sqlstate"], "57014");
    let text = stderr(&run(&["--stats", "-c", "SELECT 1"])).to_owned();
    assert!(text.starts_with("Stats: 1 row · "), "{text}");
}

#[test]
fn limits_and_statistics_hold_for_commands_that_move_rows() {
    let directory = std::env::temp_dir().join(format!("entasis-moved-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let database = directory.join("my.db").display().to_string();
    let output = run(&[&database, "--stats", "-c", ".import flights.parquet flights"]);
    let text = stderr(&output);
    assert!(text.starts_with("Stats: 336,776 rows · ") && text.lines().count() == 1, "{text}");
    let output = run(&[&database, "--stats", "-c", "CREATE TABLE t AS SELECT 1 AS i;\n.dump t"]);
    let text = stderr(&output).lines().last().unwrap();
    assert!(text.starts_with("Stats: 1 row · ") && stdout(&output).contains("COMMIT;"), "{text}");
    for (command, begins) in [(".import flights.parquet more", ".import"), (".dump", ".dump")] {
        let output = run(&[&database, "--timeout", "1ms", "--stats", "-c", command]);
        assert_eq!(output.status.code(), Some(4), "{command}: {}", stderr(&output));
        let text = stderr(&output);
        assert!(text.contains(&format!("{begins} took longer than 1")) && !text.contains("Stats"), "{text}");
    }
    let output = run(&[&database, "-c", ".tables"]);
    assert_eq!(stdout(&output), "flights\nt\n");
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn values_are_passed_beside_the_text() {
    let sql = "SELECT count(*) AS n FROM 'airlines.csv' WHERE carrier = $carrier OR length(name) > $long";
    let output = run(&["-m", "csv", "-v", "carrier=UA", "-v", "long=1000", "-c", sql]);
    assert_eq!(stdout(&output), "n\n1\n", "{}", stderr(&output));
    let output = run(&["-m", "csv", "-v", "x='; SELECT 2; --", "-c", "SELECT $x AS x"]);
    assert_eq!(stdout(&output), "x\n'; SELECT 2; --\n");
    let output = run(&["-c", "SELECT $x AS x"]);
    assert!(stderr(&output).contains("-v x="), "{}", stderr(&output));
    let output = run(&["-v", "long=short", "-v", "carrier=UA", "-c", sql]);
    assert!(stderr(&output).contains("-v long"), "{}", stderr(&output));
}

#[test]
fn one_transaction_is_all_or_nothing() {
    let folder = std::env::temp_dir().join(format!("entasis-single-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("a.db").display().to_string();
    let rows = || stdout(&run(&["-m", "list", "--no-header", &path, ".tables"])).to_owned();
    let output = run(&[&path, "-1", "-c", "CREATE TABLE a (i INTEGER)", "-c", "SELECT x"]);
    assert_eq!((output.status.code(), rows().as_str()), (Some(1), ""), "{}", stderr(&output));
    assert!(
        run(&[&path, "-1", "-c", "CREATE TABLE a (i INTEGER); INSERT INTO a VALUES (1)"]).status.success()
    );
    assert_eq!(rows(), "a\n");
    let output = run(&[&path, "-1", "-c", "CREATE TABLE b (i INTEGER); COMMIT"]);
    assert!(output.status.code() == Some(1) && stderr(&output).contains("has ended"), "{}", stderr(&output));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn results_go_to_files_and_commands() {
    let folder = std::env::temp_dir().join(format!("entasis-results-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let place = |name: &str| folder.join(name).display().to_string();
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let (a, b, c) = (place("a.csv"), place("b.csv"), place("c.csv"));
    let script = format!(
        ".mode csv\n.once {a}\nSELECT 1 AS x;\nSELECT 2 AS x;\n.output {b}\nSELECT 3 AS x;\n.print 'to b'\n\
         .output\nSELECT 4 AS x;\n.once | sort -r > {c}\nSELECT * FROM (VALUES (5), (6)) v(x);\nSELECT 7 AS x;"
    );
    let output = run_with_input(&[], &script);
    assert_eq!(stdout(&output), "x\n2\nx\n4\nx\n7\n", "{}", stderr(&output));
    assert_eq!((read("a.csv").as_str(), read("b.csv").as_str()), ("x\n1\n", "x\n3\nto b\n"));
    assert_eq!(read("c.csv"), "x\n6\n5\n");
    let output = run(&["-o", &a, "-m", "jsonl", "-c", "SELECT 8 AS x"]);
    assert_eq!((stdout(&output), read("a.csv").as_str()), ("", "{\"x\":8}\n"));
    // A database is not overwritten, and a command that has enough is no failure.
    let database = place("d.db");
    assert!(run(&[&database, "-c", "CREATE TABLE t (i INTEGER)"]).status.success());
    assert!(stderr(&run_with_input(&[], &format!(".once {database}"))).contains("database"));
    let output =
        run_with_input(&["-m", "csv"], ".once | head -1\nSELECT * FROM 'flights.parquet';\nSELECT 9 AS x");
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(
        stdout(&output).starts_with("year,") && stdout(&output).ends_with("x\n9\n"),
        "{}",
        stdout(&output)
    );
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn the_look_of_results_is_chosen() {
    let script = ".headers off\n.nullvalue NA\n.mode list\n.separator ' - '\nSELECT 1, NULL;\n\
                  .nullvalue -\n.separator -\n.headers on\nSELECT 1 AS a, NULL AS b;\n\
                  .mode insert 's.t'\nSELECT 1 AS a, 'x' AS b;\n.mode table\n.maxrows 2\nSELECT i FROM range(9) r(i);";
    let output = run_with_input(&[], script);
    let text = stdout(&output);
    assert!(text.starts_with("1 - NA\na|b\n1|\nINSERT INTO s.t (a, b) VALUES (1, 'x');\n"), "{text}");
    assert!(text.contains("9 rows (2 shown)"), "{text}");
    let output = run(&["--no-header", "--null", "NA", "-m", "tsv", "-c", "SELECT 1, NULL"]);
    assert_eq!(stdout(&output), "1\tNA\n");
    let output = run(&["--maxrows", "2", "-c", "SELECT i FROM range(9) r(i)"]);
    assert!(stdout(&output).contains("9 rows (2 shown)"));
    let output = run_with_input(&[], ".show\n.headers\n.mode");
    for part in
        ["mode: table", "headers: on", "nullvalue: as the mode has it", "output: -", "table (of table, csv"]
    {
        assert!(stdout(&output).contains(part), "{part}: {}", stdout(&output));
    }
}

#[test]
fn memory_is_drawn_by_its_holders() {
    let tables = "CREATE TABLE great AS SELECT i, i * 7919 % 1000003 AS n FROM range(200000) r(i);\n\
                  CREATE SCHEMA s;\nCREATE TABLE s.small AS SELECT i * 7919 % 1000003 AS n FROM range(2000) r(i);\n";
    let arguments = ["--memory-limit", "100MB"];
    let output = run_with_input(&arguments, &format!("{tables}.memory"));
    let text = stdout(&output);
    // Upkeep may have left older versions behind.
    let drawn = |name: &str| {
        let mut lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let line = lines.find(|words| words.starts_with(&["tables", name])).expect(text);
        line[line.len() - 1].matches('█').count()
    };
    assert_eq!(drawn("great"), 40, "{text}{}", stderr(&output));
    assert!(drawn("s.small") < 10 && text.starts_with("tables"), "{text}");
    let last = text.lines().last().unwrap();
    assert!(last.contains(" of the memory_limit of 95 MB in use, ") && last.ends_with(" %"), "{text}");
    assert!(!text.contains('\x1b'), "{text}");
    // In modes for programs, there are the rows.
    let text = stdout(&run_with_input(&["-m", "csv"], &format!("{tables}.memory"))).to_owned();
    assert!(
        text.starts_with("owner,name,bytes,temporary_bytes,limit_bytes,free_bytes\ntables,great,"),
        "{text}"
    );
    let output = run_with_input(&["-m", "json"], &format!("{tables}.memory"));
    let rows: serde_json::Value = serde_json::from_str(stdout(&output)).unwrap();
    let number = |row: &serde_json::Value, column: &str| row[column].as_i64().unwrap();
    let rows = rows.as_array().unwrap();
    let used: i64 = rows.iter().map(|row| number(row, "bytes")).sum();
    assert_eq!(number(&rows[0], "limit_bytes") - number(&rows[0], "free_bytes"), used);
    assert_eq!((&rows[1]["owner"], &rows[1]["name"]), (&"tables".into(), &"s.small".into()));
}

#[test]
fn files_are_imported_into_new_tables_and_old_ones() {
    let folder = std::env::temp_dir().join(format!("entasis-import-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, text: &str| {
        std::fs::write(folder.join(name), text).unwrap();
        folder.join(name).display().to_string()
    };
    let a = write("a.csv", "id,name\n1,x\n2,y\n");
    let b = write("b c.txt", "made today\nid;name\n3;z\n");
    let script = format!(
        ".import {a} t\n.import '{b}' t --skip 1 --delimiter ;\n.import {a} \"odd name\"\n.mode csv\n\
         SELECT * FROM t ORDER BY id;\nSELECT count(*) AS n FROM \"odd name\";\n.import {a}x t"
    );
    let output = run_with_input(&[], &script);
    assert_eq!(stdout(&output), "id,name\n1,x\n2,y\n3,z\nn\n2\n", "{}", stderr(&output));
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("a.csvx"), "{}", stderr(&output));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn other_databases_are_opened_and_directories_changed() {
    let folder = std::env::temp_dir().join(format!("entasis-open-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let script = format!(
        "CREATE TABLE memory (i INTEGER);\n.cd '{}'\n.open a.db\nCREATE TABLE a (i INTEGER);\n.open\n.tables\n\
         .open --readonly a.db\n.tables\n.shell echo shell\nINSERT INTO a VALUES (1);",
        folder.display()
    );
    let output = run_with_input(&[], &script);
    assert_eq!(stdout(&output), "a\nshell\n", "{}", stderr(&output));
    assert!(stderr(&output).contains("read-only"), "{}", stderr(&output));
    assert_eq!(run_with_input(&[], ".open no-such-directory/x.db").status.code(), Some(3));
    let output = run_with_input(&[], "BEGIN;\n.open");
    assert!(stderr(&output).contains("a transaction is open"), "{}", stderr(&output));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn commands_are_echoed_repeated_and_shown_again() {
    let output =
        run_with_input(&["-m", "csv"], ".echo on\nSELECT 1 AS a;\n.echo off\n.watch 0 2\n.x SELECT 2 AS b");
    assert_eq!(
        stdout(&output),
        "SELECT 1 AS a;\na\n1\n.echo off\na\n1\na\n1\nb = 2\n",
        "{}",
        stderr(&output)
    );
    let output = run_with_input(&["-m", "csv"], ".watch 0 2 SELECT 3 AS c\n.watch 0 9 SELECT x");
    assert_eq!(stdout(&output), "c\n3\nc\n3\n");
    assert_eq!(stderr(&output).matches("Error:").count(), 1, "{}", stderr(&output));
}

#[cfg(unix)]
#[test]
fn statements_are_edited() {
    let mut command = entasis(&["-m", "csv"]);
    command.env("VISUAL", "sed -i s/1/2/").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"SELECT 1 AS a;\n.edit\n.edit\n").unwrap();
    // The second time, nothing is changed.
    assert_eq!(stdout(&child.wait_with_output().unwrap()), "a\n1\na\n2\n");
}

#[test]
fn the_init_file_runs_first() {
    let file = std::env::temp_dir().join(format!("entasis-init-{}.sql", std::process::id()));
    std::fs::write(&file, ".mode csv\nCREATE TABLE t AS SELECT 5 AS n;").unwrap();
    let output = run(&["--init", file.to_str().unwrap(), "-c", "FROM t"]);
    assert_eq!(stdout(&output), "n\n5\n", "{}", stderr(&output));
    assert_eq!(run(&["--init", "no-such.sql", "-c", "SELECT 1"]).status.code(), Some(1));
    std::fs::remove_file(file).unwrap();
}

#[test]
fn rows_are_written_while_the_query_runs() {
    // It would take hours.
    let sql = "SELECT a.i FROM range(10000000000) a(i)";
    for mode in ["csv", "tsv", "list", "json", "jsonl", "insert", "html", "markdown", "line", "table"] {
        let mut child = entasis(&["-m", mode, "-c", sql]).stdout(Stdio::piped()).spawn().unwrap();
        let mut first = [0; 100];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut first).unwrap();
        drop(child.stdout.take());
        assert!(child.wait().unwrap().success(), "{mode}");
    }
    // What comes before an error is written.
    let sql = "SELECT 10 / (100000 - i) AS n FROM range(200000) r(i)";
    let output = run(&["--threads", "1", "-m", "list", "-c", sql]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).starts_with("n\n0\n0\n"), "{}", stdout(&output));
}

#[test]
fn completions_and_the_manual_are_written() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(stdout(&run(&["completions", shell])).contains("single-transaction"), "{shell}");
    }
    assert_eq!(run(&["completions", "csh"]).status.code(), Some(2));
    assert!(stdout(&run(&["man"])).contains(".TH entasis 1"));
}

/// A path for a file of a test, which does not exist.
fn fresh(name: &str) -> std::path::PathBuf {
    let path = std::env::temp_dir().join(format!("entasis-{}-{name}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

#[test]
fn one_transaction_says_why_it_is_not_committed() {
    let file = fresh("one.db");
    let path = file.to_str().unwrap();
    assert!(run(&[path, "CREATE TABLE t (a INTEGER PRIMARY KEY)"]).status.success());
    // A script that goes on after its errors has failed all the same.
    let script = ".bail off\nINSERT INTO t VALUES (1);\nINSERT INTO t VALUES (1);\nINSERT INTO t VALUES (3);";
    let output = run_with_input(&[path, "-1", "-f", "-"], script);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert_eq!(stdout(&run(&["-m", "csv", path, "SELECT count(*) AS n FROM t"])), "n\n0\n");
    // So has one whose output nobody reads to its end.
    let mut child =
        entasis(&[path, "-1", "-m", "csv", "-c", "FROM range(10000000)", "-c", "INSERT INTO t VALUES (5)"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("rolled back"), "{}", stderr(&output));
    assert_eq!(stdout(&run(&["-m", "csv", path, "SELECT count(*) AS n FROM t"])), "n\n0\n");
    std::fs::remove_file(file).unwrap();
}

#[test]
fn databases_are_opened_as_the_first_one_was() {
    let (file, other) = (fresh("first.db"), fresh("second.db"));
    let (path, second) = (file.to_str().unwrap(), other.to_str().unwrap());
    assert!(run(&[path, "CREATE TABLE t (a INTEGER)"]).status.success());
    let output =
        run(&["--readonly", path, "-c", &format!(".open {second}"), "-c", "CREATE TABLE z (a INTEGER)"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(!other.exists());
    for (arguments, code) in [
        (&[".open nosuch"][..], 3),
        (&[".open ''"], 3),
        (&["TRUNCATE s.t"], 2),
        (&["MERGE INTO s.t USING u ON true WHEN MATCHED THEN DELETE"], 2),
        (&["--continue", "-f", "no-such.sql", "-c", "SELECT 7 AS x"], 1),
    ] {
        let commands: Vec<&str> = match arguments {
            [one] if one.starts_with('.') => vec!["-c", one],
            all => all.to_vec(),
        };
        let output = run(&commands);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr(&output));
        assert_eq!(stdout(&output).contains('7'), code == 1, "{arguments:?}");
    }
    std::fs::remove_file(file).unwrap();
}

#[test]
fn a_command_that_has_enough_of_a_dot_command_is_no_error() {
    let script =
        "CREATE TABLE t AS FROM range(200000) r(i);\n.once | head -1\n.dump\n.mode csv\nSELECT 2 AS n;";
    let output = run_with_input(&[], script);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).ends_with("n\n2\n"), "{}", stdout(&output));
}
