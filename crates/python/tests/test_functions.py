"""Python functions that SQL calls."""

import datetime
import threading

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import entasis


@pytest.fixture
def con():
    con = entasis.connect()
    con.execute("CREATE TABLE t AS SELECT i AS n, CASE WHEN i % 4 > 0 THEN i::VARCHAR END AS s FROM range(10000) r(i)")
    return con


def value(con, sql, parameters=None):
    return con.execute(sql, parameters).fetchone()[0]


def test_types_come_from_annotations(con):
    def describe(n: int, s: str) -> str:
        return f"{n}:{s}"

    con.create_function("describe_row", describe)
    assert value(con, "SELECT describe_row(7, 'x')") == "7:x"
    assert con.describe("SELECT describe_row(1, 'a') AS d")[1] == [("d", "VARCHAR")]
    rows = con.execute("SELECT n, describe_row(n, s) FROM t ORDER BY n").fetchall()
    assert rows == [(n, f"{n}:{n}" if n % 4 else None) for n in range(10000)]
    con.create_function("next_day", lambda day: day + datetime.timedelta(days=1), ["DATE"], datetime.date)
    assert value(con, "SELECT next_day(DATE '2024-02-28')") == datetime.date(2024, 2, 29)
    # Arguments as they come.
    con.create_function("names", lambda *values: "/".join(type(v).__name__ for v in values), return_type=str)
    assert value(con, "SELECT names(1, 'a', 2.5::DOUBLE, [1], {'a': 1})") == "int/str/float/list/dict"
    # A result is cast to the type that was promised.
    con.create_function("amount", lambda n: n, [int], "DECIMAL(10, 2)")
    assert str(value(con, "SELECT amount(3)")) == "3.00"


def test_arrow_functions_get_arrays(con):
    con.create_function("plus", lambda a, b: pc.add(a, b), ["BIGINT", "BIGINT"], "BIGINT", type="arrow")
    assert value(con, "SELECT sum(plus(n, n)) FROM t") == 2 * sum(range(10000))
    con.create_function("upper2", lambda s: pc.utf8_upper(s), [str], str, type="arrow", null_handling="special")
    assert value(con, "SELECT count(upper2(s)) FROM t") == 7500
    con.create_function("wrong", lambda a: pa.array([1]), [int], int, type="arrow")
    with pytest.raises(entasis.ProgrammingError, match="the function wrong: it gave 1 values for"):
        con.execute("SELECT wrong(n) FROM t").fetchall()


def test_arrays_are_cast_as_sql_casts_them(con):
    con.create_function("half_of", lambda n: pc.divide(pc.cast(n, pa.float64()), 2.0), [int], int, type="arrow")
    halves = con.execute("SELECT half_of(n), (n::DOUBLE / 2)::BIGINT FROM t WHERE n < 6 ORDER BY n").fetchall()
    assert halves == [(half, half) for half in [0, 0, 1, 2, 2, 2]]

    def parity(n):
        return pc.if_else(pc.equal(pc.bit_wise_and(n, 1), 0), "even", "odd")

    con.create_function("parity", parity, [int], "ENUM('even', 'odd')", type="arrow")
    assert value(con, "SELECT parity(3)") == "odd"
    assert value(con, "SELECT count(*) FROM t WHERE parity(n) = 'even'") == 5000
    con.create_function("as_id", lambda n: pa.array([b"sixteen bytes xx"] * len(n)), [int], "UUID", type="arrow")
    assert value(con, "SELECT as_id(1)").bytes == b"sixteen bytes xx"
    con.create_function("as_word", lambda n: pa.array(["ß".encode()] * len(n)), [int], str, type="arrow")
    assert value(con, "SELECT as_word(1)") == "ß"
    con.create_function("as_moment", lambda n: n, [int], "TIMESTAMP", type="arrow")
    with pytest.raises(entasis.Error, match="cannot read Int64 as TIMESTAMP: cannot cast BIGINT to TIMESTAMP"):
        con.execute("SELECT as_moment(1)").fetchall()


def test_null_rules(con):
    con.create_function("seen", lambda s: "none" if s is None else s, [str], str, null_handling="special")
    con.create_function("plain", lambda s: "none" if s is None else s, [str], str)
    assert value(con, "SELECT count(*) FROM t WHERE seen(s) = 'none'") == 2500
    assert value(con, "SELECT count(*) FROM t WHERE plain(s) = 'none'") == 0
    con.create_function("nothing", lambda n: None, [int], int)
    assert value(con, "SELECT nothing(1)") is None


def test_exceptions_are_causes(con):
    def fails(n):
        raise KeyError("no such thing")

    con.create_function("fails", fails, [int], int)
    with pytest.raises(entasis.ProgrammingError, match="the function fails: KeyError: 'no such thing'") as caught:
        con.execute("SELECT fails(n) FROM t")
    assert isinstance(caught.value.__cause__, KeyError)
    con.create_function("forgives", fails, [int], int, exception_handling="return_null")
    assert value(con, "SELECT count(forgives(n)) FROM t") == 0
    with pytest.raises(entasis.Error) as caught:
        con.execute("SELECT nosuch(1)")
    assert caught.value.__cause__ is None
    con.create_function("odd", lambda: object(), [], int)
    with pytest.raises(entasis.Error, match="the function odd: .*'object'"):
        con.execute("SELECT odd()")
    con.create_function("text", lambda: "abc", [], int, exception_handling="return_null")
    assert value(con, "SELECT text()") is None
    con.create_function("wide", lambda: 300, [], "TINYINT")
    with pytest.raises(entasis.Error, match="the function wide"):
        con.execute("SELECT wide()")


