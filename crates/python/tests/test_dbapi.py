"""DB-API 2.0: connections, cursors, parameters, exceptions."""

import datetime
import decimal
import subprocess
import sys
import threading
import uuid
from pathlib import Path

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


def test_statements_are_described_without_being_run(con):
    con.execute("CREATE TABLE t (n BIGINT, name VARCHAR, day DATE)")
    described = con.describe("INSERT INTO t VALUES (?, ?, ?) RETURNING n, day")
    assert described == (["BIGINT", "VARCHAR", "DATE"], [("n", "BIGINT"), ("day", "DATE")])
    assert con.describe("SELECT name FROM t WHERE n = ?") == (["BIGINT"], [("name", "VARCHAR")])
    assert con.execute("SELECT count(*) FROM t").fetchone() == (0,)
    frame = {"x": [1.5]}
    assert con.describe("SELECT x FROM frame WHERE x > ?") == (["DOUBLE"], [("x", "DOUBLE")])
    assert frame
    with pytest.raises(entasis.ProgrammingError):
        con.describe("SELECT nothing FROM t")


def test_rows_are_read_while_the_query_runs(con):
    endless = "SELECT i, 'row ' || i AS name FROM range(1000000000000) r(i)"
    with con.stream(endless) as stream:
        assert stream.fetchone() == (0, "row 0")
        assert stream.fetchmany(2) == [(1, "row 1"), (2, "row 2")]
        assert next(stream) == (3, "row 3")
    assert stream.fetchone() is None
    assert con.execute("SELECT 1").fetchone() == (1,)
    del stream
    stream = con.stream("SELECT i FROM range(?) r(i)", [5000])
    assert list(stream) == [(i,) for i in range(5000)]
    with pytest.raises(entasis.ProgrammingError):
        con.stream("SELECT nothing")
    failing = con.stream("SELECT 1 // (i - 10) FROM range(20) r(i)")
    with pytest.raises(entasis.ProgrammingError):
        list(failing)


def test_a_stream_is_an_arrow_stream(con):
    pyarrow = pytest.importorskip("pyarrow")
    reader = pyarrow.RecordBatchReader.from_stream(con.stream("SELECT i FROM range(100000) r(i)"))
    assert next(reader).num_rows > 0
    assert reader.read_all().num_rows > 0
    endless = pyarrow.RecordBatchReader.from_stream(con.stream("SELECT i FROM range(1000000000000) r(i)"))
    assert next(endless).num_rows > 0
    del endless
    assert con.execute("SELECT 1").fetchone() == (1,)


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
        datetime.time(1, 2, 3, tzinfo=datetime.timezone(-datetime.timedelta(hours=3, minutes=30))),
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
    with pytest.raises(entasis.DataError):
        con.execute("SELECT ?", [10**38])
    for parameters in [[], [1, 2], None, [1, [2]]]:
        with pytest.raises(entasis.ProgrammingError, match="1 parameter,") as raised:
            con.execute("SELECT ?", parameters)
        assert raised.value.sqlstate == "07001"


