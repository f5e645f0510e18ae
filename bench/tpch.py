"""TPC-H: Entasis compared with DuckDB and Hyper, on the same data, in one run.

    make bench-tpch SF=1

The data is generated once as Parquet (`entasis-bench tpch-data`), under bench/data/. The table is printed and
kept as JSON, with machine and commit, under bench/record/.
"""

from contest import arguments, contest
from engines import ROOT, generate, tables_in


def main():
    args = arguments(__doc__)
    data = generate(args.scale)
    queries = {
        number: (ROOT / "tests/tpch/queries" / f"q{number:02}.sql").read_text().strip().rstrip(";") for number in range(1, 23)
    }
    contest("tpch", args, tables_in(data), queries)


if __name__ == "__main__":
    main()
