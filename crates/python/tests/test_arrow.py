"""Arrow, pandas and polars: tables in, results out."""

import datetime
import decimal

import pandas
import polars
import pyarrow
import pytest

import entasis

TABLE = pyarrow.table({"n": [1, 2, None], "name": ["one", "two", None]})


def test_results_as_arrow(con):
    table = con.sql("SELECT 1::BIGINT AS n, 'a' AS s, DATE '2024-02-29' AS d").arrow()
    assert table.column_names == ["n", "s", "d"]
    assert table.to_pylist() == [{"n": 1, "s": "a", "d": datetime.date(2024, 2, 29)}]


def test_results_without_rows_keep_their_columns(con):
    table = con.sql("SELECT 1::BIGINT AS n, 'a' AS s WHERE 1 = 2").arrow()
    assert (table.num_rows, table.column_names) == (0, ["n", "s"])
    assert con.sql("SELECT 1 AS n WHERE 1 = 2").pl().shape == (0, 1)


def test_results_as_pandas_and_polars(con):
    relation = con.sql("SELECT * FROM (VALUES (1, 'one'), (2, 'two')) v(n, name) ORDER BY n")
    assert relation.df()["name"].tolist() == ["one", "two"]
    assert relation.pl().rows() == [(1, "one"), (2, "two")]
    assert con.execute("SELECT 7 AS x").df()["x"].tolist() == [7]


def test_variables_are_tables(con):
    arrow_table = TABLE
    pandas_frame = TABLE.to_pandas()
    polars_frame = polars.from_arrow(TABLE)
    lazy = polars_frame.lazy()
    batch = TABLE.to_batches()[0]
    for name in ["arrow_table", "pandas_frame", "polars_frame", "lazy", "batch"]:
        rows = con.sql(f"SELECT name, n::BIGINT FROM {name} ORDER BY n NULLS LAST").fetchall()
        assert rows == [("one", 1), ("two", 2), (None, None)], name


def test_globals_and_outer_functions_are_seen(con):
    assert con.sql("SELECT count(*) FROM TABLE_ALIAS").fetchone() == (3,)
    outer = TABLE  # noqa: F841

    def inner():
        return con.sql("SELECT count(*) FROM outer").fetchone()

    assert con.sql("SELECT sum(n) FROM table_alias").fetchone() == (3,)
    assert entasis.sql("SELECT count(*) FROM TABLE_ALIAS").fetchone() == (3,)


TABLE_ALIAS = TABLE


def test_tables_of_the_catalog_come_before_variables(con):
    stock = TABLE  # noqa: F841
    con.execute("CREATE TABLE stock AS SELECT 99 AS n")
    assert con.sql("SELECT n FROM stock").fetchall() == [(99,)]


def test_a_variable_takes_the_name_of_a_table_that_is_gone(con):
    con.execute("CREATE TABLE taken AS SELECT 99 AS n")
    for _ in range(4):
        assert con.execute("SELECT max(n) FROM taken").fetchone() == (99,)
    con.execute("DROP TABLE taken")
    taken = TABLE  # noqa: F841
    for _ in range(2):
        assert con.execute("SELECT max(n) FROM taken").fetchone() == (2,)


def test_results_are_tables(con):
    first = con.sql("SELECT * FROM (VALUES (1), (2)) v(i)")
    assert con.sql("SELECT sum(i) FROM first").fetchone() == (3,)


def test_other_variables_are_not_tables(con):
    number = 5  # noqa: F841
    with pytest.raises(entasis.ProgrammingError, match="number"):
        con.sql("SELECT * FROM number")


def test_registered_objects(con):
    con.register("things", TABLE)
    assert con.sql("SELECT count(n) FROM things").fetchone() == (2,)
    assert con.unregister("things") and not con.unregister("things")
    with pytest.raises(entasis.ProgrammingError, match="things"):
        con.sql("SELECT * FROM things")
    with pytest.raises(TypeError, match="list"):
        con.register("things", [1, 2])


