"""Constraints, statement by statement, in Entasis and PostgreSQL: what is accepted, and what is there then.

Each workload makes three tables with NOT NULL, CHECK, UNIQUE, PRIMARY KEY and foreign keys with every action,
and runs random statements on them. After each, both must have accepted or refused it, and the tables must have
the same rows. Known differences are named in `excused`, and their reasons under the same names in
tests/differences.md; there are few.

    python tests/compare/constraints.py --postgres "host=localhost user=postgres" --seed 1 --seeds 200
"""

from __future__ import annotations

import argparse
import itertools
import random
import re
import sys
from typing import Any

COLUMNS = ["a", "b", "c", "d"]
TABLES = 3
ACTIONS = ["NO ACTION", "RESTRICT", "CASCADE", "SET NULL", "SET DEFAULT"]
CHECKS = ["d < 6", "c <> 3", "c + d <> 4", "b IS NOT NULL OR c IS NULL", "a >= 0"]


def declare(r: random.Random) -> tuple[list[str], list[list[list[str]]]]:
    """The statements that make the tables, and the keys of each, the primary key first."""
    statements, keys = [], []
    for table in range(TABLES):
        primary = r.choice([["a"], ["a", "b"]])
        parts = []
        for column in COLUMNS:
            part = f"{column} INTEGER"
            if r.random() < 0.7:
                part += f" DEFAULT {r.randrange(8)}"
            if column not in primary and r.random() < 0.15:
                part += " NOT NULL"
            parts.append(part)
        parts.append(f"PRIMARY KEY ({', '.join(primary)})")
        own = [primary]
        if r.random() < 0.4:
            own.append(r.choice([["c"], ["b", "c"], ["c", "d"]]))
            parts.append(f"UNIQUE ({', '.join(own[-1])})")
        parts += [f"CHECK ({check})" for check in CHECKS if r.random() < 0.25]
        statements.append(f"CREATE TABLE t{table} ({', '.join(parts)})")
        if r.random() < 0.4:
            statements.append(f"CREATE INDEX ON t{table} ({r.choice(['c', 'd', 'c, d'])})")
        keys.append(own)
    for table in range(TABLES):
        for _ in range(r.randrange(3)):
            parent = r.randrange(TABLES)
            references = r.choice(keys[parent])
            columns = [r.choice(["b", "c", "d"])] if len(references) == 1 else r.choice([["b", "c"], ["c", "d"], ["d", "b"]])
            statements.append(
                f"ALTER TABLE t{table} ADD FOREIGN KEY ({', '.join(columns)}) REFERENCES t{parent} "
                f"({', '.join(references)}) ON DELETE {r.choice(ACTIONS)} ON UPDATE {r.choice(ACTIONS)}"
            )
    return statements, keys


def value(r: random.Random) -> str:
    return str(r.randrange(8)) if r.random() < 0.8 else "NULL"


def statement(r: random.Random, keys: list[list[list[str]]]) -> str:
    """A statement whose effect does not depend on the order in which it visits rows."""
    table, other = r.randrange(TABLES), r.randrange(TABLES)
    row = lambda: f"({', '.join(value(r) for _ in COLUMNS)})"
    column = lambda: r.choice(COLUMNS)
    primary = ", ".join(keys[table][0])
    where = r.choice(["true", f"{column()} = {r.randrange(8)}", f"a = {r.randrange(8)}", f"b >= {r.randrange(8)}"])
    match r.randrange(12):
        case 0 | 1:
            return f"INSERT INTO t{table} VALUES {', '.join(row() for _ in range(r.randrange(1, 3)))}"
        case 2:
            return f"INSERT INTO t{table} SELECT a + {r.randrange(5)}, b, c, d FROM t{other} WHERE {where}"
        case 3:
            return f"INSERT INTO t{table} VALUES {row()} ON CONFLICT DO NOTHING"
        case 4:
            return f"INSERT INTO t{table} VALUES {row()} ON CONFLICT ({primary}) DO NOTHING"
        case 5:
            return f"INSERT INTO t{table} VALUES {row()} ON CONFLICT ({primary}) DO UPDATE SET {column()} = excluded.{column()}"
        case 6:
            return (
                f"INSERT INTO t{table} VALUES {row()} ON CONFLICT ({primary}) DO UPDATE SET d = {value(r)} "
                f"WHERE excluded.c > {r.randrange(6)}"
            )
        case 7:
            return f"UPDATE t{table} SET {column()} = {r.choice([value(r), column(), 'DEFAULT'])} WHERE {where}"
        case 8:
            return f"UPDATE t{table} SET {column()} = {value(r)} WHERE a = {r.randrange(8)}"
        case 9 | 10:
            return f"DELETE FROM t{table} WHERE {where}"
        case _:
            return (
                f"MERGE INTO t{table} AS t USING t{other} AS o ON t.a = o.{primary.split(', ')[0]} "
                f"WHEN MATCHED AND o.d > 3 THEN DELETE WHEN MATCHED THEN UPDATE SET d = o.c "
                f"WHEN NOT MATCHED THEN INSERT VALUES (o.a, o.b, o.d, o.c)"
            )


