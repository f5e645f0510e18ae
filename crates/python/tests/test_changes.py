"""Rows change: by key, in transactions, in batches, by several connections."""

import threading
import warnings

import pytest

import entasis


@pytest.fixture
def table(con):
    con.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, a INTEGER, s VARCHAR)")
    con.executemany("INSERT INTO t VALUES (?, ?, ?)", [(i, i * 10, f"row {i}") for i in range(1000)])
    return con


def test_rows_are_read_and_written_by_key(table):
    assert table.execute("SELECT a, s FROM t WHERE k = ?", (7,)).fetchone() == (70, "row 7")
    assert table.execute("UPDATE t SET a = ? WHERE k = ?", (-1, 7)).rowcount == 1
    assert table.execute("SELECT a FROM t WHERE k = ?", (7,)).fetchall() == [(-1,)]
    assert table.execute("DELETE FROM t WHERE k = ?", (7,)).rowcount == 1
    assert table.execute("DELETE FROM t WHERE k = ?", (7,)).rowcount == 0
    assert table.execute("SELECT a FROM t WHERE k = ?", (7,)).fetchall() == []
    assert table.execute("INSERT INTO t VALUES (?, ?, ?)", (7, 1, None)).rowcount == 1
    assert table.execute("SELECT s FROM t WHERE k = ?", (7,)).fetchone() == (None,)
    with pytest.raises(entasis.IntegrityError, match="k = 7"):
        table.execute("INSERT INTO t VALUES (?, ?, ?)", (7, 1, None))
    assert table.execute("SELECT count(*) FROM t").fetchone() == (1000,)


def test_a_query_that_is_run_again_sees_the_newest_rows(table):
    query = "SELECT count(*), sum(a) FROM t WHERE k BETWEEN ? AND ?"
    for _ in range(4):
        assert table.execute(query, (10, 19)).fetchone() == (10, 1450)
    table.execute("DELETE FROM t WHERE k = 10")
    assert table.execute(query, (10, 19)).fetchone() == (9, 1350)
    assert table.execute(query, (0, 4)).fetchone() == (5, 100)
    # Values of other types, and such as no row can have.
    assert table.execute(query, (10.5, 19)).fetchone() == (9, 1350)
    assert table.execute(query, (2**40, 2**41)).fetchone() == (0, None)
    assert table.execute(query, (None, 19)).fetchone() == (0, None)
    # Another table of that name.
    table.execute("DROP TABLE t")
    with pytest.raises(entasis.ProgrammingError, match="no table t"):
        table.execute(query, (0, 4))
    table.execute("CREATE TABLE t AS SELECT 3 AS k, 4.5 AS a")
    assert [str(v) for v in table.execute(query, (0, 4)).fetchone()] == ["1", "4.5"]


def test_a_registered_table_comes_before_a_stored_one(table):
    pyarrow = pytest.importorskip("pyarrow")
    query = "SELECT count(*) FROM t WHERE k >= ?"
    for _ in range(3):
        assert table.execute(query, (0,)).fetchone() == (1000,)
    table.register("t", pyarrow.table({"k": [1, 2, 3]}))
    assert table.execute(query, (0,)).fetchone() == (3,)
    table.unregister("t")
    assert table.execute(query, (0,)).fetchone() == (1000,)


def test_the_time_is_that_of_each_run(con):
    times = {con.execute("SELECT now() WHERE 1 = ?", (1,)).fetchone() for _ in range(4)}
    assert len(times) == 4


def test_transactions(table):
    other = table.duplicate()
    table.begin()
    assert table.in_transaction and not other.in_transaction
    table.execute("UPDATE t SET a = 0 WHERE k = 1")
    table.execute("INSERT INTO t VALUES (5000, 1, 'new')")
    assert table.execute("SELECT a FROM t WHERE k = 1").fetchone() == (0,)
    assert other.execute("SELECT a FROM t WHERE k = 1").fetchone() == (10,)
    table.rollback()
    assert table.execute("SELECT a FROM t WHERE k = 1").fetchone() == (10,)
    assert table.execute("SELECT count(*) FROM t").fetchone() == (1000,)
    table.begin()
    table.execute("DELETE FROM t WHERE k < 10")
    table.commit()
    assert not table.in_transaction
    assert other.execute("SELECT count(*) FROM t").fetchone() == (990,)


def test_the_first_to_commit_wins(table):
    other = table.duplicate()
    table.begin()
    other.begin()
    table.execute("UPDATE t SET a = 1 WHERE k = 1")
    other.execute("UPDATE t SET a = 2 WHERE k = 1")
    table.commit()
    with pytest.raises(entasis.OperationalError, match="table t.*k = 1"):
        other.commit()
    assert other.execute("SELECT a FROM t WHERE k = 1").fetchone() == (1,)


def test_a_statement_that_fails_undoes_itself(table):
    with pytest.raises(entasis.IntegrityError):
        table.execute("UPDATE t SET k = 5 WHERE k < 3")
    assert table.execute("SELECT count(*), sum(k) FROM t").fetchone() == (1000, 499500)
    table.begin()
    table.execute("UPDATE t SET a = 0")
    with pytest.raises(entasis.IntegrityError):
        table.execute("INSERT INTO t SELECT k + 999, 0, '' FROM t")
    table.commit()
    assert table.execute("SELECT count(*), sum(a) FROM t").fetchone() == (1000, 0)


def test_threads_write_beside_one_another(table):
    table.execute("CREATE TABLE c (k INTEGER PRIMARY KEY, n INTEGER NOT NULL)")
    table.executemany("INSERT INTO c VALUES (?, 0)", [(i,) for i in range(4)])

    def count(connection, key):
        for _ in range(500):
            connection.execute("UPDATE c SET n = ? WHERE k = ?", (
                connection.execute("SELECT n FROM c WHERE k = ?", (key,)).fetchone()[0] + 1, key))

    threads = [threading.Thread(target=count, args=(table.duplicate(), key)) for key in range(4)]
    [thread.start() for thread in threads]
    for _ in range(50):
        assert table.execute("SELECT count(*) FROM c").fetchone() == (4,)
    [thread.join() for thread in threads]
    assert table.execute("SELECT n FROM c").fetchall() == [(500,)] * 4


def test_a_layout_that_is_not_all_there_says_so(con):
    create = "CREATE TABLE t (k BIGINT PRIMARY KEY) WITH (layout = 'casper')"
    with pytest.warns(UserWarning, match="not yet chosen by workload"):
        con.execute(create)
    with pytest.warns(UserWarning, match="casper"):
        con.execute("ALTER TABLE t SET (layout = 'casper')")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        con.execute("ALTER TABLE t SET (layout = 'sorted')")
