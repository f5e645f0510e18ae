"""Tests that suites are read, compared and counted as their own runners do, on small texts of our own."""

from __future__ import annotations

import datetime
import decimal
import hashlib
import json
import os
import re
from pathlib import Path

import regress
import runner
import slt
import verdicts
from comparing import Months, difference, same
from runner import PASSED, Limits, Run, group, in_process
from slt import Dialect, Record
from suites import SUITES, Suite, counts, printed, recorded


def records(text, dialect=Dialect.DUCKDB):
    return list(slt.read(text, dialect))


def ran(text, dialect=Dialect.DUCKDB, suite="duckdb"):
    run = Run(suite, dialect, "test/sql/own.test", Limits(examples=9))
    run.start(["SET TimeZone = 'UTC'"])
    for record in slt.read(text, dialect):
        run.record(record)
    return run.outcome


# Reading


def test_records_of_sqlite_have_values_or_a_hash():
    text = (
        "hash-threshold 8\n\nstatement ok\nCREATE TABLE t(a)\n\n"
        "query IT rowsort label-1\nSELECT a, b\nFROM t\n----\n1\nx\n2\ny\n\n"
        "onlyif mysql # theirs\nstatement ok\nSELECT DIV 2\n"
    )
    first, second, third = records(text, Dialect.SQLITE)
    assert (first.expects, first.line) == ("ok", 3)
    assert (second.sql, second.types, second.sort) == ("SELECT a, b\nFROM t", "IT", "rowsort")
    assert second.expected == ("1", "x", "2", "y")
    assert third.left_out == "for other engines"


def test_a_condition_is_for_the_next_command_alone():
    (record,) = records("onlyif mssql\nhalt\n\nstatement ok\nSELECT 1\n", Dialect.SQLITE)
    assert not record.left_out
    assert records("skipif mssql\nhalt\n\nstatement ok\nSELECT 1\n", Dialect.SQLITE) == []


def test_loops_of_duckdb_are_unrolled():
    text = (
        "foreach type <signed> !hugeint\n\nloop i 1 3\n\nstatement ok\nSELECT {i}::${type}\n\n"
        "endloop\n\nendloop\n\n"
        "statement error con1\nSELECT\n----\nwrong\n"
    )
    found = records(text)
    assert [record.sql for record in found[:3]] == [
        "SELECT 1::tinyint",
        "SELECT 2::tinyint",
        "SELECT 1::smallint",
    ]
    assert (len(found), found[-1].expects, found[-1].session) == (9, "error", "con1")


def test_what_a_file_requires_leaves_out_the_rest():
    text = "require json\n\nstatement ok\nSELECT 1\n\nrequire httpfs\n\nstatement ok\nSELECT 2\n"
    assert [record.left_out for record in records(text)] == ["", "extensions"]
    text = "mode skip\n\nstatement ok\nSELECT 1\n\nmode unskip\n\nstatement ok\nSELECT 2\n"
    assert [record.left_out for record in records(text)] == ["skipped by the suite", ""]
    text = "loop i 0 2\n\nonlyif i=1\nstatement ok\nSELECT {i}\n\nendloop\n"
    assert [record.left_out for record in records(text)] == ["for other engines", ""]
    text = "loop i 8 11\n\nskipif i>=9&&i<10\nstatement ok\nSELECT {i}\n\nendloop\n"
    assert [record.left_out for record in records(text)] == ["", "for other engines", ""]


def test_an_error_of_datafusion_is_in_the_command():
    found = records(
        "query error Divide by zero\nSELECT 1/0\n\nquery I\nSELECT 1\n----\n1\n", Dialect.DATAFUSION
    )
    assert [(record.expects, record.expected) for record in found] == [
        ("error", ("Divide by zero",)),
        ("rows", ("1",)),
    ]


def test_what_stands_behind_the_types_is_a_sort_or_a_connection_and_a_label():
    text = "query I sort same\nSELECT 1\n\nquery I con2\nSELECT 1\n----\n1\n\nquery I\nSELECT 1 WHERE false\n"
    assert [(record.sort, record.label, record.session, record.expected) for record in records(text)] == [
        ("rowsort", "same", "", ()),
        ("nosort", "", "con2", ("1",)),
        ("nosort", "", "", ()),
    ]


