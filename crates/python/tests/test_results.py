"""Results: batches, arrays, dicts, named tuples, single values."""

import collections
import datetime
import decimal
import math

import pytest

import entasis

ROWS = "SELECT i, 'row ' || i AS name FROM range({}) r(i)"


def test_batches_of_arrow_have_the_size_that_was_asked_for(con):
    pyarrow = pytest.importorskip("pyarrow")
    for result in [con.stream(ROWS.format(10_000)), con.sql(ROWS.format(10_000)), con.execute(ROWS.format(10_000))]:
        reader = result.fetch_record_batch(3000)
        assert isinstance(reader, pyarrow.RecordBatchReader)
        batches = list(reader)
        assert [batch.num_rows for batch in batches] == [3000, 3000, 3000, 1000]
        assert pyarrow.Table.from_batches(batches).column("i").to_pylist() == list(range(10_000))
    assert con.sql("SELECT 1 AS a WHERE false").fetch_record_batch().read_all().column_names == ["a"]
    with pytest.raises(entasis.InterfaceError, match="at least one row"):
        con.sql("SELECT 1").fetch_record_batch(0)


def test_a_stream_makes_batches_while_the_query_runs(con):
    pytest.importorskip("pyarrow")
    endless = con.stream(ROWS.format(10**12))
    reader = endless.fetch_record_batch(5000)
    assert reader.read_next_batch().num_rows == 5000
    # The reader has taken it over.
    assert endless.fetchone() is None and endless.columns == ["i", "name"]
    del reader
    assert con.sql("SELECT 1").fetchval() == 1


def test_rows_of_a_stream_are_not_lost_between_rows_and_batches(con):
    pytest.importorskip("pyarrow")
    stream = con.stream(ROWS.format(10))
    stream.fetchone()
    with pytest.raises(entasis.InterfaceError, match="one by one"):
        stream.fetch_record_batch()
    assert len(stream.fetchall()) == 9


def test_single_values(con):
    for result in [con.execute, con.sql, con.stream]:
        assert result("SELECT 42, 43").fetchval() == 42
        assert result("SELECT 1 WHERE false").fetchval() is None
        rows = result("SELECT * FROM (VALUES (1), (2)) v(i) ORDER BY i")
        assert (rows.fetchval(), rows.fetchval(), rows.fetchval()) == (1, 2, None)


def test_rows_as_dicts(con):
    expected = [{"i": 0, "name": "row 0"}, {"i": 1, "name": "row 1"}]
    relation = con.sql(ROWS.format(2))
    assert relation.rows(named=True) == expected
    assert relation.rows() == relation.rows() == [(0, "row 0"), (1, "row 1")]
    cursor = con.execute(ROWS.format(2))
    cursor.fetchone()
    assert cursor.rows(named=True) == expected[1:]
    twins = con.execute("SELECT 1 AS a, 2 AS a")
    with pytest.raises(entasis.ProgrammingError, match='two columns are called "a"'):
        twins.rows(named=True)
    assert twins.rows() == [(1, 2)]


@pytest.mark.parametrize("run", ["execute", "sql", "stream"])
def test_row_factories(con, run):
    run = getattr(con, run)
    con.row_factory = entasis.dict_row
    rows = run(ROWS.format(4))
    assert rows.fetchone() == {"i": 0, "name": "row 0"}
    assert rows.fetchmany(1) == [{"i": 1, "name": "row 1"}]
    assert next(iter(rows))["i"] in (0, 2)
    assert rows.fetchall()[-1] == {"i": 3, "name": "row 3"}
    assert rows.fetchone() is None
    con.row_factory = entasis.namedtuple_row
    row = run("SELECT 1 AS a, 2 AS \"b c\"").fetchone()
    assert (row.a, row[1], row._fields) == (1, 2, ("a", "_1"))
    # As in sqlite3: the cursor and the row.
    con.row_factory = lambda cursor, row: (cursor.description[0][0], *row)
    assert run("SELECT 5 AS n").fetchall() == [("n", 5)]
    con.row_factory = None
    assert run("SELECT 5 AS n").fetchall() == [(5,)]