def test_the_number_of_parameters_is_judged_wherever_a_statement_runs(con):
    con.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, a INTEGER)")
    for statement, wrong in [
        ("INSERT INTO t VALUES (?, ?)", (1, 2, 3)),
        ("SELECT a FROM t WHERE k = ?", (1, 2)),
        ("SELECT 1", (1,)),
        ("SELECT $2", (1,)),
        ("SELECT ?; SELECT 1", (1, 2)),
        ("EXPLAIN SELECT ?", (1, 2)),
    ]:
        # A remembered statement is checked, too.
        for _ in range(3):
            with pytest.raises(entasis.ProgrammingError, match="parameter"):
                con.execute(statement, wrong)
    with pytest.raises(entasis.ProgrammingError, match="parameter"):
        con.executemany("INSERT INTO t VALUES (?, 0)", [(1, 2)])
    with pytest.raises(entasis.ProgrammingError, match="parameter"):
        con.executemany("INSERT INTO t VALUES (?, ?)", [(1, 2), (3,)])
    assert con.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_parameters_by_name(con):
    assert con.execute("SELECT $a - $b, :A", {"a": 3, "B": 1}).fetchone() == (2, 3)
    assert con.sql("SELECT :x || :x", {"x": "y"}).fetchone() == ("yy",)
    assert con.execute("SELECT $b - $a", [3, 1]).fetchone() == (2,)
    assert con.execute("SELECT 1", {}).fetchone() == (1,)
    con.execute("CREATE TABLE t (a INTEGER, b VARCHAR)")
    con.executemany("INSERT INTO t VALUES ($a, $b)", [{"a": 1, "b": "x"}, {"b": None, "a": 2}])
    assert con.execute("SELECT * FROM t ORDER BY a").fetchall() == [(1, "x"), (2, None)]
    assert con.execute("INSERT INTO t VALUES ($a, 'z'); SELECT $b", {"a": 3, "b": 4}).fetchone() == (4,)
    assert con.execute("SELECT '1'::INTEGER, 'a:b', x FROM (SELECT 1 AS x) t WHERE x=:x", {"x": 1}).fetchall() == [
        (1, "a:b", 1)
    ]


def test_each_mark_of_a_script_is_a_parameter_of_its_own(con):
    con.execute("CREATE TABLE marks (a INTEGER, b INTEGER)")
    script = "INSERT INTO marks VALUES (?, ?); SELECT 'none'; SELECT a FROM marks WHERE b = ?"
    assert con.execute(script, (1, 2, 2)).fetchall() == [(1,)]
    for wrong in [(1,), (1, 2), (1, 2, 3, 4)]:
        with pytest.raises(entasis.Error):
            con.execute(script, wrong)
    assert con.execute("SELECT count(*) FROM marks").fetchone() == (1,)


def test_registered_frames_hide_tables_from_queries_only(con, tmp_path):
    pandas = pytest.importorskip("pandas")
    path = str(tmp_path / "shadow.db")
    changes = [
        "ALTER TABLE s ADD COLUMN q INT DEFAULT 5",
        "ALTER TABLE main.s ALTER COLUMN v TYPE VARCHAR",
        "CREATE INDEX i ON s (v)",
        "UPDATE s SET v = v WHERE v + 0 = 777",
        "DELETE FROM s WHERE EXISTS (SELECT 1 FROM s x WHERE x.v = 777)",
    ]
    for change in changes:
        with entasis.connect(path) as connection:
            connection.execute("CREATE OR REPLACE TABLE s (k INT PRIMARY KEY, v INT)")
            connection.execute("INSERT INTO s VALUES (1, 1), (2, 2)")
            connection.register("s", pandas.DataFrame({"k": [1], "v": [777]}))
            try:
                connection.execute(change)
            except entasis.Error:
                pass
            assert connection.execute("SELECT k, v FROM s").fetchall() == [(1, 777)]
            assert connection.execute("SELECT k FROM main.s ORDER BY k").fetchall() == [(1,), (2,)]
        with entasis.connect(path) as connection:
            kept = connection.execute("SELECT k, v::INT FROM s ORDER BY k").fetchall()
            assert kept == [(1, 1), (2, 2)], change


def test_wrong_parameters_by_name_are_refused(con):
    for statement, parameters, text in [
        ("SELECT $a", {"b": 1}, "no parameter b: it has a"),
        ("SELECT $a, $b", {"a": 1}, "parameter b has no value"),
        ("SELECT $a", {"a": 1, "b": 2}, "no parameter b"),
        ("SELECT $a", {"a": 1, "A": 2}, "twice"),
        ("SELECT ?", {"a": 1}, "no parameter a: it has none with names"),
        ("SELECT $a, ?", [1, 2], "one way"),
        ("SELECT $a, $1", [1, 2], "one way"),
        ("SELECT $0", [1], "counted from 1"),
    ]:
        with pytest.raises(entasis.ProgrammingError, match=text):
            con.execute(statement, parameters)
    with pytest.raises(entasis.InterfaceError, match="str"):
        con.execute("SELECT $a", {1: 1})


