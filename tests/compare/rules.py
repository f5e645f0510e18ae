"""Known differences, by their names in tests/differences.md, which gives the reasons.

A rule examines a statement and the results of the engines. It returns one of four values:

- `LEFT_OUT`: one of the others is not considered: it does not support the clause, or its result is known to
  be wrong.
- `AS_DUCKDB`: PostgreSQL and DuckDB disagree, and Entasis agrees with DuckDB. (It may always agree with
  PostgreSQL.)
- `OWN`: Entasis deliberately differs from both.
- `OPEN`: a bug of Entasis that is not fixed yet. Such rules are temporary; a release has none.
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
    #: The engine whose result is not considered.
    engine: str = ""


def error(engine: str, pattern: str, of_sql: str = "") -> Callable[[str, Answers], bool]:
    """Matches an engine's error with `pattern`, for a statement that contains `of_sql`."""
    said, text = re.compile(pattern, re.S), re.compile(of_sql)

    def applies(sql: str, answers: Answers) -> bool:
        answer = answers.get(engine)
        found = answer is not None and answer.error is not None and said.search(answer.error)
        return bool(found and text.search(sql))

    return applies


def statement(pattern: str) -> Callable[[str, Answers], bool]:
    """Matches a statement that contains `pattern`."""
    text = re.compile(pattern)
    return lambda sql, _: bool(text.search(sql))


#: Calls that `functions.py` prints: the generator's select lists have names, or are all columns.
CALL = r"^SELECT (?!.* AS c0\b)(?!.*\* FROM )"
#: What DuckDB says of a function or form of arguments that it does not have.
LACKS_IN_DUCKDB = r"does not exist|No function matches|Could not choose a best candidate|syntax error|not implemented"
#: The same of PostgreSQL.
LACKS_IN_POSTGRES = (
    r"function .* does not exist|type .* does not exist|syntax error|operator does not exist|is not unique|cannot cast|"
    r"could not determine|cannot determine|not recognized|does not exist"
)


def is_call(sql: str) -> bool:
    return re.search(CALL, sql) is not None


def refused_where_null(sql: str, answers: Answers) -> bool:
    """Matches a call that Entasis refuses and for which another database gives NULL."""
    own = answers.get("Entasis")
    others = [answer for name, answer in answers.items() if name != "Entasis" and answer is not None]
    null = any(answer.rows == [(None,)] for answer in others)
    return is_call(sql) and own is not None and own.error is not None and null


def null_for_null(sql: str, answers: Answers) -> bool:
    """Matches a call with NULL among its arguments for which Entasis gives NULL."""
    own = answers.get("Entasis")
    return is_call(sql) and re.search(r"\bNULL\b", sql) is not None and own is not None and own.rows == [(None,)]


