"""Tables that are variables of the program: which objects are tables, and what errors say of others."""

import pytest

import entasis

pyarrow = pytest.importorskip("pyarrow")


def test_lists_of_dicts(con):
    rows = [{"a": 1, "b": "x"}, {"a": 2}, {"b": "z", "c": 2.5}]
    assert con.execute("SELECT * FROM rows").fetchall() == [(1, "x", None), (2, None, None), (None, "z", 2.5)]
    assert con.sql("DESCRIBE SELECT * FROM rows").fetchall()[0][:2] == ("a", "BIGINT")
    con.register("registered", rows)
    assert con.execute("SELECT count(*) FROM registered").fetchval() == 3


def test_dicts_of_columns(con):
    points = {"x": [1, 2, 3], "y": (0.5, 1.5, 2.5), "z": pyarrow.chunked_array([["a"], ["b", None]])}
    assert con.execute("SELECT sum(x), max(y), count(z) FROM points").fetchone() == (6, 2.5, 2)
    uneven = {"x": [1], "y": [1, 2]}
    with pytest.raises(entasis.ProgrammingError, match="'dict' uneven is not a table: .*x 1, y 2"):
        con.sql("FROM uneven")
    assert points and uneven


def test_arrays_of_numpy(con):
    numpy = pytest.importorskip("numpy")
    line, grid = numpy.array([1, 2]), numpy.array([[1, 2], [3, 4], [5, 6]])
    named = numpy.array([(1, 2.5), (3, 4.5)], dtype=[("i", "i4"), ("d", "f8")])
    cube = numpy.zeros((2, 2, 2))
    assert con.execute("SELECT sum(column0) FROM line").fetchval() == 3
    assert con.execute("SELECT column0, column1 FROM grid ORDER BY 1").fetchall() == [(1, 2), (3, 4), (5, 6)]
    assert con.execute("SELECT i, d FROM named ORDER BY i").fetchall() == [(1, 2.5), (3, 4.5)]
    with pytest.raises(entasis.ProgrammingError, match="'ndarray', which is not a table"):
        con.sql("FROM cube")
    assert len(line) and len(grid) and len(named) and len(cube)


def test_datasets_and_scanners(con, tmp_path):
    dataset = pytest.importorskip("pyarrow.dataset")
    pyarrow.parquet = pytest.importorskip("pyarrow.parquet")
    for number in range(2):
        pyarrow.parquet.write_table(pyarrow.table({"i": [number, 10 + number]}), tmp_path / f"{number}.parquet")
    files = dataset.dataset(tmp_path)
    few = files.scanner(filter=dataset.field("i") > 5)
    for _ in range(2):
        assert con.execute("SELECT count(*), sum(i) FROM files").fetchone() == (4, 22)
    assert con.execute("SELECT count(*) FROM few").fetchval() == 2
    assert files.count_rows() == 4 and few


def test_lazy_frames_and_columns(con):
    polars = pytest.importorskip("polars")
    pandas = pytest.importorskip("pandas")
    lazy = polars.LazyFrame({"a": [1, 2, 3]}).filter(polars.col("a") > 1)
    column, series = polars.Series("a", [1, 2]), pandas.Series([3, 4], name="b")
    assert con.execute("SELECT sum(a) FROM lazy").fetchval() == 5
    assert con.execute("SELECT (SELECT sum(a) FROM column), (SELECT sum(b) FROM series)").fetchone() == (3, 7)
    assert lazy is not None and len(column) and len(series)


def test_a_reader_is_read_once(con):
    reader = pyarrow.RecordBatchReader.from_batches(pyarrow.schema([("i", "int64")]), iter([pyarrow.record_batch({"i": [1, 2]})]))
    assert con.execute("SELECT sum(i) FROM reader").fetchval() == 3
    with pytest.raises(entasis.ProgrammingError, match="rows of reader have already been read"):
        con.execute("SELECT sum(i) FROM reader")
    assert reader


@pytest.mark.parametrize(
    "value, kind", [(7, "int"), ([1, 2], "list"), ({"a": 1}, "dict"), (len, "builtin_function_or_method"), ((i for i in ()), "generator")]
)
def test_other_variables_are_named(con, value, kind):
    with pytest.raises(entasis.ProgrammingError, match="value") as raised:
        con.sql("SELECT * FROM value")
    assert raised.value.hint == f"the variable value is a '{kind}', which is not a table"
    assert raised.value.sqlstate == "42P01"
    with pytest.raises(TypeError, match=f"'{kind}' is not a table"):
        con.register("value", value)


def test_functions_of_the_package_are_no_callers(con):
    # `query` and `parameters` are variables of entasis.sql, too.
    query = [{"a": 1}]
    parameters = [{"a": 2}]
    assert entasis.sql("SELECT a FROM query UNION ALL SELECT a FROM parameters ORDER BY a").fetchall() == [(1,), (2,)]
    assert query and parameters
    with pytest.raises(entasis.ProgrammingError, match="annotations|no table"):
        entasis.sql("SELECT * FROM annotations")
