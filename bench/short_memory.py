"""Aggregations and sorts that are larger than memory_limit, beside DuckDB: seconds and the most memory resident.

    make bench-short-memory SHORT="100 512"        (millions of rows, megabytes of memory_limit)

Rows are made by `range()`, so tables take no memory. Each run is a process of its own; the engines take
turns, and times are medians. With `--ample` each statement also runs without a limit, so that one sees what
the files cost.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time

# Numbers in no order, each below `m` about as often as any other.
NUMBERS = "SELECT (i * 2654435761) % {m} AS k, i FROM range({rows}) t(i)"
STATEMENTS = {
    "groups, 2 rows each": (
        2, "SELECT count(*), sum(n), max(s) FROM (SELECT k, count(*) AS n, sum(i) AS s FROM ({numbers}) q GROUP BY k) g"
    ),
    "groups, 50 rows each": (
        50, "SELECT count(*), sum(n), max(s) FROM (SELECT k, count(*) AS n, sum(i) AS s FROM ({numbers}) q GROUP BY k) g"
    ),
    "distinct rows": (
        2, "SELECT count(*), sum(k) FROM (SELECT DISTINCT k, 'customer no ' || (k % 1000) AS c FROM ({numbers}) q) d"
    ),
    "distinct values of few groups": (
        2, "SELECT sum(n) FROM (SELECT k % 1000 AS g, count(DISTINCT k) AS n FROM ({numbers}) q GROUP BY k % 1000) d"
    ),
    "sort by a number": (1, "SELECT k, i FROM ({numbers}) q ORDER BY k, i LIMIT 1 OFFSET {last}"),
    "sort by a text": (
        1, "SELECT c, i FROM (SELECT 'customer no ' || k AS c, i FROM ({numbers}) q) r ORDER BY c, i LIMIT 1 OFFSET {last}"
    ),
}


def run(engine, statement, rows, megabytes):
    """One statement in this process: seconds, megabytes, answer."""
    ratio, sql = STATEMENTS[statement]
    sql = sql.format(numbers=NUMBERS.format(m=rows // ratio + 7, rows=rows), last=rows - 2)
    with tempfile.TemporaryDirectory() as directory:
        if engine == "entasis":
            import entasis

            connection = entasis.connect(threads=2)
        else:
            import duckdb

            connection = duckdb.connect(config={"threads": 2})
        if megabytes:
            connection.execute(f"SET memory_limit = '{megabytes}MB'")
        connection.execute(f"SET temp_directory = '{directory}'")
        start = time.perf_counter()
        try:
            answer = [str(value) for value in connection.execute(sql).fetchall()[0]]
        except Exception as error:
            answer = [f"{type(error).__name__}: {error}".split("\n")[0][:120]]
        seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    print(json.dumps({"seconds": seconds, "megabytes": peak, "answer": answer}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("millions", nargs="?", type=int, default=100)
    parser.add_argument("megabytes", nargs="?", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", help="statements whose name has this")
    parser.add_argument("--ample", action="store_true", help="also without a limit")
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    rows = options.millions * 1_000_000
    if options.run:
        engine, statement, megabytes = options.run
        return run(engine, statement, rows, int(megabytes))
    print(f"{options.millions} M rows, memory_limit {options.megabytes} MB; seconds (megabytes resident at most)")
    for statement in (name for name in STATEMENTS if (options.only or "") in name):
        sides = [(engine, options.megabytes) for engine in ("entasis", "duckdb")]
        sides += [(engine, 0) for engine in ("entasis", "duckdb") if options.ample]
        results = {side: [] for side in sides}
        for _ in range(options.rounds):
            for engine, megabytes in sides:
                command = [sys.executable, __file__, str(options.millions), "--run", engine, statement, str(megabytes)]
                output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
                results[engine, megabytes].append(json.loads(output))
        answers = {json.dumps(r["answer"]) for of in results.values() for r in of}
        line = f"{statement:32}"
        for (engine, megabytes), of in results.items():
            seconds = statistics.median(r["seconds"] for r in of)
            peak = max(r["megabytes"] for r in of)
            line += f"  {engine}{'' if megabytes else ' without limit'} {seconds:6.2f} ({peak:5.0f})"
        print(line + ("" if len(answers) == 1 else f"\n    answers: {'; '.join(sorted(answers))}"), flush=True)


if __name__ == "__main__":
    main()
