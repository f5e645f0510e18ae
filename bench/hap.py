"""Single rows and scans: the HAP table of "Optimal Column Layout for Hybrid Workloads", section 7.

    make bench-hap                  10 M rows, keys in ascending order
    make bench-hap ROWS=1000000 ORDER=random
    make bench-flat                 Entasis alone: single rows with ten times the rows, or in random order
    make bench-hap-file             the table in a file, compared with memory

A table of an 8-byte key and 16 four-byte columns, in memory, one thread, each statement a transaction by
itself, with parameters; bulk statements with two threads. Entasis, DuckDB and SQLite take turns, each in a
process of its own; the measured time is what a Python program waits for: execute and fetch. The median of
each operation is printed in microseconds, and kept under bench/record/ with that of each round, since a
machine has faster and slower minutes; the fastest round is printed as well.

The flat benchmark has a process for each table (1 M and 10 M rows in ascending order, 10 M in random order),
and in each round all take turns, operation by operation; the figure is the ratio within a round. The first
half of an operation's runs warms the caches, which other processes have used before, and the second half is
measured.

The engine `file` is Entasis with the table in a file under `--dir` and `synchronous` off: statements work
as in memory, and the log is written in the background. The ratio to memory is the median of the rounds'
ratios. The file is removed afterwards.

With Entasis alone the same operations run from Rust, and once more while another thread scans the table
continuously ("beside scans"); then the bulk statements follow, with the memory that remains in use.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from engines import ROOT, keep, open_answers, peak_bytes

COLUMNS = [f"a{i}" for i in range(16)]
POINT = "SELECT a0, a1, a2, a3 FROM hap WHERE k = ?"
COUNT = "SELECT count(*) FROM hap WHERE k BETWEEN ? AND ?"
SUM = "SELECT sum(a0), sum(a1), sum(a2), sum(a3) FROM hap WHERE k BETWEEN ? AND ?"
INSERT = f"INSERT INTO hap VALUES ({', '.join('?' * 17)})"
DELETE = "DELETE FROM hap WHERE k = ?"
UPDATE_KEY = "UPDATE hap SET k = ? WHERE k = ?"
UPDATE = "UPDATE hap SET a7 = ? WHERE k = ?"
SCAN = "SELECT sum(a0), max(a1) FROM hap"
CREATE = f"CREATE TABLE hap (k BIGINT PRIMARY KEY, {', '.join(c + ' INTEGER NOT NULL' for c in COLUMNS)})"
# Goals, microseconds: from Python, from Rust.
LIMITS = {"point": (6, 2), "count 1 %": (150, 100), "sum 1 %": (400, 350), "insert": (15, 8), "delete": (8, 4),
          "update key": (20, 12), "update payload": (8, 4), "scan": (15_000, 15_000)}


def series(rows, order):
    """The rows as SQL over a column i: keys are even, to leave gaps; permuted if the order is random."""
    key = "i" if order == "sorted" else f"i * 7368787 % {rows}"
    values = ", ".join(f"CAST(i * {2654435761 + 2 * j} % 1000003 AS INTEGER) AS {c}" for j, c in enumerate(COLUMNS))
    return f"SELECT CAST(2 * ({key}) AS BIGINT) AS k, {values}"


class Columnar:
    """Loads with two threads, runs statements with one."""

    def load(self, rows, order):
        self.run(CREATE)
        self.run("SET threads = 2")
        self.run(f"INSERT INTO hap {series(rows, order)} FROM range({rows}) t(i)")
        self.run("SET threads = 1")


class Entasis(Columnar):
    def __init__(self, path=":memory:"):
        import entasis

        self.version = entasis.__version__
        self.connection = entasis.connect(path, threads=1)

    def run(self, sql, parameters=None):
        cursor = self.connection.execute(sql, parameters)
        return cursor.fetchall() if cursor.description else None

    def scanner(self):
        connection = self.connection.duplicate()
        return lambda: connection.execute(SCAN).fetchall()


class InFile(Entasis):
    """Entasis with its table in a file; statements do not wait for the disk."""

    def __init__(self, path):
        super().__init__(path)
        self.run("SET synchronous = 'off'")


class DuckDB(Columnar):
    def __init__(self):
        import duckdb

        self.version = duckdb.__version__
        self.connection = duckdb.connect(config={"threads": 1})

    def run(self, sql, parameters=None):
        return self.connection.execute(sql, parameters).fetchall()


class SQLite:
    def __init__(self):
        import sqlite3

        self.version = sqlite3.sqlite_version
        self.connection = sqlite3.connect(":memory:", isolation_level=None, cached_statements=256)

    def load(self, rows, order):
        self.run(CREATE.replace("BIGINT PRIMARY KEY", "INTEGER PRIMARY KEY"))
        numbers = f"WITH RECURSIVE t(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM t WHERE i < {rows - 1})"
        self.run(f"INSERT INTO hap {numbers} {series(rows, order)} FROM t")

    def run(self, sql, parameters=()):
        return self.connection.execute(sql, parameters or ()).fetchall()


ENGINES = {"entasis": Entasis, "file": InFile, "duckdb": DuckDB, "sqlite": SQLite}
# Goal: the ratio of the time in a file to that in memory.
IN_FILE = 1.3


KEYED = ["point", "insert", "update payload", "delete", "update key"]


def operations(rows, seed):
    """Name, statement, parameters by number, number of runs. Each operation takes rows of its own.

    Parameters are created when they are needed, as in a program: ten thousand lists created beforehand would
    be out of the caches.
    """
    dice = random.Random(seed)
    span = rows // 50  # of keys, which are even: 1 % of the rows
    free = (2 * dice.randrange(rows) + 1 for _ in iter(int, 1))
    inserted = list(dict.fromkeys(next(free) for _ in range(10_000)))
    moved = [2 * k for k in dice.sample(range(rows), 10_000)]
    targets = list(dict.fromkeys(next(free) for _ in range(10_500)))
    targets = [k for k in targets if k not in set(inserted)][: len(moved)]
    key = lambda: 2 * dice.randrange(rows)
    value = lambda: dice.randrange(1_000_003)
    ranges = lambda: ((k, k + span - 1) for k in (dice.randrange(2 * rows - span) for _ in range(400)))
    return [
        ("point", POINT, ((key(),) for _ in range(40_000))),
        ("count 1 %", COUNT, ranges()),
        ("sum 1 %", SUM, ranges()),
        ("insert", INSERT, ((k, *(value() for _ in COLUMNS)) for k in inserted)),
        ("update payload", UPDATE, ((value(), key()) for _ in range(10_000))),
        ("delete", DELETE, ((k,) for k in inserted)),
        ("update key", UPDATE_KEY, zip(targets, moved)),
        ("scan", SCAN, [()] * 15),
    ]


def measure(engine, rows, seed, only=(), settle=False, budget=5.0):
    """Median microseconds by operation, of all or of those in `only`; slow ones stop after `budget` seconds.

    `settle`: measures only the second half of the runs, since another process has used the caches before.
    """
    medians = {}
    for name, sql, sets in operations(rows, seed):
        if only and name not in only:
            continue
        times, moves, end = [], [], time.perf_counter() + budget
        for parameters in sets:
            start = time.perf_counter_ns()
            engine.run(sql, parameters)
            times.append((time.perf_counter_ns() - start) / 1000)
            if name == "update key":
                moves.append(parameters)
            if time.perf_counter() > end:
                break
        medians[name] = statistics.median(times[len(times) // 2 :] if settle else times)
        for to, old in moves:  # Back again, for the next round.
            engine.run(sql, (old, to))
    return medians


def beside_scans(engine, rows, seed):
    """The operations while another thread scans, and the duration of a scan meanwhile."""
    scan, stop, scans = engine.scanner(), threading.Event(), []

    def loop():
        while not stop.is_set():
            start = time.perf_counter_ns()
            scan()
            scans.append((time.perf_counter_ns() - start) / 1000)

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        medians = measure(engine, rows, seed)
    finally:
        stop.set()
        thread.join()
    return medians | {"scan": statistics.median(scans)}


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def huge_share():
    """The share of this process's memory in huge pages, if the system reports it."""
    with open("/proc/self/smaps_rollup") as file:
        sizes = dict(line.split()[:2] for line in file if "kB" in line)
    return int(sizes.get("AnonHugePages:", 0)) / int(sizes["Rss:"])


