"""Every way to read a file, over every kind of source: the answer is right, or the error is clear.

A source that can be read only once (a pipe, a FIFO) must not lose rows because a statement meets it several
times, must not be read twice, and must not hang. Each case runs in a process of its own, which is given the
pipe, and in the shell.
"""

import gzip
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import pytest

import entasis

ROWS = 50_000
TEXT = "a,b\n" + "".join(f"{i},row {i}\n" for i in range(ROWS))
ANSWER = f"{ROWS},{(ROWS - 1) * ROWS // 2}"

#: How statements read `PATH`; each ends with the count of its rows and the sum of a.
WAYS = {
    "read_csv": ["SELECT count(*), sum(a) FROM read_csv('PATH')"],
    "options": ["SELECT count(*), sum(a) FROM read_csv('PATH', header = true, types = {'a': 'BIGINT'})"],
    "described": ["DESCRIBE SELECT * FROM read_csv('PATH')", "SELECT count(*), sum(a) FROM read_csv('PATH')"],
    "explained": ["EXPLAIN SELECT * FROM read_csv('PATH')", "SELECT count(*), sum(a) FROM read_csv('PATH')"],
    "prepared": ["PREPARE p AS SELECT count(*), sum(a) FROM read_csv('PATH')", "EXECUTE p"],
    "create": ["CREATE TABLE t AS SELECT * FROM read_csv('PATH')", "SELECT count(*), sum(a) FROM t"],
    "insert": [
        "CREATE TABLE t (a BIGINT, b VARCHAR)",
        "INSERT INTO t SELECT * FROM read_csv('PATH')",
        "SELECT count(*), sum(a) FROM t",
    ],
    "copy": [
        "CREATE TABLE t (a BIGINT, b VARCHAR)",
        "COPY t FROM 'PATH' (FORMAT csv, HEADER)",
        "SELECT count(*), sum(a) FROM t",
    ],
}

#: What cannot be answered, with a part of the error.
REFUSED = {
    "twice": (["SELECT count(*) FROM read_csv('PATH') x JOIN read_csv('PATH') y USING (a)"], "only once"),
    "parquet": (["SELECT count(*) FROM read_parquet('PATH')"], "is a pipe"),
}

PROGRAM = """
import sys, entasis
con = entasis.connect()
for statement in sys.argv[1:]:
    cursor = con.execute(statement)
print(",".join(map(str, cursor.fetchone())))
"""


def write_slowly(file, text=TEXT, pause=0.0):
    """Writes in pieces that end anywhere, from another thread."""

    def write():
        try:
            with file if hasattr(file, "write") else open(file, "w") as out:
                for start in range(0, len(text), 99_991):
                    out.write(text[start : start + 99_991])
                    out.flush()
                    time.sleep(pause)
        except BrokenPipeError:
            pass

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    return thread


def run(statements, path, stdin=None, pass_fds=()):
    statements = [statement.replace("PATH", str(path)) for statement in statements]
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *statements],
        stdin=subprocess.DEVNULL if stdin is None else stdin,
        pass_fds=pass_fds,
        capture_output=True,
        text=True,
        timeout=60,
    )


class Sources:
    """Runs statements over each kind of source."""

    @staticmethod
    def file(statements, folder):
        (folder / "x.csv").write_text(TEXT)
        return run(statements, folder / "x.csv")

    @staticmethod
    def link(statements, folder):
        (folder / "x.csv").write_text(TEXT)
        (folder / "link").symlink_to("x.csv")
        return run(statements, folder / "link")

    @staticmethod
    def file_as_stdin(statements, folder):
        (folder / "x.csv").write_text(TEXT)
        with open(folder / "x.csv") as file:
            return run(statements, "/dev/stdin", stdin=file)

    @staticmethod
    def fifo(statements, folder):
        os.mkfifo(folder / "x.fifo")
        write_slowly(folder / "x.fifo")
        return run(statements, folder / "x.fifo")

    @staticmethod
    def fifo_whose_writer_is_late(statements, folder):
        os.mkfifo(folder / "x.fifo")
        timer = threading.Timer(0.3, write_slowly, [folder / "x.fifo", TEXT, 0.01])
        timer.start()
        return run(statements, folder / "x.fifo")

    @staticmethod
    def stdin(statements, folder, path="/dev/stdin"):
        reads, writes = os.pipe()
        write_slowly(os.fdopen(writes, "w"))
        try:
            return run(statements, path, stdin=reads)
        finally:
            os.close(reads)

    @staticmethod
    def dash(statements, folder):
        return Sources.stdin(statements, folder, "-")

    @staticmethod
    def descriptor(statements, folder):
        reads, writes = os.pipe()
        write_slowly(os.fdopen(writes, "w"))
        try:
            return run(statements, f"/dev/fd/{reads}", pass_fds=[reads])
        finally:
            os.close(reads)