def test_lists_as_parameters(con):
    numbers = "SELECT i FROM (VALUES (1), (2), (3), (NULL)) v(i) WHERE "
    for condition, parameter, expected in [
        ("i IN ?", [1, 3], [1, 3]),
        ("i IN (?)", (1, 3), [1, 3]),
        ("i = ANY(?)", [3], [3]),
        ("i = ANY(?)", [], []),
        ("i NOT IN ?", [1], [2, 3]),
        ("i NOT IN ?", [1, None], []),
        ("NOT i IN ?", {1, 2}, [3]),
        ("i <> ALL(?)", [1, 2], [3]),
        ("i > ANY(?)", [1, 2], [2, 3]),
        ("i > ALL(?)", [1, 2], [3]),
        ("i < ANY(?)", [], []),
        ("i IN ?", frozenset([2]), [2]),
        ("i IN ? AND i > 0", [2], [2]),
        ("i::VARCHAR IN ?", ["2", "4"], [2]),
    ]:
        rows = con.execute(numbers + condition + " ORDER BY i", [parameter]).fetchall()
        assert rows == [(i,) for i in expected], condition
    assert con.execute(numbers + "i > ALL(?)", [[]]).fetchall() == [(1,), (2,), (3,), (None,)]
    query = "SELECT $a, 2 IN $b, $c"
    assert con.execute(query, {"a": 1, "b": [2, 3], "c": "x"}).fetchone() == (1, True, "x")
    assert con.execute("SELECT position('b' IN ?)", ["abc"]).fetchone() == (2,)
    con.execute("CREATE TABLE t AS SELECT * FROM (VALUES (1), (2), (3), (4)) v(i)")
    con.executemany("DELETE FROM t WHERE i IN ?", [([1, 2],), ([4],)])
    assert con.execute("SELECT i FROM t").fetchall() == [(3,)]


def test_arrays_as_parameters(con):
    numpy = pytest.importorskip("numpy")
    polars = pytest.importorskip("polars")
    for values in [numpy.array([1, 3]), polars.Series([1, 3]), numpy.array([1.0, 3.0])]:
        assert con.execute("SELECT 3 IN ?, 2 IN $1".replace("$1", "?"), [values, values]).fetchone() == (True, False)
    assert con.execute("SELECT ?", [numpy.int64(7)]).fetchone() == (7,)


def test_lists_where_no_list_can_stand_are_refused(con):
    for statement in ["SELECT 1 + ?", "SELECT 1 LIMIT ?", "SELECT coalesce(?, 1)"]:
        with pytest.raises(entasis.ProgrammingError):
            con.execute(statement, [[1, 2]])
    with pytest.raises(entasis.ProgrammingError, match="a list, not one value"):
        con.execute("SELECT 1 IN ?", [1])
    with pytest.raises(entasis.ProgrammingError, match="a list, not one value"):
        con.execute("SELECT 1 = ANY(?)", [1])
    with pytest.raises(entasis.ProgrammingError, match="BIGINT"):
        con.execute("SELECT 1 IN ?", [[[1]]])


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


