"""What DB-API 2.0 requires of every module: constructors of values, and objects for kinds of types.

A type object equals all type names in ``cursor.description`` of its kind: ``description[0][1] == NUMBER``.
"""

from __future__ import annotations

import datetime


class _Kind:
    """Equals the names of the SQL types of one kind."""

    def __init__(self, *names: str) -> None:
        self._names = frozenset(names)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return other.split("(")[0] in self._names
        return isinstance(other, _Kind) and self._names == other._names

    def __hash__(self) -> int:
        return hash(self._names)


STRING = _Kind("VARCHAR")
BINARY = _Kind("BLOB")
NUMBER = _Kind(
    "TINYINT",
    "SMALLINT",
    "INTEGER",
    "BIGINT",
    "UTINYINT",
    "USMALLINT",
    "UINTEGER",
    "UBIGINT",
    "REAL",
    "DOUBLE",
    "DECIMAL",
)
DATETIME = _Kind("DATE", "TIME", "TIME WITH TIME ZONE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE")
ROWID = _Kind()

Binary = bytes
Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime


def DateFromTicks(ticks: float) -> datetime.date:
    """The local date at a number of seconds since 1970."""
    return datetime.date.fromtimestamp(ticks)


def TimeFromTicks(ticks: float) -> datetime.time:
    """The local time of day at a number of seconds since 1970."""
    return datetime.datetime.fromtimestamp(ticks).time()


def TimestampFromTicks(ticks: float) -> datetime.datetime:
    """The local date and time at a number of seconds since 1970."""
    return datetime.datetime.fromtimestamp(ticks)
