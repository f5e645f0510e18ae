"""Rows of a result beside the texts that a suite expects.

A suite has its values as its own engine or runner prints them. A value is the same if it has the same text;
or else if it is the same number, date, moment, interval or list, written in another style. What is compared
is therefore the value, not how a database prints it. Texts are compared as they are, but for blanks at their
end, which a suite cannot show. Of numbers, only a DOUBLE may differ, by as much as a sum in another order, or
a REAL that is printed with fewer digits.

Without an order in the statement, rows are compared as multisets, whatever the suite says: a suite may rely
on the order of its own engine.
"""

from __future__ import annotations

import datetime
import decimal
import hashlib
import math
import re
from collections.abc import Sequence
from typing import Any

from slt import Dialect, Record

Row = tuple[Any, ...]

#: How much of itself a DOUBLE may differ: sums are computed in another order.
TOLERANCE = 1e-9
#: The same where few digits are printed, as of a REAL, and how many are few.
TOLERANCE_OF_FEW, FEW = 1e-6, 9
#: DuckDB's tests are written by hand, and its runner takes what differs by less than this. Here, the digits
#: that are written must be right as well.
BY_HAND = 0.01

HASHED = re.compile(r"^(\d+) values hashing to ([0-9a-f]{32})$")
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
#: What DataFusion's tests write in place of any text.
ANYTHING = "<slt:ignore>"
#: Words for values, which engines write in different cases.
WORDS = re.compile(r"\b(null|true|false|nan|inf|infinity)\b", re.I)
ORDERED = re.compile(r"\border\s+by\b", re.I)
#: As PostgreSQL's tests print them: in the style "Postgres, MDY".
MONTH_FIRST = re.compile(r"^(\d\d)-(\d\d)-(\d{4,})$")
WEEKDAY = re.compile(r"^[A-Z][a-z]{2} ([A-Z][a-z]{2} \d\d) (\d\d:\d\d:\d\d(?:\.\d+)?) (\d{4})(?: [-+:\w]+)?$")
UNITS = {
    "year": (12, 0, 0), "yr": (12, 0, 0), "mon": (1, 0, 0), "month": (1, 0, 0),
    "week": (0, 7, 0), "day": (0, 1, 0),
    "hour": (0, 0, 3_600_000_000), "min": (0, 0, 60_000_000), "minute": (0, 0, 60_000_000),
    "sec": (0, 0, 1_000_000), "second": (0, 0, 1_000_000),
}  # fmt: skip
#: How PostgreSQL's tests have psql print NULL.
NULLS = ("", "NULL", "(null)", "<NULL>", "∅")


def difference(record: Record, rows: list[Row], dialect: Dialect) -> str:
    """What is wrong with the rows, in a few words without their values; nothing if they are right."""
    width = len(rows[0]) if rows else len(record.types)
    if record.types and width != len(record.types) and dialect is not Dialect.POSTGRES:
        return "number of columns"
    hashed = HASHED.match(record.expected[0]) if len(record.expected) == 1 else None
    if hashed:
        return _of_hash(record, rows, int(hashed[1]), hashed[2], dialect)
    if dialect is Dialect.DATAFUSION:
        return _of_lines(record, rows)
    expected = _expected(record, len(rows), width)
    if expected is None:
        return "number of rows or columns"
    if len(expected) != len(rows):
        return "number of rows"
    if record.sort == "valuesort":
        expected = [(cell,) for row in expected for cell in row]
        rows = [(cell,) for row in rows for cell in row]
    kinds = _kinds(record, width)
    if record.sort == "valuesort":
        kinds = kinds[:1] if len(set(kinds)) == 1 else "?"

    def same_rows(expected: Sequence[Sequence[str]], rows: list[Row]) -> bool:
        return all(_same_row(a, b, kinds, dialect) for a, b in zip(expected, rows))

    if same_rows(expected, rows):
        return ""
    expected = sorted(expected, key=lambda row: [_canonical(cell) for cell in row])
    rows = sorted(rows, key=lambda row: [_canonical(_printed(cell, dialect)) for cell in row])
    return _of_order(record, same_rows(expected, rows) or _paired(expected, rows, kinds, dialect))