def bulk(engine, rows, updates):
    """Seconds of statements on many rows, and the memory left by single updates beside snapshots."""
    figures, dice = {}, random.Random(3)
    before = peak_bytes(os.getpid())
    scan = engine.scanner()
    start = time.perf_counter()
    for number in range(updates):
        engine.run(UPDATE, (number % 1_000_003, 2 * dice.randrange(rows)))
        if number % 100_000 == 0:
            scan()
    figures["update loop, µs each"] = (time.perf_counter() - start) / max(updates, 1) * 1e6
    figures["peak MB before the loop"] = before / 1e6
    figures["peak MB behind the loop"] = peak_bytes(os.getpid()) / 1e6
    figures["MB behind the loop"] = resident_bytes() / 1e6
    for name, sql in [
        ("update one column of all, s", "UPDATE hap SET a9 = a9 + 1"),
        ("delete half, s", "DELETE FROM hap WHERE a3 % 2 = 0"),
    ]:
        engine.run("SET threads = 2")
        start = time.perf_counter()
        engine.run(sql)
        figures[name] = time.perf_counter() - start
        engine.run("SET threads = 1")
        time.sleep(2)
        engine.run("SELECT 1")  # The allocator returns free memory at the next allocation.
        time.sleep(0.5)
        figures[f"MB after it ({name.split(',')[0]})"] = resident_bytes() / 1e6
    return figures


