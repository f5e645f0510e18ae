"""Entasis: the columnar database you can update, in your process.

>>> import entasis
>>> entasis.sql("SELECT 40 + 2 AS answer").fetchone()
(42,)

``connect()`` opens a database and returns a DB-API 2.0 connection; ``sql()`` runs a query on a connection
that the process shares. Tables may be files (``FROM 'a.parquet'``) and variables of the caller that hold
pandas, polars or Arrow data.
"""

from __future__ import annotations

import _thread
import os

from ._dbapi import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
)
from ._connection import Connection, connect
from ._entasis import (
    ConflictError,
    Cursor,
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Relation,
    Stream,
    Warning,
    __version__,
)

# What most programs do not use, and `typing`, is imported when it is: a program waits for its imports.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._query import Query
    from ._rows import dict_row, namedtuple_row
    from ._values import Map

_LATER = {"Query": "_query", "dict_row": "_rows", "namedtuple_row": "_rows", "Map": "_values"}

#: The version of DB-API.
apilevel = "2.0"
#: Threads may share the module and connections.
threadsafety = 2
#: Parameters are written ``?``; numbers, ``$1`` and ``$2``, and names, ``$name`` and ``:name``, work too.
paramstyle = "qmark"

_default: Connection | None = None
_default_lock = _thread.allocate_lock()


def default_connection() -> Connection:
    """The connection to the process's own in-memory database, which `sql` uses."""
    global _default
    with _default_lock:
        if _default is None:
            _default = connect()
        return _default


def _forked() -> None:
    """A process that was forked has a database of its own, which is empty."""
    global _default, _default_lock
    _default, _default_lock = None, _thread.allocate_lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def sql(query: str, parameters: Any = None) -> Relation:
    """Runs a query on the process's own in-memory database and returns its whole result."""
    return default_connection().sql(query, parameters)


def __getattr__(name: str) -> Any:
    """Names that are imported when they are first used."""
    if name not in _LATER:
        raise AttributeError(f"module 'entasis' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(f"entasis.{_LATER[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})


def load_ipython_extension(ipython: Any) -> None:
    """What `%load_ext entasis` calls: `%sql` and `%%sql` run SQL in IPython and Jupyter."""
    from ._magic import load

    load(ipython)


__all__ = [
    "BINARY",
    "Binary",
    "ConflictError",
    "Connection",
    "Cursor",
    "DATETIME",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "Map",
    "NUMBER",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Query",
    "ROWID",
    "Relation",
    "Stream",
    "STRING",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "__version__",
    "apilevel",
    "connect",
    "default_connection",
    "dict_row",
    "load_ipython_extension",
    "namedtuple_row",
    "paramstyle",
    "sql",
    "threadsafety",
]
