"""Reads of a file that is not in the page cache: the disk's part of a database that is larger than memory.

    make bench-read                                  a file of 1 GB under bench/data
    make bench-read DIR=/mnt/disk READ_GB=4          on another disk, larger

| kind | a measurement |
|---|---|
| one | reads at random places, one after the other, by one thread: the median time of a read |
| many | the same in batches of 128 (`Backend::read_many`): eight are made at once |
| in-order | reads of 1 MB from the beginning on, one after the other: the system reads ahead |
| in-order-many | the same in batches of 16, which are merged into reads of 4 MB |

The file is of random bytes and written once. It is synced, and before each measurement dropped from the page
cache (`posix_fadvise`, DONTNEED), which neither needs special rights nor touches other files. The disk itself,
or the host of a virtual machine, may have a cache of its own, of which nothing is known here. Within a
measurement no place is read twice. One of about thirty reads of 256 KB lies beside another one of its batch,
with which it is merged; of shorter reads, fewer. Reads go through the page cache, with the system's own reading
ahead.

Kinds and sizes take turns within a round. The medians of the rounds are printed, and kept with all rounds,
machine and commit under bench/record/. `reads`, an example of the crate `storage`, measures. A MB is 10⁶ bytes,
a KB of a read 1,024.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from engines import ROOT, keep

KB = 1 << 10
MB = 1 << 20
RANDOM = [4 * KB, 16 * KB, 64 * KB, 256 * KB]
MEASUREMENTS = [(kind, size) for kind in ["one", "many"] for size in RANDOM]
MEASUREMENTS += [("in-order", MB), ("in-order-many", MB)]
FIGURES = ["per_second", "mb_per_second", "p50_us", "p99_us"]


def write(path, size):
    """Creates a file of random bytes, which no disk can compress, and syncs it."""
    source = random.Random(4711)
    with open(path, "wb", buffering=0) as file:
        for _ in range(size // MB):
            block = memoryview(source.randbytes(MB))
            while block:
                block = block[file.write(block) :]
        os.fsync(file.fileno())


def drop(path):
    """Drops a file from the page cache. What has not been written to the disk would stay."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def cached_share(path, places=64):
    """The share of some places that are in the page cache; nothing, if the system does not tell.

    A read that is not to wait fails where it would have to. It may start reading there, so the file is to be
    dropped again afterwards.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        size, cached = os.fstat(descriptor).st_size, 0
        for place in range(places):
            try:
                cached += os.preadv(descriptor, [bytearray(1)], size * place // places, os.RWF_NOWAIT)
            except BlockingIOError:
                pass
        return cached / places
    except OSError:
        return None
    finally:
        os.close(descriptor)


def file_system(directory):
    result = subprocess.run(["stat", "-f", "-c", "%T", str(directory)], capture_output=True, text=True)
    return result.stdout.strip() or None


def measure(args, path, kind, size, seed):
    drop(path)
    command = [args.reads, str(path), kind, str(size), str(args.seconds), str(seed)]
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if result.returncode:
        sys.exit(f"{' '.join(command)} failed with {result.returncode}")
    return json.loads(result.stdout)


def medians(rounds):
    """The median of each figure of the measurements of one kind and size."""
    median = lambda values: statistics.median(values) if None not in values else None
    return {figure: median([measured[figure] for measured in rounds]) for figure in FIGURES}


def show(figures):
    cell = lambda kind, size, figure: f"{figures[kind][str(size)][figure]:>12,.0f}"
    row = lambda title, kind, figure: print(title.ljust(38) + "".join(cell(kind, size, figure) for size in RANDOM))
    print("reads at random places of".ljust(38) + "".join(f"{f'{size // KB} KB':>12}" for size in RANDOM))
    row("one after the other, p50, µs", "one", "p50_us")
    row("  p99, µs", "one", "p99_us")
    row("  a second", "one", "per_second")
    row("batches, eight at once, a second", "many", "per_second")
    row("  MB/s", "many", "mb_per_second")
    alone, batches = (figures[kind][str(MB)]["mb_per_second"] for kind in ["in-order", "in-order-many"])
    print(f"in order, 1 MB each: {alone:,.0f} MB/s, in batches {batches:,.0f} MB/s")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dir", type=Path, default=ROOT / "bench" / "data" / "reads", help="where the file is made")
    parser.add_argument("--gb", type=float, default=1.0, help="size of the file, in units of 2^30 bytes")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0, help="of a measurement, at the most")
    parser.add_argument("--reads", default="target/release/examples/reads", help="the program that measures")
    parser.add_argument("--no-record", action="store_true")
    args = parser.parse_args()
    args.dir.mkdir(parents=True, exist_ok=True)

    if file_system(args.dir) in ("tmpfs", "ramfs"):
        sys.exit(f"{args.dir} is in memory: name a directory on a disk by --dir")

    rounds = {}
    with tempfile.TemporaryDirectory(prefix="entasis-reads-", dir=args.dir) as directory:
        path = Path(directory) / "file"
        size = max(int(args.gb * KB), 64) * MB
        write(path, size)
        drop(path)
        cached = cached_share(path)
        if cached is None:
            print("whether the file has left the page cache is not known: the system does not tell")
        elif cached > 0.05:
            sys.exit(f"{cached:.0%} of {path} stay in the page cache: name a directory on a disk by --dir")
        for turn in range(args.rounds):
            for kind, of in MEASUREMENTS:
                measured = measure(args, path, kind, of, turn + 1)
                rounds.setdefault(kind, {}).setdefault(str(of), []).append(measured)
                print(".", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
        system = file_system(directory)
    figures = {kind: {of: medians(measured) for of, measured in sizes.items()} for kind, sizes in rounds.items()}
    show(figures)
    content = {"file_bytes": size, "seconds": args.seconds, "file_system": system, "cached_after_drop": cached}
    if not args.no_record:
        keep("reads", "reads", content | {"median": figures, "rounds": rounds})


if __name__ == "__main__":
    main()
