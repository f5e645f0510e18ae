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
import datetime
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLES = ["region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem"]


# ---- engines: each runs in a process of its own and obeys a few commands ------------------------------------------


class Entasis:
    def __init__(self, threads):
        import entasis

        self.version = entasis.__version__
        self.connection = entasis.connect(threads=threads)

    def load(self, table, path):
        self.connection.execute(f"CREATE TABLE {table} AS SELECT * FROM '{path}'")

    def query(self, sql):
        return self.connection.execute(sql).fetchall()

    def pid(self):
        return os.getpid()


class DuckDB:
    def __init__(self, threads):
        import duckdb

        self.version = duckdb.__version__
        self.connection = duckdb.connect(config={"threads": threads})

    def load(self, table, path):
        self.connection.execute(f"CREATE TABLE {table} AS SELECT * FROM '{path}'")

    def query(self, sql):
        return self.connection.execute(sql).fetchall()

    def pid(self):
        return os.getpid()


class Hyper:
    def __init__(self, threads):
        import tableauhyperapi as hyper

        self.version = hyper.__version__
        parameters = {"log_config": ""}
        os.sched_setaffinity(0, set(list(os.sched_getaffinity(0))[:threads]))
        telemetry = hyper.Telemetry.DO_NOT_SEND_USAGE_DATA_TO_TABLEAU
        self.process = hyper.HyperProcess(telemetry, parameters=parameters)
        mode = hyper.CreateMode.CREATE_AND_REPLACE
        database = f"/tmp/entasis-bench-{os.getpid()}.hyper"
        self.connection = hyper.Connection(self.process.endpoint, database, mode)

    def load(self, table, path):
        self.connection.execute_command(f"CREATE TEMPORARY TABLE {table} AS SELECT * FROM external('{path}')")

    def query(self, sql):
        return self.connection.execute_list_query(sql)

    def close(self):
        self.connection.close()
        self.process.close()

    def pid(self):
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        return int(max(children, key=lambda child: peak_bytes(int(child))))


ENGINES = {"entasis": Entasis, "duckdb": DuckDB, "hyper": Hyper}


def peak_bytes(pid):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def serve(name, threads):
    """The engine's process: a JSON command a line on stdin, a JSON answer a line on stdout."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    engine = ENGINES[name](threads)
    print(json.dumps({"version": engine.version}), file=answers, flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        start = time.perf_counter()
        try:
            if command["do"] == "load":
                engine.load(command["table"], command["path"])
                answer = {"seconds": time.perf_counter() - start}
            elif command["do"] == "query":
                rows = engine.query(command["sql"])
                answer = {"seconds": time.perf_counter() - start, "rows": len(rows)}
            else:
                answer = {"bytes": peak_bytes(engine.pid())}
        except Exception as error:  # the figure is lost, not the run
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)
    if hasattr(engine, "close"):
        engine.close()


class Worker:
    def __init__(self, name, threads):
        command = [sys.executable, __file__, "--serve", name, "--threads", str(threads)]
        self.name = name
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.version = self.answer()["version"]

    def answer(self):
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": "the process ended"}

    def end(self):
        self.process.stdin.close()
        self.process.wait()

    def ask(self, **command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        return self.answer()


# ---- the run ------------------------------------------------------------------------------------------------------


def generate(scale):
    out = ROOT / "bench" / "data" / f"tpch-sf{scale:g}"
    if not (out / "lineitem.parquet").exists():
        target = os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target"))
        tool = Path(target) / "release" / "entasis-bench"
        subprocess.run([str(tool), "tpch-data", "--scale", str(scale), "--out", str(out)], check=True)
    return out


def machine():
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    memory = int(open("/proc/meminfo").readline().split()[1]) * 1024
    return {"cpu": cpu, "cores": os.cpu_count(), "memory_bytes": memory, "system": platform.platform()}


def commit():
    result = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    return result.stdout.strip()


def geometric_mean(values):
    return math.exp(sum(math.log(v) for v in values) / len(values))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--engines", default="entasis,duckdb,hyper")
    parser.add_argument("--queries", default="", help="only these, as 1,6,18")
    parser.add_argument("--no-record", action="store_true")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        return serve(args.serve, args.threads)

    data = generate(args.scale)
    names = args.engines.split(",")
    workers = {name: Worker(name, args.threads) for name in names}
    load, load_peak = {}, {}
    for name, worker in workers.items():
        load[name] = 0.0
        for table in TABLES:
            answer = worker.ask(do="load", table=table, path=str(data / f"{table}.parquet"))
            if "error" in answer:
                sys.exit(f"{name} cannot load {table}: {answer['error']}")
            load[name] += answer["seconds"]
        load_peak[name] = worker.ask(do="memory")["bytes"]
        print(f"{name} {worker.version}: loaded in {load[name]:.1f} s", flush=True)

    only = [int(q) for q in args.queries.split(",") if q]
    results = []
    width = 12
    print("\n" + "query".ljust(7) + "".join(f"{name + ' ms':>{width}}" for name in names)
          + "".join(f"{'/ ' + name:>{width}}" for name in names[1:]))
    for number in range(1, 23):
        if only and number not in only:
            continue
        sql = (ROOT / "tests/tpch/queries" / f"q{number:02}.sql").read_text().strip().rstrip(";")
        times = {name: [] for name in names}
        rows, errors = {}, {}
        for _ in range(args.rounds + 1):  # the first round warms up
            for name, worker in workers.items():
                if name in errors:
                    continue
                answer = worker.ask(do="query", sql=sql)
                if "error" in answer:
                    errors[name] = answer["error"]
                else:
                    times[name].append(answer["seconds"] * 1000)
                    rows[name] = answer["rows"]
        medians = {name: statistics.median(t[1:]) if t else None for name, t in times.items()}
        if len(set(rows.values())) > 1:
            errors["rows"] = f"row counts differ: {rows}"
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
            "load_s": load[name],
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
        record = ROOT / "bench" / "record"
        record.mkdir(exist_ok=True)
        day = datetime.date.today().isoformat()
        path = record / f"tpch-sf{args.scale:g}-{day}.json"
        path.write_text(json.dumps({
            "benchmark": "tpch", "scale": args.scale, "threads": args.threads, "rounds": args.rounds, "date": day,
            "commit": commit(), "machine": machine(), "summary": summary, "queries": results,
        }, indent=1) + "\n")
        print(f"\nkept as {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
