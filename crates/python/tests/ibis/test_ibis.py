"""The Ibis backend: tables, expressions whose SQL is ours and not DuckDB's, results, and what is refused."""

import datetime
import decimal
import pathlib

import pytest

pytest.importorskip("ibis.backends", reason="Ibis is not installed")
pytest.importorskip("pyarrow_hotfix", reason="a part of Ibis that its backends need is not installed")

import ibis  # noqa: E402
import pandas  # noqa: E402
from ibis.common import exceptions as exc  # noqa: E402

import entasis  # noqa: E402
from entasis.ibis import Backend  # noqa: E402

FRAME = pandas.DataFrame(
    {
        "i": [1, 2, 3],
        "s": ["abc", None, "Xyz"],
        "f": [0.5, None, -2.5],
        "at": pandas.to_datetime(["2024-01-02 03:04:05", "2024-02-29 00:00:00", None]),
        "l": [[1, 2], [], None],
    }
)


@pytest.fixture
def con():
    backend = Backend().connect()
    yield backend
    backend.disconnect()


@pytest.fixture
def t(con):
    return con.create_table("t", FRAME)


def test_names(con, tmp_path):
    assert con.name == "entasis" and con.version == entasis.__version__
    assert (con.current_catalog, con.current_database) == ("memory", "main")
    con.raw_sql("CREATE SCHEMA sales")
    con.create_table("a", schema={"x": "int64"}, database="sales")
    con.create_table("b", schema={"x": "!int64", "y": "string"})
    con.create_table("c", schema={"x": "int64"}, temp=True)
    assert con.list_databases() == ["information_schema", "main", "sales", "temp"]
    assert con.list_tables() == ["b", "c"]
    assert con.list_tables(database="sales") == ["a"]
    assert con.table("a", database="sales").schema() == ibis.schema({"x": "int64"})
    assert con.table("b").schema() == ibis.schema({"x": "!int64", "y": "string"})
    with pytest.raises(exc.TableNotFound):
        con.table("nothing")
    con.drop_table("b")
    con.drop_table("b", force=True)
    with pytest.raises(entasis.ProgrammingError):
        con.drop_table("b")
    con.raw_sql(f"ATTACH '{tmp_path}/archive.db' AS archive")
    made = con.create_table("d", FRAME[["i"]], database=("archive", "main"))
    assert made.count().execute() == 3
    assert con.list_tables(database=("archive", "main")) == ["d"]


def test_a_file(tmp_path):
    first = Backend().connect(tmp_path / "my.db")
    first.create_table("t", FRAME)
    first.disconnect()
    again = Backend().connect(tmp_path / "my.db", read_only=True)
    assert again.table("t").i.sum().execute() == 6
    again.disconnect()
    with entasis.connect(tmp_path / "my.db") as connection:
        assert Backend.from_connection(connection).list_tables() == ["t"]


def test_tables_are_replaced_as_a_whole(con, t):
    again = con.create_table("t", t.filter(t.i > 1).mutate(n=t.i.sum().over()), overwrite=True)
    assert again.i.execute().tolist() == [2, 3]
    # A sum has 38 digits here, and 64 bits in Ibis.
    assert again.schema()["n"] == ibis.dtype("int64")
    with pytest.raises(entasis.ProgrammingError, match="exists"):
        con.create_table("t", FRAME)
    con.insert("t", again)
    assert again.count().execute() == 4
    con.truncate_table("t")
    assert again.count().execute() == 0
    con.create_view("v", again)
    con.drop_view("v")
    with pytest.raises(ValueError, match="of rows"):
        con.create_table("x")