def _paired(expected: Sequence[Sequence[str]], rows: list[Row], kinds: str, dialect: Dialect) -> bool:
    """Whether each expected row is another one of the rows: texts in other styles are sorted otherwise."""
    if len(rows) > 200:
        return False
    rest = list(rows)
    for row in expected:
        found = next((i for i, other in enumerate(rest) if _same_row(row, other, kinds, dialect)), None)
        if found is None:
            return False
        del rest[found]
    return True


def _of_order(record: Record, same_rows: bool) -> str:
    """What is wrong, of rows that are the same or not once their order is the same."""
    if not same_rows:
        return "values"
    return "order of rows" if record.sort == "nosort" and _ordered(record.sql) else ""


def _of_lines(record: Record, rows: list[Row]) -> str:
    """The same for DataFusion, whose rows are lines in which nothing but blanks separates values."""
    expected = [line.split() for line in record.expected]
    if len(expected) != len(rows):
        return "number of rows"
    if record.sort == "valuesort":
        given = sorted(word for line in expected for word in line)
        return "" if given == sorted(word for row in rows for word in _words(row)) else "values"
    if all(map(_same_line, expected, rows)):
        return ""
    expected.sort(key=lambda line: [_canonical(word) for word in line])
    rows = sorted(rows, key=lambda row: [_canonical(word) for word in _words(row)])
    return _of_order(record, all(map(_same_line, expected, rows)))


def _words(row: Row) -> list[str]:
    return " ".join(_plain(cell, Dialect.DATAFUSION) for cell in row).split()


def _same_line(line: list[str], row: Row) -> bool:
    """Whether the words of a line are those of the values in turn."""
    if any(ANYTHING in word for word in line):
        parts = map(re.escape, " ".join(line).split(ANYTHING))
        return re.fullmatch(".*".join(parts), " ".join(_words(row))) is not None
    at = 0
    for value in row:
        words = _plain(value, Dialect.DATAFUSION).split()
        found = line[at : at + len(words)]
        at += len(words)
        if found != words and (
            isinstance(value, str) or not same(" ".join(found), value, "?", Dialect.DATAFUSION)
        ):
            return False
    return at == len(line)


def texts(record: Record, rows: list[Row], dialect: Dialect) -> list[list[str]]:
    """What is the same for all queries of a label."""
    table = [[_canonical(_printed(cell, dialect)) for cell in row] for row in rows]
    if record.sort == "valuesort":
        return [sorted(cell for row in table for cell in row)]
    return table if record.sort == "nosort" and _ordered(record.sql) else sorted(table)


def _ordered(sql: str) -> bool:
    """Whether a statement has an order, and not only a subquery or a window in it."""
    sql = re.sub(r"'(?:[^']|'')*'", "''", sql)
    while (inner := re.sub(r"\([^()]*\)", " ", sql)) != sql:
        sql = inner
    return ORDERED.search(sql) is not None


def _expected(record: Record, rows: int, width: int) -> Sequence[Sequence[str]] | None:
    """The expected rows, if their number fits."""
    lines = list(record.expected)
    if width == 0 or not lines:
        return [] if not lines and rows == 0 else None
    # One row per line, or one value per line.
    by_tabs = [line.split("\t") for line in lines]
    if width > 1 and any(len(cells) > width for cells in by_tabs):
        by_tabs = [[cell for cell in cells if cell] for cells in by_tabs]
    if len(lines) == rows and all(len(cells) == width for cells in by_tabs):
        return by_tabs
    if width > 1 and all("\t" in line for line in lines):
        return by_tabs if all(len(cells) == width for cells in by_tabs) else None
    if len(lines) == rows * width:
        return [lines[i : i + width] for i in range(0, len(lines), width)]
    return by_tabs if len(lines) != rows and width == 1 else None


