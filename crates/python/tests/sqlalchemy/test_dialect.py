"""The SQLAlchemy dialect: opening, transactions, types, statements, reflection, data frames.

SQLAlchemy's own suite for dialects is run by `suite/run.py`; here is what it does not ask.
"""

import contextlib
import datetime
import decimal
import enum
import pathlib
import random
import re
import threading
import uuid

import pytest

sa = pytest.importorskip("sqlalchemy", minversion="2.0")

from sqlalchemy import exc, orm, schema  # noqa: E402
from sqlalchemy import types as sqltypes  # noqa: E402
from sqlalchemy.dialects import postgresql, registry  # noqa: E402

import entasis  # noqa: E402
from entasis import sqlalchemy as own  # noqa: E402
from entasis.sqlalchemy.keywords import RESERVED  # noqa: E402
from entasis.sqlalchemy.names import type_of  # noqa: E402

registry.register("entasis", "entasis.sqlalchemy", "dialect")
ROOT = pathlib.Path(__file__).parents[4]


@pytest.fixture
def engine():
    engine = sa.create_engine("entasis://")
    yield engine
    engine.dispose()


@pytest.fixture
def connection(engine):
    with engine.connect() as connection:
        yield connection


def run(connection, *statements):
    for statement in statements:
        connection.exec_driver_sql(statement)


def compiled(statement):
    return str(statement.compile(dialect=own.dialect(), compile_kwargs={"literal_binds": True}))


# Opening.


def test_urls(tmp_path):
    path = tmp_path / "my.db"
    engine = sa.create_engine(f"entasis:///{path}?threads=2&memory_limit=1GB")
    with engine.begin() as connection:
        run(connection, "CREATE TABLE t AS SELECT 1 AS a")
        assert connection.exec_driver_sql("SHOW threads").scalar() in (2, "2")
    engine.dispose()
    reader = sa.create_engine(f"entasis:///{path}?read_only=true")
    with reader.connect() as connection:
        assert connection.exec_driver_sql("SELECT a FROM t").scalar() == 1
        with pytest.raises(exc.DBAPIError):
            run(connection, "INSERT INTO t VALUES (2)")
    reader.dispose()


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("entasis://localhost/my.db", "a database is a file"),
        ("entasis:///my.db?readonly=true", "has no option readonly: options are threads"),
        ("entasis:///my.db?threads=1&threads=2", "the option threads twice"),
        ("entasis:///my.db?threads=many", "the option threads cannot be 'many'"),
        ("entasis:///my.db?read_only=perhaps", "the option read_only cannot be 'perhaps'"),
    ],
)
def test_urls_that_mean_nothing(url, says):
    with pytest.raises(exc.ArgumentError, match=says):
        sa.create_engine(url).connect()


def test_connections_to_memory_see_one_database(engine):
    with engine.begin() as connection:
        run(connection, "CREATE TABLE t (a INTEGER)", "INSERT INTO t VALUES (1)")

    def add():
        with engine.begin() as connection:
            run(connection, "INSERT INTO t VALUES (2)")

    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM t").scalar() == 1
        thread = threading.Thread(target=add)
        thread.start()
        thread.join()
        # A snapshot.
        assert connection.exec_driver_sql("SELECT count(*) FROM t").scalar() == 1
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM t").scalar() == 2
    other = sa.create_engine("entasis://")
    assert not sa.inspect(other).has_table("t")
    engine.dispose()
    assert not sa.inspect(engine).has_table("t")


def test_a_closed_connection_is_replaced():
    engine = sa.create_engine("entasis://", pool_pre_ping=True)
    with engine.connect() as connection:
        connection.connection.driver_connection.close()
        with pytest.raises(exc.DBAPIError) as raised:
            run(connection, "SELECT 1")
        assert raised.value.connection_invalidated
    with engine.connect() as connection:
        pooled = connection.connection.dbapi_connection
    pooled.close()
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT 1").scalar() == 1


# Transactions and errors.


def test_transactions(engine):
    with engine.connect() as connection:
        run(connection, "CREATE TABLE t (a INTEGER)")
        connection.rollback()
        assert not sa.inspect(connection).has_table("t")
        run(connection, "CREATE TABLE t (a INTEGER)")
        connection.commit()
        nested = connection.begin_nested()
        run(connection, "INSERT INTO t VALUES (1)")
        nested.rollback()
        run(connection, "INSERT INTO t VALUES (2)")
        connection.commit()
        assert connection.exec_driver_sql("SELECT a FROM t").scalars().all() == [2]
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        run(connection, "INSERT INTO t VALUES (3)")
        assert not connection.connection.driver_connection.in_transaction
    with engine.connect() as connection:
        assert connection.get_isolation_level() == "SNAPSHOT"
        assert connection.exec_driver_sql("SELECT count(*) FROM t").scalar() == 2
    with pytest.raises(exc.ArgumentError, match="SNAPSHOT"):
        engine.connect().execution_options(isolation_level="SERIALIZABLE")