FILES = ["file", "link", "file_as_stdin"]
PIPES = ["fifo", "fifo_whose_writer_is_late", "stdin", "dash", "descriptor"]


@pytest.mark.parametrize("source", FILES + PIPES)
@pytest.mark.parametrize("way", WAYS)
def test_no_rows_are_lost(way, source, tmp_path):
    done = getattr(Sources, source)(WAYS[way], tmp_path)
    assert (done.stdout.strip(), done.returncode) == (ANSWER, 0), done.stderr


@pytest.mark.parametrize("source", PIPES)
@pytest.mark.parametrize("way", REFUSED)
def test_what_a_pipe_cannot_do_is_refused(way, source, tmp_path):
    statements, part = REFUSED[way]
    done = getattr(Sources, source)(statements, tmp_path)
    assert done.returncode == 1 and part in done.stderr, done.stderr


def test_names_of_files_that_are_pipes(tmp_path):
    os.mkfifo(tmp_path / "x.csv")
    write_slowly(tmp_path / "x.csv")
    assert run(["SELECT count(*), sum(a) FROM 'PATH'"], tmp_path / "x.csv").stdout.strip() == ANSWER


def test_an_empty_pipe_is_like_an_empty_file(tmp_path):
    for source in ["/dev/null", "/dev/stdin"]:
        done = run(["SELECT count(*) FROM read_csv('PATH')"], source)
        assert "is empty" in done.stderr, done.stderr
        done = run(["SELECT count(*) FROM read_csv('PATH', columns = {'a': 'BIGINT'})"], source)
        assert done.stdout == "0\n", done.stderr


def test_a_pipe_that_was_read_in_part_is_not_read_on(con):
    # Without a name it has lost rows; a FIFO has another writer.
    reads, writes = os.pipe()
    write_slowly(os.fdopen(writes, "w"), "a\n" + "7\n" * 3_000_000)
    path = f"/dev/fd/{reads}"
    assert con.execute(f"SELECT a FROM read_csv('{path}') LIMIT 1").fetchall() == [(7,)]
    for statement in [f"SELECT count(*) FROM read_csv('{path}')", f"DESCRIBE SELECT * FROM read_csv('{path}')"]:
        with pytest.raises(entasis.ProgrammingError, match="only once"):
            con.execute(statement)
    os.close(reads)


def test_a_fifo_is_read_again_by_its_next_reader(con, tmp_path):
    os.mkfifo(tmp_path / "f")
    for text, expected in [("a\n1\n2\n", 3), ("a\n5\n", 5)]:
        write_slowly(tmp_path / "f", text)
        assert con.execute(f"SELECT sum(a) FROM read_csv('{tmp_path}/f')").fetchone() == (expected,)


def test_waiting_for_a_writer_can_be_interrupted(tmp_path):
    os.mkfifo(tmp_path / "x.csv")
    child = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, f"SELECT count(*) FROM '{tmp_path}/x.csv'"], stderr=subprocess.PIPE
    )
    time.sleep(1)
    assert child.poll() is None
    child.send_signal(signal.SIGINT)
    assert b"KeyboardInterrupt" in child.communicate(timeout=20)[1]


