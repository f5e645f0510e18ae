"""Kills a process that writes to a database file, again and again, and checks what is there afterwards.

    make kill N=200                  200 kills
    make kill N=20 SEED=7 SYNCHRONOUS=off
    make kill N=20 LARGE_GB=2        with a table of 2 GB that is changed, too

Each round: a process opens the file and writes from four threads as fast as it can, each with a connection of
its own. After each acknowledged commit, the thread sends its number through a pipe. At a random moment, which
may be while the file is being opened, the process gets SIGKILL. Then this program opens the file and checks:

- everything acknowledged is there (`synchronous` = full);
- nothing else is, except at most one transaction of each thread, which was in progress, and is there as a
  whole;
- indexes agree with the tables; `PRAGMA integrity_check` reports ok, if there is such a statement.

Such exact checks are possible because a thread's transactions are numbered, and the statements of number *n*
of a thread are a function of both (`plan`). The state after a thread's first *m* transactions is computed
separately (`Model`); *m* itself is read from the tables, as each transaction leaves its number in one. With
`synchronous` = normal or off, *m* may be less than what was acknowledged, but the state must be that after
*m* transactions all the same.

| n | transaction |
|---|---|
| most | a row into a table with key and index, by itself; an update by key; several rows by one statement |
| one in 5 | BEGIN, rows into three tables, an update of one, deletion of old rows, COMMIT |
| one in 40 | DDL with rows: tables, columns, indexes, views created, renamed, dropped |
| one in 100 | a few thousand rows at once, replacing the previous ones |
| one in 250 | a CHECKPOINT after it |

With `--large-gb` there is also a large table, which a fifth thread changes: it moves amounts between two
columns of a few thousand neighbouring rows at a time, so that each row's sum is constant. Checkpoints are
automatic.

If a check fails, the differences are printed, the file is kept, and the exit code is 1. The same seed gives
the same transactions and the same delays, but not the same interleaving.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

WRITERS = 4
#: Rows with numbers this far back are deleted.
KEPT = 300
#: Approximate bytes of a row of the large table in the file, and the sum of its amounts.
LARGE_ROW, LARGE_SUM = 69, 1_000_000
#: Numbers of its rows that one statement inserts, and changes.
LARGE_FILL, LARGE_MOVED = 1_000_000, 5_000
LARGE = "CREATE TABLE large (k BIGINT PRIMARY KEY, a BIGINT, b BIGINT, s VARCHAR)"
FILL = f"""INSERT INTO large SELECT i, i % 1000, {LARGE_SUM} - i % 1000, md5(i::VARCHAR) || md5((-i)::VARCHAR)
    FROM range(?, ?) r(i)"""
MOVE = "UPDATE large SET a = a + ?, b = b - ? WHERE k >= ? AND k < ?"

SETUP = [
    "CREATE TABLE one (k BIGINT PRIMARY KEY, writer INTEGER NOT NULL, n BIGINT NOT NULL, v VARCHAR)",
    "CREATE INDEX one_by_v ON one (v)",
    "CREATE TABLE linked (k BIGINT PRIMARY KEY, writer INTEGER, n BIGINT, u BIGINT UNIQUE)",
    "CREATE TABLE parts (writer INTEGER, n BIGINT, part INTEGER, size INTEGER)",
    "CREATE TABLE counter (writer INTEGER PRIMARY KEY, n BIGINT, total DECIMAL(30, 0))",
    "CREATE TABLE bulk (writer INTEGER, n BIGINT, i BIGINT, s VARCHAR)",
    f"INSERT INTO counter VALUES {', '.join(f'({w}, 0, 0)' for w in range(WRITERS))}",
]


# ---- what a transaction does --------------------------------------------------------------------------------


def key(writer, n):
    return n * WRITERS + writer


def text(writer, n):
    return f"value {n % 97} of {writer}"


def unique(writer, n):
    """Unique numbers: multiplication by an odd number, modulo a power of two."""
    return key(writer, n) * 1_103_515_245 % (1 << 40)


def size(n):
    """The number of rows of a statement with several."""
    return 2 + n % 7


def loaded(n):
    """The number of rows of a bulk load: now and then several row groups."""
    return 150_000 if n % 1000 == 550 else 3000


def kind(n):
    if n % 40 == 39:
        return "ddl"
    if n % 100 == 50:
        return "bulk"
    return ["insert", "insert", "update", "several", "tables"][n % 5]


def plan(w, n):
    """The statements of transaction `n` of a writer: one by itself, or several between BEGIN and COMMIT."""
    count = ("UPDATE counter SET n = ?, total = total + ? WHERE writer = ?", (n, n, w))
    insert = ("INSERT INTO one VALUES (?, ?, ?, ?)", (key(w, n), w, n, text(w, n)))
    rows = ", ".join(f"({w}, {n}, {part}, {size(n)})" for part in range(size(n)))
    several = (f"INSERT INTO parts VALUES {rows}", None)
    match kind(n):
        case "insert":
            return [insert]
        case "update":
            return [count]
        case "several":
            return [several]
        case "tables":
            old = [(f"DELETE FROM {table} WHERE writer = ? AND n < ?", (w, n - KEPT)) for table in ["one", "linked", "parts"]]
            linked = ("INSERT INTO linked VALUES (?, ?, ?, ?)", (key(w, n), w, n, unique(w, n)))
            change = ("UPDATE one SET v = ? WHERE k = ?", (f"changed by {n}", key(w, n - 4)))
            return [insert, linked, several, change, *old, count]
        case "bulk":
            load = f"INSERT INTO bulk SELECT {w}, {n}, i, 'row ' || i FROM range({loaded(n)}) r(i)"
            return [("DELETE FROM bulk WHERE writer = ?", (w,)), (load, None), count]
        case "ddl":
            return [(sql, None) for sql in ddl(w, n)] + [count]


def ddl(w, n):
    """The life of a table: created, widened, indexed, filled, emptied, used by a view, renamed, dropped."""
    match n // 40 % 8:
        case 0:
            rows = ", ".join(f"({a}, 'b {a}')" for a in range(n, n + 3))
            return [f"CREATE TABLE d{w} (a BIGINT PRIMARY KEY, b VARCHAR)", f"INSERT INTO d{w} VALUES {rows}"]
        case 1:
            return [f"ALTER TABLE d{w} ADD COLUMN c BIGINT DEFAULT {n}"]
        case 2:
            return [f"CREATE INDEX i{w} ON d{w} (b)"]
        case 3:
            return [f"INSERT INTO d{w} VALUES " + ", ".join(f"({a}, 'b {a}', {n})" for a in range(n, n + 5))]
        case 4:
            return [f"DROP INDEX i{w}", f"DELETE FROM d{w} WHERE a < {n - 100}"]
        case 5:
            return [f"CREATE VIEW v{w} AS SELECT sum(a) AS total FROM d{w}"]
        case 6:
            return [f"DROP VIEW v{w}", f"ALTER TABLE d{w} RENAME TO e{w}"]
        case 7:
            return [f"DROP TABLE e{w}"]


class Model:
    """The expected data of a writer after its first transactions: `plan` on dictionaries, not tables."""

    def __init__(self, writer):
        self.writer, self.n = writer, 0
        self.one, self.linked, self.parts = {}, {}, []
        self.counter, self.bulk = (0, 0), (None, 0)
        #: The name of the table that DDL changes, and its rows.
        self.made, self.view = None, False

    def advance(self, to):
        while self.n < to:
            self.n += 1
            self.apply(self.n)

    def apply(self, n):
        w, what = self.writer, kind(n)
        if what in ["insert", "tables"]:
            self.one[key(w, n)] = (key(w, n), w, n, text(w, n))
        if what in ["several", "tables"]:
            self.parts += [(w, n, part, size(n)) for part in range(size(n))]
        if what in ["update", "tables", "bulk", "ddl"]:
            self.counter = (n, self.counter[1] + n)
        if what == "tables":
            self.linked[key(w, n)] = (key(w, n), w, n, unique(w, n))
            if changed := self.one.get(key(w, n - 4)):
                self.one[changed[0]] = (*changed[:3], f"changed by {n}")
            keep = lambda rows: {k: row for k, row in rows.items() if row[2] >= n - KEPT}
            self.one, self.linked = keep(self.one), keep(self.linked)
            self.parts = [row for row in self.parts if row[1] >= n - KEPT]
        if what == "bulk":
            self.bulk = (n, loaded(n))
        if what == "ddl":
            self.apply_ddl(n)

    def apply_ddl(self, n):
        w = self.writer
        match n // 40 % 8:
            case 0:
                self.made = (f"d{w}", [(a, f"b {a}") for a in range(n, n + 3)])
            # The first DDL of a writer is step 0, so the table exists in all others.
            case 1:
                self.made = (f"d{w}", [(*row, n) for row in self.made[1]])
            case 3:
                self.made[1].extend((a, f"b {a}", n) for a in range(n, n + 5))
            case 4:
                self.made = (f"d{w}", [row for row in self.made[1] if row[0] >= n - 100])
            case 5:
                self.view = True
            case 6:
                self.made, self.view = (f"e{w}", self.made[1]), False
            case 7:
                self.made = None


# ---- the process that is killed -----------------------------------------------------------------------------


def write(path, synchronous, done):
    """Continues each writer until the process is killed. Prints commits on stdout."""
    import entasis

    database = entasis.connect(path)
    if synchronous != "full":
        database.execute(f"SET synchronous = '{synchronous}'")
    connections = [database.duplicate() for _ in range(WRITERS)]
    os.write(1, b"ready\n")

    def run(writer, connection):
        n = done[writer]
        while True:
            n += 1
            statements = plan(writer, n)
            while not attempt(entasis, connection, statements):
                pass
            os.write(1, f"{writer} {n}\n".encode())
            if n % 250 == 20:
                connection.execute("CHECKPOINT")

    def watched(run, writer, connection):
        try:
            run(writer, connection)
        except BaseException as error:
            os.write(1, f"failed: writer {writer}: {type(error).__name__}: {error}\n".encode())

    def move(writer, connection):
        rows = connection.execute("SELECT count(*) FROM large").fetchone()[0]
        dice = random.Random()
        while True:
            amount, first = dice.randrange(1000), dice.randrange(rows)
            connection.execute(MOVE, (amount, amount, first, first + LARGE_MOVED))

    for number, connection in enumerate(connections):
        threading.Thread(target=watched, args=(run, number, connection)).start()
    if "large" in database.tables():
        threading.Thread(target=watched, args=(move, WRITERS, database.duplicate())).start()


def attempt(entasis, connection, statements):
    """Runs a transaction. False if it had a conflict, which DDL may cause."""
    try:
        if len(statements) > 1:
            connection.execute("BEGIN")
        for sql, parameters in statements:
            connection.execute(sql, parameters)
        if len(statements) > 1:
            connection.execute("COMMIT")
        return True
    except entasis.ConflictError:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        return False


# ---- killing and checking ---------------------------------------------------------------------------------


class Listener(threading.Thread):
    """Collects the output of the process, until its end."""

    def __init__(self, pipe):
        super().__init__()
        self.pipe, self.acknowledged, self.failures = pipe, {}, []
        self.is_ready = threading.Event()

    def run(self):
        for line in self.pipe:
            if line == "ready\n":
                self.is_ready.set()
            elif line.startswith("failed") or not line.endswith("\n"):
                # A line without an end: the process was killed while writing it, so it does not count.
                self.failures += [line.strip()] if line.startswith("failed") else []
            else:
                writer, n = map(int, line.split())
                self.acknowledged[writer] = n
        self.is_ready.set()


def strike(path, args, models, dice):
    """Starts the process, kills it, and returns its output."""
    done = ",".join(str(model.n) for model in models)
    command = [sys.executable, __file__, "write", str(path), args.synchronous, done]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    listener = Listener(process.stdout)
    listener.start()
    if dice.random() < 0.1:  # Possibly while it opens the file.
        time.sleep(dice.uniform(0, 0.4))
    else:
        listener.is_ready.wait()
        time.sleep(dice.uniform(0, args.longest))
    process.kill()
    process.wait()
    listener.join()
    return listener


def query(connection, sql, parameters=None):
    return connection.execute(sql, parameters).fetchall()


def compare(what, found, expected):
    """An error message, if rows differ from the expected ones, in any order."""
    found, expected = sorted(found), sorted(expected)
    if found == expected:
        return []
    lost, more = sorted(set(expected) - set(found)), sorted(set(found) - set(expected))
    return [f"{what}: {len(found)} rows for {len(expected)}; lost {lost[:5]}, there without a reason {more[:5]}"]


def check(connection, models, acknowledged, is_full):
    """Compares the database with the models, which are advanced to the same state. Returns error messages,
    and the number of transactions in progress that were committed."""
    problems, in_doubt = [], 0
    last = {w: 0 for w in range(WRITERS)}
    for table in ["counter", "one", "parts"]:
        for w, n in query(connection, f"SELECT writer, max(n) FROM {table} GROUP BY writer"):
            last[w] = max(last[w], n)
    for model in models:
        w, before = model.writer, model.n
        said = acknowledged.get(w, before)
        if last[w] < (said if is_full else before):
            problems.append(f"writer {w}: transaction {said} was acknowledged, and the last one there is {last[w]}")
        if last[w] > said + 1:
            problems.append(f"writer {w}: {last[w]} is there, and {said} was the last one acknowledged")
        in_doubt += last[w] == said + 1
        model.advance(last[w])
    merged = lambda get: [row for model in models for row in get(model)]
    for table, get in [
        ("one", lambda model: model.one.values()),
        ("linked", lambda model: model.linked.values()),
        ("parts", lambda model: model.parts),
        ("counter", lambda model: [(model.writer, *model.counter)]),
    ]:
        problems += compare(table, query(connection, f"SELECT * FROM {table}"), merged(get))
    bulk = [(m.writer, n, count, count * (count - 1) // 2) for m in models for n, count in [m.bulk] if count]
    found = query(connection, "SELECT writer, n, count(*), CAST(sum(i) AS BIGINT) FROM bulk GROUP BY writer, n")
    problems += compare("bulk", found, bulk)
    for model in models:
        problems += check_objects(connection, model)
        problems += check_indexes(connection, model)
    return problems, in_doubt


def check_indexes(connection, model):
    """Looks up some rows by the indexes of their tables."""
    problems, rows = [], list(model.one.values())
    for row in rows[:: max(1, len(rows) // 20)]:
        alike = [other for other in rows if other[3] == row[3]]
        found = query(connection, "SELECT * FROM one WHERE v = ? AND writer = ?", (row[3], model.writer))
        problems += compare(f"one by v = {row[3]!r}", found, alike)
    for row in list(model.linked.values())[-20:]:
        problems += compare("linked by u", query(connection, "SELECT * FROM linked WHERE u = ?", (row[3],)), [row])
    return problems


def ask_for_integrity(connection):
    """The violations found by `PRAGMA integrity_check`; None if there is no such statement."""
    import entasis

    try:
        said = [str(row[0]) for row in query(connection, "PRAGMA integrity_check")]
    except (entasis.ProgrammingError, entasis.NotSupportedError):
        return None
    return [] if said == ["ok"] else [f"integrity_check: {said[:5]}"]


def check_large(connection, rows):
    """Checks that each row of the large table is there, with its text and the sum of its amounts."""
    expected = [(rows, 0, rows - 1, rows * LARGE_SUM, 0)]
    wrong = f"a + b <> {LARGE_SUM} OR s <> md5(k::VARCHAR) || md5((-k)::VARCHAR)"
    found = query(
        connection,
        f"SELECT count(*), min(k), max(k), sum(a + b)::BIGINT, count(*) FILTER (WHERE {wrong}) FROM large",
    )
    return [] if found == expected else [f"large: {found} for {expected}"]


def check_objects(connection, model):
    """Checks the table that a writer's DDL changes, and its view."""
    w, problems = model.writer, []
    tables, made = set(connection.tables()), model.made[0] if model.made else None
    for name, is_expected in [(f"d{w}", made == f"d{w}"), (f"e{w}", made == f"e{w}"), (f"v{w}", model.view)]:
        if (name in tables) != is_expected:
            problems.append(f"{name} is {'not ' if is_expected else ''}there")
    if not problems and made:
        problems += compare(made, query(connection, f"SELECT * FROM {made}"), model.made[1])
    if not problems and model.view:
        problems += compare(f"v{w}", query(connection, f"SELECT * FROM v{w}"), [(sum(row[0] for row in model.made[1]),)])
    return problems