def test_a_cursor_has_a_row_factory_of_its_own(con):
    cursor = con.cursor()
    cursor.row_factory = lambda cursor, row: list(row)
    assert cursor.execute("SELECT 1, 2").fetchall() == [[1, 2]]
    assert con.execute("SELECT 1, 2").fetchall() == [(1, 2)]
    assert cursor.row_factory is not None and con.row_factory is None
    with pytest.raises(entasis.ProgrammingError, match="two columns"):
        con.row_factory = entasis.dict_row
        con.execute("SELECT 1 AS a, 2 AS a").fetchall()


def test_arrays_of_numpy(con):
    numpy = pytest.importorskip("numpy")
    relation = con.sql(
        """SELECT i::TINYINT AS t, i AS b, i::UBIGINT AS u, i + 0.5::DOUBLE AS d, i::REAL AS r, i > 1 AS p,
                  (i * 1.25)::DECIMAL(9, 2) AS m, DATE '2024-02-29' + i::INTEGER AS day,
                  TIMESTAMP '2024-02-29 01:02:03.456789' AS ts, INTERVAL 1 DAY AS span, 'x' || i AS text,
                  [i, i] AS list, NULLIF(i, 1) AS n, NULLIF('x', 'x') AS nothing
           FROM range(3) r(i)"""
    )
    arrays = relation.fetchnumpy()
    kinds = {name: array.dtype.str[1:] for name, array in arrays.items()}
    assert kinds == {
        "t": "i1", "b": "i8", "u": "u8", "d": "f8", "r": "f4", "p": "b1", "m": "f8", "day": "M8[D]",
        "ts": "M8[us]", "span": "m8[us]", "text": "O", "list": "O", "n": "i8", "nothing": "O",
    }  # fmt: skip
    assert arrays["b"].tolist() == [0, 1, 2] and arrays["d"].tolist() == [0.5, 1.5, 2.5]
    assert arrays["p"].tolist() == [False, False, True] and arrays["m"].tolist() == [0, 1.25, 2.5]
    assert arrays["day"].tolist()[1] == datetime.date(2024, 3, 1)
    assert arrays["ts"].tolist()[0] == datetime.datetime(2024, 2, 29, 1, 2, 3, 456789)
    assert arrays["span"].tolist()[0] == datetime.timedelta(days=1)
    assert arrays["text"].tolist() == ["x0", "x1", "x2"] and arrays["list"].tolist()[2] == [2, 2]
    assert isinstance(arrays["n"], numpy.ma.MaskedArray) and arrays["n"].tolist() == [0, None, 2]
    assert arrays["nothing"].mask.all() and not isinstance(arrays["b"], numpy.ma.MaskedArray)
    arrays["b"][0] = 7
    assert con.execute("SELECT 1 AS a WHERE false").fetchnumpy()["a"].shape == (0,)
    with pytest.raises(entasis.ProgrammingError, match="two columns"):
        con.sql("SELECT 1 AS a, 2 AS a").fetchnumpy()


def test_values_are_the_same_in_every_kind_of_result(con):
    query = """SELECT i, i::INTEGER, i::DOUBLE, 'ü' || i, i % 2 = 0, i::DECIMAL(5, 1), NULLIF(i, 3), NULLIF('3', i::VARCHAR)
               FROM range(5000) r(i)"""
    whole = con.execute(query).fetchall()
    assert whole[3] == (3, 3, 3.0, "ü3", False, decimal.Decimal("3.0"), None, None)
    assert list(con.stream(query)) == con.stream(query).fetchall() == con.sql(query).fetchall() == whole
    assert list(con.sql(query)) == whole
    nan, infinity = con.stream("SELECT 'nan'::DOUBLE, 'inf'::DOUBLE").fetchone()
    assert math.isnan(nan) and math.isinf(infinity)


def test_a_stream_describes_itself(con):
    with con.stream("SELECT 1 AS a, 'x' AS b") as stream:
        assert (stream.columns, stream.types) == (["a", "b"], ["INTEGER", "VARCHAR"])
        assert [column[:2] for column in stream.description] == [("a", "INTEGER"), ("b", "VARCHAR")]


def test_a_result_is_a_reader_of_what_others_need():
    """The names that DuckDB and sqlite3 have for them."""
    for kind in [entasis.Cursor, entasis.Relation]:
        for name in ["fetchone", "fetchmany", "fetchall", "fetchnumpy", "df", "pl", "arrow", "description"]:
            assert hasattr(kind, name)
    assert collections.Counter(entasis.__all__).most_common(1)[0][1] == 1