@pytest.mark.parametrize("name, codec", [("x.csv.gz", None), ("x.csv.zst", None), ("x.data", "gzip"), ("x.csv", "zstd")])
def test_compressed_text_is_written_and_read(con, tmp_path, name, codec):
    path = tmp_path / name
    option = f", COMPRESSION {codec}" if codec else ""
    con.execute("CREATE TABLE t AS SELECT i AS a, 'row ' || i AS b FROM range(50000) r(i)")
    con.execute(f"COPY t TO '{path}' (FORMAT csv{option})")
    assert path.stat().st_size < len(TEXT) / 2
    named = f", compression = '{codec}'" if codec else ""
    ways = [f"SELECT count(*), sum(a) FROM read_csv('{path}'{named})"]
    if codec is None:
        ways.append(f"SELECT count(*), sum(a) FROM '{path}'")
    else:
        with pytest.raises(entasis.ProgrammingError, match=f"compressed with {codec}"):
            con.execute(f"SELECT * FROM read_csv('{path}')")
    con.execute("CREATE TABLE u (a BIGINT, b VARCHAR)")
    con.execute(f"COPY u FROM '{path}' (FORMAT csv{option})")
    for way in ways + ["SELECT count(*), sum(a) FROM u"]:
        assert con.execute(way).fetchone() == (ROWS, (ROWS - 1) * ROWS // 2)
    if "gz" in f"{name}{codec}":
        assert gzip.open(path, "rt").read() == TEXT
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(entasis.Error, match=name):
        con.execute(ways[0])


def test_compressed_text_comes_from_a_pipe(tmp_path):
    (tmp_path / "x.gz").write_bytes(gzip.compress(TEXT.encode()))
    with subprocess.Popen(["cat", tmp_path / "x.gz"], stdout=subprocess.PIPE) as cat:
        done = run(["SELECT count(*), sum(a) FROM read_csv('-', compression = 'gzip')"], "", stdin=cat.stdout)
    assert done.stdout.strip() == ANSWER, done.stderr


class TestTargets:
    """Where `COPY … TO` writes."""

    COPY = "COPY (SELECT 1 AS a, 'x' AS b) TO '{}' (FORMAT csv)"

    def test_a_fifo_is_written_into(self, con, tmp_path):
        os.mkfifo(tmp_path / "f")
        read = []
        reader = threading.Thread(target=lambda: read.append((tmp_path / "f").read_text()))
        reader.start()
        con.execute(self.COPY.format(tmp_path / "f"))
        reader.join(20)
        assert read == ["a,b\n1,x\n"] and (tmp_path / "f").is_fifo()

    def test_devices_stay(self, con):
        con.execute(self.COPY.format("/dev/null"))
        assert pathlib.Path("/dev/null").is_char_device()

    @pytest.mark.parametrize("path", ["'/dev/stdout'", "'-'", "STDOUT", "'/dev/fd/1'"])
    @pytest.mark.parametrize("redirected", [False, True])
    def test_standard_output(self, tmp_path, path, redirected):
        program = f"""
import entasis
print("before")
import sys; sys.stdout.flush()
entasis.connect().execute(\"\"\"COPY (SELECT 1 AS a, 'x' AS b) TO {path} (FORMAT csv)\"\"\")
print("after")
"""
        with open(tmp_path / "out", "w+") as out:
            command = [sys.executable, "-c", program]
            done = subprocess.run(command, stdout=out if redirected else subprocess.PIPE, text=True, check=True)
            text = (tmp_path / "out").read_text() if redirected else done.stdout
        assert text == "before\na,b\n1,x\nafter\n"

    def test_a_link_stays_and_its_file_is_replaced(self, con, tmp_path):
        (tmp_path / "there").mkdir()
        (tmp_path / "there/x.csv").write_text("old")
        (tmp_path / "x.csv").symlink_to("there/x.csv")
        con.execute(self.COPY.format(tmp_path / "x.csv"))
        assert (tmp_path / "x.csv").is_symlink()
        assert (tmp_path / "there/x.csv").read_text() == "a,b\n1,x\n"
        assert os.listdir(tmp_path / "there") == ["x.csv"]

    @pytest.mark.parametrize("name", ["x.xlsx", "x.weird", "x.arrow", "x.parquet.gz", "x.csv.bz2", "x.db"])
    def test_what_a_name_promises_is_kept_or_refused(self, con, tmp_path, name):
        copy = f"COPY (SELECT 1 AS a) TO '{tmp_path}/{name}'"
        with pytest.raises(entasis.Error, match=name):
            con.execute(copy)
        assert os.listdir(tmp_path) == []
        con.execute(copy + " (FORMAT csv)")
        assert (tmp_path / name).stat().st_size > 0

    def test_json_is_json(self, con, tmp_path):
        import json

        query = "SELECT i, [i, NULL] AS l, {'s': 'x\"' || i, 'd': DATE '2024-02-29'} AS s FROM range(5000) r(i)"
        expected = [{"i": i, "l": [i, None], "s": {"s": f'x"{i}', "d": "2024-02-29"}} for i in range(5000)]
        con.execute(f"COPY ({query}) TO '{tmp_path}/x.json'")
        assert json.loads((tmp_path / "x.json").read_text()) == expected
        con.execute(f"COPY ({query} WHERE false) TO '{tmp_path}/none.json'")
        assert json.loads((tmp_path / "none.json").read_text()) == []
        for name in ["x.jsonl", "x.ndjson"]:
            con.execute(f"COPY ({query}) TO '{tmp_path}/{name}'")
            assert [json.loads(line) for line in (tmp_path / name).read_text().splitlines()] == expected
        with pytest.raises(entasis.NotSupportedError, match="reading JSON"):
            con.execute(f"FROM '{tmp_path}/x.json'")
