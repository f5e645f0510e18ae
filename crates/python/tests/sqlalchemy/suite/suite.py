"""The tests: SQLAlchemy's, with other names for keys in the second schema.

The names of keys are unique in a database of ours, and the suite declares the same ones in two schemas.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import PrimaryKeyConstraint, UniqueConstraint
from sqlalchemy.testing import config
from sqlalchemy.testing.suite import *  # noqa: F403
from sqlalchemy.testing.suite import ComponentReflectionTest as _ComponentReflectionTest


def _other(name: Any) -> Any:
    return f"other_{name}" if isinstance(name, str) else name


def _renamed(expected: dict[Any, Any]) -> dict[Any, Any]:
    """What is expected of the tables in the second schema, with its keys' names."""
    for (schema, _), keys in expected.items():
        if schema == config.test_schema:
            for key in keys if isinstance(keys, list) else [keys]:
                key["name"] = _other(key["name"])
    return expected


class ComponentReflectionTest(_ComponentReflectionTest):
    """The tests of reflection."""

    @classmethod
    def define_tables(cls, metadata: Any) -> None:
        super().define_tables(metadata)
        for table in metadata.tables.values():
            for key in table.constraints if table.schema == config.test_schema else ():
                if isinstance(key, (PrimaryKeyConstraint, UniqueConstraint)) and key.name is not None:
                    key.name = _other(key.name)

    def exp_pks(self, *arguments: Any, **options: Any) -> Any:
        return _renamed(super().exp_pks(*arguments, **options))

    def exp_ucs(self, *arguments: Any, **options: Any) -> Any:
        return _renamed(super().exp_ucs(*arguments, **options))
