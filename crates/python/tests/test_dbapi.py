"""DB-API 2.0: connections, cursors, parameters, exceptions."""

import datetime
import decimal
import threading
import uuid

import pytest

import entasis


def test_module_attributes():
    assert (entasis.apilevel, entasis.threadsafety, entasis.paramstyle) == ("2.0", 2, "qmark")
    assert issubclass(entasis.ProgrammingError, entasis.DatabaseError)
    assert issubclass(entasis.DatabaseError, entasis.Error)


def test_rows_are_fetched_one_some_and_all(con):
    cursor = con.execute("SELECT * FROM (VALUES (1), (2), (3), (4), (5)) v(i) ORDER BY i")
    assert cursor.rowcount == 5
    assert cursor.fetchone() == (1,)
    assert cursor.fetchmany(2) == [(2,), (3,)]
    assert cursor.fetchall() == [(4,), (5,)]
    assert cursor.fetchone() is None
    assert cursor.fetchall() == []


def test_cursors_iterate(con):
    assert list(con.execute("SELECT i FROM (VALUES (1), (2)) v(i) ORDER BY i")) == [(1,), (2,)]


def test_description_names_columns_and_types(con):
    cursor = con.execute("SELECT 1 AS n, 'a' AS s, DATE '2024-02-29' AS d, 1.5::DECIMAL(4,1) AS x")
    names = [column[0] for column in cursor.description]
    types = [column[1] for column in cursor.description]
    assert names == ["n", "s", "d", "x"]
    assert types[0] == entasis.NUMBER and types[1] == entasis.STRING
    assert types[2] == entasis.DATETIME and types[3] == "DECIMAL(4,1)" and types[3] == entasis.NUMBER
    assert all(len(column) == 7 for column in cursor.description)
    assert con.cursor().description is None


def test_tables_are_made_filled_and_read(con):
    assert con.execute("CREATE TABLE t (n BIGINT, name VARCHAR)").description is None
    cursor = con.cursor()
    cursor.executemany("INSERT INTO t VALUES (?, ?)", [(i, f"name {i}") for i in range(10)])
    assert cursor.rowcount == 10
    assert con.execute("SELECT count(*), max(name) FROM t").fetchone() == (10, "name 9")
    assert con.tables() == ["t"]


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        42,
        -(2**63),
        2**100,
        1.5,
        float("inf"),
        "it's 漢字",
        "",
        b"\x00\xff",
        datetime.date(2024, 2, 29),
        datetime.date(1, 1, 1),
        datetime.time(23, 59, 59, 999999),
        datetime.datetime(1969, 12, 31, 23, 59, 59, 999999),
        datetime.datetime(9999, 12, 31, tzinfo=datetime.timezone.utc),
        datetime.timedelta(days=-3, hours=5, microseconds=7),
        decimal.Decimal("-123.4500"),
        decimal.Decimal("0.00001"),
        uuid.UUID("f81d4fae-7dec-11d0-a765-00a0c91e6bf6"),
        uuid.UUID("00000000-0000-0000-0000-000000000001"),
    ],
)
def test_values_go_in_and_come_out_again(con, value):
    (result,) = con.execute("SELECT ?", [value]).fetchone()
    assert result == value
    if value is not None and not isinstance(value, int):
        assert type(result) is type(value)


def test_times_with_a_zone_come_back_in_utc(con):
    zone = datetime.timezone(datetime.timedelta(hours=5, minutes=30))
    value = datetime.datetime(2024, 1, 1, 3, 0, tzinfo=zone)
    (result,) = con.execute("SELECT ?", [value]).fetchone()
    assert result == value and result.tzinfo == datetime.timezone.utc


def test_parameters_by_mark_and_by_number(con):
    assert con.execute("SELECT ? + ?", (1, 2)).fetchone() == (3,)
    assert con.execute("SELECT $2 - $1", (1, 2)).fetchone() == (1,)


def test_wrong_parameters_are_refused(con):
    with pytest.raises(entasis.InterfaceError):
        con.execute("SELECT ?", "abc")
    with pytest.raises(entasis.InterfaceError, match="object"):
        con.execute("SELECT ?", [object()])
    with pytest.raises(entasis.DataError):
        con.execute("SELECT ?", [10**38])
    with pytest.raises(entasis.ProgrammingError):
        con.execute("SELECT ?", [])


def test_errors_say_what_is_wrong_and_the_connection_goes_on(con):
    con.execute("CREATE TABLE t (price BIGINT)")
    with pytest.raises(entasis.ProgrammingError, match="pricee"):
        con.execute("SELECT pricee FROM t")
    with pytest.raises(entasis.ProgrammingError):
        con.execute("SELEC 1")
    with pytest.raises(entasis.ProgrammingError):
        con.execute("SELECT 1 / 0")
    with pytest.raises(entasis.OperationalError):
        con.execute("SELECT * FROM 'there-is-no-such.parquet'")
    assert con.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_database_files_are_not_there_yet(tmp_path):
    with pytest.raises(entasis.NotSupportedError):
        entasis.connect(tmp_path / "a.entasis")


def test_options(con):
    with entasis.connect(threads=1, memory_limit="1GB") as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    with pytest.raises(entasis.ProgrammingError, match="no_such_option"):
        entasis.connect(no_such_option=1)


def test_what_is_closed_stays_closed(con):
    connection = entasis.connect()
    cursor = connection.execute("SELECT 1")
    connection.close()
    assert cursor.fetchall() == [(1,)]
    with pytest.raises(entasis.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")
    cursor = con.cursor()
    cursor.close()
    with pytest.raises(entasis.ProgrammingError, match="closed"):
        cursor.execute("SELECT 1")


def test_fetching_nothing_is_an_error(con):
    with pytest.raises(entasis.InterfaceError):
        con.cursor().fetchone()
    with pytest.raises(entasis.InterfaceError):
        con.execute("CREATE TABLE t (i BIGINT)").fetchall()


def test_threads_share_a_connection(con):
    con.execute("CREATE TABLE t AS SELECT * FROM (VALUES (1), (2), (3)) v(i)")
    results = []

    def ask():
        for _ in range(20):
            results.append(con.execute("SELECT sum(i) FROM t").fetchone()[0])

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [6] * 80


def test_the_default_connection_is_shared():
    assert entasis.sql("SELECT 40 + 2 AS answer").fetchall() == [(42,)]
    assert entasis.default_connection() is entasis.default_connection()
