"""Reads sqllogictest files in the dialects of SQLite, DuckDB and DataFusion.

A file is a list of records: a statement that must succeed or fail, or a query with the rows that it must
give. The dialects share that and differ in what stands around it:

| | SQLite | DuckDB | DataFusion |
|---|---|---|---|
| an expected line is | a value | a value, or a row with tabs | a row |
| many values | as a hash | as a hash | – |
| an expected error | – | its text behind `----` | its text behind `error` |
| queries of one label | have their values, too | give the same rows, which are not written | – |
| loops, variables | – | `loop`, `foreach`, `{name}` | – |
| conditions | `skipif`, `onlyif` | the same of loop variables, `require`, `mode skip` | `skipif`, `onlyif` |

Loops are unrolled as they are read, so that a reader sees a plain sequence. A record that the suite itself
runs on some other engine or setup only is read, too, with the name of the rule by which it is left out
(`verdicts.py`): no record is lost without a reason.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import Enum

#: Ways to sort rows before they are compared, and what they are in this module.
SORTS = {"nosort": "nosort", "rowsort": "rowsort", "sort": "rowsort", "valuesort": "valuesort"}

COMPARISON = re.compile(r"(\w+)(==|<=|>=|<>|=|<|>)(.*)")
COMPARISONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}

#: Extensions of DuckDB that are part of Entasis, and conditions on how DuckDB's own runner works.
HARMLESS_REQUIREMENTS = {
    "json", "parquet", "icu", "core_functions", "64bit", "skip_reload", "vector_size", "noforcestorage",
    "noalternativeverify", "no_alternative_verify", "no_extension_autoloading", "no_vector_verification",
    "no_latest_storage", "block_size", "ram", "disk_space", "notwindows", "notmusl", "exact_vector_size",
    "mingw", "notmingw", "no_force_storage",
    "longdouble", "strinline", "allow_unsigned_extensions", "autocomplete",
}  # fmt: skip

#: Names for lists of values in `foreach`.
COLLECTIONS = {
    "<signed>": "tinyint smallint integer bigint hugeint",
    "<unsigned>": "utinyint usmallint uinteger ubigint uhugeint",
    "<integral>": "tinyint smallint integer bigint hugeint utinyint usmallint uinteger ubigint uhugeint",
    "<numeric>": "tinyint smallint integer bigint hugeint utinyint usmallint uinteger ubigint uhugeint "
    "float double",
    "<alltypes>": "bool tinyint smallint integer bigint hugeint utinyint usmallint uinteger ubigint uhugeint "
    "float double interval varchar",
    "<compression>": "none uncompressed rle bitpacking dictionary fsst alp alprd",
    "<all_types_columns>": "",
}


class Dialect(Enum):
    SQLITE = "sqlite"
    DUCKDB = "duckdb"
    DATAFUSION = "datafusion"
    POSTGRES = "postgres"


@dataclass(frozen=True)
class Record:
    line: int
    sql: str
    #: `ok`, `error`, `rows`, or `any` where either outcome is right.
    expects: str
    #: The lines of the rows, or what the suite says of the error.
    expected: tuple[str, ...] = ()
    types: str = ""
    sort: str = "nosort"
    #: Queries of a label give the same rows, which are not written down.
    label: str = ""
    #: The connection that runs it; the first has no name.
    session: str = ""
    #: The rule by which the suite leaves it out.
    left_out: str = ""


@dataclass
class _State:
    """What the lines so far say about those to come."""

    dialect: Dialect
    values: dict[str, str] = field(default_factory=dict)
    #: A rule that leaves out the rest of the file.
    rest: str = ""
    skipping: bool = False
    loaded: bool = False
    halted: bool = False


def read(text: str, dialect: Dialect) -> Iterator[Record]:
    yield from _read(text.split("\n"), 0, _State(dialect))


def _read(lines: list[str], first: int, state: _State) -> Iterator[Record]:
    """The records of these lines, of which the first is line `first` of the file, from 0."""
    at, condition = 0, ""
    while at < len(lines) and not state.halted:
        words = lines[at].split()
        if not words or words[0].startswith("#"):
            at += 1
            continue
        command = words[0]
        if command in ("statement", "query"):
            end = _end(lines, at)
            record = _record(lines[at:end], first + at + 1, state)
            yield replace(record, left_out=condition or record.left_out) if condition else record
            at, condition = end, ""
        elif command in ("skipif", "onlyif"):
            condition = condition or _condition(words, state)
            at += 1
        elif command in ("loop", "foreach", "concurrentloop", "concurrentforeach"):
            end = _end_of_loop(lines, at)
            yield from _unrolled(lines[at + 1 : end], first + at + 1, words, state)
            at = end + 1
        else:
            if not condition:
                _command(words, state)
            at, condition = at + 1, ""
            if command not in _COMMANDS:
                at = _end(lines, at - 1)


_COMMANDS = {
    "hash-threshold", "halt", "mode", "require", "require-env", "load", "restart", "reconnect",
    "sleep", "set", "reset", "unzip", "tags", "template", "test-env",
    "continue", "include", "control", "subtest", "endloop",
}  # fmt: skip


def _command(words: list[str], state: _State) -> None:
    match words:
        case ["halt", *_]:
            state.halted = True
        case ["mode", "skip", *_]:
            state.skipping = True
        case ["mode", "unskip", *_]:
            state.skipping = False
        case ["require", name, *_] if name not in HARMLESS_REQUIREMENTS:
            state.rest = state.rest or "extensions"
        case ["require-env", *_]:
            state.rest = state.rest or "extensions"
        case ["load", *_]:
            if state.loaded or (
                len(words) > 1 and "__TEST_DIR__" not in words[1] and "{TEMP_DIR}" not in words[1]
            ):
                state.rest = state.rest or "databases in files"
            state.loaded = True
        case ["restart", *_]:
            state.rest = state.rest or "databases in files"
        case ["unzip" | "include", *_]:
            state.rest = state.rest or "data of the suite"


def _condition(words: list[str], state: _State) -> str:
    """The rule by which the next record is left out, if it is."""
    parts = [COMPARISON.match(part) for part in (words[1] if len(words) > 1 else "").split("&&")]
    # Without a comparison it is the name of an engine, which is another one.
    holds = all(
        part is not None and _holds(state.values.get(part[1], ""), part[2], part[3]) for part in parts
    )
    return "" if holds == (words[0] == "onlyif") else "for other engines"


def _holds(given: str, comparison: str, value: str) -> bool:
    if comparison in ("=", "==", "<>"):
        return (given == value) == (comparison != "<>")
    return bool(COMPARISONS[comparison](int(given), int(value)))


def _end(lines: list[str], at: int) -> int:
    """The line after the record or paragraph that begins at `at`: the next empty one."""
    while at < len(lines) and lines[at].strip():
        at += 1
    return at


def _end_of_loop(lines: list[str], at: int) -> int:
    depth = 0
    while at < len(lines):
        word = lines[at].split()[:1]
        if word and word[0] in ("loop", "foreach", "concurrentloop", "concurrentforeach"):
            depth += 1
        if word == ["endloop"]:
            depth -= 1
            if depth == 0:
                return at
        at += 1
    return at


def _unrolled(lines: list[str], first: int, words: list[str], state: _State) -> Iterator[Record]:
    words = [words[0], *(_substituted(word, state.values) for word in words[1:])]
    before, name = dict(state.values), words[1]
    concurrent = words[0].startswith("concurrent")
    if words[0].endswith("foreach"):
        values = [value for word in words[2:] for value in COLLECTIONS.get(word, word).split()]
        taken_out = {value[1:] for value in values if value.startswith("!")}
        values = [value for value in values if not value.startswith("!") and value not in taken_out]
    else:
        values = [str(i) for i in range(int(words[2]), int(words[3]))]
    for value in values:
        # Several names at once: `foreach a,b 1,2 3,4`.
        pairs = zip(name.split(","), value.split(",")) if "," in name else [(name, value)]
        state.values = {**before, **dict(pairs)}
        for record in _read(lines, first, state):
            yield (
                replace(record, left_out=record.left_out or "threads of the suite") if concurrent else record
            )
    state.values = before


def _substituted(text: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"${{{name}}}", value).replace(f"{{{name}}}", value)
    return text


def _record(lines: list[str], line: int, state: _State) -> Record:
    words = lines[0].split()
    body = lines[1:]
    expected: list[str] = []
    bar = next((i for i, text in enumerate(body) if text.strip() == "----"), None)
    if bar is not None:
        expected, body = body[bar + 1 :], body[:bar]
    if state.dialect is Dialect.DUCKDB:
        body = [text for text in body if not text.startswith("#")]
    sql = _substituted("\n".join(body), state.values)
    expected = [_substituted(text.rstrip("\r"), state.values) for text in expected]
    left_out = state.rest or ("skipped by the suite" if state.skipping else "")
    rest = words[2:]
    if words[0] == "statement":
        outcome = words[1] if len(words) > 1 else "ok"
        expects = {"ok": "ok", "error": "error", "count": "ok", "debug": "ok"}.get(outcome, "any")
        session = rest[0] if rest and state.dialect is Dialect.DUCKDB else ""
        said = _error(rest, expected, state) if expects == "error" else ()
        return Record(line, sql, expects, said, session=session, left_out=left_out)
    types = words[1] if len(words) > 1 else ""
    if types == "error":
        return Record(line, sql, "error", _error(rest, expected, state), left_out=left_out)
    sort = next((SORTS[word] for word in rest if word in SORTS), "nosort")
    session = label = ""
    if state.dialect is Dialect.DUCKDB:
        # What stands in the place of a way to sort, and is none, is a connection.
        session = rest[0] if rest and rest[0] not in SORTS else ""
        label = rest[1] if len(rest) > 1 and not expected else ""
    if expected and expected[0].startswith("<FILE>:"):
        # The rows are in a file of the suite.
        left_out = left_out or "data of the suite"
    return Record(line, sql, "rows", tuple(expected), types, sort, label, session, left_out)


def _error(words: list[str], lines: list[str], state: _State) -> tuple[str, ...]:
    """What the suite says of an error."""
    of_command = [" ".join(words)] if words and state.dialect is Dialect.DATAFUSION else []
    return (*of_command, *lines)
