"""What exceptions say: the place in the statement, a hint, and attributes for programs."""

import pickle

import pytest

import entasis

ATTRIBUTES = ["sqlstate", "hint", "line", "column", "constraint", "table", "column_name"]


def test_an_error_shows_the_line_with_a_caret_and_the_hint(con):
    con.execute("CREATE TABLE flights (carrier VARCHAR)")
    with pytest.raises(entasis.ProgrammingError) as raised:
        con.sql("SELECT 1,\n  'ü', carier\nFROM flights")
    error = raised.value
    lines = str(error).split("\n")
    assert lines[1:3] == ["LINE 2:   'ü', carier", "               ^"]
    assert lines[3] == f"Hint: {error.hint}" and "carrier" in error.hint
    assert (error.line, error.column, error.sqlstate) == (2, 8, "42703")


def test_every_way_to_run_a_statement_shows_the_place(con):
    for run in [con.sql, con.execute, con.stream, con.describe, con.cursor().execute]:
        with pytest.raises(entasis.ProgrammingError, match=r"LINE 1: SELECT nothing") as raised:
            run("SELECT nothing")
        assert (raised.value.line, raised.value.column) == (1, 8)
    con.execute("CREATE TABLE t (a INTEGER)")
    with pytest.raises(entasis.ProgrammingError, match="LINE 1"):
        con.executemany("INSERT INTO t VALUES (? + nothing)", [(1,), (2,)])


def test_attributes_are_there_for_every_error(con):
    with pytest.raises(entasis.InterfaceError) as raised:
        con.cursor().fetchone()
    assert [getattr(raised.value, name) for name in ATTRIBUTES] == [None] * len(ATTRIBUTES)
    con.execute("CREATE TABLE t (k INTEGER PRIMARY KEY)")
    con.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(entasis.IntegrityError) as raised:
        con.execute("INSERT INTO t VALUES (1)")
    for name in ATTRIBUTES:
        assert hasattr(raised.value, name)


def test_exceptions_survive_pickling(con):
    with pytest.raises(entasis.ProgrammingError) as raised:
        con.sql("SELEC 1")
    copy = pickle.loads(pickle.dumps(raised.value))
    assert type(copy) is entasis.ProgrammingError and str(copy) == str(raised.value)
    assert copy.__dict__ == raised.value.__dict__ and copy.line == 1


def test_a_table_that_is_a_variable_of_another_kind_is_named(con):
    numbers = 7
    with pytest.raises(entasis.ProgrammingError) as raised:
        con.sql("SELECT * FROM numbers")
    assert raised.value.hint == "the variable numbers is a 'int', which is not a table"
    assert numbers

    def inner():
        con.sql("SELECT * FROM numbers")

    # One of a function further out is not what is meant.
    with pytest.raises(entasis.ProgrammingError) as raised:
        inner()
    assert "variable" not in (raised.value.hint or "")
    query = con.query("SELECT 1 AS a")
    with pytest.raises(entasis.ProgrammingError, match=r"a Query, which has not run: write query.sql"):
        con.sql("SELECT * FROM query")
    assert query.sql("SELECT a + 1 FROM self").fetchval() == 2
