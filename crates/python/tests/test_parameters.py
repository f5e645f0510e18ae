"""Values of Python as parameters: nested ones, those of other libraries, and what is refused."""

import datetime
import decimal
import enum
import pathlib
import uuid

import pytest

import entasis


class Colour(enum.Enum):
    RED = "red"
    TWO = 2
    DAY = datetime.date(2024, 2, 29)


class Level(enum.IntEnum):
    HIGH = 3


def typed(con, value):
    return con.execute("SELECT x, typeof(x) FROM (SELECT ? AS x)", [value]).fetchone()


@pytest.mark.parametrize(
    "value, expected, kind",
    [
        ([1, 2, None], [1, 2, None], "BIGINT[]"),
        ((1, 2.5), [1.0, 2.5], "DOUBLE[]"),
        ([1, decimal.Decimal("2.5")], [decimal.Decimal("1.0"), decimal.Decimal("2.5")], "DECIMAL(20,1)[]"),
        (["a", None], ["a", None], "VARCHAR[]"),
        ([[1], [], None, [2, 3]], [[1], [], None, [2, 3]], "BIGINT[][]"),
        ([b"\0\1"], [b"\0\1"], "BLOB[]"),
        ([datetime.date(2024, 2, 29), datetime.datetime(2024, 1, 2, 3)],
         [datetime.datetime(2024, 2, 29), datetime.datetime(2024, 1, 2, 3)], "TIMESTAMP[]"),
        ({"a": 1, "b": [1, 2]}, {"a": 1, "b": [1, 2]}, "STRUCT(a BIGINT, b BIGINT[])"),
        ([{"a": 1}, {"a": 2.5}], [{"a": 1.0}, {"a": 2.5}], "STRUCT(a DOUBLE)[]"),
        ({1: "one", 2: None}, {1: "one", 2: None}, "MAP(BIGINT, VARCHAR)"),
        ({"k": {"inner": {"x": True}}}, {"k": {"inner": {"x": True}}}, "STRUCT(k STRUCT(inner STRUCT(x BOOLEAN)))"),
        (Colour.RED, "red", "VARCHAR"),
        (Colour.TWO, 2, "BIGINT"),
        (Colour.DAY, datetime.date(2024, 2, 29), "DATE"),
        (Level.HIGH, 3, "BIGINT"),
        (pathlib.PurePosixPath("/tmp/ü"), "/tmp/ü", "VARCHAR"),
        (uuid.UUID(int=7), uuid.UUID(int=7), "UUID"),
        (decimal.Decimal("-0.50"), decimal.Decimal("-0.50"), "DECIMAL(2,2)"),
        (datetime.time(1, 2, 3), datetime.time(1, 2, 3), "TIME"),
        (datetime.datetime(2024, 7, 1, 14, tzinfo=datetime.timezone(datetime.timedelta(hours=2))),
         datetime.datetime(2024, 7, 1, 12, tzinfo=datetime.timezone.utc), "TIMESTAMP WITH TIME ZONE"),
    ],
)  # fmt: skip
def test_a_value_has_its_type(con, value, expected, kind):
    assert typed(con, value) == (expected, kind)
    # By name, too.
    assert con.execute("SELECT $x", {"x": value}).fetchval() == expected


def test_zones_with_summer_time(con):
    zoneinfo = pytest.importorskip("zoneinfo")
    try:
        zone = zoneinfo.ZoneInfo("Europe/Berlin")
    except zoneinfo.ZoneInfoNotFoundError:
        pytest.skip("the system has no time zones")
    moments = [datetime.datetime(2024, 10, 27, 2, 30, tzinfo=zone, fold=fold) for fold in (0, 1)]
    hours = [con.execute("SELECT ?", [moment]).fetchval().hour for moment in moments]
    assert hours == [0, 1]


def test_a_list_is_what_its_place_asks_for(con):
    con.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, l INTEGER[], s STRUCT(a INTEGER, b VARCHAR), d DATE[])")
    day = datetime.date(2024, 2, 29)
    con.execute("INSERT INTO t VALUES (?, ?, ?, ?)", [1, [1, 2], {"a": 1, "b": "x"}, [day]])
    con.executemany(
        "INSERT INTO t VALUES (?, ?, ?, ?)", [(2, [3], {"a": 2, "b": None}, []), (3, [], None, None), (4, None, None, [day])]
    )
    assert con.execute("SELECT k, l, s, d FROM t ORDER BY k").fetchall() == [
        (1, [1, 2], {"a": 1, "b": "x"}, [day]),
        (2, [3], {"a": 2, "b": None}, []),
        (3, [], None, None),
        (4, None, None, [day]),
    ]
    assert con.execute("SELECT k FROM t WHERE k IN ? ORDER BY k", [[1, 3]]).fetchall() == [(1,), (3,)]
    assert con.execute("SELECT k FROM t WHERE l = ?", [[1, 2]]).fetchall() == [(1,)]
    con.execute("UPDATE t SET l = ? WHERE k = ?", [[7, 8, 9], 3])
    assert con.execute("SELECT len(l), list_contains(l, 8) FROM t WHERE k = 3").fetchone() == (3, True)
    assert con.stream("SELECT ?", [[1, 2]]).fetchval() == [1, 2]
    assert con.sql("SELECT ?", [{1, 2}]).fetchval() == [1, 2]


