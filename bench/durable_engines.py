"""Databases in files for `durable.py`: Entasis, DuckDB and SQLite, each in a process of its own.

The process reads JSON commands, one per line: the name of one of the functions below, and its arguments. It
opens no file before a command says so, so that opening can be timed without the start of Python.
"""

import json
import os
import random
import subprocess
import sys
import threading
import time

from engines import ROOT, open_answers, peak_bytes

#: The setting of Entasis, and of DuckDB, for the size of the log that triggers an automatic checkpoint.
AUTOCHECKPOINT = "wal_autocheckpoint"
#: A statement whose error contains one of these texts is retried: another writer was first.
AGAIN = ["conflict", "locked", "busy"]

TABLE = "CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT, s VARCHAR)"
INSERT = "INSERT INTO t VALUES (?, ?, ?)"
UPDATE = "UPDATE t SET v = ? WHERE k = ?"
# Of a bijection on the numbers below 2^31: the values of the indexed column are in random order.
SCRAMBLE, SCRAMBLED = 1_103_515_245, 1 << 31


class Entasis:
    """`synchronous` applies to all connections of the database."""

    levels = {"full": "full", "normal": "normal", "off": "off"}
    numbers = "range({rows}) r(i)"
    checkpoint = "CHECKPOINT"
    # The fastest way of the engine to insert a batch.
    batch_in_values = False

    def __init__(self):
        import entasis

        self.module, self.version = entasis, entasis.__version__

    def open(self, path, threads):
        self.main = self.module.connect(path, threads=threads)

    def connection(self):
        return self.main.duplicate()

    def synchronous(self, level):
        self.main.execute(f"SET synchronous = '{self.levels[level]}'")

    def keep_log(self):
        self.main.execute(f"SET {AUTOCHECKPOINT} = '10GB'")

    def run(self, sql, connection=None):
        """The rows of a statement; None if it returns none."""
        cursor = (connection or self.main).execute(sql)
        return cursor.fetchall() if cursor.description else None

    def make_checkpoint(self, connection=None):
        self.run(self.checkpoint, connection)

    def close(self):
        self.main.close()
        self.main = None

    def log(self, path):
        """The possible path of the log."""
        return [path + ".wal", os.path.splitext(path)[0] + ".wal"]


class DuckDB(Entasis):
    """Its commits are always synced."""

    levels = {"full": None}
    batch_in_values = True

    def __init__(self):
        import duckdb

        self.module, self.version = duckdb, duckdb.__version__

    def open(self, path, threads):
        self.main = self.module.connect(path, config={"threads": threads})

    def connection(self):
        return self.main.cursor()

    def synchronous(self, level):
        self.levels[level]


class SQLite(Entasis):
    """Each thread has a connection, which waits for the others' locks."""

    numbers = "(WITH RECURSIVE r(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM r WHERE i < {rows} - 1) SELECT i FROM r)"
    # The automatic kind: as far as readers allow, while writers go on.
    checkpoint = "PRAGMA wal_checkpoint(PASSIVE)"

    def __init__(self):
        import sqlite3

        self.module, self.version = sqlite3, sqlite3.sqlite_version
        self.level, self.pages = "FULL", 1000

    def open(self, path, threads):
        self.path = path
        self.main = self.connection()

    def connection(self):
        made = self.module.connect(
            self.path, isolation_level=None, timeout=60, cached_statements=256, check_same_thread=False
        )
        made.execute("PRAGMA journal_mode = WAL").fetchall()
        made.execute(f"PRAGMA synchronous = {self.level}")
        made.execute(f"PRAGMA wal_autocheckpoint = {self.pages}").fetchall()
        return made

    def synchronous(self, level):
        self.level = level.upper()
        self.main.execute(f"PRAGMA synchronous = {self.level}")

    def keep_log(self):
        self.pages = 0
        self.main.execute("PRAGMA wal_autocheckpoint = 0").fetchall()

    def log(self, path):
        return [path + "-wal"]


ENGINES = {"entasis": Entasis, "memory": Entasis, "duckdb": DuckDB, "sqlite": SQLite}


# ---- commands of the process ------------------------------------------------------------------------------