def test_a_comment_is_no_part_of_a_statement():
    (record,) = records("statement ok\nSELECT 1;\n# a comment\n")
    assert record.sql == "SELECT 1;"


SQL = """-- comment; with a semicolon
SELECT a,
  'x;y' AS b FROM t;

SELECT $$;$$ /* ; /* ; */ */;
INSERT INTO t VALUES ('bad');
\\d t
COPY t FROM STDIN;
2\ttwo
\\.
SELECT 3;
\\set ECHO none
SELECT 4;
\\set ECHO all
SELECT 5;
SELECT 1; SELECT 2;
"""
OUT = """-- comment; with a semicolon
SELECT a,
  'x;y' AS b FROM t;
 a  |   b   
----+-------
  1 | one   
    | two  +
    | lines
(2 rows)

SELECT $$;$$ /* ; /* ; */ */;
 ?column? 
----------
 ;
(1 row)

INSERT INTO t VALUES ('bad');
ERROR:  invalid
LINE 1: INSERT INTO t VALUES ('bad');
                              ^
\\d t
 Column |  Type
--------+---------
 a      | integer

COPY t FROM STDIN;
SELECT 3;
 ?column? 
----------
        3
(1 row)

\\set ECHO none
        4
SELECT 5;
 ?column? 
----------
        5
(1 row)

SELECT 1; SELECT 2;
"""


def test_what_psql_prints_is_given_to_its_statements():
    first, second, third, describe, copy, three, hide, four, show, five, *shared = regress.read(SQL, OUT)
    assert first.sql == "SELECT a,\n  'x;y' AS b FROM t"
    assert first.expected == (" 1\tone", "\ttwo\nlines")
    assert second.expected == (";",)
    assert (third.expects, third.expected, third.line) == ("error", ("ERROR:  invalid",), 6)
    assert (copy.expects, copy.left_out) == ("ok", "")
    assert [record.expected for record in (three, five)] == [("       3",), ("       5",)]
    assert {record.left_out for record in (describe, hide, four, show)} == {"commands of psql"}
    assert [(record.expects, record.left_out) for record in shared] == [("any", "")] * 2


# Comparing


def wrong(expected, rows, sql="SELECT 1", types="", sort="nosort", dialect=Dialect.DUCKDB):
    return difference(Record(1, sql, "rows", tuple(expected), types, sort), rows, dialect)


def test_rows_are_lines_with_tabs_or_one_value_a_line():
    assert not wrong(["1\ta", "2\tb"], [(1, "a"), (2, "b")])
    assert not wrong(["1", "a", "2", "b"], [(1, "a"), (2, "b")])
    assert wrong(["1\ta"], [(1, "a"), (2, "b")]) == "number of rows"
    assert wrong(["1", "2"], [(1,), (3,)]) == "values"
    assert wrong(["1\t2\t3"], [(1, 2)]) == "number of rows or columns"


def test_the_order_counts_where_the_statement_has_one():
    assert not wrong(["1", "2"], [(2,), (1,)])
    assert wrong(["1", "2"], [(2,), (1,)], "SELECT a FROM t ORDER BY a") == "order of rows"
    assert not wrong(["1", "2"], [(2,), (1,)], "SELECT a FROM t ORDER BY a", sort="rowsort")
    assert not wrong(["1", "2"], [(2,), (1,)], "SELECT a, ')' FROM (SELECT max(a) FROM t ORDER BY a) u")


def test_a_hash_is_that_of_the_values_as_the_suite_prints_them():
    expected = ["3 values hashing to " + hashlib.md5(b"1\n2\n3\n").hexdigest()]
    assert not wrong(expected, [(3,), (1,), (2.0,)], types="I", sort="rowsort", dialect=Dialect.SQLITE)
    assert wrong(expected, [(3,), (1,), (4,)], types="I", sort="rowsort", dialect=Dialect.SQLITE)
    assert wrong(expected, [(3,), (1,), (2.5,)], types="I", sort="rowsort", dialect=Dialect.SQLITE)
    assert wrong(["1", "2"], [(1, 2)], types="I", dialect=Dialect.SQLITE) == "number of columns"


