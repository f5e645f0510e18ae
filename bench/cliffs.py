"""Work that grows faster than what is asked for: each task at a size and at twice the size, beside DuckDB and SQLite.

    make bench-cliffs
    make bench-cliffs ONLY="columns,savepoints"

1. A task has an axis: columns, terms, tables, indexes, statements, views, savepoints or rows. It runs at n and
   at 2n; the engines take turns, and a figure is the median of the rounds. Preparation is not timed. The rounds
   after the first work with warm caches, but texts differ from round to round where a remembered plan would
   leave nothing to measure.
2. `growth` is our time at 2n by our time at n: about 2 if the work is linear, about 4 if it is quadratic. Times
   below two milliseconds are mostly constant cost, and their growth is not judged.
3. `ratio` is our time at 2n by that of the fastest other engine.
4. The last column names what is wrong: `superlinear` (growth above 2.8), `slow` (ratio above 1.5), `differs` (at
   2n the engines have not given the same rows).
5. The record has the `way` of each query at 2n: its operators with their rows, and what they tell of how they have
   worked, from `EXPLAIN (ANALYZE, FORMAT json)` of the last text after the rounds.
"""

import argparse
import decimal
import json
import os
import sqlite3
import statistics
import tempfile
import time
from pathlib import Path

import duckdb
from engines import keep

import entasis

SUPERLINEAR = 2.8
SLOW = 1.5
NOISE_MS = 2.0


class Entasis:
    def __init__(self, path=None):
        self.connection = entasis.connect(path) if path else entasis.connect()

    def run(self, sql):
        self.last = sql
        cursor = self.connection.execute(sql)
        return cursor.fetchall() if cursor.description else []

    def way(self):
        """How the last query has worked; None of another statement."""
        if not self.last.startswith(("SELECT", "WITH")):
            return None
        top = json.loads(self.run(f"EXPLAIN (ANALYZE, FORMAT json) {self.last}")[0][0])["plan"]
        operators, below = [], [top]
        while below:
            operator = below.pop()
            below += reversed(operator["children"])
            operators.append({"operator": operator["operator"][:100], "rows": operator["rows"], "details": operator["details"]})
        return operators

    def script(self, sql):
        self.connection.execute(sql)

    def close(self):
        self.connection.close()


class DuckDB(Entasis):
    def __init__(self, path=None):
        self.connection = duckdb.connect(path or ":memory:")

    def run(self, sql):
        return self.connection.execute(sql).fetchall()


class SQLite(Entasis):
    def __init__(self, path=None):
        self.connection = sqlite3.connect(path or ":memory:", isolation_level=None)
        for kind in (sqlite3.SQLITE_LIMIT_COLUMN, sqlite3.SQLITE_LIMIT_EXPR_DEPTH):
            self.connection.setlimit(kind, 1_000_000)

    def run(self, sql):
        return self.connection.execute(sql).fetchall()

    def script(self, sql):
        self.connection.executescript(sql)


ENGINES = {"entasis": Entasis, "duckdb": DuckDB, "sqlite": SQLite}
ANALYTIC = ("entasis", "duckdb")


def same(answers):
    """True if engines have given the same rows, in any order; numbers of any type to nine digits."""
    value = lambda v: f"{float(v):.9g}" if isinstance(v, (int, float, decimal.Decimal)) else str(v)
    rows = [sorted(tuple(map(value, row)) for row in answer) for answer in answers]
    return all(other == rows[0] for other in rows)


class Task:
    """`prepare(engine, n)` is not timed; `work(engine, n)` is. What `work` leaves, the next `prepare` replaces."""

    #: Another number each time, the same for all engines, for texts that none can have remembered.
    fresh = 0

    def __init__(self, axis, n, prepare, work, engines=tuple(ENGINES)):
        self.axis, self.n, self.prepare, self.work, self.engines = axis, n, prepare, work, engines


def nothing(engine, n):
    pass


def wide_table(engine, n):
    engine.run("DROP TABLE IF EXISTS w")
    engine.run("CREATE TABLE w (" + ", ".join(f"c{i} INTEGER" for i in range(n)) + ")")
    # SQLite allows two thousand columns, and as many terms.
    for row in range(10):
        engine.run("INSERT INTO w VALUES (" + ", ".join(str(row + i) for i in range(n)) + ")")