def test_the_index_of_a_pandas_frame_is_no_column(con):
    frame = pandas.DataFrame({"a": [1, 2]}, index=["x", "y"])  # noqa: F841
    assert con.sql("SELECT * FROM frame").columns == ["a"]


NESTED = pyarrow.table(
    {
        "l": pyarrow.array([[1, None], None, []], pyarrow.list_(pyarrow.int64())),
        "s": pyarrow.array([{"a": 1, "b": ["x"]}, {"a": None, "b": None}, None]),
        "t": pyarrow.array([[[b"\x00a", b""]], [None], [[]]], pyarrow.list_(pyarrow.list_(pyarrow.binary()))),
        "d": pyarrow.array([[decimal.Decimal("1.50")], [], None], pyarrow.list_(pyarrow.decimal128(9, 2))),
        "w": pyarrow.array([[datetime.date(2024, 2, 29)], [None], []], pyarrow.list_(pyarrow.date32())),
    }
)
SHOWN = [
    ([1, None], {"a": 1, "b": ["x"]}, [[b"\x00a", b""]], [decimal.Decimal("1.50")], [datetime.date(2024, 2, 29)]),
    (None, {"a": None, "b": None}, [None], [], [None]),
    ([], None, [[]], None, []),
]


def test_nested_columns_go_both_ways(con):
    nested = NESTED
    assert con.sql("SELECT * FROM nested").fetchall() == SHOWN
    assert con.sql("SELECT * FROM nested").arrow().to_pylist() == nested.to_pylist()
    con.execute("CREATE TABLE kept AS SELECT row_number() OVER () AS n, * FROM nested")
    back = con.sql("SELECT * EXCLUDE (n) FROM kept ORDER BY n")
    assert back.arrow().to_pylist() == nested.to_pylist()
    assert back.pl().to_dicts() == polars.from_arrow(nested).to_dicts()
    assert con.sql("SELECT l[1], s.b[1], len(t[1]) FROM kept ORDER BY n").fetchall() == [
        (1, "x", 2),
        (None, None, None),
        (None, None, 0),
    ]


def test_lists_of_every_layout_of_arrow(con):
    for make in [pyarrow.list_, pyarrow.large_list, pyarrow.list_view, lambda ty: pyarrow.list_(ty, 2)]:
        lists = pyarrow.table({"v": pyarrow.array([[1, 2], None, [3, None]], make(pyarrow.int32()))}).slice(1)
        assert con.sql("SELECT v FROM lists").fetchall() == [(None,), ([3, None],)], lists.schema
    texts = pyarrow.table({"v": pyarrow.array([["a", "b"]], pyarrow.list_(pyarrow.string_view()))})
    assert con.sql("SELECT v FROM texts").fetchall() == [(["a", "b"],)]
    words = pyarrow.table({"v": pyarrow.array([["a", "b", "a"]], pyarrow.list_(pyarrow.dictionary(pyarrow.int32(), pyarrow.string())))})
    assert con.sql("SELECT v FROM words").fetchall() == [(["a", "b", "a"],)]


def test_maps_are_maps(con):
    mapped = pyarrow.table({"m": pyarrow.array([[("a", 1)]], pyarrow.map_(pyarrow.string(), pyarrow.int64()))})
    assert con.sql("SELECT m, typeof(m), m['a'] FROM mapped").fetchall() == [({"a": 1}, "MAP(VARCHAR, BIGINT)", 1)]


def test_nested_columns_stay_in_memory_of_arrow_in_pandas(con):
    result = con.sql("SELECT i, [i, i * 2] AS l, {'x': i, 'y': 'a'} AS s FROM range(3) r(i) ORDER BY i")
    frame = result.df()
    assert isinstance(frame["l"].dtype, pandas.ArrowDtype) and isinstance(frame["s"].dtype, pandas.ArrowDtype)
    assert frame["l"].list.len().tolist() == [2, 2, 2]
    assert frame["s"].struct.field("x").tolist() == [0, 1, 2]
    exact = result.df(exact=True)
    assert exact["l"].iloc[2].tolist() == [2, 4] and exact["s"].iloc[1] == {"x": 1, "y": "a"}
    # And back.
    assert con.sql("SELECT sum(l[2]), max(s.x) FROM frame").fetchone() == (6, 2)
    objects = pandas.DataFrame({"v": [[1, 2], [3]]})
    assert con.sql("SELECT sum(len(v)) FROM objects").fetchone() == (3,)


