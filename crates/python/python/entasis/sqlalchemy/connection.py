"""The connections that the pool keeps: those of the package, with an isolation level.

A connection of the package commits each statement until ``begin()`` is called. SQLAlchemy calls it before the first
statement of a transaction, and so it does nothing where the level is AUTOCOMMIT.
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
    """A connection of the package, which is its `driver_connection`."""

    __slots__ = ("level",)

    def __init__(self, connection: entasis.Connection) -> None:
        self._connection: Any = connection
        self.level = SNAPSHOT

    def begin(self) -> None:
        """Begins a transaction, unless the level is AUTOCOMMIT."""
        if self.level != AUTOCOMMIT and not self._connection.in_transaction:
            self._connection.begin()

    def __getattr__(self, name: str) -> Any:
        # `cursor`, `commit`, `register` and all else that the package has.
        return getattr(self._connection, name)
