"""Tests of the independent disk, that the checks of `crash.py` find what is missing, and a few states."""

import random
import shutil

import crash
import disk
import pytest
import workload

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="the recorder is compiled by cc")


def event(kind, file=0, number=0, one=b"", other=b""):
    return kind, file, number, one, other


def machine(*events):
    machine = disk.Disk()
    for one in [event(disk.CREATE, 1, 11, b"/d/a"), event(disk.SYNC_DIRECTORY, 0, 0, b"/d"), *events]:
        machine.apply(one)
    return machine


def left(machine, kind="nothing", seed=1):
    return {name: content for name, (_, content) in machine.crash(random.Random(seed), kind).items()}


def test_what_was_synced_stays():
    writes = [event(disk.WRITE, 1, 0, b"abc"), event(disk.SYNC, 1), event(disk.WRITE, 1, 1, b"xyz")]
    assert left(machine(*writes)) == {"/d/a": b"abc"}
    assert left(machine(*writes), "all") == {"/d/a": b"axyz"}
    cut = machine(*writes, event(disk.TRUNCATE, 1, 1), event(disk.SYNC, 1))
    assert left(cut) == {"/d/a": b"a"}


def test_a_sync_that_failed_loses_what_it_should_have_written_for_ever():
    lost = machine(event(disk.WRITE, 1, 0, b"abc"), event(disk.FAILED_SYNC, 1), event(disk.SYNC, 1))
    assert left(lost, "all") == {"/d/a": b""}
    lost.apply(event(disk.WRITE, 1, 0, b"abc"))
    lost.apply(event(disk.SYNC, 1))
    assert left(lost) == {"/d/a": b"abc"}


def test_names_stay_once_their_directory_was_synced():
    renamed = machine(
        event(disk.CREATE, 2, 12, b"/d/b"),
        event(disk.WRITE, 2, 0, b"new"),
        event(disk.SYNC, 2),
        event(disk.RENAME, 0, 0, b"/d/b", b"/d/a"),
    )
    assert left(renamed) == {"/d/a": b""}
    assert left(renamed, "all") == {"/d/a": b"new"}
    renamed.apply(event(disk.SYNC_DIRECTORY, 0, 0, b"/other"))
    assert left(renamed) == {"/d/a": b""}
    renamed.apply(event(disk.SYNC_DIRECTORY, 0, 0, b"/d"))
    assert left(renamed) == {"/d/a": b"new"}
    renamed.apply(event(disk.UNLINK, 0, 0, b"/d/a"))
    assert left(renamed) == {"/d/a": b"new"}
    assert left(renamed, "all") == {}


def test_processes_see_one_file():
    writes = [event(disk.FOUND, 7, 11, b"/d/a"), event(disk.WRITE, 7, 0, b"abc"), event(disk.SYNC, 1)]
    assert left(machine(*writes)) == {"/d/a": b"abc"}
    early = [event(disk.FOUND, 7, 12, b"/d/b"), event(disk.WRITE, 7, 0, b"x"), event(disk.CREATE, 2, 12, b"/d/b")]
    assert left(machine(*early, event(disk.SYNC, 2), event(disk.SYNC_DIRECTORY, 0, 0, b"/d")))["/d/b"] == b"x"


def test_sectors_are_written_in_any_order():
    torn = machine(event(disk.WRITE, 1, 0, b"a" * 4 * disk.SECTOR))
    found = {left(torn, "parts", seed)["/d/a"].strip(b"\0") for seed in range(300)}
    assert len(found) > 5 and {len(some) % disk.SECTOR for some in found} == {0}


def test_steps_have_other_states():
    plan = workload.plan(3, 60)
    states = workload.states(plan)
    assert len(states) == len(plan) + 1 and len(set(states)) > 20
    assert {"number", "backup", "CHECKPOINT"} <= {step for step in plan if isinstance(step, str)}


def recorded(tmp_path, seed, ways, kind=crash.Round):
    library = crash.recorder(tmp_path)
    scratch = tmp_path / f"seed-{seed}"
    scratch.mkdir()
    return kind(seed, library, scratch.resolve(), ways)


class Forgetful(crash.Round):
    """Of a machine whose disk says that it has written, and has not."""

    def events(self):
        events = super().events()
        return [event for at, event in enumerate(events) if event[0] != disk.SYNC or at < len(events) // 3]


@needs_compiler
def test_what_is_not_synced_is_found_missing(tmp_path):
    round = recorded(tmp_path, 1, ["plain"], Forgetful)
    assert round.run() is None
    assert round.check(40)


@needs_compiler
@pytest.mark.parametrize("way", workload.WAYS)
def test_a_few_states(way):
    assert crash.main(["--states", "60", "--each", "20", "--ways", way]) == 0
