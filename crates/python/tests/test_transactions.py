"""Blocks that are transactions, and functions that are tried again."""

import threading

import pytest

import entasis


@pytest.fixture
def table(con):
    con.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, a INTEGER)")
    con.execute("INSERT INTO t VALUES (1, 0), (2, 0)")
    return con


def amounts(con):
    return con.execute("SELECT a FROM t ORDER BY k").fetchall()


def test_a_block_is_committed_or_undone(table):
    with table.transaction() as same:
        assert same is table and table.in_transaction
        table.execute("UPDATE t SET a = 1")
    assert not table.in_transaction and amounts(table) == [(1,), (1,)]
    with pytest.raises(ZeroDivisionError):
        with table.transaction():
            table.execute("UPDATE t SET a = 2")
            1 / 0
    assert not table.in_transaction and amounts(table) == [(1,), (1,)]
    # An error of the database that is caught within does not end the block.
    with table.transaction():
        with pytest.raises(entasis.IntegrityError):
            table.execute("INSERT INTO t VALUES (1, 5)")
        table.execute("INSERT INTO t VALUES (3, 5)")
    assert amounts(table) == [(1,), (1,), (5,)]


def test_a_block_within_a_transaction_is_a_savepoint(table):
    with table.transaction():
        table.execute("UPDATE t SET a = 1 WHERE k = 1")
        with pytest.raises(ZeroDivisionError):
            with table.transaction():
                table.execute("UPDATE t SET a = 7")
                with table.transaction():
                    table.execute("UPDATE t SET a = 8")
                1 / 0
        assert table.in_transaction and amounts(table) == [(1,), (0,)]
        with table.transaction():
            table.execute("UPDATE t SET a = 2 WHERE k = 2")
    assert amounts(table) == [(1,), (2,)]


def test_a_block_that_ends_its_transaction_itself(table):
    with table.transaction():
        table.execute("UPDATE t SET a = 1")
        table.rollback()
    assert amounts(table) == [(0,), (0,)]


def test_conflicts_are_tried_again(table):
    other = table.duplicate()
    calls = []

    def work(con):
        calls.append(con.in_transaction)
        con.execute("SELECT * FROM t").fetchall()
        if len(calls) < 3:
            # Another transaction is first.
            other.execute("UPDATE t SET a = a + 1 WHERE k = 1")
        con.execute("UPDATE t SET a = a + 10 WHERE k = 1")
        return "done"

    assert table.retry(work) == "done"
    assert calls == [True] * 3 and amounts(table)[0] == (12,)
    calls.clear()
    with pytest.raises(entasis.ConflictError):
        table.retry(work, attempts=2)
    assert len(calls) == 2 and not table.in_transaction


def test_other_errors_are_not_tried_again(table):
    calls = []

    def work(con):
        calls.append(con.execute("UPDATE t SET a = 5").rowcount)
        raise KeyError("own")

    with pytest.raises(KeyError):
        table.retry(work)
    assert calls == [2] and amounts(table) == [(0,), (0,)]
    with table.transaction(), pytest.raises(entasis.ProgrammingError, match="one is open"):
        table.retry(work)
    with pytest.raises(entasis.InterfaceError, match="not 0"):
        table.retry(work, attempts=0)


def test_threads_that_write_the_same_row_all_succeed(table):
    def add(con):
        (amount,) = con.execute("SELECT a FROM t WHERE k = 1").fetchone()
        con.execute("UPDATE t SET a = ? WHERE k = 1", [amount + 1])

    def run():
        con = table.duplicate()
        for _ in range(20):
            con.retry(add)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert amounts(table)[0] == (60,)