def main(command=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=36)
    parser.add_argument("--longest", type=float, default=1.5, help="seconds that a process lives at most, once it is open")
    parser.add_argument("--synchronous", choices=["full", "normal", "off"], default="full")
    parser.add_argument("--large-gb", type=float, default=0, help="of a large table beside the others")
    parser.add_argument("--dir", type=Path, help="where the database is made; a temporary directory by default")
    args = parser.parse_args(command)
    import entasis

    directory = Path(tempfile.mkdtemp(prefix="entasis-kill-", dir=args.dir))
    path, dice = directory / "killed.db", random.Random(args.seed)
    with entasis.connect(path) as connection:
        for sql in SETUP:
            connection.execute(sql)
        large_rows = int(args.large_gb * 1e9) // LARGE_ROW
        if large_rows:
            connection.execute(LARGE)
            for first in range(0, large_rows, LARGE_FILL):
                connection.execute(FILL, (first, min(first + LARGE_FILL, large_rows)))
    del connection
    if large_rows:
        print(f"{large_rows:,} rows beside, a file of {os.path.getsize(path) / 1e9:.2f} GB", flush=True)
    models, has_integrity_check = [Model(writer) for writer in range(WRITERS)], True
    totals, start = {"acknowledged": 0, "in doubt": 0, "while opening": 0, "opening": 0.0}, time.perf_counter()
    for number in range(1, args.kills + 1):
        before = [model.n for model in models]
        listener = strike(path, args, models, dice)
        opening = time.perf_counter()
        problems, in_doubt = listener.failures, 0
        if not problems:
            with entasis.connect(path) as connection:
                problems, in_doubt = check(connection, models, listener.acknowledged, args.synchronous == "full")
                problems += check_large(connection, large_rows) if large_rows else []
                complaints = ask_for_integrity(connection) if has_integrity_check else None
            del connection
            has_integrity_check = complaints is not None
            problems += complaints or []
        totals["opening"] = max(totals["opening"], time.perf_counter() - opening)
        if problems:
            print(f"\nkill {number}, seed {args.seed}: the file is {path}")
            for problem in problems[:20]:
                print(f"  {problem}")
            return 1
        totals["acknowledged"] += sum(n - before[w] for w, n in listener.acknowledged.items())
        totals["in doubt"] += in_doubt
        totals["while opening"] += not listener.acknowledged
        if number % 10 == 0 or number == args.kills:
            print(
                f"{number:5} kills, {totals['while opening']} before a commit; {totals['acknowledged']:,} transactions"
                f" acknowledged, {totals['in doubt']} more came to be; file of {os.path.getsize(path) / 1e6:.1f} MB;"
                f" open and check {totals['opening']:.1f} s at most; {time.perf_counter() - start:.0f} s",
                flush=True,
            )
    print("all of it there, and nothing in half;", end=" ")
    print("integrity_check says ok" if has_integrity_check else "there is no integrity_check to ask")
    shutil.rmtree(directory)
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["write"]:
        write(sys.argv[2], sys.argv[3], [int(n) for n in sys.argv[4].split(",")])
    else:
        sys.exit(main())
