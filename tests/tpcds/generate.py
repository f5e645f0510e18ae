"""TPC-DS from DuckDB's generator: the tables as Parquet, the 99 queries, and on demand DuckDB's answers.

    python generate.py DIRECTORY --scale 0.01 --answers

    DIRECTORY/tables/store_sales.parquet …  queries/q01.sql …  answers/q01.parquet …

Existing files are kept. It needs the packages of requirements.txt, in an environment of their own: the
comparisons with DuckDB use a newer version.
"""

import argparse
from pathlib import Path

import duckdb
import duckdb_extension_tpcds


def extension():
    found = Path(duckdb_extension_tpcds.__file__).parent.rglob("tpcds.duckdb_extension")
    return next(iter(found))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--scale", type=float, default=0.01)
    parser.add_argument("--answers", action="store_true")
    args = parser.parse_args()

    done = args.directory / ("with-answers" if args.answers else "complete")
    if done.exists():
        return
    for part in ["tables", "queries", "answers"]:
        (args.directory / part).mkdir(parents=True, exist_ok=True)
    connection = duckdb.connect()
    connection.execute(f"LOAD '{extension()}'")
    connection.execute(f"CALL dsdgen(sf = {args.scale})")
    for (table,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall():
        connection.execute(f"COPY {table} TO '{args.directory}/tables/{table}.parquet' (FORMAT parquet)")
    for number, query in connection.execute("SELECT query_nr, query FROM tpcds_queries()").fetchall():
        (args.directory / f"queries/q{number:02}.sql").write_text(query)
        if args.answers:
            query = query.strip().rstrip(";")
            connection.execute(f"COPY ({query}) TO '{args.directory}/answers/q{number:02}.parquet' (FORMAT parquet)")
    done.touch()


if __name__ == "__main__":
    main()
