"""Reads PostgreSQL's regression tests: a file of statements, and what `psql -a` prints for it.

`psql` repeats each line that it reads, if it is not empty, and prints what a statement gives after the line
that ends it. So both files are walked together: after a line of the statements come tables and messages,
until the next line of the statements. A table says by its ruler how wide its columns are, and ends with its
number of rows.

Two statements that end on one line share what is printed after it, so that either outcome of each is right.
What one of `psql`'s own commands sends, or prints in another form, is left out.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from slt import Record

MESSAGE = re.compile(
    r"(ERROR|FATAL|PANIC|WARNING|NOTICE|INFO|DEBUG|LOG|DETAIL|HINT|CONTEXT|QUERY|LINE \d+|LOCATION|psql|"
    r"SQL function)\b"
)
RULER = re.compile(r"^-+(\+-+)*$")
COUNT = re.compile(r"^\((\d+) rows?\)$")

#: What ends a statement, or hides what would.
TOKEN = re.compile(
    r"""
    (?P<comment> --[^\n]* | /\* (?: [^*/] | \*(?!/) | /(?!\*) | /\* .*? \*/ )* \*/ )
    | (?P<quoted> \b[eE]'(?:[^'\\]|''|\\.)*' | '(?:[^']|'')*' | "(?:[^"]|"")*"
        | \$(?P<tag>\w*)\$ .*? \$(?P=tag)\$ )
    | (?P<command> \\[a-zA-Z?!]+[^\n]* )
    | (?P<end> ; )
    | (?P<text> [^-/eE'"$\\;]+ | . )
    """,
    re.X | re.S,
)
QUERY = re.compile(r"\s*\(*\s*(select|values|table|with|show|explain|execute|fetch)\b", re.I)
#: What a statement that begins as a query does instead.
INTO = re.compile(r"\b(into|insert|update|delete|merge)\b", re.I)
FROM_STDIN = re.compile(r"copy\b.*\bfrom\s+std(in|out)\b", re.I | re.S)


@dataclass(frozen=True)
class Statement:
    sql: str
    #: Its lines in the file, from 0.
    first: int
    last: int
    #: The last line of the data that follow it, which psql does not repeat.
    data: int


def read(sql: str, out: str) -> Iterator[Record]:
    """One record per statement. Rows of a result have their values separated by tabs, NULL being empty."""
    given, printed = sql.split("\n"), out.split("\n")
    known = list(statements(sql))
    #: Where a line is printed for the last time: some are not, if psql is told so.
    last = {text: i for i, text in enumerate(printed)}
    at = line = 0
    for i, statement in enumerate(known):
        while line <= statement.last:
            at, line = _behind(printed, at, given[line]), line + 1
        line = statement.data + 1
        following = next((text for text in given[line:] if text and last.get(text, -1) >= at), None)
        output: list[str] = []
        while at < len(printed) and not (printed[at] == following and _complete(output)):
            output.append(printed[at])
            at += 1
        neighbours = known[max(i - 1, 0) : i] + known[i + 1 : i + 2]
        # A statement with one of psql's variables is another than the one that is written.
        variable = re.search(r"(?<![:\w\[]):['\"]?[a-z_]\w*", re.sub(r"'(?:[^']|'')*'", "''", statement.sql))
        shared = any(statement.last == other.last for other in neighbours)
        if variable or statement.sql.startswith("\\"):
            yield Record(statement.first + 1, statement.sql, "any", left_out="commands of psql")
        elif shared:
            yield Record(statement.first + 1, statement.sql, "any")
        else:
            yield _record(statement.first + 1, statement.sql, output)


def shared(root: Path) -> list[str]:
    """What makes the tables that all tests read, from `test_setup.sql` and the files that it loads. The type
    `name` is a text here."""
    made, file = [], ""
    for statement in statements((root / "sql" / "test_setup.sql").read_text()):
        sql = statement.sql
        if found := re.match(r"\\set filename :abs_srcdir '(.*)'", sql):
            file = str(root) + found[1]
        elif found := re.match(r"COPY (\w+) FROM :'filename'", sql):
            made.append(
                f"COPY {found[1]} FROM '{file}' (FORMAT csv, DELIMITER '\t', NULL '\\N', HEADER false)"
            )
        elif re.match(r"(?i)create table|insert", sql):
            made.append(re.sub(r"\bname(?=\s*(,|\n|$))", "text", sql))
    return made


def statements(text: str) -> Iterator[Statement]:
    """The statements and commands of a script."""
    starts = [0] + [match.end() for match in re.finditer("\n", text)]
    parts: list[str] = []
    begin, at = None, 0
    while match := TOKEN.match(text, at):
        at = match.end()
        if match["comment"]:
            parts.append(" ")
            continue
        if match["end"] or match["command"]:
            sql = "".join(parts).strip()
            # A command within a statement, such as \gset, sends it.
            sql = f"{match['command']} {sql}" if match["command"] else sql
            if sql:
                begin = match.start() if begin is None else begin
                last = bisect_right(starts, match.start()) - 1
                if FROM_STDIN.match(sql):
                    end = text.find("\n\\.", at)
                    at = len(text) if end < 0 else end + 3
                data = bisect_right(starts, at - 1) - 1
                yield Statement(sql, bisect_right(starts, begin) - 1, last, max(last, data))
            parts, begin = [], None
            continue
        if begin is None and match[0].strip():
            begin = match.start() + len(match[0]) - len(match[0].lstrip())
        parts.append(match[0])


def _behind(printed: list[str], at: int, line: str) -> int:
    """Where what is printed goes on after `line`. Empty lines are repeated within a literal only."""
    if not line:
        return at + 1 if printed[at : at + 1] == [""] else at
    try:
        return printed.index(line, at) + 1
    except ValueError:
        return at


def _complete(output: list[str]) -> bool:
    """Whether no table is left open, whose rows might look like the next line of the statements. A result
    ends with its number of rows, what `psql` says of a table with an empty line."""
    last = max((i for i, line in enumerate(output) if RULER.match(line)), default=None)
    return last is None or any(not line or COUNT.match(line) for line in output[last:])


def _record(line: int, sql: str, output: list[str]) -> Record:
    if errors := [text for text in output if text.startswith("ERROR:")]:
        return Record(line, sql, "error", tuple(errors))
    rulers = [i for i, text in enumerate(output) if RULER.match(text)]
    if len(rulers) > 1 or any(text.startswith("-[ RECORD") for text in output):
        return Record(line, sql, "any", left_out="commands of psql")
    if not rulers:
        # A query prints a table, unless psql has been told otherwise.
        unseen = QUERY.match(sql) and not INTO.search(sql)
        return Record(line, sql, "ok", left_out="commands of psql" if unseen else "")
    widths = [len(part) for part in output[rulers[0]].split("+")]
    rows: list[list[str]] = []
    goes_on = [False] * len(widths)
    for text in output[rulers[0] + 1 :]:
        if COUNT.match(text) or MESSAGE.match(text):
            break
        cells, more = _cells(text, widths)
        if any(goes_on):
            rows[-1] = [f"{a}\n{b}" if on else a for a, b, on in zip(rows[-1], cells, goes_on)]
        else:
            rows.append(cells)
        goes_on = more
    return Record(line, sql, "rows", tuple("\t".join(row) for row in rows), "T" * len(widths))


def _cells(text: str, widths: list[int]) -> tuple[list[str], list[bool]]:
    """The values of a printed line, and which of them go on in the next line."""
    cells, goes_on, at = [], [], 0
    for width in widths:
        cell = text[at : at + width]
        more = cell.endswith("+") and len(cell) == width
        # A blank at either side frames the value; of a text, those before it are its own.
        cells.append((cell[:-1] if more else cell)[1:].rstrip())
        goes_on.append(more)
        at += width + 1
    return cells, goes_on