def test_expressions(con, t):
    def value(expression):
        return con.execute(expression)

    assert value((ibis.literal(7) / 2)) == 3.5
    assert value(ibis.literal(-7) // 2) == -4
    assert value((t.i / 2).sum()) == 3.0
    assert value(ibis.literal("abc").hexdigest("sha256")).startswith("ba7816bf")
    assert value(ibis.struct({"a": 1, "b": "x"})) == {"a": 1, "b": "x"}
    assert value(ibis.array([1, 2]).length()) == 2
    assert value(ibis.map(["a"], [1])["a"]) == 1
    assert value(t.s.count()) == 2
    assert value(t.filter(t.s.upper() == "XYZ").i.max()) == 3
    assert value(t.at.max()) == pandas.Timestamp("2024-02-29")
    assert value(t.at.year().sum()) == 4048
    assert value(t.l.length().sum()) == 2
    assert value(t.order_by(ibis.desc("i")).limit(1).i.sum()) == 3
    joined = t.join(ibis.memtable({"i": [1, 3], "w": ["p", "q"]}), "i").order_by("i").select("i", "w")
    assert joined.execute().to_dict("list") == {"i": [1, 3], "w": ["p", "q"]}
    ranked = t.mutate(r=ibis.row_number().over(order_by=t.i.desc())).order_by("r")
    assert ranked.i.execute().tolist() == [3, 2, 1]
    grouped = t.group_by(big=t.i > 1).aggregate(n=t.count(), total=t.i.sum()).order_by("big")
    assert grouped.to_pyarrow().to_pydict() == {"big": [False, True], "n": [1, 2], "total": [1, 5]}
    assert con.sql("SELECT 1 AS x, 'a' AS y").execute().to_dict("list") == {"x": [1], "y": ["a"]}
    assert t.l.unnest().name("x").as_table().order_by("x").execute().x.tolist() == [1, 2]


def test_results(con):
    types = {
        "n": "int64", "u": "uuid", "i": "interval('us')", "l": "array<string>", "p": "struct<a: int64, b: string>",
        "m": "map<string, int64>", "d": "decimal(10, 2)", "j": "json", "tz": "timestamp('UTC')", "t": "time", "b": "binary",
    }  # fmt: skip
    table = con.create_table("results", schema=types)
    con.raw_sql(
        "INSERT INTO results VALUES (1, '00000000-0000-0000-0000-000000000001', INTERVAL '1 day 1 second', ['a'],"
        " {'a': 1, 'b': 'z'}, MAP {'k': 1}, 1.5, '{\"a\": 1}', TIMESTAMPTZ '2024-01-01 00:00:00+00', TIME '01:02:03',"
        " 'x'::BLOB), (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"
    )
    first, second = table.order_by("n").to_pyarrow().to_pylist()
    assert set(second.values()) == {None}
    assert first["i"] == datetime.timedelta(days=1, seconds=1) and first["d"] == decimal.Decimal("1.50")
    assert first["tz"] == datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc)
    assert first["p"] == {"a": 1, "b": "z"} and first["t"] == datetime.time(1, 2, 3) and first["b"] == b"x"
    frame = table.order_by("n").execute()
    assert frame.j[0] == {"a": 1} and frame.m[0] == {"k": 1} and frame.l[0] == ["a"]
    assert [batch.num_rows for batch in table.to_pyarrow_batches(chunk_size=1)] == [1, 1]


def test_files(con, t, tmp_path):
    t.select("i", "s").to_parquet(tmp_path / "t.parquet")
    assert con.read_parquet(tmp_path / "t.parquet", table_name="p").i.execute().tolist() == [1, 2, 3]
    t.select("i", "s").to_csv(tmp_path / "t.csv")
    assert con.read_csv(tmp_path / "t.csv", header=True).i.sum().execute() == 6


def test_what_is_refused(con, t):
    for expression in [t.l.map(lambda x: x + 1), t.l.filter(lambda x: x > 1), t.l.unique(), t.s.hash()]:
        with pytest.raises(exc.OperationNotDefinedError):
            con.execute(expression)

    @ibis.udf.scalar.python
    def plus_one(x: int) -> int:
        return x + 1

    with pytest.raises((exc.OperationNotDefinedError, NotImplementedError)):
        con.execute(plus_one(t.i))


def test_the_page_runs(tmp_path, monkeypatch):
    from test_pages import BLOCK, run

    monkeypatch.chdir(tmp_path)
    # The package that is installed declares it.
    monkeypatch.setattr(ibis, "entasis", Backend(), raising=False)
    page = pathlib.Path(__file__).parents[4] / "docs/ibis.md"
    variables = {}
    for block in BLOCK.finditer(page.read_text()):
        run(block[1], page.read_text()[: block.start(1)].count("\n") + 1, "docs/ibis.md", variables)
