"""The join of `make bench-spill` in DuckDB: two sides of 32-byte rows, more than memory_limit. See
crates/engine/examples/spill.rs; rows are computed here too, with keys from another function.

    python bench/spill.py [MILLIONS OF ROWS [MEGABYTES OF MEMORY]]
"""

import resource
import sys
import tempfile
import time

import duckdb


def main() -> None:
    millions = int(sys.argv[1]) if len(sys.argv) > 1 else 125
    megabytes = int(sys.argv[2]) if len(sys.argv) > 2 else 512
    rows = millions * 1_000_000
    key = "(hash(i * {step}) >> 1)::BIGINT"
    side = f"SELECT {key} AS k, i AS a, i % 1000 AS b, i / 7.0::DOUBLE AS c FROM range({{rows}}) r(i)"
    probe, build = (side.format(step=step, rows=rows) for step in (1, 2))
    with tempfile.TemporaryDirectory() as directory:
        connection = duckdb.connect()
        connection.execute(f"SET memory_limit = '{megabytes}MB'")
        connection.execute(f"SET temp_directory = '{directory}'")
        connection.execute("SET threads = 2")
        start = time.perf_counter()
        answer = connection.execute(
            "SELECT count(*), sum(p.a), sum(b.a), sum(p.b), sum(b.b), sum(p.c), sum(b.c) "
            f"FROM ({probe}) p JOIN ({build}) b ON p.k = b.k"
        ).fetchone()
        seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    print(f"DuckDB {duckdb.__version__}: {seconds:.1f} s, {peak:.0f} MB resident at most, {answer[0]} rows")


if __name__ == "__main__":
    main()
