"""Long statements are planned in instructions that grow with their length: counted, not timed, at n and 2n.

One process plans them by EXPLAIN under valgrind, which counts its instructions from one mark to the next: a
call of the C library that nothing else calls. Where there is no valgrind (a package of that name), this test is
skipped.
"""

import re
import shutil
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(shutil.which("valgrind") is None, reason="instructions are counted by valgrind")

# Plans a statement of each file, between two marks: the counts are written at each.
PLAN = """
import os, sys, entasis
con = entasis.connect(threads=1)
con.sql("CREATE TABLE t AS SELECT x AS a, x % 3 AS b FROM range(10) r(x)")
con.sql("EXPLAIN SELECT a + b FROM t WHERE a = 1")
for path in sys.argv[1:]:
    text = open(path).read()
    os.getppid()
    con.sql("EXPLAIN " + text)
    os.getppid()
"""


def repeated(n, separator, item):
    return separator.join(item(i) for i in range(n))


# What twice the length may cost. In the plans of some statements each node is over the one before and has its
# columns, too, or the joins of all are put in order: these grow with the square, and no faster.
FLAT, DEEP = 2.3, 4.3

# The limit, a length, and the statement of a length.
STATEMENTS = {
    "columns": (FLAT, 400, lambda n: f"SELECT {repeated(n, ', ', lambda i: f'a + {i}')} FROM t"),
    "additions": (FLAT, 400, lambda n: f"SELECT {repeated(n, ' + ', lambda i: 'a')} FROM t"),
    "sums": (FLAT, 200, lambda n: f"SELECT {repeated(n, ', ', lambda i: f'sum(a * {i})')} FROM t"),
    "constants of IN": (FLAT, 2_000, lambda n: f"SELECT 1 FROM t WHERE a IN ({repeated(n, ', ', str)})"),
    "expressions of IN": (FLAT, 300, lambda n: f"SELECT 1 FROM t WHERE a IN ({repeated(n, ', ', lambda i: f'b + {i}')})"),
    "conjuncts": (FLAT, 400, lambda n: f"SELECT 1 FROM t WHERE {repeated(n, ' AND ', lambda i: f'a % 7 <> {i}')}"),
    "disjuncts": (FLAT, 400, lambda n: f"SELECT 1 FROM t WHERE {repeated(n, ' OR ', lambda i: f'a % 7 = {i}')}"),
    "branches of CASE": (FLAT, 400, lambda n: f"SELECT CASE {repeated(n, ' ', lambda i: f'WHEN a = {i} THEN b + {i}')} END FROM t"),
    "inputs of UNION ALL": (FLAT, 400, lambda n: repeated(n, " UNION ALL ", lambda i: f"SELECT {i}")),
    "rows of VALUES": (FLAT, 2_000, lambda n: f"VALUES {repeated(n, ', ', lambda i: f'({i}, {i}.5)')}"),
    "groups": (FLAT, 200, lambda n: f"SELECT {repeated(n, ', ', lambda i: f'a + {i}')} FROM t GROUP BY {repeated(n, ', ', lambda i: f'a + {i}')}"),
    "grouping sets": (DEEP, 25, lambda n: f"SELECT a FROM t GROUP BY GROUPING SETS ((a), {repeated(n, ', ', lambda i: f'(a, a % {i + 2})')})"),
    "orders": (FLAT, 200, lambda n: f"SELECT a FROM t ORDER BY {repeated(n, ', ', lambda i: f'a % {i + 2}')}"),
    "windows": (DEEP, 60, lambda n: f"SELECT {repeated(n, ', ', lambda i: f'sum(a) OVER (ORDER BY a % {i + 2})')} FROM t"),
    "concatenations": (FLAT, 300, lambda n: f"SELECT {repeated(n, ' || ', lambda i: 'a::VARCHAR')} FROM t"),
    "calls in calls": (FLAT, 80, lambda n: "SELECT " + "abs(" * n + "a" + ")" * n + " FROM t"),
    "NOT in NOT": (FLAT, 80, lambda n: "SELECT " + "NOT (" * n + "a = 1 OR b = 1" + ")" * n + " FROM t"),
    "scalar subqueries": (DEEP, 40, lambda n: f"SELECT {repeated(n, ', ', lambda i: f'(SELECT max(a) + {i} FROM t)')}"),
    "correlated subqueries": (DEEP, 20, lambda n: f"SELECT {repeated(n, ', ', lambda i: f'(SELECT max(a) + {i} FROM t s WHERE s.b = t.b)')} FROM t"),
    "texts of LIKE": (FLAT, 200, lambda n: f"SELECT 1 FROM t WHERE {repeated(n, ' OR ', lambda i: f'a::VARCHAR LIKE {chr(39)}%{i}%{chr(39)}')}"),
    "elements of a list": (FLAT, 1_000, lambda n: f"SELECT [{repeated(n, ', ', str)}]"),
    "fields of a struct": (FLAT, 200, lambda n: f"SELECT {{{repeated(n, ', ', lambda i: f'f{i}: {i}')}}}"),
    "chain of WITH": (DEEP, 40, lambda n: f"WITH c0 AS (SELECT a FROM t), {repeated(n, ', ', lambda i: f'c{i + 1} AS (SELECT a + 1 AS a FROM c{i})')} SELECT * FROM c{n}"),
    "common table expressions": (FLAT, 60, lambda n: f"WITH {repeated(n, ', ', lambda i: f'c{i} AS (SELECT a FROM t)')} SELECT 1"),
    "nested subqueries": (FLAT, 60, lambda n: "SELECT a FROM (" * n + "SELECT a + 1 AS a FROM t" + ")" * n),
}


def instructions(directory, statements):
    """The instructions of planning each of these statements."""
    (directory / "plan.py").write_text(PLAN)
    paths = [directory / f"{i}.sql" for i in range(len(statements))]
    for path, sql in zip(paths, statements):
        path.write_text(sql)
    counts = directory / "counts"
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={counts}", "--dump-before=getppid"]
    run = subprocess.run([*command, sys.executable, directory / "plan.py", *paths], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    # The second mark of each statement wrote what is between both.
    dumps = [counts.with_name(f"counts.{2 * i + 2}").read_text() for i in range(len(statements))]
    return [int(re.search(r"^totals: (\d+)", dump, re.MULTILINE).group(1)) for dump in dumps]


def test_instructions_grow_with_the_length(tmp_path):
    counts = instructions(tmp_path, [of(n) for _, length, of in STATEMENTS.values() for n in (length, 2 * length)])
    grown = {name: counts[2 * i + 1] / counts[2 * i] for i, name in enumerate(STATEMENTS)}
    # Twice as much to do is more to do: what is counted is what is meant.
    assert min(grown.values()) > 1.5, grown
    assert {name: growth for name, growth in grown.items() if growth > STATEMENTS[name][0]} == {}, grown