def load(engine, rows):
    """Loads the table of single rows. Returns seconds."""
    start = time.perf_counter()
    engine.main.execute(TABLE)
    numbers = engine.numbers.format(rows=rows)
    engine.main.execute(f"INSERT INTO t SELECT i, i * 7919 % 1000003, 'row number ' || i FROM {numbers}")
    engine.make_checkpoint()
    engine.next_key = rows
    return time.perf_counter() - start


def again(error):
    """True if a statement that failed with this error is retried."""
    text = str(error).lower()
    return any(word in text for word in AGAIN)


def commits(engine, kind, threads, seconds, rows):
    """Statements on single rows, each a transaction, from several threads: their number and the time."""
    counts, retries, errors = [0] * threads, [0] * threads, []
    barrier = threading.Barrier(threads + 1)
    first = engine.next_key

    def parameters(number):
        dice = random.Random(number)
        if kind == "insert":
            key = first + number
            while True:
                yield key, key * 31, "a new row"
                key += threads
        while True:  # Rows that only this thread writes.
            yield dice.randrange(1 << 40), dice.randrange(rows // threads) * threads + number

    def write(number):
        connection = engine.connection()
        sql = INSERT if kind == "insert" else UPDATE
        barrier.wait()
        end = time.perf_counter() + seconds
        for values in parameters(number):
            while True:
                try:
                    connection.execute(sql, values)
                    break
                except Exception as error:
                    if not again(error):
                        errors.append(f"{type(error).__name__}: {error}")
                        return
                    retries[number] += 1
            if time.perf_counter() > end:  # A statement that waited for a lock beyond the end does not count.
                break
            counts[number] += 1
        connection.close()

    workers = [threading.Thread(target=write, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    barrier.wait()
    for worker in workers:
        worker.join()
    if errors:
        raise RuntimeError(errors[0])
    # Threads insert different numbers of rows.
    engine.next_key += threads * (max(counts) + 2)
    return {"per_second": sum(counts) / seconds, "retries": sum(retries)}


def batches(engine, rows, size, budget):
    """Rows in transactions of `size`, into a table with a unique index: seconds by tenth, until the budget is spent."""
    engine.main.execute("CREATE TABLE b (k BIGINT PRIMARY KEY, u BIGINT, v INTEGER, s VARCHAR)")
    engine.main.execute("CREATE UNIQUE INDEX by_u ON b (u)")
    connection = engine.connection()
    one = "(?, ?, ?, ?)"
    many = "INSERT INTO b VALUES " + ", ".join([one] * size)
    row = lambda i: (i, i * SCRAMBLE % SCRAMBLED, i % 1000, f"text {i * 7919 % 100_003}")
    tenths, begin = [], time.perf_counter()
    for tenth in range(10):
        start = time.perf_counter()
        for low in range(rows * tenth // 10, rows * (tenth + 1) // 10, size):
            sets = [row(i) for i in range(low, low + size)]
            if engine.batch_in_values:
                connection.execute(many, [value for values in sets for value in values])
            elif isinstance(engine, SQLite):
                connection.execute("BEGIN")
                connection.executemany(f"INSERT INTO b VALUES {one}", sets)
                connection.execute("COMMIT")
            else:  # All or nothing: the batch is one transaction.
                connection.executemany(f"INSERT INTO b VALUES {one}", sets)
        tenths.append(time.perf_counter() - start)
        if time.perf_counter() - begin > budget:
            break
    connection.close()
    return tenths


def tpch(engine, tables):
    """Loads Parquet files as tables, makes a checkpoint and closes. Returns seconds and peak memory."""
    start = time.perf_counter()
    for table, path in tables.items():
        engine.main.execute(f"CREATE TABLE {table} AS SELECT * FROM '{path}'")
    loaded = time.perf_counter() - start
    engine.make_checkpoint()
    engine.close()
    return {"load": loaded, "seconds": time.perf_counter() - start, "peak": peak_bytes(os.getpid())}


def wide(engine, gigabytes):
    """Creates a table of several gigabytes with eight columns of random 63-bit numbers."""
    columns = ", ".join(f"c{j} BIGINT" for j in range(8))
    engine.main.execute(f"CREATE TABLE wide (k BIGINT, {columns})")
    rows, part = int(gigabytes * 1e9 / 64), 4_000_000
    for low in range(0, rows, part):
        count = min(part, rows - low)
        values = ", ".join(["CAST(floor(random() * 9007199254740992) AS BIGINT) * 1000 + 7"] * 8)
        engine.main.execute(f"INSERT INTO wide SELECT {low} + i, {values} FROM {engine.numbers.format(rows=count)}")
    engine.make_checkpoint()
    engine.close()
    return rows


def disk_bytes():
    """Bytes that this process has read: by system calls, and from the disk."""
    with open("/proc/self/io") as file:
        figures = dict(line.strip().split(": ") for line in file)
    return int(figures["rchar"]), int(figures["read_bytes"])


def opening(engine, path, threads, query, cold):
    """Opens a file and runs a query twice: milliseconds of each, bytes read, memory."""
    if cold:
        forget(path)
    before, start = disk_bytes(), time.perf_counter()
    engine.open(path, threads)
    opened, read = time.perf_counter(), disk_bytes()
    rows = engine.main.execute(query).fetchall()
    first = time.perf_counter()
    engine.main.execute(query).fetchall()
    second, after = time.perf_counter(), disk_bytes()
    return {
        "open_ms": (opened - start) * 1000,
        "first_ms": (first - opened) * 1000,
        "again_ms": (second - first) * 1000,
        "open_read": read[0] - before[0],
        "read": after[0] - before[0],
        "disk_read": after[1] - before[1],
        "peak": peak_bytes(os.getpid()),
        "answer": str(rows[0][0]),
    }


def forget(path):
    """Takes a file out of the page cache."""
    with open(path, "rb") as file:
        os.fdatasync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def statements(engine, all):
    for sql in all:
        engine.run(sql)


def cold_query(engine, path, threads, sql):
    """Opens a file that is not in the page cache, and runs a query: milliseconds."""
    forget(path)
    start = time.perf_counter()
    engine.open(path, threads)
    opened = time.perf_counter()
    engine.main.execute(sql).fetchall()
    return {"open_ms": (opened - start) * 1000, "all_ms": (time.perf_counter() - start) * 1000}


def cold_changes(engine, path, threads, all):
    """The same with statements that change rows, followed by a checkpoint."""
    forget(path)
    start = time.perf_counter()
    engine.open(path, threads)
    opened = time.perf_counter()
    statements(engine, all)
    engine.make_checkpoint()
    took = {"open_ms": (opened - start) * 1000, "all_ms": (time.perf_counter() - start) * 1000}
    engine.close()
    return took


def latency(engine, seconds, rows, checkpoints):
    """Keyed updates from one thread, with or without continuous checkpoints: microseconds."""
    stop, done, refused = threading.Event(), [], []

    def loop():
        connection = engine.connection()
        while not stop.is_set():
            start = time.perf_counter()
            try:
                engine.make_checkpoint(connection)
                done.append(time.perf_counter() - start)
            except Exception as error:  # DuckDB makes none during a write transaction.
                refused.append(str(error))
                time.sleep(0.001)

    thread = threading.Thread(target=loop)
    connection, dice, times = engine.connection(), random.Random(7), []
    if checkpoints:
        thread.start()
    try:
        end = time.perf_counter() + seconds
        while (start := time.perf_counter()) < end:
            values = (dice.randrange(1 << 40), dice.randrange(rows))
            start = time.perf_counter_ns()
            while True:
                try:
                    connection.execute(UPDATE, values)
                    break
                except Exception as error:
                    if not again(error):
                        raise
            times.append((time.perf_counter_ns() - start) / 1000)
    finally:
        stop.set()
        if checkpoints:
            thread.join()
    times.sort()
    at = lambda share: times[min(len(times) - 1, int(share * len(times)))]
    return {
        "p50": at(0.5),
        "p99": at(0.99),
        "p99.9": at(0.999),
        "most": times[-1],
        "writes": len(times),
        "checkpoints": len(done),
        "checkpoint_ms": sum(done) / max(len(done), 1) * 1000,
        "refused": len(refused),
    }


def log_bytes(engine, path):
    return max((os.path.getsize(log) for log in engine.log(path) if os.path.exists(log)), default=None)


def fill_log(engine, path, wanted, budget):
    """Transactions of a hundred inserts or updates until the log has this many bytes, or the time is over.

    The last transaction is synced, and so are all before it.
    """
    engine.keep_log()
    engine.synchronous("off" if "off" in engine.levels else "full")
    engine.main.execute(TABLE)
    connection, dice, rows, transactions = engine.connection(), random.Random(5), 0, 0
    begin = time.perf_counter()
    many = "INSERT INTO t VALUES " + ", ".join(["(?, ?, ?)"] * 100)
    text = "sixty characters or so of text, which the log has to hold "
    while True:
        sets = [(rows + i, dice.randrange(1 << 40), f"{text}{rows + i}") for i in range(100)]
        connection.execute("BEGIN")
        if engine.batch_in_values:
            connection.execute(many, [value for values in sets for value in values])
        else:
            connection.executemany(INSERT, sets)
        connection.execute("COMMIT")
        rows += 100
        connection.execute("BEGIN")
        connection.executemany(UPDATE, [(-1, dice.randrange(rows)) for _ in range(100)])
        connection.execute("COMMIT")
        transactions += 2
        if transactions % 100 == 0:
            now = log_bytes(engine, path)
            if now is None or now >= wanted or time.perf_counter() - begin > budget:
                break
    engine.synchronous("full")
    connection = engine.connection()
    connection.execute(INSERT, (rows, 0, "the last one"))
    return {
        "rows": rows + 1,
        "updated": engine.run("SELECT count(*) FROM t WHERE v = -1")[0][0],
        "transactions": transactions + 1,
        "log_bytes": log_bytes(engine, path),
        "seconds": time.perf_counter() - begin,
    }


COMMANDS = [load, commits, batches, tpch, wide, opening, latency, fill_log, statements, cold_query, cold_changes]


def serve(name):
    answers = open_answers()
    engine = ENGINES[name]()
    # After a statement, a thread waits for the interpreter as long as another may hold it, 5 ms by default.
    sys.setswitchinterval(1e-4)
    print(json.dumps(engine.version), file=answers, flush=True)
    commands = {command.__name__: command for command in COMMANDS}
    for line in sys.stdin:
        do, *arguments = json.loads(line)
        try:
            if do in ["open", "synchronous", "make_checkpoint"]:
                answer = getattr(engine, do)(*arguments)
            elif do == "value":
                answer = engine.run(arguments[0])[0][0]
            elif do == "peak":
                answer = peak_bytes(os.getpid())
            else:
                answer = commands[do](engine, *arguments)
        except Exception as error:  # only this figure is lost, not the run
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


class Failed(Exception):
    """An engine failed to run a command."""


class Worker:
    """The process of an engine, with a database of its own in `path`."""

    def __init__(self, name, path, threads, opens=True):
        self.name, self.path, self.threads = name, ":memory:" if name == "memory" else str(path), threads
        command = [sys.executable, __file__, name]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        self.version = json.loads(self.process.stdout.readline())
        if opens:
            self.ask("open", self.path, threads)

    def ask(self, *command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        answer = json.loads(line) if line else {"error": "the process ended"}
        if isinstance(answer, dict) and "error" in answer:
            raise Failed(f"{self.name}, {command[0]}: {answer['error']}")
        return answer

    def levels(self):
        return ENGINES[self.name].levels

    def end(self):
        """Ends the process properly."""
        self.process.stdin.close()
        self.process.wait()

    def kill(self):
        """Kills the process, as in a crash."""
        self.process.kill()
        self.process.wait()

    def files(self):
        """Bytes of the database: its file, and its log."""
        logs = [log for log in ENGINES[self.name].log(None, self.path) if os.path.exists(log)]
        return os.path.getsize(self.path), sum(map(os.path.getsize, set(logs)))

    def remove(self):
        """Ends the process, if it is running, and removes its database."""
        if self.process.poll() is None:
            self.end()
        stem = os.path.basename(os.path.splitext(self.path)[0])
        directory = os.path.dirname(self.path)
        for name in os.listdir(directory) if directory else []:
            if name.split(".")[0] == stem:
                os.remove(os.path.join(directory, name))


if __name__ == "__main__":
    serve(sys.argv[1])
