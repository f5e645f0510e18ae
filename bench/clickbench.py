"""The 43 queries of ClickBench: Entasis compared with DuckDB, on the same data, in one run.

    make bench-clickbench ROWS=10000000

The table is generated (clickbench_data.py says how it resembles the published one and how it does not); the
queries are in clickbench.sql. Measurements are made as in contest.py. HAVING keeps the published limits at
a hundred million rows, so with fewer rows fewer groups pass.
"""

import clickbench_data
from contest import arguments, contest
from engines import ROOT, tables_in


def queries():
    """The queries by number."""
    lines = (ROOT / "bench" / "clickbench.sql").read_text().splitlines()
    numbered = (line.split(": ", 1) for line in lines if not line.startswith("--"))
    return {int(number): sql for number, sql in numbered}


def main():
    args = arguments(__doc__, engines="entasis,duckdb", rows=10_000_000)
    data = clickbench_data.generate(args.rows, ROOT / "bench" / "data" / f"clickbench-{args.rows}")
    contest("clickbench", args, tables_in(data), queries())


if __name__ == "__main__":
    main()
