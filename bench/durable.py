"""Databases in files and their rivals: commits, batches, loads, opening, checkpoints and replay.

    make bench-durable                                    all parts
    make bench-durable ONLY=commits,latency               some
    make bench-durable ONLY=open OPEN_GB=3                a file of 3 GB

| part | measurement | goal |
|---|---|---|
| commits | INSERT and UPDATE of single rows by key, each committed, from 1, 8 and 32 threads | SQLite's rate from 1, five times it from 32 |
| batches | rows in transactions of 100, with a unique index: first and last tenth, size of the file | 90 % at the end |
| tpch | TPC-H from Parquet to a file, with checkpoint and closing: time, size, memory | half of DuckDB's time, 0.8 of its size |
| open | a fresh process opens a file and runs a query | 50 ms until it is open |
| latency | updates by key with and without checkpoints, `synchronous` full and off | within twice |
| replay | the process is killed when the log has 500 MB: the time of the next opening | 5 s |
| hap | single rows of the HAP table in a file, `synchronous` off, compared with memory | 1.3 times |

Unless stated otherwise, all commits are synced (SQLite: WAL, `synchronous` FULL). Each engine runs in a
process of its own with a database of its own under `--dir`, which is removed afterwards; engines take turns,
and a figure is the median of the rounds. The measured time is what a Python program waits for. To show
Python's share, single commits are also measured in memory, where nothing is written; the limit of the disk is
measured by a file to which 256 bytes are repeatedly appended and synced.

All parts together take about half an hour. The tables are printed and kept as JSON, with machine and commit,
under bench/record/.
"""

import argparse
import os
import shutil
import statistics
import time
from pathlib import Path

import hap
from durable_engines import AUTOCHECKPOINT, Failed, Worker
from engines import ROOT, generate, keep, tables_in

PARTS = ["commits", "batches", "tpch", "open", "latency", "replay", "hap"]
THREADS = [1, 8, 32]
#: 500 MB in 5 s.
REPLAY = 100
#: TPC-H's sixth query: a scan of four columns.
SIXTH = """SELECT sum(l_extendedprice * l_discount) FROM lineitem WHERE l_shipdate >= DATE '1994-01-01'
    AND l_shipdate < DATE '1995-01-01' AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24"""
WIDTH = 13


# ---- printed tables ---------------------------------------------------------------------------------------


def heading(title, columns, left=26):
    print(f"\n{title}\n{'':{left}}" + "".join(f"{column:>{WIDTH}}" for column in columns), flush=True)


def line(title, cells, goal=None, left=26):
    """A line of figures, with a dash for missing ones. `goal`: its text, and whether it was met."""
    shown = "".join(f"{'—' if cell is None else cell:>{WIDTH}}" for cell in cells)
    tail = f"   {goal[0]} {'✓' if goal[1] else '✗'}" if goal and goal[1] is not None else ""
    print(f"{title:{left}}{shown}{tail}", flush=True)


def figure(value, digits=0):
    return None if value is None else f"{value:,.{digits}f}"


def ratio(a, b):
    return a / b if a is not None and b else None


def median(values):
    values = [value for value in values if value is not None]
    return statistics.median(values) if values else None


class Notes:
    """Collects failures: only the figure is lost, not the run."""

    def __init__(self):
        self.texts = []

    def add(self, text):
        if text not in self.texts:
            self.texts.append(text)
            print(f"  ! {text[:200]}", flush=True)


def attempt(notes, work, *arguments):
    """What `work` returns, or nothing if an engine failed."""
    try:
        return work(*arguments)
    except Failed as failure:
        notes.add(str(failure))
        return None


def syncs_per_second(directory, seconds=1.0):
    """How many times per second 256 bytes can be appended to a file and synced."""
    path = directory / "syncs"
    with open(path, "wb", buffering=0) as file:
        count, end = 0, time.perf_counter() + seconds
        while time.perf_counter() < end:
            file.write(b"x" * 256)
            os.fdatasync(file.fileno())
            count += 1
    path.unlink()
    return count / seconds