def unread(sql: str, answers: Answers) -> bool:
    """Matches a statement with an error that DuckDB may not look for, and that PostgreSQL refuses for any reason."""
    postgres = answers.get("PostgreSQL")
    wrong = error("Entasis", r"must appear in GROUP BY|is in more than one table", r"^WITH ")
    return wrong(sql, answers) and postgres is not None and postgres.error is not None


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
        error("DuckDB", r"Cannot compare values of type \w+ and type VARCHAR|Cannot mix values of type VARCHAR", r"UNION|EXCEPT|INTERSECT"),
        "DuckDB",
    ),
    Rule("ALL over an aggregate", Kind.LEFT_OUT, statement(r"ALL \(\(SELECT .*UNION ALL \(SELECT (max|min|count)"), "DuckDB"),
    Rule("structs", Kind.LEFT_OUT, error("PostgreSQL", r"syntax error", r"\{'a': |STRUCT\("), "PostgreSQL"),
    Rule("queries that nobody reads", Kind.OWN, unread),
    Rule(
        "structs",
        Kind.OWN,
        statement(
            r"^(?=.*\{'a': )(?=.*(SELECT (DISTINCT )?\* FROM .*(USING|NATURAL)|(UNION|EXCEPT|INTERSECT).*'[^']*' AS c\d|"
            r"'[^']*' AS c\d.*(UNION|EXCEPT|INTERSECT)))"
        ),
    ),
    Rule("lists between", Kind.LEFT_OUT, error("DuckDB", r"Invalid type for BETWEEN"), "DuckDB"),
    Rule("times of instants", Kind.LEFT_OUT, error("DuckDB", r"TIMESTAMP WITH TIME ZONE -> TIME\)"), "DuckDB"),
    Rule("copies of subqueries", Kind.LEFT_OUT, error("DuckDB", r"Cannot copy BoundSubqueryExpression"), "DuckDB"),
    Rule("time", Kind.LEFT_OUT, error("PostgreSQL", r"due to statement timeout"), "PostgreSQL"),
    Rule("whole seconds", Kind.AS_DUCKDB, statement(r"extract\(second FROM")),
    # Where DuckDB says nothing for another reason.
    Rule("whole seconds", Kind.OWN, error("DuckDB", r"TIMESTAMP WITH TIME ZONE -> TIME\)", r"extract\(second FROM")),
    Rule("unnest of NULL", Kind.OPEN, error("Entasis", r"unnest\(\) does not support null")),
    # ---- functions of the page
    Rule("functions that DuckDB lacks", Kind.LEFT_OUT, error("DuckDB", LACKS_IN_DUCKDB, CALL), "DuckDB"),
    Rule("functions that PostgreSQL lacks", Kind.LEFT_OUT, error("PostgreSQL", LACKS_IN_POSTGRES, CALL), "PostgreSQL"),
    Rule("types of literals", Kind.OWN, statement(r"SELECT (typeof|bit_count|add|multiply|to_hex|list_resize)\(")),
    Rule("types of literals", Kind.AS_DUCKDB, statement(r"SELECT (lcm|overlay)\(.*2147483647")),
    Rule("lengths of any size", Kind.OWN, statement(r"SELECT (substring|left)\(.*9223372036854775807")),
    Rule("results beyond DOUBLE", Kind.AS_DUCKDB, statement(r"SELECT (exp|power|pow)\(")),
    Rule("logarithms of zero", Kind.OWN, error("Entasis", r"log2\(.*\) is not defined")),
    Rule("booleans in texts", Kind.AS_DUCKDB, statement(r"SELECT concat\(.*true\)")),
    Rule("zero characters", Kind.AS_DUCKDB, statement(r"SELECT chr\(0\)")),
    Rule("matches as a condition", Kind.AS_DUCKDB, statement(r"SELECT regexp_matches\(")),
    Rule("groups that a pattern lacks", Kind.OWN, error("Entasis", r"no such group")),
    Rule("texts of patterns", Kind.OWN, statement(r"SELECT similar_to_escape\(")),
    Rule("bytes of texts", Kind.OWN, statement(r"SELECT (base64|decode|get_bit|set_bit)\('")),
    Rule("fields of infinity", Kind.AS_DUCKDB, statement(r"SELECT date_part\('isoyear', DATE 'infinity'\)")),
    Rule("beginnings of dates", Kind.OWN, statement(r"SELECT date_trunc\('\w+', DATE ")),
    Rule("whole milliseconds", Kind.OWN, statement(r"SELECT epoch_ms\(TIMESTAMP '.*\.\d{4,}'\)")),
    Rule("overflow of intervals", Kind.OWN, error("Entasis", r"interval is out of range", r"make_interval\(")),
    Rule("numbers as time zones", Kind.AS_DUCKDB, statement(r"SELECT timezone\('\d+'")),
    Rule("steps of zero", Kind.OWN, error("Entasis", r"step of a list's slice is not zero")),
    Rule("splitting by nothing", Kind.AS_DUCKDB, statement(r"SELECT string_to_array\(('', |.*, ''\))")),
    Rule("series as lists", Kind.AS_DUCKDB, statement(r"^SELECT generate_series\(")),
    Rule("empty formats", Kind.OWN, statement(r"SELECT (to_char|strftime|try_strptime)\(.*, '%?'\)")),
    Rule("numbers by patterns", Kind.OWN, statement(r"SELECT to_char\((1e300::DOUBLE PRECISION, |1234\.5, 'a b')")),
    Rule("precision of integers", Kind.OWN, statement(r"SELECT format\('\{0:>4\}\|\{1:\.2f\}'")),
    Rule("NULL among arguments", Kind.OWN, null_for_null),
    Rule("NULL among arguments", Kind.AS_DUCKDB, null_for_null),
    Rule("case of ß", Kind.OWN, statement(r"(upper|ucase|initcap)\(.*ß")),
    Rule("characters, not bytes", Kind.OWN, statement(r"(levenshtein|editdist3)\(.*[ß日]")),
    Rule("order of distinct elements", Kind.OWN, statement(r"(list|array)_(distinct|intersect)\(")),
    Rule("formats of PostgreSQL", Kind.OWN, statement(r"format\('%I = %L'")),
    Rule("formats of PostgreSQL", Kind.AS_DUCKDB, statement(r"format\('%', ")),
    Rule("padding of infinity", Kind.OWN, statement(r"printf\('%s is %05\.1f'")),
    Rule("refused rather than NULL", Kind.OWN, refused_where_null),
]
