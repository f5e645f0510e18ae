"""The databases: each runs a statement and returns its result.

Every workload starts in an empty database with the session's time zone UTC. DuckDB divides integers as
integers. PostgreSQL gets a database of its own, with texts in the order of their bytes, which is dropped at
the end.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from typing import Any

from values import Interval, Row, plain


@dataclass
class Answer:
    """Rows, or an error; neither if the driver cannot represent the result."""

    rows: list[Row] | None = None
    error: str | None = None

    @property
    def readable(self) -> bool:
        return self.rows is not None or self.error is not None


def _plain_rows(rows: list[Any]) -> list[Row]:
    return [tuple(plain(value) for value in row) for row in rows]


def _plain_column(column: Any) -> list[Any]:
    if str(column.type) == "month_day_nano_interval":
        return [None if value is None else _interval(value) for value in column.to_pylist()]
    # A map is a list of pairs in Arrow.
    if str(column.type).startswith("map<"):
        return [None if value is None else plain(dict(value)) for value in column.to_pylist()]
    return [plain(value) for value in column.to_pylist()]


def _interval(value: Any) -> Interval:
    return Interval(value[0], value[1], value[2] // 1000)


def _with_intervals(rows: list[Any], columns: list[int], table: Any) -> list[Any]:
    """Rows with the intervals of an Arrow table, as Python's timedelta has no months."""
    rows = [list(row) for row in rows]
    for column in columns:
        for row, value in zip(rows, table.column(column).to_pylist()):
            row[column] = None if value is None else _interval(value)
    return rows


class Entasis:
    name = "Entasis"

    def __init__(self) -> None:
        import entasis

        self.module = entasis

    def start(self) -> None:
        self.connection = self.module.connect(threads=1)

    def run(self, sql: str) -> Answer:
        try:
            cursor = self.connection.execute(sql)
            if cursor.description is None:
                return Answer([])
            # Through Arrow, which also has the declared types of the columns.
            columns = [_plain_column(column) for column in cursor.arrow().columns]
            return Answer([tuple(row) for row in zip(*columns)])
        except self.module.Error as error:
            # Arrow has no such interval; Entasis and Python have.
            if "too long for Arrow" in str(error):
                return Answer()
            return Answer(error=f"{type(error).__name__}: {error}")
        except (ValueError, OverflowError):
            return Answer()


class DuckDB:
    name = "DuckDB"

    def __init__(self) -> None:
        import duckdb

        self.module = duckdb

    def start(self) -> None:
        self.connection = self.module.connect()
        self.connection.execute("SET TimeZone = 'UTC'; SET integer_division = true; SET threads = 1")

    def run(self, sql: str) -> Answer:
        try:
            cursor = self.connection.execute(sql)
            if cursor.description is None:
                return Answer([])
            columns = [i for i, column in enumerate(cursor.description) if str(column[1]) == "INTERVAL"]
            rows = cursor.fetchall()
            if columns:
                rows = _with_intervals(rows, columns, self.connection.sql(sql).to_arrow_table())
            return Answer(_plain_rows(rows))
        except self.module.Error as error:
            return Answer(error=str(error))
        except (ValueError, OverflowError):
            return Answer()


class PostgreSQL:
    name = "PostgreSQL"
    database = f"entasis_compare_{os.getpid()}"

    def __init__(self, connection: str) -> None:
        import psycopg
        from psycopg.adapt import Loader
        from psycopg.pq import Format

        class IntervalLoader(Loader):
            format = Format.BINARY

            def load(self, data: Any) -> Interval:
                micros, days, months = struct.unpack("!qii", bytes(data))
                return Interval(months, days, micros)

        self.module = psycopg
        self.given = connection
        with psycopg.connect(connection, autocommit=True) as admin:
            admin.execute(f"DROP DATABASE IF EXISTS {self.database}")
            admin.execute(
                f"CREATE DATABASE {self.database} TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C.UTF-8'"
            )
        self.connection = psycopg.connect(connection, dbname=self.database, autocommit=True)
        self.connection.adapters.register_loader("interval", IntervalLoader)
        self.connection.execute("SET statement_timeout = '20s'; SET client_min_messages = error; SET jit = off")

    def start(self) -> None:
        self.connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public; SET TimeZone = 'UTC'")

    def run(self, sql: str) -> Answer:
        try:
            cursor = self.connection.execute(sql, binary=True)
            return Answer([] if cursor.description is None else _plain_rows(cursor.fetchall()))
        except self.module.Error as error:
            # The driver cannot represent the value; this is not an error of the server.
            return Answer() if error.sqlstate is None else Answer(error=str(error))
        except (ValueError, OverflowError):
            return Answer()

    def stop(self) -> None:
        self.connection.close()
        with self.module.connect(self.given, autocommit=True) as admin:
            admin.execute(f"DROP DATABASE IF EXISTS {self.database}")