def _kinds(record: Record, width: int) -> str:
    return record.types if len(record.types) == width else "?" * width


def _of_hash(record: Record, rows: list[Row], count: int, expected: str, dialect: Dialect) -> str:
    kinds = _kinds(record, len(rows[0]) if rows else 0)
    table = [[_hashed(cell, kinds[i], dialect) for i, cell in enumerate(row)] for row in rows]
    if sum(len(row) for row in table) != count:
        return "number of rows"
    if record.sort == "rowsort":
        table.sort()
    values = [cell for row in table for cell in row]
    if record.sort == "valuesort":
        values.sort()
    found = hashlib.md5("".join(value + "\n" for value in values).encode()).hexdigest()
    return "" if found == expected else "values of a hash"


def _hashed(value: Any, kind: str, dialect: Dialect) -> str:
    """A value exactly as the suite's runner prints it."""
    if value is None:
        return "NULL"
    if dialect is Dialect.SQLITE:
        return _of_sqlite(value, kind)
    return _printed(value, dialect)


def _of_sqlite(value: Any, kind: str) -> str:
    if isinstance(value, (int, float, decimal.Decimal)):
        if kind == "R":
            return f"{float(value):.3f}"
        if kind == "I" and math.isfinite(value) and value == int(value):
            return str(int(value))
        return str(int(value)) if isinstance(value, bool) else str(value)
    if kind == "I":
        # SQLite reads the number at the beginning of a text.
        return (re.match(r"\s*([-+]?\d+)", str(value)) or ("", "0"))[1]
    text = str(value) or "(empty)"
    return "".join(c if " " <= c <= "~" else "@" for c in text)


def _same_row(expected: Sequence[str], row: Row, kinds: str, dialect: Dialect) -> bool:
    return len(expected) == len(row) and all(
        same(text, value, kinds[i] if i < len(kinds) else "?", dialect)
        for i, (text, value) in enumerate(zip(expected, row))
    )


def same(expected: str, value: Any, kind: str, dialect: Dialect) -> bool:
    """Whether a value is the one whose text is expected."""
    if expected.startswith(("<REGEX>:", "<!REGEX>:")):
        return _matches(expected, _printed(value, dialect))
    text = expected.strip()
    if value is None:
        return text == "NULL" or (dialect is Dialect.POSTGRES and text in NULLS)
    if dialect is Dialect.SQLITE and text == _of_sqlite(value, kind):
        return True
    printed = _printed(value, dialect)
    if isinstance(value, str):
        return printed.rstrip() == expected.rstrip() or (text == "(empty)" and printed == "")
    if text == printed.strip():
        return True
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        if re.match(r"\d{4}-\d\d-\d\d[ T][\d:.]+[-+]\d\d(:\d\d)?$", text):
            return datetime.datetime.fromisoformat(_with_minutes(text)) == value
    if isinstance(value, bool):
        return text.lower() in (("1", "true", "t") if value else ("0", "false", "f"))
    if isinstance(value, (int, float, decimal.Decimal)):
        return _same_number(text, value, dialect)
    if _canonical(text) == _canonical(printed):
        return True
    return isinstance(value, (list, tuple, dict)) and _nearly(text, printed, dialect)


def _with_minutes(moment: str) -> str:
    """With six digits of a fraction, and minutes of the offset, as Python wants them."""
    moment = re.sub(r"\.(\d+)", lambda found: "." + found[1].ljust(6, "0")[:6], moment)
    return moment if moment[-3] == ":" and moment[-6] in "+-" else moment + ":00"