def query(text):
    """A task's work: one query, made from the size and a constant that differs each time."""
    return lambda engine, n: engine.run(text(n, Task.fresh))


def comma(parts):
    return ", ".join(parts)


def rows_table(indexes=0, rows=None):
    """A table of `rows` rows, or of n, with `indexes` indexes, or with n."""

    def prepare(engine, n):
        engine.run("DROP TABLE IF EXISTS t")
        engine.run("CREATE TABLE t (i BIGINT PRIMARY KEY, v DOUBLE, s VARCHAR, w BIGINT)")
        count = rows or n
        engine.run(
            "INSERT INTO t WITH RECURSIVE d(x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM d WHERE x < 9) "
            "SELECT i, i * 1.5, 'text ' || (i % 1000), CAST(i AS BIGINT) * 7919 % 1000003 FROM "
            "(SELECT a.x + 10 * b.x + 100 * c.x + 1000 * d.x + 10000 * e.x + 100000 * f.x AS i "
            f"FROM d a, d b, d c, d d, d e, d f) q WHERE i < {count}"
        )
        columns = ["v", "s", "w", "v, s", "s, w", "w, v"]
        for k in range(n if indexes == "n" else indexes):
            engine.run(f"CREATE INDEX x{k} ON t ({columns[k % len(columns)]})")

    return prepare


def change_columns(engine, n):
    for k in range(4):
        engine.run(f"ALTER TABLE t ADD COLUMN n{k} INTEGER DEFAULT {k}")
    for k in range(4):
        engine.run(f"ALTER TABLE t DROP COLUMN n{k}")


def drop_tables(engine, n):
    for k in range(n):
        engine.run(f"DROP TABLE IF EXISTS t{k}")


def create_tables(engine, n):
    for k in range(n):
        engine.run(f"CREATE TABLE t{k} (a INTEGER, b VARCHAR)")


def savepoints(engine, n):
    engine.run("BEGIN")
    for k in range(n):
        engine.run(f"SAVEPOINT s{k}")
        engine.run(f"INSERT INTO t VALUES ({1_000_000 + k}, 1.5, 'x', 1)")
        engine.run(f"ROLLBACK TO s{k}")
    engine.run("ROLLBACK")


def nested_savepoints(engine, n):
    engine.run("BEGIN")
    for k in range(n):
        engine.run(f"SAVEPOINT s{k}")
        engine.run(f"INSERT INTO t VALUES ({1_000_000 + k}, 1.5, 'x', 1)")
    engine.run("ROLLBACK")


def script_table(engine, n):
    engine.run("DROP TABLE IF EXISTS e")
    engine.run("CREATE TABLE e (x INTEGER)")


def script(engine, n):
    engine.script("BEGIN;" + "".join(f"INSERT INTO e VALUES ({k});" for k in range(n)) + "COMMIT;")


def views(engine, n):
    # Also those of the longer chain of the round before.
    for k in reversed(range(2 * n)):
        engine.run(f"DROP VIEW IF EXISTS v{k}")
    engine.run("DROP TABLE IF EXISTS base")
    engine.run("CREATE TABLE base (a INTEGER)")
    engine.run("CREATE VIEW v0 AS SELECT a + 1 AS a FROM base")
    for k in range(1, n):
        engine.run(f"CREATE VIEW v{k} AS SELECT a + 1 AS a FROM v{k - 1}")


def parquet_file(engine, n):
    path = Path(tempfile.gettempdir()) / f"entasis-cliffs-{n}.parquet"
    if not path.exists():
        duckdb.execute(
            f"COPY (SELECT i AS k, i % 1000 AS g, i * 7919 % 1000003 AS v, 'text ' || i % 5003 AS s, i / 8 AS d "
            f"FROM range({n}) r(i)) TO '{path}' (FORMAT parquet)"
        )
    return path


def grouped_table(engine, n):
    engine.run("DROP TABLE IF EXISTS p")
    engine.run(f"CREATE TABLE p AS SELECT * FROM '{parquet_file(engine, n)}'")


