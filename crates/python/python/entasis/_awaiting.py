"""Statements for `asyncio`: they run on a thread, one after the other, and cancelling a task interrupts its own.

A connection that is used so has one thread more, which waits for its statements.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import sys
from typing import TYPE_CHECKING, Awaitable, Callable, TypeVar

if TYPE_CHECKING:
    from ._connection import Connection

_Result = TypeVar("_Result")


class Turns:
    """The thread on which a connection runs the statements of tasks."""

    def __init__(self) -> None:
        self._thread = concurrent.futures.ThreadPoolExecutor(1, "entasis-await")

    def run(self, connection: Connection, call: Callable[[], _Result]) -> Awaitable[_Result]:
        """What `call` returns; it runs statements, and may name variables of the caller's caller."""
        # The compiled part goes on looking for variables in this frame.
        frame = sys._getframe(2)

        def called() -> _Result:
            caller = frame  # noqa: F841
            return call()

        return _awaited(connection, self._thread.submit(called))


async def _awaited(connection: Connection, running: concurrent.futures.Future[_Result]) -> _Result:
    try:
        return await asyncio.wrap_future(running)
    except asyncio.CancelledError:
        # It had not begun, or is running now: no other statement of the connection is.
        if not running.cancel():
            connection.interrupt()
        raise