def test_errors(engine):
    with engine.begin() as connection:
        run(connection, "CREATE TABLE t (a INTEGER PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    with engine.connect() as one, engine.connect() as two:
        for statement, error, code in [
            ("INSERT INTO t VALUES (1)", exc.IntegrityError, "23505"),
            ("SELECT * FROM nothing", exc.ProgrammingError, "42P01"),
            ("SELECT * FROM t FOR UPDATE", exc.NotSupportedError, "0A000"),
        ]:
            with pytest.raises(error) as raised:
                run(one, statement)
            assert raised.value.orig.sqlstate == code
        one.rollback()
        for own_connection in (one, two):
            run(own_connection, "SELECT * FROM t")
        run(one, "UPDATE t SET a = 2")
        one.commit()
        with pytest.raises(exc.OperationalError) as raised:
            run(two, "UPDATE t SET a = 3")
            two.commit()
        assert isinstance(raised.value.orig, entasis.ConflictError)
        assert not raised.value.connection_invalidated


# Types.


class Mood(enum.Enum):
    SAD = 1
    HAPPY = 2


UTC = datetime.timezone.utc
#: Types, values of them, and the type's name in the database.
TYPES = [
    (sa.Integer(), [1, -(2**31)], "INTEGER"),
    (sa.SmallInteger(), [-7], "SMALLINT"),
    (sa.BigInteger(), [2**62], "BIGINT"),
    (own.TINYINT(), [-128], "TINYINT"),
    (own.UTINYINT(), [255], "UTINYINT"),
    (own.USMALLINT(), [65535], "USMALLINT"),
    (own.UINTEGER(), [2**32 - 1], "UINTEGER"),
    (own.UBIGINT(), [2**64 - 1], "UBIGINT"),
    (own.HUGEINT(), [10**37, -1], "DECIMAL(38,0)"),
    (sa.Numeric(10, 2), [decimal.Decimal("12.30")], "DECIMAL(10,2)"),
    (sa.Numeric(38, 0), [decimal.Decimal(10**30)], "DECIMAL(38,0)"),
    (sa.Numeric(), [decimal.Decimal("0.0000000001")], "DECIMAL(38,10)"),
    (sa.Numeric(8, 2, asdecimal=False), [1.25], "DECIMAL(8,2)"),
    (sa.Float(), [0.1, float("inf")], "DOUBLE"),
    (sa.Float(53), [1e300], "DOUBLE"),
    (sa.Float(24), [0.5], "REAL"),
    (sa.REAL(), [0.25], "REAL"),
    (sa.Double(), [-0.1], "DOUBLE"),
    (sa.FLOAT(53), [0.1], "DOUBLE"),
    (sa.Boolean(), [True, False], "BOOLEAN"),
    (sa.String(3), ["größer than 3", "it's\\"], "VARCHAR"),
    (sa.Text(), [""], "VARCHAR"),
    (sa.Unicode(), ["\N{SNOWMAN}"], "VARCHAR"),
    (sa.CHAR(2), ["a"], "VARCHAR"),
    (sa.LargeBinary(), [b"\x00\xff'\\"], "BLOB"),
    (sa.Date(), [datetime.date(2026, 2, 28)], "DATE"),
    (sa.Time(), [datetime.time(23, 59, 59, 999999)], "TIME"),
    (sa.Time(timezone=True), [datetime.time(1, 2, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))],
     "TIME WITH TIME ZONE"),
    (sa.DateTime(), [datetime.datetime(2026, 1, 2, 3, 4, 5, 678901)], "TIMESTAMP"),
    (sa.DateTime(timezone=True), [datetime.datetime(2026, 1, 2, 3, tzinfo=UTC)], "TIMESTAMP WITH TIME ZONE"),
    (own.TIMESTAMP_NS(), [datetime.datetime(2026, 1, 2, 3, 4, 5, 678901)], "TIMESTAMP_NS"),
    (sa.Interval(), [datetime.timedelta(days=-1, seconds=2, microseconds=3)], "INTERVAL"),
    (sa.Uuid(), [uuid.UUID(int=2**127 + 1)], "UUID"),
    (sa.Uuid(as_uuid=False), [str(uuid.UUID(int=7))], "UUID"),
    (sa.JSON(), [{"a": [1, None, "it's"]}, [], [1.5, "text"]], "JSON"),
    (sa.Enum("sad", "it's"), ["sad", "it's"], "ENUM('sad', 'it''s')"),
    (sa.Enum(Mood), [Mood.HAPPY], "ENUM('SAD', 'HAPPY')"),
    (sa.ARRAY(sa.Integer), [[], [1, None, -2]], "INTEGER[]"),
    (sa.ARRAY(sa.String, dimensions=2), [[["a", "it's"], [], [None, "x, 'y' ]"]]], "VARCHAR[][]"),
    (own.ARRAY(sa.Float(24), length=3), [[0.5, 1.0, None]], "REAL[3]"),
    (sa.ARRAY(sa.Uuid), [[uuid.UUID(int=1)]], "UUID[]"),
    (sa.ARRAY(sa.JSON), [[{"a": "b, 'c'"}, [1]]], "JSON[]"),
    (sa.ARRAY(sa.Enum(Mood)), [[Mood.SAD, None]], "ENUM('SAD', 'HAPPY')[]"),
    (sa.ARRAY(sa.LargeBinary), [[b"\x00\xff'\\ a"]], "BLOB[]"),
    (sa.ARRAY(sa.DateTime), [[datetime.datetime(2026, 1, 1, 1, 1)]], "TIMESTAMP[]"),
    (sa.ARRAY(sa.Interval), [[datetime.timedelta(days=2, microseconds=-1)]], "INTERVAL[]"),
    (sa.ARRAY(sa.Numeric(6, 1)), [[decimal.Decimal("-1.5")]], "DECIMAL(6,1)[]"),
    (own.STRUCT({"x": sa.Integer(), "a b": sa.ARRAY(sa.String)}), [{"x": 1, "a b": ["it's", "\\"]}],
     'STRUCT(x INTEGER, "a b" VARCHAR[])'),
    (own.STRUCT({"m": sa.Enum(Mood), "n": own.STRUCT({"d": sa.Date()})}),
     [{"m": Mood.SAD, "n": {"d": datetime.date(2026, 1, 1)}}, {"m": None, "n": None}],
     "STRUCT(m ENUM('SAD', 'HAPPY'), n STRUCT(d DATE))"),
    (own.MAP(sa.String, sa.ARRAY(sa.Integer)), [{"a=b, 'c'": [1], "": None}, {}], "MAP(VARCHAR, INTEGER[])"),
    (own.MAP(sa.Integer, sa.Enum(Mood)), [{1: Mood.HAPPY}], "MAP(INTEGER, ENUM('SAD', 'HAPPY'))"),
]  # fmt: skip


