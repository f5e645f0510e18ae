"""Ordinary statements over TPC-H's tables: Entasis compared with DuckDB, in one run.

    make bench-statements SF=1

Measurements are made as in tpch.py; the statements are in statements.sql. A ratio above 1 means that Entasis
is slower. The table is kept as JSON under bench/record/.
"""

import argparse
import os
import statistics
import tempfile
from pathlib import Path

from engines import ROOT, Worker, alternate, generate, geometric_mean, keep, load, tables_in


def statements(file):
    """The statements of a file in this directory: name, and text by engine ("" for all)."""
    found = {}
    for line in (ROOT / "bench" / file).read_text().splitlines():
        if line and not line.startswith("--"):
            name, sql = line.split(": ", 1)
            name, _, engine = name.partition("@")
            found.setdefault(name, {})[engine] = sql
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--only", default="", help="only statements whose name has this in it")
    parser.add_argument("--no-record", action="store_true")
    args = parser.parse_args()

    data = generate(args.scale)
    names = ["entasis", "duckdb"]
    workers = {name: Worker(name, args.threads) for name in names}
    load(workers, tables_in(data))
    results = []
    print("\n" + "statement".ljust(32) + "".join(f"{name + ' ms':>13}" for name in names) + f"{'ratio':>8}")
    with tempfile.TemporaryDirectory() as out:
        for title, texts in statements("statements.sql").items():
            if args.only not in title:
                continue
            sql = {name: texts.get(name, texts[""]).format(data=data, out=Path(out) / name) for name in names}
            times, _, errors = alternate(workers, sql, args.rounds)
            medians = {name: statistics.median(t[1:]) if t else None for name, t in times.items()}
            mine, other = (medians[name] for name in names)
            ratio = mine / other if mine and other else None
            results.append({"statement": title, "median_ms": medians, "all_ms": times, "ratio": ratio, "errors": errors})
            cells = "".join(f"{medians[name]:13.1f}" if medians[name] else f"{'error':>13}" for name in names)
            notes = "".join(f"  ! {k}: {v[:80]}" for k, v in errors.items())
            print(title.ljust(32) + cells + (f"{ratio:8.2f}" if ratio else " " * 8) + notes, flush=True)
    peaks = {name: worker.ask(do="memory")["bytes"] for name, worker in workers.items()}
    ratios = [r["ratio"] for r in results if r["ratio"]]
    print(f"\ngeometric mean of the ratios: {geometric_mean(ratios):.2f}; faster in {sum(r < 1 for r in ratios)} of {len(ratios)}")
    print("peak MB: " + ", ".join(f"{name} {peak / 1e6:.0f}" for name, peak in peaks.items()))
    if not args.no_record and not args.only:
        versions = {name: worker.version for name, worker in workers.items()}
        content = {"scale": args.scale, "threads": args.threads, "rounds": args.rounds, "versions": versions,
                   "peak_bytes": peaks, "statements": results}
        keep("statements", f"statements-sf{args.scale:g}", content)
    for worker in workers.values():
        worker.end()


if __name__ == "__main__":
    main()
