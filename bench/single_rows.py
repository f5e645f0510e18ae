"""Statements on single rows beside the plainest of their kind, from Python.

    make bench-single-rows

The same statements on the same tables in Entasis and in SQLite, both in memory, in turns; microseconds a statement,
medians of the rounds. Table k has a primary key, h has none, d asks for conversions and has defaults, and x has an
index. Transactions and batches are microseconds a statement and a row in them. The last line is the upsert written
so that it must be planned.
"""

import argparse
import sqlite3
import statistics
import time

import entasis
from engines import keep

ROWS = 100_000
TABLES = [
    "CREATE TABLE k (id INTEGER PRIMARY KEY, n INTEGER, s VARCHAR)",
    "CREATE TABLE h (id INTEGER, n INTEGER, s VARCHAR)",
    "CREATE TABLE d (id INTEGER, x DOUBLE, p DECIMAL(10, 2) DEFAULT 1.5, s VARCHAR DEFAULT 'x')",
    "CREATE TABLE x (id INTEGER PRIMARY KEY, n INTEGER, s VARCHAR)",
    "CREATE INDEX xn ON x (n)",
]
SUM_OF_K = "ON CONFLICT (id) DO UPDATE SET n = k.n + 1"
STATEMENTS = {
    "select": ("SELECT n FROM k WHERE id = ?", lambda i: (i,)),
    "select two keys": ("SELECT n FROM k WHERE id IN (?, ?)", lambda i: (i, i + 500)),
    "select a range": ("SELECT n FROM k WHERE id > ? ORDER BY id LIMIT 10", lambda i: (i,)),
    "select between": ("SELECT n FROM k WHERE id BETWEEN ? AND ?", lambda i: (i, i + 9)),
    "select the last": ("SELECT n FROM k ORDER BY id DESC LIMIT 10", lambda i: ()),
    "update": ("UPDATE k SET n = ? WHERE id = ?", lambda i: (i, i)),
    "update by a sum": ("UPDATE k SET n = n + ? WHERE id = ?", lambda i: (1, i)),
    "update, returning": ("UPDATE k SET n = n + 1 WHERE id = ? RETURNING n", lambda i: (i,)),
    "insert": ("INSERT INTO k VALUES (?, 1, 'y')", lambda i: (2 * ROWS + i,)),
    "insert, returning": ("INSERT INTO k VALUES (?, 1, 'y') RETURNING id", lambda i: (3 * ROWS + i,)),
    "upsert": (f"INSERT INTO k VALUES (?, 1, 'y') {SUM_OF_K}", lambda i: (i,)),
    "insert without a key": ("INSERT INTO h VALUES (?, 1, 'y')", lambda i: (i,)),
    "insert two rows": ("INSERT INTO h VALUES (?, 1, 'y'), (?, 2, 'z')", lambda i: (i, i)),
    "insert, converted": ("INSERT INTO d (id, x, p) VALUES (?, ?, ?)", lambda i: (i, i, 7)),
    "insert, defaults": ("INSERT INTO d (id) VALUES (?)", lambda i: (i,)),
    "update an index": ("UPDATE x SET n = ? WHERE id = ?", lambda i: (i + 7, i)),
    "sum in an index": ("UPDATE x SET n = n + ? WHERE id = ?", lambda i: (1, i)),
    "index, returning": ("UPDATE x SET n = ? WHERE id = ? RETURNING n", lambda i: (i, i)),
    "upsert with an index": (f"INSERT INTO x VALUES (?, 1, 'y') {SUM_OF_K.replace('k.n', 'x.n')}", lambda i: (i,)),
    "upsert of a query": (f"INSERT INTO k SELECT ?, 1, 'y' WHERE true {SUM_OF_K}", lambda i: (i,)),
}
# Statements between BEGIN and COMMIT.
IN_TRANSACTION = 3


def opened(engine):
    connection = entasis.connect() if engine == "entasis" else sqlite3.connect(":memory:", isolation_level=None)
    for table in TABLES:
        connection.execute(table)
    connection.executemany("INSERT INTO k VALUES (?, 0, 'x')", [(i,) for i in range(ROWS)])
    connection.executemany("INSERT INTO x VALUES (?, ?, 'x')", [(i, i) for i in range(ROWS)])
    return connection


def microseconds(connection, sql, values, count):
    returns = sql.startswith("SELECT") or "RETURNING" in sql
    start = time.perf_counter()
    for i in range(count):
        connection.execute(sql, values(i)).fetchall() if returns else connection.execute(sql, values(i))
    return (time.perf_counter() - start) / count * 1e6


def in_transactions(connection, count):
    start = time.perf_counter()
    for i in range(count // IN_TRANSACTION):
        connection.execute("BEGIN")
        for j in range(IN_TRANSACTION):
            connection.execute("UPDATE k SET n = ? WHERE id = ?", (i, i * IN_TRANSACTION + j))
        connection.execute("COMMIT")
    return (time.perf_counter() - start) / count * 1e6


def batch(connection, table, first, count):
    rows = [(first + i, i) for i in range(count)]
    start = time.perf_counter()
    connection.executemany(f"INSERT INTO {table} (id, n) VALUES (?, ?)", rows)
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
            others = {
                "in a transaction": in_transactions(connection, arguments.count),
                "batch": batch(connection, "k", 5 * ROWS, arguments.count),
                "batch without a key": batch(connection, "h", 0, arguments.count),
                "batch with an index": batch(connection, "x", 5 * ROWS, arguments.count),
            }
            for name, time_ in others.items():
                found.setdefault(name, {}).setdefault(engine, []).append(time_)
    medians = {name: {engine: statistics.median(times) for engine, times in of.items()} for name, of in found.items()}
    for name, of in medians.items():
        print(f"{name:20}" + "".join(f"{engine:>10} {time:8.2f} us" for engine, time in of.items()))
    keep("statements on single rows", "single-rows", {"microseconds": medians})


if __name__ == "__main__":
    main()
