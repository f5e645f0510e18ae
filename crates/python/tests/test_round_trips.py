"""Values go out and come back through Python: as objects, parameters, Arrow, pandas, polars, and files that
others read. Each type by itself, in lists and in structs, with NULL and extremes."""

import datetime
import decimal
import uuid

import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest

import entasis

TEXTS = ["", "a", " ", ",", "'", '"', "\\", "[", "]", "{", "}", "NULL", "p,q", "a: b", "it's", "x\ny", "ß\U0001f600", "\t", "{'a': 1}"]

#: Types, with values as SQL.
VALUES = {
    "BOOLEAN": ["true", "false"],
    "TINYINT": ["-128", "127"],
    "SMALLINT": ["-32768", "32767"],
    "INTEGER": ["-2147483648", "2147483647"],
    "BIGINT": ["'-9223372036854775808'", "9223372036854775807", "9007199254740993"],
    "UTINYINT": ["0", "255"],
    "USMALLINT": ["0", "65535"],
    "UINTEGER": ["0", "4294967295"],
    "UBIGINT": ["0", "18446744073709551615"],
    "REAL": ["0.5", "'-inf'", "1.5e38"],
    "DOUBLE": ["0.1", "'inf'", "-1.7976931348623157e308"],
    "DECIMAL(9,2)": ["-9999999.99", "0.01"],
    "DECIMAL(38,10)": ["'-9999999999999999999999999999.9999999999'", "'0.0000000001'"],
    "VARCHAR": ["'" + text.replace("'", "''") + "'" for text in TEXTS],
    "BLOB": ["''", r"'\x00\xFF'", "'a,b'"],
    "DATE": ["'1970-01-01'", "'2024-02-29'", "'0001-01-01'", "'9999-12-31'"],
    "TIME": ["'00:00:00'", "'23:59:59.999999'"],
    "TIMETZ": ["'00:00:00+15:59:59'", "'23:59:59.999999-03:30'"],
    "TIMESTAMP": ["'1969-12-31 23:59:59.5'", "'2024-02-29 12:00:00.000001'", "'1700-01-01 00:00:00'", "'2262-01-01 00:00:00'"],
    "TIMESTAMPTZ": ["'1969-12-31 23:59:59.5+00'", "'2024-02-29 12:00:00.000001+00'"],
    "INTERVAL": ["'1 day 02:00:00'", "'-3 days'", "'00:00:00.000001'"],
    "UUID": ["'550e8400-e29b-41d4-a716-446655440000'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'"],
}

#: Nested types of a type `{}`, and values of them of a column `x`.
FORMS = {
    "{}": "x",
    "{}[]": "CASE id % 3 WHEN 0 THEN [x] WHEN 1 THEN [] ELSE [NULL, x, x] END",
    "{}[2]": "[x, NULL]",
    "MAP(INTEGER, {}[])": "CASE WHEN id = 0 THEN MAP {} ELSE MAP {id: [x, NULL], -1: NULL} END",
    'STRUCT(a {}, "b, c" {}[])': "{'a': x, 'b, c': [x, NULL]}",
    "STRUCT(a {}, s STRUCT(l {}[][]))[]": "[{'a': x, 's': {'l': [[x], [], NULL]}}, NULL]",
}

CASES = [(base, form) for base in VALUES for form in FORMS]


@pytest.fixture(params=CASES, ids=lambda case: case[1].replace("{}", case[0]))
def filled(con, request):
    """A connection with a table `v` of values of a type, and that type."""
    base, form = request.param
    con.execute(f"CREATE TABLE x(id INTEGER, x {base})")
    for i, value in enumerate(VALUES[base] + ["NULL"]):
        con.execute(f"INSERT INTO x VALUES ({i}, CAST({value} AS {base}))")
    ty = form.replace("{}", base)
    con.execute(f"CREATE TABLE v(id INTEGER, x {ty})")
    con.execute(f"INSERT INTO v SELECT id, {FORMS[form]} FROM x")
    con.execute("INSERT INTO v VALUES (-1, NULL)")
    return con, ty


