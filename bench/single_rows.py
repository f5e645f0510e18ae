"""Statements on single rows beside the plainest of their kind: sums, RETURNING and ON CONFLICT, from Python.

    make bench-single-rows

The same statements on the same table in Entasis and in SQLite, both in memory, in turns; microseconds a statement,
medians of the rounds. The last line is the upsert written so that it must be planned.
"""

import argparse
import sqlite3
import statistics
import time

import entasis
from engines import keep

ROWS = 100_000
STATEMENTS = {
    "update": ("UPDATE k SET n = ? WHERE id = ?", lambda i: (i, i)),
    "update by a sum": ("UPDATE k SET n = n + ? WHERE id = ?", lambda i: (1, i)),
    "update, returning": ("UPDATE k SET n = n + 1 WHERE id = ? RETURNING n", lambda i: (i,)),
    "insert": ("INSERT INTO k VALUES (?, 1, 'y')", lambda i: (2 * ROWS + i,)),
    "insert, returning": ("INSERT INTO k VALUES (?, 1, 'y') RETURNING id", lambda i: (3 * ROWS + i,)),
    "upsert": ("INSERT INTO k VALUES (?, 1, 'y') ON CONFLICT (id) DO UPDATE SET n = k.n + 1", lambda i: (i,)),
    "upsert of a query": ("INSERT INTO k SELECT ?, 1, 'y' WHERE true ON CONFLICT (id) DO UPDATE SET n = k.n + 1", lambda i: (i,)),
}


def opened(engine):
    connection = entasis.connect() if engine == "entasis" else sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("CREATE TABLE k (id INTEGER PRIMARY KEY, n INTEGER, s VARCHAR)")
    connection.executemany("INSERT INTO k VALUES (?, 0, 'x')", [(i,) for i in range(ROWS)])
    return connection


def microseconds(connection, sql, values, count):
    start = time.perf_counter()
    for i in range(count):
        connection.execute(sql, values(i)).fetchall() if "RETURNING" in sql else connection.execute(sql, values(i))
    return (time.perf_counter() - start) / count * 1e6


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    found = {}
    for _ in range(arguments.rounds):
        for engine in ("entasis", "sqlite"):
            connection = opened(engine)
            for name, (sql, values) in STATEMENTS.items():
                count = arguments.count if name != "upsert of a query" else arguments.count // 20
                found.setdefault(name, {}).setdefault(engine, []).append(microseconds(connection, sql, values, count))
    medians = {name: {engine: statistics.median(times) for engine, times in of.items()} for name, of in found.items()}
    for name, of in medians.items():
        print(f"{name:20}" + "".join(f"{engine:>10} {time:8.2f} us" for engine, time in of.items()))
    keep("statements on single rows", "single-rows", {"microseconds": medians})


if __name__ == "__main__":
    main()