def test_values_are_the_same_in_each_style():
    day = datetime.date(1997, 2, 10)
    assert same("02-10-1997", day, "T", Dialect.POSTGRES)
    assert same(
        "Mon Feb 10 17:32:01.5 1997", datetime.datetime(1997, 2, 10, 17, 32, 1, 500000), "T", Dialect.POSTGRES
    )
    assert not same("02-11-1997", day, "T", Dialect.POSTGRES)
    assert same("@ 1 mon 2 days 3 hours ago", Months((-1, -2, -10_800_000_000)), "T", Dialect.POSTGRES)
    assert same("1 month 2 days 03:00:00", Months((1, 2, 10_800_000_000)), "T", Dialect.DUCKDB)
    assert not same("1 month 2 days 03:00:01", Months((1, 2, 10_800_000_000)), "T", Dialect.DUCKDB)
    moment = datetime.datetime(2020, 1, 1, 8, tzinfo=datetime.timezone.utc)
    assert same("2020-01-01 00:00:00-08", moment, "T", Dialect.DUCKDB)
    assert not same("2020-01-01 08:00:00-08", moment, "T", Dialect.DUCKDB)
    assert same("0.333", 1 / 3, "R", Dialect.DUCKDB) and not same("0.334", 1 / 3, "R", Dialect.DUCKDB)
    assert same("10", decimal.Decimal("10.00"), "R", Dialect.DUCKDB) and not same(
        "10", 11, "I", Dialect.DUCKDB
    )
    assert same("{1,2}", [1, 2], "T", Dialect.POSTGRES) and same("[1, NULL]", [1, None], "T", Dialect.DUCKDB)
    assert same("(empty)", "", "T", Dialect.DUCKDB) and not same("NULL", "", "T", Dialect.DUCKDB)
    assert same("Infinity", float("inf"), "R", Dialect.POSTGRES) and same(
        "nan", float("nan"), "R", Dialect.DUCKDB
    )
    assert same("t", True, "B", Dialect.POSTGRES) and not same("1", False, "B", Dialect.DUCKDB)


def test_texts_are_compared_as_they_are():
    for dialect in (Dialect.DUCKDB, Dialect.POSTGRES, Dialect.SQLITE):
        assert same("a b", "a b", "T", dialect) and same("a", "a ", "T", dialect)
        for other in ("A B", "a  b", " a b", "ab"):
            assert not same("a b", other, "T", dialect)
    assert not same("[a]", ["A"], "T", Dialect.DUCKDB) and not same("[a b]", ["ab"], "T", Dialect.DUCKDB)
    assert wrong(["a"], [("A",)], dialect=Dialect.DATAFUSION) == "values"


def test_numbers_are_nearly_the_same_only_as_doubles():
    assert not same("123456.78", decimal.Decimal("123456.79"), "R", Dialect.DUCKDB)
    assert not same("0.1", 0.14, "R", Dialect.DUCKDB) and same("0.1", 0.10000000149, "R", Dialect.DUCKDB)
    assert not same("12345678", 12345679.0, "R", Dialect.DUCKDB)
    assert same("1.234567890123", 1.2345678901231, "R", Dialect.DUCKDB)
    assert not same("1.23456", 1.23458, "R", Dialect.POSTGRES)
    moment = datetime.datetime(2020, 1, 1, 0, 0, 59, 123457)
    assert not same("2020-01-01 00:00:59.123456", moment, "T", Dialect.DUCKDB)


def test_a_pattern_matches_a_whole_value():
    assert not wrong(["1\t<REGEX>:.*b.*"], [(1, "abc")])
    assert wrong(["1\t<REGEX>:b"], [(1, "abc")]) and wrong(["<!REGEX>:.*b.*"], [("abc",)])


def test_rows_without_an_order_need_not_be_sorted_alike():
    assert not wrong(["0", "1", "NULL"], [(True,), (None,), (False,)])
    assert wrong(["0", "1", "1"], [(True,), (False,), (False,)]) == "values"


