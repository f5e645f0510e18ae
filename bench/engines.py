"""Shared by the comparisons with other engines: one process per engine, the data, the record."""

import datetime
import json
import math
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLES = ["region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem"]


# ---- engines: each runs in a process of its own and reads a few commands -----------------------------------


class Entasis:
    def __init__(self, threads):
        import entasis

        self.version = entasis.__version__
        self.connection = entasis.connect(threads=threads)

    def load(self, table, path):
        self.connection.execute(f"CREATE TABLE {table} AS SELECT * FROM '{path}'")

    def query(self, sql):
        cursor = self.connection.execute(sql)
        return cursor.fetchall() if cursor.description else []

    def df(self, sql):
        return self.connection.execute(sql).df()

    def arrow(self, sql):
        return self.connection.execute(sql).arrow()

    def pid(self):
        return os.getpid()


class Uncompressed(Entasis):
    def __init__(self, threads):
        super().__init__(threads)
        self.connection.execute("SET compression = 'none'")


class DuckDB:
    def __init__(self, threads):
        import duckdb

        self.version = duckdb.__version__
        self.connection = duckdb.connect(config={"threads": threads})

    def load(self, table, path):
        self.connection.execute(f"CREATE TABLE {table} AS SELECT * FROM '{path}'")

    def query(self, sql):
        return self.connection.execute(sql).fetchall()

    def df(self, sql):
        return self.connection.execute(sql).df()

    def arrow(self, sql):
        return self.connection.sql(sql).to_arrow_table()

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


class Polars:
    """Its queries are expressions in Python, over lazy frames with the names of the tables."""

    def __init__(self, threads):
        os.environ["POLARS_MAX_THREADS"] = str(threads)
        import polars

        self.version = polars.__version__
        self.names = {"pl": polars}

    def load(self, table, path):
        self.names[table] = self.names["pl"].read_parquet(path).lazy()

    def query(self, sql):
        return eval(sql, self.names).collect().rows()

    def pid(self):
        return os.getpid()


ENGINES = {"entasis": Entasis, "uncompressed": Uncompressed, "duckdb": DuckDB, "hyper": Hyper, "polars": Polars}


def peak_bytes(pid):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def forget_peak(pid):
    """From here on `peak_bytes` counts anew, beginning with what the process has now."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def open_answers():
    """The stdout of an engine's process, for its answers. The engine's own output now goes to stderr."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return answers


def serve(name, threads):
    """The engine's process: one JSON command per line on stdin, one JSON answer per line on stdout.

    `cpu` is the seconds of all threads of the process, which is not that of an engine with a process of its own.
    """
    answers = open_answers()
    engine = ENGINES[name](threads)
    print(json.dumps({"version": engine.version}), file=answers, flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        start, cpu = time.perf_counter(), time.process_time()
        try:
            if command["do"] == "load":
                engine.load(command["table"], command["path"])
                answer = {"seconds": time.perf_counter() - start, "cpu": time.process_time() - cpu}
            elif command["do"] in ("query", "df", "arrow"):
                rows = getattr(engine, command["do"])(command["sql"])
                answer = {"seconds": time.perf_counter() - start, "cpu": time.process_time() - cpu, "rows": len(rows)}
            elif command["do"] == "value":
                answer = {"value": str(engine.query(command["sql"])[0][0])}
            elif command["do"] == "forget peak":
                forget_peak(engine.pid())
                answer = {}
            else:
                answer = {"bytes": peak_bytes(engine.pid())}
        except Exception as error:  # only this figure is lost, not the run
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)
    if hasattr(engine, "close"):
        engine.close()


class Worker:
    """An engine in a process of its own. `package` is the directory of another build of our Python package."""

    def __init__(self, name, threads, package=None):
        command = [sys.executable, __file__, name, str(threads)]
        self.name = name
        env = {**os.environ, "PYTHONPATH": str(package)} if package else None
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
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


# ---- data and records --------------------------------------------------------------------------------------


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


def tables_in(directory):
    """The Parquet files in a directory, by the names of their tables."""
    return {path.stem: path for path in sorted(directory.glob("*.parquet"))}


def load(workers, tables):
    """Loads `tables`, Parquet files by name, into every engine. Returns seconds and peak bytes by engine."""
    seconds, peaks = {}, {}
    for name, worker in workers.items():
        seconds[name] = 0.0
        for table, path in tables.items():
            answer = worker.ask(do="load", table=table, path=str(path))
            if "error" in answer:
                sys.exit(f"{name} cannot load {table}: {answer['error']}")
            seconds[name] += answer["seconds"]
        peaks[name] = worker.ask(do="memory")["bytes"]
        print(f"{name} {worker.version}: loaded in {seconds[name]:.1f} s", flush=True)
    return seconds, peaks


def alternate(workers, sql, rounds, do="query"):
    """Runs the engines in turns, once to warm up and then `rounds` times. Returns times, rows and errors.

    `sql` is one text for all or texts by engine; an engine without a text takes no part. `do` is how the
    result is taken: "query" for rows in Python, "df" or "arrow" for frames. That the engines give equally many
    rows is checked, except for statements that write, which report them in different ways.
    """
    times = {name: [] for name in workers}
    rows, errors = {}, {}
    sql = sql if isinstance(sql, dict) else dict.fromkeys(workers, sql)
    for _ in range(rounds + 1):
        for name, worker in workers.items():
            if name in errors or name not in sql:
                continue
            answer = worker.ask(do=do, sql=sql[name])
            if "error" in answer:
                errors[name] = answer["error"]
            else:
                times[name].append(answer["seconds"] * 1000)
                rows[name] = answer["rows"]
    writes = any(text.startswith(("CREATE", "COPY")) for text in sql.values())
    if not writes and len(set(rows.values())) > 1:
        errors["rows"] = f"row counts differ: {rows}"
    return times, rows, errors


def keep(benchmark, file, content):
    """Writes a record, with machine and commit. Returns its path."""
    record = ROOT / "bench" / "record"
    record.mkdir(exist_ok=True)
    day = datetime.date.today().isoformat()
    path = record / f"{file}-{day}.json"
    head = {"benchmark": benchmark, "date": day, "commit": commit(), "machine": machine()}
    path.write_text(json.dumps(head | content, indent=1) + "\n")
    print(f"\nkept as {path.relative_to(ROOT)}")
    return path


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