def same(con, ty, source, exact=True):
    """Fails unless `source` has the rows of `v`, in its type."""
    found = con.execute(f"SELECT DISTINCT typeof(x) FROM {source}").fetchall()
    wanted = con.execute("SELECT DISTINCT typeof(x) FROM v").fetchall()
    if exact:
        assert found == wanted, (found, wanted)
    different = con.execute(
        f"SELECT v.id, v.x::VARCHAR, w.x::VARCHAR FROM v FULL JOIN {source} w ON v.id = w.id "
        f"WHERE v.x IS DISTINCT FROM CAST(w.x AS {ty}) OR v.id IS NULL OR w.id IS NULL"
    ).fetchall()
    assert different == []


def test_arrow(filled):
    con, ty = filled
    table = con.execute("SELECT * FROM v").arrow()
    table = pyarrow.table(table) if not isinstance(table, pyarrow.Table) else table
    con.register("back", table)
    # Arrow has no times with an offset: they are texts.
    same(con, ty, "back", exact="TIMETZ" not in ty)


def test_polars(filled):
    con, ty = filled
    if "INTERVAL" in ty and ty != "INTERVAL":
        pytest.skip("polars has no intervals within lists and structs")
    if "MAP" in ty:
        pytest.skip("polars has no maps: they are lists of structs, which are no maps when they come back")
    if "UUID" in ty:
        pytest.skip("polars has no UUIDs: they are blobs, which cannot be cast back")
    frame = con.execute("SELECT * FROM v").pl()
    con.register("back", frame)
    # polars has neither UUIDs nor REAL within all of its types; what it has comes back as it was.
    same(con, ty, "back", exact=not any(word in ty for word in ("UUID", "INTERVAL", "TIMETZ")))


def test_pandas(filled):
    con, ty = filled
    if "(" in ty.replace("DECIMAL(9,2)", "").replace("DECIMAL(38,10)", "") or "[" in ty:
        pytest.skip("pandas has objects for lists and structs, whose types it does not keep")
    if ty == "DECIMAL(38,10)":
        pytest.skip("a DECIMAL is a float in a frame, unless df(exact=True) is asked for")
    if ty == "TIMESTAMP":
        con.execute("DELETE FROM v WHERE x < '1900-01-01'")
    frame = con.execute("SELECT * FROM v").df()
    assert isinstance(frame, pandas.DataFrame)
    con.register("back", frame)
    same(con, ty, "back", exact=False)


def test_parameters(filled):
    con, ty = filled
    if "[" in ty or ty.startswith(("STRUCT", "MAP")):
        pytest.skip("lists and dicts are no parameters: a list stands for what follows IN")
    con.execute(f"CREATE TABLE w(id INTEGER, x {ty})")
    for row in con.execute("SELECT id, x FROM v").fetchall():
        con.execute("INSERT INTO w VALUES (?, ?)", row)
    same(con, ty, "w")


def test_objects_have_their_types(con):
    row = con.execute(
        "SELECT [1, NULL], {'a': 'x, y', 'b': [DATE '2024-02-29']}, [1.5::DECIMAL(9,2)], [TIME '10:00:00'], "
        "[TIMESTAMPTZ '2024-02-29 12:00:00+00'], [INTERVAL '1 day'], ['a'::BLOB], "
        "['550e8400-e29b-41d4-a716-446655440000'::UUID], [true], [0.5::REAL], "
        "MAP {'a': [1, NULL], 'b': NULL}, MAP {[1]: 'x', []: 'y'}, [1, NULL]::BIGINT[2], [TIMETZ '10:00:00+02']"
    ).fetchone()
    assert row == (
        [1, None],
        {"a": "x, y", "b": [datetime.date(2024, 2, 29)]},
        [decimal.Decimal("1.50")],
        [datetime.time(10)],
        [datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.timezone.utc)],
        [datetime.timedelta(days=1)],
        [b"a"],
        [uuid.UUID("550e8400-e29b-41d4-a716-446655440000")],
        [True],
        [0.5],
        {"a": [1, None], "b": None},
        [([1], "x"), ([], "y")],
        [1, None],
        [datetime.time(10, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))],
    )