# ---- the parts: each prints its table and returns its figures -----------------------------------------------


def commits(args, notes):
    names = args.engines + (["memory"] if "entasis" in args.engines else [])
    disk = [syncs_per_second(args.dir)]
    workers = {}
    for name in names:
        workers[name] = Worker(name, args.dir / f"commits-{name}.db", args.threads)
        attempt(notes, workers[name].ask, "load", args.rows)
    rounds = {}
    for _ in range(args.rounds):
        for kind in ["insert", "update"]:
            for threads in THREADS:
                taken = rounds.setdefault(f"{kind} {threads}", {name: [] for name in names})
                for name, worker in workers.items():
                    answer = attempt(notes, worker.ask, "commits", kind, threads, args.seconds, args.rows)
                    taken[name].append(answer and answer["per_second"])
                    if answer and answer["retries"] > 0.1 * answer["per_second"] * args.seconds:
                        notes.add(f"{name}, {kind} from {threads}: {answer['retries']} conflicts or locks")
        disk.append(syncs_per_second(args.dir))
    medians = {line: {name: median(taken[name]) for name in names} for line, taken in rounds.items()}
    heads = args.engines + ["/ sqlite", "/ duckdb"] + (["in memory"] if "memory" in names else [])
    heading(f"Commits of one row a second, table of {args.rows:,} rows", heads)
    limited = []
    for title, of in medians.items():
        kind, threads = title.split()
        own = of.get("entasis")
        beside = ratio(own, of.get("sqlite"))
        wanted = {"1": 1, "32": 5}.get(threads)
        goal = (f"≥ {wanted} × sqlite", beside and beside >= wanted) if wanted else None
        cells = [figure(of[name]) for name in args.engines]
        cells += [figure(beside, 2), figure(ratio(own, of.get("duckdb")), 2)]
        cells += [figure(of["memory"])] if "memory" in names else []
        line(f"{kind.upper()}, {threads} thread{'s' * (threads != '1')}", cells, goal)
        if own and of.get("memory") and own > 0.7 * of["memory"]:
            limited.append(title)
    print(f"The disk: {median(disk):,.0f} appends of 256 bytes a second, each synced.")
    if limited:
        print(f"Python and its lock are the limit, not the disk, of: {', '.join(limited)} (over 70 % of the rate in memory).")
    versions = {name: worker.version for name, worker in workers.items()}
    for worker in workers.values():
        worker.remove()
    return {
        "rows": args.rows,
        "seconds": args.seconds,
        "per_second": medians,
        "rounds": rounds,
        "limited_by_python": limited,
        "disk_syncs_per_second": disk,
        "versions": versions,
    }


def batches(args, notes):
    found = {name: [] for name in args.engines}
    for _ in range(args.long_rounds):
        for name in args.engines:
            worker = Worker(name, args.dir / f"batches-{name}.db", args.threads)
            tenths = attempt(notes, worker.ask, "batches", args.batch_rows, 100, args.budget)
            if tenths:
                rates = [args.batch_rows / 10 / seconds for seconds in tenths]
                file, log = worker.files()
                worker.ask("make_checkpoint")
                peak = worker.ask("peak")
                worker.end()
                taken = {"rates": rates, "file": file, "log": log, "closed": sum(worker.files()), "peak": peak}
                found[name].append(taken)
                if len(tenths) < 10:
                    notes.add(f"{name}: {len(tenths)} of 10 tenths in {args.budget} s; the last one is of these")
            worker.remove()
    of = lambda get: [median(get(taken) for taken in found[name]) for name in args.engines]
    heading(f"{args.batch_rows:,} rows in transactions of 100, with a unique index", args.engines)
    first, last = of(lambda t: t["rates"][0]), of(lambda t: t["rates"][-1])
    line("first tenth, rows/s", map(figure, first))
    line("last tenth, rows/s", map(figure, last))
    shares = [ratio(b, a) for a, b in zip(first, last)]
    own = shares[args.engines.index("entasis")] if "entasis" in args.engines else None
    line("last / first", [figure(share, 2) for share in shares], ("≥ 0.90", own and own >= 0.9))
    line("file at the end, MB", [figure(ratio(size, 1e6), 1) for size in of(lambda t: t["file"])])
    line("log at the end, MB", [figure(ratio(size, 1e6), 1) for size in of(lambda t: t["log"])])
    line("closed, MB", [figure(ratio(size, 1e6), 1) for size in of(lambda t: t["closed"])])
    line("peak memory, MB", [figure(ratio(size, 1e6)) for size in of(lambda t: t["peak"])])
    return {"rows": args.batch_rows, "runs": found, "last_by_first": dict(zip(args.engines, shares))}


