"""The types that the names of the catalog mean: ``DECIMAL(12,2)``, ``STRUCT(x DOUBLE, tags VARCHAR[])``."""

from __future__ import annotations

import re
from typing import Any, Callable

from sqlalchemy import types as sqltypes
from sqlalchemy import util
from sqlalchemy.types import TypeEngine

from . import types

#: Types without parameters.
PLAIN: dict[str, Callable[[], TypeEngine[Any]]] = {
    "BIGINT": sqltypes.BIGINT,
    "BLOB": sqltypes.BLOB,
    "BOOLEAN": sqltypes.BOOLEAN,
    "DATE": sqltypes.DATE,
    "DOUBLE": sqltypes.DOUBLE,
    "INTEGER": sqltypes.INTEGER,
    "INTERVAL": types.INTERVAL,
    "JSON": types.JSON,
    "REAL": sqltypes.REAL,
    "SMALLINT": sqltypes.SMALLINT,
    "TIME": sqltypes.TIME,
    "TIME WITH TIME ZONE": lambda: sqltypes.TIME(timezone=True),
    "TIMESTAMP": sqltypes.TIMESTAMP,
    "TIMESTAMP WITH TIME ZONE": lambda: sqltypes.TIMESTAMP(timezone=True),
    "TIMESTAMP_NS": types.TIMESTAMP_NS,
    "TINYINT": types.TINYINT,
    "UBIGINT": types.UBIGINT,
    "UINTEGER": types.UINTEGER,
    "USMALLINT": types.USMALLINT,
    "UTINYINT": types.UTINYINT,
    "UUID": sqltypes.UUID,
    "VARCHAR": sqltypes.VARCHAR,
}

_TOKEN = re.compile(r"""\s*("(?:[^"]|"")*"|'(?:[^']|'')*'|\w+|.)""", re.DOTALL)


def type_of(name: str) -> TypeEngine[Any]:
    """The type of a name; `NullType`, with a warning, if it is not known."""
    reader = _Reader(_TOKEN.findall(name))
    try:
        found = reader.type()
        if reader.peek() is None:
            return found
    except (KeyError, ValueError):
        pass
    util.warn(f"Entasis' type {name} is not known to its SQLAlchemy dialect")
    return sqltypes.NULLTYPE


class _Reader:
    """Reads types from the tokens of a name."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.place = 0

    def peek(self) -> str | None:
        return self.tokens[self.place] if self.place < len(self.tokens) else None

    def take(self) -> str:
        token = self.peek()
        if token is None:
            raise ValueError("the name ends too early")
        self.place += 1
        return token

    def expect(self, wanted: str) -> None:
        if self.take() != wanted:
            raise ValueError(f"{wanted} is expected")

    def several(self, one: Callable[[], Any]) -> list[Any]:
        """What `one` reads, between brackets and separated by commas."""
        self.expect("(")
        found = [one()]
        while self.peek() == ",":
            self.take()
            found.append(one())
        self.expect(")")
        return found

    def type(self) -> TypeEngine[Any]:
        found, lengths = self.element(), []
        while self.peek() == "[":
            self.take()
            lengths.append(None if self.peek() == "]" else int(self.take()))
            self.expect("]")
        if not lengths:
            return found
        if len(lengths) > 1 and any(lengths):
            raise ValueError("SQLAlchemy has no lists of lists of a fixed length")
        return types.ARRAY(found, dimensions=len(lengths), length=lengths[0])

    def element(self) -> TypeEngine[Any]:
        name = self.take()
        if name == "DECIMAL":
            precision, scale = self.several(lambda: int(self.take()))
            return sqltypes.DECIMAL(precision, scale)
        if name == "ENUM":
            return sqltypes.Enum(*self.several(lambda: _unquoted(self.take())))
        if name == "STRUCT":
            return types.STRUCT(dict(self.several(lambda: (_unquoted(self.take()), self.type()))))
        if name == "MAP":
            key, value = self.several(self.type)
            return types.MAP(key, value)
        if name in ("TIME", "TIMESTAMP") and self.peek() == "WITH":
            name = " ".join([name, self.take(), self.take(), self.take()])
        return PLAIN[name]()


def _unquoted(token: str) -> str:
    quote = token[0]
    return token[1:-1].replace(quote * 2, quote) if quote in "\"'" else token
