"""`python -m entasis`"""

import subprocess
import sys

import entasis


def run(*arguments, given=""):
    command = [sys.executable, "-m", "entasis", *map(str, arguments)]
    return subprocess.run(command, input=given, capture_output=True, text=True, timeout=60)


def test_statements_are_run(tmp_path):
    done = run(tmp_path / "my.db", "CREATE TABLE t AS SELECT 7 AS a", "SELECT a FROM t")
    assert done.returncode == 0 and "7" in done.stdout and "1 row" in done.stdout, done.stderr
    assert "7" in run(tmp_path / "my.db", given="INSERT INTO t VALUES (8); SELECT a FROM t;").stdout
    done = run("--readonly", tmp_path / "my.db", "DELETE FROM t")
    assert done.returncode == 1 and "read-only" in done.stderr
    assert run("--version").stdout.strip() == f"entasis {entasis.__version__}"


def test_errors_end_it_with_status_1(tmp_path):
    done = run(":memory:", "SELECT nothing", "SELECT 1")
    assert done.returncode == 1 and "LINE 1: SELECT nothing" in done.stderr and done.stdout == ""
    assert run("--readonly", tmp_path / "missing.db", "SELECT 1").returncode == 1
