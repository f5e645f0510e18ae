"""All 99 queries of TPC-DS at a small scale have the same results as in DuckDB.

The data, the queries and the answers are generated before (`make tpcds-data`), in the directory given by
ENTASIS_TPCDS.
"""

import os
import sys
from pathlib import Path

import pyarrow.parquet
import pytest

import entasis

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "compare"))
from values import plain, same_rows  # noqa: E402

DATA = Path(os.environ.get("ENTASIS_TPCDS", Path(__file__).parent / "data"))
TABLES = sorted((DATA / "tables").glob("*.parquet"))

pytestmark = pytest.mark.skipif(not TABLES, reason="make tpcds-data makes the data")


@pytest.fixture(scope="module")
def connection():
    connection = entasis.connect()
    for path in TABLES:
        connection.execute(f"CREATE TABLE {path.stem} AS SELECT * FROM '{path}'")
    return connection


def rows(table):
    columns = [[plain(value) for value in column.to_pylist()] for column in table.columns]
    return list(zip(*columns))


@pytest.mark.parametrize("number", range(1, 100))
def test_query(connection, number):
    sql = (DATA / f"queries/q{number:02}.sql").read_text().strip().rstrip(";")
    expected = rows(pyarrow.parquet.read_table(DATA / f"answers/q{number:02}.parquet"))
    found = [tuple(plain(value) for value in row) for row in connection.execute(sql).fetchall()]
    assert same_rows(found, expected, ordered=False), f"{found[:10]}\n{expected[:10]}"
