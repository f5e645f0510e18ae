"""TPC-H: Entasis beside DuckDB and Hyper, on the same data, in one run.

    make bench-tpch SF=1

1. The data is generated once as Parquet (`entasis-bench tpch-data`), under bench/data/.
2. Each engine gets a process of its own and loads the Parquet files into its own tables in memory.
3. Query by query, the engines take turns for several rounds, so that a slow minute of the machine hits all of them.
   A time is from the call to the last row in Python; the figure is the median of the rounds.
4. Peak memory is the kernel's high-water mark of the engine's process (for Hyper: of its server), taken after the
   load and again at the end.

The table is printed and kept as JSON, with machine and commit, under bench/record/.
"""

import argparse
import os
import statistics

from engines import ROOT, Worker, alternate, generate, geometric_mean, keep, load


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--engines", default="entasis,duckdb,hyper")
    parser.add_argument("--queries", default="", help="only these, as 1,6,18")
    parser.add_argument("--no-record", action="store_true")
    args = parser.parse_args()

    data = generate(args.scale)
    names = args.engines.split(",")
    workers = {name: Worker(name, args.threads) for name in names}
    load_seconds, load_peak = load(workers, data)

    only = [int(q) for q in args.queries.split(",") if q]
    results = []
    width = 12
    print("\n" + "query".ljust(7) + "".join(f"{name + ' ms':>{width}}" for name in names)
          + "".join(f"{'/ ' + name:>{width}}" for name in names[1:]))
    for number in range(1, 23):
        if only and number not in only:
            continue
        sql = (ROOT / "tests/tpch/queries" / f"q{number:02}.sql").read_text().strip().rstrip(";")
        times, rows, errors = alternate(workers, sql, args.rounds)
        medians = {name: statistics.median(t[1:]) if t else None for name, t in times.items()}
        results.append({"query": number, "median_ms": medians, "all_ms": times, "rows": rows, "errors": errors})
        cells = [f"{medians[name]:{width}.1f}" if medians[name] else f"{'error':>{width}}" for name in names]
        mine = medians[names[0]]
        for name in names[1:]:
            ratio = mine / medians[name] if mine and medians[name] else None
            cells.append(f"{ratio:{width}.2f}" if ratio else " " * width)
        print(f"Q{number:<6}" + "".join(cells) + "".join(f"  ! {k}: {v[:80]}" for k, v in errors.items()), flush=True)

    summary = {}
    for name in names:
        good = [r["median_ms"][name] for r in results if r["median_ms"][name]]
        summary[name] = {
            "version": workers[name].version,
            "load_s": load_seconds[name],
            "total_ms": sum(good),
            "geometric_mean_ms": geometric_mean(good),
            "peak_bytes_after_load": load_peak[name],
            "peak_bytes": workers[name].ask(do="memory")["bytes"],
        }
        workers[name].end()
    first = summary[names[0]]

    def line(label, key, form):
        cells = "".join(f"{form(summary[name][key]):>{width}}" for name in names)
        ratios = "".join(f"{first[key] / summary[name][key]:{width}.2f}" for name in names[1:])
        print(label.ljust(7) + cells + ratios)

    print()
    line("total", "total_ms", lambda v: f"{v:.1f}")
    line("geo", "geometric_mean_ms", lambda v: f"{v:.1f}")
    line("load s", "load_s", lambda v: f"{v:.1f}")
    line("peak MB", "peak_bytes", lambda v: f"{v / 1e6:.0f}")

    if not args.no_record and not only:
        content = {"scale": args.scale, "threads": args.threads, "rounds": args.rounds, "summary": summary, "queries": results}
        keep("tpch", f"tpch-sf{args.scale:g}", content)


if __name__ == "__main__":
    main()
