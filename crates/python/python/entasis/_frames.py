"""Data frames in and out, where Arrow's types and theirs differ.

In: a column of Python objects for which Arrow has no type is converted to integers of up to 38 digits, if all
are integers, and otherwise to text; so are the interval types of pandas (``Period``, ``Interval``).

Out: pandas' plain integers have no NULL. A column of integers with a NULL gets the nullable type of its width
(``Int64``, ``UInt8``, …) instead of a float type, which would round large numbers.
"""

from __future__ import annotations

import datetime
import decimal
from typing import TYPE_CHECKING, Any, Callable

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

#: The most digits of a DECIMAL.
_DIGITS = 38
#: Rows of a column of Python objects that are converted at once: other threads wait meanwhile.
_PIECE = 1 << 16
#: Microseconds of a day.
_DAY = 86_400_000_000


def _go_on() -> None:
    """Whoever converts goes on."""


def from_pandas(frame: pandas.DataFrame, look: Callable[[], None] = _go_on) -> pyarrow.Table:
    """The columns of a frame, without its index. `look` is called now and then, and may raise."""
    import pyarrow

    try:
        table = _table(frame, look)
    except (pyarrow.ArrowException, OverflowError, TypeError, ValueError):
        pass
    else:
        if not any(_is_foreign(column_type) for column_type in table.schema.types):
            cut = [place for place, field in enumerate(table.schema) if _is_cut(frame.iloc[:, place], field.type)]
            for place in cut:
                table = table.set_column(place, table.field(place).name, _column(frame.iloc[:, place]))
            return table
    # Column by column, because two may have the same name.
    columns = [_column(values) for _, values in frame.items()]
    return pyarrow.Table.from_arrays(columns, [str(name) for name in frame.columns])


def _table(frame: pandas.DataFrame, look: Callable[[], None]) -> pyarrow.Table:
    """The columns as pyarrow converts them, those of many Python objects piece by piece."""
    import pyarrow

    pieces: dict[int, pyarrow.ChunkedArray] = {}
    if len(frame) > _PIECE:
        for place, dtype in enumerate(frame.dtypes):
            column = _in_pieces(frame.iloc[:, place], look) if dtype == object else None
            if column is not None:
                pieces[place] = column
    if len(pieces) == frame.shape[1] and pieces:
        return pyarrow.Table.from_arrays(list(pieces.values()), [str(name) for name in frame.columns])
    others = [place for place in range(frame.shape[1]) if place not in pieces]
    table = pyarrow.Table.from_pandas(frame.iloc[:, others] if pieces else frame, preserve_index=False)
    for place, column in pieces.items():
        table = table.add_column(place, str(frame.columns[place]), column)
    return table


def _in_pieces(values: pandas.Series, look: Callable[[], None]) -> pyarrow.ChunkedArray | None:
    """A column of Python objects; None if its pieces have several types, or one that all values decide."""
    import pyarrow

    arrays = []
    for start in range(0, len(values), _PIECE):
        look()
        arrays.append(pyarrow.array(values.iloc[start : start + _PIECE], from_pandas=True))
    types = {array.type for array in arrays if not pyarrow.types.is_null(array.type)}
    if len(types) != 1 or pyarrow.types.is_nested(*types) or pyarrow.types.is_date(*types):
        return None
    return pyarrow.chunked_array([array.cast(*types) for array in arrays])


def from_series(series: pandas.Series, look: Callable[[], None] = _go_on) -> pyarrow.Table:
    """A series as a table of one column, called as the series or `column0`."""
    return from_pandas(series.to_frame("column0" if series.name is None else str(series.name)), look)


def is_table(object: Any) -> bool:
    """True for a dict of arrays, series or lists by their names, and for a list of dicts with names."""
    import sys

    if isinstance(object, list):
        return all(isinstance(row, dict) and all(isinstance(name, str) for name in row) for row in object)
    if not all(isinstance(name, str) for name in object):
        return False
    modules = ("numpy", "pandas", "pyarrow", "pyarrow", "polars")
    classes: tuple[Any, ...] = (list, tuple)
    for module, name in zip(modules, ("ndarray", "Series", "Array", "ChunkedArray", "Series")):
        classes += (getattr(sys.modules.get(module), name, list),)
    return all(isinstance(values, classes) for values in object.values())


def from_dicts(rows: list[dict[str, Any]]) -> pyarrow.Table:
    """A table of rows by the names of their columns, in the order in which they come; one that a row lacks is NULL
    there."""
    names = dict.fromkeys(name for row in rows for name in row)
    if not names:
        raise ValueError("its dicts are empty")
    return from_dict({name: [row.get(name) for row in rows] for name in names})


def from_dict(columns: dict[str, Any]) -> pyarrow.Table:
    """A table of arrays, series or lists by their names."""
    import pyarrow

    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise ValueError(f"its columns have different numbers of rows: {counts}")
    columns = {name: list(values) if isinstance(values, tuple) else values for name, values in columns.items()}
    arrays = [values.to_arrow() if hasattr(values, "to_arrow") else values for values in columns.values()]
    try:
        return pyarrow.table(dict(zip(columns, arrays)))
    except (pyarrow.ArrowException, OverflowError, TypeError, ValueError):
        # Values of several types become text, as in a data frame.
        import pandas

        return from_pandas(pandas.DataFrame(columns))


def from_array(array: Any, name: str) -> pyarrow.Table | None:
    """An array of one or two dimensions: the columns are called `column0` and so on, or as its fields are."""
    if array.ndim == 0 or array.ndim > 2:
        return None
    if array.dtype.names:
        return from_dict({field: array[field] for field in array.dtype.names})
    columns = [array] if array.ndim == 1 else [array[:, place] for place in range(array.shape[1])]
    return from_dict({f"column{place}": column for place, column in enumerate(columns)})


