"""CSV and Parquet files, the same on a table, and results as frames: Entasis compared with DuckDB and
Polars.

    make bench-files ROWS=10000000 DATA=data/flights

The statements are in files.sql, over a generated table of ten columns: numbers, a date that ascends, a
timestamp, a decimal, and texts of few, of many and of all different values. `--data` is a directory with a
file flights.parquet (data/flights/README.md). Files are in the page cache, as each engine's first run of a
statement does not count. The default codec of a Parquet file differs (zstd in Entasis and Polars, Snappy in
DuckDB), so each is also asked for by name. Frames are pandas' and pyarrow's; Polars takes no part there.
"""

import tempfile
from pathlib import Path

import duckdb
from comparison import Comparison, command_line
from engines import ROOT, Worker, keep, load
from generated import fraction, number, write
from statements import statements


def wide(rows):
    """The table as a query. It ascends in `day`; no other column has an order."""
    return (
        f"SELECT x * 7919 % {rows} AS k, CAST({number(max(1, rows // 10), 1)} AS INTEGER) AS key,"
        f" CAST({number(1000, 2)} AS INTEGER) AS g,"
        f" DATE '2010-01-01' + CAST(x * 4000 // {rows} AS INTEGER) AS day,"
        f" TIMESTAMP '2020-01-01' + to_seconds({number(100_000_000, 3)}) AS ts,"
        f" CAST({number(10_000_000, 4)} / 100.0 AS DECIMAL(12, 2)) AS price, {fraction(5)} * 1000 AS x,"
        f" 'tag ' || {number(100, 6)} AS tag, 'name ' || {number(max(1, rows // 10), 7)} AS name,"
        f" 'note ' || x || ' of the table' AS note FROM range({rows}) r(x)"
    )


def generate(rows, out):
    """Writes the table as Parquet and as CSV, unless they are there. Returns the directory."""
    write({"wide": wide(rows)}, out)
    if not (out / "wide.csv").exists():
        duckdb.sql(f"COPY (FROM '{out}/wide.parquet') TO '{out}/wide.csv.new' (FORMAT csv)")
        (out / "wide.csv.new").rename(out / "wide.csv")
    return out


def main():
    command = command_line(__doc__)
    flights = ROOT / "data" / "flights"
    command.add_argument("--data", type=Path, default=flights, help="where flights.parquet is")
    command.add_argument("--only", default="", help="only statements whose name has this in it")
    args = command.parse_args()
    data = generate(args.rows, ROOT / "bench" / "data" / f"files-{args.rows}")
    workers = {name: Worker(name, args.threads) for name in args.engines.split(",")}
    seconds, _ = load(workers, {"wide": data / "wide.parquet"})
    comparison = Comparison(workers, args.rounds)
    comparison.heading(f"{args.rows:,} rows")
    with tempfile.TemporaryDirectory() as out:
        for title, texts in statements("files.sql").items():
            if args.only not in title:
                continue
            sql = {name: texts.get(name, texts[""]) for name in workers if name in texts or name != "polars"}
            places = {"data": data, "flights": args.data / "flights.parquet"}
            sql = {name: text.format(out=Path(out) / name, **places) for name, text in sql.items()}
            kind = title.split()[0]
            comparison.measure(title, sql, kind if kind in ("df", "arrow") else "query")
    comparison.conclude()
    if not args.no_record and not args.only:
        head = {"rows": args.rows, "threads": args.threads, "rounds": args.rounds, "load_s": seconds}
        measured = {"versions": comparison.versions(), "statements": comparison.results}
        keep("files", f"files-{args.rows}", head | measured)
    for worker in workers.values():
        worker.end()


if __name__ == "__main__":
    main()