def serve(name, path):
    answers = open_answers()
    engine = ENGINES[name](path) if path else ENGINES[name]()
    # After a scan, a thread waits for the interpreter as long as another may hold it, 5 ms by default.
    sys.setswitchinterval(1e-4)
    print(json.dumps(engine.version), file=answers, flush=True)
    for line in sys.stdin:
        do, *arguments = json.loads(line)
        start = time.perf_counter()
        if do == "load":
            engine.load(*arguments)
            answer = time.perf_counter() - start
        elif do == "peak":
            answer = peak_bytes(os.getpid())
        elif do == "huge":
            answer = huge_share()
        else:
            answer = {"measure": measure, "beside": beside_scans, "bulk": bulk}[do](engine, *arguments)
        print(json.dumps(answer), file=answers, flush=True)


class Worker:
    def __init__(self, name, path=""):
        command = [sys.executable, __file__, "serve", name, str(path)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.version = json.loads(self.process.stdout.readline())

    def ask(self, *command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def flat(args):
    """Single rows in three kinds of tables, in turns: medians, and the median ratio to the first kind."""
    tables = {"1 M": (1_000_000, "sorted"), "10 M": (10_000_000, "sorted"), "10 M, random": (10_000_000, "random")}
    workers = {name: Worker("entasis") for name in tables}
    for name, table in tables.items():
        seconds = workers[name].ask("load", *table)
        print(f"{name}: loaded in {seconds:.1f} s, {workers[name].ask('huge'):.0%} of memory in huge pages", flush=True)
    rounds = {way: {name: [] for name in tables} for way in ("Python", "Rust")}
    for seed in range(args.rounds):
        python = {name: {} for name in tables}
        for operation in KEYED:
            for name, (rows, _) in tables.items():
                python[name] |= workers[name].ask("measure", rows, seed, [operation], True)
        for name, (rows, order) in tables.items():
            rounds["Python"][name].append(python[name])
            rounds["Rust"][name].append(rust(args.bench, rows, order))
    content = {"rounds": args.rounds, "versions": {"entasis": workers["1 M"].version}}
    for way, by_table in rounds.items():
        medians = {op: {name: statistics.median(r[op] for r in taken) for name, taken in by_table.items()} for op in KEYED}
        of_pairs = lambda op, a, b: statistics.median(y[op] / x[op] for x, y in zip(by_table[a], by_table[b]))
        ratios = {
            op: {f"{b} / {a}": of_pairs(op, a, b) for a, b in [("1 M", "10 M"), ("10 M", "10 M, random")]} for op in KEYED
        }
        heads = list(tables) + list(ratios[KEYED[0]])
        print("\n" + f"{way}, µs, median".ljust(22) + "".join(f"{head:>22}" for head in heads))
        for op in KEYED:
            figures = [*medians[op].values(), *ratios[op].values()]
            print(op.ljust(22) + "".join(f"{figure:22.2f}" for figure in figures))
        content[way] = {"median_us": medians, "ratio": ratios, "rounds_us": by_table}
    if not args.no_record:
        keep("hap", "hap-flat", content)


def rust(program, rows, order, path=None):
    """The same operations from Rust, in memory or in a file: median microseconds by operation."""
    command = [program, "hap", "--rows", str(rows)] + (["--random"] if order == "random" else [])
    command += ["--file", str(path)] if path else []
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def in_file(rounds, pairs):
    """Prints and returns for each operation the cost of a file: the median ratio of the rounds."""
    ratio = lambda op, file, memory: statistics.median(y[op] / x[op] for x, y in zip(rounds[memory], rounds[file]))
    ratios = {head: {op: ratio(op, file, memory) for op in LIMITS} for head, (file, memory) in pairs.items()}
    print("\n" + "file / memory".ljust(18) + "".join(f"{head:>14}" for head in pairs) + f"{'goal':>16}")
    for op in LIMITS:
        marks = " ".join("✓" if ratios[head][op] <= IN_FILE else "✗" for head in pairs)
        print(op.ljust(18) + "".join(f"{ratios[head][op]:14.2f}" for head in pairs) + f"{f'≤ {IN_FILE} {marks}':>16}")
    return ratios


def main(command=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--order", choices=["sorted", "random"], default="sorted")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--updates", type=int, default=1_000_000, help="of the loop that watches the memory")
    parser.add_argument("--engines", default="entasis,duckdb,sqlite", help="of entasis, file, duckdb, sqlite")
    parser.add_argument("--bench", default="target/release/entasis-bench", help="the program for the figures from Rust")
    parser.add_argument("--dir", type=Path, default=ROOT / "bench" / "data", help="where the database of file is made")
    parser.add_argument("--brief", action="store_true", help="nothing beside scans, and no bulk statements")
    parser.add_argument("--no-record", action="store_true")
    parser.add_argument("--flat", action="store_true", help="tables of three kinds, Entasis alone")
    args = parser.parse_args(command)
    if args.flat:
        return flat(args)
    args.dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="hap-", dir=args.dir) as directory:
        return beside(args, Path(directory))


def beside(args, directory):
    """Runs the engines in turns and prints their table. Returns what is kept in the record."""
    names = args.engines.split(",")
    workers = {name: Worker(name, directory / "hap.db" if name == "file" else "") for name in names}
    content = {"rows": args.rows, "order": args.order, "versions": {n: w.version for n, w in workers.items()}}
    content["load_seconds"] = {}
    for name, worker in workers.items():
        seconds = worker.ask("load", args.rows, args.order)
        content["load_seconds"][name] = seconds
        print(f"{name} {worker.version}: loaded in {seconds:.1f} s ({args.rows / seconds / 1e6:.2f} M rows/s)", flush=True)
    heads = list(names)
    heads += ["beside scans"] * ("entasis" in workers and not args.brief)
    has_rust = Path(args.bench).is_file() or not args.brief
    heads += ["Rust"] * ("entasis" in workers and has_rust) + ["Rust, file"] * ("file" in workers and has_rust)
    rounds = {head: [] for head in heads}
    for seed in range(args.rounds):
        for name, worker in workers.items():
            rounds[name].append(worker.ask("measure", args.rows, seed))
        if "beside scans" in heads:
            rounds["beside scans"].append(workers["entasis"].ask("beside", args.rows, seed + args.rounds))
        if "Rust" in heads:
            rounds["Rust"].append(rust(args.bench, args.rows, args.order))
        if "Rust, file" in heads:
            rounds["Rust, file"].append(rust(args.bench, args.rows, args.order, directory / f"rust-{seed}.db"))
    median = lambda head, op: statistics.median(r[op] for r in rounds[head])
    columns = {op: {head: median(head, op) for head in heads} for op in LIMITS}
    print("\n" + "µs, median".ljust(18) + "".join(f"{h:>14}" for h in heads) + f"{'goals':>16}")
    for op, figures in columns.items():
        goals = " / ".join(map(str, LIMITS[op]))
        print(op.ljust(18) + "".join(f"{figures[h]:14.1f}" for h in heads) + f"{goals:>16}")
    print("fastest round")
    for op in LIMITS:
        print(op.ljust(18) + "".join(f"{min(r[op] for r in rounds[h]):14.1f}" for h in heads))
    content["median_us"] = columns
    content["rounds_us"] = {op: {head: [round(r[op], 1) for r in rounds[head]] for head in rounds} for op in LIMITS}
    pairs = {"Python": ("file", "entasis"), "Rust": ("Rust, file", "Rust")}
    pairs = {head: pair for head, pair in pairs.items() if set(pair) <= set(heads)}
    if pairs:
        content["file_by_memory"] = in_file(rounds, pairs)
    if "entasis" in workers and not args.brief:
        content["bulk"] = workers["entasis"].ask("bulk", args.rows, args.updates)
        print()
        for name, figure in content["bulk"].items():
            print(f"{name.ljust(34)}{figure:10.2f}")
    content["peak_bytes"] = {name: worker.ask("peak") for name, worker in workers.items()}
    print("peak MB: " + ", ".join(f"{name} {peak / 1e6:.0f}" for name, peak in content["peak_bytes"].items()))
    for worker in workers.values():
        worker.end()
    if not args.no_record:
        keep("hap", f"hap-{args.rows}-{args.order}" + "-file" * ("file" in names), content)
    return content


if __name__ == "__main__":
    serve(*sys.argv[2:]) if sys.argv[1:2] == ["serve"] else main()