@pytest.mark.parametrize(("ty", "values", "name"), TYPES, ids=lambda own: own if isinstance(own, str) else "")
def test_types(connection, ty, values, name):
    table = sa.Table("t", sa.MetaData(), sa.Column("k", sa.Integer), sa.Column("v", ty))
    table.create(connection)
    given = [*values, None]
    connection.execute(table.insert(), [{"k": k, "v": value} for k, value in enumerate(given)])
    expected = [None if value is None and not isinstance(ty, sa.JSON) else value for value in given]
    found = connection.scalars(sa.select(table.c.v).order_by(table.c.k)).all()
    assert found == expected
    assert [type(value) for value in found] == [type(value) for value in expected]
    for k, value in enumerate(values):
        # As a parameter that is compared, as one without a column, and as a literal.
        assert connection.scalar(sa.select(table.c.k).where(table.c.v == value)) == k
        assert connection.scalar(sa.select(sa.literal(value, ty))) == value
        as_text = sa.select(table.c.k).where(table.c.v == sa.literal(value, ty, literal_execute=True))
        assert connection.scalar(as_text) == k
    # Its name means the type again.
    assert connection.exec_driver_sql("SELECT typeof(v) FROM t LIMIT 1").scalar() == name
    [reflected] = (column["type"] for column in sa.inspect(connection).get_columns("t") if column["name"] == "v")
    again = sa.Table("again", sa.MetaData(), sa.Column("v", reflected))
    again.create(connection)
    assert connection.exec_driver_sql(
        "SELECT data_type FROM information_schema.columns WHERE table_name = 'again'"
    ).scalar() == name


def test_texts_in_lists(connection):
    table = sa.Table("t", sa.MetaData(), sa.Column("v", own.ARRAY(own.MAP(sa.String, sa.String))))
    table.create(connection)
    chance = random.Random(5)
    letters = "ab'\"\\,=:[](){} \n\tNULLß"
    for _ in range(200):
        texts = ["".join(chance.choices(letters, k=chance.randrange(6))) for _ in range(6)]
        value = [{texts[0]: texts[1], texts[2]: None}, None, {texts[3]: texts[4]}]
        assert connection.scalar(table.insert().returning(table.c.v), {"v": value}) == value


def test_values_that_are_none_of_the_type(connection):
    table = sa.Table("t", sa.MetaData(), sa.Column("v", own.STRUCT({"x": sa.Integer()})))
    table.create(connection)
    with pytest.raises(exc.StatementError, match="the struct has no field 'y': it has x"):
        connection.execute(table.insert(), {"v": {"y": 1}})
    with pytest.raises(exc.StatementError, match="cannot hold a complex"):
        connection.execute(table.insert(), {"v": {"x": 1j}})


def test_parts_of_structs_and_maps(connection):
    place = own.STRUCT({"x": sa.Integer(), "a b": sa.ARRAY(sa.Enum(Mood))})
    of = own.MAP(sa.Integer, sa.Enum(Mood))
    table = sa.Table("t", sa.MetaData(), sa.Column("s", place), sa.Column("m", of))
    table.create(connection)
    connection.execute(table.insert(), {"s": {"x": 1, "a b": [Mood.SAD]}, "m": {5: Mood.HAPPY}})
    s, m = table.c.s, table.c.m
    query = sa.select(s["x"] + 1, s["a b"], s["a b"][1], m[5], m[6]).where(s["x"] == 1, m[5] == Mood.HAPPY)
    assert connection.execute(query).one() == (2, [Mood.SAD], Mood.SAD, Mood.HAPPY, None)
    with pytest.raises(exc.ArgumentError, match="the struct has no field 'y': it has x, a b"):
        s["y"]


def test_types_that_are_not_known():
    for name in ["BIT", "INTEGER[", "INTEGER[2][3]", "STRUCT(a", "DECIMAL(a,b)"]:
        with pytest.warns(exc.SAWarning, match="not known"):
            assert isinstance(type_of(name), sqltypes.NullType)


# Statements.