def test_nested_columns_of_files(con, tmp_path):
    nested = NESTED
    path = str(tmp_path / "nested.parquet")
    con.execute(f"COPY (SELECT * FROM nested) TO '{path}'")
    import pyarrow.parquet

    assert pyarrow.parquet.read_table(path).to_pylist() == nested.to_pylist()
    assert con.sql(f"SELECT * FROM '{path}'").fetchall() == SHOWN
    assert con.sql(f"SELECT count(*), count(l), count(s) FROM '{path}'").fetchone() == (3, 2, 2)
    assert con.sql(f"SELECT s.a FROM '{path}' WHERE len(l) = 2").fetchall() == [(1,)]


def test_dates_among_times_stay_times(con):
    values = [datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1, 5), None]
    frame = pandas.DataFrame({"k": [1, 2, 3], "t": pandas.Series(values, dtype=object)})  # noqa: F841
    expected = [(datetime.datetime(2024, 1, 1),), (datetime.datetime(2024, 1, 1, 5),), (None,)]
    assert con.sql("SELECT t FROM frame ORDER BY k").fetchall() == expected
    mixed = frame.assign(o=["x", 1, None])  # noqa: F841
    assert con.sql("SELECT t FROM mixed ORDER BY k").fetchall() == expected


def test_polars_integers_beyond_64_bits(con):
    if not hasattr(polars, "Int128"):
        pytest.skip("an older polars")
    frame = polars.DataFrame({"a": [2**100, -1, None]}, schema={"a": polars.Int128})
    assert con.sql("SELECT a FROM frame WHERE a IS NOT NULL ORDER BY a").fetchall() == [(-1,), (2**100,)]
    frame = polars.DataFrame({"a": [2**127 - 1]}, schema={"a": polars.Int128})
    assert con.sql("SELECT a FROM frame").fetchone() == (str(2**127 - 1),)


def test_many_rows_go_both_ways(con):
    numbers = pyarrow.table({"i": pyarrow.array(range(100_000)), "s": [f"string number {i}" for i in range(100_000)]})
    result = con.sql("SELECT i, s FROM numbers WHERE i % 2 = 1").arrow()
    expected = numbers.filter([i % 2 == 1 for i in range(100_000)])
    assert result.sort_by("i").to_pydict() == expected.to_pydict()


def reader():
    return pyarrow.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches())


def test_a_registered_reader_keeps_its_rows(con):
    once = reader()
    con.register("once", once)
    assert con.sql("SELECT count(*) FROM once").fetchone() == (3,)
    assert con.sql("SELECT count(*) FROM once").fetchone() == (3,)
    with pytest.raises(entasis.ProgrammingError, match="already been read"):
        con.register("twice", once)


def test_a_reader_is_read_once(con):
    once = reader()  # noqa: F841
    assert con.sql("SELECT count(*) FROM once a, once b").fetchone() == (9,)
    for _ in range(2):
        with pytest.raises(entasis.ProgrammingError, match="rows of once have already been read"):
            con.sql("SELECT count(*) FROM once")
    once = reader()
    same = once  # noqa: F841
    assert con.sql("SELECT count(*) FROM once, same").fetchone() == (9,)
    once = reader()
    assert con.sql("SELECT (SELECT max(n) FROM once), count(*) FROM once WHERE n IN (SELECT n FROM once)").fetchone() == (
        2,
        2,
    )


