"""Full disks: by a limit of the process, and by a small file system if one can be mounted."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import full
import pytest

SMALL = "9m"


def filled(path, limit, prefix=()):
    """Runs the process. Returns the number of acknowledged transactions, and the last output."""
    command = [*prefix, sys.executable, str(Path(full.__file__)), str(path), limit]
    # Another namespace has another working directory, so a relative path is wrong there.
    env = {**os.environ, "PYTHONPATH": str(Path(full.entasis.__file__).resolve().parents[1])}
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, env=env)
    assert run.returncode == 0, run.stderr
    *answered, last = run.stdout.splitlines()
    return [int(n) for n in answered], json.loads(last)


def judge(path, answered, end):
    assert len(answered) > 3
    assert "cannot be written" in end["then"] and end["readable"]
    assert full.check(str(path), answered[-1] + 1) == []


def test_a_file_that_may_not_grow(tmp_path):
    path = tmp_path / "limited.db"
    answered, end = filled(path, "file")
    assert "large" in end["refused"], end
    judge(path, answered, end)
    # The next process has no limit, and goes on.
    connection = full.entasis.connect(str(path))
    n = connection.execute("SELECT max(n) + 1 FROM t").fetchone()[0]
    connection.execute(full.ADD.format(n=n, rows=full.rows_of(n)))
    connection.close()
    assert full.check(str(path), n + 1) == []


def test_a_disk_without_room(tmp_path):
    """The file system is in memory, mounted in a namespace of a process that keeps it until the end."""
    mount = tmp_path / "disk"
    mount.mkdir()
    script = f"mount -t tmpfs -o size={SMALL} tmpfs {mount} && echo mounted && exec sleep 600"
    try:
        holder = subprocess.Popen(
            ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )
    except FileNotFoundError:
        pytest.skip("unshare is not there")
    try:
        if holder.stdout.readline() != "mounted\n":
            pytest.skip("no file system can be mounted here")
        inside = ["nsenter", f"--target={holder.pid}", "--user", "--mount", "--preserve-credentials"]
        path = mount / "full.db"
        answered, end = filled(path, "disk", inside)
        assert "space" in end["refused"], end
        # The database is copied to a place with room; then there is room in its own place, too.
        copy = tmp_path / "copy"
        subprocess.run([*inside, "cp", "-r", str(mount), str(copy)], check=True)
        judge(copy / "full.db", answered, end)
        subprocess.run([*inside, "mount", "-o", "remount,size=24m", str(mount)], check=True)
        more, end = filled(path, "disk", inside)
        assert more and more[0] in (answered[-1] + 1, answered[-1] + 2) and "space" in end["refused"]
        shutil.rmtree(copy)
        subprocess.run([*inside, "cp", "-r", str(mount), str(copy)], check=True)
        judge(copy / "full.db", more, end)
    finally:
        holder.kill()
        holder.wait()