def tpch_file(args, name):
    """A file of TPC-H, and the cost of loading it."""
    path = args.dir / f"tpch-{name}.db"
    tables = {table: str(parquet) for table, parquet in tables_in(generate(args.scale)).items()}
    worker = Worker(name, path, args.threads)
    try:
        taken = worker.ask("tpch", tables)
    finally:
        worker.end()
    return taken | {"file": sum(worker.files())}, worker


def tpch(args, notes):
    names = [name for name in args.engines if name != "sqlite"]
    found = {name: [] for name in names}
    for turn in range(args.rounds):
        for name in names:
            done = attempt(notes, tpch_file, args, name)
            if done:
                found[name].append(done[0])
                done[1].remove()
    heading(f"TPC-H, scale {args.scale:g}, from Parquet to a file", names + ["/ duckdb"])
    medians = {}
    for title, key, unit, digits, goal in [
        ("load, s", "load", 1, 2, None),
        ("with checkpoint, closed, s", "seconds", 1, 2, 0.5),
        ("file, MB", "file", 1e6, 1, 0.8),
        ("peak memory, MB", "peak", 1e6, 0, None),
    ]:
        of = {name: median(taken[key] for taken in found[name]) for name in names}
        beside = ratio(of.get("entasis"), of.get("duckdb"))
        cells = [figure(ratio(of[name], unit), digits) for name in names] + [figure(beside, 2)]
        line(title, cells, (f"≤ {goal} × duckdb", beside and beside <= goal) if goal else None)
        medians[key] = of
    return {"scale": args.scale, "medians": medians, "runs": found}


def opening(args, notes):
    names = [name for name in args.engines if name != "sqlite"]
    files, found = {}, {}
    for name in names:
        if args.open_gb:
            worker = Worker(name, args.dir / f"wide-{name}.db", args.threads)
            done = attempt(notes, worker.ask, "wide", args.open_gb)
            worker.end()
        else:
            made = attempt(notes, tpch_file, args, name)
            done, worker = made if made else (None, None)
        if done:
            files[name] = worker
    query = "SELECT sum(c0) / 1000000, max(c1) FROM wide" if args.open_gb else SIXTH
    sizes = {name: sum(worker.files()) for name, worker in files.items()}
    for state in ["cold", "warm"]:
        found[state] = {name: [] for name in files}
        for _ in range(args.rounds):
            for name, worker in files.items():
                fresh = Worker(name, worker.path, args.threads, opens=False)
                ask = lambda: fresh.ask("opening", fresh.path, args.threads, query, state == "cold")
                answer = attempt(notes, ask)
                if answer:
                    found[state][name].append(answer)
                fresh.end()
    for worker in files.values():
        worker.remove()
    what = f"{args.open_gb:g} GB of random numbers" if args.open_gb else f"TPC-H, scale {args.scale:g}"
    medians = {}
    for state, of_state in found.items():
        cache = "nothing in the system's cache" if state == "cold" else "all in the system's cache"
        heading(f"Opening {what} in a fresh process, {cache}", list(files))
        line("file, MB", [figure(sizes[name] / 1e6, 1) for name in files])
        medians[state] = {}
        for title, key, unit, digits in [
            ("open, ms", "open_ms", 1, 1),
            ("first query, ms", "first_ms", 1, 1),
            ("the same again, ms", "again_ms", 1, 1),
            ("read to open, MB", "open_read", 1e6, 1),
            ("read in all, MB", "read", 1e6, 1),
            ("read from the disk, MB", "disk_read", 1e6, 1),
            ("peak memory, MB", "peak", 1e6, 0),
        ]:
            of = {name: median(taken[key] for taken in of_state[name]) for name in files}
            own = of.get("entasis")
            goal = ("≤ 50 ms", own <= 50) if key == "open_ms" and own is not None else None
            line(title, [figure(ratio(of[name], unit), digits) for name in files], goal)
            medians[state][key] = of
    return {"file": what, "bytes": sizes, "medians": medians, "runs": found}


