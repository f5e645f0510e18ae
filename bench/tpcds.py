"""TPC-DS: Entasis compared with DuckDB and Hyper, on the same data, in one run.

    make bench-tpcds SF=1

The data and the queries are generated once (`tests/tpcds/generate.py`), under bench/data/. The table is
printed and kept as JSON, with machine and commit, under bench/record/. Queries that use DuckDB's dialect are
errors in Hyper.
"""

from contest import arguments, contest
from engines import ROOT, tables_in


def main():
    args = arguments(__doc__)
    data = ROOT / "bench" / "data" / f"tpcds-sf{args.scale:g}"
    queries = {int(path.stem[1:]): path.read_text().strip().rstrip(";") for path in sorted((data / "queries").glob("q*.sql"))}
    contest("tpcds", args, tables_in(data / "tables"), queries)


if __name__ == "__main__":
    main()
