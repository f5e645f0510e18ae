"""Types that SQLAlchemy does not have, and those of its own that are sent or read differently here.

Lists, structs and maps are sent as texts in the form of our output, inside a cast (``CAST(? AS INTEGER[])``),
because the package takes a list as several values for ``IN``. Their elements come back as the package gives
them: no type of SQLAlchemy changes them.
"""

from __future__ import annotations

import datetime
import decimal
import math
import uuid
from typing import Any, Callable, Mapping, Optional

from sqlalchemy import exc, literal
from sqlalchemy.engine.interfaces import Dialect
from sqlalchemy.sql import operators, sqltypes, type_api
from sqlalchemy.types import TypeEngine

_Process = Optional[Callable[[Any], Any]]
_Write = Callable[[Any], str]

#: The operators of a list, of which structs and maps have the comparisons and the index; from SQLAlchemy 2.1 on
#: a type says which it has.
_OPERATORS: Any = getattr(sqltypes.ARRAY, "operator_classes", None)


class TINYINT(sqltypes.Integer):
    """An integer of 8 bits."""

    __visit_name__ = "TINYINT"


class UTINYINT(sqltypes.Integer):
    """An integer of 8 bits without a sign."""

    __visit_name__ = "UTINYINT"


class USMALLINT(sqltypes.Integer):
    """An integer of 16 bits without a sign."""

    __visit_name__ = "USMALLINT"


class UINTEGER(sqltypes.Integer):
    """An integer of 32 bits without a sign."""

    __visit_name__ = "UINTEGER"


class UBIGINT(sqltypes.Integer):
    """An integer of 64 bits without a sign."""

    __visit_name__ = "UBIGINT"


class HUGEINT(sqltypes.Integer):
    """An integer of 38 digits, which the database calls ``DECIMAL(38,0)``."""

    __visit_name__ = "HUGEINT"


class TIMESTAMP_NS(sqltypes.DateTime):
    """A date and time with nanoseconds; Python's have microseconds, so values are cut to these."""

    __visit_name__ = "TIMESTAMP_NS"


class INTERVAL(type_api.NativeForEmulated, sqltypes._AbstractInterval):
    """A span of time, as ``datetime.timedelta``."""

    __visit_name__ = "INTERVAL"
    native = True

    @classmethod
    def adapt_emulated_to_native(cls, impl: Any, **kw: Any) -> INTERVAL:
        """What `sqlalchemy.Interval` is here."""
        return INTERVAL()

    @property
    def python_type(self) -> type[datetime.timedelta]:
        return datetime.timedelta

    def literal_processor(self, dialect: Dialect) -> _Process:
        return lambda value: f"INTERVAL '{_interval(value)}'"


class Nested:
    """What lists, structs and maps have in common: values are sent as texts, within a cast."""

    render_bind_cast = True

    def writer(self, dialect: Dialect) -> _Write:
        """A function that writes a value as a text of this type."""
        raise NotImplementedError

    def reader(self, dialect: Dialect) -> _Process:
        """A function that makes a value of one of the package; None if it is one."""
        raise NotImplementedError

    def bind_processor(self, dialect: Dialect) -> _Process:
        write = self.writer(dialect)
        return lambda value: None if value is None else write(value)

    def literal_processor(self, dialect: Dialect) -> _Process:
        write, name = self.writer(dialect), self.compile(dialect)  # type: ignore[attr-defined]

        return lambda value: f"CAST({_literal(write(value))} AS {name})"

    def result_processor(self, dialect: Dialect, coltype: object) -> _Process:
        return self.reader(dialect)


class ARRAY(Nested, sqltypes.ARRAY):  # type: ignore[type-arg]
    """A list: ``INTEGER[]``, or with `length` one of exactly so many elements, ``REAL[3]``."""

    def __init__(self, item_type: Any, *, length: int | None = None, **kw: Any) -> None:
        super().__init__(item_type, **kw)
        self.length = length

    def writer(self, dialect: Dialect) -> _Write:
        write = _writer(self.item_type, dialect)
        for _ in range(self.dimensions or 1):
            write = _written_list(write)
        return write

    def reader(self, dialect: Dialect) -> _Process:
        read = _reader(self.item_type, dialect)
        if read is None and not self.as_tuple:
            return None
        for _ in range(self.dimensions or 1):
            read = _read_list(read, tuple if self.as_tuple else list)
        return read


