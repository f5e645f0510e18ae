"""A disk that is full, and then has room again: acknowledged data is there, and work goes on after reopening.

    python full.py path/of.db file      the size of files that the process writes is limited (RLIMIT_FSIZE)
    python full.py path/of.db disk      the file system of the path is small

A process inserts rows, in transactions of a single row, a hundred rows or many, and prints each transaction's
number when it has been acknowledged, until one fails. Many rows are written to the data file before their
commit: if there is no room, that statement fails and the database goes on. So the process goes on with single
rows until the log cannot be written either, tries to write once more, prints the errors, and ends properly.
`check` then opens the database.
"""

import json
import resource
import signal
import sys

import entasis

TABLE = "CREATE TABLE IF NOT EXISTS t (n BIGINT, i BIGINT, s VARCHAR, PRIMARY KEY (n, i))"
#: Rows per transaction, in turns: numbers that go through the log row by row, and ones that fill it at once.
ROWS = [1, 100, 30_000]
#: Maximum size of a file under RLIMIT_FSIZE, in bytes.
MOST = 9 << 20
ADD = "INSERT INTO t SELECT {n}, i, 'a text of row ' || i || ' of transaction {n}' FROM range({rows}) r(i)"


def rows_of(n):
    return ROWS[n % len(ROWS)]


def fill(path):
    """Writes until nothing more can be written. Prints what was acknowledged, and the errors."""
    connection = entasis.connect(path)
    connection.execute(TABLE)
    n = connection.execute("SELECT coalesce(max(n), -1) + 1 FROM t").fetchone()[0]
    while True:
        try:
            connection.execute(ADD.format(n=n, rows=rows_of(n)))
        except entasis.Error as error:
            refused = str(error)
            break
        print(n, flush=True)
        n += 1
    single = "INSERT INTO t VALUES (-1, {}, repeat('after the error ', 1000))"
    next_one = connection.execute("SELECT count(*) FROM t WHERE n = -1").fetchone()[0]
    try:
        for i in range(next_one, next_one + 1_000_000):
            connection.execute(single.format(i))
    except entasis.Error:
        pass
    try:
        connection.execute(single.format(-1))
        then = None
    except entasis.Error as error:
        then = str(error)
    readable = connection.execute("SELECT count(*) >= 0 FROM t").fetchone()[0]
    connection.close()
    print(json.dumps({"refused": refused, "then": then, "readable": readable}), flush=True)


def check(path, answered):
    """What is wrong with the database after a process had the transactions below a number acknowledged.

    The transaction that failed may be there as a whole: its error says that this is not known.
    """
    connection = entasis.connect(path)
    complaints = []
    for n, rows in connection.execute("SELECT n, count(*) FROM t WHERE n >= 0 GROUP BY n ORDER BY n").fetchall():
        if n > answered or rows != rows_of(n):
            complaints.append(f"transaction {n} has {rows} rows")
    found = connection.execute("SELECT count(DISTINCT n) FROM t WHERE n >= 0").fetchone()[0]
    if found < answered:
        complaints.append(f"{found} transactions of {answered} that were answered")
    singles, first, last = connection.execute("SELECT count(*), min(i), max(i) FROM t WHERE n = -1").fetchone()
    if singles and (first, last) != (0, singles - 1):
        complaints.append(f"{singles} single rows from {first} to {last}")
    complaints += [row[0] for row in connection.execute("PRAGMA integrity_check").fetchall() if row[0] != "ok"]
    connection.close()
    return complaints


def main(path, limit):
    if limit == "file":
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (MOST, MOST))
    fill(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
