"""Queries that are composed step by step."""

import pytest

import entasis


@pytest.fixture
def table(con):
    con.execute("CREATE TABLE t AS SELECT * FROM (VALUES (1, 'a', 10), (2, 'b', 20), (3, 'a', 30), (4, 'c', 40)) v(k, g, x)")
    con.execute("CREATE TABLE u AS SELECT * FROM (VALUES ('a', 'one'), ('b', 'two'), ('z', 'three')) v(g, name)")
    return con


def test_nothing_runs_before_rows_are_asked_for(table):
    query = table.table("t").filter("1 // (k - k) = 1")
    assert isinstance(query, entasis.Query) and "SELECT * FROM t" in repr(query)
    assert query.columns == ["k", "g", "x"] and query.types == ["INTEGER", "VARCHAR", "INTEGER"]
    with pytest.raises(entasis.ProgrammingError, match="zero"):
        query.fetchall()


def test_steps(table):
    t = table.table("t")
    big = t.filter("x > ?", [10])
    assert big.order("k").fetchall() == [(2, "b", 20), (3, "a", 30), (4, "c", 40)]
    assert big.select("k", "x + ? AS y", parameters=[1]).order("k DESC").limit(2).fetchall() == [(4, 41), (3, 31)]
    assert big.order("k").limit(1, offset=1).fetchall() == [(3, "a", 30)]
    assert t.aggregate("sum(x)").fetchval() == 100
    assert t.aggregate(["sum(x) AS s", "count(*)"], group_by="g").order("g").fetchall() == [("a", 40, 2), ("b", 20, 1), ("c", 40, 1)]
    assert t.aggregate("count(*)", group_by=["g", "x > 20 AS big"]).order("g", "big").fetchone() == ("a", False, 1)
    assert t.select("g").distinct().order("g").fetchall() == [("a",), ("b",), ("c",)]
    # Parameters are in the order of the text, not of the calls.
    query = t.filter("x > ?", [10]).select("k", "? AS p", parameters=["p"]).filter("k < ?", [4])
    assert query.order("k").fetchall() == [(2, "p"), (3, "p")]
    # A step changes nothing.
    assert t.fetchall() == table.table("t").fetchall() and len(t.fetchall()) == 4
    assert t.filter("g = 'a' -- and a comment").aggregate("count(*)").fetchval() == 2


def test_order_and_limit_belong_together(table):
    t = table.table("t")
    last = t.order("x DESC").limit(2)
    assert "ORDER BY x DESC\nLIMIT 2" in last.text
    assert last.filter("k > 3").fetchall() == [(4, "c", 40)]
    assert last.limit(1).fetchall() == [(4, "c", 40)]
    assert t.limit(0).fetchall() == []
    for rows, offset in [(-1, 0), (1, -1)]:
        with pytest.raises(entasis.InterfaceError, match="-1"):
            t.limit(rows, offset)


def test_joins(table):
    t, u = table.table("t"), table.table("u")
    assert t.join("u", on="g").select("k", "name").order("k").fetchall() == [(1, "one"), (2, "two"), (3, "one")]
    assert t.join(u, on=["g"], how="left").aggregate("count(*), count(name)").fetchall() == [(4, 3)]
    assert t.join(u, on="t.g = u.g AND x > ?", parameters=[10]).aggregate("count(*)").fetchval() == 2
    assert t.filter("x > ?", [10]).alias("big").join(u, on="big.g = u.g").aggregate("count(*)").fetchval() == 2
    assert t.join(u, how="cross").aggregate("count(*)").fetchval() == 12
    for how, expected in [("inner", 3), ("left", 4), ("right", 4), ("full", 5), ("outer", 5), ("semi", 3), ("anti", 1)]:
        assert t.join(u, on="g", how=how).aggregate("count(*)").fetchval() == expected, how
    with pytest.raises(entasis.InterfaceError, match="no kind of join: they are inner"):
        t.join(u, on="g", how="sideways")
    for wrong in [{}, {"how": "left"}, {"on": "g", "how": "cross"}]:
        with pytest.raises(entasis.InterfaceError, match="condition"):
            t.join(u, **wrong)


