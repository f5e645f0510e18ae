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
        "CREATE TABLE t (n BIGINT, name VARCHAR);\n.tables\n.schema t\n.quit\nSELECT 'not reached'",
    );
    assert!(output.status.success());
    assert_eq!(stdout(&output), "t\nt\n  n     BIGINT\n  name  VARCHAR\n");
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
    let sql = "SELECT * FROM 'flights.parquet'";
    let mut child =
        entasis(&["-m", "csv", "-c", sql]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(stderr(&output), "");
}

#[test]
fn help_teaches_by_example() {
    let output = run(&["--help"]);
    assert!(stdout(&output).contains("entasis -c \"SELECT carrier"));
}
