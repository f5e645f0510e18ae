"""Processes that are forked while databases are open: a database belongs to the process that opened it.

What a child may do is crossed with the kind of database and with what the parent does meanwhile. Each case is
a program of its own, with a watchdog: nothing may hang. Afterwards the database must have what its parent was
told is committed, and no more; a child is refused by name, and changes nothing, however it ends.
"""

import itertools
import os
import subprocess
import sys
import textwrap

import pytest

import entasis

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

CHILD = {
    "exits": "sys.exit(0)",
    "exits at once": "os._exit(0)",
    "collects": "del con, cur; gc.collect()",
    "closes": "con.close(); cur.close()",
    "queries": "refused(lambda: con.execute('SELECT count(*) FROM t').fetchall())",
    "goes on with a cursor": "cur.fetchall(); refused(lambda: cur.execute('SELECT 1'))",
    "writes": "refused(lambda: con.execute('INSERT INTO t VALUES (100)'))",
    "writes many": "refused(lambda: con.executemany('INSERT INTO t VALUES (?)', [(100,), (101,)]))",
    "checkpoints": "refused(lambda: con.execute('CHECKPOINT'))",
    "begins": "refused(con.begin)",
    "commits": "refused(con.commit)",
    "looks around": "refused(con.tables); refused(lambda: con.unregister('r')); refused(lambda: con.in_transaction)",
    "duplicates": "refused(con.duplicate)",
    "forks again": """
        pid = os.fork()
        refused(lambda: con.execute('INSERT INTO t VALUES (100)'))
        if pid == 0: sys.exit(0)
        os.waitpid(pid, 0)""",
    "uses another": """
        other = entasis.connect(); other.execute('CREATE TABLE u AS SELECT i FROM range(300000) r(i)')
        assert other.execute('SELECT sum(i) FROM u').fetchone() == (44999850000,)
        assert entasis.sql('SELECT 42').fetchone() == (42,)""",
    "exports": """
        refused(lambda: con.execute(f"BACKUP TO '{path}.child'")); refused(lambda: con.execute(f"COPY t TO '{path}.csv'"))""",
}

#: What is different for databases in files.
CONNECTS = {
    "connects": "in_use(lambda: entasis.connect(path))",
    "attaches": "in_use(lambda: entasis.connect().execute(f\"ATTACH '{path}' AS d\"))",
    "reads": """
        mine = entasis.connect(path, read_only=True)
        assert mine.execute('SELECT count(*) FROM t').fetchone() == (5,); mine.close()""",
    "overwrites": """
        mine = entasis.connect(); mine.execute('CREATE TABLE v (a INTEGER)')
        for sql in (f"BACKUP TO '{path}' (OVERWRITE)", f"COPY v TO '{path}'", f"COPY v TO '{path}.wal'"):
            try: mine.execute(sql)
            except entasis.Error: pass
            else: raise AssertionError(sql)""",
}

KINDS = {
    "a file": "con = entasis.connect(path)",
    "memory": "con = entasis.connect()",
    "attached": "con = entasis.connect(); con.execute(f\"ATTACH '{path}' AS d; USE d\")",
    "several threads": "con = entasis.connect(path, threads=4)",
    "a transaction": "con = entasis.connect(path)",
}

PROGRAM = """
import gc, os, signal, sys, threading
import entasis
path, kind, busy, end = sys.argv[1:5]
def refused(work):
    try: work()
    except entasis.ProgrammingError as error:
        assert f"belongs to process {parent}" in str(error), error
    else: raise AssertionError("it is not refused")
def in_use(work):
    try: work()
    except entasis.OperationalError as error:
        assert f"is in use by process {parent}" in str(error), error
    else: raise AssertionError("it is not refused")
parent = os.getpid()
OPEN
con.execute("CREATE TABLE t (k INTEGER PRIMARY KEY)")
con.execute("CREATE TABLE big AS SELECT i, i % 7 AS j FROM range(200000) r(i)")
con.execute("INSERT INTO t SELECT i FROM range(5) r(i)")
cur = con.execute("SELECT k FROM t ORDER BY k")
if kind == "a transaction":
    con.begin(); con.execute("INSERT INTO t VALUES (50)")
threads, stop = [], threading.Event()
def work():
    own = con.duplicate()
    while not stop.is_set():
        own.execute("SELECT j, count(*), sum(i) FROM big GROUP BY j ORDER BY j").fetchall()
        own.execute("UPDATE big SET j = j + 1 WHERE i % 1000 = 3")
if busy == "busy":
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads: thread.start()
children = []
for _ in range(2):
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        CHILD
        sys.exit(0)
    children.append(pid)
ends = [os.waitpid(pid, 0)[1] for pid in children]
stop.set()
assert not any(ends), f"children have ended with {ends}"
for thread in threads: thread.join()
if kind == "a transaction": con.rollback()
con.execute("INSERT INTO t VALUES (5)")
assert [row[0] for row in con.execute("SELECT k FROM t ORDER BY k").fetchall()] == list(range(6))
if kind != "memory": assert os.path.exists(path + ".wal"), "the log is gone"
print("acknowledged", flush=True)
if end == "killed": os.kill(parent, signal.SIGKILL)
con.close()
"""


def run(program, *arguments):
    """Runs a program; its output. It may not hang."""
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, *arguments],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    return ended.returncode, ended.stdout, ended.stderr


