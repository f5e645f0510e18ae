"""Transactions as blocks, and functions that are run again when they lose against another transaction."""

from __future__ import annotations

import contextlib
import itertools
from typing import TYPE_CHECKING, Callable, Iterator, TypeVar

from ._entasis import ConflictError, InterfaceError, ProgrammingError

if TYPE_CHECKING:
    from ._connection import Connection

_Result = TypeVar("_Result")

#: Savepoints have names of their own, so that one block cannot end that of another.
_numbers = itertools.count(1)


@contextlib.contextmanager
def transaction(connection: Connection) -> Iterator[Connection]:
    """The block is a transaction, or within one a savepoint; an exception undoes what it did."""
    if connection.in_transaction:
        with _savepoint(connection):
            yield connection
        return
    connection.begin()
    try:
        yield connection
    except BaseException:
        connection.rollback()
        raise
    # A commit that fails has ended the transaction.
    connection.commit()


@contextlib.contextmanager
def _savepoint(connection: Connection) -> Iterator[None]:
    name = f"entasis_block_{next(_numbers)}"
    connection.execute(f"SAVEPOINT {name}")
    try:
        yield
    except BaseException:
        # If the block has ended the transaction, the savepoint is gone.
        if connection.in_transaction:
            connection.execute(f"ROLLBACK TO {name}")
            connection.execute(f"RELEASE {name}")
        raise
    connection.execute(f"RELEASE {name}")


def retry(connection: Connection, work: Callable[[Connection], _Result], attempts: int) -> _Result:
    """What `work` returns, run in a transaction, which is tried so often if it conflicts with others."""
    if attempts < 1:
        raise InterfaceError(f"retry() takes one attempt or more, not {attempts}")
    if connection.in_transaction:
        raise ProgrammingError(
            "retry() begins a transaction of its own, and one is open: it would see the same rows again"
        )
    held = None
    for conflicts in itertools.count():
        # Whoever has lost once holds the retry lock until it is done, so that nobody loses always.
        held = connection._retry_guard(conflicts, held)
        try:
            with transaction(connection):
                return work(connection)
        except ConflictError:
            if conflicts + 1 == attempts:
                raise
    raise AssertionError("one of the attempts is the last")