def rivals(log: list[str], message: str) -> bool:
    """Whether a message names a table of which two foreign keys have a column and the parent in common."""
    keys = [found for sql in log if (found := re.match(r"ALTER TABLE (\w+) ADD FOREIGN KEY \((.*?)\) REFERENCES (\w+)", sql))]
    named = set(re.findall(r"\bt\d\b", message))
    return any(
        a[1] == b[1] and a[3] == b[3] and a[1] in named and set(a[2].split(", ")) & set(b[2].split(", "))
        for a, b in itertools.combinations(keys, 2)
    )


def excused(log: list[str], ours: str | None, theirs: str | None) -> str | None:
    """Why the outcomes of the last statement differ. tests/differences.md has the reasons."""
    sql = log[-1]
    if theirs and not ours and "duplicate key" in theirs and not sql.startswith("INSERT"):
        return "keys that move"
    if "foreign key" in (ours or theirs or "") and rivals(log, ours or theirs or ""):
        return "foreign keys that share a column"
    return None


class Ours:
    def __init__(self) -> None:
        import entasis

        self.module = entasis
        self.connection = entasis.connect(threads=1)

    def run(self, sql: str) -> tuple[list[Any] | None, str | None]:
        try:
            cursor = self.connection.execute(sql)
            return (cursor.fetchall() if cursor.description else None), None
        except self.module.Error as error:
            return None, str(error).split("\n")[0]


class Theirs:
    def __init__(self, connection: Any) -> None:
        self.connection = connection
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")

    def run(self, sql: str) -> tuple[list[Any] | None, str | None]:
        import psycopg

        try:
            cursor = self.connection.execute(sql)
            return (cursor.fetchall() if cursor.description else None), None
        except psycopg.Error as error:
            return None, str(error).split("\n")[0]


def rows_of(engine: Any) -> list[list[tuple[Any, ...]]]:
    key = lambda row: tuple((value is None, value or 0) for value in row)
    return [sorted(map(tuple, engine.run(f"SELECT a, b, c, d FROM t{table}")[0]), key=key) for table in range(TABLES)]


def check(seed: int, connection: Any, counts: dict[str, int], shows_all: bool = False) -> bool:
    r = random.Random(seed)
    ours, theirs = Ours(), Theirs(connection)
    log, keys = declare(r)
    for sql in log:
        for engine in (ours, theirs):
            _, error = engine.run(sql)
            assert error is None, f"{sql}: {error}"
    for _ in range(60):
        sql = statement(r, keys)
        log.append(sql)
        (_, own), (_, other) = ours.run(sql), theirs.run(sql)
        counts["accepted" if other is None else "refused"] += 1
        if (own is None) == (other is None) and rows_of(ours) == rows_of(theirs):
            continue
        reason = excused(log, own, other) if (own is None) != (other is None) else None
        counts[reason or "different"] = counts.get(reason or "different", 0) + 1
        if reason is None or shows_all:
            print(f"seed {seed}:", *log, sep=";\n")
            print(f"Entasis: {own or rows_of(ours)}\nPostgreSQL: {other or rows_of(theirs)}\n")
        # Nothing after it can be compared.
        return reason is not None
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--postgres", required=True, help="how to connect to a PostgreSQL in which a database may be made")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--all", action="store_true", help="print what is excused, too")
    given = parser.parse_args()
    import psycopg

    database = "entasis_constraints"
    with psycopg.connect(given.postgres, autocommit=True) as admin:
        admin.execute(f"DROP DATABASE IF EXISTS {database}")
        admin.execute(f"CREATE DATABASE {database}")
    counts = {"accepted": 0, "refused": 0}
    with psycopg.connect(given.postgres, dbname=database, autocommit=True) as connection:
        connection.execute("SET client_min_messages = error")
        good = [check(seed, connection, counts, given.all) for seed in range(given.seed, given.seed + given.seeds)]
    with psycopg.connect(given.postgres, autocommit=True) as admin:
        admin.execute(f"DROP DATABASE {database}")
    print(f"{sum(good)} of {len(good)} workloads agree; statements: {counts}")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