def _same_number(text: str, value: int | float | decimal.Decimal, dialect: Dialect) -> bool:
    try:
        expected = decimal.Decimal(text)
    except decimal.InvalidOperation:
        return False
    if expected.is_nan() or expected.is_infinite() or not math.isfinite(value):
        return str(float(expected)) == str(float(value))
    if isinstance(value, (int, decimal.Decimal)):
        return expected == value
    a, b = float(expected), float(value)
    few = len(expected.as_tuple().digits) <= FEW and re.search("[.e]", text) is not None
    if abs(a - b) <= (TOLERANCE_OF_FEW if few else TOLERANCE) * max(abs(a), abs(b)):
        return True
    places = -min(int(expected.as_tuple().exponent), 0)
    rounded = abs(a - b) <= 10.0**-places * 0.51
    if dialect is Dialect.SQLITE:
        return places > 0 and rounded
    if dialect is Dialect.DATAFUSION:
        # It prints twelve digits behind the point.
        return abs(a - b) < 1e-12
    return dialect is Dialect.DUCKDB and places > 0 and rounded and abs(a - b) <= BY_HAND * abs(a)


def _nearly(expected: str, printed: str, dialect: Dialect) -> bool:
    """Whether texts of nested values differ in nothing but the last digits of the numbers in them."""
    a, b = _canonical(expected), _canonical(printed)
    if NUMBER.sub("#", a) != NUMBER.sub("#", b):
        return False
    numbers = zip(NUMBER.findall(a), NUMBER.findall(b))
    return all(x == y or _same_number(x, float(y), dialect) for x, y in numbers)


def _matches(pattern: str, text: str) -> bool:
    kind, _, regex = pattern.partition(":")
    try:
        return (re.fullmatch(regex.strip(), text, re.S) is not None) == (kind == "<REGEX>")
    except re.error:
        return False


def _canonical(text: str) -> str:
    """A text without what differs between styles: quotes, blanks between elements, zones' zeros, zeros at the
    end, the case of words for values."""
    text = text.strip()
    if found := MONTH_FIRST.match(text):
        return f"{found[3]}-{found[1]}-{found[2]}"
    if found := WEEKDAY.match(text):
        moment = datetime.datetime.strptime(f"2000 {found[1]}", "%Y %b %d")
        text = f"{found[3]}-{moment:%m-%d} {found[2]}"
    if (interval := _interval(text)) is not None:
        return f"interval {interval}"
    text = re.sub(r"(\d{4}-\d\d-\d\d)T", r"\1 ", text)
    text = re.sub(r"(\d\d:\d\d)(Z|[+-]00(:00)?)\b", r"\1", text)
    text = re.sub(
        r"(\d\d:\d\d:\d\d)(\.\d*?)0*(Z|[+-]00(:00)?)?(?!\d)", lambda m: m[1] + m[2].rstrip("."), text
    )
    text = re.sub(r"(:\d\d(?:\.\d+)?[+-]\d\d):00$", r"\1", text)
    text = re.sub(r"(\d{4}-\d\d-\d\d) 00:00:00(?![.\d])", r"\1", text)
    text = re.sub(r"\s*([\[\](){},:=])\s*", r"\1", re.sub(r"['\"]", "", text))
    text = WORDS.sub(lambda word: word[0].lower(), text)
    return re.sub(r"(\d\.\d*?)0+(?=\D|$)", lambda m: m[1].rstrip("."), text)


def _interval(text: str) -> tuple[int, int, int] | None:
    """An interval in any style: months, days, microseconds."""
    if not re.match(r"^(@ )?[-+]?\d", text) or not re.search(r"[a-z]|:", text):
        return None
    ago = text.endswith(" ago")
    words = text.removeprefix("@ ").removesuffix(" ago").split()
    months = days = micros = decimal.Decimal(0)
    at = 0
    while at < len(words):
        if clock := re.match(r"^([-+]?)(\d+):(\d\d)(?::(\d\d(?:\.\d+)?))?$", words[at]):
            seconds = int(clock[2]) * 3600 + int(clock[3]) * 60 + decimal.Decimal(clock[4] or 0)
            micros += (-1 if clock[1] == "-" else 1) * seconds * 1_000_000
            at += 1
            continue
        unit = UNITS.get(words[at + 1].removesuffix("s")) if at + 1 < len(words) else None
        if unit is None or not re.match(r"^[-+]?[\d.]+$", words[at]):
            return None
        number = decimal.Decimal(words[at])
        months, days, micros = months + number * unit[0], days + number * unit[1], micros + number * unit[2]
        at += 2
    sign = -1 if ago else 1
    return sign * int(months), sign * int(days), sign * int(micros)


