"""The cold part of `compression.py`: TPC-H in files, each query in a fresh process with an empty page cache.

The measured time is that of opening the file and running the query once: what a program waits for if it
starts with the file on the disk. The refresh functions run in such a process, too; their time includes a
checkpoint.
"""

import os
import statistics
import tempfile
from pathlib import Path

from durable_engines import Failed, Worker


def make(side, directory, tables, threads):
    """Creates the database of a side in a file. Returns its size in bytes."""
    path = Path(directory) / f"{side}.db"
    worker = Worker("entasis", path, threads)
    try:
        if side == "uncompressed":
            worker.ask("statements", ["SET compression = 'none'"])
        worker.ask("tpch", {name: str(path) for name, path in tables.items()})
    finally:
        worker.end()
    return os.path.getsize(path)


def ask_cold(directory, side, threads, *command):
    """Runs a command in a fresh process, with its file not in the page cache."""
    worker = Worker("entasis", Path(directory) / f"{side}.db", threads, opens=False)
    try:
        return worker.ask(command[0], worker.path, threads, *command[1:])
    except Failed as error:
        raise SystemExit(str(error)) from error
    finally:
        worker.end()


def run(sides, tables, queries, refresh, threads, rounds):
    """Prints a table. Returns for each name the median milliseconds of each side: total, and opening."""
    with tempfile.TemporaryDirectory(prefix="entasis-cold-") as directory:
        sizes = {side: make(side, directory, tables, threads) for side in sides}
        print(f"\ncold from disk, {' and '.join(f'{sizes[side] / 1e6:.0f} MB' for side in sides)}")
        print(f"{'query':7}{'compressed ms':>15}{'none ms':>12}{'ratio':>8}{'opening ms':>14}{'none':>10}")
        found = []
        for name, sql in list(queries.items()) + list(refresh.items()):
            times = {side: [] for side in sides}
            opened = {side: [] for side in sides}
            for _ in range(rounds):
                for side in sides:
                    kind = "cold_query" if isinstance(sql, str) else "cold_changes"
                    answer = ask_cold(directory, side, threads, kind, sql)
                    times[side].append(answer["all_ms"])
                    opened[side].append(answer["open_ms"])
            medians = {side: statistics.median(times[side]) for side in sides}
            openings = {side: statistics.median(opened[side]) for side in sides}
            found.append({"name": name, "median_ms": medians, "opening_ms": openings, "all_ms": times})
            one, other = (medians[side] for side in sides)
            print(
                f"{name:7}{one:15.0f}{other:12.0f}{one / other:8.2f}"
                f"{openings[sides[0]]:14.0f}{openings[sides[1]]:10.0f}",
                flush=True,
            )
    return {"bytes": sizes, "results": found}