def pair_tables(engine, n):
    for name, factor in (("a", 7919), ("b", 31)):
        engine.run(f"DROP TABLE IF EXISTS {name}")
        engine.run(
            f"CREATE TABLE {name} AS SELECT i * {factor} % {n // 20} AS x, i * {factor} % 11 AS y, i AS v "
            f"FROM range({n}) r(i)"
        )


def prepared_savepoints(engine, n):
    rows_table(rows=1000)(engine, n)


TASKS = {
    # The width of a statement.
    "SELECT *": Task("columns", 1000, wide_table, query(lambda n, f: f"SELECT * FROM w WHERE c0 < {100 + f}")),
    "max of each": Task("columns", 900, wide_table, query(lambda n, f: "SELECT " + comma(f"max(c{i})" for i in range(n)) + f" FROM w WHERE c0 < {100 + f}")),
    "sum of products": Task("terms", 150, wide_table, query(lambda n, f: "SELECT max(" + " + ".join(f"c{i} * {i}.5" for i in range(n)) + f") FROM w WHERE c0 < {100 + f}")),
    "sum of constants": Task("terms", 400, nothing, query(lambda n, f: f"SELECT {f}" + " + 1" * n)),
    "constants": Task("columns", 900, nothing, query(lambda n, f: f"SELECT {f}, " + comma(str(i) for i in range(n)))),
    "IN of expressions": Task("terms", 1000, lambda engine, n: wide_table(engine, 5), query(lambda n, f: "SELECT count(*) FROM w WHERE c1 IN (" + comma(f"c2 + {i + f}" for i in range(n)) + ")")),
    "IN of constants": Task("terms", 20_000, lambda engine, n: wide_table(engine, 5), query(lambda n, f: "SELECT count(*) FROM w WHERE c1 IN (" + comma(str(3 * i + f) for i in range(n)) + ")")),
    "rows of VALUES": Task("rows", 10_000, nothing, query(lambda n, f: "WITH v(a, b) AS (VALUES " + comma(f"({i}, 'a{i + f}')" for i in range(n)) + ") SELECT count(*), max(b) FROM v")),
    "UNION": Task("terms", 200, nothing, query(lambda n, f: " UNION ".join(f"SELECT {i + f}" for i in range(n)))),
    # The number of objects and statements.
    "CREATE TABLE": Task("tables", 1000, drop_tables, create_tables),
    "chain of views": Task("views", 8, views, query(lambda n, f: f"SELECT count(*) FROM v{n - 1} WHERE a < {f}")),
    "SAVEPOINT, ROLLBACK TO": Task("savepoints", 1000, prepared_savepoints, savepoints, ("entasis", "sqlite")),
    "SAVEPOINT in SAVEPOINT": Task("savepoints", 1000, prepared_savepoints, nested_savepoints, ("entasis", "sqlite")),
    "script": Task("statements", 4000, script_table, script),
    # Changes of a table.
    "ADD, DROP COLUMN": Task("rows", 300_000, rows_table(), change_columns, ANALYTIC),
    "DELETE of a third, six indexes": Task("rows", 50_000, rows_table(indexes=6), query(lambda n, f: "DELETE FROM t WHERE i % 3 = 0")),
    "DELETE of a third, n indexes": Task("indexes", 3, rows_table(indexes="n", rows=100_000), query(lambda n, f: "DELETE FROM t WHERE i % 3 = 0")),
    "UPDATE of a third, six indexes": Task("rows", 50_000, rows_table(indexes=6), query(lambda n, f: "UPDATE t SET v = v + 1 WHERE i % 3 = 0")),
    "CREATE INDEX on DOUBLE": Task("rows", 200_000, rows_table(), query(lambda n, f: f"CREATE INDEX y{f} ON t (v)")),
    "CREATE INDEX on VARCHAR": Task("rows", 200_000, rows_table(), query(lambda n, f: f"CREATE INDEX y{f} ON t (s)")),
    # Queries.
    "aggregate a Parquet file": Task("rows", 2_000_000, parquet_file, lambda engine, n: engine.run(f"SELECT g, sum(v), max(d), count(*) FROM '{parquet_file(engine, n)}' GROUP BY g"), ANALYTIC),
    "count(DISTINCT) by group": Task("rows", 2_000_000, grouped_table, lambda engine, n: engine.run("SELECT g, count(DISTINCT v) FROM p GROUP BY g"), ANALYTIC),
    "two count(DISTINCT)": Task("rows", 2_000_000, grouped_table, lambda engine, n: engine.run("SELECT count(DISTINCT v), count(DISTINCT s) FROM p"), ANALYTIC),
    "many-to-many join on two keys": Task("rows", 1_000_000, pair_tables, lambda engine, n: engine.run("SELECT count(*), sum(a.v + b.v) FROM a JOIN b ON a.x = b.x AND a.y = b.y"), ANALYTIC),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="tasks whose name or axis contains one of these, as columns,DELETE")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-record", action="store_true")
    args = parser.parse_args()
    only = [part for part in args.only.split(",") if part]
    results = [reclaimed()] if not only or any(part in "file size" for part in only) else []
    print(f"\n{'task':32}{'axis':>12}{'n':>9}" + "".join(f"{name:>18}" for name in ENGINES) + f"{'growth':>8}{'ratio':>7}  (ms at n, 2n)")
    for name, task in TASKS.items():
        if only and not any(part in name or part == task.axis for part in only):
            continue
        results.append(measure(name, task, args.rounds))
    if not args.no_record and not only:
        keep("cliffs", "cliffs", {"rounds": args.rounds, "tasks": results})