def test_queries(connection):
    metadata = sa.MetaData()
    columns = [sa.Column("a", sa.Integer), sa.Column("s", sa.String), sa.Column("l", sa.ARRAY(sa.Integer))]
    t = sa.Table("t", metadata, *columns)
    metadata.create_all(connection)
    rows = [{"a": 1, "s": "x", "l": [1]}, {"a": 7, "s": "X%", "l": [2, 3]}, {"a": 2, "s": None, "l": None}]
    connection.execute(t.insert(), rows)

    def all_of(*columns, of=lambda query: query):
        return connection.scalars(of(sa.select(*columns))).all()

    by_a = t.c.a
    assert all_of(by_a, of=lambda q: q.order_by(by_a).offset(1)) == [2, 7]
    assert all_of(by_a, of=lambda q: q.order_by(by_a).limit(1).offset(1)) == [2]
    assert all_of(by_a, of=lambda q: q.order_by(by_a).fetch(1, with_ties=True)) == [1]
    assert all_of(by_a, of=lambda q: q.where(by_a.in_([])).order_by(by_a)) == []
    assert all_of(by_a, of=lambda q: q.where(by_a.not_in([1, 2]))) == [7]
    assert all_of(by_a, of=lambda q: q.where(sa.tuple_(by_a, t.c.s).in_([(1, "x"), (7, "y")]))) == [1]
    assert all_of(by_a / 2, of=lambda q: q.where(by_a == 7)) == [3.5]
    assert all_of(by_a // 2, of=lambda q: q.where(by_a == 7)) == [3]
    assert all_of(by_a % 4, of=lambda q: q.where(by_a == 7)) == [3]
    assert all_of(by_a.bitwise_xor(2), of=lambda q: q.where(by_a == 7)) == [5]
    assert all_of(by_a, of=lambda q: q.where(t.c.s.ilike("X")).order_by(by_a)) == [1]
    assert all_of(by_a, of=lambda q: q.where(t.c.s.not_ilike("X/%", escape="/"))) == [1]
    assert all_of(by_a, of=lambda q: q.where(t.c.s.icontains("x%", autoescape=True))) == [7]
    assert all_of(by_a, of=lambda q: q.where(t.c.s.regexp_match("^X", flags="i")).order_by(by_a)) == [1, 7]
    assert all_of(by_a, of=lambda q: q.where(~t.c.s.regexp_match("%"))) == [1]
    assert all_of(t.c.s.regexp_replace("x", "y"), of=lambda q: q.where(by_a == 1)) == ["y"]
    assert all_of(t.c.l[2], of=lambda q: q.where(by_a == 7)) == [3]
    assert all_of(t.c.l[1:2], of=lambda q: q.where(by_a == 7)) == [[2, 3]]
    with pytest.raises(exc.CompileError, match="no step"):
        all_of(t.c.l[1:3:2])
    assert all_of(by_a, of=lambda q: q.where(sa.literal(3) == sa.any_(t.c.l))) == [7]
    assert all_of(postgresql.array([1, 2])) == [[1, 2]]
    assert all_of(sa.func.row_number().over(order_by=by_a.desc())) == [1, 2, 3]
    assert all_of(sa.func.char_length("abc")) == [3]
    assert all_of(sa.extract("year", sa.literal(datetime.date(2026, 1, 1)))) == [2026]
    assert all_of(by_a.is_distinct_from(None), of=lambda q: q.limit(1)) == [True]
    assert all_of(sa.func.now() - sa.func.now()) == [datetime.timedelta()]
    with pytest.warns(exc.SADeprecationWarning) if sa.__version__ >= "2.1" else contextlib.nullcontext():
        assert all_of(by_a % 2, of=lambda q: q.distinct(by_a % 2).order_by(by_a % 2)) == [0, 1]
    numbers = sa.func.generate_series(1, 3).table_valued("n").render_derived()
    assert all_of(sa.func.sum(numbers.c.n)) == [6]
    cte = sa.select(sa.literal(1).label("n")).cte("c", recursive=True)
    cte = cte.union_all(sa.select(cte.c.n + 1).where(cte.c.n < 4))
    assert all_of(sa.func.sum(cte.c.n)) == [10]
    other = t.alias()
    lateral = sa.select(other.c.a).where(other.c.a < by_a).lateral()
    assert all_of(sa.func.count(), of=lambda q: q.select_from(t).join(lateral, sa.true())) == [3]
    sample = sa.tablesample(t, sa.func.bernoulli(100))
    assert all_of(sa.func.count(), of=lambda q: q.select_from(sample)) == [3]


def test_changes(connection):
    metadata = sa.MetaData()
    t = sa.Table("t", metadata, sa.Column("id", sa.Integer, primary_key=True), sa.Column("n", sa.Integer))
    u = sa.Table("u", metadata, sa.Column("id", sa.Integer), sa.Column("n", sa.Integer))
    metadata.create_all(connection)
    assert connection.execute(t.insert(), {"n": 5}).inserted_primary_key == (1,)
    many = t.insert().returning(t.c.id, t.c.n, sort_by_parameter_order=True)
    rows = connection.execute(many, [{"n": n} for n in range(3000, 0, -1)]).all()
    assert rows == [(3002 - n, n) for n in range(3000, 0, -1)]
    assert connection.execute(t.update().where(t.c.id > 2900).values(n=0)).rowcount == 101
    assert connection.execute(t.delete().where(t.c.id > 2).returning(t.c.id)).all()[0] == (3,)
    run(connection, "INSERT INTO u VALUES (1, 50), (9, 90)")
    changed = t.update().where(t.c.id == u.c.id).values(n=u.c.n).returning(t.c.id, u.c.n)
    assert connection.execute(changed).all() == [(1, 50)]
    assert connection.execute(t.insert().from_select(["id", "n"], sa.select(u).where(u.c.id > 1))).rowcount == 1
    assert connection.execute(t.delete().where(t.c.id == u.c.id)).rowcount == 2
    assert connection.execute(t.select()).all() == [(2, 3000)]
    for insert in (own.insert, postgresql.insert):
        again = insert(t).values(id=2, n=7)
        assert connection.execute(again.on_conflict_do_nothing()).rowcount == 0
        changed = again.on_conflict_do_update(
            index_elements=["id"], set_={"n": again.excluded.n + t.c.n}, where=t.c.n > 0
        )
        assert connection.scalar(changed.returning(t.c.n)) in (3007, 3014)
    with pytest.raises(exc.IntegrityError):
        connection.execute(t.insert(), {"id": 2})


def test_explicit_defaults_of_keys(connection):
    metadata = sa.MetaData()
    sa.Table("numbered", metadata, sa.Column("id", sa.BigInteger, primary_key=True))
    sa.Table("given", metadata, sa.Column("id", sa.Integer, primary_key=True, autoincrement=False))
    sa.Table("said", metadata, sa.Column("id", sa.Integer, sa.Identity(start=7), primary_key=True))
    counted = sa.Table("counted", metadata, sa.Column("id", sa.Integer, sa.Sequence("s", start=5), primary_key=True),
                       sa.Column("n", sa.Integer))
    metadata.create_all(connection)
    inspector = sa.inspect(connection)
    numbers_itself = {name: inspector.get_columns(name)[0]["autoincrement"] for name in inspector.get_table_names()}
    assert numbers_itself == {"counted": False, "given": False, "numbered": True, "said": True}
    assert inspector.get_sequence_names() == ["s"]
    assert connection.execute(counted.insert(), {"n": 1}).inserted_primary_key == (5,)


def test_every_keyword_can_be_a_name(connection):
    source = (ROOT / "crates/syntax/src/keywords.rs").read_text()
    words = sorted({word.lower() for word in re.findall(r'"(\w+)"', source)} | RESERVED | {"a b", "A", "1", 'a"b'})
    assert len(words) > 150
    metadata = sa.MetaData()
    every = sa.Table("every", metadata, *(sa.Column(word, sa.Integer) for word in words))
    tables = [sa.Table(word, metadata, sa.Column(word, sa.Integer)) for word in words if word not in RESERVED]
    metadata.create_all(connection)
    connection.execute(every.insert(), {word: n for n, word in enumerate(words)})
    assert connection.execute(sa.select(every)).one() == tuple(range(len(words)))
    assert [column["name"] for column in sa.inspect(connection).get_columns("every")] == words
    for n, table in enumerate(tables):
        [name] = table.c.keys()
        alias = table.alias(name)
        connection.execute(table.insert(), {name: n})
        connection.execute(table.update().values({name: table.c[name] + 1}))
        assert connection.execute(sa.select(alias.c[name].label(name)).order_by(alias.c[name])).all() == [(n + 1,)]
        connection.execute(table.delete().where(table.c[name] == n + 1))
    metadata.drop_all(connection)


def test_options_of_tables(connection):
    metadata = sa.MetaData()
    t = sa.Table("t", metadata, sa.Column("a", sa.Integer), sa.Column("b c", sa.Double),
                 entasis_layout="equi_ghost", entasis_layout_key=["a", "b c"], entasis_partitions=4,
                 entasis_ghost="2%", entasis_compression={"b c": "none"}, entasis_read_sla="20us")
    metadata.create_all(connection)
    chosen = connection.exec_driver_sql("SELECT layout, layout_key, ghost, read_sla FROM entasis_tables()").one()
    assert chosen[0] == "equi_ghost" and chosen[2] == 0.02
    temporary = sa.Table("x", sa.MetaData(), sa.Column("a", sa.Integer), prefixes=["TEMPORARY"],
                         entasis_on_commit="DELETE ROWS")
    temporary.create(connection)
    connection.execute(temporary.insert(), {"a": 1})
    connection.commit()
    assert connection.execute(temporary.select()).all() == []
    wrong = sa.Table("y", sa.MetaData(), sa.Column("a", sa.Integer), entasis_on_commit="FORGET")
    with pytest.raises(exc.CompileError, match="entasis_on_commit of y is 'FORGET': it is PRESERVE ROWS"):
        wrong.create(connection)
    with pytest.raises(exc.ArgumentError, match="entasis_layuot"):
        sa.Table("z", sa.MetaData(), sa.Column("a", sa.Integer), entasis_layuot="sorted")
    with pytest.raises(exc.ProgrammingError, match="sort"):
        sa.Table("z", sa.MetaData(), sa.Column("a", sa.Integer), entasis_layout="sort").create(connection)
    assert t.name in sa.inspect(connection).get_table_names()


# Reflection.


def test_reflection(connection):
    run(
        connection,
        "CREATE TABLE makers (id INTEGER PRIMARY KEY, name VARCHAR NOT NULL UNIQUE, country VARCHAR DEFAULT 'it''s')",
        "CREATE TABLE parts (maker INTEGER REFERENCES makers ON DELETE CASCADE ON UPDATE SET NULL, nr BIGINT,"
        " price DECIMAL(10, 2) DEFAULT 1.5, CONSTRAINT positive CHECK (price > 0), CONSTRAINT parts_key"
        " PRIMARY KEY (maker, nr))",
        "CREATE TABLE uses (maker INTEGER, nr BIGINT, CONSTRAINT used FOREIGN KEY (maker, nr)"
        " REFERENCES parts (maker, nr))",
        "CREATE VIEW cheap AS SELECT maker, price FROM parts WHERE price < 2",
        "CREATE TEMPORARY TABLE seen (id BIGINT)",
        "CREATE TEMPORARY VIEW own AS SELECT id FROM seen",
        "CREATE SCHEMA sales",
        "CREATE TABLE sales.makers (maker INTEGER REFERENCES main.makers (id))",
    )
    inspector = sa.inspect(connection)
    assert inspector.get_table_names() == ["makers", "parts", "uses"]
    assert inspector.get_view_names() == ["cheap"]
    assert inspector.get_temp_table_names() == ["seen"]
    assert inspector.get_temp_view_names() == ["own"]
    assert set(inspector.get_schema_names()) == {"main", "sales", "information_schema"}
    assert inspector.get_view_definition("cheap") == "SELECT maker, price FROM parts WHERE price < 2"
    assert [(column["name"], column["nullable"], column["default"]) for column in inspector.get_columns("makers")] == [
        ("id", False, None), ("name", False, None), ("country", True, "'it''s'"),
    ]  # fmt: skip
    assert inspector.get_pk_constraint("parts")["constrained_columns"] == ["maker", "nr"]
    assert inspector.get_pk_constraint("parts")["name"] == "parts_key"
    assert inspector.get_pk_constraint("seen")["constrained_columns"] == []
    [key] = inspector.get_foreign_keys("parts")
    assert (key["referred_table"], key["referred_columns"]) == ("makers", ["id"])
    assert key["options"] == {"ondelete": "CASCADE", "onupdate": "SET NULL"}
    [key] = inspector.get_foreign_keys("uses")
    assert key["constrained_columns"] == ["maker", "nr"] and key["referred_columns"] == ["maker", "nr"]
    assert key["options"] == {}
    [key] = inspector.get_foreign_keys("makers", schema="sales")
    assert (key["referred_schema"], key["referred_table"]) == ("main", "makers")
    assert inspector.get_check_constraints("parts")[0]["sqltext"] == "price > 0"
    assert inspector.get_unique_constraints("makers")[0]["column_names"] == ["name"]
    assert inspector.has_table("seen") and not inspector.has_table("nothing")
    assert [column["name"] for column in inspector.get_columns("makers", schema="public")] == ["id", "name", "country"]
    with pytest.raises(exc.NoSuchTableError):
        inspector.get_columns("nothing")
    metadata = sa.MetaData()
    metadata.reflect(connection, views=True)
    assert set(metadata.tables) == {"makers", "parts", "uses", "cheap"}
    assert metadata.tables["uses"].c.nr.references(metadata.tables["parts"].c.nr)
    # What was reflected can be created.
    with sa.create_engine("entasis://").begin() as other:
        tables = [table for name, table in metadata.tables.items() if name != "cheap"]
        metadata.create_all(other, tables=tables)
        again = sa.MetaData()
        again.reflect(other)
        for table in tables:
            assert compiled(schema.CreateTable(again.tables[table.name])) == compiled(schema.CreateTable(table))


def test_constraints_of_one_name(connection):
    run(
        connection,
        "CREATE TABLE a (n INTEGER PRIMARY KEY, CONSTRAINT c CHECK (n > 1), CONSTRAINT own CHECK (n < 9))",
        "CREATE TABLE b (n INTEGER, CONSTRAINT c CHECK (n > 2), CONSTRAINT f FOREIGN KEY (n) REFERENCES a)",
        "CREATE TABLE d (n INTEGER, CONSTRAINT f FOREIGN KEY (n) REFERENCES a ON DELETE CASCADE)",
    )
    inspector = sa.inspect(connection)
    assert {check["name"]: check["sqltext"] for check in inspector.get_check_constraints("a")} == {"c": "n > 1", "own": "n < 9"}
    assert [check["sqltext"] for check in inspector.get_check_constraints("b")] == ["n > 2"]
    assert inspector.get_foreign_keys("b")[0]["options"] == {}
    assert inspector.get_foreign_keys("d")[0]["options"] == {"ondelete": "CASCADE"}


def test_a_foreign_key_names_columns_in_its_own_order(connection):
    run(
        connection,
        "CREATE TABLE p (a INTEGER, b INTEGER, PRIMARY KEY (a, b))",
        "CREATE TABLE c (x INTEGER, y INTEGER, FOREIGN KEY (x, y) REFERENCES p (b, a))",
    )
    (key,) = sa.inspect(connection).get_foreign_keys("c")
    assert dict(zip(key["constrained_columns"], key["referred_columns"])) == {"x": "b", "y": "a"}


def test_indexes_that_are_not_unique(connection):
    table = sa.Table("t", sa.MetaData(), sa.Column("n", sa.Integer, index=True), sa.Column("m", sa.Integer))
    table.create(connection)
    sa.Index("both", table.c.m, table.c.n).create(connection)
    indexes = {index["name"]: index for index in sa.inspect(connection).get_indexes("t")}
    assert {name: index["column_names"] for name, index in indexes.items()} == {"both": ["m", "n"], "ix_t_n": ["n"]}
    assert not any(index["unique"] for index in indexes.values())


def test_indexes_are_in_the_schema_of_their_table(connection):
    run(connection, "CREATE SCHEMA sales")
    for schema_name in (None, "sales"):
        table = sa.Table("t", sa.MetaData(), sa.Column("n", sa.Integer), schema=schema_name)
        table.create(connection)
        index = sa.Index("i", table.c.n, unique=True)
        index.create(connection)
    assert sa.inspect(connection).get_unique_constraints("t", schema="sales") == [{"name": "i", "column_names": ["n"]}]
    index.drop(connection)
    assert sa.inspect(connection).get_unique_constraints("t", schema="sales") == []
    assert len(sa.inspect(connection).get_unique_constraints("t")) == 1


def test_names_in_any_case(connection):
    table = sa.Table("MyTable", sa.MetaData(), sa.Column("MyColumn", sa.Integer), schema="Sales")
    run(connection, "CREATE SCHEMA Sales")
    table.create(connection)
    connection.execute(table.insert(), {"MyColumn": 1})
    assert sa.inspect(connection).has_table("MyTable", schema="Sales")
    again = sa.Table("MyTable", sa.MetaData(), autoload_with=connection, schema="Sales")
    assert connection.scalars(sa.select(again.c.MyColumn)).all() == [1]
    table.create(connection, checkfirst=True)
    table.drop(connection)


def test_temporary_objects_come_first(connection):
    run(connection, "CREATE TABLE t (a INTEGER)", "CREATE TEMPORARY TABLE t (b INTEGER)")
    inspector = sa.inspect(connection)
    assert [column["name"] for column in inspector.get_columns("t")] == ["b"]
    assert [column["name"] for column in inspector.get_columns("t", schema="main")] == ["a"]
    assert [column["name"] for column in inspector.get_columns("t", schema="temp")] == ["b"]
    assert list(inspector.get_multi_columns()) == [(None, "t")]


def test_registered_objects_are_reflected(connection):
    pandas = pytest.importorskip("pandas")
    connection.connection.driver_connection.register("frame", pandas.DataFrame({"x": [1, 2]}))
    frame = sa.Table("frame", sa.MetaData(), autoload_with=connection)
    assert connection.scalar(sa.select(sa.func.sum(frame.c.x))) == 3
    assert sa.inspect(connection).get_temp_table_names() == ["frame"]


def test_attached_databases(tmp_path):
    engine = sa.create_engine(f"entasis:///{tmp_path}/main.db")
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        run(
            connection,
            f"ATTACH '{tmp_path}/archive.db' AS archive",
            "CREATE TABLE archive.customers (id INTEGER PRIMARY KEY)",
            "CREATE TABLE archive.orders (customer INTEGER REFERENCES customers)",
            "CREATE SCHEMA archive.old",
            "CREATE TABLE archive.old.orders (customer INTEGER)",
            "CREATE TABLE orders (customer INTEGER)",
        )
        inspector = sa.inspect(connection)
        assert inspector.get_table_names() == ["orders"]
        assert inspector.get_table_names(schema="archive") == ["customers", "orders"]
        assert inspector.get_table_names(schema="archive.old") == ["orders"]
        [key] = inspector.get_foreign_keys("orders", schema="archive")
        assert (key["referred_schema"], key["referred_table"]) == ("archive", "customers")
        metadata = sa.MetaData()
        orders = sa.Table("orders", metadata, autoload_with=connection, schema="archive")
        old = sa.Table("orders", metadata, autoload_with=connection, schema="archive.old")
        connection.execute(metadata.tables["archive.customers"].insert(), {"id": 1})
        connection.execute(orders.insert(), {"customer": 1})
        connection.execute(old.insert(), {"customer": 2})
        assert connection.scalar(sa.select(sa.func.count()).select_from(orders)) == 1


# Programs on top of it.


def test_the_orm(engine):
    class Base(orm.DeclarativeBase):
        pass

    class Maker(Base):
        __tablename__ = "makers"
        id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
        name: orm.Mapped[str] = orm.mapped_column(sa.String(20), unique=True)
        parts: orm.Mapped[list["Part"]] = orm.relationship(back_populates="maker", cascade="all, delete-orphan")

    class Part(Base):
        __tablename__ = "parts"
        id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
        maker_id: orm.Mapped[int] = orm.mapped_column(sa.ForeignKey("makers.id"))
        price: orm.Mapped[decimal.Decimal] = orm.mapped_column(sa.Numeric(10, 2))
        maker: orm.Mapped[Maker] = orm.relationship(back_populates="parts")

    Base.registry.configure()
    Base.metadata.create_all(engine)
    with orm.Session(engine) as session:
        session.add_all([Maker(name=f"m{n}", parts=[Part(price=n), Part(price=n * 2)]) for n in range(1, 4)])
        session.commit()
        found = session.scalars(sa.select(Maker).options(orm.selectinload(Maker.parts)).order_by(Maker.id)).all()
        assert [(maker.name, sum(part.price for part in maker.parts)) for maker in found] == [
            ("m1", 3), ("m2", 6), ("m3", 9),
        ]  # fmt: skip
        session.delete(found[0])
        found[1].parts[0].price += 1
        session.commit()
        total = sa.select(Maker.name, sa.func.sum(Part.price)).join(Part).group_by(Maker.name).order_by(Maker.name)
        assert session.execute(total).all() == [("m2", 7), ("m3", 9)]
        session.add(Maker(name="m2"))
        with pytest.raises(exc.IntegrityError):
            session.commit()


def test_alembic(connection):
    pytest.importorskip("alembic")
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext
    from alembic.operations import Operations

    import entasis.sqlalchemy.migrations  # noqa: F401

    context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
    op = Operations(context)
    op.create_table("t", sa.Column("id", sa.Integer, primary_key=True), sa.Column("n", sa.String(20), nullable=False))
    op.add_column("t", sa.Column("x", sa.Integer, nullable=False, server_default="3"))
    op.add_column("t", sa.Column("y", sa.Integer))
    op.alter_column("t", "y", type_=sa.BigInteger())
    op.alter_column("t", "y", new_column_name="z")
    op.alter_column("t", "n", nullable=True, server_default="it's")
    op.create_check_constraint("positive", "t", "x > 0")
    op.drop_constraint("positive", "t", type_="check")
    op.create_unique_constraint("one", "t", ["n"])
    op.create_table("u", sa.Column("a", sa.Integer))
    op.create_foreign_key("of_t", "u", "t", ["a"], ["id"])
    op.drop_constraint("of_t", "u", type_="foreignkey")
    op.drop_column("t", "z")
    op.rename_table("u", "v")
    op.bulk_insert(sa.table("v", sa.column("a", sa.Integer)), [{"a": 1}])
    metadata = sa.MetaData()
    sa.Table("v", metadata, sa.Column("a", sa.Integer))
    columns = [sa.Column("x", sa.Integer, nullable=False, server_default=sa.text("3")), sa.Column("new", sa.JSON)]
    named = [sa.Column("id", sa.Integer, primary_key=True), sa.Column("n", sa.Text, server_default="it's")]
    sa.Table("t", metadata, *named, *columns, sa.UniqueConstraint("n", name="one"))
    types = [sa.Float(), sa.Uuid(), sa.Enum("a", "b"), sa.ARRAY(sa.Integer), sa.Interval(), sa.Numeric(), sa.LargeBinary(),
             sa.DateTime(timezone=True), sa.Time(), own.HUGEINT(), own.STRUCT({"x": sa.Integer()}), sa.Unicode(5)]  # fmt: skip
    sa.Table("types", metadata, *(sa.Column(f"c{n}", ty) for n, ty in enumerate(types))).create(connection)
    differences = compare_metadata(context, metadata)
    assert len(differences) == 1, differences
    [(what, _, table, column)] = differences
    assert (what, table, column.name) == ("add_column", "t", "new")


def test_pandas(engine):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "n": [1, 2],
            "x": [0.5, None],
            "s": ["a", None],
            "at": pandas.to_datetime(["2026-01-01 10:00", None]),
            "b": [True, False],
            "d": [decimal.Decimal("1.25"), None],
        }
    )
    assert frame.to_sql("t", engine, index=False) == 2
    with pytest.raises(ValueError, match="exists"):
        frame.to_sql("t", engine, index=False)
    frame.to_sql("t", engine, index=False, if_exists="append", method="multi")
    back = pandas.read_sql("SELECT * FROM t ORDER BY n", engine)
    assert back.n.tolist() == [1, 1, 2, 2]
    assert back["at"].dtype.kind == "M"
    assert pandas.read_sql_table("t", engine, columns=["s"]).s.tolist()[0] == "a"
    assert pandas.read_sql(sa.text("SELECT count(*) AS c FROM t WHERE n = :n"), engine, params={"n": 1}).c[0] == 2
    frame.to_sql("t", engine, if_exists="replace", dtype={"n": sa.BigInteger()}, schema="main")
    assert [column["name"] for column in sa.inspect(engine).get_columns("t")][0] == "index"
    chunks = pandas.read_sql("SELECT * FROM t", engine, chunksize=1)
    assert sum(len(chunk) for chunk in chunks) == 2


def test_polars(engine):
    polars = pytest.importorskip("polars")
    with engine.begin() as connection:
        run(connection, "CREATE TABLE t AS SELECT range AS n, 'x' AS s FROM range(3)")
    options = {"parameters": {"n": 0}}
    frame = polars.read_database("SELECT * FROM t WHERE n > :n ORDER BY n", engine, execute_options=options)
    assert frame.to_dict(as_series=False) == {"n": [1, 2], "s": ["x", "x"]}


def test_the_page_runs(tmp_path, monkeypatch):
    from test_pages import BLOCK, run as run_block

    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs/sqlalchemy.md").read_text()
    variables = {"entasis": entasis}
    for block in BLOCK.finditer(text):
        run_block(block[1], text[: block.start(1)].count("\n") + 1, "docs/sqlalchemy.md", variables)
    variables["engine"].dispose()