def test_who_asks_for_the_columns_of_a_reader_takes_no_rows(con):
    once = reader()  # noqa: F841
    assert con.sql("DESCRIBE once").fetchall() == con.sql("DESCRIBE SELECT * FROM once").fetchall()
    assert len(con.sql("EXPLAIN SELECT count(*) FROM once")) > 0
    with pytest.raises(entasis.ProgrammingError, match="no_such"):
        con.sql("SELECT no_such FROM once")
    assert con.sql("SELECT count(*) FROM once").fetchone() == (3,)


def test_what_a_reader_raises_is_raised(con):
    def batches():
        yield TABLE.to_batches()[0]
        raise ValueError("the source broke")

    once = pyarrow.RecordBatchReader.from_batches(TABLE.schema, batches())  # noqa: F841
    with pytest.raises(entasis.ProgrammingError, match="the source broke"):
        con.sql("SELECT count(*) FROM once")
    with pytest.raises(entasis.ProgrammingError, match="already been read"):
        con.sql("SELECT count(*) FROM once")


def test_a_statement_sees_an_object_once(con):
    class Changing:
        calls = 0

        def __arrow_c_stream__(self, requested_schema=None):
            self.calls += 1
            return pyarrow.table({"i": [self.calls]}).__arrow_c_stream__(requested_schema)

    changing = Changing()
    assert con.sql("SELECT a.i = b.i FROM changing a, changing b").fetchone() == (True,)
    assert changing.calls == 1
    assert con.sql("SELECT i FROM changing").fetchone() == (2,)


def test_integers_with_null_stay_integers_in_pandas(con):
    types = ["TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"]
    wanted = ["Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"]
    columns = ", ".join(f"i::{name} AS {name}" for name in types)
    frame = con.sql(f"SELECT {columns} FROM (VALUES (1), (NULL)) v(i) ORDER BY i").df()
    assert [str(dtype) for dtype in frame.dtypes] == wanted
    assert frame.iloc[0].tolist() == [1] * 8 and frame.iloc[1].isna().all()
    frame = con.sql(f"SELECT {columns} FROM (VALUES (1), (2)) v(i)").df()
    assert [str(dtype) for dtype in frame.dtypes] == [name.lower() for name in wanted]
    frame = con.sql("SELECT i, i FROM (VALUES (9007199254740993), (NULL)) v(i) ORDER BY i").df()
    assert frame.iloc[0].tolist() == [9007199254740993] * 2
    assert con.sql("SELECT i FROM (VALUES (1.5::DOUBLE), (NULL)) v(i)").df()["i"].dtype == "float64"


def test_decimals_are_floats_in_pandas_unless_they_are_to_be_exact(con):
    relation = con.sql("SELECT * FROM (VALUES (1.25, 7::DECIMAL(38,0)), (NULL, NULL), (-0.05, 8)) v(d, whole)")
    frame = relation.df()
    assert frame["d"].dtype == "float64" and frame["d"].tolist()[::2] == [1.25, -0.05] and frame["d"].isna()[1]
    assert frame["whole"].tolist()[::2] == [7, 8]
    assert relation.df(exact=True)["d"].tolist() == [decimal.Decimal("1.25"), None, decimal.Decimal("-0.05")]
    assert con.execute("SELECT 0.1 AS x, 0.2 AS x").df(exact=True).iloc[0].tolist() == [
        decimal.Decimal("0.1"),
        decimal.Decimal("0.2"),
    ]
    assert con.execute("SELECT 0.1 AS x, 0.2 AS x").df().iloc[0].tolist() == [0.1, 0.2]


def test_intervals_in_data_frames(con):
    query = "SELECT * FROM (VALUES (1, INTERVAL '1 day 2 hours'), (2, NULL), (3, INTERVAL '1 month -1 second')) v(k, i)"
    relation = con.sql(query + " ORDER BY k")
    day = datetime.timedelta(days=1)
    expected = [day + datetime.timedelta(hours=2), None, 30 * day - datetime.timedelta(seconds=1)]
    assert relation.pl()["i"].to_list() == expected
    assert [None if pandas.isna(i) else i for i in relation.df()["i"]] == expected
    assert str(relation.arrow().schema.field("i").type) == "month_day_nano_interval"
    assert relation.arrow()["i"].to_pylist()[2] == (1, 0, -1_000_000_000)
    assert con.execute("SELECT INTERVAL '1 day' AS i WHERE 1 = 2").pl().schema["i"] == polars.Duration("us")
    with pytest.raises(entasis.DataError, match="too long"):
        con.sql("SELECT INTERVAL '170000000 years' AS i").df()