def case(tmp_path, kind, child, busy, end):
    """One case."""
    path = str(tmp_path / "my.db")
    (tmp_path / "notes.txt").write_text("precious")
    body = textwrap.indent(textwrap.dedent({**CHILD, **CONNECTS}[child]), " " * 8).strip()
    program = PROGRAM.replace("OPEN", KINDS[kind]).replace("CHILD", body)
    code, out, err = run(program, path, kind, busy, end)
    what = f"{kind}, {child}, {busy}, {end}"
    assert "acknowledged" in out, f"{what}:\n{err}"
    assert code == (-9 if end == "killed" else 0), f"{what}:\n{err}"
    assert not any(text in err for text in ("panicked", "Traceback", "Exception ignored")), f"{what}:\n{err}"
    expected = {"notes.txt"}
    if kind != "memory":
        expected |= {"my.db"} | ({"my.db.wal"} if end == "killed" else set())
        assert set(os.listdir(tmp_path)) == expected, what
        con = entasis.connect(path)
        assert [row[0] for row in con.execute("SELECT k FROM t ORDER BY k").fetchall()] == list(range(6)), what
        assert con.execute("PRAGMA integrity_check").fetchone()[0] == "ok", what
        con.close()
    assert (tmp_path / "notes.txt").read_text() == "precious"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("child", CHILD)
def test_a_child_changes_nothing(tmp_path, kind, child):
    """A child of an idle parent, which is killed afterwards."""
    case(tmp_path, kind, child, "idle", "killed")


@pytest.mark.parametrize("child", ["exits", "closes", "writes", "forks again"])
def test_a_child_of_a_busy_parent(tmp_path, child):
    """A child of a parent whose threads hold locks at the moment of the fork, the allocator's among them: it may
    not rely on more than that what it has inherited is refused."""
    case(tmp_path, "several threads", child, "busy", "closed")


@pytest.mark.parametrize(("child", "end"), itertools.product(CONNECTS, ["killed", "closed"]))
def test_a_child_opens_the_file_as_any_process(tmp_path, child, end):
    """A child that opens the database anew, or writes over it."""
    case(tmp_path, "a file", child, "idle", end)


DAEMON = """
import os, sys, time
import entasis
path, ends = sys.argv[1:3]
con = entasis.connect(path)
con.execute("CREATE TABLE t (k INTEGER PRIMARY KEY)")
con.execute("INSERT INTO t VALUES (1)")
con.execute("SET synchronous = 'normal'; SET lock_timeout = '7s'")
read, write = os.pipe()
parent = os.getpid()
if os.fork():
    if ends == "closes":
        con.close(); os.write(write, b"x"); os.wait(); os._exit(0)
    if ends == "is killed": os._exit(9)
    sys.exit(0)
os.close(write)
os.read(read, 1)
while ends != "closes" and os.getppid() == parent: time.sleep(0.01)
con.execute("INSERT INTO t VALUES (2)")
assert con.execute("SELECT k FROM t ORDER BY k").fetchall() == [(1,), (2,)]
assert con.execute("SHOW lock_timeout").fetchone()[0].startswith("7"), "settings are kept"
print("acknowledged", flush=True)
os._exit(9)
"""


@pytest.mark.parametrize("ends", ["ends", "is killed", "closes"])
def test_a_daemon_takes_over(tmp_path, ends):
    """A program that opens a database and then goes on as a child of the process that did."""
    path = str(tmp_path / "my.db")
    _, out, err = run(DAEMON, path, ends)
    assert "acknowledged" in out, err
    con = entasis.connect(path)
    assert con.execute("SELECT k FROM t ORDER BY k").fetchall() == [(1,), (2,)]


ORPHANS = """
import os, signal, sys, time
import entasis
con = entasis.connect(sys.argv[1])
con.execute("CREATE TABLE t (k INTEGER PRIMARY KEY)"); con.execute("INSERT INTO t VALUES (1)")
for _ in range(3):
    if os.fork() == 0:
        os.close(1); os.close(2); signal.alarm(30); time.sleep(20); os._exit(0)
print("acknowledged", flush=True)
if sys.argv[2] == "reopens":
    con.close(); con = entasis.connect(sys.argv[1]); print(con.execute("SELECT k FROM t").fetchall(), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("then", ["is killed", "reopens"])
def test_children_that_live_on_do_not_hold_the_lock(tmp_path, then):
    """The lock ends with the parent, or when it closes the database, however long its children live."""
    path = str(tmp_path / "my.db")
    _, out, err = run(ORPHANS, path, then)
    assert "acknowledged" in out, err
    assert ("[(1,)]" in out) == (then == "reopens"), err
    assert entasis.connect(path).execute("SELECT k FROM t").fetchall() == [(1,)]


POOL = """
import multiprocessing, os, sys
import entasis
con = entasis.connect(sys.argv[1])
con.execute("CREATE TABLE t (k INTEGER PRIMARY KEY)"); con.execute("INSERT INTO t SELECT i FROM range(100) r(i)")
def work(number):
    own = entasis.connect(sys.argv[1], read_only=True)
    return own.execute("SELECT sum(k) FROM t WHERE k % 4 = ?", [number]).fetchone()[0]
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(4) as pool: print(sum(pool.map(work, range(4))), flush=True)
    con.execute("INSERT INTO t VALUES (100)"); print(con.execute("SELECT sum(k) FROM t").fetchone()[0], flush=True)
"""


def test_a_pool_reads_beside_its_parent(tmp_path):
    """What docs/python.md recommends."""
    script = tmp_path / "pool.py"
    script.write_text(POOL)
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", str(script), str(tmp_path / "my.db")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.stdout.split() == ["4950", "5050"], ended.stderr