@pytest.mark.parametrize(
    "statement, exception, sqlstate",
    [
        ("SELEC 1", entasis.ProgrammingError, "42601"),
        ("SELECT 'a", entasis.ProgrammingError, "42601"),
        ("SELECT * FROM nothing_here", entasis.ProgrammingError, "42P01"),
        ("SELECT a FROM (SELECT 1 AS b) t", entasis.ProgrammingError, "42703"),
        ("SELECT no_such_function(1)", entasis.ProgrammingError, "42883"),
        ("SELECT 1 / 0", entasis.ProgrammingError, "22012"),
        ("SELECT 'x'::INTEGER", entasis.ProgrammingError, "22P02"),
        ("SELECT 300::TINYINT", entasis.ProgrammingError, "22003"),
        ("SELECT 1 FROM (SELECT 1) t FOR UPDATE", entasis.NotSupportedError, "0A000"),
        ("INSERT INTO t VALUES (1, 1, 1)", entasis.IntegrityError, "23505"),
        ("INSERT INTO t VALUES (2, NULL, 1)", entasis.IntegrityError, "23502"),
        ("INSERT INTO t VALUES (2, -1, 1)", entasis.IntegrityError, "23514"),
        ("INSERT INTO t VALUES (2, 1, 7)", entasis.IntegrityError, "23503"),
        ("CREATE TABLE t (a INTEGER)", entasis.ProgrammingError, "42P07"),
        ("SELECT * FROM 'there-is-no-such.parquet'", entasis.OperationalError, "58030"),
        ("SELECT " + "(" * 300 + "1" + ")" * 300, entasis.OperationalError, "54001"),
    ],
)
def test_errors_have_an_sqlstate(con, statement, exception, sqlstate):
    con.execute(
        "CREATE TABLE t (k INTEGER PRIMARY KEY, a INTEGER NOT NULL CHECK (a > 0), b INTEGER REFERENCES t)"
    )
    con.execute("INSERT INTO t VALUES (1, 1, 1)")
    with pytest.raises(exception) as raised:
        con.execute(statement)
    assert raised.value.sqlstate == sqlstate, raised.value


def test_errors_of_the_package_itself_have_no_sqlstate(con):
    with pytest.raises(entasis.InterfaceError) as raised:
        con.cursor().fetchone()
    assert raised.value.sqlstate is None
    assert issubclass(entasis.ConflictError, entasis.OperationalError)


def test_database_files_keep_tables(tmp_path):
    with entasis.connect(tmp_path / "my.db") as connection:
        connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b VARCHAR)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [(1, "one"), (2, "two")])
    with entasis.connect(tmp_path / "my.db") as connection:
        assert connection.execute("SELECT b FROM t WHERE a = 2").fetchone() == ("two",)
        with entasis.connect(tmp_path / "my.db") as same:
            assert same.execute("SELECT count(*) FROM t").fetchone() == (2,)
        with pytest.raises(entasis.ProgrammingError, match="cannot be opened read-only as well"):
            entasis.connect(tmp_path / "my.db", read_only=True)
        cursor = connection.execute("SELECT a FROM t ORDER BY a")
    # A closed connection has released the file, though its variables still exist, and keeps what it fetched.
    with entasis.connect(tmp_path / "my.db") as other:
        assert other.execute("SELECT count(*) FROM t").fetchone() == (2,)
    assert cursor.fetchall() == [(1,), (2,)]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["my.db"]


