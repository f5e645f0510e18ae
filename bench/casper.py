"""The experiments of *Optimal Column Layout for Hybrid Workloads* (PVLDB 12(13), 2019): section 7 and figure 9.

    make bench-casper               everything but the model
    make bench-casper-model         figure 9: the paper's cost model beside measured operations, and ours beside
                                    those of our storage (part `costs`)

Runs the program `entasis-casper`, which measures a bare column with the paper's mechanics beside our storage
(`bench/casper`), keeps its records under bench/record/ and draws them. The part `beside` runs the six workloads in
SQL, in DuckDB and SQLite and, if its extension is there, in Entasis: in memory, one thread, each statement a
transaction by itself, fewer operations.
"""

import argparse
import json
import random
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import plot
from engines import keep
from hap import COUNT, DELETE, ENGINES, INSERT, POINT, SUM, UPDATE_KEY

# The layouts that are compared, and runs of each in turns, warm: an hour for the six workloads, or half of one.
LAYOUTS = "delta,equi,equi_ghost,casper,casper_dense,casper_joint,finest_ghost,two tables"
TURNS = ["--layouts", LAYOUTS, "--seconds", "10", "--runs", "5", "--operations", "12000000"]
FEW_TURNS = ["--layouts", LAYOUTS, "--seconds", "5", "--runs", "3", "--operations", "6000000"]
# The options of each part, as the records are made.
PARTS = {
    "model": ["--rows", "10000000", "--on", "bare"],
    "model-1m": ["--rows", "1000000", "--on", "bare"],
    "model-wide": ["--rows", "1000000", "--payloads", "160", "--on", "bare"],
    "costs": ["--rows", "1000000", "--runs", "5"],
    "solver": [],
    "throughput": ["--rows", "1000000", *TURNS],
    "throughput-wide": ["--rows", "1000000", "--payloads", "160", *FEW_TURNS],
    "throughput-10m": ["--rows", "10000000", "--on", "engine", *FEW_TURNS],
    "throughput-threads": ["--rows", "4000000", "--threads", "2", *FEW_TURNS],
    "trade": ["--seconds", "0.3"],
    "ghosts": ["--seconds", "0.3"],
    "sla": [],
    "robust": ["--seconds", "0.3"],
    "drift": ["--operations", "50000", "--seconds", "10"],
    "width": ["--rows", "10000000"],
}
WORKLOADS = ["hybrid, point, skewed", "hybrid, range, skewed", "read-only, skewed", "read-only, uniform",
             "update-only, skewed", "update-only, uniform"]


