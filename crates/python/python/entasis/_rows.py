"""Row factories: what to set as `row_factory` of a connection or a cursor.

A row factory is called with the cursor and a row's tuple, as in the module `sqlite3`.
"""

from __future__ import annotations

import collections
import functools
from typing import Any

from ._entasis import ProgrammingError


def dict_row(cursor: Any, row: tuple[Any, ...]) -> dict[str, Any]:
    """A row as a dict by the names of the columns."""
    names = [column[0] for column in cursor.description]
    made = dict(zip(names, row))
    if len(made) < len(names):
        _refuse(names)
    return made


def namedtuple_row(cursor: Any, row: tuple[Any, ...]) -> Any:
    """A row as a named tuple: `row.name`. Columns whose names are none in Python are called `_0`, `_1` and so on, by
    their places."""
    return _class(tuple(column[0] for column in cursor.description))._make(row)


@functools.lru_cache(64)
def _class(names: tuple[str, ...]) -> Any:
    if len(set(names)) < len(names):
        _refuse(names)
    return collections.namedtuple("Row", names, rename=True)


def _refuse(names: Any) -> None:
    twin = next(name for place, name in enumerate(names) if name in names[:place])
    raise ProgrammingError(f'two columns are called "{twin}": name them apart with AS')