def test_every_type_comes_to_every_library(con):
    relation = con.sql(
        "SELECT NULL AS n, true AS b, 1::TINYINT AS i, 2::UBIGINT AS u, 1.5::REAL AS r, 2.5 AS d, 'x' AS s, '\\xff'::BLOB AS x, "
        "DATE '2024-02-29' AS day, TIME '01:02:03' AS t, TIMESTAMP '2024-02-29 01:02:03' AS ts, "
        "TIMESTAMPTZ '2024-02-29 01:02:03+00' AS tz, INTERVAL '1 day' AS v, "
        "'f81d4fae-7dec-11d0-a765-00a0c91e6bf6'::UUID AS id"
    )
    for rows in [relation.arrow().num_rows, len(relation.df()), len(relation.pl())]:
        assert rows == 1
    assert relation.pl().rows()[0][:3] == (None, True, 1)


def test_columns_without_a_type_of_arrow(con):
    frame = pandas.DataFrame(  # noqa: F841
        {
            "k": [1, 2, 3],
            "mixed": pandas.Series([1, "x", None], dtype=object),
            "long": pandas.Series([2**63, -1, None], dtype=object),
            "longer": pandas.Series([10**40, 1, None], dtype=object),
            "period": pandas.period_range("2024-01", periods=3, freq="M"),
            "span": pandas.interval_range(0, 3),
            "category": pandas.Series(["a", "b", None], dtype="category"),
            "number": pandas.Series([7, 8, None], dtype="category"),
            "both": pandas.Series([1, "x", None], dtype="category"),
            "decimal": [decimal.Decimal("1.50"), decimal.Decimal("-2"), None],
            "complex": [1j, 2j, 3j],
        }
    )
    rows = con.sql("SELECT * EXCLUDE (k) FROM frame ORDER BY k").fetchall()
    assert rows[0][:8] == ("1", decimal.Decimal(2**63), str(10**40), "2024-01", "(0, 1]", "a", 7, "1")
    assert rows[1][:8] == ("x", -1, "1", "2024-02", "(1, 2]", "b", 8, "x")
    assert rows[2][:3] == (None, None, None) and rows[2][5:9] == (None, None, None, None)
    assert [row[8] for row in rows[:2]] == [decimal.Decimal("1.5"), -2]
    assert con.sql("SELECT k FROM frame ORDER BY k").fetchall() == [(1,), (2,), (3,)]
    assert con.sql("SELECT max(long) FROM frame").fetchone() == (2**63,)


def test_columns_of_nulls_alone(con):
    for table in [
        polars.DataFrame({"n": [None, None], "k": [1, 2]}),
        pandas.DataFrame({"n": [None, None], "k": [1, 2]}),
        pyarrow.table({"n": pyarrow.nulls(2), "k": [1, 2]}),
    ]:
        con.register("named", table)
        assert con.sql("SELECT n, k FROM named ORDER BY k").fetchall() == [(None, 1), (None, 2)]
        assert con.sql("SELECT k FROM named WHERE n IS NULL AND n + 1 IS NULL ORDER BY k").fetchall() == [(1,), (2,)]
        assert con.sql("SELECT count(n), sum(n), max(n) FROM named").fetchone() == (0, None, None)


def test_frames_with_two_columns_of_one_name(con):
    frame = pandas.DataFrame([[1, 2]], columns=["a", "a"])  # noqa: F841
    assert con.sql("SELECT * FROM frame").fetchall() == [(1, 2)]


