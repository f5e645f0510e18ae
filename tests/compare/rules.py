"""Differences that are known, each by its name in tests/differences.md, where its reason is.

A rule looks at a statement and at what the engines said. It says one of four things:

- `LEFT_OUT`: one of the others has no opinion: it does not know the clause, or its answer is known to be
  wrong.
- `AS_DUCKDB`: PostgreSQL and DuckDB disagree, and Entasis is with DuckDB. (With PostgreSQL it may always be.)
- `OWN`: Entasis means something else than both.
- `OPEN`: a fault of Entasis that is not mended yet. Such rules come and go; a release has none.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from engines import Answer

Answers = dict[str, Answer]


class Kind(Enum):
    LEFT_OUT = "left out"
    AS_DUCKDB = "as DuckDB"
    OWN = "own"
    OPEN = "open"


@dataclass(frozen=True)
class Rule:
    name: str
    kind: Kind
    applies: Callable[[str, Answers], bool]
    #: Whose answer is left out.
    engine: str = ""


def error(engine: str, pattern: str, of_sql: str = "") -> Callable[[str, Answers], bool]:
    """An engine's error that says `pattern`, of a statement that contains `of_sql`."""
    said, text = re.compile(pattern, re.S), re.compile(of_sql)

    def applies(sql: str, answers: Answers) -> bool:
        answer = answers.get(engine)
        found = answer is not None and answer.error is not None and said.search(answer.error)
        return bool(found and text.search(sql))

    return applies


def statement(pattern: str) -> Callable[[str, Answers], bool]:
    """A statement that contains `pattern`."""
    text = re.compile(pattern)
    return lambda sql, _: bool(text.search(sql))


RULES = [
    Rule(
        "interval forms",
        Kind.LEFT_OUT,
        error("DuckDB", r"TO (MONTH|MINUTE) is not supported|Could not convert string '.*' to INTERVAL"),
        "DuckDB",
    ),
    Rule("sum of intervals", Kind.LEFT_OUT, error("DuckDB", r"'sum\(INTERVAL\)'"), "DuckDB"),
    Rule("full joins on equalities", Kind.LEFT_OUT, error("PostgreSQL", r"FULL JOIN is only supported"), "PostgreSQL"),
    Rule("tables without a name", Kind.LEFT_OUT, error("PostgreSQL", r"subquery in FROM must have an alias"), "PostgreSQL"),
    Rule("literals of any type", Kind.LEFT_OUT, error("PostgreSQL", r"could not determine polymorphic type"), "PostgreSQL"),
    Rule("rows in subqueries", Kind.LEFT_OUT, error("DuckDB", r"Correlated IN/ANY/ALL with multiple columns"), "DuckDB"),
    Rule(
        "columns by number after merged ones",
        Kind.LEFT_OUT,
        error("PostgreSQL", r"subquery in FROM must have an alias", r"SELECT \* FROM .*(USING|NATURAL).* ORDER BY .*\b\d+ (ASC|DESC|NULLS)"),
        "DuckDB",
    ),
    Rule(
        "merged columns beside another table's",
        Kind.LEFT_OUT,
        error("Entasis", r"the column \w+ is in more than one table", r"USING|NATURAL"),
        "DuckDB",
    ),
    Rule(
        "texts in set operations",
        Kind.LEFT_OUT,
        error("DuckDB", r"Cannot compare values of type \w+ and type VARCHAR", r"UNION|EXCEPT|INTERSECT"),
        "DuckDB",
    ),
    Rule("ALL over an aggregate", Kind.LEFT_OUT, statement(r"ALL \(\(SELECT .*UNION ALL \(SELECT (max|min|count)"), "DuckDB"),
    Rule("time", Kind.LEFT_OUT, error("PostgreSQL", r"due to statement timeout"), "PostgreSQL"),
    Rule("whole seconds", Kind.AS_DUCKDB, statement(r"extract\(second FROM")),
]
