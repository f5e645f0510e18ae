"""What a process does to a database whose machine is going to stop: a list of steps, each a commit.

    python workload.py DIRECTORY PLAN        run by crash.py, with rec.so preloaded

`plan` makes the steps of a seed, and `states` says what a database contains after each number of them, by
doing them in memory. The process looks which steps the database has, does the others, and marks in the trace
what it has been acknowledged: `step 7` for the first seven steps, `number 5` for a number of a sequence that it
was shown, `backup 3` for a backup of the state after three steps.
"""

import ctypes
import hashlib
import json
import os
import random
import sys
import time
from pathlib import Path

import disk
import entasis

SETUP = [
    "CREATE SEQUENCE s",
    "CREATE TABLE a (k INTEGER PRIMARY KEY, v VARCHAR)",
    "CREATE TABLE b (k BIGINT, v DOUBLE)",
]
#: How the database is opened.
WAYS = ["plain", "relative", "symbolic link", "hard link", "forked", "beside another"]
#: How long a process waits for the one before to be killed.
PATIENCE = 60


class Marks:
    """What processes have been acknowledged."""

    def __init__(self, events=()):
        self.steps, self.number, self.backup, self.backing, self.lost = 0, 0, None, [], None
        for event in events:
            self.apply(event)

    def apply(self, event):
        if event[0] != disk.MARK:
            return
        word, number = event[3].decode().split()
        if word == "step":
            self.steps = max(self.steps, int(number))
        elif word == "number":
            self.number = max(self.number, int(number))
        elif word == "backing":
            self.backing.append(int(number))
        elif word == "backup":
            self.backup, self.backing = int(number), []
        else:
            self.lost = int(number)


def plan(seed, steps):
    """The steps: a statement, a list of them for a transaction, or what is not a commit: a number, a backup."""
    rng, fresh, made, plan = random.Random(seed), 0, [], [*SETUP]
    while len(plan) < steps:
        low, high, kind = fresh, fresh + rng.choice([1, 1, 3, 40, 700]), rng.random()
        change = rng.choice(
            [
                f"UPDATE a SET v = v || 'y' WHERE k % {rng.randint(2, 9)} = 0",
                f"DELETE FROM a WHERE k % {rng.randint(3, 30)} = 1",
                f"UPDATE b SET v = v + 1 WHERE k < {rng.randint(1, fresh + 1)}",
                f"DELETE FROM b WHERE k > {rng.randint(1, fresh + 1)}",
            ]
        )
        insert = f"INSERT INTO {rng.choice('ab')} SELECT i, {{}} FROM range({low}, {high}) r(i)"
        insert = insert.format("i / 8.0" if " b " in insert else "md5(i::VARCHAR)")
        if kind < 0.3:
            plan.append(insert)
            fresh = high
        elif kind < 0.45:
            plan.append(change)
        elif kind < 0.6:
            plan.append([insert, change, "UPDATE a SET v = 'z' WHERE k = 0"])
            fresh = high
        elif kind < 0.67:
            made.append(f"c{len(plan)}")
            plan.append(f"CREATE TABLE {made[-1]} AS SELECT i AS k, md5(i::VARCHAR) AS v FROM range(900) r(i)")
        elif kind < 0.72 and made:
            plan.append(f"DROP TABLE {made.pop()}")
        elif kind < 0.76:
            plan.append(f"CREATE INDEX IF NOT EXISTS i{len(plan)} ON a (v)")
        elif kind < 0.88:
            plan.append("CHECKPOINT")
        elif kind < 0.96:
            plan.append("number")
        else:
            plan.append("backup")
    return plan


def contents(connection):
    """What is in a database, as a short text."""
    names = connection.execute(
        "SELECT table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE' ORDER BY 1"
    ).fetchall()
    digest = hashlib.md5()
    for (name,) in names:
        digest.update(f"{name}\n".encode())
        for row in sorted(connection.execute(f"SELECT * FROM {name}").fetchall(), key=repr):
            digest.update(repr(row).encode())
    return digest.hexdigest()


def do(connection, step):
    for sql in ["BEGIN", *step, "COMMIT"] if isinstance(step, list) else [step]:
        connection.execute(sql)


def states(plan):
    """The contents after each number of steps."""
    connection, states = entasis.connect(), []
    for step in [None, *plan]:
        if step is not None and step not in ("CHECKPOINT", "number", "backup"):
            do(connection, step)
        states.append(contents(connection))
    return states


def connect(directory, way):
    """Opens the database in a way that must make no difference. What is created is created by its name."""
    path = directory / "my.db"
    if way == "symbolic link" and path.exists():
        path = directory / "linked" / "other.db"
    if way == "hard link" and path.exists():
        other = directory / "other.db"
        if not other.exists():
            os.link(path, other)
        path = random.choice([path, other])
    if way == "relative":
        os.chdir(directory)
        path = Path("my.db")
    began = time.time()
    while True:
        try:
            connection = entasis.connect(str(path), threads=1)
            break
        except entasis.Error as error:
            is_busy = "in use" in str(error) or "busy" in str(error)
            if way != "beside another" or not is_busy or time.time() - began > PATIENCE:
                raise
            time.sleep(0.01)
    if way == "relative":
        os.chdir("/")
    if way == "forked":
        # A child that uses nothing, and ends as programs do.
        child = os.fork()
        if child == 0:
            sys.exit(0)
        os.waitpid(child, 0)
    return connection


def main(directory, plan_file):
    what = json.loads(Path(plan_file).read_text())
    plan, states, way = what["plan"], what["states"], what["way"]
    mark = ctypes.CDLL(None).rec_mark
    connection = connect(Path(directory), way)
    connection.execute("SET wal_autocheckpoint = '64kB'")
    acknowledged = Marks(disk.events(os.environ["REC_TRACE"])).steps
    found = contents(connection)
    done = next((done for done in (acknowledged, acknowledged + 1) if states[done : done + 1] == [found]), None)
    if done is None:
        mark(f"lost {acknowledged}".encode())
        return 1
    # What an opening has shown stays, also a commit whose sync failed before: the opening writes it again and syncs.
    mark(f"step {done}".encode())
    for number in range(done, len(plan)):
        if plan[number] == "number":
            value = connection.execute("SELECT nextval('s')").fetchall()[0][0]
            mark(f"number {value}".encode())
        elif plan[number] == "backup":
            mark(f"backing {number}".encode())
            connection.execute(f"BACKUP TO '{directory}/backup.db' (OVERWRITE)")
            mark(f"backup {number}".encode())
        else:
            do(connection, plan[number])
        mark(f"step {number + 1}".encode())
    connection.close()
    return 0


if __name__ == "__main__":
    try:
        code = main(sys.argv[1], sys.argv[2])
    except entasis.Error as error:
        # What was not acknowledged does not count.
        print(error, file=sys.stderr)
        code = 2
    # As a process that is killed: nothing is closed.
    os._exit(code)