def latency(args, notes):
    found = {}
    workers = {}
    for name in args.engines:
        workers[name] = Worker(name, args.dir / f"latency-{name}.db", args.threads)
        attempt(notes, workers[name].ask, "load", args.rows)
    for _ in range(args.rounds):
        for level in ["full", "off"]:
            for name, worker in workers.items():
                if level not in worker.levels():
                    continue
                for beside in [False, True]:
                    attempt(notes, worker.ask, "synchronous", level)
                    ask = lambda: worker.ask("latency", args.seconds * 2, args.rows, beside)
                    answer = attempt(notes, ask)
                    kinds = found.setdefault(level, {}).setdefault(name, {"alone": [], "checkpoints": []})
                    if answer:
                        kinds["checkpoints" if beside else "alone"].append(answer)
    for worker in workers.values():
        worker.remove()
    medians = {}
    for level, engines in found.items():
        heads = ["p50", "p99", "p99.9", "most", "writes", "checkpoints", "ms each"]
        heading(f"An update by key, synchronous = {level}, µs; table of {args.rows:,} rows", heads, 34)
        for name, kinds in engines.items():
            of = {}
            for kind, taken in kinds.items():
                keys = ["p50", "p99", "p99.9", "most", "writes", "checkpoints", "checkpoint_ms", "refused"]
                of[kind] = {key: median(run[key] for run in taken) for key in keys}
                cells = [figure(of[kind][key], 1 if key != "writes" else 0) for key in keys[:4]]
                cells += [figure(of[kind]["writes"])]
                cells += [figure(of[kind]["checkpoints"]), figure(of[kind]["checkpoint_ms"], 1)] if kind == "checkpoints" else []
                line(f"{name}, {'alone' if kind == 'alone' else 'beside checkpoints'}", cells, left=34)
            times = {key: ratio(of["checkpoints"][key], of["alone"][key]) for key in ["p50", "p99", "p99.9"]}
            goal = ("all ≤ 2", all(t is not None and t <= 2 for t in times.values())) if name == "entasis" else None
            line("  times as long", [figure(times[key], 2) for key in times], goal, left=34)
            if of["checkpoints"]["refused"]:
                print(f"  {name} refused {of['checkpoints']['refused']:,.0f} checkpoints, as others were writing")
            medians.setdefault(level, {})[name] = of | {"times": times}
    return {"rows": args.rows, "medians": medians, "runs": found}


def replay_of(args, notes, name):
    """Fills a log, kills the process, and opens the file again."""
    worker = Worker(name, args.dir / f"replay-{name}.db", args.threads)
    try:
        written = worker.ask("fill_log", worker.path, args.log_mb * 1_000_000, args.budget)
    finally:
        worker.kill()
    if written["log_bytes"] is None:
        notes.add(f"{name} has no log beside {Path(worker.path).name}")
    fresh = Worker(name, worker.path, args.threads, opens=False)
    try:
        opened = fresh.ask("opening", fresh.path, args.threads, "SELECT count(*) FROM t", False)
        seconds = (opened["open_ms"] + opened["first_ms"]) / 1000
        updated = fresh.ask("value", "SELECT count(*) FROM t WHERE v = -1")
        is_whole = (opened["answer"], updated) == (str(written["rows"]), written["updated"])
        if not is_whole:
            notes.add(f"{name} lost rows: {opened['answer']} of {written['rows']}, updated {updated} of {written['updated']}")
    finally:
        fresh.remove()
    return written | {"open_seconds": seconds, "is_whole": is_whole, "peak": opened["peak"]}