def _plain(value: Any, dialect: Dialect) -> str:
    if value is None:
        return "NULL"
    text = _printed(value, dialect)
    return text if text.strip() else "(empty)" if text == "" else text


def _printed(value: Any, dialect: Dialect) -> str:
    """A value as text, in about the style of the dialect."""
    postgres = dialect is Dialect.POSTGRES
    if value is None:
        return "" if postgres else "NULL"
    if isinstance(value, bool):
        return ("t" if value else "f") if postgres else str(value).lower()
    if isinstance(value, decimal.Decimal):
        return f"{value:f}"
    if isinstance(value, float):
        return _of_float(value)
    if isinstance(value, Months):
        return value.of_datafusion() if dialect is Dialect.DATAFUSION else value.text()
    if isinstance(value, datetime.datetime):
        if dialect is Dialect.DATAFUSION:
            return value.isoformat().removesuffix("+00:00") + ("Z" if value.tzinfo else "")
        return value.isoformat(" ").removesuffix(":00") if value.tzinfo else value.isoformat(" ")
    if isinstance(value, bytes):
        if postgres:
            return "\\x" + value.hex()
        if dialect is Dialect.DATAFUSION:
            return value.hex()
        return "".join(
            chr(byte) if 32 <= byte < 127 and byte not in b"\\\"'" else f"\\x{byte:02X}" for byte in value
        )
    if isinstance(value, Pairs):
        mark = ": " if dialect is Dialect.DATAFUSION else "="
        return "{" + ", ".join(_nested(k, dialect) + mark + _nested(v, dialect) for k, v in value) + "}"
    if isinstance(value, (list, tuple)):
        inner = (_nested(element, dialect) for element in value)
        return "{" + ",".join(inner) + "}" if postgres else "[" + ", ".join(inner) + "]"
    if isinstance(value, dict):
        return _of_dict(value, dialect)
    return str(value).replace("\0", "\\0") if dialect is Dialect.DUCKDB else str(value)


class Months(tuple[int, int, int]):
    """An interval: months, days, microseconds."""

    def text(self) -> str:
        months, days, micros = self
        return f"{months} months {days} days {micros / 1_000_000:.6f} seconds"

    def of_datafusion(self) -> str:
        months, days, micros = self
        sign, micros = ("-", -micros) if micros < 0 else ("", micros)
        clock = [
            f"{sign}{micros // 3_600_000_000} hours" if micros >= 3_600_000_000 else "",
            f"{sign}{micros // 60_000_000 % 60} mins" if micros // 60_000_000 % 60 else "",
            f"{sign}{micros % 60_000_000 / 1_000_000:.9f} secs" if micros % 60_000_000 else "",
        ]
        parts = [f"{months} mons" if months else "", f"{days} days" if days else "", *clock]
        return " ".join(part for part in parts if part) or "0 secs"


class Pairs(tuple[tuple[Any, Any], ...]):
    """A map: its entries."""


def _nested(value: Any, dialect: Dialect) -> str:
    return "NULL" if value is None else _printed(value, dialect)


def _of_float(value: float) -> str:
    if not math.isfinite(value):
        return {"inf": "Infinity", "-inf": "-Infinity"}.get(str(value), "NaN")
    return repr(value)


def _of_dict(value: dict[Any, Any], dialect: Dialect) -> str:
    if dialect is Dialect.POSTGRES:
        return "(" + ",".join("" if v is None else _printed(v, dialect) for v in value.values()) + ")"
    quote = "" if dialect is Dialect.DATAFUSION else "'"
    return "{" + ", ".join(f"{quote}{k}{quote}: {_nested(v, dialect)}" for k, v in value.items()) + "}"