def test_polars_columns_of_objects_are_text(con):
    frame = polars.DataFrame({"o": [1 + 1j, None]}, schema={"o": polars.Object})
    assert con.sql("SELECT o FROM frame").fetchall() == [("(1+1j)",), (None,)]
    lazy = frame.lazy()  # noqa: F841
    assert con.sql("SELECT count(o) FROM lazy").fetchone() == (1,)


def test_relations_show_themselves(con, capsys):
    relation = con.sql("SELECT * FROM (VALUES (1, 'one'), (20, NULL)) v(n, name) ORDER BY n")
    assert relation.shape == (2, 2) and len(relation) == 2
    assert "name" in repr(relation) and "2 rows" in repr(relation)
    relation.show()
    assert "NULL" in capsys.readouterr().out


def test_files(con, flights):
    flights_by_carrier = con.sql(
        f"SELECT carrier, count(*) n FROM '{flights}/flights.parquet' GROUP BY carrier ORDER BY n DESC"
    )
    assert flights_by_carrier.fetchone() == ("UA", 58665)
    assert con.sql(f"SELECT count(*) FROM '{flights}/airlines.csv'").fetchone() == (16,)


def test_series_arrays_and_dicts_are_tables(con):
    numpy, pandas = pytest.importorskip("numpy"), pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    named = pandas.Series([1, 2, 3], name="v")  # noqa: F841
    unnamed = pandas.Series([1.5, None])  # noqa: F841
    other = polars.Series("w", [4, 5])  # noqa: F841
    array = numpy.array([[1, 2], [3, 4]])  # noqa: F841
    record = numpy.array([(1, 2.5)], dtype=[("a", "i4"), ("b", "f8")])  # noqa: F841
    columns = {"x": numpy.array([1, 2]), "y": [0.5, 1.5], "z": named[:2]}  # noqa: F841
    for query, row in [
        ("SELECT sum(v) FROM named", (6,)),
        ("SELECT count(*), sum(column0) FROM unnamed", (2, 1.5)),
        ("SELECT sum(w) FROM other", (9,)),
        ("SELECT sum(column0), sum(column1) FROM array", (4, 6)),
        ("SELECT a, b FROM record", (1, 2.5)),
        ("SELECT sum(x), sum(y), sum(z) FROM columns", (3, 2.0, 3)),
    ]:
        assert con.execute(query).fetchone() == row, query
    con.register("r", {"x": [1, 2]})
    assert con.execute("SELECT sum(x) FROM r").fetchone() == (3,)


def test_other_dicts_and_arrays_are_no_tables(con):
    numpy = pytest.importorskip("numpy")
    scalar, texts, empty, cube = numpy.array(1), {"a": "b"}, {}, numpy.zeros((1, 1, 1))  # noqa: F841
    for name in ["scalar", "texts", "empty", "cube"]:
        with pytest.raises(entasis.ProgrammingError, match=name):
            con.execute(f"SELECT * FROM {name}")


def test_a_map_of_parquet_is_read(con, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    maps = pyarrow.array([[("a", 1)], []], pyarrow.map_(pyarrow.string(), pyarrow.int32()))
    path = tmp_path / "m.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"id": [1, 2], "mp": maps}), path)
    for source in [f"'{path}'", f"read_parquet('{path}')"]:
        rows = con.execute(f"SELECT id, mp, mp['a'], cardinality(mp) FROM {source} ORDER BY id").fetchall()
        assert rows == [(1, {"a": 1}, 1, 1), (2, {}, None, 0)]
        with pytest.raises(entasis.Error):
            con.execute(f"SELECT mp.a FROM {source}")
    assert con.execute(f"SELECT sum(id) FROM '{path}'").fetchone() == (3,)


def test_nulls_before_values_of_long_lists(con):
    table = con.execute("SELECT list_prepend(NULL, range(3000)) AS l, [NULL, 'a'] AS s").arrow()
    assert table.column("l").to_pylist() == [[None, *range(3000)]]
    assert table.column("s").to_pylist() == [[None, "a"]]
