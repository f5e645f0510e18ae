"""Tests that the checks of `kill.py` find errors, and runs a few kills."""

import kill

import entasis


def written(transactions):
    """A database in memory after this many transactions of each writer."""
    connection = entasis.connect()
    for sql in kill.SETUP:
        connection.execute(sql)
    for n in range(1, transactions + 1):
        for writer in range(kill.WRITERS):
            assert kill.attempt(entasis, connection, kill.plan(writer, n))
    return connection


def complaints(connection, acknowledged):
    models = [kill.Model(writer) for writer in range(kill.WRITERS)]
    return kill.check(connection, models, dict.fromkeys(range(kill.WRITERS), acknowledged), True)[0]


def test_the_model_does_what_the_database_does():
    assert {kill.kind(n) for n in range(1, 323)} == {"insert", "update", "several", "tables", "bulk", "ddl"}
    connection, first = written(7), 7
    for last in [79, 150, 199, 239, 279, 322]:
        for n in range(first + 1, last + 1):
            for writer in range(kill.WRITERS):
                assert kill.attempt(entasis, connection, kill.plan(writer, n))
        assert complaints(connection, last) == []
        assert complaints(connection, last - 1) == []
        first = last


def test_what_is_lost_or_too_much_is_found():
    connection = written(199)
    assert complaints(connection, 199) == []
    assert "was acknowledged" in complaints(connection, 200)[0]
    assert "was the last one acknowledged" in complaints(connection, 197)[0]
    for change in [
        "DELETE FROM one WHERE k = (SELECT max(k) FROM one WHERE n < 150)",
        "UPDATE one SET v = 'another' WHERE k = (SELECT max(k) FROM one WHERE n < 150)",
        "DELETE FROM parts WHERE n = 19 AND part = 1",
        "INSERT INTO linked VALUES (-1, 0, 1, -1)",
        "UPDATE counter SET total = total + 1 WHERE writer = 2",
        "DELETE FROM bulk WHERE i = 17 AND writer = 3",
        "UPDATE d1 SET b = 'c'",
        "CREATE TABLE e2 (a BIGINT)",
    ]:
        connection.execute("BEGIN")
        connection.execute(change)
        assert complaints(connection, 199) != [], change
        connection.execute("ROLLBACK")
    assert complaints(connection, 199) == []


def test_a_few_kills(tmp_path):
    assert kill.main(["--kills", "3", "--longest", "0.5", "--dir", str(tmp_path)]) == 0
