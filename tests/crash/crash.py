"""Stops a machine under processes that write to a database, and opens what an independent disk has kept.

    make crash N=300000                    runs this as well
    python tests/crash/crash.py --states 500 --seed 1

Each round: a few processes do the steps of `workload.py` on one database, one after the other, or while others
wait for it. All but the last are killed, or meet an error of the disk, at an operation of random number. `rec.c` records what they do to their files. Then `disk.py` says what the machine might have on its disk
if it had stopped at random moments of that record; each of these states is opened by this program, and must have

- all steps that were acknowledged by then, and at most the one in progress as well;
- numbers of the sequence that nobody has been shown;
- the newest backup that was acknowledged, or a later one, as a whole;
- no damage, as `PRAGMA integrity_check` sees it.

If one has not, the state is kept, and the exit code is 1. The same seed gives the same steps, faults and moments.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import disk
import entasis
import workload
from workload import Marks

HERE = Path(__file__).resolve().parent
STEPS = 60
#: Faults of a process: operation, most operations before it, action, errno; as in rec.c.
SYNC, WRITE, TRUNCATE, SYNC_DIRECTORY, RENAME, UNLINK = range(6)
FAIL, KILL, HALF = 1, 2, 5
EIO, ENOSPC = 5, 28
FAULTS = [
    (SYNC, 60, FAIL, EIO),
    (SYNC, 60, FAIL, EIO),
    (SYNC, 60, KILL, 0),
    (WRITE, 120, FAIL, ENOSPC),
    (WRITE, 120, KILL, 0),
    (WRITE, 120, HALF, 0),
    (TRUNCATE, 4, FAIL, EIO),
    (SYNC_DIRECTORY, 3, KILL, 0),
    (SYNC_DIRECTORY, 3, FAIL, EIO),
    (RENAME, 2, KILL, 0),
    (UNLINK, 2, KILL, 0),
    None,
]


def recorder(directory):
    """Compiles the recorder; `None` if there is no compiler."""
    compiler, library = shutil.which("cc"), Path(directory) / "rec.so"
    if compiler is None:
        return None
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, HERE / "rec.c", "-ldl", "-lpthread"], check=True)
    return library


class Round:
    """The processes of a seed, what they have recorded, and how it is checked."""

    def __init__(self, seed, library, scratch, ways):
        self.random, self.library = random.Random(seed), library
        self.base, self.trace = scratch / "machine", scratch / "trace"
        self.after, self.seed = scratch / "after", seed
        self.base.mkdir()
        self.plan = workload.plan(seed, STEPS)
        self.states = workload.states(self.plan)
        self.way = self.random.choice(ways)
        if self.way == "symbolic link":
            (self.base / "linked").mkdir()
            (self.base / "linked" / "other.db").symlink_to(self.base / "my.db")
        self.plan_file = scratch / "plan.json"
        self.plan_file.write_text(json.dumps({"plan": self.plan, "states": self.states, "way": self.way}))

    def marks(self):
        return Marks(self.events() if self.trace.exists() else [])

    def run(self):
        """Runs the processes. Returns what is wrong with what they have seen."""
        faults = [self.random.choice(FAULTS) for _ in range(self.random.randint(1, 3))]
        self.faults, processes = [], []
        for fault in [*faults, None]:
            if self.marks().steps == len(self.plan):
                break
            processes.append(self.start(fault))
            if self.way != "beside another":
                processes[-1].wait()
        errors = [process.communicate()[1].strip()[-500:] for process in processes]
        lost = self.marks().lost
        if lost is not None:
            return f"{lost} steps were acknowledged, and the next process finds something else"
        if self.marks().steps < len(self.plan):
            return f"nobody does all steps: {errors}"
        return None

    def start(self, fault):
        environment = dict(os.environ, LD_PRELOAD=self.library, REC_DIR=self.base, REC_TRACE=self.trace)
        environment.pop("REC_FAULT", None)
        if fault is not None:
            operation, most, action, error = fault
            environment["REC_FAULT"] = f"{operation}:{self.random.randint(1, most)}:{action}:{error}"
            self.faults.append(environment["REC_FAULT"])
        arguments = [sys.executable, HERE / "workload.py", self.base, self.plan_file]
        return subprocess.Popen(arguments, env=environment, stderr=subprocess.PIPE, text=True)

    def events(self):
        return list(disk.events(self.trace))

    def check(self, count):
        """Checks so many states of the disk. Returns what is wrong."""
        events = self.events()
        moments = sorted(self.random.randrange(len(events) + 1) for _ in range(count))
        machine, marks, at = disk.Disk(), Marks(), 0
        for moment in moments:
            for event in events[at:moment]:
                machine.apply(event)
                marks.apply(event)
            at = moment
            kind = self.random.choice(disk.KINDS)
            wrong = self.check_state(machine.crash(self.random, kind), marks, moment % 8 == 0)
            if wrong:
                return f"stopped before event {moment} of {len(events)} ({kind}): {wrong}"
        return None

    def check_state(self, files, marks, thoroughly):
        disk.write(files, self.base, self.after)
        path = self.after / "my.db"
        if not path.exists():
            return f"{marks.steps} steps were acknowledged, and there is no file" if marks.steps else None
        try:
            connection = entasis.connect(str(path), threads=1)
            found = workload.contents(connection)
            if found not in self.states[marks.steps : marks.steps + 2]:
                states = [number for number, state in enumerate(self.states) if state == found]
                return f"{marks.steps} steps were acknowledged, and there is the state after {states or 'none'}"
            if marks.number:
                number = connection.execute("SELECT nextval('s')").fetchall()[0][0]
                if number <= marks.number:
                    return f"the number {marks.number} was shown, and {number} is the next"
            if thoroughly:
                damage = connection.execute("PRAGMA integrity_check").fetchall()
                if damage[0][0] != "ok":
                    return f"integrity_check: {damage}"
            connection.close()
            return self.check_backup(marks)
        except entasis.Error as error:
            return str(error)

    def check_backup(self, marks):
        path = self.after / "backup.db"
        if not path.exists():
            return "an acknowledged backup is not there" if marks.backup is not None else None
        if path.stat().st_size == 0:
            # An empty file takes the name first.
            return "an acknowledged backup is empty" if marks.backup is not None else None
        connection = entasis.connect(str(path), read_only=True)
        found = workload.contents(connection)
        connection.close()
        allowed = [number for number in [marks.backup, *marks.backing] if number is not None]
        if found not in [self.states[number] for number in allowed]:
            return f"the backup is of none of the states {allowed}"
        return None


def main(arguments=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--states", type=int, default=500, help="states of disks to open, in all")
    parser.add_argument("--each", type=int, default=50, help="states of a seed")
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--ways", default=",".join(workload.WAYS), help="how databases are opened")
    options = parser.parse_args(arguments)
    parent, began, done, seed, faults = tempfile.mkdtemp(prefix="entasis-crash-"), time.time(), 0, options.seed, 0
    library = recorder(parent)
    if library is None:
        print("there is no C compiler (cc): nothing was tried", file=sys.stderr)
        return 2
    while done < options.states:
        scratch = Path(parent).resolve() / f"seed-{seed}"
        scratch.mkdir()
        round = Round(seed, library, scratch, options.ways.split(","))
        count = min(options.each, options.states - done)
        wrong = round.run() or round.check(count)
        if wrong:
            print(f"\nseed {seed}, opened {round.way}, faults {round.faults}: {wrong}\nkept: {scratch}", file=sys.stderr)
            return 1
        done, seed, faults = done + count, seed + 1, faults + len(round.faults)
        shutil.rmtree(scratch)
        if sys.stderr.isatty():
            print(f"\r{done} of {options.states} states, {time.time() - began:.0f} s", end="", file=sys.stderr)
    shutil.rmtree(parent)
    print(
        f"{done} states of {seed - options.seed} recorded machines opened, {faults} faults before: "
        f"nothing was lost ({time.time() - began:.0f} s)"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
