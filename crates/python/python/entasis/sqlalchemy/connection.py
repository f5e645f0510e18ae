"""The connections that the pool keeps: those of the package, which remember their isolation level.

A connection of the package commits each statement until ``begin()`` is called. SQLAlchemy expects a
transaction to begin with the first statement, unless the level is AUTOCOMMIT: so the dialect calls ``begin``
here, which does what the level asks for.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy.engine import AdaptedConnection

import entasis

#: Each statement is committed.
AUTOCOMMIT = "AUTOCOMMIT"
#: What a transaction is otherwise.
SNAPSHOT = "SNAPSHOT"
#: The levels, of which REPEATABLE READ is PostgreSQL's name for SNAPSHOT.
LEVELS = (SNAPSHOT, "REPEATABLE READ", AUTOCOMMIT)


class PooledConnection(AdaptedConnection):
    """A connection of the package, which is its `driver_connection`, with an isolation level."""

    __slots__ = ("level",)

    def __init__(self, connection: entasis.Connection) -> None:
        self._connection: Any = connection
        self.level = SNAPSHOT

    def begin(self) -> None:
        """Begins a transaction, unless the level is AUTOCOMMIT."""
        if self.level != AUTOCOMMIT and not self._connection.in_transaction:
            self._connection.begin()

    def cursor(self) -> entasis.Cursor:
        """A new cursor."""
        cursor: entasis.Cursor = self._connection.cursor()
        return cursor

    def execute(self, operation: str, parameters: Any = None) -> entasis.Cursor:
        """Runs SQL on a new cursor and returns the cursor."""
        cursor: entasis.Cursor = self._connection.execute(operation, parameters)
        return cursor

    def commit(self) -> None:
        """Commits the open transaction, if there is one."""
        self._connection.commit()

    def rollback(self) -> None:
        """Rolls back the open transaction, if there is one."""
        self._connection.rollback()

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()

    def __getattr__(self, name: str) -> Any:
        # `register`, `sql` and all else that the package has.
        return getattr(self._connection, name)
