"""Results as numpy arrays."""

from __future__ import annotations

from typing import Any

import numpy


def arrays(columns: list[tuple[str, str, Any, bytearray | None]]) -> dict[str, numpy.ndarray[Any, Any]]:
    """The columns by name; those with NULL as masked arrays. Each has a name, a type of numpy, its values, as bytes
    or in a list, and a byte for each row that is 1 for NULL, if there is one."""
    return {name: _array(dtype, values, nulls) for name, dtype, values, nulls in columns}


def _array(dtype: str, values: Any, nulls: bytearray | None) -> numpy.ndarray[Any, Any]:
    if dtype == "O":
        # Filled one by one, because numpy would make another dimension of lists.
        array = numpy.empty(len(values), dtype=object)
        for place, value in enumerate(values):
            array[place] = value
    else:
        array = numpy.frombuffer(values, dtype=dtype)
    return array if nulls is None else numpy.ma.masked_array(array, mask=numpy.frombuffer(nulls, dtype=bool))
