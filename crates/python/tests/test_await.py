"""Statements in asyncio."""

import asyncio
import time

import pytest

import entasis

SLOW = "SELECT count(*) FROM range(100000) a(i), range(100000) b(j), range(1000) c(k) WHERE i + j + k = -1"


def test_statements_are_awaited(con):
    async def work():
        await con.aexecute("CREATE TABLE t (a INTEGER)")
        cursor = await con.aexecutemany("INSERT INTO t VALUES (?)", [(1,), (2,)])
        assert cursor.rowcount == 2
        cursor = await con.aexecute("SELECT sum(a) FROM t WHERE a > ?", [0])
        relations = await asyncio.gather(*(con.asql("SELECT sum(a) + ? FROM t", [n]) for n in range(5)))
        return cursor.fetchval(), [relation.fetchval() for relation in relations]

    assert asyncio.run(work()) == (3, [3, 4, 5, 6, 7])


def test_variables_are_those_of_the_caller(con):
    pytest.importorskip("pyarrow")

    async def work():
        rows = [{"a": 4}]
        return (await con.aexecute("SELECT a FROM rows")).fetchval(), rows

    assert asyncio.run(work())[0] == 4


def test_other_tasks_run_meanwhile_and_cancelling_interrupts(con):
    async def work():
        slow = asyncio.ensure_future(con.aexecute(SLOW))
        ticks = 0
        for _ in range(10):
            await asyncio.sleep(0.01)
            ticks += 1
        waiting = asyncio.ensure_future(con.aexecute("CREATE TABLE never (a INTEGER)"))
        await asyncio.sleep(0)
        # One that has not begun does not disturb the one that runs.
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert not slow.done()
        began = time.monotonic()
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        assert (await con.aexecute("SELECT 1")).fetchval() == 1
        return ticks, time.monotonic() - began

    ticks, seconds = asyncio.run(work())
    assert ticks == 10 and seconds < 5
    assert con.tables() == []


def test_errors_and_timeouts(con):
    async def work():
        with pytest.raises(entasis.ProgrammingError, match="LINE 1"):
            await con.aexecute("SELECT nothing")
        await asyncio.wait_for(con.aexecute(SLOW), 0.1)

    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(work())
    assert con.execute("SELECT 1").fetchval() == 1
