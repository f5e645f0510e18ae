"""The tests: SQLAlchemy's."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, ForeignKey, Integer, String, Table
from sqlalchemy.testing import config
from sqlalchemy.testing.suite import *  # noqa: F403
from sqlalchemy.testing.suite import ComponentReflectionTest as _ComponentReflectionTest


class ComponentReflectionTest(_ComponentReflectionTest):
    """Without the tables in a second schema whose keys have the names of those in the first one."""

    @classmethod
    def define_tables(cls, metadata: Any) -> None:
        cls.define_reflected_tables(metadata, None)
        for name, columns in {
            "remote_table": [Column("local_id", ForeignKey("main.local_table.id"))],
            "remote_table_2": [],
        }.items():
            key, data = Column("id", Integer, primary_key=True), Column("data", String(50))
            Table(name, metadata, key, *columns, data, schema=config.test_schema)
