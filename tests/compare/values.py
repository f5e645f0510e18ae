"""Values in comparable form, and the comparison of results.

Every engine's rows become tuples of plain values first: numbers (exact or float), text, booleans, dates,
times, timestamps, instants in UTC, and intervals as `Interval`. Two values are the same if they are of the
same kind and equal; two lists or structs, if their elements are. A float may differ from another number in the last digits, since sums are computed in
another order and quotients have other types. Rows without an order are compared as multisets: both sides are
sorted, columns without floats first, so that floats that almost agree are compared with each other.
"""

from __future__ import annotations

import datetime
import decimal
import math
from typing import Any, NamedTuple

#: The tolerance for floats, relative and near zero.
TOLERANCE = 1e-9

Row = tuple[Any, ...]


class Interval(NamedTuple):
    """Months, days and microseconds, kept separately."""

    months: int
    days: int
    micros: int

    def length(self) -> int:
        """Microseconds, with months of 30 days and days of 24 hours: equal intervals have equal lengths."""
        return (self.months * 30 + self.days) * 86_400_000_000 + self.micros


def plain(value: Any) -> Any:
    """A value of a driver in comparable form."""
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(datetime.timezone.utc)
    if isinstance(value, (decimal.Decimal, float)) and math.isnan(value):
        return math.nan
    # An array of a fixed length is a tuple in DuckDB.
    if isinstance(value, (list, tuple)) and not isinstance(value, Interval):
        return [plain(element) for element in value]
    if isinstance(value, dict):
        return {name: plain(field) for name, field in value.items()}
    return value


def kind(value: Any) -> str:
    """The kind of a value: only values of the same kind are compared."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float, decimal.Decimal)):
        return "number"
    if isinstance(value, datetime.datetime):
        return "timestamp" if value.tzinfo is None else "instant"
    return type(value).__name__


def same_value(a: Any, b: Any, by_length: bool = False) -> bool:
    """`by_length`: intervals are the same if they have equal lengths, such as a month and 30 days."""
    if kind(a) != kind(b):
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(same_value(x, y, by_length) for x, y in zip(a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same_value(a[name], b[name], by_length) for name in a)
    if isinstance(a, float) or isinstance(b, float):
        a, b = float(a), float(b)
        if math.isnan(a) or math.isnan(b) or math.isinf(a) or math.isinf(b):
            return a == b or (math.isnan(a) and math.isnan(b))
        return abs(a - b) <= TOLERANCE * max(abs(a), abs(b), 1e-3)
    if by_length and isinstance(a, Interval):
        return a.length() == b.length()
    return a == b


def same_rows(a: list[Row], b: list[Row], ordered: bool, by_length: bool = False) -> bool:
    if len(a) != len(b):
        return False
    if not ordered:
        floats = {i for row in a + b for i, value in enumerate(row) if isinstance(value, float)}
        a, b = (sorted(rows, key=lambda row: _sort_key(row, floats, by_length)) for rows in (a, b))
    return all(
        len(x) == len(y) and all(same_value(v, w, by_length) for v, w in zip(x, y)) for x, y in zip(a, b)
    )


def _sort_key(row: Row, floats: set[int], by_length: bool) -> tuple[Any, ...]:
    exact = [_place(value, by_length) for i, value in enumerate(row) if i not in floats]
    rest = [_place(value, by_length) for i, value in enumerate(row) if i in floats]
    return (exact, rest)


def _place(value: Any, by_length: bool) -> tuple[Any, ...]:
    if isinstance(value, Interval):
        return ("interval", value.length(), *(() if by_length else value))
    if isinstance(value, float) and math.isnan(value):
        return ("number", 1, 0)
    if kind(value) == "number":
        return ("number", 0, value)
    if isinstance(value, (list, dict)):
        parts = value.values() if isinstance(value, dict) else value
        return (kind(value), tuple(_place(part, by_length) for part in parts))
    return (kind(value), *(() if value is None else (value,)))