def replay(args, notes):
    found = {name: [] for name in args.engines}
    for _ in range(args.long_rounds):
        for name in args.engines:
            done = attempt(notes, replay_of, args, notes, name)
            if done:
                found[name].append(done)
    heading(f"Opening after a kill, {args.log_mb} MB of log; transactions of 100 inserts or updates", args.engines)
    keys = ["log_bytes", "rows", "transactions", "seconds", "open_seconds", "peak"]
    of = {key: [median(run[key] for run in found[name]) for name in args.engines] for key in keys}
    line("log, MB", [figure(ratio(value, 1e6), 1) for value in of["log_bytes"]])
    line("rows in it, 1000", [figure(ratio(value, 1e3)) for value in of["rows"]])
    line("transactions in it", map(figure, of["transactions"]))
    line("written in, s", [figure(value, 1) for value in of["seconds"]])
    line("open and count, s", [figure(value, 2) for value in of["open_seconds"]])
    speed = {
        name: ratio(ratio(log, 1e6), seconds)
        for name, log, seconds in zip(args.engines, of["log_bytes"], of["open_seconds"])
    }
    own = speed.get("entasis")
    line("MB/s", map(figure, speed.values()), (f"≥ {REPLAY} MB/s", own >= REPLAY) if own else None)
    line("peak memory, MB", [figure(ratio(value, 1e6)) for value in of["peak"]])
    return {"log_mb": args.log_mb, "runs": found}


def hap_part(args, notes):
    print(f"\nThe HAP table, {args.hap_rows:,} rows: in a file with synchronous = off, beside memory")
    command = ["--engines", "entasis,file", "--rows", str(args.hap_rows), "--rounds", str(args.rounds)]
    command += ["--dir", str(args.dir), "--brief", "--no-record"] + (["--bench", args.bench] if args.bench else [])
    return hap.main(command)


FUNCTIONS = dict(zip(PARTS, [commits, batches, tpch, opening, latency, replay, hap_part]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join(PARTS), help=f"parts: {','.join(PARTS)}")
    parser.add_argument("--engines", default="entasis,duckdb,sqlite")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the table of commits and latency")
    parser.add_argument("--seconds", type=float, default=2.0, help="of a measurement of commits; half of one of latency")
    parser.add_argument("--batch-rows", type=int, default=3_000_000)
    parser.add_argument("--budget", type=float, default=300, help="seconds after which batches, and a log that is filled, end early")
    parser.add_argument("--scale", type=float, default=1.0, help="of TPC-H")
    parser.add_argument("--open-gb", type=float, default=0, help="open a file of random numbers, not that of TPC-H")
    parser.add_argument("--log-mb", type=int, default=500, help="of the log that is replayed")
    parser.add_argument("--hap-rows", type=int, default=10_000_000)
    parser.add_argument("--long-rounds", type=int, default=1, help="of batches and replay")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--dir", type=Path, default=ROOT / "bench" / "data" / "durable", help="where databases are made")
    parser.add_argument("--bench", default="", help="the program for HAP's figures from Rust")
    parser.add_argument("--no-record", action="store_true")
    args = parser.parse_args()
    args.engines = args.engines.split(",")
    only = args.only.split(",")
    if unknown := set(only) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    args.dir = args.dir.resolve() / f"run-{os.getpid()}"
    args.dir.mkdir(parents=True)
    notes, content = Notes(), {"threads": args.threads, "rounds": args.rounds, "autocheckpoint": AUTOCHECKPOINT}
    try:
        for part in [part for part in PARTS if part in only]:
            content[part] = FUNCTIONS[part](args, notes)
    finally:
        shutil.rmtree(args.dir, ignore_errors=True)
    content["notes"] = notes.texts
    if not args.no_record:
        keep("durable", "durable" if len(only) == len(PARTS) else "durable-" + "-".join(only), content)


if __name__ == "__main__":
    main()
