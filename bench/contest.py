"""A benchmark of numbered queries: runs the engines in turns, prints a table and keeps a record.

1. Each engine gets a process of its own and loads the Parquet files into its own tables in memory.
2. Query by query, the engines take turns for several rounds, so that a slow minute of the machine hits all of
   them. A time is from the call to the last row in Python; the figure is the median of the rounds. Totals
   include only the queries that all engines answer.
3. Peak memory is the kernel's high-water mark of the engine's process (for Hyper: of its server), taken after
   the load and again at the end.
"""

import argparse
import os
import statistics

from engines import Worker, alternate, geometric_mean, keep, load


def arguments(about, engines="entasis,duckdb,hyper", rows=None):
    """The command line of these benchmarks. The size is in rows, if `rows` gives their default, or a factor."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    if rows:
        parser.add_argument("--rows", type=int, default=rows)
    else:
        parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--engines", default=engines)
    parser.add_argument("--queries", default="", help="only these, as 1,6,18")
    parser.add_argument("--no-record", action="store_true")
    return parser.parse_args()


def contest(benchmark, args, tables, queries):
    """Runs `queries`, SQL by number, over `tables`, Parquet files by name."""
    names = args.engines.split(",")
    workers = {name: Worker(name, args.threads) for name in names}
    load_seconds, load_peak = load(workers, tables)

    only = [int(q) for q in args.queries.split(",") if q]
    results = []
    width = 12
    print("\n" + "query".ljust(7) + "".join(f"{name + ' ms':>{width}}" for name in names)
          + "".join(f"{'/ ' + name:>{width}}" for name in names[1:]))
    for number, sql in queries.items():
        if only and number not in only:
            continue
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
    # Totals include only the queries that all engines have answered.
    common = [r["median_ms"] for r in results if all(r["median_ms"].values())]
    for name in names:
        good = [medians[name] for medians in common]
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

    print(f"\n{len(common)} of {len(results)} queries are answered by all:")
    line("total", "total_ms", lambda v: f"{v:.1f}")
    line("geo", "geometric_mean_ms", lambda v: f"{v:.1f}")
    line("load s", "load_s", lambda v: f"{v:.1f}")
    line("peak MB", "peak_bytes", lambda v: f"{v / 1e6:.0f}")

    if not args.no_record and not only:
        size = {"rows": args.rows} if "rows" in args else {"scale": args.scale}
        head = size | {"threads": args.threads, "rounds": args.rounds}
        label = str(args.rows) if "rows" in args else f"sf{args.scale:g}"
        keep(benchmark, f"{benchmark}-{label}", head | {"summary": summary, "queries": results})

