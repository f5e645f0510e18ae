"""Arrow, pandas and polars: tables in, results out."""

import datetime

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


def test_nested_types_are_refused_by_name(con):
    nested = pyarrow.table({"xs": [[1], [2]]})  # noqa: F841
    with pytest.raises(entasis.NotSupportedError):
        con.sql("SELECT * FROM nested")


def test_many_rows_go_both_ways(con):
    numbers = pyarrow.table({"i": pyarrow.array(range(100_000)), "s": [f"string number {i}" for i in range(100_000)]})
    result = con.sql("SELECT i, s FROM numbers WHERE i % 2 = 1").arrow()
    expected = numbers.filter([i % 2 == 1 for i in range(100_000)])
    assert result.sort_by("i").to_pydict() == expected.to_pydict()


def test_streams_are_read_once(con):
    reader = pyarrow.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches())
    con.register("once", reader)
    assert con.sql("SELECT count(*) FROM once").fetchone() == (3,)
    assert con.sql("SELECT count(*) FROM once").fetchone() == (3,)


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