def test_a_row_of_datafusion_is_a_line_of_words():
    assert not wrong(["1 a b", "NULL (empty)"], [(1, "a b"), (None, "")], dialect=Dialect.DATAFUSION)
    assert wrong(["12"], [(1, 2)], dialect=Dialect.DATAFUSION) == "values"
    assert not wrong(["1 b<slt:ignore>"], [(1, "bc")], dialect=Dialect.DATAFUSION)
    assert wrong(["1 b<slt:ignore>"], [(1, "cb")], dialect=Dialect.DATAFUSION) == "values"
    assert not wrong(["0"], [(6e-17,)], dialect=Dialect.DATAFUSION)


# Running


def test_every_record_is_counted_once():
    outcome = ran(
        "statement ok\nCREATE TABLE t(a INTEGER)\n\nstatement ok\nINSERT INTO t VALUES (1), (2)\n\n"
        "query I\nSELECT sum(a) FROM t\n----\n3\n\nquery I\nSELECT sum(a) FROM t\n----\n4\n\n"
        "statement error\nSELECT a FROM t\n\nstatement error\nSELECT b FROM t\n\n"
        "statement ok\nPRAGMA threads=1\n"
    )
    assert (outcome.passed, counts(outcome)) == (4, (7, 6))
    assert outcome.failed == {"other rows: values": 1, "accepted where an error is expected": 1}
    assert outcome.left_out == {"settings and catalog": 1}


def test_an_expected_error_has_the_reason_that_is_expected():
    text = (
        "statement error\nSELECT json_no_such('x')\n----\nConversion Error: no text of this kind\n\n"
        "statement error\nSELECT json_no_such('x')\n----\nScalar Function json_no_such does not exist\n\n"
        "statement ok\nCREATE TABLE t(a NOSUCHTYPE)\n\n"
        "statement error\nINSERT INTO t VALUES ('x')\n----\nConstraint Error\n\n"
        "statement error\nSELECT 1 +\n----\nOut of Range Error\n\n"
    )
    outcome = ran(text)
    assert outcome.passed == 1
    assert outcome.explained == {"JSON": 1, "types that are missing": 2}
    assert [reason.split(":")[0] for reason in outcome.failed] == ["refused for another reason"]


def test_queries_of_a_label_give_the_same_rows():
    text = "query I nosort {}\nSELECT {}\n----\n\n"
    outcome = ran("".join(text.format(*of) for of in (("a", 1), ("b", 2), ("a", "2 - 1"), ("b", 3))))
    assert (outcome.passed, outcome.failed) == (3, {"other rows: of a label": 1})


def test_a_table_of_datafusion_is_made_and_filled():
    text = (
        "statement ok\nCREATE TABLE t(a BIGINT, b TEXT) AS VALUES (1, 'x')\n\n"
        "query IT\nSELECT * FROM t\n----\n1 x\n"
    )
    assert ran(text, Dialect.DATAFUSION, "datafusion").passed == 2


def test_what_may_end_either_way_is_no_pass():
    outcome = ran("statement maybe\nCREATE TABLE t(a INTEGER)\n\nquery I\nSELECT a FROM t\n----\n")
    assert (outcome.passed, outcome.left_out) == (1, {verdicts.EITHER: 1})


def test_what_follows_from_a_failure_has_its_cause():
    outcome = ran(
        "statement ok\nCREATE TABLE t(a NOSUCHTYPE)\n\nstatement ok\nINSERT INTO t VALUES (1)\n\n"
        "query I\nSELECT a FROM t\n----\n1\n\nstatement ok\nCREATE TABLE u(a GEOMETRY)\n\n"
        "query I\nSELECT 1 FROM u\n----\n1\n"
    )
    assert outcome.explained == {"types that are missing": 3}
    assert outcome.left_out == {"types of one engine": 1, verdicts.AFTER: 1}