def test_scalars_and_arrays_of_numpy(con):
    numpy = pytest.importorskip("numpy")
    for value, expected, kind in [
        (numpy.int8(-3), -3, "BIGINT"),
        (numpy.float32(0.5), 0.5, "DOUBLE"),
        (numpy.bool_(True), True, "BOOLEAN"),
        (numpy.str_("x"), "x", "VARCHAR"),
        (numpy.datetime64("2024-02-29"), datetime.date(2024, 2, 29), "DATE"),
        (numpy.datetime64("2024-02-29T01:02:03"), datetime.datetime(2024, 2, 29, 1, 2, 3), "TIMESTAMP"),
        (numpy.datetime64("2024-02-29T01:02:03.000000001", "ns"), datetime.datetime(2024, 2, 29, 1, 2, 3), "TIMESTAMP_NS"),
        (numpy.timedelta64(90, "s"), datetime.timedelta(seconds=90), "INTERVAL"),
        (numpy.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]], "BIGINT[][]"),
        (numpy.array(["2024-02-29"], dtype="datetime64[D]"), [datetime.date(2024, 2, 29)], "DATE[]"),
        (numpy.array(["2024-02-29"], dtype="datetime64[ns]"), [datetime.datetime(2024, 2, 29)], "TIMESTAMP_NS[]"),
        ([numpy.int64(1), 2], [1, 2], "BIGINT[]"),
    ]:
        assert typed(con, value) == (expected, kind), value
    for nothing in [numpy.datetime64("NaT"), numpy.timedelta64("NaT"), numpy.datetime64("NaT", "ns")]:
        assert con.execute("SELECT ? IS NULL", [nothing]).fetchval() is True, nothing


def test_values_of_pandas_polars_and_pyarrow(con):
    pandas = pytest.importorskip("pandas")
    pyarrow = pytest.importorskip("pyarrow")
    polars = pytest.importorskip("polars")
    for nothing in [pandas.NA, pandas.NaT]:
        assert con.execute("SELECT ? IS NULL, ?", [nothing, [1, nothing]]).fetchone() == (True, [1, None])
    moment = pandas.Timestamp("2024-02-29 01:02:03.000000001")
    assert typed(con, moment) == (datetime.datetime(2024, 2, 29, 1, 2, 3), "TIMESTAMP_NS")
    assert typed(con, pandas.Timestamp("2024-02-29", tz="UTC"))[1] == "TIMESTAMP WITH TIME ZONE"
    assert typed(con, pandas.Timedelta(days=1)) == (datetime.timedelta(days=1), "INTERVAL")
    for column in [pandas.Series([1, 2]), polars.Series([1, 2]), pyarrow.array([1, 2]), pyarrow.chunked_array([[1], [2]])]:
        assert typed(con, column) == ([1, 2], "BIGINT[]")
        assert con.execute("SELECT 2 IN ?", [column]).fetchval() is True
    assert typed(con, pyarrow.scalar("x")) == ("x", "VARCHAR")


def test_dicts_that_are_maps(con):
    con.execute("CREATE TABLE t (m MAP(VARCHAR, INTEGER))")
    for value in [{"a": 1}, {}]:
        con.execute("INSERT INTO t VALUES (?)", [entasis.Map(value)])
    assert con.execute("SELECT m FROM t").fetchall() == [({"a": 1},), ({},)]
    assert con.execute("SELECT map_keys(?)", [entasis.Map(b=[1], a=None)]).fetchval() == ["b", "a"]


def test_lists_of_two_kinds_in_one_statement(con):
    for run in [con.execute, con.stream]:
        with pytest.raises(entasis.ProgrammingError, match=r"IN \(SELECT unnest\(\?\)\)"):
            run("SELECT 1 IN ?, len(?)", [[1, 2], [3]])
        assert run("SELECT 1 IN (SELECT unnest(?)), len(?)", [[1, 2], [3]]).fetchone() == (True, 1)


def test_what_is_refused_is_named(con):
    for parameters, name in [([1, object()], "parameter 2"), ({"a": 1, "b": object()}, "parameter b")]:
        marks = "?, ?" if isinstance(parameters, list) else "$a, $b"
        with pytest.raises(entasis.ProgrammingError, match=f"{name}: a 'object' cannot be a parameter"):
            con.execute(f"SELECT {marks}", parameters)
    for value in [range(3), (i for i in range(3)), 1j, len, {}]:
        with pytest.raises(entasis.ProgrammingError, match="parameter 1: .*cannot be a parameter"):
            con.execute("SELECT ?", [value])
    with pytest.raises(entasis.ProgrammingError, match="one type, not BIGINT and VARCHAR"):
        con.execute("SELECT ?", [[1, "x"]])
    with pytest.raises(entasis.ProgrammingError, match="must have one type"):
        con.executemany("SELECT ?", [([{"a": 1}, {"b": 2}],)])
    with pytest.raises(entasis.DataError, match="parameter 1: the integer has more than 38 digits"):
        con.execute("SELECT ?", [10**38])
    with pytest.raises(entasis.ProgrammingError, match="twice"):
        con.execute("SELECT ?", [{datetime.date(2024, 1, 1): "a", datetime.datetime(2024, 1, 1): "b"}])
