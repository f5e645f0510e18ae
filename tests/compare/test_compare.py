"""Tests the comparison itself: when results are the same, and how answers are counted."""

from __future__ import annotations

import decimal
import math
import re
from pathlib import Path

import functions
from compare import judge
from constraints import excused
from engines import Answer
from rules import RULES, Kind
from values import Interval, same_rows
from workloads import Query, read


def answers(entasis, duckdb, postgres=None):
    given = {"Entasis": entasis, "DuckDB": duckdb, "PostgreSQL": postgres}
    return {
        name: Answer(error="error") if rows is False else Answer([(value,) for value in rows])
        for name, rows in given.items()
        if rows is not None
    }


def judged(*rows, ordered=False, sql="SELECT 1"):
    return judge(Query(sql, ordered), answers(*rows))


def test_numbers_are_compared_by_value_and_floats_nearly():
    assert same_rows([(1, decimal.Decimal("2.50"))], [(decimal.Decimal(1), 2.5)], True)
    assert same_rows([(0.1 + 0.2,)], [(decimal.Decimal("0.3"),)], True)
    assert not same_rows([(0.3001,)], [(0.3,)], True)
    assert same_rows([(math.nan,), (1.0,)], [(1,), (math.nan,)], False)


def test_values_of_two_kinds_differ():
    assert not same_rows([(1,)], [("1",)], True)
    assert not same_rows([(1,)], [(True,)], True)
    assert not same_rows([(None,)], [("",)], True)


def test_order_counts_where_it_is_defined():
    assert same_rows([(1,), (None,), (2,)], [(2,), (1,), (None,)], False)
    assert not same_rows([(1,), (2,)], [(2,), (1,)], True)
    assert not same_rows([(1,), (1,), (2,)], [(1,), (2,), (2,)], False)


def test_lists_and_structs_are_compared_by_their_parts():
    assert same_rows([([1, decimal.Decimal("2.50")],)], [([decimal.Decimal(1), 2.5],)], True)
    assert same_rows([([None],), ([],), (None,)], [([],), (None,), ([None],)], False)
    assert not same_rows([([None],)], [([],)], True)
    assert not same_rows([([1, 2],)], [([2, 1],)], True)
    assert same_rows([({"a": [1.0], "b": None},)], [({"a": [1], "b": None},)], False)
    assert not same_rows([({"a": 1},)], [({"b": 1},)], True)


def test_intervals_have_three_parts():
    month, days = Interval(1, 0, 0), Interval(0, 30, 0)
    assert not same_rows([(month,)], [(days,)], True)
    assert same_rows([(month,)], [(days,)], True, by_length=True)


def test_both_others_or_postgres_decide():
    assert judged([1], [1], [1]) == ("same", False)
    assert judged([1], [2], [1]) == ("as PostgreSQL", False)
    assert judged([1], [1], [2]) == ("as DuckDB without a rule", True)
    assert judged([1], [2], [2]) == ("different", True)
    assert judged([1], [2], [3]) == ("different", True)
    assert judged([1], False, False) == ("different", True)
    assert judged(False, False, False) == ("same", False)
    assert judged([1], [2]) == ("different", True)


def test_equal_intervals_are_one_difference():
    day, hours = Interval(0, 1, 0), Interval(0, 0, 86_400_000_000)
    assert judged([day], [day], [hours]) == ("equal intervals", False)
    assert judged([day], [hours], [Interval(0, 2, 0)]) == ("different", True)


def test_a_rule_explains():
    assert judged([1], [1], [1.5], sql="SELECT extract(second FROM x)") == ("as DuckDB: whole seconds", False)
    assert judged([2], [1], [1.5], sql="SELECT extract(second FROM x)")[1]


def test_workloads_are_read():
    text = ["-- seed 3\n", "-- setup\n", "CREATE TABLE t0 (c0 INTEGER);\n", "-- ordered query\n", "SELECT 1;\n"]
    (workload,) = read(text)
    assert (workload.seed, workload.setup) == (3, ["CREATE TABLE t0 (c0 INTEGER)"])
    assert workload.queries == [Query("SELECT 1", True)]


def test_constraints_are_excused_for_their_reason_only():
    log = [
        "ALTER TABLE t1 ADD FOREIGN KEY (c, d) REFERENCES t0 (a, b) ON DELETE NO ACTION ON UPDATE CASCADE",
        "ALTER TABLE t1 ADD FOREIGN KEY (d) REFERENCES t0 (c) ON DELETE SET NULL ON UPDATE CASCADE",
        "DELETE FROM t0 WHERE true",
    ]
    refused = 'update or delete on table "t0" violates foreign key constraint "t1_c_d_fkey" on table "t1"'
    assert excused(log, None, refused) == "foreign keys that share a column"
    assert excused([log[0], log[2]], None, refused) is None
    assert excused([log[0], log[1].replace("t0", "t2"), log[2]], None, refused) is None
    assert excused(log, None, "duplicate key value") == "keys that move"
    assert excused([*log, "INSERT INTO t0 VALUES (1)"], None, "duplicate key value") is None


def test_every_rule_has_its_reason():
    text = Path(__file__).parents[1].joinpath("differences.md").read_text()
    headings = set(re.findall(r"^#+ (.*)$", text, re.M))
    assert {rule.name for rule in RULES if rule.kind is not Kind.OPEN} <= headings
    assert {"keys that move", "foreign keys that share a column"} <= headings


def test_functions_of_the_page_are_called():
    page = list(functions.entries())
    assert len(page) > 300
    assert functions.split("f('a, b', [1, 2], g(x, y))") == ("f", ["'a, b'", "[1, 2]", "g(x, y)"])
    assert functions.split("f(1) + g(2)") is None
    assert functions.portable("f([1, [2]]::INTEGER[], x[1], '[', {'a': []})") == (
        "f(ARRAY[1, ARRAY[2]]::INTEGER[], x[1], '[', {'a': ARRAY[]})"
    )
    found = [query for entry in page for query in functions.queries(*entry)]
    assert "SELECT date_diff('day', TIMESTAMPTZ '2024-07-01 02:00:00+00', DATE '2024-03-01')" in found
    assert "SELECT date_diff(NULL, DATE '2024-02-01', DATE '2024-03-01')" in found