def measure(name, task, rounds):
    engines = {engine: ENGINES[engine]() for engine in task.engines}
    times, errors = {}, {}
    for _ in range(rounds + 1):
        for n in (task.n, 2 * task.n):
            Task.fresh += 1
            answers = {}
            for engine, instance in engines.items():
                if engine in errors:
                    continue
                try:
                    task.prepare(instance, n)
                    began = time.perf_counter()
                    answers[engine] = task.work(instance, n)
                    times.setdefault(engine, {}).setdefault(n, []).append((time.perf_counter() - began) * 1000)
                except Exception as error:  # only this figure is lost, not the run
                    errors[engine] = f"{type(error).__name__}: {error}"[:200]
    way = engines["entasis"].way() if "entasis" not in errors else None
    differs = way is not None and not same(answers.values())
    for instance in engines.values():
        instance.close()
    medians = {engine: [statistics.median(by[n][1:]) for n in (task.n, 2 * task.n)] for engine, by in times.items() if engine not in errors}
    ours = medians.get("entasis", [0, 0])
    others = [at[1] for engine, at in medians.items() if engine != "entasis"]
    growth = ours[1] / ours[0] if ours[0] else 0
    ratio = ours[1] / min(others) if others else 0
    wrong = ["superlinear"] * (growth > SUPERLINEAR and ours[1] > NOISE_MS) + ["slow"] * (ratio > SLOW and ours[1] > NOISE_MS) + ["differs"] * differs
    cells = "".join("{:>18}".format(f"{medians[e][0]:.1f}, {medians[e][1]:.1f}" if e in medians else "-") for e in ENGINES)
    print(f"{name:32}{task.axis:>12}{task.n:>9}{cells}{growth:8.1f}{ratio:7.2f}  {' '.join(wrong)}" + "".join(f"  ! {e}: {v[:80]}" for e, v in errors.items()), flush=True)
    return {"task": name, "axis": task.axis, "n": task.n, "median_ms": medians, "growth": growth, "ratio": ratio, "wrong": wrong, "errors": errors, "way": way}


def reclaimed():
    """Bytes of a file with a table of 2 M rows, and after DROP TABLE and one CHECKPOINT."""
    sizes = {}
    with tempfile.TemporaryDirectory() as directory:
        for name in ANALYTIC:
            path = os.path.join(directory, name + ".db")
            engine = ENGINES[name](path)
            engine.run("CREATE TABLE big AS SELECT i, i * 7919 % 1000003 AS v, 'text ' || i AS s FROM range(2000000) r(i)")
            engine.run("CHECKPOINT")
            full = os.path.getsize(path)
            engine.run("DROP TABLE big")
            engine.run("CHECKPOINT")
            sizes[name] = [full, os.path.getsize(path)]
            engine.close()
    print("file size, after DROP TABLE and CHECKPOINT: " + comma(f"{name} {a / 1e6:.1f} MB, {b / 1e6:.2f} MB" for name, (a, b) in sizes.items()))
    return {"task": "file size", "bytes": sizes}


if __name__ == "__main__":
    main()
