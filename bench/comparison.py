"""Named statements in several engines, in turns: a line each, with the ratio to the best rival.

1. For each statement the engines take turns, once to warm up and then for several rounds; a figure is the
   median. Times are from the call to the result in Python.
2. The ratio is ours (the first engine's) to that of the fastest other engine: above 1 we are slower.
3. Peak memory is the kernel's high-water mark of the engine's process while it runs this statement. It
   includes the tables, and the memory that the engine keeps from statements before.
"""

import argparse
import os
import statistics

from engines import alternate, geometric_mean

WIDTH = 13
TITLE = 34


def command_line(about):
    """The command line of these benchmarks, to which each may add."""
    shared = argparse.ArgumentParser(description=about.splitlines()[0])
    shared.add_argument("--rows", type=int, default=10_000_000)
    shared.add_argument("--rounds", type=int, default=3)
    shared.add_argument("--threads", type=int, default=os.cpu_count())
    shared.add_argument("--engines", default="entasis,duckdb,polars")
    shared.add_argument("--no-record", action="store_true")
    return shared


class Comparison:
    """Measures and prints statements; `results` is the record of those measured so far."""

    def __init__(self, workers, rounds):
        self.workers, self.rounds, self.results = workers, rounds, []
        self.names = list(workers)

    def heading(self, title):
        engines = "".join(f"{name + ' ms':>{WIDTH}}{'MB':>7}" for name in self.names)
        print(f"\n{title:{TITLE}}{engines}{'/ best':>8}{'memory':>8}", flush=True)

    def measure(self, title, sql, do="query", check=None):
        """Runs a statement in turns.

        `sql` and `do` are those of `alternate`. `check` returns what is wrong with the answers, or None.
        """
        for worker in self.workers.values():
            worker.ask(do="forget peak")
        times, rows, errors = alternate(self.workers, sql, self.rounds, do)
        took_part = [name for name in self.names if times[name]]
        peaks = {name: self.workers[name].ask(do="memory")["bytes"] for name in took_part}
        medians = {name: statistics.median(times[name][1:]) for name in took_part if name not in errors}
        if check and (wrong := check()):
            errors["check"] = wrong
        ratio, memory = to_best(medians, self.names[0]), to_best(peaks, self.names[0])
        self.results.append(
            {"title": title, "median_ms": medians, "all_ms": times, "ratio": ratio, "rows": rows}
            | {"peak_bytes": peaks, "errors": errors}
        )
        cells = "".join(self.cell(name, medians, peaks, errors) for name in self.names)
        ratios = "".join(f"{value:8.2f}" if value else " " * 8 for value in (ratio, memory))
        notes = "".join(f"  ! {name}: {error[:70]}" for name, error in errors.items())
        print(f"{title:{TITLE}}{cells}{ratios}{notes}", flush=True)

    def cell(self, name, medians, peaks, errors):
        if name in medians:
            return f"{medians[name]:{WIDTH}.1f}{peaks[name] / 1e6:7.0f}"
        return f"{'error' if name in errors else '—':>{WIDTH}}{'':7}"

    def conclude(self):
        """Prints a summary of the ratios."""
        ratios = [result["ratio"] for result in self.results if result["ratio"]]
        slower = [f"{r['title']} {r['ratio']:.2f}" for r in self.results if r["ratio"] and r["ratio"] > 1.2]
        faster = sum(ratio < 1 for ratio in ratios)
        mean = geometric_mean(ratios)
        print(f"\ngeometric mean of the ratios: {mean:.2f}; faster in {faster} of {len(ratios)}")
        print("above 1.2: " + (", ".join(slower) or "none"))

    def versions(self):
        return {name: worker.version for name, worker in self.workers.items()}


def to_best(values, ours):
    """Our value as a multiple of the least of the others; None if either is missing."""
    others = [value for name, value in values.items() if name != ours]
    return values[ours] / min(others) if ours in values and others else None
