"""How SQLAlchemy's suite makes what its tests need in our databases, and which of them are skipped."""

from __future__ import annotations

import fnmatch
from typing import Any

import pytest
from exclusions import TESTS
from sqlalchemy.testing import provision

from entasis.sqlalchemy import insert


@provision.post_configure_engine.for_db("entasis")
def _schemas(url: Any, engine: Any, follower_ident: Any) -> None:
    with engine.begin() as connection:
        for schema in ("test_schema", "test_schema_2"):
            connection.exec_driver_sql(f"CREATE SCHEMA IF NOT EXISTS {schema}")


@provision.temp_table_keyword_args.for_db("entasis")
def _temporary(cfg: Any, eng: Any) -> dict[str, Any]:
    return {"prefixes": ["TEMPORARY"]}


@provision.set_default_schema_on_connection.for_db("entasis")
def _default_schema(cfg: Any, dbapi_connection: Any, schema_name: str) -> None:
    dbapi_connection.execute(f"SET schema = '{schema_name}'")


@provision.upsert.for_db("entasis")
def _upsert(
    cfg: Any,
    table: Any,
    returning: Any,
    *,
    set_lambda: Any = None,
    sort_by_parameter_order: bool = False,
    index_elements: Any = None,
) -> Any:
    statement = insert(table)
    if set_lambda is None:
        statement = statement.on_conflict_do_nothing()
    else:
        elements = index_elements or table.primary_key
        statement = statement.on_conflict_do_update(
            index_elements=elements, set_=set_lambda(statement.excluded)
        )
    return statement.returning(*returning, sort_by_parameter_order=sort_by_parameter_order)


# After SQLAlchemy's plugin, which makes the tests of each database.
@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips single tests that need what we lack."""
    unused = set(TESTS)
    for item in items:
        parent = item.getparent(pytest.Class)
        # The suite makes a class for each database: `HasTableTest_entasis+entasis_…`.
        name = f"{parent.name.split('_entasis')[0] if parent else ''}::{item.name}"
        for pattern in TESTS:
            # A bracket is one here, as it is in the names of tests.
            if fnmatch.fnmatchcase(name, pattern.replace("[", "[[]")):
                unused.discard(pattern)
                item.add_marker(pytest.mark.skip(reason=TESTS[pattern]))
    if unused and len(items) > 1000:
        raise pytest.UsageError(f"exclusions.TESTS names tests that do not exist: {sorted(unused)}")
