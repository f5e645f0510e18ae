"""Entasis for SQLAlchemy: `create_engine("entasis:///my.db")`.

The dialect is found by its name, as the package declares it. This module has what programs import: the types
that SQLAlchemy does not have, and `insert` with `on_conflict_do_nothing` and `on_conflict_do_update`.
"""

from __future__ import annotations

import sys

from sqlalchemy.dialects.postgresql import insert

from .dialect import EntasisDialect as dialect
from .types import (
    ARRAY,
    HUGEINT,
    INTERVAL,
    JSON,
    MAP,
    STRUCT,
    TIMESTAMP_NS,
    TINYINT,
    UBIGINT,
    UINTEGER,
    USMALLINT,
    UTINYINT,
)

if "alembic" in sys.modules:
    from . import migrations  # noqa: F401

__all__ = [
    "ARRAY",
    "HUGEINT",
    "INTERVAL",
    "JSON",
    "MAP",
    "STRUCT",
    "TIMESTAMP_NS",
    "TINYINT",
    "UBIGINT",
    "UINTEGER",
    "USMALLINT",
    "UTINYINT",
    "dialect",
    "insert",
]