def measure(program, part):
    """Runs an experiment, and returns its record."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "record.json"
        subprocess.run([program, part.split("-")[0], *PARTS[part], "--json", path], check=True)
        return json.loads(path.read_text())


def lines(results, x, y, name="layout"):
    """Points by name."""
    series = {}
    for result in results:
        series.setdefault(result[name], []).append((result[x], y(result)))
    return series


def query(number, figure):
    """The figure of a query in a result, if there is one."""
    return lambda result: next((q[figure] for q in result["queries"] if q["query"].startswith(f"Q{number}")), None)


def by_workload(results, draw):
    """A chart for each workload of the results."""
    names = dict.fromkeys(result["workload"] for result in results)
    return [draw(name, [result for result in results if result["workload"] == name]) for name in names]


def charts(part, results):
    kind = part.split("-")[0]
    if kind == "model":
        def one(experiment):
            sides = {"measured": "measured_ns", "fitted": "fitted_ns"}
            series = {name: [(p["x"], p[figure]) for p in experiment["points"]] for name, figure in sides.items()}
            return plot.chart(experiment["what"], "partitions or blocks", "ns", series, log="xy")
        return [one(experiment) for experiment in results["experiments"]]
    if kind == "costs":
        def one(operation):
            points = [p for p in results["points"] if p["operation"] == operation]
            series = {name: [(at, p[figure]) for at, p in enumerate(points, 1)]
                      for name, figure in {"measured": "measured_ns", "model": "model_ns"}.items()}
            return plot.chart(operation, "table", "ns", series)
        return [one(operation) for operation in dict.fromkeys(p["operation"] for p in results["points"])]
    if kind == "solver":
        return [plot.chart("solver", "rows", "ms", {"solve": [(r["rows"], r["solve_ms"]) for r in results]}, log="xy")]
    if kind == "throughput":
        def one(on):
            own = [r | {"at": WORKLOADS.index(r["workload"]) + 1} for r in results if r["on"] == on]
            return plot.chart(f"{on}: throughput, delta = 1", "workload 1 to 6", "×", lines(own, "at", lambda r: r["by_delta"]), log="y")
        return [one(on) for on in dict.fromkeys(r["on"] for r in results)]
    if kind == "trade":
        speed = lambda name, own: plot.chart(name, "partitions", "operations/s", lines(own, "partitions", lambda r: r["per_second"]), log="xy")
        return by_workload(results, speed)
    if kind == "width":
        points = [(column["bits"], column["ns"]) for column in results["columns"]]
        line = [(bits, results["flat_ns"] + results["bit_ns"] * bits) for bits in (0, 32)]
        return [plot.chart("a slice of one column", "bits a slot", "ns", {"measured": points, "line": line})]
    if kind == "drift":
        def by_day(title, unit, y, log=""):
            days = [layout | {"day": day["day"]} for day in results["days"] for layout in day["layouts"]]
            return plot.chart(title, "day", unit, lines(days, "day", y), log=log)
        return [by_day("throughput", "operations/s", lambda r: r["per_second"], "y"),
                by_day("inserts", "µs, mean", query(4, "mean_us"), "y"),
                by_day("slices laid anew by upkeep, night included", "slices", lambda r: r["laid_anew"]),
                by_day("bytes a loaded row", "bytes", lambda r: r["bytes_per_row"])]
    if kind == "ghosts":
        inserts = lambda name, own: plot.chart(f"inserts: {name}", "ghosts", "µs, mean", lines(own, "share", query(4, "mean_us")), log="xy")
        return by_workload(results, inserts)
    if kind == "sla":
        limited = [r for r in results if r["limit_us"]]
        sides = {"Q1 mean": query(1, "mean_us"), "Q4 mean": query(4, "mean_us"), "Q4 p99.9": query(4, "p999_us"), "Q6 mean": query(6, "mean_us")}
        series = {name: [(r["limit_us"], figure(r)) for r in limited] for name, figure in sides.items()}
        return [plot.chart("limits on inserts", "limit, µs", "µs", series, log="xy")]
    def one(mass):
        own = [r for r in results if r["mass"] == mass]
        series = {side: [(r["rotation"], r[f"{side}_us"] / r["own_us"]) for r in own] for side in ("paper", "robust")}
        return plot.chart(f"{mass:.0%} of the queries become inserts", "rotation", "time, own = 1", series)
    return [one(mass) for mass in dict.fromkeys(r["mass"] for r in results)]


def statements(workload, rows, seed):
    """Endless statements of a workload: query, SQL, parameters. Loaded keys are even, new ones odd."""
    dice = random.Random(seed)
    hybrid, read = workload.startswith("hybrid"), workload.startswith("read")
    skewed = "skewed" in workload
    ours = []
    while True:
        place = dice.random()
        place = 1 - (1 - place) ** 7.213 if skewed else place
        key = min(int(place * rows), rows - 1)
        if dice.random() < 0.01 and ours:
            new = 2 * dice.randrange(rows) + 1
            yield "Q6", UPDATE_KEY, (new, ours.pop())
            ours.append(new)
        elif hybrid and dice.random() < 0.5:
            yield ("Q1", POINT, (2 * key,)) if "point" in workload else ("Q3", SUM, (2 * key, 2 * key + rows // 50))
        elif read:
            yield ("Q1", POINT, (2 * key,)) if dice.random() < 0.5 else ("Q2", COUNT, (2 * key, 2 * key + rows // 50))
        elif not hybrid and len(ours) > 1 and dice.random() < 0.5:
            yield "Q5", DELETE, (ours.pop(dice.randrange(len(ours))),)
        else:
            # Skewed keys collide: half a table further up there is room.
            new = 2 * (key if not skewed else rows + len(ours) * 64 + dice.randrange(64)) + 1
            ours.append(new)
            yield "Q4", INSERT, (new, *range(16))


def run_for(seconds, engine, stream, times):
    """Runs statements of a stream for so many seconds; returns how many a second, and how many failed."""
    count, failed, begin = 0, 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        kind, sql, parameters = next(stream)
        start = time.perf_counter_ns()
        try:
            engine.run(sql, parameters)
        except Exception:  # A new key that is there already.
            failed += 1
        times.setdefault(kind, []).append((time.perf_counter_ns() - start) / 1000)
        count += 1
    return count / (time.perf_counter() - begin), failed


def beside(rows, rounds, seconds):
    """Statements a second, and median microseconds by query, by engine and workload. Within a workload the engines
    take turns; the first round warms them up."""
    results = []
    for workload in WORKLOADS:
        runs = {}
        for name in ("duckdb", "sqlite", "entasis"):
            try:
                engine = ENGINES[name]()
            except ImportError:
                continue
            engine.load(rows, "sorted")
            runs[name] = engine, statements(workload, rows, 1), [], []
        for turn in range(rounds + 1):
            for engine, stream, rates, own in runs.values():
                times = {}
                rate, failed = run_for(seconds, engine, stream, times)
                if turn > 0:
                    rates.append(rate)
                    own.append((times, failed))
        for name, (engine, _, rates, own) in runs.items():
            of_kind = {}
            for times, _ in own:
                for kind, micros in times.items():
                    of_kind.setdefault(kind, []).extend(micros)
            medians = {kind: round(statistics.median(micros), 1) for kind, micros in sorted(of_kind.items())}
            rate, failed = statistics.median(rates), sum(failed for _, failed in own)
            print(f"{name:10}{workload:26}{rate:10.0f}/s  {medians}  {failed} failed", flush=True)
            results.append({"engine": name, "version": engine.version, "workload": workload, "per_second": rate,
                            "rounds": rates, "median_us": medians, "failed": failed})
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bench", default="target/release/entasis-casper", help="the program")
    parser.add_argument("--only", default=",".join(part for part in [*PARTS, "beside"] if not part.startswith(("model", "costs"))))
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the part beside")
    parser.add_argument("--rounds", type=int, default=5, help="of the part beside")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each engine's turn there")
    arguments = parser.parse_args()
    for part in arguments.only.split(","):
        if part == "beside":
            content = {name: getattr(arguments, name) for name in ("rows", "rounds", "seconds")}
            keep("casper", "casper-beside", content | {"results": beside(**content)})
            continue
        record = measure(arguments.bench, part)
        path = keep("casper", f"casper-{part}", record)
        title = f"{part}: {record['rows']:,} rows, {record['payloads']} columns, {record['threads']} thread(s)"
        plot.figure(path.with_suffix(".svg"), title, charts(part, record["results"]), 2)


if __name__ == "__main__":
    main()