class STRUCT(Nested, sqltypes.Indexable, TypeEngine):  # type: ignore[type-arg]
    """Named fields, as a ``dict``: ``STRUCT({"x": Double(), "y": Double()})``; ``column["x"]`` is one of them."""

    __visit_name__ = "STRUCT"
    operator_classes = _OPERATORS

    class Comparator(sqltypes.Indexable.Comparator):  # type: ignore[type-arg]
        """What can be done with a struct."""

        type: STRUCT

        def _setup_getitem(self, index: Any) -> Any:
            field = self.type.fields.get(index)
            if field is None:
                raise exc.ArgumentError(f"the struct has no field {index!r}: it has {', '.join(self.type.fields)}")
            return operators.getitem, literal(index, sqltypes.String(), literal_execute=True), field

    comparator_factory = Comparator

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self.fields = {name: type_api.to_instance(ty) for name, ty in fields.items()}

    @property
    def _static_cache_key(self) -> Any:
        return (STRUCT, tuple((name, ty._static_cache_key) for name, ty in self.fields.items()))

    def writer(self, dialect: Dialect) -> _Write:
        write = {name: _writer(ty, dialect) for name, ty in self.fields.items()}

        def process(value: Mapping[str, Any]) -> str:
            unknown = value.keys() - write.keys()
            if unknown:
                raise ValueError(f"the struct has no field {min(unknown)!r}: it has {', '.join(write)}")
            return "{" + ", ".join(f"{_quoted(name)}: {write[name](own)}" for name, own in value.items()) + "}"

        return process

    def reader(self, dialect: Dialect) -> _Process:
        read = {name: _reader(ty, dialect) for name, ty in self.fields.items()}
        changed = {name: own for name, own in read.items() if own is not None}
        if not changed:
            return None

        def process(value: Any) -> Any:
            if value is None:
                return None
            return {
                name: own if own is None or name not in changed else changed[name](own)
                for name, own in value.items()
            }

        return process

    @property
    def python_type(self) -> type[dict[str, Any]]:
        return dict


class MAP(Nested, sqltypes.Indexable, TypeEngine):  # type: ignore[type-arg]
    """Keys with a value each, as a ``dict``: ``MAP(String(), Integer())``; ``column["red"]`` is a value or NULL."""

    __visit_name__ = "MAP"
    operator_classes = _OPERATORS

    class Comparator(sqltypes.Indexable.Comparator):  # type: ignore[type-arg]
        """What can be done with a map."""

        type: MAP

        def _setup_getitem(self, index: Any) -> Any:
            return operators.getitem, literal(index, self.type.key_type), self.type.value_type

    comparator_factory = Comparator

    def __init__(self, key_type: Any, value_type: Any) -> None:
        self.key_type = type_api.to_instance(key_type)
        self.value_type = type_api.to_instance(value_type)

    @property
    def _static_cache_key(self) -> Any:
        return (MAP, self.key_type._static_cache_key, self.value_type._static_cache_key)

    def writer(self, dialect: Dialect) -> _Write:
        key, value = _writer(self.key_type, dialect), _writer(self.value_type, dialect)
        return lambda given: "{" + ", ".join(f"{key(k)}={value(v)}" for k, v in given.items()) + "}"

    def reader(self, dialect: Dialect) -> _Process:
        read = (_reader(self.key_type, dialect), _reader(self.value_type, dialect))
        if read == (None, None):
            return None
        key, value = (own or (lambda same: same) for own in read)

        def process(given: Any) -> Any:
            if not isinstance(given, dict):
                return given
            return {key(k): None if v is None else value(v) for k, v in given.items()}

        return process

    @property
    def python_type(self) -> type[dict[Any, Any]]:
        return dict


