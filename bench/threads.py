"""Concurrent writers: keyed statements from one thread and from several, on one database in memory.

    make bench-threads                                              10 M rows a table; 1, 2 and 8 threads
    make bench-threads ROWS=1000000
    make bench-threads BASELINE=bench/record/threads-10000000-2026-11-25.json

Each thread has a connection of its own; statements have parameters. The threads are Rust's, so that no
interpreter lock interferes: `entasis-bench threads` measures, this program combines rounds, compares them and
keeps the record.

| workload | an operation |
|---|---|
| one table | an update of a column of a row, named by its key |
| two tables | the same, alternating between two tables |
| transactions of ten rows | BEGIN, ten such updates of rows of its own, COMMIT; no conflict is allowed |
| one table beside scans | an update as above, while another thread continuously sums two columns of the table |
| indexed table | an update of a column that has an index |

Numbers of threads take turns within a round. The median of the rounds is printed and kept, with every round;
latencies are those of single operations in any thread. With `--baseline` the ratio to an earlier record is
printed, of throughput, so more than 1 means faster now. To compare two commits, measure both
on the same machine, one after the other; this program and `bench/src` use nothing but the public API, so they
can be copied to an older commit.
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

from engines import keep

FIGURES = ["per_second", "median_us", "p99_us", "conflicts"]


def measurements(args):
    """The output of the program, one measurement per line."""
    command = [args.bench, "threads", "--rows", str(args.rows), "--threads", args.threads]
    command += ["--rounds", str(args.rounds), "--seconds", str(args.seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            measurement = json.loads(line)
            print(".", end="", file=sys.stderr, flush=True)
            yield measurement
    print(file=sys.stderr)
    if process.returncode:
        sys.exit(f"{args.bench} failed with {process.returncode}")


def medians(rounds):
    """The median of each figure, by workload and number of threads."""
    return {
        workload: {
            threads: {figure: statistics.median(r[figure] for r in taken) for figure in FIGURES}
            for threads, taken in by_threads.items()
        }
        for workload, by_threads in rounds.items()
    }


def show(figures, baseline):
    """A table of the medians: throughput also as a multiple of the smallest number of threads, and of the baseline."""
    heads = ["threads", "per second", "median µs", "p99 µs", "conflicts", "× fewest"] + ["× baseline"] * bool(baseline)
    print("operation".ljust(26) + "".join(f"{head:>13}" for head in heads))
    for workload, by_threads in figures.items():
        first = by_threads[min(by_threads, key=int)]["per_second"]
        for threads, of in by_threads.items():
            cells = [f"{int(threads)}", f"{of['per_second']:,.0f}", f"{of['median_us']:.2f}", f"{of['p99_us']:.2f}"]
            cells += [f"{of['conflicts']:,.0f}", f"{of['per_second'] / first:.2f}"]
            if baseline:
                then = baseline.get(workload, {}).get(threads)
                cells.append(f"{of['per_second'] / then['per_second']:.3f}" if then else "-")
            print(workload.ljust(26) + "".join(f"{cell:>13}" for cell in cells))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000, help="of each table")
    parser.add_argument("--threads", default="1,2,8")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement")
    parser.add_argument("--bench", default="target/release/entasis-bench", help="the program that measures")
    parser.add_argument("--baseline", type=Path, help="an earlier record, of as many rows")
    parser.add_argument("--no-record", action="store_true")
    args = parser.parse_args()
    baseline = json.loads(args.baseline.read_text()) if args.baseline else None
    if baseline and baseline["rows"] != args.rows:
        sys.exit(f"{args.baseline} is of {baseline['rows']} rows, not of {args.rows}: try --rows {baseline['rows']}")

    rounds = {}
    for measurement in measurements(args):
        by_threads = rounds.setdefault(measurement.pop("workload"), {})
        by_threads.setdefault(str(measurement.pop("threads")), []).append(measurement)
    # Threads took turns, so measurements are in different orders.
    rounds = {workload: dict(sorted(found.items(), key=lambda item: int(item[0]))) for workload, found in rounds.items()}
    figures = medians(rounds)
    show(figures, baseline and baseline["median"])
    content = {"rows": args.rows, "seconds": args.seconds, "median": figures, "rounds": rounds}
    if baseline:
        content["baseline"] = {"file": args.baseline.name, "commit": baseline["commit"], "median": baseline["median"]}
    if not args.no_record:
        keep("threads", f"threads-{args.rows}", content)


if __name__ == "__main__":
    main()
