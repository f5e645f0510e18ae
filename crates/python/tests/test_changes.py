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
    # Values of other types, and values that no row can have.
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
    with pytest.raises(entasis.ConflictError, match="^Conflict: .*table t.*k = 1") as raised:
        other.commit()
    assert raised.value.sqlstate == "40001"
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


def test_a_layout_says_what_it_does_not_do(con):
    create = "CREATE TABLE t (k BIGINT PRIMARY KEY) WITH (layout = 'casper')"
    with pytest.warns(UserWarning, match="all of one size"):
        con.execute(create)
    with pytest.warns(UserWarning, match="casper"):
        con.execute("ALTER TABLE t SET (layout = 'casper')")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        con.execute("ALTER TABLE t SET (layout = 'sorted')")


def test_a_batch_is_all_or_nothing(table):
    other = table.duplicate()
    for statement, sets in [
        # By key, and with a plan.
        ("INSERT INTO t VALUES (?, 0, '')", [(2000,), (2001,), (5,)]),
        ("INSERT INTO t SELECT ?, 0, ''", [(2000,), (2001,), (5,)]),
        ("UPDATE t SET k = ? WHERE k = ?", [(3000, 1), (2, 3)]),
        ("INSERT INTO t VALUES (?, ?, '')", [(2000, 1), (2001, "x")]),
        ("DELETE FROM t WHERE k IN ? AND 1 / (? - 1) > 0", [([1, 2], 2), ([3], 1)]),
    ]:
        with pytest.raises(entasis.Error):
            table.executemany(statement, sets)
        assert not table.in_transaction
        assert other.execute("SELECT count(*), sum(k) FROM t").fetchone() == (1000, 499500), statement
    assert table.executemany("INSERT INTO t VALUES (?, 0, '')", [(2000,), (2001,)]).rowcount == 2
    assert other.execute("SELECT count(*) FROM t").fetchone() == (1002,)
    assert table.executemany("INSERT INTO t VALUES (?, 0, '')", []).rowcount == 0


def test_a_batch_that_fails_within_a_transaction_undoes_itself(table):
    table.begin()
    table.execute("INSERT INTO t VALUES (2000, 0, '')")
    with pytest.raises(entasis.IntegrityError):
        table.executemany("INSERT INTO t VALUES (?, 0, '')", [(2001,), (5,)])
    table.executemany("INSERT INTO t VALUES (?, 0, '')", [(2002,), (2003,)])
    table.commit()
    assert table.execute("SELECT k FROM t WHERE k > 1000 ORDER BY k").fetchall() == [(2000,), (2002,), (2003,)]


def test_a_batch_does_not_end_a_transaction(table):
    for statement in ["COMMIT", "BEGIN"]:
        with pytest.raises(entasis.ProgrammingError, match="batch"):
            table.executemany(statement, [()])
    with pytest.raises(entasis.ProgrammingError, match="one statement"):
        table.executemany("SELECT 1; SELECT 2", [()])


def test_batches_beside_other_writers_are_run_again(table):
    def add(connection):
        done = 0
        while done < 20:
            # A batch is retried automatically a few times, and then raises.
            try:
                connection.executemany("UPDATE t SET a = a + 1 WHERE k = ?", [(k,) for k in range(5)])
                done += 1
            except entasis.ConflictError:
                pass

    table.execute("UPDATE t SET a = 0")
    threads = [threading.Thread(target=add, args=(table.duplicate(),)) for _ in range(2)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert table.execute("SELECT sum(a) FROM t").fetchone() == (200,)


def test_remembered_statements_survive_other_names(con):
    con.execute("CREATE TABLE r (a INTEGER); INSERT INTO r VALUES (1)")
    con.execute("ALTER TABLE r RENAME TO r2")
    for _ in range(3):
        assert con.execute("SELECT * FROM r2").fetchall() == [(1,)]
    con.execute("CREATE TABLE r (x INTEGER); INSERT INTO r VALUES (2)")
    for _ in range(3):
        assert con.execute("SELECT * FROM r2").fetchall() == [(1,)]
        assert con.execute("SELECT * FROM r").fetchall() == [(2,)]
    con.execute("ALTER TABLE r RENAME TO r3")
    for _ in range(3):
        assert con.execute("SELECT * FROM r2").fetchall() == [(1,)]
        assert con.execute("SELECT * FROM r3").fetchall() == [(2,)]
    con.execute("DROP TABLE r2")
    con.execute("ALTER TABLE r3 RENAME TO r2")
    for _ in range(3):
        assert con.execute("SELECT * FROM r2").fetchall() == [(2,)]