def _column(values: pandas.Series) -> pyarrow.Array:
    import pandas
    import pyarrow

    if isinstance(values.dtype, pandas.SparseDtype):
        values = values.sparse.to_dense()
    try:
        column = pyarrow.array(values, from_pandas=True)
    except (pyarrow.ArrowException, OverflowError, TypeError, ValueError):
        return _objects(values)
    if _is_cut(values, column.type):
        return pyarrow.array([None if value is None else _time(value) for value in _present(values)], pyarrow.timestamp("us"))
    return _objects(values) if _is_foreign(column.type) else column


def _objects(values: pandas.Series) -> pyarrow.Array:
    import pyarrow

    present = _present(values)
    given = [value for value in present if value is not None]
    if given and all(_is_long_integer(value) for value in given):
        digits = [None if value is None else decimal.Decimal(int(value)) for value in present]
        return pyarrow.array(digits, pyarrow.decimal128(_DIGITS, 0))
    return pyarrow.array([None if value is None else str(value) for value in present], pyarrow.string())


def _present(values: pandas.Series) -> list[Any]:
    """The values, with None for those that pandas considers missing."""
    return [None if missing else value for value, missing in zip(values, values.isna())]


def _time(value: datetime.date) -> datetime.datetime:
    return value if isinstance(value, datetime.datetime) else datetime.datetime.combine(value, datetime.time())


def _is_long_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**_DIGITS


def _is_cut(values: pandas.Series, column_type: pyarrow.DataType) -> bool:
    """True if there are times of day among dates; pyarrow would drop them."""
    import pyarrow

    is_date = pyarrow.types.is_date(column_type) and values.dtype == object
    return is_date and any(isinstance(value, datetime.datetime) for value in values)


def _is_foreign(column_type: pyarrow.DataType) -> bool:
    """True for a type that only pandas understands, or that has more digits than SQL's DECIMAL."""
    import pyarrow

    if pyarrow.types.is_dictionary(column_type):
        return _is_foreign(column_type.value_type)
    if isinstance(column_type, pyarrow.BaseExtensionType):
        return bool(column_type.extension_name.startswith("pandas."))
    return bool(pyarrow.types.is_decimal(column_type) and column_type.precision > _DIGITS)


def to_pandas(result: Any, exact: bool = False) -> pandas.DataFrame:
    """Converts a result, an Arrow stream. Integers of 38 digits, such as sums, become 64-bit if all fit;
    other decimals become floats, or with `exact` Python objects. Lists and structs stay in Arrow's memory
    (`pandas.ArrowDtype`), or with `exact` become arrays of numpy and dicts, one a row. The time 24:00:00, which
    Python does not have, becomes text.
    """
    import pandas
    import pyarrow

    table = pyarrow.table(result)
    if not exact:
        for place, field in enumerate(table.schema):
            if pyarrow.types.is_decimal(field.type) and field.type.scale > 0:
                table = table.set_column(place, field.name, table.column(place).cast(pyarrow.float64()))
    late: dict[int, list[Any]] = {}
    for place, column in enumerate(table.columns):
        if pyarrow.types.is_time(column.type):
            micros = column.cast(pyarrow.int64())
            if _DAY in micros.unique().to_pylist():
                late[place] = [None if value is None else _time_of_day(value) for value in micros.to_pylist()]
                table = table.set_column(place, table.field(place).name, micros)
    frame = table.to_pandas(types_mapper=None if exact else _kept)
    nullable = {
        getattr(pyarrow, name.lower())(): getattr(pandas, f"{name}Dtype")()
        for name in ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")
    }
    for place, column in enumerate(table.columns):
        if column.type == pyarrow.decimal128(_DIGITS, 0):
            try:
                column = column.cast(pyarrow.int64())
            except pyarrow.ArrowInvalid:
                continue
            frame.isetitem(place, column.to_pandas())
        if column.null_count and column.type in nullable:
            frame.isetitem(place, column.to_pandas(types_mapper=nullable.get))
    for place, times in late.items():
        frame.isetitem(place, pandas.Series(times, dtype=object))
    return frame


def _time_of_day(micros: int) -> datetime.time | str:
    if micros == _DAY:
        return "24:00:00"
    return (datetime.datetime.min + datetime.timedelta(microseconds=micros)).time()


def _kept(column_type: pyarrow.DataType) -> Any:
    """The type of a column whose values stay in Arrow's memory; None for all that pandas has arrays of."""
    import pandas
    import pyarrow

    return pandas.ArrowDtype(column_type) if pyarrow.types.is_nested(column_type) else None


def from_polars(frame: polars.DataFrame) -> polars.DataFrame:
    """The frame with types for untyped columns: Python objects become text, only NULLs become integers."""
    import polars

    columns = []
    for column in frame:
        if column.dtype == polars.Object:
            text = [None if value is None else str(value) for value in column]
            columns.append(polars.Series(column.name, text, dtype=polars.String))
        elif column.dtype == polars.Null:
            columns.append(column.cast(polars.Int32))
        elif column.dtype in _long_integers():
            columns.append(_narrowed(column))
    return frame.with_columns(columns) if columns else frame


def _long_integers() -> set[Any]:
    """The integer types of polars that Arrow does not have."""
    import polars

    return {getattr(polars, name) for name in ("Int128", "UInt128") if hasattr(polars, name)}


def _narrowed(column: polars.Series) -> polars.Series:
    import polars

    try:
        return column.cast(polars.Decimal(_DIGITS, 0))
    except polars.exceptions.PolarsError:
        return column.cast(polars.String)
