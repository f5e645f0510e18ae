"""Tables that are generated in SQL, by DuckDB, and kept as Parquet files.

Row `x` of a table has values that depend on `x` alone, through DuckDB's hash, so the same version of DuckDB
always writes the same table. Each random number needs a `salt` of its own, below 64: two numbers of a row
with the same salt are equal.
"""

import duckdb


def fraction(salt, of="x"):
    """A pseudorandom number from 0 to 1, in steps of 2^-52."""
    return f"((hash({of} * 64 + {salt}) >> 12) / 4503599627370496.0)"


def number(count, salt, of="x"):
    """A pseudorandom integer from 0 to below `count`, all equally frequent."""
    return f"CAST(hash({of} * 64 + {salt}) % {count} AS BIGINT)"


def skewed(count, power, salt, of="x"):
    """A pseudorandom integer from 0 to below `count`; the higher `power`, the more frequent are low ones."""
    return f"LEAST({count - 1}, CAST(floor({count} * pow({fraction(salt, of)}, {power})) AS BIGINT))"


def write(tables, out):
    """Writes `tables`, queries by name, as Parquet files into the directory `out`, unless they are there."""
    out.mkdir(parents=True, exist_ok=True)
    connection = duckdb.connect()
    for name, sql in tables.items():
        path = out / f"{name}.parquet"
        if not path.exists():
            connection.execute(f"COPY ({sql}) TO '{path}.new' (FORMAT parquet)")
            path.with_suffix(".parquet.new").rename(path)
    return out
