"""Opening: options, settings, timeouts, databases in memory with a name."""

import gc
import inspect
import multiprocessing
import os
import sys
import threading
import time

import pytest

import entasis

SLOW = "SELECT count(*) FROM range(100000) a(i), range(100000) b(j), range(1000) c(k) WHERE i + j + k = -1"


def test_the_signature_names_the_options():
    names = list(inspect.signature(entasis.connect).parameters)
    assert names == ["database", "read_only", "threads", "memory_limit", "allow_missing_log", "settings", "timeout"]
    for name in names:
        assert f"{name}:" in entasis.connect.__doc__ or f"``{name}``" in entasis.connect.__doc__


def test_settings_are_those_of_set():
    settings = {"timezone": "Europe/Berlin", "threads": 1, "compression": "none"}
    with entasis.connect(settings=settings) as con:
        assert con.execute("SHOW timezone").fetchval() == "Europe/Berlin"
        assert con.execute("SHOW threads").fetchval() == "1"
    with pytest.raises(entasis.ProgrammingError, match="no_such_setting"):
        entasis.connect(settings={"no_such_setting": 1})
    for wrong in ["threads = 1; DROP TABLE t; SET threads", "", 7]:
        with pytest.raises(entasis.InterfaceError, match="not the name of a setting"):
            entasis.connect(settings={wrong: 1})


def test_databases_in_memory_with_a_name_are_shared(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    one, two, other = entasis.connect(":memory:a"), entasis.connect(":memory:a"), entasis.connect(":memory:b")
    one.execute("CREATE TABLE t AS SELECT 7 AS a")
    assert two.execute("SELECT a FROM t").fetchval() == 7
    for without in [other, entasis.connect(), entasis.connect(":memory:"), entasis.connect(":memory:A")]:
        with pytest.raises(entasis.ProgrammingError, match="no table t"):
            without.execute("SELECT a FROM t")
    # It lives as long as one of its connections.
    one.close()
    three = two.duplicate()
    two.close()
    assert entasis.connect(":memory:a").execute("SELECT a FROM t").fetchval() == 7
    three.close()
    gc.collect()
    with pytest.raises(entasis.ProgrammingError, match="no table t"):
        entasis.connect(":memory:a").execute("SELECT a FROM t")
    assert os.listdir(tmp_path) == []
    with pytest.raises(entasis.ProgrammingError, match="read-only"):
        entasis.connect(":memory:c", read_only=True)


def in_child(answer):
    with entasis.connect(":memory:forked") as con:
        con.execute("CREATE TABLE t (a INTEGER)")
        answer.put(con.execute("SELECT count(*) FROM t").fetchval())


@pytest.mark.skipif(sys.platform == "win32", reason="forks are of POSIX")
def test_a_forked_process_has_a_database_of_its_own_by_the_name():
    with entasis.connect(":memory:forked") as con:
        con.execute("CREATE TABLE t AS SELECT 1 AS a")
        fork = multiprocessing.get_context("fork")
        answer = fork.SimpleQueue()
        child = fork.Process(target=in_child, args=(answer,))
        child.start()
        child.join(20)
        assert child.exitcode == 0 and answer.get() == 0
        assert con.execute("SELECT count(*) FROM t").fetchval() == 1


def test_a_statement_that_takes_too_long_is_cancelled():
    con = entasis.connect(timeout=0.1)
    assert con.timeout == 0.1
    for run in [con.sql, con.execute]:
        began = time.monotonic()
        with pytest.raises(entasis.OperationalError, match="longer than its timeout, 0.1 s") as raised:
            run(SLOW)
        assert raised.value.sqlstate == "57014" and time.monotonic() - began < 5
    assert con.execute("SELECT 1").fetchval() == 1
    con.timeout = None
    with pytest.raises(entasis.OperationalError, match="timeout, 0.05 s"):
        con.execute(SLOW, timeout=0.05)
    assert con.execute("SELECT count(*) FROM range(1000)", timeout=100).fetchval() == 1000
    for wrong in [0, -1, float("nan")]:
        with pytest.raises(entasis.InterfaceError, match="seconds above zero"):
            con.execute("SELECT 1", timeout=wrong)
    with pytest.raises(TypeError):
        con.timeout = "1"


def test_waiting_for_a_turn_is_no_time_of_the_statement(con):
    running = threading.Thread(target=lambda: pytest.raises(entasis.OperationalError, con.execute, SLOW, timeout=0.4))
    running.start()
    time.sleep(0.1)
    # It waits for longer than its timeout, and does not cancel the other one.
    began = time.monotonic()
    assert con.sql("SELECT 1", timeout=0.1).fetchval() == 1
    assert time.monotonic() - began > 0.15
    running.join()


def test_connections_are_of_the_class_that_programs_see(con):
    assert type(con) is entasis.Connection and type(con.duplicate()) is entasis.Connection
    assert con.cursor().connection is con
    with entasis.Connection() as other:
        assert other.execute("SELECT 1").fetchval() == 1
    assert repr(type(con)) == "<class 'entasis.Connection'>"


def test_parameters_and_complete_statements(con):
    assert con.parameter_names("SELECT $B, :a, $b") == ["b", "a"] and con.parameter_names("SELECT ?") == []
    assert con.is_complete("SELECT ';';") and not con.is_complete("SELECT ';")