def test_a_transaction_goes_on_after_an_error(capsys):
    outcome = ran(
        "statement ok\nCREATE TABLE t(a INTEGER)\n\nstatement ok\nBEGIN\n\n"
        "statement ok\nINSERT INTO t VALUES (1)\n\nstatement error\nSELECT b FROM t\n\n"
        "statement error\nSELECT a FROM t\n\nstatement ok\nCOMMIT\n\n"
        "query I\nSELECT count(*) FROM t\n----\n0\n\n"
        "query I\nSELECT 1\n----\n2\n"
    )
    assert (outcome.passed, outcome.explained) == (5, {"errors in transactions": 2})
    assert outcome.failed == {"other rows: values": 1}
    printed(outcome, 9)
    assert "2 errors in transactions (differs)" in capsys.readouterr().out


def test_a_setting_that_orders_leaves_out_what_it_would_order():
    text = "statement ok\nSET default_null_order='{}'\n\nquery I\nSELECT 1 ORDER BY 1\n----\n1\n"
    assert ran(text.format("nulls_first")).left_out == {"settings and catalog": 1, verdicts.AFTER: 1}
    assert ran(text.format("nulls_last")).passed == 1


def test_connections_have_names():
    outcome = ran(
        "statement ok con1\nBEGIN\n\nstatement ok con1\nCREATE TABLE t(a INTEGER)\n\n"
        "statement error con2\nSELECT * FROM t\n\nstatement ok con1\nCOMMIT\n\n"
        "statement ok con2\nSELECT * FROM t\n"
    )
    assert outcome.passed == 5


def test_errors_are_grouped_without_names_and_numbers():
    assert group(Exception("there is no table abc\nLINE 1")) == "there is no table …"
    assert group(Exception("there is no function foo")) == "there is no function foo"
    assert group(Exception("cannot cast 'x''y' to DATE at 12")) == "cannot cast '…' to DATE at N"


def ends(file):
    yield Record(1, "SELECT 1", "ok")
    yield Record(7, "SELECT 2", "error")
    yield Record(9, "SELECT 3", "ok")
    yield Record(11, "SHOW x", "ok")


class Ending(Run):
    def record(self, record):
        if record.line == 7:
            os._exit(3)
        super().record(record)


def test_a_process_that_ends_is_a_failure_at_its_record_and_after_it(monkeypatch):
    monkeypatch.setattr(runner, "Run", Ending)
    outcome = in_process("duckdb", Dialect.DUCKDB, Path("x"), "own.test", [], ends, Limits(examples=1))
    assert outcome.passed == 1
    assert outcome.failed == {"the process ended with 3": 1, "after: the process ended with 3": 1}
    assert outcome.left_out == {"settings and catalog": 1}
    assert outcome.examples["the process ended with 3"] == [("own.test", 7, "SELECT 2")]


def test_files_are_found_run_and_recorded(tmp_path):
    place = tmp_path / "test" / "sql"
    place.mkdir(parents=True)
    (place / "own.test").write_text("query I\nSELECT 41 + 1\n----\n42\n")
    suite: Suite = SUITES["duckdb"]
    (file,) = suite.files(tmp_path)
    outcome = in_process(
        suite.name, suite.dialect, file, "own.test", suite.setup(tmp_path), suite.reader(tmp_path), Limits()
    )
    record = json.loads(json.dumps(recorded(suite, outcome, 1, 1)))
    assert (record["records"], record[PASSED], record["failed"]) == (1, 1, {"once each": 0})


# Rules


def test_every_rule_has_its_line():
    text = Path(__file__).parents[1].joinpath("differences.md").read_text()
    named = set(re.findall(r"^#+ (.*)$", text, re.M)) | set(re.findall(r"^\| ([^|]+?) \|", text, re.M))
    names = {rule.name for rule in verdicts.RULES} | {name for _, name, _ in verdicts.SUBJECTS}
    assert names | set(verdicts.BY_THE_READER) | {verdicts.AFTER, verdicts.EITHER, verdicts.GOES_ON} <= named


def test_no_rule_explains_everything():
    for rule in verdicts.RULES:
        assert rule.kind is verdicts.Kind.LEFT_OUT or rule.reason, rule.name
        assert not rule.applies(
            rule.suites[0] if rule.suites else "sqlite", "SELECT a FROM t", "a reason of its own"
        )
    assert not verdicts.left_out("postgres", "SELECT a FROM t WHERE name = 'path' ORDER BY line")
    assert verdicts.left_out("postgres", "SELECT a::name FROM t") == "types of one engine"