def test_a_stream_tells_the_exception_and_no_other_statement_does(con):
    def fails(n):
        raise KeyError("gone")

    con.create_function("fails", fails, [int], int)
    with pytest.raises(entasis.ProgrammingError, match="KeyError") as caught:
        list(con.stream("SELECT fails(n) FROM t"))
    assert isinstance(caught.value.__cause__, KeyError)
    con.stream("SELECT fails(n) FROM t").close()
    with pytest.raises(entasis.ProgrammingError) as caught:
        con.execute("SELECT nosuch")
    assert caught.value.__cause__ is None


def test_annotations_of_every_form(con):
    module = {}
    text = "from __future__ import annotations\ndef mean(values: list) -> float:\n    return sum(values) / len(values)\n"
    exec(text, module)
    con.create_aggregate("my_mean", module["mean"])
    assert con.describe("SELECT my_mean(1.5)")[1][0][1] == "DOUBLE"
    assert value(con, "SELECT my_mean(x) FROM (VALUES (0.1::DOUBLE), (0.1)) v(x)") == 0.1

    def half(n: int | None, *, digits: list = []) -> int | None:
        return None if n is None else n // 2

    con.create_function("half", half, [int], null_handling="special")
    assert con.execute("SELECT half(9), half(NULL)").fetchone() == (4, None)

    def total(values: list[int]) -> int:
        return sum(values)

    con.create_function("total", total, ["BIGINT[]"])
    assert value(con, "SELECT total([1, 2, 3])") == 6
    with pytest.raises(entasis.InterfaceError, match="at least one argument"):
        con.create_aggregate("none", lambda: 1, [], int)


def test_a_stream_is_closed_while_another_thread_waits_for_its_rows(con):
    begun = threading.Event()

    def slow(n):
        begun.set()
        return n

    con.create_function("slow", slow, [int], int)
    stream = con.stream("SELECT slow(n) FROM range(100000000) r(n) WHERE slow(n) < 0")
    waiting = threading.Thread(target=lambda: stream.fetchone())
    waiting.start()
    begun.wait(10)
    con.interrupt()
    stream.close()
    waiting.join(20)
    assert not waiting.is_alive()


def test_aggregates_like_those_of_sqlite(con):
    class Longest:
        def __init__(self):
            self.best = ""

        def step(self, text):
            self.best = max(self.best, text, key=len)

        def finalize(self):
            return self.best

    con.create_aggregate("longest", Longest, [str], str)
    assert len(value(con, "SELECT longest(s) FROM t")) == 4
    rows = con.execute("SELECT n % 3, longest(s ORDER BY n) FROM t WHERE n < 100 GROUP BY 1 ORDER BY 1").fetchall()
    assert rows == [(0, "15"), (1, "10"), (2, "11")]
    con.create_aggregate("spread", lambda n: max(n) - min(n) if n else None, [int], int)
    assert value(con, "SELECT spread(n) FROM t") == 9999
    assert value(con, "SELECT spread(n) FROM t WHERE false") is None
    con.create_aggregate("dot", lambda a, b: pc.sum(pc.multiply(a, b)), [int, int], int, type="arrow")
    assert value(con, "SELECT dot(n, n) FROM t") == sum(n * n for n in range(10000))
    with pytest.raises(entasis.InterfaceError, match="return_type"):
        con.create_aggregate("unknown", Longest)


def test_table_functions(con):
    def series(start, stop, step=1):
        return {"n": list(range(start, stop, step))}

    con.create_table_function("series", series)
    assert con.execute("SELECT * FROM series(1, 4)").fetchall() == [(1,), (2,), (3,)]
    assert value(con, "SELECT sum(n) FROM series(0, 10, step := 5)") == 5
    with pytest.raises(entasis.Error, match="the function series: TypeError"):
        con.execute("SELECT * FROM series()")


def test_threads_call_functions_together(con):
    con.create_function("twice", lambda n: 2 * n, [int], int)
    other = con.duplicate()
    with pytest.raises(entasis.Error, match="there is no function twice"):
        other.execute("SELECT twice(1)")
    other.create_function("twice", lambda n: 2 * n, [int], int)
    results = []

    def work(own):
        for _ in range(5):
            results.append(value(own, "SELECT sum(twice(n)) FROM t"))

    threads = [threading.Thread(target=work, args=(own,)) for own in (con, other, con)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [2 * sum(range(10000))] * 15


def test_a_function_cannot_use_its_own_connection(con):
    con.create_function("inner", lambda: con.execute("SELECT 1").fetchone()[0], [], int)
    with pytest.raises(entasis.Error, match="cannot use the connection that calls it"):
        con.execute("SELECT inner()")
    other = con.duplicate()
    con.create_function("inner", lambda: other.execute("SELECT count(*) FROM t").fetchone()[0], [], int)
    assert value(con, "SELECT inner()") == 10000


def test_functions_are_removed_and_names_refused(con):
    con.create_function("f", lambda: 1, [], int)
    assert value(con, "SELECT f()") == 1
    assert con.remove_function("F") and not con.remove_function("f")
    with pytest.raises(entasis.Error, match="there is no function f"):
        con.execute("SELECT f()")
    with pytest.raises(entasis.ProgrammingError, match="abs is a function of the database"):
        con.create_function("abs", abs, [int], int)
    for wrong in ({"type": "numpy"}, {"null_handling": "no"}, {"exception_handling": "x"}):
        with pytest.raises(entasis.InterfaceError):
            con.create_function("g", lambda: 1, [], int, **wrong)
    with pytest.raises(entasis.InterfaceError, match="not a type"):
        con.create_function("g", lambda: 1, [], complex)
    with pytest.raises(entasis.InterfaceError, match="not a function"):
        con.create_function("g", 3, [], int)
