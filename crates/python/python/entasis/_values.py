"""Values that Python has no type for."""

from __future__ import annotations

from typing import Dict, TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class Map(Dict[_Key, _Value]):
    """A dict that is a MAP as a parameter. A plain one is a STRUCT, if all its keys are texts."""

    __module__ = "entasis"