def test_database_files_are_read_beside_a_process_that_writes(tmp_path):
    path = tmp_path / "my.db"
    program = (
        "import sys, entasis\n"
        "connection = entasis.connect(sys.argv[1])\n"
        "for sql in sys.stdin:\n"
        "    connection.execute(sql)\n"
        "    print('done', flush=True)\n"
    )
    command = [sys.executable, "-c", program, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:

        def write(sql):
            print(sql, file=writer.stdin, flush=True)
            assert writer.stdout.readline() == "done\n"

        write("CREATE TABLE t (a INTEGER)")
        with entasis.connect(path, read_only=True) as reader:
            for number in range(5):
                assert reader.execute("SELECT count(*) FROM t").fetchone() == (number,)
                write(f"INSERT INTO t VALUES ({number})")
            with pytest.raises(entasis.ProgrammingError, match="the database my was opened read-only") as raised:
                reader.execute("INSERT INTO t VALUES (7)")
            assert raised.value.sqlstate == "25006"
        with pytest.raises(entasis.OperationalError, match=f"in use by process {writer.pid}"):
            entasis.connect(path)
        writer.stdin.close()
    with pytest.raises(entasis.OperationalError, match="does not exist"):
        entasis.connect(tmp_path / "other.db", read_only=True)


def test_what_is_no_database_is_refused(tmp_path):
    (tmp_path / "text").write_text("a,b\n" * 10_000)
    with pytest.raises(entasis.ProgrammingError, match="is not an Entasis database"):
        entasis.connect(tmp_path / "text")


def test_options(con):
    with entasis.connect(threads=1, memory_limit="1GB") as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    with pytest.raises(TypeError, match="no_such_option"):
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


def test_a_sum_of_bigints_is_an_integer():
    connection = entasis.connect()
    rows = connection.execute("SELECT sum(x), sum(x) + 1 FROM (VALUES (9223372036854775807), (1)) t(x)").fetchall()
    assert rows == [(2**63, 2**63 + 1)]
    assert all(type(value) is int for value in rows[0])
    assert connection.execute("SELECT sum(i) AS s FROM range(5) t(i)").df()["s"].dtype == "int64"


AT_REST = """
import entasis, pathlib, time

def sessions():
    return sum(path.read_text() == "entasis-session\\n" for path in pathlib.Path("/proc/self/task").glob("*/comm"))

con = entasis.connect(threads=1)
planned = "SELECT count(*) FROM (SELECT DISTINCT i % 7 FROM range(1000) t(i))"
for _ in range(3):
    assert con.execute(planned).fetchone() == (7,)
    assert sessions() == 1
deadline = time.monotonic() + 20
while sessions() and time.monotonic() < deadline:
    time.sleep(0.1)
assert sessions() == 0
assert con.execute(planned).fetchone() == (7,)
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the system does not list threads there")
def test_a_session_at_rest_keeps_no_thread():
    subprocess.run([sys.executable, "-c", AT_REST], check=True)


def test_a_session_is_closed_with_its_thread_running(tmp_path):
    path = str(tmp_path / "a.db")
    for _ in range(20):
        con = entasis.connect(path)
        con.execute("CREATE OR REPLACE TABLE t AS SELECT i FROM range(100) r(i)")
        con.close()
        # The file is free as soon as the session is closed.
        with entasis.connect(path) as again:
            assert again.execute("SELECT sum(i) FROM t").fetchone() == (4950,)


def test_exceptions_are_attributes_of_connections(con):
    for name in ["Warning", "Error", "InterfaceError", "DatabaseError", "DataError", "OperationalError"]:
        assert getattr(con, name) is getattr(entasis, name)
    for name in ["ConflictError", "IntegrityError", "InternalError", "ProgrammingError", "NotSupportedError"]:
        assert getattr(con, name) is getattr(entasis, name)


def test_a_negative_number_of_rows_is_refused(con):
    cursor = con.execute("SELECT 1")
    for fetch in [cursor.fetchmany, con.sql("SELECT 1").fetchmany]:
        with pytest.raises(entasis.InterfaceError, match="fetchall"):
            fetch(-1)
    with pytest.raises(entasis.InterfaceError):
        cursor.arraysize = -1
    assert cursor.fetchmany(0) == [] and cursor.fetchall() == [(1,)]


def test_intervals_longer_than_a_timedelta_are_text(con):
    for text in ["999999999 days", "-999999999 days"]:
        value = con.execute(f"SELECT INTERVAL '{text}'").fetchone()[0]
        assert value == datetime.timedelta(days=int(text.split()[0]))
    for text in ["1000000000 days", "100000000 months", "-100000000 years"]:
        value = con.execute(f"SELECT INTERVAL '{text}'").fetchone()[0]
        assert isinstance(value, str) and con.execute(f"SELECT '{value}'::INTERVAL = INTERVAL '{text}'").fetchone()[0]


def test_relations_iterate_from_their_first_row_each_time(con):
    relation = con.sql("SELECT i FROM range(5000) r(i)")
    assert relation.fetchone() == (0,)
    assert [i for (i,) in relation] == list(range(5000)) == [i for (i,) in relation]
    assert relation.fetchone() == (1,)
    assert list(con.sql("SELECT 1 WHERE false")) == []
    con.execute("CREATE TABLE k (id INTEGER PRIMARY KEY)")
    con.execute("INSERT INTO k VALUES (7)")
    assert list(con.sql("SELECT id FROM k WHERE id = ?", [7])) == [(7,)]


def test_plans_are_shown_whole(con):
    condition = " AND ".join(f"i <> {n}" for n in range(30))
    relation = con.sql(f"EXPLAIN SELECT i FROM range(10) r(i) WHERE {condition}")
    assert repr(relation).split("\n") == [line.rstrip() for (line,) in relation]
    assert "…" not in repr(relation)


def test_files_of_other_programs_are_known(tmp_path):
    import sqlite3

    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE t (a)")
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    for name, hint in [("other.db", "SQLite"), ("t.csv", "read_csv")]:
        before = (tmp_path / name).read_bytes()
        with pytest.raises(entasis.ProgrammingError, match=hint):
            entasis.connect(tmp_path / name)
        assert (tmp_path / name).read_bytes() == before


def test_a_script_of_many_statements_runs(con):
    # Texts of which each is found by its place in one long line.
    values = "".join(f"INSERT INTO e VALUES ('é', {i});" for i in range(2000))
    assert con.execute(f"CREATE TABLE e (s VARCHAR, x INT);{values}SELECT count(*), sum(x) FROM e").fetchone() == (2000, 1999000)


def test_a_view_takes_no_parameters(con):
    with pytest.raises(entasis.ProgrammingError, match="a view takes no parameters"):
        con.execute("CREATE VIEW v AS SELECT ?", [1])


def test_what_pandas_has_for_null_is_null(con):
    pd = pytest.importorskip("pandas")
    assert con.execute("SELECT ? IS NULL, ? IS NULL, ?::TIMESTAMP", [pd.NaT, pd.NA, pd.NaT]).fetchall() == [(True, True, None)]


def test_more_rows_than_any_number_can_be_fetched(con):
    for most in [2**31, 2**63, 10**30]:
        cursor = con.execute("SELECT * FROM range(3)")
        assert len(cursor.fetchmany(most)) == 3
        assert len(con.sql("SELECT * FROM range(3)").fetchmany(most)) == 3
        cursor.arraysize = most
        assert len(con.execute("SELECT * FROM range(3)").fetchmany(most)) == 3
    numpy = pytest.importorskip("numpy")
    assert len(con.execute("SELECT * FROM range(3)").fetchmany(numpy.int64(2))) == 2
    for none in ["1", 1.5]:
        with pytest.raises(TypeError):
            con.execute("SELECT 1").fetchmany(none)
    for few in [-1, -(10**30)]:
        with pytest.raises(entasis.InterfaceError, match="not a number of rows"):
            con.execute("SELECT 1").fetchmany(few)


def test_long_parameters_are_memory_of_the_statement(con):
    con.execute("SET memory_limit = '20MB'")
    assert con.execute("SELECT length(?)", ("x" * 5_000_000,)).fetchone() == (5_000_000,)
    con.execute("CREATE TABLE t (a INTEGER)")
    for run in [
        lambda: con.execute("SELECT length(?)", ("x" * 30_000_000,)),
        lambda: con.execute("SELECT ? IS NULL", (b"x" * 30_000_000,)),
        lambda: con.execute("SELECT 'x' IN ?", (["x" * 15_000_000, "y" * 15_000_000],)),
        lambda: con.executemany("INSERT INTO t VALUES (length(?))", [("x" * 15_000_000,), ("y" * 15_000_000,)]),
    ]:
        with pytest.raises(entasis.OperationalError, match="needed for parameters"):
            run()
    assert con.execute("SELECT count(*) FROM t").fetchone() == (0,)