def readers(path):
    duckdb = pytest.importorskip("duckdb")
    yield "pyarrow", pyarrow.parquet.read_table(path).to_pylist()
    yield "polars", polars.read_parquet(path).rows(named=True)
    rows = duckdb.connect().execute(f"SELECT * FROM '{path}'")
    names = [column[0] for column in rows.description]
    yield "DuckDB", [dict(zip(names, row)) for row in rows.fetchall()]


def plain(value):
    """A value as all readers have it."""
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(datetime.timezone.utc)
    if isinstance(value, (bytes, bytearray)) and len(value) == 16:
        return uuid.UUID(bytes=bytes(value))
    return value


def test_parquet_for_others(filled, tmp_path):
    con, ty = filled
    if any(word in ty for word in ("INTERVAL", "TIMETZ", "MAP")):
        pytest.skip("they have no type in Parquet that all of them read, or no one form in Python")
    path = tmp_path / "v.parquet"
    con.execute(f"COPY (SELECT * FROM v ORDER BY id) TO '{path}'")
    expected = [dict(zip(["id", "x"], row)) for row in con.execute("SELECT * FROM v ORDER BY id").fetchall()]
    if "UUID" in ty:
        types = str(pyarrow.parquet.read_schema(path).field("x").type)
        assert "uuid" in types or "fixed_size_binary" in types, types
    for name, rows in readers(path):
        found = sorted((plain(row) for row in rows), key=lambda row: row["id"])
        assert repr(found) == repr([plain(row) for row in expected]) or found == [plain(row) for row in expected], name


def test_csv_for_others(con, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "v.csv"
    con.execute('CREATE TABLE v(id INTEGER, x STRUCT(a VARCHAR, "b, c" VARCHAR[], t TIMESTAMP))')
    for i, text in enumerate(TEXTS):
        con.execute("INSERT INTO v SELECT ?, {'a': t, 'b, c': [t, NULL, 'z'], 't': '2024-01-01 10:00:00'} FROM (SELECT ?::VARCHAR AS t)", [i, text])
    con.execute(f"COPY v TO '{path}' (HEADER)")
    rows = duckdb.connect().execute(
        f"""SELECT id, x.a, x."b, c", x.t FROM read_csv('{path}', header = true, columns = {{'id': 'INTEGER', 'x': 'STRUCT(a VARCHAR, "b, c" VARCHAR[], t TIMESTAMP)'}}) ORDER BY id"""
    ).fetchall()
    at = datetime.datetime(2024, 1, 1, 10)
    assert rows == [(i, text, [text, None, "z"], at) for i, text in enumerate(TEXTS)]


def test_the_last_time_of_a_day_is_text_where_libraries_have_none(con):
    query = "SELECT t FROM (VALUES (1, TIME '24:00:00'), (2, NULL), (3, TIME '12:30:00.5')) v(i, t) ORDER BY i"
    expected = ["24:00:00", None, datetime.time(12, 30, 0, 500_000)]
    assert [row[0] for row in con.sql(query).fetchall()] == expected
    for exact in [False, True]:
        assert con.sql(query).df(exact=exact)["t"].tolist() == expected
    with pytest.raises(entasis.DataError, match='"t" has the TIME 24:00:00'):
        con.sql(query).pl()
    earlier = con.sql("SELECT TIME '23:59:59.999999' AS t")
    assert earlier.pl()["t"].to_list() == earlier.df()["t"].tolist() == [datetime.time(23, 59, 59, 999_999)]
