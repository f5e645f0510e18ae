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


def listed(statement, item, separator=", "):
    """A statement of any length: so many items, each with its number, stand for each `…` in it."""
    return lambda n: statement.replace("…", separator.join(item.replace("#", str(i)) for i in range(n)))


def nested(before, opening, middle, closing, after):
    return lambda n: before + opening * n + middle + closing * n + after


def chain(n):
    """Queries of a WITH of which each reads the one before."""
    return ", ".join(["c0 AS (SELECT a FROM t)", *(f"c{i + 1} AS (SELECT a + 1 AS a FROM c{i})" for i in range(n))])


# What twice the length may cost. Grouping sets have a bit for every key, and joins are put in order; of other plans
# each node is over the one before and has its columns, too, and debug builds check them all after each rule. These
# grow with the square, and no faster.
FLAT, DEEP = 2.3, 4.3

# The limit, a length, and the statement of a length.
STATEMENTS = {
    "columns": (FLAT, 400, listed("SELECT … FROM t", "a + #")),
    "additions": (FLAT, 400, listed("SELECT … FROM t", "a", " + ")),
    "sums": (FLAT, 200, listed("SELECT … FROM t", "sum(a * #)")),
    "constants of IN": (FLAT, 2_000, listed("SELECT 1 FROM t WHERE a IN (…)", "#")),
    "expressions of IN": (FLAT, 300, listed("SELECT 1 FROM t WHERE a IN (…)", "b + #")),
    "conjuncts": (FLAT, 400, listed("SELECT 1 FROM t WHERE …", "a % 7 <> #", " AND ")),
    "disjuncts": (FLAT, 400, listed("SELECT 1 FROM t WHERE …", "a % 7 = #", " OR ")),
    "texts of LIKE": (FLAT, 200, listed("SELECT 1 FROM t WHERE …", "a::VARCHAR LIKE '%#%'", " OR ")),
    "branches of CASE": (FLAT, 400, listed("SELECT CASE … END FROM t", "WHEN a = # THEN b + #", " ")),
    "concatenations": (FLAT, 300, listed("SELECT … FROM t", "a::VARCHAR", " || ")),
    "inputs of UNION ALL": (FLAT, 400, listed("…", "SELECT #", " UNION ALL ")),
    "rows of VALUES": (FLAT, 2_000, listed("VALUES …", "(#, #.5)")),
    "elements of a list": (FLAT, 1_000, listed("SELECT […]", "#")),
    "fields of a struct": (FLAT, 200, listed("SELECT {…}", "f#: #")),
    "groups": (FLAT, 200, listed("SELECT … FROM t GROUP BY …", "a + #")),
    "grouping sets": (DEEP, 25, listed("SELECT a FROM t GROUP BY GROUPING SETS ((a), …)", "(a, a % (# + 2))")),
    "orders": (FLAT, 200, listed("SELECT a FROM t ORDER BY …", "a % (# + 2)")),
    "windows": (DEEP, 60, listed("SELECT … FROM t", "sum(a) OVER (ORDER BY a % (# + 2))")),
    "scalar subqueries": (DEEP, 40, listed("SELECT …", "(SELECT max(a) + # FROM t)")),
    "correlated subqueries": (DEEP, 20, listed("SELECT … FROM t", "(SELECT max(a) + # FROM t s WHERE s.b = t.b)")),
    "common table expressions": (FLAT, 60, listed("WITH … SELECT 1", "c# AS (SELECT a FROM t)")),
    "chain of WITH": (DEEP, 40, lambda n: f"WITH {chain(n)} SELECT * FROM c{n}"),
    "nested subqueries": (FLAT, 60, nested("", "SELECT a FROM (", "SELECT a + 1 AS a FROM t", ")", "")),
    "computed in each": (DEEP, 60, nested("", "SELECT a + 1 AS a FROM (", "SELECT a FROM t", ")", "")),
    "calls in calls": (FLAT, 80, nested("SELECT ", "abs(", "a", ")", " FROM t")),
    "NOT in NOT": (FLAT, 80, nested("SELECT ", "NOT (", "a = 1 OR b = 1", ")", " FROM t")),
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


def growth(directory, names):
    """How many times as many instructions twice the length takes, by the name of the statement."""
    statements = [STATEMENTS[name] for name in names]
    if not statements:
        return {}
    counts = instructions(directory, [of(n) for _, length, of in statements for n in (length, 2 * length)])
    return {name: counts[2 * i + 1] / counts[2 * i] for i, name in enumerate(names)}


def test_instructions_grow_with_the_length(tmp_path):
    # Twice as much to do is more to do: what is counted is what is meant.
    odd = lambda grown: {name: times for name, times in grown.items() if not 1.5 < times <= STATEMENTS[name][0]}
    grown = growth(tmp_path, list(STATEMENTS))
    # What another thread of the process does meanwhile is counted, too: upkeep, for one. It is not there twice.
    again = growth(tmp_path, list(odd(grown)))
    assert odd(again) == {}, (grown, again)
