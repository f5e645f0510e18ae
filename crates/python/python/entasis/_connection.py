"""Connections as programs see them: the compiled class, and what needs no Rust."""

from __future__ import annotations

import _thread
import os

from . import _entasis
from ._entasis import InterfaceError

# What most programs do not use, and `typing`, is imported when it is: a program waits for its imports.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Awaitable, Callable, ContextManager, Iterable, Mapping, Sequence, TypeVar

    from ._awaiting import Turns
    from ._entasis import Cursor, Relation
    from ._query import Query

    _Result = TypeVar("_Result")
    _Parameters = Sequence[Any] | Mapping[str, Any]


class Connection(_entasis.Connection):
    """A connection to a database. Threads may share it; their statements run one at a time."""

    __module__ = "entasis"

    def duplicate(self) -> Connection:
        """Returns another connection to the same database, with settings and transactions of its own."""
        return Connection(beside=self)

    # ---- transactions ------------------------------------------------------------------------------------

    def transaction(self) -> ContextManager[Connection]:
        """A block that is a transaction: committed at its end, rolled back if it ends with an exception.

        >>> with con.transaction():
        ...     con.execute("UPDATE accounts SET amount = amount - 10 WHERE id = 1")
        ...     con.execute("UPDATE accounts SET amount = amount + 10 WHERE id = 2")

        Within a transaction the block is a savepoint: an exception undoes what the block did.
        """
        from . import _transactions

        return _transactions.transaction(self)

    def retry(self, work: Callable[[Connection], _Result], *, attempts: int = 10) -> _Result:
        """Calls `work(connection)` in a transaction, and returns what it returns.

        If the transaction loses against another one (`ConflictError`), it is rolled back, and `work` called
        again after a short wait, up to `attempts` times in all. So `work` should do nothing that may not
        happen twice.
        """
        from . import _transactions

        return _transactions.retry(self, work, attempts)

    # ---- queries that are composed -----------------------------------------------------------------------

    def table(self, name: str) -> Query:
        """The rows of a table or view, as a query that can be composed further and has not run."""
        from ._query import Query

        return Query.of_table(self, name)

    def query(self, query: Any, parameters: Sequence[Any] = ()) -> Query:
        """A query that can be composed further and has not run: of SQL, or of the rows of an object.

        >>> con.query("SELECT * FROM t").filter("a > ?", [3]).order("a").limit(10).fetchall()
        >>> con.query(frame).aggregate("sum(x)", group_by="g").df()
        """
        from ._query import Query

        return Query.of(self, query, parameters)

    # ---- asyncio -----------------------------------------------------------------------------------------

    def aexecute(
        self, operation: str, parameters: _Parameters | None = None, *, timeout: float | None = None
    ) -> Awaitable[Cursor]:
        """As `execute`, for `await`: other tasks run meanwhile. Cancelling the task interrupts the statement."""
        return self._turns.run(self, lambda: self.execute(operation, parameters, timeout=timeout))

    def aexecutemany(
        self, operation: str, seq_of_parameters: Iterable[_Parameters], *, timeout: float | None = None
    ) -> Awaitable[Cursor]:
        """As `executemany`, for `await`."""
        return self._turns.run(self, lambda: self.executemany(operation, seq_of_parameters, timeout=timeout))

    def asql(
        self, query: str, parameters: _Parameters | None = None, *, timeout: float | None = None
    ) -> Awaitable[Relation]:
        """As `sql`, for `await`."""
        return self._turns.run(self, lambda: self.sql(query, parameters, timeout=timeout))

    @property
    def _turns(self) -> Turns:
        from ._awaiting import Turns

        with _making:
            turns = self.__dict__.get("_turns_")
            if turns is None:
                turns = self.__dict__["_turns_"] = Turns()
            return turns


#: Held while the thread of a connection is made.
_making = _thread.allocate_lock()


def connect(
    database: str | os.PathLike[str] | None = None,
    *,
    read_only: bool = False,
    threads: int | None = None,
    memory_limit: str | int | None = None,
    allow_missing_log: bool = False,
    settings: Mapping[str, Any] | None = None,
    timeout: float | None = None,
) -> Connection:
    """Opens a database and returns a connection to it.

    Args:
        database: A file, which is created if there is none; without one, or with ``":memory:"``, a new database
            in memory. ``":memory:name"`` is one that all connections of the process share, as long as one is
            open.
        read_only: Opens a file that another process may be writing to.
        threads: The most threads of a statement; as many as there are cores by default.
        memory_limit: What tables, statements and results may use together, such as ``"2GB"`` or ``"50%"``; 80 %
            of the machine's memory by default.
        allow_missing_log: Opens the last checkpoint of a file whose log is lost.
        settings: Settings of the connection by name, as in SQL's ``SET``.
        timeout: The most seconds a statement may take; any number by default. One that takes longer is
            cancelled, and raises ``OperationalError``.

    ``threads`` and ``memory_limit`` are those of the process's first connection to a file.
    """
    options: dict[str, Any] = {"read_only": read_only, "allow_missing_log": allow_missing_log}
    options.update(
        (name, value) for name, value in [("threads", threads), ("memory_limit", memory_limit)] if value is not None
    )
    connection = Connection(database, options)
    try:
        connection.timeout = timeout
        for name, value in (settings or {}).items():
            connection.execute(f"SET {_setting(name)} = {_literal(value)}")
    except BaseException:
        connection.close()
        raise
    return connection


def _setting(name: str) -> str:
    if not isinstance(name, str) or not (name.isascii() and name.isidentifier()):
        raise InterfaceError(f"{name!r} is not the name of a setting")
    return name


def _literal(value: Any) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return "'" + text.replace("'", "''") + "'"
