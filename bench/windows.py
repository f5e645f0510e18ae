"""Window functions compared with DuckDB and Polars: time and memory.

    make bench-windows ROWS=10000000

A table of a partition `p` (one, a thousand or a million), an order `o` (a random number), and a value `v`;
rows in no order. The result of each call is summed, so that no engine returns its rows. In Polars a window is
written as its users do: the rows are sorted by `o`, and expressions run `over` the partitions. Engines take
turns; a figure is the median of the rounds. Peak memory is the kernel's high-water mark of a process that
only loads the table and runs the one call.

The table is printed and kept as JSON, with machine and commit, under bench/record/.
"""

import statistics

import numpy
import pyarrow
import pyarrow.parquet
from comparison import command_line
from engines import ROOT, Worker, alternate, keep

PARTITIONS = [1, 1_000, 1_000_000]


def call(name, window, polars):
    return name, f"SELECT count(w), sum(w) FROM (SELECT {window} AS w FROM t)", polars


def over(polars):
    return f't.sort("o").select(w={polars}.over("p")).select(n=pl.col("w").count(), s=pl.col("w").sum())'


CALLS = [
    call("running sum", "sum(v) OVER (PARTITION BY p ORDER BY o)", over('pl.col("v").cum_sum()')),
    call(
        "average of 10",
        "avg(v) OVER (PARTITION BY p ORDER BY o ROWS 9 PRECEDING)",
        over('pl.col("v").rolling_mean(10, min_samples=1)'),
    ),
    call(
        "average of 100,000",
        "avg(v) OVER (PARTITION BY p ORDER BY o ROWS 99999 PRECEDING)",
        over('pl.col("v").rolling_mean(100_000, min_samples=1)'),
    ),
    call("row_number", "row_number() OVER (PARTITION BY p ORDER BY o)", over("pl.int_range(1, pl.len() + 1)")),
    call("rank", "rank() OVER (PARTITION BY p ORDER BY o)", over('pl.col("o").rank("min")')),
    call("lag", "lag(v) OVER (PARTITION BY p ORDER BY o)", over('pl.col("v").shift(1)')),
    call(
        "median of 100",
        "median(v) OVER (PARTITION BY p ORDER BY o ROWS 99 PRECEDING)",
        over('pl.col("v").rolling_median(100, min_samples=1)'),
    ),
    (
        "top 3",
        "SELECT count(*), sum(o) FROM (SELECT o, row_number() OVER (PARTITION BY p ORDER BY o) AS n FROM t) WHERE n <= 3",
        't.group_by("p").agg(pl.col("o").bottom_k(3)).explode("o").select(n=pl.len(), s=pl.col("o").sum())',
    ),
]


def data(rows, partitions):
    path = ROOT / "bench" / "data" / f"windows-{rows}-{partitions}.parquet"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        random = numpy.random.default_rng(35)
        columns = {
            "p": random.integers(0, partitions, rows),
            "o": random.integers(0, 1 << 32, rows),
            "v": random.integers(0, 1000, rows),
        }
        pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path


def fresh(name, threads, path):
    worker = Worker(name, threads)
    answer = worker.ask(do="load", table="t", path=str(path))
    if "error" in answer:
        raise SystemExit(f"{name} cannot load {path}: {answer['error']}")
    return worker


def main():
    args = command_line(__doc__).parse_args()
    names = args.engines.split(",")

    results, versions = [], {}
    width = 13
    for partitions in PARTITIONS:
        path = data(args.rows, partitions)
        title = f"{partitions:,} partition" + "s" * (partitions > 1)
        print(f"\n{title:20}" + "".join(f"{name + ' ms':>{width}}{'MB':>7}" for name in names) + f"{'/ best':>8}{'memory':>8}")
        for call, sql, polars in CALLS:
            workers = {name: fresh(name, args.threads, path) for name in names}
            texts = {name: polars if name == "polars" else sql for name in names}
            times, _, errors = alternate(workers, texts, args.rounds)
            peaks = {name: worker.ask(do="memory")["bytes"] for name, worker in workers.items()}
            versions |= {name: worker.version for name, worker in workers.items()}
            for worker in workers.values():
                worker.end()
            medians = {name: statistics.median(t[1:]) if t[1:] else None for name, t in times.items()}
            results.append(
                {"partitions": partitions, "call": call, "median_ms": medians, "all_ms": times, "peak_bytes": peaks, "errors": errors}
            )
            cells = "".join(
                f"{medians[name]:{width}.0f}{peaks[name] / 1e6:7.0f}" if medians[name] else f"{'error':>{width}}{'':7}" for name in names
            )
            best = min((medians[name] for name in names[1:] if medians[name]), default=None)
            least = min((peaks[name] for name in names[1:] if medians[name]), default=None)
            ratios = f"{medians[names[0]] / best:8.2f}{peaks[names[0]] / least:8.2f}" if best and medians[names[0]] else ""
            print(f"{call:20}" + cells + ratios + "".join(f"  ! {k}: {v[:80]}" for k, v in errors.items()), flush=True)
    if not args.no_record:
        content = {"rows": args.rows, "threads": args.threads, "rounds": args.rounds, "versions": versions, "calls": results}
        keep("windows", f"windows-{args.rows}", content)


if __name__ == "__main__":
    main()