class JSON(sqltypes.JSON):
    """A text that is checked to be JSON; there are no functions of it, so no access by index or path."""

    render_bind_cast = True

    def literal_processor(self, dialect: Dialect) -> _Process:
        bind = self.bind_processor(dialect)  # type: ignore[no-untyped-call]

        def process(value: Any) -> str:
            text = bind(value) if bind else value
            return "NULL" if text is None else f"CAST({_literal(text)} AS JSON)"

        return process


class Numeric(sqltypes.Numeric):  # type: ignore[type-arg]
    """Decimals; the package gives those of type ``DECIMAL(38,0)`` as integers."""

    def result_processor(self, dialect: Dialect, coltype: object) -> _Process:
        if not self.asdecimal:
            return lambda value: None if value is None else float(value)

        def process(value: Any) -> Any:
            if isinstance(value, float):
                return decimal.Decimal(repr(value))
            return decimal.Decimal(value) if isinstance(value, int) else value

        return process


class Float(sqltypes.Float):  # type: ignore[type-arg]
    """Floats, whose literals may be infinite."""

    def literal_processor(self, dialect: Dialect) -> _Process:
        return lambda value: str(value) if math.isfinite(value) else f"CAST('{value}' AS DOUBLE)"


class Blob(sqltypes.LargeBinary):
    """Bytes, whose literals are texts of hexadecimal digits."""

    def literal_processor(self, dialect: Dialect) -> _Process:
        return lambda value: f"from_hex('{bytes(value).hex()}')"


#: Types of SQLAlchemy, and what stands for them here.
COLSPECS: dict[type[TypeEngine[Any]], type[TypeEngine[Any]]] = {
    sqltypes.Numeric: Numeric,
    sqltypes.Float: Float,
    sqltypes.LargeBinary: Blob,
    sqltypes.Interval: INTERVAL,
    sqltypes.ARRAY: ARRAY,
    sqltypes.JSON: JSON,
}


def _writer(ty: TypeEngine[Any], dialect: Dialect) -> _Write:
    """A function that writes a value of a type within the text of a list, struct or map."""
    own = ty.dialect_impl(dialect)
    if isinstance(own, Nested):
        write = own.writer(dialect)
        return lambda value: "NULL" if value is None else write(value)
    process = own.bind_processor(dialect)
    return lambda value: _scalar(value if process is None else process(value))


def _reader(ty: TypeEngine[Any], dialect: Dialect) -> _Process:
    """A function that makes a value of a type of one of the package, which is not None."""
    own = ty.dialect_impl(dialect)
    return own.reader(dialect) if isinstance(own, Nested) else own.result_processor(dialect, None)


def _written_list(write: _Write) -> _Write:
    return lambda value: "NULL" if value is None else f"[{', '.join(map(write, value))}]"


def _read_list(read: _Process, kind: Callable[[Any], Any]) -> _Process:
    one = read or (lambda value: value)
    return lambda value: None if value is None else kind(None if own is None else one(own) for own in value)


def _scalar(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime.timedelta):
        return _quoted(_interval(value))
    if isinstance(value, (bytes, bytearray)):
        return _quoted("".join(f"\\x{byte:02X}" for byte in value))
    if isinstance(value, datetime.datetime):
        return _quoted(value.isoformat(" "))
    if isinstance(value, (int, float, decimal.Decimal, uuid.UUID, datetime.date, datetime.time)):
        return str(value)
    if isinstance(value, str):
        return _quoted(value)
    raise TypeError(f"a list, struct or map cannot hold a {type(value).__name__}")


def _literal(text: str) -> str:
    """A text as a literal of SQL."""
    doubled = text.replace("'", "''")
    return f"'{doubled}'"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _interval(value: datetime.timedelta) -> str:
    micros = (value.seconds * 1_000_000) + value.microseconds
    return f"{value.days} days {micros} microseconds"