def test_sets(table):
    low, high = table.query("SELECT g FROM t WHERE k <= ?", [3]), table.query("SELECT g FROM t WHERE k >= ?;", [3])
    assert low.union(high).order("g").fetchall() == [("a",), ("b",), ("c",)]
    assert len(low.union(high, all=True).fetchall()) == 5
    assert low.intersect(high).fetchall() == [("a",)] and low.except_(high).fetchall() == [("b",)]
    with pytest.raises(entasis.InterfaceError, match="a Query is expected, not a str"):
        low.union("t")


def test_sql_about_a_query(table):
    query = table.table("t").filter("x > ?", [10])
    assert query.sql("SELECT max(x) - ?, count(*) FROM self", [1]).fetchall() == [(39, 3)]
    again = query.sql("WITH w AS (SELECT g FROM self) SELECT count(*) FROM w JOIN self USING (g)")
    assert again.fetchval() == 3


def test_results(table, tmp_path):
    query = table.table("t").filter("x >= ?", [20]).order("k")
    assert query.fetchone() == (2, "b", 20) and list(query) == query.fetchall() == query.execute().fetchall()
    assert query.stream().fetchval() == 2
    assert query.rows() == query.fetchall() and query.rows(named=True)[0] == {"k": 2, "g": "b", "x": 20}
    assert "Sort by k" in query.explain() and "rows" in query.explain(analyze=True)
    query.create("made")
    query.insert_into("made")
    assert table.execute("SELECT count(*), sum(x) FROM made").fetchone() == (6, 180)
    for name, write in [("it's.parquet", query.to_parquet), ("x.csv", query.to_csv)]:
        write(tmp_path / name)
        file = str(tmp_path / name).replace("'", "''")
        assert table.query(f"FROM '{file}'").aggregate("sum(x)").fetchval() == 90
    with pytest.raises(entasis.ProgrammingError, match="made"):
        query.create("made")


def test_results_of_libraries(table):
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    query = table.table("t").select("x").order("x")
    assert query.df()["x"].tolist() == query.pl()["x"].to_list() == query.arrow()["x"].to_pylist() == [10, 20, 30, 40]
    assert query.fetchnumpy()["x"].sum() == 100


def test_rows_of_objects(table):
    pytest.importorskip("pyarrow")
    query = table.query([{"g": "a", "w": 1}, {"g": "c", "w": 2}])
    other = table.query({"w": [2], "v": [9]})
    assert query.join("t", on="g").aggregate("sum(x * w)").fetchval() == 120
    assert query.join(other, on="w").select("v").fetchall() == [(9,)]
    assert query.join({"w": [1]}, on="w").columns == ["w", "g"] or query.join({"w": [1]}, on="w").fetchval() is not None
    assert [w for _, w in query.stream()] == [1, 2]
    # A variable of the program is found when the query runs.
    rows = [{"a": 5}]
    assert table.query("SELECT a FROM rows").fetchval() == 5 and rows
    with pytest.raises(entasis.ProgrammingError, match="not a table"):
        table.query(7).fetchall()


def test_names(table):
    table.execute('CREATE TABLE "my table" AS SELECT 1 AS a')
    table.execute("CREATE SCHEMA s")
    table.execute("CREATE TABLE s.v AS SELECT 2 AS a")
    assert table.table("my table").fetchval() == 1 and table.table("s.v").fetchval() == 2
    assert table.table('"my table"').fetchval() == 1
    with pytest.raises(entasis.ProgrammingError):
        table.table("t; DROP TABLE t").fetchall()
    assert table.table("t").fetchone()


def test_wrong_parameters_are_refused(table):
    with pytest.raises(entasis.InterfaceError, match="list or tuple"):
        table.table("t").filter("x > $a", {"a": 1})
    with pytest.raises(entasis.ProgrammingError, match="parameter"):
        table.table("t").filter("x > ?").fetchall()
    for step in ["select", "order"]:
        with pytest.raises(entasis.InterfaceError, match=f"{step}\\(\\) takes at least one"):
            getattr(table.table("t"), step)()
